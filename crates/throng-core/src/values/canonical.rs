//! Canonical values: one rounded JSON text for all spellings, so that spellings do not single out subjects.

use std::borrow::Cow;
use std::sync::Arc;

use crate::values::date_formats::DateFormats;
use crate::values::decimal::{decimals_of, exact_ticks, push_plain, push_ticks};
use crate::values::json::{push_quoted, push_shortest, push_sorted};
use crate::values::moment::{self, CalendarUnit};
use crate::values::raw_batch::RawToken;
use crate::values::spelling::{Spelling, spells_a_number};
use crate::values::time_zone::NamedZone;
use crate::values::units::Conversion;

/// Maximum bytes of a string value.
pub const MAX_STRING_BYTES: usize = 1024;

/// Type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AttributeType {
    /// Integer from −2⁶³ to 2⁶³−1; `5.0` is 5.
    Integer,
    /// Finite double.
    Float,
    /// Boolean.
    Boolean,
    /// String of up to [`MAX_STRING_BYTES`].
    String,
    /// Day in UTC.
    Date,
    /// Time in UTC, in milliseconds.
    Timestamp,
    /// Latitude and longitude in degrees.
    Coordinates,
}

impl AttributeType {
    /// Returns the name in schemas.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Rounding on input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    /// No rounding.
    None,
    /// Nearest multiple of `ticks`·10⁻ᵈ, ties away from zero.
    Step {
        /// Step in units of the last decimal, above 0.
        ticks: i64,
        /// Number of decimals, d.
        decimals: u32,
    },
    /// Significant digits.
    Digits(u32),
    /// Start of a calendar unit.
    Unit(CalendarUnit),
}

impl Rounding {
    /// Returns rounding to multiples of a positive `size` with up to nine decimals.
    pub fn step(size: f64) -> Option<Self> {
        let decimals = decimals_of(size);
        if decimals > crate::values::decimal::MAX_DECIMALS {
            return None;
        }
        let ticks = i64::try_from(exact_ticks(size, decimals)?).ok()?;
        (ticks > 0).then_some(Self::Step { ticks, decimals })
    }
}

/// Spellings of a missing value.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingSpellings {
    /// None: only the empty CSV field is missing.
    spellings: Option<Vec<String>>,
    /// Values of the spellings: `-1` matches `-1.0`.
    numbers: Vec<f64>,
}

impl MissingSpellings {
    /// Creates the list; `numeric` for integers and floats.
    pub fn new(spellings: Option<Vec<String>>, numeric: bool) -> Self {
        let numbers = spellings.iter().flatten().filter(|_| numeric).filter_map(|s| s.trim().parse().ok()).collect();
        Self { spellings, numbers }
    }

    /// Returns the sorted spellings, if listed.
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
        self.numbers.contains(&number)
    }
}

/// Error for a cell of the wrong type; contains no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attribute \"{attribute}\" is of type {expected}, but the cell is {found}: correct the record or the schema")]
pub struct CellError {
    attribute: Arc<str>,
    expected: &'static str,
    found: &'static str,
}

/// Outcome of typing a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanonicalKind {
    /// Missing key.
    Absent,
    /// Null, or spelled as missing.
    Null,
    /// Value, written to the buffer.
    Value,
}

/// Typing rules of one attribute.
#[derive(Clone, Debug)]
pub struct ValueTyping {
    /// Attribute name.
    pub attribute: Arc<str>,
    /// Data type.
    pub kind: AttributeType,
    /// Rounding on input.
    pub rounding: Rounding,
    /// Spellings of missing values.
    pub missing: MissingSpellings,
    /// Normalization of texts.
    pub spelling: Spelling,
    /// Format of dates and times.
    pub dates: DateFormats,
    /// Unit conversion before rounding.
    pub conversion: Option<Conversion>,
    /// Decimal comma instead of a point.
    pub decimal_comma: bool,
    /// Time zone of times without offset.
    pub zone: Option<NamedZone>,
}

impl ValueTyping {
    /// Writes the canonical JSON text of `token` into the cleared `out`.
    ///
    /// | type | canonical text |
    /// |---|---|
    /// | integer | `72` |
    /// | float | `72.5`, fewest digits, never `-0` |
    /// | boolean | `true`, `false` |
    /// | string | JSON string; numbers in full with the fewest digits |
    /// | date | `"2021-05-24"` |
    /// | timestamp | `"2021-05-24T10:00:00Z"` |
    /// | coordinates | `"47.37,8.54"` |
    ///
    /// A string of backslashes and a final `*` gets one more backslash, because `"*"` means suppressed.
    /// Structures are strings of compact JSON with sorted keys.
    ///
    /// # Errors
    /// Fails for the wrong type, NaN, infinities, overflow, or more than [`MAX_STRING_BYTES`].
    pub fn canonical(&self, token: RawToken<'_>, out: &mut String) -> Result<CanonicalKind, CellError> {
        out.clear();
        let written = match token {
            RawToken::Absent => return Ok(CanonicalKind::Absent),
            RawToken::Null => return Ok(CanonicalKind::Null),
            RawToken::Bool(value) => self.boolean_token(value, out),
            RawToken::Structure(json) => self.structure(json, out),
            RawToken::Number(text) if self.kind == AttributeType::String => self.number_as_text(text, out),
            RawToken::Number(text) => self.text(text, false, out),
            RawToken::Text(text) | RawToken::Untyped(text) if self.decimal_comma => {
                let untyped = matches!(token, RawToken::Untyped(_));
                match text {
                    // Missing spellings have the decimal comma of the input.
                    _ if self.missing.matches(text, untyped) => Ok(CanonicalKind::Null),
                    _ if text.contains('.') => Err("a number with a point, but the decimal separator is a comma"),
                    _ => self.text(&text.replacen(',', ".", 1), untyped, out),
                }
            }
            RawToken::Text(text) => self.text(text, false, out),
            RawToken::Untyped(text) => self.text(text, true, out),
        };
        written.map_err(|found| self.type_error(found))
    }

    /// Checks for a spelling of a missing value; `untyped` for a CSV field.
    pub fn is_missing(&self, text: &str, untyped: bool) -> bool {
        self.missing.matches(text, untyped)
    }

    /// Returns the typing of canonical texts.
    #[must_use]
    pub fn for_released_values(&self) -> Self {
        let numeric = matches!(self.kind, AttributeType::Integer | AttributeType::Float);
        let missing = MissingSpellings::new(Some(Vec::new()), numeric);
        Self { conversion: None, missing, dates: DateFormats::Iso, decimal_comma: false, zone: None, ..self.clone() }
    }

    /// Leaves the typing of numbers that are already converted, and returns that of the raw ones: floats without
    /// rounding.
    pub(super) fn split_conversion(&mut self) -> Self {
        let converted = Self {
            conversion: Some(Conversion::IDENTITY),
            missing: MissingSpellings::new(Some(Vec::new()), true),
            decimal_comma: false,
            ..self.clone()
        };
        let raw = std::mem::replace(self, converted);
        Self { kind: AttributeType::Float, rounding: Rounding::None, ..raw }
    }

    /// Returns the typing of converted values.
    pub fn without_conversion(&self) -> Cow<'_, Self> {
        let plain = || Self { decimal_comma: false, ..self.clone() };
        match self.conversion {
            None if !self.decimal_comma => Cow::Borrowed(self),
            None => Cow::Owned(plain()),
            Some(_) => Cow::Owned(Self { conversion: None, missing: MissingSpellings::new(None, true), ..plain() }),
        }
    }

    /// Returns the time of a text, in milliseconds since 1970.
    pub fn parse_moment(&self, text: &str) -> Option<i64> {
        let partial = || match (&self.dates, self.rounding) {
            (DateFormats::Iso, Rounding::Unit(unit)) => moment::parse_partial(text, unit),
            _ => None,
        };
        self.dates.read_in_zone(text, self.zone.as_ref()).or_else(partial)
    }

    fn moment_error(&self, text: &str) -> &'static str {
        let is_read_with = |unit| matches!(self.dates, DateFormats::Iso) && moment::parse_partial(text, unit).is_some();
        if is_read_with(CalendarUnit::Month) {
            "a month without a day (set round = \"month\" or a longer unit in the schema to accept it)"
        } else if is_read_with(CalendarUnit::Year) {
            "a year without a month (set round = \"year\" in the schema to accept it)"
        } else {
            self.dates.mismatch_message()
        }
    }

    /// Creates the error for a cell of the wrong type.
    pub fn type_error(&self, found: &'static str) -> CellError {
        CellError { attribute: Arc::clone(&self.attribute), expected: self.kind.name(), found }
    }

    fn boolean_token(&self, value: bool, out: &mut String) -> Result<CanonicalKind, &'static str> {
        let text = if value { "true" } else { "false" };
        match self.kind {
            AttributeType::Boolean => out.push_str(text),
            AttributeType::String => return self.text(text, false, out),
            _ => return Err("a boolean"),
        }
        Ok(CanonicalKind::Value)
    }

    fn number_as_text(&self, number: &str, out: &mut String) -> Result<CanonicalKind, &'static str> {
        if self.missing.matches(number, false) {
            return Ok(CanonicalKind::Null);
        }
        let mut plain = String::with_capacity(number.len());
        push_plain(&mut plain, number).ok_or("a number that is too large")?;
        self.text(&plain, false, out)
    }

    fn string(&self, text: &str, untyped: bool, out: &mut String) -> Result<CanonicalKind, &'static str> {
        let spelled = self.spelling.normalized_text(text);
        if self.missing.matches(&spelled, untyped) {
            return Ok(CanonicalKind::Null);
        }
        if self.spelling.numbers && spells_a_number(&spelled) {
            let mut plain = String::with_capacity(spelled.len());
            push_plain(&mut plain, spelled.trim_start_matches('+')).ok_or("a number that is too large")?;
            push_string(out, &plain)?;
        } else {
            push_string(out, &spelled)?;
        }
        Ok(CanonicalKind::Value)
    }

    fn structure(&self, json: &str, out: &mut String) -> Result<CanonicalKind, &'static str> {
        match self.kind {
            AttributeType::String => {
                let value: serde_json::Value =
                    serde_json::from_str(json).map_err(|_| "a structure that is not JSON")?;
                let mut compact = String::new();
                push_sorted(&mut compact, &value);
                push_string(out, &self.spelling.normalized_text(&compact))?;
            }
            AttributeType::Coordinates => {
                let value: serde_json::Value =
                    serde_json::from_str(json).map_err(|_| "a structure that is not JSON")?;
                let (latitude, longitude) =
                    parse_coordinates(&value).ok_or("a structure without latitude and longitude")?;
                self.coordinates(latitude, longitude, out)?;
            }
            _ => return Err("an array or object"),
        }
        Ok(CanonicalKind::Value)
    }

    fn text(&self, text: &str, untyped: bool, out: &mut String) -> Result<CanonicalKind, &'static str> {
        if self.missing.matches(text, untyped) {
            return Ok(CanonicalKind::Null);
        }
        let bare = text.trim_ascii();
        match self.kind {
            AttributeType::String => return self.string(text, untyped, out),
            AttributeType::Integer => {
                let (value, number) = match self.conversion {
                    None => parse_integer(bare)?,
                    Some(conversion) => match self.convert_number(conversion, bare)? {
                        None => return Ok(CanonicalKind::Null),
                        Some(value) => integer_of(value.round())?,
                    },
                };
                if self.conversion.is_none() && self.missing.matches_number(number) {
                    return Ok(CanonicalKind::Null);
                }
                let rounded = self.round_integer(value).ok_or("a number that is too large")?;
                push_ticks(out, i128::from(rounded), 0);
            }
            AttributeType::Float => {
                let value = match self.conversion {
                    None => parse_finite(bare)?,
                    Some(conversion) => match self.convert_number(conversion, bare)? {
                        None => return Ok(CanonicalKind::Null),
                        Some(value) => value,
                    },
                };
                if self.conversion.is_none() && self.missing.matches_number(value) {
                    return Ok(CanonicalKind::Null);
                }
                self.push_float(out, value);
            }
            AttributeType::Boolean => out.push_str(parse_boolean(bare).ok_or("not a boolean")?),
            AttributeType::Date | AttributeType::Timestamp => {
                self.push_moment(out, self.parse_moment(bare).ok_or_else(|| self.moment_error(bare))?);
            }
            AttributeType::Coordinates => {
                let (latitude, longitude) = bare.split_once(',').ok_or("not a pair of numbers")?;
                self.coordinates(parse_finite(latitude.trim_ascii())?, parse_finite(longitude.trim_ascii())?, out)?;
            }
        }
        Ok(CanonicalKind::Value)
    }

    fn convert_number(&self, conversion: Conversion, text: &str) -> Result<Option<f64>, &'static str> {
        let raw = parse_finite(text)?;
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
                // From 2⁵³ steps on, a double has no digits to round.
                if steps.abs() < 9_007_199_254_740_992.0 {
                    push_ticks(out, i128::from(steps as i64) * i128::from(ticks), decimals);
                } else {
                    push_shortest(out, value);
                }
            }
            Rounding::Digits(digits) => {
                let rounded = format!("{:.*e}", digits.saturating_sub(1) as usize, value).parse::<f64>();
                // Rounding up the largest doubles gives infinity.
                push_shortest(out, rounded.ok().filter(|r| r.is_finite()).unwrap_or(value));
            }
            Rounding::None | Rounding::Unit(_) => push_shortest(out, value),
        }
    }

    fn push_moment(&self, out: &mut String, millis: i64) {
        let millis = if let Rounding::Unit(unit) = self.rounding { unit.start(millis) } else { millis };
        out.push('"');
        if self.kind == AttributeType::Date {
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
        self.push_float(out, self.clamp_degrees(latitude, 90));
        out.push(',');
        self.push_float(out, self.clamp_degrees(longitude, 180));
        out.push('"');
        Ok(())
    }

    fn clamp_degrees(&self, degrees: f64, limit: i64) -> f64 {
        let Rounding::Step { ticks, decimals } = self.rounding else { return degrees };
        let whole = 10_i64.pow(decimals);
        let most = (limit * whole / ticks * ticks) as f64 / whole as f64;
        degrees.clamp(-most, most)
    }
}

fn parse_integer(text: &str) -> Result<(i64, f64), &'static str> {
    if let Ok(value) = text.parse::<i64>() {
        return Ok((value, value as f64));
    }
    let value = parse_finite(text)?;
    if value.fract() != 0.0 {
        return Err("a number with a fraction");
    }
    integer_of(value)
}

fn integer_of(value: f64) -> Result<(i64, f64), &'static str> {
    // Beyond 2⁵³, a double may represent several integers.
    if value.abs() > 9_007_199_254_740_992.0 {
        return Err("a number that is too large");
    }
    Ok((value as i64, value))
}

fn parse_finite(text: &str) -> Result<f64, &'static str> {
    // `parse` also accepts "inf" and "nan".
    let value: f64 = text.parse().map_err(|_| "not a number")?;
    if value.is_finite() { Ok(value) } else { Err("not a finite number") }
}

fn parse_boolean(text: &str) -> Option<&'static str> {
    match text {
        "true" | "True" | "TRUE" | "1" | "1.0" => Some("true"),
        "false" | "False" | "FALSE" | "0" | "0.0" => Some("false"),
        _ => None,
    }
}

fn parse_coordinates(value: &serde_json::Value) -> Option<(f64, f64)> {
    if let Some(list) = value.as_array() {
        return if list.len() == 2 { Some((list[0].as_f64()?, list[1].as_f64()?)) } else { None };
    }
    let any = |names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_f64());
    Some((any(&["lat", "latitude"])?, any(&["lon", "lng", "longitude"])?))
}

/// Avoids the `"*"` of suppression.
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
