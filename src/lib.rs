//! throng: a streaming anonymization daemon.
//!
//! The wings, from the top floor down (an import goes strictly downward; `tests/house.rs` enforces it):
//!
//! | floor | wing | what it holds |
//! |---|---|---|
//! | 7 | [`cli`] | one file a subcommand |
//! | 6 | [`daemon`] | the pipeline, the durable state, the HTTP pages |
//! | 5 | [`io`], [`generate`] | sources, sinks, codecs, dead letters; synthetic records |
//! | 4 | [`release`] | the ledger of what has left, and the verification of what is about to |
//! | 3 | [`anonymity`] | lattices, ladders, treatment, plans |
//! | 2 | [`risk`] | what singles people out: identifiers, quasi-identifiers, exposure; group counting |
//! | 1 | [`records`] | schema, hierarchies, canonical values, codes |
//! | 0 | [`config`], [`telemetry`], [`faults`] | typed configuration; events that are log and metric at once; crash points of the tests |

pub mod anonymity;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod faults;
pub mod generate;
pub mod io;
pub mod records;
pub mod release;
pub mod risk;
pub mod telemetry;
