//! What can be measured once every attribute has a type: how it changes within a person, and which combinations of
//! attributes single people out.

use super::people::{NOBODY, People};
use crate::counting::Wanted;
use crate::io::table::TableColumn;
use crate::records::canonical::Canonical;
use crate::records::dictionary::{Dictionary, FIRST_VALUE, MISSING};
use crate::records::numbers::RecordNumbers;
use crate::records::raw::Token;
use crate::records::schema::{Attribute, Changes};
use crate::risk::audit::{AuditColumn, AuditQuestion, Report, Singletons, audit, prepare};
use crate::risk::identifiers::Rule;
use crate::risk::qid::Strategy;
use std::time::Duration;

/// Pairs of records below which nothing is said of changes.
const FEW: u64 = 20;
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

    /// How often the value changes from one record of a person to the next one with a value: changes and pairs.
    fn turns(&self, people: &People) -> (u64, u64) {
        let mut last: Vec<Option<u32>> = vec![None; people.count as usize];
        let (mut changes, mut pairs) = (0, 0);
        for (&code, &person) in self.codes.iter().zip(&people.of_row) {
            if code < FIRST_VALUE || person == NOBODY {
                continue;
            }
            if let Some(before) = last[person as usize].replace(code) {
                pairs += 1;
                changes += u64::from(before != code);
            }
        }
        (changes, pairs)
    }

    /// The pace, with what speaks for it; none where too few records follow each other.
    pub fn pace(&self, people: &People) -> Option<(Changes, String)> {
        people.column?;
        let (changes, pairs) = self.turns(people);
        if pairs < FEW {
            return None;
        }
        let share = changes as f64 / pairs as f64;
        let pace = match share {
            share if share <= 0.001 => Changes::Never,
            share if share <= 0.05 => Changes::Slowly,
            _ => Changes::Always,
        };
        Some((pace, format!("changes in {changes} of {pairs} steps from a person's record to the next")))
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
    let table = prepare(columns, numbers, subject, Rule::of_a_file(Rule::CARDINALITY), false).ok()?;
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
