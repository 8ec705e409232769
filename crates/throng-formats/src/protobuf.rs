//! Protobuf: one binary message a record.
//!
//! A schema is compiled once, and a message of it (`shape`); `read` passes over the values that no attribute leads to. Pointers take the names of fields (`heart_rate`, and `heartRate`
//! where that names one field alone).
//!
//! | Protobuf | cell |
//! |---|---|
//! | all kinds of int and float | a number |
//! | bool, string, enum | a truth value, text, the name of the number |
//! | bytes | text in Base64 |
//! | `google.protobuf.Timestamp` | the moment in UTC to the millisecond, in ISO 8601 |
//! | `google.protobuf.Duration` | seconds |
//! | `google.protobuf.StringValue` and its like | the value |
//! | repeated, map, message | their JSON text |
//!
//! What has presence (`optional`, a member of a `oneof`, a message) and is not there is absent. What has none and is not there has
//! the type's default, which is the value: nothing else is written for it.

#[cfg(test)]
mod explode_tests;
mod read;
mod schema;
mod shape;
#[cfg(test)]
mod tests;

pub use read::ProtobufCodec;
pub use schema::{MOST_INDEXES, MessageIndex, ProtobufMessage, ProtobufSchema};
pub use shape::BadProtobuf;
