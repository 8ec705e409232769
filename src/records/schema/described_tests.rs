use std::collections::BTreeSet;
use std::path::Path;

use jsonschema::JSONSchema;

use super::*;
use crate::records::schema::{Schema, SchemaError};

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

/// An attribute with these lines, behind one that is sound.
fn with(lines: &str) -> String {
    format!("name = \"s\"\n[[attribute]]\nname = \"start\"\ntype = \"timestamp\"\n[[attribute]]\n{lines}\n")
}

fn a(lines: &str) -> String {
    with(&format!("name = \"a\"\n{lines}"))
}

#[test]
fn generated_files_have_not_drifted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, text) in [("schemas/schema.schema.json", json_schema()), ("docs/schema.md", reference_markdown())] {
        if std::env::var_os("THRONG_BLESS").is_some() {
            std::fs::write(root.join(file), &text).expect("a writable checkout");
        }
        let checked_in = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(checked_in == text, "{file} has drifted from the code; THRONG_BLESS=1 writes it anew");
    }
}

/// The keys that reading asks for, by its own word: it lists them where it meets one that nobody asks for.
fn asked(text: &str) -> BTreeSet<String> {
    let error = read(text).expect_err("an unknown key");
    let message = error.problems.iter().find_map(|p| p.message.split_once("or use one of ")).expect("the keys").1;
    message.split(", ").map(str::to_owned).collect()
}

#[test]
fn what_is_described_is_what_is_read() {
    let mut attribute: BTreeSet<String> = ATTRIBUTE.iter().map(|key| key.name.to_owned()).collect();
    attribute.insert("hierarchy".into());
    assert_eq!(asked(&a("type = \"string\"\nzzz = 1")), attribute);
    for kind in HIERARCHIES {
        let mut keys: BTreeSet<String> = kind.keys.iter().chain(OF_ALL_KINDS).map(|key| key.name.to_owned()).collect();
        keys.insert("kind".into());
        let lines: String = kind.keys.iter().map(|key| format!("{} = {}\n", key.name, key.example)).collect();
        let text = a(&format!(
            "type = \"{}\"\n[attribute.hierarchy]\nkind = \"{}\"\n{lines}zzz = 1",
            kind.types[0], kind.name
        ));
        assert_eq!(asked(&text), keys, "{}", kind.name);
    }
}

/// Every choice and every example is read, and what the reference says of types is so.
#[test]
fn every_choice_and_example_is_taken_by_both() {
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
            _ => "",
        };
        takes(&a(&format!(
            "type = \"{kind}\"\n{beside}{} = {}",
            key.name,
            if key.name == "round" { "2" } else { key.example }
        )));
        if let Shape::OneOf(choices) = key.shape {
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
            let keys = kind.keys.iter().chain(OF_ALL_KINDS);
            let lines: String = keys.map(|key| format!("{} = {}\n", key.name, key.example)).collect();
            let lines = if kind.name == "bounds" { lines.replace("18.5", "18") } else { lines };
            takes(&a(&format!("type = \"{of}\"\n[attribute.hierarchy]\nkind = \"{}\"\n{lines}", kind.name)));
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
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

#[test]
fn what_reading_refuses_the_schema_refuses() {
    let schema = schema();
    let hierarchy = |kind: &str, lines: &str| a(&format!("type = \"{kind}\"\n[attribute.hierarchy]\n{lines}"));
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
        a("type = \"string\"\nrole = \"time\""),
        a("type = \"string\"\nround = 1"),
        a("type = \"integer\"\nround = \"day\""),
        a("type = \"integer\"\nround = 0"),
        a("type = \"integer\"\nround = -1"),
        a("type = \"date\"\nround = 1"),
        a("type = \"date\"\nround = \"hour\""),
        a("type = \"timestamp\"\nround = \"fortnight\""),
        a("type = \"float\"\ndigits = 0"),
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
        a("type = \"string\"\nchanges = \"often\""),
        a("type = \"string\"\nrole = \"subject\"\nchanges = \"never\""),
        a("type = \"string\"\ncolumn = \"x\"\npointer = \"/x\""),
        a("type = \"string\"\npointer = \"x\""),
        a("type = \"string\"\npointer = \"/x~2\""),
        a("type = \"string\"\npointer = \"\""),
        a("type = \"string\"\nfrom = \"Key\""),
        a("type = \"string\"\nfrom = \"header:\""),
        a("type = \"string\"\nfrom = \"topic\"\ncolumn = \"x\""),
        a("type = \"string\"\nfrom = \"timestamp\""),
        a("type = \"timestamp\"\nfrom = \"timestamp\"\nepoch = \"ms\""),
        a("type = \"string\"\nrole = \"subject\"\noptional = true"),
        a("type = \"float\"\nto = \"km\""),
        a("type = \"string\"\nunit = \"mi\"\nto = \"km\""),
        a("type = \"float\"\nunit = \"mi\"\nto = \"km\"\nscale = 2.0"),
        a("type = \"float\"\nscale = 0"),
        a("type = \"integer\"\nrole = \"subject\"\noffset = 1.0"),
        hierarchy("string", "kind = \"prefix\"\nkeep = [1]\nuncovered = \"keep\""),
        a("type = \"string\"\nhierarchies = 1"),
        a("type = \"string\"\nhierarchy = \"prefix\""),
        hierarchy("string", "keep = [1]"),
        hierarchy("string", "kind = \"suffix\"\nkeep = [1]"),
        hierarchy("string", "kind = \"prefix\""),
        hierarchy("string", "kind = \"prefix\"\nkeep = []"),
        hierarchy("string", "kind = \"prefix\"\nkeep = [0]"),
        hierarchy("string", "kind = \"prefix\"\nkeep = [2, 1]\nwidth = 3"),
        hierarchy("integer", "kind = \"prefix\"\nkeep = [1]"),
        hierarchy("string", "kind = \"intervals\"\nmin = 0\nmax = 9\nwidths = [3]"),
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
        a("type = \"string\"\nrole = \"insensitive\"\n[attribute.hierarchy]\nkind = \"prefix\"\nkeep = [1]"),
    ];
    for text in wrong {
        assert!(read(&text).is_err(), "reading takes {text}");
        assert!(!schema.is_valid(&as_json(&text)), "the schema takes {text}");
    }
}
