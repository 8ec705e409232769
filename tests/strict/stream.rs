//! Treatment and verification of the daemon on small tables, batch after batch.

use crate::strict::observer::{Fragment, Published, Tuple};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use throng::planner::LadderLimits;
use throng::planner::planner_sample::PlannerSample;
use throng::planner::{PlannerSettings, make_plan};
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::line_encoder::LineLayout;
use throng_core::plan::GroupShape;
use throng_core::plan::{Plan, PlanGroup};
use throng_core::release::line_limits::LineLimit;
use throng_core::release::verifier_input::{GroupTerms, NarrowingTerms, VerifierInput};
use throng_core::release::verify::verify;
use throng_core::treatment::batch_treatment::{
    GroupNames, TreatmentInput, TreatmentRules, TreatmentSettings, group_names, treat_batch,
};
use throng_core::treatment::group_mask::GroupMask;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{CellId, Codebook, SUPPRESSED};
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::Schema;
use throng_core::values::subjects_by_value::SubjectsByValue;
use throng_formats::LineFormat;

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub k: usize,
    pub max_hold_batches: u8,
}

pub struct Outcome {
    /// By space: the groups, then the sensitive attributes.
    pub spaces: Vec<Vec<Published>>,
    /// Batches from which the guard between groups withdrew fragments.
    pub guarded: Vec<bool>,
    pub released: usize,
    pub held: usize,
    pub loss: f64,
}

pub struct Table {
    schema: Schema,
    books: Vec<Codebook>,
    /// Texts of all levels, by attribute and raw text.
    levels: Vec<BTreeMap<String, Vec<String>>>,
}

impl Table {
    pub fn new(schema: &str) -> Self {
        let schema = Schema::parse(schema, "schema.toml", Path::new(".")).expect("a schema");
        let key = DigestKey([7; 32]);
        let books: Vec<Codebook> =
            schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, 10_000).expect("a codebook")).collect();
        Self { levels: vec![BTreeMap::new(); books.len()], schema, books }
    }

    pub fn encode(&mut self, rows: &[(u64, Tuple)]) -> CodeBatch {
        let mut batch = CodeBatch::new(self.books.len());
        for (number, (subject, cells)) in rows.iter().enumerate() {
            for (a, text) in cells.iter().enumerate() {
                let code = self.books[a].encode_canonical(text);
                batch.columns[a].push(code);
                let book = &self.books[a];
                let texts = (0..book.levels()).map(|l| book.text(book.cell(code, l)).to_owned());
                self.levels[a].entry(text.clone()).or_insert_with(|| texts.collect());
            }
            batch.subjects.push(*subject);
            batch.coordinates.push(RecordPosition { topic: 0, partition: 0, offset: number as i64, element: 0 });
        }
        batch
    }

    pub fn generalize(&self, attributes: &[usize], raw: &[String], levels: &[u8]) -> Tuple {
        let cells = attributes.iter().zip(raw).zip(levels);
        cells.map(|((&a, text), &level)| self.levels[a][text][level as usize].clone()).collect()
    }

    /// As in the daemon, a plan is made after each fourfold growth of the records.
    pub fn run(&mut self, shapes: &[GroupShape], batches: &[Vec<(u64, Tuple)>], settings: Settings) -> Outcome {
        let Settings { k, max_hold_batches } = settings;
        let attribute_names: Vec<String> = self.schema.attributes.iter().map(|a| a.name.clone()).collect();
        let attribute_names: Vec<&str> = attribute_names.iter().map(String::as_str).collect();
        let names = NameDigest::new(&DigestKey([7; 32]));
        let planner = PlannerSettings {
            k,
            ladder: LadderLimits { max_complete_nodes: 5000, max_selected_nodes: 400 },
            identifier_cardinality: 2.0,
            window_records: 100_000,
            batch_records: 100,
        };
        let policy = TreatmentSettings { k, max_hold_batches };
        let groups: Vec<_> = shapes.iter().map(GroupShape::without_ladder).collect();
        let blank = Plan::inactive(groups);
        let group_names =
            group_names(&blank, &attribute_names, |names| LineFormat::Json.layout(names), |name| names.digest(name));
        let groups = blank.groups.iter().filter(|group| !group.quasi.is_empty()).map(|group| group.quasi.clone());
        let spaces: Vec<Vec<usize>> =
            groups.chain(blank.groups.iter().flat_map(|group| &group.sensitive).map(|&a| vec![a])).collect();
        let ledger = SubjectLedger::default();
        let mut sample = PlannerSample::new(self.books.len(), 100_000, 100_000);
        let (mut seen, mut planned) = (0u64, 0u64);
        let mut plan = blank;
        let (mut loss, mut cells) = (0.0, 0);
        let mut outcome =
            Outcome { spaces: vec![Vec::new(); spaces.len()], guarded: Vec::new(), released: 0, held: 0, loss: 0.0 };
        let mut waiting: Vec<((u64, Tuple), u8)> = Vec::new();
        for (number, rows) in batches.iter().enumerate() {
            let fresh = self.encode(rows);
            if plan.version == 0 || seen >= planned * 4 {
                plan = make_plan(plan.version + 1, shapes, &sample, &self.books, &planner);
                planned = seen.max(1);
            }
            let all: Vec<((u64, Tuple), u8)> =
                waiting.drain(..).chain(rows.iter().map(|row| (row.clone(), 0))).collect();
            let batch = self.encode(&all.iter().map(|(row, _)| row.clone()).collect::<Vec<_>>());
            let waited: Vec<u8> = all.iter().map(|(_, waited)| *waited).collect();
            let at = ledger.at(0);
            let last = number + 1 == batches.len();
            let rules = TreatmentRules {
                plan: &plan,
                names: &group_names,
                books: &self.books,
                policy: &policy,
                protected: &[],
            };
            let mask = GroupMask::default();
            let mut proposal = treat_batch(
                &TreatmentInput { batch: &batch, mask: &mask, waited: &waited, holding_ended: last },
                &rules,
                &at,
            );
            let terms = terms(&plan, &group_names);
            let proposed = std::mem::take(&mut proposal.groups);
            let given = VerifierInput {
                subjects: &batch.subjects,
                columns: &batch.columns,
                waiting: 0,
                sequence: number as u64 + 1,
                age_ms: 0,
            };
            verify(proposed, &given, &terms, &self.books, at, k).expect("what the treatment proposes can be verified");

            outcome.guarded.push(proposal.guarded_fragments > 0);
            outcome.released += proposal.unreleased.iter().filter(|u| u.is_none()).count() - proposal.held.len();
            outcome.held += proposal.held.len();
            loss += proposal.loss.0;
            cells += proposal.loss.1;
            for (space, out) in spaces.iter().zip(&mut outcome.spaces) {
                out.push(self.published(space, &plan, &batch, &proposal.cells, &all));
            }
            waiting = proposal.held.iter().map(|&row| &all[row as usize]).map(|(r, w)| (r.clone(), w + 1)).collect();
            sample.add(&fresh, seen);
            seen += rows.len() as u64;
        }
        outcome.loss = loss / f64::from(u32::try_from(cells).expect("few cells").max(1));
        outcome
    }

    fn published(
        &self,
        space: &[usize],
        plan: &Plan,
        batch: &CodeBatch,
        cells: &[Vec<CellId>],
        rows: &[((u64, Tuple), u8)],
    ) -> Published {
        let group = plan.groups.iter().find(|g| g.quasi == space);
        let ladder = match group {
            Some(group) => group.ladder.iter().map(|n| n.levels.clone()).collect(),
            None => (0..self.books[space[0]].levels() as u8 - 1).map(|l| vec![l]).collect(),
        };
        let leaves = |row: &usize| space.iter().any(|&a| cells[a][*row] != SUPPRESSED);
        let text = |row: usize, a: usize| self.books[a].text(cells[a][row]).to_owned();
        let fragment = |row: usize| Fragment {
            class: space.iter().map(|&a| text(row, a)).collect(),
            raw: space.iter().map(|&a| rows[row].0.1[a].clone()).collect(),
            subject: batch.subjects[row],
        };
        let fragments = (0..batch.rows()).filter(leaves).map(fragment).collect();
        Published { ladder, fragments }
    }
}

fn terms(plan: &Plan, names: &GroupNames) -> Vec<GroupTerms> {
    let of = |((group, layout), &base): ((&PlanGroup, &LineLayout), &u128)| GroupTerms {
        attributes: group.attributes(),
        quasi: group.attributes().iter().map(|a| group.quasi.contains(a)).collect(),
        sensitive: group.attributes().iter().map(|a| group.sensitive.contains(a)).collect(),
        layout: layout.clone(),
        base,
        sensitive_bases: names.sensitive_bases.clone(),
        lines: LineLimit::None,
        ranges: false,
        shown_elsewhere: Vec::new(),
        holders_elsewhere: SubjectsByValue::default(),
        protected: Vec::new(),
        narrowing: Some(NarrowingTerms {
            attributes: group.quasi.clone(),
            nodes: group.ladder.iter().map(|node| node.levels.clone()).collect(),
        }),
    };
    plan.groups.iter().zip(&names.layouts).zip(&names.bases).map(of).collect()
}
