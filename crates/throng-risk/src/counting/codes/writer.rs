//! Codes as they come, column by column.

use super::column::{Bytes, CodeColumn, Run, pack, width_of};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// One column that is being written.
#[derive(Debug, Default)]
struct Written {
    runs: Vec<Run>,
    rows: usize,
    /// Rows of each code.
    counts: Vec<u64>,
}

/// Columns of codes on their way into memory, or into a file without a name.
///
/// Memory: 8 bytes for each different code of a column, 32 for each piece that was appended.
#[derive(Debug)]
pub struct CodeWriter {
    target: Bytes,
    end: u64,
    columns: Vec<Written>,
    bytes: Vec<u8>,
}

impl CodeWriter {
    /// Columns in a file in `directory`, which nobody but this process can open; without a directory, in memory.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn new(directory: Option<&Path>, columns: usize) -> io::Result<Self> {
        let target = match directory {
            None => Bytes::Memory(Vec::new()),
            Some(directory) => {
                let file = tempfile::tempfile_in(directory)?;
                file.set_permissions(Permissions::from_mode(0o600))?;
                Bytes::File(file)
            }
        };
        let columns = (0..columns).map(|_| Written::default()).collect();
        Ok(Self { target, end: 0, columns, bytes: Vec::new() })
    }

    /// Appends the codes of the next rows of a column.
    ///
    /// # Errors
    /// When the disk is full, or fails.
    pub fn append(&mut self, column: usize, codes: &[u32]) -> io::Result<()> {
        let Some(largest) = codes.iter().copied().max() else { return Ok(()) };
        let written = &mut self.columns[column];
        if written.counts.len() <= largest as usize {
            written.counts.resize(largest as usize + 1, 0);
        }
        codes.iter().for_each(|code| written.counts[*code as usize] += 1);
        self.append_numbers(column, codes)
    }

    /// Appends numbers that are no codes: nobody asks how many rows each has.
    ///
    /// # Errors
    /// When the disk is full, or fails.
    pub fn append_numbers(&mut self, column: usize, codes: &[u32]) -> io::Result<()> {
        let Some(largest) = codes.iter().copied().max() else { return Ok(()) };
        let written = &mut self.columns[column];
        let width = width_of(largest);
        self.bytes.clear();
        pack(codes, width, &mut self.bytes);
        let at = match &mut self.target {
            Bytes::Memory(pieces) => {
                pieces.push(self.bytes.as_slice().into());
                pieces.len() as u64 - 1
            }
            Bytes::File(file) => {
                file.write_all(&self.bytes)?;
                self.end
            }
        };
        written.runs.push(Run { first: written.rows, rows: codes.len(), width, at });
        written.rows += codes.len();
        self.end += self.bytes.len() as u64;
        Ok(())
    }

    /// Rows of each code of a column so far.
    #[must_use]
    pub fn counts(&self, column: usize) -> &[u64] {
        &self.columns[column].counts
    }

    /// Bytes written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Rows of a column so far.
    #[must_use]
    pub fn rows(&self, column: usize) -> usize {
        self.columns[column].rows
    }

    /// The columns as they were written, to be read.
    #[must_use]
    pub fn into_columns(self) -> Vec<CodeColumn> {
        self.finish().into_iter().map(|(column, _)| column.plain()).collect()
    }

    /// The columns, to be read.
    #[must_use]
    pub(super) fn finish(self) -> Vec<(CodeColumn, Vec<u64>)> {
        let bytes = Arc::new(self.target);
        let column = |written: Written| (CodeColumn::new(&bytes, written.runs, &written.counts), written.counts);
        self.columns.into_iter().map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_file_has_no_name_and_is_nobody_elses() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = CodeWriter::new(Some(directory.path()), 1).expect("a file");
        writer.append(0, &[1, 2, 70_000]).expect("written");
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 0);
        let Bytes::File(file) = &writer.target else { panic!("a file was asked for") };
        let file = file.metadata().expect("it is open");
        assert_eq!((file.nlink(), file.mode() & 0o777, writer.bytes()), (0, 0o600, 12));
    }
}
