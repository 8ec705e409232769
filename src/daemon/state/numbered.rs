//! Keys of the database that are a prefix and a number.

/// A prefix and a number, in the order of the numbers.
pub(super) fn numbered(prefix: &str, number: u64) -> Vec<u8> {
    let mut key = prefix.as_bytes().to_vec();
    key.push(b'/');
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The number at the end of a key.
#[must_use]
pub fn number_of(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>().map(|n| u64::from_be_bytes(*n))
}
