//! Threats 29, 19 and 21: spellings of one subject, date formats, and attributes that a schema does not protect.

use crate::support;

use std::path::Path;
use std::sync::Arc;
use support::binary::{Account, Place};
use support::schemas::{CITY, PERSON};
use support::stand::{Fault, Stand, record};
use throng::daemon::state::records::Flush;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::release::line_limits::LineLimit;
use throng_core::release::verifier_input::{GroupTerms, VerifierInput};
use throng_core::release::verify::{Violation, verify};
use throng_core::treatment::proposal::{LineRun, ProposedGroup};
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;
use throng_formats::LineFormat;

const AGE: &str = "[[attribute]]\nname = \"age\"\ntype = \"integer\"\n";
const K5: &str = "[privacy]\nk = 5\n";
const NOW: i64 = 1_700_000_000_000;

fn schema(subject: &str, more: &str) -> String {
    format!("name = \"spelled\"\n{PERSON}{subject}\n{more}")
}

/// `people` are JSON texts, next to a crowd with other values.
fn leaves(schema: &str, people: &[&str]) -> usize {
    let mut stand = Stand::new(schema, K5);
    let mut records: Vec<_> =
        (0..6).map(|i| record(format!(r#"{{"person":"crowd {i}","age":90,"city":"Bern"}}"#))).collect();
    records.extend(people.iter().map(|person| record(format!(r#"{{"person":{person},"age":41,"city":"Zug"}}"#))));
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(stand.sink.lines.iter().filter(|l| l.text.contains("Bern")).count(), 6, "the crowd leaves");
    stand.sink.lines.iter().filter(|l| l.text.contains("Zug") || l.text.contains("41")).count()
}

#[test]
fn threat_29_spellings_of_one_name_are_one_subject() {
    let plain = schema("", &[AGE, CITY].concat());
    for jose in [
        // Composed, decomposed, with surrounding white space, and with invisible characters.
        [r#""José""#, r#""Jose\u0301""#, r#"" José""#, r#""José\u00a0""#, r#""\ufeffJos\u200be\u0301\t""#],
        // Of another width, with ligatures, and with other kinds of spaces.
        [r#""José Fi""#, r#""José ﬁ""#, r#""Ｊｏｓé  fi""#, r#""José\u3000Fi""#, r#""Jos\u00ade\u0301 fi""#],
    ] {
        let merged = schema("case = \"fold\"", &[AGE, CITY].concat());
        assert_eq!(leaves(&merged, &jose), 0, "{jose:?}");
    }
    let one = [r#""José""#, r#""Jose\u0301""#, r#"" José""#, r#""José\u00a0""#, r#""\ufeffJosé\u0000""#];
    assert_eq!(leaves(&plain, &one), 0, "without a word in the schema");
    let five = [r#""José""#, r#""Jose""#, r#""josé""#, r#""José M""#, r#""Jozé""#];
    assert_eq!(leaves(&plain, &five), 5);
    let cases = [r#""ana""#, r#""Ana""#, r#""ANA""#, r#""aNA""#, r#""anA""#];
    assert_eq!(leaves(&plain, &cases), 5, "cases are people unless the schema folds them");
    assert_eq!(leaves(&schema("case = \"fold\"", &[AGE, CITY].concat()), &cases), 0);
    assert_eq!(leaves(&plain, &[r#""""#, r#"" ""#, r#""\u200b""#, r#""\t""#, r"null"]), 0);
}

#[test]
fn threat_29_spellings_of_one_number_are_one_subject() {
    let plain = schema("", &[AGE, CITY].concat());
    assert_eq!(
        leaves(&plain, &["7", "7.0", r#""7""#, r#""7.0""#, r#""07""#, r#""+7""#, r#""7e0""#, r#"" 7 ""#, r#""７""#]),
        0
    );
    assert_eq!(leaves(&plain, &["0", "-0", "-0.0", r#""-0""#, r#""00""#, r#""0e9""#]), 0);
    // Beyond the precision of a double: adjacent numbers are two subjects.
    let huge = [
        "9007199254740993",
        r#""9007199254740993""#,
        "9007199254740993.0",
        r#""09007199254740993""#,
        "9.007199254740993e15",
    ];
    assert_eq!(leaves(&plain, &huge), 0);
    let neighbours =
        ["9007199254740993", "9007199254740992", r#""9007199254740994""#, "9007199254740995", r#""9007199254740996""#];
    assert_eq!(leaves(&plain, &neighbours), 5);
    let exact = schema("normalize = \"none\"", &[AGE, CITY].concat());
    assert_eq!(leaves(&exact, &[r#""7""#, r#""07""#, r#""007""#, r#""7 ""#, r#"" 7""#]), 5);
}

#[test]
fn threat_29_texts_are_normalized_as_configured() {
    let city = "[[attribute]]\nname = \"city\"\ntype = \"string\"\nnormalize = \"nfc\"\ncase = \"fold\"\n";
    let mut stand = Stand::new(&schema("", &[AGE, city].concat()), K5);
    let spelled = ["Zürich", r"Zu\u0308rich", " ZÜRICH", r"zürich\u00a0", r"Z\u200bürich"];
    let records: Vec<_> = (0..)
        .zip(spelled)
        .map(|(i, city)| record(format!(r#"{{"person":"p{i}","age":41,"city":"{city}"}}"#)))
        .collect();
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    let texts: Vec<&str> = stand.sink.lines.iter().map(|l| l.text.as_str()).collect();
    assert_eq!(texts, [r#"{"age":41,"city":"zürich"}"#; 5]);
    // Leading zeros are part of a postcode.
    let zip = "[[attribute]]\nname = \"city\"\ntype = \"string\"\nnormalize = \"nfkc\"\n";
    let mut stand = Stand::new(&schema("", &[AGE, zip].concat()), K5);
    let records: Vec<_> = (0..5).map(|i| record(format!(r#"{{"person":"p{i}","age":41,"city":"07001 "}}"#))).collect();
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    assert!(stand.sink.lines.iter().all(|l| l.text.contains(r#""07001""#)) && stand.sink.lines.len() == 5);
}

#[test]
fn threat_29_state_with_other_normalization_is_refused() {
    let place = Place::new(&schema("", AGE), "");
    let records: String = (0..9).map(|i| format!("{{\"person\":\"p{i}\",\"age\":41}}\n")).collect();
    place.write("in.ndjson", &records);
    assert_eq!(place.run(&[]).expect(0).account().released, 9);
    place.write("schema.toml", schema("case = \"fold\"", AGE));
    place.write("in.ndjson", records.clone() + &records);
    let outcome = place.run(&[]).expect(2);
    assert!(outcome.stderr.contains("the record schema"), "{}", outcome.stderr);
}

#[test]
fn threat_29_identifiers_are_suppressed_from_the_first_batch() {
    // A shared address has a crowd and still identifies a person.
    let contact = "[[attribute]]\nname = \"contact\"\ntype = \"string\"\n";
    let with_prefix = format!("{contact}[attribute.hierarchy]\nkind = \"prefix\"\nkeep = [4]\n");
    let sensitive = format!("{contact}role = \"sensitive\"\n");
    for attribute in [contact, &with_prefix, &sensitive] {
        for value in [
            r#""anna@example.org""#,
            r#""https://example.org/anna""#,
            r#""+41 44 632 11 11""#,
            r#""078-05-1120""#,
            r#""ａnna＠example.org""#,
            r#""an\u200bna@example.org""#,
            r#"["anna@example.org"]"#,
        ] {
            let mut stand = Stand::new(&schema("", &[AGE, attribute].concat()), K5);
            for batch in 0..3 {
                let records: Vec<_> = (0..12)
                    .map(|i| {
                        let value = if i % 2 == 0 { value } else { r#""none""# };
                        record(format!(r#"{{"person":"p{i}","age":41,"contact":{value}}}"#))
                    })
                    .collect();
                stand.offer(&records, Flush::No, NOW + batch, Fault::Restart);
            }
            let left: Vec<&str> = stand.sink.lines.iter().map(|l| l.text.as_str()).collect();
            assert!(left.len() >= 24, "{left:?}");
            assert!(left.iter().all(|text| !text.contains("example") && !text.contains("11")), "{left:?}");
            assert!(left.iter().all(|text| !text.contains("078")), "{left:?}");
        }
    }
}

#[test]
fn threat_29_verification_refuses_identifying_values() {
    let text = "name = \"t\"\n[[attribute]]\nname = \"contact\"\ntype = \"string\"\nrole = \"insensitive\"\n";
    let schema = Schema::parse(text, "t.toml", Path::new("")).expect("a schema");
    let verdict = |value: &str, quasi: bool| {
        let mut book = Codebook::new(Arc::clone(&schema.attributes[0]), &DigestKey([7; 32]), 10).expect("a book");
        book.encode(RawToken::Text(value)).expect("a text");
        let layout = LineFormat::Json.layout(&["contact"]);
        let mut proposed = ProposedGroup::default();
        layout.write(&[format!("\"{value}\"").as_str()], &mut proposed.arena);
        proposed.rows = (0..6).collect();
        proposed.runs.push(LineRun { line: 0..proposed.arena.len(), rows: 0..6 });
        let terms = GroupTerms {
            attributes: vec![0],
            quasi: vec![quasi],
            sensitive: vec![false],
            layout,
            base: 1,
            sensitive_bases: vec![2],
            protected: Vec::new(),
            narrowing: None,
            lines: LineLimit::None,
            ranges: false,
            shown_elsewhere: Vec::new(),
            holders_elsewhere: throng_core::values::subjects_by_value::SubjectsByValue::default(),
        };
        let ledger = SubjectLedger::default();
        let given = VerifierInput {
            subjects: &[1, 2, 3, 4, 5, 6],
            columns: &[vec![3; 6]],
            waiting: 0,
            sequence: 1,
            age_ms: NOW,
        };
        let verified = verify(vec![proposed], &given, &[terms], &[book], ledger.at(NOW), 5);
        verified.err().map(|refusal| refusal.violation)
    };
    assert_eq!(verdict("Zug", true), None);
    assert_eq!(verdict("anna@example.org", true), Some(Violation::Identifier));
    assert_eq!(verdict("anna@example.org", false), None, "insensitive: it may");
}

#[test]
fn threat_21_unprotected_attributes_are_named() {
    let more = "[[attribute]]\nname = \"note\"\ntype = \"string\"\nrole = \"insensitive\"\n\
                [[attribute]]\nname = \"badge\"\ntype = \"integer\"\nrole = \"insensitive\"\n\
                [[attribute]]\nname = \"colour\"\ntype = \"string\"\nrole = \"insensitive\"\n\
                [[attribute]]\nname = \"contact\"\ntype = \"string\"\n";
    let place = Place::new(&format!("name = \"nobody\"\n{AGE}{more}"), "");
    let records: String = (0..60)
        .map(|i| {
            format!(
                "{{\"age\":41,\"note\":\"p{}@example.org\",\"badge\":{},\"colour\":\"c{}\",\"contact\":\"p{i}@example.org\"}}\n",
                i % 7,
                1000 + i,
                i % 3
            )
        })
        .collect();
    place.write("in.ndjson", &records);
    let mut check = crate::support::binary::throng();
    check.args(["check", "-c", "throng.toml"]);
    place.surround(&mut check, &[]);
    let checked = check.output().expect("it runs");
    assert!(checked.status.success());
    let run = place.run(&[]).expect(0);
    for said in [String::from_utf8_lossy(&checked.stderr).into_owned(), run.stderr] {
        for what in ["has no subject", "\"note\" is insensitive", "\"badge\" is insensitive", "\"contact\" has values"]
        {
            assert!(said.contains(what), "{what:?} is not in {said}");
        }
        assert!(!said.contains("\"colour\" is insensitive"), "{said}");
        assert!(!said.contains("@example"), "{said}");
    }
    let process = place.start(&[("SOURCE__PATH", "-"), ("SINK__PATH", "other.ndjson"), ("STATE__PATH", "another")]);
    let status = process.until("the doubt is there", |s| s["doubts"].as_array().is_some_and(|d| !d.is_empty()));
    assert!(status["doubts"][0].as_str().is_some_and(|d| d.contains("has no subject")), "{status}");
    process.terminate();
    process.wait().expect(0);
}

const SEEN: &str = "[[attribute]]\nname = \"seen\"\ntype = \"date\"\n";

fn seen(schema_keys: &str, date: &str) -> (Vec<String>, usize) {
    let mut stand = Stand::new(&schema("", &format!("{AGE}{SEEN}{schema_keys}")), K5);
    let records: Vec<_> = (0..6).map(|i| record(format!(r#"{{"person":"p{i}","age":41,"seen":{date}}}"#))).collect();
    stand.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    (stand.sink.lines.iter().map(|l| l.text.clone()).collect(), stand.sink.rejected.len())
}

#[test]
fn threat_19_dates_are_read_only_in_the_configured_format() {
    for guess in [
        "20240512",
        "2024",
        r#""20240512""#,
        r#""2024""#,
        r#""5/12/2024""#,
        "1715472000",
        "1715472000000",
        r#""12.05.2024""#,
    ] {
        let (left, rejected) = seen("", guess);
        assert_eq!((left.len(), rejected), (0, 6), "{guess}: {left:?}");
    }
    for (keys, date) in [
        ("", r#""2024-05-12""#),
        ("format = \"%Y%m%d\"", "20240512"),
        ("format = \"%m/%d/%Y\"", r#""5/12/2024""#),
        ("format = [\"%m/%d/%Y %I:%M:%S %p\", \"%m/%d/%Y\"]", r#""5/12/2024 4:35:00 PM""#),
        ("epoch = \"s\"", "1715529600"),
        ("epoch = \"ms\"", "1715529600000"),
        ("epoch = \"us\"", r#""1715529600000000""#),
    ] {
        let (left, rejected) = seen(keys, date);
        assert_eq!(rejected, 0, "{keys} {date}");
        assert_eq!(left, [r#"{"age":41,"seen":"2024-05-12"}"#; 6], "{keys} {date}");
    }
    for (keys, date) in [
        ("format = \"%m/%d/%Y\"", r#""2024-05-12""#),
        ("format = \"%m/%d/%Y\"", r#""5/12/24""#),
        ("epoch = \"s\"", "1715529600000"),
        ("epoch = \"s\"", r#""2024-05-12""#),
    ] {
        assert_eq!(seen(keys, date), (Vec::new(), 6), "{keys} {date}");
    }
}

#[test]
fn ambiguous_date_formats_are_refused_by_check() {
    for (keys, says) in [
        ("format = \"%m/%d\"", "without a year"),
        ("format = \"%m/%d/%y\"", "century"),
        ("format = [\"%m/%d/%Y\", \"%d/%m/%Y\"]", "ambiguous"),
        ("format = \"%Q\"", "unknown letter"),
        ("format = []", "must be a format"),
        ("format = 7", "must be a format"),
        ("epoch = \"h\"", "epoch"),
        ("epoch = \"s\"\nformat = \"%Y-%m-%d\"", "exclude each other"),
        ("normalize = \"nfc\"", "only strings"),
    ] {
        let place = Place::new(&schema("", &format!("{AGE}{SEEN}{keys}\n")), "");
        place.write("in.ndjson", "");
        let outcome = place.run(&[]).expect(2);
        assert!(
            outcome.stderr.contains(says) && outcome.stderr.contains("attribute[2] \"seen\""),
            "{keys}: {}",
            outcome.stderr
        );
    }
    let stamp = "[[attribute]]\nname = \"at\"\ntype = \"timestamp\"\nformat = \"%m/%d/%Y %I:%M:%S %p\"\n";
    let place = Place::new(&schema("", stamp), "");
    place.write("in.ndjson", "");
    assert!(place.run(&[]).expect(1).stderr.contains("UTC is assumed"));
}

#[test]
fn real_data_fitbit_exports_are_read() {
    let Some(data) = std::env::var_os("THRONG_TEST_DATA").map(std::path::PathBuf::from) else {
        eprintln!("ignored: THRONG_TEST_DATA is not set");
        return;
    };
    let daily = "name = \"fitbit days\"\n\
        [[attribute]]\nname = \"Id\"\ntype = \"integer\"\nrole = \"subject\"\n\
        [[attribute]]\nname = \"ActivityDate\"\ntype = \"date\"\nrole = \"time\"\nformat = \"%m/%d/%Y\"\n\
        [attribute.hierarchy]\nkind = \"truncate\"\nlevels = [\"week\", \"year\"]\n\
        [[attribute]]\nname = \"TotalSteps\"\ntype = \"integer\"\nround = 5000\n";
    let place = Place::new(daily, "[[group]]\nname = \"day\"\nattributes = [\"ActivityDate\", \"TotalSteps\"]\n");
    place.write("in.csv", std::fs::read(data.join("fitbit/daily_activity.csv")).expect("the data"));
    let outcome = place.run(&[("SOURCE__PATH", "in.csv"), ("BATCH__MAX_RECORDS", "1000")]).expect(0);
    let account = outcome.account();
    assert_eq!((account.consumed, account.dead_lettered), (940, 0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("TotalDistance"), "dropped columns are named: {}", outcome.stderr);
    let lines = place.lines("out.ndjson");
    assert!(lines.len() > 500 && lines.iter().any(|l| l.contains("2016")), "{} lines", lines.len());
    assert!(lines.iter().all(|l| !l.contains("1970")));
    // The day in one column, the hour in another.
    let hourly = "name = \"fitbit hours\"\n\
        [[attribute]]\nname = \"Id\"\ntype = \"integer\"\nrole = \"subject\"\n\
        [[attribute]]\nname = \"ActivityDay\"\ntype = \"date\"\nformat = \"%m/%d/%Y\"\n\
        [[attribute]]\nname = \"StepTotal\"\ntype = \"integer\"\nround = 1000\n";
    let place = Place::new(hourly, "");
    place.write("in.csv", std::fs::read(data.join("fitbit/hourly_steps.csv")).expect("the data"));
    let account: Account = place.run(&[("SOURCE__PATH", "in.csv"), ("BATCH__MAX_RECORDS", "5000")]).expect(0).account();
    assert_eq!((account.consumed, account.dead_lettered), (22_099, 0));
}
