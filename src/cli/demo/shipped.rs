//! The shipped configuration and schema, so that the demo runs from anywhere.

/// The configuration.
pub(super) const CONFIG: &str = include_str!("../../../config/wearable.toml");
/// The schema.
pub(super) const SCHEMA: &str = include_str!("../../../schemas/wearable.toml");
