//! Content and validity of complete proposals.

use super::{InferenceError, InferenceOptions, InferredSchema, infer};
use crate::io::file::FileFormat;
use crate::io::table::{LoadedTable, TableRequest, read};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use throng_core::values::schema::{AttributeType, ChangeFrequency, Role};
use throng_formats::DecodeLimits;

const CSV: FileFormat = FileFormat::Csv { separator: b',' };

fn table(content: impl AsRef<[u8]>, format: FileFormat) -> LoadedTable {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("input");
    std::fs::write(&path, content).expect("a file");
    let request = TableRequest {
        path: &path,
        more: &[],
        format,
        schema: None,
        selects: false,
        columns: None,
        limits: DecodeLimits::default(),
        max_columns: 4096,
        max_bytes: 1 << 30,
        max_records: None,
        skip_unreadable: true,
    };
    read(&request, &mut |_| {}).expect("a table")
}

fn asked(k: u64, format: FileFormat) -> InferenceOptions<'static> {
    InferenceOptions {
        k,
        subject: None,
        no_subject: false,
        name: "t",
        source: "t",
        header: format == CSV,
        keys: format == FileFormat::Ndjson,
        more_records_follow: false,
        effort: Duration::from_secs(2),
    }
}

fn of(content: &str, format: FileFormat) -> Result<InferredSchema, InferenceError> {
    infer(&table(content, format), &asked(3, format))
}

fn roles(inferred: &InferredSchema) -> Vec<(&str, Role)> {
    inferred.schema.attributes.iter().map(|a| (a.name.as_str(), a.role)).collect()
}

fn csv(header: &str, rows: usize, row: impl Fn(usize) -> String) -> String {
    let lines: Vec<String> = (0..rows).map(row).collect();
    format!("{header}\n{}\n", lines.join("\n"))
}

#[test]
fn identifying_columns_become_identifiers() {
    let names = ["Ada", "Bo", "Cy", "Di"];
    let text = csv("patient_id,name,mail,phone,note,record,ward,born,weight", 240, |n| {
        let p = n % 40;
        format!(
            "p{p},{} {p},a{p}@example.org,+41 44 632 {:02} {:02},seen by the doctor on the {n}th day of it,{n},{},19{:02}-03-0{},{}.{}",
            names[p % 4],
            p,
            p,
            ["north", "south"][p % 2],
            30 + p,
            1 + p % 9,
            50 + p,
            n % 10
        )
    });
    let inferred = of(&text, CSV).expect("a proposal");
    let identifier = Role::Identifier;
    assert_eq!(
        roles(&inferred),
        [
            ("patient_id", Role::Subject),
            ("name", identifier),
            ("mail", identifier),
            ("phone", identifier),
            ("note", identifier),
            ("record", identifier),
            ("ward", Role::Quasi),
            ("born", Role::Time),
            ("weight", Role::Quasi)
        ]
    );
    for value in ["Ada", "example.org", "632", "doctor", "p7"] {
        assert!(!inferred.text.contains(value), "{value} stands in\n{}", inferred.text);
    }
    assert_eq!(inferred.people, 40);
    let ward = inferred.schema.attributes.iter().find(|a| a.name == "ward").expect("a ward");
    assert_eq!(ward.changes, Some(ChangeFrequency::Never));
    let leaving = inferred.schema.attributes.iter().filter(|a| a.role.is_releasable());
    assert!(leaving.clone().all(|a| a.changes.is_some()), "every attribute that leaves declares how it changes");
    assert_eq!(inferred.text.matches("# changes = ").count(), leaving.count(), "{}", inferred.text);
}

#[test]
fn few_records_per_subject_declare_never_changing() {
    let text = csv("user_id,ward", 60, |n| format!("p{},{}", n % 40, ["north", "south"][n % 2]));
    let inferred = of(&text, CSV).expect("a proposal");
    let ward = inferred.schema.attributes.iter().find(|a| a.name == "ward").expect("a ward");
    assert_eq!(ward.changes, Some(ChangeFrequency::Never));
    assert!(inferred.text.contains("CHECK: changes"), "{}", inferred.text);
    let of_nobody = of(&csv("ward", 60, |n| ["north", "south"][n % 2].to_owned()), CSV).expect("a proposal");
    assert!(!of_nobody.text.contains("changes"), "{}", of_nobody.text);
}

#[test]
fn thin_evidence_of_never_changing_is_marked_with_people() {
    // Two people have a changing number, and ten of forty do sport on some days.
    let text = csv("user_id,ward,skin,sport", 2400, |n| {
        let (person, day) = (n % 40, n / 40);
        let skin = if person < 2 { format!("{}.5", 1 + day * 7 % 50) } else { String::new() };
        let sport = if person % 4 == 0 && day % 10 == 3 { 30 } else { 0 };
        format!("p{person:02},{},{skin},{sport}", ["north", "south"][person % 2])
    });
    let inferred = of(&text, CSV).expect("a proposal");
    assert!(inferred.schema.attributes.iter().skip(1).all(|a| a.changes == Some(ChangeFrequency::Never)));
    let comments = inferred.text.replace("\n# ", " ");
    for part in [
        " changes = \"never\": 100.0 % of the records of a person have the same value as the record before, measured on 40 people",
        " CHECK: changes = \"never\", the safe value: 100.0 % of the records of a person have another value than the record \
         before, measured on 2 people (median person), but at least 3 people are needed; set \"always\"",
        "measured on 40 people (median person), but 10 of them have several values; set \"always\"",
    ] {
        assert!(comments.contains(part), "{part:?} in\n{comments}");
    }
}

#[test]
fn types_dates_and_missing_spellings_are_detected() {
    let text = csv("user_id,day,at,epoch_time,flag,steps,temp,mood,when", 300, |n| {
        let p = n % 30;
        let steps = if n % 7 == 0 { "NA".to_owned() } else { (n * 37 % 9000).to_string() };
        format!(
            "{p},{}/{}/2024,2024-03-{:02}T{:02}:15:00Z,{},{},{steps},{}.{},{},{}",
            1 + n % 12,
            1 + n % 28,
            1 + n % 28,
            n % 24,
            1_700_000_000 + n * 61,
            n % 2,
            36 + n % 2,
            n % 10,
            ["good", "bad", "NA"][n % 3],
            if n % 2 == 0 { format!("2024-01-{:02}", 1 + n % 28) } else { format!("{}.12.2024", 1 + n % 28) }
        )
    });
    let inferred = of(&text, CSV).expect("a proposal");
    let kinds: BTreeMap<&str, AttributeType> =
        inferred.schema.attributes.iter().map(|a| (a.name.as_str(), a.kind())).collect();
    for (name, kind) in [
        ("day", AttributeType::Date),
        ("at", AttributeType::Timestamp),
        ("epoch_time", AttributeType::Timestamp),
        ("flag", AttributeType::Boolean),
        ("steps", AttributeType::Integer),
        ("temp", AttributeType::Float),
        ("mood", AttributeType::String),
        ("when", AttributeType::Date),
    ] {
        assert_eq!(kinds[name], kind, "{name}\n{}", inferred.text);
    }
    for line in
        ["format = \"%m/%d/%Y\"", "epoch = \"s\"", "missing = [\"\", \"NA\"]", "format = [\"%Y-%m-%d\", \"%d.%m.%Y\"]"]
    {
        assert!(inferred.text.contains(line), "{line}\n{}", inferred.text);
    }
}

#[test]
fn nested_keys_become_pointers_and_rare_keys_are_excluded() {
    let line = |n: usize| {
        format!(
            "{{\"user\":{{\"id\":\"u{}\"}},\"m\":{{\"a.b/c\":{}}},\"by\":{{\"u{}\":1}},\"tags\":[1,2]}}",
            n % 9,
            n % 50,
            n % 9
        )
    };
    let text: Vec<String> = (0..90).map(line).collect();
    let inferred = of(&text.join("\n"), FileFormat::Ndjson).expect("a proposal");
    assert_eq!(roles(&inferred), [("user.id", Role::Subject), ("m.a.b/c", Role::Quasi), ("tags", Role::Identifier)]);
    assert!(inferred.text.contains("pointer = \"/m/a.b~1c\""), "{}", inferred.text);
    assert!(inferred.text.contains("9 key(s)") && !inferred.text.contains("u7"), "{}", inferred.text);
}

#[test]
fn hostile_tables_are_proposed_or_refused_with_reason() {
    let refused = |content: &str| of(content, CSV).expect_err("a refusal").to_string();
    assert!(refused("a\n1\n2\n").contains("2 people"));
    assert!(refused("1,2,3\n4,5,6\n7,8,9\n1,5,6\n4,8,6\n").contains("header"));
    let nan = csv("a,b", 40, |n| format!("{},{}", if n % 2 == 0 { "NaN" } else { "1.5" }, "9".repeat(1 + n % 300)));
    let empty = csv("a,b", 40, |_| ",".to_owned());
    let one = csv("a", 40, |n| (n % 4).to_string());
    let odd = csv("\" a \",\"\",\"x\"\"y\",\"z\u{7}\"", 40, |n| format!("{0},{0},\"q\"\"{1}\\\",*", n % 4, n % 2));
    for text in [nan, empty, one, odd] {
        of(&text, CSV).expect("a proposal");
    }
    let wide = csv(&(0..2000).map(|n| format!("c{n}")).collect::<Vec<_>>().join(","), 12, |n| {
        (0..2000).map(|c| ((n + c) % 3).to_string()).collect::<Vec<_>>().join(",")
    });
    assert_eq!(of(&wide, CSV).expect("a proposal").schema.attributes.len(), 2000);
}

#[test]
fn decimal_commas_and_two_digit_years_are_detected() {
    let text = csv("user_id;weight;count;at", 300, |n| {
        format!(
            "{};{},{};{},000;{:02}/{:02}/16 10:{:02}:00",
            n % 30,
            50 + n % 40,
            n % 10,
            n % 9,
            1 + n % 12,
            13 + n % 9,
            n % 60
        )
    });
    let semicolon = FileFormat::Csv { separator: b';' };
    let inferred =
        infer(&table(&text, semicolon), &InferenceOptions { header: true, ..asked(3, semicolon) }).expect("a proposal");
    let kinds: Vec<AttributeType> = inferred.schema.attributes.iter().map(|a| a.kind()).collect();
    assert_eq!(
        kinds,
        [AttributeType::String, AttributeType::Float, AttributeType::String, AttributeType::Timestamp],
        "{}",
        inferred.text
    );
    for line in ["decimal = \",\"", "format = \"%m/%d/%y %H:%M:%S%.f\"", "first_year = "] {
        assert!(inferred.text.contains(line), "{line}\n{}", inferred.text);
    }
}

#[test]
fn unknown_subject_column_is_refused() {
    let given = table("a,b\n1,2\n2,3\n3,4\n", CSV);
    let error = infer(&given, &InferenceOptions { subject: Some("c"), ..asked(2, CSV) }).expect_err("no such column");
    assert!(error.to_string().contains("\"c\""));
}

/// Words that no schema text contains.
fn word() -> impl Strategy<Value = String> {
    "[A-Z]{2}[0-9][A-Z]{2}( [A-Z]{3})?|\"\"[A-Z]{3}|[A-Z]{3}\\\\[A-Z]{2}|[A-Z]{4}\\*|é[A-Z]{3}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any table of words, numbers and gaps.
    #[test]
    fn proposal_of_any_table_is_valid_and_omits_rare_values(
        words in prop::collection::vec(word(), 1..8),
        numbers in prop::collection::vec(100_003_i64..999_983, 1..8),
        cells in prop::collection::vec((0_usize..12, 0_usize..16, 0_usize..16, 0_u8..8), 12..120),
        with_subject in any::<bool>(),
        k in 2_u64..6,
    ) {
        let first = if with_subject { "user_id" } else { "shift" };
        let mut held: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        let text = csv(&format!("{first},group,measure"), cells.len(), |row| {
            let (person, word, number, gap) = cells[row];
            let word = if gap == 0 { String::new() } else { words[word % words.len()].replace("\"\"", "\"") };
            let number = if gap == 1 { String::new() } else { numbers[number % numbers.len()].to_string() };
            format!("s{person},\"{}\",{number}", word.replace('"', "\"\""))
        });
        for (row, &(person, word, number, gap)) in cells.iter().enumerate() {
            let who = if with_subject { person } else { row };
            if gap != 0 {
                held.entry(words[word % words.len()].replace("\"\"", "\"")).or_default().insert(who);
            }
            if gap != 1 {
                held.entry(numbers[number % numbers.len()].to_string()).or_default().insert(who);
            }
        }
        match infer(&table(&text, CSV), &InferenceOptions { no_subject: !with_subject, ..asked(k, CSV) }) {
            Err(error) => prop_assert!(matches!(error, InferenceError::TooFew { .. }), "{}", error),
            Ok(inferred) => {
                let rare = held.iter().filter(|(_, people)| (people.len() as u64) < k);
                for (value, _) in rare {
                    let spelled = super::proposal_toml::toml_string(value);
                    prop_assert!(!inferred.text.contains(spelled.trim_matches('"')), "{} in\n{}", value, inferred.text);
                }
            }
        }
    }
}

#[test]
fn person_column_is_preferred_to_session_column() {
    // 60 subjects with six sessions each; one has a unique sport in every session.
    let row = |n: usize| {
        let (user, session) = (n % 60, n % 360);
        let sport = if user == 0 { "parachute" } else { ["walk", "run"][n % 2] };
        format!("s{session:03},u{user:02},{sport}")
    };
    for header in ["user_session_id,user_id,sport", "patient_visit_no,patient_id,sport", "user_id,member_id,sport"] {
        let inferred = of(&csv(header, 1800, row), CSV).expect("a proposal");
        assert_eq!(inferred.people, 60, "{header}");
        assert!(!inferred.text.contains("parachute"), "{header}: {}", inferred.text);
        assert!(
            inferred.text.contains("CHECK whether another column identifies people"),
            "{header}: {}",
            inferred.text
        );
    }
    // A session belongs to one subject, which has many.
    let uuid = |n: usize| format!("00000000-0000-4000-8000-{:012},P{:02},{}", n % 300, n % 30, n % 7);
    let inferred = of(&csv("session,proband,steps", 1200, uuid), CSV).expect("a proposal");
    assert_eq!(roles(&inferred)[..2], [("session", Role::Identifier), ("proband", Role::Subject)], "{}", inferred.text);
}

#[test]
fn participant_and_record_codes_become_the_subject() {
    for name in ["record_id", "USUBJID", "Patientennummer", "codice paziente", "case no", "vp_code", "subject-code"] {
        // Plain numbers without a code shape.
        let inferred = of(&csv(&format!("{name},zone"), 600, |n| format!("{},{}", 7 * (n % 40), n % 3)), CSV);
        let inferred = inferred.expect("a proposal");
        assert_eq!(roles(&inferred), [(name, Role::Subject), ("zone", Role::Quasi)], "{}", inferred.text);
        assert_eq!(inferred.people, 40, "{name}");
    }
    let inferred = of(&csv("record_id,visit_no,zone", 600, |n| format!("{},{},{}", n % 40, n / 40 % 4, n % 3)), CSV);
    assert_eq!(roles(&inferred.expect("a proposal"))[0], ("record_id", Role::Subject));
}

#[test]
fn repeated_codes_without_subject_are_refused() {
    let refused = |text: &str, column: &str| match of(text, CSV) {
        Err(InferenceError::RepeatedCodes { columns }) => assert_eq!(columns, [column], "{text:.200}"),
        other => panic!("{column}: {other:?}"),
    };
    // By the shape of values, by name, and by determined columns.
    refused(&csv("badge,ward", 1200, |n| format!("B-{:03},{}", n % 40, ["a", "b"][n % 2])), "badge");
    refused(&csv("screening,ward", 1200, |n| format!("101-{:04},{}", n % 40, ["a", "b"][n % 2])), "screening");
    refused(&csv("visit_id,ward", 1200, |n| format!("{},{}", n % 40, ["a", "b"][n % 2])), "visit_id");
    refused(&csv("device_id,ward", 1200, |n| format!("{},{}", n % 40, ["a", "b"][n % 2])), "device_id");
    let profile = |n: usize| {
        let p = n % 40;
        format!("{},{},{},{}", 1000 + 17 * p, 20 + p * 7 % 20, ["f", "m"][p * p % 3 % 2], n * 31 % 97)
    };
    refused(&csv("tag,age,sex,pulse", 1200, profile), "tag");
    // Places and their regions are no profile.
    let words = ["bern", "rome", "oslo", "bonn", "lima", "bari", "kyiv", "riga", "graz", "linz", "lyon", "nice"];
    let towns = csv("town,county,pulse", 1200, |n| format!("{},{},{}", words[n % 12], n % 12 / 3, n * 31 % 97));
    assert_eq!(roles(&of(&towns, CSV).expect("a proposal"))[0], ("town", Role::Quasi));
}

#[test]
fn no_subject_option_accepts_repeated_codes() {
    let text = csv("badge,ward,pulse", 1200, |n| format!("B-{:03},{},{}", n % 40, ["a1", "b2"][n % 2], n % 9));
    let declared = InferenceOptions { no_subject: true, ..asked(3, CSV) };
    let inferred = infer(&table(&text, CSV), &declared).expect("a proposal");
    assert_eq!(roles(&inferred), [("badge", Role::Identifier), ("ward", Role::Quasi), ("pulse", Role::Quasi)]);
    let named =
        infer(&table(&text, CSV), &InferenceOptions { subject: Some("badge"), ..asked(3, CSV) }).expect("a proposal");
    assert_eq!((roles(&named)[0], named.people), (("badge", Role::Subject), 40));
}

#[test]
fn numbers_that_determine_static_attributes_become_identifiers() {
    let row = |n: usize| {
        let p = n % 60;
        // Two tags per subject.
        format!("u{p},{},{},{},{}", 5000 + 13 * p + n / 60 % 2, 20 + p * 7 % 40, ["f", "m"][p * p % 3 % 2], n * 31 % 97)
    };
    let inferred = of(&csv("user_id,tag,age,sex,pulse", 2400, row), CSV).expect("a proposal");
    let (subject, identifier, quasi) = (Role::Subject, Role::Identifier, Role::Quasi);
    let expected = [("user_id", subject), ("tag", identifier), ("age", quasi), ("sex", quasi), ("pulse", quasi)];
    assert_eq!(roles(&inferred), expected, "{}", inferred.text);
}

/// German `1.234` is more than a thousand.
#[test]
fn thousands_points_are_not_read_as_decimal_points() {
    let grouped = |n: usize, mark: &str| {
        let number = n % 300 * 37 % 9_000;
        if number < 1000 { number.to_string() } else { format!("{}{mark}{:03}", number / 1000, number % 1000) }
    };
    let semicolons = FileFormat::Csv { separator: b';' };
    let german =
        csv("user_id;steps;weight", 900, |n| format!("u{};{};{},{}", n % 50, grouped(n, "."), 60 + n % 9, n % 10));
    let inferred = of(&german, semicolons).expect("a proposal");
    assert_eq!(roles(&inferred)[1..], [("steps", Role::Identifier), ("weight", Role::Quasi)], "{}", inferred.text);
    assert!(inferred.text.contains("may separate thousands"), "{}", inferred.text);
    // Without another column the point is ambiguous.
    let alone = csv("user_id;steps", 900, |n| format!("u{};{}", n % 50, grouped(n, ".")));
    let inferred = of(&alone, semicolons).expect("a proposal");
    assert!(inferred.text.contains("CHECK: points are read as decimal points"), "{}", inferred.text);
    let decimals = csv("user_id;km", 900, |n| format!("u{};{}.{:03}", n % 50, n % 9, n * 37 % 1000));
    assert!(!of(&decimals, semicolons).expect("a proposal").text.contains("thousands"));
    let english = csv("user_id;steps", 900, |n| format!("u{};{}", n % 50, grouped(n, ",")));
    let inferred = of(&english, semicolons).expect("a proposal");
    assert!(inferred.text.contains("CHECK: whole numbers with thousands separators"), "{}", inferred.text);
}

#[test]
fn database_timestamps_get_role_time() {
    for zone in ["+02", "+00", " UTC", ".123456-07"] {
        let row = |n: usize| format!("u{},2024-05-{:02} {:02}:{:02}:00{zone}", n % 50, 1 + n % 28, n % 24, n % 60);
        let inferred = of(&csv("user_id,taken", 900, row), CSV).expect("a proposal");
        assert_eq!(roles(&inferred)[1], ("taken", Role::Time), "{zone}: {}", inferred.text);
    }
}

#[test]
fn version_numbers_stay_texts() {
    let row = |n: usize| format!("u{},{}", n % 50, ["1.0", "1.1", "1.10"][n % 3]);
    for name in ["app_version", "firmware"] {
        let inferred = of(&csv(&format!("user_id,{name}"), 900, row), CSV).expect("a proposal");
        assert_eq!(inferred.schema.attributes[1].kind(), AttributeType::String, "{}", inferred.text);
        assert!(inferred.text.contains("\"1.10\""), "{}", inferred.text);
    }
}

#[test]
fn repeated_header_row_is_refused_with_its_number() {
    let once = csv("user_id,age", 100, |n| format!("u{},{}", n % 50, n % 7));
    let refused = of(&format!("{once}{once}"), CSV).expect_err("two headers");
    assert!(matches!(refused, InferenceError::RepeatedHeader { row: 101 }), "{refused}");
    let headless = of(&csv("7,2024-01-01", 100, |n| format!("{},2024-01-{:02}", n % 50, 1 + n % 28)), CSV);
    assert!(matches!(headless, Err(InferenceError::NoHeader)));
}

#[test]
fn years_of_one_subject_are_not_in_the_proposal() {
    let row = |n: usize| {
        let year = if n.is_multiple_of(100) { 1987 } else { 2024 };
        format!("u{:02},{year}-0{}-1{}", n % 100, 1 + n % 9, n % 9)
    };
    let inferred = of(&csv("user_id,day", 1000, row), CSV).expect("a proposal");
    assert!(inferred.text.contains("2024-") && !inferred.text.contains("1987"), "{}", inferred.text);
}
