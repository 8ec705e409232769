//! Numbers, shares and names as text.

use crate::html::is_control_character;
use indicatif::HumanCount;
pub use throng_core::printable::{percent, percent_with_digits};
use throng_risk::identifiers::IdentifierReason;

/// Formats `1234567` as `1,234,567`.
pub fn number(n: u64) -> String {
    HumanCount(n).to_string()
}

/// Formats `1 record`, `2 records`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", number(n), if n == 1 { "" } else { "s" })
}

/// Formats `1 person`, `2 people`.
pub fn people(n: u64) -> String {
    format!("{} {}", number(n), plural(n, "person", "people"))
}

/// Returns `one` for 1, otherwise `many`.
pub fn plural<'a>(n: u64, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

/// Formats about three significant digits.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.2} s"),
        s => format!("{s:.0} s"),
    }
}

/// Replaces control characters and changes of text direction in untrusted names.
pub fn sanitize_text(name: &str) -> String {
    let clean: String = name.chars().map(|c| if is_control_character(c) { '\u{fffd}' } else { c }).collect();
    if clean.trim().is_empty() { "(no name)".to_owned() } else { clean }
}

/// Wraps at 100 characters; `bullet` starts the first line.
pub fn wrap_text(bullet: &str, text: &str) -> String {
    let indent = bullet.chars().count();
    let (mut out, mut width) = (bullet.to_owned(), indent);
    for word in text.split(' ') {
        let wide = word.chars().count();
        if width > indent && width + 1 + wide > 100 {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            width = indent;
        } else if width > indent {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += wide;
    }
    out.push('\n');
    out
}

/// Shortens to `width` characters, with `…`.
pub fn truncate_text(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Describes the reason for a standalone identifier.
pub fn identifier_reason(reason: &IdentifierReason) -> String {
    match reason {
        IdentifierReason::Declared => "declared in the schema".to_owned(),
        IdentifierReason::Shape { shape, share } => {
            format!("{} of its different values look like {}", percent(*share), shape_title(*shape))
        }
        IdentifierReason::Injective => "every record has a different value".to_owned(),
        IdentifierReason::Cardinality { cardinality, threshold } => {
            format!("{} different values per record, threshold {}", ratio(*cardinality), ratio(*threshold))
        }
        IdentifierReason::NamesSubject => "one value per person and one person per value".to_owned(),
    }
}

fn shape_title(shape: throng_core::values::identifier_shapes::IdentifierShape) -> &'static str {
    use throng_core::values::identifier_shapes::IdentifierShape;
    match shape {
        IdentifierShape::Email => "e-mail addresses",
        IdentifierShape::Url => "URLs",
        IdentifierShape::Uuid => "UUIDs",
        IdentifierShape::MacAddress => "MAC addresses",
        IdentifierShape::IpAddress => "IP addresses",
        IdentifierShape::NationalId => "national identity numbers",
        IdentifierShape::CreditCard => "payment card numbers",
        IdentifierShape::Phone => "telephone numbers",
    }
}

/// Formats three decimal places.
pub fn ratio(value: f64) -> String {
    if value > 0.0 && value < 0.001 { "< 0.001".to_owned() } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_separators() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "record"), counted(2, "record")), ("1 record".into(), "2 records".into()));
        assert_eq!((people(1), people(1_000)), ("1 person".into(), "1,000 people".into()));
    }

    #[test]
    fn seconds_have_three_digits() {
        assert_eq!([0.0002, 0.02, 1.5, 120.4].map(seconds), ["0.2 ms", "20 ms", "1.50 s", "120 s"]);
    }

    #[test]
    fn control_characters_in_names_are_replaced() {
        assert_eq!(sanitize_text("a\u{1b}[31mb\u{202e}c\n"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}");
        assert_eq!((sanitize_text(" "), sanitize_text("é")), ("(no name)".into(), "é".into()));
        assert_eq!((truncate_text("abcdef", 4), truncate_text("abcd", 4)), ("abc…".into(), "abcd".into()));
    }
}
