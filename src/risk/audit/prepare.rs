//! From columns as they were read to the table that is searched.

use rayon::prelude::*;

use super::coded::Coded;
use super::column::AuditColumn;
use super::error::AuditError;
use super::examples::Values;
use super::judged::{Judged, judge, missing_codes};
use super::outgrown::Outgrown;
use crate::counting::{AttributeSet, CountedTable};
use crate::records::dictionary::FIRST_VALUE;
use crate::records::numbers::RecordNumbers;
use crate::risk::identifiers::{Judgement, Profile, Rule};

/// Columns of one audit at most.
const MAX_COLUMNS: usize = 1024;

/// A table with its judged columns; column numbers are those of the coded table.
#[derive(Clone, Debug)]
pub struct AuditTable {
    pub(super) columns: Coded,
    pub(super) judged: Vec<Judged>,
    /// Columns that the coded table does not have: they were given up while they were read.
    pub(super) outgrown: Vec<Outgrown>,
    /// The column that counts people; not among the others.
    pub(super) subject: Option<String>,
    /// Which record of the input each row is.
    pub(super) numbers: RecordNumbers,
    /// Records left out because nobody stands behind them.
    pub(super) without_subject: u64,
    /// The columns to search.
    pub(super) searched: AttributeSet,
    /// Of each column, how many of its first codes say that there is no value.
    pub(super) missing: Vec<u32>,
    /// Texts of the values, where they may be shown.
    pub(super) values: Option<Values>,
}

impl AuditTable {
    /// The names of some columns, sorted: independent of the order of the columns.
    pub(super) fn names(&self, set: &AttributeSet) -> Vec<String> {
        let mut names: Vec<String> = set.iter().map(|column| self.judged[column].name.clone()).collect();
        names.sort_unstable();
        names
    }
}

/// Judges the columns and encodes the table. `subject` is the number of the column that counts people; records without
/// a value there support nobody and are left out (docs/methods.md §1.3). `numbers` say which record each row is. Values are
/// forgotten unless `keep_values`.
///
/// # Errors
/// When the columns are too many or too long to be counted, or nobody stands behind any record.
pub fn prepare(
    mut columns: Vec<AuditColumn>,
    mut numbers: RecordNumbers,
    subject: Option<usize>,
    rule: Rule,
    keep_values: bool,
) -> Result<AuditTable, AuditError> {
    let subject = subject.map(|index| columns.remove(index));
    let rows = columns.first().or(subject.as_ref()).map_or(0, |column| column.codes.len());
    let mut without_subject = 0;
    if let Some(subject) = &subject {
        let keep: Vec<bool> = subject.codes.iter().map(|code| *code >= FIRST_VALUE).collect();
        without_subject = keep.iter().filter(|keep| !**keep).count() as u64;
        if rows > 0 && without_subject == rows as u64 {
            return Err(AuditError::Nobody { column: subject.name.clone() });
        }
        if without_subject > 0 {
            numbers = numbers.retained(&keep);
            for column in &mut columns {
                retain(&mut column.codes, &keep);
            }
        }
    }
    let people: Option<Vec<u32>> =
        subject.as_ref().map(|s| s.codes.iter().copied().filter(|code| *code >= FIRST_VALUE).collect());

    let judgements: Vec<(Profile, Judgement)> =
        columns.par_iter().map(|column| judge(column, people.as_deref(), rule)).collect();
    let mut judged = Vec::with_capacity(columns.len());
    let mut searched = AttributeSet::new();
    for (number, (column, (profile, judgement))) in columns.iter().zip(judgements).enumerate() {
        let column = Judged { name: column.name.clone(), role: column.role, profile, judgement };
        if column.is_searched() && number < MAX_COLUMNS {
            searched.insert(number);
        }
        judged.push(column);
    }
    let missing = columns.iter().map(|column| missing_codes(&column.codes)).collect();
    let values = keep_values.then(|| Values::of(&mut columns));
    let codes = columns.into_iter().map(|column| column.codes).collect();
    let columns = Coded::Held(CountedTable::new(codes, people)?);
    let subject = subject.map(|s| s.name);
    let outgrown = Vec::new();
    Ok(AuditTable { columns, judged, outgrown, subject, numbers, without_subject, searched, missing, values })
}

fn retain(codes: &mut Vec<u32>, keep: &[bool]) {
    let mut keep = keep.iter();
    codes.retain(|_| keep.next().copied().unwrap_or(false));
}
