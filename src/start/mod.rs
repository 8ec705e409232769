//! From a configuration to checked parts, built once and shared by every command.
//!
//! | room | what it holds |
//! |---|---|
//! | [`checked`] | all of it, as one value |
//! | [`schema`] | the record schema, loaded |
//! | [`shapes`], [`chosen`] | the groups of attributes, as configured or as the planner chooses them |
//! | [`clusters`] | the brokers, and who we are to them |
//! | [`composition`] | which treatment each attribute gets |
//! | [`protections`] | the privacy models beside k |
//! | [`series`], [`forms`] | signals, buckets and cohorts of the series; forms of a release that a schema allows |
//! | [`digest`] | the digest of a policy |
//! | [`output_schema`], [`avro_output`], [`protobuf_output`] | what leaves, as JSON Schema, Avro and Protobuf |
//! | [`output_names`], [`field_numbers`], [`registered`] | what those schemas call things and how they number them, and their own numbers in a registry |
//! | [`reading`] | how records are read: attributes, limits, file formats |
//! | [`nested`] | lines that are nested as the input was |
//! | [`memory`] | one budget for the memory, divided among its parts |
//! | [`messages`] | where the cells of records are in the messages of topics |
//! | `parts`, [`profiles`] | a key or a value, as it is decoded; where the profiles of people are read |
//! | [`encode`] | raw records to codes |
//! | [`sampling`] | a file read as a whole; records read ahead of a run |
//! | [`probe`] | a file held against a schema, in counts; the keys that the schema does not have |
//! | [`digest`], [`changes`] | a policy as one number; differences of two configurations, and those that no reload takes |
//! | [`trials`] | the tests that a configuration carries, in terms of its schema |
//! | [`doubts`], [`findings`] | what looks wrong before a run, and what a run has met |

pub mod avro_output;
pub mod changes;
pub mod checked;
pub mod chosen;
pub mod clusters;
pub mod composition;
pub mod digest;
pub mod doubts;
pub mod encode;
pub mod field_numbers;
pub mod findings;
pub mod forms;
pub mod memory;
pub mod messages;
pub mod nested;
pub mod output_names;
pub mod output_schema;
mod parts;
pub mod probe;
pub mod profiles;
pub mod protections;
pub mod protobuf_output;
pub mod reading;
pub mod registered;
pub mod sampling;
pub mod schema;
pub mod series;
pub mod shapes;
mod subtraction;
pub mod trials;
