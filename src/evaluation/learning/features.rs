//! Values and cells as numbers. A cell that stands for several values is the mean of what they are: of a number the middle, of a
//! category an even spread.

use crate::evaluation::facts::{AttributeFacts, is_present};
use crate::evaluation::original::Original;
use crate::evaluation::released::ReleasedGroup;
use crate::records::codebook::Code;
use crate::records::schema::Type;

/// Values of a category that have a column of their own.
const MOST_VALUES: usize = 12;

/// The columns of one attribute.
struct Column {
    attribute: usize,
    /// By code: its numbers.
    of_code: Vec<Vec<f64>>,
    /// Columns.
    width: usize,
}

/// The attributes that predict.
pub(super) struct Features {
    columns: Vec<Column>,
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
        let column = |&attribute: &usize| match numbers(original, attribute) {
            Some(numbers) => Column::of_numbers(attribute, &numbers, &facts[attribute]),
            None => Column::of_values(attribute, &facts[attribute]),
        };
        Self { columns: attributes.iter().map(column).collect() }
    }

    /// A record of the original.
    pub(super) fn of_row(&self, original: &Original, row: usize) -> Vec<f64> {
        self.columns
            .iter()
            .flat_map(|column| column.of_code[original.batch.columns[column.attribute][row] as usize].clone())
            .collect()
    }

    /// A line. A falsified cell says nothing.
    pub(super) fn of_line(&self, facts: &[AttributeFacts], group: &ReleasedGroup, line: usize) -> Vec<f64> {
        let mut features = Vec::new();
        for column in &self.columns {
            let codes: &[Code] = match group.column(column.attribute) {
                Some(cells) => &facts[column.attribute].get(cells[line]).codes,
                None => &[],
            };
            let mut mean = vec![0.0; column.width];
            for &code in codes {
                for (mean, value) in mean.iter_mut().zip(&column.of_code[code as usize]) {
                    *mean += value / codes.len() as f64;
                }
            }
            features.extend(mean);
        }
        features
    }
}

impl Column {
    /// Numbers, centred and scaled by the original; a missing one is the mean, and says that it is missing.
    fn of_numbers(attribute: usize, numbers: &[Option<f64>], facts: &AttributeFacts) -> Self {
        let weighed = || numbers.iter().zip(&facts.counts).filter_map(|(number, n)| Some(((*number)?, *n as f64)));
        let all: f64 = weighed().map(|(_, n)| n).sum::<f64>().max(1.0);
        let mean = weighed().map(|(number, n)| number * n).sum::<f64>() / all;
        let spread = (weighed().map(|(number, n)| (number - mean).powi(2) * n).sum::<f64>() / all).sqrt().max(1e-9);
        let of = |number: &Option<f64>| match number {
            Some(number) => vec![(number - mean) / spread, 0.0],
            None => vec![0.0, 1.0],
        };
        Self { attribute, of_code: numbers.iter().map(of).collect(), width: 2 }
    }

    /// A column for each frequent value; the others, a missing one too, have none.
    fn of_values(attribute: usize, facts: &AttributeFacts) -> Self {
        let counts = &facts.counts;
        let mut codes: Vec<usize> =
            (0..counts.len()).filter(|code| is_present(*code as Code) && counts[*code] > 0).collect();
        codes.sort_by_key(|code| (std::cmp::Reverse(counts[*code]), *code));
        codes.truncate(MOST_VALUES);
        let width = codes.len();
        let mut of_code = vec![vec![0.0; width]; counts.len()];
        codes.into_iter().enumerate().for_each(|(at, code)| of_code[code][at] = 1.0);
        Self { attribute, of_code, width }
    }
}
