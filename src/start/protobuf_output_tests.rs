//! Checks with `protox` and `prost-reflect`, which are independent of the line writer.

use super::*;
use crate::io::registry::WriterSchema;
use crate::start::field_numbers::derived_number;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value};
use std::path::Path;
use throng_core::values::schema::Schema;
use throng_formats::{LineFormat, TypedGroup};

fn attributes(names: &[(&str, &str)]) -> Schema {
    let each = |(name, kind): &(&str, &str)| format!("[[attribute]]\nname = {name:?}\ntype = {kind:?}\n");
    let text = format!("name = \"s\"\n{}", names.iter().map(each).collect::<String>());
    Schema::parse(&text, "schema.toml", Path::new("")).expect("a sound schema")
}

fn derived(names: &[(&str, &str)], before: Option<&str>) -> (String, Vec<[u32; 2]>) {
    let schema = attributes(names);
    let listed: Vec<&Attribute> = schema.attributes.iter().map(AsRef::as_ref).collect();
    let before =
        before.map(|text| WriterSchema { kind: "PROTOBUF".to_owned(), text: text.to_owned(), parts: Vec::new() });
    let numbers = FieldNumbers::from_registered(before.as_ref(), "all").expect("numbers");
    protobuf_schema(&Config::default(), &listed, "all", "throng.s", numbers)
}

fn compiled(text: &str) -> MessageDescriptor {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("all.proto"), text).expect("a schema");
    let files = protox::compile(["all.proto"], [folder.path()]).expect("a schema that compiles");
    let pool = DescriptorPool::from_file_descriptor_set(files).expect("descriptors");
    pool.get_message_by_name("throng.s.all").expect("its message")
}

fn line(names: &[(&str, &str)], numbers: &[[u32; 2]], cells: &[&str]) -> Vec<u8> {
    let schema = attributes(names);
    let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let group = TypedGroup {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        kinds: schema.attributes.iter().map(|a| cell_kind_of(a)).collect(),
        numbers: numbers.to_vec(),
        id: None,
    };
    let mut line = Vec::new();
    LineFormat::Protobuf([group].into()).layout(&names).write(cells, &mut line);
    line
}

fn fields(message: &MessageDescriptor, line: &[u8]) -> Vec<(String, Value)> {
    let read = DynamicMessage::decode(message.clone(), line).expect("a message");
    let mut fields: Vec<(String, Value)> =
        read.fields().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

const NAMES: [(&str, &str); 4] = [("heart rate", "integer"), ("city", "string"), ("ok", "boolean"), ("pulse", "float")];

#[test]
fn protobuf_lines_match_the_derived_schema() {
    let (text, numbers) = derived(&NAMES, None);
    let message = compiled(&text);
    let read = |cells: [&str; 4]| fields(&message, &line(&NAMES, &numbers, &cells));
    let named = |name: &str, value: Value| (name.to_owned(), value);
    assert_eq!(
        read(["61", "\"Bern\"", "false", "0.5"]),
        [
            named("city", Value::String("Bern".into())),
            named("heart_rate", Value::I64(61)),
            named("ok", Value::Bool(false)),
            named("pulse", Value::F64(0.5)),
        ]
    );
    assert_eq!(
        read(["\"60-69\"", "\"*\"", "\"*\"", "null"]),
        [
            named("city", Value::String("*".into())),
            named("heart_rate_text", Value::String("60-69".into())),
            named("ok_text", Value::String("*".into())),
        ]
    );
    let choices: Vec<String> = message.oneofs().filter(|o| !o.is_synthetic()).map(|o| o.name().to_owned()).collect();
    assert_eq!(choices, ["heart_rate_cell", "ok_cell", "pulse_cell"]);
}

/// A reader of plain messages keeps an old schema.
#[test]
fn older_protobuf_reader_never_confuses_attributes() {
    let older = [("age", "integer"), ("city", "string")];
    let (text, _) = derived(&older, None);
    let reader = compiled(&text);
    for newer in [
        &[("pulse", "integer"), ("age", "integer"), ("city", "string")][..],
        &[("city", "string"), ("age", "integer")],
        &[("pulse", "integer"), ("town", "string")],
        &[("age", "boolean"), ("town", "string")],
    ] {
        let (_, numbers) = derived(newer, None);
        let cell = |(name, kind): &(&str, &str)| match *kind {
            "integer" => if *name == "age" { "33" } else { "61" }.to_owned(),
            "boolean" => "true".to_owned(),
            _ => format!("{name:?}"),
        };
        let cells: Vec<String> = newer.iter().map(cell).collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        for (name, value) in fields(&reader, &line(newer, &numbers, &cells)) {
            let own = if name == "age" { Value::I64(33) } else { Value::String(name.clone()) };
            assert_eq!(value, own, "{name} of {newer:?}");
        }
    }
}

#[test]
fn field_numbers_stay_with_names_and_are_never_reused() {
    let (first, of_first) = derived(&[("age", "integer"), ("city", "string")], None);
    let (second, numbers) = derived(&[("new", "float"), ("city", "string")], Some(&first));
    assert_eq!(numbers[1], of_first[1]);
    let [exact, text] = of_first[0];
    let gone = format!("reserved {}, {};", exact.min(text), exact.max(text));
    assert!(second.contains(&gone), "{second}");
    // Reserved numbers stay reserved; equal attributes give the same schema.
    let (third, numbers) = derived(&[("age", "integer"), ("city", "string")], Some(&second));
    assert!(numbers[1] == of_first[1] && !numbers[0].iter().any(|number| of_first[0].contains(number)), "{third}");
    assert_eq!(derived(&[("age", "integer"), ("city", "string")], Some(&third)).0, third);
    // Existing numbers are kept in any range.
    let (_, numbers) = derived(&[("a", "string"), ("b", "string")], Some("message all { optional string b = 2; }"));
    assert_eq!(numbers, [[derived_number("a", "string"); 2], [2, 2]]);
}
