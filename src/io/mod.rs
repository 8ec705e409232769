//! Sources and sinks: [`file`], [`registry`], [`profiles`], [`table`] and [`topic_lines`].

pub mod file;
pub mod profiles;
pub mod registry;
pub mod table;
pub mod topic_lines;
