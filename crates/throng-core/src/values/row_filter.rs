//! Records that a schema selects by the values of attributes (`only`).

use crate::values::raw_batch::{BatchMark, RawBatch, RawToken};
use crate::values::schema::Attribute;

/// Records that a filter removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedRows {
    /// Number of records.
    pub rows: u64,
    /// Their share of the bytes of the input.
    pub bytes: u64,
}

/// Filter of decoded records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Attribute with the accepted values, as spelled.
    rules: Vec<(usize, Vec<String>)>,
}

impl RowFilter {
    /// Creates the filter of attributes, by their positions in a record.
    pub fn of<'a>(attributes: impl IntoIterator<Item = (usize, &'a Attribute)>) -> Self {
        let rules = attributes.into_iter().filter(|(_, attribute)| !attribute.selection.only.is_empty());
        Self { rules: rules.map(|(at, attribute)| (at, attribute.selection.only.clone())).collect() }
    }

    /// Removes the rows after `mark` that lack an accepted value. The rows share the `bytes` of their input equally.
    pub fn remove_rows(&self, batch: &mut RawBatch, mark: BatchMark, bytes: u64) -> RemovedRows {
        if self.rules.is_empty() {
            return RemovedRows::default();
        }
        let keep: Vec<bool> = (mark.rows()..batch.rows()).map(|row| self.accepts(batch, row)).collect();
        let removed = keep.iter().filter(|keep| !**keep).count() as u64;
        if removed > 0 {
            batch.retain_since(mark, &keep);
        }
        let rows = keep.len() as u64;
        let bytes = if removed == rows { bytes } else { bytes / rows * removed };
        RemovedRows { rows: removed, bytes }
    }

    fn accepts(&self, batch: &RawBatch, row: usize) -> bool {
        self.rules.iter().all(|(attribute, accepted)| {
            let text = match batch.token(row, *attribute) {
                RawToken::Absent | RawToken::Null => return false,
                RawToken::Bool(true) => "true",
                RawToken::Bool(false) => "false",
                token => token.parts().1,
            };
            accepted.iter().any(|value| value == text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::raw_batch::RecordPosition;
    use proptest::prelude::*;

    fn token(code: u8) -> RawToken<'static> {
        match code {
            0 => RawToken::Absent,
            1 => RawToken::Null,
            2 => RawToken::Text("a"),
            3 => RawToken::Untyped("b"),
            4 => RawToken::Number("7"),
            _ => RawToken::Bool(code == 5),
        }
    }

    fn spelled(code: u8) -> Option<&'static str> {
        [None, None, Some("a"), Some("b"), Some("7"), Some("true"), Some("false")][usize::from(code)]
    }

    proptest! {
        #[test]
        fn rows_with_accepted_values_remain(
            rows in prop::collection::vec((0u8..7, 0u8..7), 0..12),
            before in 0usize..4,
            accepted in prop::collection::vec(prop::collection::vec(0usize..5, 0..4), 2),
        ) {
            let values = ["a", "b", "7", "true", "false"];
            let lists: Vec<Vec<String>> =
                accepted.iter().map(|list| list.iter().map(|at| values[*at].to_owned()).collect()).collect();
            let rules = lists.iter().cloned().enumerate().filter(|(_, list)| !list.is_empty()).collect();
            let filter = RowFilter { rules };
            let mut batch = RawBatch::new(2);
            let mut mark = batch.mark();
            for (row, (one, other)) in rows.iter().enumerate() {
                if row == before {
                    mark = batch.mark();
                }
                batch.push_row(RecordPosition { offset: row as i64, ..RecordPosition::default() });
                batch.set(0, token(*one));
                batch.set(1, token(*other));
            }
            if rows.len() <= before {
                mark = batch.mark();
            }
            let accepts = |at: usize, code: u8| {
                lists[at].is_empty() || spelled(code).is_some_and(|text| lists[at].iter().any(|value| value == text))
            };
            let expected: Vec<i64> = (0..rows.len())
                .filter(|&row| row < before || (accepts(0, rows[row].0) && accepts(1, rows[row].1)))
                .map(|row| row as i64)
                .collect();
            let since = rows.len().saturating_sub(before) as u64;
            let removed = filter.remove_rows(&mut batch, mark, since * 10 + 1);
            let offsets: Vec<i64> = batch.coordinates().iter().map(|at| at.offset).collect();
            let gone = rows.len() - expected.len();
            prop_assert_eq!(removed.rows as usize, gone);
            if !filter.rules.is_empty() {
                let all = u64::from(gone as u64 == since);
                prop_assert_eq!(removed.bytes, gone as u64 * 10 + all, "the remainder goes with all rows");
            }
            for (at, row) in expected.iter().enumerate() {
                let (one, other) = rows[*row as usize];
                prop_assert_eq!((batch.token(at, 0), batch.token(at, 1)), (token(one), token(other)));
            }
            prop_assert_eq!(offsets, expected);
        }
    }
}
