//! The daemon: the pipeline, its durable state, its pages.
//!
//! | room | what it holds |
//! |---|---|
//! | [`stream`] | sources and sinks put together, the loop over them |
//! | [`engine`] | a batch from its records to its release; model, held records, plans, clock |
//! | [`state`] | what survives the process: sled, intents, sealing |
//! | [`erasure`], [`erase_at_rest`], [`errand`] | people are taken out of the state: what is asked and answered, without a daemon, of a running one |
//! | [`reload`] | another policy while the daemon runs |
//! | [`http`] | metrics, status page, plan page |

pub mod engine;
pub mod erase_at_rest;
pub mod erasure;
pub mod errand;
pub mod http;
pub mod reload;
pub mod reload_request;
pub mod run;
pub mod run_error;
pub mod state;
pub mod stream;
