//! What a single text says: a number, or nothing.

/// Spellings of nothing among numbers and dates.
const NOTHING: [&str; 20] = [
    "", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "NONE", "-", "--", "?",
    ".", "<NA>", "#N/A",
];
/// Those that are no words of anybody's vocabulary.
const NOTHING_OF_WORDS: [&str; 11] = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?", "<NA>", "#N/A"];
/// Whether a text says that there is no value; `numeric`: among numbers and dates; among words `none`
/// may be an answer.
pub(super) fn is_nothing(text: &str, numeric: bool) -> bool {
    let listed = if numeric { &NOTHING[..] } else { &NOTHING_OF_WORDS[..] };
    listed.contains(&text) || text.len() <= 8 && text.trim_ascii().is_empty()
}

/// The finite number that a text spells.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim_ascii().parse::<f64>().ok().filter(|value| value.is_finite())
}
