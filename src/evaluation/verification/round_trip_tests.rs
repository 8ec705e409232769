use super::recount_release;
use crate::config::{self, Config};
use crate::io::file::{OutputColumn, ReleaseTarget, SinkError};
use crate::start::configured_groups::group_shapes;
use crate::start::record_formats::{file_format, line_format};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;

#[derive(Clone, Debug)]
struct SampledAttribute {
    keys: String,
    cells: Vec<String>,
}

fn with_keys(keys: &[&str], cells: Vec<String>) -> SampledAttribute {
    SampledAttribute { keys: keys.join("\n"), cells }
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(texts)
}

fn numbers() -> impl Strategy<Value = SampledAttribute> {
    let whole = (
        one_of(&["", "round = 7", "round = 10", "digits = 2", "scale = 3.0", "offset = -5.0"]),
        one_of(&["", "missing = [\"0\", \"-1\", \"30\"]"]),
        one_of(&[
            "",
            "hierarchy = { kind = \"intervals\", min = -50, max = 1203, widths = [10, 50] }",
            "hierarchy = { kind = \"intervals\", min = -50, max = 1200, origin = 3, widths = [16, 64, 320] }",
            "hierarchy = { kind = \"bounds\", min = -60, max = 1200, levels = [[-1, 0, 18, 65], [18]] }",
            "hierarchy = { kind = \"tree\", tree = { low = [\"0\", \"7\", \"10\"], high = [\"70\", \"100\"] } }",
        ]),
        prop::collection::vec(prop_oneof![-60..1300_i64, Just(0), Just(i64::MAX), Just(70)], 1..8),
    );
    let whole = whole.prop_map(|(rounding, missing, hierarchy, values)| {
        let spelled = |value: &i64| if value % 3 == 0 { format!("{value}.0") } else { value.to_string() };
        with_keys(&["type = \"integer\"", rounding, missing, hierarchy], values.iter().map(spelled).collect())
    });
    let float = (
        one_of(&[
            "",
            "round = 0.1",
            "round = 0.7",
            "round = 5",
            "digits = 3",
            "unit = \"°F\"\nto = \"°C\"\nround = 0.1",
        ]),
        one_of(&["", "missing = [\"0\", \"-99.9\", \"36.5\"]"]),
        one_of(&[
            "",
            "hierarchy = { kind = \"intervals\", min = -100, max = 120, widths = [12.5, 50] }",
            "hierarchy = { kind = \"intervals\", min = -99.9, max = 119.9, widths = [7, 70] }",
            "hierarchy = { kind = \"bounds\", min = -100, max = 120, levels = [[-0.5, 0, 36.5, 38], [36.5]] }",
        ]),
        prop::collection::vec(prop_oneof![-110.0..130.0_f64, Just(-0.0), Just(1e300), Just(36.5)], 1..8),
    );
    let float = float.prop_map(|(rounding, missing, hierarchy, values)| {
        let spelled = |value: &f64| if value.abs() > 50.0 { format!("{value:e}") } else { value.to_string() };
        with_keys(&["type = \"float\"", rounding, missing, hierarchy], values.iter().map(spelled).collect())
    });
    prop_oneof![whole, float]
}

fn texts() -> impl Strategy<Value = SampledAttribute> {
    let spelled = (
        one_of(&["", "normalize = \"nfc\"", "normalize = \"nfkc\"\ncase = \"fold\"", "case = \"fold\""]),
        one_of(&["", "missing = [\"\", \"NA\", \"30\"]"]),
        one_of(&[
            "",
            "role = \"insensitive\"",
            "hierarchy = { kind = \"prefix\", keep = [3, 1] }",
            "hierarchy = { kind = \"prefix\", keep = [4, 2], length = 5 }",
            "hierarchy = { kind = \"prefix\", keep = [8, 6] }",
            "hierarchy = { kind = \"tree\", tree = { a = [\"x\", \"y\"], b = [\"30\", \"null\", \"true\"] } }",
        ]),
        prop::collection::vec("[a-z0-9*\\\\ßÄ ,\"]{0,6}|x|y|30|null|true|\\*|\\\\\\*|07[0-9]{8}|[0-9]{5}", 1..8),
    );
    let text = spelled.prop_map(|(spelling, missing, more, values)| {
        with_keys(&["type = \"string\"", spelling, missing, more], values)
    });
    let truth = prop::collection::vec(one_of(&["true", "False", "1", "0"]), 1..4);
    let truth =
        truth.prop_map(|values| with_keys(&["type = \"boolean\""], values.into_iter().map(str::to_owned).collect()));
    prop_oneof![4 => text, 1 => truth]
}

fn format_moment(spelling: &str, millis: i64) -> String {
    let moment = chrono::DateTime::from_timestamp_millis(millis).expect("a moment");
    match spelling {
        "epoch = \"s\"" => (millis / 1_000).to_string(),
        "epoch = \"ms\"" => millis.to_string(),
        "epoch = \"us\"" => (millis * 1_000).to_string(),
        "" => moment.to_rfc3339(),
        _ if millis % 2 == 0 => moment.format("%m/%d/%Y %I:%M:%S %p").to_string(),
        _ => moment.format("%d.%m.%Y").to_string(),
    }
}

fn moments() -> impl Strategy<Value = SampledAttribute> {
    let sampled = (
        one_of(&["date", "timestamp"]),
        one_of(&[
            "",
            "epoch = \"s\"",
            "epoch = \"ms\"",
            "epoch = \"us\"",
            "format = [\"%m/%d/%Y %I:%M:%S %p\", \"%d.%m.%Y\"]",
        ]),
        one_of(&["", "missing = [\"2021-05-24\", \"2021-05-24T00:00:00Z\"]"]),
        one_of(&["", "round = \"hour\"", "round = \"day\"", "round = \"week\"", "round = \"month\""]),
        one_of(&[
            "",
            "\"minute\", \"hour\", \"day\"",
            "\"second\"",
            "\"day\", \"month\"",
            "\"week\", \"month\", \"year\"",
            "\"month\", \"quarter\", \"year\"",
            "\"year\"",
        ]),
        one_of(&[
            "",
            ", min = \"2021-04-07T10:30:20Z\", max = \"2022-12-31\"",
            ", min = \"2020-12-28\", max = \"2022-05-31\"",
        ]),
        // 2020-09 to 2022-12.
        prop::collection::vec(prop_oneof![1_600_000_000_000..1_670_000_000_000_i64, Just(1_621_814_400_000)], 1..8),
    );
    sampled.prop_map(|(kind, spelling, missing, rounding, levels, domain, values)| {
        let hierarchy = if levels.is_empty() {
            String::new()
        } else {
            format!("hierarchy = {{ kind = \"truncate\", levels = [{levels}]{domain} }}")
        };
        let cells = values.into_iter().map(|millis| format_moment(spelling, millis)).collect();
        with_keys(&[&format!("type = \"{kind}\""), spelling, missing, rounding, &hierarchy], cells)
    })
}

fn places() -> impl Strategy<Value = SampledAttribute> {
    let sampled = (
        one_of(&["", "round = 0.1", "round = 0.7", "round = 0.0001"]),
        one_of(&[
            "",
            "hierarchy = { kind = \"grid\", cells = [1, 10] }",
            "hierarchy = { kind = \"grid\", cells = [2.5, 45] }",
        ]),
        prop::collection::vec((-90.0..=90.0_f64, -180.0..=180.0_f64), 1..8),
        any::<bool>(),
    );
    sampled.prop_map(|(rounding, hierarchy, mut values, at_the_edge)| {
        if at_the_edge {
            values.extend([(90.0, 180.0), (-90.0, -180.0), (0.0, -0.0)]);
        }
        let cells = values.iter().map(|(latitude, longitude)| format!("{latitude}, {longitude}")).collect();
        with_keys(&["type = \"coordinates\"", rounding, hierarchy], cells)
    })
}

fn attribute() -> impl Strategy<Value = SampledAttribute> {
    prop_oneof![numbers(), texts(), moments(), places()]
}

/// A constant attribute prevents all-suppressed lines.
fn schema(attributes: &[SampledAttribute]) -> Option<Schema> {
    let mut text = "name = \"t\"\n[[attribute]]\nname = \"always\"\ntype = \"string\"\n".to_owned();
    for (number, attribute) in attributes.iter().enumerate() {
        text += &format!("[[attribute]]\nname = \"a{number}\"\npointer = \"/deep/a{number}\"\n{}\n", attribute.keys);
    }
    // Such as levels below the rounding.
    Schema::parse(&text, "s.toml", Path::new(".")).ok()
}

fn release(config: &Config, schema: &Schema, attributes: &[SampledAttribute]) {
    let names: Vec<&str> = schema.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    let layout = line_format(config, schema).layout(&names);
    let key = DigestKey([7; 32]);
    let always = ["always".to_owned()];
    let mut printed: Vec<Vec<String>> = Vec::new();
    for (at, attribute) in schema.attributes.iter().enumerate() {
        let mut book = Codebook::new(Arc::clone(attribute), &key, 1_000).expect("a codebook");
        let cells = at.checked_sub(1).map_or(&always[..], |at| &attributes[at].cells);
        let codes: Vec<_> = cells.iter().filter_map(|cell| book.encode(RawToken::Untyped(cell)).ok()).collect();
        let texts =
            |level: usize| codes.iter().map(|code| book.text(book.cell(*code, level)).to_owned()).collect::<Vec<_>>();
        let mut texts: Vec<String> = if at == 0 { texts(0) } else { (0..book.levels()).flat_map(texts).collect() };
        texts.sort_unstable();
        texts.dedup();
        printed.push(if texts.is_empty() { vec!["null".to_owned()] } else { texts });
    }
    let longest = printed.iter().map(Vec::len).max().unwrap_or_default();
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for row in 0..longest {
        let cells: Vec<&str> = printed.iter().map(|texts| texts[row % texts.len()].as_str()).collect();
        let mut line = Vec::new();
        layout.write(&cells, &mut line);
        line.push(b'\n');
        lines.extend([line.clone(), line]);
    }
    let format = file_format(config.sink.format(), config.source.separator);
    let columns = OutputColumn::of_attributes(schema.attributes.iter().map(AsRef::as_ref));
    let place = ReleaseTarget::claim_target(&config.sink.path, format).expect("a place");
    place
        .write_release::<SinkError>(&columns, |write| lines.iter().try_for_each(|line| write(line)))
        .expect("a release");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_global_rejects: 40_000, ..ProptestConfig::default() })]
    #[test]
    fn recount_accepts_releases_of_every_spelling(
        attributes in prop::collection::vec(attribute(), 1..4),
        (format, shape) in prop::sample::select(vec![("json", "flat"), ("json", "nested"), ("csv", "flat"), ("parquet", "flat")]),
    ) {
        let schema = schema(&attributes);
        prop_assume!(schema.is_some());
        let schema = schema.expect("a schema");
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("released");
        let text = format!(
            "[source]\nkind = \"file\"\npath = \"in.ndjson\"\n[sink]\nkind = \"file\"\npath = {path:?}\nformat = \"{format}\"\n\
             [output]\nshape = \"{shape}\"\n[schema]\nfile = \"s.toml\"\n[privacy]\nk = 2\n"
        );
        let config = config::parse(&text, "c.toml", std::iter::empty()).expect("a configuration");
        release(&config, &schema, &attributes);
        let shapes = group_shapes(&config, &schema, "c.toml").expect("groups");
        let found = recount_release((&config, &schema, &shapes), &path, None, None, None).expect("a recount");
        prop_assert!(found.kept, "{:?}\n{}", found.broken, std::fs::read_to_string(&path).unwrap_or_default());
    }
}
