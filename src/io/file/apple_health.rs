//! Records of an Apple Health export (`export.xml`): the `<Record>` elements directly under `<HealthData>`.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::format_detection::{NO_HEALTH_DATA, describe_non_apple_health};
use super::schemaless_files::ColumnChoice;
use super::text_stream::TextStream;
use super::{FileReadSettings, NextRecord, SourceError, StopFlag};
use crate::config;
use crate::telemetry::RejectionReason;
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_formats::{DecodeLimits, FieldPath, UnknownCellPolicy, push_decoded_row};

/// The file name without directory and extension: an export does not name its person.
const PERSON: &str = "person";

/// The person, and the attributes that the DTD of the export declares for `<Record>`.
const COLUMNS: [&str; 10] =
    [PERSON, "type", "value", "unit", "startDate", "endDate", "creationDate", "sourceName", "sourceVersion", "device"];

const ROOT: &str = "HealthData";
const ROOT_START: &[u8] = b"<HealthData";
const MAX_PROLOG_BYTES: usize = 1 << 20;
const MIN_ELEMENT_LIMIT: usize = 4 << 20;

/// Returns the person of an export: `ana` for `exports/ana.xml.gz`.
pub(super) fn person_of(path: &Path) -> String {
    let path = if config::has_compressed_extension(path) { &path.with_extension("") } else { path };
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Text that fails when the parser buffers more than `limit` bytes of one element.
#[derive(Debug)]
struct ElementText {
    stream: TextStream,
    /// Bytes to return before those of the stream.
    pending: &'static [u8],
    limit: usize,
    left: usize,
}

impl Read for ElementText {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for ElementText {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.pending.is_empty() {
            return Ok(self.pending);
        }
        let (limit, left) = (self.limit, self.left);
        if left == 0 {
            return Err(invalid_data(&format!("an element or text is longer than {limit} bytes")));
        }
        let text = self.stream.fill()?;
        Ok(&text[..left.min(text.len())])
    }

    fn consume(&mut self, count: usize) {
        if self.pending.is_empty() {
            self.stream.consume(count);
        } else {
            self.pending = &self.pending[count..];
        }
        self.left = self.left.saturating_sub(count);
    }
}

/// Attribute numbers by the name of a field.
#[derive(Debug)]
struct RecordFields {
    by_name: Vec<(String, Vec<usize>)>,
    person: String,
    unknown: UnknownCellPolicy,
    max_record_bytes: usize,
}

enum RecordFault {
    Rejected(RejectionReason),
    Malformed(quick_xml::Error),
}

impl From<RejectionReason> for RecordFault {
    fn from(reason: RejectionReason) -> Self {
        Self::Rejected(reason)
    }
}

impl From<AttrError> for RecordFault {
    fn from(error: AttrError) -> Self {
        Self::Malformed(error.into())
    }
}

impl From<quick_xml::Error> for RecordFault {
    fn from(error: quick_xml::Error) -> Self {
        Self::Malformed(error)
    }
}

impl RecordFields {
    fn new(fields: &[FieldPath], unknown: UnknownCellPolicy, limits: DecodeLimits, path: &Path) -> Self {
        let mut by_name: Vec<(String, Vec<usize>)> = Vec::new();
        for (number, field) in fields.iter().enumerate() {
            let name = field.flat_column_name();
            match by_name.iter_mut().find(|(known, _)| *known == name) {
                Some((_, numbers)) => numbers.push(number),
                None => by_name.push((name, vec![number])),
            }
        }
        Self { by_name, person: person_of(path), unknown, max_record_bytes: limits.max_record_bytes }
    }

    fn numbers(&self, name: &str) -> &[usize] {
        self.by_name.iter().find(|(known, _)| known == name).map_or(&[], |(_, numbers)| numbers)
    }

    fn decode(&self, tag: &BytesStart<'_>, at: RecordPosition, into: &mut RawBatch) -> Result<(), RecordFault> {
        if tag.len() > self.max_record_bytes {
            return Err(RejectionReason::Oversized.into());
        }
        let mut unknown = 0;
        push_decoded_row(at, into, |into| self.fill(tag, into).map(|count| unknown = count))?;
        into.unknown_cells += unknown;
        Ok(())
    }

    /// Fills the last row; returns the number of attributes without a field.
    fn fill(&self, tag: &BytesStart<'_>, into: &mut RawBatch) -> Result<u64, RecordFault> {
        let mut unknown = 0;
        for &number in self.numbers(PERSON) {
            into.set(number, RawToken::Untyped(&self.person));
        }
        // The check of the library for duplicates compares each pair of attributes.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute?;
            let numbers = self.numbers(attribute.key.as_ref());
            if numbers.is_empty() {
                if self.unknown == UnknownCellPolicy::Refuse {
                    return Err(RejectionReason::UnknownAttribute.into());
                }
                unknown += 1;
                continue;
            }
            // Resolves the five predefined entities only.
            let value = attribute.normalized_value(XmlVersion::Implicit1_0)?;
            for &number in numbers {
                if !into.set(number, RawToken::Untyped(&value)) {
                    return Err(RejectionReason::DuplicateKey.into());
                }
            }
        }
        Ok(unknown)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DocumentPart {
    Prolog,
    Content,
    AfterRoot,
}

/// Records of one export, read as a stream of XML events.
#[derive(Debug)]
pub(super) struct AppleHealthRecords {
    xml: Reader<ElementText>,
    /// Current event.
    element: Vec<u8>,
    fields: RecordFields,
    part: DocumentPart,
    depth: usize,
    max_depth: usize,
    absent: Vec<usize>,
}

impl AppleHealthRecords {
    pub fn open(path: &Path, reading: &FileReadSettings) -> Result<Self, SourceError> {
        let FileReadSettings { fields, limits, unknown, stop, .. } = reading;
        Ok(Self::of(TextStream::open(path, stop)?, fields, *limits, *unknown, path))
    }

    pub fn open_schemaless(
        path: &Path,
        limits: DecodeLimits,
        columns: ColumnChoice<'_>,
    ) -> Result<(Self, Vec<String>), SourceError> {
        let names = columns.choose(path, &COLUMNS.map(str::to_owned))?;
        let fields: Vec<FieldPath> = names.iter().map(|name| FieldPath::top_level(name)).collect();
        let stream = TextStream::open(path, &StopFlag::default())?;
        Ok((Self::of(stream, &fields, limits, UnknownCellPolicy::Drop, path), names))
    }

    fn of(
        stream: TextStream,
        fields: &[FieldPath],
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
        path: &Path,
    ) -> Self {
        let limit = limits.max_record_bytes.saturating_mul(2).max(MIN_ELEMENT_LIMIT);
        let mut xml = Reader::from_reader(ElementText { stream, pending: &[], limit, left: limit });
        xml.config_mut().trim_text(true);
        let is_absent = |field: &FieldPath| !COLUMNS.contains(&field.flat_column_name().as_str());
        Self {
            xml,
            element: Vec::new(),
            fields: RecordFields::new(fields, unknown, limits, path),
            part: DocumentPart::Prolog,
            depth: 0,
            max_depth: limits.max_depth,
            absent: (0..fields.len()).filter(|&number| is_absent(&fields[number])).collect(),
        }
    }

    /// Attributes of the schema that no record has.
    pub fn absent(&self) -> &[usize] {
        &self.absent
    }

    pub fn stream(&mut self) -> &mut TextStream {
        &mut self.xml.get_mut().stream
    }

    pub fn bytes(&self) -> u64 {
        self.xml.get_ref().stream.byte
    }

    /// Reads the next element; [`NextRecord::Blank`] if it is no record.
    pub fn next(&mut self, coordinate: RecordPosition, into: &mut RawBatch) -> io::Result<NextRecord> {
        if self.part == DocumentPart::Prolog {
            if let Some(what) = self.skip_prolog()? {
                return Ok(NextRecord::Foreign(what));
            }
            self.part = DocumentPart::Content;
        }
        self.element.clear();
        let text = self.xml.get_mut();
        text.left = text.limit;
        let event = self.xml.read_event_into(&mut self.element).map_err(to_io_error)?;
        let (tag, is_open) = match event {
            Event::Start(tag) => (tag, true),
            Event::Empty(tag) => (tag, false),
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.part = DocumentPart::AfterRoot;
                }
                return Ok(NextRecord::Blank);
            }
            Event::Eof if self.part == DocumentPart::AfterRoot => return Ok(NextRecord::End),
            Event::Eof => return Err(invalid_data("the file ends before </HealthData>")),
            Event::Decl(_) | Event::DocType(_) => {
                return Err(invalid_data("a document begins inside or after another one"));
            }
            Event::Text(_) | Event::CData(_) | Event::Comment(_) | Event::PI(_) | Event::GeneralRef(_) => {
                return Ok(NextRecord::Blank);
            }
        };
        let (above, name) = (self.depth, tag.name());
        if above == 0 {
            if self.part == DocumentPart::AfterRoot {
                return Err(invalid_data("another element follows </HealthData>"));
            }
            if name.as_ref() != ROOT {
                return Ok(NextRecord::Foreign(NO_HEALTH_DATA));
            }
        }
        if above >= self.max_depth {
            return Err(invalid_data(&format!("elements are nested deeper than {}", self.max_depth)));
        }
        if is_open {
            self.depth += 1;
        } else if above == 0 {
            self.part = DocumentPart::AfterRoot;
        }
        // Records inside a <Correlation> also occur outside.
        if above != 1 || name.as_ref() != "Record" {
            return Ok(NextRecord::Blank);
        }
        match self.fields.decode(&tag, coordinate, into) {
            Ok(()) => Ok(NextRecord::Record),
            Err(RecordFault::Rejected(reason)) => Ok(NextRecord::Rejected(reason)),
            Err(RecordFault::Malformed(error)) => Err(to_io_error(error)),
        }
    }

    /// Skips the prolog without parsing it: the DTD of some iOS versions has syntax errors, and its entities are not
    /// used. Describes another format.
    fn skip_prolog(&mut self) -> io::Result<Option<&'static str>> {
        let text = self.xml.get_mut();
        if let Some(what) = describe_non_apple_health(text.stream.fill()?) {
            return Ok(Some(what));
        }
        let (mut matched, mut skipped) = (0, 0);
        while matched < ROOT_START.len() && skipped < MAX_PROLOG_BYTES {
            text.stream.stop.check()?;
            let bytes = text.stream.fill()?;
            if bytes.is_empty() {
                break;
            }
            let mut count = 0;
            while count < bytes.len() && matched < ROOT_START.len() {
                let byte = bytes[count];
                matched = if byte == ROOT_START[matched] { matched + 1 } else { usize::from(byte == ROOT_START[0]) };
                count += 1;
            }
            text.stream.consume(count);
            skipped += count;
        }
        if matched < ROOT_START.len() {
            return Ok(Some(NO_HEALTH_DATA));
        }
        text.pending = ROOT_START;
        Ok(None)
    }

    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.element.capacity()
    }
}

fn invalid_data(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} (export the data again)"))
}

/// Describes an error without content of the file.
fn to_io_error(error: quick_xml::Error) -> io::Error {
    let what = match error {
        quick_xml::Error::Io(source) => {
            return Arc::try_unwrap(source).unwrap_or_else(|source| io::Error::new(source.kind(), source.to_string()));
        }
        quick_xml::Error::Syntax(_) => "the XML is damaged, or ends inside an element",
        quick_xml::Error::IllFormed(_) => "the XML is not well-formed: start and end tags do not match",
        quick_xml::Error::InvalidAttr(_) => "the XML is not well-formed: an attribute is not name=\"value\"",
        quick_xml::Error::Encoding(_) => "the XML is not UTF-8",
        quick_xml::Error::Escape(_) => {
            "the XML has an invalid reference: only characters (&#65;) and &lt; &gt; &amp; &quot; &apos; are read"
        }
        quick_xml::Error::Namespace(_) => "the XML has an invalid namespace",
    };
    invalid_data(what)
}

#[cfg(test)]
#[path = "apple_health_tests.rs"]
mod tests;
