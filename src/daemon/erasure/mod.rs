//! Erasure of people from the state (docs/erasure.md).
//!
//! Requests come from `POST /forget` ([`page`]), from the erasure topic ([`topic`]) and from `throng forget` on the directory of a stopped
//! daemon ([`erase_at_rest`]). Each becomes an [`Order`] for [`erase`], which rewrites the state without these people ([`edit`]).

mod edit;
pub mod page;
pub mod topic;

use super::engine::assemble::open_at_rest;
use super::requests::{Request, Requests};
use super::state::directory::StateError;
use super::state::store::Store;
use super::state::store::binding::TopicPosition;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::treatment::names::{class_base, turn_name};
use crate::config::SourceKind;
use crate::start::checked::Checked;
use crate::telemetry::{SubjectsErased, Telemetry};
use edit::Eraser;
pub use edit::Removed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use throng_core::ledger::erased_keys::ErasedKeys;
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::raw::Token;
use throng_core::values::schema::Schema;
use throng_core::values::subject::{NO_SUBJECT, Subjects};

/// Maximum number of people in one request.
pub const MAX_SUBJECTS: usize = 10_000;

/// People to erase, as their records name them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSubjects {
    /// Values of the subject attribute, spelled as a field of CSV.
    pub subjects: Vec<String>,
    /// Only count.
    #[serde(default)]
    pub dry_run: bool,
}

/// People to erase, by their keyed digests.
#[derive(Clone)]
pub struct Order {
    /// The digests. Empty where only the position in the erasure topic has changed.
    pub people: BTreeSet<u64>,
    /// Only count.
    pub dry_run: bool,
    /// Where the request comes from, for the log: `command`, `page` or `topic`.
    pub by: &'static str,
    /// Position in the erasure topic that takes effect together with the erasure.
    pub position: Option<TopicPosition>,
}

/// Request to a running daemon.
pub enum ErasureRequest {
    /// From its page.
    Named(NamedSubjects),
    /// From the erasure topic.
    Digests(Order),
}

/// Outcome of a request.
pub type Answer = Result<Receipt, ErasureError>;
/// Requests that wait for the end of a batch.
pub type ErasureRequests = crossbeam_channel::Receiver<Request<ErasureRequest, Answer>>;
/// Sends requests to the loop over batches.
pub type RequestErasure = Requests<ErasureRequest, Answer>;

/// Cause of a refused or failed erasure. No variant holds a subject.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    #[error("nobody is named: name a subject as the records name it")]
    Nobody,
    #[error("{0} subjects are named, at most {MAX_SUBJECTS} are taken at once: divide them")]
    TooMany(usize),
    #[error("the schema names no subject, so no record is known to be anybody's: nobody can be found")]
    NoSubject,
    #[error("subject number {place} is no value of the subject attribute, which is of type {kind}: correct it")]
    NotASubject { place: usize, kind: &'static str },
    #[error("this run keeps no state, or keeps it at its end: nobody can be taken out of it (ask when it has ended)")]
    NoState,
    #[error(
        "the entries about people lie in the changelog of the group, which only a running daemon changes: send POST /forget to each instance, or write to the erasure topic"
    )]
    InChangelog,
    #[error(
        "the brokers do not take the changes of the changelog now: entries about these people are still in it (ask again)"
    )]
    NotWritten,
    #[error(transparent)]
    State(#[from] StateError),
}

impl ErasureError {
    /// Whether another request would help.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::State(_) | Self::NotWritten)
    }
}

/// Answer to an erasure. Its figures are about the named people, and are only for the client that named them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Number of different people.
    pub subjects: u64,
    /// Nothing was erased: the numbers say what would be.
    pub dry_run: bool,
    /// Entries removed.
    pub removed: Removed,
    /// Held records of which no fragment had been released: they count as dropped.
    pub dropped_records: u64,
    /// Consequences for later releases.
    pub follows: Vec<String>,
    /// What the state keeps, and why.
    pub kept: Vec<String>,
    /// What an erasure does not reach.
    pub not_recalled: Vec<String>,
}

const FOLLOWS: [&str; 2] = [
    "every batch has its own crowds: later releases go on as they were",
    "records of the same person that come later are new: stop them at their source",
];
const KEPT: [&str; 2] = [
    "totals of records, and counts of how values were distributed when the plan in force was made: sums over all people, replaced with the next plan",
    "copies in the memory of a running process that still seeks a plan, until it is found: seconds",
];
const NOT_RECALLED: [&str; 4] = [
    "what was released, and copies of it: it holds no names, and each line stands in a crowd",
    "records of the source topic or file, and profiles at their source: erase them there (first, or they come again)",
    "copies of the state directory: backups, snapshots of its disk, blocks that the disk has not yet written over; all sealed with the secret",
    "lineage files and logs of the custodian",
];

impl Order {
    /// Digests named people.
    ///
    /// # Errors
    /// When nobody or too many are named, or a text is no value of the subject attribute.
    pub fn new(
        named: &NamedSubjects,
        by: &'static str,
        subjects: Option<&Subjects>,
        schema: &Schema,
    ) -> Result<Self, ErasureError> {
        let (Some(subjects), Some(attribute)) = (subjects, schema.subject) else { return Err(ErasureError::NoSubject) };
        match named.subjects.len() {
            0 => return Err(ErasureError::Nobody),
            1..=MAX_SUBJECTS => {}
            many => return Err(ErasureError::TooMany(many)),
        }
        let kind = schema.attributes[attribute].kind().name();
        let digest = |(place, text): (usize, &String)| match subjects.digest_once(Token::Untyped(text)) {
            Ok(digest) if digest != NO_SUBJECT => Ok(digest),
            Ok(_) | Err(_) => Err(ErasureError::NotASubject { place: place + 1, kind }),
        };
        let people = named.subjects.iter().enumerate().map(digest).collect::<Result<_, _>>()?;
        Ok(Self { people, dry_run: named.dry_run, by, position: None })
    }
}

/// What an erasure needs to know of a configuration.
pub struct Context<'a> {
    /// The record schema.
    pub schema: &'a Schema,
    /// The groups of releases.
    pub shapes: &'a [GroupShape],
    /// Keyed digest of names.
    pub digest: &'a dyn Fn(&str) -> u128,
    /// Maximum number of records in the window.
    pub window_records: u64,
    /// Receives the event.
    pub telemetry: &'a Telemetry,
    /// What was removed from the changelog.
    pub elsewhere: Elsewhere,
}

/// Entries that were removed from what the changelog keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elsewhere {
    /// Their number.
    pub removed: Removed,
    /// Waiting records among them that count as dropped, with the batch that has removed them.
    pub dropped: u64,
}

/// Keys under which people are known.
#[must_use]
pub fn erased_keys(
    schema: &Schema,
    shapes: &[GroupShape],
    digest: &dyn Fn(&str) -> u128,
    people: &BTreeSet<u64>,
) -> ErasedKeys {
    let names: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
    let groups: Vec<_> = shapes.iter().map(GroupShape::without_ladder).collect();
    let turns: Vec<u128> = groups.iter().map(|group| turn_name(group, &names, digest)).collect();
    let bases: Vec<u128> = groups.iter().map(|group| class_base(group, &names, digest)).collect();
    ErasedKeys::new(people.clone(), &turns, &bases)
}

/// Rewrites the state without the people of `order`, or counts what would be removed. What only the memory knows must have been flushed,
/// and a batch that was about to leave must be decided: it is given up. A running engine must read its memory
/// [back](Store::load) where the [database](Store::database) has changed.
///
/// # Errors
/// When the state fails: it is the one before, unless the database has changed.
pub fn erase(store: &mut Store, context: &Context<'_>, order: &Order) -> Result<Receipt, StateError> {
    let start = Instant::now();
    let keys = erased_keys(context.schema, context.shapes, context.digest, &order.people);
    let mut eraser = Eraser::new(store, keys, context.window_records, order.position.as_ref())?;
    eraser.removed = context.elsewhere.removed;
    if order.dry_run {
        eraser.count(store)?;
    } else if order.people.is_empty() {
        order.position.iter().try_for_each(|position| store.note_erasure_position(position))?;
    } else {
        store.rewrite(&mut eraser)?;
        let (people, seconds) = (order.people.len() as u64, start.elapsed().as_secs_f64());
        let counted = context.elsewhere.dropped;
        SubjectsErased { people, by: order.by, dropped: eraser.dropped + counted, counted, seconds }
            .emit(context.telemetry);
    }
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Ok(Receipt {
        subjects: order.people.len() as u64,
        dry_run: order.dry_run,
        removed: eraser.removed,
        dropped_records: eraser.dropped + context.elsewhere.dropped,
        follows: texts(&FOLLOWS),
        kept: texts(&KEPT),
        not_recalled: texts(&NOT_RECALLED),
    })
}

/// Erases people from the state of a stopped daemon. Nothing is erased while a batch may have been released or not: only a start of the
/// daemon finds that out.
///
/// # Errors
/// [`ErasureError`]; [`StateError::Locked`] where a daemon has the state.
pub fn erase_at_rest(checked: &Checked, named: &NamedSubjects) -> Result<Receipt, ErasureError> {
    let Checked { config, schema, shapes, .. } = checked;
    let (mut store, keys, recovered) = open_at_rest(checked)?;
    // Asked now: where a daemon has the directory, that one is asked.
    if config.source.kind == SourceKind::Kafka && !named.dry_run {
        return Err(ErasureError::InChangelog);
    }
    let subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &DigestKey(keys.subjects)));
    let order = Order::new(named, "command", subjects.as_ref(), schema)?;
    if recovered.intent.is_some() {
        return Err(StateError::Unsettled(config.state.path.clone()).into());
    }
    let names = NameDigest::new(&DigestKey(keys.classes));
    let (digest, telemetry) = (|name: &str| names.digest(name), checked.telemetry());
    let window_records = config.plan.window_records as u64;
    let elsewhere = Elsewhere::default();
    let context = Context { schema, shapes, digest: &digest, window_records, telemetry: &telemetry, elsewhere };
    Ok(erase(&mut store, &context, &order)?)
}
