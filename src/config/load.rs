//! Loading of the file and the environment, with every problem reported in one pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::environment::{self, OverriddenKeys};
use super::kafka_properties::is_secret;
use super::shape::{self, ConfigShape};
use super::{BatchConfig, Config, ConfigProblem, FixedSettings, GroupConfig, Secret, reference, security, validate};

const SECRET_VARIABLE: &str = "THRONG_SECRET";

/// Loads the configuration in `path`, overridden by `env` (names without the prefix `THRONG_` are ignored).
///
/// # Errors
/// Returns every problem, sorted by file and key: unknown keys, wrong types and ranges, contradictions, secrets in the
/// file, an unreadable secret.
///
/// ```no_run
/// let config = throng::config::load("config/wearable.toml".as_ref(), std::env::vars());
/// ```
pub fn load(path: &Path, env: impl Iterator<Item = (String, String)>) -> Result<Config, Vec<ConfigProblem>> {
    load_with(path, env, MissingSecret::Refuse)
}

/// Like [`load`], but `state.secret_file` of a job over files may be missing; [`Config::create_secret`] creates it.
///
/// # Errors
/// As [`load`].
pub fn load_for_job(path: &Path, env: impl Iterator<Item = (String, String)>) -> Result<Config, Vec<ConfigProblem>> {
    load_with(path, env, MissingSecret::AllowForJob)
}

#[derive(Clone, Copy, PartialEq)]
enum MissingSecret {
    Refuse,
    AllowForJob,
}

fn load_with(
    path: &Path,
    env: impl Iterator<Item = (String, String)>,
    missing: MissingSecret,
) -> Result<Config, Vec<ConfigProblem>> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse_with(&text, &file, env, missing),
        Err(error) => Err(vec![ConfigProblem::new(
            file,
            "(whole file)",
            format!("the configuration cannot be read: {}", error.kind()),
            "name a readable UTF-8 file with -c",
        )]),
    }
}

/// Like [`load`], but from text; problems name `file`.
pub fn parse(
    text: &str,
    file: &str,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Config, Vec<ConfigProblem>> {
    parse_with(text, file, env, MissingSecret::Refuse)
}

fn parse_with(
    text: &str,
    file: &str,
    env: impl Iterator<Item = (String, String)>,
    missing: MissingSecret,
) -> Result<Config, Vec<ConfigProblem>> {
    let env: BTreeMap<String, String> = env.collect();
    let ConfigShape::Section(keys) = ConfigShape::of(&reference::inlined()) else {
        unreachable!("the configuration is a table");
    };
    let mut problems = Vec::new();
    let mut table = text.parse::<toml::Table>().unwrap_or_else(|error| {
        // The rendered message quotes the line, which may hold a secret.
        problems.push(ConfigProblem::new(
            file,
            line_and_column(text, error.span()),
            error.message(),
            "correct the TOML",
        ));
        toml::Table::new()
    });
    let readable = problems.is_empty();

    let mut misfits = Vec::new();
    shape::remove_misfits(&mut table, &keys, "", &keys, &mut misfits);
    let mut settled: Vec<String> = misfits.iter().map(|misfit| misfit.key.clone()).collect();
    problems.extend(misfits.into_iter().map(|m| ConfigProblem::new(file, m.key, m.message, m.remedy)));
    refuse_secrets(&table, file, &mut problems);

    let before = problems.len();
    let overrides = environment::apply(&mut table, &keys, env.clone().into_iter(), &mut problems);
    settled.extend(refused_variable_paths(&problems[before..]));

    let is_whole = apply_file_defaults(&mut table);
    let config = match table.try_into::<Config>() {
        Ok(config) => Config { batch: BatchConfig { is_whole, ..config.batch }, ..config },
        Err(error) => {
            problems.push(ConfigProblem::new(file, "(whole file)", error.message(), "correct the value"));
            return Err(sorted(problems));
        }
    };
    if readable {
        problems.extend(validation_problems(&config, file, &overrides, &settled));
        problems.extend(security::secret_file_problems(&config.telemetry, &config.source.security, file));
    }
    match load_secret(&config, env.get(SECRET_VARIABLE), file, missing) {
        Ok(secret) if problems.is_empty() => return Ok(Config { secret, tuning: FixedSettings::of(&env), ..config }),
        Ok(_) => {}
        Err(problem) => problems.push(problem),
    }
    Err(sorted(problems))
}

/// Disables unset pages and state for a run without topics. Returns true if the files are one batch as far as memory
/// allows.
fn apply_file_defaults(table: &mut toml::Table) -> bool {
    let text = |table: &toml::Table, section: &str, key: &str| {
        table.get(section).and_then(|section| section.get(key)).and_then(toml::Value::as_str).map(str::to_owned)
    };
    if text(table, "source", "kind").as_deref() != Some("file") {
        return false;
    }
    for (section, key) in [("telemetry", "listen"), ("state", "path")] {
        let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
        if let Some(section) = section.as_table_mut() {
            section.entry(key).or_insert_with(|| "".into());
        }
    }
    let is_job = text(table, "source", "path").is_some_and(|path| path != "-");
    let is_whole = is_job && table.get("batch").and_then(|batch| batch.get("max_records")).is_none();
    if is_whole {
        let batch = table.entry("batch").or_insert_with(|| toml::Table::new().into());
        if let Some(batch) = batch.as_table_mut() {
            batch.insert("max_records".to_owned(), JOB_MAX_RECORDS.into());
            batch.entry("max_bytes").or_insert_with(|| "2GiB".into());
        }
    }
    is_whole
}

const JOB_MAX_RECORDS: i64 = 10_000_000;

impl Config {
    /// Replaces the groups and validates again.
    ///
    /// # Errors
    /// Returns every problem, reported for `file`.
    pub fn with_groups(self, group: Vec<GroupConfig>, file: &str) -> Result<Self, Vec<ConfigProblem>> {
        let grouped = Self { group, ..self };
        let problems = validation_problems(&grouped, file, &OverriddenKeys::default(), &[]);
        if problems.is_empty() { Ok(grouped) } else { Err(sorted(problems)) }
    }
}

fn sorted(mut problems: Vec<ConfigProblem>) -> Vec<ConfigProblem> {
    problems.sort();
    problems
}

/// Omits problems that only follow from a key already reported.
fn validation_problems(
    config: &Config,
    file: &str,
    overrides: &OverriddenKeys,
    settled: &[String],
) -> Vec<ConfigProblem> {
    let complaints = validate::collect_problems(config).into_iter();
    let fresh =
        complaints.filter(|c| !settled.iter().any(|key| c.key == *key || key.starts_with(&format!("{}.", c.key))));
    fresh
        .map(|c| match overrides.get(&c.key) {
            Some(variable) => ConfigProblem::new("environment", variable, c.message, c.remedy),
            None => ConfigProblem::new(file, c.key, c.message, c.remedy),
        })
        .collect()
}

/// `THRONG__PRIVACY__K` → `privacy.k`.
fn refused_variable_paths(problems: &[ConfigProblem]) -> impl Iterator<Item = String> {
    problems.iter().map(|p| p.key.trim_start_matches("THRONG__").to_ascii_lowercase().replace("__", "."))
}

fn refuse_secrets(table: &toml::Table, file: &str, problems: &mut Vec<ConfigProblem>) {
    for section in ["source", "sink"] {
        let properties = table.get(section).and_then(|s| s.get("librdkafka")).and_then(|p| p.as_table());
        for name in properties.into_iter().flat_map(toml::Table::keys).filter(|name| is_secret(name)) {
            let variable = environment::variable(&[section, "librdkafka", &name.replace('.', "_")]);
            problems.push(ConfigProblem::new(
                file,
                format!("{section}.librdkafka.{name}"),
                "a secret is not allowed in the configuration file",
                format!("remove it and set {variable} in the environment"),
            ));
        }
    }
}

fn load_secret(
    config: &Config,
    variable: Option<&String>,
    file: &str,
    missing: MissingSecret,
) -> Result<Option<Secret>, ConfigProblem> {
    let is_missing = |path: &Path| missing == MissingSecret::AllowForJob && config.is_job() && !path.exists();
    match (&config.state.secret_file, variable) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(ConfigProblem::new(
            "environment",
            SECRET_VARIABLE,
            "state.secret_file is also set",
            "remove one of the two: the state has a single secret",
        )),
        (None, Some(text)) => Secret::new(text.clone().into_bytes())
            .map(Some)
            .map_err(|e| ConfigProblem::new("environment", SECRET_VARIABLE, e.to_string(), "set a longer one")),
        (Some(path), None) if is_missing(path) => Ok(None),
        (Some(path), None) => Secret::read(path).map(Some).map_err(|e| {
            let remedy = "write a random secret to the file (head -c 32 /dev/urandom | base64), readable by its owner only (chmod 600)";
            ConfigProblem::new(file, "state.secret_file", e.to_string(), remedy)
        }),
    }
}

/// `line 3, column 7`.
fn line_and_column(text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return "(whole file)".into();
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!("line {line}, column {column}")
}

impl Config {
    /// Creates the missing `state.secret_file` of a configuration from [`load_for_job`], and returns its path.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn create_secret(&mut self, file: &str) -> Result<Option<PathBuf>, ConfigProblem> {
        let Some(path) = self.state.secret_file.clone().filter(|_| self.secret.is_none() && self.is_job()) else {
            return Ok(None);
        };
        let secret = Secret::create(&path).map_err(|error| {
            let message = format!("{} cannot be created ({})", path.display(), error.kind());
            ConfigProblem::new(
                file,
                "state.secret_file",
                message,
                "name a file in a directory that this process may write",
            )
        })?;
        self.secret = Some(secret);
        Ok(Some(path))
    }
}
