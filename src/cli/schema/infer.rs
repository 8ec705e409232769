//! `throng schema infer`: proposes a record schema.

use crate::cli::outcome::Failure;
use crate::cli::output_checks::{refuse_overwriting, write_failure};
use crate::cli::progress::with_spinner;
use crate::cli::record_sample::{self, RecordSample, SampleArgs};
use crate::cli::text_format;
use crate::config::{self, Config, UsedFile};
use crate::dataset::infer::{InferenceError, InferenceOptions, InferredSchema, infer};
use crate::io::file::{FileFormat, atomic_file};
use anyhow::anyhow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_core::values::schema::{Role, Schema};

/// Propose a record schema for undocumented records
///
/// Proposes types, date formats, spellings of missing values, rounding, hierarchies and roles, each with its reason
/// as a comment. Review the proposal before use. A column that may identify subjects becomes an identifier, which is
/// never released. The proposal contains only column names, figures, and labels that at least k subjects share.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng schema infer steps.csv -o schemas/steps.toml
  throng schema infer records.ndjson --subject user_id --records 50000
  throng schema infer --topic wearable.raw --brokers kafka-1:9092 --records 20000
      JSON values, and keys as text
  throng schema infer -c throng.toml -o schemas/heart-rate.toml
      the topics of a configuration, with its formats and its registry; its schema need not exist yet")]
pub struct InferArgs {
    #[command(flatten)]
    sample: SampleArgs,
    /// Kafka topic to sample instead of a file: JSON values, keys as text. Commits no offsets
    #[arg(long, value_name = "TOPIC", conflicts_with_all = ["input", "format", "separator"])]
    topic: Option<String>,
    /// Kafka bootstrap servers, comma-separated
    #[arg(long, value_name = "HOSTS", default_value = "localhost:9092", requires = "topic")]
    brokers: String,
    /// Configuration with the topics to sample: supports Avro, keys other than text, registries and secured brokers
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["input", "format", "separator", "topic"])]
    config: Option<PathBuf>,
    /// Column that identifies the subject (default: the most likely column, or one subject per record)
    #[arg(long, value_name = "COLUMN")]
    subject: Option<String>,
    /// Treat every record as a different subject: no column identifies subjects
    #[arg(long, conflicts_with = "subject")]
    no_subject: bool,
    /// Class size: values of fewer subjects are not shown
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    k: u32,
    /// Name of the schema (default: the name of the input)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Output file (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Runs `throng schema infer`.
///
/// # Errors
/// Fails for bad usage, unsuitable records, and an existing file.
pub fn run(args: &InferArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        if let Some(input) = &args.sample.input {
            refuse_overwriting(&[UsedFile::file("--output", output)], &[UsedFile::file("the input", input)])?;
        }
        refuse_existing(output, args.force)?;
    }
    let sample = sample(args)?;
    let name = args.name.clone().unwrap_or_else(|| derive_schema_name(&sample.named));
    let endless = args.topic.is_some() || args.config.is_some();
    let counted = SubjectChoice { subject: args.subject.as_deref(), no_subject: args.no_subject };
    let inferred = propose_schema(&sample, counted, args.k, &name, endless)?;
    warn_without_subject(&inferred, args.no_subject);
    match &args.output {
        Some(output) => {
            atomic_file::write(output, inferred.text.as_bytes())
                .map_err(|error| write_failure("the schema", output, error))?;
            eprintln!("{}: {}", output.display(), proposal_summary(&inferred));
        }
        None => match std::io::stdout().write_all(inferred.text.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => {
                written.map_err(|error| Failure::Running(error.into()))?;
                eprintln!("{}", proposal_summary(&inferred));
            }
        },
    }
    Ok(())
}

fn sample(args: &InferArgs) -> Result<RecordSample, Failure> {
    match (&args.config, &args.topic) {
        (Some(file), _) => {
            let config = config::load(file, std::env::vars())?;
            record_sample::read_topics(&config, &file.display().to_string(), args.sample.records)
        }
        (None, Some(topic)) => {
            let mut config = Config::default();
            config.source.brokers.clone_from(&args.brokers);
            config.source.topics = vec![topic.clone()];
            record_sample::read_topics(&config, "--topic", args.sample.records)
        }
        (None, None) => record_sample::read(&args.sample),
    }
}

/// Refuses to overwrite a file.
pub fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    if !force && std::fs::symlink_metadata(path).is_ok_and(|found| !is_device(&found)) {
        return Err(Failure::Usage(anyhow!("{} already exists: name another file, or use --force", path.display())));
    }
    Ok(())
}

fn is_device(found: &std::fs::Metadata) -> bool {
    !(found.is_file() || found.is_dir() || found.is_symlink())
}

const QID_SEARCH_TIME: Duration = Duration::from_secs(10);

/// Subject of a record.
#[derive(Clone, Copy, Debug)]
pub struct SubjectChoice<'a> {
    /// Named column.
    pub subject: Option<&'a str>,
    /// Every record is a different subject.
    pub no_subject: bool,
}

/// Proposes a schema for a sample.
pub fn propose_schema(
    sample: &RecordSample,
    by: SubjectChoice<'_>,
    k: u32,
    name: &str,
    endless: bool,
) -> Result<InferredSchema, Failure> {
    let asked = InferenceOptions {
        k: u64::from(k),
        // An export has one person, whose single value would not look like a subject.
        subject: by.subject.or((sample.format == FileFormat::AppleHealth && !by.no_subject).then_some("person")),
        no_subject: by.no_subject,
        name,
        source: &sample.named,
        header: matches!(sample.format, FileFormat::Csv { .. }),
        keys: sample.format == FileFormat::Ndjson,
        more_records_follow: endless,
        effort: QID_SEARCH_TIME,
    };
    let columns = sample.table.columns.len() as u64;
    let measured = format!(
        "measuring {} in {}",
        text_format::counted(columns, "column"),
        text_format::counted(sample.table.rows, "record")
    );
    with_spinner(measured, || infer(&sample.table, &asked)).map_err(|error| match error {
        InferenceError::Unsound(_) => Failure::Running(error.into()),
        error => Failure::Usage(anyhow::Error::from(error).context(sample.named.clone())),
    })
}

/// Derives a schema name from the input.
pub fn derive_schema_name(named: &str) -> String {
    let stem = named.split('.').next().unwrap_or_default();
    let plain: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let plain = plain.trim_matches('-').to_owned();
    if plain.is_empty() { "records".to_owned() } else { plain }
}

/// Summarizes a proposal in one line.
pub fn proposal_summary(inferred: &InferredSchema) -> String {
    let of = |schema: &Schema, role: Role| schema.attributes.iter().filter(|a| a.role == role).count();
    let roles = [Role::Subject, Role::Identifier, Role::Quasi, Role::Time, Role::Sensitive];
    let counts = roles.map(|role| (role.name(), of(&inferred.schema, role)));
    let counts: Vec<String> =
        counts.iter().filter(|(_, count)| *count > 0).map(|(role, count)| format!("{count} {role}")).collect();
    let records = text_format::counted(inferred.records, "record");
    let whose = match inferred.schema.subject {
        Some(_) => format!("{records} of {} people", text_format::number(inferred.people)),
        None => records,
    };
    format!("a proposal from {whose}: {}; review it before use", counts.join(", "))
}

/// Warns that records are counted instead of subjects, unless declared.
pub fn warn_without_subject(inferred: &InferredSchema, no_subject: bool) {
    if inferred.schema.subject.is_none() && !no_subject {
        eprintln!(
            "warning: no subject column: every record counts as a separate person, and a class may be one person with many records; if a column identifies people, give it (--subject COLUMN)"
        );
    }
}
