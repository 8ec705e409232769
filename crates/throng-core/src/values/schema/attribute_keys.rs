//! The keys of an attribute that say where it is found (`from`, `column`, `pointer`), in what it is measured (`unit`, `to`, `scale`,
//! `offset`), and how its values are spelled (`decimal`, `normalize`, `case`, `format`, `first_year`, `epoch`, `base`, `zone`).

use super::attribute::{Origin, Place, Role, segments};
use crate::values::canonical::Type;
use crate::values::dates::{Base, Clock, Dates, Epoch, Format, Span};
use crate::values::keys::Keys;
use crate::values::spelling::{Normalize, Spelling};
use crate::values::units::Conversion;
use crate::values::zone::Zone;

/// Whether `pointer` is a JSON pointer.
fn is_pointer(pointer: &str) -> bool {
    let escaped = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    escaped && (pointer.is_empty() || pointer.starts_with('/'))
}

/// Whether a segment is `*`, which stands for the elements of an array.
fn has_star(pointer: &str) -> bool {
    pointer.split('/').skip(1).any(|segment| segment == "*")
}

const NO_POINTER: &str = "not a JSON pointer: it starts with / and writes ~ as ~0 and / as ~1";

/// The array whose elements are the records; none where nothing is said, or nothing that can be understood.
pub(super) fn explode(keys: &mut Keys<'_>) -> Option<String> {
    let pointer: String = keys.optional("explode")?;
    if !is_pointer(&pointer) {
        keys.problem("explode", NO_POINTER);
        return None;
    }
    if has_star(&pointer) {
        keys.problem("explode", "one array is taken apart, and none in it: name the outer one, or write a record for each inner element before (jq)");
        return None;
    }
    Some(pointer)
}

const IN_ARRAY: &str =
    "`*` stands for the elements of the array that `explode` names; another array is a cell as a whole";

/// How many segments of `place` lead to the array at `explode`, where the next one stands for each of its elements.
pub(super) fn elements(
    keys: &mut Keys<'_>,
    place: Option<&Place>,
    from: &Origin,
    explode: Option<&str>,
) -> Option<usize> {
    let (Some(place), Origin::Value, Some(array)) = (place, from, explode) else { return None };
    if let Place::Pointer(pointer) = place
        && let Some(rest) = pointer.strip_prefix(array).and_then(|rest| rest.strip_prefix("/*"))
        && (rest.is_empty() || rest.starts_with('/'))
    {
        if has_star(rest) {
            keys.problem("pointer", IN_ARRAY);
        }
        return Some(segments(array).len());
    }
    if matches!(place, Place::Pointer(pointer) if has_star(pointer)) {
        keys.problem("pointer", IN_ARRAY);
        return None;
    }
    if array.is_empty() {
        keys.problem(
            "pointer",
            "the record is an array (explode = \"\"): begin it with /*, which stands for each element",
        );
    }
    None
}

/// The part of a message that has the attribute; the value where nothing is said, or nothing that can be understood.
pub(super) fn from(keys: &mut Keys<'_>) -> Origin {
    let Some(name) = keys.optional::<String>("from") else { return Origin::Value };
    Origin::of_name(&name).unwrap_or_else(|| {
        keys.problem("from", "not one of value, key, header:NAME, timestamp, topic, join:NAME");
        Origin::Value
    })
}

/// Where that part has it; its own name where nothing is said.
pub(super) fn place(keys: &mut Keys<'_>, name: Option<&str>, from: &Origin) -> Option<Place> {
    let column: Option<String> = keys.optional("column");
    let pointer: Option<String> = keys.optional("pointer");
    if !from.has_fields() {
        let message = format!("from = \"{}\" is taken as a whole: remove the key", from.name());
        keys.refuse(&[("column", column.is_some()), ("pointer", pointer.is_some())], &message);
        return Some(Place::Pointer(String::new()));
    }
    match (column, pointer) {
        (Some(_), Some(_)) => {
            keys.problem("pointer", "column and pointer exclude each other: keep one");
            None
        }
        (Some(column), None) => Some(Place::Column(column)),
        (None, Some(pointer)) => {
            let whole = pointer.is_empty() && *from == Origin::Key;
            if !is_pointer(&pointer) || (pointer.is_empty() && !whole) {
                keys.problem("pointer", NO_POINTER);
                return None;
            }
            Some(Place::Pointer(pointer))
        }
        (None, None) => name.map(|name| Place::Column(name.to_owned())),
    }
}

/// The unit in which values leave, and what raw numbers are converted by.
pub(super) fn measured(keys: &mut Keys<'_>, kind: Option<Type>, role: Role) -> (Option<String>, Option<Conversion>) {
    let unit: Option<String> = keys.optional("unit");
    let to: Option<String> = keys.optional("to");
    let scale: Option<f64> = keys.optional("scale");
    let offset: Option<f64> = keys.optional("offset");
    let factors = scale.is_some() || offset.is_some();
    let numeric = matches!(kind, None | Some(Type::Integer | Type::Float));
    if !numeric {
        let given = [("to", to.is_some()), ("scale", scale.is_some()), ("offset", offset.is_some())];
        keys.refuse(&given, "only integers and floats are converted: remove it");
    }
    if (to.is_some() || factors) && role == Role::Subject {
        keys.problem("to", "who somebody is has no unit: remove it");
    }
    if to.is_some() && factors {
        keys.problem("to", "two units say by themselves how they are converted: remove scale and offset, or this key");
        return (to, None);
    }
    match (&unit, &to) {
        (Some(from), Some(into)) => {
            let conversion = Conversion::between(from, into);
            if conversion.is_none() {
                let message = "not known how to convert from `unit`: give scale and offset instead (docs/schema.md lists \
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
        keys.problem("scale", "neither 0 nor infinite: give a factor");
    }
    if !conversion.offset.is_finite() {
        keys.problem("offset", "not finite: give a number");
    }
    (unit, Some(conversion))
}

/// The one value of `case`.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Case {
    Fold,
}

/// Which spellings of a text are one. Subjects are merged unless the schema says `normalize = "none"`.
pub(super) fn spelling(keys: &mut Keys<'_>, kind: Option<Type>, role: Role) -> Spelling {
    let normalize: Option<Normalize> = keys.optional("normalize");
    let case: Option<Case> = keys.optional("case");
    if kind.is_some_and(|kind| kind != Type::String) {
        let given = [("normalize", normalize.is_some()), ("case", case.is_some())];
        keys.refuse(&given, "only strings have several spellings of one text: remove it");
        return Spelling::default();
    }
    let mut spelling = match (role, normalize) {
        (Role::Subject, None) => Spelling::OF_SUBJECTS,
        (Role::Subject, Some(normalize)) => Spelling { normalize, ..Spelling::OF_SUBJECTS },
        (_, normalize) => Spelling { normalize: normalize.unwrap_or_default(), ..Spelling::default() },
    };
    spelling.fold = case.is_some();
    spelling.numbers &= spelling.normalize != Normalize::None;
    spelling
}

/// What the times of an attribute count from, where that is another one.
pub(super) fn base(keys: &mut Keys<'_>, kind: Option<Type>, from: &Origin) -> Option<Base> {
    let attribute: String = keys.optional("base")?;
    if !matches!(kind, None | Some(Type::Date | Type::Timestamp)) {
        keys.problem("base", "only dates and timestamps count from another one: remove it, or correct `type`");
    }
    if *from == Origin::Timestamp || from.join().is_some() {
        keys.problem("base", "the timestamp of a message and what a profile has are times by themselves: remove it");
    }
    let (epoch, format): (Option<Epoch>, Option<String>) = (keys.optional("epoch"), keys.optional("format"));
    let span = match (epoch, format) {
        (Some(unit), None) => Span::Number(unit),
        (None, Some(format)) => match Clock::new(&format) {
            Ok(clock) => Span::Clock(clock),
            Err(fault) => {
                keys.problem("format", format!("{format:?} is {fault}"));
                return None;
            }
        },
        (Some(_), Some(_)) => {
            keys.problem("epoch", "format and epoch exclude each other: keep one");
            return None;
        }
        (None, None) => {
            let message =
                "nothing says what a cell counts: add `epoch` (the unit of a number) or `format` (of a time of day)";
            keys.problem("base", message);
            return None;
        }
    };
    Some(Base { attribute, span })
}

/// The one value of `decimal`.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
enum Decimal {
    #[serde(rename = ",")]
    Comma,
}

/// Whether texts of numbers have a decimal comma.
pub(super) fn decimal_comma(keys: &mut Keys<'_>, kind: Option<Type>) -> bool {
    let decimal: Option<Decimal> = keys.optional("decimal");
    if !matches!(kind, None | Some(Type::Integer | Type::Float)) {
        keys.refuse(
            &[("decimal", decimal.is_some())],
            "only integers and floats have one: remove it, or correct `type`",
        );
    }
    decimal.is_some()
}

/// The time zone of local times.
pub(super) fn zone(keys: &mut Keys<'_>, kind: Option<Type>, from: &Origin, dates: &Dates) -> Option<Zone> {
    let name: String = keys.optional("zone")?;
    if !matches!(kind, None | Some(Type::Timestamp)) {
        keys.problem("zone", "only timestamps have one (a date is a day, wherever): remove it, or correct `type`");
    }
    if matches!(dates, Dates::Epoch(_) | Dates::Sum) || *from == Origin::Timestamp {
        keys.problem(
            "zone",
            "what counts from 1970, from a `base` or is the timestamp of a message is no local time: remove it",
        );
    }
    let zone = Zone::named(&name);
    if zone.is_none() {
        keys.problem(
            "zone",
            format!("{name:?} is no zone of the IANA database, such as \"Europe/Zurich\" or \"America/New_York\""),
        );
    }
    zone
}

/// How dates and times are read.
pub(super) fn dates(keys: &mut Keys<'_>, kind: Option<Type>, from: &Origin) -> Dates {
    let formats = formats(keys);
    let epoch: Option<Epoch> = keys.optional("epoch");
    let temporal = matches!(kind, None | Some(Type::Date | Type::Timestamp));
    let given = [("format", formats.is_some()), ("epoch", epoch.is_some())];
    if *from == Origin::Timestamp {
        if !temporal {
            keys.problem("type", "the timestamp of a message is of type timestamp or date");
        }
        keys.refuse(&given, "the timestamp of a message is a time by itself: remove the key");
        return Dates::Iso;
    }
    if !temporal {
        keys.refuse(&given, "only dates and timestamps have one: remove it, or correct `type`");
    }
    match (formats, epoch) {
        (Some(_), Some(_)) => {
            keys.problem("epoch", "format and epoch exclude each other: keep one");
            Dates::Iso
        }
        (Some(formats), None) => Dates::Formats(formats),
        (None, Some(epoch)) => Dates::Epoch(epoch),
        (None, None) => Dates::Iso,
    }
}

/// Formats of one attribute. Every two of them are compared, and every cell may be tried with each.
const MOST_FORMATS: usize = 16;

/// One format or several, each checked, and all of them against each other.
fn formats(keys: &mut Keys<'_>) -> Option<Vec<Format>> {
    let first_year: Option<i32> = keys.optional("first_year");
    if first_year.is_some_and(|year| !(1000..=9900).contains(&year)) {
        keys.problem("first_year", "not a year from 1000 to 9900");
        return None;
    }
    let Some(given) = keys.raw("format") else {
        keys.refuse(&[("first_year", first_year.is_some())], "no `format` has years of two digits (%y): remove it");
        return None;
    };
    let texts = match given {
        toml::Value::String(text) => vec![text],
        toml::Value::Array(list) if !list.is_empty() && list.iter().all(toml::Value::is_str) => {
            list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        }
        _ => {
            keys.problem("format", "neither a format such as \"%m/%d/%Y\" nor a list of formats");
            return None;
        }
    };
    if texts.len() > MOST_FORMATS {
        let message =
            format!("{} formats, and at most {MOST_FORMATS} are compared: keep those that the data have", texts.len());
        keys.problem("format", message);
        return None;
    }
    let mut formats: Vec<(String, Format)> = Vec::new();
    for text in texts {
        match Format::from_year(&text, first_year) {
            Ok(format) => {
                if let Some((other, _)) = formats.iter().find(|(_, before)| before.contradicts(&format)) {
                    let message =
                        format!("ambiguous: {other:?} and {text:?} read one text as different days or times; keep one");
                    keys.problem("format", message);
                }
                formats.push((text, format));
            }
            Err(fault) => keys.problem("format", format!("{text:?} is {fault}")),
        }
    }
    if first_year.is_some() && !formats.iter().any(|(_, format)| format.has_short_years()) {
        keys.problem("first_year", "no `format` has years of two digits (%y): remove it");
    }
    Some(formats.into_iter().map(|(_, format)| format).collect())
}
