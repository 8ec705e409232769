//! Values and cells as sparse numbers. A cell that stands for several values is the mean of their numbers: of a number the middle, of a
//! category an even spread.

use crate::evaluation::facts::{AttributeFacts, is_present};
use crate::evaluation::original::Original;
use crate::evaluation::released::ReleasedGroup;
use std::collections::{BTreeMap, HashMap};
use throng_core::values::codebook::{CellId, Code};
use throng_core::values::schema::Type;

/// Values of a category that have a column of their own.
const MOST_VALUES: usize = 32;

/// Numbers of a row by their column; columns that are not there are 0.
pub(super) type Entries = Vec<(u32, f64)>;

/// The columns of one attribute.
struct Column {
    attribute: usize,
    /// By code: its numbers.
    of_code: Vec<Entries>,
    /// By cell that was met: its numbers.
    of_cell: HashMap<CellId, Entries>,
}

/// The attributes that predict.
pub(super) struct Features {
    columns: Vec<Column>,
    width: u32,
}

/// By code the number that a value is; none where the attribute is no number.
pub(super) fn numbers(original: &Original, attribute: usize) -> Option<Vec<Option<f64>>> {
    let book = &original.books[attribute];
    if !matches!(book.attribute().kind(), Type::Integer | Type::Float) {
        return None;
    }
    let number = |code: Code| is_present(code).then(|| book.canonical(code).parse::<f64>().ok()).flatten();
    Some((0..book.codes() as Code).map(number).collect())
}

impl Features {
    pub(super) fn new(original: &Original, facts: &[AttributeFacts], attributes: &[usize]) -> Self {
        let mut this = Self { columns: Vec::new(), width: 0 };
        for &attribute in attributes {
            let (of_code, width) = match numbers(original, attribute) {
                Some(numbers) => of_numbers(this.width, &numbers, &facts[attribute]),
                None => of_values(this.width, &facts[attribute]),
            };
            this.columns.push(Column { attribute, of_code, of_cell: HashMap::new() });
            this.width += width;
        }
        this
    }

    /// Columns.
    pub(super) fn width(&self) -> usize {
        self.width as usize
    }

    /// A record of the original, attribute by attribute.
    pub(super) fn by_attribute<'a>(
        &'a self,
        original: &'a Original,
        row: usize,
    ) -> impl Iterator<Item = &'a [(u32, f64)]> {
        self.columns
            .iter()
            .map(move |column| column.of_code[original.batch.columns[column.attribute][row] as usize].as_slice())
    }

    /// A record of the original.
    pub(super) fn of_row(&self, original: &Original, row: usize) -> Entries {
        self.by_attribute(original, row).flatten().copied().collect()
    }

    /// A line. Attributes that its group does not have are 0, as is a falsified cell.
    pub(super) fn of_line(&mut self, facts: &[AttributeFacts], group: &ReleasedGroup, line: usize) -> Entries {
        let mut features = Vec::new();
        for column in &mut self.columns {
            if let Some(cells) = group.column(column.attribute) {
                features.extend_from_slice(column.of_cell(&facts[column.attribute], cells[line]));
            }
        }
        features
    }
}

impl Column {
    fn of_cell(&mut self, facts: &AttributeFacts, cell: CellId) -> &[(u32, f64)] {
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

/// Numbers, centred and scaled by the original, from column `first` on; a missing one is the mean and sets a second column.
fn of_numbers(first: u32, numbers: &[Option<f64>], facts: &AttributeFacts) -> (Vec<Entries>, u32) {
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

/// A column for each frequent value, from `first` on; the others, a missing one too, have none.
fn of_values(first: u32, facts: &AttributeFacts) -> (Vec<Entries>, u32) {
    let counts = &facts.counts;
    let mut codes: Vec<usize> =
        (0..counts.len()).filter(|code| is_present(*code as Code) && counts[*code] > 0).collect();
    codes.sort_by_key(|code| (std::cmp::Reverse(counts[*code]), *code));
    codes.truncate(MOST_VALUES);
    let width = codes.len() as u32;
    let mut of_code = vec![Vec::new(); counts.len()];
    codes.into_iter().zip(first..).for_each(|(code, at)| of_code[code] = vec![(at, 1.0)]);
    (of_code, width)
}
