//! What a configuration asks of a release.

/// What the configuration asks for.
pub(super) struct Asked {
    /// People of a class in its batch.
    pub crowd: usize,
    /// Lines of a person in a batch; 0: any number.
    pub lines: usize,
    /// The schema names people.
    pub people: bool,
}
