//! From columns that were written to files to the table that is searched.

use rayon::prelude::*;

use super::coded::Coded;
use super::column::{AuditColumn, GivenUp};
use super::error::AuditError;
use super::examples::Values;
use super::judged::{Judged, is_missing, judgement, with_texts};
use super::prepare::AuditTable;
use crate::counting::spilled::{Marked, Written};
use crate::counting::{AttributeSet, ComputeError, SpilledCounter, SpilledTable};
use crate::records::numbers::RecordNumbers;
use crate::risk::identifiers::{People, Profile, Rule};

/// What was read into files.
#[derive(Debug)]
pub struct SpilledColumns {
    /// The columns of the table in their order, without codes.
    pub columns: Vec<AuditColumn>,
    /// Columns that have more values than can be held.
    pub given_up: Vec<(AuditColumn, GivenUp)>,
    /// Their codes.
    pub written: Written,
    /// Which record each row is.
    pub numbers: RecordNumbers,
    /// The column that counts people; it is not among the others.
    pub subject: Option<String>,
}

/// Judges the columns, and brings the rows into the order of people: as [`prepare`](super::prepare::prepare) does in memory.
///
/// # Errors
/// When the columns are too many or too long to be counted, when nobody stands behind any record, or when the disk fails.
pub fn prepare_spilled(read: SpilledColumns, rule: Rule, keep_values: bool) -> Result<AuditTable, AuditError> {
    let SpilledColumns { mut columns, given_up, written, mut numbers, subject } = read;
    let rows = written.rows;
    let Marked { table, counts, kept } = SpilledTable::of(written)?;
    if let (Some(column), true) = (&subject, table.rows() == 0 && rows > 0) {
        return Err(AuditError::Nobody { column: column.clone() });
    }
    let without_subject = (rows - table.rows()) as u64;
    if let Some(kept) = kept {
        numbers = numbers.retained(&kept);
    }
    let counter = SpilledCounter::new(&table, 1, 0);
    let missing: Vec<u32> = counts.iter().map(|counts| missing_of(counts)).collect();
    let profile = |number: usize| -> Result<Profile, ComputeError> {
        let column = &columns[number];
        let profile = Profile::of_counts(&counts[number], is_missing);
        let profile = with_texts(profile, &column.dictionary, column.role.is_some());
        let people = table.subjects().map(|all| people_of(&counter, number, missing[number], all)).transpose()?;
        Ok(Profile { people, ..profile })
    };
    let profiles: Result<Vec<Profile>, ComputeError> = (0..columns.len()).into_par_iter().map(profile).collect();
    let mut judged = Vec::with_capacity(columns.len());
    let mut searched = AttributeSet::new();
    for (number, (column, profile)) in columns.iter().zip(profiles?).enumerate() {
        let judgement = judgement(column, &profile, rule);
        let column = Judged { name: column.name.clone(), role: column.role, profile, judgement };
        if column.is_searched() {
            searched.insert(number);
        }
        judged.push(column);
    }
    let values = keep_values.then(|| Values::counted(&mut columns, &counts));
    let outgrown = given_up.into_iter().map(|(column, given_up)| given_up.judged(&column, rule)).collect();
    let columns = Coded::Spilled(table);
    Ok(AuditTable { columns, judged, outgrown, subject, numbers, without_subject, searched, missing, values })
}

/// Different codes that say that there is no value.
fn missing_of(counts: &[u64]) -> u32 {
    (0..).zip(counts).map(|(code, count)| u32::from(is_missing(code) && *count > 0)).sum()
}

/// A column beside the people of its table, of whom there are `all`; its first `missing` codes are no values.
fn people_of(counter: &SpilledCounter<'_>, column: usize, missing: u32, all: usize) -> Result<People, ComputeError> {
    let mut last = vec![u32::MAX; counter.table().cardinality(column)];
    let mut people = People { all: all as u64, subjects: 0, values: 0, pairs: 0 };
    let mut last_of_all = u32::MAX;
    counter.each_pair(column, column, |code, _, person| {
        if code < missing {
            return;
        }
        people.subjects += u64::from(std::mem::replace(&mut last_of_all, person) != person);
        let before = std::mem::replace(&mut last[code as usize], person);
        people.pairs += u64::from(before != person);
        people.values += u64::from(before == u32::MAX);
    })?;
    Ok(people)
}
