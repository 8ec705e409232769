//! Writes the cells of a record as JSON or CSV, straight into a byte buffer.
//!
//! Texts are this crate's own and need no escaping: printable ASCII without quotes and backslashes.

use std::io::Write as _;
use throng_core::values::moment::{DAY, date};

/// How a record looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One JSON object, every attribute at the top.
    Flat,
    /// One line, comma-separated; null and absent are both the empty field.
    Csv,
}

/// A cell that may be missing in either of two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<T> {
    /// A value.
    Value(T),
    /// Written as `null`.
    Null,
    /// The key is left out.
    Absent,
}

impl<T> Cell<T> {
    /// The same cell with another value.
    #[must_use]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Cell<U> {
        match self {
            Cell::Value(v) => Cell::Value(f(v)),
            Cell::Null => Cell::Null,
            Cell::Absent => Cell::Absent,
        }
    }
}

/// One record being written. Fields are given in the order of the record.
#[derive(Debug)]
pub struct Line<'a> {
    out: &'a mut Vec<u8>,
    layout: Layout,
    /// Nothing has been written yet into the record.
    empty: bool,
}

impl<'a> Line<'a> {
    /// Begins a record at the end of `out`.
    pub fn open(layout: Layout, out: &'a mut Vec<u8>) -> Self {
        if layout != Layout::Csv {
            out.push(b'{');
        }
        Self { out, layout, empty: true }
    }

    /// Goes on with a line whose beginning, some fields, has been copied into `out`.
    pub fn resume(layout: Layout, out: &'a mut Vec<u8>) -> Self {
        Self { out, layout, empty: false }
    }

    /// Ends the record, without a line break.
    pub fn close(self) {
        if self.layout == Layout::Flat {
            self.out.push(b'}');
        }
    }

    #[inline]
    fn key(&mut self, name: &str) {
        self.separate();
        if self.layout == Layout::Flat {
            spell(self.out, format_args!("\"{name}\":"));
        }
    }

    #[inline]
    fn separate(&mut self) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
    }

    #[inline]
    fn cell<T>(&mut self, name: &str, cell: Cell<T>, write: impl FnOnce(&mut Self, T)) {
        match cell {
            Cell::Value(value) => {
                self.key(name);
                write(self, value);
            }
            Cell::Null => {
                self.key(name);
                if self.layout != Layout::Csv {
                    self.out.extend_from_slice(b"null");
                }
            }
            Cell::Absent if self.layout == Layout::Csv => self.separate(),
            Cell::Absent => {}
        }
    }

    #[inline]
    fn quoted(&mut self, text: &str) {
        debug_assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b) && !b"\"\\,".contains(&b)), "needs escaping");
        if self.layout == Layout::Csv {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
        }
    }

    /// A text.
    #[inline]
    pub fn text(&mut self, name: &str, cell: Cell<&str>) {
        self.cell(name, cell, Self::quoted);
    }

    /// A whole number.
    #[inline]
    pub fn integer(&mut self, name: &str, cell: Cell<i64>) {
        self.cell(name, cell, |line, value| spell(line.out, format_args!("{value}")));
    }

    /// A number in units of 10^-`decimals`: 334 in tenths (1) is written `33.4`.
    #[inline]
    pub fn decimal(&mut self, name: &str, cell: Cell<i64>, decimals: u32) {
        self.cell(name, cell, |line, value| fixed(line.out, value, decimals));
    }

    /// A number in tenths.
    #[inline]
    pub fn tenths(&mut self, name: &str, cell: Cell<i64>) {
        self.decimal(name, cell, 1);
    }

    /// A place in thousandths of a degree: `"41.878,-87.630"`.
    #[inline]
    pub fn place(&mut self, name: &str, cell: Cell<(i64, i64)>) {
        self.cell(name, cell, |line, (lat, lon)| {
            line.out.push(b'"');
            fixed(line.out, lat, 3);
            line.out.push(b',');
            fixed(line.out, lon, 3);
            line.out.push(b'"');
        });
    }

    /// A time in seconds since 1970, in UTC: `"2026-01-05T06:00:00Z"`.
    #[inline]
    pub fn time(&mut self, name: &str, seconds: i64) {
        self.key(name);
        let quote = if self.layout == Layout::Csv { "" } else { "\"" };
        let (day, second) = (date(seconds * 1_000), seconds.rem_euclid(DAY / 1_000));
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        spell(self.out, format_args!("{quote}{day}T{hour:02}:{minute:02}:{second:02}Z{quote}"));
    }
}

/// The names of fields as the first line of a CSV file, line feed included.
pub fn csv_header<'f>(out: &mut Vec<u8>, fields: impl IntoIterator<Item = &'f str>) {
    let names: Vec<&str> = fields.into_iter().collect();
    spell(out, format_args!("{}\n", names.join(",")));
}

fn spell(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory");
}

/// Appends `value` / 10^`decimals` with exactly that many decimals.
#[inline]
fn fixed(out: &mut Vec<u8>, value: i64, decimals: u32) {
    let (sign, magnitude, unit) = (if value < 0 { "-" } else { "" }, value.unsigned_abs(), 10_u64.pow(decimals));
    let (whole, part, width) = (magnitude / unit, magnitude % unit, decimals as usize);
    spell(out, format_args!("{sign}{whole}.{part:0width$}"));
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
        fn numbers_are_spelled_as_the_standard_library_spells_them(small in -10_000_000i64..10_000_000) {
            prop_assert_eq!(written(|o| fixed(o, small, 1)), format!("{:.1}", small as f64 / 10.0));
            prop_assert_eq!(written(|o| fixed(o, small, 3)), format!("{:.3}", small as f64 / 1000.0));
        }
    }

    fn line(layout: Layout, missing: Cell<i64>) -> String {
        written(|out| {
            let mut line = Line::open(layout, out);
            line.integer("a", missing);
            line.text("b", Cell::Value("t"));
            line.time("c", 0);
            line.tenths("d", missing);
            line.place("e", Cell::Value((1_500, -87_005)));
            line.close();
        })
    }

    #[test]
    fn a_line_in_every_layout() {
        let time = "1970-01-01T00:00:00Z";
        assert_eq!(
            line(Layout::Flat, Cell::Value(15)),
            format!(r#"{{"a":15,"b":"t","c":"{time}","d":1.5,"e":"1.500,-87.005"}}"#)
        );
        assert_eq!(line(Layout::Flat, Cell::Absent), format!(r#"{{"b":"t","c":"{time}","e":"1.500,-87.005"}}"#));
        assert_eq!(
            line(Layout::Flat, Cell::Null),
            format!(r#"{{"a":null,"b":"t","c":"{time}","d":null,"e":"1.500,-87.005"}}"#)
        );
        assert_eq!(line(Layout::Csv, Cell::Value(15)), format!(r#"15,t,{time},1.5,"1.500,-87.005""#));
        assert_eq!(line(Layout::Csv, Cell::Null), line(Layout::Csv, Cell::Absent));
        assert_eq!(line(Layout::Csv, Cell::Absent), format!(r#",t,{time},,"1.500,-87.005""#));
    }

    #[test]
    fn a_line_goes_on_behind_its_copied_beginning() {
        for layout in [Layout::Flat, Layout::Csv] {
            let mut head = Vec::new();
            let mut start = Line::open(layout, &mut head);
            start.integer("a", Cell::Value(15));
            start.text("b", Cell::Value("t"));
            let mut rest = Line::resume(layout, &mut head);
            rest.time("c", 0);
            rest.tenths("d", Cell::Value(15));
            rest.place("e", Cell::Value((1_500, -87_005)));
            rest.close();
            assert_eq!(String::from_utf8_lossy(&head), line(layout, Cell::Value(15)));
        }
    }
}
