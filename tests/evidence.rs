//! Tests reading released series together with their original, in every format, and refusal of mismatched files.

use crate::support;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use support::daemon::{Dice, scratch};
use throng::config;
use throng::daemon::state::state_keys::StateKeys;
use throng::start::schema_loading::load_schema;
use throng::start::series_settings::series_terms;
use throng_core::printable::percent;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::subject_digest::SubjectDigester;
use throng_eval::error::EvaluationError;
use throng_eval::series::SeriesEvidence;

const SCHEMA: &str = r#"
name = "days"
[[attribute]]
name = "who"
type = "string"
role = "subject"
[[attribute]]
name = "day"
type = "date"
role = "time"
changes = "always"
[[attribute]]
name = "steps"
type = "integer"
changes = "always"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 40000
widths = [1000, 5000]
[[attribute]]
name = "pulse"
type = "float"
unit = "bpm"
round = 0.5
changes = "always"
[[attribute]]
name = "sex"
type = "string"
changes = "never"
"#;

/// Subject, day, steps, pulse, sex.
pub type Day = (String, String, u64, Option<f64>, &'static str);

pub const SERIES: &str =
    "[release]\nfragments = false\n[cohort]\nstrata = [\"sex\"]\n[[series]]\nname = \"daily\"\nlateness = \"1d\"\n";

/// Some days are missing, some have two records, and some have no pulse.
pub fn days(people: u64, days: u64, seed: u64) -> Vec<Day> {
    let mut dice = Dice::new(seed);
    let mut all = Vec::new();
    for day in 0..days {
        for person in 0..people {
            for _ in 0..[0, 1, 1, 1, 1, 1, 1, 2][dice.roll(8) as usize] {
                let date = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a date") + chrono::Days::new(day);
                let sex = if person % 2 == 0 { "female" } else { "male" };
                let pulse = (dice.roll(5) > 0).then(|| 55.0 + dice.roll(300) as f64 / 10.0);
                all.push((
                    format!("p{person:03}"),
                    date.to_string(),
                    3_000 + person * 40 + dice.roll(4_000),
                    pulse,
                    sex,
                ));
            }
        }
    }
    all
}

pub fn csv(rows: &[Day]) -> String {
    let mut text = "who,day,steps,pulse,sex\n".to_owned();
    for (who, day, steps, pulse, sex) in rows {
        let pulse = pulse.map_or(String::new(), |pulse| pulse.to_string());
        writeln!(text, "{who},{day},{steps},{pulse},{sex}").expect("a text grows");
    }
    text
}

pub struct Run {
    pub config: PathBuf,
    pub sink: PathBuf,
    pub lineage: PathBuf,
    pub original: PathBuf,
    pub said: String,
}

pub fn run(dir: &Path, name: &str, sink: &str, source: &str, input: &[Day], more: &str) -> Run {
    let place = dir.display();
    fs::write(dir.join("days.toml"), SCHEMA).expect("the schema");
    fs::write(dir.join("in.csv"), csv(input)).expect("the input");
    let path = if source == "-" { "-".to_owned() } else { format!("{place}/{source}") };
    let text = format!(
        "[source]\nkind = \"file\"\npath = \"{path}\"\nformat = \"csv\"\n[sink]\nkind = \"file\"\npath = \"{place}/{sink}\"\n\
         [schema]\nfile = \"{place}/days.toml\"\n[privacy]\nk = 3\n[state]\nsecret_file = \"{place}/key\"\n{more}"
    );
    let (config, lineage) = (dir.join(format!("{name}.toml")), dir.join(format!("{name}.lineage.ndjson")));
    fs::write(&config, text).expect("the configuration");
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.arg("run").arg("-c").arg(&config).arg("--lineage").arg(&lineage);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("it runs");
    let mut stdin = process.stdin.take().expect("standard input");
    if source == "-" {
        stdin.write_all(csv(input).as_bytes()).expect("it reads");
    }
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    Run { config, sink: dir.join(sink), lineage, original: dir.join("in.csv"), said }
}

impl Run {
    pub fn evidence(&self) -> Result<SeriesEvidence, EvaluationError> {
        let config = config::load(&self.config, std::iter::empty()).expect("a configuration");
        let schema = Arc::new(load_schema(&config).expect("a schema"));
        let terms = series_terms(&config, &schema, "t.toml").expect("sound series").expect("series");
        let keys = StateKeys::derive(config.secret.as_ref().expect("a secret").expose());
        let original = throng::evaluation::original::read_original(
            &config,
            &schema,
            "t.toml",
            &self.original,
            Some(&DigestKey(keys.subjects)),
        )
        .expect("records");
        throng::evaluation::series_evidence::read_series_evidence(
            &config,
            &Arc::new(terms),
            &original,
            &self.sink,
            &self.lineage,
        )
    }

    fn digests(&self) -> impl Fn(&str) -> u64 {
        let config = config::load(&self.config, std::iter::empty()).expect("a configuration");
        let schema = load_schema(&config).expect("a schema");
        let keys = StateKeys::derive(config.secret.as_ref().expect("a secret").expose());
        let attribute = Arc::clone(&schema.attributes[schema.subject.expect("a subject")]);
        let subjects = SubjectDigester::new(attribute, &DigestKey(keys.subjects));
        move |who| subjects.digest_uncached(RawToken::Text(who)).expect("a name")
    }
}

type Means<'a> = BTreeMap<(&'a str, &'a str), (u64, Vec<Option<f64>>)>;

fn means(input: &[Day]) -> Means<'_> {
    let mut sums: BTreeMap<(&str, &str), (u64, Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (who, day, steps, pulse, _) in input {
        let of = sums.entry((who, day)).or_default();
        of.0 += 1;
        of.1.push(*steps as f64);
        // Rounded as the record schema does.
        of.2.extend(pulse.map(|pulse| (pulse * 2.0).round() / 2.0));
    }
    let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    sums.into_iter().map(|(key, (n, steps, pulse))| (key, (n, vec![mean(&steps), mean(&pulse)]))).collect()
}

#[track_caller]
fn check_contributions(evidence: &SeriesEvidence, input: &[Day], digest: &dyn Fn(&str) -> u64) {
    let naive = means(input);
    let mut compared = 0;
    for ((who, day), (records, values)) in &naive {
        let date = day.parse::<chrono::NaiveDate>().expect("a day").and_hms_opt(0, 0, 0).expect("midnight");
        let person = evidence.subject_position(digest(who)).expect("a person");
        let found = &evidence.contributions[&(0, date.and_utc().timestamp_millis())][&person];
        assert_eq!(found.records, *records);
        for (found, value) in found.values.iter().zip(values) {
            assert!(match (found, value) {
                (Some(found), Some(value)) => (found - value).abs() < 1e-9,
                (found, value) => found == value,
            });
        }
        compared += 1;
    }
    assert_eq!(evidence.contributions.values().map(BTreeMap::len).sum::<usize>(), compared);
    let mut of_sets = 0;
    for row in &evidence.rows {
        let members: Vec<usize> = evidence.members_of_row(row).collect();
        assert!(row.sets.is_empty() || members.len() as u64 == row.n, "{row:?}");
        assert_eq!(members.iter().collect::<BTreeSet<_>>().len(), members.len());
        of_sets += usize::from(!row.sets.is_empty());
    }
    assert!(of_sets > 30, "{of_sets} rows of contributor sets");
}

/// Computes the error of JSON rows: the median over signals of the median over days.
fn naive_error(rows: &[Value], input: &[Day]) -> f64 {
    let naive = means(input);
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
    };
    let mut of_signals = Vec::new();
    for (at, signal) in ["steps", "pulse"].into_iter().enumerate() {
        let mut errors = Vec::new();
        for row in rows
            .iter()
            .filter(|row| row["signal"] == signal && row["cohort"].is_null() && row["stratum"]["sex"].is_null())
        {
            let of_day = naive.iter().filter(|((_, day), _)| *day == row["bucket"]);
            let values: Vec<f64> = of_day.filter_map(|(_, (_, values))| values[at]).collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let sd = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            errors.push((row["mean"].as_f64().expect("a mean") - mean).abs() / (sd / n.sqrt()));
        }
        of_signals.push(median(errors));
    }
    median(of_signals)
}

fn json_rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("rows");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

#[test]
fn series_evidence_in_every_format_equals_a_recount() {
    let dir = scratch();
    let input = days(40, 30, 11);
    let one = run(dir.path(), "one", "out.ndjson", "in.csv", &input, SERIES);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&one.lineage).expect("a lineage").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let first = one.evidence().expect("evidence");
    check_contributions(&first, &input, &one.digests());
    let rows = json_rows(&one.sink);
    assert_eq!(first.rows.len(), rows.len());
    for (row, json) in first.rows.iter().zip(&rows) {
        let mean = row.mean_statistic().map(|statistic| statistic.mean);
        assert_eq!((mean, Some(row.n)), (json["mean"].as_f64(), json["n"].as_u64()));
    }
    let useful = first.series_utility();
    let members: BTreeSet<usize> =
        first.rows.iter().flat_map(|row| first.members_of_row(row).collect::<Vec<_>>()).collect();
    assert_eq!((useful.people, useful.people_represented), (40, members.len() as u64));
    assert_eq!(useful.records, input.len() as u64);
    let share = useful.records_represented as f64 / useful.records as f64;
    // The run counts records of closed buckets with separate code.
    assert!(
        one.said.contains(&format!("{} of 40 people and {} of the records", members.len(), percent(share))),
        "{}",
        one.said
    );
    let naive = naive_error(&rows, &input);
    assert!((useful.error_ratio.expect("a ratio") - naive).abs() < 1e-9, "{useful:?}, expected {naive}");
    for (name, sink) in [("two", "out.csv"), ("three", "out.parquet")] {
        let other = run(dir.path(), name, sink, "in.csv", &input, SERIES).evidence().expect("evidence");
        assert_eq!((&other.rows, other.series_utility()), (&first.rows, useful), "{sink}");
        assert_eq!(other.lineage.cohorts, first.lineage.cohorts, "{sink}");
    }
}

#[test]
fn pooled_series_rows_have_the_sets_of_all_cohorts() {
    let dir = scratch();
    let input = days(40, 20, 12);
    let pooled = run(dir.path(), "one", "out.ndjson", "in.csv", &input, &format!("{SERIES}pooled = true\n"));
    let evidence = pooled.evidence().expect("evidence");
    check_contributions(&evidence, &input, &pooled.digests());
    assert!(evidence.rows.iter().any(|row| row.sets.len() > 1), "one cohort only");
    assert!(evidence.series_utility().error_ratio.expect("a ratio") < 1.0);
}

#[test]
fn late_stream_records_are_in_the_lineage_without_contribution() {
    let dir = scratch();
    let mut input = days(30, 40, 13);
    let late = input.iter().position(|(_, day, ..)| day == "2026-01-20").expect("a day");
    let record = input.remove(late);
    input.push(record.clone());
    let stream = run(dir.path(), "one", "out.ndjson", "-", &input, SERIES);
    assert!(stream.said.contains("1 record late"), "{}", stream.said);
    let evidence = stream.evidence().expect("evidence");
    assert_eq!(evidence.lineage.dropped, BTreeSet::from([(input.len() as i64 - 1, 0, 0)]));
    input.pop();
    check_contributions(&evidence, &input, &stream.digests());
}

#[test]
fn lineage_contains_fragments_and_series() {
    let dir = scratch();
    let input = days(30, 10, 14);
    let both = run(dir.path(), "one", "out.ndjson", "in.csv", &input, "[[series]]\nname = \"daily\"\n");
    let evidence = both.evidence();
    assert!(evidence.is_ok(), "{:?}", evidence.err());
    let text = fs::read_to_string(&both.lineage).expect("a lineage");
    assert!(
        text.lines().any(|line| line.starts_with("{\"source\""))
            && text.lines().any(|line| line.starts_with("{\"set\""))
    );
    let output = Command::new(env!("CARGO_BIN_EXE_throng"))
        .arg("evaluate")
        .args([&both.original, &dir.path().join("out.ndjson")])
        .arg("-c")
        .arg(&both.config)
        .arg("--lineage")
        .arg(&both.lineage)
        .arg("--json")
        .arg("--html")
        .arg(dir.path().join("page.html"))
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(dir.path().join("page.html")).expect("a page");
    assert_eq!(page.matches("<path class=\"everybody\"").count(), 2, "a chart of each signal");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["usefulness"]["series"]["people"], 30);
    assert!(report["quality"]["lines"].as_u64() > Some(0));
}

#[test]
fn moments_represented_records_agree_in_all_reports() {
    let dir = scratch();
    // Four whole weeks with four complete days of most subjects.
    let mut input = days(40, 32, 16);
    input.retain(|day| day.1.as_str() >= "2026-01-05");
    let more = "[release]\nfragments = false\nmin_represented = 0.4\n[[series]]\nname = \"model\"\nmoments = \"7d\"\n";
    let sound = run(dir.path(), "one", "out.ndjson", "in.csv", &input, more);
    let arguments = |command: &str| {
        let mut arguments = Command::new(env!("CARGO_BIN_EXE_throng"));
        arguments.arg(command).arg("-c").arg(&sound.config).arg("--lineage").arg(&sound.lineage).arg("--json");
        arguments
    };
    let page = dir.path().join("page.html");
    let evaluate = arguments("evaluate").args([&sound.original, &sound.sink]).arg("--html").arg(&page).output();
    let output = evaluate.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let found = &report["usefulness"]["series"];
    // Records of complete days, of subjects with four such days in the week.
    let mut of_days: BTreeMap<(&str, &str), (u64, bool)> = BTreeMap::new();
    for (who, day, _, pulse, _) in &input {
        let of_day = of_days.entry((who, day)).or_default();
        *of_day = (of_day.0 + 1, of_day.1 || pulse.is_some());
    }
    let mut weeks: BTreeMap<(&str, i64), Vec<u64>> = BTreeMap::new();
    for ((who, day), (records, _)) in of_days.iter().filter(|(_, (_, is_complete))| *is_complete) {
        let date: chrono::NaiveDate = day.parse().expect("a date");
        let monday = chrono::NaiveDate::from_ymd_opt(1970, 1, 5).expect("a date");
        weeks.entry((who, (date - monday).num_days().div_euclid(7))).or_default().push(*records);
    }
    let counted: u64 = weeks.values().filter(|days| days.len() >= 4).flatten().sum();
    assert_eq!(found["people_represented"], 40, "{found}");
    assert_eq!(found["records_represented"], counted, "{found}");
    let share = format!("40 of 40 people and {} of the records", percent(counted as f64 / input.len() as f64));
    assert!(sound.said.contains(&share), "{share}: {}", sound.said);
    let page = fs::read_to_string(page).expect("a page");
    assert!(
        page.contains("Only means and covariances of steps, pulse over epochs of 1w are released")
            && !page.contains("<path")
    );
    let mut attack = arguments("attack");
    attack.arg(&sound.sink).arg("--original").arg(&sound.original);
    let output = attack.args(["--fail-above", "promise"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let yields: Vec<Value> = serde_json::from_slice(&output.stdout).expect("yields");
    let of = |attack: &str| yields.iter().find(|found| found["attack"] == attack).expect("an attack").clone();
    assert!(of("series: isolation")["trials"].as_u64() > Some(1), "sets of moments are counted: {yields:#?}");
    assert!(of("series: differencing")["trials"].as_u64() > Some(10), "means of epochs are differenced: {yields:#?}");
    let strict = sound.config.with_file_name("strict.toml");
    let text = fs::read_to_string(&sound.config).expect("a configuration").replace("= 0.4", "= 0.99");
    fs::write(&strict, text).expect("a file of ours");
    let refused = Command::new(env!("CARGO_BIN_EXE_throng")).arg("run").arg("-c").arg(strict).output();
    assert_eq!(refused.expect("it runs").status.code(), Some(4), "represents less than it must");
}

/// Linear model of the pulse by the steps.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    weight: f64,
    steps: f64,
    pulse: f64,
    variance: f64,
    covariance: f64,
}

impl Line {
    fn of(rows: &[(f64, f64, f64)]) -> Self {
        let weight: f64 = rows.iter().map(|row| row.2).sum();
        let mean = |of: &dyn Fn(&(f64, f64, f64)) -> f64| rows.iter().map(|row| row.2 * of(row)).sum::<f64>() / weight;
        let (steps, pulse) = (mean(&|row| row.0), mean(&|row| row.1));
        let variance = mean(&|row| (row.0 - steps).powi(2));
        Self { weight, steps, pulse, variance, covariance: mean(&|row| (row.0 - steps) * (row.1 - pulse)) }
    }

    fn slope(&self) -> f64 {
        self.covariance / self.variance
    }

    fn explained(&self, rows: &[(f64, f64, f64)]) -> f64 {
        let mean = Self::of(rows).pulse;
        let error = |row: &(f64, f64, f64)| row.1 - self.pulse - self.slope() * (row.0 - self.steps);
        let squares =
            |of: &dyn Fn(&(f64, f64, f64)) -> f64| rows.iter().map(|row| row.2 * of(row).powi(2)).sum::<f64>();
        1.0 - squares(&error) / squares(&|row| row.1 - mean)
    }
}

/// Returns exit code, standard output and standard error.
fn model_of_pulse(sound: &Run, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.arg("evaluate").args([&sound.original, &sound.sink]).arg("-c").arg(&sound.config);
    let output = command.args(["--target", "pulse"]).args(more).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn add_pulse_by_steps(days: &mut [Day]) {
    let mut dice = Dice::new(3);
    for (_, _, steps, pulse, _) in days {
        *pulse = pulse.map(|_| 50.0 + (*steps / 500) as f64 + dice.roll(12) as f64 / 2.0);
    }
}

/// Compared with least squares on the records, and with moments pooled from the released rows, both computed here.
#[test]
fn moments_model_is_compared_with_the_model_of_the_records() {
    let dir = scratch();
    let mut input = days(60, 28, 17);
    add_pulse_by_steps(&mut input);
    let more = "[release]\nfragments = false\n[[series]]\nname = \"model\"\nmoments = \"7d\"\n";
    let sound = run(dir.path(), "one", "out.ndjson", "in.csv", &input, more);
    let lineage = sound.lineage.display().to_string();
    let page = dir.path().join("page.html").display().to_string();
    let (code, out, said) = model_of_pulse(&sound, &["--lineage", &lineage, "--json", "--html", &page]);
    assert_eq!(code, Some(0), "{said}");
    let report: Value = serde_json::from_str(&out).expect("a report");
    let model = &report["models"][0];
    let mut of_days: BTreeMap<(&str, &str), [(f64, f64); 2]> = BTreeMap::new();
    for (who, day, steps, pulse, _) in &input {
        let sums = of_days.entry((who, day)).or_default();
        sums[0] = (sums[0].0 + *steps as f64, sums[0].1 + 1.0);
        if let Some(pulse) = pulse {
            sums[1] = (sums[1].0 + pulse, sums[1].1 + 1.0);
        }
    }
    let monday = chrono::NaiveDate::from_ymd_opt(1970, 1, 5).expect("a date");
    let mut weeks: BTreeMap<(&str, i64), Vec<(f64, f64)>> = BTreeMap::new();
    for ((who, day), [steps, pulse]) in of_days.iter().filter(|(_, sums)| sums[1].1 > 0.0) {
        let week = (day.parse::<chrono::NaiveDate>().expect("a date") - monday).num_days().div_euclid(7);
        weeks.entry((who, week)).or_default().push((steps.0 / steps.1, pulse.0 / pulse.1));
    }
    let rows: Vec<(f64, f64, f64)> = weeks
        .values()
        .flat_map(|days| days.iter().map(|(steps, pulse)| (*steps, *pulse, 1.0 / days.len() as f64)))
        .collect();
    let mut parts: BTreeMap<(String, String), Line> = BTreeMap::new();
    for row in json_rows(&sound.sink) {
        let part = parts.entry((row["cohort"].to_string(), row["bucket"].to_string())).or_default();
        part.weight = row["n"].as_f64().expect("people");
        let number = |name: &str| row[name].as_f64().expect("a number");
        match (row["signal"].as_str(), row["with"].as_str()) {
            (Some("steps"), Some("steps")) => (part.steps, part.variance) = (number("mean"), number("covariance")),
            (Some("pulse"), Some("pulse")) => part.pulse = number("mean"),
            _ => part.covariance = number("covariance"),
        }
    }
    let weight: f64 = parts.values().map(|part| part.weight).sum();
    let mean = |of: &dyn Fn(&Line) -> f64| parts.values().map(|part| part.weight * of(part)).sum::<f64>() / weight;
    let (steps, pulse) = (mean(&|part| part.steps), mean(&|part| part.pulse));
    let pooled = Line {
        weight,
        steps,
        pulse,
        variance: mean(&|part| part.variance + (part.steps - steps).powi(2)),
        covariance: mean(&|part| part.covariance + (part.steps - steps) * (part.pulse - pulse)),
    };
    let whole = Line::of(&rows);
    let is_near = |found: &Value, exact: f64| {
        let found = found.as_f64().expect("a number");
        assert!((found - exact).abs() <= 1e-9 * exact.abs(), "{found} against {exact}: {model}");
    };
    is_near(&model["r2_original"], whole.explained(&rows));
    is_near(&model["r2_moments"], pooled.explained(&rows));
    let coefficient = &model["coefficients"][0];
    assert_eq!(coefficient["signal"], "steps");
    is_near(&coefficient["original"], whole.slope());
    is_near(&coefficient["moments"], pooled.slope());
    assert_eq!((model["rows"].as_u64(), model["parts"].as_u64()), (Some(rows.len() as u64), Some(parts.len() as u64)));
    assert_eq!(model["missing"], serde_json::json!([]));
    // Rounded: within half a standard error.
    let error = coefficient["standard_error"].as_f64().expect("an error");
    assert!((pooled.slope() - whole.slope()).abs() < error / 2.0, "{model}");
    assert!(pooled.explained(&rows) > 0.98 * whole.explained(&rows) && whole.explained(&rows) > 0.5, "{model}");
    assert!(fs::read_to_string(&page).expect("a page").contains("Linear model of pulse"));
    let (code, out, _) = model_of_pulse(&sound, &["--lineage", &lineage]);
    assert!(code == Some(0) && out.contains("from moments ÷ before") && out.contains("largest difference"), "{out}");
    let (code, _, said) = model_of_pulse(&sound, &[]);
    assert!(code == Some(2) && said.contains("--lineage"), "{said}");
}

/// One subject dominates the pulse of a cohort.
#[test]
fn moments_that_one_subject_dominates_are_named_and_omitted() {
    let dir = scratch();
    let mut input = days(60, 28, 17);
    add_pulse_by_steps(&mut input);
    let more = "[release]\nfragments = false\n[[series]]\nname = \"model\"\nmoments = \"7d\"\n";
    input.iter_mut().filter(|day| day.0 == "p001").for_each(|day| day.3 = day.3.map(|pulse| pulse * 1e5));
    let sound = run(dir.path(), "two", "two.ndjson", "in.csv", &input, more);
    let lineage = sound.lineage.display().to_string();
    let (_, out, said) = model_of_pulse(&sound, &["--lineage", &lineage, "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {said}"));
    let missing = &report["models"][0]["missing"];
    assert_eq!(missing[0]["signals"], serde_json::json!(["pulse"]), "{missing}");
    assert!(missing[0]["parts"].as_u64() >= Some(3), "{missing}");
}

#[test]
fn foreign_series_rows_are_refused_with_file_and_line() {
    let dir = scratch();
    let input = days(30, 12, 15);
    for (name, sink) in [("one", "out.ndjson"), ("two", "out.csv")] {
        let sound = run(dir.path(), name, sink, "in.csv", &input, SERIES);
        let text = fs::read_to_string(&sound.sink).expect("rows");
        let lines: Vec<&str> = text.lines().collect();
        let sixth = lines[5];
        for (from, to) in [
            ("daily", "weekly"),
            ("2026-01", "2026-1"),
            ("1d", "24h"),
            ("steps", "strides"),
            ("pulse", "heart"),
            ("\"n\":", "\"n\": "),
            (",0,", ",0.0,"),
            ("\"filled\":", "\"who\":\"p001\",\"filled\":"),
            ("bpm", "Hz"),
        ] {
            if !sixth.contains(from) {
                continue;
            }
            let mut spoiled: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            spoiled[5] = sixth.replace(from, to);
            fs::write(&sound.sink, spoiled.join("\n") + "\n").expect("a file of ours");
            let error = sound.evidence().expect_err("a row that is not spelled so");
            assert!(matches!(&error, EvaluationError::Line { line: 6, .. }), "{from} → {to}: {error}");
        }
        fs::write(&sound.sink, text.trim_end()).expect("a file of ours");
        let error = sound.evidence().expect_err("a cut line");
        assert!(matches!(&error, EvaluationError::Line { line, .. } if *line == lines.len() as u64), "{error}");
    }
}

#[test]
fn series_evidence_with_another_secret_or_lineage_is_refused() {
    let dir = scratch();
    let input = days(30, 12, 16);
    let sound = run(dir.path(), "one", "out.ndjson", "in.csv", &input, SERIES);
    let text = fs::read_to_string(&sound.lineage).expect("a lineage");
    let without_sets: String =
        text.lines().filter(|line| !line.starts_with("{\"set\"")).map(|line| format!("{line}\n")).collect();
    fs::write(&sound.lineage, without_sets).expect("a file of ours");
    assert!(matches!(sound.evidence(), Err(EvaluationError::Line { line: 1, .. })));
    fs::write(&sound.lineage, text.replacen("\"atoms\":[0", "\"atoms\":[9", 1)).expect("a file of ours");
    assert!(matches!(sound.evidence(), Err(EvaluationError::LineageEntry { .. })));
    fs::write(&sound.lineage, &text).expect("a file of ours");
    assert!(sound.evidence().is_ok());
    fs::write(dir.path().join("key"), "another secret, which is long enough").expect("a file of ours");
    assert!(matches!(sound.evidence(), Err(EvaluationError::ForeignSubjects { .. })));
}
