//! From the codebooks of a schema to the domains and columns of a table.

use super::table::Records;
use crate::anonymity::domain::{Domain, DomainError, Level};
use throng_core::values::codebook::{Code, Codebook, FIRST_VALUE, SUPPRESSED, UNCOVERED};

/// One attribute of a table: its domain, and its column in codes of the domain.
#[derive(Clone, Debug)]
pub struct Coded {
    /// Its values and their generalizations.
    pub domain: Domain,
    /// By record: its value, a position in the domain.
    pub column: Vec<u32>,
    /// The codebook's code of each value of the domain.
    pub codes: Vec<Code>,
}

/// The domain of the values that `column` holds, in the order of [`put_in_order`].
///
/// Losses come from the hierarchy in full precision. A missing or absent cell is a value that loses nothing below the top;
/// one that the hierarchy does not cover is lost on every level.
///
/// # Errors
/// When the levels are no hierarchy; see [`Domain::new`].
pub fn coded(book: &Codebook, column: &[Code]) -> Result<Coded, DomainError> {
    let mut value_of = vec![u32::MAX; book.codes()];
    for &code in column {
        value_of[code as usize] = 0;
    }
    let mut codes: Vec<Code> = (0..book.codes() as Code).filter(|&code| value_of[code as usize] == 0).collect();
    put_in_order(book, &mut codes);
    for (value, &code) in (0..).zip(&codes) {
        value_of[code as usize] = value;
    }
    let top = book.levels() - 1;
    let losses: Vec<Vec<f64>> = codes.iter().map(|&code| losses(book, code, top)).collect();
    let level = |index: usize| {
        let mut cells: Vec<(u32, f64)> = Vec::new();
        let mut number = hashbrown::HashMap::new();
        let cell_of = codes.iter().zip(&losses).map(|(&code, losses)| {
            let cell = book.cell(code, index);
            *number.entry(cell).or_insert_with(|| {
                cells.push((cell, losses[index]));
                cells.len() as u32 - 1
            })
        });
        let cell_of = cell_of.collect();
        Level { cell_of, loss: cells.into_iter().map(|(_, loss)| loss).collect() }
    };
    let mut levels: Vec<Level> = (0..=top).map(level).collect();
    if codes.is_empty() {
        levels[top].loss = vec![1.0];
    }
    // A hierarchy may lead to `*` below its root.
    let silent = |(index, level): (usize, &Level)| {
        let at = codes.iter().position(|&code| book.cell(code, index) == SUPPRESSED);
        at.map(|value| level.cell_of[value]).or((index == top).then_some(0))
    };
    let silent = levels.iter().enumerate().map(silent).collect();
    let domain = Domain::new(book.attribute().name.as_str(), levels)?.with_silent(silent);
    Ok(Coded { domain, column: column.iter().map(|&code| value_of[code as usize]).collect(), codes })
}

/// Sorts codes as an ordered ground distance wants them: what is missing first, numbers by size, texts by spelling.
pub fn put_in_order(book: &Codebook, codes: &mut [Code]) {
    codes.sort_by(|&a, &b| {
        let number = |code: Code| book.canonical(code).parse::<f64>().ok();
        let both = number(a).zip(number(b)).map(|(a, b)| a.total_cmp(&b));
        let fixed = |code: Code| code >= FIRST_VALUE;
        let texts = || book.canonical(a).cmp(book.canonical(b));
        fixed(a).cmp(&fixed(b)).then_with(|| both.unwrap_or_else(texts)).then(a.cmp(&b))
    });
}

/// The loss of a code on every level.
fn losses(book: &Codebook, code: Code, top: usize) -> Vec<f64> {
    let mut losses = vec![if code == UNCOVERED { 1.0 } else { 0.0 }; top + 1];
    losses[top] = 1.0;
    if code >= FIRST_VALUE {
        for (level, cover) in (1..).zip(book.attribute().hierarchy.covers(book.canonical(code)).unwrap_or_default()) {
            losses[level] = cover.loss(level, top);
        }
    }
    losses
}

/// The records of a table from columns of codes: `quasi` and `sensitive` are positions in `books` and `columns`.
///
/// # Errors
/// When an attribute's levels are no hierarchy.
pub fn records(
    books: &[Codebook],
    columns: &[Vec<Code>],
    quasi: &[usize],
    sensitive: &[usize],
) -> Result<(Vec<Domain>, Vec<Domain>, Records), DomainError> {
    let mut records = Records::default();
    let (mut domains, mut sensitive_domains) = (Vec::new(), Vec::new());
    for &attribute in quasi {
        let coded = coded(&books[attribute], &columns[attribute])?;
        domains.push(coded.domain);
        records.quasi.push(coded.column);
    }
    for &attribute in sensitive {
        let coded = coded(&books[attribute], &columns[attribute])?;
        records.sensitive.push((coded.column, coded.domain.values()));
        sensitive_domains.push(coded.domain);
    }
    Ok((domains, sensitive_domains, records))
}
