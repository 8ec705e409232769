//! Durable state (`docs/internals/exactly-once.md`): sealed values in sled. One atomic, flushed write applies a batch
//! and records the next one's *intent*.

pub mod clock;
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
