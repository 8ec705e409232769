//! Standalone identifiers found in the sample, by the rule of [`throng_risk::identifiers`].

use super::sample::Sample;
use std::collections::BTreeSet;
use throng_core::values::codebook::{ABSENT, Codebook, FIRST_VALUE, NULL, UNCOVERED};
use throng_core::values::schema::Type;
use throng_risk::identifiers::{Profile, Rule};

/// The attributes among `candidates` that are identifiers by themselves, ascending.
///
/// Cardinality is distinct values over rows, missing values included, and only counts against attributes that have no
/// hierarchy: the others are recoded. Values with the shape of an identifier (e-mail, phone, …) are hidden one by one
/// ([`Codebook::shaped`]); where they are half of a text attribute without a hierarchy, the rest of it is not trusted either.
pub fn found_in(sample: &Sample, candidates: &[usize], books: &[Codebook], threshold: f64) -> Vec<usize> {
    let rule = Rule::of_a_stream(threshold);
    let mut found: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|&a| {
            let book = &books[a];
            hides_most(sample.column(a), book)
                // The sample and not all values ever seen, so that a restart judges the same.
                || rule.judge(&profile_of(sample.column(a), book), book.levels() > 2, None).identifies()
        })
        .collect();
    found.sort_unstable();
    found
}

/// Whether at least half of the texts that are there are hidden. Without a hierarchy only their shape hides them, or a
/// dictionary that is full of different ones.
fn hides_most(codes: &[u32], book: &Codebook) -> bool {
    let flat = book.levels() == 2 && book.attribute().kind() == Type::String;
    let hidden = codes.iter().filter(|code| **code == UNCOVERED).count();
    let there = codes.iter().filter(|code| !matches!(**code, ABSENT | NULL)).count();
    flat && hidden > 0 && 2 * hidden >= there
}

/// What was counted in a column of codes.
pub fn profile_of(codes: &[u32], book: &Codebook) -> Profile {
    let distinct: BTreeSet<u32> = codes.iter().copied().filter(|c| *c >= FIRST_VALUE).collect();
    // Numbers of eight digits are not telephones: only texts are judged by their shape.
    let texts = distinct.into_iter().map(|code| book.canonical(code)).filter(|text| text.starts_with('"'));
    Profile::of_codes(codes, book.codes(), |code| code < FIRST_VALUE).with_texts(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throng_core::values::codebook::books_of;
    use throng_core::values::raw::Token;
    use throng_core::values::shapes::shape_of;
    use throng_core::values::table::Batch;

    const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"flat\"\ntype = \"string\"\n\
        [[attribute]]\nname = \"tall\"\ntype = \"string\"\n[attribute.hierarchy]\nkind = \"prefix\"\nkeep = [2, 1]\n";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Against the definition in docs/methods.md §2, value by value.
        #[test]
        fn agrees_with_the_definition(
            rows in prop_oneof![995_usize..1005, 1_usize..60],
            values in 1_usize..1500,
            emails in 0_usize..1500,
            missing in 0_usize..4,
            threshold in prop_oneof![Just(0.8), Just(1.0), Just(0.05)],
        ) {
            let mut books = books_of(SCHEMA, 4000);
            let text = |row: usize| match row % values {
                _ if row < missing => None,
                value if value < emails => Some(format!("a{value}@example.org")),
                value => Some(format!("v{value}")),
            };
            let mut batch = Batch::new(2);
            for row in 0..rows {
                for (column, book) in batch.columns.iter_mut().zip(&mut books) {
                    column.push(text(row).map_or(1, |text| book.encode(Token::Text(&text)).unwrap()));
                }
                batch.subjects.push(1);
            }
            let mut sample = Sample::new(2, 4000, 4000);
            sample.add(&batch, 0);
            let cells: Vec<Option<String>> = (0..rows).map(text).collect();
            let distinct: BTreeSet<&Option<String>> = cells.iter().collect();
            let there = cells.iter().flatten().count();
            let shaped = cells.iter().flatten().filter(|text| shape_of(text).is_some()).count();
            let by_shape = shaped > 0 && 2 * shaped >= there;
            // Hidden values are one.
            let seen = distinct.iter().filter(|cell| cell.as_ref().is_none_or(|text| shape_of(text).is_none())).count();
            let by_spread = rows >= 1000 && (seen + usize::from(shaped > 0)) as f64 / rows as f64 >= threshold;
            let expected: Vec<usize> = if by_shape || by_spread { vec![0] } else { Vec::new() };
            prop_assert_eq!(found_in(&sample, &[1, 0], &books, threshold), expected);
        }
    }
}
