//! From columns as they were read to the table that is searched.

use rayon::prelude::*;

use super::column::AuditColumn;
use super::error::AuditError;
use super::examples::Values;
use crate::counting::{AttributeSet, CountedTable};
use crate::records::dictionary::FIRST_VALUE;
use crate::records::numbers::RecordNumbers;
use crate::records::schema::Role;
use crate::risk::identifiers::{Judgement, Profile, Reason, Rule};

/// Columns of one audit at most.
const MAX_COLUMNS: usize = 1024;

/// A column that has been judged.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub name: String,
    pub role: Option<Role>,
    pub profile: Profile,
    pub judgement: Judgement,
}

/// A table with its judged columns; column numbers are those of [`CountedTable`].
#[derive(Clone, Debug)]
pub struct AuditTable {
    pub(super) columns: CountedTable,
    pub(super) judged: Vec<Judged>,
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
        let opted_out = column.role == Some(Role::Insensitive);
        if !judgement.identifies() && !opted_out && number < MAX_COLUMNS {
            searched.insert(number);
        }
        judged.push(Judged { name: column.name.clone(), role: column.role, profile, judgement });
    }
    let missing = columns.iter().map(|column| missing_codes(&column.codes)).collect();
    let values = keep_values.then(|| Values::of(&mut columns));
    let codes = columns.into_iter().map(|column| column.codes).collect();
    let columns = CountedTable::new(codes, people)?;
    let subject = subject.map(|s| s.name);
    Ok(AuditTable { columns, judged, subject, numbers, without_subject, searched, missing, values })
}

/// Different codes that say that there is no value; the table's dense codes begin with them.
fn missing_codes(codes: &[u32]) -> u32 {
    (0..FIRST_VALUE).map(|missing| u32::from(codes.contains(&missing))).sum()
}

fn judge(column: &AuditColumn, people: Option<&[u32]>, rule: Rule) -> (Profile, Judgement) {
    let missing = |code: u32| code < FIRST_VALUE;
    let codes = FIRST_VALUE as usize + column.dictionary.values();
    let texts = column.dictionary.texts();
    let mut profile = Profile::of_codes(&column.codes, codes, missing);
    // With a schema, canonical texts: numbers of eight digits are not telephones. Without one, everything is a text.
    profile = match column.role {
        Some(_) => profile.with_texts(texts.filter(|text| text.starts_with('"'))),
        None => profile.with_texts(texts),
    };
    if let Some(people) = people {
        profile = profile.with_people(&column.codes, people, missing);
    }
    let mut judgement = rule.judge(&profile, column.recodable, Some(&column.name));
    if column.role == Some(Role::Identifier) {
        judgement.reasons.insert(0, Reason::Declared);
    }
    (profile, judgement)
}

fn retain(codes: &mut Vec<u32>, keep: &[bool]) {
    let mut keep = keep.iter();
    codes.retain(|_| keep.next().copied().unwrap_or(false));
}
