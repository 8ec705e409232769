//! Bytes as lower-case hex, and back.

use std::fmt::Write as _;

/// Two digits a byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A `String` takes every text.
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

/// The 32 bytes that 64 digits spell; none for any other text.
pub(super) fn bytes_of(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}
