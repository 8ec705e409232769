//! Durable state: what a restart needs to continue exactly where the last committed batch ended.
//!
//! A sled tree, and a second one for the rows of the window. Every batch is one atomic, flushed write that applies the
//! batch before it and names the batch about to leave (its *intent*); its rows are written before that. See
//! `docs/exactly-once.md` for the protocol and its crash points. All values are sealed with a key derived from the secret;
//! keys of the trees are numbers and fixed words.

pub mod databases;
pub mod directory;
pub mod disk;
pub mod entries;
mod keeper;
pub mod numbered;
pub mod profile_journal;
pub mod records;
pub mod rows;
pub mod seal;
pub mod store;
