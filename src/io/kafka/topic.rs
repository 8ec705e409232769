//! Topics that a batch is written to.

/// A topic to write to.
#[derive(Clone, Debug)]
pub struct OutputTopic {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: i32,
}
