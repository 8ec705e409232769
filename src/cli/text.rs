//! Numbers, shares and names as people read them.

use crate::html::steers;
use indicatif::HumanCount;
use throng_risk::identifiers::Reason;

/// `1234567` as `1,234,567`.
pub fn number(n: u64) -> String {
    HumanCount(n).to_string()
}

/// `1 record`, `2 records`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", number(n), if n == 1 { "" } else { "s" })
}

/// A share in percent, honest at both ends: only nothing is 0 and only everything is 100.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < 0.1 => "< 0.1 %".to_owned(),
        p if p >= 100.0 => "100 %".to_owned(),
        p if p > 99.9 => "> 99.9 %".to_owned(),
        p => format!("{p:.1} %"),
    }
}

/// Seconds with three digits that count.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.2} s"),
        s => format!("{s:.0} s"),
    }
}

/// A name without what steers a terminal or turns the direction of a text: names come from the file.
pub fn clean(name: &str) -> String {
    let clean: String = name.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect();
    if clean.trim().is_empty() { "(no name)".to_owned() } else { clean }
}

/// Lines of at most 100 characters where words allow it: the first after `bullet`, the others below its text.
pub fn wrapped(bullet: &str, text: &str) -> String {
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

/// At most `width` characters, the last one `…` where some are cut off.
pub fn short(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Why a column identifies by itself, as a clause.
pub fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Declared => "the schema says so".to_owned(),
        Reason::Shape { shape, share } => {
            format!("{} of its different values look like {}", percent(*share), shape_title(*shape))
        }
        Reason::Injective => "every record has a value of its own".to_owned(),
        Reason::Cardinality { cardinality, threshold } => {
            format!("{} different values per record, {} are too many", ratio(*cardinality), ratio(*threshold))
        }
        Reason::NamesSubject => "one value a person and one person a value".to_owned(),
    }
}

/// What has the shape, in the plural.
fn shape_title(shape: throng_core::values::shapes::Shape) -> &'static str {
    use throng_core::values::shapes::Shape;
    match shape {
        Shape::Email => "e-mail addresses",
        Shape::Url => "URLs",
        Shape::Uuid => "UUIDs",
        Shape::MacAddress => "MAC addresses",
        Shape::IpAddress => "IP addresses",
        Shape::NationalId => "national identity numbers",
        Shape::CreditCard => "payment card numbers",
        Shape::Phone => "telephone numbers",
    }
}

/// A number from 0 to 1 with the digits that count.
pub fn ratio(value: f64) -> String {
    if value > 0.0 && value < 0.001 { "< 0.001".to_owned() } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "record"), counted(2, "record")), ("1 record".into(), "2 records".into()));
    }

    #[test]
    fn shares_never_round_to_an_end() {
        let shares = [0.0, 0.0004, 0.001, 0.25, 0.9994, 1.0].map(percent);
        assert_eq!(shares, ["0 %", "< 0.1 %", "0.1 %", "25.0 %", "> 99.9 %", "100 %"]);
        assert_eq!([0.0002, 0.02, 1.5, 120.4].map(seconds), ["0.2 ms", "20 ms", "1.50 s", "120 s"]);
    }

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\u{202e}c\n"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}");
        assert_eq!((clean(" "), clean("é")), ("(no name)".into(), "é".into()));
        assert_eq!((short("abcdef", 4), short("abcd", 4)), ("abc…".into(), "abcd".into()));
    }
}
