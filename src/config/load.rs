//! File, then environment, then judgement: every problem of a configuration at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::environment::{self, Overrides};
use super::properties::is_secret;
use super::shape::{self, Shape};
use super::{Batch, Config, Group, Problem, Secret, Tuning, reference, security, validate};

const SECRET_VARIABLE: &str = "THRONG_SECRET";

/// Loads the configuration in `path`, overridden by `env` (all variables; those that are not ours are ignored).
///
/// # Errors
/// Every problem at once, sorted by file and key: unknown keys, wrong types, values out of range, contradictions,
/// secrets in the file, a secret that cannot be read.
///
/// ```no_run
/// let config = throng::config::load("config/wearable.toml".as_ref(), std::env::vars());
/// ```
pub fn load(path: &Path, env: impl Iterator<Item = (String, String)>) -> Result<Config, Vec<Problem>> {
    load_with(path, env, MissingSecret::Refuse)
}

/// Like [`load`], but a job over files may name a `state.secret_file` that does not exist yet:
/// [`Config::create_secret`] creates it.
///
/// # Errors
/// As [`load`].
pub fn load_for_job(path: &Path, env: impl Iterator<Item = (String, String)>) -> Result<Config, Vec<Problem>> {
    load_with(path, env, MissingSecret::AllowForJob)
}

/// Handling of a `state.secret_file` that does not exist.
#[derive(Clone, Copy, PartialEq)]
enum MissingSecret {
    Refuse,
    AllowForJob,
}

fn load_with(
    path: &Path,
    env: impl Iterator<Item = (String, String)>,
    missing: MissingSecret,
) -> Result<Config, Vec<Problem>> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse_with(&text, &file, env, missing),
        Err(error) => Err(vec![Problem::new(
            file,
            "(whole file)",
            format!("the configuration cannot be read: {}", error.kind()),
            "name a readable UTF-8 file with -c",
        )]),
    }
}

/// Like [`load`], from the text of a file that is called `file` in problems.
pub fn parse(text: &str, file: &str, env: impl Iterator<Item = (String, String)>) -> Result<Config, Vec<Problem>> {
    parse_with(text, file, env, MissingSecret::Refuse)
}

fn parse_with(
    text: &str,
    file: &str,
    env: impl Iterator<Item = (String, String)>,
    missing: MissingSecret,
) -> Result<Config, Vec<Problem>> {
    let env: BTreeMap<String, String> = env.collect();
    let Shape::Section(keys) = Shape::of(&reference::inlined()) else {
        unreachable!("the configuration is a table");
    };
    let mut problems = Vec::new();
    let mut table = text.parse::<toml::Table>().unwrap_or_else(|error| {
        // The parser's own rendering quotes the line, and a line may hold a secret.
        problems.push(Problem::new(file, place(text, error.span()), error.message(), "correct the TOML"));
        toml::Table::new()
    });
    let readable = problems.is_empty();

    let mut misfits = Vec::new();
    shape::fit(&mut table, &keys, "", &mut misfits);
    let mut settled: Vec<String> = misfits.iter().map(|misfit| misfit.key.clone()).collect();
    problems.extend(misfits.into_iter().map(|m| Problem::new(file, m.key, m.message, m.remedy)));
    refuse_secrets(&table, file, &mut problems);

    let before = problems.len();
    let overrides = environment::apply(&mut table, &keys, env.clone().into_iter(), &mut problems);
    settled.extend(unfit_overrides(&problems[before..]));

    let is_whole = keep_to_itself(&mut table);
    let config = match table.try_into::<Config>() {
        Ok(config) => Config { batch: Batch { is_whole, ..config.batch }, ..config },
        Err(error) => {
            problems.push(Problem::new(file, "(whole file)", error.message(), "correct the value"));
            return Err(sorted(problems));
        }
    };
    if readable {
        problems.extend(judge(&config, file, &overrides, &settled));
        problems.extend(security::problems(&config.telemetry, &config.source.security, file));
    }
    match secret(&config, env.get(SECRET_VARIABLE), file, missing) {
        Ok(secret) if problems.is_empty() => return Ok(Config { secret, tuning: Tuning::of(&env), ..config }),
        Ok(_) => {}
        Err(problem) => problems.push(problem),
    }
    Err(sorted(problems))
}

/// Has a run over files or standard input serve no page and keep no state unless they are asked for. True where the files are one
/// batch as far as memory goes.
fn keep_to_itself(table: &mut toml::Table) -> bool {
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
            batch.insert("max_records".to_owned(), RECORDS_OF_A_JOB.into());
            batch.entry("max_bytes").or_insert_with(|| "2GiB".into());
        }
    }
    is_whole
}

/// `batch.max_records` of a job that does not give it.
const RECORDS_OF_A_JOB: i64 = 10_000_000;

impl Config {
    /// The configuration with these groups in place of its own, checked once more.
    ///
    /// # Errors
    /// Every problem that they make, in the configuration `file`.
    pub fn with_groups(self, group: Vec<Group>, file: &str) -> Result<Self, Vec<Problem>> {
        let grouped = Self { group, ..self };
        let problems = judge(&grouped, file, &Overrides::default(), &[]);
        if problems.is_empty() { Ok(grouped) } else { Err(sorted(problems)) }
    }
}

fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    problems
}

/// Problems of the values, without those that only follow from a key that has been complained about already.
fn judge(config: &Config, file: &str, overrides: &Overrides, settled: &[String]) -> Vec<Problem> {
    let complaints = validate::complaints(config).into_iter();
    let fresh =
        complaints.filter(|c| !settled.iter().any(|key| c.key == *key || key.starts_with(&format!("{}.", c.key))));
    fresh
        .map(|c| match overrides.get(&c.key) {
            Some(variable) => Problem::new("environment", variable, c.message, c.remedy),
            None => Problem::new(file, c.key, c.message, c.remedy),
        })
        .collect()
}

/// Key paths of the variables that did not fit: `THRONG__PRIVACY__K` → `privacy.k`.
fn unfit_overrides(problems: &[Problem]) -> impl Iterator<Item = String> {
    problems.iter().map(|p| p.key.trim_start_matches("THRONG__").to_ascii_lowercase().replace("__", "."))
}

fn refuse_secrets(table: &toml::Table, file: &str, problems: &mut Vec<Problem>) {
    for section in ["source", "sink"] {
        let properties = table.get(section).and_then(|s| s.get("librdkafka")).and_then(|p| p.as_table());
        for name in properties.into_iter().flat_map(toml::Table::keys).filter(|name| is_secret(name)) {
            let variable = environment::variable(&[section, "librdkafka", &name.replace('.', "_")]);
            problems.push(Problem::new(
                file,
                format!("{section}.librdkafka.{name}"),
                "a secret does not belong into the configuration file",
                format!("remove it and set {variable} in the environment"),
            ));
        }
    }
}

fn secret(
    config: &Config,
    variable: Option<&String>,
    file: &str,
    missing: MissingSecret,
) -> Result<Option<Secret>, Problem> {
    let is_missing = |path: &Path| missing == MissingSecret::AllowForJob && config.is_job() && !path.exists();
    match (&config.state.secret_file, variable) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Problem::new(
            "environment",
            SECRET_VARIABLE,
            "state.secret_file names a secret too",
            "keep one of the two, so that it is clear which one keys the state",
        )),
        (None, Some(text)) => Secret::new(text.clone().into_bytes())
            .map(Some)
            .map_err(|e| Problem::new("environment", SECRET_VARIABLE, e.to_string(), "set a longer one")),
        (Some(path), None) if is_missing(path) => Ok(None),
        (Some(path), None) => Secret::read(path).map(Some).map_err(|e| {
            let remedy = "write a random secret there (head -c 32 /dev/urandom | base64), readable by its owner only (chmod 600)";
            Problem::new(file, "state.secret_file", e.to_string(), remedy)
        }),
    }
}

/// `line 3, column 7` of where a span begins.
fn place(text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return "(whole file)".into();
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!("line {line}, column {column}")
}

impl Config {
    /// Creates the file of `state.secret_file` for a job over files that was loaded by
    /// [`load_for_job`] and has no secret yet; returns its path where it did.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create_secret(&mut self, file: &str) -> Result<Option<PathBuf>, Problem> {
        let Some(path) = self.state.secret_file.clone().filter(|_| self.secret.is_none() && self.is_job()) else {
            return Ok(None);
        };
        let secret = Secret::create(&path).map_err(|error| {
            let message = format!("{} cannot be created ({})", path.display(), error.kind());
            Problem::new(file, "state.secret_file", message, "name a file in a directory that this process may write")
        })?;
        self.secret = Some(secret);
        Ok(Some(path))
    }
}
