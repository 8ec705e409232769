//! Texts that a spreadsheet would run as formulas when it opens a CSV file (OWASP, CSV injection).

/// Letters with which a formula begins; the last four are full-width forms.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// The letter that makes a spreadsheet take a cell as text.
const GUARD: char = '\'';

/// Whether a text cell of CSV is written with a `'` before it: it begins as a formula, or did before a `'` was written.
#[must_use]
pub fn needs_guard(text: &str) -> bool {
    text.trim_start_matches(GUARD).starts_with(FORMULA_STARTS)
}

/// A text as CSV writes it, with the guard where it needs one.
#[must_use]
pub fn guarded(text: &str) -> String {
    if needs_guard(text) { format!("{GUARD}{text}") } else { text.to_owned() }
}

/// The text behind a cell of CSV: without the guard that [`guarded`] has written.
#[must_use]
pub fn unguarded(cell: &str) -> &str {
    if needs_guard(cell) { cell.strip_prefix(GUARD).unwrap_or(cell) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_that_begins_as_a_formula_has_a_guard() {
        for text in ["=1+1", "+1", "-5--1", "@a", "\tx", "\rx", "\nx", "＝1", "'=1", "''-1"] {
            assert_eq!(guarded(text), format!("'{text}"), "{text:?}");
        }
        for text in ["", "a=1", "5-9", "'quoted'", "*", " =1"] {
            assert_eq!(guarded(text), text);
        }
    }

    proptest! {
        #[test]
        fn a_guard_is_taken_off_again(text in "[='+a -]{0,6}") {
            let cell = guarded(&text);
            prop_assert_eq!(unguarded(&cell), &text);
            prop_assert!(!cell.starts_with(FORMULA_STARTS));
        }
    }
}
