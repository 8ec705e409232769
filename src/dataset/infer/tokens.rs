//! What a single text says: a number, or nothing.

/// Spellings of nothing among numbers and dates.
const NOTHING: [&str; 26] = [
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "NaN",
    "nan",
    "NAN",
    "null",
    "NULL",
    "Null",
    "None",
    "none",
    "NONE",
    "-",
    "--",
    "?",
    ".",
    "<NA>",
    "#N/A",
    "Infinity",
    "-Infinity",
    "infinity",
    "-infinity",
    "inf",
    "-inf",
];
/// Those that are no words of anybody's vocabulary.
const NOTHING_OF_WORDS: [&str; 11] = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?", "<NA>", "#N/A"];
/// Whether a text says that there is no value; `numeric`: among numbers and dates; among words `none`
/// may be an answer.
pub(super) fn is_nothing(text: &str, numeric: bool) -> bool {
    let listed = if numeric { &NOTHING[..] } else { &NOTHING_OF_WORDS[..] };
    listed.contains(&text) || text.len() <= 8 && text.trim_ascii().is_empty()
}

/// The finite number that a text spells with a decimal point.
pub(super) fn plain_number(text: &str) -> Option<f64> {
    text.trim_ascii().parse::<f64>().ok().filter(|value| value.is_finite())
}

/// The finite number that a text spells with a decimal comma, and without a point.
pub(super) fn comma_number(text: &str) -> Option<f64> {
    if text.contains('.') || text.bytes().filter(|byte| *byte == b',').count() != 1 {
        return None;
    }
    plain_number(&text.replace(',', "."))
}

/// The finite number that a text of a column of numbers spells, whichever its decimal separator is.
pub(super) fn number(text: &str) -> Option<f64> {
    plain_number(text).or_else(|| comma_number(text))
}
