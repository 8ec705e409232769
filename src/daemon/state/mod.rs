//! Durable state: all data that a restart needs to continue after the last committed batch.
//!
//! The state consists of a sled tree, and a second tree for the rows of the window. Every batch is one atomic,
//! flushed write. It applies the previous batch and records the next one (its *intent*); the rows of the next one are
//! written before. `docs/internals/exactly-once.md` describes the protocol and its crash points. All values are sealed with a
//! key derived from the secret; keys of the trees are numbers and fixed words.

mod database_thread;
pub mod databases;
pub mod directory;
pub mod disk;
pub mod entries;
pub mod numbered_keys;
pub mod profile_journal;
pub mod records;
pub mod rows;
pub mod state_keys;
pub mod store;
