//! Triggers and adoption of plans.

use super::search::{EvidenceRecheck, PlanSearch};
use crate::config::RowContent;
use crate::daemon::engine::build::prime::PrimedPlan;
use crate::daemon::engine::core::Engine;
use crate::daemon::engine::gather::gathered_batch::PlanningOutcome;
use crate::daemon::engine::report::plan_summary::{by_size, involvement, shown_qids};
use crate::daemon::state::records::{BatchIntent, PlanReason, SearchRequest};
use crate::planner::closeness_counts::ReferenceCounts;
use crate::planner::drift::DriftBaseline;
use crate::planner::evidence::{EvidenceInput, WindowModel};
use crate::planner::planner_sample::PlannerSample;
use crate::planner::{change_rates, closeness_counts, make_plan};
use crate::start::schema_warnings;
use crate::telemetry::{EvidenceGathered, PlanAdopted, PlannerFailed, SchemaWarning, StaticGroupLost, round_to_step};
use crossbeam_channel::TryRecvError;
use std::time::Instant;
use throng_core::plan::evidence::PlanEvidence;
use throng_core::plan::{AttributeChangeRate, Plan, PlanGroup};
use throng_core::privacy::protection::SensitiveProtection;
use throng_core::treatment::batch_treatment::{group_names, joined_layouts};
use throng_core::treatment::group_digests::group_identity;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::NO_SUBJECT;
use throng_risk::counting::{BackendChoice, StreamWindow, WindowArrival, shared_device};

/// Window fraction (1 / n) after a plan without drift checks.
const DRIFT_PAUSE_DIVISOR: u64 = 8;

impl Engine {
    /// Returns a plan due before a batch. Plans up to a full window are immediate; later ones are adopted a fixed
    /// number of batches after their search, so that output does not depend on search speed.
    pub(crate) fn plan_if_due(&mut self, age_ms: i64) -> PlanningOutcome {
        if self.in_force.plan.version > self.durable.progress.plan_version {
            return PlanningOutcome::with(self.in_force.plan.clone());
        }
        let batch = self.durable.progress.batches + 1;
        let handover = self.settings.handover_batches;
        if let Some(search) = self.planning.search.take_if(|search| batch >= search.asked.batch + handover) {
            return self.adopt_search_result(search);
        }
        let Some(why) = self.plan_trigger(age_ms).filter(|_| self.planning.search.is_none()) else {
            return PlanningOutcome::default();
        };
        let asked = SearchRequest { batch, rows: self.durable.progress.rows, why };
        if handover == 0 || matches!(why, PlanReason::Start | PlanReason::Growth) {
            let start = Instant::now();
            if let Some(PrimedPlan { plan, baseline }) = self.planning.primed.take_if(|_| why == PlanReason::Start) {
                let plan = self.activate_plan(plan, PlanReason::Prime, start);
                self.set_baseline(baseline);
                return PlanningOutcome::with(plan);
            }
            let settings =
                self.settings.planner.with_average_batch(self.durable.progress.rows, self.durable.progress.batches);
            let plan =
                make_plan(self.next_version(), &self.shapes, &self.learning.sample, &self.coding.books, &settings);
            return PlanningOutcome::with(self.activate_plan(plan, why, start));
        }
        self.start_plan_search(asked, None);
        PlanningOutcome::default()
    }

    pub(crate) fn plans_from_first(&self, retry: Option<&BatchIntent>) -> bool {
        let is_first = self.in_force.plan.version == 0 && self.planning.primed.is_none() && retry.is_none();
        self.settings.plans_from_first_batch && is_first
    }

    /// This batch is never repeated.
    pub(crate) fn plan_from(&mut self, fresh: &CodeBatch) -> PlanningOutcome {
        let start = Instant::now();
        self.learning.sample.add(fresh, self.durable.progress.rows);
        self.learning.learn(fresh, &self.coding.books, &self.telemetry);
        self.send_to_recheck(fresh);
        let settings = self.settings.planner.with_average_batch(fresh.rows() as u64, 1);
        let (sample, books) = (&self.learning.sample, &self.coding.books);
        let plan = make_plan(self.next_version(), &self.shapes, sample, books, &settings);
        PlanningOutcome::with(self.activate_plan(plan, PlanReason::Start, start))
    }

    /// Requires the same groups and rates of change, references `known`, and permitted levels.
    pub(crate) fn is_usable_plan(&self, plan: &Plan, known: &[ReferenceCounts]) -> bool {
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

    pub(crate) fn drift(&self) -> f64 {
        self.learning.model.drift().map_or(0.0, |(_, bits)| bits)
    }

    /// Checked once per window.
    fn has_stabilized(&self) -> bool {
        let since = self.durable.progress.rows - self.durable.progress.planned_rows;
        let windows = |rows: u64| rows / self.settings.planner.window_records as u64;
        windows(since) > windows(since.saturating_sub(self.durable.progress.last_rows))
            && self.learning.model.any_stabilized_since(
                &self.learning.baseline,
                &self.coding.books,
                self.settings.drift,
            )
    }

    /// Returns 0 if a privacy model needs references from the stream.
    fn primed_rows(&self) -> u64 {
        let compares = self.in_force.protections.iter().any(SensitiveProtection::needs_reference);
        if self.in_force.plan.primed && !compares { self.in_force.plan.rows } else { 0 }
    }

    fn next_version(&self) -> u64 {
        self.durable.progress.plan_version + 1
    }

    fn plan_trigger(&self, age_ms: i64) -> Option<PlanReason> {
        let (rows, planned) = (self.durable.progress.rows, self.durable.progress.planned_rows);
        let (window, threshold) = (self.settings.planner.window_records as u64, self.settings.drift);
        if self.in_force.plan.version == 0 {
            Some(PlanReason::Start)
        } else if planned < window && rows >= (planned * 4).max(self.primed_rows()).min(window).max(1) {
            Some(PlanReason::Growth)
        } else if rows > planned && age_ms - self.durable.progress.planned_ms >= self.settings.plan_interval_ms {
            Some(PlanReason::Interval)
        } else if threshold < 1.0
            && rows >= planned + (window / DRIFT_PAUSE_DIVISOR).max(1)
            && (self.drift() >= threshold || self.has_stabilized())
        {
            Some(PlanReason::Drift)
        } else {
            None
        }
    }

    pub(crate) fn start_plan_search(&mut self, asked: SearchRequest, sample: Option<PlannerSample>) {
        let sample = sample.unwrap_or_else(|| self.learning.sample.clone());
        let version = self.next_version();
        let settings = self.settings.planner.with_average_batch(asked.rows, asked.batch - 1);
        self.planning.search =
            Some(PlanSearch::begin(asked, version, &self.shapes, sample, &self.coding.books, settings));
    }

    fn adopt_search_result(&mut self, search: PlanSearch) -> PlanningOutcome {
        let (why, start) = (search.asked.why, search.started);
        if let Some(plan) = search.wait(self.settings.search_budget) {
            return PlanningOutcome::with(self.activate_plan(plan, why, start));
        }
        PlannerFailed.emit(&self.telemetry);
        PlanningOutcome { plan: None, ended: true }
    }

    fn activate_plan(&mut self, mut plan: Plan, why: PlanReason, start: Instant) -> Plan {
        if self.settings.repetition.max_delay_ms > 0 {
            let (window, crowd) = (self.learning.model.window(), self.settings.policy.k);
            let colluders = self.settings.repetition.colluders;
            plan.paces = change_rates::measure_change_rates(
                &self.schema,
                self.learning.model.stored_attributes(),
                window,
                crowd,
                colluders,
            );
        }
        let books = &self.coding.books;
        plan.suppress_shared_in_static_groups(|a| u8::try_from(books[a].levels() - 1).expect("hierarchies are low"));
        if !(self.settings.monitor && self.series.is_some()) {
            for doubt in schema_warnings::pace_warnings(&plan, &self.schema) {
                SchemaWarning(doubt).emit(&self.telemetry);
            }
        }
        for lost in lost_static_groups(&self.in_force.plan, &plan, &self.schema) {
            lost.emit(&self.telemetry);
        }
        self.in_force.references =
            closeness_counts::count_references(&self.in_force.protections, &self.learning.sample, &self.coding.books);
        self.adopt(plan.clone());
        self.learning.wait_for_model(&self.telemetry);
        self.learning.model.coarsen();
        self.set_baseline(self.learning.model.baseline(&self.coding.books, self.settings.drift));
        let ladder_nodes = plan.groups.iter().map(|g| g.ladder.len() as u64).sum();
        let (groups, seconds) = (plan.groups.len() as u64, start.elapsed().as_secs_f64());
        let static_groups = plan.groups.iter().filter(|group| plan.is_static(group)).count() as u64;
        PlanAdopted { version: plan.version, why: why.name(), groups, static_groups, ladder_nodes, seconds }
            .emit(&self.telemetry);
        throng_core::faults::crash_point("plan-adopted");
        plan
    }

    fn set_baseline(&mut self, baseline: DriftBaseline) {
        self.learning.baseline = baseline;
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
    }

    pub(crate) fn adopt(&mut self, plan: Plan) {
        let attribute_names: Vec<&str> = self.schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let format = &self.settings.format;
        self.in_force.names = group_names(&plan, &attribute_names, |names| format.layout(names), &self.digest);
        if self.settings.rows == RowContent::Joined {
            self.in_force.names.layouts =
                joined_layouts(&plan, &attribute_names, |names, places| format.joined_layout(names, places));
        }
        let turn_name = |group: &PlanGroup| group_identity(group, &attribute_names, &self.digest);
        self.in_force.group_keys = plan.groups.iter().map(turn_name).collect();
        let max_lines = self.settings.repetition.max_lines;
        self.in_force.prepare_protections(&plan, &mut self.coding.books, max_lines);
        self.in_force.plan = plan;
        self.show_plan();
    }

    pub(crate) fn show_plan(&self) {
        let names: Vec<&str> = self.schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let (plan, evidence) = (&self.in_force.plan, self.planning.evidence.as_ref());
        let mut page = crate::daemon::engine::report::plan_summary::plan_summary(
            plan,
            evidence,
            &names,
            self.telemetry.rounding_draws(),
        );
        page["chosen"] = self.planning.chosen.clone();
        page["treatments"] = self.planning.treatments.clone();
        self.telemetry.set_plan(page);
    }

    pub(crate) fn begin_recheck(&mut self) {
        if self.planning.recheck.as_ref().is_some_and(EvidenceRecheck::is_pending)
            || self.learning.model.window().rows() == 0
        {
            return;
        }
        self.learning.wait_for_model(&self.telemetry);
        if self.planning.recheck.is_none() {
            // A device stores full windows only.
            let limited = self.settings.model.value_bytes.is_some();
            let backend = if limited { BackendChoice::Cpu } else { self.settings.backend };
            let counting = StreamWindow::new(backend, shared_device);
            match EvidenceRecheck::begin(counting, self.telemetry.clone()) {
                Ok(recheck) => self.planning.recheck = Some(recheck),
                Err(error) => tracing::warn!(%error, "cannot start the thread of the exact re-check"),
            }
        }
        let Some(mut recheck) = self.planning.recheck.take() else { return };
        let (settings, budget) = (self.settings.planner, self.settings.search_budget);
        if recheck.request_evidence(self.evidence_input(&recheck), settings, budget) {
            self.planning.recheck = Some(recheck);
        } else {
            tracing::warn!("the thread of the exact re-check has ended: the next plan starts a new one");
        }
    }

    pub(crate) fn take_evidence(&mut self) -> Option<PlanEvidence> {
        let recheck = self.planning.recheck.as_mut().filter(|recheck| recheck.is_pending())?;
        match recheck.take_answer() {
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                tracing::warn!("the exact re-check of a plan failed: no evidence for the plan");
                self.planning.recheck = None;
                None
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the exact re-check of a plan failed: no evidence for the plan");
                None
            }
            Ok(Ok(evidence)) => {
                let qids = shown_qids(&evidence, self.telemetry.rounding_draws());
                // Identifiers were not searched.
                let involved = involvement(&qids, self.learning.model.attributes()).into_iter();
                EvidenceGathered {
                    plan: evidence.plan,
                    complete: evidence.complete,
                    qids: qids.len() as u64,
                    by_size: by_size(&qids),
                    involvement: involved.map(|(at, share)| (self.schema.attributes[at].name.clone(), share)).collect(),
                    expected_loss: round_to_step(evidence.expected_loss, 0.01, 0.5),
                    seconds: round_to_step(evidence.seconds, 0.01, 0.5),
                }
                .emit(&self.telemetry);
                self.planning.evidence = Some(evidence.clone());
                self.show_plan();
                Some(evidence)
            }
        }
    }

    pub(crate) fn send_to_recheck(&self, fresh: &CodeBatch) {
        let Some(recheck) = self.planning.recheck.as_ref().filter(|recheck| recheck.follows()) else { return };
        let to = self.durable.progress.rows;
        let counts: Vec<bool> = fresh.subjects.iter().map(|subject| *subject != NO_SUBJECT).collect();
        let arrival = WindowArrival {
            numbering: recheck.numbering,
            from: to - fresh.rows() as u64,
            to,
            columns: self
                .learning
                .model
                .attributes()
                .iter()
                .map(|&a| rows_with_subject(fresh.columns[a].iter(), &counts))
                .collect(),
            subjects: self.schema.subject.map(|_| rows_with_subject(fresh.subjects.iter(), &counts)),
        };
        recheck.append_rows(arrival, self.learning.model.window().capacity());
    }

    /// Omits records that have no subject.
    fn evidence_input(&self, recheck: &EvidenceRecheck) -> EvidenceInput {
        let window = self.learning.model.window();
        let (older, newer) = window.subjects();
        let subjects = || older.iter().chain(newer);
        let counts: Vec<bool> = subjects().map(|subject| *subject != NO_SUBJECT).collect();
        let mut columns: Vec<Vec<Code>> = vec![Vec::new(); self.schema.attributes.len()];
        for &attribute in self.learning.model.attributes() {
            let (older, newer) = window.column(attribute);
            columns[attribute] = rows_with_subject(older.iter().chain(newer), &counts);
        }
        let counted = self.learning.model.counted();
        // Counted on the device instead of copied.
        let recount = recheck.follows() && counted.left_out_pairs().is_empty() && counts.iter().all(|counts| *counts);
        let model = if recount {
            WindowModel::Recount(counted.limits())
        } else {
            WindowModel::Counted(self.learning.model.adjacency().clone())
        };
        EvidenceInput {
            plan: self.in_force.plan.clone(),
            sample: self.learning.sample.clone(),
            books: self.coding.books.iter().map(Codebook::without_spellings).collect(),
            columns,
            subjects: self.schema.subject.map(|_| rows_with_subject(subjects(), &counts)),
            capacity: window.capacity(),
            to: self.durable.progress.rows,
            numbering: recheck.numbering,
            attributes: self.learning.model.attributes().to_vec(),
            model,
        }
    }
}

/// Groups that are static only under `before`. Unmeasured attributes count as static.
fn lost_static_groups(before: &Plan, after: &Plan, schema: &Schema) -> Vec<StaticGroupLost> {
    let is_measured = |a: usize| before.paces.iter().any(|pace| pace.attribute == a && pace.share.is_some());
    let was_static = |name: &str| before.groups.iter().any(|group| group.name == name && before.is_static(group));
    let lost = after.groups.iter().filter(|group| was_static(&group.name) && !after.is_static(group));
    lost.map(|group| (group, after.changing_attributes(group)))
        .filter(|(_, changing)| changing.iter().any(|&a| is_measured(a)))
        .map(|(group, changing)| StaticGroupLost {
            group: group.name.clone(),
            attributes: changing.into_iter().map(|a| schema.attributes[a].name.clone()).collect(),
        })
        .collect()
}

fn rows_with_subject<'a, T: Copy + 'a>(elements: impl Iterator<Item = &'a T>, counts: &[bool]) -> Vec<T> {
    elements.zip(counts).filter(|(_, counts)| **counts).map(|(element, _)| *element).collect()
}
