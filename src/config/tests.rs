//! Loading, and agreement of the generated files with the code.

use std::os::unix::fs::PermissionsExt;
use std::{iter, path::Path, time::Duration};

use proptest::prelude::*;

use super::{
    Config, ConfigProblem, RecordFormat,
    environment::overridable_keys,
    json_schema, parse,
    reference::{inlined, reference_markdown},
    shape::{ConfigKey, ConfigShape},
};

#[path = "json_schema_tests.rs"]
mod json_schema_tests;

const LEAST: &str = r#"
[source]
topics = ["wearable.raw"]
[schema]
file = "schemas/wearable.toml"
[sink]
topic = "wearable.sanitized"
"#;

fn read(text: &str) -> Result<Config, Vec<ConfigProblem>> {
    parse(text, "throng.toml", iter::empty())
}

fn read_with(text: &str, env: &[(&str, &str)]) -> Result<Config, Vec<ConfigProblem>> {
    parse(text, "throng.toml", env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn keys(result: Result<Config, Vec<ConfigProblem>>) -> Vec<String> {
    result.expect_err("a problem").into_iter().map(|problem| problem.key).collect()
}

#[test]
fn minimal_configuration_has_documented_defaults() {
    let config = read(LEAST).expect("nothing is missing");
    assert_eq!((config.privacy.k, config.batch.max_bytes), (5, 64 << 20));
    assert_eq!(
        (config.batch.max_wait, config.privacy.release_window),
        (Duration::from_secs(1), Duration::from_hours(24))
    );
    assert_eq!(config.source.format(), RecordFormat::Json);
    assert_eq!(config.sink.changelog_topic, "throng.changelog");
    let month = Duration::from_hours(30 * 24);
    assert_eq!(config.privacy.max_lines_per_subject, 1);
    assert_eq!((config.privacy.static_window, config.privacy.longest_delay()), (month, month));
    assert_eq!(config.max_waiting_lines(), 500_000);
}

#[test]
fn window_larger_than_dictionaries_is_refused() {
    assert_eq!(keys(read(&format!("{LEAST}[plan]\nwindow_records = 67108864"))), ["plan.window_records"]);
    assert!(read(&format!("{LEAST}[plan]\nwindow_records = 10000000")).is_ok());
    // Means are new values, up to one per record of a batch.
    let remembered = |more: &str| read(&format!("{LEAST}{more}")).expect("complete").max_remembered_records();
    let made = "[[treatment.rule]]\nattributes = [\"steps\"]\ntreat = \"aggregate\"";
    assert_eq!(remembered(made), remembered(&made.replace("aggregate", "perturb")) + 10_000);
}

#[test]
fn format_defaults_to_file_extension() {
    let text =
        "[source]\nkind=\"file\"\npath=\"a.CSV\"\n[schema]\nfile=\"s.toml\"\n[sink]\nkind=\"file\"\npath=\"b.parquet\"";
    let config = read(text).expect("complete");
    assert_eq!((config.source.format(), config.sink.format()), (RecordFormat::Csv, RecordFormat::Parquet));
}

#[test]
fn unknown_key_is_refused() {
    let problems = read(&format!("{LEAST}[treatment]\nswapping = \"always\"")).expect_err("an unknown key");
    let [problem] = &problems[..] else { panic!("one problem: {problems:?}") };
    assert_eq!((problem.key.as_str(), problem.message.as_str()), ("treatment.swapping", "unknown key"));
    assert!(problem.remedy.starts_with("remove it"), "{problem:?}");
}

#[test]
fn unknown_key_of_another_section_names_the_section() {
    let remedy = |text: &str| {
        let problems = read(text).expect_err("an unknown key");
        let unknown = problems.into_iter().find(|problem| problem.message == "unknown key");
        unknown.map_or_else(String::new, |problem| problem.remedy)
    };
    let state = |key: &str| remedy(&format!("{LEAST}[state]\n{key} = \"x\""));
    let in_sink = "remove it, or did you mean `changelog_topic`? It is a key of [sink]";
    assert_eq!((state("changelog_topic").as_str(), state("changelog_topics").as_str()), (in_sink, in_sink));
    assert_eq!(state("max_delay"), "remove it, or did you mean `max_delay`? It is a key of [privacy]");
    let typo = remedy(&LEAST.replace("topics = [\"wearable.raw\"]", "topic = \"wearable.raw\""));
    assert_eq!(typo, "remove it, or did you mean `topics`?", "the own section comes first");
    let strata = remedy(&format!("{LEAST}[[series]]\nname = \"daily\"\nstrata = []"));
    assert_eq!(strata, "remove it, or did you mean `strata`? It is a key of [cohort]");
    assert!(state("zzzzzzzz").ends_with("`?"), "no other section has a similar key");
}

#[test]
fn all_problems_are_reported_together() {
    let text = r#"
[source]
topics = ["in", "out"]
group = ""
seperator = ";"
[source.librdkafka]
"enable.auto.commit" = "true"
"sasl.password" = "canary-77"
auto.offset.reset = "earliest"
[batch]
max_wait = "soon"
max_bytes = "1KiB"
[privacy]
k = 1
model = [{ kind = "l_diversity" }]
[[group]]
name = "A b"
attributes = ["age", "zip"]
[[group]]
name = "b"
attributes = ["zip"]
[sink]
topic = "out"
kind = 3
[telemetry]
listen = "localhost"
[nonsense]
"#;
    let problems = read(text).expect_err("a lot");
    let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
    let mut expected = [
        "source.group",
        "source.seperator",
        "source.librdkafka.enable.auto.commit",
        "source.librdkafka.sasl.password",
        "batch.max_wait",
        "batch.max_bytes",
        "privacy.k",
        "privacy.model[0].attribute",
        "privacy.model[0].l",
        "group[0].name",
        "group[1].attributes",
        "schema.file",
        "sink.topic",
        "sink.kind",
        "telemetry.listen",
        "nonsense",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected, "{problems:#?}");
    assert!(problems.iter().all(|p| p.file == "throng.toml" && !p.remedy.is_empty() && !p.message.is_empty()));
    let printed = format!("{problems:?}");
    assert!(!printed.contains("canary-77"), "{printed}");
    assert!(printed.contains("did you mean `separator`"), "{printed}");
}

#[test]
fn syntax_error_names_position_without_quoting() {
    let problems = read("[source]\n\"sasl\" = canary-88\n").expect_err("no TOML");
    assert!(problems[0].key.starts_with("line 2, column "), "{problems:?}");
    assert!(!format!("{problems:?}").contains("canary-88"), "{problems:?}");
}

#[test]
fn environment_overrides_every_key_type() {
    let config = read_with(
        LEAST,
        &[
            ("THRONG__PRIVACY__K", "7"),
            ("THRONG__SOURCE__TOPICS", "a, b"),
            ("THRONG__PLAN__PRICE", "0.2"),
            ("THRONG__BATCH__MAX_WAIT", "250ms"),
            ("THRONG__BATCH__MAX_BYTES", "8MiB"),
            ("THRONG__SOURCE__SEPARATOR", ";"),
            ("THRONG__SINK__KIND", "none"),
            ("THRONG__STATE__SECRET_FILE", ""),
            ("THRONG__SOURCE__LIBRDKAFKA__SECURITY_PROTOCOL", "sasl_ssl"),
            ("THRONG__SOURCE__LIBRDKAFKA__SASL_PASSWORD", "canary-99"),
            ("THRONG_SECRET", "0123456789abcdef"),
            ("PATH", "ignored"),
        ],
    )
    .expect("all of them fit");
    assert_eq!(config.privacy.k, 7);
    assert_eq!(config.source.topics, ["a", "b"]);
    assert_eq!((config.batch.max_wait, config.batch.max_bytes), (Duration::from_millis(250), 8 << 20));
    assert_eq!(config.source.separator, ';');
    assert_eq!(config.state.secret_file, None, "an empty variable unsets it");
    assert_eq!(config.source.librdkafka.0["security.protocol"], "sasl_ssl");
    assert_eq!(config.source.librdkafka.0["sasl.password"], "canary-99");
    assert_eq!(config.secret.as_ref().map(super::Secret::expose), Some(&b"0123456789abcdef"[..]));
    let printed = format!("{config:?}");
    assert!(!printed.contains("canary-99") && !printed.contains("0123456789abcdef"), "{printed}");
}

#[test]
fn unknown_variable_error_suggests_nearest_name() {
    let problems = read_with(LEAST, &[("THRONG__PRIVCY__K", "7")]).expect_err("no such key");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!((problems[0].file.as_str(), problems[0].key.as_str()), ("environment", "THRONG__PRIVCY__K"));
    assert!(problems[0].remedy.contains("THRONG__PRIVACY__K"), "{}", problems[0]);
}

#[test]
fn invalid_overrides_are_refused_by_name() {
    let env = [
        ("THRONG__PRIVACY__K", "five"),
        ("THRONG__SOURCE__KIND", "pulsar"),
        ("THRONG__GROUP", "a"),
        ("THRONG__PRIVACY__RELEASE_WINDOW", "1 fortnight"),
        ("THRONG__SOURCE__LIBRDKAFKA__GROUP_ID", "mine"),
        ("THRONG__PLAN__PRICE", "NaN"),
        ("THRONG_SECRET", "short"),
    ];
    let mut expected: Vec<&str> = env.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(keys(read_with(LEAST, &env)), expected);
}

#[test]
fn unsupported_value_is_refused_with_alternative() {
    let file = read(&format!("{LEAST}[plan]\ngroups = \"rowwise\"\n")).expect_err("not released");
    let variable = read_with(LEAST, &[("THRONG__PLAN__GROUPS", "rowwise")]).expect_err("not released");
    for (problems, key) in [(file, "plan.groups"), (variable, "THRONG__PLAN__GROUPS")] {
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!(problem.key, key);
        assert!(problem.message.contains("a value without k-anonymity"), "{}", problem.message);
        assert!(problem.remedy.contains("\"price\"") && problem.remedy.contains("[[keep]]"), "{}", problem.remedy);
    }
    let slip = read(&format!("{LEAST}[plan]\ngroups = \"rows\"\n")).expect_err("unknown");
    assert!(slip[0].remedy.contains("\"cliques\""), "{}", slip[0].remedy);
}

#[test]
fn override_corrects_problem_of_file() {
    let text = LEAST.replace("wearable.sanitized", "wearable.raw");
    assert_eq!(keys(read(&text)), ["sink.topic"]);
    assert!(read_with(&text, &[("THRONG__SINK__TOPIC", "elsewhere")]).is_ok());
}

#[test]
fn secret_in_file_and_environment_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    std::fs::write(&path, "from-a-file-0123456789\n").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("our file");
    let text = format!("{LEAST}[state]\nsecret_file = {:?}", path.display().to_string());
    let config = read(&text).expect("complete");
    assert_eq!(config.secret.as_ref().map(super::Secret::expose), Some(&b"from-a-file-0123456789"[..]));
    assert_eq!(keys(read_with(&text, &[("THRONG_SECRET", "0123456789abcdef")])), ["THRONG_SECRET"]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).expect("our file");
    assert_eq!(keys(read(&text)), ["state.secret_file"], "others may read it");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(keys(read(&text)), ["state.secret_file"]);
}

#[test]
fn missing_configuration_file_is_named() {
    let problems = super::load(Path::new("nowhere.toml"), iter::empty()).expect_err("not there");
    assert_eq!(problems[0].file, "nowhere.toml");
}

fn all_keys() -> Vec<ConfigKey> {
    match ConfigShape::of(&inlined()) {
        ConfigShape::Section(keys) => keys,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_key_has_description_and_valid_example() {
    let sections = all_keys();
    for (path, key) in overridable_keys(&sections, &[]) {
        let name = path.join(".");
        assert!(key.text.len() > 15, "{name} has no description");
        assert!(!key.examples.is_empty(), "{name} has no example");
        assert!(key.optional || !key.default.is_null(), "{name} has no default");
        let own = format!("{name} = {}", key.examples[0]);
        let example = if matches!(key.shape, ConfigShape::Properties) { own.replace(':', "=") } else { own };
        let problems = read(&example).err().unwrap_or_default();
        assert!(
            !problems
                .iter()
                .any(|p| p.key.starts_with("line") || p.message.contains("does not fit") || p.message == "unknown key"),
            "{example}: {problems:?}"
        );
    }
}

#[test]
fn generated_files_have_not_drifted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, text) in [("schemas/config.schema.json", json_schema()), ("docs/configuration.md", reference_markdown())]
    {
        if std::env::var_os("THRONG_BLESS").is_some() {
            std::fs::write(root.join(file), &text).expect("a writable checkout");
        }
        let checked_in = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(checked_in == text, "{file} has drifted from the code; THRONG_BLESS=1 writes it again");
    }
}

proptest! {
    #[test]
    fn any_environment_is_accepted_or_refused(name in "THRONG__[A-Z_]{0,20}", value in ".{0,20}") {
        if let Err(problems) = read_with(LEAST, &[(&name, &value)]) {
            prop_assert!(problems.iter().all(|p| !p.remedy.is_empty()));
        } else {
            let known = overridable_keys(&all_keys(), &[]).iter().any(|(path, _)| name.starts_with(&super::environment::variable(path)));
            prop_assert!(known, "{} was accepted", name);
        }
    }

    #[test]
    fn any_file_without_schema_is_refused(text in "\\[?(source|batch|privacy)?\\]?\n([a-z_]{1,8} ?= ?(\"x\"|[0-9]{1,3}|true|\\[\\])\n){0,4}") {
        let refused = read(&text);
        prop_assert!(refused.is_err(), "nothing here names a schema");
    }
}

#[test]
fn shared_attributes_refuse_incompatible_settings() {
    let shared =
        |names: &str, more: &str| read(&format!("{LEAST}{more}[plan]\ngroups = \"price\"\nshared = {names}\n"));
    assert!(shared("[\"a\"]", "").is_ok());
    assert!(shared("[\"a\", \"b\"]", "").is_ok());
    assert_eq!(keys(shared("[\"a\", \"b\", \"c\"]", "")), ["plan.shared"]);
    assert_eq!(keys(shared("[\"a\", \"a\"]", "")), ["plan.shared"]);
    assert_eq!(keys(shared("[\"a\"]", "[treatment]\npreset = \"coverage\"\n")), ["plan.shared"]);
    let rule = "[[treatment.rule]]\nattributes = [\"a\"]\ntreat = \"suppress_cell\"\n";
    assert_eq!(keys(shared("[\"a\"]", rule)), ["treatment.rule[0].attributes"]);
    let given = |groups: &[&[&str]]| {
        let group = |(at, names): (usize, &&[&str])| format!("[[group]]\nname = \"g{at}\"\nattributes = {names:?}\n");
        let groups: String = groups.iter().enumerate().map(group).collect();
        read(&format!("{LEAST}[plan]\nshared = [\"a\", \"b\"]\n{groups}"))
    };
    assert!(given(&[&["a", "b", "x"], &["y", "b", "a"], &["z"]]).is_ok());
    assert_eq!(keys(given(&[&["a", "b", "x"], &["y", "z"]])), ["plan.shared"]);
    assert_eq!(keys(given(&[&["a", "b", "x"], &["a", "y"]])), ["group[1].attributes"]);
    assert_eq!(keys(given(&[&["a", "b", "a", "x"], &["a", "b", "y"]])), ["group[0].attributes"]);
    assert_eq!(keys(given(&[&["a", "b", "x"], &["a", "b", "x"]])), ["group[1].attributes"], "the others are in one");
}
