//! What can be measured.

/// What `throng bench gpu` can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Each way of counting, alone.
    Counting,
    /// Find-QID on 1 M records of 12 columns, k = 2, 5, 20: few enough for a peer that goes level by level.
    FindQid12,
    /// On 30 columns.
    FindQid30,
    /// On 1 M of 100.
    FindQid100,
    /// On 20 M of 11.
    FindQid11,
    /// The adjacency of 1 M records of 107 columns.
    Adjacency,
    /// The same of batches of 10,000.
    AdjacencyBatches,
    /// A batch of 10,000 records comes into a window of 1 M, and 30,000 sets of columns are judged.
    Recheck,
}

impl Case {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::Counting,
        Self::FindQid12,
        Self::FindQid30,
        Self::FindQid100,
        Self::FindQid11,
        Self::Adjacency,
        Self::AdjacencyBatches,
        Self::Recheck,
    ];

    /// As the command line says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Counting => "counting",
            Self::FindQid12 => "find-qid-12",
            Self::FindQid30 => "find-qid-30",
            Self::FindQid100 => "find-qid-100",
            Self::FindQid11 => "find-qid-11",
            Self::Adjacency => "adjacency",
            Self::AdjacencyBatches => "adjacency-batches",
            Self::Recheck => "recheck",
        }
    }

    /// The case of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.name() == name)
    }
}
