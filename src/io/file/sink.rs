//! Sink of verified batches in files.

use std::path::{Path, PathBuf};

use super::atomic_file::{self, OutputFileMode};
use super::lineage_entries::{FragmentEntry, SeriesRecorder};
use super::output_writers::{GroupColumns, OutputTarget, OutputVisibility, OutputWriter, output_paths};
use super::{ColumnType, FileFormat, OutputColumn, SinkError};
use crate::config::Config;
use throng_core::faults::crash_point;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::series::{self, AllSeriesTerms, RowFormat, SeriesTerms};
use throng_core::stream::dead_letter::DeadLetter;
use throng_core::stream::release_sink::{BatchEnvelope, BatchSink, DeliveryError};

/// Names for dead letters and lineage.
#[derive(Clone, Debug)]
pub struct LineageNames {
    /// Path of the source.
    pub source: String,
    /// Group names in order.
    pub groups: Vec<String>,
    /// Attribute names in schema order.
    pub attributes: Vec<String>,
}

/// Output files of one run.
pub struct FileSink {
    /// Outputs of fragments, then of series.
    outputs: Vec<OutputWriter>,
    fragments: usize,
    row_format: RowFormat,
    lines: Vec<u64>,
    dead_letters: Option<OutputWriter>,
    audit: Option<OutputWriter>,
    lineage: Option<OutputWriter>,
    series_recorder: SeriesRecorder,
    marks: Vec<(PathBuf, String)>,
    names: LineageNames,
    visible: OutputVisibility,
    bytes_out: u64,
}

/// Name and columns of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesColumns {
    /// Name of the series.
    pub name: String,
    /// Columns in row order.
    pub columns: Vec<OutputColumn>,
}

impl SeriesColumns {
    /// Returns the columns of each configured series.
    #[must_use]
    pub fn of(terms: &AllSeriesTerms) -> Vec<Self> {
        let typed = |(name, kind): (String, series::ColumnType)| {
            let kind = match kind {
                series::ColumnType::Text => ColumnType::Text,
                series::ColumnType::Count => ColumnType::Count,
                series::ColumnType::Number => ColumnType::Number,
                series::ColumnType::Time => ColumnType::Time,
            };
            OutputColumn { name, kind }
        };
        let columns =
            |of: &SeriesTerms| series::series_columns(of, &terms.cohorts.strata_names).into_iter().map(typed).collect();
        terms.series.iter().map(|of| Self { name: of.name.clone(), columns: columns(of) }).collect()
    }
}

/// Rejects the replacement of files that no job writes again, for a job with published rows in its state.
///
/// # Errors
/// [`SinkError::WouldLoseRows`].
pub fn refuse_replacement(
    config: &Config,
    groups: &[GroupColumns],
    series: &[SeriesColumns],
    lineage: Option<&Path>,
) -> Result<(), SinkError> {
    let names = groups.iter().map(|group| group.name.as_str()).chain(series.iter().map(|series| series.name.as_str()));
    let paths = output_paths(&config.sink.path, &names.collect::<Vec<_>>());
    let holds_something = |path: &&Path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let beside = [lineage, config.sink.dead_letter_path.as_deref(), config.sink.audit_file.as_deref()];
    let written = paths.iter().skip(groups.len()).map(PathBuf::as_path).chain(beside.into_iter().flatten());
    match written.into_iter().find(holds_something) {
        Some(path) => Err(SinkError::WouldLoseRows { path: path.into() }),
        None => Ok(()),
    }
}

impl FileSink {
    /// Opens and locks all files ([`BatchSink::file_of`](crate::config::BatchSink::file_of)); `-` is standard output.
    /// `untruthful` holds the text of each output's marker file.
    ///
    /// # Errors
    /// If a file cannot be opened, is not regular or is in use, or an appended output is not empty.
    pub fn open(
        config: &Config,
        format: FileFormat,
        columns: &[GroupColumns],
        series: &[SeriesColumns],
        lineage: Option<&Path>,
        untruthful: Vec<Option<String>>,
        record_names: LineageNames,
    ) -> Result<Self, SinkError> {
        let sink = &config.sink;
        let visible = if config.is_job() { OutputVisibility::AtEnd } else { OutputVisibility::AsReleased };
        let open = |path: &Path, access| OutputWriter::of_lines(OutputTarget::open(path, visible, access)?, b"");
        let dead_letters =
            sink.dead_letter_path.as_deref().map(|path| open(path, OutputFileMode::Shared)).transpose()?;
        let lineage = lineage.map(|path| open(path, OutputFileMode::Private)).transpose()?;
        let audit = sink.audit_file.as_deref().map(|path| open(path, OutputFileMode::Shared)).transpose()?;
        let mut outputs = Vec::with_capacity(columns.len());
        let names: Vec<&str> = columns
            .iter()
            .map(|group| group.name.as_str())
            .chain(series.iter().map(|series| series.name.as_str()))
            .collect();
        let paths = output_paths(&sink.path, &names);
        for (path, group) in paths.iter().zip(columns) {
            let target = OutputTarget::open(path, visible, OutputFileMode::Shared)?;
            outputs.push(OutputWriter::of_columns(target, format, &group.columns)?);
        }
        for (path, series) in paths[columns.len()..].iter().zip(series) {
            let target = OutputTarget::open(path, visible, OutputFileMode::Shared)?;
            outputs.push(OutputWriter::of_columns(target, format, &series.columns)?);
        }
        let (lines, fragments) = (vec![0; outputs.len()], columns.len());
        let row_format = match format {
            // The configuration refuses input formats.
            FileFormat::Ndjson | FileFormat::AppleHealth => RowFormat::Json,
            FileFormat::Csv { separator } => RowFormat::Csv(separator),
            FileFormat::Parquet => RowFormat::FlatJson,
        };
        let files = paths[..columns.len()].iter().filter(|path| path.as_path() != Path::new("-"));
        let marks: Vec<(PathBuf, String)> = files
            .zip(untruthful)
            .filter_map(|(path, text)| Some((crate::config::SinkConfig::mark_path(path), text?)))
            .collect();
        if visible == OutputVisibility::AsReleased {
            marks.iter().try_for_each(|(path, text)| atomic_file::write(path, text.as_bytes()))?;
        }
        Ok(Self {
            outputs,
            fragments,
            row_format,
            lines,
            dead_letters,
            audit,
            lineage,
            series_recorder: SeriesRecorder::default(),
            marks,
            names: record_names,
            visible,
            bytes_out: 0,
        })
    }

    fn write(&mut self, batch: &ReleasableBatch, envelope: &BatchEnvelope<'_>) -> Result<(), SinkError> {
        let mut buffer = Vec::new();
        for output in 0..batch.outputs().min(self.fragments) {
            buffer.clear();
            for (group, line) in batch.output(output) {
                buffer.extend_from_slice(line.bytes);
                buffer.push(b'\n');
                if let Some(lineage) = &mut self.lineage {
                    let coordinate = envelope.coordinates[line.row as usize];
                    let subject = envelope.subjects[line.row as usize];
                    let entry = FragmentEntry {
                        source: (&self.names.source, coordinate.partition, coordinate.offset),
                        element: coordinate.element_index(),
                        batch: envelope.sequence,
                        time: envelope.clock_ms,
                        group: &self.names.groups[group],
                        line: self.lines[output],
                        subject: (subject != 0).then(|| format!("{subject:016x}")),
                    };
                    lineage.append(&entry.to_line())?;
                }
                self.lines[output] += 1;
            }
            self.bytes_out += buffer.len() as u64;
            self.outputs[output].append(&buffer)?;
        }
        if let (Some(lineage), Some(series)) = (&mut self.lineage, &envelope.series) {
            let lines = &self.lines[self.fragments..];
            lineage.append(&self.series_recorder.entries(series, batch.series().rows(), lines))?;
        }
        for series in 0..batch.series().series() {
            buffer.clear();
            for line in batch.series().lines(series, self.row_format) {
                buffer.extend_from_slice(&line);
                buffer.push(b'\n');
                self.lines[self.fragments + series] += 1;
            }
            self.bytes_out += buffer.len() as u64;
            self.outputs[self.fragments + series].append(&buffer)?;
        }
        if let Some(file) = &mut self.dead_letters {
            for rejected in envelope.rejected {
                let LineageNames { source, attributes, .. } = &self.names;
                let letter = DeadLetter::of(rejected, source, attributes, envelope.sequence);
                file.append((letter.body() + "\n").as_bytes())?;
            }
        }
        if let (Some(file), Some(audit)) = (&mut self.audit, envelope.audit) {
            file.append(&audit.line)?;
            file.append(b"\n")?;
        }
        crash_point("file-appended");
        if self.visible == OutputVisibility::AsReleased {
            self.all_outputs().try_for_each(OutputWriter::flush)?;
        }
        Ok(())
    }

    fn all_outputs(&mut self) -> impl Iterator<Item = &mut OutputWriter> {
        let beside = [&mut self.dead_letters, &mut self.lineage, &mut self.audit];
        beside.into_iter().flatten().chain(&mut self.outputs)
    }

    /// Syncs all files, then renames them, outputs last.
    ///
    /// # Errors
    /// No output is replaced if a sync fails; [`SinkError::PartlyReplaced`] if a later rename fails.
    pub fn finish(self) -> Result<(), SinkError> {
        let beside = [self.dead_letters, self.lineage, self.audit];
        let all = beside.into_iter().flatten().chain(self.outputs);
        let finished = all.map(OutputWriter::finish).collect::<Result<Vec<OutputTarget>, _>>()?;
        crash_point("file-synced");
        finished.iter().try_for_each(OutputTarget::check_place)?;
        if self.visible == OutputVisibility::AtEnd {
            self.marks.iter().try_for_each(|(path, text)| atomic_file::write(path, text.as_bytes()))?;
        }
        let mut replaced = Vec::new();
        for mut output in finished {
            let shown = output.make_visible();
            if shown.is_ok() || output.is_named() {
                replaced.push(output.path().to_owned());
            }
            match shown {
                Ok(()) => {}
                Err(failed) if replaced.is_empty() => return Err(failed),
                Err(failed) => return Err(SinkError::PartlyReplaced { failed: Box::new(failed), replaced }),
            }
            crash_point("file-renamed");
        }
        Ok(())
    }
}

impl BatchSink for FileSink {
    /// Fatal: appended lines cannot be removed.
    fn deliver(&mut self, batch: &ReleasableBatch, envelope: &BatchEnvelope<'_>) -> Result<(), DeliveryError> {
        self.write(batch, envelope).map_err(|error| DeliveryError::Fatal(error.to_string()))
    }

    fn bytes_out(&self) -> u64 {
        self.bytes_out
    }
}

/// Sink without releases (`sink.kind = "none"`).
#[derive(Debug, Default)]
pub struct NullFileSink;

impl BatchSink for NullFileSink {
    fn deliver(&mut self, _: &ReleasableBatch, _: &BatchEnvelope<'_>) -> Result<(), DeliveryError> {
        Ok(())
    }

    fn bytes_out(&self) -> u64 {
        0
    }
}
