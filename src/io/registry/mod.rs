//! Client of schema registries with Confluent's REST interface: `GET /schemas/ids/{id}`, `POST
//! /subjects/{subject}/versions` and `GET /subjects/{subject}/versions/{version}`.

mod client;
mod compiled_writer;
mod framed;
mod lookup;

pub use client::{RegistryAccess, RegistryClient, RegistryError, WriterSchema};
pub use compiled_writer::{FrameEncoding, WantedFields};
pub use framed::{FramedDecoder, FramedJson};
pub use lookup::SchemaLookup;
