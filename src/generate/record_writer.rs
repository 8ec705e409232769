//! Writes cells as JSON or CSV into a byte buffer. Texts are printable ASCII without quotes and backslashes, and need
//! no escaping.

use std::io::Write as _;
use throng_core::values::moment::{DAY, date};

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLayout {
    /// JSON object with all attributes at the top level.
    Flat,
    /// Comma-separated line; null and absent are empty.
    Csv,
}

/// Cell that may be null or absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratedCell<T> {
    /// Value.
    Value(T),
    /// Written as `null`.
    Null,
    /// Without a key.
    Absent,
}

impl<T> GeneratedCell<T> {
    /// Converts the value.
    #[must_use]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> GeneratedCell<U> {
        match self {
            GeneratedCell::Value(v) => GeneratedCell::Value(f(v)),
            GeneratedCell::Null => GeneratedCell::Null,
            GeneratedCell::Absent => GeneratedCell::Absent,
        }
    }
}

/// Record being written, with fields in order.
#[derive(Debug)]
pub struct RecordLineWriter<'a> {
    out: &'a mut Vec<u8>,
    layout: RecordLayout,
    empty: bool,
}

impl<'a> RecordLineWriter<'a> {
    /// Starts a record at the end of `out`.
    pub fn begin_record(layout: RecordLayout, out: &'a mut Vec<u8>) -> Self {
        if layout != RecordLayout::Csv {
            out.push(b'{');
        }
        Self { out, layout, empty: true }
    }

    /// Continues after copied fields.
    pub fn continue_record(layout: RecordLayout, out: &'a mut Vec<u8>) -> Self {
        Self { out, layout, empty: false }
    }

    /// Ends the record without a line break.
    pub fn end_record(self) {
        if self.layout == RecordLayout::Flat {
            self.out.push(b'}');
        }
    }

    #[inline]
    fn key(&mut self, name: &str) {
        self.separate();
        if self.layout == RecordLayout::Flat {
            write_formatted(self.out, format_args!("\"{name}\":"));
        }
    }

    #[inline]
    fn separate(&mut self) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
    }

    #[inline]
    fn cell<T>(&mut self, name: &str, cell: GeneratedCell<T>, write: impl FnOnce(&mut Self, T)) {
        match cell {
            GeneratedCell::Value(value) => {
                self.key(name);
                write(self, value);
            }
            GeneratedCell::Null => {
                self.key(name);
                if self.layout != RecordLayout::Csv {
                    self.out.extend_from_slice(b"null");
                }
            }
            GeneratedCell::Absent if self.layout == RecordLayout::Csv => self.separate(),
            GeneratedCell::Absent => {}
        }
    }

    #[inline]
    fn quoted(&mut self, text: &str) {
        debug_assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b) && !b"\"\\,".contains(&b)), "needs escaping");
        if self.layout == RecordLayout::Csv {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
        }
    }

    /// Writes a text.
    #[inline]
    pub fn text(&mut self, name: &str, cell: GeneratedCell<&str>) {
        self.cell(name, cell, Self::quoted);
    }

    /// Writes an integer.
    #[inline]
    pub fn integer(&mut self, name: &str, cell: GeneratedCell<i64>) {
        self.cell(name, cell, |line, value| write_formatted(line.out, format_args!("{value}")));
    }

    /// Writes units of 10^-`decimals`: 334 with one is `33.4`.
    #[inline]
    pub fn decimal(&mut self, name: &str, cell: GeneratedCell<i64>, decimals: u32) {
        self.cell(name, cell, |line, value| write_fixed_point(line.out, value, decimals));
    }

    /// Writes tenths.
    #[inline]
    pub fn tenths(&mut self, name: &str, cell: GeneratedCell<i64>) {
        self.decimal(name, cell, 1);
    }

    /// Writes thousandths of a degree: `"41.878,-87.630"`.
    #[inline]
    pub fn place(&mut self, name: &str, cell: GeneratedCell<(i64, i64)>) {
        self.cell(name, cell, |line, (lat, lon)| {
            line.out.push(b'"');
            write_fixed_point(line.out, lat, 3);
            line.out.push(b',');
            write_fixed_point(line.out, lon, 3);
            line.out.push(b'"');
        });
    }

    /// Writes seconds since 1970: `"2026-01-05T06:00:00Z"`.
    #[inline]
    pub fn time(&mut self, name: &str, seconds: i64) {
        self.key(name);
        let quote = if self.layout == RecordLayout::Csv { "" } else { "\"" };
        let (day, second) = (date(seconds * 1_000), seconds.rem_euclid(DAY / 1_000));
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write_formatted(self.out, format_args!("{quote}{day}T{hour:02}:{minute:02}:{second:02}Z{quote}"));
    }
}

/// Appends the CSV header with its line feed.
pub fn csv_header<'f>(out: &mut Vec<u8>, fields: impl IntoIterator<Item = &'f str>) {
    let names: Vec<&str> = fields.into_iter().collect();
    write_formatted(out, format_args!("{}\n", names.join(",")));
}

fn write_formatted(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory");
}

/// `value` / 10^`decimals`.
#[inline]
fn write_fixed_point(out: &mut Vec<u8>, value: i64, decimals: u32) {
    let (sign, magnitude, unit) = (if value < 0 { "-" } else { "" }, value.unsigned_abs(), 10_u64.pow(decimals));
    let (whole, part, width) = (magnitude / unit, magnitude % unit, decimals as usize);
    write_formatted(out, format_args!("{sign}{whole}.{part:0width$}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    proptest! {
        #[test]
        fn fixed_point_numbers_match_standard_formatting(small in -10_000_000i64..10_000_000) {
            prop_assert_eq!(written(|o| write_fixed_point(o, small, 1)), format!("{:.1}", small as f64 / 10.0));
            prop_assert_eq!(written(|o| write_fixed_point(o, small, 3)), format!("{:.3}", small as f64 / 1000.0));
        }
    }

    fn line(layout: RecordLayout, missing: GeneratedCell<i64>) -> String {
        written(|out| {
            let mut line = RecordLineWriter::begin_record(layout, out);
            line.integer("a", missing);
            line.text("b", GeneratedCell::Value("t"));
            line.time("c", 0);
            line.tenths("d", missing);
            line.place("e", GeneratedCell::Value((1_500, -87_005)));
            line.end_record();
        })
    }

    #[test]
    fn record_line_matches_each_layout() {
        let time = "1970-01-01T00:00:00Z";
        assert_eq!(
            line(RecordLayout::Flat, GeneratedCell::Value(15)),
            format!(r#"{{"a":15,"b":"t","c":"{time}","d":1.5,"e":"1.500,-87.005"}}"#)
        );
        assert_eq!(
            line(RecordLayout::Flat, GeneratedCell::Absent),
            format!(r#"{{"b":"t","c":"{time}","e":"1.500,-87.005"}}"#)
        );
        assert_eq!(
            line(RecordLayout::Flat, GeneratedCell::Null),
            format!(r#"{{"a":null,"b":"t","c":"{time}","d":null,"e":"1.500,-87.005"}}"#)
        );
        assert_eq!(line(RecordLayout::Csv, GeneratedCell::Value(15)), format!(r#"15,t,{time},1.5,"1.500,-87.005""#));
        assert_eq!(line(RecordLayout::Csv, GeneratedCell::Null), line(RecordLayout::Csv, GeneratedCell::Absent));
        assert_eq!(line(RecordLayout::Csv, GeneratedCell::Absent), format!(r#",t,{time},,"1.500,-87.005""#));
    }

    #[test]
    fn resumed_record_line_equals_new_line() {
        for layout in [RecordLayout::Flat, RecordLayout::Csv] {
            let mut head = Vec::new();
            let mut start = RecordLineWriter::begin_record(layout, &mut head);
            start.integer("a", GeneratedCell::Value(15));
            start.text("b", GeneratedCell::Value("t"));
            let mut rest = RecordLineWriter::continue_record(layout, &mut head);
            rest.time("c", 0);
            rest.tenths("d", GeneratedCell::Value(15));
            rest.place("e", GeneratedCell::Value((1_500, -87_005)));
            rest.end_record();
            assert_eq!(String::from_utf8_lossy(&head), line(layout, GeneratedCell::Value(15)));
        }
    }
}
