//! From a configuration to checked parts, built once and shared by every command.
//!
//! | room | what it holds |
//! |---|---|
//! | [`checked`] | all of it, as one value |
//! | [`schema`] | the record schema, loaded |
//! | [`shapes`] | the groups of attributes |
//! | [`protections`] | the privacy models beside k |
//! | [`population`] | the people of a k-map |
//! | [`reading`] | how records are read: attributes, limits, file formats |
//! | [`encode`] | raw records to codes |
//! | [`whole_file`] | a file read as a whole |
//! | [`doubts`], [`findings`] | what looks wrong before a run, and what a run has met |

pub mod checked;
pub mod doubts;
pub mod encode;
pub mod findings;
pub mod population;
pub mod protections;
pub mod reading;
pub mod schema;
pub mod shapes;
pub mod whole_file;
