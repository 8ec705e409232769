//! Lineage: which output line came from which source record. For the custodian's evaluation only.

use std::fmt::Write as _;

use serde::Serialize;

/// One released fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineageEntry<'a> {
    /// The path of the source.
    pub source: &'a str,
    pub partition: i32,
    /// The number of the record, from 0.
    pub offset: i64,
    /// The index of the element that it is, where elements of an array are the records.
    pub element: Option<u32>,
    /// Sequence number of the batch.
    pub batch: u64,
    /// The group that the fragment left in.
    pub group: &'a str,
    /// Line of the group's output, from 0, without a header.
    pub line: u64,
    /// Keyed digest of the subject; 0 where the record names none.
    pub subject: u64,
}

impl LineageEntry<'_> {
    /// `{"source":[path,partition,offset],"batch":…,"group":…,"line":…,"subject":"hex"}` and a line break; the subject is null
    /// where there is none. Behind the source stands `"element":…` where it is one.
    pub fn line(&self) -> Vec<u8> {
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
            source: (self.source, self.partition, self.offset),
            element: self.element,
            batch: self.batch,
            group: self.group,
            line: self.line,
            subject: (self.subject != 0).then(|| hex(&self.subject.to_be_bytes())),
        };
        let mut bytes = serde_json::to_vec(&row).expect("plain values always serialize");
        bytes.push(b'\n');
        bytes
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
    use super::*;

    #[test]
    fn an_entry_is_one_line() {
        let entry = LineageEntry {
            source: "wearable.ndjson",
            partition: 0,
            offset: 70,
            element: None,
            batch: 5,
            group: "main",
            line: 9,
            subject: 0xab01,
        };
        let line = |entry: LineageEntry<'_>| String::from_utf8(entry.line()).unwrap();
        let expected = "{\"source\":[\"wearable.ndjson\",0,70],\"batch\":5,\"group\":\"main\",\"line\":9,\"subject\":\"000000000000ab01\"}\n";
        assert_eq!(line(entry), expected);
        let element = expected.replace("70],", "70],\"element\":2,");
        assert_eq!(line(LineageEntry { element: Some(2), ..entry }), element);
        assert!(line(LineageEntry { subject: 0, ..entry }).ends_with("\"subject\":null}\n"));
    }
}
