//! An engine that goes on where its state ended.

use super::fields::{Coding, Durable, Engine, InForce, Learning, Planning};
use super::held::Held;
use super::joins::Joins;
use super::model::ModelSize;
use super::parts::{Parts, Past, new_model};
use crate::anonymity::plan::{Group, Pace, Plan};
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::privacy::protection::Protection;
use crate::anonymity::treatment::treat::GroupNames;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::KeptRow;
use crate::daemon::state::rows::RowPacker;
use crate::io::input::FileOrigin;
use crate::records::codebook::Codebook;
use crate::records::schema::Schema;
use crate::start::findings::Met;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rows that wait, oldest first.
fn held(schema: &Schema, rows: &[KeptRow], books: &mut [Codebook]) -> Held {
    let mut held = Held::new(schema.attributes.len(), schema.joined());
    let mut waiting: Vec<&KeptRow> = rows.iter().collect();
    waiting.sort_by_key(|row| row.ordinal);
    waiting.into_iter().for_each(|row| held.push(row, books));
    held
}

/// The quasi attributes of all groups, ascending.
fn quasi(shapes: &[GroupShape]) -> Vec<usize> {
    let quasi: BTreeSet<usize> = shapes.iter().flat_map(|s| s.quasi.clone()).collect();
    quasi.into_iter().collect()
}

/// What a plan of an earlier start must fit.
struct Fitting<'a> {
    schema: &'a Schema,
    shapes: &'a [GroupShape],
    books: &'a [Codebook],
    protections: &'a [Protection],
    /// What classes are compared with.
    known: &'a [ReferenceCounts],
    /// What does not change waits.
    delays: bool,
}

impl Fitting<'_> {
    /// A plan for other groups than the configured ones is of no use, nor is one that has nothing to compare classes with, that does not
    /// know, as it is configured now, what changes, or that shows an attribute at a level that its treatment does not know: the next batch
    /// makes a new one.
    fn is_of_use(&self, plan: &Plan) -> bool {
        let known = |p: &Protection| self.known.iter().any(|r| r.attribute == p.attribute);
        self.protections.iter().filter(|p| p.needs_reference()).all(known)
            && plan.paces.is_empty() != self.delays
            && plan.paces.iter().all(|pace| self.declares(pace))
            && plan.groups.len() == self.shapes.len()
            && plan.groups.iter().zip(self.shapes).all(|(g, s)| {
                (&g.name, &g.quasi, &g.sensitive, &g.insensitive) == (&s.name, &s.quasi, &s.sensitive, &s.insensitive)
            })
            && plan.groups.iter().all(|group| self.is_treated(plan, group))
    }

    fn declares(&self, pace: &Pace) -> bool {
        self.schema.attributes.get(pace.attribute).is_some_and(|a| match a.changes {
            Some(changes) => pace.declared && pace.changes == changes,
            None => !pace.declared,
        })
    }

    fn is_treated(&self, plan: &Plan, group: &Group) -> bool {
        let allows = |(&a, &level): (&usize, &u8)| {
            let allows = self.schema.attributes[a].treatment.allows(usize::from(level), self.books[a].levels() - 1);
            plan.identifiers.contains(&a) || allows
        };
        group.ladder.iter().all(|node| group.quasi.iter().zip(&node.levels).all(allows))
    }
}

impl Engine {
    /// An engine that goes on where `past` ended.
    ///
    /// # Errors
    /// [`StateError::Damaged`] when the rows of the window are not those of these attributes.
    pub fn new(parts: Parts, mut past: Past) -> Result<Self, StateError> {
        let Parts {
            chosen,
            treatments,
            untruthful,
            schema,
            settings,
            shapes,
            protections,
            books,
            subjects,
            ledger,
            sample,
            store,
            telemetry,
            digest,
            auditor,
            draws,
            blank,
        } = parts;
        let quasi = quasi(&shapes);
        let nothing = Past::default();
        let model = new_model(&schema, &shapes, &settings, &nothing)
            .map_err(|error| store.damaged(&format!("its model cannot be made: {error}")))?;
        let met = Met::new(schema.attributes.len(), settings.policy.k);
        let mut engine = Self {
            in_force: InForce {
                plan: Plan::blank(Vec::new()),
                names: GroupNames::default(),
                turn_names: Vec::new(),
                terms: Vec::new(),
                protections,
                protected: Vec::new(),
                references: Vec::new(),
            },
            learning: Learning {
                model,
                model_size: ModelSize::default(),
                sample,
                baseline: Baseline::default(),
                met,
                doubt_at: 0,
            },
            planning: Planning {
                primed: past.primed.take(),
                search: None,
                recheck: None,
                evidence: None,
                chosen,
                treatments,
            },
            durable: Durable { store, packer: RowPacker::default(), progress: nothing.progress },
            coding: Coding { books, subjects, numbering: 0, compacted_bytes: 0 },
            quasi,
            joins: Joins::new(&settings.joins, std::mem::take(&mut past.profiles)),
            held: Held::new(schema.attributes.len(), schema.joined()),
            schema,
            settings,
            shapes,
            ledger,
            telemetry,
            digest,
            draws,
            blank,
            auditor,
            untruthful,
            origin: Arc::new(FileOrigin),
        };
        engine.go_on(past)?;
        engine.telemetry.restore(engine.durable.progress.totals, engine.learning.met.monitored());
        Ok(engine)
    }

    /// Remembers `past` in place of all that was remembered, but for the profiles of joins and for a plan made before the stream. The
    /// ledger is that of `past` already, and the codebooks have no values.
    pub(super) fn go_on(&mut self, past: Past) -> Result<(), StateError> {
        let Self { schema, settings, shapes, coding, learning, planning, durable, .. } = self;
        let (books, store) = (&mut coding.books, &durable.store);
        self.held = held(schema, &past.held, books);
        let mut sample = learning.sample.at(0);
        sample.set_stride(past.progress.stride);
        // The sample as it was when the plan that is still missing was asked for: more of its rows may have left it since.
        let asked = past.progress.asked;
        let mut asked_of = asked.map(|asked| sample.at(asked.rows));
        for row in &past.sample {
            let codes: Vec<u32> = row.cells.iter().zip(&mut *books).map(|(c, book)| book.encode_canonical(c)).collect();
            if let Some(then) = asked_of.as_mut().filter(|_| asked.is_some_and(|asked| row.ordinal < asked.rows)) {
                then.restore_row(row.ordinal, row.subject, codes.iter().copied());
            }
            sample.restore_row(row.ordinal, row.subject, codes.into_iter());
        }
        let mut model = new_model(schema, shapes, settings, &past)
            .map_err(|error| store.damaged(&format!("its model cannot be made: {error}")))?;
        for block in &past.rows {
            model.restore(block, books).ok_or_else(|| store.damaged("rows of the window cannot be read"))?;
        }
        let met = Met::new(schema.attributes.len(), settings.policy.k);
        let fitting = Fitting {
            schema,
            shapes,
            books,
            protections: &self.in_force.protections,
            known: &past.references,
            delays: settings.repetition.max_delay_ms > 0,
        };
        let plan = past.plan.filter(|plan| fitting.is_of_use(plan)).unwrap_or(Plan::blank(Vec::new()));
        learning.met = met.resume(past.met, past.progress.totals.consumed);
        (learning.model, learning.sample, learning.baseline) = (model, sample, past.baseline);
        (planning.search, planning.recheck, planning.evidence) = (None, None, past.evidence);
        coding.compacted_bytes = 0;
        durable.progress = past.progress;
        self.in_force.references = past.references;
        self.settle_model();
        self.adopt(plan);
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
        if let Some(asked) = self.durable.progress.asked.filter(|_| self.in_force.plan.version > 0) {
            self.seek(asked, asked_of);
        }
        Ok(())
    }
}
