//! Closed label sets: every value that a label can take is a variant here.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize, Serializer};

/// A label whose values are known when the program is built.
pub trait Label: Copy + Eq + 'static {
    /// Every value, in the order of [`index`](Self::index).
    const ALL: &'static [Self];
    /// The label's value in metrics, logs and headers.
    fn as_str(self) -> &'static str;
    /// Its place in [`ALL`](Self::ALL).
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
    /// How records are written down.
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

labels! {
    /// Why a broker does not let us in, or we do not trust it.
    SecurityRefusal {
        /// The listener speaks another protocol.
        Protocol = "protocol",
        /// The broker's certificate.
        BrokerCertificate = "broker_certificate",
        /// Our certificate, or the lack of one.
        OurCertificate = "our_certificate",
        /// Mechanism, password or token.
        Authentication = "authentication",
        /// There is no token to show.
        NoToken = "no_token",
    }
}

labels! {
    /// What became of a schema under which records were written.
    SchemaOutcome {
        /// Its records are read.
        Taken = "taken",
        /// Its records are read, and fields that no attribute leads to are dropped.
        TakenInPart = "taken_in_part",
        /// It has no field of an attribute.
        MissingField = "missing_field",
        /// It has a field of another type than the attribute's.
        WrongType = "wrong_type",
        /// It cannot be used, or is of another format.
        Unusable = "unusable",
        /// The registry does not know it.
        Unknown = "unknown",
        /// The registry was not asked, for a record: lookups have taken too much time.
        NotAsked = "not_asked",
    }
}

labels! {
    /// A stage in the way of a batch.
    Stage {
        /// Waiting for records.
        Read = "read",
        /// From bytes to cells.
        Decode = "decode",
        /// From cells to codes.
        Encode = "encode",
        /// From codes to a proposal.
        Treat = "treat",
        /// The recount.
        Verify = "verify",
        /// From the intent to the commit.
        Commit = "commit",
        /// What the model and the planner take.
        Learn = "learn",
    }
}

labels! {
    /// A part of the memory of the process.
    MemoryPart {
        /// Code, threads, and what clients of brokers and pages take by themselves.
        Program = "program",
        /// The cache of the state's database.
        Cache = "cache",
        /// Batches in hand, records fetched ahead, lines on their way.
        Queues = "queues",
        /// What has left, and the lines that wait.
        Ledger = "ledger",
        /// The window, the planner's sample and the model.
        Window = "window",
        /// Profiles of joins.
        Profiles = "profiles",
        /// The values that have a code, with the copies that searches work on.
        Dictionaries = "dictionaries",
        /// What a batch and a search take while they are at work, and what the allocator holds.
        Reserve = "reserve",
    }
}

labels! {
    /// How many attributes a quasi-identifier has.
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
    /// Why nothing of a record was released. Every one is a decision of the policy, none an error.
    SuppressionReason {
        /// No generalization gave its class support.
        NoSupport = "no_support",
        /// Its batch had too few subjects until `batch.max_age`.
        Quiet = "quiet",
        /// Releasing it would have forced a joint value between fragments.
        Guard = "guard",
        /// It waited, and the daemon stopped.
        Shutdown = "shutdown",
        /// It waited for `privacy.max_hold_batches` batches in vain.
        HeldOut = "held_out",
        /// Other records of its subject stand for it: in every group it was one too many, or its subject had filled its share of the batch.
        Thinned = "thinned",
        /// The stream ended with it.
        EndOfStream = "end_of_stream",
        /// The sink is `none`, or `release.fragments` is false: risk is measured, no record leaves.
        Monitoring = "monitoring",
    }
}

labels! {
    /// Why a batch was aborted and rolled back.
    AbortReason {
        /// The broker asked for it.
        Transaction = "transaction",
    }
}

labels! {
    /// What became of a configuration that was read anew.
    ReloadOutcome {
        /// It is in force from the next batch on.
        Replaced = "replaced",
        /// It says what is in force already.
        Unchanged = "unchanged",
        /// It is wrong, its tests fail, or it needs a new start: the old one stays.
        Refused = "refused",
    }
}

labels! {
    /// Which way bytes went between this machine and its GPU.
    Copied {
        Up = "up",
        Down = "down",
    }
}

labels! {
    /// A stated limit that was reached.
    Limit {
        /// Tenure and budgets remember nobody further, who therefore supports nothing new.
        Supporters = "supporters",
        /// A dictionary takes no further values: they count as the root.
        DictionaryValues = "dictionary_values",
        /// The part of `process.memory_limit` that is for the dictionaries: what is left is in use.
        Memory = "memory",
        /// The model counts fewer pairs of attributes.
        ModelEdges = "model_edges",
        /// No further line may wait: it is thinned.
        WaitingLines = "waiting_lines",
        /// What has been said is remembered of no further subject and group: their lines are thinned.
        SaidLines = "said_lines",
        /// A join keeps no further profiles: the cells of further people are missing.
        Profiles = "profiles",
    }
}

labels! {
    /// What became of a record: the terms of the conservation law.
    Outcome {
        Consumed = "consumed",
        Released = "released",
        Suppressed = "suppressed",
        DeadLettered = "dead_lettered",
        Dropped = "dropped",
        /// It waits in the changelog: its partition has gone, or the process has ended.
        Moved = "moved",
    }
}

labels! { BatchOutcome { Committed = "committed", Aborted = "aborted", } }
labels! { Direction { In = "in", Out = "out", } }
labels! { Picture { Before = "before", After = "after", } }
labels! { CrowdSize { Smallest = "smallest", Average = "average", } }
labels! { Statistic { Highest = "highest", Average = "average", } }
labels! { PartitionChange { Assigned = "assigned", Revoked = "revoked", Lost = "lost", } }

/// A count for every value of a label.
#[derive(Clone, PartialEq, Eq)]
pub struct Counts<L> {
    counts: Vec<u64>,
    label: PhantomData<L>,
}

impl<L: Label> Default for Counts<L> {
    fn default() -> Self {
        Self { counts: vec![0; L::ALL.len()], label: PhantomData }
    }
}

impl<L: Label> Counts<L> {
    /// Counts `n` more of `label`.
    pub fn add(&mut self, label: L, n: u64) {
        self.counts[label.index()] += n;
    }

    /// The count of one label.
    pub fn get(&self, label: L) -> u64 {
        self.counts[label.index()]
    }

    /// All counts together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Every label with its count, zeros included.
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

impl<L: Label> FromIterator<(L, u64)> for Counts<L> {
    fn from_iter<I: IntoIterator<Item = (L, u64)>>(from: I) -> Self {
        let mut counts = Self::default();
        for (label, n) in from {
            counts.add(label, n);
        }
        counts
    }
}

impl<L: Label> std::fmt::Debug for Counts<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|(label, n)| (label.as_str(), n))).finish()
    }
}

impl<L: Label> Serialize for Counts<L> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(label, n)| (label.as_str(), n)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Label, Stage, SuppressionReason};
    use crate::telemetry::RejectionReason;

    #[test]
    fn indices_are_places_and_texts_are_distinct() {
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
    fn counts_are_written_by_label() {
        let counts: Counts<RejectionReason> =
            [(RejectionReason::Empty, 2), (RejectionReason::TooDeep, 1), (RejectionReason::Empty, 1)]
                .into_iter()
                .collect();
        let text = serde_json::to_string(&counts).expect("a map");
        assert!(text.contains("\"empty\":3"), "{text}");
        assert_eq!(counts.total(), 4);
    }
}
