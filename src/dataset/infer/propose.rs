//! From a table of texts to a schema.

use super::codes;
use super::evidence::{Cadence, PersonDays, Typed, audited, cadence, days_of_numbers};
use super::ladder::{self, Wanted};
use super::names::Name;
use super::people::{self, People};
use super::proposal::{Generalized, Ladder, Proposal, Proposed, Reading};
use super::reading;
use super::role::{self, Chosen};
use super::text;
use super::tokens::{is_nothing, plain_number};
use super::values::Values;
use crate::io::table::{TableColumn, WholeTable};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::{Attribute, Changes, Origin, Place, Role, Schema, SchemaError, Type};
use throng_risk::audit::AuditColumn;

/// What is asked of records.
#[expect(clippy::struct_excessive_bools, reason = "each is true or false of the records by itself")]
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The crowd without which nothing is said, at least 2.
    pub k: u64,
    /// The column that counts people; without one the likeliest is looked for.
    pub subject: Option<&'a str>,
    /// Every record is of another person: no column is looked for, and codes that come back are accepted.
    pub no_subject: bool,
    /// What the schema is called.
    pub name: &'a str,
    /// Where the records come from, for its first line.
    pub source: &'a str,
    /// The columns have the names of a header row, which may be a record.
    pub header: bool,
    /// The columns have the names of keys, which may be values.
    pub keys: bool,
    /// More records will come.
    pub endless: bool,
    /// Time for the search of quasi-identifiers.
    pub effort: Duration,
}

/// A schema as it was proposed.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// As commented TOML.
    pub text: String,
    /// As it is read.
    pub schema: Schema,
    /// People in the records.
    pub people: u64,
    /// Records looked at.
    pub records: u64,
    /// By name of an attribute with dates or times: days and hours of the median person. Empty where no column names people.
    pub cadences: BTreeMap<String, Cadence>,
    /// By name of a number: days of people with a value. Empty where no column names people, or none has times.
    pub days: BTreeMap<String, PersonDays>,
    /// By name of an attribute whose change within a person could not be measured: steps from a person's record to the next, which are
    /// too few.
    pub unmeasured: BTreeMap<String, u64>,
    /// By name of an attribute: position of its column in the table.
    pub columns: BTreeMap<String, usize>,
}

/// Why nothing can be proposed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum InferError {
    #[error("there is no column \"{0}\" to count people by: check the name (--subject)")]
    NoSubject(String),
    #[error(
        "no column counts people, and values come back in {} as codes of people do: name the column that counts people \
         (--subject COLUMN), or declare that every record is of another person (--no-subject)",
        .columns.iter().map(|column| format!("{column:?}")).collect::<Vec<_>>().join(", ")
    )]
    RepeatedCodes { columns: Vec<String> },
    #[error(
        "the records are of {people} people, and of fewer than {k} nothing may be said: give more records, or a smaller \
         --k{}", .subject.as_ref().map_or(String::new(), |name| format!("; people are counted by \"{name}\" (--subject names another column)"))
    )]
    TooFew { people: u64, k: u64, subject: Option<String> },
    #[error(
        "the first row seems to be a record and no header, since it has numbers or dates where the rows below have: add a header row"
    )]
    NoHeader,
    #[error("row {row} repeats the header, as files have it that were joined with their headers: take such rows out")]
    RepeatedHeader { row: usize },
    #[error("no attribute is left: of none do {0} people have a value")]
    Nothing(u64),
    #[error("the proposal is no schema (this is a bug): {0}")]
    Unsound(SchemaError),
}

/// Proposes a schema for the records of a table.
///
/// # Errors
/// See [`InferError`].
pub fn infer(table: &WholeTable, asked: &Asked<'_>) -> Result<Inferred, InferError> {
    let columns = &table.columns;
    let position = |name: &str| columns.iter().position(|column| column.name == name);
    let subject = match asked.subject {
        None => None,
        Some(name) => Some(position(name).ok_or_else(|| InferError::NoSubject(name.to_owned()))?),
    };
    let people = if asked.no_subject {
        People::of_records(table.rows as usize)
    } else {
        people::find(columns, table.rows as usize, subject, asked.k)
    };
    if people.count < asked.k {
        let subject = people.column.map(|number| columns[number].name.clone());
        return Err(InferError::TooFew { people: people.count, k: asked.k, subject });
    }
    let mut looked: Vec<(usize, Looked)> =
        columns.par_iter().enumerate().map(|(number, column)| (number, look(number, column, &people, asked))).collect();
    if asked.header {
        header_is_one(columns, &looked)?;
    }
    identify_keys(&mut looked, columns, &people);
    doubt_points(&mut looked);
    let before = looked.len();
    if asked.keys {
        looked.retain(|(number, looked)| people.column == Some(*number) || looked.people >= asked.k);
    }
    if looked.is_empty() {
        return Err(InferError::Nothing(asked.k));
    }
    if people.column.is_none() && !asked.no_subject {
        refuse_repeated_codes(columns, &looked)?;
    }
    let names = names(looked.iter().map(|(number, _)| columns[*number].name.as_str()));
    let mut proposal = Proposal {
        name: asked.name.to_owned(),
        head: head(table, asked, &people, before - looked.len()),
        attributes: Vec::new(),
    };
    let positions = names.iter().cloned().zip(looked.iter().map(|(number, _)| *number)).collect();
    let kept: Vec<&TableColumn> = looked.iter().map(|(number, _)| &columns[*number]).collect();
    for ((_, looked), (name, column)) in looked.into_iter().zip(names.into_iter().zip(&kept)) {
        proposal.attributes.push(looked.proposed(name, column));
    }
    let schema = parse(&proposal)?;
    let unmeasured = gather(&mut proposal, &schema, &kept, &people, asked);
    let schema = parse(&proposal)?;
    let of_times =
        schema.attributes.iter().zip(&kept).filter(|(a, _)| matches!(a.kind(), Type::Date | Type::Timestamp));
    let cadences = of_times.filter_map(|(a, column)| Some((a.name.clone(), cadence(column, a, &people)?))).collect();
    let days = days(&schema, &kept, &people);
    Ok(Inferred {
        text: text::write(&proposal),
        schema,
        people: people.count,
        records: table.rows,
        cadences,
        days,
        unmeasured,
        columns: positions,
    })
}

/// Days of people with a value of each number.
fn days(schema: &Schema, columns: &[&TableColumn], people: &People) -> BTreeMap<String, PersonDays> {
    let of = |wanted: fn(&Attribute) -> bool| {
        let attributes = schema.attributes.iter().map(|attribute| &**attribute);
        columns.iter().copied().zip(attributes).filter(move |(_, attribute)| wanted(attribute))
    };
    let is_time = |a: &Attribute| matches!(a.kind(), Type::Date | Type::Timestamp) && a.changes != Some(Changes::Never);
    let time = of(is_time).min_by_key(|(_, attribute)| attribute.role != Role::Time);
    let numbers: Vec<_> = of(|a| matches!(a.kind(), Type::Integer | Type::Float)).collect();
    let time = time.filter(|_| people.column.is_some());
    time.map_or_else(BTreeMap::new, |time| days_of_numbers(time, &numbers, people))
}

/// Refuses codes that come back where nothing counts people: their people would each be a crowd of records.
fn refuse_repeated_codes(columns: &[TableColumn], looked: &[(usize, Looked)]) -> Result<(), InferError> {
    let is_key = |(number, looked): &&(usize, Looked)| {
        looked.is_code || looked.may_be_key() && codes::determines_a_profile(columns, *number)
    };
    let keys: Vec<String> = looked.par_iter().filter(is_key).map(|(number, _)| columns[*number].name.clone()).collect();
    if keys.is_empty() { Ok(()) } else { Err(InferError::RepeatedCodes { columns: keys }) }
}

/// Makes identifiers of numbers that determine all columns that do not change within a person.
fn identify_keys(looked: &mut [(usize, Looked)], columns: &[TableColumn], people: &People) {
    let profile = codes::profile_of(columns, people);
    if profile.is_empty() {
        return;
    }
    looked.par_iter_mut().for_each(|(number, looked)| {
        let may_be = looked.role.role == Role::Quasi && looked.may_be_key() && looked.crowded < 0.5;
        if may_be && codes::names_the_profile(&columns[*number], &profile) {
            let why = "each of its values goes with one value of every attribute that a person does not change";
            looked.identify(why.to_owned());
        }
    });
}

/// Makes identifiers of numbers whose points may separate thousands where other numbers have a decimal comma, and a question elsewhere:
/// `1.234` is more than a thousand to one writer, and little more than one to another.
fn doubt_points(looked: &mut [(usize, Looked)]) {
    let has_comma = looked.iter().any(|(_, looked)| looked.has_comma);
    for (_, looked) in looked.iter_mut().filter(|(_, looked)| looked.reading.points_may_group) {
        if has_comma {
            let why = "its points may separate thousands, since other columns have a decimal comma; write whole numbers \
                       without them";
            looked.identify(why.to_owned());
        } else {
            let doubt =
                "points are read as decimal points; where they separate thousands, write the numbers without them";
            looked.reading.doubt = Some(doubt.to_owned());
        }
    }
}

fn parse(proposal: &Proposal) -> Result<Schema, InferError> {
    Schema::parse(&text::write(proposal), "the proposal", Path::new("")).map_err(InferError::Unsound)
}

/// A column, looked at by itself.
struct Looked {
    role: Chosen,
    reading: Reading,
    generalized: Option<Generalized>,
    /// People with a value.
    people: u64,
    facts: String,
    /// Its values have the name or shape of codes, and come back.
    is_code: bool,
    /// Share of the cells whose value a crowd has.
    crowded: f64,
    /// The type that its cells have.
    kind: Type,
    /// Its numbers have a decimal comma.
    has_comma: bool,
}

fn look(number: usize, column: &TableColumn, people: &People, asked: &Asked<'_>) -> Looked {
    let values = Values::of(column, people);
    let name = Name::new(&column.name);
    let reading = reading::read(&values, &name, asked.k);
    let is_code = codes::come_back(&values, &reading, &name);
    let (crowded, kind, has_comma) = (values.crowded(asked.k), reading.kind, reading.decimal_comma);
    let facts = facts(&values, people, asked.k);
    if people.column == Some(number) {
        let missing = values.texts.iter().filter(|text| is_nothing(text.text, false));
        let reading = Reading::of_texts(missing.map(|text| text.text.to_owned()).collect());
        let role = Chosen { role: Role::Subject, why: format!("it counts people: {}", people.why) };
        let people = values.people;
        return Looked { role, reading, generalized: None, people, facts, is_code, crowded, kind, has_comma };
    }
    let mut role = role::choose(&values, &reading, &name, people, asked.k);
    let mut generalized = None;
    if role.role != Role::Identifier {
        let wanted = Wanted { k: asked.k, endless: asked.endless };
        let found = ladder::of(&values, &reading, &name, people, wanted);
        if found.ladder == Ladder::Tree(Vec::new()) {
            let why = format!("no value of it is shared by {} people", asked.k);
            role = Chosen { role: Role::Identifier, why };
        } else {
            generalized = Some(if role.role == Role::Sensitive { ladder::beside(found) } else { found });
        }
    }
    let reading = match role.role {
        Role::Identifier => {
            let doubt = reading.doubt.filter(|_| kind == Type::String);
            Reading { doubt, ..Reading::of_texts(Vec::new()) }
        }
        _ => reading,
    };
    Looked { role, reading, generalized, people: values.people, facts, is_code, crowded, kind, has_comma }
}

/// What was counted in a column, in words.
fn facts(values: &Values<'_>, people: &People, k: u64) -> String {
    let cells = values.cells();
    if cells == 0 {
        return "empty".to_owned();
    }
    let rare = (1.0 - values.crowded(k)) * 100.0;
    let of = if people.column.is_some() { "people" } else { "records" };
    let rare = if rare > 0.0 && rare < 0.5 { "some".to_owned() } else { format!("{rare:.0} %") };
    let missing = match values.missing {
        0 => String::new(),
        missing => format!(", {:.0} % missing", 100.0 * missing as f64 / (missing + cells) as f64),
    };
    format!(
        "{} different value(s){missing}; {rare} of the cells hold one that fewer than {k} {of} have",
        values.texts.len()
    )
}

impl Looked {
    /// Whether its values may be a key: texts or whole numbers.
    fn may_be_key(&self) -> bool {
        matches!(self.kind, Type::String | Type::Integer)
    }

    fn identify(&mut self, why: String) {
        self.role = Chosen { role: Role::Identifier, why };
        self.reading = Reading::of_texts(Vec::new());
        self.generalized = None;
    }

    fn proposed(self, name: String, column: &TableColumn) -> Proposed {
        let Self { role: Chosen { role, why }, reading, generalized, facts, .. } = self;
        let mut evidence = Vec::new();
        let verdict = match role {
            Role::Identifier => format!("identifier, never leaves: {why}"),
            Role::Quasi => String::new(),
            _ => why,
        };
        evidence.extend(Some(verdict).filter(|verdict| !verdict.is_empty()));
        evidence.push(facts);
        if reading.misfits > 0 {
            let kind = reading.kind.name();
            evidence
                .push(format!("CHECK: {} cell(s) are no {kind}: their records become dead letters", reading.misfits));
        }
        evidence.extend(reading.doubt.as_ref().map(|doubt| format!("CHECK: {doubt}")));
        let (ladder, round, remark) = match generalized {
            Some(Generalized { ladder, round, remark }) => (Some(ladder), round, remark),
            None => (None, None, None),
        };
        evidence.extend(remark);
        let mut missing = reading.missing.clone();
        if !missing.is_empty() && !missing.iter().any(String::is_empty) {
            missing.insert(0, String::new());
        }
        let missing = Some(missing).filter(|missing| !missing.is_empty());
        let place = match column.way.as_slice() {
            // A key that is one value.
            [] if column.from == Origin::Key => Place::Pointer(String::new()),
            [_] | [] => Place::Column(column.name.clone()),
            way => {
                let escaped = way.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")));
                Place::Pointer(escaped.collect())
            }
        };
        Proposed {
            name,
            from: column.from.clone(),
            place,
            role,
            reading,
            missing,
            round,
            ladder,
            changes: None,
            evidence,
        }
    }
}

/// Names that a schema takes, each once.
fn names<'a>(columns: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut names = Vec::new();
    for (number, column) in (1..).zip(columns) {
        let plain: String = column.chars().filter(|c| !c.is_control()).collect();
        let plain = plain.trim();
        let wanted = if plain.is_empty() { format!("column-{number}") } else { plain.to_owned() };
        let other = (2..).map(|count: u32| format!("{wanted}-{count}"));
        let name = std::iter::once(wanted.clone()).chain(other).find(|name| !taken.contains(name)).unwrap_or(wanted);
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Refuses a first row that is a record: its cells have the types of those below.
fn header_is_one(columns: &[TableColumn], looked: &[(usize, Looked)]) -> Result<(), InferError> {
    let of_type = |column: &TableColumn, kind: Type| match kind {
        Type::Integer | Type::Float => Some(plain_number(&column.name).is_some()),
        Type::Date | Type::Timestamp => Some(throng_core::values::moment::parse(column.name.trim()).is_some()),
        _ => None,
    };
    let typed: Vec<bool> =
        looked.iter().filter_map(|(number, looked)| of_type(&columns[*number], looked.reading.kind)).collect();
    // By column, the code of a cell that is spelled like its header.
    let code = |column: &TableColumn| {
        let place = column.dictionary.texts().position(|text| text == column.name)?;
        u32::try_from(place).ok().map(|place| place + FIRST_VALUE)
    };
    let own: Vec<Option<u32>> = columns.iter().map(code).collect();
    let all_typed = typed.len() >= 2 && typed.iter().all(|is| *is);
    if all_typed {
        return Err(InferError::NoHeader);
    }
    let is_header =
        |row: &usize| columns.iter().zip(&own).all(|(column, own)| own.is_some_and(|own| column.codes[*row] == own));
    let rows = columns.first().map_or(0, |column| column.codes.len());
    if let Some(row) = (0..rows).find(is_header) {
        return Err(InferError::RepeatedHeader { row: row + 1 });
    }
    let repeated = own.iter().flatten().count();
    if repeated * 2 > columns.len() { Err(InferError::NoHeader) } else { Ok(()) }
}

/// The lines above the schema.
fn head(table: &WholeTable, asked: &Asked<'_>, people: &People, left_out: usize) -> Vec<String> {
    let cut = if table.cut { "the first " } else { "" };
    let mut head = vec![
        format!("Proposed by `throng schema infer` from {cut}{} records of {}.", table.rows, asked.source),
        "A PROPOSAL, to be read line by line: figures tell what may identify, people decide. Look above all at the roles \
         (identifier: never leaves; quasi: leaves in a crowd; sensitive: leaves beside one), and at groups of labels, \
         which know only how frequent labels are."
            .to_owned(),
    ];
    head.push(match people.column {
        Some(number) => format!("{} people, by {:?}: {}.", people.count, table.columns[number].name, people.why),
        None => {
            "No column names people: every record counts as a person of its own, and somebody with many records is a \
                 crowd. Where a column names them, give it with --subject."
                .to_owned()
        }
    });
    if left_out > 0 {
        let k = asked.k;
        head.push(format!(
            "{left_out} key(s) that the records of fewer than {k} people have are left out: they are dropped."
        ));
    }
    let unreadable: u64 = table.unreadable.values().sum();
    if unreadable > 0 {
        head.push(format!("CHECK: {unreadable} record(s) could not be read; they become dead letters."));
    }
    head
}

/// Adds what can be measured now that every attribute has a type. Returns the attributes whose change within a person could not be
/// measured, with the number of steps seen.
fn gather(
    proposal: &mut Proposal,
    schema: &Schema,
    columns: &[&TableColumn],
    people: &People,
    asked: &Asked<'_>,
) -> BTreeMap<String, u64> {
    let is_said = |attribute: &Arc<Attribute>| attribute.role.is_releasable();
    let typed: Vec<Option<Typed>> = schema
        .attributes
        .par_iter()
        .zip(columns)
        .map(|(attribute, column)| is_said(attribute).then(|| Typed::of(column, attribute)))
        .collect();
    let (mut searched, mut unmeasured) = (Vec::new(), BTreeMap::new());
    for ((attribute, proposed), typed) in schema.attributes.iter().zip(&mut proposal.attributes).zip(typed) {
        let Some(typed) = typed else { continue };
        let paced = attribute.role.is_quasi() || attribute.role == Role::Sensitive;
        if let Some(pace) = paced.then(|| typed.pace(people, asked.k)).flatten() {
            proposed.changes = Some(pace.changes);
            proposed.evidence.push(pace.evidence);
            unmeasured.extend(pace.too_few.map(|steps| (attribute.name.clone(), steps)));
        }
        if attribute.role.is_quasi() {
            let (role, name) = (Some(attribute.role), attribute.name.clone());
            searched.push(AuditColumn {
                name,
                role,
                recodable: true,
                codes: typed.codes,
                dictionary: typed.dictionary,
            });
        }
    }
    let Some(report) = audited(searched, people, asked.k, asked.effort) else { return unmeasured };
    let all = report.minimal_qids.len();
    let found = if report.complete { String::new() } else { " found in time".to_owned() };
    for judged in &report.attributes {
        let Some(proposed) = proposal.attributes.iter_mut().find(|proposed| proposed.name == judged.name) else {
            continue;
        };
        proposed.evidence.push(match judged.smallest_qid {
            Some(1) => {
                format!("rounded, {} record(s) have a value that fewer than {} share", judged.records_below_k, asked.k)
            }
            Some(smallest) => format!(
                "part of {} of {all} quasi-identifiers{found}, the smallest of {smallest} attributes",
                judged.minimal_qids
            ),
            None => format!("part of no quasi-identifier{found}"),
        });
    }
    unmeasured
}
