//! A file of records that is read as a whole, through the codec and the schema of the source.

use super::encode::encode;
use super::profiles::Profiles;
use crate::config::{Config, Format};
use crate::io::file::{FileSource, LongRows, SourceError};
use crate::io::input::InputBatch;
use crate::records::codebook::Codebook;
use crate::records::raw::Coordinate;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::records::table::Batch;
use crate::start::reading::file_format;
use crate::start::reading::{codec_limits, fields};
use crate::telemetry::Label;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Records decoded at a time.
const AT_A_TIME: usize = 10_000;

/// Why a file cannot be read as a whole. A record that does not fit refuses the file: nothing becomes a dead letter
/// here.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum WholeFileError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "no column for {} (correct `column` or `pointer` of the attribute in the schema, or take it out of the schema)",
        .0.iter().map(|a| format!("attribute {a:?}")).collect::<Vec<_>>().join(", ")
    )]
    NoColumn(Vec<String>),
    #[error(
        "{records} record(s) cannot be read or do not have the types of the schema, the first is number {first} ({why}); correct them, or take them out"
    )]
    Rejected { records: u64, first: i64, why: String },
}

/// Hears of the records of a file part by part, beside the codebooks as they are by then, and of rows that span many lines; where it breaks
/// off, no more is read.
pub type Take<'a> = &'a mut dyn FnMut(&Batch, &[Codebook], Option<LongRows>) -> ControlFlow<()>;

/// Reads `path`, and `more` behind it, in the source's format and hands their records over in parts, encoded by `books`. With `absent_as_null` an absent
/// cell is a missing one. What `profiles` bring is theirs alone, whatever the file has of it.
///
/// # Errors
/// When the file cannot be read, a column is missing, or any record does not fit the schema.
pub fn read_whole(
    config: &Config,
    (path, more, profiles): (&Path, &[PathBuf], &mut [Profiles]),
    schema: &Schema,
    books: &mut [Codebook],
    mut subjects: Option<&mut Subjects>,
    absent_as_null: bool,
    take: Take<'_>,
) -> Result<(), WholeFileError> {
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format_of_file(path);
    let mut source = FileSource::open(
        path,
        file_format(format, config.source.separator),
        &fields(schema, format == Format::Csv),
        limits,
        unknown,
    )?
    .followed_by(more)?;
    let joined: Vec<usize> = profiles.iter().flat_map(|join| join.attributes.iter().copied()).collect();
    let absent = source.absent_attributes().into_iter().filter(|a| !joined.contains(a));
    let absent: Vec<String> = absent.map(|a| schema.attributes[a].name.clone()).collect();
    if !absent.is_empty() {
        return Err(WholeFileError::NoColumn(absent));
    }
    let (mut rejected, mut first): (u64, Option<(Coordinate, String)>) = (0, None);
    let mut note = |coordinate: Coordinate, why: &dyn Fn() -> String| {
        rejected += 1;
        if first.as_ref().is_none_or(|(before, _)| coordinate.offset < before.offset) {
            first = Some((coordinate, why()));
        }
    };
    loop {
        let mut input = InputBatch::new(schema.attributes.len(), 0);
        let mut refused = Vec::new();
        let outcome = source.read(&mut input.raw, AT_A_TIME, u64::MAX, &mut refused)?;
        for (coordinate, reason) in refused {
            note(coordinate, &|| match reason.remedy() {
                "" => reason.to_string(),
                remedy => format!("{reason}: {remedy}"),
            });
        }
        joined.iter().for_each(|attribute| input.raw.clear(*attribute));
        let (mut batch, misfits) = encode(&input, schema, books, subjects.as_deref_mut(), absent_as_null);
        for misfit in misfits {
            note(misfit.coordinate, &|| match misfit.attribute.map(|a| &schema.attributes[a]) {
                Some(attribute) => format!("attribute {:?} is not of type {}", attribute.name, attribute.kind().name()),
                None => misfit.reason.as_str().to_owned(),
            });
        }
        profiles.iter_mut().for_each(|join| join.join(&mut batch, books));
        if take(&batch, books, source.take_long_rows()).is_break() || outcome.end {
            break;
        }
    }
    match first {
        Some((first, why)) => Err(WholeFileError::Rejected { records: rejected, first: first.offset + 1, why }),
        None => Ok(()),
    }
}
