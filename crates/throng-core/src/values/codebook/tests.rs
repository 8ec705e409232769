use super::*;
use crate::values::raw_batch::RecordPosition;
use crate::values::schema::{AttributeType, Schema};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::Path;

const KEY: DigestKey = DigestKey([7; 32]);

fn book(kind: &str, extra: &str, max_values: usize) -> Codebook {
    let text = format!("name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"{kind}\"\n{extra}\n");
    test_codebooks(&text, max_values).remove(0)
}

fn path(book: &Codebook, code: Code) -> Vec<&str> {
    (0..book.levels()).map(|level| book.text(book.cell(code, level))).collect()
}

#[test]
fn fixed_codes_have_fixed_cells() {
    let mut b = book("integer", "hierarchy = { kind = \"intervals\", min = 0, max = 99, widths = [10] }", 10);
    assert_eq!(b.encode(RawToken::Absent).unwrap(), ABSENT);
    assert_eq!(b.encode(RawToken::Null).unwrap(), NULL);
    assert_eq!(b.encode(RawToken::Untyped("")).unwrap(), NULL);
    assert_eq!(b.encode(RawToken::Number("100")).unwrap(), UNCOVERED);
    assert_eq!(b.encode(RawToken::Number("100")).unwrap(), UNCOVERED);
    assert_eq!((b.uncovered(), b.overflowed(), b.values()), (2, 0, 0));
    assert_eq!(path(&b, ABSENT), ["", "", "\"*\""]);
    assert_eq!(path(&b, NULL), ["null", "null", "\"*\""]);
    assert_eq!(path(&b, UNCOVERED), ["\"*\"", "\"*\"", "\"*\""]);
    for code in [ABSENT, NULL] {
        assert_eq!(
            [b.losses(0)[code as usize], b.losses(1)[code as usize], b.losses(2)[code as usize]],
            [0.0, 0.0, 1.0]
        );
    }
    assert_eq!(b.losses(0)[UNCOVERED as usize], 1.0);
    let code = b.encode(RawToken::Number("37")).unwrap();
    assert_eq!(path(&b, code), ["37", "\"30-39\"", "\"*\""]);
    assert_eq!(b.losses(1)[code as usize], 9.0 / 99.0);
    assert_eq!(b.coverage_of("\"30-39\""), Some(b.digests(1)[code as usize]));
    assert_eq!(b.coverage_of("\"30-40\""), None);
    assert!(b.is_exact(b.cell(code, 0)) && !b.is_exact(b.cell(code, 1)) && b.is_exact(MISSING));
    assert!(b.encode(RawToken::Text("canary")).is_err());
    for code in [ABSENT, NULL, UNCOVERED, code] {
        let text = b.canonical(code).to_owned();
        assert_eq!(b.encode_canonical(&text), code);
    }
}

#[test]
fn coarser_labels_of_a_text_follow_its_path() {
    let extra = "[attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n\
                 \"DACH\" = { \"CH\" = [\"Zug\", \"Bern\"], \"AT\" = [\"Wien\"] }\n\"West\" = { \"FR\" = [\"Paris\", \"Lyon\"] }\n";
    let mut b = book("string", extra, 10);
    let codes = ["Zug", "Bern", "Wien", "Paris"].map(|city| b.encode(RawToken::Text(city)).unwrap());
    let above = |b: &Codebook, text: &str| -> Vec<Option<String>> {
        let texts: Vec<String> = ["CH", "AT", "FR", "DACH", "West"].map(|name| format!("\"{name}\"")).to_vec();
        let name = |digest| texts.iter().find(|text| b.coverage_of(text) == Some(digest)).cloned();
        b.coverages_above(text).map(name).collect()
    };
    let dach = Some("\"DACH\"".to_owned());
    let expected = |b: &Codebook| {
        assert_eq!(above(b, "\"Zug\""), [Some("\"CH\"".to_owned()), dach.clone()]);
        assert_eq!(above(b, "\"CH\""), std::slice::from_ref(&dach));
        assert_eq!(above(b, "\"Wien\""), std::slice::from_ref(&dach), "alone in its group: the group is itself");
        for top in ["\"DACH\"", "\"*\"", "null", "", "\"Lyon\""] {
            assert!(above(b, top).is_empty(), "{top}");
        }
    };
    expected(&b);
    assert_eq!(above(&b, "\"Paris\"").len(), 1, "FR and West are one set");
    let mut used = vec![true; b.codes()];
    used[codes[1] as usize] = false;
    used[codes[3] as usize] = false;
    b.retain(&used);
    expected(&b);
    assert!(above(&b, "\"Paris\"").is_empty() && b.coverage_of("\"FR\"").is_none());
}

#[test]
fn raw_value_like_a_label_is_uncovered() {
    let mut b = book("string", "hierarchy = { kind = \"prefix\", keep = [3] }", 100);
    assert_eq!(b.encode(RawToken::Text("606**")).unwrap(), UNCOVERED);
    let code = b.encode(RawToken::Text("60617")).unwrap();
    assert_eq!(path(&b, code), ["\"60617\"", "\"606**\"", "\"*\""]);
    assert_eq!(b.encode(RawToken::Text("606**")).unwrap(), UNCOVERED);
    let star = b.encode(RawToken::Text("*")).unwrap();
    assert_eq!(path(&b, star)[0], r#""\\*""#);
    let mut b = book("string", "hierarchy = { kind = \"tree\", tree = { g = [\"a\", \"b\"], h = [\"c\"] } }", 100);
    assert_eq!(b.encode(RawToken::Text("g")).unwrap(), UNCOVERED);
    let code = b.encode(RawToken::Text("c")).unwrap();
    assert_eq!(path(&b, code), ["\"c\"", "\"c\"", "\"*\""]);
    assert_eq!(b.digests(0)[code as usize], b.digests(1)[code as usize]);
}

#[test]
fn full_codebook_has_room_after_compaction() {
    let mut b = book("integer", "", 2);
    let one = b.encode(RawToken::Number("1")).unwrap();
    b.encode(RawToken::Number("2")).unwrap();
    assert_eq!(b.encode(RawToken::Number("3")).unwrap(), UNCOVERED);
    assert_eq!((b.values(), b.overflowed(), b.uncovered()), (2, 1, 0));
    let mut used = vec![false; b.codes()];
    used[one as usize] = true;
    let map = b.retain(&used);
    assert_eq!(map, [0, 1, 2, 3, FORGOTTEN]);
    assert_eq!(b.encode(RawToken::Number("3")).unwrap(), 4);
    assert_eq!(b.encode(RawToken::Number("1")).unwrap(), 3);
    let attribute = Arc::clone(b.attribute());
    assert!(Codebook::new(Arc::clone(&attribute), &KEY, 0).is_err());
    assert!(Codebook::new(attribute, &KEY, usize::MAX).is_err());
}

#[test]
fn encode_column_lists_cells_of_wrong_type() {
    let mut b = book("integer", "", 100);
    let mut batch = RawBatch::new(1);
    for (offset, token) in [RawToken::Number("5"), RawToken::Text("x"), RawToken::Null].into_iter().enumerate() {
        batch.push_row(RecordPosition { topic: 0, partition: 0, offset: i64::try_from(offset).unwrap(), element: 0 });
        batch.set(0, token);
    }
    let (mut out, mut failures) = (Vec::new(), Vec::new());
    b.encode_column(&batch, 0, &mut out, &mut failures);
    assert_eq!(out, [3, UNCOVERED, NULL]);
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].0, 1);
    assert_eq!(b.uncovered(), 0);
}

#[test]
fn shared_cells_are_encoded_like_separate_cells() {
    let hierarchy = "hierarchy = { kind = \"intervals\", min = 0, max = 100, widths = [10] }";
    for token in [RawToken::Number("5"), RawToken::Number("500"), RawToken::Text("x"), RawToken::Null, RawToken::Absent]
    {
        let (mut shared, mut own) = (RawBatch::new(2), RawBatch::new(2));
        let at = |offset| RecordPosition { topic: 0, partition: 0, offset, element: 0 };
        shared.push_row(at(0));
        shared.set(0, token);
        let each = |batch: &mut RawBatch, element: i32| {
            batch.set(1, RawToken::Bool(element > 1));
            Ok(())
        };
        shared.explode((0..4).collect(), u64::MAX, each).unwrap();
        for (offset, element) in (0..4).enumerate() {
            own.push_row(at(i64::try_from(offset).unwrap()));
            own.set(0, token);
            own.set(1, RawToken::Bool(element > 1));
        }
        assert!((1..4).all(|row| shared.repeats_previous(row, 0)) && !shared.repeats_previous(0, 0));
        let encoded = |batch: &RawBatch| {
            let (mut b, mut out, mut failures) = (book("integer", hierarchy, 100), Vec::new(), Vec::new());
            b.encode_column(batch, 0, &mut out, &mut failures);
            (out, failures, b.uncovered())
        };
        assert_eq!(encoded(&shared), encoded(&own), "{token:?}");
    }
}

/// Random hierarchy and mostly covered tokens.
fn attribute() -> impl Strategy<Value = (String, String, Vec<String>)> {
    let numbers = |range: std::ops::Range<i32>| proptest::collection::vec(range.prop_map(|n| n.to_string()), 1..40);
    let halves = || proptest::collection::vec((-40_i32..440).prop_map(|n| format!("{}", f64::from(n) / 4.0)), 1..40);
    prop_oneof![
        (1_u32..6, 2_u32..4, 1_u32..4, -3_i32..3, numbers(-15..115)).prop_map(|(w, f, step, origin, values)| {
            let h = format!(
                "round = {step}\nhierarchy = {{ kind = \"intervals\", min = -10, max = 100, origin = {origin}, widths = [{w}, {}, {}] }}",
                w * f, w * f * 2
            );
            ("integer".into(), h, values)
        }),
        (1_u32..6, 2_u32..4, any::<bool>(), halves()).prop_map(|(w, f, rounded, values)| {
            let w = f64::from(w) / 2.0;
            let round = if rounded { "round = 0.5" } else { "" };
            let h = format!("{round}\nhierarchy = {{ kind = \"intervals\", min = 0, max = 100, widths = [{w}, {}] }}", w * f64::from(f));
            ("float".into(), h, values)
        }),
        (proptest::collection::btree_set(1_i32..=100, 2..12), 2_usize..4, any::<bool>(), numbers(-5..110)).prop_map(|(cuts, every, float, values)| {
            let cuts: Vec<i32> = cuts.into_iter().filter(|&c| c < 100 || !float).collect();
            let coarse: Vec<i32> = cuts.iter().copied().step_by(every).collect();
            let levels = if coarse.len() < cuts.len() { format!("[{cuts:?}, {coarse:?}]") } else { format!("[{cuts:?}]") };
            let kind = if float { "float" } else { "integer" };
            (kind.into(), format!("hierarchy = {{ kind = \"bounds\", min = 0, max = 100, levels = {levels} }}"), values)
        }),
        (any::<bool>(), proptest::collection::vec(r"[ab*\\]{0,6}", 1..40)).prop_map(|(fixed, values)| {
            let length = if fixed { "length = 5, " } else { "" };
            ("string".into(), format!("hierarchy = {{ kind = \"prefix\", {length}keep = [4, 2, 1] }}"), values)
        }),
        (any::<u8>(), proptest::collection::vec(0_u32..800, 1..40)).prop_map(|(mask, days)| {
            let units = ["week", "month", "quarter", "year"];
            let mut levels: Vec<&str> = units.into_iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, u)| u).collect();
            if levels.is_empty() {
                levels.push("week");
            }
            let values = days.iter().map(|d| (u64::from(*d) * 86_400 + 1_600_000_000).to_string()).collect();
            ("date".into(), format!("epoch = \"s\"\nhierarchy = {{ kind = \"truncate\", levels = {levels:?} }}"), values)
        }),
        (proptest::collection::vec((-90_i32..=90, -180_i32..=180), 1..40), any::<bool>()).prop_map(|(places, fine)| {
            let scale = if fine { 90.0 } else { 1.0 };
            let values = places.iter().map(|(a, o)| format!("{},{}", f64::from(*a) / scale, f64::from(*o) / scale)).collect();
            ("coordinates".into(), "round = 0.01\nhierarchy = { kind = \"grid\", cells = [0.1, 1, 10] }".into(), values)
        }),
        (1_usize..4, 1_usize..4, proptest::collection::vec(0_usize..40, 1..40)).prop_map(|(inner, outer, values)| {
            let mut tree = String::new();
            for o in 0..(24 / (inner * outer)).max(1) {
                let groups: Vec<String> = (0..outer)
                    .map(|g| {
                        let first = (o * outer + g) * inner;
                        let leaves: Vec<String> = (first..first + inner).map(|v| format!("\"v{v}\"")).collect();
                        format!("\"g{first}\" = [{}]", leaves.join(", "))
                    })
                    .collect();
                tree += &format!("\"o{o}\" = {{ {} }}\n", groups.join(", "));
            }
            let values = values.into_iter().map(|v| if v % 7 == 6 { format!("g{v}") } else { format!("v{v}") }).collect();
            ("string".into(), format!("[attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n{tree}"), values)
        }),
        proptest::collection::vec(r#"[*\\"a]{0,4}"#, 1..40).prop_map(|values| ("string".into(), String::new(), values)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn text_and_coverage_are_one_to_one((kind, extra, values) in attribute()) {
        let mut b = book(&kind, &extra, 1_000);
        for value in &values {
            b.encode(RawToken::Text(value)).unwrap();
        }
        let mut coverage: HashMap<&str, u128> = HashMap::new();
        let mut text: HashMap<u128, &str> = HashMap::new();
        // Values by text.
        let mut members: HashMap<&str, Vec<Code>> = HashMap::new();
        for code in 0..Code::try_from(b.codes()).unwrap() {
            for level in 0..b.levels() {
                let cell = b.cell(code, level);
                let (t, d) = (b.text(cell), b.digests(level)[code as usize]);
                prop_assert_eq!(b.digest(cell), d);
                prop_assert_eq!(b.coverage_of(t), Some(d));
                prop_assert_eq!(*coverage.entry(t).or_insert(d), d);
                prop_assert_eq!(*text.entry(d).or_insert(t), t);
                let known = members.entry(t).or_default();
                if !known.contains(&code) {
                    known.push(code);
                }
                prop_assert!(t.is_empty() || serde_json::from_str::<serde_json::Value>(t).is_ok());
            }
        }
        #[expect(clippy::iter_over_hash_type, reason = "every member is checked, in whatever order")]
        for (t, codes) in members {
            let cell = b.cells.find(t).unwrap();
            prop_assert!(!b.is_exact(cell) || codes.len() == 1, "{} covers {:?}", t, codes);
        }
    }

    #[test]
    fn higher_levels_only_merge_cells((kind, extra, values) in attribute()) {
        let mut b = book(&kind, &extra, 1_000);
        for value in &values {
            b.encode(RawToken::Text(value)).unwrap();
        }
        let top = b.levels() - 1;
        for one in 0..b.codes() {
            prop_assert_eq!(b.cells(top)[one], SUPPRESSED);
            prop_assert_eq!(b.losses(top)[one], 1.0);
            for level in 0..top {
                prop_assert!(b.losses(level)[one] <= b.losses(level + 1)[one], "loss falls at level {}", level);
                prop_assert!((0.0..=1.0).contains(&b.losses(level)[one]));
                for two in 0..one {
                    if b.cells(level)[one] == b.cells(level)[two] {
                        prop_assert_eq!(b.cells(level + 1)[one], b.cells(level + 1)[two]);
                    }
                }
            }
        }
    }

    #[test]
    fn cache_order_and_compaction_do_not_change_released_texts((kind, extra, values) in attribute(), keep in any::<u64>()) {
        let mut cached = book(&kind, &extra, 1_000);
        let codes: Vec<Code> = values.iter().map(|v| cached.encode(RawToken::Text(v)).unwrap()).collect();
        let again: Vec<Code> = values.iter().map(|v| cached.encode(RawToken::Text(v)).unwrap()).collect();
        prop_assert_eq!(&codes, &again);
        let mut reverse = book(&kind, &extra, 1_000);
        for (value, &code) in values.iter().zip(&codes).rev() {
            reverse.cache.clear();
            let other = reverse.encode(RawToken::Text(value)).unwrap();
            prop_assert_eq!(path(&cached, code), path(&reverse, other));
            for level in 0..cached.levels() {
                prop_assert_eq!(cached.digests(level)[code as usize], reverse.digests(level)[other as usize]);
                prop_assert_eq!(cached.losses(level)[code as usize], reverse.losses(level)[other as usize]);
            }
        }
        let before = cached.clone();
        let used: Vec<bool> = (0..cached.codes()).map(|c| keep >> (c % 64) & 1 == 1).collect();
        let map = cached.retain(&used);
        for code in 0..before.codes() {
            let old = Code::try_from(code).unwrap();
            prop_assert_eq!(map[code] == FORGOTTEN, old >= FIRST_VALUE && !used[code]);
            if map[code] != FORGOTTEN {
                prop_assert_eq!(path(&before, old), path(&cached, map[code]));
                for level in 0..before.levels() {
                    prop_assert_eq!(before.digests(level)[code], cached.digests(level)[map[code] as usize]);
                    prop_assert_eq!(before.losses(level)[code], cached.losses(level)[map[code] as usize]);
                }
            }
        }
        for (value, &code) in values.iter().zip(&codes) {
            let fresh = cached.encode(RawToken::Text(value)).unwrap();
            prop_assert_eq!(path(&before, code), path(&cached, fresh));
            let canonical = cached.canonical(fresh).to_owned();
            prop_assert_eq!(cached.encode_canonical(&canonical), fresh);
        }
    }
}

fn through(schema: &Schema, file: &Path, separator: u8) -> Vec<Codebook> {
    let mut books: Vec<Codebook> =
        schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &KEY, 100_000).unwrap()).collect();
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).from_path(file).unwrap();
    let header = reader.headers().unwrap().clone();
    let columns: Vec<usize> =
        schema.attributes.iter().map(|a| header.iter().position(|h| h == a.column()).unwrap()).collect();
    assert_eq!(columns.len(), header.len(), "every column has its attribute");
    for record in reader.records() {
        let record = record.unwrap();
        for (book, &column) in books.iter_mut().zip(&columns) {
            book.encode(RawToken::Untyped(&record[column])).unwrap();
        }
    }
    books
}

fn test_data() -> Option<std::path::PathBuf> {
    let folder = std::env::var_os("THRONG_TEST_DATA")?;
    Some(folder.into())
}

fn shipped(name: &str) -> Schema {
    Schema::load(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("schemas").join(name))
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_adult_groups_and_losses_match_hierarchy_files() {
    let adult = test_data().expect("THRONG_TEST_DATA is set").join("adult");
    let books = through(&shipped("adult.toml"), &adult.join("adult.csv"), b';');
    for book in books {
        assert_eq!(book.uncovered(), 0);
        let name = &book.attribute().name;
        let file = std::fs::read_to_string(adult.join("hierarchies").join(format!("{name}.csv"))).unwrap();
        let rows: Vec<Vec<&str>> = file.lines().filter(|l| !l.is_empty()).map(|l| l.split(';').collect()).collect();
        assert_eq!(book.levels(), rows[0].len(), "{name}");
        for code in FIRST_VALUE..Code::try_from(book.codes()).unwrap() {
            let raw = if book.attribute().kind() == AttributeType::Integer {
                book.canonical(code)
            } else {
                book.canonical(code).trim_matches('"')
            };
            let row = rows.iter().find(|row| row[0] == raw).unwrap();
            for level in 0..book.levels() {
                let members: Vec<&str> = rows.iter().filter(|r| r[level] == row[level]).map(|r| r[0]).collect();
                let loss = ((members.len() - 1) as f64 / (rows.len() - 1) as f64) as f32;
                assert!((book.losses(level)[code as usize] - loss).abs() < 1e-6, "{name} level {level}");
                for other in FIRST_VALUE..Code::try_from(book.codes()).unwrap() {
                    let theirs = book.canonical(other).trim_matches('"');
                    assert_eq!(
                        book.cell(code, level) == book.cell(other, level),
                        members.contains(&theirs),
                        "{name} level {level}"
                    );
                }
            }
        }
    }
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_lifesnaps_has_no_uncovered_values() {
    let file = test_data().expect("THRONG_TEST_DATA is set").join("lifesnaps/daily.csv");
    for book in through(&shipped("lifesnaps.toml"), &file, b',') {
        assert_eq!((book.uncovered(), book.overflowed()), (0, 0), "{}", book.attribute().name);
        assert!(book.values() > 1, "{}", book.attribute().name);
        assert_eq!(book.dominant_shape().filter(|(_, share)| *share > 0.5), None, "{}", book.attribute().name);
    }
}
