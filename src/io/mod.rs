//! Sources, sinks and dead letters.
//!
//! | module | content |
//! |---|---|
//! | [`file`] | files that are read in order, files that are replaced as a whole |
//! | [`kafka`] | topics that are read by a group, and transactions into topics |
//! | [`message`] | a message, and the mapping of its parts to the cells of a record |
//! | [`registry`] | the schemas with which records were written |
//! | [`input`] | a batch from a source, and the limits that close it |
//! | [`profiles`] | profiles of subjects, which are joined to their records |
//! | [`table`] | a complete file as columns of codes, for `throng audit` |
//! | [`subject_share`] | the limit on the share of a batch per subject |
//! | [`topic_lines`] | the messages of a topic without a schema |
//! | [`release_sink`] | interface of the sinks that receive verified batches |
//! | [`dead_letter`] | the report on a rejected record |
//!
//! [`codec`](throng_formats) converts bytes to cells, and cells to lines.

pub mod file;
pub mod profiles;
pub mod registry;
pub mod table;
pub mod topic_lines;
