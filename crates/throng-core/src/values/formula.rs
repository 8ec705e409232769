//! CSV injection (OWASP): texts that spreadsheets run as formulas.

/// Includes full-width forms.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

const GUARD: char = '\'';

/// Checks for a formula, with or without leading `'`.
#[must_use]
pub fn needs_guard(text: &str) -> bool {
    text.trim_start_matches(GUARD).starts_with(FORMULA_STARTS)
}

/// Returns the guarded CSV text.
#[must_use]
pub fn guarded(text: &str) -> String {
    if needs_guard(text) { format!("{GUARD}{text}") } else { text.to_owned() }
}

/// Removes the guard of [`guarded`].
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
