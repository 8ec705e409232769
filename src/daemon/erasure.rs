//! Erasure of people, as it is asked for and as it is answered (docs/erasure.md).

use crate::anonymity::planner::GroupShape;
use crate::anonymity::treatment::names::{class_base, turn_name};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::store::StateErased;
use crate::ledger::erasure::Erased;
use crate::records::raw::Token;
use crate::records::schema::Schema;
use crate::records::subject::{NO_SUBJECT, Subjects};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// People named at once, at most.
pub const MOST_SUBJECTS: usize = 10_000;

/// Who is to be erased.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// As the records name them, spelled as a field of CSV would be.
    pub subjects: Vec<String>,
    /// Only count what would go.
    #[serde(default)]
    pub dry_run: bool,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Asked({} subjects)", self.subjects.len())
    }
}

/// Why nobody was erased. No variant holds a subject.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    #[error("nobody is named: name a subject as the records name it")]
    Nobody,
    #[error("{0} subjects are named, at most {MOST_SUBJECTS} are taken at once: divide them")]
    TooMany(usize),
    #[error("the schema names no subject, so no record is known to be anybody's: nobody can be found")]
    NoSubject,
    #[error("subject number {place} is no value of the subject attribute, which is of type {kind}: correct it")]
    NotASubject { place: usize, kind: &'static str },
    #[error("this run keeps no state, or keeps it at its end: nobody can be taken out of it (ask when it has ended)")]
    NoState,
    #[error(transparent)]
    State(#[from] StateError),
}

impl ErasureError {
    /// Whether asking otherwise would help.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::State(_))
    }
}

/// What was taken out, or would be, in entries of each store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Rows of the window, from which the model is counted.
    pub window_rows: u64,
    /// Rows of the planner's sample.
    pub sample_rows: u64,
    /// Records and lines that waited.
    pub held_rows: u64,
    /// What tenure and budgets knew of people.
    pub supporters: u64,
    /// Lines that are said once a window.
    pub said_lines: u64,
    /// Profiles that joins had kept.
    pub profiles: u64,
    /// Counts of values that classes are compared with, each lower by one person.
    pub reference_counts: u64,
}

/// The answer to an erasure. Its figures are about the people who were named, and are for whoever may name them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Different people who were named.
    pub subjects: u64,
    /// Nothing was erased: this is what would go.
    pub dry_run: bool,
    /// What was taken out.
    pub removed: Removed,
    /// Of what waited, records of which nothing had left: they count as dropped.
    pub dropped_records: u64,
    /// What follows for later releases.
    pub follows: Vec<String>,
    /// What stays, and why.
    pub kept: Vec<String>,
    /// What nobody can recall.
    pub not_recalled: Vec<String>,
}

impl Receipt {
    /// The receipt of an erasure that took out `erased`.
    #[must_use]
    pub fn new(subjects: usize, dry_run: bool, erased: &StateErased) -> Self {
        let StateErased { ledger, .. } = erased;
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            subjects: subjects as u64,
            dry_run,
            removed: Removed {
                window_rows: erased.window,
                sample_rows: erased.sample,
                held_rows: erased.held,
                supporters: ledger.supporters,
                said_lines: ledger.said,
                profiles: erased.profiles,
                reference_counts: erased.references,
            },
            dropped_records: erased.dropped,
            follows: texts(&FOLLOWS),
            kept: texts(&KEPT),
            not_recalled: texts(&NOT_RECALLED),
        }
    }
}

/// What follows for later releases.
const FOLLOWS: [&str; 2] = [
    "every batch has its own crowds: later releases go on as they were",
    "records of the same person that come later are new: stop them at their source",
];

/// What stays in a state after an erasure.
const KEPT: [&str; 2] = [
    "totals of records, and counts of how values were distributed when the plan in force was made: sums over all people, replaced with the next plan",
    "copies in the memory of a running process that still seeks a plan, until it is found: seconds",
];

/// What an erasure does not reach.
const NOT_RECALLED: [&str; 4] = [
    "what was released, and copies of it: it holds no names, and each line stands in a crowd",
    "records of the source topic or file, and profiles at their source: erase them there (first, or they come again)",
    "copies of the state directory: backups, snapshots of its disk, blocks that the disk has not yet written over; all sealed with the secret",
    "lineage files and logs of the custodian",
];

/// The digests of everybody who is named.
///
/// # Errors
/// When nobody or too many are named, or a text is no value of the subject attribute.
pub fn digests(asked: &Asked, subjects: Option<&Subjects>, schema: &Schema) -> Result<BTreeSet<u64>, ErasureError> {
    let (Some(subjects), Some(attribute)) = (subjects, schema.subject) else { return Err(ErasureError::NoSubject) };
    match asked.subjects.len() {
        0 => return Err(ErasureError::Nobody),
        1..=MOST_SUBJECTS => {}
        many => return Err(ErasureError::TooMany(many)),
    }
    let kind = schema.attributes[attribute].kind().name();
    let digest = |(place, text): (usize, &String)| match subjects.digest_once(Token::Untyped(text)) {
        Ok(digest) if digest != NO_SUBJECT => Ok(digest),
        Ok(_) | Err(_) => Err(ErasureError::NotASubject { place: place + 1, kind }),
    };
    asked.subjects.iter().enumerate().map(digest).collect()
}

/// Who is erased, from the groups in which a state releases; `digest` digests names.
#[must_use]
pub fn erased(people: BTreeSet<u64>, shapes: &[GroupShape], schema: &Schema, digest: impl Fn(&str) -> u128) -> Erased {
    let names: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
    let groups: Vec<_> = shapes.iter().map(GroupShape::without_ladder).collect();
    let turns: Vec<u128> = groups.iter().map(|group| turn_name(group, &names, &digest)).collect();
    let bases: Vec<u128> = groups.iter().map(|group| class_base(group, &names, &digest)).collect();
    Erased::new(people, &turns, &bases)
}
