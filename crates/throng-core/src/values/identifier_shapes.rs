//! Shapes of direct identifiers.
//!
//! Ten digits may be a step count or a phone number: numbers therefore need separators, `+` or a check digit.

use crate::values::json::unquoted;
use crate::values::spelling::{Spelling, UnicodeForm};
use strum::VariantArray;

/// Shape of a direct identifier.
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
pub enum IdentifierShape {
    /// E-mail.
    Email,
    /// URL.
    Url,
    /// UUID.
    Uuid,
    /// MAC address.
    MacAddress,
    /// IP address, version 4 or 6.
    IpAddress,
    /// US, Canadian, Swiss, UK or Spanish identity number.
    NationalId,
    /// Payment card with a valid Luhn digit.
    CreditCard,
    /// Phone number, international or North American.
    Phone,
}

impl IdentifierShape {
    /// Returns the name in reports and metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Returns the first matching shape.
pub fn detect_shape(text: &str) -> Option<IdentifierShape> {
    let text = text.trim();
    if let Some((shape, name)) = strip_identifier_scheme(text) {
        return detect_shape(name)
            .or(Some(shape).filter(|shape| *shape == IdentifierShape::Phone && is_dialable(name)));
    }
    if !(5..=320).contains(&text.len()) {
        return (text == "::1").then_some(IdentifierShape::IpAddress);
    }
    IdentifierShape::VARIANTS.iter().copied().find(|shape| match shape {
        IdentifierShape::Email => is_email(text),
        IdentifierShape::Url => is_url(text),
        IdentifierShape::Uuid => text.len() == 36 && uuid::Uuid::try_parse(text).is_ok(),
        IdentifierShape::MacAddress => is_mac(text),
        IdentifierShape::IpAddress => is_ip(text),
        IdentifierShape::NationalId => is_national_id(text),
        IdentifierShape::CreditCard => is_credit_card(text),
        IdentifierShape::Phone => is_phone(text),
    })
}

fn strip_identifier_scheme(text: &str) -> Option<(IdentifierShape, &str)> {
    let schemes =
        [("mailto:", IdentifierShape::Email), ("tel:", IdentifierShape::Phone), ("urn:uuid:", IdentifierShape::Uuid)];
    schemes.into_iter().find_map(|(scheme, shape)| {
        let given = text.get(..scheme.len())?;
        let name = text[scheme.len()..].trim_start().split(['?', ';']).next().unwrap_or_default();
        given.eq_ignore_ascii_case(scheme).then_some((shape, name))
    })
}

fn is_dialable(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).count() >= 5
        && text.bytes().all(|b| b.is_ascii_digit() || b" +-.()/*#".contains(&b))
}

/// Returns the shape of a normalized canonical string, or of a string inside its JSON.
pub fn nested_shape(canonical: &str) -> Option<IdentifierShape> {
    let text = unquoted(canonical)?;
    let plain = Spelling { normalize: UnicodeForm::Nfkc, ..Spelling::default() };
    let shape = |text: &str| detect_shape(&plain.normalized_text(text));
    if text.starts_with(['[', '{'])
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(&text)
    {
        return nested_strings(&value).into_iter().find_map(shape);
    }
    shape(&text)
}

fn nested_strings(value: &serde_json::Value) -> Vec<&str> {
    use serde_json::Value;
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().flat_map(nested_strings).collect(),
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| std::iter::once(key.as_str()).chain(nested_strings(value))).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the most frequent shape and its share.
pub fn most_frequent_shape<'a>(canonical: impl Iterator<Item = &'a str>) -> Option<(IdentifierShape, f64)> {
    let mut counts = [0_u32; IdentifierShape::VARIANTS.len()];
    let mut total = 0_u32;
    for text in canonical {
        total += 1;
        let shape =
            if text.starts_with('"') { unquoted(text).and_then(|t| detect_shape(&t)) } else { detect_shape(text) };
        if let Some(shape) = shape {
            counts[shape as usize] += 1;
        }
    }
    let (shape, count) = IdentifierShape::VARIANTS
        .iter()
        .copied()
        .zip(counts)
        .max_by_key(|&(shape, n)| (n, std::cmp::Reverse(shape)))?;
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

/// Expects `9` for a digit; other characters match literally.
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

/// Swiss AHV number with an EAN-13 digit.
fn is_ahv(text: &str) -> bool {
    let digits = digits_in(text, "999.9999.9999.99").or_else(|| digits_in(text, "9999999999999"));
    digits.is_some_and(|d| {
        let sum: u32 = d[..12].iter().enumerate().map(|(i, digit)| digit * if i % 2 == 0 { 1 } else { 3 }).sum();
        d.starts_with(&[7, 5, 6]) && (10 - sum % 10) % 10 == d[12]
    })
}

/// UK NINO.
fn is_nino(text: &str) -> bool {
    let bare: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    bare.len() == 9
        && bare[..2].iter().all(|c| c.is_ascii_uppercase() && !"DFIQUV".contains(*c))
        && bare[1] != 'O'
        && bare[2..8].iter().all(char::is_ascii_digit)
        && ('A'..='D').contains(&bare[8])
}

/// Spanish DNI or NIE.
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
    fn identifier_shapes_are_detected() {
        for (text, shape) in [
            ("anna.meier@example.org", IdentifierShape::Email),
            ("https://example.org/u/7", IdentifierShape::Url),
            ("www.example.org/a", IdentifierShape::Url),
            ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", IdentifierShape::Uuid),
            ("00:1A:2b:3C:4d:5E", IdentifierShape::MacAddress),
            ("001a.2b3c.4d5e", IdentifierShape::MacAddress),
            ("192.168.0.1", IdentifierShape::IpAddress),
            ("2001:db8::1", IdentifierShape::IpAddress),
            ("::1", IdentifierShape::IpAddress),
            ("10.0.0.0/8", IdentifierShape::IpAddress),
            ("078-05-1120", IdentifierShape::NationalId),
            ("756.9217.0769.85", IdentifierShape::NationalId),
            ("AB 12 34 56 C", IdentifierShape::NationalId),
            ("12345678Z", IdentifierShape::NationalId),
            ("X1234567L", IdentifierShape::NationalId),
            ("046 454 286", IdentifierShape::CreditCard),
            ("4111 1111 1111 1111", IdentifierShape::CreditCard),
            ("378282246310005", IdentifierShape::CreditCard),
            ("+41 44 632 11 11", IdentifierShape::Phone),
            ("(212) 555-0142", IdentifierShape::Phone),
            ("1-212-555-0142", IdentifierShape::Phone),
            ("mailto:anna.meier@example.org", IdentifierShape::Email),
            ("MAILTO:anna@example.org?subject=a%20letter", IdentifierShape::Email),
            ("tel:+41-44-632-11-11", IdentifierShape::Phone),
            ("tel:0446321111;ext=7", IdentifierShape::Phone),
            ("urn:uuid:3f2504e0-4f89-41d3-9a0c-0305e82c3301", IdentifierShape::Uuid),
        ] {
            let shape = if text == "046 454 286" { None } else { Some(shape) };
            assert_eq!(detect_shape(text), shape, "{text}");
        }
        // Canadian number.
        assert_eq!(detect_shape("130 692 544"), Some(IdentifierShape::NationalId));
    }

    #[test]
    fn ordinary_values_have_no_identifier_shape() {
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
            assert_eq!(detect_shape(text), None, "{text}");
        }
    }

    #[test]
    fn identifiers_in_structures_and_odd_letters_are_detected() {
        for canonical in [
            r#""anna@example.org""#,
            r#""ａｎｎａ＠example.org""#,
            r#""an\u200bna@example.org""#,
            r#""[\"x\",\"anna@example.org\"]""#,
            r#""{\"a\":{\"b\":[\"anna@example.org\"]}}""#,
            r#""{\"anna@example.org\":1}""#,
        ] {
            assert_eq!(nested_shape(canonical), Some(IdentifierShape::Email), "{canonical}");
        }
        for canonical in [r#""['Walk']""#, r#""{not json""#, r#""[1,2]""#, "72", r#""""#] {
            assert_eq!(nested_shape(canonical), None, "{canonical}");
        }
    }

    #[test]
    fn shape_share_counts_distinct_values() {
        let texts = ["\"a@example.org\"", "\"b@example.org\"", "\"none\"", "72"];
        assert_eq!(most_frequent_shape(texts.into_iter()), Some((IdentifierShape::Email, 0.5)));
        assert_eq!(most_frequent_shape(["72"].into_iter()), None);
        assert_eq!(most_frequent_shape(std::iter::empty()), None);
        assert_eq!(most_frequent_shape(["4111111111111111"].into_iter()), Some((IdentifierShape::CreditCard, 1.0)));
    }
}
