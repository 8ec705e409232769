//! Restores an engine from its state.

use super::core::Engine;
use super::held_records::HeldRows;
use super::model::StreamModel;
use super::settings::EngineSettings;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::StreamProgress;
use crate::daemon::state::store::{RecoveredState, StateStore};
use crate::planner::closeness_counts::ReferenceCounts;
use crate::planner::grouped_attributes;
use crate::start::run_findings::RunStatistics;
use throng_core::plan::GroupShape;
use throng_core::plan::{AttributeChangeRate, Plan, PlanGroup};
use throng_core::privacy::protection::SensitiveProtection;
use throng_core::values::schema::Schema;

/// Creates the model at `progress`, with an empty window.
pub(super) fn new_model(
    schema: &Schema,
    shapes: &[GroupShape],
    settings: &EngineSettings,
    progress: &StreamProgress,
    store: &StateStore,
) -> Result<StreamModel, StateError> {
    StreamModel::new(schema.attributes.len(), grouped_attributes(shapes), settings.model, progress)
        .map_err(|error| store.damage_error(&format!("its model cannot be restored: {error}")))
}

impl Engine {
    /// Replaces all state with `past`, except profiles and a primed plan. Requires the ledger of `past` and empty
    /// codebooks.
    pub(super) fn restore_state(&mut self, mut past: RecoveredState) -> Result<(), StateError> {
        let Self { schema, settings, shapes, coding, learning, durable, .. } = self;
        let (books, store) = (&mut coding.books, &durable.store);
        self.held = HeldRows::new(schema.attributes.len(), schema.joined_attributes());
        past.held.sort_by_key(|row| row.ordinal);
        past.held.iter().for_each(|row| self.held.push(row, books));
        let mut sample = learning.sample.empty_at(0);
        sample.set_stride(past.progress.stride);
        // Sample at the request of the pending plan.
        let asked = past.progress.asked;
        let mut asked_of = asked.map(|asked| sample.empty_at(asked.rows));
        for row in &past.sample {
            let codes: Vec<u32> = row.cells.iter().zip(&mut *books).map(|(c, book)| book.encode_canonical(c)).collect();
            if let Some(then) = asked_of.as_mut().filter(|_| asked.is_some_and(|asked| row.ordinal < asked.rows)) {
                then.restore_row(row.ordinal, row.subject, codes.iter().copied());
            }
            sample.restore_row(row.ordinal, row.subject, codes.into_iter());
        }
        let mut model = new_model(schema, shapes, settings, &past.progress, store)?;
        for (_, block) in &past.rows {
            model.restore(block, books).ok_or_else(|| store.damage_error("rows of the window cannot be read"))?;
        }
        if let Some(series) = &mut self.series
            && !series.resume(past.series.take())
        {
            return Err(StateError::OtherSeries(store.path().to_owned()));
        }
        let (width, k) = (schema.attributes.len(), settings.policy.k);
        let plan = past.plan.take().filter(|plan| self.is_usable_plan(plan, &past.references));
        let Self { learning, planning, coding, durable, .. } = self;
        learning.met = RunStatistics::new(width, k).continue_from(past.met, past.progress.totals.consumed);
        (learning.model, learning.sample, learning.baseline) = (model, sample, past.baseline);
        (planning.search, planning.recheck, planning.evidence) = (None, None, past.evidence);
        coding.compacted_bytes = 0;
        durable.progress = past.progress;
        self.in_force.references = past.references;
        self.wait_for_model();
        self.adopt(plan.unwrap_or(Plan::inactive(Vec::new())));
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
        if let Some(asked) = self.durable.progress.asked.filter(|_| self.in_force.plan.version > 0) {
            self.start_plan_search(asked, asked_of);
        }
        Ok(())
    }

    /// Returns whether a stored plan fits the configuration: same groups, needed references `known`, same declared
    /// rates of change, and permitted levels. Otherwise the next batch makes a new plan.
    fn is_usable_plan(&self, plan: &Plan, known: &[ReferenceCounts]) -> bool {
        let is_known = |p: &SensitiveProtection| known.iter().any(|r| r.attribute == p.attribute);
        let declares = |pace: &AttributeChangeRate| {
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
                .all(|(g, s)| *g == PlanGroup { ladder: g.ladder.clone(), ..s.without_ladder() })
            && plan.groups.iter().all(|group| self.permits_levels(plan, group))
    }

    fn permits_levels(&self, plan: &Plan, group: &PlanGroup) -> bool {
        let allows = |(&a, &level): (&usize, &u8)| {
            let levels = self.coding.books[a].levels();
            let allows = self.schema.attributes[a].treatment.allows(usize::from(level), levels - 1);
            plan.identifiers.contains(&a) || allows
        };
        group.ladder.iter().all(|node| group.quasi.iter().zip(&node.levels).all(allows))
    }
}
