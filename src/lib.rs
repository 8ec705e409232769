//! throng: a streaming anonymization daemon.
//!
//! The wings, from the top floor down (an import goes strictly downward; `tests/house.rs` enforces it):
//!
//! | floor | wing | what it holds |
//! |---|---|---|
//! | 10 | [`cli`] | one file a subcommand |
//! | 9 | [`daemon`] | the stream, the engine, the durable state, the HTTP pages |
//! | 8 | [`evaluation`] | what a release is worth, and what it gives away |
//! | 8 | [`dataset`] | one data set at once: `throng anonymize` |
//! | 7 | [`start`] | from a configuration to checked parts, for every command |
//! | 6 | [`io`], [`generate`] | sources, sinks, dead letters; synthetic records |
//! | 5 | [`release`] | the verification of what is about to leave |
//! | 4 | [`anonymity`] | lattices, ladders, treatment, plans |
//! | 0 | [`config`], [`telemetry`], [`html`], [`faults`] | typed configuration; events that are log and metric at once; the layout of pages; crash points of the tests |
//!
//! Below them are three crates: `throng_core` (schemas, values, codes, per-subject history), `throng_risk` (group counting, quasi-identifiers, adjacency) and
//! `throng_formats` (JSON, CSV, Arrow, Avro, Protobuf).

pub mod anonymity;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod dataset;
pub mod evaluation;
pub mod faults;
pub mod generate;
pub mod html;
pub mod io;
pub mod release;
pub mod start;
pub mod telemetry;
