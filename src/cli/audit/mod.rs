//! `throng audit`: which columns of a file identify people, alone and together, and whom that puts at risk.

mod args;
mod link;
mod next;
mod page;
mod progress;
mod spill;
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
use args::{BackendArg, MAX_COLUMNS, SingletonsArg, StrategyArg, of_table};
use progress::bar;
use spill::check;

use super::outcome::Failure;
use super::text;
use super::written::{refuse_overwriting, unwritable};
use super::written_down::inputs;
use crate::config::{Problem, Used};
use crate::dataset::infer::likely_subject;
use crate::io::file::{Format, plain_length, rows_announced, whole};
use crate::io::table::{self, ReadProgress, Request, WholeTable};
use crate::start::findings::Finding;
use throng_core::values::schema::Schema;
use throng_formats::Limits;
use throng_risk::audit::{AuditQuestion, AuditTable, Report, Singletons, audit, prepare};
use throng_risk::counting::{Wanted, shared_device};
use throng_risk::identifiers::Rule;
use throng_risk::qid::Strategy;

/// Runs `throng audit`.
///
/// # Errors
/// Bad usage, a schema with problems, hardware that is not there, an input that cannot be read, a page that cannot be
/// written.
pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    args.check_inputs()?;
    if args.backend == BackendArg::Cuda {
        // Before anything is read.
        shared_device().map_err(|error| {
            let message = format!("--backend cuda: {error}; use --backend cpu (the same answers)");
            Failure::Hardware(anyhow!(message))
        })?;
    }
    if let Some(path) = &args.html {
        let hierarchies = args.schema.as_deref().map(Schema::hierarchy_files).unwrap_or_default();
        let mut read: Vec<Used> = inputs(&args.input, &args.more).map(|path| Used::file("the input", path)).collect();
        read.extend(args.link.iter().map(|path| Used::file("--link", path)));
        read.extend(args.schema.iter().map(|path| Used::file("the schema", path)));
        read.extend(hierarchies.iter().map(|path| Used::file("a hierarchy of the schema", path)));
        refuse_overwriting(&[Used::file("--html", path)], &read)?;
        whole::check(path).map_err(|error| unwritable("the page", path, error))?;
    }
    check(args)?;
    let report = report(args)?;
    if let Some(path) = &args.html {
        let page = page::render(&report, &args.made_from()?, chrono::Utc::now());
        whole::write(path, page.as_bytes()).map_err(|error| unwritable("the page", path, error))?;
    }
    let out = if args.json {
        let json = serde_json::to_string(&report).context("the report cannot be written as JSON")?;
        format!("{json}\n")
    } else {
        terminal::render(&report, args.html.as_deref(), terminal::Style::of_stdout())
    };
    match std::io::stdout().write_all(out.as_bytes()) {
        // Whoever read stdout has seen enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result.context("cannot write the report")?),
    }
}

fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a cell of the table takes while it is judged; the rest of `--memory` is for the search.
const BYTES_OF_A_CELL: u64 = 12;

fn report(args: &AuditArgs) -> Result<Report, Failure> {
    let started = Instant::now();
    let threads = args.threads.map_or_else(all_cores, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads")?;
    let pool = Arc::new(pool);
    let schema = args.schema.as_deref().map(load).transpose()?;
    let columns = args.wanted(schema.as_ref())?;
    let read = match args.max_seconds {
        None => pool.install(|| args.read(schema.as_ref(), columns.as_deref(), &AtomicU64::new(0)))?,
        Some(time) => read_within(args, time.saturating_sub(started.elapsed()), &pool, schema.as_ref(), columns)?,
    };
    let link = args.link.as_deref().map(|file| pool.install(|| link::tie(args, file, schema.as_ref(), &read)));
    let link = link.transpose()?;
    let report = pool.install(|| judge(args, threads, started, schema.as_ref(), read))?;
    Ok(Report { link, ..report })
}

/// Reads the table. Where it is not read whole in time, whatever it waits for (a pipe that is silent, a disk that does not
/// answer), that is an error: of a part of a table nothing is proved.
fn read_within(
    args: &AuditArgs,
    time: Duration,
    pool: &Arc<rayon::ThreadPool>,
    schema: Option<&Schema>,
    columns: Option<Vec<String>>,
) -> Result<WholeTable, Failure> {
    let (sender, receiver) = crossbeam_channel::bounded(1);
    let records = Arc::new(AtomicU64::new(0));
    let (own, pool, schema, counted) = (args.clone(), Arc::clone(pool), schema.cloned(), Arc::clone(&records));
    // Nobody waits for this thread: the process ends without it where it never ends.
    std::thread::spawn(move || {
        let read = pool.install(|| own.read(schema.as_ref(), columns.as_deref(), &counted));
        // Nobody listens once the time is up.
        let (Ok(()) | Err(_)) = sender.send(read);
    });
    receiver.recv_timeout(time).unwrap_or_else(|error| {
        let (path, read) = (args.named(), text::counted(records.load(Ordering::Relaxed), "record"));
        let seconds = args.max_seconds.unwrap_or_default().as_secs_f64();
        Err(Failure::Running(match error {
            RecvTimeoutError::Timeout => anyhow!(
                "{path} was not read whole within {seconds} s ({read} by then), and of a part nothing is proved: give more \
                 time (--max-seconds), choose columns (--columns), or take a sample of the records"
            ),
            RecvTimeoutError::Disconnected => anyhow!("{path} was not read (this is a bug)"),
        }))
    })
}

fn judge(
    args: &AuditArgs,
    threads: usize,
    started: Instant,
    schema: Option<&Schema>,
    read: WholeTable,
) -> Result<Report, Failure> {
    let WholeTable { unreadable, absent, unknown_cells, long_rows, .. } = &read;
    let (unreadable, absent, unknown_cells, long_rows) =
        (unreadable.clone(), absent.clone(), *unknown_cells, *long_rows);
    let mut arrays: Vec<String> = read.columns.iter().filter(|c| c.arrays > 0).map(|c| c.name.clone()).collect();
    arrays.sort_unstable();
    let has_subject = args.subject_name(schema).is_some();
    let likely_subject = if has_subject { None } else { likely_subject(&read).map(str::to_owned) };
    let cells: u64 = read.columns.iter().map(|column| column.codes.len() as u64).sum();
    let memory = match read.spilled {
        None => args.memory.saturating_sub(BYTES_OF_A_CELL * cells),
        Some(_) => args.beside_values(),
    };
    let table = args.prepare(read, schema)?;
    let question = AuditQuestion {
        input: args.named(),
        k: args.k,
        singletons: match args.singletons {
            SingletonsArg::Include => Singletons::Include,
            SingletonsArg::Mask => Singletons::Mask,
        },
        strategy: match args.strategy {
            StrategyArg::Border => Strategy::Border,
            StrategyArg::Greedy => Strategy::Greedy,
            StrategyArg::Exhaustive => Strategy::Exhaustive,
        },
        threads,
        backend: match args.backend {
            BackendArg::Auto => Wanted::Auto,
            BackendArg::Cpu => Wanted::Cpu,
            BackendArg::Cuda => Wanted::Device,
        },
        budget: args.max_seconds.map(|time| time.saturating_sub(started.elapsed())),
        memory: Some(memory),
        rows: args.rows.map_or(0, usize::from),
        read_seconds: started.elapsed().as_secs_f64(),
    };
    let bar = bar("{spinner} {msg}", None);
    let report = audit(&table, &question, &|step| bar.show(step)).context("the audit failed")?;
    bar.0.finish_and_clear();
    let mut report = Report { likely_subject, unreadable, absent, arrays, unknown_cells, ..report };
    report.notes.extend(notes_of_reading(&report));
    report.notes.extend(schema.and_then(|schema| note_of_profiles(&report, schema)));
    report.notes.extend(long_rows.map(|long| Finding::LongRows { long }.to_string()));
    Ok(report)
}

fn notes_of_reading(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let skipped: u64 = report.unreadable.values().sum();
    if skipped > 0 {
        notes.push(format!("{} could not be read and are not judged", text::counted(skipped, "record")));
    }
    if report.without_subject > 0 {
        let records = text::counted(report.without_subject, "record");
        notes.push(format!("{records} without a person behind them support nobody and are not judged"));
    }
    if report.unknown_cells > 0 {
        let cells = text::counted(report.unknown_cells, "cell");
        notes.push(format!("{cells} of columns that the schema does not know are not judged"));
    }
    if !report.absent.is_empty() {
        let columns = text::counted(report.absent.len() as u64, "column");
        notes.push(format!("{columns} of the schema are in no record: {}", report.absent.join(", ")));
    }
    notes
}

/// What profiles would bring is not in the records: without it a person stands out less than in a release.
fn note_of_profiles(report: &Report, schema: &Schema) -> Option<String> {
    let joined = schema.joined().into_iter().map(|a| schema.attributes[a].name.as_str());
    let left_out: Vec<&str> = joined.filter(|name| report.absent.iter().any(|absent| absent == name)).collect();
    let names = left_out.join(", ");
    (!left_out.is_empty()).then(|| {
        format!("{names}: from profiles ([[join]]), which an audit does not join, and not judged; audit a file that has them, too")
    })
}

/// SHA-256 of a file, in hexadecimal digits.
fn digest(path: &Path) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn load(path: &Path) -> Result<Schema, Failure> {
    Schema::load(path).map_err(|error| {
        let own = |p: throng_core::values::schema::Problem| Problem {
            file: p.file,
            key: p.place,
            message: p.message,
            remedy: "correct the record schema".to_owned(),
        };
        Failure::Problems(error.problems.into_iter().map(own).collect())
    })
}

impl AuditArgs {
    /// What a page says of its making: the digest of the input, where it can be read twice, and the options.
    fn made_from(&self) -> Result<page::MadeFrom, Failure> {
        let is_file = self.more.is_empty() && std::fs::metadata(&self.input).is_ok_and(|about| about.is_file());
        let sha256 = is_file.then(|| digest(&self.input)).transpose();
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
        Ok(page::MadeFrom { sha256, options: given.collect() })
    }

    /// Reads the table; `records` says how far it is.
    fn read(
        &self,
        schema: Option<&Schema>,
        columns: Option<&[String]>,
        records: &AtomicU64,
    ) -> Result<WholeTable, Failure> {
        let format = self.format().map_err(of_table)?;
        let length = match format {
            Format::Parquet => inputs(&self.input, &self.more).map(rows_announced).sum(),
            _ if self.more.is_empty() => plain_length(&self.input),
            _ => None,
        };
        let request = Request {
            path: &self.input,
            more: &self.more,
            format,
            schema,
            columns,
            limits: Limits::of_whole_files(),
            max_columns: MAX_COLUMNS,
            max_bytes: self.memory,
            max_records: None,
            skip_unreadable: self.skip_unreadable,
        };
        let template = if length.is_some() { "reading {bar:30} {msg}" } else { "{spinner} reading {msg}" };
        let bar = bar(template, length);
        let tell = &mut |at: ReadProgress| {
            records.store(at.records, Ordering::Relaxed);
            bar.0.set_position(if format == Format::Parquet { at.records } else { at.bytes });
            bar.0.set_message(text::counted(at.records, "record"));
        };
        let subject = self.subject_name(schema);
        let read = match &self.temp {
            None => table::read(&request, tell),
            Some(directory) => table::read_spilling(&request, &self.spill(directory, subject.as_deref()), tell),
        };
        bar.0.finish_and_clear();
        read.map_err(of_table)
    }

    fn prepare(&self, read: WholeTable, schema: Option<&Schema>) -> Result<AuditTable, Failure> {
        let subject = self.subject_name(schema);
        let number = subject.as_ref().and_then(|name| read.columns.iter().position(|column| column.name == *name));
        if let (Some(name), None) = (&subject, number) {
            let path = self.named();
            let message = format!("{path} has no column \"{name}\" to count people by: check --subject and the schema");
            return Err(Failure::Usage(anyhow!(message)));
        }
        let rule = Rule::of_a_file(self.identifier_cardinality);
        let columns = self.columns_of(read, number);
        let table = columns.and_then(|columns| prepare(columns, rule, self.show_values));
        Ok(table.context("the table cannot be judged")?)
    }
}
