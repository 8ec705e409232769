//! Embedded files: the demo runs in any directory.

/// Configuration of the demo.
pub(super) const DEMO_CONFIG: &str = include_str!("../../../config/wearable.toml");
/// Schema of the demo.
pub(super) const DEMO_SCHEMA: &str = include_str!("../../../schemas/wearable.toml");
