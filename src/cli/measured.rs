//! What `throng evaluate` and `throng attack` read: a configuration, the records before, the lines after, and their lineage.

use super::outcome::Failure;
use crate::anonymity::planner::GroupShape;
use crate::config::{self, Batch, Config, Grouping, Plan, Rows, Sink, Used, is_named_compressed, placed};
use crate::daemon::state::directory::keys;
use crate::daemon::state::seal::Keys;
use crate::dataset::GROUP as DATA_SET;
use crate::evaluation::error::EvaluationError;
use crate::evaluation::facts::AttributeFacts;
use crate::evaluation::lineage::Lineage;
use crate::evaluation::original::Original;
use crate::evaluation::released::{self, ReleasedGroup};
use crate::evaluation::series::Evidence;
use crate::start::chosen::settle;
use crate::start::sampling::SamplingError;
use crate::start::schema::load_schema;
use crate::start::series::series_terms;
use crate::start::shapes::group_shapes;
use anyhow::anyhow;
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;

impl From<EvaluationError> for Failure {
    fn from(error: EvaluationError) -> Self {
        match error {
            EvaluationError::Configuration(problems) => Self::Problems(problems),
            EvaluationError::Sampling(error @ SamplingError::Profiles(_)) => Self::Usage(error.into()),
            error => Self::Running(error.into()),
        }
    }
}

/// The files that are named.
pub struct Named<'a> {
    /// The records before.
    pub original: &'a Path,
    /// The lines after.
    pub released: &'a Path,
    /// The configuration that made them.
    pub config: &'a Path,
    /// Which line came from which record.
    pub lineage: Option<&'a Path>,
}

/// What has been read of them.
pub struct Measured {
    /// The configuration, with the named files as source and sink.
    pub config: Config,
    /// The records before.
    pub original: Original,
    /// What cells stand for, by attribute.
    pub facts: Vec<AttributeFacts>,
    /// The groups of the configuration.
    pub shapes: Vec<GroupShape>,
    /// The lines of each group; none where only series leave.
    pub groups: Vec<ReleasedGroup>,
    /// The series; none where the configuration has none, without a lineage, or where the secret ended with the run.
    pub series: Option<Evidence>,
}

impl Named<'_> {
    /// The files, as what may not be written over.
    #[must_use]
    pub fn read_files(&self) -> Vec<Used> {
        let mut files = vec![
            Used::file("the original", self.original),
            Used::file("the release", self.released),
            Used::file("the configuration", self.config),
        ];
        files.extend(self.lineage.map(|path| Used::file("the lineage", path)));
        files
    }

    /// Reads them all. Memory: 4 bytes a cell, before and after.
    pub fn read(&self) -> Result<Measured, Failure> {
        let named = [("SOURCE", self.original), ("SINK", self.released)];
        let (config, schema, shapes) = named_policy(self.config, &named, self.lineage)?;
        let file = self.config.display().to_string();
        let files = (self.original, self.released, self.lineage);
        let mut measured = Measured::read(config, &schema, shapes, &file, files)?;
        let config = &measured.config;
        if let (Some(terms), Some(lineage), Some(_)) =
            (series_terms(config, &schema, &file)?, self.lineage, subjects_key(config))
        {
            let evidence = Evidence::read(config, &Arc::new(terms), &measured.original, self.released, lineage)?;
            measured.series = Some(evidence);
        }
        Ok(measured)
    }
}

impl Measured {
    /// Reads the records before, the lines of fragments after and the lineage of a configuration with these groups, the file `file` in messages. Memory: 4 bytes a cell, before
    /// and after.
    pub fn read(
        config: Config,
        schema: &Arc<Schema>,
        shapes: Vec<GroupShape>,
        file: &str,
        (original, released, lineage): (&Path, &Path, Option<&Path>),
    ) -> Result<Self, Failure> {
        let key = if config.series.is_empty() { None } else { subjects_key(&config) };
        let original = read_original(&config, schema, file, original, key.as_ref())?;
        let lineage = lineage.map(|path| Lineage::read(path, &shapes)).transpose()?;
        let told = lineage.as_ref().filter(|_| config.sink.rows == Rows::Joined).map(Lineage::groups);
        let mut groups = released::read(&config, &shapes, &original, released, told)?;
        if let Some(lineage) = &lineage {
            lineage.note(&original, &mut groups)?;
        }
        let attributes: Vec<usize> = (0..schema.attributes.len()).collect();
        let facts =
            attributes.into_par_iter().map(|attribute| AttributeFacts::of(&original, attribute, &groups)).collect();
        Ok(Measured { config, original, facts, shapes, groups, series: None })
    }
}

/// Reads the records before, of people who are digested by `key`.
pub fn read_original(
    config: &Config,
    schema: &Arc<Schema>,
    file: &str,
    path: &Path,
    key: Option<&DigestKey>,
) -> Result<Original, EvaluationError> {
    // Values beyond a full dictionary would be missing in the true means of series.
    let is_whole = !config.series.is_empty() || config.batch.is_whole;
    let reading = Config { batch: Batch { is_whole, ..config.batch.clone() }, ..config.clone() };
    Original::read(&reading, schema, file, path, key)
}

/// The key by which runs of a configuration digest subjects; none where it has no secret: each run draws one then.
pub fn subjects_key(config: &Config) -> Option<DigestKey> {
    let of_state = || keys(&config.state.path, None, false).ok().filter(|_| config.has_state());
    let keys = config.secret.as_ref().map(|secret| Keys::derive(secret.expose())).or_else(of_state)?;
    Some(DigestKey(keys.subjects))
}

/// Returns a configuration whose source or sink is the named file, its schema and the groups of the release.
///
/// A release of `throng run` has the groups of the configuration; those that the planner chooses are chosen from its source once more. A release
/// of `throng anonymize` is one file of whole records: it is known by its file, at the path where `throng run` writes none of several groups.
/// A lineage is always one of `throng run`. The file of a sink may have been compressed since.
pub fn named_policy(
    path: &Path,
    named: &[(&str, &Path)],
    lineage: Option<&Path>,
) -> Result<(Config, Arc<Schema>, Vec<GroupShape>), Failure> {
    // Audit records are written where a batch is released, not where its lines are read.
    let mut given = vec![("THRONG__SINK__AUDIT_TOPIC".to_owned(), String::new())];
    let mut is_one_file = false;
    for (section, file) in named {
        let packed = *section == "SINK" && is_named_compressed(file);
        is_one_file |= *section == "SINK" && placed(file, DATA_SET).is_file();
        let file = if packed { &file.with_extension("") } else { *file };
        let utf8 = file.to_str().ok_or_else(|| Failure::Usage(anyhow!("{} is no UTF-8 path", file.display())))?;
        given.push((format!("THRONG__{section}__KIND"), "file".to_owned()));
        given.push((format!("THRONG__{section}__PATH"), utf8.to_owned()));
    }
    let config = config::load(path, std::env::vars().chain(given))?;
    let (schema, file) = (load_schema(&config)?, path.display().to_string());
    let is_data_set = is_one_file && lineage.is_none() && config.sink.rows == Rows::Fragments;
    let config = match settle(config.clone(), &schema, &file) {
        Ok((settled, _)) if settled.group.len() < 2 || !is_data_set || writes_data_set_file(&settled) => settled,
        Ok((settled, _)) => {
            refuse_two_releases(&settled)?;
            as_data_set(config)
        }
        // No records are needed to choose groups that the release does not have.
        Err(_) if is_data_set => as_data_set(config),
        Err(problems) => return Err(problems.into()),
    };
    let shapes = if config.release.fragments { group_shapes(&config, &schema, &file)? } else { Vec::new() };
    Ok((config, schema, shapes))
}

/// The same configuration for a data set that was released at once: its attributes leave together.
fn as_data_set(config: Config) -> Config {
    let plan = Plan { groups: Grouping::Given, ..config.plan };
    Config { plan, keep: Vec::new(), group: Vec::new(), ..config }
}

/// Whether a run writes one of several groups where `throng anonymize` would write a data set.
fn writes_data_set_file(config: &Config) -> bool {
    let path = &config.sink.path;
    config.output_names().into_iter().any(|group| Sink::file_of(path, group, false) == placed(path, DATA_SET))
}

/// Refuses the files of a stream's groups beside the file of a data set: either may be meant.
fn refuse_two_releases(config: &Config) -> Result<(), Failure> {
    let path = &config.sink.path;
    let files = config.output_names().into_iter().map(|group| Sink::file_of(path, group, false));
    files.filter(|file| file.is_file()).take(1).try_for_each(|file| {
        Err(Failure::Usage(anyhow!(
            "{} is a release of `throng anonymize`, and {} of `throng run` is there too: move one of them away",
            placed(path, DATA_SET).display(),
            file.display()
        )))
    })
}

/// A table with its columns aligned: the first to the left, the others to the right.
#[must_use]
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
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
