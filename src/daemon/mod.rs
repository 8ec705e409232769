//! The daemon: the pipeline, its durable state, its pages.
//!
//! | module | content |
//! |---|---|
//! | [`stream`] | combinations of sources and sinks, and the loop over batches |
//! | [`engine`] | processing of a batch from its records to its release; model, held records, plans, clock |
//! | [`state`] | durable state: sled, intents, sealing |
//! | [`erasure`] | erasure of subjects from the state |
//! | [`requests`] | requests of pages to the thread that answers them |
//! | [`reload`] | replacement of the policy while the daemon runs |
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
