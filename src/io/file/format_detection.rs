//! Detection of other formats by the first bytes of a file.

use serde::de::IgnoredAny;

use super::FileFormat;
use super::separator::{most_frequent, separator_line};

/// Signatures with a remedy. Printable letters alone do not suffice: they may be a column name.
const SIGNATURES: [(&[u8], &str); 15] = [
    (b"\x1f\x8b", "gzip data inside a compressed file: decompress it once (gunzip)"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook: save its sheet as CSV (UTF-8)"),
    (
        b"Obj\x01",
        "an Avro container file: convert its records to NDJSON (java -jar avro-tools.jar tojson FILE) or Parquet",
    ),
    (b"ARROW1\0\0", "an Arrow (Feather) file: convert it to Parquet"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file: export its table as CSV or Parquet"),
    (b"$FL2@(#)", "an SPSS file: save its table as CSV"),
    (b"$FL3@(#)", "an SPSS file: save its table as CSV"),
    (b"<stata_dta>", "a Stata file: save its table as CSV (export delimited)"),
    (b"HEADER RECORD*******LIBRARY HEADER RECORD", "a SAS transport file: export its table as CSV (PROC EXPORT)"),
    (b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60", "a SAS data set: export its table as CSV (PROC EXPORT)"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data inside a compressed file: decompress it once (zstd -d)"),
    (b"\xfd7zXZ\x00", "compressed with xz: decompress it first (unxz)"),
    (b"\xff\xfe", "UTF-16 text: convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)"),
    (b"\xfe\xff", "UTF-16 text: convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)"),
    (b"SQLite format 3\x00", "a SQLite database: export the table as CSV first"),
];

const WORKBOOK_PARTS: [&[u8]; 5] = [
    b"[Content_Types].xml",
    b"docProps/",
    b"xl/",
    b"_rels/.rels",
    b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
];

/// The name of its first part follows after 30 bytes.
fn describe_archive(start: &[u8]) -> Option<&'static str> {
    let names = start.strip_prefix(b"PK\x03\x04")?.get(26..).unwrap_or_default();
    Some(if WORKBOOK_PARTS.iter().any(|sheet| names.starts_with(sheet)) {
        "a workbook (Excel, LibreOffice): save its sheet as CSV (UTF-8)"
    } else {
        "a zip archive: unpack it first (unzip)"
    })
}

fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}

/// Format number, byte order, 1, 0.
fn is_old_stata(start: &[u8]) -> bool {
    matches!(start, [105 | 108 | 110..=115, 1 | 2, 1, 0, ..])
}

const HTML_TAGS: [&[u8]; 7] = [b"<!doctype html", b"<html", b"<head>", b"<body", b"<table", b"<div", b"<style"];

/// Only the document type or the root shows the application.
fn is_apple_health(start: &[u8]) -> bool {
    let has = |text: &[u8]| start.windows(text.len()).any(|window| window == text);
    start.trim_ascii_start().starts_with(b"<") && (has(b"<!DOCTYPE HealthData") || has(b"<HealthData"))
}

/// A record never starts with `<`.
fn describe_markup(start: &[u8]) -> Option<&'static str> {
    let text = start.trim_ascii_start();
    let begins = |with: &[u8]| text.len() >= with.len() && text[..with.len()].eq_ignore_ascii_case(with);
    if HTML_TAGS.into_iter().any(begins) {
        Some("an HTML page: save its table as CSV")
    } else if is_apple_health(start) {
        Some("an Apple Health export (XML): set the format to apple_health")
    } else if begins(b"<?xml") || begins(b"<!doctype") {
        Some("XML, but not an Apple Health export: convert its records to NDJSON first")
    } else {
        None
    }
}

/// Block start, and end marker of an empty file.
const BZIP2_BLOCKS: [&[u8]; 2] = [b"1AY&SY", b"\x17rE8P\x90"];

fn is_bzip2(start: &[u8]) -> bool {
    let block = start.strip_prefix(b"BZh").and_then(|rest| rest.split_first());
    block.is_some_and(|(digit, rest)| {
        matches!(digit, b'1'..=b'9') && BZIP2_BLOCKS.iter().any(|block| rest.starts_with(block))
    })
}

const PARQUET_CHECK_BYTES: usize = 64;

fn is_parquet(start: &[u8]) -> bool {
    let binary = |byte: &u8| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127);
    start.strip_prefix(b"PAR1").is_some_and(|rest| rest.iter().take(PARQUET_CHECK_BYTES).any(binary))
}

pub(super) fn describe_non_text(start: &[u8]) -> Option<&'static str> {
    if let Some((_, what)) = SIGNATURES.iter().find(|(beginning, _)| start.starts_with(beginning)) {
        return Some(what);
    }
    if let Some(what) = describe_archive(start).or_else(|| describe_markup(start)) {
        return Some(what);
    }
    if is_tar(start) {
        return Some("a tar archive: unpack it first (tar -xf)");
    }
    if is_old_stata(start) {
        return Some("a Stata file: save its table as CSV (export delimited)");
    }
    if is_bzip2(start) {
        return Some("compressed with bzip2: decompress it first (bunzip2)");
    }
    if is_parquet(start) {
        return Some("a Parquet file: set the format to parquet");
    }
    // UTF-16 without a byte order mark.
    let zeros = |places: [usize; 2]| places.iter().all(|&place| start.get(place) == Some(&0));
    let letters =
        |places: [usize; 2]| places.iter().all(|&place| start.get(place).is_some_and(|b| (b' '..=b'~').contains(b)));
    let wide = zeros([1, 3]) && letters([0, 2]) || zeros([0, 2]) && letters([1, 3]);
    wide.then_some("UTF-16 text: convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)")
}

pub(super) fn describe_non_ndjson(start: &[u8]) -> Option<&'static str> {
    if let Some(what) = describe_non_text(start) {
        return Some(what);
    }
    let text = start.trim_ascii_start();
    let (first, more) = match text.iter().position(|b| *b == b'\n') {
        Some(end) => (text[..end].trim_ascii_end(), !text[end..].trim_ascii_start().is_empty()),
        None => (text, false),
    };
    let after = |open: &[u8]| first.strip_prefix(open).map(<[u8]>::trim_ascii_start);
    match (after(b"["), after(b"{")) {
        (Some([]), _) if more => Some("one JSON array: write one record per line (jq -c '.[]')"),
        (Some([b'{', ..]), _) => Some("one JSON array: write one record per line (jq -c '.[]')"),
        (_, Some([])) if more => {
            Some("pretty-printed JSON with records on several lines: write one record per line (jq -c .)")
        }
        _ if is_table(first) => Some("apparently a CSV table, not JSON: set the format to csv"),
        _ => None,
    }
}

fn is_table(line: &[u8]) -> bool {
    // A header starts with a letter, possibly quoted.
    let first = line.iter().find(|byte| **byte != b'"');
    let is_name = first.is_some_and(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii() || *byte == b'_');
    let is_broken_json = !is_name || line.iter().any(|byte| b"{}[]:".contains(byte));
    let separated = line.iter().any(|byte| b",;\t|".contains(byte));
    !is_broken_json
        && separated
        && std::str::from_utf8(line).is_ok_and(|line| serde_json::from_str::<IgnoredAny>(line).is_err())
}

pub(super) fn format_of(start: &[u8]) -> FileFormat {
    if is_parquet(start) {
        return FileFormat::Parquet;
    }
    if is_apple_health(start) {
        return FileFormat::AppleHealth;
    }
    let is_json = matches!(start.trim_ascii_start().first(), None | Some(b'{' | b'['));
    if is_json || describe_non_text(start).is_some() {
        return FileFormat::Ndjson;
    }
    let end = start.iter().position(|byte| *byte == b'\n').unwrap_or(start.len());
    let line = &start[..end];
    FileFormat::Csv { separator: separator_line(start).0.unwrap_or_else(|| most_frequent(line)) }
}

pub(super) fn describe_non_csv(start: &[u8]) -> Option<&'static str> {
    let text = start.trim_ascii_start();
    let json =
        text.starts_with(b"{\"") || text.starts_with(b"[{") || text.starts_with(b"{\n") || text.starts_with(b"[\n");
    describe_non_text(start).or_else(|| json.then_some("JSON, not CSV: set the format to ndjson (one record per line)"))
}

pub(super) const NO_HEALTH_DATA: &str =
    "not an Apple Health export, whose element <HealthData> is missing: name the file export.xml, or set the format";

/// Text before the root is the prolog.
pub(super) fn describe_non_apple_health(start: &[u8]) -> Option<&'static str> {
    let is_utf16 = start.iter().take(4).any(|byte| *byte == 0);
    if start.trim_ascii_start().starts_with(b"<") && !is_utf16 {
        return None;
    }
    describe_non_text(start).or(Some(NO_HEALTH_DATA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_by_content() {
        let csv = |separator| FileFormat::Csv { separator };
        for (start, format) in [
            (b"id;age\n1;30\n".as_slice(), csv(b';')),
            (b"id\tage\r\n", csv(b'\t')),
            (b"sep=|\na|b\n", csv(b'|')),
            (b"alone\n", csv(b',')),
            (b"{\"a\":1}\n", FileFormat::Ndjson),
            (b"\n[{", FileFormat::Ndjson),
            (b"PAR1\x15\x04", FileFormat::Parquet),
            (b"<?xml version=\"1.0\"?>\n<!DOCTYPE HealthData [", FileFormat::AppleHealth),
            (b"<HealthData locale=\"en_GB\">", FileFormat::AppleHealth),
            (b"<?xml version=\"1.0\"?>\n<Bundle>", FileFormat::Ndjson),
            (b"", FileFormat::Ndjson),
            (b"PK\x03\x04", FileFormat::Ndjson),
        ] {
            assert_eq!(format_of(start), format, "{}", String::from_utf8_lossy(start));
        }
    }

    #[test]
    fn other_formats_are_described() {
        let mut tar = b"export.csv".to_vec();
        tar.resize(257, 0);
        tar.extend(b"ustar  \0");
        for (start, says) in [
            (tar.as_slice(), "tar archive"),
            (b"\x72\x02\x01\0\x08\0", "Stata"),
            (b"\x71\x01\x01\0", "Stata"),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60\xb3\x14", "SAS"),
            (b"<table border=\"1\" class=\"dataframe\">\n", "HTML"),
            (b" <HTML><body>", "HTML"),
            (b"\x1f\x8b\x08\0", "gzip"),
            (b"PK\x03\x04\x14", "zip"),
            (b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml", "workbook"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "workbook"),
            (b"Obj\x01\x04\x14avro.codec", "Avro"),
            (b"<?xml version=\"1.0\"?>\n<!DOCTYPE HealthData [", "set the format to apple_health"),
            (b"<?xml version=\"1.0\"?>\n<Bundle>", "not an Apple Health export"),
            (b"\n<!DOCTYPE html>", "HTML"),
            (b"id,age\n1,30\n", "set the format to csv"),
            (b"name;age\n", "set the format to csv"),
            (b"\x28\xb5\x2f\xfd", "Zstandard"),
            (b"PAR1\x15", "Parquet"),
            (b"\xff\xfe{\0\"\0", "UTF-16"),
            (b"{\0\"\0a\0", "UTF-16"),
            (b"\0{\0\"", "UTF-16"),
            (b"[{\"a\":1},\n{\"a\":2}]", "jq -c '.[]'"),
            (b"[\n  {\n", "jq -c '.[]'"),
            (b"{\n  \"a\": 1\n}\n", "jq -c ."),
            (b"\n{ \r\n\"a\": 1}", "jq -c ."),
        ] {
            assert!(
                describe_non_ndjson(start).is_some_and(|what| what.contains(says)),
                "{says}: {:?}",
                describe_non_ndjson(start)
            );
        }
        for start in [b"".as_slice(), b"{}", b"{\"a\":1}\n", b"{\n", b"[1]\n[2]\n", b"null", b"B", b"\0\0\0\0"] {
            assert_eq!(describe_non_ndjson(start), None, "{}", String::from_utf8_lossy(start));
        }
        assert!(describe_non_csv(b"{\"a\":1}\n").is_some_and(|what| what.contains("JSON")));
        assert!(describe_non_csv(b"<?xml version").is_some_and(|what| what.contains("XML")));
        assert!(describe_non_csv(b"Obj\x01\x02").is_some_and(|what| what.contains("Avro")));
        assert!(describe_non_csv(b"PAR1\x15\x04").is_some_and(|what| what.contains("Parquet")));
        assert!(describe_non_csv(b"BZh91AY&SY\xd8").is_some_and(|what| what.contains("bzip2")));
        assert!(describe_non_csv(b"BZh9\x17rE8P\x90").is_some_and(|what| what.contains("bzip2")), "an empty one");
        for start in [
            b"a,b\n1,2\n".as_slice(),
            b"",
            b"alone\n",
            b"<DATE>,<TIME>,<OPEN>\n",
            b"rate\n1\n",
            b"{weird},b\n",
            b"PAR1",
            b"PAR1,age\r\n1,\t2\nPAR1",
            b"BZh",
            b"BZh9,age\n",
            b"BZhA1AY&SY",
        ] {
            assert_eq!(describe_non_csv(start), None, "{}", String::from_utf8_lossy(start));
        }
    }
}
