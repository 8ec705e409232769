//! Builds a schema proposal from a table of texts.

use super::column_names::ColumnName;
use super::column_texts::ColumnTexts;
use super::hierarchy_choice::{self, HierarchyOptions};
use super::proposal_toml;
use super::role_choice::{self, RoleChoice};
use super::schema_evidence::{
    SubjectCadence, SubjectDays, TypedColumn, audit_columns, subject_cadence, subject_days_by_number,
};
use super::schema_proposal::{ColumnReading, HierarchyProposal, ProposedAttribute, ProposedHierarchy, SchemaProposal};
use super::subject_choice::{self, TableSubjects};
use super::subject_code_detection;
use super::text_values::{is_missing_text, parse_point_number};
use super::type_detection;
use crate::io::table::{LoadedTable, TableColumn};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::{
    Attribute, AttributeOrigin, AttributePlace, AttributeType, ChangeFrequency, Role, Schema, SchemaError,
};
use throng_risk::audit::AuditColumn;

/// Options of a proposal.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Clone, Debug)]
pub struct InferenceOptions<'a> {
    /// Minimum subjects per proposed value, at least 2.
    pub k: u64,
    /// Subject column, or the likeliest one.
    pub subject: Option<&'a str>,
    /// Every record is a subject; repeated codes are accepted.
    pub no_subject: bool,
    /// Name of the schema.
    pub name: &'a str,
    /// Source in the first line.
    pub source: &'a str,
    /// Names come from a header row, which could be a record.
    pub header: bool,
    /// Names come from keys, which could be values.
    pub keys: bool,
    /// More records will follow.
    pub more_records_follow: bool,
    /// Time limit of the quasi-identifier search.
    pub effort: Duration,
}

/// Proposed schema with measurements.
#[derive(Clone, Debug)]
pub struct InferredSchema {
    /// Commented TOML.
    pub text: String,
    /// Parsed schema.
    pub schema: Schema,
    /// Subjects in the records.
    pub people: u64,
    /// Examined records.
    pub records: u64,
    /// Days and hours of the median subject, by date or time attribute. Empty without a subject column.
    pub cadences: BTreeMap<String, SubjectCadence>,
    /// Days of subjects with a value, by number attribute. Empty without a subject column or time attribute.
    pub days: BTreeMap<String, SubjectDays>,
    /// Steps between records of a subject, by attribute with too few to measure its change.
    pub unmeasured: BTreeMap<String, u64>,
    /// Column position by attribute.
    pub columns: BTreeMap<String, usize>,
}

/// Reason against a proposal.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum InferenceError {
    #[error("there is no column \"{0}\" to count people by: check the name (--subject)")]
    NoSubject(String),
    #[error(
        "no column identifies people, but values repeat in {} like codes of people: name the column that identifies \
         people (--subject COLUMN), or declare that every record is of another person (--no-subject)",
        .columns.iter().map(|column| format!("{column:?}")).collect::<Vec<_>>().join(", ")
    )]
    RepeatedCodes { columns: Vec<String> },
    #[error(
        "the records are of {people} people, and at least {k} are required: give more records, or a smaller --k{}", .subject.as_ref().map_or(String::new(), |name| format!("; people are counted by \"{name}\" (--subject names another column)"))
    )]
    TooFew { people: u64, k: u64, subject: Option<String> },
    #[error(
        "the first row seems to be a record, not a header: it has numbers or dates in the same columns as other rows (add a header row)"
    )]
    NoHeader,
    #[error("row {row} repeats the header, as in files concatenated with their headers: remove such rows")]
    RepeatedHeader { row: usize },
    #[error("no attribute is left: none has values that {0} people share")]
    Nothing(u64),
    #[error("the proposal is not a valid schema (this is a bug: please report it): {0}")]
    Unsound(SchemaError),
}

/// Proposes a schema for a table.
///
/// # Errors
/// See [`InferenceError`].
pub fn infer(table: &LoadedTable, asked: &InferenceOptions<'_>) -> Result<InferredSchema, InferenceError> {
    let columns = &table.columns;
    let position = |name: &str| columns.iter().position(|column| column.name == name);
    let subject = match asked.subject {
        None => None,
        Some(name) => Some(position(name).ok_or_else(|| InferenceError::NoSubject(name.to_owned()))?),
    };
    let people = if asked.no_subject {
        TableSubjects::of_records(table.rows as usize)
    } else {
        subject_choice::find_subjects(columns, table.rows as usize, subject, asked.k)
    };
    if people.count < asked.k {
        let subject = people.column.map(|number| columns[number].name.clone());
        return Err(InferenceError::TooFew { people: people.count, k: asked.k, subject });
    }
    let mut looked: Vec<(usize, ColumnFindings)> = columns
        .par_iter()
        .enumerate()
        .map(|(number, column)| (number, examine_column(number, column, &people, asked)))
        .collect();
    if asked.header {
        refuse_wrong_header(columns, &looked)?;
    }
    identify_keys(&mut looked, columns, &people);
    question_points(&mut looked);
    let before = looked.len();
    if asked.keys {
        looked.retain(|(number, looked)| people.column == Some(*number) || looked.people >= asked.k);
    }
    if looked.is_empty() {
        return Err(InferenceError::Nothing(asked.k));
    }
    if people.column.is_none() && !asked.no_subject {
        refuse_repeated_codes(columns, &looked)?;
    }
    let names = unique_names(looked.iter().map(|(number, _)| columns[*number].name.as_str()));
    let mut proposal = SchemaProposal {
        name: asked.name.to_owned(),
        head: head_comments(table, asked, &people, before - looked.len()),
        attributes: Vec::new(),
    };
    let positions = names.iter().cloned().zip(looked.iter().map(|(number, _)| *number)).collect();
    let kept: Vec<&TableColumn> = looked.iter().map(|(number, _)| &columns[*number]).collect();
    for ((_, looked), (name, column)) in looked.into_iter().zip(names.into_iter().zip(&kept)) {
        proposal.attributes.push(looked.into_attribute(name, column));
    }
    let schema = parse_proposal(&proposal)?;
    let unmeasured = add_measurements(&mut proposal, &schema, &kept, &people, asked);
    let schema = parse_proposal(&proposal)?;
    let of_times = schema
        .attributes
        .iter()
        .zip(&kept)
        .filter(|(a, _)| matches!(a.kind(), AttributeType::Date | AttributeType::Timestamp));
    let cadences =
        of_times.filter_map(|(a, column)| Some((a.name.clone(), subject_cadence(column, a, &people)?))).collect();
    let days = number_days(&schema, &kept, &people);
    Ok(InferredSchema {
        text: proposal_toml::write_proposal(&proposal),
        schema,
        people: people.count,
        records: table.rows,
        cadences,
        days,
        unmeasured,
        columns: positions,
    })
}

fn number_days(schema: &Schema, columns: &[&TableColumn], people: &TableSubjects) -> BTreeMap<String, SubjectDays> {
    let of = |wanted: fn(&Attribute) -> bool| {
        let attributes = schema.attributes.iter().map(|attribute| &**attribute);
        columns.iter().copied().zip(attributes).filter(move |(_, attribute)| wanted(attribute))
    };
    let is_time = |a: &Attribute| {
        matches!(a.kind(), AttributeType::Date | AttributeType::Timestamp) && a.changes != Some(ChangeFrequency::Never)
    };
    let time = of(is_time).min_by_key(|(_, attribute)| attribute.role != Role::Time);
    let numbers: Vec<_> = of(|a| matches!(a.kind(), AttributeType::Integer | AttributeType::Float)).collect();
    let time = time.filter(|_| people.column.is_some());
    time.map_or_else(BTreeMap::new, |time| subject_days_by_number(time, &numbers, people))
}

/// One subject with many records would count as many subjects.
fn refuse_repeated_codes(columns: &[TableColumn], looked: &[(usize, ColumnFindings)]) -> Result<(), InferenceError> {
    let is_key = |(number, looked): &&(usize, ColumnFindings)| {
        looked.is_code || looked.may_be_key() && subject_code_detection::determines_a_profile(columns, *number)
    };
    let keys: Vec<String> = looked.par_iter().filter(is_key).map(|(number, _)| columns[*number].name.clone()).collect();
    if keys.is_empty() { Ok(()) } else { Err(InferenceError::RepeatedCodes { columns: keys }) }
}

/// Columns that determine all constant ones become identifiers.
fn identify_keys(looked: &mut [(usize, ColumnFindings)], columns: &[TableColumn], people: &TableSubjects) {
    let profile = subject_code_detection::profile_of(columns, people);
    if profile.is_empty() {
        return;
    }
    looked.par_iter_mut().for_each(|(number, looked)| {
        let may_be = looked.role.role == Role::Quasi && looked.may_be_key() && looked.frequent_share < 0.5;
        if may_be && subject_code_detection::determines_all_of_profile(&columns[*number], &profile) {
            let why = "each of its values determines the value of every attribute that is constant per person";
            looked.make_identifier(why.to_owned());
        }
    });
}

/// Points may separate thousands, as in `1.234`: an identifier if another column has decimal commas, else a question.
fn question_points(looked: &mut [(usize, ColumnFindings)]) {
    let has_comma = looked.iter().any(|(_, looked)| looked.has_comma);
    for (_, looked) in looked.iter_mut().filter(|(_, looked)| looked.reading.points_may_group) {
        if has_comma {
            let why = "its points may separate thousands, since other columns have a decimal comma; write whole numbers \
                       without them";
            looked.make_identifier(why.to_owned());
        } else {
            let doubt =
                "points are read as decimal points; where they separate thousands, write the numbers without them";
            looked.reading.operator_question = Some(doubt.to_owned());
        }
    }
}

fn parse_proposal(proposal: &SchemaProposal) -> Result<Schema, InferenceError> {
    Schema::parse(&proposal_toml::write_proposal(proposal), "the proposal", Path::new(""))
        .map_err(InferenceError::Unsound)
}

struct ColumnFindings {
    role: RoleChoice,
    reading: ColumnReading,
    generalized: Option<HierarchyProposal>,
    /// Subjects with a value.
    people: u64,
    facts: String,
    /// Repeated values with the name or shape of codes.
    is_code: bool,
    /// Share of cells with a value of at least k subjects.
    frequent_share: f64,
    kind: AttributeType,
    has_comma: bool,
}

fn examine_column(
    number: usize,
    column: &TableColumn,
    people: &TableSubjects,
    asked: &InferenceOptions<'_>,
) -> ColumnFindings {
    let values = ColumnTexts::of(column, people);
    let name = ColumnName::new(&column.name);
    let reading = type_detection::determine_reading(&values, &name, asked.k);
    let is_code = subject_code_detection::holds_repeated_codes(&values, &reading, &name);
    let (crowded, kind, has_comma) = (values.frequent_cell_share(asked.k), reading.kind, reading.decimal_comma);
    let facts = count_facts(&values, people, asked.k);
    if people.column == Some(number) {
        let missing = values.texts.iter().filter(|text| is_missing_text(text.text, false));
        let reading = ColumnReading::of_texts(missing.map(|text| text.text.to_owned()).collect());
        let role = RoleChoice { role: Role::Subject, why: format!("identifies people: {}", people.why) };
        let people = values.people;
        return ColumnFindings {
            role,
            reading,
            generalized: None,
            people,
            facts,
            is_code,
            frequent_share: crowded,
            kind,
            has_comma,
        };
    }
    let mut role = role_choice::choose_role(&values, &reading, &name, people, asked.k);
    let mut generalized = None;
    if role.role != Role::Identifier {
        let wanted = HierarchyOptions { k: asked.k, more_records_follow: asked.more_records_follow };
        let found = hierarchy_choice::propose_hierarchy(&values, &reading, &name, people, wanted);
        if found.ladder == ProposedHierarchy::Tree(Vec::new()) {
            let why = format!("none of its values is shared by {} people", asked.k);
            role = RoleChoice { role: Role::Identifier, why };
        } else {
            generalized =
                Some(if role.role == Role::Sensitive { hierarchy_choice::sensitive_hierarchy(found) } else { found });
        }
    }
    let reading = match role.role {
        Role::Identifier => {
            let doubt = reading.operator_question.filter(|_| kind == AttributeType::String);
            ColumnReading { operator_question: doubt, ..ColumnReading::of_texts(Vec::new()) }
        }
        _ => reading,
    };
    ColumnFindings {
        role,
        reading,
        generalized,
        people: values.people,
        facts,
        is_code,
        frequent_share: crowded,
        kind,
        has_comma,
    }
}

fn count_facts(values: &ColumnTexts<'_>, people: &TableSubjects, k: u64) -> String {
    let cells = values.cells();
    if cells == 0 {
        return "empty".to_owned();
    }
    let rare = (1.0 - values.frequent_cell_share(k)) * 100.0;
    let of = if people.column.is_some() { "people" } else { "records" };
    let rare = if rare > 0.0 && rare < 0.5 { "some".to_owned() } else { format!("{rare:.0} %") };
    let missing = match values.missing {
        0 => String::new(),
        missing => format!(", {:.0} % missing", 100.0 * missing as f64 / (missing + cells) as f64),
    };
    format!(
        "{} distinct value(s){missing}; {rare} of the cells have a value of fewer than {k} {of}",
        values.texts.len()
    )
}

impl ColumnFindings {
    /// True for texts or whole numbers.
    fn may_be_key(&self) -> bool {
        matches!(self.kind, AttributeType::String | AttributeType::Integer)
    }

    fn make_identifier(&mut self, why: String) {
        self.role = RoleChoice { role: Role::Identifier, why };
        self.reading = ColumnReading::of_texts(Vec::new());
        self.generalized = None;
    }

    fn into_attribute(self, name: String, column: &TableColumn) -> ProposedAttribute {
        let Self { role: RoleChoice { role, why }, reading, generalized, facts, .. } = self;
        let mut evidence = Vec::new();
        let verdict = match role {
            Role::Identifier => format!("identifier, never released: {why}"),
            Role::Quasi => String::new(),
            _ => why,
        };
        evidence.extend(Some(verdict).filter(|verdict| !verdict.is_empty()));
        evidence.push(facts);
        if reading.misfits > 0 {
            let kind = reading.kind.name();
            evidence.push(format!(
                "CHECK: {} cell(s) are not of type {kind}: their records become dead letters",
                reading.misfits
            ));
        }
        evidence.extend(reading.operator_question.as_ref().map(|doubt| format!("CHECK: {doubt}")));
        let (ladder, round, remark) = match generalized {
            Some(HierarchyProposal { ladder, round, remark }) => (Some(ladder), round, remark),
            None => (None, None, None),
        };
        evidence.extend(remark);
        let mut missing = reading.missing.clone();
        if !missing.is_empty() && !missing.iter().any(String::is_empty) {
            missing.insert(0, String::new());
        }
        let missing = Some(missing).filter(|missing| !missing.is_empty());
        let place = match column.key_path.as_slice() {
            // The key is a single value.
            [] if column.from == AttributeOrigin::Key => AttributePlace::Pointer(String::new()),
            [_] | [] => AttributePlace::Column(column.name.clone()),
            way => {
                let escaped = way.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")));
                AttributePlace::Pointer(escaped.collect())
            }
        };
        ProposedAttribute {
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

/// Valid and unique.
fn unique_names<'a>(columns: impl Iterator<Item = &'a str>) -> Vec<String> {
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

/// Refuses a first row with the types of the rows below, and a repeated header.
fn refuse_wrong_header(columns: &[TableColumn], looked: &[(usize, ColumnFindings)]) -> Result<(), InferenceError> {
    let of_type = |column: &TableColumn, kind: AttributeType| match kind {
        AttributeType::Integer | AttributeType::Float => Some(parse_point_number(&column.name).is_some()),
        AttributeType::Date | AttributeType::Timestamp => {
            Some(throng_core::values::moment::parse(column.name.trim()).is_some())
        }
        _ => None,
    };
    let typed: Vec<bool> =
        looked.iter().filter_map(|(number, looked)| of_type(&columns[*number], looked.reading.kind)).collect();
    // Code of the cell with the header's text.
    let code = |column: &TableColumn| {
        let place = column.dictionary.texts().position(|text| text == column.name)?;
        u32::try_from(place).ok().map(|place| place + FIRST_VALUE)
    };
    let own: Vec<Option<u32>> = columns.iter().map(code).collect();
    let all_typed = typed.len() >= 2 && typed.iter().all(|is| *is);
    if all_typed {
        return Err(InferenceError::NoHeader);
    }
    let is_header =
        |row: &usize| columns.iter().zip(&own).all(|(column, own)| own.is_some_and(|own| column.codes[*row] == own));
    let rows = columns.first().map_or(0, |column| column.codes.len());
    if let Some(row) = (0..rows).find(is_header) {
        return Err(InferenceError::RepeatedHeader { row: row + 1 });
    }
    let repeated = own.iter().flatten().count();
    if repeated * 2 > columns.len() { Err(InferenceError::NoHeader) } else { Ok(()) }
}

fn head_comments(
    table: &LoadedTable,
    asked: &InferenceOptions<'_>,
    people: &TableSubjects,
    left_out: usize,
) -> Vec<String> {
    let cut = if table.cut { "the first " } else { "" };
    let mut head = vec![
        format!("Proposed by throng from {cut}{} records of {}.", table.rows, asked.source),
        "A PROPOSAL, to be reviewed line by line: the figures show possible identification, the decision is yours. Check \
         above all the roles (identifier: never released; quasi: released in a class; sensitive: released with a \
         class), and groups of labels, which are based on frequency only."
            .to_owned(),
    ];
    head.push(match people.column {
        Some(number) => format!("{} people, by {:?}: {}.", people.count, table.columns[number].name, people.why),
        None => {
            "No column identifies people: every record counts as one person, and a person with many records as a whole \
                 class. If a column identifies people, give it with --subject."
                .to_owned()
        }
    });
    if left_out > 0 {
        let k = asked.k;
        head.push(format!("{left_out} key(s) are dropped: they occur in the records of fewer than {k} people."));
    }
    let unreadable: u64 = table.unreadable.values().sum();
    if unreadable > 0 {
        head.push(format!("CHECK: {unreadable} record(s) could not be read; they become dead letters."));
    }
    head
}

/// Returns the attributes with too few steps to measure their change, with the number of steps.
fn add_measurements(
    proposal: &mut SchemaProposal,
    schema: &Schema,
    columns: &[&TableColumn],
    people: &TableSubjects,
    asked: &InferenceOptions<'_>,
) -> BTreeMap<String, u64> {
    let is_said = |attribute: &Arc<Attribute>| attribute.role.is_releasable();
    let typed: Vec<Option<TypedColumn>> = schema
        .attributes
        .par_iter()
        .zip(columns)
        .map(|(attribute, column)| is_said(attribute).then(|| TypedColumn::of(column, attribute)))
        .collect();
    let (mut searched, mut unmeasured) = (Vec::new(), BTreeMap::new());
    for ((attribute, proposed), typed) in schema.attributes.iter().zip(&mut proposal.attributes).zip(typed) {
        let Some(typed) = typed else { continue };
        let paced = attribute.role.is_quasi() || attribute.role == Role::Sensitive;
        if let Some(pace) = paced.then(|| typed.measured_change(people, asked.k)).flatten() {
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
    let Some(report) = audit_columns(searched, people, asked.k, asked.effort) else { return unmeasured };
    let all = report.minimal_qids.len();
    let found = if report.complete { String::new() } else { " found in time".to_owned() };
    for judged in &report.attributes {
        let Some(proposed) = proposal.attributes.iter_mut().find(|proposed| proposed.name == judged.name) else {
            continue;
        };
        proposed.evidence.push(match judged.smallest_qid {
            Some(1) => {
                format!(
                    "after rounding, {} record(s) have a value shared by fewer than {}",
                    judged.records_below_k, asked.k
                )
            }
            Some(smallest) => format!(
                "part of {} of {all} quasi-identifiers{found}, the smallest with {smallest} attribute(s)",
                judged.minimal_qids
            ),
            None => format!("part of no quasi-identifier{found}"),
        });
    }
    unmeasured
}
