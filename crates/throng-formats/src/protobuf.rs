//! Protobuf decoder: one message per record (`docs/formats.md`).
//!
//! A missing field is absent if it has presence (`optional`, `oneof`, message), otherwise its type's default.

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
