//! throng: a streaming anonymization daemon.
//!
//! A module imports only from lower layers (`tests/house.rs`):
//!
//! | layer | module | content |
//! |---|---|---|
//! | 10 | [`cli`] | one file per subcommand |
//! | 9 | [`daemon`] | the stream, the engine, the durable state, the HTTP pages |
//! | 8 | [`evaluation`] | readers of a release, and the recount of its guarantees |
//! | 8 | [`dataset`] | anonymization of one complete data set: `throng anonymize` |
//! | 7 | [`start`] | from a configuration to validated parts, for every command |
//! | 6 | [`io`], [`generate`] | sources, sinks, dead letters; synthetic records |
//! | 4 | [`planner`] | search for the plan of a stream |
//! | 0 | [`config`], [`telemetry`], [`html`] | typed configuration; events that are both log entries and metrics; the layout of pages |
//!
//! Five crates are below them: `throng_core` (from schemas and values to verified releases), `throng_risk` (group
//! counting, quasi-identifiers, adjacency), `throng_eval` (measures of a release, attacks), `throng_kafka` (clients of
//! topics) and `throng_formats` (JSON, CSV, Arrow, Avro, Protobuf).

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod config;
pub mod daemon;
pub mod dataset;
pub mod evaluation;
pub mod generate;
pub mod html;
pub mod io;
pub mod planner;
pub mod start;
pub mod telemetry;
