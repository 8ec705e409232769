//! Verified batches into files: the outputs of the groups, dead letters, audit records and lineage.

use std::path::{Path, PathBuf};

use super::lineage::LineageEntry;
use super::outputs::{FinishedOutput, GroupColumns, Output, Target, Visible, output_paths};
use super::whole::{self, Access};
use super::{Format, SinkError};
use crate::faults::crash_point;
use crate::io::dead_letter::DeadLetter;
use crate::release::sink::{DeliveryError, Envelope, Sink};
use crate::release::verified::Verified;

/// Everything that a run over files writes.
#[derive(Clone, Debug)]
pub struct Destinations<'a> {
    /// Where the fragments go.
    pub path: &'a Path,
    /// How they are written down.
    pub format: Format,
    /// By output, its name and what a line of it holds.
    pub outputs: &'a [GroupColumns],
    /// The file of dead letters, if there is one.
    pub dead_letters: Option<&'a Path>,
    /// The file of audit records, if there is one.
    pub audit: Option<&'a Path>,
    /// The lineage file, if there is one.
    pub lineage: Option<&'a Path>,
    /// The file that says that the outputs may be untrue, and its text, if they may be.
    pub untruthful: Option<(PathBuf, String)>,
}

/// How records are named in dead letters and lineage.
#[derive(Clone, Debug)]
pub struct Names {
    /// The path of the source.
    pub source: String,
    /// The groups, in their order.
    pub groups: Vec<String>,
    /// The attributes, in the order of the schema.
    pub attributes: Vec<String>,
}

/// The files of one run.
pub struct FileSink {
    outputs: Vec<Output>,
    /// Lines written by output, for the lineage.
    lines: Vec<u64>,
    dead_letters: Option<Output>,
    audit: Option<Output>,
    lineage: Option<Output>,
    untruthful: Option<(PathBuf, String)>,
    names: Names,
    visible: Visible,
    bytes_out: u64,
}

impl FileSink {
    /// Opens all files and locks them for as long as they are open.
    ///
    /// Several groups write a file each ([`Sink::file_of`](crate::config::Sink::file_of)). `-` is standard output, for NDJSON of one
    /// group. A CSV file starts with its header.
    ///
    /// # Errors
    /// When one cannot be opened, is no regular file or open in another process, when an output that grows holds something already,
    /// and when names do not fit.
    pub fn open(files: &Destinations<'_>, visible: Visible, names: Names) -> Result<Self, SinkError> {
        let paths = output_paths(files.path, files.outputs, files.format)?;
        let lines = |path: Option<&Path>, access| {
            path.map(|path| Output::of_lines(Target::open(path, visible, access)?, b"")).transpose()
        };
        let (dead_letters, lineage) =
            (lines(files.dead_letters, Access::Shared)?, lines(files.lineage, Access::Private)?);
        let audit = lines(files.audit, Access::Shared)?;
        let mut outputs = Vec::with_capacity(paths.len());
        for (path, output) in paths.iter().zip(files.outputs) {
            let target = Target::open(path, visible, Access::Shared)?;
            outputs.push(Output::of_group(target, files.format, &output.columns)?);
        }
        let lines = vec![0; outputs.len()];
        let untruthful = files.untruthful.clone();
        if let (Visible::AsReleased, Some((path, text))) = (visible, &untruthful) {
            whole::write(path, text.as_bytes())?;
        }
        Ok(Self { outputs, lines, dead_letters, audit, lineage, untruthful, names, visible, bytes_out: 0 })
    }

    fn write(&mut self, batch: &Verified, envelope: &Envelope<'_>) -> Result<(), SinkError> {
        let mut buffer = Vec::new();
        for output in 0..batch.outputs() {
            buffer.clear();
            for (group, line) in batch.output(output) {
                buffer.extend_from_slice(line.bytes);
                buffer.push(b'\n');
                if let Some(lineage) = &mut self.lineage {
                    let coordinate = envelope.coordinates[line.row as usize];
                    let entry = LineageEntry {
                        source: &self.names.source,
                        partition: coordinate.partition,
                        offset: coordinate.offset,
                        element: coordinate.index(),
                        batch: envelope.sequence,
                        group: &self.names.groups[group],
                        line: self.lines[output],
                        subject: envelope.subjects[line.row as usize],
                    };
                    lineage.append(&entry.line())?;
                }
                self.lines[output] += 1;
            }
            self.bytes_out += buffer.len() as u64;
            self.outputs[output].append(&buffer)?;
        }
        if let Some(file) = &mut self.dead_letters {
            for rejected in envelope.rejected {
                let letter = DeadLetter {
                    coordinate: rejected.coordinate,
                    topic: &self.names.source,
                    reason: rejected.reason,
                    attribute: rejected.attribute.map(|a| self.names.attributes[a].as_str()),
                    batch: envelope.sequence,
                };
                file.append((letter.body() + "\n").as_bytes())?;
            }
        }
        if let (Some(file), Some(audit)) = (&mut self.audit, envelope.audit) {
            file.append(&audit.line)?;
            file.append(b"\n")?;
        }
        crash_point("file-appended");
        if self.visible == Visible::AsReleased {
            self.all().try_for_each(Output::flush)?;
        }
        Ok(())
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Output> {
        let beside = [&mut self.dead_letters, &mut self.lineage, &mut self.audit];
        beside.into_iter().flatten().chain(&mut self.outputs)
    }

    /// Ends all files: brings them to the disk, then puts one after the other in its place. Dead letters and lineage come first, the
    /// groups behind them in their order.
    ///
    /// # Errors
    /// When one cannot be brought to the disk: nothing has been replaced then. When one cannot be put in its place: those before it
    /// have been, whole, and those behind it are as they were.
    pub fn finish(self) -> Result<(), SinkError> {
        let beside = [self.dead_letters, self.lineage, self.audit];
        let all = beside.into_iter().flatten().chain(self.outputs);
        let finished = all.map(Output::finish).collect::<Result<Vec<FinishedOutput>, _>>()?;
        crash_point("file-synced");
        if let (Visible::AtTheEnd, Some((path, text))) = (self.visible, &self.untruthful) {
            whole::write(path, text.as_bytes())?;
        }
        for output in finished {
            output.show()?;
            crash_point("file-renamed");
        }
        Ok(())
    }
}

impl Sink for FileSink {
    /// What is written cannot be taken back from a file that grows, and is not worth it in one that has no name yet.
    fn deliver(&mut self, batch: &Verified, envelope: &Envelope<'_>) -> Result<(), DeliveryError> {
        self.write(batch, envelope).map_err(|error| DeliveryError::Fatal(error.to_string()))
    }

    fn bytes_out(&self) -> u64 {
        self.bytes_out
    }
}

/// A sink that lets nothing out (`sink.kind = "none"` with a file source).
#[derive(Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn deliver(&mut self, _: &Verified, _: &Envelope<'_>) -> Result<(), DeliveryError> {
        Ok(())
    }

    fn bytes_out(&self) -> u64 {
        0
    }
}
