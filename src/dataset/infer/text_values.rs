//! Interprets a text as a number or a missing value.

/// Among numbers and dates.
const MISSING_TEXTS: [&str; 26] = [
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
/// Not words of a vocabulary.
const MISSING_WORDS: [&str; 11] = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?", "<NA>", "#N/A"];
/// `numeric` applies the list for numbers and dates; among words, `none` may be an answer.
pub(super) fn is_missing_text(text: &str, numeric: bool) -> bool {
    let listed = if numeric { &MISSING_TEXTS[..] } else { &MISSING_WORDS[..] };
    listed.contains(&text) || text.len() <= 8 && text.trim_ascii().is_empty()
}

/// Finite number with a decimal point.
pub(super) fn parse_point_number(text: &str) -> Option<f64> {
    text.trim_ascii().parse::<f64>().ok().filter(|value| value.is_finite())
}

/// Finite number with a decimal comma and no point.
pub(super) fn parse_comma_number(text: &str) -> Option<f64> {
    if text.contains('.') || text.bytes().filter(|byte| *byte == b',').count() != 1 {
        return None;
    }
    parse_point_number(&text.replace(',', "."))
}

/// Finite number with either separator.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    parse_point_number(text).or_else(|| parse_comma_number(text))
}

const THOUSANDS_SEPARATORS: [char; 7] = [',', '.', '\'', '’', ' ', '\u{a0}', '\u{202f}'];

/// Whole number with `mark` between thousands, such as `1.234`.
fn is_grouped_by(text: &str, mark: char) -> bool {
    let text = text.trim_ascii().trim_start_matches(['-', '+']);
    let is_of_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((first, rest)) = text.split_once(mark) else { return false };
    matches!(first.len(), 1..=3)
        && is_of_digits(first)
        && !first.starts_with('0')
        && rest.split(mark).all(|part| part.len() == 3 && is_of_digits(part))
}

/// Separator consistent with all texts; at least one must have it.
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
    THOUSANDS_SEPARATORS.into_iter().find(is_mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_separators_differ_from_decimal_marks() {
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
