//! Tests attributes in several groups (docs/internals/methods.md §10.6) against the definition.

use crate::support;

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use support::binary::{Outcome, Place, Process};
use support::schemas::schema;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::plan::{LadderNode, Plan, PlanGroup};
use throng_core::release::line_limits::LineLimit;
use throng_core::release::verifier_input::{GroupTerms, VerifierInput};
use throng_core::release::verify::{Violation, verify};
use throng_core::stream::batch_encoding::encode;
use throng_core::stream::input_batch::InputBatch;
use throng_core::treatment::batch_treatment::{
    GroupNames, TreatmentInput, TreatmentRules, TreatmentSettings, group_names, treat_batch,
};
use throng_core::treatment::group_mask::GroupMask;
use throng_core::treatment::proposal::{LineRun, ProposedGroup};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::SubjectDigester;
use throng_formats::{DecodeLimits, FieldPath, JsonCodec, LineFormat};

const SCHEMA: &str = schema!("shared"; person, more r#"
[[attribute]]
name = "hour"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"day" = ["h0", "h1"]
"night" = ["h2", "h3"]
[[attribute]]
name = "x"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"low" = ["x0", "x1"]
"high" = ["x2", "x3"]
"#, text "y", text "z");

const CLOCK: i64 = 1_700_000_000_000;
const HOUR: usize = 1;
/// Separate attribute of each group, and whether the group contains the hour.
const GROUPS: [(usize, bool); 3] = [(2, true), (3, true), (4, false)];

/// Subject, hour, x, y, z.
type Row = (u8, u8, u8, u8, u8);

struct Bench {
    books: Vec<Codebook>,
    batch: CodeBatch,
    plan: Plan,
    names: GroupNames,
    terms: Vec<GroupTerms>,
    ledger: SubjectLedger,
    k: usize,
}

impl Bench {
    fn new(rows: &[Row], k: usize, level: u8, groups: usize) -> Self {
        let schema = Schema::parse(SCHEMA, "shared.toml", Path::new("")).expect("a schema");
        let key = DigestKey([7; 32]);
        let mut books: Vec<Codebook> =
            schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, 1000).expect("a codebook")).collect();
        let mut subjects = SubjectDigester::new(Arc::clone(&schema.attributes[0]), &key);
        let fields: Vec<FieldPath> = schema.attributes.iter().map(|a| FieldPath::top_level(&a.name)).collect();
        let codec = JsonCodec::new(&fields, DecodeLimits::default());
        let mut input = InputBatch::new(5, 0);
        for (offset, (person, hour, x, y, z)) in (0i64..).zip(rows) {
            let hour = if *hour > 3 { "null".to_owned() } else { format!("\"h{hour}\"") };
            let json = format!(r#"{{"person":"p{person}","hour":{hour},"x":"x{x}","y":"y{y}","z":"z{z}"}}"#);
            let at = RecordPosition { topic: 0, partition: 0, offset, element: 0 };
            codec.decode(json.as_bytes(), at, &mut input.raw).expect("a record");
        }
        let (batch, rejected) = encode(&input, &schema, &mut books, Some(&mut subjects), false);
        assert!(rejected.is_empty());
        let top = |a: usize| u8::try_from(books[a].levels() - 1).expect("low");
        let group = |&(own, shares): &(usize, bool)| {
            let node = |own: u8| LadderNode {
                levels: if shares { vec![level, own] } else { vec![own] },
                loss: f32::from(own),
            };
            PlanGroup {
                name: format!("g{own}"),
                quasi: if shares { vec![HOUR, own] } else { vec![own] },
                sensitive: vec![],
                insensitive: vec![],
                ranges: false,
                ladder: (0..top(own)).map(node).collect(),
            }
        };
        let plan = Plan { version: 1, ..Plan::inactive(GROUPS[..groups].iter().map(group).collect()) };
        let attributes: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let digests = NameDigest::new(&key);
        let names =
            group_names(&plan, &attributes, |names| LineFormat::Json.layout(names), |name| digests.digest(name));
        let terms = plan.groups.iter().zip(names.layouts.iter().zip(&names.bases)).map(|(group, (layout, &base))| {
            let attributes = group.attributes();
            GroupTerms {
                quasi: vec![true; attributes.len()],
                sensitive: vec![false; attributes.len()],
                attributes,
                layout: layout.clone(),
                base,
                sensitive_bases: names.sensitive_bases.clone(),
                lines: LineLimit::default(),
                ranges: false,
                shown_elsewhere: Vec::new(),
                holders_elsewhere: throng_core::values::subjects_by_value::SubjectsByValue::default(),
                protected: Vec::new(),
                narrowing: None,
            }
        });
        let terms = terms.collect();
        Self { books, batch, plan, names, terms, ledger: SubjectLedger::default(), k }
    }

    fn treated(&self) -> Vec<ProposedGroup> {
        let policy = TreatmentSettings { k: self.k, max_hold_batches: 0 };
        let rules = TreatmentRules {
            plan: &self.plan,
            names: &self.names,
            books: &self.books,
            policy: &policy,
            protected: &[],
        };
        let (waited, all) = (vec![0; self.batch.rows()], GroupMask::default());
        let records = TreatmentInput { batch: &self.batch, mask: &all, waited: &waited, holding_ended: true };
        treat_batch(&records, &rules, &self.ledger.at(CLOCK)).groups
    }

    fn violation(&self, proposed: Vec<ProposedGroup>) -> Option<Violation> {
        let CodeBatch { subjects, columns, .. } = &self.batch;
        let given = VerifierInput { subjects, columns, waiting: 0, sequence: 1, age_ms: CLOCK };
        let verified = verify(proposed, &given, &self.terms, &self.books, self.ledger.at(CLOCK), self.k);
        verified.err().map(|refusal| refusal.violation)
    }

    /// Texts are in the order of the group's attributes.
    fn lines(&self, group: usize, texts: &BTreeMap<u32, Vec<String>>) -> ProposedGroup {
        let mut runs: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        for (row, texts) in texts {
            let mut line = Vec::new();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            self.terms[group].layout.write(&texts, &mut line);
            runs.entry(line).or_default().push(*row);
        }
        let mut proposed = ProposedGroup::default();
        for (line, rows) in runs {
            let (from, first) = (proposed.arena.len(), proposed.rows.len());
            proposed.arena.extend(line);
            proposed.rows.extend(rows);
            proposed.runs.push(LineRun { line: from..proposed.arena.len(), rows: first..proposed.rows.len() });
        }
        proposed
    }

    fn said(&self, group: usize, proposed: &ProposedGroup) -> BTreeMap<u32, Vec<String>> {
        let mut said = BTreeMap::new();
        for run in &proposed.runs {
            let mut cells = Vec::new();
            self.terms[group].layout.read(&proposed.arena[run.line.clone()], &mut cells).expect("a line");
            said.extend(proposed.rows[run.rows.clone()].iter().map(|row| (*row, cells.clone())));
        }
        said
    }
}

fn person(rows: &[Row], row: u32) -> u8 {
    rows[row as usize].0
}

/// The printed cell, its coverage, and its parent in the hierarchy.
fn labels(text: &str) -> Vec<String> {
    let parent = match text {
        "\"x0\"" | "\"x1\"" => Some("\"low\""),
        "\"x2\"" | "\"x3\"" => Some("\"high\""),
        "\"h0\"" | "\"h1\"" => Some("\"day\""),
        "\"h2\"" | "\"h3\"" => Some("\"night\""),
        _ => None,
    };
    let own = (text != "\"*\"").then(|| [format!("printed {text}"), text.to_owned()]);
    own.into_iter().flatten().chain(parent.map(str::to_owned)).collect()
}

type Said = BTreeMap<u32, Vec<String>>;

fn sets(said: &Said, columns: &[usize]) -> BTreeMap<Vec<String>, BTreeSet<u32>> {
    let mut sets: BTreeMap<Vec<String>, BTreeSet<u32>> = BTreeMap::new();
    for (row, texts) in said {
        let mut of_row: Vec<Vec<String>> = vec![Vec::new()];
        for &column in columns {
            let with = |set: &Vec<String>| {
                labels(&texts[column])
                    .into_iter()
                    .map(|label| [&set[..], &[format!("{column}{label}")]].concat())
                    .collect()
            };
            let more: Vec<Vec<Vec<String>>> = of_row.iter().map(with).collect();
            of_row.extend(more.into_iter().flatten());
        }
        of_row.into_iter().filter(|set| !set.is_empty()).for_each(|set| sets.entry(set).or_default().extend([*row]));
    }
    sets
}

/// Returns whether counting forces a pair of label sets below k. `known`: records known to the attacker.
fn is_forced(groups: &[(Said, Vec<usize>)], rows: &[Row], k: usize, known: usize) -> bool {
    let all: Vec<_> = groups.iter().map(|(said, columns)| sets(said, columns)).collect();
    let pairs = (0..groups.len()).flat_map(|a| (a + 1..groups.len()).map(move |b| (a, b)));
    pairs.into_iter().any(|(a, b)| {
        let of_both: BTreeSet<&u32> = groups[a].0.keys().chain(groups[b].0.keys()).collect();
        let records = known.min(of_both.len());
        all[a].values().any(|x| {
            all[b].values().any(|y| {
                let people: BTreeSet<u8> = x.intersection(y).map(|&row| person(rows, row)).collect();
                x.len() + y.len() > records && people.len() < k
            })
        })
    })
}

fn is_forced_anywhere(said: &[Said], rows: &[Row], k: usize) -> bool {
    let mut parts: BTreeMap<String, Vec<(Said, Vec<usize>)>> = BTreeMap::new();
    for (said, _) in said.iter().zip(GROUPS).filter(|(_, (_, shares))| *shares) {
        let mut by_hour: BTreeMap<String, Said> = BTreeMap::new();
        for (row, texts) in said {
            by_hour.entry(texts[0].clone()).or_default().insert(*row, texts.clone());
        }
        by_hour.into_iter().for_each(|(hour, said)| parts.entry(hour).or_default().push((said, vec![1])));
    }
    let most = |groups: &[(Said, Vec<usize>)]| groups.iter().map(|(said, _)| said.len()).max().unwrap_or(0);
    let whole: Vec<(Said, Vec<usize>)> = said
        .iter()
        .zip(GROUPS)
        .map(|(said, (_, shares))| (said.clone(), if shares { vec![0, 1] } else { vec![0] }))
        .collect();
    // Suppressed hours may belong to the same records.
    let shown = parts.iter().filter(|(hour, _)| *hour != "\"*\"").map(|(_, part)| most(part));
    let known = shown.sum::<usize>().max(most(&whole));
    is_forced(&whole, rows, k, known) || parts.values().any(|part| is_forced(part, rows, k, most(part)))
}

fn row() -> impl Strategy<Value = Row> {
    // Frequent and rare values, so that some pairs are forced.
    let value = || prop_oneof![6 => Just(0u8), 2 => Just(1), 1 => 2u8..4];
    (0u8..20, prop_oneof![4 => Just(0u8), 3 => Just(1), 2 => 2u8..4, 1 => Just(4)], value(), value(), value())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn shared_groups_after_treatment_have_no_forced_pair(
        rows in prop::collection::vec(row(), 1..40), k in 2usize..4, level in 0u8..3, groups in 2usize..4,
    ) {
        let bench = Bench::new(&rows, k, level, groups);
        let proposed = bench.treated();
        let said: Vec<Said> = proposed.iter().enumerate().map(|(at, group)| bench.said(at, group)).collect();
        prop_assert!(!is_forced_anywhere(&said, &rows, k));
        let mut hours: BTreeMap<u32, &String> = BTreeMap::new();
        for (row, texts) in said.iter().zip(GROUPS).filter(|(_, (_, shares))| *shares).flat_map(|(said, _)| said) {
            prop_assert_eq!(*hours.entry(*row).or_insert(&texts[0]), &texts[0]);
        }
        prop_assert_eq!(bench.violation(proposed), None);
    }

    #[test]
    fn shared_groups_verification_matches_the_definition(
        rows in prop::collection::vec(row(), 1..30),
        absent in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.1), 30), 3),
        k in 2usize..4, groups in 2usize..4,
    ) {
        let bench = Bench::new(&rows, k, 0, groups);
        let mut said = Vec::new();
        for (at, (own, shares)) in GROUPS.into_iter().enumerate().take(groups) {
            let text = |a: usize, row: u32| {
                let (book, codes) = (&bench.books[a], &bench.batch.columns[a]);
                book.text(book.cell(codes[row as usize], 0)).to_owned()
            };
            let texts = |row: u32| if shares { vec![text(HOUR, row), text(own, row)] } else { vec![text(own, row)] };
            let present = (0u32..).take(rows.len()).filter(|row| !absent[at][*row as usize]);
            let all: Said = present.map(|row| (row, texts(row))).collect();
            let mut classes: BTreeMap<&Vec<String>, BTreeSet<u8>> = BTreeMap::new();
            for (row, texts) in &all {
                classes.entry(texts).or_default().insert(person(&rows, *row));
            }
            let crowded: Said =
                all.iter().filter(|(_, texts)| classes[texts].len() >= k).map(|(row, t)| (*row, t.clone())).collect();
            said.push(crowded);
        }
        let proposed: Vec<ProposedGroup> = said.iter().enumerate().map(|(at, said)| bench.lines(at, said)).collect();
        let expected = is_forced_anywhere(&said, &rows, k).then_some(Violation::ForcedPair);
        prop_assert_eq!(bench.violation(proposed), expected);
    }
}

/// Two hours with twenty subjects each, all in both groups. In the first hour thirteen have x0 and ten y0, three of
/// them both.
fn two_hours() -> Vec<Row> {
    let first = (0..20).map(|p| (p, 0, u8::from(p >= 13), u8::from(p < 10), 0));
    let second = (20..40).map(|p| (p, 1, 2 + u8::from(p >= 30), 2 + u8::from(p >= 30), 0));
    first.chain(second).collect()
}

#[test]
fn shared_value_with_a_forced_pair_is_refused() {
    let rows = two_hours();
    let said_by = |bench: &Bench, shares: bool| -> Vec<Said> {
        let text = |a: usize, row: u32| {
            let (book, codes) = (&bench.books[a], &bench.batch.columns[a]);
            book.text(book.cell(codes[row as usize], 0)).to_owned()
        };
        let hour = |row: u32| if shares { text(HOUR, row) } else { "\"*\"".to_owned() };
        [2, 3].map(|own| (0..40).map(|row| (row, vec![hour(row), text(own, row)])).collect()).to_vec()
    };
    // At least 13 + 10 − 20 = 3 subjects of the first hour have both, which is too few. Over the whole batch, 13 + 10 −
    // 40 gives no bound.
    let bench = Bench::new(&rows, 5, 0, 2);
    let violation = |shares: bool| {
        let said = said_by(&bench, shares);
        bench.violation(said.iter().enumerate().map(|(at, said)| bench.lines(at, said)).collect())
    };
    assert_eq!(violation(false), None);
    assert_eq!(violation(true), Some(Violation::ForcedPair));
    let whole: Vec<(Said, Vec<usize>)> = said_by(&bench, true).into_iter().map(|said| (said, vec![0, 1])).collect();
    assert!(!is_forced(&whole, &rows, 5, 40), "only within the hour");
    // The treatment withdraws one of the two cells, and none of the other hour.
    let left: usize = bench.treated().iter().map(|group| group.rows.len()).sum();
    assert!((67..=70).contains(&left), "{left} of 80 fragments");
}

#[test]
fn shared_cells_that_differ_between_fragments_are_refused() {
    let rows: Vec<Row> = (0..20).map(|p| (p, p / 10, p / 10, p / 10, 0)).collect();
    let bench = Bench::new(&rows, 3, 0, 2);
    let proposed = bench.treated();
    assert_eq!(bench.violation(proposed.clone()), None);
    let changed = |group: usize, to: &dyn Fn(u32, &str) -> String| {
        let mut said = bench.said(group, &proposed[group]);
        said.iter_mut().for_each(|(row, texts)| texts[0] = to(*row, &texts[0]));
        let mut changed = proposed.clone();
        changed[group] = bench.lines(group, &said);
        bench.violation(changed)
    };
    // The other hour, which is wrong; another level of the same hour; a suppressed hour in some lines of the group.
    let other = |_: u32, text: &str| if text == "\"h0\"" { "\"h1\"" } else { "\"h0\"" }.to_owned();
    assert_eq!(changed(1, &other), Some(Violation::SharedCells));
    assert_eq!(changed(1, &|_, _| "\"day\"".to_owned()), Some(Violation::SharedCells));
    let some = |row: u32, text: &str| if row < 10 { "\"*\"".to_owned() } else { text.to_owned() };
    assert_eq!(changed(1, &some), Some(Violation::SharedCells));
    // A group may suppress the hour in every line.
    assert_eq!(changed(1, &|_, _| "\"*\"".to_owned()), None);
    // The hour would disclose the time of release.
    let mut still = Bench::new(&rows, 3, 0, 2);
    still.terms[1].lines = LineLimit::OncePerWindow(1);
    still.ledger.release_log = Some(throng_core::ledger::release_log::ReleaseLog::new(3600, 1000));
    assert_eq!(still.violation(proposed.clone()), Some(Violation::SharedCells));
    let mut mute = still.said(1, &proposed[1]);
    mute.values_mut().for_each(|texts| "\"*\"".clone_into(&mut texts[0]));
    assert_ne!(still.violation(vec![proposed[0].clone(), still.lines(1, &mute)]), Some(Violation::SharedCells));
    // Both groups at another common level.
    let mut both = proposed.clone();
    for group in 0..2 {
        let mut said = bench.said(group, &proposed[group]);
        said.values_mut().for_each(|texts| texts[0] = "\"day\"".to_owned());
        both[group] = bench.lines(group, &said);
    }
    assert_eq!(bench.violation(both), None);
}

fn throng(place: &Place, overrides: &[(&str, &str)], arguments: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(arguments.split_whitespace());
    place.surround(&mut command, overrides);
    Process::spawn(command, place.port).wait()
}

fn wearable(more: &str) -> Place {
    let schema = std::fs::read_to_string("schemas/wearable.toml").expect("a schema");
    let place = Place::new(&schema, &format!("[plan]\ngroups = \"price\"\nshared = [\"timestamp\"]\n{more}"));
    let made = throng(&place, &[], "generate wearable --records 9000 --seed 5 -o in.ndjson");
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    place
}

const KEEPING: [(&str, &str); 2] = [("PRIVACY__K", "5"), ("BATCH__MAX_RECORDS", "1500")];
/// Defaults of a daemon, which are disabled in the test configurations.
const LIMITED: [(&str, &str); 2] = [("PRIVACY__MAX_DELAY", "1m"), ("PRIVACY__MAX_LINES_PER_SUBJECT", "1")];

#[test]
fn shared_hour_in_every_group_keeps_the_guarantee() {
    let place = wearable("");
    let overrides = [&KEEPING[..], &LIMITED].concat();
    let said = throng(&place, &overrides, "check -c throng.toml --explain");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(text.contains("timestamp is released in every fragment of the groups"), "{text}{}", said.stderr);
    let outcome = Process::spawn(place.command(&overrides, &["--lineage", "lineage.ndjson"]), place.port).wait();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let entries = std::fs::read_dir(place.path("")).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_output = |path: &std::path::PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("out."))
    };
    let files: Vec<(std::path::PathBuf, Vec<u8>)> =
        paths.filter(is_output).map(|path| (path.clone(), std::fs::read(&path).expect("a file"))).collect();
    let shows = |text: &str| text.lines().any(|line| line.contains("\"timestamp\":\"2026"));
    let with_time = files.iter().filter(|(_, bytes)| shows(&String::from_utf8_lossy(bytes))).count();
    assert!(with_time > 2, "{with_time} files show the time");

    let release = "in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson";
    let evaluated = throng(&place, &overrides, &format!("evaluate {release} --json --queries 5"));
    assert_eq!(evaluated.code, Some(0), "{}", evaluated.stderr);
    let report: serde_json::Value = serde_json::from_slice(&evaluated.stdout).expect("JSON");
    let attributes = report["quality"]["attributes"].as_array().expect("a list");
    let time: Vec<_> = attributes.iter().filter(|a| a["attribute"] == "timestamp").collect();
    assert_eq!((time.len(), time[0]["falsified"].as_u64()), (1, Some(0)), "told once: {time:?}");
    assert!(time[0]["loss"].as_f64().is_some_and(|loss| loss < 0.5), "{time:?}");

    let attack = "attack out.ndjson --original in.ndjson --lineage lineage.ndjson -c throng.toml";
    let attacked = throng(&place, &overrides, &format!("{attack} --targets 300 --fail-above promise"));
    assert_eq!(attacked.code, Some(0), "{}{}", attacked.stderr, String::from_utf8_lossy(&attacked.stdout));

    let recount = "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson";
    assert_eq!(throng(&place, &overrides, recount).code, Some(0));
    let (path, bytes) =
        files.iter().find(|(_, bytes)| shows(&String::from_utf8_lossy(bytes))).expect("one with the time");
    let text = String::from_utf8_lossy(bytes).into_owned();
    let line = text.lines().find(|line| shows(line)).expect("a line");
    std::fs::write(path, text.replacen(line, &line.replace("\"2026", "\"2025"), 1)).expect("a file");
    let refused = throng(&place, &overrides, &format!("{recount} --json"));
    let found = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(found.contains("the lines of a record show equal values"), "{found}{}", refused.stderr);
    assert_ne!(refused.code, Some(0));
}

#[test]
fn shared_attribute_conflicts_name_the_key() {
    let refused = |more: &str, overrides: &[(&str, &str)], says: &[&str]| {
        let place = wearable(more);
        let outcome = throng(&place, &[&KEEPING[..], overrides].concat(), "check -c throng.toml");
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        for what in says {
            assert!(outcome.stderr.contains(what), "{what:?} is not in {}", outcome.stderr);
        }
    };
    refused("", &[("PLAN__GROUPS", "cliques")], &["plan.shared", "price"]);
    refused("", &[("TREATMENT__PRESET", "coverage")], &["plan.shared", "preset"]);
    refused("[[keep]]\nattributes = [\"timestamp\", \"steps\"]\n", &[], &["keep[0].attributes", "group that changes"]);
    let schema = std::fs::read_to_string("schemas/wearable.toml").expect("a schema");
    for (name, what) in [("age", "not declared as changing"), ("email", "identifier"), ("nothing", "no attribute")] {
        let place = Place::new(&schema, &format!("[plan]\ngroups = \"price\"\nshared = [\"{name}\"]\n"));
        let outcome = throng(&place, &KEEPING, "check -c throng.toml");
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains(what) && outcome.stderr.contains("plan.shared"), "{}", outcome.stderr);
    }
    let place = wearable("");
    let outcome = throng(&place, &KEEPING, "anonymize in.ndjson -c throng.toml -o at-once.ndjson");
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("plan.shared"), "{}", outcome.stderr);
}
