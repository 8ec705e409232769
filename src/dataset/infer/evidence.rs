//! What can be measured once every attribute has a type: how it changes within a person, and which combinations of
//! attributes single people out.

use super::people::{NOBODY, People};
use crate::anonymity::planner::pace::pace_of;
use crate::counting::Wanted;
use crate::io::table::TableColumn;
use crate::records::canonical::Canonical;
use crate::records::dictionary::{Dictionary, FIRST_VALUE, MISSING};
use crate::records::numbers::RecordNumbers;
use crate::records::raw::Token;
use crate::records::schema::{Attribute, Changes};
use crate::risk::audit::{AuditColumn, AuditQuestion, ReadColumns, Report, Singletons, audit, prepare};
use crate::risk::identifiers::Rule;
use crate::risk::qid::Strategy;
use std::time::Duration;

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
    /// Below [`pace_of`]'s number of steps an attribute does not change: the safe side.
    pub fn pace(&self, people: &People, k: u64) -> Option<(Changes, String)> {
        people.column?;
        let of_row: Vec<Option<u32>> =
            people.of_row.iter().map(|&person| Some(person).filter(|person| *person != NOBODY)).collect();
        let codes = self.codes.iter().map(|&code| code.checked_sub(FIRST_VALUE));
        let crowd = usize::try_from(k).unwrap_or(usize::MAX);
        Some(match pace_of(&of_row, people.count as usize, codes, crowd) {
            Some((changes, share)) => {
                let share = f64::from(share) * 100.0;
                let name = changes.name();
                (changes, format!("changes = {name:?}: {share:.1} % of the steps from a person's record to the next, in the median person"))
            }
            None => (
                Changes::Never,
                "CHECK: changes = \"never\": too few people have several records to measure it; set \"always\" if it changes from record to record".to_owned(),
            ),
        })
    }
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
