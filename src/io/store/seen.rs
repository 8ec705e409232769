//! What a listing says of objects.

/// An object as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its URL.
    pub url: String,
    /// Bytes.
    pub length: u64,
    /// The mark of its content, as the store gives it; none where it gives none.
    pub mark: Option<String>,
    /// When it was written, seconds since 1970.
    pub written: i64,
}

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// One object.
    One(Seen),
    /// The objects of a folder, those of folders in it left out.
    Folder(Vec<Seen>),
    /// The objects that match a pattern.
    Matching(Vec<Seen>),
}
