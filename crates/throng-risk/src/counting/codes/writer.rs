//! Writer of packed codes.

use super::column::{CodeColumn, CodeRun, CodeStorage, append_packed_codes, code_width};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Default)]
struct PendingColumn {
    runs: Vec<CodeRun>,
    rows: usize,
    counts: Vec<u64>,
}

/// Writes columns of codes into memory or an unnamed file.
///
/// Memory: 8 bytes per code up to the largest per column, 32 per appended piece.
#[derive(Debug)]
pub struct CodeWriter {
    target: CodeStorage,
    end: u64,
    columns: Vec<PendingColumn>,
    bytes: Vec<u8>,
}

impl CodeWriter {
    /// Creates a writer into memory, or into a private file in `directory`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn new(directory: Option<&Path>, columns: usize) -> io::Result<Self> {
        let target = match directory {
            None => CodeStorage::Memory(Vec::new()),
            Some(directory) => {
                let file = tempfile::tempfile_in(directory)?;
                file.set_permissions(Permissions::from_mode(0o600))?;
                CodeStorage::File(file)
            }
        };
        let columns = (0..columns).map(|_| PendingColumn::default()).collect();
        Ok(Self { target, end: 0, columns, bytes: Vec::new() })
    }

    /// Appends the codes of the next rows of a column.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn append(&mut self, column: usize, codes: &[u32]) -> io::Result<()> {
        let Some(largest) = codes.iter().copied().max() else { return Ok(()) };
        let written = &mut self.columns[column];
        if written.counts.len() <= largest as usize {
            written.counts.resize(largest as usize + 1, 0);
        }
        codes.iter().for_each(|code| written.counts[*code as usize] += 1);
        self.append_numbers(column, codes)
    }

    /// Appends numbers without counting rows per number.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn append_numbers(&mut self, column: usize, codes: &[u32]) -> io::Result<()> {
        let Some(largest) = codes.iter().copied().max() else { return Ok(()) };
        let written = &mut self.columns[column];
        let width = code_width(largest);
        self.bytes.clear();
        append_packed_codes(codes, width, &mut self.bytes);
        let at = match &mut self.target {
            CodeStorage::Memory(pieces) => {
                pieces.push(self.bytes.as_slice().into());
                pieces.len() as u64 - 1
            }
            CodeStorage::File(file) => {
                file.write_all(&self.bytes)?;
                self.end
            }
        };
        written.runs.push(CodeRun { first: written.rows, rows: codes.len(), width, start: at });
        written.rows += codes.len();
        self.end += self.bytes.len() as u64;
        Ok(())
    }

    /// Rows per code of a column.
    #[must_use]
    pub fn counts(&self, column: usize) -> &[u64] {
        &self.columns[column].counts
    }

    /// Written bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Written rows of a column.
    #[must_use]
    pub fn rows(&self, column: usize) -> usize {
        self.columns[column].rows
    }

    /// Returns the columns with written codes.
    #[must_use]
    pub fn into_columns(self) -> Vec<CodeColumn> {
        self.finish().into_iter().map(|(column, _)| column.with_written_codes()).collect()
    }

    #[must_use]
    pub(super) fn finish(self) -> Vec<(CodeColumn, Vec<u64>)> {
        let bytes = Arc::new(self.target);
        let column = |written: PendingColumn| (CodeColumn::new(&bytes, written.runs, &written.counts), written.counts);
        self.columns.into_iter().map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn code_file_has_no_name_and_is_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = CodeWriter::new(Some(directory.path()), 1).expect("a file");
        writer.append(0, &[1, 2, 70_000]).expect("written");
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 0);
        let CodeStorage::File(file) = &writer.target else { panic!("a file was asked for") };
        let file = file.metadata().expect("it is open");
        assert_eq!((file.nlink(), file.mode() & 0o777, writer.bytes()), (0, 0o600, 12));
    }
}
