//! Maps codebooks to the domains and columns of a table.

use super::table::TableRecords;
use crate::domain::{Domain, DomainError, HierarchyLevel};
use crate::values::codebook::{Code, Codebook, FIRST_VALUE, SUPPRESSED, UNCOVERED};

/// Domain of an attribute, and its column.
#[derive(Clone, Debug)]
pub struct CodedAttribute {
    /// Values with generalizations.
    pub domain: Domain,
    /// Position in the domain, by record.
    pub column: Vec<u32>,
    /// Codebook code, by value.
    pub codes: Vec<Code>,
}

/// Builds the domain of the values in `column`, ordered by [`sort_codes_by_value`].
///
/// A missing or absent cell loses nothing below the top; an uncovered value loses 1.
///
/// # Errors
/// When the levels are no hierarchy; see [`Domain::new`].
pub fn code_attribute(book: &Codebook, column: &[Code]) -> Result<CodedAttribute, DomainError> {
    let mut value_of = vec![u32::MAX; book.codes()];
    for &code in column {
        value_of[code as usize] = 0;
    }
    let mut codes: Vec<Code> = (0..book.codes() as Code).filter(|&code| value_of[code as usize] == 0).collect();
    sort_codes_by_value(book, &mut codes);
    for (value, &code) in (0..).zip(&codes) {
        value_of[code as usize] = value;
    }
    let top = book.levels() - 1;
    let losses: Vec<Vec<f64>> = codes.iter().map(|&code| losses_by_level(book, code, top)).collect();
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
        HierarchyLevel { cell_of, loss: cells.into_iter().map(|(_, loss)| loss).collect() }
    };
    let mut levels: Vec<HierarchyLevel> = (0..=top).map(level).collect();
    if codes.is_empty() {
        levels[top].loss = vec![1.0];
    }
    // A hierarchy may lead to `*` below its root.
    let silent = |(index, level): (usize, &HierarchyLevel)| {
        let at = codes.iter().position(|&code| book.cell(code, index) == SUPPRESSED);
        at.map(|value| level.cell_of[value]).or((index == top).then_some(0))
    };
    let silent = levels.iter().enumerate().map(silent).collect();
    let domain = Domain::new(book.attribute().name.as_str(), levels)?.with_uninformative_cells(silent);
    Ok(CodedAttribute { domain, column: column.iter().map(|&code| value_of[code as usize]).collect(), codes })
}

/// Sorts missing values first, numbers by size, texts by spelling.
pub fn sort_codes_by_value(book: &Codebook, codes: &mut [Code]) {
    codes.sort_by(|&a, &b| {
        let number = |code: Code| book.canonical(code).parse::<f64>().ok();
        let both = number(a).zip(number(b)).map(|(a, b)| a.total_cmp(&b));
        let fixed = |code: Code| code >= FIRST_VALUE;
        let texts = || book.canonical(a).cmp(book.canonical(b));
        fixed(a).cmp(&fixed(b)).then_with(|| both.unwrap_or_else(texts)).then(a.cmp(&b))
    });
}

fn losses_by_level(book: &Codebook, code: Code, top: usize) -> Vec<f64> {
    let mut losses = vec![if code == UNCOVERED { 1.0 } else { 0.0 }; top + 1];
    losses[top] = 1.0;
    if code >= FIRST_VALUE {
        for (level, cover) in (1..).zip(book.attribute().hierarchy.covers(book.canonical(code)).unwrap_or_default()) {
            losses[level] = cover.loss(level, top);
        }
    }
    losses
}

/// Builds records; `quasi` and `sensitive` are positions in `books` and `columns`.
///
/// # Errors
/// When the levels of an attribute are no hierarchy.
pub fn code_table_records(
    books: &[Codebook],
    columns: &[Vec<Code>],
    quasi: &[usize],
    sensitive: &[usize],
) -> Result<(Vec<Domain>, Vec<Domain>, TableRecords), DomainError> {
    let mut records = TableRecords::default();
    let (mut domains, mut sensitive_domains) = (Vec::new(), Vec::new());
    for &attribute in quasi {
        let coded = code_attribute(&books[attribute], &columns[attribute])?;
        domains.push(coded.domain);
        records.quasi.push(coded.column);
    }
    for &attribute in sensitive {
        let coded = code_attribute(&books[attribute], &columns[attribute])?;
        records.sensitive.push((coded.column, coded.domain.values()));
        sensitive_domains.push(coded.domain);
    }
    Ok((domains, sensitive_domains, records))
}
