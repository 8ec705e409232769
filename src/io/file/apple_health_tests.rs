use std::fmt::Write as _;
use std::fs;

use proptest::prelude::*;

use super::*;
use crate::io::file::FileFormat;

const PROLOG: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE HealthData [\n<!ELEMENT HealthData (Me,Record*)>\n]>\n";
const AT: RecordPosition = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };

fn reading(names: &[&str], unknown: UnknownCellPolicy) -> FileReadSettings {
    let fields = names.iter().map(|name| FieldPath::top_level(name)).collect();
    let limits = DecodeLimits { max_record_bytes: 1000, max_depth: 8, ..DecodeLimits::default() };
    FileReadSettings { format: FileFormat::AppleHealth, fields, limits, unknown, stop: StopFlag::default() }
}

fn open(export: &[u8], reading: &FileReadSettings) -> (tempfile::TempDir, AppleHealthRecords) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ana.xml");
    fs::write(&path, export).unwrap();
    let records = AppleHealthRecords::open(&path, reading).unwrap();
    (directory, records)
}

/// Returns person, type and value of each record, or the reason of its rejection.
fn read_with(export: &[u8], unknown: UnknownCellPolicy) -> Result<Vec<String>, String> {
    let (_directory, mut records) = open(export, &reading(&["person", "type", "value"], unknown));
    let mut found = Vec::new();
    loop {
        let mut batch = RawBatch::new(3);
        match records.next(AT, &mut batch).map_err(|error| error.to_string())? {
            NextRecord::Record => {
                let cell = |column| match batch.token(0, column) {
                    RawToken::Untyped(text) => text.to_owned(),
                    other => format!("{other:?}"),
                };
                assert_eq!(batch.rows(), 1);
                found.push([cell(0), cell(1), cell(2)].join(" "));
            }
            next => {
                assert_eq!(batch.rows(), 0, "{next:?}");
                match next {
                    NextRecord::Rejected(reason) => found.push(reason.to_string()),
                    NextRecord::Foreign(what) => return Err(what.to_owned()),
                    NextRecord::Blank => {}
                    NextRecord::End => return Ok(found),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

fn read(export: &str) -> Result<Vec<String>, String> {
    read_with(export.as_bytes(), UnknownCellPolicy::Drop)
}

fn root(content: &str) -> String {
    format!("{PROLOG}<HealthData locale=\"en_GB\">\n{content}\n</HealthData>\n")
}

#[test]
fn records_under_the_root_are_read() {
    let export = root(
        "<ExportDate value=\"2026-03-02 21:00:00 +0100\"/><Me HKCharacteristicTypeIdentifierDateOfBirth=\"1980-01-01\"/>\n\
         <Record type=\"A\" device=\"&lt;&lt;HKDevice: 0x1>\" value=\"62\">\n <MetadataEntry key=\"k\" value=\"v\"/>\n</Record>\n\
         <!-- <Record type=\"no\"/> --><![CDATA[<Record type=\"no\"/>]]>text &amp; &unknown;\n\
         <Correlation type=\"BloodPressure\"><Record type=\"inner\" value=\"1\"/></Correlation>\n\
         <Workout><WorkoutEvent type=\"no\"/></Workout><ActivitySummary/>\n\
         <Record value='NaN' type='&#66; &amp;lt; &quot;é\u{b}'></Record><Record type=\"C\" value=\"\"/>\n<Record/>",
    );
    let expected = ["ana A 62", "ana B &lt; \"é\u{b} NaN", "ana C ", "ana Absent Absent"];
    assert_eq!(read(&export).unwrap(), expected);
    assert_eq!(read(&format!("\u{feff}\n{export}<!-- end -->\n")).unwrap(), expected);
    assert_eq!(read("<HealthData/>").unwrap(), [""; 0]);
}

#[test]
fn prolog_is_skipped_without_parsing() {
    // iOS 16 omits the end of a declaration.
    let damaged =
        "<!DOCTYPE HealthData [\n<!ATTLIST VisionPrescription\n  brand CDATA #IMPLIED\n<!ELEMENT Prism EMPTY>\n]>";
    let record = "<HealthData><Record type=\"A\" value=\"1\"/></HealthData>";
    assert_eq!(read(&format!("{damaged}{record}")).unwrap(), ["ana A 1"]);
    let bomb = "<!DOCTYPE HealthData [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;\">]>";
    let error = read(&format!("{bomb}<HealthData><Record type=\"A\" value=\"&c;\"/></HealthData>")).unwrap_err();
    assert!(error.contains("invalid reference"), "{error}");
}

#[test]
fn unusable_exports_are_reported_without_content() {
    let deep = format!("{}{}", "<SECRET>".repeat(9), "</SECRET>".repeat(9));
    let long = format!("<SECRET a=\"{}\"/>", "x".repeat(5 << 20));
    for (export, says) in [
        (String::new(), "not an Apple Health export"),
        ("SECRET,b\n1,2\n".to_owned(), "not an Apple Health export"),
        ("PK\u{3}\u{4}export.zip".to_owned(), "a zip archive: unpack it first"),
        (PROLOG.to_owned(), "not an Apple Health export"),
        ("<?xml version=\"1.0\"?><SECRET/>".to_owned(), "not an Apple Health export"),
        ("<HealthDataSECRET/>".to_owned(), "not an Apple Health export"),
        ("<SECRET>".repeat(1 << 18), "not an Apple Health export"),
        ("<HealthData><Record type=\"A\"/>".to_owned(), "ends before </HealthData>"),
        ("<HealthData><Record type=\"SEC".to_owned(), "ends inside an element"),
        ("<HealthData><!-- SECRET".to_owned(), "ends inside an element"),
        (root("<SECRET></Record>"), "do not match"),
        (root("</HealthData>"), "do not match"),
        (root("<Record type=SECRET/>"), "not name=\"value\""),
        (root("<Record Health Mate=\"SECRET\"/>"), "not name=\"value\""),
        (root("<Record type=\"&SECRET;\"/>"), "invalid reference"),
        (root("<Record type=\"&#x0;\"/>"), "invalid reference"),
        (root("<Record type=\"a & b\"/>"), "invalid reference"),
        (root("<!DOCTYPE SECRET>"), "begins inside or after"),
        (format!("{0}{0}", root("")), "begins inside or after"),
        (format!("{}<SECRET/>", root("")), "follows </HealthData>"),
        (root(&deep), "nested deeper than 8"),
        (root(&long), "longer than 4194304 bytes"),
        (root(&"SECRET ".repeat(1 << 20)), "longer than 4194304 bytes"),
    ] {
        let error = read(&export).unwrap_err();
        assert!(error.contains(says) && !error.contains("SECRET"), "{says}: {error}");
    }
    let latin = [b"<HealthData><Record type=\"".as_slice(), b"\xe9\"/></HealthData>"].concat();
    let error = read_with(&latin, UnknownCellPolicy::Drop).unwrap_err();
    assert!(error.contains("not UTF-8"), "{error}");
    let utf16: Vec<u8> = root("").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = read_with(&utf16, UnknownCellPolicy::Drop).unwrap_err();
    assert!(error.contains("UTF-16"), "{error}");
}

#[test]
fn unusable_records_are_rejected_one_by_one() {
    let long = "x".repeat(1000);
    let export = root(&format!(
        "<Record type=\"A\" type=\"B\"/><Record type=\"A\" device=\"{long}\"/><Record type=\"A\" unit=\"m\" unit=\"m\"/>"
    ));
    assert_eq!(read(&export).unwrap(), ["duplicate_key", "oversized", "ana A Absent"]);
    let strict = root("<Record type=\"A\" unit=\"m\"/><Record type=\"A\" value=\"1\"/>");
    let strict = read_with(strict.as_bytes(), UnknownCellPolicy::Refuse).unwrap();
    assert_eq!(strict, ["unknown_attribute", "ana A 1"]);
}

#[test]
fn unknown_attributes_and_fields_are_counted() {
    let export = root("<Record type=\"A\" unit=\"m\" startDate=\"x\"/>");
    let (_directory, mut records) =
        open(export.as_bytes(), &reading(&["type", "heart.rate", "device"], UnknownCellPolicy::Drop));
    assert_eq!(records.absent(), [1]);
    let mut batch = RawBatch::new(3);
    while records.next(AT, &mut batch).unwrap() != NextRecord::End {}
    assert_eq!((batch.rows(), batch.unknown_cells), (1, 2));
    assert_eq!(records.bytes(), export.len() as u64);
}

#[test]
fn long_exports_are_never_kept_in_memory() {
    let mut content = String::new();
    for number in 0..20_000 {
        write!(content, "<Record type=\"A\" value=\"{number}\"><MetadataEntry key=\"{number}\"/></Record>\n\n")
            .unwrap();
    }
    let (_directory, mut records) = open(root(&content).as_bytes(), &reading(&["value"], UnknownCellPolicy::Drop));
    let mut batch = RawBatch::new(1);
    while records.next(AT, &mut batch).unwrap() != NextRecord::End {}
    assert_eq!(batch.rows(), 20_000);
    assert_eq!(batch.token(19_999, 0), RawToken::Untyped("19999"));
    assert!(records.held_bytes() < 4096, "{}", records.held_bytes());
}

#[test]
fn person_is_the_file_name() {
    for (path, person) in [("a/ana.xml", "ana"), ("ana.b.xml.gz", "ana.b"), ("007", "007"), ("-", "-")] {
        assert_eq!(person_of(Path::new(path)), person);
    }
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut all, c| {
        match c {
            '<' | '&' | '"' | '\t' | '\n' | '\r' => all += &format!("&#{};", u32::from(c)),
            other => all.push(other),
        }
        all
    })
}

proptest! {
    #[test]
    fn attribute_values_are_read_as_written(values in prop::collection::vec(("\\PC{0,20}", "[\t\n\r<>&\"' a-z;#]{0,20}"), 0..20)) {
        let records: String =
            values.iter().map(|(a, b)| format!("<Record value=\"{}\"  type = \"{}\" />", escaped(b), escaped(a))).collect();
        let expected: Vec<String> = values.iter().map(|(a, b)| format!("ana {a} {b}")).collect();
        prop_assert_eq!(read(&root(&records)).unwrap(), expected);
    }

    #[test]
    fn damaged_exports_end_without_panic(at in 0..400_usize, byte in any::<u8>(), cut in any::<bool>()) {
        let record = "<Record type=\"A\" value=\"1\" unit=\"&lt;m\"><MetadataEntry key=\"k\"/></Record><!-- c -->";
        let mut export = root(&record.repeat(3)).into_bytes();
        let at = at % export.len();
        if cut {
            export.truncate(at);
            let cut = read_with(&export, UnknownCellPolicy::Drop);
            // Only the last line break may be missing.
            prop_assert!(cut.is_err() || at + 1 == root(&record.repeat(3)).len());
        } else {
            export[at] = byte;
            prop_assert!(read_with(&export, UnknownCellPolicy::Drop).map_or(0, |found| found.len()) <= 4);
        }
    }
}
