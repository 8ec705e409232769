//! Verified batches into files: append, sync, and the lengths that make the batch committed.

use super::{DeadLetterFile, FileSink, LineageEntry, LineageFile, SinkError};
use crate::faults::crash_point;
use crate::io::dead_letter::DeadLetter;
use crate::release::sink::{DeliveryError, Envelope, Lengths, Sink};
use crate::release::verified::Verified;
use crate::telemetry::Label;

/// Names in [`Lengths`] that are no groups; a group's name cannot begin with a slash.
const DEAD_LETTERS: &str = "/dead-letters";
const LINEAGE: &str = "/lineage";
const LINES: &str = "/lines/";

/// The files of one daemon: fragments by group, dead letters, lineage.
pub struct FileDelivery {
    sink: FileSink,
    dead_letters: Option<DeadLetterFile>,
    lineage: Option<LineageFile>,
    groups: Vec<String>,
    attributes: Vec<String>,
    source: String,
    /// Lines written by group, for the lineage.
    lines: Vec<u64>,
    committed: Lengths,
    bytes_out: u64,
}

/// The length of `name` in `lengths`; 0 where it has none.
fn length_of(lengths: &Lengths, name: &str) -> u64 {
    lengths.iter().find(|(n, _)| n == name).map_or(0, |(_, length)| *length)
}

/// The lengths that belong to groups.
#[must_use]
pub fn group_lengths(lengths: &Lengths) -> Lengths {
    lengths.iter().filter(|(name, _)| !name.starts_with('/')).cloned().collect()
}

/// Durable length of the dead letter file.
#[must_use]
pub fn dead_letter_length(lengths: &Lengths) -> u64 {
    length_of(lengths, DEAD_LETTERS)
}

/// Durable length of the lineage file.
#[must_use]
pub fn lineage_length(lengths: &Lengths) -> u64 {
    length_of(lengths, LINEAGE)
}

impl FileDelivery {
    /// Files that were opened at `committed` lengths. `source` names the input in dead letters and lineage.
    #[must_use]
    pub fn new(
        sink: FileSink,
        dead_letters: Option<DeadLetterFile>,
        lineage: Option<LineageFile>,
        groups: Vec<String>,
        attributes: Vec<String>,
        source: String,
        committed: Lengths,
    ) -> Self {
        let lines = groups.iter().map(|g| length_of(&committed, &format!("{LINES}{g}"))).collect();
        Self { sink, dead_letters, lineage, groups, attributes, source, lines, committed, bytes_out: 0 }
    }

    /// Syncs what opening wrote (headers) and gives the lengths to commit before the first batch.
    ///
    /// # Errors
    /// When syncing fails.
    pub fn begin(&mut self) -> Result<Lengths, SinkError> {
        let lengths = self.sync()?;
        self.committed.clone_from(&lengths);
        Ok(lengths)
    }

    fn write(&mut self, batch: &Verified, envelope: &Envelope<'_>) -> Result<Lengths, SinkError> {
        let mut buffer = Vec::new();
        for group in 0..batch.groups() {
            buffer.clear();
            for line in batch.lines(group) {
                buffer.extend_from_slice(line.bytes);
                buffer.push(b'\n');
                if let Some(lineage) = &mut self.lineage {
                    let coordinate = envelope.coordinates[line.row as usize];
                    let subject = envelope.subjects[line.row as usize].to_be_bytes();
                    lineage.append(&LineageEntry {
                        topic: &self.source,
                        partition: coordinate.partition,
                        offset: coordinate.offset,
                        batch: envelope.sequence,
                        group: &self.groups[group],
                        line: self.lines[group],
                        subject: (subject != [0; 8]).then_some(&subject[..]),
                    })?;
                }
                self.lines[group] += 1;
            }
            self.bytes_out += buffer.len() as u64;
            if !buffer.is_empty() {
                self.sink.append(group, &buffer)?;
            }
        }
        if let Some(file) = &mut self.dead_letters {
            for rejected in envelope.rejected {
                file.append(&DeadLetter {
                    coordinate: rejected.coordinate,
                    topic: &self.source,
                    stage: rejected.reason.stage().as_str(),
                    reason: rejected.reason.as_str(),
                    attribute: rejected.attribute.map(|a| self.attributes[a].as_str()),
                    batch: envelope.sequence,
                })?;
            }
        }
        crash_point("file-appended");
        let lengths = self.sync()?;
        crash_point("file-synced");
        Ok(lengths)
    }

    fn sync(&mut self) -> Result<Lengths, SinkError> {
        let mut lengths = self.sink.sync()?;
        if let Some(file) = &mut self.dead_letters {
            lengths.push((DEAD_LETTERS.to_owned(), file.sync()?));
        }
        if let Some(file) = &mut self.lineage {
            lengths.push((LINEAGE.to_owned(), file.sync()?));
            for (name, lines) in self.groups.iter().zip(&self.lines) {
                lengths.push((format!("{LINES}{name}"), *lines));
            }
        }
        Ok(lengths)
    }

    /// Takes back everything after the last commit.
    fn undo(&mut self) -> Result<(), SinkError> {
        self.sink.truncate_to(&group_lengths(&self.committed))?;
        if let Some(file) = &mut self.dead_letters {
            file.truncate_to(dead_letter_length(&self.committed))?;
        }
        if let Some(file) = &mut self.lineage {
            file.truncate_to(lineage_length(&self.committed))?;
        }
        Ok(())
    }
}

impl Sink for FileDelivery {
    fn deliver(&mut self, batch: &Verified, envelope: &Envelope<'_>) -> Result<Lengths, DeliveryError> {
        match self.write(batch, envelope) {
            Ok(lengths) => {
                self.committed.clone_from(&lengths);
                Ok(lengths)
            }
            // A disk that is full now may be full for long: stop, and let the next start continue from the last commit.
            Err(error) => Err(DeliveryError::Fatal(match self.undo() {
                Ok(()) => error.to_string(),
                Err(undo) => format!("{error}; and taking it back failed: {undo}"),
            })),
        }
    }

    fn bytes_out(&self) -> u64 {
        self.bytes_out
    }
}

/// A sink that lets nothing out (`sink.kind = "none"` with a file source).
#[derive(Debug, Default)]
pub struct NoDelivery;

impl Sink for NoDelivery {
    fn deliver(&mut self, _: &Verified, _: &Envelope<'_>) -> Result<Lengths, DeliveryError> {
        Ok(Lengths::new())
    }

    fn bytes_out(&self) -> u64 {
        0
    }
}
