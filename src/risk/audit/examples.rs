//! Texts of values, kept only where they may be shown.

use super::column::AuditColumn;
use crate::records::dictionary::Dictionary;

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
