//! Sources, sinks, codecs and dead letters: the edge of the house.

pub mod codec;
pub mod dead_letter;
pub mod file;
pub mod input;
pub mod kafka;
pub mod table;
