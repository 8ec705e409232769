//! Changes per subject, and combinations of attributes that single out subjects.

use super::subject_choice::{MISSING_SUBJECT, TableSubjects};
use crate::io::table::TableColumn;
use crate::planner::change_rates::{ColumnChanges, TooFewSteps, measure_column_changes};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE, MISSING};
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::record_numbers::RecordNumbers;
use throng_core::values::schema::{Attribute, ChangeFrequency};
use throng_risk::audit::{AuditColumn, AuditReport, AuditRequest, ReadColumns, SingletonPolicy, audit, prepare};
use throng_risk::counting::BackendChoice;
use throng_risk::identifiers::IdentifierRule;
use throng_risk::qid::QidStrategy;

const MAX_SEARCHED_ATTRIBUTES: usize = 128;
/// Above this share of changes the evidence shows changes, otherwise equal values.
const MAX_UNCHANGED_SHARE: f32 = 0.05;
const SET_ALWAYS: &str = "set \"always\" if it changes from record to record";

/// As the schema reads it: rounded, one spelling per value.
pub(super) struct TypedColumn {
    pub codes: Vec<u32>,
    pub dictionary: Dictionary,
}

impl TypedColumn {
    pub fn of(column: &TableColumn, attribute: &Attribute) -> Self {
        let mut dictionary = Dictionary::new(None);
        let mut canonical = String::new();
        let code = |text: &str| match attribute.typing.canonical(RawToken::Untyped(text), &mut canonical) {
            // Texts that fit one dictionary also fit another.
            Ok(CanonicalKind::Value) => dictionary.encode(RawToken::Text(&canonical)).unwrap_or(MISSING),
            _ => MISSING,
        };
        let of_code: Vec<u32> = column.dictionary.texts().map(code).collect();
        let typed = |code: &u32| if *code < FIRST_VALUE { *code } else { of_code[(code - FIRST_VALUE) as usize] };
        Self { codes: column.codes.iter().map(typed).collect(), dictionary }
    }

    /// `None` without a subject column; "never", the safe value, below [`TooFewSteps::NEEDED`] pairs.
    pub fn measured_change(&self, people: &TableSubjects, k: u64) -> Option<MeasuredChange> {
        people.column?;
        let of_row: Vec<Option<u32>> =
            people.of_row.iter().map(|&person| Some(person).filter(|person| *person != MISSING_SUBJECT)).collect();
        let codes = self.codes.iter().map(|&code| code.checked_sub(FIRST_VALUE));
        let crowd = usize::try_from(k).unwrap_or(usize::MAX);
        Some(match measure_column_changes(&of_row, people.count as usize, codes, crowd) {
            Ok(measured) => {
                MeasuredChange { changes: measured.changes, evidence: change_evidence(&measured, k), too_few: None }
            }
            Err(too_few) => MeasuredChange {
                changes: ChangeFrequency::Never,
                evidence: format!(
                    "CHECK: changes = \"never\", the safe value, is not measured: {} pairs of consecutive records of {} people, \
                     and {} are needed; {SET_ALWAYS}",
                    too_few.steps,
                    too_few.subjects,
                    TooFewSteps::NEEDED
                ),
                too_few: Some(too_few.steps),
            },
        })
    }
}

/// Describes the measurement, as a question if it is no proof of "never".
fn change_evidence(measured: &ColumnChanges, k: u64) -> String {
    let ColumnChanges { changes, share, subjects, changed_subjects } = *measured;
    let changed = f64::from(share) * 100.0;
    let found = if share > MAX_UNCHANGED_SHARE {
        format!("{changed:.1} % of the records of a person have another value than the record before")
    } else {
        format!("{:.1} % of the records of a person have the same value as the record before", 100.0 - changed)
    };
    let found = format!("{found}, measured on {subjects} people (median person)");
    let doubt = if changes != ChangeFrequency::Never {
        None
    } else if subjects < k {
        Some(format!("at least {k} people are needed"))
    } else {
        let is_rare = changed_subjects * 20 < subjects;
        Some(format!("{changed_subjects} of them have several values")).filter(|_| !is_rare)
    };
    match doubt {
        None => format!("changes = {:?}: {found}", changes.name()),
        Some(doubt) => format!("CHECK: changes = \"never\", the safe value: {found}, but {doubt}; {SET_ALWAYS}"),
    }
}

/// Change frequency and evidence.
pub(super) struct MeasuredChange {
    pub changes: ChangeFrequency,
    pub evidence: String,
    /// Steps between records of a subject, if too few.
    pub too_few: Option<u64>,
}

/// Days of subjects with a value, as positions among all their days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectDays(Vec<u64>);

impl SubjectDays {
    fn add(&mut self, at: usize) {
        self.0.resize(self.0.len().max(at / 64 + 1), 0);
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Returns the number of days.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Returns the days in both.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one & other).collect())
    }
}

impl FromIterator<usize> for SubjectDays {
    fn from_iter<T: IntoIterator<Item = usize>>(positions: T) -> Self {
        let mut days = Self::default();
        positions.into_iter().for_each(|at| days.add(at));
        days
    }
}

/// By event time.
pub(super) fn subject_days_by_number(
    (time_column, time): (&TableColumn, &Attribute),
    numbers: &[(&TableColumn, &Attribute)],
    people: &TableSubjects,
) -> BTreeMap<String, SubjectDays> {
    let times = TypedColumn::of(time_column, time);
    let day = |text: &str| unquoted(text).and_then(|time| moment::parse(&time)).map(|ms| ms.div_euclid(86_400_000));
    let days: Vec<Option<i64>> = times.dictionary.texts().map(day).collect();
    let mut positions: BTreeMap<(u32, i64), usize> = BTreeMap::new();
    let place = |(code, person): (&u32, &u32)| {
        let day = code
            .checked_sub(FIRST_VALUE)
            .and_then(|value| days[value as usize])
            .filter(|_| *person != MISSING_SUBJECT)?;
        let next = positions.len();
        Some(*positions.entry((*person, day)).or_insert(next))
    };
    let places: Vec<Option<usize>> = times.codes.iter().zip(&people.of_row).map(place).collect();
    let of_number = |(column, number): &(&TableColumn, &Attribute)| {
        let typed = TypedColumn::of(column, number);
        let with_value = typed.codes.iter().zip(&places).filter(|(code, _)| **code >= FIRST_VALUE);
        (number.name.clone(), with_value.filter_map(|(_, place)| *place).collect())
    };
    numbers.iter().map(of_number).collect()
}

/// Distinct days and hours of the median subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubjectCadence {
    /// Days.
    pub days: u64,
    /// Hours.
    pub hours: u64,
}

/// `None` without a subject column.
pub(super) fn subject_cadence(
    column: &TableColumn,
    attribute: &Attribute,
    people: &TableSubjects,
) -> Option<SubjectCadence> {
    people.column?;
    let mut canonical = String::new();
    let hour = |text: &str| match attribute.typing.canonical(RawToken::Untyped(text), &mut canonical) {
        Ok(CanonicalKind::Value) => {
            unquoted(&canonical).and_then(|time| moment::parse(&time)).map(|time_ms| time_ms.div_euclid(3_600_000))
        }
        _ => None,
    };
    let hours: Vec<Option<i64>> = column.dictionary.texts().map(hour).collect();
    let mut of_people: BTreeMap<u32, BTreeSet<i64>> = BTreeMap::new();
    for (code, &person) in column.codes.iter().zip(&people.of_row) {
        let hour = code.checked_sub(FIRST_VALUE).and_then(|value| hours[value as usize]);
        if let Some(hour) = hour.filter(|_| person != MISSING_SUBJECT) {
            of_people.entry(person).or_default().insert(hour);
        }
    }
    let median = |count: &dyn Fn(&BTreeSet<i64>) -> usize| {
        let mut counts: Vec<usize> = of_people.values().map(count).collect();
        counts.sort_unstable();
        counts.get(counts.len() / 2).map_or(0, |median| *median as u64)
    };
    let days = |hours: &BTreeSet<i64>| hours.iter().map(|hour| hour.div_euclid(24)).collect::<BTreeSet<_>>().len();
    Some(SubjectCadence { days: median(&days), hours: median(&BTreeSet::len) })
}

/// `None` for too many columns, or a failed audit.
pub(super) fn audit_columns(
    columns: Vec<AuditColumn>,
    people: &TableSubjects,
    k: u64,
    effort: Duration,
) -> Option<AuditReport> {
    let rows = columns.first()?.codes.len();
    if columns.len() > MAX_SEARCHED_ATTRIBUTES {
        return None;
    }
    let mut columns = columns;
    let mut subject = None;
    if people.column.is_some() {
        let code = |person: &u32| if *person == MISSING_SUBJECT { MISSING } else { person + FIRST_VALUE };
        let codes = people.of_row.iter().map(code).collect();
        subject = Some(columns.len());
        let name = String::new();
        columns.push(AuditColumn { name, role: None, recodable: true, codes, dictionary: Dictionary::new(None) });
    }
    let mut numbers = RecordNumbers::default();
    (1..=rows as u64).for_each(|number| numbers.push(number));
    let read = ReadColumns::from_memory(columns, numbers, subject).ok()?;
    let table = prepare(read, IdentifierRule::for_file(IdentifierRule::CARDINALITY), false).ok()?;
    let question = AuditRequest {
        input: String::new(),
        k: u32::try_from(k).ok()?,
        singletons: SingletonPolicy::Include,
        strategy: QidStrategy::Border,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        backend: BackendChoice::Cpu,
        budget: Some(effort),
        memory: Some(1 << 30),
        rows: 0,
        read_seconds: 0.0,
    };
    audit(&table, &question, &|_| {}).ok()
}
