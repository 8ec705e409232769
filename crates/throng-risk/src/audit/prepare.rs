//! Preparation of the table to search.

use rayon::prelude::*;

use super::column::{
    AuditColumn, JudgedColumn, PartialColumnCounts, TruncatedColumn, is_missing, judgement, with_texts,
};
use crate::counting::codes::{CodeTableError, PreparedTable, WrittenColumns};
use crate::counting::{AttributeSet, CodeTable, CodeWriter, ColumnsError, ComputeError, CpuCounter, DeviceError};
use crate::identifiers::{ColumnProfile, IdentifierRule, SubjectRelation};
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE};
use throng_core::values::record_numbers::RecordNumbers;

/// Error of an audit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum AuditError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// The requested device is not available.
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("subject column \"{column}\" has no value in any record: choose another one (--subject)")]
    WithoutSubjects { column: String },
    #[error(
        "the table cannot be sorted in its temporary files ({reason}): choose a directory with more space (--temp)"
    )]
    Temporary { reason: String },
}

impl From<CodeTableError> for AuditError {
    fn from(error: CodeTableError) -> Self {
        match error {
            CodeTableError::Columns(error) => Self::Columns(error),
            CodeTableError::File(error) => Self::Temporary { reason: error.to_string() },
        }
    }
}

const MAX_SHOWN_CHARS: usize = 60;

#[derive(Clone, Debug)]
pub(super) struct AuditValueTexts {
    columns: Vec<(Dictionary, Vec<u32>)>,
}

impl AuditValueTexts {
    /// Moves the dictionaries out of the columns. Dense codes are the ranks of the codes that occur.
    pub fn of(columns: &mut [AuditColumn], counts: &[Vec<u64>]) -> Self {
        let take = |(column, counts): (&mut AuditColumn, &Vec<u64>)| {
            let occurring = (0..).zip(counts).filter(|(_, count)| **count > 0).map(|(code, _)| code).collect();
            (std::mem::replace(&mut column.dictionary, Dictionary::new(None)), occurring)
        };
        Self { columns: columns.iter_mut().zip(counts).map(take).collect() }
    }

    /// Returns the shortened value, or `(missing)`.
    pub fn text(&self, column: usize, code: u32) -> String {
        let (dictionary, occurring) = &self.columns[column];
        let Some(text) = occurring.get(code as usize).and_then(|&code| dictionary.text(code)) else {
            return "(missing)".to_owned();
        };
        match text.char_indices().nth(MAX_SHOWN_CHARS) {
            None => text.to_owned(),
            Some((end, _)) => format!("{}…", &text[..end]),
        }
    }
}

/// Coded table with its judged columns.
#[derive(Clone, Debug)]
pub struct AuditTable {
    pub(super) columns: CodeTable,
    pub(super) judged: Vec<JudgedColumn>,
    /// Columns with too many values.
    pub(super) truncated_columns: Vec<TruncatedColumn>,
    pub(super) subject: Option<String>,
    pub(super) numbers: RecordNumbers,
    pub(super) without_subject: u64,
    pub(super) searched: AttributeSet,
    /// Number of missing codes per column; they come first.
    pub(super) missing: Vec<u32>,
    pub(super) values: Option<AuditValueTexts>,
}

impl AuditTable {
    /// Returns sorted names.
    pub(super) fn names(&self, set: &AttributeSet) -> Vec<String> {
        let mut names: Vec<String> = set.iter().map(|column| self.judged[column].name.clone()).collect();
        names.sort_unstable();
        names
    }
}

/// Columns as read.
#[derive(Debug)]
pub struct ReadColumns {
    /// Columns of the table, without codes.
    pub columns: Vec<AuditColumn>,
    /// Columns with too many values for memory.
    pub unread_columns: Vec<(AuditColumn, PartialColumnCounts)>,
    /// Codes of the columns.
    pub written: WrittenColumns,
    /// Input record number of each row.
    pub numbers: RecordNumbers,
    /// Name of the subject column, which is not in `columns`.
    pub subject: Option<String>,
}

impl ReadColumns {
    /// Takes columns with their codes in memory; `subject` is the number of the subject column.
    ///
    /// # Errors
    /// Fails if the columns differ in length.
    pub fn from_memory(
        mut columns: Vec<AuditColumn>,
        numbers: RecordNumbers,
        subject: Option<usize>,
    ) -> Result<Self, AuditError> {
        let rows = columns.first().map_or(0, |column| column.codes.len());
        let mut writer = CodeWriter::new(None, columns.len()).map_err(CodeTableError::from)?;
        for (number, column) in columns.iter_mut().enumerate() {
            let codes = std::mem::take(&mut column.codes);
            if codes.len() != rows {
                return Err(ColumnsError::Ragged { column: number, found: codes.len(), expected: rows }.into());
            }
            writer.append(number, &codes).map_err(CodeTableError::from)?;
        }
        let others = (0..columns.len()).filter(|number| Some(*number) != subject).collect();
        let people = subject.map(|number| (number, FIRST_VALUE));
        let subject = subject.map(|number| columns.remove(number).name);
        let written =
            WrittenColumns { writer, columns: others, rows, subject_column: people, directory: None, memory: u64::MAX };
        Ok(Self { columns, unread_columns: Vec::new(), written, numbers, subject })
    }
}

/// Judges the columns and sorts the rows by subject. Records without a subject are left out (docs/internals/methods.md
/// §1.3).
///
/// # Errors
/// Fails if the table is too large, if no record has a subject, or on a disk error.
pub fn prepare(read: ReadColumns, rule: IdentifierRule, keep_values: bool) -> Result<AuditTable, AuditError> {
    let ReadColumns { mut columns, unread_columns: given_up, written, mut numbers, subject } = read;
    let rows = written.rows;
    let PreparedTable { table, counts, kept_row_flags: kept } = CodeTable::from_written(written)?;
    if let (Some(column), true) = (&subject, table.rows() == 0 && rows > 0) {
        return Err(AuditError::WithoutSubjects { column: column.clone() });
    }
    let without_subject = (rows - table.rows()) as u64;
    if let Some(kept) = kept {
        numbers = numbers.retained(&kept);
    }
    let counter = CpuCounter::with_memory(&table, 1, 0);
    let missing: Vec<u32> = counts.iter().map(|counts| count_missing_codes(counts)).collect();
    let profile = |number: usize| -> Result<ColumnProfile, ComputeError> {
        let column = &columns[number];
        let profile = ColumnProfile::of_counts(&counts[number], is_missing);
        let profile = with_texts(profile, &column.dictionary, column.role.is_some());
        let people =
            table.subjects().map(|all| relate_to_subjects(&counter, number, missing[number], all)).transpose()?;
        Ok(ColumnProfile { people, ..profile })
    };
    let profiles: Result<Vec<ColumnProfile>, ComputeError> = (0..columns.len()).into_par_iter().map(profile).collect();
    let mut judged = Vec::with_capacity(columns.len());
    let mut searched = AttributeSet::new();
    for (number, (column, profile)) in columns.iter().zip(profiles?).enumerate() {
        let judgement = judgement(column, &profile, rule);
        let column = JudgedColumn { name: column.name.clone(), role: column.role, profile, judgement };
        if column.is_searched() {
            searched.insert(number);
        }
        judged.push(column);
    }
    let values = keep_values.then(|| AuditValueTexts::of(&mut columns, &counts));
    let outgrown = given_up.into_iter().map(|(column, given_up)| given_up.judge_truncated(&column, rule)).collect();
    Ok(AuditTable {
        columns: table,
        judged,
        truncated_columns: outgrown,
        subject,
        numbers,
        without_subject,
        searched,
        missing,
        values,
    })
}

fn count_missing_codes(counts: &[u64]) -> u32 {
    (0..).zip(counts).map(|(code, count)| u32::from(is_missing(code) && *count > 0)).sum()
}

/// The first `missing` codes mean a missing value; `all` is the number of subjects.
fn relate_to_subjects(
    counter: &CpuCounter<'_>,
    column: usize,
    missing: u32,
    all: usize,
) -> Result<SubjectRelation, ComputeError> {
    let mut last = vec![u32::MAX; counter.table().cardinality(column)];
    let mut people = SubjectRelation { all: all as u64, subjects: 0, values: 0, pairs: 0 };
    let mut last_of_all = u32::MAX;
    counter.visit_column_pair(column, column, |code, _, person| {
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
