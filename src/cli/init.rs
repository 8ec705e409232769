//! `throng init`: schema, configuration and secret for records of one's own.

mod model_numbers;
mod purpose;

use super::outcome::Failure;
use super::sample::{self, Sample, SampleArgs};
use super::schema::infer::{CountedBy, name_of, propose, refuse_existing, summary, warn};
use super::text;
use super::together::Together;
use crate::config::{self, Config, Secret, is_same_file};
use crate::dataset::infer::Inferred;
use crate::io::file::{Format, is_at_rest};
use crate::start::checked::Checked;
use crate::start::forms::{event_time, missing_for_series};
use anyhow::{Context, anyhow};
use model_numbers::ModelNumbers;
use purpose::{Bucket, Purpose, suggest, too_short};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Write a schema, a configuration and a secret for records of one's own
///
/// The records named are looked at, as `throng schema infer` does, and three files are written: NAME.schema.toml to be
/// read and corrected, NAME.toml to run, NAME.secret (mode 0600) to keep. On a terminal it asks for what is not given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng init steps.csv
      asks the rest; the form of the release follows from the records
  throng init steps.csv --subject user_id --k 10 --output steps.released.ndjson --directory privacy
  throng init steps.csv --for rows
      single records instead of statistics over time
  throng init sample.ndjson --topic wearable.raw --to-topic wearable.sanitized --brokers kafka-1:9092
      the records of a topic; the sample is what the groups are chosen from, too")]
pub struct InitArgs {
    #[command(flatten)]
    sample: SampleArgs,
    /// The column that counts people (default: the likeliest, or a person each record)
    #[arg(long, value_name = "COLUMN")]
    subject: Option<String>,
    /// Every record is of another person: no column counts people
    #[arg(long, conflicts_with = "subject")]
    no_subject: bool,
    /// Purpose of the release [default: dashboards where people have many records each, with times and numbers; else rows]
    #[arg(long = "for", value_name = "PURPOSE", value_enum)]
    purpose: Option<Purpose>,
    /// The crowd: people who share all that is said of each of them [default: 5]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    k: Option<u32>,
    /// The file that the release is written to [default: NAME.released.ndjson in --directory]
    #[arg(long, value_name = "FILE", conflicts_with = "to_topic")]
    output: Option<PathBuf>,
    /// The Kafka topic whose records are released, and of which INPUT is a sample
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// The Kafka topic that the release is written to [default with --topic: TOPIC.sanitized]
    #[arg(long, value_name = "TOPIC", requires = "topic")]
    to_topic: Option<String>,
    /// Kafka bootstrap servers, comma-separated
    #[arg(long, value_name = "HOSTS", default_value = "localhost:9092", requires = "topic")]
    brokers: String,
    /// Where the three files are written [default: here]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// What the files are called [default: by the name of the input or topic]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write over files that are there; a secret that is there is kept, since a state may depend on it
    #[arg(long)]
    force: bool,
}

/// What the questions have come to.
struct Answers {
    /// None: the one that fits the records.
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
/// Bad usage; records of which nothing may be said; files that are there; what `throng check` would not accept.
pub fn run(args: &InitArgs) -> Result<(), Failure> {
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let answers = answers(args, &mut |question, default| if asks { ask(question, default) } else { Ok(None) })?;
    let at = |ending: &str| answers.directory.join(format!("{}.{ending}", answers.name));
    let (schema, config, secret) = (at("schema.toml"), at("toml"), at("secret"));
    for file in [&schema, &config, &secret] {
        if is_same_file(file, &answers.input) {
            return Err(Failure::Usage(anyhow!("{} is the input: choose another --name", file.display())));
        }
        // A state may depend on a secret that is there: it is kept.
        refuse_existing(file, args.force)?;
    }
    for path in [&answers.input, &answers.directory, &answers.output] {
        // They stand in the configuration, also in its comments.
        if path.to_str().is_none_or(|path| path.contains(char::is_control)) {
            return Err(Failure::Usage(anyhow!("{} cannot stand in a configuration: rename it", path.display())));
        }
    }
    if !is_at_rest(&answers.input) {
        let named = answers.input.display();
        return Err(Failure::Usage(anyhow!("the records are read more than once: name a file ({named} is none)")));
    }
    let sample = sample::read(&answers.sample)?;
    let counted = CountedBy { subject: answers.subject.as_deref(), no_subject: args.no_subject };
    let inferred = propose(&sample, counted, answers.k, &answers.name, args.topic.is_some())?;
    let (purpose, chosen) = match answers.purpose {
        Some(purpose) => (purpose, None),
        None => {
            let (purpose, why) = suggest(&inferred, args.topic.is_some());
            (purpose, Some(why))
        }
    };
    purpose.refuse_unsuited(&inferred)?;
    let text = configuration(args, &answers, purpose, &sample, (&schema, &secret), &inferred);
    warn(&inferred, args.no_subject);
    let named = config.display().to_string();
    let mut together = Together::default();
    let mut written = || -> Result<(), Failure> {
        together.directory(&answers.directory)?;
        // One that is there stays: digests of a state depend on it.
        together.make(&secret, &format!("{}\n", fresh_secret()?), 0o600)?;
        together.put(&schema, "the schema", &inferred.text, args.force)?;
        together.put(&config, "the configuration", &text, args.force)?;
        let read: Config = config::load(&config, std::env::vars())?;
        Checked::new(read, &named)?;
        Ok(())
    };
    if let Err(failure) = written() {
        // What does not run is not left behind, and what ran is there again.
        together.undo();
        return Err(failure);
    }
    println!("{}: {}", schema.display(), summary(&inferred));
    println!("{named}: k = {}, the release goes to {}", answers.k, destination(args, &answers, purpose));
    if let Some(chosen) = chosen {
        println!("{chosen}");
    }
    if let Some(note) = too_short(&inferred).filter(|_| purpose.is_series() && args.topic.is_none()) {
        println!("{note}");
    }
    if let Some(hint) = hint(&inferred, args.topic.is_some()).filter(|_| purpose == Purpose::Rows) {
        println!("{hint}");
        println!(
            "throng run refuses a release that represents less than half of its records (release.min_represented)"
        );
        if missing_for_series(&inferred.schema).is_none() {
            println!("statistics over time represent most of these records: throng init --for dashboards");
        }
    }
    println!("{}: the secret that keys every digest of a person; keep it, and keep it to yourself", secret.display());
    println!(
        "\nRead the schema, then:\n  throng check -c {named} --sample {}\n  throng run -c {named}",
        answers.input.display()
    );
    Ok(())
}

/// Most records of a data set with few people are thinned, since a person has one line in a batch and group: a hint for those who expect them all.
fn hint(inferred: &Inferred, is_stream: bool) -> Option<String> {
    // A file is one batch.
    let (batches, divided) = if is_stream {
        let batch = config::Batch::default().max_records as u64;
        (inferred.records.div_ceil(batch), "in a batch leaves")
    } else {
        (1, "leaves, since a file is one batch")
    };
    let lines = batches * inferred.people;
    (inferred.schema.subject.is_some() && lines * 2 < inferred.records).then(|| {
        format!(
            "of each person one line a group {divided}: at most {} lines a group of these {} records. Smaller batches \
             (batch.max_records) give more; privacy.max_lines_per_subject does too, and docs/guarantees.md says what that tells",
            text::number(lines),
            text::number(inferred.records)
        )
    })
}

/// Asks on the terminal; nothing where the answer is the default.
fn ask(question: &str, default: &str) -> Result<Option<String>, Failure> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    eprint!("{question}{shown}: ");
    let mut line = String::new();
    std::io::stderr().flush().context("cannot ask")?;
    std::io::stdin().lock().read_line(&mut line).context("no answer can be read")?;
    let answer = line.trim().to_owned();
    Ok(Some(answer).filter(|answer| !answer.is_empty()))
}

/// What was given, what is answered, or the defaults.
fn answers(
    args: &InitArgs,
    ask: &mut dyn FnMut(&str, &str) -> Result<Option<String>, Failure>,
) -> Result<Answers, Failure> {
    let input = match &args.sample.input {
        Some(input) => input.clone(),
        None => ask("Records to look at (a CSV, NDJSON or Parquet file)", "")?
            .map(PathBuf::from)
            .ok_or_else(|| Failure::Usage(anyhow!("no records are named: give a file")))?,
    };
    let subject = match &args.subject {
        Some(subject) => Some(subject.clone()),
        None if args.no_subject => None,
        None => ask("Column that counts people (empty: the likeliest)", "")?,
    };
    let k = match args.k {
        Some(k) => k,
        None => {
            let answer = ask("People in every crowd, k", "5")?;
            let k = answer.map_or(Ok(5), |answer| answer.parse::<u32>());
            k.ok().filter(|k| *k >= 2).ok_or_else(|| Failure::Usage(anyhow!("k is a number of people, 2 or more")))?
        }
    };
    let purpose = match args.purpose {
        Some(purpose) => Some(purpose),
        None => ask("Purpose: dashboards, models, rows or monitoring (empty: the one that fits the records)", "")?
            .map(|answer| Purpose::read(&answer))
            .transpose()?,
    };
    let directory = match &args.directory {
        Some(directory) => directory.clone(),
        None => ask("Directory for schema, configuration and secret", ".")?.map_or(PathBuf::new(), PathBuf::from),
    };
    let of_input = input.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let name = args.name.clone().unwrap_or_else(|| name_of(args.topic.as_deref().unwrap_or(&of_input)));
    if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
        return Err(Failure::Usage(anyhow!("--name: give a name of a file, without a directory")));
    }
    let released = directory.join(format!("{name}.released.ndjson"));
    let output = match (&args.output, &args.topic) {
        (Some(output), _) => output.clone(),
        (None, Some(_)) => released,
        (None, None) => ask("File for the release", &released.display().to_string())?.map_or(released, PathBuf::from),
    };
    let sample = SampleArgs { input: Some(input.clone()), ..args.sample.clone() };
    Ok(Answers { purpose, sample, input, subject, k, output, directory, name })
}

fn destination(args: &InitArgs, answers: &Answers, purpose: Purpose) -> String {
    if purpose == Purpose::Monitoring {
        return "nowhere: the risk is measured".to_owned();
    }
    match &args.topic {
        Some(topic) => format!("the topic {}", to_topic(args, topic)),
        None => answers.output.display().to_string(),
    }
}

fn to_topic(args: &InitArgs, topic: &str) -> String {
    args.to_topic.clone().unwrap_or_else(|| format!("{topic}.sanitized"))
}

/// The configuration as text.
fn configuration(
    args: &InitArgs,
    answers: &Answers,
    purpose: Purpose,
    sample: &Sample,
    (schema, secret): (&Path, &Path),
    inferred: &Inferred,
) -> String {
    let described = &inferred.schema;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let path = |path: &Path| quoted(&path.display().to_string());
    let mut out = format!(
        "# Written by `throng init`. Every key: docs/configuration.md.\n#   throng check -c {0} --explain   says what it does, in sentences\n#   throng check -c {0} --sample {1}   tries it on records\n",
        answers.directory.join(format!("{}.toml", answers.name)).display(),
        answers.input.display()
    );
    let format = match sample.format {
        Format::Csv { .. } => "csv",
        Format::Ndjson => "json",
        Format::Parquet => "parquet",
    };
    if let Some(topic) = &args.topic {
        out += &format!(
            "\n[source]\nkind = \"kafka\"\nbrokers = {}\ntopics = [{}]\n",
            quoted(&args.brokers),
            quoted(topic)
        );
        out += &match purpose {
            Purpose::Monitoring => "\n[sink]\nkind = \"none\"\n".to_owned(),
            _ => format!("\n[sink]\nkind = \"kafka\"\ntopic = {}\n", quoted(&to_topic(args, topic))),
        };
    } else {
        out += &format!("\n[source]\nkind = \"file\"\npath = {}\nformat = \"{format}\"\n", path(&answers.input));
        if let Format::Csv { separator } = sample.format {
            out += &format!("separator = {}\n", quoted(&char::from(separator).to_string()));
        }
        out += &match purpose {
            Purpose::Monitoring => "\n[sink]\nkind = \"none\"\n".to_owned(),
            _ => format!("\n[sink]\nkind = \"file\"\npath = {}\n", path(&answers.output)),
        };
    }
    out += &format!("\n[schema]\nfile = {}\n", path(schema));
    out += &format!("\n[privacy]\nk = {}\n", answers.k);
    if described.subject.is_some() && purpose == Purpose::Rows {
        out += "# Of each batch and group one line a person leaves, and what does not change leaves once in static_window, spread\n# over it. More tells who is who: docs/guarantees.md. With few people much stays inside: smaller batches give more lines, and\n# coarser ones.\n# max_lines_per_subject = 1\n# static_window = \"30days\"\n# max_delay = \"30days\"\n";
    }
    out += &match purpose {
        Purpose::Dashboards | Purpose::Models => {
            "\n# Statistics of cohorts of people over time. No record of a single person leaves. Every key: docs/series.md.\n\
             [release]\nfragments = false\n\n[[series]]\n".to_owned()
                + &series(inferred, sample, args.topic.is_some(), purpose)
                + &event_time(described).map_or(String::new(), |name| format!("\n[cohort]\ntime = {}\n", quoted(name)))
        }
        Purpose::Rows | Purpose::Monitoring => String::new(),
    };
    if !purpose.is_series() {
        out += "\n# Attributes leave in groups, which nothing ties together. The planner chooses them from records; fixed ones are [[group]]s,\n# and `throng check` prints those it has chosen.\n[plan]\ngroups = \"price\"\n";
        if args.topic.is_some() {
            out += &format!("prime = {} # records in the format of the topic, never released\n", path(&answers.input));
        }
    }
    out += "\n[state]\n";
    if args.topic.is_some() {
        out += &format!("path = {}\n", path(&answers.directory.join(format!("{}.state", answers.name))));
    }
    out += &format!("secret_file = {}\n", path(secret));
    out
}

/// The keys of the series.
fn series(inferred: &Inferred, sample: &Sample, is_stream: bool, purpose: Purpose) -> String {
    let bucket = Bucket::choose(inferred, is_stream);
    let numbers = (purpose == Purpose::Models).then(|| ModelNumbers::choose(inferred, &sample.table)).flatten();
    match (bucket, numbers) {
        (Bucket::Day, Some(numbers)) => format!("name = \"model\"\nevery = \"1d\"\n{}", numbers.keys("days")),
        (Bucket::Hour, Some(numbers)) => format!("name = \"model\"\nevery = \"1h\"\n{}", numbers.keys("hours")),
        (Bucket::Day, None) => "name = \"daily\"\nevery = \"1d\"\n".to_owned(),
        (Bucket::Hour, None) => {
            "name = \"hourly\"\nevery = \"1h\"\npooled = true # one person dominates a short bucket of few people\n"
                .to_owned()
        }
    }
}

/// The text of a new secret.
fn fresh_secret() -> Result<String, Failure> {
    let secret = Secret::draw().map_err(|error| Failure::Running(anyhow!("no randomness: {error}")))?;
    Ok(String::from_utf8_lossy(secret.expose()).into_owned())
}
