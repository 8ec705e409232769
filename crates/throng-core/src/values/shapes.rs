//! Shapes of direct identifiers: strings that name a person or a device by their form alone.
//!
//! The rules are narrow on purpose: a run of ten digits is a step count as easily as a phone number, so separators,
//! a leading `+` or a check digit are asked for. What has no shape of its own (names, addresses, serial numbers) is
//! left to the cardinality test and to the schema.

use crate::values::json::unquoted;
use crate::values::spelling::{Normalize, Spelling};
use strum::VariantArray;

/// The shape of a direct identifier.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Shape {
    /// An e-mail address.
    Email,
    /// A URL.
    Url,
    /// A UUID.
    Uuid,
    /// A MAC address.
    MacAddress,
    /// An IP address of version 4 or 6.
    IpAddress,
    /// US SSN, Canadian SIN, Swiss AHV, UK NINO, Spanish DNI/NIE.
    NationalId,
    /// 13–19 digits with a valid Luhn digit and an issuer's first digit.
    CreditCard,
    /// International (`+41 44 …`), or with separators in the North American manner.
    Phone,
}

impl Shape {
    /// A name for reports and metric labels: a closed set.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The shape of `text`, if it has one; the first that fits, in the order of [`Shape`].
pub fn shape_of(text: &str) -> Option<Shape> {
    let text = text.trim();
    if let Some((shape, name)) = named_by_scheme(text) {
        return shape_of(name).or(Some(shape).filter(|shape| *shape == Shape::Phone && is_dialled(name)));
    }
    if !(5..=320).contains(&text.len()) {
        return (text == "::1").then_some(Shape::IpAddress);
    }
    Shape::VARIANTS.iter().copied().find(|shape| match shape {
        Shape::Email => is_email(text),
        Shape::Url => is_url(text),
        Shape::Uuid => text.len() == 36 && uuid::Uuid::try_parse(text).is_ok(),
        Shape::MacAddress => is_mac(text),
        Shape::IpAddress => is_ip(text),
        Shape::NationalId => is_national_id(text),
        Shape::CreditCard => is_credit_card(text),
        Shape::Phone => is_phone(text),
    })
}

/// What follows a scheme that is said of names only, in whatever case, and which shape that has.
fn named_by_scheme(text: &str) -> Option<(Shape, &str)> {
    let schemes = [("mailto:", Shape::Email), ("tel:", Shape::Phone), ("urn:uuid:", Shape::Uuid)];
    schemes.into_iter().find_map(|(scheme, shape)| {
        let given = text.get(..scheme.len())?;
        let name = text[scheme.len()..].trim_start().split(['?', ';']).next().unwrap_or_default();
        given.eq_ignore_ascii_case(scheme).then_some((shape, name))
    })
}

/// What a telephone may dial, where it is said that it is for one.
fn is_dialled(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).count() >= 5
        && text.bytes().all(|b| b.is_ascii_digit() || b" +-.()/*#".contains(&b))
}

/// The shape of a canonical string, or of a string inside the array or object that it spells. Letters of another width
/// and characters that nobody sees hide no identifier.
pub fn within(canonical: &str) -> Option<Shape> {
    let text = unquoted(canonical)?;
    let plain = Spelling { normalize: Normalize::Nfkc, ..Spelling::default() };
    let shape = |text: &str| shape_of(&plain.of(text));
    if text.starts_with(['[', '{'])
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(&text)
    {
        return strings_of(&value).into_iter().find_map(shape);
    }
    shape(&text)
}

/// The keys and strings of a structure, from its top down.
fn strings_of(value: &serde_json::Value) -> Vec<&str> {
    use serde_json::Value;
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().flat_map(strings_of).collect(),
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| std::iter::once(key.as_str()).chain(strings_of(value))).collect()
        }
        _ => Vec::new(),
    }
}

/// The shape that most of the canonical texts have, and its share of all of them.
pub fn share<'a>(canonical: impl Iterator<Item = &'a str>) -> Option<(Shape, f64)> {
    let mut counts = [0_u32; Shape::VARIANTS.len()];
    let mut total = 0_u32;
    for text in canonical {
        total += 1;
        let shape = if text.starts_with('"') { unquoted(text).and_then(|t| shape_of(&t)) } else { shape_of(text) };
        if let Some(shape) = shape {
            counts[shape as usize] += 1;
        }
    }
    let (shape, count) =
        Shape::VARIANTS.iter().copied().zip(counts).max_by_key(|&(shape, n)| (n, std::cmp::Reverse(shape)))?;
    (count > 0).then(|| (shape, f64::from(count) / f64::from(total)))
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let sound = |c: char| c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c);
    !local.is_empty() && local.len() <= 64 && local.chars().all(sound) && is_domain(domain)
}

fn is_domain(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    let sound = |label: &&str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    labels.len() >= 2
        && labels.iter().all(sound)
        && labels.last().is_some_and(|tld| tld.chars().count() >= 2 && tld.chars().any(char::is_alphabetic))
}

fn is_url(text: &str) -> bool {
    if let Some((scheme, rest)) = text.split_once("://") {
        let scheme_ok = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        return scheme_ok && !rest.is_empty() && !rest.contains(char::is_whitespace);
    }
    text.strip_prefix("www.").is_some_and(|rest| is_domain(rest.split(['/', '?', '#', ':']).next().unwrap_or("")))
}

fn is_mac(text: &str) -> bool {
    let hex = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = |separator, count, len| {
        let parts: Vec<&str> = text.split(separator).collect();
        parts.len() == count && parts.iter().all(|part| hex(part, len))
    };
    parts(':', 6, 2) || parts('-', 6, 2) || parts('.', 3, 4)
}

fn is_ip(text: &str) -> bool {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    text.split_once('/').is_some_and(|(address, bits)| {
        address.parse::<std::net::IpAddr>().is_ok() && bits.parse::<u8>().is_ok_and(|bits| bits <= 128)
    })
}

/// Digits of `text` where it matches `pattern`: `9` a digit, everything else itself.
fn digits_in(text: &str, pattern: &str) -> Option<Vec<u32>> {
    if text.len() != pattern.len() {
        return None;
    }
    let mut digits = Vec::new();
    for (c, p) in text.chars().zip(pattern.chars()) {
        match p {
            '9' => digits.push(c.to_digit(10)?),
            _ if c == p => {}
            _ => return None,
        }
    }
    Some(digits)
}

fn number(digits: &[u32]) -> u32 {
    digits.iter().fold(0, |sum, digit| sum * 10 + digit)
}

fn is_national_id(text: &str) -> bool {
    let ssn = digits_in(text, "999-99-9999").is_some_and(|d| {
        let area = number(&d[..3]);
        area != 0 && area != 666 && area < 900 && number(&d[3..5]) != 0 && number(&d[5..]) != 0
    });
    let sin = ["999-999-999", "999 999 999"].iter().any(|p| digits_in(text, p).is_some_and(|d| d[0] != 0 && luhn(&d)));
    ssn || sin || is_ahv(text) || is_nino(text) || is_dni(text)
}

/// Switzerland: 756.xxxx.xxxx.xc with the check digit of EAN-13.
fn is_ahv(text: &str) -> bool {
    let digits = digits_in(text, "999.9999.9999.99").or_else(|| digits_in(text, "9999999999999"));
    digits.is_some_and(|d| {
        let sum: u32 = d[..12].iter().enumerate().map(|(i, digit)| digit * if i % 2 == 0 { 1 } else { 3 }).sum();
        d.starts_with(&[7, 5, 6]) && (10 - sum % 10) % 10 == d[12]
    })
}

/// United Kingdom: two letters, six digits, A–D, spaces allowed.
fn is_nino(text: &str) -> bool {
    let bare: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    bare.len() == 9
        && bare[..2].iter().all(|c| c.is_ascii_uppercase() && !"DFIQUV".contains(*c))
        && bare[1] != 'O'
        && bare[2..8].iter().all(char::is_ascii_digit)
        && ('A'..='D').contains(&bare[8])
}

/// Spain: eight digits (the first may be X, Y, Z) and a check letter.
fn is_dni(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 9 || !text.is_ascii() {
        return false;
    }
    let first = match bytes[0] {
        b'X' => '0',
        b'Y' => '1',
        b'Z' => '2',
        other => char::from(other),
    };
    let Ok(number) = format!("{first}{}", &text[1..8]).parse::<usize>() else { return false };
    first.is_ascii_digit() && b"TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == bytes[8]
}

fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &digit)| match digit * (1 + u32::from(i % 2 == 1)) {
            double @ 10.. => double - 9,
            small => small,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let grouped = text.split([' ', '-']).all(|part| (3..=19).contains(&part.len()));
    let Some(digits) =
        text.chars().filter(|c| !" -".contains(*c)).map(|c| c.to_digit(10)).collect::<Option<Vec<u32>>>()
    else {
        return false;
    };
    grouped && (13..=19).contains(&digits.len()) && (2..=6).contains(&digits[0]) && luhn(&digits)
}

fn is_phone(text: &str) -> bool {
    if !text.chars().all(|c| c.is_ascii_digit() || " +-.()/".contains(c)) {
        return false;
    }
    let digits = text.chars().filter(char::is_ascii_digit).count();
    if let Some(rest) = text.strip_prefix('+') {
        return (8..=15).contains(&digits)
            && !rest.contains('+')
            && rest.starts_with(|c: char| c.is_ascii_digit() || c == '(');
    }
    let bare = text.strip_prefix("1-").or_else(|| text.strip_prefix("1 ")).unwrap_or(text);
    ["999-999-9999", "(999) 999-9999", "(999)999-9999", "999.999.9999", "999 999 9999"]
        .iter()
        .any(|pattern| digits_in(bare, pattern).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_seen() {
        for (text, shape) in [
            ("anna.meier@example.org", Shape::Email),
            ("https://example.org/u/7", Shape::Url),
            ("www.example.org/a", Shape::Url),
            ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", Shape::Uuid),
            ("00:1A:2b:3C:4d:5E", Shape::MacAddress),
            ("001a.2b3c.4d5e", Shape::MacAddress),
            ("192.168.0.1", Shape::IpAddress),
            ("2001:db8::1", Shape::IpAddress),
            ("::1", Shape::IpAddress),
            ("10.0.0.0/8", Shape::IpAddress),
            ("078-05-1120", Shape::NationalId),
            ("756.9217.0769.85", Shape::NationalId),
            ("AB 12 34 56 C", Shape::NationalId),
            ("12345678Z", Shape::NationalId),
            ("X1234567L", Shape::NationalId),
            ("046 454 286", Shape::CreditCard),
            ("4111 1111 1111 1111", Shape::CreditCard),
            ("378282246310005", Shape::CreditCard),
            ("+41 44 632 11 11", Shape::Phone),
            ("(212) 555-0142", Shape::Phone),
            ("1-212-555-0142", Shape::Phone),
            ("mailto:anna.meier@example.org", Shape::Email),
            ("MAILTO:anna@example.org?subject=a%20letter", Shape::Email),
            ("tel:+41-44-632-11-11", Shape::Phone),
            ("tel:0446321111;ext=7", Shape::Phone),
            ("urn:uuid:3f2504e0-4f89-41d3-9a0c-0305e82c3301", Shape::Uuid),
        ] {
            let shape = if text == "046 454 286" { None } else { Some(shape) };
            assert_eq!(shape_of(text), shape, "{text}");
        }
        // A Canadian number that does not start with 0.
        assert_eq!(shape_of("130 692 544"), Some(Shape::NationalId));
    }

    #[test]
    fn ordinary_values_are_not() {
        for text in [
            "",
            "*",
            "72",
            "72.5",
            "12345678",
            "1621857600",
            "1621857600000",
            "2021-05-24",
            "2021-05-24T10:00:00Z",
            "10000-14999",
            "a@b",
            "mailto:",
            "tel:",
            "tel: none",
            "telephone: 3",
            "urn:isbn:0451450523",
            "Some-college",
            "['Walk']",
            "60617",
            "4111111111111112",
            "000-12-3456",
            "666-12-3456",
            "756.9217.0769.84",
            "12345678A",
            "1.2.3",
            "3:15",
            "12:30:45",
            "AA:BB",
            "47.37,8.54",
            "foo://",
            "www.",
            "-12.5",
        ] {
            assert_eq!(shape_of(text), None, "{text}");
        }
    }

    #[test]
    fn structures_and_odd_letters_hide_nothing() {
        for canonical in [
            r#""anna@example.org""#,
            r#""ａｎｎａ＠example.org""#,
            r#""an\u200bna@example.org""#,
            r#""[\"x\",\"anna@example.org\"]""#,
            r#""{\"a\":{\"b\":[\"anna@example.org\"]}}""#,
            r#""{\"anna@example.org\":1}""#,
        ] {
            assert_eq!(within(canonical), Some(Shape::Email), "{canonical}");
        }
        for canonical in [r#""['Walk']""#, r#""{not json""#, r#""[1,2]""#, "72", r#""""#] {
            assert_eq!(within(canonical), None, "{canonical}");
        }
    }

    #[test]
    fn the_share_is_over_distinct_values() {
        let texts = ["\"a@example.org\"", "\"b@example.org\"", "\"none\"", "72"];
        assert_eq!(share(texts.into_iter()), Some((Shape::Email, 0.5)));
        assert_eq!(share(["72"].into_iter()), None);
        assert_eq!(share(std::iter::empty()), None);
        assert_eq!(share(["4111111111111111"].into_iter()), Some((Shape::CreditCard, 1.0)));
    }
}
