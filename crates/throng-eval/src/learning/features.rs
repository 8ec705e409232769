//! Encoding of values and cells as sparse numbers; a cell is the mean of its values.

use crate::facts::{AttributeFacts, is_present};
use crate::original::OriginalData;
use crate::released_lines::ReleasedGroup;
use std::collections::{BTreeMap, HashMap};
use throng_core::values::codebook::{CellId, Code};
use throng_core::values::schema::AttributeType;

const MAX_CATEGORY_COLUMNS: usize = 32;

/// By column; absent ones are 0.
pub(super) type SparseEntries = Vec<(u32, f64)>;

struct FeatureColumn {
    attribute: usize,
    of_code: Vec<SparseEntries>,
    /// Cached.
    of_cell: HashMap<CellId, SparseEntries>,
}

pub(super) struct FeatureEncoder {
    columns: Vec<FeatureColumn>,
    width: u32,
}

/// None if not numeric.
pub(super) fn numbers_by_code(original: &OriginalData, attribute: usize) -> Option<Vec<Option<f64>>> {
    let book = &original.books[attribute];
    if !matches!(book.attribute().kind(), AttributeType::Integer | AttributeType::Float) {
        return None;
    }
    let number = |code: Code| is_present(code).then(|| book.canonical(code).parse::<f64>().ok()).flatten();
    Some((0..book.codes() as Code).map(number).collect())
}

impl FeatureEncoder {
    pub(super) fn new(original: &OriginalData, facts: &[AttributeFacts], attributes: &[usize]) -> Self {
        let mut this = Self { columns: Vec::new(), width: 0 };
        for &attribute in attributes {
            let (of_code, width) = match numbers_by_code(original, attribute) {
                Some(numbers) => encode_numbers(this.width, &numbers, &facts[attribute]),
                None => encode_categories(this.width, &facts[attribute]),
            };
            this.columns.push(FeatureColumn { attribute, of_code, of_cell: HashMap::new() });
            this.width += width;
        }
        this
    }

    pub(super) fn width(&self) -> usize {
        self.width as usize
    }

    pub(super) fn encode_by_attribute<'a>(
        &'a self,
        original: &'a OriginalData,
        row: usize,
    ) -> impl Iterator<Item = &'a [(u32, f64)]> {
        self.columns
            .iter()
            .map(move |column| column.of_code[original.batch.columns[column.attribute][row] as usize].as_slice())
    }

    pub(super) fn encode_record(&self, original: &OriginalData, row: usize) -> SparseEntries {
        self.encode_by_attribute(original, row).flatten().copied().collect()
    }

    /// Attributes outside the group and falsified cells are 0.
    pub(super) fn encode_line(
        &mut self,
        facts: &[AttributeFacts],
        group: &ReleasedGroup,
        line: usize,
    ) -> SparseEntries {
        let mut features = Vec::new();
        for column in &mut self.columns {
            if let Some(cells) = group.column(column.attribute) {
                features.extend_from_slice(column.encode_cell(&facts[column.attribute], cells[line]));
            }
        }
        features
    }
}

impl FeatureColumn {
    fn encode_cell(&mut self, facts: &AttributeFacts, cell: CellId) -> &[(u32, f64)] {
        let of_code = &self.of_code;
        self.of_cell.entry(cell).or_insert_with(|| {
            let codes = &facts.get(cell).codes;
            let mut mean: BTreeMap<u32, f64> = BTreeMap::new();
            for (at, value) in codes.iter().flat_map(|code| &of_code[*code as usize]) {
                *mean.entry(*at).or_default() += value / codes.len() as f64;
            }
            mean.into_iter().collect()
        })
    }
}

/// Centred and scaled by the original. A missing number is the mean and sets a second column.
fn encode_numbers(first: u32, numbers: &[Option<f64>], facts: &AttributeFacts) -> (Vec<SparseEntries>, u32) {
    let weighed = || numbers.iter().zip(&facts.counts).filter_map(|(number, n)| Some(((*number)?, *n as f64)));
    let all: f64 = weighed().map(|(_, n)| n).sum::<f64>().max(1.0);
    let mean = weighed().map(|(number, n)| number * n).sum::<f64>() / all;
    let spread = (weighed().map(|(number, n)| (number - mean).powi(2) * n).sum::<f64>() / all).sqrt().max(1e-9);
    let of = |number: &Option<f64>| match number {
        Some(number) => vec![(first, (number - mean) / spread)],
        None => vec![(first + 1, 1.0)],
    };
    (numbers.iter().map(of).collect(), 2)
}

/// One column per frequent value.
fn encode_categories(first: u32, facts: &AttributeFacts) -> (Vec<SparseEntries>, u32) {
    let counts = &facts.counts;
    let mut codes: Vec<usize> =
        (0..counts.len()).filter(|code| is_present(*code as Code) && counts[*code] > 0).collect();
    codes.sort_by_key(|code| (std::cmp::Reverse(counts[*code]), *code));
    codes.truncate(MAX_CATEGORY_COLUMNS);
    let width = codes.len() as u32;
    let mut of_code = vec![Vec::new(); counts.len()];
    codes.into_iter().zip(first..).for_each(|(code, at)| of_code[code] = vec![(at, 1.0)]);
    (of_code, width)
}
