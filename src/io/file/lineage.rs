//! Lineage: which output line came from which source record. For the custodian's evaluation only.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::SinkError;
use super::append::{Access, AppendFile};

/// One released fragment.
#[derive(Clone, Copy, Debug)]
pub struct LineageEntry<'a> {
    /// Topic or file of the record.
    pub topic: &'a str,
    /// Its partition; 0 for a file.
    pub partition: i32,
    /// Its offset; for a file its number, from 0.
    pub offset: i64,
    /// The index of the element that it is, where elements of an array are the records.
    pub element: Option<u32>,
    /// Sequence number of the batch.
    pub batch: u64,
    /// The group that the fragment left in.
    pub group: &'a str,
    /// Line of the group's output, counted from 0 over the whole output, without a header.
    pub line: u64,
    /// Keyed digest of the subject, where the record names one.
    pub subject: Option<&'a [u8]>,
}

/// An NDJSON file of entries with mode 0600, truncated and synced like a sink.
#[derive(Debug)]
pub struct LineageFile(AppendFile);

impl LineageFile {
    /// Opens the file, locked, and truncates it to its committed length.
    ///
    /// # Errors
    /// When it cannot be opened, is shorter than committed, or is open in another process.
    pub fn open(path: &Path, durable: u64) -> Result<Self, SinkError> {
        AppendFile::open(path, Access::Private, Vec::new(), durable).map(Self)
    }

    /// Appends `{"source":[topic,partition,offset],"batch":…,"group":…,"line":…,"subject":"hex"}`; the subject is null
    /// where there is none. Behind the source stands `"element":…` where it is one.
    ///
    /// # Errors
    /// When writing fails.
    pub fn append(&mut self, entry: &LineageEntry<'_>) -> Result<(), SinkError> {
        #[derive(Serialize)]
        struct Row<'a> {
            source: (&'a str, i32, i64),
            #[serde(skip_serializing_if = "Option::is_none")]
            element: Option<u32>,
            batch: u64,
            group: &'a str,
            line: u64,
            subject: Option<String>,
        }
        let row = Row {
            source: (entry.topic, entry.partition, entry.offset),
            element: entry.element,
            batch: entry.batch,
            group: entry.group,
            line: entry.line,
            subject: entry.subject.map(hex),
        };
        let mut bytes = serde_json::to_vec(&row).map_err(|error| SinkError::Write {
            path: self.0.path().into(),
            byte: 0,
            source: error.into(),
        })?;
        bytes.push(b'\n');
        self.0.append(&bytes)
    }

    /// Brings everything to the disk; gives the length for the commit.
    ///
    /// # Errors
    /// When writing or syncing fails.
    pub fn sync(&mut self) -> Result<u64, SinkError> {
        self.0.sync()
    }

    /// By what the file, synced, is known again.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn fingerprint(&self) -> Result<u64, SinkError> {
        self.0.fingerprint()
    }

    /// Forgets everything after the first `length` bytes.
    ///
    /// # Errors
    /// When the file is shorter or cannot be truncated.
    pub fn truncate_to(&mut self, length: u64) -> Result<(), SinkError> {
        self.0.truncate_to(length)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A `String` takes every text.
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn entries_are_private_and_survive_only_when_committed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lineage.ndjson");
        // Somebody made the file readable before.
        std::fs::write(&path, b"old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut file = LineageFile::open(&path, 0).unwrap();
        let entry = LineageEntry {
            topic: "wearable.raw",
            partition: 3,
            offset: 70,
            element: None,
            batch: 5,
            group: "main",
            line: 9,
            subject: Some(&[0xab, 0x01]),
        };
        file.append(&entry).unwrap();
        file.append(&LineageEntry { element: Some(2), ..entry }).unwrap();
        let length = file.sync().unwrap();
        file.append(&LineageEntry { subject: None, ..entry }).unwrap();
        file.sync().unwrap();
        drop(file);
        drop(LineageFile::open(&path, length).unwrap());
        let expected = r#"{"source":["wearable.raw",3,70],"batch":5,"group":"main","line":9,"subject":"ab01"}"#;
        let element = expected.replace("70],", "70],\"element\":2,");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{expected}\n{element}\n"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
