//! From columns as they were read to the table that is searched.

use rayon::prelude::*;

use super::column::{AuditColumn, GivenUp, Judged, Outgrown, is_missing, judgement, with_texts};
use crate::counting::codes::{PreparedTable, TableError, WrittenColumns};
use crate::counting::{AttributeSet, CodeTable, CodeWriter, ColumnsError, ComputeError, CpuCounter, DeviceError};
use crate::identifiers::{People, Profile, Rule};
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE};
use throng_core::values::numbers::RecordNumbers;

/// An audit that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum AuditError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// A device was asked for by name.
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("column \"{column}\" is to count people, but no record has a value there: name another one (--subject)")]
    Nobody { column: String },
    #[error("the table cannot be sorted in its temporary files ({reason}): name a directory with more room (--temp)")]
    Temporary { reason: String },
}

impl From<TableError> for AuditError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Columns(error) => Self::Columns(error),
            TableError::File(error) => Self::Temporary { reason: error.to_string() },
        }
    }
}

/// What is shown of one cell at most, in characters.
const LONGEST: usize = 60;

/// The dictionaries of a table and the way back to them from dense codes.
#[derive(Clone, Debug)]
pub(super) struct Values {
    columns: Vec<(Dictionary, Vec<u32>)>,
}

impl Values {
    /// Takes the dictionaries out of the columns; `counts` are the rows of each code, column by column. Dense codes are the ranks of the
    /// codes that occur.
    pub fn of(columns: &mut [AuditColumn], counts: &[Vec<u64>]) -> Self {
        let take = |(column, counts): (&mut AuditColumn, &Vec<u64>)| {
            let occurring = (0..).zip(counts).filter(|(_, count)| **count > 0).map(|(code, _)| code).collect();
            (std::mem::replace(&mut column.dictionary, Dictionary::new(None)), occurring)
        };
        Self { columns: columns.iter_mut().zip(counts).map(take).collect() }
    }

    /// The value behind a dense code, shortened; what is missing says so.
    pub fn text(&self, column: usize, code: u32) -> String {
        let (dictionary, occurring) = &self.columns[column];
        let Some(text) = occurring.get(code as usize).and_then(|&code| dictionary.text(code)) else {
            return "(missing)".to_owned();
        };
        match text.char_indices().nth(LONGEST) {
            None => text.to_owned(),
            Some((end, _)) => format!("{}…", &text[..end]),
        }
    }
}

/// A table with its judged columns; column numbers are those of the coded table.
#[derive(Clone, Debug)]
pub struct AuditTable {
    pub(super) columns: CodeTable,
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

/// Columns that were read.
#[derive(Debug)]
pub struct ReadColumns {
    /// The columns of the table in their order, without codes.
    pub columns: Vec<AuditColumn>,
    /// Columns that have more values than can be held.
    pub given_up: Vec<(AuditColumn, GivenUp)>,
    /// Their codes.
    pub written: WrittenColumns,
    /// Which record each row is.
    pub numbers: RecordNumbers,
    /// The column that counts people; it is not among the others.
    pub subject: Option<String>,
}

impl ReadColumns {
    /// Columns whose codes are held; `subject` is the number of the one that counts people. Of the codes a packed copy is left.
    ///
    /// # Errors
    /// When the columns do not have the same rows.
    pub fn held(
        mut columns: Vec<AuditColumn>,
        numbers: RecordNumbers,
        subject: Option<usize>,
    ) -> Result<Self, AuditError> {
        let rows = columns.first().map_or(0, |column| column.codes.len());
        let mut writer = CodeWriter::new(None, columns.len()).map_err(TableError::from)?;
        for (number, column) in columns.iter_mut().enumerate() {
            let codes = std::mem::take(&mut column.codes);
            if codes.len() != rows {
                return Err(ColumnsError::Ragged { column: number, found: codes.len(), expected: rows }.into());
            }
            writer.append(number, &codes).map_err(TableError::from)?;
        }
        let others = (0..columns.len()).filter(|number| Some(*number) != subject).collect();
        let people = subject.map(|number| (number, FIRST_VALUE));
        let subject = subject.map(|number| columns.remove(number).name);
        let written = WrittenColumns { writer, columns: others, rows, people, directory: None, memory: u64::MAX };
        Ok(Self { columns, given_up: Vec::new(), written, numbers, subject })
    }
}

/// Judges the columns, and brings the rows into the order of people. Records without a value in the column that counts people support
/// nobody and are left out (docs/methods.md §1.3). Values are forgotten unless `keep_values`.
///
/// # Errors
/// When the columns are too many or too long to be counted, when nobody stands behind any record, or when the disk fails.
pub fn prepare(read: ReadColumns, rule: Rule, keep_values: bool) -> Result<AuditTable, AuditError> {
    let ReadColumns { mut columns, given_up, written, mut numbers, subject } = read;
    let rows = written.rows;
    let PreparedTable { table, counts, kept } = CodeTable::of(written)?;
    if let (Some(column), true) = (&subject, table.rows() == 0 && rows > 0) {
        return Err(AuditError::Nobody { column: column.clone() });
    }
    let without_subject = (rows - table.rows()) as u64;
    if let Some(kept) = kept {
        numbers = numbers.retained(&kept);
    }
    let counter = CpuCounter::over(&table, 1, 0);
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
    let values = keep_values.then(|| Values::of(&mut columns, &counts));
    let outgrown = given_up.into_iter().map(|(column, given_up)| given_up.judged(&column, rule)).collect();
    Ok(AuditTable { columns: table, judged, outgrown, subject, numbers, without_subject, searched, missing, values })
}

/// Different codes that say that there is no value.
fn missing_of(counts: &[u64]) -> u32 {
    (0..).zip(counts).map(|(code, count)| u32::from(is_missing(code) && *count > 0)).sum()
}

/// A column beside the people of its table, of whom there are `all`; its first `missing` codes are no values.
fn people_of(counter: &CpuCounter<'_>, column: usize, missing: u32, all: usize) -> Result<People, ComputeError> {
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
