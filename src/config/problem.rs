//! One thing that is wrong with a configuration.

/// One thing that is wrong with a configuration: where, what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{file}: {key}: {message}; {remedy}")]
pub struct Problem {
    /// The file as it was named by the caller, or `environment`.
    pub file: String,
    /// The key path (`privacy.k`), the variable (`THRONG__PRIVACY__K`), or a line and column.
    pub key: String,
    /// What is wrong, without the value.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(
        file: impl Into<String>,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), key: key.into(), message: message.into(), remedy: remedy.into() }
    }
}
