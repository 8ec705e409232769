//! A schema registry: the writer schemas of records, and the schemas of what leaves.
//!
//! The REST interface is Confluent's, which Karapace, Apicurio and Redpanda have too. Three questions of it are asked:
//! `GET /schemas/ids/{id}`, `POST /subjects/{subject}/versions`, and, for schemas in several parts and for the latest of a
//! subject, `GET /subjects/{subject}/versions/{version}`.
//!
//! | file | what it holds |
//! |---|---|
//! | `client` | the questions and their answers |
//! | `lookup` | questions for schemas by number, bounded in time, and the numbers that are unknown |
//! | `framed` | a decoder of records that come with the number of their schema |
//! | `writer` | those schemas, compiled for the attributes that are wanted |

mod client;
mod framed;
mod lookup;
mod writer;

pub use client::{Access, Client, RegistryError, WriterSchema};
pub use framed::{Framed, FramedJson};
pub use lookup::SchemaLookup;
pub use writer::{FramedAs, WantedFields};
