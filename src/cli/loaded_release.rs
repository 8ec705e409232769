//! Inputs of `throng evaluate` and `throng attack`.

use super::outcome::Failure;
use crate::config::{
    self, BatchConfig, Config, GroupSelection, PlanConfig, RowContent, SinkConfig, UsedFile, has_compressed_extension,
    with_group_name,
};
use crate::daemon::state::directory::directory_keys;
use crate::daemon::state::state_keys::StateKeys;
use crate::dataset::DATASET_GROUP as DATA_SET;
use crate::evaluation::original::OriginalError;
use crate::evaluation::released_groups;
use crate::evaluation::series_evidence::read_series_evidence;
use crate::start::configured_groups::group_shapes;
use crate::start::group_choice::resolve_choices;
use crate::start::sampling::SamplingError;
use crate::start::schema_loading::load_schema;
use crate::start::series_settings::series_terms;
use anyhow::anyhow;
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;
use throng_core::plan::GroupShape;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;
use throng_eval::error::EvaluationError;
use throng_eval::facts::AttributeFacts;
use throng_eval::lineage::Lineage;
use throng_eval::original::OriginalData;
use throng_eval::released_lines::ReleasedGroup;
use throng_eval::series::SeriesEvidence;

impl From<EvaluationError> for Failure {
    fn from(error: EvaluationError) -> Self {
        Self::Running(error.into())
    }
}

impl From<OriginalError> for Failure {
    fn from(error: OriginalError) -> Self {
        match error {
            OriginalError::Configuration(problems) => Self::Problems(problems),
            OriginalError::Sampling(error @ SamplingError::Profiles(_)) => Self::Usage(error.into()),
            error => Self::Running(error.into()),
        }
    }
}

/// Files of the command line.
pub struct ReleaseFiles<'a> {
    /// Original records.
    pub original: &'a Path,
    /// Released lines.
    pub released: &'a Path,
    /// Configuration of the run.
    pub config: &'a Path,
    /// Lineage, from record to output line.
    pub lineage: Option<&'a Path>,
}

/// Data read from the input files.
pub struct LoadedRelease {
    /// Configuration with these files as source and sink.
    pub config: Config,
    /// Original records.
    pub original: OriginalData,
    /// Meaning of cells, per attribute.
    pub facts: Vec<AttributeFacts>,
    /// Groups of the configuration.
    pub shapes: Vec<GroupShape>,
    /// Lines per group; empty without fragments.
    pub groups: Vec<ReleasedGroup>,
    /// Series; none without series, lineage, or stored secret.
    pub series: Option<SeriesEvidence>,
}

impl ReleaseFiles<'_> {
    /// Lists the inputs, which must not be overwritten.
    #[must_use]
    pub fn protected_files(&self) -> Vec<UsedFile> {
        let mut files = vec![
            UsedFile::file("the original", self.original),
            UsedFile::file("the release", self.released),
            UsedFile::file("the configuration", self.config),
        ];
        files.extend(self.lineage.map(|path| UsedFile::file("the lineage", path)));
        files
    }

    /// Reads all inputs, with 4 bytes per cell.
    pub fn load_release(&self) -> Result<LoadedRelease, Failure> {
        let named = [("SOURCE", self.original), ("SINK", self.released)];
        let (config, schema, shapes) = load_release_policy(self.config, &named, self.lineage)?;
        let file = self.config.display().to_string();
        let files = (self.original, self.released, self.lineage);
        let mut measured = LoadedRelease::read(config, &schema, shapes, &file, files)?;
        let config = &measured.config;
        if let (Some(terms), Some(lineage), Some(_)) =
            (series_terms(config, &schema, &file)?, self.lineage, subject_digest_key(config))
        {
            let evidence = read_series_evidence(config, &Arc::new(terms), &measured.original, self.released, lineage)?;
            measured.series = Some(evidence);
        }
        Ok(measured)
    }
}

impl LoadedRelease {
    /// Reads records, fragments and lineage for these groups, with 4 bytes per cell. Messages name `file`.
    pub fn read(
        config: Config,
        schema: &Arc<Schema>,
        shapes: Vec<GroupShape>,
        file: &str,
        (original, released, lineage): (&Path, &Path, Option<&Path>),
    ) -> Result<Self, Failure> {
        let key = if config.series.is_empty() { None } else { subject_digest_key(&config) };
        let original = read_original(&config, schema, file, original, key.as_ref())?;
        let lineage = lineage.map(|path| Lineage::read(path, &shapes)).transpose()?;
        let told = lineage.as_ref().filter(|_| config.sink.rows == RowContent::Joined).map(Lineage::groups_by_line);
        let mut groups = released_groups::read(&config, &shapes, &original, released, told)?;
        if let Some(lineage) = &lineage {
            lineage.assign_origins(&original, &mut groups)?;
        }
        let attributes: Vec<usize> = (0..schema.attributes.len()).collect();
        let facts = attributes
            .into_par_iter()
            .map(|attribute| AttributeFacts::from_original(&original, attribute, &groups))
            .collect();
        Ok(LoadedRelease { config, original, facts, shapes, groups, series: None })
    }
}

/// Reads the records, with subjects digested by `key`.
pub fn read_original(
    config: &Config,
    schema: &Arc<Schema>,
    file: &str,
    path: &Path,
    key: Option<&DigestKey>,
) -> Result<OriginalData, OriginalError> {
    // A full dictionary would falsify the true means of series.
    let is_whole = !config.series.is_empty() || config.batch.is_whole;
    let reading = Config { batch: BatchConfig { is_whole, ..config.batch.clone() }, ..config.clone() };
    crate::evaluation::original::read_original(&reading, schema, file, path, key)
}

/// Returns the digest key of runs; `None` without a secret, because each run then draws one.
pub fn subject_digest_key(config: &Config) -> Option<DigestKey> {
    let of_state = || directory_keys(&config.state.path, None, false).ok().filter(|_| config.has_state());
    let keys = config.secret.as_ref().map(|secret| StateKeys::derive(secret.expose())).or_else(of_state)?;
    Some(DigestKey(keys.subjects))
}

/// Returns a configuration with the named file as source or sink, its schema and groups.
///
/// Groups of the planner are chosen again from its source. A release of `throng anonymize` is recognized by its path,
/// which `throng run` does not use for one of several groups; with a lineage it belongs to `throng run`. The file may
/// have been compressed after the run.
pub fn load_release_policy(
    path: &Path,
    named: &[(&str, &Path)],
    lineage: Option<&Path>,
) -> Result<(Config, Arc<Schema>, Vec<GroupShape>), Failure> {
    // Audit records are not written while lines are read.
    let mut given = vec![("THRONG__SINK__AUDIT_TOPIC".to_owned(), String::new())];
    let mut is_one_file = false;
    for (section, file) in named {
        let packed = *section == "SINK" && has_compressed_extension(file);
        is_one_file |= *section == "SINK" && with_group_name(file, DATA_SET).is_file();
        let file = if packed { &file.with_extension("") } else { *file };
        let utf8 = file
            .to_str()
            .ok_or_else(|| Failure::Usage(anyhow!("path {} is not valid UTF-8: rename it", file.display())))?;
        given.push((format!("THRONG__{section}__KIND"), "file".to_owned()));
        given.push((format!("THRONG__{section}__PATH"), utf8.to_owned()));
    }
    let config = config::load(path, std::env::vars().chain(given))?;
    let (schema, file) = (load_schema(&config)?, path.display().to_string());
    let is_data_set = is_one_file && lineage.is_none() && config.sink.rows == RowContent::Fragments;
    let config = match resolve_choices(config.clone(), &schema, &file) {
        Ok((settled, _)) if settled.group.len() < 2 || !is_data_set || writes_data_set_file(&settled) => settled,
        Ok((settled, _)) => {
            refuse_ambiguous_release(&settled)?;
            without_groups(config)
        }
        // Such a release has no groups.
        Err(_) if is_data_set => without_groups(config),
        Err(problems) => return Err(problems.into()),
    };
    let shapes = if config.release.fragments { group_shapes(&config, &schema, &file)? } else { Vec::new() };
    Ok((config, schema, shapes))
}

/// All attributes are released together.
fn without_groups(config: Config) -> Config {
    let plan = PlanConfig { groups: GroupSelection::Given, ..config.plan };
    Config { plan, keep: Vec::new(), group: Vec::new(), ..config }
}

/// The path of one of several groups is that of a data set.
fn writes_data_set_file(config: &Config) -> bool {
    let path = &config.sink.path;
    config
        .output_names()
        .into_iter()
        .any(|group| SinkConfig::file_of(path, group, false) == with_group_name(path, DATA_SET))
}

/// Refuses files of groups next to that of a data set.
fn refuse_ambiguous_release(config: &Config) -> Result<(), Failure> {
    let path = &config.sink.path;
    let files = config.output_names().into_iter().map(|group| SinkConfig::file_of(path, group, false));
    files.filter(|file| file.is_file()).take(1).try_for_each(|file| {
        Err(Failure::Usage(anyhow!(
            "ambiguous release: {} of `throng anonymize` and {} of `throng run` both exist (move one of them away)",
            with_group_name(path, DATA_SET).display(),
            file.display()
        )))
    })
}

/// Formats a table: the first column to the left, others to the right.
#[must_use]
pub fn aligned_table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            line += &if at == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(head.to_vec());
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}
