//! Verified batches into files: append, sync, and the lengths that make the batch committed.

use super::series::tells_of_series;
use super::{CertificateFile, DeadLetterFile, FileMarker, FileSink, LineageEntry, LineageFile, SinkError};
use crate::faults::crash_point;
use crate::io::dead_letter::DeadLetter;
use crate::release::sink::{DeliveryError, Envelope, Lengths, Mark, Sink};
use crate::release::verified::Verified;

/// Names in [`Lengths`] that are no groups; a group's name cannot begin with a slash.
pub(super) const DEAD_LETTERS: &str = "/dead-letters";
pub(super) const CERTIFICATES: &str = "/certificates";
pub(super) const LINEAGE: &str = "/lineage";
/// Lines that the lineage names.
const LINEAGE_LINES: &str = "/lineage-lines";
/// Before a group: lines that it has.
const LINES: &str = "/lines/";
/// Before any file: by what it is known again.
const FINGERPRINT: &str = "/imprint/";

/// The files of one daemon: fragments by group, dead letters, certificates, lineage.
pub struct FileDelivery {
    sink: FileSink,
    dead_letters: Option<DeadLetterFile>,
    certificates: Option<CertificateFile>,
    lineage: Option<LineageFile>,
    marker: Option<FileMarker>,
    groups: Vec<String>,
    attributes: Vec<String>,
    source: String,
    /// Lines written by output, for the lineage.
    lines: Vec<u64>,
    /// Whether they were counted from the first one on.
    counted: bool,
    committed: Lengths,
    bytes_out: u64,
}

/// The number that is committed under `name`.
pub(super) fn committed(lengths: &Lengths, name: &str) -> Option<u64> {
    lengths.iter().find(|(n, _)| n == name).map(|(_, length)| *length)
}

/// By what the file `name` was known when it was committed.
pub(super) fn committed_fingerprint(lengths: &Lengths, name: &str) -> Option<u64> {
    committed(lengths, &format!("{FINGERPRINT}{name}"))
}

/// Lines that all groups together have; none where some of a group were not counted.
fn lines_written(groups: &[&str], lengths: &Lengths) -> Option<u64> {
    groups.iter().map(|group| output_lines(lengths, group)).sum()
}

/// Whether the lineage names every line that has left, so that it may go on.
pub(super) fn lineage_is_whole(groups: &[&str], lengths: &Lengths) -> bool {
    lines_written(groups, lengths) == Some(committed(lengths, LINEAGE_LINES).unwrap_or(0))
}

/// The lengths that belong to groups.
#[must_use]
pub fn group_lengths(lengths: &Lengths) -> Lengths {
    lengths.iter().filter(|(name, _)| !name.starts_with('/') || tells_of_series(name)).cloned().collect()
}

/// Durable length of the dead letter file.
#[must_use]
pub fn dead_letter_length(lengths: &Lengths) -> u64 {
    committed(lengths, DEAD_LETTERS).unwrap_or(0)
}

/// Durable length of the file of certificates.
#[must_use]
pub fn certificates_length(lengths: &Lengths) -> u64 {
    committed(lengths, CERTIFICATES).unwrap_or(0)
}

/// Lines of an output that are committed, headers not counted; none where they were not counted from the first one on.
#[must_use]
pub fn output_lines(lengths: &Lengths, output: &str) -> Option<u64> {
    match committed(lengths, output) {
        Some(_) => committed(lengths, &format!("{LINES}{output}")),
        None => Some(0),
    }
}

/// Durable length of the lineage file.
#[must_use]
pub fn lineage_length(lengths: &Lengths) -> u64 {
    committed(lengths, LINEAGE).unwrap_or(0)
}

impl FileDelivery {
    /// Files that were opened at committed `lengths`, and the `groups` whose lines they take. `source` names the input in dead letters and lineage.
    #[must_use]
    pub fn new(
        sink: FileSink,
        dead_letters: Option<DeadLetterFile>,
        lineage: Option<LineageFile>,
        groups: Vec<String>,
        attributes: Vec<String>,
        source: String,
        lengths: Lengths,
    ) -> Self {
        let names: Vec<&str> = sink.names().iter().map(String::as_str).collect();
        let counted = lines_written(&names, &lengths).is_some();
        let of = |group: &&str| committed(&lengths, &format!("{LINES}{group}")).unwrap_or(0);
        let lines = names.iter().map(of).collect();
        Self {
            sink,
            dead_letters,
            certificates: None,
            lineage,
            marker: None,
            groups,
            attributes,
            source,
            lines,
            counted,
            committed: lengths,
            bytes_out: 0,
        }
    }

    /// From here on `marker` names every batch before anything of it is written.
    #[must_use]
    pub fn with_marker(mut self, marker: FileMarker) -> Self {
        self.marker = Some(marker);
        self
    }

    /// Each batch's certificate goes to `file`.
    #[must_use]
    pub fn with_certificates(mut self, file: Option<CertificateFile>) -> Self {
        self.certificates = file;
        self
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
        if let Some(marker) = &mut self.marker {
            marker.write(Mark { sequence: envelope.sequence, attempt: envelope.attempt })?;
        }
        self.sink.turn(envelope.clock_ms)?;
        let mut buffer = Vec::new();
        for output in 0..batch.outputs() {
            buffer.clear();
            for (group, line) in batch.output(output) {
                buffer.extend_from_slice(line.bytes);
                buffer.push(b'\n');
                if let Some(lineage) = &mut self.lineage {
                    let coordinate = envelope.coordinates[line.row as usize];
                    let subject = envelope.subjects[line.row as usize].to_be_bytes();
                    lineage.append(&LineageEntry {
                        topic: &self.source,
                        partition: coordinate.partition,
                        offset: coordinate.offset,
                        element: coordinate.index(),
                        batch: envelope.sequence,
                        group: &self.groups[group],
                        line: self.lines[output],
                        subject: (subject != [0; 8]).then_some(&subject[..]),
                    })?;
                }
                self.lines[output] += 1;
            }
            self.bytes_out += buffer.len() as u64;
            if !buffer.is_empty() {
                self.sink.append(output, &buffer)?;
            }
        }
        if let Some(file) = &mut self.dead_letters {
            for rejected in envelope.rejected {
                file.append(&DeadLetter {
                    coordinate: rejected.coordinate,
                    topic: &self.source,
                    reason: rejected.reason,
                    attribute: rejected.attribute.map(|a| self.attributes[a].as_str()),
                    batch: envelope.sequence,
                })?;
            }
        }
        if let (Some(file), Some(certificate)) = (&mut self.certificates, envelope.certificate) {
            file.append(certificate.line)?;
        }
        crash_point("file-appended");
        let lengths = self.sync()?;
        crash_point("file-synced");
        Ok(lengths)
    }

    fn sync(&mut self) -> Result<Lengths, SinkError> {
        let mut lengths = self.sink.sync()?;
        let mut fingerprints = self.sink.fingerprints()?;
        let mut files = |name: &str, length, fingerprint| {
            lengths.push((name.to_owned(), length));
            fingerprints.push((name.to_owned(), fingerprint));
        };
        if let Some(file) = &mut self.dead_letters {
            files(DEAD_LETTERS, file.sync()?, file.fingerprint()?);
        }
        if let Some(file) = &mut self.certificates {
            files(CERTIFICATES, file.sync()?, file.fingerprint()?);
        }
        if let Some(file) = &mut self.lineage {
            files(LINEAGE, file.sync()?, file.fingerprint()?);
            lengths.push((LINEAGE_LINES.to_owned(), self.lines.iter().sum()));
        }
        if self.counted {
            let lines = self.sink.names().iter().zip(&self.lines);
            lengths.extend(lines.map(|(name, lines)| (format!("{LINES}{name}"), *lines)));
        }
        lengths
            .extend(fingerprints.into_iter().map(|(name, fingerprint)| (format!("{FINGERPRINT}{name}"), fingerprint)));
        lengths.extend(self.of_closed_files().cloned());
        Ok(lengths)
    }

    /// What is committed of files that this run was not given: another run goes on with them.
    fn of_closed_files(&self) -> impl Iterator<Item = &(String, u64)> {
        let closed = |name: &str| match name.strip_prefix(FINGERPRINT).unwrap_or(name) {
            DEAD_LETTERS => self.dead_letters.is_none(),
            CERTIFICATES => self.certificates.is_none(),
            LINEAGE | LINEAGE_LINES => self.lineage.is_none(),
            _ => false,
        };
        self.committed.iter().filter(move |(name, _)| closed(name))
    }

    /// Takes back everything after the last commit.
    fn undo(&mut self) -> Result<(), SinkError> {
        self.sink.truncate_to(&group_lengths(&self.committed))?;
        if let Some(file) = &mut self.dead_letters {
            file.truncate_to(dead_letter_length(&self.committed))?;
        }
        if let Some(file) = &mut self.certificates {
            file.truncate_to(certificates_length(&self.committed))?;
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
                Ok(()) => format!("{error}: it continues at the last commit"),
                Err(undo) => format!("{error}; and taking it back failed: {undo}"),
            })),
        }
    }

    fn marks(&self) -> bool {
        self.marker.is_some()
    }

    fn bytes_out(&self) -> u64 {
        self.bytes_out
    }
}

/// A sink that lets nothing out (`sink.kind = "none"` with a file source). Files that the state has written before keep their
/// lengths.
#[derive(Debug, Default)]
pub struct NoDelivery {
    /// The lengths that every delivery gives.
    pub committed: Lengths,
}

impl Sink for NoDelivery {
    fn deliver(&mut self, _: &Verified, _: &Envelope<'_>) -> Result<Lengths, DeliveryError> {
        Ok(self.committed.clone())
    }

    fn bytes_out(&self) -> u64 {
        0
    }
}
