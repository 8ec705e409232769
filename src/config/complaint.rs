//! What is wrong with a key, and what to do about it.

/// What is wrong with one key.
#[derive(Debug)]
pub(super) struct Complaint {
    pub key: String,
    pub message: String,
    pub remedy: String,
}

/// All that is wrong.
#[derive(Default)]
pub(super) struct Complaints(pub Vec<Complaint>);

impl Complaints {
    /// Notes a complaint, unless what it asks for is `fulfilled`.
    pub fn unless(&mut self, fulfilled: bool, key: &str, message: &str, remedy: &str) {
        if !fulfilled {
            self.0.push(Complaint { key: key.into(), message: message.into(), remedy: remedy.into() });
        }
    }
}

/// Whether groups and joins may be called so.
pub(super) fn is_name(name: &str) -> bool {
    (1..65).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
}
