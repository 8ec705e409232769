//! Interface of the output line formats.

use std::fmt;
use std::sync::Arc;

/// Writes the lines of one group in one format, and reads them back.
///
/// Verification counts the released *bytes*. It must recover the cells of a line without the code that chose them, so
/// each format implements both directions.
pub trait LineEncoder: fmt::Debug + Send + Sync {
    /// Appends one line without a line break. `cells` are JSON texts, one per attribute in the order of the group; an
    /// empty text is an omitted cell.
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>);

    /// Overwrites `cells` with the JSON texts of the cells of `line`, one per attribute (empty = omitted). Returns
    /// `None` if `line` is not exactly the output of [`encode`](Self::encode) for some cells.
    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()>;

    /// Returns `true` if a line has cells for the attributes of every group.
    fn is_joined(&self) -> bool {
        false
    }
}

/// Line layout of one group: its attributes in order, in one format. Treatment writes with it, verification reads
/// with it.
#[derive(Clone, Debug)]
pub struct LineLayout(Arc<dyn LineEncoder>);

impl LineLayout {
    /// Returns the layout of the lines that `encoder` writes.
    #[must_use]
    pub fn new(encoder: Arc<dyn LineEncoder>) -> Self {
        Self(encoder)
    }

    /// Returns `true` if its rows can be mixed with rows of every other group.
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
