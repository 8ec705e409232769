//! The text of a JSON line.

/// Length of the JSON scalar that `text` starts with.
pub(super) fn scalar_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'"') {
        let mut i = 1;
        loop {
            match bytes.get(i)? {
                b'\\' => i += 2,
                b'"' => return Some(i + 1),
                _ => i += 1,
            }
        }
    }
    bytes.iter().position(|b| matches!(b, b',' | b'}' | b']'))
}
