//! The configuration and schema of the demo are the shipped ones, so that it runs from anywhere.

/// What is run.
pub(super) const CONFIG: &str = include_str!("../../../config/wearable.toml");
/// What its records are.
pub(super) const SCHEMA: &str = include_str!("../../../schemas/wearable.toml");
