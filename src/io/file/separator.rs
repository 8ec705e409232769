//! Separator of CSV fields from the first line.

const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Also returns the length of a `sep=;` line, else 0.
pub(super) fn separator_line(start: &[u8]) -> (Option<u8>, usize) {
    let length = start.iter().position(|byte| *byte == b'\n').map_or(start.len(), |at| at + 1);
    let line = &start[..length];
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(line);
    match line {
        [s, e, p, b'=', separator]
            if [s, e, p].iter().zip(b"sep").all(|(own, known)| own.eq_ignore_ascii_case(known)) =>
        {
            let is_sound = separator.is_ascii() && !matches!(separator, b'"' | 0) && !separator.is_ascii_alphanumeric();
            (Some(*separator).filter(|_| is_sound), length)
        }
        _ => (None, 0),
    }
}

pub(super) fn most_frequent(line: &[u8]) -> u8 {
    let mut quoted = false;
    let is_open = |byte: &u8| {
        quoted ^= *byte == b'"';
        !quoted
    };
    let open: Vec<u8> = line.iter().copied().filter(is_open).collect();
    let count = |separator: &u8| open.iter().filter(|byte| *byte == separator).count();
    // `max_by_key` returns the last of equal ones.
    SEPARATORS.into_iter().rev().max_by_key(count).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_is_detected_from_first_line() {
        for (line, separator) in [
            ("a,b,c", b','),
            ("a;b;c\n", b';'),
            ("a\tb", b'\t'),
            ("a|b|c", b'|'),
            ("alone", b','),
            ("", b','),
            ("\"a,b,c\";d", b';'),
            ("a,b;c", b','),
        ] {
            assert_eq!(most_frequent(line.as_bytes()), separator, "{line}");
        }
    }

    #[test]
    fn separator_line_is_parsed() {
        for (line, separator) in [
            ("sep=;\r\n", Some(b';')),
            ("SEP=\t\n", Some(b'\t')),
            ("\"sep=|\"\n", Some(b'|')),
            ("sep=,", Some(b',')),
            ("sep=x\n", None),
            ("sep=;;\n", None),
            ("sep,ep\n", None),
            ("", None),
        ] {
            assert_eq!(separator_line(line.as_bytes()).0, separator, "{line}");
        }
        assert_eq!(separator_line(b"sep=;\r\na;b\r\n").1, 7);
    }
}
