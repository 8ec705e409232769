//! Interface of the output line formats.

use std::fmt;
use std::sync::Arc;

/// Writes and reads the lines of one group in one format.
pub trait LineEncoder: fmt::Debug + Send + Sync {
    /// Appends a line without line break. `cells` are JSON texts, empty if omitted.
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>);

    /// Reads the JSON texts of `line`. Returns `None` unless it is exactly an output of [`encode`](Self::encode).
    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()>;

    /// Checks if lines have cells for all groups.
    fn is_joined(&self) -> bool {
        false
    }
}

/// Line layout of one group in one format.
#[derive(Clone, Debug)]
pub struct LineLayout(Arc<dyn LineEncoder>);

impl LineLayout {
    /// Layout of `encoder`.
    #[must_use]
    pub fn new(encoder: Arc<dyn LineEncoder>) -> Self {
        Self(encoder)
    }

    /// Checks if rows mix with those of other groups.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.0.is_joined()
    }

    /// Appends one line; see [`LineEncoder::encode`].
    pub fn write(&self, cells: &[&str], out: &mut Vec<u8>) {
        self.0.encode(cells, out);
    }

    /// Reads the cells of a line; see [`LineEncoder::read`].
    pub fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        self.0.read(line, cells)
    }
}
