//! When a plan is made, and what follows from it.

use super::Engine;
use crate::anonymity::plan::Plan;
use crate::anonymity::planner::{make_plan, reference};
use crate::anonymity::treatment::treat::group_names;
use std::time::Instant;

impl Engine {
    /// Makes and adopts a plan when one is due: at the start, whenever the stream has grown fourfold until the window
    /// is full, and then at the configured interval. It is made from the records before this batch.
    pub(super) fn plan_if_due(&mut self, clock_ms: i64) -> Option<Plan> {
        if self.plan.version > self.progress.plan_version {
            // An attempt that was aborted has adopted its plan already; it becomes durable with the batch that leaves.
            return Some(self.plan.clone());
        }
        let (rows, planned) = (self.progress.rows, self.progress.planned_rows);
        let growing = planned < self.settings.planner.window_records as u64 && rows >= (planned * 4).max(1);
        let due = rows > planned && clock_ms - self.progress.planned_ms >= self.settings.plan_interval_ms;
        if self.plan.version > 0 && !growing && !due {
            return None;
        }
        let start = Instant::now();
        let version = self.progress.plan_version + 1;
        let plan = make_plan(version, &self.shapes, &self.sample, &self.books, &self.settings.planner);
        self.references = reference::count(&self.protections, &self.sample, &self.books);
        self.adopt(plan.clone());
        let ladder_nodes = plan.groups.iter().map(|g| g.ladder.len() as u64).sum();
        let (groups, seconds) = (plan.groups.len() as u64, start.elapsed().as_secs_f64());
        crate::telemetry::PlanAdopted { version, groups, ladder_nodes, seconds }.emit(&self.telemetry);
        Some(plan)
    }

    pub(super) fn adopt(&mut self, plan: Plan) {
        let attribute_names: Vec<&str> = self.schema.attributes.iter().map(|a| a.name.as_str()).collect();
        self.names = group_names(&plan, &attribute_names, self.settings.format, &self.digest);
        self.telemetry.set_plan(crate::daemon::plan_page::summary(&plan, &attribute_names));
        self.protect(&plan);
        self.plan = plan;
    }
}
