//! The tests that a configuration carries, run through the real pipeline.

use super::outcome::Failure;
use super::rehearsal::{Rehearsal, Written, rehearse, temporary_directory, written};
use super::text;
use crate::config::{Config, Format, Output, PolicyTest, Secret};
use crate::io::file::is_at_rest;
use crate::start::checked::Checked;
use crate::start::trials::records;
use anyhow::{Context, anyhow};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Keys the digests of a trial, so that it comes out the same on every machine. Nothing that is kept is keyed by it.
const TRIAL_SECRET: &[u8] = b"a trial, of which nothing is kept";

/// What a test has come to.
pub struct Tried {
    /// Its name.
    pub name: String,
    /// Records released, of all that were read.
    pub released: (u64, u64),
    /// What was asked for and is not so, in lines for people; they quote the test's own records. Empty where it has passed.
    pub unmet: Vec<String>,
}

impl Tried {
    /// In lines for people.
    #[must_use]
    pub fn described(&self) -> String {
        let (name, (released, all)) = (text::clean(&self.name), self.released);
        if self.unmet.is_empty() {
            return format!("test {name:?}: passed ({released} of {} released)\n", text::counted(all, "record"));
        }
        let mut out = format!("test {name:?}: FAILED ({released} of {} released)\n", text::counted(all, "record"));
        for unmet in &self.unmet {
            for line in unmet.lines() {
                out += &format!("  {line}\n");
            }
        }
        out
    }
}

/// A configuration as it is tried: with a secret that is none.
///
/// # Errors
/// Never, but for a secret that the product itself would refuse.
pub fn for_trial(config: &Config) -> Result<Config, Failure> {
    let secret = Secret::new(TRIAL_SECRET.to_vec()).map_err(|error| Failure::Usage(error.into()))?;
    let mut config = Config { secret: Some(secret), test: Vec::new(), ..config.clone() };
    config.state.secret_file = None;
    Ok(config)
}

/// Runs every test of `asked`, the configuration before it was checked, until `stop` is set.
///
/// # Errors
/// Where the tests name what cannot leave, where a file of theirs cannot be read, and where the pipeline fails.
pub fn run_all(checked: &Checked, asked: &Config, stop: &Arc<AtomicBool>) -> Result<Vec<Tried>, Failure> {
    let problems = crate::start::trials::problems(checked);
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    let tests = asked.test.iter().enumerate();
    tests.map(|(index, test)| run_one(index, test, checked, asked, stop)).collect()
}

fn run_one(
    index: usize,
    test: &PolicyTest,
    checked: &Checked,
    asked: &Config,
    stop: &Arc<AtomicBool>,
) -> Result<Tried, Failure> {
    let key = format!("{}: test[{index}].file", checked.file);
    let mut config = for_trial(asked)?;
    // Cells are compared under the names of their attributes.
    config.output = Output::default();
    let directory = temporary_directory("test")?;
    let (input, form) = match (&test.file, records(test, asked, &checked.schema)) {
        (None, Some(lines)) => {
            let path = directory.path().join("records.ndjson");
            std::fs::write(&path, lines).context("the records of a test cannot be written down")?;
            (path, Written { format: Format::Json, separator: ',' })
        }
        (Some(file), _) if !is_at_rest(file) => {
            return Err(Failure::Usage(anyhow!("{key}: {} is no file (name one that is there)", file.display())));
        }
        (file, _) => {
            let file: PathBuf = file.clone().unwrap_or_default();
            let form = written(&config, &file)?;
            (file, form)
        }
    };
    let rehearsal = rehearse(config, &checked.file, &input, form, false, stop)?;
    let totals = rehearsal.telemetry.status().totals;
    let mut unmet = judged(test, &Left::of(&rehearsal)?);
    let counts = [("released", test.released, totals.released)];
    for (what, wanted, found) in counts {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            unmet.push(format!("{what}: expected {wanted}, got {found}"));
        }
    }
    let only_never = test.expect.is_empty() && counts.iter().all(|(_, wanted, _)| wanted.is_none());
    if only_never && totals.released == 0 {
        unmet.push(
            "never: nothing was released, so nothing could be met (give records that leave, or ask for released = 0)"
                .to_owned(),
        );
    }
    Ok(Tried { name: test.name.clone(), released: (totals.released, totals.consumed), unmet })
}

/// Everything that has left.
struct Left {
    /// Where each text has left to, for people.
    texts: Vec<(String, String)>,
    /// Lines with their cells; of dead letters none.
    lines: Vec<(usize, Map<String, Value>)>,
}

impl Left {
    fn of(rehearsal: &Rehearsal) -> anyhow::Result<Self> {
        let mut left = Self { texts: Vec::new(), lines: Vec::new() };
        let lines = |path: &Path| Rehearsal::lines(path, usize::MAX).context("what a test has let out cannot be read");
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

    fn shown(&self, text: usize) -> String {
        let (place, line) = &self.texts[text];
        format!("{place}: {}", text::clean(line))
    }
}

/// A cell as text: a number is what it is written as.
fn cell_text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How many of `cells` a line shows.
fn matching(cells: &Map<String, Value>, line: &Map<String, Value>) -> usize {
    cells.iter().filter(|(name, cell)| line.get(*name).is_some_and(|shown| cell_text(shown) == cell_text(cell))).count()
}

/// What of a test is not as it asks.
fn judged(test: &PolicyTest, left: &Left) -> Vec<String> {
    let mut unmet = Vec::new();
    for wanted in &test.expect {
        let cells = PolicyTest::cells(wanted).unwrap_or_default();
        if left.lines.iter().any(|(_, line)| matching(&cells, line) == cells.len()) {
            continue;
        }
        let of_group = left.lines.iter().filter(|(_, line)| cells.keys().all(|name| line.contains_key(name)));
        let mut told = format!("expected: {}\n", text::clean(wanted));
        match of_group.rev().max_by_key(|(_, line)| matching(&cells, line)) {
            Some((nearest, line)) => {
                let differ = cells
                    .iter()
                    .filter(|(name, cell)| line.get(*name).is_none_or(|shown| cell_text(shown) != cell_text(cell)));
                let differ: Vec<&str> = differ.map(|(name, _)| name.as_str()).collect();
                told += &format!(" nearest: {}\n  differs: {}", left.shown(*nearest), differ.join(", "));
            }
            None if left.lines.is_empty() => told += "     got: nothing was released",
            None => told += "     got: no line with these attributes",
        }
        unmet.push(told);
    }
    for never in &test.never {
        let found = match PolicyTest::cells(never) {
            Some(cells) => left.lines.iter().find(|(_, line)| matching(&cells, line) == cells.len()).map(|(at, _)| *at),
            None => left.texts.iter().position(|(_, line)| occurs(never, line)),
        };
        if let Some(at) = found {
            unmet.push(format!("never: {}\n  got: {}", text::clean(never), left.shown(at)));
        }
    }
    unmet
}

/// Whether a text occurs in a line, as it is or as JSON spells it.
fn occurs(text: &str, line: &str) -> bool {
    let spelled = Value::String(text.to_owned()).to_string();
    line.contains(text) || line.contains(spelled.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(lines: &[&str]) -> Left {
        let texts: Vec<(String, String)> =
            lines.iter().map(|line| ("group all".to_owned(), (*line).to_owned())).collect();
        let cells = |(at, line): (usize, &&str)| PolicyTest::cells(line).map(|cells| (at, cells));
        Left { lines: lines.iter().enumerate().filter_map(cells).collect(), texts }
    }

    #[test]
    fn what_is_expected_is_on_one_line() {
        let left = left(&[r#"{"age":"30-39","zip":"*"}"#, r#"{"age":"*","zip":"12"}"#]);
        let unmet =
            |expect: &str| judged(&PolicyTest { expect: vec![expect.to_owned()], ..PolicyTest::default() }, &left);
        assert!(unmet(r#"{"age": "30-39"}"#).is_empty() && unmet(r#"{"zip": 12}"#).is_empty());
        let told = unmet(r#"{"age": "30-39", "zip": "12"}"#);
        assert!(told.len() == 1 && told[0].contains("differs: zip"), "{told:?}");
        assert!(unmet(r#"{"name": "x"}"#)[0].contains("no line with these attributes"));
    }

    #[test]
    fn what_must_never_leave_is_found_in_any_spelling() {
        let left = left(&[r#"{"age":"30-39","name":"m\u00fcller \"x\"","n":74}"#, "anna in a dead letter"]);
        let met = |never: &str| {
            judged(&PolicyTest { never: vec![never.to_owned()], ..PolicyTest::default() }, &left).is_empty()
        };
        assert!(met("bob") && met(r#"{"age": "30"}"#));
        assert!(!met("anna") && !met("0-3") && !met("74") && !met(r#"{"n": "74"}"#) && !met("\"x\""));
    }
}
