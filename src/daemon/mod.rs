//! The daemon: the pipeline, its durable state, its pages.
//!
//! | room | what it holds |
//! |---|---|
//! | [`stream`] | sources and sinks put together, the loop over them |
//! | [`engine`] | a batch from its records to its release; model, held records, plans, clock |
//! | [`state`] | what survives the process: sled, intents, sealing |
//! | [`erasure`] | erasure of people from the state |
//! | [`requests`] | requests of pages to the thread that answers them |
//! | [`reload`] | another policy while the daemon runs |
//! | [`http`] | metrics, status page, plan page |

pub mod engine;
pub mod erasure;
pub mod http;
pub mod reload;
pub mod requests;
pub mod run;
pub mod run_error;
pub mod state;
pub mod stream;
