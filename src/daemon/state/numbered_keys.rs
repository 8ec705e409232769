//! Database keys of a prefix and a number.

/// Returns a key; keys sort by number.
pub(super) fn numbered_key(prefix: &str, number: u64) -> Vec<u8> {
    let mut key = prefix.as_bytes().to_vec();
    key.push(b'/');
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Returns the number at the end of a key.
#[must_use]
pub fn key_number(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>().map(|n| u64::from_be_bytes(*n))
}
