//! TOML schemas.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Schema;
use super::attribute::{Attribute, AttributeTreatment, ChangeFrequency, Role, UnitSource};
use super::attribute_keys::{self, element_depth, read_explode, read_origin, read_place, read_unit};
use super::hierarchy_table::read_hierarchy;
use super::message_selection::{read_selection, share_place};
use crate::values::canonical::{AttributeType, MissingSpellings, Rounding, ValueTyping};
use crate::values::date_formats::{DateFormats, TimeBase, TimeOffset};
use crate::values::hierarchy::Hierarchy;
use crate::values::moment::CalendarUnit;
use crate::values::table_reader::{SchemaError, SchemaProblem, TableReader};

impl Schema {
    /// Reads a schema with its hierarchy files.
    ///
    /// # Errors
    /// Lists all problems of all files.
    pub fn load(path: &Path) -> Result<Self, SchemaError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot be read ({error}): check the path");
            SchemaError { problems: vec![SchemaProblem { file: file.clone(), place: String::new(), message }] }
        })?;
        Self::parse(&text, &file, path.parent().unwrap_or(Path::new("")))
    }

    /// Returns the hierarchy files of a schema, even if missing or invalid.
    pub fn hierarchy_files(path: &Path) -> Vec<PathBuf> {
        let Some(table) = std::fs::read_to_string(path).ok().and_then(|text| text.parse::<toml::Table>().ok()) else {
            return Vec::new();
        };
        let attributes = table.get("attribute").and_then(toml::Value::as_array).into_iter().flatten();
        let files = attributes.filter_map(|attribute| attribute.get("hierarchy")?.get("path")?.as_str());
        files.map(|file| path.parent().unwrap_or(Path::new("")).join(file)).collect()
    }

    /// Parses a schema with hierarchy files in `folder`; messages contain `file`.
    ///
    /// # Errors
    /// Fails like [`load`](Self::load).
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, SchemaError> {
        let mut problems = Vec::new();
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                let error: toml::de::Error = error;
                let line =
                    error.span().map_or(1, |span| text.get(..span.start).map_or(1, |t| t.matches('\n').count() + 1));
                let message = format!("not TOML: {}", error.message());
                let problem = SchemaProblem { file: file.to_owned(), place: format!("line {line}"), message };
                return Err(SchemaError { problems: vec![problem] });
            }
        };
        let mut keys = TableReader::new(table, file, String::new(), &mut problems);
        let name: Option<String> = keys.required("name");
        let explode = read_explode(&mut keys);
        let is_one_record_each = read_record_subject(&mut keys);
        let listed = keys.take_value("attribute");
        let mut attributes: Vec<Arc<Attribute>> = Vec::new();
        match listed {
            Some(toml::Value::Array(list)) => {
                keys.finish();
                for (index, entry) in list.into_iter().enumerate() {
                    if let Some(attribute) =
                        read_attribute(entry, index, (file, folder), explode.as_deref(), &mut problems)
                    {
                        attributes.push(Arc::new(attribute));
                    }
                }
            }
            _ => {
                keys.problem("attribute", "no attributes: add one [[attribute]] table for each");
                keys.finish();
            }
        }
        let subject = check_attributes(&attributes, file, &mut problems);
        if is_one_record_each && (subject.is_some() || explode.is_some()) {
            let message = "\"record\" declares one record per person, but another key defines the subject: remove one";
            problems.push(SchemaProblem {
                file: file.to_owned(),
                place: "subject".to_owned(),
                message: message.to_owned(),
            });
        }
        if explode.is_some() && problems.is_empty() {
            problems.extend(explode_problem(&attributes, subject, file));
        }
        match name {
            Some(name) if problems.is_empty() => Ok(Schema { name, attributes, subject, is_one_record_each, explode }),
            _ => Err(SchemaError { problems }),
        }
    }
}

fn read_record_subject(keys: &mut TableReader<'_>) -> bool {
    let declared: Option<String> = keys.optional("subject");
    if declared.as_deref().is_some_and(|declared| declared != "record") {
        keys.problem("subject", "unknown value: use \"record\", or set role = \"subject\" on an attribute");
    }
    declared.is_some()
}

fn explode_problem(attributes: &[Arc<Attribute>], subject: Option<usize>, file: &str) -> Option<SchemaProblem> {
    let message = if attributes.iter().all(|attribute| attribute.elements.is_none()) {
        "no attribute is read from the elements: start a pointer with the pointer of the array and /*"
    } else if subject.is_none() {
        "the elements of a message are of one person, but no attribute has the role subject: add one"
    } else {
        return None;
    };
    Some(SchemaProblem { file: file.to_owned(), place: "explode".to_owned(), message: message.to_owned() })
}

/// Returns the subject attribute.
fn check_attributes(attributes: &[Arc<Attribute>], file: &str, problems: &mut Vec<SchemaProblem>) -> Option<usize> {
    let mut report = |name: &str, message: String| {
        problems.push(SchemaProblem { file: file.to_owned(), place: format!("attribute \"{name}\""), message });
    };
    let mut subject: Option<usize> = None;
    for (index, attribute) in attributes.iter().enumerate() {
        let earlier = &attributes[..index];
        if earlier.iter().any(|a| a.name == attribute.name) {
            report(&attribute.name, "this name is used twice: names must differ".into());
        }
        if earlier.iter().any(|a| share_place(a, attribute)) {
            report(&attribute.name, "another attribute reads the same place: remove one".into());
        }
        if let Some(base) = &attribute.base
            && let Some(message) = base_problem(attribute, base, attributes)
        {
            report(&attribute.name, message);
        }
        if let Some(units) = &attribute.units
            && let Some(message) = units_problem(attribute, units, attributes)
        {
            report(&attribute.name, message);
        }
        if attribute.role == Role::Subject {
            if attribute.from.join().is_some() {
                let message =
                    "the subject cannot come from a profile, which is found by subject: read it from the record";
                report(&attribute.name, message.into());
            }
            if let Some(first) = subject {
                let first = &attributes[first].name;
                report(&attribute.name, format!("\"{first}\" is already the subject: only one attribute can be"));
            } else {
                subject = Some(index);
            }
        }
    }
    let joined = attributes.iter().find(|a| a.from.join().is_some());
    if let (Some(joined), None) = (joined, subject) {
        let message = "profiles are found by subject, but no attribute is the subject: set role = \"subject\" on one";
        report(&joined.name, message.into());
    }
    subject
}

fn base_problem(of: &Attribute, base: &TimeBase, attributes: &[Arc<Attribute>]) -> Option<String> {
    let name = &base.attribute;
    let Some(from) = attributes.iter().find(|attribute| attribute.name == *name) else {
        return Some(format!(
            "base {name:?} is not an attribute: correct the name, or add a date or timestamp attribute of this name (role = \"identifier\" if it must not be released)"
        ));
    };
    if from.base.is_some() {
        return Some(format!("base {name:?} counts from another attribute: use that one instead"));
    }
    if from.from.join().is_some() {
        return Some(format!("base {name:?} comes from a profile: use an attribute of the record"));
    }
    if lacks_topics(from, of) {
        return Some(format!("base {name:?} is not in all topics of the attribute: add them to `topics` of the base"));
    }
    match (&base.span, from.kind()) {
        (TimeOffset::Number(_), AttributeType::Date | AttributeType::Timestamp)
        | (TimeOffset::Clock(_), AttributeType::Date) => None,
        (TimeOffset::Clock(_), AttributeType::Timestamp) => Some(format!(
            "the format is a time of day, but base {name:?} is not a date: change the type of the base to date"
        )),
        _ => Some(format!("base {name:?} is not a time: use an attribute of type date or timestamp")),
    }
}

fn units_problem(of: &Attribute, units: &UnitSource, attributes: &[Arc<Attribute>]) -> Option<String> {
    let name = &units.attribute;
    let Some(from) = attributes.iter().find(|attribute| attribute.name == *name) else {
        return Some(format!(
            "unit_from {name:?} is not an attribute: correct the name, or add a string attribute of this name (role = \"identifier\" if it must not be released)"
        ));
    };
    if from.kind() != AttributeType::String {
        return Some(format!("unit_from {name:?} is not a string: correct the name, or its type"));
    }
    if from.from.join().is_some() {
        return Some(format!("unit_from {name:?} comes from a profile: use an attribute of the record"));
    }
    lacks_topics(from, of)
        .then(|| format!("unit_from {name:?} is not in all topics of the attribute: add them to its `topics`"))
}

/// Returns true if a topic of `of` lacks `companion`.
fn lacks_topics(companion: &Attribute, of: &Attribute) -> bool {
    let (has, needed) = (&companion.selection.topics, &of.selection.topics);
    !has.is_empty() && (needed.is_empty() || needed.iter().any(|topic| !has.contains(topic)))
}

fn read_name(keys: &mut TableReader<'_>) -> Option<String> {
    let name: Option<String> = keys.required("name");
    name.filter(|name| {
        let sound = !name.is_empty() && !name.contains('\0') && name.trim() == name;
        if !sound {
            keys.problem("name", "empty, surrounded by spaces or with a zero byte: correct it");
        }
        sound
    })
}

/// Returns the hierarchy, `None` if it is wrong, and true if uncovered cells are suppressed.
fn read_generalization(
    keys: &mut TableReader<'_>,
    role: Role,
    typing: Option<&ValueTyping>,
    folder: &Path,
) -> (Option<Hierarchy>, bool) {
    let (mut hierarchy, mut suppresses_uncovered) = (Some(Hierarchy::Flat), false);
    if let Some(mut inner) = keys.table("hierarchy") {
        if !role.is_releasable() || role == Role::Insensitive {
            inner.problem(
                "",
                format!("an attribute of role {} is never generalized: remove the hierarchy", role.name()),
            );
        }
        suppresses_uncovered = inner.optional::<UncoveredPolicy>("uncovered") == Some(UncoveredPolicy::Suppress);
        if suppresses_uncovered && !role.is_quasi() {
            inner.problem(
                "uncovered",
                format!("cells of role {} are not suppressed for uncovered values: remove the key", role.name()),
            );
        }
        if let Some(typing) = typing {
            hierarchy = read_hierarchy(&mut inner, typing, folder);
            inner.finish();
        }
        // The valid hierarchy keys depend on the missing type, which is already reported.
    }
    (hierarchy, suppresses_uncovered)
}

fn read_attribute(
    entry: toml::Value,
    index: usize,
    (file, folder): (&str, &Path),
    explode: Option<&str>,
    problems: &mut Vec<SchemaProblem>,
) -> Option<Attribute> {
    let before = problems.len();
    let toml::Value::Table(table) = entry else {
        let place = format!("attribute[{index}]");
        problems.push(SchemaProblem {
            file: file.to_owned(),
            place,
            message: "not a table: write [[attribute]]".into(),
        });
        return None;
    };
    let label = table.get("name").and_then(toml::Value::as_str).map_or(String::new(), |name| format!(" \"{name}\""));
    let mut keys = TableReader::new(table, file, format!("attribute[{index}]{label}"), problems);
    let name = read_name(&mut keys);
    let from = read_origin(&mut keys);
    let place = read_place(&mut keys, name.as_deref(), &from);
    let elements = element_depth(&mut keys, "pointer", place.as_ref(), &from, explode);
    let kind: Option<AttributeType> = keys.required("type");
    let role: Role = keys.optional("role").unwrap_or(Role::Quasi);
    let unit_from: Option<String> = keys.optional("unit_from");
    let (unit, conversion) = read_unit(&mut keys, kind, role, unit_from.as_deref().map(|_| &from));
    let rounding = read_rounding(&mut keys, kind);
    let missing: Option<Vec<String>> = keys.optional("missing");
    let spelling = attribute_keys::read_spelling(&mut keys, kind, role);
    let counts = keys.has("base");
    let base = attribute_keys::read_base(&mut keys, kind, &from);
    let dates = if counts { DateFormats::Sum } else { attribute_keys::read_dates(&mut keys, kind, &from) };
    let decimal_comma = attribute_keys::read_decimal_comma(&mut keys, kind);
    let zone = attribute_keys::read_zone(&mut keys, kind, &from, &dates);
    let mut typing = name.as_ref().zip(kind).map(|(name, kind)| ValueTyping {
        attribute: name.as_str().into(),
        kind,
        rounding,
        missing: MissingSpellings::new(missing, matches!(kind, AttributeType::Integer | AttributeType::Float)),
        spelling,
        dates,
        conversion,
        decimal_comma,
        zone,
    });
    let units = unit_from.zip(unit.clone()).zip(typing.as_mut()).map(|((attribute, unit), typing)| {
        let raw = typing.split_conversion();
        UnitSource { attribute, unit, raw }
    });
    if role == Role::Time && !matches!(kind, None | Some(AttributeType::Date | AttributeType::Timestamp)) {
        keys.problem("role", "an attribute of role time must be of type date or timestamp: change one of them");
    }
    let (hierarchy, suppresses_uncovered) = read_generalization(&mut keys, role, typing.as_ref(), folder);
    let changes: Option<ChangeFrequency> = keys.optional("changes");
    if changes.is_some() && (!role.is_releasable() || role == Role::Insensitive) {
        let message =
            format!("an attribute of role {} is released unchanged or not at all: remove the key", role.name());
        keys.problem("changes", message);
    }
    let optional: bool = keys.optional("optional").unwrap_or(false);
    if optional && role == Role::Subject {
        keys.problem("optional", "a record without a subject is not counted: remove the key");
    }
    let selection = read_selection(&mut keys, role, &from, explode);
    keys.finish();
    if problems.len() > before {
        return None;
    }
    let treatment = AttributeTreatment::default();
    Some(Attribute {
        name: name?,
        from,
        place: place?,
        elements,
        role,
        unit,
        typing: typing?,
        base,
        units,
        hierarchy: hierarchy?,
        suppresses_uncovered,
        changes,
        treatment,
        optional,
        selection,
    })
}

/// Policy for uncovered values in a data set; streams suppress them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum UncoveredPolicy {
    Refuse,
    /// Releases `*`.
    Suppress,
}

fn read_rounding(keys: &mut TableReader<'_>, kind: Option<AttributeType>) -> Rounding {
    let round = keys.take_value("round");
    let digits: Option<u32> = keys.optional("digits");
    let numeric = matches!(kind, Some(AttributeType::Integer | AttributeType::Float));
    let temporal = matches!(kind, Some(AttributeType::Date | AttributeType::Timestamp));
    if round.is_some() && digits.is_some() {
        keys.problem("digits", "round and digits exclude each other: keep one");
    }
    if let Some(digits) = digits {
        if !numeric {
            keys.problem("digits", "only integers and floats have significant digits: remove it");
        }
        if !(1..=17).contains(&digits) {
            keys.problem("digits", "not between 1 and 17");
        }
        return Rounding::Digits(digits);
    }
    let Some(round) = round else { return Rounding::None };
    let size = round.as_float().or_else(|| round.as_integer().map(|n| n as f64));
    match (size, round.as_str()) {
        (Some(size), _) if numeric || kind == Some(AttributeType::Coordinates) => match Rounding::step(size) {
            Some(_) if kind == Some(AttributeType::Integer) && size.fract() != 0.0 => {
                keys.problem("round", "the step of an integer must be a whole number");
            }
            Some(step) => return step,
            None => keys.problem("round", "not a positive step with at most 9 decimals"),
        },
        (_, Some(text)) if temporal => match toml::Value::from(text).try_into::<CalendarUnit>() {
            Ok(unit) if kind == Some(AttributeType::Date) && unit < CalendarUnit::Day => {
                keys.problem("round", "a date is rounded to day, week, month, quarter or year");
            }
            Ok(unit) => return Rounding::Unit(unit),
            Err(_) => keys.problem("round", "not one of second, minute, hour, day, week, month, quarter, year"),
        },
        _ => keys.problem(
            "round",
            "must be a number for integer, float and coordinates, or a unit for date and timestamp; remove it otherwise",
        ),
    }
    Rounding::None
}
