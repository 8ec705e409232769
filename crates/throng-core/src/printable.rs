//! Escaping of external text for log lines and errors.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_text_becomes_one_short_line() {
        assert_eq!(printable("no field \"größe\""), "no field \"größe\"");
        assert_eq!(printable("a\nb\u{1b}[2Jc\u{202e}d\0"), "a b\\u{1b}[2Jc\\u{202e}d\\u{0}");
        assert!(printable(&"\u{7}".repeat(1 << 20)).len() < 10 * MAX_CHARACTERS);
    }
}
