//! `throng init`: writes a schema, a configuration and a secret for the user's records.

mod dependent_numbers;
mod model_numbers;
mod purpose;

use super::file_transaction::FileTransaction;
use super::outcome::Failure;
use super::progress::with_spinner;
use super::record_sample::{self, RecordSample, SampleArgs};
use super::schema::infer::{
    SubjectChoice, derive_schema_name, proposal_summary, propose_schema, refuse_existing, warn_without_subject,
};
use super::text_format;
use crate::config::{self, Config, Secret, is_same_file};
use crate::dataset::infer::InferredSchema;
use crate::io::file::{FileFormat, is_rereadable};
use crate::start::checked_config::CheckedConfig;
use crate::start::release_forms::{event_time, missing_for_series};
use anyhow::{Context, anyhow};
use dependent_numbers::{independent_signals_text, toml_text};
use model_numbers::ModelNumbers;
use purpose::{BucketLength, Purpose, short_history_note, suggest_purpose};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Write a schema, a configuration and a secret for your own records
///
/// Inspects the given records, as `throng schema infer` does, and writes three files: NAME.schema.toml to review and
/// correct, NAME.toml to run, NAME.secret (mode 0600) to keep. Asks for missing values on a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng init steps.csv
      prompts for the other settings; the records decide the form of the release
  throng init steps.csv --subject user_id --k 10 --output steps.released.ndjson --directory privacy
  throng init steps.csv --for rows
      single records instead of statistics over time
  throng init sample.ndjson --topic wearable.raw --to-topic wearable.sanitized --brokers kafka-1:9092
      the records of a topic; the groups are chosen from the sample, too")]
pub struct InitArgs {
    #[command(flatten)]
    sample: SampleArgs,
    /// Column that identifies the subject (default: the most likely column, or one subject per record)
    #[arg(long, value_name = "COLUMN")]
    subject: Option<String>,
    /// Treat every record as a different subject: no column identifies subjects
    #[arg(long, conflicts_with = "subject")]
    no_subject: bool,
    /// Purpose of the release [default: dashboards if subjects have many records each, with times and numbers;
    /// otherwise rows]
    #[arg(long = "for", value_name = "PURPOSE", value_enum)]
    purpose: Option<Purpose>,
    /// Class size: number of subjects that share all released values [default: 5]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    k: Option<u32>,
    /// File for the release [default: NAME.released.ndjson in --directory]
    #[arg(long, value_name = "FILE", conflicts_with = "to_topic")]
    output: Option<PathBuf>,
    /// Kafka topic of the records to release; INPUT is a sample of it
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// Kafka topic for the release [default with --topic: TOPIC.sanitized]
    #[arg(long, value_name = "TOPIC", requires = "topic")]
    to_topic: Option<String>,
    /// Kafka bootstrap servers, comma-separated
    #[arg(long, value_name = "HOSTS", default_value = "localhost:9092", requires = "topic")]
    brokers: String,
    /// Directory for the three files [default: the current directory]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Base name of the files [default: the name of the input or topic]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Overwrite existing files; an existing secret is kept, because a state may depend on it
    #[arg(long)]
    force: bool,
}

struct InitAnswers {
    /// `None`: the purpose that fits the records.
    purpose: Option<Purpose>,
    sample: SampleArgs,
    input: PathBuf,
    subject: Option<String>,
    k: u32,
    output: PathBuf,
    directory: PathBuf,
    name: String,
}

/// Runs `throng init`.
///
/// # Errors
/// Fails for bad usage, unsuitable records, existing files, and a configuration that `throng check` refuses.
pub fn run(args: &InitArgs) -> Result<(), Failure> {
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let answers = collect_answers(args, &mut |question, default| {
        if asks { ask_on_terminal(question, default) } else { Ok(None) }
    })?;
    let at = |ending: &str| answers.directory.join(format!("{}.{ending}", answers.name));
    let (schema, config, secret) = (at("schema.toml"), at("toml"), at("secret"));
    for file in [&schema, &config, &secret] {
        if is_same_file(file, &answers.input) {
            return Err(Failure::Usage(anyhow!("{} is the input: choose another --name", file.display())));
        }
        // An existing secret is kept even with `--force`.
        refuse_existing(file, args.force)?;
    }
    for path in [&answers.input, &answers.directory, &answers.output, &config] {
        // Paths are written into comments.
        if path.to_str().is_none_or(|path| path.contains(char::is_control)) {
            return Err(Failure::Usage(anyhow!("{} cannot be written in a configuration: rename it", path.display())));
        }
    }
    if !is_rereadable(&answers.input) {
        let named = answers.input.display();
        return Err(Failure::Usage(anyhow!(
            "{named} is not a regular file, but the records are read more than once: name a file"
        )));
    }
    let sample = record_sample::read(&answers.sample)?;
    let counted = SubjectChoice { subject: answers.subject.as_deref(), no_subject: args.no_subject };
    let inferred = propose_schema(&sample, counted, answers.k, &answers.name, args.topic.is_some())?;
    let (purpose, chosen) = match answers.purpose {
        Some(purpose) => (purpose, None),
        None => {
            let (purpose, why) = suggest_purpose(&inferred, args.topic.is_some());
            (purpose, Some(why))
        }
    };
    purpose.refuse_unsuited(&inferred)?;
    let text = with_spinner("choosing the settings", || {
        configuration_text(args, &answers, purpose, &sample, (&schema, &secret), &inferred)
    });
    warn_without_subject(&inferred, args.no_subject);
    let named = config.display().to_string();
    let mut together = FileTransaction::default();
    let mut written = || -> Result<(), Failure> {
        together.create_directory(&answers.directory)?;
        // The digests of a state depend on the secret.
        together.create_new_file(&secret, &format!("{}\n", draw_secret_text()?), 0o600)?;
        together.write_or_replace(&schema, "the schema", &inferred.text, args.force)?;
        together.write_or_replace(&config, "the configuration", &text, args.force)?;
        let read: Config = config::load(&config, std::env::vars())?;
        CheckedConfig::new(read, &named)?;
        Ok(())
    };
    if let Err(failure) = written() {
        together.roll_back();
        return Err(failure);
    }
    println!("{}: {}", schema.display(), proposal_summary(&inferred));
    println!("{named}: k = {}, {}", answers.k, describe_destination(args, &answers, purpose));
    print_hints(args, purpose, chosen.as_deref(), &inferred);
    println!("{}: the secret key of all subject digests; keep it, and keep it private", secret.display());
    println!("\nRead the schema, then:");
    if args.topic.is_some() {
        println!("  throng topics create -c {named}    # creates missing topics; `throng topics list` shows all");
    }
    println!("  throng check -c {named} --sample {}\n  throng run -c {named}", answers.input.display());
    Ok(())
}

fn print_hints(args: &InitArgs, purpose: Purpose, chosen: Option<&str>, inferred: &InferredSchema) {
    if let Some(chosen) = chosen {
        println!("{chosen}");
    }
    if let Some(note) = short_history_note(inferred).filter(|_| purpose.is_series() && args.topic.is_none()) {
        println!("{note}");
    }
    if let Some(hint) = thinning_hint(inferred, args.topic.is_some()).filter(|_| purpose == Purpose::Rows) {
        println!("{hint}");
        println!(
            "throng run refuses a release that represents less than half of its records (release.min_represented)"
        );
        if missing_for_series(&inferred.schema).is_none() {
            println!("statistics over time represent most of these records: throng init --for dashboards");
        }
    }
}

/// A subject has one line per batch and group, so most records of few subjects are thinned.
fn thinning_hint(inferred: &InferredSchema, is_stream: bool) -> Option<String> {
    // A file is one batch.
    let (batches, divided) = if is_stream {
        let batch = config::BatchConfig::default().max_records as u64;
        (inferred.records.div_ceil(batch), "in each batch")
    } else {
        (1, "(a file is one batch)")
    };
    let lines = batches * inferred.people;
    (inferred.schema.subject.is_some() && lines * 2 < inferred.records).then(|| {
        format!(
            "one line per person and group is released {divided}: at most {} lines per group of these {} records. Smaller \
             batches (batch.max_records) give more lines; so does privacy.max_lines_per_subject, at the risk described \
             in docs/guarantees.md",
            text_format::number(lines),
            text_format::number(inferred.records)
        )
    })
}

/// `None` for an empty answer.
fn ask_on_terminal(question: &str, default: &str) -> Result<Option<String>, Failure> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    eprint!("{question}{shown}: ");
    let mut line = String::new();
    std::io::stderr().flush().context("cannot write the question")?;
    std::io::stdin().lock().read_line(&mut line).context("cannot read the answer")?;
    let answer = line.trim().to_owned();
    Ok(Some(answer).filter(|answer| !answer.is_empty()))
}

fn collect_answers(
    args: &InitArgs,
    ask: &mut dyn FnMut(&str, &str) -> Result<Option<String>, Failure>,
) -> Result<InitAnswers, Failure> {
    let input = match &args.sample.input {
        Some(input) => input.clone(),
        None => ask("Input records (a CSV, NDJSON or Parquet file, or an Apple Health export)", "")?
            .map(PathBuf::from)
            .ok_or_else(|| Failure::Usage(anyhow!("no input is named: give a file with records")))?,
    };
    let subject = match &args.subject {
        Some(subject) => Some(subject.clone()),
        None if args.no_subject => None,
        None => ask("Subject column (empty: the most likely one)", "")?,
    };
    let k = match args.k {
        Some(k) => k,
        None => {
            let answer = ask("Minimum number of people per class, k", "5")?;
            let k = answer.map_or(Ok(5), |answer| answer.parse::<u32>());
            k.ok()
                .filter(|k| *k >= 2)
                .ok_or_else(|| Failure::Usage(anyhow!("k must be a number of people, 2 or more")))?
        }
    };
    let purpose = match args.purpose {
        Some(purpose) => Some(purpose),
        None => ask("Purpose: dashboards, models, rows or monitoring (empty: the one that fits the records)", "")?
            .map(|answer| Purpose::parse_purpose(&answer))
            .transpose()?,
    };
    let directory = match &args.directory {
        Some(directory) => directory.clone(),
        None => ask("Directory for schema, configuration and secret", ".")?.map_or(PathBuf::new(), PathBuf::from),
    };
    let of_input = input.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let name = args.name.clone().unwrap_or_else(|| derive_schema_name(args.topic.as_deref().unwrap_or(&of_input)));
    if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
        return Err(Failure::Usage(anyhow!("--name: give a file name without a directory")));
    }
    let released = directory.join(format!("{name}.released.ndjson"));
    let output = match (&args.output, &args.topic) {
        (Some(output), _) => output.clone(),
        (None, Some(_)) => released,
        (None, None) => ask("File for the release", &released.display().to_string())?.map_or(released, PathBuf::from),
    };
    let sample = SampleArgs { input: Some(input.clone()), ..args.sample.clone() };
    Ok(InitAnswers { purpose, sample, input, subject, k, output, directory, name })
}

fn describe_destination(args: &InitArgs, answers: &InitAnswers, purpose: Purpose) -> String {
    if purpose == Purpose::Monitoring {
        return "no release: only the risk is measured".to_owned();
    }
    match &args.topic {
        Some(topic) => format!("the release goes to the topic {}", to_topic(args, topic)),
        None => format!("the release goes to {}", answers.output.display()),
    }
}

fn to_topic(args: &InitArgs, topic: &str) -> String {
    args.to_topic.clone().unwrap_or_else(|| format!("{topic}.sanitized"))
}

fn configuration_text(
    args: &InitArgs,
    answers: &InitAnswers,
    purpose: Purpose,
    sample: &RecordSample,
    (schema, secret): (&Path, &Path),
    inferred: &InferredSchema,
) -> String {
    let described = &inferred.schema;
    let path = |path: &Path| toml_text(&path.display().to_string());
    let mut out = format!(
        "# Written by `throng init`. Every key: docs/configuration.md.\n#   throng check -c {0} --explain   explains it in sentences\n#   throng check -c {0} --sample {1}   tests it on records\n",
        answers.directory.join(format!("{}.toml", answers.name)).display(),
        answers.input.display()
    );
    let format = match sample.format {
        FileFormat::Csv { .. } => "csv",
        FileFormat::Ndjson => "json",
        FileFormat::Parquet => "parquet",
        FileFormat::AppleHealth => "apple_health",
    };
    if let Some(topic) = &args.topic {
        out += &kafka_sections(args, topic, &answers.name, purpose);
    } else {
        out += &format!("\n[source]\nkind = \"file\"\npath = {}\nformat = \"{format}\"\n", path(&answers.input));
        if let FileFormat::Csv { separator } = sample.format {
            out += &format!("separator = {}\n", toml_text(&char::from(separator).to_string()));
        }
        out += &match purpose {
            Purpose::Monitoring => "\n[sink]\nkind = \"none\"\n".to_owned(),
            _ => format!("\n[sink]\nkind = \"file\"\npath = {}\n", path(&answers.output)),
        };
    }
    out += &format!("\n[schema]\nfile = {}\n", path(schema));
    out += &format!("\n[privacy]\nk = {}\n", answers.k);
    if described.subject.is_some() && purpose == Purpose::Rows {
        out += "# Each batch releases one line per person and group. Values that do not change are released once in static_window, spread\n# over it. More lines make people easier to recognize: docs/guarantees.md. With few people, much is withheld: smaller batches\n# give more lines, and coarser ones.\n# max_lines_per_subject = 1\n# static_window = \"30days\"\n# max_delay = \"30days\"\n";
    }
    out += &match purpose {
        Purpose::Dashboards | Purpose::Models => {
            "\n# Statistics of cohorts of people over time. No record of a single person is released. Every key: docs/series.md.\n\
             [release]\nfragments = false\n\n[[series]]\n".to_owned()
                + &series_keys(inferred, sample, args.topic.is_some(), purpose)
                + &event_time(described).map_or(String::new(), |name| format!("\n[cohort]\ntime = {}\n", toml_text(name)))
        }
        Purpose::Rows | Purpose::Monitoring => String::new(),
    };
    if !purpose.is_series() {
        out += "\n# Attributes are released in groups that cannot be linked. The planner chooses the groups from records, and `throng check`\n# prints them; fixed ones are [[group]]s.\n[plan]\ngroups = \"price\"\n";
        if args.topic.is_some() {
            out += &format!("prime = {} # records in the format of the topic, never released\n", path(&answers.input));
        }
    }
    out += "\n[state]\n";
    if args.topic.is_some() {
        out += &format!("path = {}\n", path(&answers.directory.join(format!("{}.state", answers.name))));
    }
    out += &format!("secret_file = {}\n", path(secret));
    if args.topic.is_some() {
        let listen = config::TelemetryConfig::default().listen;
        out += &format!(
            "\n[telemetry]\nlisten = {} # status page and metrics; each daemon on one machine needs its own port\n",
            toml_text(&listen)
        );
    }
    out
}

/// Group and topics are named after the configuration, so that another configuration does not share them.
fn kafka_sections(args: &InitArgs, topic: &str, name: &str, purpose: Purpose) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().take(200).map(|c| if is_legal(c) { c } else { '-' }).collect();
    let sink = match purpose {
        Purpose::Monitoring => "kind = \"none\"\n".to_owned(),
        _ => format!("kind = \"kafka\"\ntopic = {}\n", toml_text(&to_topic(args, topic))),
    };
    format!(
        "\n[source]\nkind = \"kafka\"\nbrokers = {}\ntopics = [{}]\ngroup = \"throng-{name}\"\n\n[sink]\n{sink}\
         changelog_topic = \"throng-{name}.changelog\"\ndead_letter_topic = \"throng-{name}.dead-letters\"\n",
        toml_text(&args.brokers),
        toml_text(topic)
    )
}

fn series_keys(inferred: &InferredSchema, sample: &RecordSample, is_stream: bool, purpose: Purpose) -> String {
    let bucket = BucketLength::choose(inferred, is_stream);
    let numbers = (purpose == Purpose::Models).then(|| ModelNumbers::choose(inferred, &sample.table)).flatten();
    match (bucket, numbers) {
        (BucketLength::Day, Some(numbers)) => {
            format!("name = \"model\"\nevery = \"1d\"\n{}", numbers.series_keys_text("days"))
        }
        (BucketLength::Hour, Some(numbers)) => {
            format!("name = \"model\"\nevery = \"1h\"\n{}", numbers.series_keys_text("hours"))
        }
        (BucketLength::Day, None) => {
            format!("name = \"daily\"\nevery = \"1d\"\n{}", independent_signals_text(inferred, &sample.table))
        }
        (BucketLength::Hour, None) => format!(
            "name = \"hourly\"\nevery = \"1h\"\npooled = true # one person dominates a short bucket of few people\n{}",
            independent_signals_text(inferred, &sample.table)
        ),
    }
}

fn draw_secret_text() -> Result<String, Failure> {
    let secret =
        Secret::generate().map_err(|error| Failure::Running(anyhow!("cannot draw a random secret: {error}")))?;
    Ok(String::from_utf8_lossy(secret.expose()).into_owned())
}
