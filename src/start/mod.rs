//! Checks a configuration and builds its parts once, for all commands.
//!
//! A checked configuration combines the record schema, attribute groups, treatments, privacy models and series. Other
//! modules derive output schemas, memory bounds, message decoders and samples from it, and report warnings and
//! findings.

pub mod avro_output;
pub mod batch_encoding;
pub mod checked_config;
pub mod clusters;
pub mod config_changes;
pub mod configured_groups;
pub mod field_numbers;
pub mod group_choice;
pub mod memory_budget;
pub mod message_decoders;
mod message_parts;
pub mod nested_output;
pub mod output_names;
pub mod output_schema;
pub mod policy_hash;
pub mod policy_test_checks;
pub mod profile_sources;
pub mod protections;
pub mod protobuf_output;
pub mod record_formats;
pub mod release_forms;
pub mod run_findings;
pub mod sampling;
pub mod schema_comparison;
pub mod schema_loading;
pub mod schema_registration;
pub mod schema_warnings;
pub mod series_settings;
mod series_subtraction;
pub mod treatment_selection;
