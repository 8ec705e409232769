//! Text of log lines, errors and reports: escaped external text, and shares in percent.

const MAX_CHARACTERS: usize = 300;

/// Makes external text one bounded line without control or direction marks.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == MAX_CHARACTERS {
            out.push('…');
            break;
        }
        match character {
            '\n' | '\t' | '\r' => out.push(' '),
            ' '..='~' => out.push(character),
            // Letters and digits are safe; other characters could hide text.
            _ if character.is_alphanumeric() => out.push(character),
            _ => out.extend(character.escape_unicode()),
        }
    }
    out
}

/// Formats a share in percent. Only exact values are `0 %` and `100 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    percent_with_digits(share, 1)
}

/// Like [`percent`], with `digits` decimal places.
#[must_use]
pub fn percent_with_digits(share: f64, digits: u8) -> String {
    let (least, places) = (10_f64.powi(-i32::from(digits)), usize::from(digits));
    match share * 100.0 {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < least => format!("< {least:.places$} %"),
        p if p >= 100.0 => "100 %".to_owned(),
        p if p > 100.0 - least => format!("> {:.places$} %", 100.0 - least),
        p => format!("{p:.places$} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_round_to_zero_or_hundred() {
        let shares = [0.0, 0.0004, 0.001, 0.25, 0.9994, 22_096.0 / 22_099.0, 1.0].map(percent);
        assert_eq!(shares, ["0 %", "< 0.1 %", "0.1 %", "25.0 %", "> 99.9 %", "> 99.9 %", "100 %"]);
        let precise = [0.000_04, 0.0702, 0.9997, 0.999_96, 1.0].map(|share| percent_with_digits(share, 2));
        assert_eq!(precise, ["< 0.01 %", "7.02 %", "99.97 %", "> 99.99 %", "100 %"]);
    }

    #[test]
    fn external_text_becomes_one_short_line() {
        assert_eq!(printable("no field \"größe\""), "no field \"größe\"");
        assert_eq!(printable("a\nb\u{1b}[2Jc\u{202e}d\0"), "a b\\u{1b}[2Jc\\u{202e}d\\u{0}");
        assert!(printable(&"\u{7}".repeat(1 << 20)).len() < 10 * MAX_CHARACTERS);
    }
}
