//! Verification of tampered proposals: those that break the invariant of `support::invariants` are refused, untouched
//! ones pass.

mod joined;
use crate::support;
mod tampering;

use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use support::invariants::{GroupNames, Line, Promise};
use support::models::{Distribution, Ground, Models, Question};
use support::schemas::schema;
use throng::planner::LadderLimits;
use throng::planner::planner_sample::PlannerSample;
use throng::planner::{PlannerSettings, make_plan};
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::plan::GroupShape;
use throng_core::privacy::GroundMetric as Distance;
use throng_core::release::line_limits::LineLimit;
use throng_core::release::models::ModelClaim;
use throng_core::release::protected_attributes::{ProtectedTerms, ReferenceShares};
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::release::verifier_input::{GroupTerms, NarrowingTerms, VerifierInput};
use throng_core::release::verify::{BatchRefusal, Violation, verify};
use throng_core::stream::batch_encoding::encode;
use throng_core::stream::input_batch::InputBatch;
use throng_core::treatment::batch_treatment::{
    TreatmentInput, TreatmentRules, TreatmentSettings, group_names, treat_batch,
};
use throng_core::treatment::group_mask::GroupMask;
use throng_core::treatment::proposal::{LineRun, ProposedGroup};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::{DigestKey, NameDigest, value_number};
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::SubjectDigester;
use throng_core::values::subjects_by_value::SubjectsByValue;
use throng_formats::LineFormat;
use throng_formats::{DecodeLimits, FieldPath, JsonCodec};

const SCHEMA: &str = schema!("bench"; person, more r#"
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 100
widths = [10]
"#, text "city", text "mood", sensitive "illness");

const K: usize = 3;
const CLOCK: i64 = 1_700_000_000_000;

struct Bench {
    books: Vec<Codebook>,
    terms: Vec<GroupTerms>,
    batch: CodeBatch,
    proposed: Vec<ProposedGroup>,
    promise: Promise,
    /// Ladders for `narrow`.
    narrowing: Vec<NarrowingTerms>,
}

fn promise() -> Promise {
    let group = |all: &[&str], quasi: &[&str], sensitive: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        GroupNames { all: owned(all), quasi: owned(quasi), sensitive: owned(sensitive) }
    };
    Promise {
        k: K,
        groups: vec![
            group(&["age", "city"], &["age", "city"], &[]),
            group(&["mood", "illness"], &["mood"], &["illness"]),
        ],
    }
}

impl Bench {
    /// `records`: person, age, city, mood, illness.
    fn new(records: &[(u8, u8, u8, u8, u8)]) -> Self {
        let schema = Schema::parse(SCHEMA, "bench.toml", Path::new("")).expect("a schema");
        let key = DigestKey([7; 32]);
        let mut books: Vec<Codebook> =
            schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, 1000).expect("a codebook")).collect();
        let mut subjects = SubjectDigester::new(Arc::clone(&schema.attributes[0]), &key);
        let fields: Vec<FieldPath> = schema.attributes.iter().map(|a| FieldPath::top_level(&a.name)).collect();
        let codec = JsonCodec::new(&fields, DecodeLimits::default());
        let mut input = InputBatch::new(5, 0);
        for (offset, (person, age, city, mood, illness)) in (0i64..).zip(records) {
            let json = format!(
                r#"{{"person":"p{person}","age":{age},"city":"c{city}","mood":"m{mood}","illness":"i{illness}"}}"#
            );
            let at = RecordPosition { topic: 0, partition: 0, offset, element: 0 };
            codec.decode(json.as_bytes(), at, &mut input.raw).expect("a record");
        }
        let (batch, rejected) = encode(&input, &schema, &mut books, Some(&mut subjects), false);
        assert!(rejected.is_empty());
        let shape = |name: &str, quasi: &[usize], sensitive: &[usize]| GroupShape {
            name: name.to_owned(),
            quasi: quasi.to_vec(),
            sensitive: sensitive.to_vec(),
            insensitive: vec![],
            ranges: false,
        };
        let shapes = [shape("where", &[1, 2], &[]), shape("how", &[3], &[4])];
        let settings = PlannerSettings {
            k: K,
            ladder: LadderLimits { max_complete_nodes: 5000, max_selected_nodes: 400 },
            identifier_cardinality: 0.8,
            window_records: 1000,
            batch_records: 100,
        };
        let plan = make_plan(1, &shapes, &PlannerSample::new(5, 100, 1000), &books, &settings);
        let names: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let digests = NameDigest::new(&key);
        let group_names =
            group_names(&plan, &names, |names| LineFormat::Json.layout(names), |name| digests.digest(name));
        let policy = TreatmentSettings { k: K, max_hold_batches: 0 };
        let ledger = SubjectLedger::default();
        let (waited, all, at) = (vec![0; batch.rows()], GroupMask::default(), ledger.at(CLOCK));
        let rules = TreatmentRules { plan: &plan, names: &group_names, books: &books, policy: &policy, protected: &[] };
        let proposal = treat_batch(
            &TreatmentInput { batch: &batch, mask: &all, waited: &waited, holding_ended: true },
            &rules,
            &at,
        );
        let terms = plan
            .groups
            .iter()
            .zip(group_names.layouts.iter().zip(&group_names.bases))
            .map(|(group, (layout, &base))| GroupTerms {
                quasi: group.attributes().iter().map(|a| group.quasi.contains(a)).collect(),
                sensitive: group.attributes().iter().map(|a| group.sensitive.contains(a)).collect(),
                attributes: group.attributes(),
                layout: layout.clone(),
                base,
                sensitive_bases: group_names.sensitive_bases.clone(),
                lines: LineLimit::default(),
                ranges: false,
                shown_elsewhere: Vec::new(),
                holders_elsewhere: SubjectsByValue::default(),
                protected: Vec::new(),
                narrowing: None,
            })
            .collect();
        let narrowing = plan.groups.iter().map(|group| NarrowingTerms {
            attributes: group.quasi.clone(),
            nodes: group.ladder.iter().map(|node| node.levels.clone()).collect(),
        });
        let narrowing = narrowing.collect();
        Self { narrowing, books, terms, batch, proposed: proposal.groups, promise: promise() }
    }

    fn verify(&self, proposed: Vec<ProposedGroup>) -> Result<ReleasableBatch, BatchRefusal> {
        let CodeBatch { subjects, columns, .. } = &self.batch;
        let given = VerifierInput { subjects, columns, waiting: 0, sequence: 1, age_ms: CLOCK };
        verify(proposed, &given, &self.terms, &self.books, SubjectLedger::default().at(CLOCK), K)
    }

    fn violation(&self, proposed: Vec<ProposedGroup>) -> Option<Violation> {
        self.verify(proposed).err().map(|refusal| refusal.violation)
    }

    fn narrow(&mut self) {
        for (terms, narrowing) in self.terms.iter_mut().zip(&self.narrowing) {
            terms.narrowing = Some(narrowing.clone());
        }
    }

    /// Requires `claims` for the illnesses of each mood, with a uniform reference.
    fn protect(&mut self, claims: Vec<ModelClaim>, representatives: usize) {
        let number = |text: &&str| self.books[ILL].coverage_of(text).map(value_number);
        let known: Vec<u64> = KNOWN.iter().filter_map(number).collect();
        // The reference contains illnesses that no record of this batch has.
        let shares = vec![1.0 / KNOWN.len() as f64; KNOWN.len()];
        let positions = known.into_iter().chain(1..).take(KNOWN.len()).zip(0..).collect();
        let reference = Some(ReferenceShares { positions, shares });
        self.terms[1].protected =
            vec![ProtectedTerms { attribute: ILL, column: 1, claims, representatives, reference }];
    }

    fn recount(&self, proposed: &[ProposedGroup]) -> Result<(), String> {
        self.promise.check_all(&self.lines(proposed)?)
    }

    fn lines(&self, proposed: &[ProposedGroup]) -> Result<Vec<Line>, String> {
        let mut lines = Vec::new();
        for (group, proposed) in proposed.iter().enumerate() {
            for run in &proposed.runs {
                let text = proposed.arena.get(run.line.clone()).ok_or("no such line")?;
                for &row in proposed.rows.get(run.rows.clone()).ok_or("no such rows")? {
                    let subject = *self.batch.subjects.get(row as usize).ok_or("no such row")?;
                    lines.push(Line {
                        batch: 1,
                        clock_ms: CLOCK,
                        group,
                        text: String::from_utf8_lossy(text).into_owned(),
                        subject: Some(subject.to_string()),
                        source: (0, 0, i64::from(row)),
                    });
                }
            }
        }
        Ok(lines)
    }
}

const ILL: usize = 4;
const KNOWN: [&str; 3] = ["\"i0\"", "\"i1\"", "\"i2\""];

fn taken_apart(group: &ProposedGroup) -> Vec<(Vec<u8>, Vec<u32>)> {
    group.runs.iter().map(|r| (group.arena[r.line.clone()].to_vec(), group.rows[r.rows.clone()].to_vec())).collect()
}

fn put_together(runs: &[(Vec<u8>, Vec<u32>)]) -> ProposedGroup {
    let mut group = ProposedGroup::default();
    for (text, rows) in runs {
        let (line, row) = (group.arena.len(), group.rows.len());
        group.arena.extend(text);
        group.rows.extend(rows);
        group.runs.push(LineRun { line: line..group.arena.len(), rows: row..group.rows.len() });
    }
    group
}

/// Five people in each of two towns, with one mood and illness per town.
fn two_towns() -> Bench {
    let records: Vec<_> = (0..10).map(|i| (i, 30 + i / 5, i / 5, i / 5, i / 5)).collect();
    Bench::new(&records)
}

fn tampered(group: usize, change: impl FnOnce(&mut Vec<(Vec<u8>, Vec<u32>)>)) -> Option<Violation> {
    let bench = two_towns();
    let mut proposed = bench.proposed.clone();
    let mut runs = taken_apart(&proposed[group]);
    change(&mut runs);
    proposed[group] = put_together(&runs);
    bench.violation(proposed)
}

#[test]
fn proposal_of_treatment_passes_verification() {
    let bench = two_towns();
    let texts: Vec<String> =
        taken_apart(&bench.proposed[0]).into_iter().map(|(t, _)| String::from_utf8(t).expect("text")).collect();
    assert_eq!(texts, [r#"{"age":30,"city":"c0"}"#, r#"{"age":31,"city":"c1"}"#]);
    let verified = bench.verify(bench.proposed.clone()).expect("passes");
    assert_eq!((verified.len(0), verified.len(1)), (10, 10));
    bench.recount(&bench.proposed).expect("keeps the invariant");
}

#[test]
fn missing_rows_are_detected_if_class_falls_below_k() {
    assert_eq!(tampered(0, |runs| runs[0].1.truncate(2)), Some(Violation::ClassBelowK));
    assert_eq!(tampered(0, |runs| runs[0].1.clear()), Some(Violation::WrongRow));
    // A removal that keeps k subjects in the class and per sensitive value passes.
    assert_eq!(tampered(1, |runs| runs[0].1.truncate(3)), None);
    assert_eq!(tampered(1, |runs| runs[0].1.truncate(2)), Some(Violation::ClassBelowK));
}

#[test]
fn changed_cell_is_refused() {
    let single = |text: &str| (text.as_bytes().to_vec(), vec![0]);
    let violation = tampered(0, |runs| {
        runs[0].1.remove(0);
        runs.insert(1, single(r#"{"age":30,"city":"c1"}"#));
    });
    assert_eq!(violation, Some(Violation::ClassBelowK));
    // Counting joins town c0 and illness i1 for fewer than k subjects.
    let violation = tampered(1, |runs| {
        runs[0].1.remove(0);
        runs.insert(1, single(r#"{"mood":"m0","illness":"i1"}"#));
    });
    assert_eq!(violation, Some(Violation::ForcedPair));
    let violation = tampered(1, |runs| {
        runs[0].1.truncate(3);
        let moved = runs[0].1.remove(0);
        runs.insert(1, (br#"{"mood":"m0","illness":"i1"}"#.to_vec(), vec![moved]));
    });
    assert_eq!(violation, Some(Violation::SensitiveBelowK), "two people are left with illness i0");
    assert_eq!(tampered(0, |runs| runs[0].0 = br#"{"age":"*","city":"*"}"#.to_vec()), Some(Violation::EmptyClass));
}

#[test]
fn unknown_or_unreadable_text_is_refused() {
    for (text, violation) in [
        (r#"{"age":29,"city":"c0"}"#, Violation::UnknownCell),
        (r#"{"age":"c0","city":"c0"}"#, Violation::UnknownCell),
        (r#"{"age":30,"city":"p1"}"#, Violation::UnknownCell),
        (r#"{"age":30,"city":"c0","person":"p1"}"#, Violation::UnreadableLine),
        (r#"{"city":"c0","age":30}"#, Violation::UnreadableLine),
        (r#"{"age": 30,"city":"c0"}"#, Violation::UnreadableLine),
        (r#"{"age":30,"city":"c0"} "#, Violation::UnreadableLine),
        ("p1", Violation::UnreadableLine),
        ("", Violation::UnreadableLine),
    ] {
        let found = tampered(0, |runs| runs[0].0 = text.as_bytes().to_vec());
        assert!(found == Some(violation) || found == Some(Violation::UnknownCell), "{text}: {found:?}");
    }
    assert_eq!(tampered(0, |runs| runs[0].0 = vec![0xff, b'{']), Some(Violation::UnreadableLine));
}

#[test]
fn unsorted_lines_and_wrong_rows_are_refused() {
    assert_eq!(tampered(0, |runs| runs.swap(0, 1)), Some(Violation::Unsorted));
    assert_eq!(tampered(0, |runs| runs[1].0 = runs[0].0.clone()), Some(Violation::Unsorted), "one text, two runs");
    assert_eq!(tampered(0, |runs| runs[0].1.push(9)), Some(Violation::WrongRow), "a row of another run as well");
    assert_eq!(tampered(0, |runs| runs[0].1.push(1)), Some(Violation::WrongRow), "a row twice");
    assert_eq!(tampered(0, |runs| runs[0].1.push(10)), Some(Violation::WrongRow), "no row of the batch");
    let bench = two_towns();
    let mut proposed = bench.proposed.clone();
    proposed[0].rows.push(0);
    assert_eq!(bench.violation(proposed), Some(Violation::WrongRow), "a row of no run");
    let mut proposed = bench.proposed.clone();
    proposed[0].runs[0].line.end = 10_000;
    assert_eq!(bench.violation(proposed), Some(Violation::UnreadableLine), "a line beyond the arena");
    assert_eq!(bench.violation(bench.proposed[..1].to_vec()), Some(Violation::WrongGroups));
}

#[test]
fn rows_of_one_subject_count_once_in_class() {
    // Ten records in one class, of two subjects.
    let records: Vec<_> = (0..10u8).map(|i| (i % 2, 30, 0, 0, 0)).collect();
    let mut bench = Bench::new(&records);
    assert!(bench.proposed.iter().all(|g| g.runs.is_empty()), "nothing is proposed");
    for (group, text) in [(0, r#"{"age":30,"city":"c0"}"#), (1, r#"{"mood":"m0","illness":"i0"}"#)] {
        bench.proposed[group] = put_together(&[(text.as_bytes().to_vec(), (0..10).collect())]);
    }
    assert_eq!(bench.violation(bench.proposed.clone()), Some(Violation::ClassBelowK));
}

#[test]
fn class_that_violates_model_is_refused() {
    let protected = |claim: ModelClaim| {
        let mut bench = two_towns();
        bench.protect(vec![claim], 0);
        bench.violation(bench.proposed.clone())
    };
    assert_eq!(protected(ModelClaim::Distinct { l: 1 }), None);
    assert_eq!(protected(ModelClaim::Distinct { l: 2 }), Some(Violation::Model), "everybody of a mood has one illness");
    assert_eq!(protected(ModelClaim::Closeness { t: 0.7, ground: Distance::Equal }), None);
    assert_eq!(protected(ModelClaim::Closeness { t: 0.6, ground: Distance::Equal }), Some(Violation::Model));
    assert_eq!(protected(ModelClaim::Entropy { l: 1.0 }), None);
    assert_eq!(protected(ModelClaim::Entropy { l: 2.0 }), Some(Violation::Model));
    let mut bench = two_towns();
    bench.protect(vec![ModelClaim::Distinct { l: 1 }], 2);
    assert_eq!(bench.violation(bench.proposed.clone()), Some(Violation::Model), "no two values of two people");
    bench.protect(vec![ModelClaim::Closeness { t: 1.0, ground: Distance::Equal }], 0);
    assert_eq!(bench.violation(bench.proposed.clone()), None, "any distribution will do");
    bench.terms[1].protected[0].reference = None;
    assert_eq!(bench.violation(bench.proposed.clone()), Some(Violation::Model), "there is nothing to compare with");
}

#[test]
fn batch_with_fewer_than_k_subjects_is_refused() {
    let bench = two_towns();
    let rows = |rows: &[u32]| -> Vec<ProposedGroup> {
        let of = |g: &ProposedGroup| put_together(&[(taken_apart(g)[0].0.clone(), rows.to_vec())]);
        bench.proposed.iter().map(of).collect()
    };
    // Every class is then below k, which is reported first.
    assert_eq!(bench.violation(rows(&[0, 1])), Some(Violation::ClassBelowK));
    assert_eq!(bench.violation(rows(&[0, 1, 2])), None);
}

#[test]
fn pair_forced_by_counting_is_refused() {
    // Seven of ten subjects have mood m0, and five are in each town: at least two of town c1 have mood m0.
    let records: Vec<_> = (0..10).map(|i| (i, 30 + i / 5, i / 5, u8::from(i > 6), 0)).collect();
    let bench = Bench::new(&records);
    let line = |text: &str| text.as_bytes().to_vec();
    let town = |n: usize| line(&format!(r#"{{"age":3{n},"city":"c{n}"}}"#));
    let mood = |n: usize| line(&format!(r#"{{"mood":"m{n}","illness":"i0"}}"#));
    let proposed = vec![
        put_together(&[(town(0), vec![0, 1, 2, 3, 4]), (town(1), vec![5, 6, 7, 8, 9])]),
        put_together(&[(mood(0), vec![0, 1, 2, 3, 4, 5, 6]), (mood(1), vec![7, 8, 9])]),
    ];
    assert_eq!(bench.violation(proposed), Some(Violation::ForcedPair), "two at least are of c1 and m0");
}

#[test]
fn class_below_k_in_its_batch_is_refused() {
    let bench = two_towns();
    // Two subjects of one class are released with three of the other.
    let few = |from: &ProposedGroup, rows: [&[u32]; 2]| {
        let runs = taken_apart(from);
        put_together(&[(runs[0].0.clone(), rows[0].to_vec()), (runs[1].0.clone(), rows[1].to_vec())])
    };
    // Counting would join two groups.
    let proposed = vec![few(&bench.proposed[0], [&[0, 1], &[5, 6, 7]]), put_together(&[])];
    assert_eq!(bench.violation(proposed), Some(Violation::ClassBelowK));
    let proposed = vec![few(&bench.proposed[0], [&[0, 1, 2], &[5, 6, 7]]), put_together(&[])];
    assert_eq!(bench.violation(proposed), None);
    // Each mood has three subjects, but illness i0 has only two.
    let runs = taken_apart(&bench.proposed[1]);
    let other = br#"{"mood":"m0","illness":"i1"}"#.to_vec();
    let moods = [(runs[0].0.clone(), vec![0, 1]), (other, vec![2]), (runs[1].0.clone(), vec![5, 6, 7])];
    let proposed = vec![put_together(&[]), put_together(&moods)];
    assert_eq!(bench.violation(proposed), Some(Violation::SensitiveBelowK));
}

#[test]
fn class_narrowed_below_k_by_exclusion_is_refused() {
    // Five of ten identical records are released exactly. The observer can exclude them from the class of ten years of
    // the others.
    let records: Vec<_> = (0..10).map(|i| (i, 30, 0, 0, 0)).collect();
    let mut bench = Bench::new(&records);
    let exact = taken_apart(&bench.proposed[0])[0].0.clone();
    let age = &bench.books[1];
    let decade = age.text(age.cell(bench.batch.columns[1][0], 1)).to_owned();
    let coarse = format!(r#"{{"age":{decade},"city":"c0"}}"#).into_bytes();
    let mut runs = vec![(exact, vec![0, 1, 2, 3, 4]), (coarse, vec![5, 6, 7, 8, 9])];
    runs.sort();
    let mut narrowed = bench.proposed.clone();
    narrowed[0] = put_together(&runs);
    assert_eq!(bench.violation(narrowed.clone()), None, "both classes have their subjects");
    bench.narrow();
    assert_eq!(bench.violation(bench.proposed.clone()), None);
    assert_eq!(bench.violation(narrowed.clone()), Some(Violation::Narrowed));
    // A line that matches no node of its row counts for no subject.
    let mut strange = narrowed;
    runs.iter_mut().for_each(|run| run.0 = String::from_utf8_lossy(&run.0).replace("c0", "c1").into_bytes());
    bench.books[2].encode_canonical("\"c1\"");
    strange[0] = put_together(&runs);
    assert_eq!(bench.violation(strange), Some(Violation::Narrowed));
}
