//! What can be measured once every attribute has a type: how it changes within a person, and which combinations of
//! attributes single people out.

use super::people::{NOBODY, People};
use crate::anonymity::planner::pace::{TooFewSteps, pace_of};
use crate::io::table::TableColumn;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use throng_core::values::canonical::Canonical;
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE, MISSING};
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::numbers::RecordNumbers;
use throng_core::values::raw::Token;
use throng_core::values::schema::{Attribute, Changes};
use throng_risk::audit::{AuditColumn, AuditQuestion, ReadColumns, Report, Singletons, audit, prepare};
use throng_risk::counting::Wanted;
use throng_risk::identifiers::Rule;
use throng_risk::qid::Strategy;

/// Attributes whose combinations are searched, at most.
const SEARCHED: usize = 128;

/// A column as the schema reads it: rounded, one spelling a value.
pub(super) struct Typed {
    pub codes: Vec<u32>,
    pub dictionary: Dictionary,
}

impl Typed {
    pub fn of(column: &TableColumn, attribute: &Attribute) -> Self {
        let mut dictionary = Dictionary::new(None);
        let mut canonical = String::new();
        let code = |text: &str| match attribute.typing.canonical(Token::Untyped(text), &mut canonical) {
            // Texts that fit a dictionary once fit it again.
            Ok(Canonical::Value) => dictionary.encode(Token::Text(&canonical)).unwrap_or(MISSING),
            _ => MISSING,
        };
        let of_code: Vec<u32> = column.dictionary.texts().map(code).collect();
        let typed = |code: &u32| if *code < FIRST_VALUE { *code } else { of_code[(code - FIRST_VALUE) as usize] };
        Self { codes: column.codes.iter().map(typed).collect(), dictionary }
    }

    /// Returns how the attribute changes within a person and the evidence for it; `None` where no column names people.
    /// Below [`TooFewSteps::NEEDED`] steps an attribute does not change: the safe side.
    pub fn pace(&self, people: &People, k: u64) -> Option<MeasuredPace> {
        people.column?;
        let of_row: Vec<Option<u32>> =
            people.of_row.iter().map(|&person| Some(person).filter(|person| *person != NOBODY)).collect();
        let codes = self.codes.iter().map(|&code| code.checked_sub(FIRST_VALUE));
        let crowd = usize::try_from(k).unwrap_or(usize::MAX);
        Some(match pace_of(&of_row, people.count as usize, codes, crowd) {
            Ok((changes, share)) => {
                let share = f64::from(share) * 100.0;
                let name = changes.name();
                let evidence = format!(
                    "changes = {name:?}: {share:.1} % of the steps from a person's record to the next, in the median person"
                );
                MeasuredPace { changes, evidence, too_few: None }
            }
            Err(too_few) => MeasuredPace {
                changes: Changes::Never,
                evidence: format!(
                    "CHECK: changes = \"never\": not measured, since there are {} steps from a person's record to the next and {} are needed; set \"always\" if it changes from record to record",
                    too_few.steps,
                    TooFewSteps::NEEDED
                ),
                too_few: Some(too_few.steps),
            },
        })
    }
}

/// Pace of an attribute, and the evidence for it in words.
pub(super) struct MeasuredPace {
    pub changes: Changes,
    pub evidence: String,
    /// Steps from a person's record to the next, where they are too few.
    pub too_few: Option<u64>,
}

/// Days of people on which a number has a value, as positions among all days of people with a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonDays(Vec<u64>);

impl PersonDays {
    fn add(&mut self, at: usize) {
        self.0.resize(self.0.len().max(at / 64 + 1), 0);
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Number of days.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Days that are in both.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one & other).collect())
    }
}

impl FromIterator<usize> for PersonDays {
    fn from_iter<T: IntoIterator<Item = usize>>(positions: T) -> Self {
        let mut days = Self::default();
        positions.into_iter().for_each(|at| days.add(at));
        days
    }
}

/// Returns for each number the days of people with a value, by the event time.
pub(super) fn days_of_numbers(
    (time_column, time): (&TableColumn, &Attribute),
    numbers: &[(&TableColumn, &Attribute)],
    people: &People,
) -> BTreeMap<String, PersonDays> {
    let times = Typed::of(time_column, time);
    let day = |text: &str| unquoted(text).and_then(|time| moment::parse(&time)).map(|ms| ms.div_euclid(86_400_000));
    let days: Vec<Option<i64>> = times.dictionary.texts().map(day).collect();
    let mut positions: BTreeMap<(u32, i64), usize> = BTreeMap::new();
    let place = |(code, person): (&u32, &u32)| {
        let day = code.checked_sub(FIRST_VALUE).and_then(|value| days[value as usize]).filter(|_| *person != NOBODY)?;
        let next = positions.len();
        Some(*positions.entry((*person, day)).or_insert(next))
    };
    let places: Vec<Option<usize>> = times.codes.iter().zip(&people.of_row).map(place).collect();
    let of_number = |(column, number): &(&TableColumn, &Attribute)| {
        let typed = Typed::of(column, number);
        let with_value = typed.codes.iter().zip(&places).filter(|(code, _)| **code >= FIRST_VALUE);
        (number.name.clone(), with_value.filter_map(|(_, place)| *place).collect())
    };
    numbers.iter().map(of_number).collect()
}

/// Different days and hours with a record, of the median person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cadence {
    /// Days.
    pub days: u64,
    /// Hours.
    pub hours: u64,
}

/// Returns how the dates or times of a column are spread over the records of a person; `None` where no column names people.
pub(super) fn cadence(column: &TableColumn, attribute: &Attribute, people: &People) -> Option<Cadence> {
    people.column?;
    let mut canonical = String::new();
    let hour = |text: &str| match attribute.typing.canonical(Token::Untyped(text), &mut canonical) {
        Ok(Canonical::Value) => {
            unquoted(&canonical).and_then(|time| moment::parse(&time)).map(|time_ms| time_ms.div_euclid(3_600_000))
        }
        _ => None,
    };
    let hours: Vec<Option<i64>> = column.dictionary.texts().map(hour).collect();
    let mut of_people: BTreeMap<u32, BTreeSet<i64>> = BTreeMap::new();
    for (code, &person) in column.codes.iter().zip(&people.of_row) {
        let hour = code.checked_sub(FIRST_VALUE).and_then(|value| hours[value as usize]);
        if let Some(hour) = hour.filter(|_| person != NOBODY) {
            of_people.entry(person).or_default().insert(hour);
        }
    }
    let median = |count: &dyn Fn(&BTreeSet<i64>) -> usize| {
        let mut counts: Vec<usize> = of_people.values().map(count).collect();
        counts.sort_unstable();
        counts.get(counts.len() / 2).map_or(0, |median| *median as u64)
    };
    let days = |hours: &BTreeSet<i64>| hours.iter().map(|hour| hour.div_euclid(24)).collect::<BTreeSet<_>>().len();
    Some(Cadence { days: median(&days), hours: median(&BTreeSet::len) })
}

/// The audit of typed columns: by name. None where there are too many, or nothing can be searched.
pub(super) fn audited(columns: Vec<AuditColumn>, people: &People, k: u64, effort: Duration) -> Option<Report> {
    let rows = columns.first()?.codes.len();
    if columns.len() > SEARCHED {
        return None;
    }
    let mut columns = columns;
    let mut subject = None;
    if people.column.is_some() {
        let code = |person: &u32| if *person == NOBODY { MISSING } else { person + FIRST_VALUE };
        let codes = people.of_row.iter().map(code).collect();
        subject = Some(columns.len());
        let name = String::new();
        columns.push(AuditColumn { name, role: None, recodable: true, codes, dictionary: Dictionary::new(None) });
    }
    let mut numbers = RecordNumbers::default();
    (1..=rows as u64).for_each(|number| numbers.push(number));
    let read = ReadColumns::held(columns, numbers, subject).ok()?;
    let table = prepare(read, Rule::of_a_file(Rule::CARDINALITY), false).ok()?;
    let question = AuditQuestion {
        input: String::new(),
        k: u32::try_from(k).ok()?,
        singletons: Singletons::Include,
        strategy: Strategy::Border,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        backend: Wanted::Cpu,
        budget: Some(effort),
        memory: Some(1 << 30),
        rows: 0,
        read_seconds: 0.0,
    };
    audit(&table, &question, &|_| {}).ok()
}
