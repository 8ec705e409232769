use std::collections::BTreeSet;
use std::path::Path;

use jsonschema::JSONSchema;

use super::*;
use crate::values::schema::{Schema, SchemaError};

fn schema() -> JSONSchema {
    let schema: Json = serde_json::from_str(&json_schema()).expect("JSON");
    JSONSchema::compile(&schema).expect("a JSON Schema")
}

fn as_json(text: &str) -> Json {
    serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("JSON")
}

fn read(text: &str) -> Result<Schema, SchemaError> {
    Schema::parse(text, "s.toml", Path::new(""))
}

fn with(lines: &str) -> String {
    format!(
        "name = \"s\"\n[[attribute]]\nname = \"start\"\ntype = \"timestamp\"\n\
         [[attribute]]\nname = \"code\"\ntype = \"string\"\n[[attribute]]\n{lines}\n"
    )
}

fn a(lines: &str) -> String {
    with(&format!("name = \"a\"\n{lines}"))
}

#[test]
fn generated_files_have_not_drifted() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for (file, text) in [("schemas/schema.schema.json", json_schema()), ("docs/schema.md", reference_markdown())] {
        if std::env::var_os("THRONG_BLESS").is_some() {
            std::fs::write(root.join(file), &text).expect("a writable checkout");
        }
        let checked_in = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(checked_in == text, "{file} has drifted from the code; THRONG_BLESS=1 writes it again");
    }
}

/// Read from the message about an unknown key.
fn keys_known_to_parser(text: &str) -> BTreeSet<String> {
    let error = read(text).expect_err("an unknown key");
    let message = error.problems.iter().find_map(|p| p.message.split_once("or use one of ")).expect("the keys").1;
    message.split(", ").map(str::to_owned).collect()
}

#[test]
fn reference_lists_the_keys_of_the_parser() {
    let mut attribute: BTreeSet<String> = ATTRIBUTE.iter().map(|key| key.name.to_owned()).collect();
    attribute.insert("hierarchy".into());
    assert_eq!(keys_known_to_parser(&a("type = \"string\"\nzzz = 1")), attribute);
    for kind in HIERARCHIES {
        let mut keys: BTreeSet<String> = kind.keys.iter().chain(COMMON_KEYS).map(|key| key.name.to_owned()).collect();
        keys.insert("kind".into());
        let lines: String = kind.keys.iter().map(|key| format!("{} = {}\n", key.name, key.example)).collect();
        let text = a(&format!(
            "type = \"{}\"\n[attribute.hierarchy]\nkind = \"{}\"\n{lines}zzz = 1",
            kind.types[0], kind.name
        ));
        assert_eq!(keys_known_to_parser(&text), keys, "{}", kind.name);
    }
}

#[test]
fn every_choice_and_example_is_accepted() {
    let schema = schema();
    let takes = |text: &str| {
        assert!(read(text).is_ok(), "{text}: {:?}", read(text).err());
        assert!(schema.is_valid(&as_json(text)), "{text}");
    };
    for key in ATTRIBUTE.iter().filter(|key| !key.required) {
        let kind = key.types.first().copied().unwrap_or("integer");
        let beside = match key.name {
            "to" => "unit = \"°F\"\n",
            "base" => "epoch = \"s\"\n",
            "unit_from" => "unit = \"°C\"\n",
            "first_year" => "format = \"%d.%m.%y\"\n",
            _ => "",
        };
        takes(&a(&format!(
            "type = \"{kind}\"\n{beside}{} = {}",
            key.name,
            if key.name == "round" { "2" } else { key.example }
        )));
        if let KeyShape::OneOf(choices) = key.shape {
            for (choice, _) in choices {
                let kind = if *choice == "time" { "date" } else { kind };
                takes(&a(&format!("type = \"{kind}\"\n{} = \"{choice}\"", key.name)));
            }
        }
    }
    for (kind, _) in keys::TYPES {
        takes(&a(&format!("type = \"{kind}\"")));
    }
    for kind in HIERARCHIES.iter().filter(|kind| kind.name != "file") {
        for of in kind.types {
            if kind.name == "tree" && *of != "string" {
                continue;
            }
            let keys = kind.keys.iter().chain(COMMON_KEYS);
            let lines: String = keys.map(|key| format!("{} = {}\n", key.name, key.example)).collect();
            let lines = if kind.name == "bounds" { lines.replace("18.5", "18") } else { lines };
            takes(&a(&format!("type = \"{of}\"\n[attribute.hierarchy]\nkind = \"{}\"\n{lines}", kind.name)));
        }
    }
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("schemas");
    let mut shipped = 0;
    for entry in std::fs::read_dir(folder).expect("the schemas") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("text");
            let json = as_json(&text);
            assert!(schema.is_valid(&json), "{}", path.display());
            shipped += 1;
        }
    }
    assert!(shipped >= 5);
}

fn hierarchy(kind: &str, lines: &str) -> String {
    a(&format!("type = \"{kind}\"\n[attribute.hierarchy]\n{lines}"))
}

/// Schemas with one error each, and a part of its message.
fn wrong_with_reason() -> Vec<(String, &'static str)> {
    vec![
        (a("type = \"string\"\nrole = \"time\""), "date or timestamp"),
        (a("type = \"string\"\nround = 1"), "round"),
        (a("type = \"integer\"\nround = \"day\""), "round"),
        (a("type = \"integer\"\nround = -1"), "not a positive step"),
        (a("type = \"date\"\nround = \"hour\""), "a date is rounded"),
        (a("type = \"float\"\ndigits = 0"), "between 1 and 17"),
        (a("type = \"string\"\nchanges = \"often\""), "changes: "),
        (a("type = \"string\"\nrole = \"subject\"\nchanges = \"never\""), "changes: "),
        (a("type = \"string\"\ncolumn = \"x\"\npointer = \"/x\""), "exclude each other"),
        (a("type = \"string\"\npointer = \"x\""), "not a JSON pointer"),
        (a("type = \"string\"\npointer = \"\""), "pointer: "),
        (a("type = \"string\"\nfrom = \"Key\""), "from: "),
        (a("type = \"string\"\nfrom = \"header:\""), "from: "),
        (a("type = \"string\"\nfrom = \"topic\"\ncolumn = \"x\""), "column: "),
        (a("type = \"string\"\nfrom = \"timestamp\""), "type: "),
        (a("type = \"timestamp\"\nfrom = \"timestamp\"\nepoch = \"ms\""), "epoch: "),
        (a("type = \"string\"\nrole = \"subject\"\noptional = true"), "optional: "),
        (a("type = \"float\"\nto = \"km\""), "unit: "),
        (a("type = \"string\"\nunit = \"mi\"\nto = \"km\""), "to: "),
        (a("type = \"float\"\nunit = \"mi\"\nto = \"km\"\nscale = 2.0"), "to: "),
        (a("type = \"float\"\nscale = 0"), "scale: "),
        (a("type = \"integer\"\nrole = \"subject\"\noffset = 1.0"), "to: "),
        (hierarchy("string", "kind = \"suffix\""), "not one of file"),
        (hierarchy("string", "kind = \"intervals\"\nmin = 0\nmax = 9\nwidths = [3]"), "of type string"),
        (
            a("type = \"string\"\nrole = \"insensitive\"\n[attribute.hierarchy]\nkind = \"prefix\"\nkeep = [1]"),
            "never generalized",
        ),
    ]
}

#[test]
fn json_schema_refuses_what_the_parser_refuses() {
    let schema = schema();
    let wrong = [
        "name = \"s\"".to_owned(),
        "[[attribute]]\nname = \"a\"\ntype = \"string\"".to_owned(),
        "name = \"s\"\nversion = 2\n[[attribute]]\nname = \"a\"\ntype = \"string\"".to_owned(),
        with("type = \"string\""),
        with("name = \"a\""),
        with("name = \"\"\ntype = \"string\""),
        a("type = \"text\""),
        a("type = 3"),
        a("type = \"string\"\nrole = \"secret\""),
        a("type = \"integer\"\nround = 0"),
        a("type = \"date\"\nround = 1"),
        a("type = \"timestamp\"\nround = \"fortnight\""),
        a("type = \"float\"\ndigits = 18"),
        a("type = \"float\"\ndigits = 3\nround = 1"),
        a("type = \"string\"\ndigits = 3"),
        a("type = \"string\"\nmissing = \"NA\""),
        a("type = \"integer\"\nnormalize = \"nfc\""),
        a("type = \"string\"\nnormalize = \"NFC\""),
        a("type = \"string\"\ncase = \"upper\""),
        a("type = \"integer\"\ncase = \"fold\""),
        a("type = \"string\"\nformat = \"%Y-%m-%d\""),
        a("type = \"date\"\nformat = []"),
        a("type = \"date\"\nformat = 5"),
        a("type = \"date\"\nformat = \"%Y-%m-%d\"\nepoch = \"s\""),
        a("type = \"timestamp\"\nepoch = \"ns\""),
        a("type = \"integer\"\nepoch = \"s\""),
        a("type = \"string\"\npointer = \"/x~2\""),
        a("type = \"string\"\ntopics = []"),
        a("type = \"string\"\nonly = []"),
        a("type = \"string\"\nonly = \"x\""),
        a("type = \"string\"\nonly = [7]"),
        a("type = \"string\"\npointers = { t = \"x\" }"),
        a("type = \"string\"\npointers = { t = \"\" }"),
        a("type = \"string\"\nfrom = \"topic\"\npointers = { t = \"/x\" }"),
        a("type = \"string\"\nrole = \"subject\"\ntopics = [\"t\"]"),
        hierarchy("string", "kind = \"prefix\"\nkeep = [1]\nuncovered = \"keep\""),
        a("type = \"string\"\nhierarchies = 1"),
        a("type = \"string\"\nhierarchy = \"prefix\""),
        hierarchy("string", "keep = [1]"),
        hierarchy("string", "kind = \"prefix\""),
        hierarchy("string", "kind = \"prefix\"\nkeep = []"),
        hierarchy("string", "kind = \"prefix\"\nkeep = [0]"),
        hierarchy("string", "kind = \"prefix\"\nkeep = [2, 1]\nwidth = 3"),
        hierarchy("integer", "kind = \"prefix\"\nkeep = [1]"),
        hierarchy("integer", "kind = \"intervals\"\nmin = 0\nwidths = [3]"),
        hierarchy("integer", "kind = \"intervals\"\nmin = 0\nmax = 9\nwidths = []"),
        hierarchy("integer", "kind = \"intervals\"\nmin = 0\nmax = 9\nwidths = [-3]"),
        hierarchy("integer", "kind = \"intervals\"\nmin = \"0\"\nmax = 9\nwidths = [3]"),
        hierarchy("integer", "kind = \"bounds\"\nmin = 0\nmax = 9\nlevels = [3]"),
        hierarchy("integer", "kind = \"truncate\"\nlevels = [\"day\"]"),
        hierarchy("date", "kind = \"truncate\"\nlevels = [\"decade\"]"),
        hierarchy("string", "kind = \"grid\"\ncells = [1]"),
        hierarchy("coordinates", "kind = \"grid\"\ncells = []"),
        hierarchy("string", "kind = \"tree\""),
        hierarchy("string", "kind = \"tree\"\ntree = 5"),
        hierarchy("string", "kind = \"file\""),
    ];
    let told = wrong.into_iter().map(|text| (text, "")).chain(wrong_with_reason());
    for (text, says) in told {
        let problems = read(&text).expect_err(&text).problems;
        assert!(problems.iter().any(|problem| problem.to_string().contains(says)), "{text}: {problems:?}");
        assert!(says.is_empty() || problems.len() == 1, "{text}: {problems:?}");
        assert!(!schema.is_valid(&as_json(&text)), "the schema takes {text}");
    }
}
