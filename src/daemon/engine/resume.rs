//! An engine that goes on where its state ended.

use super::core::Engine;
use super::held::Held;
use super::model::Model;
use super::settings::EngineSettings;
use crate::anonymity::plan::{Group, Pace, Plan};
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::planner::{GroupShape, guarded};
use crate::anonymity::privacy::protection::Protection;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Progress;
use crate::daemon::state::store::{Recovered, Store};
use crate::start::findings::Met;
use throng_core::values::schema::Schema;

/// The model that goes on from `progress`, before the rows of its window are counted.
pub(super) fn new_model(
    schema: &Schema,
    shapes: &[GroupShape],
    settings: &EngineSettings,
    progress: &Progress,
    store: &Store,
) -> Result<Model, StateError> {
    Model::new(schema.attributes.len(), guarded(shapes), settings.model, progress)
        .map_err(|error| store.damaged(&format!("its model cannot be made: {error}")))
}

impl Engine {
    /// Remembers `past` in place of all that was remembered, but for the profiles of joins and for a plan made before the stream. The
    /// ledger is that of `past` already, and the codebooks have no values.
    pub(super) fn go_on(&mut self, mut past: Recovered) -> Result<(), StateError> {
        let Self { schema, settings, shapes, coding, learning, durable, .. } = self;
        let (books, store) = (&mut coding.books, &durable.store);
        self.held = Held::new(schema.attributes.len(), schema.joined());
        past.held.sort_by_key(|row| row.ordinal);
        past.held.iter().for_each(|row| self.held.push(row, books));
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
        let mut model = new_model(schema, shapes, settings, &past.progress, store)?;
        for (_, block) in &past.rows {
            model.restore(block, books).ok_or_else(|| store.damaged("rows of the window cannot be read"))?;
        }
        if let Some(series) = &mut self.series
            && !series.resume(past.series.take())
        {
            return Err(StateError::OtherSeries(store.path().to_owned()));
        }
        let (width, k) = (schema.attributes.len(), settings.policy.k);
        let plan = past.plan.take().filter(|plan| self.is_of_use(plan, &past.references));
        let Self { learning, planning, coding, durable, .. } = self;
        learning.met = Met::new(width, k).resume(past.met, past.progress.totals.consumed);
        (learning.model, learning.sample, learning.baseline) = (model, sample, past.baseline);
        (planning.search, planning.recheck, planning.evidence) = (None, None, past.evidence);
        coding.compacted_bytes = 0;
        durable.progress = past.progress;
        self.in_force.references = past.references;
        self.settle_model();
        self.adopt(plan.unwrap_or(Plan::blank(Vec::new())));
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
        if let Some(asked) = self.durable.progress.asked.filter(|_| self.in_force.plan.version > 0) {
            self.seek(asked, asked_of);
        }
        Ok(())
    }

    /// A plan for other groups than the configured ones is of no use, nor is one that has nothing to compare classes with (`known`), that
    /// does not know, as it is configured now, what changes, or that shows an attribute at a level that its treatment does not know: the
    /// next batch makes a new one.
    fn is_of_use(&self, plan: &Plan, known: &[ReferenceCounts]) -> bool {
        let is_known = |p: &Protection| known.iter().any(|r| r.attribute == p.attribute);
        let declares = |pace: &Pace| {
            self.schema.attributes.get(pace.attribute).is_some_and(|a| match a.changes {
                Some(changes) => pace.declared && pace.changes == changes,
                None => !pace.declared,
            })
        };
        let delays = self.settings.repetition.max_delay_ms > 0;
        self.in_force.protections.iter().filter(|p| p.needs_reference()).all(is_known)
            && plan.paces.is_empty() != delays
            && plan.paces.iter().all(declares)
            && plan.groups.len() == self.shapes.len()
            && plan
                .groups
                .iter()
                .zip(&self.shapes)
                .all(|(g, s)| *g == Group { ladder: g.ladder.clone(), ..s.without_ladder() })
            && plan.groups.iter().all(|group| self.is_treated(plan, group))
    }

    fn is_treated(&self, plan: &Plan, group: &Group) -> bool {
        let allows = |(&a, &level): (&usize, &u8)| {
            let levels = self.coding.books[a].levels();
            let allows = self.schema.attributes[a].treatment.allows(usize::from(level), levels - 1);
            plan.identifiers.contains(&a) || allows
        };
        group.ladder.iter().all(|node| group.quasi.iter().zip(&node.levels).all(allows))
    }
}
