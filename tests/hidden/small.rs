//! Test bench that runs small batches through treatment and verification.

use crate::hidden::observer::{Cell, Row, Treated};
use std::path::Path;
use std::sync::Arc;
use throng::planner::LadderLimits;
use throng::planner::planner_sample::PlannerSample;
use throng::planner::{PlannerSettings, make_plan};
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::plan::GroupShape;
use throng_core::plan::{Plan, PlanGroup};
use throng_core::release::line_limits::LineLimit;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::release::verifier_input::{GroupTerms, VerifierInput};
use throng_core::release::verify::{BatchRefusal, verify};
use throng_core::treatment::batch_treatment::{
    GroupNames, TreatmentInput, TreatmentRules, TreatmentSettings, group_names, treat_batch,
};
use throng_core::treatment::group_mask::GroupMask;
use throng_core::treatment::proposal::{LineRun, ProposedGroup};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{CellId, Codebook};
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::Schema;
use throng_core::values::subjects_by_value::SubjectsByValue;
use throng_formats::LineFormat;

const SCHEMA: &str = r#"
name = "small"
[[attribute]]
name = "age"
type = "integer"
hierarchy = { kind = "intervals", min = 0, max = 3, origin = 0, widths = [2] }
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"viral" = ["flu", "hiv", "hepatitis"]
"bone" = ["fracture", "gout"]
[[attribute]]
name = "income"
type = "integer"
role = "sensitive"
hierarchy = { kind = "intervals", min = 0, max = 7, origin = 0, widths = [2, 4] }
"#;
/// The last value is outside the hierarchy; `null` and the empty text are missing cells.
pub const ILLNESSES: [&str; 8] =
    ["\"flu\"", "\"fracture\"", "\"hiv\"", "\"hepatitis\"", "\"gout\"", "null", "", "\"*\""];
const CLOCK: i64 = 1_700_000_000_000;

pub struct Bench {
    pub k: usize,
    pub books: Vec<Codebook>,
    plan: Plan,
    names: GroupNames,
    terms: Vec<GroupTerms>,
}

impl Bench {
    /// Layout 0 and 1: one group with one or two sensitive attributes; 2: two groups; else no quasi-identifier.
    pub fn new(k: usize, groups: usize) -> Self {
        let schema = Schema::parse(SCHEMA, "small.toml", Path::new("")).expect("a schema");
        let key = DigestKey([7; 32]);
        let books: Vec<Codebook> =
            schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, 1000).expect("a codebook")).collect();
        let shape = |name: &str, quasi: &[usize], sensitive: &[usize]| GroupShape {
            name: name.to_owned(),
            quasi: quasi.to_vec(),
            sensitive: sensitive.to_vec(),
            insensitive: vec![],
            ranges: false,
        };
        let shapes = match groups {
            0 => vec![shape("all", &[0], &[1])],
            1 => vec![shape("all", &[0], &[1, 2])],
            2 => vec![shape("all", &[0], &[1]), shape("beside", &[], &[2])],
            _ => vec![shape("bare", &[], &[1, 2])],
        };
        let settings = PlannerSettings {
            k,
            ladder: LadderLimits { max_complete_nodes: 5000, max_selected_nodes: 400 },
            identifier_cardinality: 2.0,
            window_records: 1000,
            batch_records: 100,
        };
        let plan = make_plan(1, &shapes, &PlannerSample::new(3, 100, 1000), &books, &settings);
        let digests = NameDigest::new(&key);
        let names = group_names(
            &plan,
            &["age", "illness", "income"],
            |names| LineFormat::Json.layout(names),
            |name| digests.digest(name),
        );
        let terms = |(group, (layout, &base)): (&PlanGroup, (_, &u128))| GroupTerms {
            quasi: group.attributes().iter().map(|a| group.quasi.contains(a)).collect(),
            sensitive: group.attributes().iter().map(|a| group.sensitive.contains(a)).collect(),
            attributes: group.attributes(),
            layout: Clone::clone(layout),
            base,
            sensitive_bases: names.sensitive_bases.clone(),
            protected: Vec::new(),
            narrowing: None,
            lines: LineLimit::None,
            ranges: false,
            shown_elsewhere: Vec::new(),
            holders_elsewhere: SubjectsByValue::default(),
        };
        let terms = plan.groups.iter().zip(names.layouts.iter().zip(&names.bases)).map(terms).collect();
        Self { k, books, plan, names, terms }
    }

    pub fn groups(&self) -> &[PlanGroup] {
        &self.plan.groups
    }

    fn encode(&mut self, rows: &[Row]) -> CodeBatch {
        let mut batch = CodeBatch::new(3);
        for (number, row) in (0i64..).zip(rows) {
            for (a, text) in row.texts().iter().enumerate() {
                batch.columns[a].push(self.books[a].encode_canonical(text));
            }
            batch.subjects.push(row.subject);
            batch.coordinates.push(RecordPosition { topic: 0, partition: 0, offset: number, element: 0 });
        }
        batch
    }

    pub fn treat(&mut self, rows: &[Row]) -> Treated {
        let batch = self.encode(rows);
        let policy = TreatmentSettings { k: self.k, max_hold_batches: 0 };
        let waited = vec![0; rows.len()];
        let ledger = SubjectLedger::default();
        let everybody = GroupMask::default();
        let rules = TreatmentRules {
            plan: &self.plan,
            names: &self.names,
            books: &self.books,
            policy: &policy,
            protected: &[],
        };
        let records = TreatmentInput { batch: &batch, mask: &everybody, waited: &waited, holding_ended: true };
        let proposal = treat_batch(&records, &rules, &ledger.at(CLOCK));
        let of = |(group, proposed): (&PlanGroup, &ProposedGroup)| {
            let mut leaving: Vec<u32> = proposed.rows.clone();
            leaving.sort_unstable();
            let cells = |row: &u32| {
                group.attributes().iter().map(|&a| (a, proposal.cells[a][*row as usize])).collect::<Vec<_>>()
            };
            leaving.iter().map(|row| (*row, cells(row))).collect()
        };
        Treated { groups: self.plan.groups.iter().zip(&proposal.groups).map(of).collect(), batch }
    }

    pub fn encode_lines(&self, group: usize, cells: &[(u32, Vec<(usize, CellId)>)]) -> ProposedGroup {
        let mut lines: std::collections::BTreeMap<Vec<u8>, Vec<u32>> = std::collections::BTreeMap::new();
        for (row, cells) in cells {
            let mut line = Vec::new();
            let texts: Vec<&str> = cells.iter().map(|(a, cell)| self.books[*a].text(*cell)).collect();
            self.terms[group].layout.write(&texts, &mut line);
            lines.entry(line).or_default().push(*row);
        }
        let mut proposed = ProposedGroup::default();
        for (line, rows) in lines {
            let (start, first) = (proposed.arena.len(), proposed.rows.len());
            proposed.arena.extend(line);
            proposed.rows.extend(rows);
            proposed.runs.push(LineRun { line: start..proposed.arena.len(), rows: first..proposed.rows.len() });
        }
        proposed
    }

    pub fn verify(&mut self, rows: &[Row], lines: Vec<ProposedGroup>) -> Result<ReleasableBatch, BatchRefusal> {
        let batch = self.encode(rows);
        let CodeBatch { subjects, columns, .. } = &batch;
        let given = VerifierInput { subjects, columns, waiting: 0, sequence: 1, age_ms: CLOCK };
        verify(lines, &given, &self.terms, &self.books, SubjectLedger::default().at(CLOCK), self.k)
    }

    pub fn cell(&self, batch: &CodeBatch, row: usize, attribute: usize, cell: Cell) -> CellId {
        match cell {
            Cell::Star => throng_core::values::codebook::SUPPRESSED,
            Cell::Own => self.books[attribute].cell(batch.columns[attribute][row], 0),
        }
    }
}
