//! How a fragment leaves as one line, and how the cells of such a line are found again.

use std::fmt;

/// Writes the lines of one group in one format, and reads them back.
///
/// Both directions are one format's business, because verification counts the *bytes* that leave: it must be able to go
/// from a line back to its cells without asking the code that chose them.
pub trait Encoder: fmt::Debug + Send + Sync {
    /// Appends one line, without a line break. `cells` are JSON texts, one for each attribute in the order of the group;
    /// an empty text is an omitted cell.
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>);

    /// The JSON texts of the cells of `line`, one for each attribute (empty = omitted); `cells` is written over.
    /// `None` when the line is not exactly what [`encode`](Self::encode) gives for some cells.
    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()>;

    /// Whether a line has room for the attributes of every group.
    fn is_joined(&self) -> bool {
        false
    }
}
