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

/// Marks between thousands.
const THOUSANDS: [char; 7] = [',', '.', '\'', '’', ' ', '\u{a0}', '\u{202f}'];

/// Whether a text is a whole number with `mark` between thousands, as `1.234` is with a point.
fn is_grouped_by(text: &str, mark: char) -> bool {
    let text = text.trim_ascii().trim_start_matches(['-', '+']);
    let is_of_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((first, rest)) = text.split_once(mark) else { return false };
    matches!(first.len(), 1..=3)
        && is_of_digits(first)
        && !first.starts_with('0')
        && rest.split(mark).all(|part| part.len() == 3 && is_of_digits(part))
}

/// The mark that separates the thousands of whole numbers in all of `texts`, or may: numbers below a thousand have none.
pub(super) fn thousands_mark<'a>(texts: &(impl Iterator<Item = &'a str> + Clone)) -> Option<char> {
    let is_small = |text: &str| {
        let digits = text.trim_ascii().trim_start_matches(['-', '+']);
        matches!(digits.len(), 1..=3) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_mark = |mark: &char| {
        let mut grouped = false;
        texts.clone().all(|text| {
            let is = is_grouped_by(text, *mark);
            grouped |= is;
            is || is_small(text)
        }) && grouped
    };
    THOUSANDS.into_iter().find(is_mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_marks_are_told_from_decimals() {
        let mark = |texts: &[&str]| thousands_mark(&texts.iter().copied());
        for (texts, found) in [
            (&["1.234", "12.345", "999"][..], Some('.')),
            (&["1,234", "-12,345,678"], Some(',')),
            (&["1\u{202f}234", "7"], Some('\u{202f}')),
            (&["1'234"], Some('\'')),
            (&["1.234", "0.125"], None),
            (&["1.234", "12.5"], None),
            (&["1.234", "1234"], None),
            (&["12", "345"], None),
            (&["1.234", "one"], None),
            (&[], None),
        ] {
            assert_eq!(mark(texts), found, "{texts:?}");
        }
    }
}
