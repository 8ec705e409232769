//! Policy tests in the real pipeline.

use super::outcome::Failure;
use super::text_format;
use super::trial_run::{
    RecordFileFormat, SilentWatcher, TrialRun, execute_trial_run, record_file_format, temporary_directory,
};
use crate::config::{Config, OutputConfig, PolicyTest, RecordFormat, Secret};
use crate::io::file::is_rereadable;
use crate::start::checked_config::CheckedConfig;
use crate::start::policy_test_checks::test_record_lines;
use anyhow::{Context, anyhow};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Equal results on every machine; no stored data is keyed by it.
const TRIAL_SECRET: &[u8] = b"a trial, of which nothing is kept";

/// Result of a policy test.
pub struct PolicyTestResult {
    /// Name of the test.
    pub name: String,
    /// Records released, and read.
    pub released: (u64, u64),
    /// Unmet expectations; they quote the records of the test.
    pub unmet: Vec<String>,
}

impl PolicyTestResult {
    /// Formats the result.
    #[must_use]
    pub fn result_text(&self) -> String {
        let (name, (released, all)) = (text_format::sanitize_text(&self.name), self.released);
        if self.unmet.is_empty() {
            return format!("test {name:?}: passed ({released} of {} released)\n", text_format::counted(all, "record"));
        }
        let mut out =
            format!("test {name:?}: FAILED ({released} of {} released)\n", text_format::counted(all, "record"));
        for unmet in &self.unmet {
            for line in unmet.lines() {
                out += &format!("  {line}\n");
            }
        }
        out
    }
}

/// Returns the configuration with a public secret and without tests.
///
/// # Errors
/// Fails if the secret is invalid.
pub fn with_trial_secret(config: &Config) -> Result<Config, Failure> {
    let secret = Secret::new(TRIAL_SECRET.to_vec()).map_err(|error| Failure::Usage(error.into()))?;
    let mut config = Config { secret: Some(secret), test: Vec::new(), ..config.clone() };
    config.state.secret_file = None;
    Ok(config)
}

/// Runs every test of `asked`, the unchecked configuration, until `stop` is set.
///
/// # Errors
/// Fails for unreleased attributes or outputs, an unreadable file, and a failed pipeline.
pub fn run_policy_tests(
    checked: &CheckedConfig,
    asked: &Config,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<PolicyTestResult>, Failure> {
    let problems = crate::start::policy_test_checks::problems(checked);
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    let tests = asked.test.iter().enumerate();
    tests.map(|(index, test)| execute_policy_test(index, test, checked, asked, stop)).collect()
}

fn execute_policy_test(
    index: usize,
    test: &PolicyTest,
    checked: &CheckedConfig,
    asked: &Config,
    stop: &Arc<AtomicBool>,
) -> Result<PolicyTestResult, Failure> {
    let key = format!("{}: test[{index}].file", checked.file);
    let mut config = with_trial_secret(asked)?;
    // Cells are compared under schema names.
    config.output = OutputConfig::default();
    let directory = temporary_directory("test")?;
    let (input, form) = match (&test.file, test_record_lines(test, asked, &checked.schema)) {
        (None, Some(lines)) => {
            let path = directory.path().join("records.ndjson");
            std::fs::write(&path, lines).context("cannot write the records of a test")?;
            (path, RecordFileFormat { format: RecordFormat::Json, separator: ',' })
        }
        (Some(file), _) if !is_rereadable(file) => {
            return Err(Failure::Usage(anyhow!(
                "{key}: {} is not a regular file (name an existing one)",
                file.display()
            )));
        }
        (file, _) => {
            let file: PathBuf = file.clone().unwrap_or_default();
            let form = record_file_format(&config, &file)?;
            (file, form)
        }
    };
    let rehearsal = execute_trial_run(config, &checked.file, &input, form, false, stop, &SilentWatcher)?;
    let totals = rehearsal.telemetry.status().totals;
    let mut unmet = unmet_expectations(test, &TrialOutput::read_outputs(&rehearsal)?);
    let counts = [("released", test.released, totals.released)];
    for (what, wanted, found) in counts {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            unmet.push(format!("{what}: expected {wanted}, got {found}"));
        }
    }
    let only_never = test.expect.is_empty() && counts.iter().all(|(_, wanted, _)| wanted.is_none());
    if only_never && totals.released == 0 {
        unmet.push(
            "never: nothing was released, so the test proves nothing (give records that are released, or expect released = 0)"
                .to_owned(),
        );
    }
    Ok(PolicyTestResult { name: test.name.clone(), released: (totals.released, totals.consumed), unmet })
}

struct TrialOutput {
    /// Every text with its place.
    texts: Vec<(String, String)>,
    /// Cells by index into `texts`; dead letters have none.
    lines: Vec<(usize, Map<String, Value>)>,
}

impl TrialOutput {
    fn read_outputs(rehearsal: &TrialRun) -> anyhow::Result<Self> {
        let mut left = Self { texts: Vec::new(), lines: Vec::new() };
        let lines =
            |path: &Path| TrialRun::read_first_lines(path, usize::MAX).context("cannot read the output of a test");
        for (group, path) in &rehearsal.outputs {
            for (number, line) in lines(path)?.1.into_iter().enumerate() {
                if let Some(cells) = PolicyTest::cells(&line) {
                    left.lines.push((left.texts.len(), cells));
                }
                left.texts.push((format!("group {group}, line {}", number + 1), line));
            }
        }
        for (number, line) in lines(&rehearsal.dead_letters())?.1.into_iter().enumerate() {
            left.texts.push((format!("dead letter {}", number + 1), line));
        }
        Ok(left)
    }

    fn output_text(&self, text: usize) -> String {
        let (place, line) = &self.texts[text];
        format!("{place}: {}", text_format::sanitize_text(line))
    }
}

/// A number keeps its spelling.
fn cell_text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn count_matching_cells(cells: &Map<String, Value>, line: &Map<String, Value>) -> usize {
    cells.iter().filter(|(name, cell)| line.get(*name).is_some_and(|shown| cell_text(shown) == cell_text(cell))).count()
}

fn unmet_expectations(test: &PolicyTest, left: &TrialOutput) -> Vec<String> {
    let mut unmet = Vec::new();
    for wanted in &test.expect {
        let cells = PolicyTest::cells(wanted).unwrap_or_default();
        if left.lines.iter().any(|(_, line)| count_matching_cells(&cells, line) == cells.len()) {
            continue;
        }
        let of_group = left.lines.iter().filter(|(_, line)| cells.keys().all(|name| line.contains_key(name)));
        let mut told = format!("expected: {}\n", text_format::sanitize_text(wanted));
        match of_group.rev().max_by_key(|(_, line)| count_matching_cells(&cells, line)) {
            Some((nearest, line)) => {
                let differ = cells
                    .iter()
                    .filter(|(name, cell)| line.get(*name).is_none_or(|shown| cell_text(shown) != cell_text(cell)));
                let differ: Vec<&str> = differ.map(|(name, _)| name.as_str()).collect();
                told += &format!(" nearest: {}\n  differs: {}", left.output_text(*nearest), differ.join(", "));
            }
            None if left.lines.is_empty() => told += "     got: nothing was released",
            None => told += "     got: no line with these attributes",
        }
        unmet.push(told);
    }
    for never in &test.never {
        let found = match PolicyTest::cells(never) {
            Some(cells) => {
                left.lines.iter().find(|(_, line)| count_matching_cells(&cells, line) == cells.len()).map(|(at, _)| *at)
            }
            None => left.texts.iter().position(|(_, line)| contains_in_any_spelling(never, line)),
        };
        if let Some(at) = found {
            unmet.push(format!("never: {}\n  got: {}", text_format::sanitize_text(never), left.output_text(at)));
        }
    }
    unmet
}

/// As written, or as JSON spells it.
fn contains_in_any_spelling(text: &str, line: &str) -> bool {
    let spelled = Value::String(text.to_owned()).to_string();
    line.contains(text) || line.contains(spelled.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_of_lines(lines: &[&str]) -> TrialOutput {
        let texts: Vec<(String, String)> =
            lines.iter().map(|line| ("group all".to_owned(), (*line).to_owned())).collect();
        let cells = |(at, line): (usize, &&str)| PolicyTest::cells(line).map(|cells| (at, cells));
        TrialOutput { lines: lines.iter().enumerate().filter_map(cells).collect(), texts }
    }

    #[test]
    fn expected_cells_must_be_on_one_line() {
        let left = output_of_lines(&[r#"{"age":"30-39","zip":"*"}"#, r#"{"age":"*","zip":"12"}"#]);
        let unmet = |expect: &str| {
            unmet_expectations(&PolicyTest { expect: vec![expect.to_owned()], ..PolicyTest::default() }, &left)
        };
        assert!(unmet(r#"{"age": "30-39"}"#).is_empty() && unmet(r#"{"zip": 12}"#).is_empty());
        let told = unmet(r#"{"age": "30-39", "zip": "12"}"#);
        assert!(told.len() == 1 && told[0].contains("differs: zip"), "{told:?}");
        assert!(unmet(r#"{"name": "x"}"#)[0].contains("no line with these attributes"));
    }

    #[test]
    fn forbidden_text_is_found_in_any_spelling() {
        let left = output_of_lines(&[r#"{"age":"30-39","name":"m\u00fcller \"x\"","n":74}"#, "anna in a dead letter"]);
        let met = |never: &str| {
            unmet_expectations(&PolicyTest { never: vec![never.to_owned()], ..PolicyTest::default() }, &left).is_empty()
        };
        assert!(met("bob") && met(r#"{"age": "30"}"#));
        assert!(!met("anna") && !met("0-3") && !met("74") && !met(r#"{"n": "74"}"#) && !met("\"x\""));
    }
}
