//! Erasure of subjects from the state (docs/operation.md) by [`forget_page`], [`erasure_topic_reader`] or
//! [`erase_stopped_state`].

pub mod erasure_topic_reader;
pub mod forget_page;
mod subject_eraser;

use super::engine::build::assemble::open_state;
use super::requests::{PendingRequest, RequestSender};
use super::state::directory::StateError;
use super::state::store::StateStore;
use super::state::store::state_binding::TopicPosition;
use crate::config::SourceKind;
use crate::start::checked_config::CheckedConfig;
use crate::telemetry::{SubjectsErased, Telemetry};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
pub use subject_eraser::RemovedEntries;
use subject_eraser::SubjectEraser;
use throng_core::ledger::erased_keys::ErasedKeys;
use throng_core::plan::GroupShape;
use throng_core::treatment::group_digests::{class_key_base, group_identity};
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::{NO_SUBJECT, SubjectDigester};

/// Maximum number of subjects per request.
pub const MAX_SUBJECTS: usize = 10_000;

/// Subjects to erase, as named in their records.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSubjects {
    /// Values of the subject attribute, as in a CSV field.
    pub subjects: Vec<String>,
    /// Count the entries only.
    #[serde(default)]
    pub dry_run: bool,
}

/// Subjects to erase, by keyed digest.
#[derive(Clone)]
pub struct ErasureOrder {
    /// Digests; empty if only the position has changed.
    pub subject_digests: BTreeSet<u64>,
    /// Count the entries only.
    pub dry_run: bool,
    /// Origin for the log: `command`, `page` or `topic`.
    pub by: &'static str,
    /// Position in the topic, durable with the erasure.
    pub position: Option<TopicPosition>,
}

/// Request to a running daemon.
pub enum ErasureRequest {
    /// From the HTTP page.
    Named(NamedSubjects),
    /// From the erasure topic.
    Digests(ErasureOrder),
}

/// Outcome of a request.
pub type ErasureAnswer = Result<ErasureReceipt, ErasureError>;
/// Receiver of requests between batches.
pub type ErasureReceiver = crossbeam_channel::Receiver<PendingRequest<ErasureRequest, ErasureAnswer>>;
/// Sender of requests to the loop over batches.
pub type ErasureSender = RequestSender<ErasureRequest, ErasureAnswer>;

/// Cause of a failed erasure, without subjects.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    #[error("no subject is named (name subjects as the records do)")]
    EmptyRequest,
    #[error("{0} subjects are named, but a request may name at most {MAX_SUBJECTS} (split the request)")]
    TooMany(usize),
    #[error("the schema has no subject attribute, so the records of a person cannot be found")]
    NoSubject,
    #[error("subject number {place} is not a value of the subject attribute, which has type {kind} (correct it)")]
    InvalidSubject { place: usize, kind: &'static str },
    #[error(
        "this run keeps no state, or writes it only at its end: there is nothing to erase yet (repeat the request after the run)"
    )]
    NoState,
    #[error(
        "the entries about people are in the changelog of the group, which only a running daemon can change (send POST /forget to each instance, or write to the erasure topic)"
    )]
    InChangelog,
    #[error(
        "the brokers do not accept changes of the changelog: it still has entries about these people (retry later)"
    )]
    ChangelogRejected,
    #[error(transparent)]
    State(#[from] StateError),
}

impl ErasureError {
    /// Returns true if a retry requires a changed request.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::State(_) | Self::ChangelogRejected)
    }
}

/// Answer for the client that named the subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureReceipt {
    /// Number of distinct subjects.
    pub subjects: u64,
    /// True for a dry run.
    pub dry_run: bool,
    /// Entries removed.
    pub removed: RemovedEntries,
    /// Dropped held records: without a released fragment.
    pub dropped_records: u64,
    /// Consequences for later releases.
    pub follows: Vec<String>,
    /// Data kept by the state, with reasons.
    pub kept: Vec<String>,
    /// Data out of reach of an erasure.
    pub not_recalled: Vec<String>,
}

const ERASURE_CONSEQUENCES: [&str; 2] = [
    "classes are formed within each batch: later releases are not affected",
    "later records of the same person are processed as new: stop them at their source",
];
const RETAINED_DATA: [&str; 2] = [
    "totals of records, and the distribution of values for which the active plan was made: sums over all people, replaced with the next plan",
    "copies in the memory of a running search for a plan, until it ends (seconds)",
];
const UNREACHABLE_DATA: [&str; 4] = [
    "released lines, and copies of them: they contain no names, and each belongs to a class of several people",
    "records of the source topic or file, and profiles at their source: erase them there first, otherwise they are processed again",
    "copies of the state directory: backups, disk snapshots, blocks that are not yet overwritten; all encrypted with the secret",
    "lineage files and logs of the custodian",
];

impl ErasureOrder {
    /// Digests the named subjects.
    ///
    /// # Errors
    /// If none or too many are named, or one is invalid.
    pub fn new(
        named: &NamedSubjects,
        by: &'static str,
        subjects: Option<&SubjectDigester>,
        schema: &Schema,
    ) -> Result<Self, ErasureError> {
        let (Some(subjects), Some(attribute)) = (subjects, schema.subject) else { return Err(ErasureError::NoSubject) };
        match named.subjects.len() {
            0 => return Err(ErasureError::EmptyRequest),
            1..=MAX_SUBJECTS => {}
            many => return Err(ErasureError::TooMany(many)),
        }
        let kind = schema.attributes[attribute].kind().name();
        let digest = |(place, text): (usize, &String)| match subjects.digest_uncached(RawToken::Untyped(text)) {
            Ok(digest) if digest != NO_SUBJECT => Ok(digest),
            Ok(_) | Err(_) => Err(ErasureError::InvalidSubject { place: place + 1, kind }),
        };
        let people = named.subjects.iter().enumerate().map(digest).collect::<Result<_, _>>()?;
        Ok(Self { subject_digests: people, dry_run: named.dry_run, by, position: None })
    }
}

/// Configuration needed by an erasure.
pub struct ErasureContext<'a> {
    /// Record schema.
    pub schema: &'a Schema,
    /// Attribute groups of the releases.
    pub shapes: &'a [GroupShape],
    /// Keyed digest of names.
    pub digest: &'a dyn Fn(&str) -> u128,
    /// Maximum number of records in the window.
    pub window_records: u64,
    /// Receiver of the event.
    pub telemetry: &'a Telemetry,
    /// Entries removed from the changelog.
    pub changelog_removals: ChangelogRemovals,
}

/// Entries removed from the changelog.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangelogRemovals {
    /// Number of removed entries.
    pub removed: RemovedEntries,
    /// Removed waiting records that were already counted as dropped.
    pub dropped: u64,
}

/// Returns the keys under which the subjects are stored.
#[must_use]
pub fn erased_keys(
    schema: &Schema,
    shapes: &[GroupShape],
    digest: &dyn Fn(&str) -> u128,
    people: &BTreeSet<u64>,
) -> ErasedKeys {
    let names: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
    let groups: Vec<_> = shapes.iter().map(GroupShape::without_ladder).collect();
    let turns: Vec<u128> = groups.iter().map(|group| group_identity(group, &names, digest)).collect();
    let bases: Vec<u128> = groups.iter().map(|group| class_key_base(group, &names, digest)).collect();
    ErasedKeys::new(people.clone(), &turns, &bases)
}

/// Rewrites the state without the subjects, or counts their entries. The caller must first flush, and decide any
/// intended batch. If [`database`](StateStore::database) has changed, an engine must [reload](StateStore::load).
///
/// # Errors
/// The previous state then stays in force, unless the database has changed.
pub fn erase(
    store: &mut StateStore,
    context: &ErasureContext<'_>,
    order: &ErasureOrder,
) -> Result<ErasureReceipt, StateError> {
    let start = Instant::now();
    let keys = erased_keys(context.schema, context.shapes, context.digest, &order.subject_digests);
    let mut eraser = SubjectEraser::new(store, keys, context.window_records, order.position.as_ref())?;
    eraser.removed = context.changelog_removals.removed;
    if order.dry_run {
        eraser.count(store)?;
    } else if order.subject_digests.is_empty() {
        order.position.iter().try_for_each(|position| store.write_erasure_position(position))?;
    } else {
        store.rewrite(&mut eraser)?;
        let (people, seconds) = (order.subject_digests.len() as u64, start.elapsed().as_secs_f64());
        let counted = context.changelog_removals.dropped;
        SubjectsErased { people, by: order.by, dropped: eraser.dropped + counted, counted, seconds }
            .emit(context.telemetry);
    }
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Ok(ErasureReceipt {
        subjects: order.subject_digests.len() as u64,
        dry_run: order.dry_run,
        removed: eraser.removed,
        dropped_records: eraser.dropped + context.changelog_removals.dropped,
        follows: texts(&ERASURE_CONSEQUENCES),
        kept: texts(&RETAINED_DATA),
        not_recalled: texts(&UNREACHABLE_DATA),
    })
}

/// Erases subjects from the state of a stopped daemon; refused while the last batch is undecided.
///
/// # Errors
/// [`ErasureError`]; [`StateError::Locked`] if a daemon runs.
pub fn erase_stopped_state(checked: &CheckedConfig, named: &NamedSubjects) -> Result<ErasureReceipt, ErasureError> {
    let CheckedConfig { config, schema, shapes, .. } = checked;
    let (mut store, keys, recovered) = open_state(checked)?;
    // After `open_state`, which reports `Locked`.
    if config.source.kind == SourceKind::Kafka && !named.dry_run {
        return Err(ErasureError::InChangelog);
    }
    let subjects =
        schema.subject.map(|a| SubjectDigester::new(Arc::clone(&schema.attributes[a]), &DigestKey(keys.subjects)));
    let order = ErasureOrder::new(named, "command", subjects.as_ref(), schema)?;
    if recovered.intent.is_some() {
        return Err(StateError::UndecidedBatch(config.state.path.clone()).into());
    }
    let names = NameDigest::new(&DigestKey(keys.classes));
    let (digest, telemetry) = (|name: &str| names.digest(name), checked.telemetry());
    let window_records = config.plan.window_records as u64;
    let elsewhere = ChangelogRemovals::default();
    let context = ErasureContext {
        schema,
        shapes,
        digest: &digest,
        window_records,
        telemetry: &telemetry,
        changelog_removals: elsewhere,
    };
    Ok(erase(&mut store, &context, &order)?)
}
