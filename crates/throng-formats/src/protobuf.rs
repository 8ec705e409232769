//! Protobuf decoder: one binary message per record.
//!
//! The schema and the message type are compiled once (`shape`); `read` skips the values that no attribute selects.
//! Pointers use field names (`heart_rate`), or JSON names (`heartRate`) if they are unambiguous.
//!
//! | Protobuf | cell |
//! |---|---|
//! | all integer and float types | number |
//! | bool, string, enum | Boolean, text, name of the enum value |
//! | bytes | Base64 text |
//! | `google.protobuf.Timestamp` | UTC time with milliseconds, in ISO 8601 |
//! | `google.protobuf.Duration` | seconds |
//! | `google.protobuf.StringValue` and other wrappers | the wrapped value |
//! | repeated, map, message | JSON text |
//!
//! A missing field with presence (`optional`, `oneof` member, message) is absent. A missing field without presence
//! has its type's default value, because serializers do not write defaults.

#[cfg(test)]
mod explode_tests;
mod message_reader;
mod message_types;
mod schema;
#[cfg(test)]
mod tests;

pub use message_reader::ProtobufCodec;
pub use message_types::ProtobufSchemaError;
pub use schema::{MAX_MESSAGE_INDEXES, MessageIndex, ProtobufMessage, ProtobufSchema};
