//! Identifiers in the sample, by [`throng_risk::identifiers`].

use super::planner_sample::PlannerSample;
use std::collections::BTreeSet;
use throng_core::values::codebook::{ABSENT, Codebook, FIRST_VALUE, NULL, UNCOVERED};
use throng_core::values::schema::AttributeType;
use throng_risk::identifiers::{ColumnProfile, IdentifierRule};

/// Returns identifiers among `candidates`, ascending; half identifier-shaped texts ([`Codebook::shaped`]) suffice
/// without a hierarchy.
pub fn find_sample_identifiers(
    sample: &PlannerSample,
    candidates: &[usize],
    books: &[Codebook],
    threshold: f64,
) -> Vec<usize> {
    let rule = IdentifierRule::for_stream(threshold);
    let mut found: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|&a| {
            let book = &books[a];
            is_mostly_hidden(sample.column(a), book)
                // The sample alone, so that restarts agree.
                || rule.judge(&profile_codes(sample.column(a), book), book.levels() > 2, None).identifies()
        })
        .collect();
    found.sort_unstable();
    found
}

/// Hidden by shape or a full dictionary.
fn is_mostly_hidden(codes: &[u32], book: &Codebook) -> bool {
    let flat = book.levels() == 2 && book.attribute().kind() == AttributeType::String;
    let hidden = codes.iter().filter(|code| **code == UNCOVERED).count();
    let there = codes.iter().filter(|code| !matches!(**code, ABSENT | NULL)).count();
    flat && hidden > 0 && 2 * hidden >= there
}

/// Counts a column of codes.
pub fn profile_codes(codes: &[u32], book: &Codebook) -> ColumnProfile {
    let distinct: BTreeSet<u32> = codes.iter().copied().filter(|c| *c >= FIRST_VALUE).collect();
    // Eight digits are no telephone number.
    let texts = distinct.into_iter().map(|code| book.canonical(code)).filter(|text| text.starts_with('"'));
    ColumnProfile::of_codes(codes, book.codes(), |code| code < FIRST_VALUE).with_texts(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throng_core::values::code_batch::CodeBatch;
    use throng_core::values::codebook::test_codebooks;
    use throng_core::values::identifier_shapes::detect_shape;
    use throng_core::values::raw_batch::RawToken;

    const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"flat\"\ntype = \"string\"\n\
        [[attribute]]\nname = \"tall\"\ntype = \"string\"\n[attribute.hierarchy]\nkind = \"prefix\"\nkeep = [2, 1]\n";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn sample_identifiers_match_definition(
            rows in prop_oneof![995_usize..1005, 1_usize..60],
            values in 1_usize..1500,
            emails in 0_usize..1500,
            missing in 0_usize..4,
            threshold in prop_oneof![Just(0.8), Just(1.0), Just(0.05)],
        ) {
            let mut books = test_codebooks(SCHEMA, 4000);
            let text = |row: usize| match row % values {
                _ if row < missing => None,
                value if value < emails => Some(format!("a{value}@example.org")),
                value => Some(format!("v{value}")),
            };
            let mut batch = CodeBatch::new(2);
            for row in 0..rows {
                for (column, book) in batch.columns.iter_mut().zip(&mut books) {
                    column.push(text(row).map_or(1, |text| book.encode(RawToken::Text(&text)).unwrap()));
                }
                batch.subjects.push(1);
            }
            let mut sample = PlannerSample::new(2, 4000, 4000);
            sample.add(&batch, 0);
            let cells: Vec<Option<String>> = (0..rows).map(text).collect();
            let distinct: BTreeSet<&Option<String>> = cells.iter().collect();
            let there = cells.iter().flatten().count();
            let shaped = cells.iter().flatten().filter(|text| detect_shape(text).is_some()).count();
            let by_shape = shaped > 0 && 2 * shaped >= there;
            // Hidden values count as one.
            let seen = distinct.iter().filter(|cell| cell.as_ref().is_none_or(|text| detect_shape(text).is_none())).count();
            let by_spread = rows >= 1000 && (seen + usize::from(shaped > 0)) as f64 / rows as f64 >= threshold;
            let expected: Vec<usize> = if by_shape || by_spread { vec![0] } else { Vec::new() };
            prop_assert_eq!(find_sample_identifiers(&sample, &[1, 0], &books, threshold), expected);
        }
    }
}
