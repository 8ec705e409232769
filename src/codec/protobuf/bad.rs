//! Error of a Protobuf schema that cannot be used.

use crate::telemetry::foreign;

/// What is no Protobuf schema, or none that can be used. It says what is wrong; a schema has no values of records.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not a Protobuf schema that can be used: {0}")]
pub struct BadProtobuf(String);

impl BadProtobuf {
    /// Says what is wrong.
    #[must_use]
    pub fn new(what: &str) -> Self {
        Self(foreign(what))
    }
}
