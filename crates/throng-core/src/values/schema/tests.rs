use super::*;
use crate::values::canonical::CanonicalKind;
use crate::values::raw_batch::RawToken;
use std::fs;
use std::path::Path;

fn parse(text: &str) -> Result<Schema, SchemaError> {
    Schema::parse(text, "s.toml", Path::new("nowhere"))
}

fn problems(text: &str) -> Vec<String> {
    parse(text).unwrap_err().problems.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn one(attribute: &str) -> String {
    let mut found = problems(&format!("name = \"t\"\n[[attribute]]\nname = \"a\"\n{attribute}\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn schema_reads_places_and_roles() {
    let schema = parse(
        r#"
        name = "t"
        [[attribute]]
        name = "age"
        pointer = "/profile/a~1g~0e"
        type = "integer"
        [[attribute]]
        name = "who"
        column = "Id"
        type = "string"
        role = "subject"
        [[attribute]]
        name = "when"
        type = "timestamp"
        role = "time"
        round = "minute"
        hierarchy = { kind = "truncate", levels = ["hour", "day"] }
        "#,
    )
    .unwrap();
    assert_eq!(schema.attributes[0].segments(), ["profile", "a/g~e"]);
    assert_eq!(schema.attributes[0].column(), "a/g~e");
    assert_eq!(schema.attributes[1].column(), "Id");
    assert_eq!(schema.subject, Some(1));
    assert_eq!(schema.releasable().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(schema.position("when"), Some(2));
    assert_eq!(schema.attributes[2].hierarchy.levels(), 4);
}

#[test]
fn schema_reports_all_problems_together() {
    let found = problems(
        r#"
        nmae = "t"
        [[attribute]]
        name = "a"
        type = "number"
        rolle = "quasi"
        [[attribute]]
        name = "b"
        type = "integer"
        round = 0.5
        digits = "x"
        [attribute.hierarchy]
        kind = "intervals"
        widths = [5, 7]
        max = 10
        step = 1
        [[attribute]]
        type = "string"
        "#,
    );
    let expect = [
        "s.toml: name: this key is missing",
        "s.toml: nmae: unknown key",
        "attribute[0] \"a\".type: unknown variant",
        "attribute[0] \"a\".rolle: unknown key",
        "attribute[1] \"b\".digits: ",
        "attribute[1] \"b\".round: the step of an integer must be a whole number",
        "attribute[1] \"b\".hierarchy.min: this key is missing",
        "attribute[1] \"b\".hierarchy.step: unknown key",
        "attribute[2].name: this key is missing",
    ];
    for text in expect {
        assert!(found.iter().any(|p| p.contains(text)), "{text} is not in {found:#?}");
    }
    assert_eq!(found.len(), expect.len(), "{found:#?}");
}

#[test]
fn schema_mistake_gives_one_problem() {
    assert!(
        one("type = \"string\"\nrole = \"subject\"\nhierarchy = { kind = \"prefix\", keep = [2] }")
            .contains("never generalized")
    );
    assert!(
        one("type = \"integer\"\nhierarchy = { kind = \"bounds\", min = 0, max = 99, levels = [[18, 50], [40]] }")
            .contains("level 2")
    );
    assert!(one("type = \"string\"\nhierarchy = { kind = \"file\", path = \"none.csv\" }").contains("cannot be read"));
    assert!(one("type = \"date\"\nhierarchy = { kind = \"truncate\", levels = [\"month\"], min = \"x\", max = \"2021-01-01\" }").contains("min"));
    assert!(
        one("type = \"string\"\nhierarchy = { kind = \"tree\", tree = { g = [\"a\"], h = { i = [\"b\"] } } }")
            .contains("tree.\"h\".\"i\"[0]: 4 columns, but tree.\"g\"[0] has 3")
    );
    assert!(
        one("type = \"integer\"\nhierarchy = { kind = \"tree\", tree = { g = [1, \"x\"] } }").contains("tree.\"g\"[1]")
    );
    assert!(problems("name = ").iter().any(|p| p.contains("line 1: not TOML")));
    assert!(problems("name = \"t\"").iter().any(|p| p.contains("no attributes")));
    let twice = "[[attribute]]\nname = \"a\"\ntype = \"string\"\nrole = \"subject\"\n";
    let found = problems(&format!("name = \"t\"\n{twice}{twice}"));
    assert!(
        found.len() == 3
            && found[0].contains("used twice")
            && found[1].contains("same place")
            && found[2].contains("only one"),
        "{found:?}"
    );
}

#[test]
fn hierarchy_file_mistakes_name_file_and_row() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"integer\"\n[attribute.hierarchy]\nkind = \"file\"\npath = \"h.csv\"\n";
    fs::write(folder.path().join("s.toml"), schema).unwrap();
    let file = folder.path().join("h.csv");
    fs::write(&file, "1;low;*\n2;low;*\n\n3;\"hi;gh\";*\n").unwrap();
    let good = Schema::load(&folder.path().join("s.toml")).unwrap();
    assert_eq!(good.attributes[0].hierarchy.levels(), 3);
    let before = good.fingerprint();
    fs::write(&file, "1;low;*\n2;low;*\n2.0;high;*\nx;high;*\n5;*\n").unwrap();
    let error = Schema::load(&folder.path().join("s.toml")).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.problems.len(), 3, "{text}");
    assert!(
        text.contains("h.csv: row 3: this value is already in row 1")
            || text.contains("h.csv: row 3: this value is already in row 2"),
        "{text}"
    );
    assert!(text.contains("h.csv: row 4: the value is not of type integer"), "{text}");
    assert!(text.contains("h.csv: row 5: 2 columns"), "{text}");
    // Other groups change the fingerprint, another order does not.
    fs::write(&file, "3;\"hi;gh\";*\n2;low;*\n1;low;*\n").unwrap();
    assert_eq!(Schema::load(&folder.path().join("s.toml")).unwrap().fingerprint(), before);
    fs::write(&file, "3;\"hi;gh\";*\n2;\"hi;gh\";*\n1;low;*\n").unwrap();
    assert_ne!(Schema::load(&folder.path().join("s.toml")).unwrap().fingerprint(), before);
    fs::remove_file(folder.path().join("s.toml")).unwrap();
    assert!(Schema::load(&folder.path().join("s.toml")).unwrap_err().to_string().contains("cannot be read"));
}

#[test]
fn fingerprint_changes_only_with_reading_rules() {
    let of = |extra: &str| {
        parse(&format!("name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"float\"\n{extra}\n")).unwrap().fingerprint()
    };
    let plain = of("");
    assert_eq!(plain.len(), 64);
    assert_eq!(plain, of("unit = \"m\""));
    assert_eq!(plain, of("role = \"quasi\""));
    for other in [
        "round = 0.5",
        "role = \"sensitive\"",
        "missing = []",
        "column = \"b\"",
        "hierarchy = { kind = \"intervals\", min = 0, max = 9, widths = [3] }",
    ] {
        assert_ne!(plain, of(other), "{other}");
    }
}

fn shipped(name: &str) -> Schema {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("schemas").join(name);
    Schema::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn shipped_schemas_load() {
    let adult = shipped("adult.toml");
    let levels: Vec<usize> = adult.attributes.iter().map(|a| a.hierarchy.levels()).collect();
    assert_eq!(levels, [2, 5, 2, 3, 4, 3, 3, 3, 2]);
    assert_eq!((adult.subject, adult.attributes[7].role), (None, Role::Sensitive));
    let lifesnaps = shipped("lifesnaps.toml");
    assert_eq!(lifesnaps.subject, Some(0));
    assert_eq!(lifesnaps.attributes[1].role, Role::Time);
}

#[test]
fn declared_changes_do_not_alter_the_fingerprint() {
    let parse = |more: &str, role: &str| {
        let text = format!("name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\nrole = \"{role}\"\n{more}");
        Schema::parse(&text, "t.toml", Path::new(""))
    };
    let plain = parse("", "quasi").unwrap();
    assert_eq!(plain.attributes[0].changes, None);
    for (name, changes) in
        [("never", ChangeFrequency::Never), ("slowly", ChangeFrequency::Slowly), ("always", ChangeFrequency::Always)]
    {
        let schema = parse(&format!("changes = \"{name}\"\n"), "sensitive").unwrap();
        assert_eq!((schema.attributes[0].changes, changes.name()), (Some(changes), name));
    }
    let declared = parse("changes = \"never\"\n", "quasi").unwrap();
    assert_eq!(declared.fingerprint(), plain.fingerprint(), "a state goes on under it");
}

#[test]
fn more_than_sixteen_formats_are_refused() {
    let dates = |count: usize| {
        let formats: Vec<String> = (0..count).map(|n| format!("\"%Y-%m-%d{}\"", "x".repeat(n))).collect();
        format!("name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"date\"\nformat = [{}]\n", formats.join(", "))
    };
    assert!(parse(&dates(16)).is_ok());
    let found = problems(&dates(17));
    assert!(found.len() == 1 && found[0].contains("17 formats, but at most 16"), "{found:?}");
}

#[test]
fn hierarchy_files_are_listed_without_reading_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    let attribute = |name: &str, more: &str| format!("[[attribute]]\nname = \"{name}\"\ntype = \"string\"\n{more}");
    let file = "[attribute.hierarchy]\nkind = \"file\"\npath = \"gone.csv\"\n";
    fs::write(&path, format!("name = \"t\"\n{}{}", attribute("a", ""), attribute("b", file))).unwrap();
    assert_eq!(Schema::hierarchy_files(&path), [folder.path().join("gone.csv")]);
    assert!(Schema::hierarchy_files(&folder.path().join("none")).is_empty());
}

fn of_one(keys: &str) -> Result<Schema, SchemaError> {
    parse(&format!("name = \"t\"\n[[attribute]]\nname = \"a\"\n{keys}\n"))
}

#[test]
fn attributes_come_from_message_parts() {
    let of = |keys: &str| of_one(keys).unwrap().attributes[0].clone();
    assert_eq!(of("type = \"string\"").from, AttributeOrigin::Value);
    let key = of("type = \"string\"\nfrom = \"key\"\npointer = \"/userId\"");
    assert_eq!((&key.from, key.segments()), (&AttributeOrigin::Key, vec!["userId".to_owned()]));
    assert_eq!(of("type = \"string\"\nfrom = \"key\"\npointer = \"\"").segments(), Vec::<String>::new());
    assert_eq!(of("type = \"string\"\nfrom = \"header:trace id\"").from, AttributeOrigin::Header("trace id".into()));
    assert_eq!(of("type = \"date\"\nfrom = \"timestamp\"").from, AttributeOrigin::Timestamp);
    assert_eq!(of("type = \"string\"\nfrom = \"topic\"").from.name(), "topic");
    let twice = |from: &str| {
        parse(&format!(
            "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\ncolumn = \"x\"\n\
             [[attribute]]\nname = \"b\"\ntype = \"string\"\ncolumn = \"x\"\nfrom = \"{from}\"\n"
        ))
    };
    assert!(twice("key").is_ok() && twice("value").is_err());
    // The fingerprint depends on the position, but not on its spelling.
    let plain = of_one("type = \"string\"").unwrap().fingerprint();
    assert_eq!(of_one("type = \"string\"\nfrom = \"value\"").unwrap().fingerprint(), plain);
    assert_ne!(of_one("type = \"string\"\nfrom = \"key\"").unwrap().fingerprint(), plain);
}

#[test]
fn unit_conversion_precedes_rounding() {
    let canonical = |keys: &str, text: &str| {
        let schema = of_one(keys).unwrap();
        let mut out = String::new();
        match schema.attributes[0].typing.canonical(RawToken::Number(text), &mut out) {
            Ok(CanonicalKind::Value) => out,
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        }
    };
    let fahrenheit = "type = \"float\"\nunit = \"°F\"\nto = \"°C\"\nround = 0.1\nmissing = [\"-1\"]";
    assert_eq!(canonical(fahrenheit, "98.6"), "37");
    assert_eq!(canonical(fahrenheit, "-1"), "Null");
    assert_eq!(canonical("type = \"integer\"\nunit = \"lb\"\nto = \"kg\"\nround = 5", "150.5"), "70");
    assert_eq!(canonical("type = \"integer\"\nscale = 0.5\noffset = -40", "81"), "1");
    assert!(canonical("type = \"float\"\nscale = 1e300", "1e300").contains("too large"));
    assert_eq!(of_one(fahrenheit).unwrap().attributes[0].unit.as_deref(), Some("°C"));
    for (keys, place) in
        [("type = \"float\"\nunit = \"lb\"\nto = \"km\"", "to"), ("type = \"float\"\noffset = inf", "offset")]
    {
        let problems = of_one(keys).unwrap_err().problems;
        assert!(problems.len() == 1 && problems[0].place.ends_with(place), "{keys}: {problems:?}");
    }
    assert_ne!(
        of_one("type = \"float\"").unwrap().fingerprint(),
        of_one("type = \"float\"\nscale = 2.0").unwrap().fingerprint()
    );
}

#[test]
fn element_attributes_are_found_by_pointer() {
    let text = |explode: &str, pointer: &str| {
        format!(
            "name = \"t\"\nexplode = \"{explode}\"\n[[attribute]]\nname = \"person\"\nfrom = \"key\"\ntype = \"string\"\nrole = \"subject\"\n\
             [[attribute]]\nname = \"v\"\npointer = \"{pointer}\"\ntype = \"integer\"\n"
        )
    };
    let read = |explode: &str, pointer: &str| Schema::parse(&text(explode, pointer), "s.toml", Path::new(""));
    for (explode, pointer, elements) in
        [("/a", "/a/*", 1), ("/a/b", "/a/b/*/c", 2), ("", "/*/c", 0), ("/a~1b", "/a~1b/*/0", 1)]
    {
        let schema = read(explode, pointer).expect("a sound schema");
        assert_eq!(schema.attributes[1].elements, Some(elements), "{explode} {pointer}");
        assert_eq!(schema.attributes[0].elements, None);
        assert_eq!(schema.explode.as_deref(), Some(explode));
    }
    for (explode, pointer, word) in [
        ("/a", "/b/*", "the array in `explode`"),
        ("/a", "/ab/*", "other arrays are read as one cell"),
        ("/a/*/b", "/a/*/b/*/c", "nested arrays are not split"),
        ("/a", "/a/*/b/*/c", "other arrays are read as one cell"),
        ("/a", "/a/0/c", "no attribute is read from the elements"),
        ("a", "/a/*", "not a JSON pointer"),
        ("/~2", "/a/*", "not a JSON pointer"),
        ("", "/a", "start the pointer with /*"),
    ] {
        let problems = read(explode, pointer).expect_err("a problem").problems;
        assert!(problems.iter().any(|problem| problem.message.contains(word)), "{explode} {pointer}: {problems:?}");
    }
    let other = text("/a", "/a/*/c").replace("explode = \"/a\"\n", "");
    let whole = Schema::parse(&other, "s.toml", Path::new("")).expect("a sound schema");
    assert_eq!(whole.attributes[1].elements, None, "a key may be called *");
    assert_ne!(whole.fingerprint(), read("/a", "/a/*/c").expect("a sound schema").fingerprint());
    let nobody = text("/a", "/a/*/c").replace("role = \"subject\"", "role = \"identifier\"");
    let problems = Schema::parse(&nobody, "s.toml", Path::new("")).expect_err("a problem").problems;
    assert_eq!(problems[0].place, "explode", "{problems:?}");
}

#[test]
fn attribute_is_elsewhere_or_missing_by_topic() {
    let text = |more: &str| {
        format!(
            "name = \"t\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
             [[attribute]]\nname = \"v\"\npointer = \"/v\"\ntype = \"integer\"\n{more}\n"
        )
    };
    let read = |more: &str| Schema::parse(&text(more), "s.toml", Path::new(""));
    let schema = read("topics = [\"a\", \"b\"]\npointers = { b = \"/w/x\" }\nonly = [\"1\"]").expect("a schema");
    let v = &schema.attributes[1];
    assert_eq!(v.in_topic("a").expect("in a").segments(), ["v"]);
    assert_eq!(v.in_topic("b").expect("in b").segments(), ["w", "x"]);
    assert!(v.in_topic("c").is_none() && schema.attributes[0].in_topic("c").is_some());
    assert!(schema.differs_by_topic());
    assert_eq!(schema.named_topics().collect::<Vec<_>>(), [("v", "a"), ("v", "b"), ("v", "b")]);
    assert_ne!(schema.fingerprint(), read("").expect("a schema").fingerprint());
    assert!(read("topics = [\"a\"]\npointers = { b = \"/w\" }").is_err(), "b is not a topic of it");
}

#[test]
fn attributes_share_a_place_only_in_one_topic() {
    let two = |one: &str, other: &str| {
        let attribute = |name: &str, keys: &str| {
            format!("[[attribute]]\nname = \"{name}\"\npointer = \"/v\"\ntype = \"integer\"\n{keys}\n")
        };
        let text = format!("name = \"t\"\n{}{}", attribute("one", one), attribute("other", other));
        Schema::parse(&text, "s.toml", Path::new("")).is_ok()
    };
    assert!(!two("", ""));
    assert!(two("topics = [\"a\"]", "topics = [\"b\"]"));
    assert!(!two("topics = [\"a\", \"b\"]", "topics = [\"b\"]"));
    assert!(!two("topics = [\"a\"]", ""), "the other is in all topics");
    assert!(two("topics = [\"a\"]", "pointers = { a = \"/w\" }"), "elsewhere in the shared topic");
    assert!(!two("topics = [\"a\"]\npointers = { a = \"/w\" }", "pointers = { a = \"/w\" }"));
}

#[test]
fn base_is_in_all_topics_of_its_attribute() {
    let accepted = |base: &str, of: &str| {
        let text = format!(
            "name = \"t\"\n[[attribute]]\nname = \"day\"\ntype = \"date\"\n{base}\n\
             [[attribute]]\nname = \"at\"\ntype = \"timestamp\"\nbase = \"day\"\nepoch = \"s\"\n{of}\n"
        );
        Schema::parse(&text, "s.toml", Path::new("")).map_err(|problems| format!("{problems:?}"))
    };
    accepted("", "").expect("in all");
    accepted("", "topics = [\"a\"]").expect("in all");
    accepted("topics = [\"a\", \"b\"]", "topics = [\"a\"]").expect("in a");
    for of in ["", "topics = [\"a\", \"c\"]"] {
        let problem = accepted("topics = [\"a\", \"b\"]", of).expect_err("not in c");
        assert!(problem.contains("not in all topics"), "{problem}");
    }
}
