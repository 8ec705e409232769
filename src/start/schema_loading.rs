//! Loads the record schema.

use crate::config::{Config, ConfigProblem};
use std::sync::Arc;
use throng_core::values::schema::Schema;

/// Loads the record schema of a configuration with its hierarchies.
pub fn load_schema(config: &Config) -> Result<Arc<Schema>, Vec<ConfigProblem>> {
    Schema::load(&config.schema.file).map(Arc::new).map_err(|error| {
        let own = |p: throng_core::values::schema::SchemaProblem| {
            ConfigProblem::new(p.file, p.place, p.message, "correct the record schema")
        };
        error.problems.into_iter().map(own).collect()
    })
}
