//! What a configuration asks of a release.

/// What the configuration asks for.
pub(super) struct Asked {
    /// People of a class.
    pub crowd: usize,
    /// People of a class in a batch; 0: none.
    pub in_batch: usize,
    /// Lines of a person in a batch; 0: any number.
    pub lines: usize,
    /// The schema names people.
    pub people: bool,
}
