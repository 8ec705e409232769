//! Sources, sinks and dead letters: the edge of the house.
//!
//! | room | what it holds |
//! |---|---|
//! | [`file`] | files that are read in order, files that are replaced as a whole |
//! | [`kafka`] | topics that are read by a group, and transactions into topics |
//! | [`message`] | a message, and how the cells of a record are found in its parts |
//! | [`registry`] | the schemas under which records were written |
//! | [`input`] | a batch as a source hands it over, and when it is closed |
//! | [`profiles`] | profiles of people, read to be joined to their records |
//! | [`table`] | a whole file as columns of codes, for `throng audit` |
//! | [`subject_share`] | how much of a batch one subject may fill |
//! | [`topic_lines`] | the messages of a topic that no schema describes |
//! | [`dead_letter`] | the report on a record that was refused |
//!
//! Bytes become cells, and cells lines, in [`codec`](throng_formats).

pub mod dead_letter;
pub mod file;
pub mod input;
pub mod kafka;
pub mod message;
pub mod profiles;
pub mod registry;
pub mod subject_share;
pub mod table;
pub mod topic_lines;
