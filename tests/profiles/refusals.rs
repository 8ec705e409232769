//! Join configurations that `throng check` rejects.

use crate::profiles::SCHEMA;
use crate::support::binary::Place;

fn refused(schema: &str, more: &str, overrides: &[(&str, &str)], wanted: &str) {
    refused_with(&[], schema, more, overrides, wanted);
}

fn refused_with(options: &[&str], schema: &str, more: &str, overrides: &[(&str, &str)], wanted: &str) {
    let place = Place::new(schema, more);
    place.write("in.ndjson", "{\"person\":\"p1\",\"ward\":\"east\"}\n");
    let mut command = crate::support::binary::throng();
    command.args(["check", "-c", "throng.toml"]).args(options);
    place.surround(&mut command, overrides);
    let out = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert_eq!(out.status.code(), Some(2), "{more}: {said}");
    assert!(said.contains(wanted), "{more}: {said}");
}

const PATH: &str = "[[join]]\nname = \"profiles\"\npath = \"p.csv\"\n";

#[test]
fn join_contradictions_are_refused_with_their_key() {
    for (more, wanted) in [
        ("", "attribute \"age\" of the schema is from the join \"profiles\", which is missing"),
        ("[[join]]\nname = \"profiles\"\n", "join[0].topic: profiles are read from a topic or from a file"),
        (
            "[[join]]\nname = \"profiles\"\npath = \"p.csv\"\ntopic = \"t\"\n",
            "join[0].topic: profiles are read from a topic or",
        ),
        ("[[join]]\nname = \"profiles\"\ntopic = \"t\"\n", "but the source is a file"),
        ("[[join]]\nname = \"Profiles\"\npath = \"p.csv\"\n", "join[0].name: invalid join name"),
        ("[[join]]\nname = \"profiles\"\npath = \"-\"\n", "join[0].path: only the source can read standard input"),
        ("[[join]]\nname = \"profiles\"\npath = \"p.csv\"\nkey = \"\"\n", "join[0].key: a row is not a person"),
        ("[[join]]\nname = \"profiles\"\npath = \"p.csv\"\nformat = \"avro\"\n", "join[0].format"),
        ("[[join]]\nname = \"profiles\"\npath = \"p.csv\"\nmax_people = 0\n", "join[0].max_people: no subject would"),
        ("[[join]]\nname = \"profiles\"\npath = \"p.csv\"\nattributes = [\"age\"]\n", "attributes"),
    ] {
        refused(SCHEMA, more, &[], wanted);
    }
    for several in ["../*.csv", "."] {
        let more = PATH.replace("p.csv", several);
        refused(SCHEMA, &more, &[], "join[0].path: profiles are read from one file");
    }
    let twice = format!("{PATH}{PATH}");
    refused(SCHEMA, &twice, &[], "join[1].name: duplicate join name");
    let idle = format!("{PATH}[[join]]\nname = \"idle\"\npath = \"q.csv\"\n");
    refused(SCHEMA, &idle, &[], "join[1].name: no releasable attribute of the schema comes from it");
    refused(SCHEMA, PATH, &[("TREATMENT__PRESET", "coverage")], "treatments that alter values would be undone");
    let sink = PATH.replace("p.csv", "out.ndjson");
    refused(SCHEMA, &sink, &[], "out.ndjson is also a file of join[0].path");
}

#[test]
fn profile_topic_must_differ_from_other_topics() {
    let kafka = [("SOURCE__KIND", "kafka"), ("SOURCE__TOPICS", "raw"), ("SINK__KIND", "kafka"), ("SINK__TOPIC", "out")];
    let join = |more: &str| format!("[[join]]\nname = \"profiles\"\n{more}\n");
    refused(SCHEMA, &join("topic = \"raw\""), &kafka, "this topic is also named by source.topics");
    refused(SCHEMA, &join("topic = \"out\""), &kafka, "this topic is also named by");
    refused(SCHEMA, &join("topic = \"a b\""), &kafka, "invalid name of a Kafka topic");
    refused(SCHEMA, &join("topic = \"p\"\nformat = \"csv\""), &kafka, "join[0].format: messages of a topic");
    refused(SCHEMA, &join("topic = \"p\"\nformat = \"avro\""), &kafka, "join[0].format: Avro cannot");
    refused(SCHEMA, &join("topic = \"p\"\nkey_format = \"avro\""), &kafka, "join[0].key_format: Avro cannot");
}

#[test]
fn join_requires_subject_attribute_in_record() {
    let nobody = SCHEMA.replace("role = \"subject\"\n", "");
    refused(&nobody, PATH, &[], "profiles are found by subject, but no attribute is the subject");
    let itself = SCHEMA.replace("role = \"subject\"\n", "role = \"subject\"\nfrom = \"join:profiles\"\n");
    refused(&itself, PATH, &[], "the subject cannot come from a profile, which is found by subject");
}

/// A trial has no cluster to read from.
#[test]
fn check_on_sample_refuses_profile_topic() {
    let kafka = [("SOURCE__KIND", "kafka"), ("SOURCE__TOPICS", "raw"), ("SINK__KIND", "kafka"), ("SINK__TOPIC", "out")];
    let join = "[[join]]\nname = \"profiles\"\ntopic = \"p\"\n";
    let wanted = "join[0].topic: a trial run reads only files, but the profiles of \"profiles\" are in a topic";
    refused_with(&["--sample", "in.ndjson"], SCHEMA, join, &kafka, wanted);
}
