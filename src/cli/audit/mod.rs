//! `throng audit`: finds identifying columns and measures the risk.

mod args;
mod next_steps;
mod page;
mod progress;
mod spilled_table;
mod subject_linking;
mod terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use crossbeam_channel::RecvTimeoutError;
use sha2::{Digest, Sha256};

pub use args::AuditArgs;
use args::{BackendArg, MAX_AUDIT_COLUMNS, SingletonsArg, StrategyArg, table_failure};
use progress::audit_progress_bar;
use spilled_table::refuse_unspillable;

use super::input_formats::input_paths;
use super::outcome::Failure;
use super::output_checks::{refuse_overwriting, write_failure};
use super::text_format;
use crate::config::{ConfigProblem, UsedFile};
use crate::dataset::infer::likely_subject;
use crate::io::file::{FileFormat, atomic_file, declared_row_count, plain_length};
use crate::io::table::{self, LoadedTable, ReadProgress, TableRequest};
use crate::start::run_findings::RunFinding;
use throng_core::values::schema::Schema;
use throng_formats::DecodeLimits;
use throng_risk::audit::{AuditReport, AuditRequest, AuditTable, SingletonPolicy, audit, prepare};
use throng_risk::counting::{BackendChoice, shared_device};
use throng_risk::identifiers::IdentifierRule;
use throng_risk::qid::QidStrategy;

/// Runs `throng audit`.
///
/// # Errors
/// Fails for bad usage, schema problems, missing hardware, unreadable input, or an unwritable page.
pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    args.check_inputs()?;
    if args.backend == BackendArg::Cuda {
        // Reported before the input is read.
        shared_device().map_err(|error| {
            let message = format!("--backend cuda: {error}; use --backend cpu (same results)");
            Failure::Hardware(anyhow!(message))
        })?;
    }
    if let Some(path) = &args.html {
        let hierarchies = args.schema.as_deref().map(Schema::hierarchy_files).unwrap_or_default();
        let mut read: Vec<UsedFile> =
            input_paths(&args.input, &args.more).map(|path| UsedFile::file("the input", path)).collect();
        read.extend(args.link.iter().map(|path| UsedFile::file("--link", path)));
        read.extend(args.schema.iter().map(|path| UsedFile::file("the schema", path)));
        read.extend(hierarchies.iter().map(|path| UsedFile::file("a hierarchy of the schema", path)));
        refuse_overwriting(&[UsedFile::file("--html", path)], &read)?;
        atomic_file::check_writable(path).map_err(|error| write_failure("the page", path, error))?;
    }
    refuse_unspillable(args)?;
    let report = build_audit_output(args)?;
    if let Some(path) = &args.html {
        let page = page::render(&report, &args.page_origin()?, chrono::Utc::now());
        atomic_file::write(path, page.as_bytes()).map_err(|error| write_failure("the page", path, error))?;
    }
    let out = if args.json {
        let json = serde_json::to_string(&report).context("the report cannot be written as JSON")?;
        format!("{json}\n")
    } else {
        terminal::render(&report, args.html.as_deref(), terminal::TerminalStyle::of_stdout())
    };
    match std::io::stdout().write_all(out.as_bytes()) {
        // The reader closed standard output (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result.context("cannot write the report")?),
    }
}

fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The rest of `--memory` is for the search.
const BYTES_PER_CELL: u64 = 12;

fn build_audit_output(args: &AuditArgs) -> Result<AuditReport, Failure> {
    let started = Instant::now();
    let threads = args.threads.map_or_else(available_cores, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads")?;
    let pool = Arc::new(pool);
    let schema = args.schema.as_deref().map(load_audit_schema).transpose()?;
    let columns = args.columns_to_read(schema.as_ref())?;
    let read = match args.max_seconds {
        None => pool.install(|| args.read(schema.as_ref(), columns.as_deref(), &AtomicU64::new(0)))?,
        Some(time) => read_within(args, time.saturating_sub(started.elapsed()), &pool, schema.as_ref(), columns)?,
    };
    let link = args
        .link
        .as_deref()
        .map(|file| pool.install(|| subject_linking::link_to_known_subjects(args, file, schema.as_ref(), &read)));
    let link = link.transpose()?;
    let report = pool.install(|| audit_read_table(args, threads, started, schema.as_ref(), read))?;
    Ok(AuditReport { link, ..report })
}

/// A timeout is an error: nothing is proved about a part of a table.
fn read_within(
    args: &AuditArgs,
    time: Duration,
    pool: &Arc<rayon::ThreadPool>,
    schema: Option<&Schema>,
    columns: Option<Vec<String>>,
) -> Result<LoadedTable, Failure> {
    let (sender, receiver) = crossbeam_channel::bounded(1);
    let records = Arc::new(AtomicU64::new(0));
    let (own, pool, schema, counted) = (args.clone(), Arc::clone(pool), schema.cloned(), Arc::clone(&records));
    // Never joined: the process exits even if it blocks.
    std::thread::spawn(move || {
        let read = pool.install(|| own.read(schema.as_ref(), columns.as_deref(), &counted));
        // The receiver is gone after a timeout.
        let (Ok(()) | Err(_)) = sender.send(read);
    });
    receiver.recv_timeout(time).unwrap_or_else(|error| {
        let (path, read) = (args.input_name(), text_format::counted(records.load(Ordering::Relaxed), "record"));
        let seconds = args.max_seconds.unwrap_or_default().as_secs_f64();
        Err(Failure::Running(match error {
            RecvTimeoutError::Timeout => anyhow!(
                "{path} was not fully read within {seconds} s ({read} by then), and a part of it proves nothing: give more \
                 time (--max-seconds), choose columns (--columns), or take a sample of the records"
            ),
            RecvTimeoutError::Disconnected => anyhow!("{path} was not read (this is a bug: please report it)"),
        }))
    })
}

fn audit_read_table(
    args: &AuditArgs,
    threads: usize,
    started: Instant,
    schema: Option<&Schema>,
    read: LoadedTable,
) -> Result<AuditReport, Failure> {
    let LoadedTable { unreadable, absent, unknown_cells, long_rows, .. } = &read;
    let (unreadable, absent, unknown_cells, long_rows) =
        (unreadable.clone(), absent.clone(), *unknown_cells, *long_rows);
    let mut arrays: Vec<String> = read.columns.iter().filter(|c| c.arrays > 0).map(|c| c.name.clone()).collect();
    arrays.sort_unstable();
    let has_subject = args.subject_name(schema).is_some();
    let likely_subject = if has_subject { None } else { likely_subject(&read).map(str::to_owned) };
    let cells: u64 = read.columns.iter().map(|column| column.codes.len() as u64).sum();
    let memory = match read.spilled {
        None => args.memory.saturating_sub(BYTES_PER_CELL * cells),
        Some(_) => args.memory_beside_dictionaries(),
    };
    let table = args.prepare(read, schema)?;
    let question = AuditRequest {
        input: args.input_name(),
        k: args.k,
        singletons: match args.singletons {
            SingletonsArg::Include => SingletonPolicy::Include,
            SingletonsArg::Mask => SingletonPolicy::Mask,
        },
        strategy: match args.strategy {
            StrategyArg::Border => QidStrategy::Border,
            StrategyArg::Greedy => QidStrategy::Greedy,
            StrategyArg::Exhaustive => QidStrategy::Exhaustive,
        },
        threads,
        backend: match args.backend {
            BackendArg::Auto => BackendChoice::Auto,
            BackendArg::Cpu => BackendChoice::Cpu,
            BackendArg::Cuda => BackendChoice::Device,
        },
        budget: args.max_seconds.map(|time| time.saturating_sub(started.elapsed())),
        memory: Some(memory),
        rows: args.rows.map_or(0, usize::from),
        read_seconds: started.elapsed().as_secs_f64(),
    };
    let bar = audit_progress_bar("{spinner} {msg}", None);
    let report = audit(&table, &question, &|step| bar.show_step(step)).context("the audit failed")?;
    bar.0.finish_and_clear();
    let mut report = AuditReport { likely_subject, unreadable, absent, arrays, unknown_cells, ..report };
    report.notes.extend(reading_notes(&report));
    report.notes.extend(schema.and_then(|schema| profiles_note(&report, schema)));
    report.notes.extend(long_rows.map(|long| RunFinding::LongRows { long }.to_string()));
    Ok(report)
}

fn reading_notes(report: &AuditReport) -> Vec<String> {
    let mut notes = Vec::new();
    let skipped: u64 = report.unreadable.values().sum();
    if skipped > 0 {
        notes.push(format!("{} could not be read and are not judged", text_format::counted(skipped, "record")));
    }
    if report.without_subject > 0 {
        let records = text_format::counted(report.without_subject, "record");
        notes.push(format!("{records} without a subject are not judged"));
    }
    if report.unknown_cells > 0 {
        let cells = text_format::counted(report.unknown_cells, "cell");
        notes.push(format!("{cells} of columns that are not in the schema are not judged"));
    }
    if !report.absent.is_empty() {
        let columns = text_format::counted(report.absent.len() as u64, "column");
        notes.push(format!("{columns} of the schema are in no record: {}", report.absent.join(", ")));
    }
    notes
}

/// Records lack attributes of profiles, so the measured risk is too low.
fn profiles_note(report: &AuditReport, schema: &Schema) -> Option<String> {
    let joined = schema.joined_attributes().into_iter().map(|a| schema.attributes[a].name.as_str());
    let left_out: Vec<&str> = joined.filter(|name| report.absent.iter().any(|absent| absent == name)).collect();
    let names = left_out.join(", ");
    (!left_out.is_empty()).then(|| {
        format!("{names}: from profiles ([[join]]), which an audit does not join: not judged (audit a file that contains them, too)")
    })
}

fn file_sha256(path: &Path) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn load_audit_schema(path: &Path) -> Result<Schema, Failure> {
    Schema::load(path).map_err(|error| {
        let own = |p: throng_core::values::schema::SchemaProblem| ConfigProblem {
            file: p.file,
            key: p.place,
            message: p.message,
            remedy: "correct the record schema".to_owned(),
        };
        Failure::Problems(error.problems.into_iter().map(own).collect())
    })
}

impl AuditArgs {
    /// Digest of a single input file, and the options.
    fn page_origin(&self) -> Result<page::PageOrigin, Failure> {
        let is_file = self.more.is_empty() && std::fs::metadata(&self.input).is_ok_and(|about| about.is_file());
        let sha256 = is_file.then(|| file_sha256(&self.input)).transpose();
        let sha256 = sha256.with_context(|| format!("cannot read \"{}\" again", self.input.display()))?;
        let name =
            |path: &PathBuf| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let spelled = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
        let flag = |set: bool| set.then(String::new);
        let options = [
            ("--k", Some(self.k.to_string())),
            ("--subject", self.subject.clone()),
            ("--schema", self.schema.as_ref().map(name)),
            ("--columns", self.columns.as_ref().map(|columns| columns.join(","))),
            ("--singletons", Some(spelled(&self.singletons))),
            ("--strategy", Some(spelled(&self.strategy))),
            ("--backend", Some(spelled(&self.backend))),
            ("--identifier-cardinality", Some(self.identifier_cardinality.to_string())),
            ("--max-seconds", self.max_seconds.map(|time| time.as_secs_f64().to_string())),
            ("--format", self.format.as_ref().map(|format| spelled(format))),
            ("--separator", self.separator.map(|byte| char::from(byte).escape_default().to_string())),
            ("--skip-unreadable", flag(self.skip_unreadable)),
            ("--show-values", flag(self.show_values)),
            ("--link", self.link.as_ref().map(name)),
            ("--rows", self.rows.map(|rows| rows.to_string())),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Ok(page::PageOrigin { sha256, options: given.collect() })
    }

    /// Counts the records in `records`.
    fn read(
        &self,
        schema: Option<&Schema>,
        columns: Option<&[String]>,
        records: &AtomicU64,
    ) -> Result<LoadedTable, Failure> {
        let format = self.format().map_err(table_failure)?;
        let length = match format {
            FileFormat::Parquet => input_paths(&self.input, &self.more).map(declared_row_count).sum(),
            _ if self.more.is_empty() => plain_length(&self.input),
            _ => None,
        };
        let request = TableRequest {
            path: &self.input,
            more: &self.more,
            format,
            schema,
            selects: true,
            columns,
            limits: DecodeLimits::for_whole_files(),
            max_columns: MAX_AUDIT_COLUMNS,
            max_bytes: self.memory,
            max_records: None,
            skip_unreadable: self.skip_unreadable,
        };
        let template = if length.is_some() { "reading {bar:30} {msg}" } else { "{spinner} reading {msg}" };
        let bar = audit_progress_bar(template, length);
        let tell = &mut |at: ReadProgress| {
            records.store(at.records, Ordering::Relaxed);
            bar.0.set_position(if format == FileFormat::Parquet { at.records } else { at.bytes });
            bar.0.set_message(text_format::counted(at.records, "record"));
        };
        let subject = self.subject_name(schema);
        let read = match &self.temp {
            None => table::read(&request, tell),
            Some(directory) => {
                table::read_spilling(&request, &self.spill_settings(directory, subject.as_deref()), tell)
            }
        };
        bar.0.finish_and_clear();
        read.map_err(table_failure)
    }

    fn prepare(&self, read: LoadedTable, schema: Option<&Schema>) -> Result<AuditTable, Failure> {
        let subject = self.subject_name(schema);
        let number = subject.as_ref().and_then(|name| read.columns.iter().position(|column| column.name == *name));
        if let (Some(name), None) = (&subject, number) {
            let path = self.input_name();
            let message = format!("{path} has no column \"{name}\" for the subject: check --subject and the schema");
            return Err(Failure::Usage(anyhow!(message)));
        }
        let rule = IdentifierRule::for_file(self.identifier_cardinality);
        let columns = self.collect_columns(read, number);
        let table = columns.and_then(|columns| prepare(columns, rule, self.show_values));
        Ok(table.context("cannot audit the table")?)
    }
}
