//! Rewrites unquoted `NaN`, `Infinity` and `-Infinity`, which some writers emit, before parsing.
//!
//! After a key, the word becomes a placeholder number, decoded to untyped text; in an array, `null`.

const NON_FINITE_PLACEHOLDERS: [(&str, &str); 3] =
    [("NaN", "-0e-999999991"), ("Infinity", "-0e-999999992"), ("-Infinity", "-0e-999999993")];

/// Returns `None` if nothing changes.
pub(super) fn encoded(payload: &[u8]) -> Option<Vec<u8>> {
    // Vectorized; excludes most payloads.
    let has = |letters: &[u8]| {
        payload.contains(&letters[0]) && payload.windows(letters.len()).any(|window| window == letters)
    };
    if !has(b"NaN") && !has(b"Infinity") {
        return None;
    }
    let text = std::str::from_utf8(payload).ok()?;
    let mut out = String::with_capacity(text.len() + 32);
    let (mut kept, mut at, mut is_changed) = (0, 0, false);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at] == b'"' {
            at = end_of_string(bytes, at);
            continue;
        }
        let found = NON_FINITE_PLACEHOLDERS.iter().find(|(spelling, _)| text[at..].starts_with(spelling));
        let before = bytes[..at].trim_ascii_end().last();
        let in_place = match before {
            Some(b':') => found.map(|(_, number)| *number),
            Some(b'[' | b',') => found.map(|_| "null"),
            _ => None,
        };
        let (Some((spelling, _)), Some(number)) = (found, in_place) else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        let end = at + spelling.len();
        if matches!(bytes[end..].trim_ascii_start().first(), Some(b',' | b'}' | b']')) {
            out.push_str(&text[kept..at]);
            out.push_str(number);
            (kept, is_changed) = (end, true);
        }
        at = end;
    }
    out.push_str(&text[kept..]);
    is_changed.then(|| out.into_bytes())
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

pub(super) fn decoded(number: &str) -> Option<&'static str> {
    let found = NON_FINITE_PLACEHOLDERS.iter().find(|(_, encoded)| *encoded == number);
    found.map(|(spelling, _)| *spelling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn non_finite_words_outside_strings_are_replaced() {
        for (text, expected) in [
            (r#"{"a":NaN}"#, Some(r#"{"a":-0e-999999991}"#)),
            (r#"{"a": -Infinity ,"b":Infinity}"#, Some(r#"{"a": -0e-999999993 ,"b":-0e-999999992}"#)),
            (r#"{"a":[NaN, 1,NaN]}"#, Some(r#"{"a":[null, 1,null]}"#)),
            (r#"{"a":"NaN","NaN":1}"#, None),
            (r#"{"a":"\":NaN,","b":1}"#, None),
            (r#"{"a":NaNs}"#, None),
            (r#"{"é":NaN}"#, Some(r#"{"é":-0e-999999991}"#)),
            ("NaN", None),
            ("{\"a\":\"NaN", None),
            ("{}", None),
        ] {
            let spelled = encoded(text.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
            assert_eq!(spelled.as_deref(), expected, "{text}");
        }
        assert_eq!((decoded("-0e-999999991"), decoded("-0")), (Some("NaN"), None));
    }

    proptest! {
        #[test]
        fn valid_json_is_unchanged_and_bytes_never_panic(texts in prop::collection::vec("[\"\\\\aN:,{}]{0,6}|NaN|Infinity", 0..6), bytes: Vec<u8>) {
            let value = serde_json::json!({"a": texts, "NaN": {"Infinity": texts.concat()}});
            prop_assert_eq!(encoded(value.to_string().as_bytes()), None);
            encoded(&bytes);
            encoded(texts.concat().as_bytes());
        }
    }
}
