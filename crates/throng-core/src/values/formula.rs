//! Guard for texts that a spreadsheet would run as formulas in a CSV file (OWASP, CSV injection).

/// Characters that start a formula; the last four are full-width forms.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Character that makes a spreadsheet treat a cell as text.
const GUARD: char = '\'';

/// Checks that a CSV text cell needs a `'` in front: it starts as a formula, with or without `'` characters before
/// it.
#[must_use]
pub fn needs_guard(text: &str) -> bool {
    text.trim_start_matches(GUARD).starts_with(FORMULA_STARTS)
}

/// Returns a text for CSV, with the guard if needed.
#[must_use]
pub fn guarded(text: &str) -> String {
    if needs_guard(text) { format!("{GUARD}{text}") } else { text.to_owned() }
}

/// Returns the text of a CSV cell without the guard that [`guarded`] has written.
#[must_use]
pub fn unguarded(cell: &str) -> &str {
    if needs_guard(cell) { cell.strip_prefix(GUARD).unwrap_or(cell) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formula_text_gets_a_guard() {
        for text in ["=1+1", "+1", "-5--1", "@a", "\tx", "\rx", "\nx", "＝1", "'=1", "''-1"] {
            assert_eq!(guarded(text), format!("'{text}"), "{text:?}");
        }
        for text in ["", "a=1", "5-9", "'quoted'", "*", " =1"] {
            assert_eq!(guarded(text), text);
        }
    }

    proptest! {
        #[test]
        fn guarded_text_round_trips(text in "[='+a -]{0,6}") {
            let cell = guarded(&text);
            prop_assert_eq!(unguarded(&cell), &text);
            prop_assert!(!cell.starts_with(FORMULA_STARTS));
        }
    }
}
