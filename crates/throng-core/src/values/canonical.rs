//! Canonical values: one JSON text for everything that a device may spell differently.
//!
//! Rounding happens here, before anything is counted, so that float digits, units of a firmware and time zones
//! cannot single anybody out. Two tokens are one value exactly when their canonical texts are the same bytes.

use std::borrow::Cow;
use std::sync::Arc;

use crate::values::dates::Dates;
use crate::values::decimal::{decimals_of, exact_ticks, push_plain, push_ticks};
use crate::values::json::{push_quoted, push_shortest, push_sorted};
use crate::values::moment::{self, Unit};
use crate::values::raw::Token;
use crate::values::spelling::{Spelling, spells_a_number};
use crate::values::units::Conversion;
use crate::values::zone::Zone;

/// The longest string value, in bytes of UTF-8.
pub const MAX_STRING_BYTES: usize = 1024;

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Type {
    /// −2⁶³ … 2⁶³−1; `5.0` is 5.
    Integer,
    /// A finite double.
    Float,
    /// True or false.
    Boolean,
    /// Up to [`MAX_STRING_BYTES`].
    String,
    /// A day, in UTC.
    Date,
    /// A moment in UTC, to the millisecond.
    Timestamp,
    /// Latitude and longitude in degrees.
    Coordinates,
}

impl Type {
    /// The name that a schema uses.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How values are rounded before they are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    /// As it is.
    None,
    /// To the nearest multiple of `ticks`·10⁻ᵈ (integers, floats, coordinates), ties away from zero.
    Step {
        /// The step in units of the last decimal, above 0.
        ticks: i64,
        /// d.
        decimals: u32,
    },
    /// To significant digits (integers, floats).
    Digits(u32),
    /// Down to the start of a calendar unit (dates, timestamps).
    Unit(Unit),
}

impl Rounding {
    /// The step `size`, if it is positive and has at most nine decimals.
    pub fn step(size: f64) -> Option<Self> {
        let decimals = decimals_of(size);
        if decimals > crate::values::decimal::MAX_DECIMALS {
            return None;
        }
        let ticks = i64::try_from(exact_ticks(size, decimals)?).ok()?;
        (ticks > 0).then_some(Self::Step { ticks, decimals })
    }
}

/// Which spellings mean that a value is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// None: the empty CSV field is missing, and nothing that JSON spells.
    spellings: Option<Vec<String>>,
    /// The spellings that are numbers, for numeric attributes: `-1` also matches `-1.0`.
    numbers: Vec<f64>,
}

impl Missing {
    /// What the schema lists; `numeric` for integer and float attributes.
    pub fn new(spellings: Option<Vec<String>>, numeric: bool) -> Self {
        let numbers = spellings.iter().flatten().filter(|_| numeric).filter_map(|s| s.trim().parse().ok()).collect();
        Self { spellings, numbers }
    }

    /// The spellings, sorted, for a fingerprint; none when the schema lists none.
    pub fn listed(&self) -> Option<Vec<&str>> {
        let mut listed: Vec<&str> = self.spellings.as_ref()?.iter().map(String::as_str).collect();
        listed.sort_unstable();
        Some(listed)
    }

    fn matches(&self, text: &str, untyped: bool) -> bool {
        match &self.spellings {
            None => untyped && text.is_empty(),
            Some(listed) => listed.iter().any(|s| s == text),
        }
    }

    fn matches_number(&self, number: f64) -> bool {
        // Exact on purpose: a sentinel is spelled, not measured.
        self.numbers.contains(&number)
    }
}

/// A cell that its attribute's type cannot take. It names the attribute and never the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attribute \"{attribute}\" is of type {expected}, but the cell is {found}: correct the record or the schema")]
pub struct CellError {
    attribute: Arc<str>,
    expected: &'static str,
    found: &'static str,
}

/// What a token turned out to be; the text of a value is in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canonical {
    /// The record has no such cell.
    Absent,
    /// The cell says that it has no value.
    Null,
    /// The cell has a value.
    Value,
}

/// The typing of one attribute: from a token to its canonical JSON text.
#[derive(Clone, Debug)]
pub struct Typing {
    /// The name of the attribute, for messages.
    pub attribute: Arc<str>,
    /// What its values are.
    pub kind: Type,
    /// How they are rounded.
    pub rounding: Rounding,
    /// Which texts say that there is none.
    pub missing: Missing,
    /// Which spellings of a text are one.
    pub spelling: Spelling,
    /// How dates and times are spelled.
    pub dates: Dates,
    /// What numbers are converted by, before they are rounded.
    pub conversion: Option<Conversion>,
    /// Texts of numbers have a decimal comma and no point.
    pub decimal_comma: bool,
    /// The time zone of local times: of those that are spelled without an offset.
    pub zone: Option<Zone>,
}

impl Typing {
    /// Writes the canonical JSON text of `token` into `out`, which is cleared first.
    ///
    /// Integers are `72`, floats `72.5` with the fewest digits and never `-0`, booleans `true`/`false`, strings JSON
    /// strings, numbers among them in full with the fewest digits (a lone `*`, or one behind backslashes only, gets one more backslash: `"*"` means suppressed), dates
    /// `"2021-05-24"`, timestamps `"2021-05-24T10:00:00Z"`, coordinates `"47.37,8.54"`. Structures are strings that
    /// hold their compact JSON text with sorted keys.
    ///
    /// # Errors
    /// Where the type cannot take the token: NaN, infinities, overflow and strings longer
    /// than [`MAX_STRING_BYTES`] included.
    pub fn canonical(&self, token: Token<'_>, out: &mut String) -> Result<Canonical, CellError> {
        out.clear();
        let written = match token {
            Token::Absent => return Ok(Canonical::Absent),
            Token::Null => return Ok(Canonical::Null),
            Token::Bool(value) => self.boolean_token(value, out),
            Token::Structure(json) => self.structure(json, out),
            Token::Number(text) if self.kind == Type::String => self.number_as_text(text, out),
            Token::Number(text) => self.text(text, false, out),
            Token::Text(text) | Token::Untyped(text) if self.decimal_comma => {
                let untyped = matches!(token, Token::Untyped(_));
                match text {
                    // Spellings of missing are those of the records.
                    _ if self.missing.matches(text, untyped) => Ok(Canonical::Null),
                    _ if text.contains('.') => Err("a number with a point, and its decimal separator is the comma"),
                    _ => self.text(&text.replacen(',', ".", 1), untyped, out),
                }
            }
            Token::Text(text) => self.text(text, false, out),
            Token::Untyped(text) => self.text(text, true, out),
        };
        written.map_err(|found| self.refuses(found))
    }

    /// Whether `text` says that there is no value; `untyped` for a CSV field.
    pub fn is_missing(&self, text: &str, untyped: bool) -> bool {
        self.missing.matches(text, untyped)
    }

    /// The typing of canonical texts that are read again: dates are as ISO 8601 writes them, nothing is converted, and no text says that
    /// there is no value.
    #[must_use]
    pub fn released(&self) -> Self {
        let numeric = matches!(self.kind, Type::Integer | Type::Float);
        let missing = Missing::new(Some(Vec::new()), numeric);
        Self { conversion: None, missing, dates: Dates::Iso, decimal_comma: false, zone: None, ..self.clone() }
    }

    /// The typing of values that have been converted already: those of hierarchies.
    pub fn converted_already(&self) -> Cow<'_, Self> {
        let plain = || Self { decimal_comma: false, ..self.clone() };
        match self.conversion {
            None if !self.decimal_comma => Cow::Borrowed(self),
            None => Cow::Owned(plain()),
            // Spellings of missing are those of raw values.
            Some(_) => Cow::Owned(Self { conversion: None, missing: Missing::new(None, true), ..plain() }),
        }
    }

    /// The moment that a text spells, in milliseconds since 1970.
    pub fn moment(&self, text: &str) -> Option<i64> {
        let partial = || match (&self.dates, self.rounding) {
            (Dates::Iso, Rounding::Unit(unit)) => moment::partial(text, unit),
            _ => None,
        };
        self.dates.read_in(text, self.zone.as_ref()).or_else(partial)
    }

    /// Why a text is no moment.
    fn no_moment(&self, text: &str) -> &'static str {
        let is_read_with = |unit| matches!(self.dates, Dates::Iso) && moment::partial(text, unit).is_some();
        if is_read_with(Unit::Month) {
            "a month without a day (round = \"month\" or a longer unit in the schema reads it)"
        } else if is_read_with(Unit::Year) {
            "a year without a month (round = \"year\" in the schema reads it)"
        } else {
            self.dates.otherwise()
        }
    }

    /// That a cell is something else than the attribute's type.
    pub fn refuses(&self, found: &'static str) -> CellError {
        CellError { attribute: Arc::clone(&self.attribute), expected: self.kind.name(), found }
    }

    fn boolean_token(&self, value: bool, out: &mut String) -> Result<Canonical, &'static str> {
        let text = if value { "true" } else { "false" };
        match self.kind {
            Type::Boolean => out.push_str(text),
            Type::String => return self.text(text, false, out),
            _ => return Err("a boolean"),
        }
        Ok(Canonical::Value)
    }

    /// A number is one text however it is spelled, or one person could come as many.
    fn number_as_text(&self, number: &str, out: &mut String) -> Result<Canonical, &'static str> {
        if self.missing.matches(number, false) {
            return Ok(Canonical::Null);
        }
        let mut plain = String::with_capacity(number.len());
        push_plain(&mut plain, number).ok_or("a number that is too large")?;
        self.text(&plain, false, out)
    }

    /// The one text of all that `text` is spelled like.
    fn string(&self, text: &str, untyped: bool, out: &mut String) -> Result<Canonical, &'static str> {
        let spelled = self.spelling.of(text);
        if self.missing.matches(&spelled, untyped) {
            return Ok(Canonical::Null);
        }
        if self.spelling.numbers && spells_a_number(&spelled) {
            let mut plain = String::with_capacity(spelled.len());
            push_plain(&mut plain, spelled.trim_start_matches('+')).ok_or("a number that is too large")?;
            push_string(out, &plain)?;
        } else {
            push_string(out, &spelled)?;
        }
        Ok(Canonical::Value)
    }

    fn structure(&self, json: &str, out: &mut String) -> Result<Canonical, &'static str> {
        match self.kind {
            Type::String => {
                let value: serde_json::Value =
                    serde_json::from_str(json).map_err(|_| "a structure that is not JSON")?;
                let mut compact = String::new();
                push_sorted(&mut compact, &value);
                push_string(out, &self.spelling.of(&compact))?;
            }
            Type::Coordinates => {
                let value: serde_json::Value =
                    serde_json::from_str(json).map_err(|_| "a structure that is not JSON")?;
                let (latitude, longitude) = pair(&value).ok_or("a structure without latitude and longitude")?;
                self.coordinates(latitude, longitude, out)?;
            }
            _ => return Err("an array or object"),
        }
        Ok(Canonical::Value)
    }

    fn text(&self, text: &str, untyped: bool, out: &mut String) -> Result<Canonical, &'static str> {
        if self.missing.matches(text, untyped) {
            return Ok(Canonical::Null);
        }
        let bare = text.trim_ascii();
        match self.kind {
            Type::String => return self.string(text, untyped, out),
            Type::Integer => {
                let (value, number) = match self.conversion {
                    None => integer(bare)?,
                    Some(conversion) => match self.converted(conversion, bare)? {
                        None => return Ok(Canonical::Null),
                        Some(value) => integer_of(value.round())?,
                    },
                };
                if self.conversion.is_none() && self.missing.matches_number(number) {
                    return Ok(Canonical::Null);
                }
                let rounded = self.round_integer(value).ok_or("a number that is too large")?;
                push_ticks(out, i128::from(rounded), 0);
            }
            Type::Float => {
                let value = match self.conversion {
                    None => finite(bare)?,
                    Some(conversion) => match self.converted(conversion, bare)? {
                        None => return Ok(Canonical::Null),
                        Some(value) => value,
                    },
                };
                if self.conversion.is_none() && self.missing.matches_number(value) {
                    return Ok(Canonical::Null);
                }
                self.push_float(out, value);
            }
            Type::Boolean => out.push_str(boolean(bare).ok_or("no truth value")?),
            Type::Date | Type::Timestamp => {
                self.push_moment(out, self.moment(bare).ok_or_else(|| self.no_moment(bare))?);
            }
            Type::Coordinates => {
                let (latitude, longitude) = bare.split_once(',').ok_or("no pair of numbers")?;
                self.coordinates(finite(latitude.trim_ascii())?, finite(longitude.trim_ascii())?, out)?;
            }
        }
        Ok(Canonical::Value)
    }

    /// The converted number; none where the raw one says that there is none.
    fn converted(&self, conversion: Conversion, text: &str) -> Result<Option<f64>, &'static str> {
        let raw = finite(text)?;
        if self.missing.matches_number(raw) {
            return Ok(None);
        }
        conversion.convert(raw).map(Some).ok_or("a number that is too large")
    }

    fn round_integer(&self, value: i64) -> Option<i64> {
        let step = match self.rounding {
            Rounding::Step { ticks, .. } => i128::from(ticks),
            Rounding::Digits(digits) => {
                let length = value.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
                10_i128.pow(length.saturating_sub(digits))
            }
            Rounding::None | Rounding::Unit(_) => return Some(value),
        };
        let size = (i128::from(value).abs() + step / 2) / step * step;
        i64::try_from(if value < 0 { -size } else { size }).ok()
    }

    fn push_float(&self, out: &mut String, value: f64) {
        match self.rounding {
            Rounding::Step { ticks, decimals } => {
                let steps = (value / (ticks as f64 / 10_f64.powi(decimals.cast_signed()))).round();
                // Beyond 2⁵³ steps a double has no digits left to round.
                if steps.abs() < 9_007_199_254_740_992.0 {
                    push_ticks(out, i128::from(steps as i64) * i128::from(ticks), decimals);
                } else {
                    push_shortest(out, value);
                }
            }
            Rounding::Digits(digits) => {
                let rounded = format!("{:.*e}", digits.saturating_sub(1) as usize, value).parse::<f64>();
                // Rounding the largest doubles up can reach infinity: those stay as they are.
                push_shortest(out, rounded.ok().filter(|r| r.is_finite()).unwrap_or(value));
            }
            Rounding::None | Rounding::Unit(_) => push_shortest(out, value),
        }
    }

    fn push_moment(&self, out: &mut String, millis: i64) {
        let millis = if let Rounding::Unit(unit) = self.rounding { unit.start(millis) } else { millis };
        out.push('"');
        if self.kind == Type::Date {
            moment::push_date(out, millis);
        } else {
            moment::push_rfc3339(out, millis);
        }
        out.push('"');
    }

    fn coordinates(&self, latitude: f64, longitude: f64, out: &mut String) -> Result<(), &'static str> {
        if !(-90.0..=90.0).contains(&latitude) || !(-180.0..=180.0).contains(&longitude) {
            return Err("outside latitude -90 to 90 or longitude -180 to 180");
        }
        out.push('"');
        self.push_float(out, self.within(latitude, 90));
        out.push(',');
        self.push_float(out, self.within(longitude, 180));
        out.push('"');
        Ok(())
    }

    /// Degrees that are not rounded beyond `limit`.
    fn within(&self, degrees: f64, limit: i64) -> f64 {
        let Rounding::Step { ticks, decimals } = self.rounding else { return degrees };
        let whole = 10_i64.pow(decimals);
        let most = (limit * whole / ticks * ticks) as f64 / whole as f64;
        degrees.clamp(-most, most)
    }
}

fn integer(text: &str) -> Result<(i64, f64), &'static str> {
    if let Ok(value) = text.parse::<i64>() {
        return Ok((value, value as f64));
    }
    let value = finite(text)?;
    if value.fract() != 0.0 {
        return Err("a number with a fraction");
    }
    integer_of(value)
}

/// A whole number of a double.
fn integer_of(value: f64) -> Result<(i64, f64), &'static str> {
    // Beyond 2⁵³ a double may stand for a neighbour of what was written.
    if value.abs() > 9_007_199_254_740_992.0 {
        return Err("a number that is too large");
    }
    Ok((value as i64, value))
}

fn finite(text: &str) -> Result<f64, &'static str> {
    // `parse` also takes "inf" and "nan": numbers start with a digit, a sign or a point.
    let value: f64 = text.parse().map_err(|_| "no number")?;
    if value.is_finite() { Ok(value) } else { Err("not a finite number") }
}

fn boolean(text: &str) -> Option<&'static str> {
    match text {
        "true" | "True" | "TRUE" | "1" | "1.0" => Some("true"),
        "false" | "False" | "FALSE" | "0" | "0.0" => Some("false"),
        _ => None,
    }
}

fn pair(value: &serde_json::Value) -> Option<(f64, f64)> {
    if let Some(list) = value.as_array() {
        return if list.len() == 2 { Some((list[0].as_f64()?, list[1].as_f64()?)) } else { None };
    }
    let any = |names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_f64());
    Some((any(&["lat", "latitude"])?, any(&["lon", "lng", "longitude"])?))
}

/// Appends `text` as a JSON string value, kept apart from the `"*"` of suppression.
fn push_string(out: &mut String, text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_STRING_BYTES {
        return Err("too long (over 1024 bytes)");
    }
    if text.strip_suffix('*').is_some_and(|before| before.bytes().all(|b| b == b'\\')) {
        push_quoted(out, &format!("\\{text}"));
    } else {
        push_quoted(out, text);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
