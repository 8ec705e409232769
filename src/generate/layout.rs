//! Writes the cells of a record as JSON or CSV, straight into a byte buffer.
//!
//! Texts are this crate's own and need no escaping: printable ASCII without quotes and backslashes.

/// How a record looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One JSON object, every attribute at the top.
    Flat,
    /// One line, comma-separated; null and absent are both the empty field.
    Csv,
}

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The key, or the name of the column.
    pub name: &'static str,
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
    fn key(&mut self, field: &Field) {
        self.separate();
        if self.layout == Layout::Flat {
            self.name(field.name);
        }
    }

    #[inline]
    fn separate(&mut self) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
    }

    #[inline]
    fn name(&mut self, name: &str) {
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    #[inline]
    fn cell<T>(&mut self, field: &Field, cell: Cell<T>, write: impl FnOnce(&mut Self, T)) {
        match cell {
            Cell::Value(value) => {
                self.key(field);
                write(self, value);
            }
            Cell::Null => {
                self.key(field);
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
    pub fn text(&mut self, field: &Field, cell: Cell<&str>) {
        self.cell(field, cell, Self::quoted);
    }

    /// A whole number.
    #[inline]
    pub fn integer(&mut self, field: &Field, cell: Cell<i64>) {
        self.cell(field, cell, |line, value| integer(line.out, value));
    }

    /// A number in units of 10^-`decimals`: 334 in tenths (1) is written `33.4`.
    #[inline]
    pub fn decimal(&mut self, field: &Field, cell: Cell<i64>, decimals: u32) {
        self.cell(field, cell, |line, value| fixed(line.out, value, decimals));
    }

    /// A number in tenths.
    #[inline]
    pub fn tenths(&mut self, field: &Field, cell: Cell<i64>) {
        self.decimal(field, cell, 1);
    }

    /// A place in thousandths of a degree: `"41.878,-87.630"`.
    #[inline]
    pub fn place(&mut self, field: &Field, cell: Cell<(i64, i64)>) {
        self.cell(field, cell, |line, (lat, lon)| {
            line.out.push(b'"');
            fixed(line.out, lat, 3);
            line.out.push(b',');
            fixed(line.out, lon, 3);
            line.out.push(b'"');
        });
    }

    /// A time in seconds since 1970, in UTC: `"2026-01-05T06:00:00Z"`.
    #[inline]
    pub fn time(&mut self, field: &Field, seconds: i64) {
        self.key(field);
        let quote = self.layout != Layout::Csv;
        if quote {
            self.out.push(b'"');
        }
        time(self.out, seconds);
        if quote {
            self.out.push(b'"');
        }
    }
}

/// The names of `fields` as the first line of a CSV file, line feed included.
pub fn csv_header<'f>(out: &mut Vec<u8>, fields: impl IntoIterator<Item = &'f str>) {
    for (i, name) in fields.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
    }
    out.push(b'\n');
}

/// Appends a decimal number.
#[inline]
pub fn integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    let mut rest = value.unsigned_abs();
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends `value` / 10^`decimals` with exactly that many decimals.
#[inline]
pub fn fixed(out: &mut Vec<u8>, value: i64, decimals: u32) {
    if value < 0 {
        out.push(b'-');
    }
    let magnitude = value.unsigned_abs() as i64;
    let unit = 10_i64.pow(decimals);
    integer(out, magnitude / unit);
    out.push(b'.');
    let mut rest = magnitude % unit;
    for place in (0..decimals).rev() {
        let power = 10_i64.pow(place);
        out.push(b'0' + (rest / power) as u8);
        rest %= power;
    }
}

/// Appends seconds since 1970 as `YYYY-MM-DDThh:mm:ssZ`; years 1 to 9999.
#[inline]
pub fn time(out: &mut Vec<u8>, seconds: i64) {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    date(out, days);
    let two = |n: i64| [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
    let ([h1, h0], [m1, m0], [s1, s0]) = (two(second / 3600), two(second / 60 % 60), two(second % 60));
    out.extend_from_slice(&[b'T', h1, h0, b':', m1, m0, b':', s1, s0, b'Z']);
}

/// Appends days since 1970 as `YYYY-MM-DD`, in the Gregorian calendar, by Hinnant's `civil_from_days`
/// (H. Hinnant, "chrono-compatible low-level date algorithms").
pub fn date(out: &mut Vec<u8>, days: i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let digit = |n: i64| b'0' + (n % 10) as u8;
    let year = [digit(year / 1000), digit(year / 100), digit(year / 10), digit(year)];
    out.extend_from_slice(&year);
    out.extend_from_slice(&[b'-', digit(month / 10), digit(month), b'-', digit(day / 10), digit(day)]);
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
        fn numbers_are_spelled_as_the_standard_library_spells_them(value: i64, small in -10_000_000i64..10_000_000) {
            prop_assert_eq!(written(|o| integer(o, value)), value.to_string());
            prop_assert_eq!(written(|o| fixed(o, small, 1)), format!("{:.1}", small as f64 / 10.0));
            prop_assert_eq!(written(|o| fixed(o, small, 3)), format!("{:.3}", small as f64 / 1000.0));
        }

        #[test]
        fn times_are_those_of_chrono(seconds in -60_000_000_000i64..250_000_000_000) {
            let expected = chrono::DateTime::from_timestamp(seconds, 0).expect("in range");
            prop_assert_eq!(written(|o| time(o, seconds)), expected.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
    }

    const FIELDS: [Field; 5] =
        [Field { name: "a" }, Field { name: "b" }, Field { name: "c" }, Field { name: "d" }, Field { name: "e" }];

    fn line(layout: Layout, missing: Cell<i64>) -> String {
        written(|out| {
            let mut line = Line::open(layout, out);
            line.integer(&FIELDS[0], missing);
            line.text(&FIELDS[1], Cell::Value("t"));
            line.time(&FIELDS[2], 0);
            line.tenths(&FIELDS[3], missing);
            line.place(&FIELDS[4], Cell::Value((1_500, -87_005)));
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
            start.integer(&FIELDS[0], Cell::Value(15));
            start.text(&FIELDS[1], Cell::Value("t"));
            let mut rest = Line::resume(layout, &mut head);
            rest.time(&FIELDS[2], 0);
            rest.tenths(&FIELDS[3], Cell::Value(15));
            rest.place(&FIELDS[4], Cell::Value((1_500, -87_005)));
            rest.close();
            assert_eq!(String::from_utf8_lossy(&head), line(layout, Cell::Value(15)));
        }
    }
}
