//! Closed label sets.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize, Serializer};
use throng_kafka::refusal::SecurityRefusal;

/// Label with values known at compile time.
pub trait Label: Copy + Eq + 'static {
    /// All values, in the order of [`index`](Self::index).
    const ALL: &'static [Self];
    /// Returns the value in metrics, logs and headers.
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
        /// Export of Apple's Health app.
        AppleHealth = "apple_health",
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
        /// Records are read.
        Taken = "taken",
        /// Records are read without fields that have no attribute.
        TakenInPart = "taken_in_part",
        /// A field of an attribute is missing.
        MissingField = "missing_field",
        /// A field has another type than its attribute.
        WrongType = "wrong_type",
        /// Unusable, or another format.
        Unusable = "unusable",
        /// Missing in the registry.
        Unknown = "unknown",
        /// Not queried: the lookup time is used up.
        NotAsked = "not_asked",
    }
}

labels! {
    /// Stage of a batch.
    Stage {
        /// Waiting for records.
        Read = "read",
        /// From bytes to cells.
        Decode = "decode",
        /// From cells to codes.
        Encode = "encode",
        /// From codes to a proposal.
        Treat = "treat",
        /// Recount of the verifier.
        Verify = "verify",
        /// From the intent to the commit.
        Commit = "commit",
        /// Model and planner.
        Learn = "learn",
    }
}

labels! {
    /// Part of the process memory.
    MemoryPart {
        /// Code, threads, broker clients and pages.
        Program = "program",
        /// Cache of the state's database.
        Cache = "cache",
        /// Batches, prefetched records and lines in flight.
        Queues = "queues",
        /// Release log and delayed lines.
        Ledger = "ledger",
        /// Window, planner's sample and model.
        Window = "window",
        /// Profiles of joins.
        Profiles = "profiles",
        /// Values with a code, including copies for searches.
        Dictionaries = "dictionaries",
        /// Temporary and allocator memory.
        Reserve = "reserve",
    }
}

labels! {
    /// Attributes of a quasi-identifier.
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
    /// Reason for a record without any release: a decision of the policy.
    SuppressionReason {
        /// No generalization had enough subjects.
        NoSupport = "no_support",
        /// Too few subjects in the batch until `batch.max_age`.
        Quiet = "quiet",
        /// Fragments would have been joinable by counting.
        Guard = "guard",
        /// Withheld when the daemon stopped.
        Shutdown = "shutdown",
        /// Withheld for `privacy.max_hold_batches` batches without success.
        HeldOut = "held_out",
        /// Over the lines per subject in every group, or the subject's share of the batch.
        Thinned = "thinned",
        /// Withheld when the stream ended.
        EndOfStream = "end_of_stream",
        /// Only measured: the sink is `none`, or `release.fragments` is false.
        Monitoring = "monitoring",
    }
}

labels! {
    /// Reason for an aborted batch.
    AbortReason {
        /// Required by the broker.
        Transaction = "transaction",
    }
}

labels! {
    /// Outcome of a configuration reload.
    ReloadOutcome {
        /// Active from the next batch on.
        Replaced = "replaced",
        /// Equal to the active one.
        Unchanged = "unchanged",
        /// Wrong, failed in tests, or needs a restart; the old one stays active.
        Refused = "refused",
    }
}

labels! {
    /// Direction of a copy between host and GPU.
    Copied {
        Up = "up",
        Down = "down",
    }
}

labels! {
    /// Reached limit.
    Limit {
        /// Tenure and budgets register no further subject.
        Supporters = "supporters",
        /// A dictionary accepts no further values: they count as the root.
        DictionaryValues = "dictionary_values",
        /// The dictionaries' share of `process.memory_limit` is used up.
        Memory = "memory",
        /// The model counts fewer attribute pairs.
        ModelEdges = "model_edges",
        /// Further delayed lines are thinned.
        WaitingLines = "waiting_lines",
        /// The release log is full: further lines are thinned.
        SaidLines = "said_lines",
        /// A join is full: cells of further subjects are missing.
        Profiles = "profiles",
    }
}

labels! {
    /// Outcome of a record in the conservation law.
    Outcome {
        Consumed = "consumed",
        Released = "released",
        Suppressed = "suppressed",
        DeadLettered = "dead_lettered",
        Dropped = "dropped",
        /// Waits in the changelog of a revoked partition or an ended process.
        Moved = "moved",
    }
}

labels! { BatchOutcome { Committed = "committed", Aborted = "aborted", } }
labels! { Direction { In = "in", Out = "out", } }
labels! { Picture { Before = "before", After = "after", } }
labels! { CrowdSize { Smallest = "smallest", Average = "average", } }
labels! { Statistic { Highest = "highest", Average = "average", } }
labels! { PartitionChange { Assigned = "assigned", Revoked = "revoked", Lost = "lost", } }

/// Count per label value.
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
    /// Adds `n` to `label`.
    pub fn add(&mut self, label: L, n: u64) {
        self.counts[label.index()] += n;
    }

    /// Returns one count.
    pub fn get(&self, label: L) -> u64 {
        self.counts[label.index()]
    }

    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns every label with its count.
    pub fn iter(&self) -> impl Iterator<Item = (L, u64)> + '_ {
        L::ALL.iter().map(|label| (*label, self.get(*label)))
    }

    /// Adds all counts.
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
