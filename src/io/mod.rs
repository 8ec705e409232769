//! Sources, sinks and dead letters: the edge of the house.

pub mod dead_letter;
pub mod file;
pub mod input;
pub mod kafka;
pub mod table;
