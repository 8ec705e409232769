//! Reader of original records with their schema.

use crate::config::{Config, ConfigProblem};
use crate::start::profile_sources::ProfilesUnavailable;
use crate::start::sampling::{self, SampledRecords, SamplingError};
use std::path::Path;
use std::sync::Arc;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;
use throng_eval::error::EvaluationError;
use throng_eval::original::OriginalData;

/// Reason for which an original cannot be read. Messages contain no data value.
#[derive(Debug, thiserror::Error)]
pub enum OriginalError {
    /// Invalid configuration of the profiles.
    #[error("{} problem(s) in the configuration", .0.len())]
    Configuration(Vec<ConfigProblem>),
    /// Unreadable profiles or file.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// File without a column or records.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

/// Reads `path` with the profiles of `config`, which `file` names in messages. Subjects are digested by `key`, by
/// default a random one.
///
/// # Errors
///
/// When profiles or file are unreadable, profiles are in a topic, or the file lacks a column or records.
pub fn read_original(
    config: &Config,
    schema: &Arc<Schema>,
    file: &str,
    path: &Path,
    key: Option<&DigestKey>,
) -> Result<OriginalData, OriginalError> {
    let named = |a: usize| format!("attribute {:?}", schema.attributes[a].name);
    let absent_as_null = config.sink.writes_absent_cells();
    let read = sampling::read_joined(config, schema, file, path, absent_as_null, key).map_err(|error| match error {
        SamplingError::Profiles(ProfilesUnavailable::Problems(problems)) => OriginalError::Configuration(problems),
        error => error.into(),
    })?;
    if !read.absent.is_empty() {
        let attributes = read.absent.into_iter().map(named).collect();
        return Err(EvaluationError::NoColumn { path: path.to_owned(), attributes }.into());
    }
    let SampledRecords { books, batch, rejected, uncovered, .. } = read;
    if batch.rows() == 0 {
        return Err(EvaluationError::Empty(path.to_owned()).into());
    }
    Ok(OriginalData { schema: Arc::clone(schema), books, batch, rejected, uncovered })
}
