//! Closed label sets: every possible label value is a variant.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize, Serializer};
use throng_kafka::refusal::SecurityRefusal;

/// Label with values known at compile time.
pub trait Label: Copy + Eq + 'static {
    /// All values, in the order of [`index`](Self::index).
    const ALL: &'static [Self];
    /// Returns the label's value in metrics, logs and headers.
    fn as_str(self) -> &'static str;
    /// Returns the position in [`ALL`](Self::ALL).
    fn index(self) -> usize;
}

macro_rules! labels {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$what])* #[serde(rename = $text)] $variant,)+ }

        impl Label for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];
            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
            fn index(self) -> usize {
                self as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

labels! {
    /// Encoding of records.
    WrittenAs {
        /// JSON.
        Json = "json",
        /// Separated values.
        Csv = "csv",
        /// Apache Parquet.
        Parquet = "parquet",
        /// Avro.
        Avro = "avro",
        /// Protobuf.
        Protobuf = "protobuf",
    }
}

impl Label for SecurityRefusal {
    const ALL: &'static [Self] =
        &[Self::Protocol, Self::BrokerCertificate, Self::OurCertificate, Self::Authentication, Self::NoToken];

    fn as_str(self) -> &'static str {
        self.name()
    }

    fn index(self) -> usize {
        self as usize
    }
}

labels! {
    /// Outcome of a writer schema.
    SchemaOutcome {
        /// Its records are read.
        Taken = "taken",
        /// Its records are read; fields without an attribute are dropped.
        TakenInPart = "taken_in_part",
        /// A field of an attribute is missing.
        MissingField = "missing_field",
        /// A field has another type than its attribute.
        WrongType = "wrong_type",
        /// It cannot be used, or has another format.
        Unusable = "unusable",
        /// The registry does not contain it.
        Unknown = "unknown",
        /// The registry was not queried for a record, because the time for lookups is used up.
        NotAsked = "not_asked",
    }
}

labels! {
    /// Processing stage of a batch.
    Stage {
        /// Waiting for records.
        Read = "read",
        /// From bytes to cells.
        Decode = "decode",
        /// From cells to codes.
        Encode = "encode",
        /// From codes to a proposal.
        Treat = "treat",
        /// The recount of the verifier.
        Verify = "verify",
        /// From the intent to the commit.
        Commit = "commit",
        /// Time of the model and the planner.
        Learn = "learn",
    }
}

labels! {
    /// Part of the memory of the process.
    MemoryPart {
        /// Code, threads, and the memory of broker clients and pages.
        Program = "program",
        /// The cache of the state's database.
        Cache = "cache",
        /// Current batches, prefetched records and lines in flight.
        Queues = "queues",
        /// The release log and the delayed lines.
        Ledger = "ledger",
        /// The window, the planner's sample and the model.
        Window = "window",
        /// Profiles of joins.
        Profiles = "profiles",
        /// The values with a code, including the copies for searches.
        Dictionaries = "dictionaries",
        /// Temporary memory of a batch and a search, and memory retained by the allocator.
        Reserve = "reserve",
    }
}

labels! {
    /// Number of attributes of a quasi-identifier.
    QidSize {
        /// One.
        One = "1",
        /// Two.
        Two = "2",
        /// Three.
        Three = "3",
        /// Four.
        Four = "4",
        /// Five.
        Five = "5",
        /// Six.
        Six = "6",
        /// Seven and more.
        More = "more",
    }
}

labels! {
    /// Reason for a record without any release. Each is a decision of the policy, not an error.
    SuppressionReason {
        /// No generalization gave its class enough subjects.
        NoSupport = "no_support",
        /// Its batch had too few subjects until `batch.max_age`.
        Quiet = "quiet",
        /// Its release would have made fragments joinable by counting.
        Guard = "guard",
        /// It was withheld when the daemon stopped.
        Shutdown = "shutdown",
        /// It was withheld for `privacy.max_hold_batches` batches without success.
        HeldOut = "held_out",
        /// It exceeded the limit of lines per subject in every group, or its subject had filled its share of the
        /// batch.
        Thinned = "thinned",
        /// It was withheld when the stream ended.
        EndOfStream = "end_of_stream",
        /// The sink is `none`, or `release.fragments` is false: risk is measured, and no record is released.
        Monitoring = "monitoring",
    }
}

labels! {
    /// Reason for an aborted batch.
    AbortReason {
        /// The broker required the abort.
        Transaction = "transaction",
    }
}

labels! {
    /// Outcome of a configuration reload.
    ReloadOutcome {
        /// The new configuration is active from the next batch on.
        Replaced = "replaced",
        /// The new configuration equals the active one.
        Unchanged = "unchanged",
        /// The new configuration is wrong, its tests fail, or it needs a restart; the old one stays active.
        Refused = "refused",
    }
}

labels! {
    /// Direction of a copy between this machine and its GPU.
    Copied {
        Up = "up",
        Down = "down",
    }
}

labels! {
    /// Documented limit that was reached.
    Limit {
        /// Tenure and budgets register no further subject, so new subjects do not count for others.
        Supporters = "supporters",
        /// A dictionary accepts no further values: they count as the root.
        DictionaryValues = "dictionary_values",
        /// The dictionaries' share of `process.memory_limit` is used up.
        Memory = "memory",
        /// The model counts fewer pairs of attributes.
        ModelEdges = "model_edges",
        /// No further line may wait for its delay: it is thinned.
        WaitingLines = "waiting_lines",
        /// The release log accepts no further pairs of subject and group: their lines are thinned.
        SaidLines = "said_lines",
        /// A join stores no further profiles: the cells of further subjects are missing.
        Profiles = "profiles",
    }
}

labels! {
    /// Outcome of a record: the terms of the conservation law.
    Outcome {
        Consumed = "consumed",
        Released = "released",
        Suppressed = "suppressed",
        DeadLettered = "dead_lettered",
        Dropped = "dropped",
        /// It waits in the changelog: its partition was revoked, or the process has ended.
        Moved = "moved",
    }
}

labels! { BatchOutcome { Committed = "committed", Aborted = "aborted", } }
labels! { Direction { In = "in", Out = "out", } }
labels! { Picture { Before = "before", After = "after", } }
labels! { CrowdSize { Smallest = "smallest", Average = "average", } }
labels! { Statistic { Highest = "highest", Average = "average", } }
labels! { PartitionChange { Assigned = "assigned", Revoked = "revoked", Lost = "lost", } }

/// Count for every value of a label.
#[derive(Clone, PartialEq, Eq)]
pub struct CountsByLabel<L> {
    counts: Vec<u64>,
    label: PhantomData<L>,
}

impl<L: Label> Default for CountsByLabel<L> {
    fn default() -> Self {
        Self { counts: vec![0; L::ALL.len()], label: PhantomData }
    }
}

impl<L: Label> CountsByLabel<L> {
    /// Adds `n` to the count of `label`.
    pub fn add(&mut self, label: L, n: u64) {
        self.counts[label.index()] += n;
    }

    /// Returns the count of one label.
    pub fn get(&self, label: L) -> u64 {
        self.counts[label.index()]
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns every label with its count, including zeros.
    pub fn iter(&self) -> impl Iterator<Item = (L, u64)> + '_ {
        L::ALL.iter().map(|label| (*label, self.get(*label)))
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (label, n) in other.iter() {
            self.add(label, n);
        }
    }
}

impl<L: Label> FromIterator<(L, u64)> for CountsByLabel<L> {
    fn from_iter<I: IntoIterator<Item = (L, u64)>>(from: I) -> Self {
        let mut counts = Self::default();
        for (label, n) in from {
            counts.add(label, n);
        }
        counts
    }
}

impl<L: Label> std::fmt::Debug for CountsByLabel<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|(label, n)| (label.as_str(), n))).finish()
    }
}

impl<L: Label> Serialize for CountsByLabel<L> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(label, n)| (label.as_str(), n)))
    }
}

#[cfg(test)]
mod tests {
    use super::{CountsByLabel, Label, Stage, SuppressionReason};
    use crate::telemetry::RejectionReason;

    #[test]
    fn label_indices_match_and_texts_are_distinct() {
        fn check<L: Label>() {
            let mut texts: Vec<&str> = L::ALL.iter().map(|l| l.as_str()).collect();
            assert!(L::ALL.iter().enumerate().all(|(place, label)| label.index() == place));
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), L::ALL.len());
        }
        check::<Stage>();
        check::<RejectionReason>();
        check::<SuppressionReason>();
    }

    #[test]
    fn counts_serialize_by_label() {
        let counts: CountsByLabel<RejectionReason> =
            [(RejectionReason::Empty, 2), (RejectionReason::TooDeep, 1), (RejectionReason::Empty, 1)]
                .into_iter()
                .collect();
        let text = serde_json::to_string(&counts).expect("a map");
        assert!(text.contains("\"empty\":3"), "{text}");
        assert_eq!(counts.total(), 4);
    }
}
