//! Schema registry client: the writer schemas of input records, and the schemas of released records.
//!
//! The REST interface is Confluent's, which Karapace, Apicurio and Redpanda also have. Three requests are used: `GET
//! /schemas/ids/{id}`, `POST /subjects/{subject}/versions`, and, for referenced schemas and the latest schema of a
//! subject, `GET /subjects/{subject}/versions/{version}`.
//!
//! | file | content |
//! |---|---|
//! | `client` | requests and their answers |
//! | `lookup` | lookups of schemas by number with a time limit, and a cache of unknown numbers |
//! | `framed` | decoder of records framed with the number of their schema |
//! | `writer` | these schemas, compiled for the wanted attributes |

mod client;
mod compiled_writer;
mod framed;
mod lookup;

pub use client::{RegistryAccess, RegistryClient, RegistryError, WriterSchema};
pub use compiled_writer::{FrameEncoding, WantedFields};
pub use framed::{FramedDecoder, FramedJson};
pub use lookup::SchemaLookup;
