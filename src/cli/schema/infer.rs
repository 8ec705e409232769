//! `throng schema infer`.

use crate::cli::outcome::Failure;
use crate::cli::sample::{self, Sample, SampleArgs};
use crate::cli::text;
use crate::cli::written::{refuse_overwriting, unwritable};
use crate::config::{self, Config, Used};
use crate::dataset::infer::{Asked, InferError, Inferred, infer};
use crate::io::file::{Format, whole};
use anyhow::anyhow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_core::values::schema::{Role, Schema};

/// Propose a record schema for records that nobody has described
///
/// Types, formats of dates, missing spellings, rounding, hierarchies and roles, each with what speaks for it as a comment.
/// It is a proposal: read it before you use it. What may identify becomes an identifier, which never leaves. Of the data
/// only names of columns, figures, and labels that at least k people share stand in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng schema infer steps.csv -o schemas/steps.toml
  throng schema infer records.ndjson --subject user_id --records 50000
  throng schema infer --topic wearable.raw --brokers kafka-1:9092 --records 20000
      JSON values, and keys that are texts
  throng schema infer -c throng.toml -o schemas/heart-rate.toml
      the topics of a configuration, in its formats and by its registry; its schema need not be there yet")]
pub struct InferArgs {
    #[command(flatten)]
    sample: SampleArgs,
    /// A Kafka topic to look at instead of a file: JSON values, keys as text. Nothing is consumed for anybody
    #[arg(long, value_name = "TOPIC", conflicts_with_all = ["input", "format", "separator"])]
    topic: Option<String>,
    /// Kafka bootstrap servers, comma-separated
    #[arg(long, value_name = "HOSTS", default_value = "localhost:9092", requires = "topic")]
    brokers: String,
    /// A configuration whose topics to look at: Avro, keys that are no texts, registries, secured brokers
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["input", "format", "separator", "topic"])]
    config: Option<PathBuf>,
    /// The column that counts people (default: the likeliest, or a person each record)
    #[arg(long, value_name = "COLUMN")]
    subject: Option<String>,
    /// Every record is of another person: no column counts people
    #[arg(long, conflicts_with = "subject")]
    no_subject: bool,
    /// The crowd: fewer people than this are told nothing of
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    k: u32,
    /// What the schema is called (default: by the name of the input)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write it to a file, and not to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

/// Runs `throng schema infer`.
///
/// # Errors
/// Bad usage; records that cannot be read, or of which nothing may be said; a file that is there.
pub fn run(args: &InferArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        if let Some(input) = &args.sample.input {
            refuse_overwriting(&[Used::file("--output", output)], &[Used::file("the input", input)])?;
        }
        refuse_existing(output, args.force)?;
    }
    let sample = sample(args)?;
    let name = args.name.clone().unwrap_or_else(|| name_of(&sample.named));
    let endless = args.topic.is_some() || args.config.is_some();
    let counted = CountedBy { subject: args.subject.as_deref(), no_subject: args.no_subject };
    let inferred = propose(&sample, counted, args.k, &name, endless)?;
    warn(&inferred, args.no_subject);
    match &args.output {
        Some(output) => {
            whole::write(output, inferred.text.as_bytes()).map_err(|error| unwritable("the schema", output, error))?;
            eprintln!("{}: {}", output.display(), summary(&inferred));
        }
        None => match std::io::stdout().write_all(inferred.text.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => {
                written.map_err(|error| Failure::Running(error.into()))?;
                eprintln!("{}", summary(&inferred));
            }
        },
    }
    Ok(())
}

fn sample(args: &InferArgs) -> Result<Sample, Failure> {
    match (&args.config, &args.topic) {
        (Some(file), _) => {
            let config = config::load(file, std::env::vars())?;
            sample::read_topics(&config, &file.display().to_string(), args.sample.records)
        }
        (None, Some(topic)) => {
            let mut config = Config::default();
            config.source.brokers.clone_from(&args.brokers);
            config.source.topics = vec![topic.clone()];
            sample::read_topics(&config, "--topic", args.sample.records)
        }
        (None, None) => sample::read(&args.sample),
    }
}

/// Refuses to write over what is there.
pub fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    if !force && std::fs::symlink_metadata(path).is_ok_and(|found| !is_device(&found)) {
        return Err(Failure::Usage(anyhow!("{} is there already: name another file, or --force", path.display())));
    }
    Ok(())
}

fn is_device(found: &std::fs::Metadata) -> bool {
    !(found.is_file() || found.is_dir() || found.is_symlink())
}

/// Time for the search of quasi-identifiers.
const EFFORT: Duration = Duration::from_secs(10);

/// How people are counted.
#[derive(Clone, Copy, Debug)]
pub struct CountedBy<'a> {
    /// The column that was named.
    pub subject: Option<&'a str>,
    /// Every record is of another person.
    pub no_subject: bool,
}

/// The schema of a sample.
pub fn propose(sample: &Sample, by: CountedBy<'_>, k: u32, name: &str, endless: bool) -> Result<Inferred, Failure> {
    let asked = Asked {
        k: u64::from(k),
        subject: by.subject,
        no_subject: by.no_subject,
        name,
        source: &sample.named,
        header: matches!(sample.format, Format::Csv { .. }),
        keys: sample.format == Format::Ndjson,
        endless,
        effort: EFFORT,
    };
    infer(&sample.table, &asked).map_err(|error| match error {
        InferError::Unsound(_) => Failure::Running(error.into()),
        error => Failure::Usage(anyhow::Error::from(error).context(sample.named.clone())),
    })
}

/// A name for a schema, by that of its input.
pub fn name_of(named: &str) -> String {
    let stem = named.split('.').next().unwrap_or_default();
    let plain: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let plain = plain.trim_matches('-').to_owned();
    if plain.is_empty() { "records".to_owned() } else { plain }
}

/// What was proposed, in a line.
pub fn summary(inferred: &Inferred) -> String {
    let of = |schema: &Schema, role: Role| schema.attributes.iter().filter(|a| a.role == role).count();
    let roles = [Role::Subject, Role::Identifier, Role::Quasi, Role::Time, Role::Sensitive];
    let counts = roles.map(|role| (role.name(), of(&inferred.schema, role)));
    let counts: Vec<String> =
        counts.iter().filter(|(_, count)| *count > 0).map(|(role, count)| format!("{count} {role}")).collect();
    let records = text::counted(inferred.records, "record");
    let whose = match inferred.schema.subject {
        Some(_) => format!("{records} of {} people", text::number(inferred.people)),
        None => records,
    };
    format!("a proposal from {whose}: {}; read it before you use it", counts.join(", "))
}

/// Warns on standard error that records are counted in place of people, unless the user has declared it.
pub fn warn(inferred: &Inferred, no_subject: bool) {
    if inferred.schema.subject.is_none() && !no_subject {
        eprintln!(
            "warning: no column names people: every record counts as a person of its own, and somebody with many records is a crowd; where one does, give it (--subject COLUMN)"
        );
    }
}
