//! Schema keys for the position, unit and spelling of an attribute.

use super::attribute::{AttributeOrigin, AttributePlace, Role, segments};
use crate::values::canonical::AttributeType;
use crate::values::date_formats::{DateFormat, DateFormats, EpochUnit, TimeBase, TimeOfDayFormat, TimeOffset};
use crate::values::spelling::{Spelling, UnicodeForm};
use crate::values::table_reader::TableReader;
use crate::values::time_zone::NamedZone;
use crate::values::units::Conversion;

pub(super) fn is_pointer(pointer: &str) -> bool {
    let escaped = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    escaped && (pointer.is_empty() || pointer.starts_with('/'))
}

fn has_star(pointer: &str) -> bool {
    pointer.split('/').skip(1).any(|segment| segment == "*")
}

pub(super) const INVALID_POINTER: &str = "not a JSON pointer: it must start with / and escape ~ as ~0 and / as ~1";

pub(super) fn read_explode(keys: &mut TableReader<'_>) -> Option<String> {
    let pointer: String = keys.optional("explode")?;
    if !is_pointer(&pointer) {
        keys.problem("explode", INVALID_POINTER);
        return None;
    }
    if has_star(&pointer) {
        keys.problem("explode", "nested arrays are not split: use the pointer of the outer array, or write one record per inner element beforehand (jq)");
        return None;
    }
    Some(pointer)
}

const MISPLACED_STAR: &str =
    "`*` means the elements of the array in `explode` and is not allowed elsewhere; other arrays are read as one cell";

/// Returns the number of segments of `explode`, if `place` continues with its elements.
pub(super) fn element_depth(
    keys: &mut TableReader<'_>,
    key: &str,
    place: Option<&AttributePlace>,
    from: &AttributeOrigin,
    explode: Option<&str>,
) -> Option<usize> {
    let (Some(place), AttributeOrigin::Value, Some(array)) = (place, from, explode) else { return None };
    if let AttributePlace::Pointer(pointer) = place
        && let Some(rest) = pointer.strip_prefix(array).and_then(|rest| rest.strip_prefix("/*"))
        && (rest.is_empty() || rest.starts_with('/'))
    {
        if has_star(rest) {
            keys.problem(key, MISPLACED_STAR);
        }
        return Some(segments(array).len());
    }
    if matches!(place, AttributePlace::Pointer(pointer) if has_star(pointer)) {
        keys.problem(key, MISPLACED_STAR);
        return None;
    }
    if array.is_empty() {
        keys.problem(
            key,
            "the message is an array (explode = \"\"): start the pointer with /*, which means each element",
        );
    }
    None
}

/// Defaults to the message value.
pub(super) fn read_origin(keys: &mut TableReader<'_>) -> AttributeOrigin {
    let Some(name) = keys.optional::<String>("from") else { return AttributeOrigin::Value };
    AttributeOrigin::from_name(&name).unwrap_or_else(|| {
        keys.problem("from", "not one of value, key, header:NAME, timestamp, topic, join:NAME");
        AttributeOrigin::Value
    })
}

/// Defaults to the attribute name.
pub(super) fn read_place(
    keys: &mut TableReader<'_>,
    name: Option<&str>,
    from: &AttributeOrigin,
) -> Option<AttributePlace> {
    let column: Option<String> = keys.optional("column");
    let pointer: Option<String> = keys.optional("pointer");
    if !from.has_fields() {
        let message = format!("from = \"{}\" is taken as a whole: remove the key", from.name());
        keys.report_present(&[("column", column.is_some()), ("pointer", pointer.is_some())], &message);
        return Some(AttributePlace::Pointer(String::new()));
    }
    match (column, pointer) {
        (Some(_), Some(_)) => {
            keys.problem("pointer", "column and pointer exclude each other: keep one");
            None
        }
        (Some(column), None) => Some(AttributePlace::Column(column)),
        (None, Some(pointer)) => {
            let whole = pointer.is_empty() && *from == AttributeOrigin::Key;
            if !is_pointer(&pointer) || (pointer.is_empty() && !whole) {
                keys.problem("pointer", INVALID_POINTER);
                return None;
            }
            Some(AttributePlace::Pointer(pointer))
        }
        (None, None) => name.map(|name| AttributePlace::Column(name.to_owned())),
    }
}

/// `in_record` is the origin of an attribute whose unit is in the record.
pub(super) fn read_unit(
    keys: &mut TableReader<'_>,
    kind: Option<AttributeType>,
    role: Role,
    in_record: Option<&AttributeOrigin>,
) -> (Option<String>, Option<Conversion>) {
    let unit: Option<String> = keys.optional("unit");
    let to: Option<String> = keys.optional("to");
    let scale: Option<f64> = keys.optional("scale");
    let offset: Option<f64> = keys.optional("offset");
    let factors = scale.is_some() || offset.is_some();
    let numeric = matches!(kind, None | Some(AttributeType::Integer | AttributeType::Float));
    if !numeric {
        let given = [("to", to.is_some()), ("scale", scale.is_some()), ("offset", offset.is_some())];
        keys.report_present(&given, "only integers and floats are converted: remove it");
    }
    if (to.is_some() || factors) && role == Role::Subject {
        keys.problem("to", "a subject has no unit: remove it");
    }
    if let Some(from) = in_record {
        if !numeric || role == Role::Subject || from.join().is_some() {
            keys.problem("unit_from", "only integers and floats of the record have a unit: remove it");
        }
        let given = [("to", to.is_some()), ("scale", scale.is_some()), ("offset", offset.is_some())];
        keys.report_present(&given, "unit_from already converts to `unit`: remove the key");
        if unit.is_none() {
            keys.problem("unit", "the unit to which numbers are converted is missing: add it");
        }
        return (unit, None);
    }
    if to.is_some() && factors {
        keys.problem("to", "unit and to already define the conversion: remove scale and offset, or this key");
        return (to, None);
    }
    match (&unit, &to) {
        (Some(from), Some(into)) => {
            let conversion = Conversion::between(from, into);
            if conversion.is_none() {
                let message = "unknown conversion from `unit`: set scale and offset instead (docs/schema.md lists \
                               the units)";
                keys.problem("to", message);
            }
            return (to, conversion);
        }
        (None, Some(_)) => {
            keys.problem("unit", "the unit of the raw values is missing: add it");
            return (to, None);
        }
        _ => {}
    }
    if !factors {
        return (unit, None);
    }
    let conversion = Conversion { scale: scale.unwrap_or(1.0), offset: offset.unwrap_or(0.0) };
    if !conversion.scale.is_finite() || conversion.scale == 0.0 {
        keys.problem("scale", "0 or not finite: set another factor");
    }
    if !conversion.offset.is_finite() {
        keys.problem("offset", "not finite: set a finite number");
    }
    (unit, Some(conversion))
}

#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum CaseOption {
    Fold,
}

/// Subjects are normalized unless the schema has `normalize = "none"`.
pub(super) fn read_spelling(keys: &mut TableReader<'_>, kind: Option<AttributeType>, role: Role) -> Spelling {
    let normalize: Option<UnicodeForm> = keys.optional("normalize");
    let case: Option<CaseOption> = keys.optional("case");
    if kind.is_some_and(|kind| kind != AttributeType::String) {
        let given = [("normalize", normalize.is_some()), ("case", case.is_some())];
        keys.report_present(&given, "only strings can be normalized: remove it");
        return Spelling::default();
    }
    let mut spelling = match (role, normalize) {
        (Role::Subject, None) => Spelling::SUBJECT_DEFAULT,
        (Role::Subject, Some(normalize)) => Spelling { normalize, ..Spelling::SUBJECT_DEFAULT },
        (_, normalize) => Spelling { normalize: normalize.unwrap_or_default(), ..Spelling::default() },
    };
    spelling.fold = case.is_some();
    spelling.numbers &= spelling.normalize != UnicodeForm::None;
    spelling
}

pub(super) fn read_base(
    keys: &mut TableReader<'_>,
    kind: Option<AttributeType>,
    from: &AttributeOrigin,
) -> Option<TimeBase> {
    let attribute: String = keys.optional("base")?;
    if !matches!(kind, None | Some(AttributeType::Date | AttributeType::Timestamp)) {
        keys.problem("base", "only dates and timestamps can count from a base: remove it, or correct `type`");
    }
    if *from == AttributeOrigin::Timestamp || from.join().is_some() {
        keys.problem("base", "message timestamps and attributes of a profile cannot count from a base: remove it");
    }
    let (epoch, format): (Option<EpochUnit>, Option<String>) = (keys.optional("epoch"), keys.optional("format"));
    let span = match (epoch, format) {
        (Some(unit), None) => TimeOffset::Number(unit),
        (None, Some(format)) => match TimeOfDayFormat::new(&format) {
            Ok(clock) => TimeOffset::Clock(clock),
            Err(fault) => {
                keys.problem("format", format!("{format:?}: {fault}"));
                return None;
            }
        },
        (Some(_), Some(_)) => {
            keys.problem("epoch", "format and epoch exclude each other: keep one");
            return None;
        }
        (None, None) => {
            let message = "the unit of the cells is missing: add `epoch` (for numbers) or `format` (for times of day)";
            keys.problem("base", message);
            return None;
        }
    };
    Some(TimeBase { attribute, span })
}

#[derive(Clone, Copy, Debug, serde::Deserialize)]
enum DecimalOption {
    #[serde(rename = ",")]
    Comma,
}

pub(super) fn read_decimal_comma(keys: &mut TableReader<'_>, kind: Option<AttributeType>) -> bool {
    let decimal: Option<DecimalOption> = keys.optional("decimal");
    if !matches!(kind, None | Some(AttributeType::Integer | AttributeType::Float)) {
        keys.report_present(
            &[("decimal", decimal.is_some())],
            "only integers and floats have a decimal separator: remove it, or correct `type`",
        );
    }
    decimal.is_some()
}

pub(super) fn read_zone(
    keys: &mut TableReader<'_>,
    kind: Option<AttributeType>,
    from: &AttributeOrigin,
    dates: &DateFormats,
) -> Option<NamedZone> {
    let name: String = keys.optional("zone")?;
    if !matches!(kind, None | Some(AttributeType::Timestamp)) {
        keys.problem("zone", "only timestamps have a time zone: remove it, or correct `type`");
    }
    if matches!(dates, DateFormats::Epoch(_) | DateFormats::Sum) || *from == AttributeOrigin::Timestamp {
        keys.problem("zone", "epoch times, times with a `base` and message timestamps are not local times: remove it");
    }
    let zone = NamedZone::from_name(&name);
    if zone.is_none() {
        keys.problem(
            "zone",
            format!("{name:?} is not a zone of the IANA database, such as \"Europe/Zurich\" or \"America/New_York\""),
        );
    }
    zone
}

pub(super) fn read_dates(
    keys: &mut TableReader<'_>,
    kind: Option<AttributeType>,
    from: &AttributeOrigin,
) -> DateFormats {
    let formats = read_formats(keys);
    let epoch: Option<EpochUnit> = keys.optional("epoch");
    let temporal = matches!(kind, None | Some(AttributeType::Date | AttributeType::Timestamp));
    let given = [("format", formats.is_some()), ("epoch", epoch.is_some())];
    if *from == AttributeOrigin::Timestamp {
        if !temporal {
            keys.problem("type", "a message timestamp must be of type timestamp or date");
        }
        keys.report_present(&given, "a message timestamp is already a time: remove the key");
        return DateFormats::Iso;
    }
    if !temporal {
        keys.report_present(&given, "only dates and timestamps can have it: remove it, or correct `type`");
    }
    match (formats, epoch) {
        (Some(_), Some(_)) => {
            keys.problem("epoch", "format and epoch exclude each other: keep one");
            DateFormats::Iso
        }
        (Some(formats), None) => DateFormats::Formats(formats),
        (None, Some(epoch)) => DateFormats::Epoch(epoch),
        (None, None) => DateFormats::Iso,
    }
}

/// Limit for comparing all pairs, and trying each format per cell.
const MAX_FORMATS: usize = 16;

fn read_formats(keys: &mut TableReader<'_>) -> Option<Vec<DateFormat>> {
    let first_year: Option<i32> = keys.optional("first_year");
    if first_year.is_some_and(|year| !(1000..=9900).contains(&year)) {
        keys.problem("first_year", "not a year from 1000 to 9900");
        return None;
    }
    let Some(given) = keys.take_value("format") else {
        keys.report_present(&[("first_year", first_year.is_some())], "no `format` has two-digit years (%y): remove it");
        return None;
    };
    let texts = match given {
        toml::Value::String(text) => vec![text],
        toml::Value::Array(list) if !list.is_empty() && list.iter().all(toml::Value::is_str) => {
            list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        }
        _ => {
            keys.problem("format", "must be a format such as \"%m/%d/%Y\" or a list of formats");
            return None;
        }
    };
    if texts.len() > MAX_FORMATS {
        let message = format!(
            "{} formats, but at most {MAX_FORMATS} are allowed: keep those that occur in the data",
            texts.len()
        );
        keys.problem("format", message);
        return None;
    }
    let mut formats: Vec<(String, DateFormat)> = Vec::new();
    for text in texts {
        match DateFormat::with_first_year(&text, first_year) {
            Ok(format) => {
                if let Some((other, _)) = formats.iter().find(|(_, before)| before.contradicts(&format)) {
                    let message = format!(
                        "ambiguous: {other:?} and {text:?} read the same text as different days or times; keep one"
                    );
                    keys.problem("format", message);
                }
                formats.push((text, format));
            }
            Err(fault) => keys.problem("format", format!("{text:?}: {fault}")),
        }
    }
    if first_year.is_some() && !formats.iter().any(|(_, format)| format.has_short_years()) {
        keys.problem("first_year", "no `format` has two-digit years (%y): remove it");
    }
    Some(formats.into_iter().map(|(_, format)| format).collect())
}
