//! JSON Schema and parser agree on rules of a single key or table.

use super::*;
use jsonschema::JSONSchema;

fn schema() -> JSONSchema {
    let schema = serde_json::from_str(&json_schema()).expect("JSON");
    JSONSchema::compile(&schema).expect("a JSON Schema")
}

fn as_json(text: &str) -> serde_json::Value {
    serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("JSON")
}

const INVALID_LINES: [(&str, &str); 47] = [
    ("source", "kind = \"files\""),
    ("source", "kind = 3"),
    ("source", "topics = \"one\""),
    ("source", "format = \"avro-ish\""),
    ("source", "separator = \"ab\""),
    ("source", "separator = \"\\n\""),
    ("source", "separator = \"\\\"\""),
    ("source", "separator = \"é\""),
    ("source", "max_record_bytes = \"1 pound\""),
    ("source", "max_record_bytes = -1"),
    ("source", "brokerz = \"x\""),
    ("schema", "unknown = \"keep\""),
    ("schema", "filee = \"x\""),
    ("sink", "kind = \"http\""),
    ("batch", "max_records = 0"),
    ("batch", "max_records = -1"),
    ("batch", "max_wait = \"soon\""),
    ("batch", "max_wait = 1"),
    ("batch", "max_bytes = 2147483649"),
    ("privacy", "k = 0"),
    ("privacy", "k = 2.5"),
    ("privacy", "k = \"5\""),
    ("privacy", "release_window = \"1 fortnight\""),
    ("privacy", "static_window = 30"),
    ("privacy", "max_delay = true"),
    ("plan", "groups = \"many\""),
    ("plan", "price = 0.0"),
    ("plan", "window_records = 0"),
    ("plan", "window_records = 67108865"),
    ("anonymize", "suppression_limit = 2"),
    ("anonymize", "pass_limit = -1.0"),
    ("anonymize.ceiling", "lines = 1001"),
    ("anonymize.ceiling", "share = 1.5"),
    ("treatment", "preset = \"z\""),
    ("state", "max_budget_entries = 0"),
    ("compute", "backend = \"tpu\""),
    ("telemetry", "log_level = \"shout\""),
    ("treatment.rule", "treat = \"polish\""),
    ("treatment.rule", "share = 0.5"),
    ("group", "name = \"Upper\"\nattributes = [\"age\"]"),
    ("group", "name = \"empty\"\nattributes = []"),
    ("keep", "attributes = [\"alone\"]"),
    ("privacy.model", "kind = \"k_map\""),
    ("join", "name = \"nowhere\""),
    ("join", "name = \"Upper\"\npath = \"p.csv\""),
    ("join", "name = \"nobody\"\npath = \"p.csv\"\nmax_people = 0"),
    ("join", "name = \"twice\"\npath = \"p.csv\"\ntopic = \"p\""),
];

fn with(table: &str, lines: &str) -> String {
    let listed = matches!(table, "treatment.rule" | "group" | "keep" | "privacy.model" | "join");
    if listed {
        return format!("{LEAST}[[{table}]]\n{lines}\n");
    }
    let head = format!("[{table}]\n");
    if LEAST.contains(&head) {
        let key = lines.split(' ').next().unwrap_or_default();
        let rest: String =
            LEAST.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect();
        return rest.replacen(&head, &format!("{head}{lines}\n"), 1);
    }
    format!("{LEAST}{head}{lines}\n")
}

#[test]
fn json_schema_refuses_invalid_configurations() {
    let schema = schema();
    for (table, lines) in INVALID_LINES {
        let text = with(table, lines);
        assert!(read(&text).is_err(), "reading takes [{table}] {lines}");
        assert!(!schema.is_valid(&as_json(&text)), "the schema takes [{table}] {lines}");
    }
}

#[test]
fn model_without_required_key_is_refused() {
    let schema = schema();
    for (model, complete) in [
        ("kind = \"k_anonymity\"", "k = 3"),
        ("", "k = 3"),
        ("kind = \"l_diversity\"\nattribute = \"a\"", "l = 2"),
        ("kind = \"l_diversity\"\nl = 2", "attribute = \"a\""),
        ("kind = \"l_diversity\"\ndiversity = \"recursive\"\nattribute = \"a\"\nl = 2", "c = 4"),
        ("kind = \"t_closeness\"\nattribute = \"a\"", "t = 0.2"),
        ("kind = \"delta_presence\"\nmin = 0.1", "max = 0.2"),
    ] {
        let (wrong, right) = (with("privacy.model", model), with("privacy.model", &format!("{model}\n{complete}")));
        assert!(read(&wrong).is_err() && !schema.is_valid(&as_json(&wrong)), "{model}");
        assert!(
            read(&right).is_ok() && schema.is_valid(&as_json(&right)),
            "{model} with {complete}: {:?}",
            read(&right)
        );
    }
}

#[test]
fn json_schema_accepts_valid_configurations() {
    let schema = schema();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let shipped = std::fs::read_dir(folder).expect("the configurations").map(|entry| entry.expect("an entry").path());
    let mut texts: Vec<String> = shipped.map(|path| std::fs::read_to_string(path).expect("text")).collect();
    assert!(texts.len() >= 4);
    for (table, lines) in [
        ("batch", "max_wait = \"1h 30min 1.5s\"\nmax_age = \"1 day\""),
        ("batch", "max_wait = \"250ms\"\nmax_age = \"2days\""),
        ("source", "separator = \"\\t\""),
        ("source", "separator = \"\\u0001\""),
        ("source", "max_record_bytes = \"64 KiB\""),
        ("source", "max_record_bytes = 1000"),
        ("source", "kind = \"kafka\""),
        ("privacy", "max_delay = \"0s\""),
        ("source", "librdkafka = {\"security.protocol\" = \"ssl\"}"),
        ("treatment.rule", "treat = \"generalize\""),
        ("group", "name = \"a-1_b\"\nattributes = [\"age\"]"),
    ] {
        let text = with(table, lines);
        assert!(read(&text).is_ok(), "reading refuses [{table}] {lines}: {:?}", read(&text));
        texts.push(text);
    }
    for text in texts {
        let json = as_json(&text);
        let said: Vec<String> = match schema.validate(&json) {
            Ok(()) => Vec::new(),
            Err(errors) => errors.map(|error| format!("{}: {error}", error.instance_path)).collect(),
        };
        assert!(said.is_empty(), "the schema refuses {said:?} of {text}");
    }
}
