//! Words of others in our own: names in a schema that came from outside, what a registry says.

/// The most characters of them.
const MOST: usize = 300;

/// `text` as it may stand in a log line or an error: one line, of a bounded length, with nothing that steers a terminal or turns
/// the direction of writing.
#[must_use]
pub fn foreign(text: &str) -> String {
    let mut out = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == MOST {
            out.push('…');
            break;
        }
        match character {
            '\n' | '\t' | '\r' => out.push(' '),
            ' '..='~' => out.push(character),
            // Letters are; marks, controls and what writes from right to left may hide what is said.
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
    fn words_of_others_are_one_short_line() {
        assert_eq!(foreign("no field \"größe\""), "no field \"größe\"");
        assert_eq!(foreign("a\nb\u{1b}[2Jc\u{202e}d\0"), "a b\\u{1b}[2Jc\\u{202e}d\\u{0}");
        assert!(foreign(&"\u{7}".repeat(1 << 20)).len() < 10 * MOST);
    }
}
