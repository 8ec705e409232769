//! Canonical JSON.

use std::fmt::Write as _;

/// Appends the shortest text of a number.
pub fn push_shortest(out: &mut String, value: f64) {
    let value = if value == 0.0 { 0.0 } else { value };
    let start = out.len();
    // Writing to a String cannot fail.
    let written = if (1e-5..1e16).contains(&value.abs()) || value == 0.0 {
        write!(out, "{value}")
    } else {
        write!(out, "{value:e}")
    };
    debug_assert!(written.is_ok() && out.len() > start);
}

/// Appends a JSON string.
pub fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + 1;
        if escape.is_empty() {
            out.push_str("\\u00");
            for nibble in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Returns a JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// Returns the text of a JSON string.
pub fn unquoted(canonical: &str) -> Option<String> {
    serde_json::from_str(canonical).ok()
}

/// Appends compact JSON with sorted keys.
pub fn push_sorted(out: &mut String, value: &serde_json::Value) {
    match value {
        serde_json::Value::Array(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push_sorted(out, item);
            }
            out.push(']');
        }
        serde_json::Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|&(key, _)| key);
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push_quoted(out, key);
                out.push(':');
                push_sorted(out, item);
            }
            out.push('}');
        }
        serde_json::Value::String(text) => push_quoted(out, text),
        serde_json::Value::Number(number) => match number.as_f64() {
            Some(x) if !number.is_i64() && !number.is_u64() => push_shortest(out, x),
            _ => out.push_str(&number.to_string()),
        },
        serde_json::Value::Bool(true) => out.push_str("true"),
        serde_json::Value::Bool(false) => out.push_str("false"),
        serde_json::Value::Null => out.push_str("null"),
    }
}
