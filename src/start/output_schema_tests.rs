//! Validates output lines with an independent validator.

use super::*;
use crate::config::parse;
use crate::start::nested_output::nesting;
use jsonschema::{Draft, JSONSchema};
use throng_formats::{LineFormat, TypedGroup};

const SCHEMA: &str = r#"
name = "s"
explode = "/visits"
[[attribute]]
name = "person"
pointer = "/visits/*/person"
type = "string"
role = "subject"
[[attribute]]
name = "clinic"
pointer = "/at/clinic"
type = "string"
[[attribute]]
name = "city"
pointer = "/visits/*/place/city"
type = "string"
[[attribute]]
name = "age"
pointer = "/visits/*/age"
type = "integer"
[[attribute]]
name = "systolic"
pointer = "/parts/1/value"
type = "integer"
"#;

fn checked(shape: &str) -> CheckedConfig {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = folder.path().display();
    std::fs::write(folder.path().join("s.toml"), SCHEMA).expect("a schema");
    crate::config::Secret::create(&folder.path().join("key")).expect("the secret");
    let config = format!(
        "[source]\ntopics = [\"raw\"]\n[sink]\ntopic = \"out\"\nformat = \"json_schema\"\n[registry]\nurl = \"http://localhost\"\n\
         [output]\nshape = \"{shape}\"\n[schema]\nfile = \"{place}/s.toml\"\n\
         [state]\npath = \"{place}/state\"\nsecret_file = \"{place}/key\"\n"
    );
    CheckedConfig::new(parse(&config, "throng.toml", std::iter::empty()).expect("a configuration"), "throng.toml")
        .unwrap_or_else(|problems| panic!("{problems:?}"))
}

const CELLS: [[&str; 4]; 5] = [
    ["\"north\"", "\"Bern\"", "33", "120"],
    ["\"*\"", "", "\"30-39\"", ""],
    ["", "", "", "null"],
    ["", "\"*\"", "null", "\"*\""],
    ["null", "", "", ""],
];

fn lines(checked: &CheckedConfig) -> Vec<Value> {
    let names = ["clinic", "city", "age", "systolic"];
    let group =
        TypedGroup { names: names.map(str::to_owned).to_vec(), kinds: Vec::new(), numbers: Vec::new(), id: Some(9) };
    let nesting = is_nested(&checked.config).then(|| nesting(&checked.schema));
    let layout = LineFormat::FramedJson([group].into(), nesting).layout(&names);
    let line = |cells: &[&str; 4]| {
        let (mut line, mut read) = (Vec::new(), Vec::new());
        layout.write(cells, &mut line);
        layout.read(&line, &mut read).expect("what was written");
        assert_eq!(read, cells);
        let json = line.strip_prefix(&[0, 0, 0, 0, 9]).expect("a frame");
        serde_json::from_slice(json).expect("JSON")
    };
    CELLS.iter().map(line).collect()
}

#[test]
fn framed_lines_match_their_schema() {
    for shape in ["flat", "nested"] {
        let checked = checked(shape);
        let lines = lines(&checked);
        assert_eq!(lines[0].pointer("/visits/0/place/city").is_some(), shape == "nested", "{}", lines[0]);
        let registered = registered_json(&checked, "all", "throng.s.all");
        let said = output_schemas(&checked)["all"].take();
        for (draft, schema) in [(Draft::Draft7, &registered), (Draft::Draft202012, &said)] {
            let validator = JSONSchema::options().with_draft(draft).compile(schema).expect("a JSON Schema");
            for line in &lines {
                assert!(validator.is_valid(line), "{line} under {schema}");
            }
            // Undeclared properties are rejected.
            for wrong in [
                json!({"person": "p"}),
                json!({"visits": [{"person": "p"}]}),
                json!({"visits": [{"age": 3}, {"age": 4}]}),
                json!({"visits": [{"place": {"city": "Bern", "zip": 1}}]}),
                json!({"parts": [{"value": 3}]}),
                json!({"clinic": true}),
                json!({"at": {"clinic": 7}}),
            ] {
                assert!(!validator.is_valid(&wrong), "{wrong} under {schema}");
            }
        }
    }
}
