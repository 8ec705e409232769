//! Stored rows of one batch, self-contained: codes are valid only within one process. 10,000 records of 25 attributes
//! take about 30 bytes each.

use serde::{Deserialize, Serialize};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{ABSENT, Code, Codebook};

/// Distinct values in order of first use, and each row's index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PackedColumn<T> {
    values: Vec<T>,
    /// Bytes per row: 1, 2 or 4.
    width: u8,
    /// Positions in `values`, little-endian.
    #[serde(with = "serde_bytes")]
    rows: Vec<u8>,
}

impl<T> PackedColumn<T> {
    fn new(values: Vec<T>, rows: &[u32]) -> Self {
        let width = match values.len() {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        let rows = match width {
            1 => rows.iter().map(|&row| row as u8).collect(),
            2 => rows.iter().flat_map(|&row| (row as u16).to_le_bytes()).collect(),
            _ => rows.iter().flat_map(|&row| row.to_le_bytes()).collect(),
        };
        Self { values, width, rows }
    }

    fn with_rows_at(&self, kept: &[usize]) -> Option<Self>
    where
        T: Clone,
    {
        let mut position = 0;
        let numbers: Vec<u32> = self.unpack(|_| {
            position += 1;
            position - 1
        })?;
        let (mut places, mut values) = (vec![None; self.values.len()], Vec::new());
        let mut rows = Vec::with_capacity(kept.len());
        for &row in kept {
            let number = *numbers.get(row)? as usize;
            rows.push(*places[number].get_or_insert_with(|| {
                values.push(self.values[number].clone());
                values.len() as u32 - 1
            }));
        }
        Some(Self::new(values, &rows))
    }

    /// `None` if a row refers to a missing value.
    fn unpack<U: Copy>(&self, map: impl FnMut(&T) -> U) -> Option<Vec<U>> {
        let values: Vec<U> = self.values.iter().map(map).collect();
        let at = |position: u32| values.get(position as usize).copied();
        match self.width {
            1 => self.rows.iter().map(|&byte| at(u32::from(byte))).collect(),
            2 => byte_chunks(&self.rows).map(|bytes| at(u32::from(u16::from_le_bytes(bytes)))).collect(),
            4 => byte_chunks(&self.rows).map(|bytes| at(u32::from_le_bytes(bytes))).collect(),
            _ => None,
        }
    }
}

fn byte_chunks<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// Rows of one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowBlock {
    /// Number of the last row in the stream.
    pub last: u64,
    subjects: PackedColumn<u64>,
    columns: Vec<PackedColumn<String>>,
}

impl RowBlock {
    /// Returns the `remembered` attributes as codes of `books`; `None` if inconsistent.
    #[must_use]
    pub fn unpack(&self, remembered: &[usize], books: &mut [Codebook]) -> Option<CodeBatch> {
        if self.columns.len() != remembered.len() {
            return None;
        }
        let subjects = self.subjects.unpack(|subject| *subject)?;
        let mut columns = vec![vec![ABSENT; subjects.len()]; books.len()];
        for (packed, &attribute) in self.columns.iter().zip(remembered) {
            let book = books.get_mut(attribute)?;
            columns[attribute] = packed.unpack(|text| book.encode_canonical(text))?;
        }
        let whole = columns.iter().all(|column| column.len() == subjects.len());
        whole.then_some(CodeBatch { columns, subjects, coordinates: Vec::new() })
    }

    /// Returns the block without subjects of `is_gone` and rows before `first`, and the number of rows erased; `None`
    /// if inconsistent.
    #[must_use]
    pub fn without_subjects(&self, is_gone: impl Fn(u64) -> bool, first: u64) -> Option<(Self, u64)> {
        let subjects = self.subjects.unpack(|subject| *subject)?;
        let begins = (self.last + 1).checked_sub(subjects.len() as u64)?;
        let gone = subjects.iter().filter(|subject| is_gone(**subject)).count() as u64;
        let stays = |(row, subject): (usize, &u64)| (begins + row as u64 >= first && !is_gone(*subject)).then_some(row);
        let kept: Vec<usize> = subjects.iter().enumerate().filter_map(stays).collect();
        let columns = self.columns.iter().map(|column| column.with_rows_at(&kept)).collect::<Option<_>>()?;
        Some((Self { last: self.last, subjects: self.subjects.with_rows_at(&kept)?, columns }, gone))
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.subjects.rows.len() / usize::from(self.subjects.width.max(1))
    }
}

/// Packer of successive batches.
#[derive(Clone, Debug, Default)]
pub struct RowPacker {
    /// Column, and position among its values, of each code.
    places: Vec<(u32, u32)>,
    column: u32,
}

impl RowPacker {
    /// Packs `batch`, which starts at row `first`.
    ///
    /// # Panics
    /// If an attribute is not in the batch.
    pub fn pack(&mut self, batch: &CodeBatch, first: u64, remembered: &[usize], books: &[Codebook]) -> RowBlock {
        let columns = remembered
            .iter()
            .map(|&attribute| {
                let (codes, rows) = self.index_distinct_codes(&batch.columns[attribute], books[attribute].codes());
                PackedColumn::new(
                    codes.iter().map(|&code| books[attribute].canonical(code).to_owned()).collect(),
                    &rows,
                )
            })
            .collect();
        let mut known = hashbrown::HashMap::new();
        let mut subjects = Vec::new();
        let rows: Vec<u32> = batch
            .subjects
            .iter()
            .map(|&subject| {
                *known.entry(subject).or_insert_with(|| {
                    subjects.push(subject);
                    subjects.len() as u32 - 1
                })
            })
            .collect();
        let last = (first + batch.rows() as u64).saturating_sub(1);
        RowBlock { last, subjects: PackedColumn::new(subjects, &rows), columns }
    }

    fn index_distinct_codes(&mut self, column: &[Code], codes: usize) -> (Vec<Code>, Vec<u32>) {
        self.places.resize(self.places.len().max(codes), (0, 0));
        self.column = self.column.checked_add(1).unwrap_or_else(|| {
            self.places.fill((0, 0));
            1
        });
        let mut values = Vec::new();
        let rows = column
            .iter()
            .map(|&code| {
                let place = &mut self.places[code as usize];
                if place.0 != self.column {
                    *place = (self.column, values.len() as u32);
                    values.push(code);
                }
                place.1
            })
            .collect();
        (values, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;
    use std::sync::Arc;
    use throng_core::values::digest::DigestKey;
    use throng_core::values::raw_batch::RawToken;
    use throng_core::values::schema::Schema;

    fn books() -> Vec<Codebook> {
        let text = "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\n[[attribute]]\nname = \"b\"\ntype = \"integer\"\n[[attribute]]\nname = \"c\"\ntype = \"string\"\n";
        let schema = Schema::parse(text, "schema.toml", Path::new("")).expect("a schema");
        let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([7; 32]), 100_000).expect("a codebook");
        schema.attributes.iter().map(book).collect()
    }

    fn texts(batch: &CodeBatch, books: &[Codebook], attribute: usize) -> Vec<String> {
        batch.columns[attribute].iter().map(|&code| books[attribute].canonical(code).to_owned()).collect()
    }

    proptest! {
        #[test]
        fn row_block_round_trips_its_rows(rows in proptest::collection::vec((0_u32..400, 0_i64..70_000, 0_u64..9), 0..600)) {
            let mut known = books();
            let mut packer = RowPacker::default();
            let mut batch = CodeBatch::new(3);
            for (a, b, subject) in &rows {
                let (a, b) = (format!("v{a}"), b.to_string());
                let first = if a.ends_with('7') { RawToken::Null } else { RawToken::Text(&a) };
                batch.columns[0].push(known[0].encode(first).expect("a text"));
                batch.columns[1].push(known[1].encode(RawToken::Number(&b)).expect("a number"));
                batch.columns[2].push(ABSENT);
                batch.subjects.push(*subject);
            }
            let block = packer.pack(&batch, 5, &[0, 1], &known);
            prop_assert_eq!(block.last, (5 + rows.len() as u64).saturating_sub(1));
            let bytes = postcard::to_stdvec(&block).expect("plain values");
            let block: RowBlock = postcard::from_bytes(&bytes).expect("what was written");
            let mut fresh = books();
            let back = block.unpack(&[0, 1], &mut fresh).expect("a block of these attributes");
            prop_assert_eq!(&back.subjects, &batch.subjects);
            for attribute in 0..3 {
                prop_assert_eq!(texts(&back, &fresh, attribute), texts(&batch, &known, attribute));
            }
            prop_assert!(block.unpack(&[0], &mut fresh).is_none());
        }
    }

    proptest! {
        #[test]
        fn row_block_without_a_subject_equals_block_of_other_rows(
            rows in proptest::collection::vec((0_u32..300, 0_u64..5), 1..400), passed in 0_usize..50,
        ) {
            let mut known = books();
            let pack = |rows: &[(u32, u64)], last: u64, known: &mut [Codebook]| {
                let mut batch = CodeBatch::new(3);
                for (value, subject) in rows {
                    batch.columns[0].push(known[0].encode(RawToken::Text(&format!("v{value}"))).expect("a text"));
                    batch.columns[1].push(ABSENT);
                    batch.columns[2].push(ABSENT);
                    batch.subjects.push(*subject);
                }
                let block = RowPacker::default().pack(&batch, last + 1 - rows.len() as u64, &[0, 1], known);
                RowBlock { last, ..block }
            };
            let (last, passed) = (1_000, passed.min(rows.len()));
            let block = pack(&rows, last, &mut known);
            let first = last + 1 - (rows.len() - passed) as u64;
            let others: Vec<(u32, u64)> = rows[passed..].iter().copied().filter(|(_, subject)| *subject != 2).collect();
            let (found, gone) = block.without_subjects(|subject| subject == 2, first).expect("a block");
            prop_assert_eq!(gone, rows.iter().filter(|(_, subject)| *subject == 2).count() as u64);
            prop_assert_eq!(found.rows(), others.len());
            prop_assert_eq!(found, pack(&others, last, &mut known));
        }
    }

    #[test]
    fn inconsistent_row_block_is_refused() {
        let mut known = books();
        let packed = |width, rows: &[u8]| PackedColumn { values: vec!["x".to_owned()], width, rows: rows.to_vec() };
        let block = |column| RowBlock {
            last: 0,
            subjects: PackedColumn { values: vec![1], width: 1, rows: vec![0] },
            columns: vec![column],
        };
        assert!(block(packed(1, &[0])).unpack(&[0], &mut known).is_some());
        for wrong in [packed(1, &[1]), packed(3, &[0]), packed(1, &[0, 0]), packed(2, &[0])] {
            assert!(block(wrong).unpack(&[0], &mut known).is_none());
        }
    }
}
