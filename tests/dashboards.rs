//! The dashboard and the alert rules parse, fit together and name only metrics that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::{Value, json};

/// Every metric that a dashboard or an alert may name, with its labels.
const METRICS: [(&str, &[&str]); 46] = [
    ("throng_batch_duration_seconds", &["stage"]),
    ("throng_batches_total", &["outcome"]),
    ("throng_build_info", &["version"]),
    ("throng_bytes_total", &["direction"]),
    ("throng_cells_exact_share", &[]),
    ("throng_dampened_cells_total", &[]),
    ("throng_dead_letters_total", &["stage", "reason"]),
    ("throng_dictionary_values", &[]),
    ("throng_gpu_copied_bytes_total", &["direction"]),
    ("throng_gpu_fallbacks_total", &[]),
    ("throng_gpu_launches_total", &[]),
    ("throng_gpu_lost", &[]),
    ("throng_gpu_memory_bytes", &[]),
    ("throng_gpu_sets_left_total", &[]),
    ("throng_gpu_window_fills_total", &[]),
    ("throng_information_loss", &[]),
    ("throng_ledger_bytes", &[]),
    ("throng_ledger_classes", &[]),
    ("throng_ledger_shown_values", &[]),
    ("throng_limit_reached_total", &["limit"]),
    ("throng_minimal_qids", &[]),
    ("throng_model_bytes", &[]),
    ("throng_model_edges", &[]),
    ("throng_model_left_out_pairs", &[]),
    ("throng_model_nodes", &[]),
    ("throng_plan_drift", &[]),
    ("throng_plan_expected_loss", &[]),
    ("throng_plan_search_seconds", &[]),
    ("throng_planner_failures_total", &[]),
    ("throng_plans_total", &[]),
    ("throng_privacy_k", &[]),
    ("throng_process_resident_memory_bytes", &[]),
    ("throng_ready", &[]),
    ("throng_recheck_complete", &[]),
    ("throng_records_below_k_share", &["picture"]),
    ("throng_records_held", &[]),
    ("throng_records_total", &["outcome"]),
    ("throng_reidentification_risk", &["picture", "statistic"]),
    ("throng_source_lag_records", &[]),
    ("throng_state_free_bytes", &[]),
    ("throng_suppressed_records_total", &["reason"]),
    ("throng_verification_refusals_total", &[]),
    ("throng_window_records", &[]),
    ("throng_withheld_cells_total", &[]),
    // What every scraped target has.
    ("up", &[]),
    ("ALERTS", &["alertname", "severity", "alertstate"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("dashboards/throng.json")).expect("dashboards/throng.json is JSON")
}

/// Every expression of the dashboard beside its panel's title.
fn expressions(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut found = Vec::new();
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = panel["title"].as_str().expect("a title").to_owned();
            found.push((title, target["expr"].as_str().expect("an expression").to_owned()));
        }
    }
    found
}

/// The metrics in an expression and the labels that it selects or groups by.
fn names(expression: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut metrics, mut labels) = (BTreeSet::new(), BTreeSet::new());
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut unquoted = String::new();
    for (index, part) in expression.split('"').enumerate() {
        unquoted.push_str(if index % 2 == 0 { part } else { "\"\"" });
    }
    for (at, token) in unquoted.split(|c| !word(c)).scan(0, |at, token| {
        let here = *at;
        *at += token.len() + 1;
        Some((here, token))
    }) {
        let after = unquoted[at + token.len()..].trim_start();
        if token.starts_with("throng_") {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| token.strip_suffix(end)).unwrap_or(token);
            metrics.insert(base.to_owned());
        } else if after.starts_with('=') || after.starts_with("!=") {
            labels.insert(token.to_owned());
        }
    }
    for grouping in unquoted.split(" by (").skip(1).filter_map(|rest| rest.split(')').next()) {
        labels.extend(grouping.split(',').map(|label| label.trim().to_owned()));
    }
    (metrics, labels)
}

fn assert_names_known(place: &str, expression: &str) {
    let known: BTreeMap<&str, &[&str]> = METRICS.into_iter().collect();
    let (metrics, labels) = names(expression);
    let mut allowed = BTreeSet::from(["job", "instance", "le"]);
    for metric in &metrics {
        let own = known.get(metric.as_str()).unwrap_or_else(|| panic!("{place}: unknown metric {metric}"));
        allowed.extend(own.iter());
    }
    for label in labels.iter().filter(|l| !l.is_empty()) {
        assert!(allowed.contains(label.as_str()), "{place}: no metric of it has the label {label}: {expression}");
    }
}

/// Runs promtool; `None`, said loudly, where it is not installed.
fn promtool(arguments: &[&str]) -> Option<(bool, String)> {
    match Command::new("promtool").args(arguments).current_dir(root()).output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned()).concat();
            Some((output.status.success(), text))
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: promtool is not installed; `./dev setup test` fetches it");
            None
        }
        Err(why) => panic!("promtool: {why}"),
    }
}

fn check(expressions: &[(String, String)]) -> Option<(bool, String)> {
    let rules: Vec<Value> = expressions
        .iter()
        .enumerate()
        .map(|(index, (_, expression))| {
            let expression = expression.replace("$__rate_interval", "1m").replace("$__range", "1h");
            json!({ "record": format!("panel_{index}"), "expr": expression })
        })
        .collect();
    // JSON is YAML.
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string())
        .expect("written");
    promtool(&["check", "rules", &file.path().to_string_lossy()])
}

#[test]
fn every_expression_of_the_dashboard_is_valid_promql() {
    let expressions = expressions(&dashboard());
    assert!(expressions.len() > 20, "only {} expressions found", expressions.len());
    let Some((accepted, said)) = check(&expressions) else { return };
    assert!(accepted, "{said}");
    let broken = [("broken".to_owned(), "sum(rate(throng_records_total[$__rate_interval])".to_owned())];
    assert_eq!(check(&broken).map(|(accepted, _)| accepted), Some(false), "promtool accepts anything");
}

#[test]
fn dashboard_and_alerts_name_only_metrics_that_exist() {
    for (title, expression) in expressions(&dashboard()) {
        assert_names_known(&title, &expression);
    }
    for rule in read("deploy/prometheus/alerts.yml").split("- alert: ").skip(1) {
        let alert = rule.lines().next().unwrap_or_default();
        let expression = rule.split("expr:").nth(1).and_then(|r| r.split(" for: ").next()).unwrap_or_default();
        let expression = expression.split("labels: {").next().unwrap_or_default().replace(">-", "");
        assert!(!expression.trim().is_empty(), "{alert} has no expression");
        assert_names_known(alert, &expression);
    }
}

#[test]
fn every_metric_named_here_is_written_in_the_telemetry() {
    let mut source = String::new();
    let folder = root().join("src/telemetry");
    for entry in fs::read_dir(&folder).expect("src/telemetry") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            source.push_str(&fs::read_to_string(path).expect("readable"));
        }
    }
    if !source.contains("prometheus") {
        eprintln!("SKIPPED: src/telemetry has no metrics yet");
        return;
    }
    let missing: Vec<&str> = METRICS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| name.starts_with("throng_") && !source.contains(&format!("\"{name}\"")))
        .collect();
    assert!(missing.is_empty(), "named by dashboards or alerts, not in src/telemetry: {missing:?}");
}

#[test]
fn the_alert_rules_fire_when_they_should_and_only_then() {
    let Some((accepted, said)) = promtool(&["check", "rules", "deploy/prometheus/alerts.yml"]) else { return };
    assert!(accepted, "{said}");
    let (passed, said) = promtool(&["test", "rules", "deploy/prometheus/alerts.test.yml"]).expect("promtool is there");
    assert!(passed, "{said}");
}

#[test]
fn every_alert_has_a_test_and_a_runbook() {
    let (rules, tests) = (read("deploy/prometheus/alerts.yml"), read("deploy/prometheus/alerts.test.yml"));
    let runbook = read("docs/operation.md");
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).filter_map(|r| r.lines().next()).collect();
    assert!(alerts.len() > 10, "only {} alerts found", alerts.len());
    for alert in alerts {
        assert!(
            tests.contains(&format!("alertname: {alert} }}")),
            "{alert} is not tested to be silent when all is well"
        );
        assert!(
            tests.contains(&format!("alertname=\"{alert}\"")) || tests.contains(&format!("alertname: {alert}\n")),
            "{alert} is not tested to fire"
        );
        assert!(runbook.contains(&format!("### {alert}\n")), "docs/operation.md has no runbook for {alert}");
    }
}

#[test]
fn panels_have_their_own_ids_and_places() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}: its id is taken");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap_or_else(|| panic!("{title}: no {key}"));
        assert!(at("x") + at("w") <= 24, "{title} hangs over the edge");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{title} covers another panel at ({x}, {y})");
            }
        }
    }
}

#[test]
fn what_the_planner_and_the_models_say_is_on_the_dashboard() {
    let drawn: BTreeSet<String> = expressions(&dashboard()).iter().flat_map(|(_, text)| names(text).0).collect();
    let wanted =
        ["throng_model_", "throng_plan_", "throng_plans_", "throng_planner_", "throng_minimal_", "throng_withheld_"];
    let all = METRICS.iter().map(|(name, _)| *name);
    let missing: Vec<&str> =
        all.filter(|name| wanted.iter().any(|start| name.starts_with(start)) && !drawn.contains(*name)).collect();
    assert!(missing.is_empty(), "no panel has {missing:?}");
    // Every gauge of the model that the daemon writes is among those.
    let source = read("src/telemetry/metrics.rs");
    for name in source.split('"').filter(|text| text.starts_with("throng_model_")) {
        assert!(drawn.contains(name), "no panel has {name}");
    }
}
