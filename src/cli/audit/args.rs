//! Arguments of `throng audit`.

use crate::cli::input_formats::{FormatArg, check_inputs, detect_record_format, separator_argument, size_argument};
use crate::cli::outcome::Failure;
use crate::config;
use crate::io::file::{FileFormat, SourceError, format_sample_of};
use crate::io::table::{TableReadError, named};
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_core::values::schema::Schema;
use throng_risk::identifiers::IdentifierRule;

/// Arguments of `throng audit`. The help text of the command is on its variant in the parent module.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  throng audit patients.csv --k 5
      every record counts as a separate person
  throng audit steps.ndjson --k 5 --subject user_id --html report.html
      people are counted by user_id; the report as a page to share
  throng audit daily.parquet --schema schemas/lifesnaps.toml --k 10 --singletons mask --json
      values typed and rounded as the daemon would; rare single values masked first
  throng audit patients.csv --k 2 --rows 20
      the twenty records that are most at risk, and by which columns
  throng audit published.csv --k 5 --link known.csv
      the records that can be linked to people in known.csv
  throng audit big.csv.gz --k 5 --columns age,zip,sex --max-seconds 60
      some columns of a compressed file, and the results proved within a minute
  throng audit 'days/*.parquet' --k 5 --subject user_id
  throng audit 2024.csv 2025.csv archive/ --k 5
      several files as one
  throng audit decade/ --format parquet --k 5 --memory 3GiB --temp /var/tmp
      a directory of files that is larger than memory

Exit codes: 0 done (also when the search reached its time limit: see \"complete\")
            1 failed while running (also when the time limit was reached before the whole file was read)
            2 bad usage or schema · 3 requested hardware not available")]
pub struct AuditArgs {
    /// File, directory or pattern of files; CSV, NDJSON, Parquet or Apple Health by extension, otherwise by content;
    /// "-" is standard input. gzip and Zstandard are detected from the first bytes
    pub(super) input: PathBuf,
    /// Further files, directories or patterns of the same kind, appended to the same table
    #[arg(value_name = "MORE")]
    pub(super) more: Vec<PathBuf>,
    /// Record schema: types, rounding, missing values, roles and the subject (default: every column is text)
    #[arg(long, value_name = "FILE")]
    pub(super) schema: Option<PathBuf>,
    /// Number of subjects that must share every combination of values; at least 2
    #[arg(short, long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    pub(super) k: u32,
    /// include: one rare value makes its column a quasi-identifier; mask: cells with a value rarer than k are
    /// replaced by * first
    #[arg(long, value_enum, value_name = "MODE", default_value = "include")]
    pub(super) singletons: SingletonsArg,
    /// Search only these columns; quote a name that contains a comma, as in CSV: --columns 'age,"city, state"'
    #[arg(long, value_name = "A,B,…")]
    pub(super) columns: Option<Vec<String>>,
    /// Column that identifies the subject of a record; supports then count subjects (default: the subject of the
    /// schema)
    #[arg(long, value_name = "COLUMN")]
    pub(super) subject: Option<String>,
    /// Search strategy; all strategies give the same result
    #[arg(long, value_enum, value_name = "S", default_value = "border")]
    pub(super) strategy: StrategyArg,
    /// Device that counts the classes: a GPU (cuda), the CPU cores (cpu), or the faster one for this table (auto)
    #[arg(long, value_enum, value_name = "B", default_value = "auto")]
    pub(super) backend: BackendArg,
    /// Stop after this many seconds, reading included, and report the results proved so far; stopping before the end
    /// of reading is an error
    #[arg(long, value_name = "S", value_parser = seconds_argument)]
    pub(super) max_seconds: Option<Duration>,
    /// Threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Ratio of distinct values to rows from which a column is a standalone identifier
    #[arg(long, value_name = "C", default_value_t = IdentifierRule::CARDINALITY, value_parser = cardinality_argument)]
    pub(super) identifier_cardinality: f64,
    /// Record format: csv, json, parquet or apple_health (default: by extension, otherwise by content)
    #[arg(long, value_enum, value_name = "F")]
    pub(super) format: Option<FormatArg>,
    /// Separator of CSV fields (default: the most frequent of , ; tab | in the first line; the comma on standard
    /// input)
    #[arg(long, value_name = "C", value_parser = separator_argument)]
    pub(super) separator: Option<u8>,
    /// Skip and count unreadable records, instead of failing at the first
    #[arg(long)]
    pub(super) skip_unreadable: bool,
    /// Memory limit: a larger table (12 bytes per cell, plus its distinct values) is refused or kept in a file
    /// (--temp); a larger search stops with the results proved so far
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = size_argument)]
    pub(super) memory: u64,
    /// Keep a table that exceeds --memory in a file in this directory, instead of refusing it. The file has no name,
    /// holds codes and no values, and disappears when the command ends in any way; it takes 1 to 4 bytes per cell,
    /// twice that with --subject. NDJSON needs a --schema
    #[arg(long, value_name = "DIR", conflicts_with = "link")]
    pub(super) temp: Option<PathBuf>,
    /// Show values of the data: an example for each quasi-identifier, both values of each inference. Use only if all
    /// readers may see the data
    #[arg(long)]
    pub(super) show_values: bool,
    /// List the N records at highest risk: their numbers in the input, their SUDA scores, and the smallest sets of
    /// columns that single them out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) rows: Option<u16>,
    /// Link records to the known subjects in FILE (CSV, NDJSON or Parquet, one row per subject): by all columns that
    /// both files have, and by the small sets of them that link most
    #[arg(long, value_name = "FILE")]
    pub(super) link: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Write the report as a self-contained HTML page
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

pub(super) const MAX_AUDIT_COLUMNS: usize = 1024;

/// An unsuitable request is a usage error, a defective file a runtime error.
pub(super) fn table_failure(error: TableReadError) -> Failure {
    match error {
        TableReadError::NotInSchema { .. }
        | TableReadError::Source(
            SourceError::NoSuchColumn { .. }
            | SourceError::TooManyColumns { .. }
            | SourceError::ParquetOnStandardInput
            | SourceError::Separator,
        ) => Failure::Usage(error.into()),
        error => Failure::Running(error.into()),
    }
}

fn seconds_argument(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if seconds > 0.0 => Ok(duration),
        _ => Err("give a number of seconds above 0".to_owned()),
    }
}

fn cardinality_argument(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or("give a number above 0 and at most 1".to_owned())
}

impl AuditArgs {
    pub(super) fn input_name(&self) -> String {
        let input = if self.input == Path::new("-") { Path::new("standard input") } else { &self.input };
        named(input, &self.more).display().to_string()
    }

    /// The requested columns and the subject.
    pub(super) fn columns_to_read(&self, schema: Option<&Schema>) -> Result<Option<Vec<String>>, Failure> {
        let Some(columns) = &self.columns else { return Ok(None) };
        let mut wanted: Vec<String> = columns.iter().flat_map(|list| split_column_names(list)).collect();
        if wanted.iter().any(String::is_empty) {
            return Err(Failure::Usage(anyhow!("--columns: empty column name (write them as A,B,C)")));
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

    /// Different formats do not form one table.
    pub(super) fn check_inputs(&self) -> Result<(), Failure> {
        check_inputs(&self.input, &self.more, self.temp.as_deref())?;
        // Reading detects the format of other names.
        let kind = |path: &Path| config::RecordFormat::from_known_extension(&format_sample_of(path));
        let is_another = |path: &&PathBuf| kind(path).zip(kind(&self.input)).is_some_and(|(kind, first)| kind != first);
        match self.more.iter().find(|path| self.format.is_none() && is_another(path)) {
            None => Ok(()),
            Some(other) => Err(Failure::Usage(anyhow!(
                "{} and {} have different formats by their names: give --format, or audit them separately",
                other.display(),
                self.input.display()
            ))),
        }
    }

    pub(super) fn format(&self) -> Result<FileFormat, TableReadError> {
        detect_record_format(&self.input, self.format, self.separator)
    }
}

/// Splits like a CSV row. Blanks remain only within quotes.
fn split_column_names(list: &str) -> Vec<String> {
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
    use super::split_column_names;

    #[test]
    fn quoted_column_name_may_contain_comma() {
        assert_eq!(split_column_names("age, zip"), ["age", "zip"]);
        assert_eq!(
            split_column_names("age,\"city, state\",\"the \"\"so-called\"\" name\""),
            ["age", "city, state", "the \"so-called\" name"]
        );
        assert_eq!(
            split_column_names("age, \" sex\" ,\"a \"\",\"\" b\""),
            ["age", " sex", "a \",\" b"],
            "quotes keep blanks"
        );
        assert_eq!(split_column_names("age,,zip"), ["age", "", "zip"]);
        assert_eq!(split_column_names(""), [""]);
    }
}
