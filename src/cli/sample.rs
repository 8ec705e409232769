//! Records that somebody names to learn from: the first ones of a file, of standard input or of a topic.

use super::outcome::Failure;
use super::progress::spinner;
use super::text;
use super::written_down::{FormatArg, format_of, separator};
use crate::codec::Limits;
use crate::io::file::Format;
use crate::io::table::{self, ReadProgress, Request, WholeTable};
use anyhow::anyhow;
use std::path::{Path, PathBuf};

/// Columns of one sample.
const MAX_COLUMNS: usize = 4096;
/// Memory for a sample.
const MAX_BYTES: u64 = 2 << 30;

/// Which records to look at.
#[derive(Clone, Debug, clap::Args)]
pub struct SampleArgs {
    /// A CSV, NDJSON or Parquet file; `-` reads standard input (NDJSON, or CSV with --format csv)
    #[arg(value_name = "INPUT")]
    pub input: Option<PathBuf>,
    /// How records are written: csv, json or parquet (default: by the extension)
    #[arg(long, value_enum, value_name = "F")]
    pub format: Option<FormatArg>,
    /// Separator of CSV fields (default: the most frequent of , ; tab | in the first line; the comma on standard input)
    #[arg(long, value_name = "C", value_parser = separator)]
    pub separator: Option<u8>,
    /// Look at the first N records only; at most 2 GiB are held (12 bytes a cell and the different values)
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub records: u64,
}

/// A sample, and what it is.
pub struct Sample {
    /// The records, as texts.
    pub table: WholeTable,
    /// How they are written.
    pub format: Format,
    /// What they come from, as messages name it.
    pub named: String,
}

/// Reads a sample; unreadable records are left out and counted.
///
/// # Errors
/// When nothing is named, or it cannot be read.
pub fn read(args: &SampleArgs) -> Result<Sample, Failure> {
    let Some(path) = &args.input else {
        return Err(Failure::Usage(anyhow!("no records are named: give a file")));
    };
    let format = format_of(path, args.format, args.separator).map_err(refused)?;
    let table = read_file(path, format, args.records)?;
    let named = match path.file_name() {
        _ if path == Path::new("-") => "standard input".to_owned(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    };
    Ok(Sample { table, format, named })
}

fn read_file(path: &Path, format: Format, records: u64) -> Result<WholeTable, Failure> {
    let request = Request {
        path,
        format,
        schema: None,
        columns: None,
        limits: Limits::default(),
        max_columns: MAX_COLUMNS,
        max_bytes: MAX_BYTES,
        max_records: Some(records),
        skip_unreadable: true,
    };
    let bar = spinner("{spinner} reading {msg}");
    let read = table::read(&request, &mut |at: ReadProgress| bar.set_message(text::counted(at.records, "record")));
    bar.finish_and_clear();
    read.map_err(refused)
}

/// What cannot be read as records was named in vain.
fn refused(error: table::TableError) -> Failure {
    Failure::Usage(error.into())
}
