//! Checks that dashboards, recording rules and alert rules use only emitted metrics, and that every alert can fire.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::{Value, json};
use throng::telemetry::{Label, RejectionReason, SourceLag, Telemetry};

const OF_PROMETHEUS: [(&str, &[&str]); 2] = [("up", &[]), ("ALERTS", &["alertname", "severity", "alertstate"])];

/// The uid in links is `throng-` and the name.
const DASHBOARDS: [&str; 3] = ["privacy", "pipeline", "model"];

/// Configured groups and attributes, partitions of the source, and the version of the build.
const OPEN_LABELS: [&str; 5] = ["group", "attribute", "topic", "partition", "version"];

type Metrics = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn emitted_and_recorded() -> Metrics {
    let mut metrics = emitted();
    for (name, expression) in recordings() {
        let kept = groupings(&expression);
        let of = names(&expression).0;
        let labels = of.iter().filter_map(|metric| metrics.get(metric)).flatten();
        let kept: BTreeMap<String, BTreeSet<String>> = labels
            .filter(|(label, _)| kept.contains(*label))
            .map(|(label, values)| (label.clone(), values.clone()))
            .collect();
        metrics.insert(name, kept);
    }
    metrics
}

fn emitted() -> Metrics {
    let mut metrics = Metrics::new();
    let telemetry = Telemetry::new(5, &["person".to_owned()]).with_attribute_series(&["age"]);
    SourceLag { partitions: &[("raw", 0, Some(0))] }.emit(&telemetry);
    for line in telemetry.render().lines().filter(|line| !line.starts_with('#')) {
        let series = line.rsplit_once(' ').expect("a series and its value").0;
        let (name, labels) = parts_of(series);
        let of_metric = metrics.entry(family_of(&name).to_owned()).or_default();
        for (label, value) in labels.into_iter().filter(|(label, _)| label != "le") {
            of_metric.entry(label).or_default().insert(value);
        }
    }
    metrics
}

fn family_of(name: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

fn parts_of(series: &str) -> (String, Vec<(String, String)>) {
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    (name.to_owned(), matchers(labels))
}

fn matchers(expression: &str) -> Vec<(String, String)> {
    let quoted: Vec<&str> = expression.split('"').collect();
    let pairs = quoted.chunks_exact(2).filter_map(|pair| {
        let label =
            pair[0].trim_end_matches(['=', '!', '~']).rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        Some((label.to_owned(), pair[1].to_owned()))
    });
    pairs.collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn dashboards() -> Vec<(&'static str, Value)> {
    let parse = |name: &str| {
        let text = read(&format!("dashboards/{name}.json"));
        serde_json::from_str::<Value>(&text).unwrap_or_else(|why| panic!("dashboards/{name}.json: {why}"))
    };
    DASHBOARDS.iter().map(|&name| (name, parse(name))).collect()
}

fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, dashboard) in dashboards() {
        for panel in dashboard["panels"].as_array().expect("panels") {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let title = panel["title"].as_str().expect("a title");
                let expression = target["expr"].as_str().expect("an expression");
                found.push((format!("{name}: {title}"), expression.to_owned()));
            }
        }
        for mark in dashboard["annotations"]["list"].as_array().expect("marks") {
            let expression = mark["expr"].as_str().expect("an expression");
            found.push((format!("{name}: {}", mark["name"]), expression.to_owned()));
        }
    }
    found
}

fn names(expression: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut metrics, mut labels) = (BTreeSet::new(), BTreeSet::new());
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let unquoted = unquoted(expression);
    for (at, token) in unquoted.split(|c| !word(c)).scan(0, |at, token| {
        let here = *at;
        *at += token.len() + 1;
        Some((here, token))
    }) {
        let after = unquoted[at + token.len()..].trim_start();
        if ["throng_", "throng:", "process_"].iter().any(|start| token.starts_with(start)) {
            metrics.insert(family_of(token).to_owned());
        } else if after.starts_with('=') || after.starts_with("!=") {
            labels.insert(token.to_owned());
        }
    }
    labels.extend(groupings(expression));
    (metrics, labels)
}

fn unquoted(expression: &str) -> String {
    expression.split('"').enumerate().map(|(index, part)| if index % 2 == 0 { part } else { "\"\"" }).collect()
}

fn groupings(expression: &str) -> BTreeSet<String> {
    let unquoted = unquoted(expression);
    let lists = unquoted.split(" by (").skip(1).filter_map(|rest| rest.split(')').next());
    lists.flat_map(|list| list.split(',')).map(|label| label.trim().to_owned()).collect()
}

fn assert_names_known(emitted: &Metrics, place: &str, expression: &str) {
    let (metrics, labels) = names(expression);
    let mut allowed = BTreeSet::from(["job", "instance", "le"]);
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for metric in &metrics {
        let own = emitted.get(metric).unwrap_or_else(|| panic!("{place}: unknown metric {metric}"));
        allowed.extend(own.keys().map(String::as_str));
        for (label, of_label) in own {
            values.entry(label).or_default().extend(of_label.iter().map(String::as_str));
        }
    }
    allowed.extend(OF_PROMETHEUS.iter().filter(|(name, _)| expression.contains(name)).flat_map(|(_, labels)| *labels));
    for label in labels.iter().filter(|l| !l.is_empty()) {
        assert!(allowed.contains(label.as_str()), "{place}: no metric of it has the label {label}: {expression}");
    }
    for (label, value) in matchers(expression) {
        let Some(known) = values.get(label.as_str()).filter(|_| !OPEN_LABELS.contains(&label.as_str())) else {
            continue;
        };
        let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        assert!(!plain || known.contains(value.as_str()), "{place}: {label} is never {value}: {expression}");
    }
}

fn alerts() -> Vec<(String, String)> {
    let rules = read("deploy/prometheus/alerts.yml");
    let of = |rule: &str| {
        let alert = rule.lines().next().unwrap_or_default().to_owned();
        let expression = rule.split("expr:").nth(1).and_then(|r| r.split(" for: ").next()).unwrap_or_default();
        let expression = expression.split("labels: {").next().unwrap_or_default().replace(">-", "");
        assert!(!expression.trim().is_empty(), "{alert} has no expression");
        (alert, expression)
    };
    let alerts: Vec<(String, String)> = rules.split("- alert: ").skip(1).map(of).collect();
    assert!(alerts.len() > 10, "only {} alerts found", alerts.len());
    alerts
}

fn recordings() -> Vec<(String, String)> {
    let rules = read("deploy/prometheus/recordings.yml");
    let of = |rule: &str| {
        let name = rule.lines().next().unwrap_or_default().to_owned();
        let expression = rule.split("expr:").nth(1).and_then(|r| r.split("\n\n").next()).unwrap_or_default();
        assert!(!expression.trim().is_empty(), "{name} has no expression");
        (name, expression.replace(">-", ""))
    };
    rules.split("- record: ").skip(1).map(of).collect()
}

struct AlertTest {
    series: Vec<String>,
    silent: BTreeSet<String>,
    firing: BTreeSet<String>,
}

fn alert_tests() -> Vec<AlertTest> {
    let text = read("deploy/prometheus/alerts.test.yml");
    let of = |test: &str| {
        let named = |line: &str, before: &str, after: &str| {
            Some(line.split_once(before)?.1.split(after).next()?.trim().to_owned())
        };
        let lines = || test.lines().map(str::trim);
        let silent =
            lines().filter(|line| line.starts_with("- { eval_time")).filter_map(|l| named(l, "alertname:", "}"));
        let whole = lines().filter_map(|line| line.strip_prefix("alertname:")).map(|name| name.trim().to_owned());
        let sampled =
            lines().filter(|line| line.starts_with("- { labels")).filter_map(|l| named(l, "alertname=\"", "\""));
        AlertTest {
            series: lines().filter_map(|line| named(line, "series: '", "'")).collect(),
            silent: silent.collect(),
            firing: whole.chain(sampled).collect(),
        }
    };
    text.split("  - interval:").skip(1).map(of).collect()
}

/// Returns `None` if promtool is not installed.
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
    // JSON is valid YAML.
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string())
        .expect("written");
    promtool(&["check", "rules", &file.path().to_string_lossy()])
}

#[test]
fn dashboard_expressions_are_valid_promql() {
    let expressions = expressions();
    assert!(expressions.len() > 100, "only {} expressions found", expressions.len());
    let Some((accepted, said)) = check(&expressions) else { return };
    assert!(accepted, "{said}");
    let broken = [("broken".to_owned(), "sum(rate(throng_records_total[$__rate_interval])".to_owned())];
    assert_eq!(check(&broken).map(|(accepted, _)| accepted), Some(false), "promtool accepts anything");
}

#[test]
fn dashboards_recordings_and_alerts_use_only_emitted_metrics() {
    for (name, expression) in recordings() {
        assert_names_known(&emitted(), &name, &expression);
    }
    let emitted = emitted_and_recorded();
    for (title, expression) in expressions() {
        assert_names_known(&emitted, &title, &expression);
    }
    for (alert, expression) in alerts() {
        assert_names_known(&emitted, &alert, &expression);
    }
    let wrong = [
        "throng_no_such_metric",
        "throng_ready{stage=\"read\"}",
        "throng_batches_total{outcome=\"lost\"}",
        "throng:not:recorded",
        "throng:records:unaccounted{outcome=\"released\"}",
    ];
    for expression in wrong {
        let refused = std::panic::catch_unwind(|| assert_names_known(&emitted, "a test", expression));
        assert!(refused.is_err(), "{expression} passes");
    }
}

#[test]
fn alert_tests_use_only_emitted_series() {
    let emitted = emitted();
    for series in alert_tests().iter().flat_map(|test| &test.series) {
        assert_names_known(&emitted, "deploy/prometheus/alerts.test.yml", series);
        let (name, labels) = parts_of(series);
        let labels: BTreeSet<&str> = labels.iter().map(|(label, _)| label.as_str()).collect();
        let own = emitted.get(family_of(&name)).into_iter().flat_map(|labels| labels.keys().map(String::as_str));
        let bound = name.ends_with("_bucket").then_some("le");
        let whole: BTreeSet<&str> = own.chain(["job", "instance"]).chain(bound).collect();
        assert_eq!(labels, whole, "no target has {series}");
    }
}

#[test]
fn alert_rules_pass_their_promtool_tests() {
    let files = ["check", "rules", "deploy/prometheus/recordings.yml", "deploy/prometheus/alerts.yml"];
    let Some((accepted, said)) = promtool(&files) else { return };
    assert!(accepted, "{said}");
    let (passed, said) = promtool(&["test", "rules", "deploy/prometheus/alerts.test.yml"]).expect("promtool is there");
    assert!(passed, "{said}");
}

#[test]
fn every_alert_has_firing_and_silent_tests_and_a_runbook() {
    let runbook = read("docs/troubleshooting.md");
    let tests = alert_tests();
    let recorded: BTreeMap<String, String> = recordings().into_iter().collect();
    for (alert, expression) in alerts() {
        // A recorded series counts as the metrics of its expression.
        let of = |name: &String| recorded.get(name).map_or_else(|| BTreeSet::from([name.clone()]), |of| names(of).0);
        let mut metrics: BTreeSet<String> = names(&expression).0.iter().flat_map(of).collect();
        metrics.extend(expression.contains("up{").then(|| "up".to_owned()));
        // A test without series for the expression would prove nothing.
        let feeds = |test: &&AlertTest| {
            metrics.iter().all(|metric| test.series.iter().any(|series| family_of(&parts_of(series).0) == metric))
        };
        let silent = tests.iter().filter(feeds).any(|test| test.silent.contains(&alert));
        assert!(silent, "{alert} is not tested to be silent when all is well");
        let fires = tests.iter().filter(feeds).any(|test| test.firing.contains(&alert));
        assert!(fires, "{alert} is not tested to fire");
        assert!(runbook.contains(&format!("### {alert}\n")), "docs/troubleshooting.md has no runbook for {alert}");
    }
}

#[test]
fn every_reason_and_event_is_used_in_the_sources() {
    let labels = read("src/telemetry/labels.rs");
    let product = product_source();
    for name in ["SuppressionReason", "AbortReason", "Limit"] {
        let body = labels.split(&format!("    {name} {{\n")).nth(1).expect("a list of labels");
        let body = body.split("    }\n").next().expect("it ends");
        let variants =
            body.lines().filter(|line| !line.trim().starts_with("//")).filter_map(|line| line.split_once(" = "));
        for variant in variants.map(|(variant, _)| format!("{name}::{}", variant.trim())) {
            let given =
                |file: &String| file.split(&variant).skip(1).any(|rest| !rest.starts_with(char::is_alphanumeric));
            assert!(product.iter().any(given), "nothing gives {variant}: delete it");
        }
    }
    for reason in RejectionReason::ALL {
        let variant = format!("RejectionReason::{reason:?}");
        assert!(product.iter().any(|file| file.contains(&variant)), "nothing gives {variant}: delete it");
    }
    let exported = read("src/telemetry/mod.rs");
    for room in ["batch_events", "health_events", "subject_events", "plan_events", "source_events"] {
        let events = exported.split(&format!("pub use {room}::{{")).nth(1).and_then(|rest| rest.split("};").next());
        for event in events.expect("its events").split(',').map(str::trim).filter(|event| !event.is_empty()) {
            assert!(product.iter().any(|file| file.contains(event)), "nothing emits {event}: delete it");
        }
    }
}

fn product_source() -> Vec<String> {
    let mut folders = vec![root().join("src"), root().join("crates")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                folders.extend((name != "telemetry" && name != "tests").then_some(path));
            } else if path.extension().is_some_and(|end| end == "rs") && !name.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).expect("readable");
                found.push(text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned());
            }
        }
    }
    found
}

#[test]
fn dashboard_uids_panel_ids_and_positions_are_unique() {
    for (name, dashboard) in dashboards() {
        assert_eq!(dashboard["uid"].as_str(), Some(format!("throng-{name}").as_str()), "links name the uid");
        let panels = dashboard["panels"].as_array().expect("panels");
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in panels {
            let title = panel["title"].as_str().expect("a title");
            assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{name}: {title}: its id is taken");
            let at = |key: &str| panel["gridPos"][key].as_u64().unwrap_or_else(|| panic!("{title}: no {key}"));
            assert!(at("x") + at("w") <= 24, "{name}: {title} hangs over the edge");
            for x in at("x")..at("x") + at("w") {
                for y in at("y")..at("y") + at("h") {
                    assert!(cells.insert((x, y)), "{name}: {title} covers another panel at ({x}, {y})");
                }
            }
        }
    }
}

#[test]
fn every_metric_has_a_dashboard_panel() {
    let drawn: BTreeSet<String> = expressions().iter().flat_map(|(_, text)| names(text).0).collect();
    let missing: Vec<String> = emitted().into_keys().filter(|name| !drawn.contains(name)).collect();
    assert!(missing.is_empty(), "no panel has {missing:?}");
}
