//! What a certificate says: an in-toto statement (version 1) with a predicate of our own.
//!
//! Every figure is one that the pages show at once and exactly (decision 0025), or is capped at what was asked for: what lies above it is one crowd's own
//! size. There is no field that a value of a record could stand in.

use super::output::Framing;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The type of the statement.
pub const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The type of the predicate, with its version.
pub const PREDICATE: &str = "urn:throng:release-certificate:v1";
/// What a verification that lets a batch leave says.
pub const PASSED: &str = "passed";

/// A certificate's statement. Fields are written in this order; an unknown one is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`STATEMENT`].
    #[serde(rename = "_type")]
    pub kind: String,
    /// What the batch wrote, an output each, in the order in which they were written.
    pub subject: Vec<Subject>,
    /// [`PREDICATE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// What is said of it.
    pub predicate: Predicate,
}

/// An output of a batch, by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The name of the group, or `joined`.
    pub name: String,
    /// Of its lines of this batch, in their order.
    pub digest: Sha256Hex,
}

/// A digest under the name of its algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sha256Hex {
    /// Lower-case hex.
    pub sha256: String,
}

/// What is said of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// Its place among all certificates of the instance.
    pub chain: Chain,
    /// Stamp of the batch, milliseconds since 1970, never falling.
    pub clock_ms: i64,
    /// What made it.
    pub program: Program,
    /// Of the configuration in force, the schema and its hierarchies, without secrets, addresses and paths.
    pub policy: Sha256Hex,
    /// What was consumed; nothing where the batch only settled what was held.
    pub input: Vec<Range>,
    /// What became of the records.
    pub counts: Counts,
    /// More of each subject, in the same order.
    pub outputs: Vec<Output>,
    /// The crowds of what has left.
    pub crowds: Crowds,
    /// Its risk.
    pub risk: Risk,
    /// What the recount before the release said.
    pub verification: Verification,
    /// How what has left may be untrue; absent where all of it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untruthful: Option<String>,
}

/// A place in a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The identity of the state that released the batch (a UUID); each has a chain of its own.
    pub instance: String,
    /// From 1, without a gap.
    pub number: u64,
    /// The number of the batch; one that rises by more than 1 says that the batches between have no certificate.
    pub sequence: u64,
    /// SHA-256 of the statement before it, in lower-case hex; null where the chain begins.
    pub previous: Option<String>,
}

/// What made a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// `throng`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
}

/// Offsets of a partition: `from` inclusive, `to` exclusive. Of a file the numbers of its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The topic; absent for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// 0 for a file.
    pub partition: i32,
    /// The first offset.
    pub from: i64,
    /// The offset behind the last one.
    pub to: i64,
}

/// Records by what became of them: `held` before + consumed = released + suppressed + dead-lettered + dropped + `held`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Read from the source.
    pub consumed: u64,
    /// At least one cell other than `*` left for the first time.
    pub released: u64,
    /// Nothing of them leaves, by reason; reasons without a record are left out, here and below.
    pub suppressed: BTreeMap<String, u64>,
    /// Could not be read, by reason.
    pub dead_lettered: BTreeMap<String, u64>,
    /// Tombstones.
    pub dropped: u64,
    /// Held after the batch, of all batches.
    pub held: u64,
}

impl Counts {
    /// Records that have gone with the batch; none where that is no number of 64 bits.
    #[must_use]
    pub fn gone(&self) -> Option<u64> {
        let lost = self.suppressed.values().chain(self.dead_lettered.values());
        lost.chain([&self.released, &self.dropped]).try_fold(0_u64, |sum, n| sum.checked_add(*n))
    }
}

/// More of a subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The name of the subject.
    pub name: String,
    /// The topic; absent for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Lines of the batch.
    pub lines: u64,
    /// Their bytes, without line breaks.
    pub bytes: u64,
    /// Lines of the output before them, headers not counted; absent for a topic, and where nobody has counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// How the lines are framed in the digest.
    pub framing: Framing,
}

/// The fewest distinct subjects of a class that has left; 0 where nothing left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowds {
    /// `privacy.k` and the colluders together: what a class is asked for inside the support window.
    pub asked: u64,
    /// What it is asked for inside its batch; 0: nothing.
    pub asked_in_batch: u64,
    /// Inside the support window, capped at `asked`.
    pub smallest: u64,
    /// Inside the batch.
    pub smallest_in_batch: u64,
}

/// Prosecutor's risk of the lines: 1 / subjects of the class inside the support window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// Of any line at most, 0 to 1; not told below 1 / `privacy.k`.
    pub highest: f64,
    /// Lines whose class has fewer than `privacy.k`.
    pub lines_below_k: u64,
}

/// What the recount of the encoded lines said before they left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// [`PASSED`]: no other batch leaves.
    pub result: String,
    /// Lines that it has counted.
    pub lines: u64,
}
