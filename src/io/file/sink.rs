//! Verified batches into files: the outputs of the groups, dead letters, audit records and lineage.

use std::path::{Path, PathBuf};

use super::lineage::{FragmentEntry, SeriesRecorder};
use super::outputs::{ColumnType, GroupColumns, Output, Target, Visible, output_paths};
use super::whole::{self, Access};
use super::{Format, SinkError};
use crate::anonymity::series::{self, RowFormat, SeriesTerms, Terms};
use crate::config::Config;
use crate::faults::crash_point;
use crate::io::dead_letter::DeadLetter;
use crate::release::sink::{DeliveryError, Envelope, Sink};
use crate::release::verified::Verified;

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
    /// Outputs of fragments, then those of the series.
    outputs: Vec<Output>,
    /// Number of outputs of fragments.
    fragments: usize,
    row_format: RowFormat,
    /// Lines written by output, for the lineage.
    lines: Vec<u64>,
    dead_letters: Option<Output>,
    audit: Option<Output>,
    lineage: Option<Output>,
    series_recorder: SeriesRecorder,
    /// Marks beside outputs that may be untrue, with what they say.
    marks: Vec<(PathBuf, String)>,
    names: Names,
    visible: Visible,
    bytes_out: u64,
}

/// Name and columns of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesColumns {
    /// Name of the series.
    pub name: String,
    /// Its columns, in the order of a row.
    pub columns: Vec<(String, ColumnType)>,
}

impl SeriesColumns {
    /// Returns name and columns of the series of a configuration.
    #[must_use]
    pub fn of(terms: &Terms) -> Vec<Self> {
        let typed = |(name, kind): (String, series::ColumnType)| match kind {
            series::ColumnType::Text => (name, ColumnType::Text),
            series::ColumnType::Count => (name, ColumnType::Count),
            series::ColumnType::Number => (name, ColumnType::Number),
        };
        let columns =
            |of: &SeriesTerms| series::columns(of, &terms.cohorts.strata_names).into_iter().map(typed).collect();
        terms.series.iter().map(|of| Self { name: of.name.clone(), columns: columns(of) }).collect()
    }

    fn output(&self, target: Target, format: Format) -> Result<Output, SinkError> {
        match format {
            Format::Parquet => Output::of_columns(target, &self.columns),
            Format::Ndjson | Format::Csv { .. } => {
                let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
                Output::of_group(target, format, &names)
            }
        }
    }
}

/// Refuses to replace what no job writes again: outputs of series, their `lineage`, dead letters and audit records. For a job whose
/// state has published rows already.
///
/// # Errors
/// [`SinkError::Continued`] for the first of these files that holds something.
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
        Some(path) => Err(SinkError::Continued { path: path.into() }),
        None => Ok(()),
    }
}

impl FileSink {
    /// Opens all files and locks them for as long as they are open: the outputs, each with what a line of it holds, and the file of
    /// `lineage`. A file beside each output that may be untrue says so: `untruthful` has the text of its mark, by output.
    ///
    /// Several groups write a file each ([`Sink::file_of`](crate::config::Sink::file_of)). `-` is standard output, for NDJSON of one
    /// group. A CSV file starts with its header.
    ///
    /// # Errors
    /// When one cannot be opened, is no regular file or open in another process, when an output that grows holds something already.
    pub fn open(
        config: &Config,
        format: Format,
        columns: &[GroupColumns],
        series: &[SeriesColumns],
        lineage: Option<&Path>,
        untruthful: Vec<Option<String>>,
        record_names: Names,
    ) -> Result<Self, SinkError> {
        let sink = &config.sink;
        let visible = if config.is_job() { Visible::AtTheEnd } else { Visible::AsReleased };
        let open = |path: &Path, access| Output::of_lines(Target::open(path, visible, access)?, b"");
        let dead_letters = sink.dead_letter_path.as_deref().map(|path| open(path, Access::Shared)).transpose()?;
        let lineage = lineage.map(|path| open(path, Access::Private)).transpose()?;
        let audit = sink.audit_file.as_deref().map(|path| open(path, Access::Shared)).transpose()?;
        let mut outputs = Vec::with_capacity(columns.len());
        let names: Vec<&str> = columns
            .iter()
            .map(|group| group.name.as_str())
            .chain(series.iter().map(|series| series.name.as_str()))
            .collect();
        let paths = output_paths(&sink.path, &names);
        for (path, group) in paths.iter().zip(columns) {
            let target = Target::open(path, visible, Access::Shared)?;
            outputs.push(Output::of_group(target, format, &group.columns)?);
        }
        for (path, series) in paths[columns.len()..].iter().zip(series) {
            outputs.push(series.output(Target::open(path, visible, Access::Shared)?, format)?);
        }
        let (lines, fragments) = (vec![0; outputs.len()], columns.len());
        let row_format = match format {
            Format::Ndjson => RowFormat::Json,
            Format::Csv { separator } => RowFormat::Csv(separator),
            Format::Parquet => RowFormat::FlatJson,
        };
        let files = paths[..columns.len()].iter().filter(|path| path.as_path() != Path::new("-"));
        let marks: Vec<(PathBuf, String)> = files
            .zip(untruthful)
            .filter_map(|(path, text)| Some((crate::config::Sink::mark_path(path), text?)))
            .collect();
        if visible == Visible::AsReleased {
            marks.iter().try_for_each(|(path, text)| whole::write(path, text.as_bytes()))?;
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

    fn write(&mut self, batch: &Verified, envelope: &Envelope<'_>) -> Result<(), SinkError> {
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
                        element: coordinate.index(),
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
                let Names { source, attributes, .. } = &self.names;
                let letter = DeadLetter::of(rejected, source, attributes, envelope.sequence);
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
    /// When one cannot be brought to the disk, or something is in its place: nothing has been replaced then. [`SinkError::Mixture`] when
    /// one cannot be put in its place all the same: those before it have been, whole, and those behind it are as they were.
    pub fn finish(self) -> Result<(), SinkError> {
        let beside = [self.dead_letters, self.lineage, self.audit];
        let all = beside.into_iter().flatten().chain(self.outputs);
        let finished = all.map(Output::finish).collect::<Result<Vec<Target>, _>>()?;
        crash_point("file-synced");
        finished.iter().try_for_each(Target::check_place)?;
        if self.visible == Visible::AtTheEnd {
            self.marks.iter().try_for_each(|(path, text)| whole::write(path, text.as_bytes()))?;
        }
        let mut replaced = Vec::new();
        for mut output in finished {
            let shown = output.show();
            if shown.is_ok() || output.is_named() {
                replaced.push(output.path().to_owned());
            }
            match shown {
                Ok(()) => {}
                Err(failed) if replaced.is_empty() => return Err(failed),
                Err(failed) => return Err(SinkError::Mixture { failed: Box::new(failed), replaced }),
            }
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
