//! What `throng audit` is asked.

use crate::cli::outcome::Failure;
use crate::cli::written_down::{FormatArg, check_inputs, format_of, separator, size};
use crate::config;
use crate::io::file::{Format, SourceError, telling};
use crate::io::table::{TableError, named};
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_core::values::schema::Schema;
use throng_risk::identifiers::Rule;

/// What to audit and how; the command's own text is with the other commands'.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  throng audit patients.csv --k 5
      every record counts as a person of its own
  throng audit steps.ndjson --k 5 --subject user_id --html report.html
      people are counted by user_id; the report as a page to hand on
  throng audit daily.parquet --schema schemas/lifesnaps.toml --k 10 --singletons mask --json
      values typed and rounded as the daemon would; rare single values masked first
  throng audit patients.csv --k 2 --rows 20
      the twenty records that are most at risk, and by which columns
  throng audit published.csv --k 5 --link known.csv
      which of the records can be tied to people of whom known.csv says something
  throng audit big.csv.gz --k 5 --columns age,zip,sex --max-seconds 60
      some columns of a compressed file, and whatever is proved within a minute
  throng audit 'days/*.parquet' --k 5 --subject user_id
  throng audit 2024.csv 2025.csv archive/ --k 5
      several files as one
  throng audit decade/ --format parquet --k 5 --memory 3GiB --temp /var/tmp
      a directory of files that is larger than memory

Exit codes: 0 done (also when the time of the search was up: \"complete\" says so)
            1 failed while running (also when the time was up before the file was read whole)
            2 bad usage or schema · 3 the named hardware is not there")]
pub struct AuditArgs {
    /// The file, or a directory or pattern of files; CSV, NDJSON or Parquet by its extension, else by its content; "-" is standard input. gzip and Zstandard are told by how a file begins
    pub(super) input: PathBuf,
    /// Further files, directories or patterns of the same kind, read behind it as one table
    #[arg(value_name = "MORE")]
    pub(super) more: Vec<PathBuf>,
    /// Record schema: types, rounding, missing values, roles and the subject (default: every column is text)
    #[arg(long, value_name = "FILE")]
    pub(super) schema: Option<PathBuf>,
    /// How many people must share every combination of values; at least 2
    #[arg(short, long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    pub(super) k: u32,
    /// include: one rare value makes its column a quasi-identifier; mask: cells whose value alone is rarer than k become
    /// * first
    #[arg(long, value_enum, value_name = "MODE", default_value = "include")]
    pub(super) singletons: SingletonsArg,
    /// Look only at these columns; a name with a comma in double quotes, as in CSV: --columns 'age,"city, state"'
    #[arg(long, value_name = "A,B,…")]
    pub(super) columns: Option<Vec<String>>,
    /// The column that names the person behind a record; supports are then counted in people (default: the schema's)
    #[arg(long, value_name = "COLUMN")]
    pub(super) subject: Option<String>,
    /// How the search goes; all find the same
    #[arg(long, value_enum, value_name = "S", default_value = "border")]
    pub(super) strategy: StrategyArg,
    /// What counts the classes: a GPU (cuda), this machine's cores (cpu), or whichever is faster on this table (auto)
    #[arg(long, value_enum, value_name = "B", default_value = "auto")]
    pub(super) backend: BackendArg,
    /// End after so many seconds, reading included, and report what is proved by then; of a file that is not read whole by
    /// then nothing is, and that is an error
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(super) max_seconds: Option<Duration>,
    /// Threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// A column is a standalone identifier from this many different values per row on
    #[arg(long, value_name = "C", default_value_t = Rule::CARDINALITY, value_parser = share)]
    pub(super) identifier_cardinality: f64,
    /// How records are written: csv, json or parquet (default: by the extension, else by the content)
    #[arg(long, value_enum, value_name = "F")]
    pub(super) format: Option<FormatArg>,
    /// Separator of CSV fields (default: the most frequent of , ; tab | in the first line; the comma on standard input)
    #[arg(long, value_name = "C", value_parser = separator)]
    pub(super) separator: Option<u8>,
    /// Leave records out that cannot be read, and count them, instead of failing at the first
    #[arg(long)]
    pub(super) skip_unreadable: bool,
    /// Refuse a table that needs more memory than this (12 bytes a cell and its different values), or keep it in a file (--temp), and end
    /// a search that does, with what is proved by then
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = size)]
    pub(super) memory: u64,
    /// Keep a table that needs more than --memory in a file in this directory, instead of refusing it. The file has no name, holds codes
    /// and no values, and is gone however the command ends; it takes 1 to 4 bytes a cell, twice with --subject. NDJSON needs a --schema
    #[arg(long, value_name = "DIR", conflicts_with = "link")]
    pub(super) temp: Option<PathBuf>,
    /// Show values of the data: an example for each quasi-identifier, both values of each inference. Only for eyes that may see the data
    #[arg(long)]
    pub(super) show_values: bool,
    /// List the N records that are most at risk: their numbers in the input, their SUDA scores, and the smallest sets of columns
    /// that single them out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) rows: Option<u16>,
    /// Say which records can be tied to the people of FILE (CSV, NDJSON or Parquet, a row each), of whom it holds what is known: by all
    /// columns that both files have, and by which few of them
    #[arg(long, value_name = "FILE")]
    pub(super) link: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Write the report as a self-contained page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum SingletonsArg {
    Include,
    Mask,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum StrategyArg {
    Border,
    Greedy,
    Exhaustive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BackendArg {
    Auto,
    Cpu,
    Cuda,
}

/// Columns of one audit.
pub(super) const MAX_COLUMNS: usize = 1024;

/// What was asked of the file in vain is bad usage, what the file is failed while running.
pub(super) fn of_table(error: TableError) -> Failure {
    match error {
        TableError::NotInSchema { .. }
        | TableError::Source(
            SourceError::NoSuchColumn { .. }
            | SourceError::TooManyColumns { .. }
            | SourceError::ParquetOnStandardInput
            | SourceError::Separator,
        ) => Failure::Usage(error.into()),
        error => Failure::Running(error.into()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if seconds > 0.0 => Ok(duration),
        _ => Err("give a number of seconds above 0".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0).ok_or("give above 0 and at most 1".to_owned())
}

impl AuditArgs {
    /// The input as messages name it.
    pub(super) fn named(&self) -> String {
        let input = if self.input == Path::new("-") { Path::new("standard input") } else { &self.input };
        named(input, &self.more).display().to_string()
    }

    /// The columns to read: those asked for and the one that counts people.
    pub(super) fn wanted(&self, schema: Option<&Schema>) -> Result<Option<Vec<String>>, Failure> {
        let Some(columns) = &self.columns else { return Ok(None) };
        let mut wanted: Vec<String> = columns.iter().flat_map(|list| named_in(list)).collect();
        if wanted.iter().any(String::is_empty) {
            return Err(Failure::Usage(anyhow!("--columns: a name is empty; write them as A,B,C")));
        }
        wanted.extend(self.subject_name(schema));
        wanted.sort_unstable();
        wanted.dedup();
        Ok(Some(wanted))
    }

    pub(super) fn subject_name(&self, schema: Option<&Schema>) -> Option<String> {
        let of_schema = || schema.and_then(|schema| Some(schema.attributes[schema.subject?].name.clone()));
        self.subject.clone().or_else(of_schema)
    }

    /// Refuses inputs that are no one table by their names.
    pub(super) fn check_inputs(&self) -> Result<(), Failure> {
        check_inputs(&self.input, &self.more, self.temp.as_deref())?;
        // A name that tells nothing is taken for what the others are: reading it says more.
        let kind = |path: &Path| config::Format::named_by(&telling(path));
        let is_another = |path: &&PathBuf| kind(path).zip(kind(&self.input)).is_some_and(|(kind, first)| kind != first);
        match self.more.iter().find(|path| self.format.is_none() && is_another(path)) {
            None => Ok(()),
            Some(other) => Err(Failure::Usage(anyhow!(
                "{} is of another format than {} by its name; say which they are of (--format), or audit one after the other",
                other.display(),
                self.input.display()
            ))),
        }
    }

    pub(super) fn format(&self) -> Result<Format, TableError> {
        format_of(&self.input, self.format, self.separator)
    }
}

/// The names in a list written as a row of CSV is. Blanks around a name do not count, but those within quotes do.
fn named_in(list: &str) -> Vec<String> {
    let (mut places, mut quoted) = (vec![0], false);
    for (place, letter) in list.char_indices() {
        quoted ^= letter == '"';
        if letter == ',' && !quoted {
            places.push(place + 1);
        }
    }
    let ends = places.iter().skip(1).map(|next| next - 1).chain([list.len()]);
    let name = |(start, end): (&usize, usize)| {
        let bare = list[*start..end].trim();
        match bare.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inner) => inner.replace("\"\"", "\""),
            None => bare.to_owned(),
        }
    };
    places.iter().zip(ends).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn a_column_may_have_a_comma_in_its_name() {
        assert_eq!(named_in("age, zip"), ["age", "zip"]);
        assert_eq!(
            named_in("age,\"city, state\",\"the \"\"so-called\"\" name\""),
            ["age", "city, state", "the \"so-called\" name"]
        );
        assert_eq!(named_in("age, \" sex\" ,\"a \"\",\"\" b\""), ["age", " sex", "a \",\" b"], "quotes keep blanks");
        assert_eq!(named_in("age,,zip"), ["age", "", "zip"]);
        assert_eq!(named_in(""), [""]);
    }
}
