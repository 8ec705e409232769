//! When a plan is made, and what follows from it.

use super::core::Engine;
use super::gather::Planned;
use super::prime::Primed;
use super::search::{Recheck, Search};
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::evidence::{EvidenceInput, WindowModel};
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{make_plan, pace, reference};
use crate::anonymity::privacy::protection::Protection;
use crate::anonymity::treatment::names::turn_name;
use crate::anonymity::treatment::treat::{group_names, joined_layouts};
use crate::config::Rows;
use crate::daemon::http::plan_page::{by_size, involvement, shown_qids};
use crate::daemon::state::records::{Intent, Occasion, SearchRequest};
use crate::start::doubts;
use crate::telemetry::{Doubt, EvidenceGathered, PlanAdopted, PlannerFailed, StaticGroupLost, in_steps};
use crossbeam_channel::TryRecvError;
use std::time::Instant;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::schema::Schema;
use throng_core::values::subject::NO_SUBJECT;
use throng_core::values::table::Batch;
use throng_risk::counting::{Arrival, KeptWindow, Wanted, shared_device};

/// After a plan, this part of the window passes before a drift may ask for the next one.
const DRIFT_REST: u64 = 8;

impl Engine {
    /// Sees to the plan before a batch, from the records before it: at the start, and whenever the stream has grown
    /// fourfold until the window is full, a plan is made and adopted at once, since it is worth more than its time then.
    /// Later ones are sought beside the release and adopted a fixed number of batches on, so that what leaves depends on
    /// the stream and not on the speed of the search.
    pub(super) fn plan_if_due(&mut self, age_ms: i64) -> Planned {
        if self.in_force.plan.version > self.durable.progress.plan_version {
            // An attempt that was aborted has adopted its plan already; it becomes durable with the batch that leaves.
            return Planned::with(self.in_force.plan.clone());
        }
        let batch = self.durable.progress.batches + 1;
        let handover = self.settings.handover_batches;
        if let Some(search) = self.planning.search.take_if(|search| batch >= search.asked.batch + handover) {
            return self.take_over(search);
        }
        let Some(why) = self.occasion(age_ms).filter(|_| self.planning.search.is_none()) else {
            return Planned::default();
        };
        let asked = SearchRequest { batch, rows: self.durable.progress.rows, why };
        if handover == 0 || matches!(why, Occasion::Start | Occasion::Growth) {
            let start = Instant::now();
            if let Some(Primed { plan, baseline }) = self.planning.primed.take_if(|_| why == Occasion::Start) {
                let plan = self.announce(plan, Occasion::Prime, start);
                self.expect(baseline);
                return Planned::with(plan);
            }
            let settings = self.settings.planner.for_batches(self.durable.progress.rows, self.durable.progress.batches);
            let plan =
                make_plan(self.next_version(), &self.shapes, &self.learning.sample, &self.coding.books, &settings);
            return Planned::with(self.announce(plan, why, start));
        }
        self.seek(asked, None);
        Planned::default()
    }

    /// Whether the first plan is made from the batch at hand: of a file that is one batch nothing comes before it.
    pub(super) fn learns_first(&self, retry: Option<&Intent>) -> bool {
        let is_first = self.in_force.plan.version == 0 && self.planning.primed.is_none() && retry.is_none();
        self.settings.plans_from_first_batch && is_first
    }

    /// Learns from the first batch, and makes the first plan from it. The batch leaves or the run ends: it does not come again.
    pub(super) fn plan_from(&mut self, fresh: &Batch) -> Planned {
        let start = Instant::now();
        self.learning.sample.add(fresh, self.durable.progress.rows);
        self.learn(fresh);
        let settings = self.settings.planner.for_batches(fresh.rows() as u64, 1);
        let (sample, books) = (&self.learning.sample, &self.coding.books);
        let plan = make_plan(self.next_version(), &self.shapes, sample, books, &settings);
        Planned::with(self.announce(plan, Occasion::Start, start))
    }

    /// How far the stream has drifted from what the plan in force was made for, in bits.
    pub(super) fn drift(&self) -> f64 {
        self.learning.model.drift().map_or(0.0, |(_, bits)| bits)
    }

    /// Whether what was changing when the plan in force was made has come to rest. Asked after every window of records.
    fn has_settled(&self) -> bool {
        let since = self.durable.progress.rows - self.durable.progress.planned_rows;
        let windows = |rows: u64| rows / self.settings.planner.window_records as u64;
        windows(since) > windows(since.saturating_sub(self.durable.progress.last_rows))
            && self.learning.model.has_settled(&self.learning.baseline, &self.coding.books, self.settings.drift)
    }

    /// A plan from `plan.prime` stays until the stream has shown as many records. But what a privacy model compares classes with
    /// comes from the stream alone, so that where one compares, the stream's first plan is not kept waiting.
    fn primed_rows(&self) -> u64 {
        let compares = self.in_force.protections.iter().any(Protection::needs_reference);
        if self.in_force.plan.primed && !compares { self.in_force.plan.rows } else { 0 }
    }

    fn next_version(&self) -> u64 {
        self.durable.progress.plan_version + 1
    }

    /// Why a plan is due, if it is.
    fn occasion(&self, age_ms: i64) -> Option<Occasion> {
        let (rows, planned) = (self.durable.progress.rows, self.durable.progress.planned_rows);
        let (window, threshold) = (self.settings.planner.window_records as u64, self.settings.drift);
        if self.in_force.plan.version == 0 {
            Some(Occasion::Start)
        } else if planned < window && rows >= (planned * 4).max(self.primed_rows()).min(window).max(1) {
            Some(Occasion::Growth)
        } else if rows > planned && age_ms - self.durable.progress.planned_ms >= self.settings.plan_interval_ms {
            Some(Occasion::Interval)
        } else if threshold < 1.0
            && rows >= planned + (window / DRIFT_REST).max(1)
            && (self.drift() >= threshold || self.has_settled())
        {
            Some(Occasion::Drift)
        } else {
            None
        }
    }

    /// Begins to seek a plan beside the release, from `sample` where it is not that of this moment.
    pub(super) fn seek(&mut self, asked: SearchRequest, sample: Option<Sample>) {
        let sample = sample.unwrap_or_else(|| self.learning.sample.clone());
        let version = self.next_version();
        let settings = self.settings.planner.for_batches(asked.rows, asked.batch - 1);
        self.planning.search = Some(Search::begin(asked, version, &self.shapes, sample, &self.coding.books, settings));
    }

    /// Adopts the plan of a search that is due; without one, the plan before stays.
    fn take_over(&mut self, search: Search) -> Planned {
        let (why, start) = (search.asked.why, search.started);
        if let Some(plan) = search.wait(self.settings.search_budget) {
            return Planned::with(self.announce(plan, why, start));
        }
        PlannerFailed.emit(&self.telemetry);
        Planned { plan: None, ended: true }
    }

    /// Puts a plan into force, with what the window of this moment shows of the pace of its attributes.
    fn announce(&mut self, mut plan: Plan, why: Occasion, start: Instant) -> Plan {
        if self.settings.repetition.max_delay_ms > 0 {
            let (window, crowd) = (self.learning.model.window(), self.settings.policy.k);
            let colluders = self.settings.repetition.colluders;
            plan.paces = pace::paces(&self.schema, self.learning.model.kept(), window, crowd, colluders);
        }
        let books = &self.coding.books;
        plan.withhold_shared(|a| u8::try_from(books[a].levels() - 1).expect("hierarchies are low"));
        // Where series leave in the place of fragments, it does not matter what a group says.
        if !(self.settings.monitor && self.series.is_some()) {
            for doubt in doubts::of_paces(&plan, &self.schema) {
                Doubt(doubt).emit(&self.telemetry);
            }
        }
        for lost in lost_static_groups(&self.in_force.plan, &plan, &self.schema) {
            lost.emit(&self.telemetry);
        }
        self.in_force.references =
            reference::count(&self.in_force.protections, &self.learning.sample, &self.coding.books);
        self.adopt(plan.clone());
        self.settle_model();
        self.learning.model.coarsen();
        self.expect(self.learning.model.baseline(&self.coding.books, self.settings.drift));
        let ladder_nodes = plan.groups.iter().map(|g| g.ladder.len() as u64).sum();
        let (groups, seconds) = (plan.groups.len() as u64, start.elapsed().as_secs_f64());
        let static_groups = plan.groups.iter().filter(|group| plan.is_static(group)).count() as u64;
        PlanAdopted { version: plan.version, why: why.name(), groups, static_groups, ladder_nodes, seconds }
            .emit(&self.telemetry);
        crate::faults::crash_point("plan-adopted");
        plan
    }

    fn expect(&mut self, baseline: Baseline) {
        self.learning.baseline = baseline;
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
    }

    pub(super) fn adopt(&mut self, plan: Plan) {
        let attribute_names: Vec<&str> = self.schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let format = &self.settings.format;
        self.in_force.names = group_names(&plan, &attribute_names, format, &self.digest);
        if self.settings.rows == Rows::Joined {
            self.in_force.names.layouts = joined_layouts(&plan, &attribute_names, format);
        }
        let turn_name = |group: &Group| turn_name(group, &attribute_names, &self.digest);
        self.in_force.turn_names = plan.groups.iter().map(turn_name).collect();
        self.protect(&plan);
        self.in_force.plan = plan;
        self.show_plan();
    }

    /// Shows the plan in force, with the evidence that was gathered last.
    pub(super) fn show_plan(&self) {
        let names: Vec<&str> = self.schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let (plan, evidence) = (&self.in_force.plan, self.planning.evidence.as_ref());
        let mut page = crate::daemon::http::plan_page::summary(plan, evidence, &names, self.telemetry.draws());
        page["chosen"] = self.planning.chosen.clone();
        page["treatments"] = self.planning.treatments.clone();
        self.telemetry.set_plan(page);
    }

    /// Begins to gather evidence for the plan in force from the window as it is, unless there is nothing in it yet or the
    /// evidence for another plan is still being gathered: then that plan's has to do until the next.
    pub(super) fn begin_recheck(&mut self) {
        if self.planning.recheck.as_ref().is_some_and(Recheck::is_pending) || self.learning.model.window().rows() == 0 {
            return;
        }
        self.settle_model();
        if self.planning.recheck.is_none() {
            // A device keeps as many records as there may be; below a limit of bytes the window may have fewer.
            let limited = self.settings.model.value_bytes.is_some();
            let backend = if limited { Wanted::Cpu } else { self.settings.backend };
            let counting = KeptWindow::new(backend, shared_device);
            match Recheck::begin(counting, self.telemetry.clone()) {
                Ok(recheck) => self.planning.recheck = Some(recheck),
                Err(error) => tracing::warn!(%error, "the exact re-check has no thread"),
            }
        }
        let Some(mut recheck) = self.planning.recheck.take() else { return };
        let (settings, budget) = (self.settings.planner, self.settings.search_budget);
        if recheck.ask(self.evidence_input(&recheck), settings, budget) {
            self.planning.recheck = Some(recheck);
        } else {
            tracing::warn!("the exact re-check has ended; the next plan has another");
        }
    }

    /// Takes over evidence that is there.
    pub(super) fn take_evidence(&mut self) -> Option<Evidence> {
        let recheck = self.planning.recheck.as_mut().filter(|recheck| recheck.is_pending())?;
        match recheck.answer() {
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                tracing::warn!("the exact re-check has failed; its plan goes without evidence");
                self.planning.recheck = None;
                None
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the exact re-check has failed; its plan goes without evidence");
                None
            }
            Ok(Ok(evidence)) => {
                let qids = shown_qids(&evidence, self.telemetry.draws());
                // Identifiers of the plan were not searched: they are in none.
                let involved = involvement(&qids, self.learning.model.attributes()).into_iter();
                EvidenceGathered {
                    plan: evidence.plan,
                    complete: evidence.complete,
                    qids: qids.len() as u64,
                    by_size: by_size(&qids),
                    involvement: involved.map(|(at, share)| (self.schema.attributes[at].name.clone(), share)).collect(),
                    expected_loss: in_steps(evidence.expected_loss, 0.01, 0.5),
                    seconds: in_steps(evidence.seconds, 0.01, 0.5),
                }
                .emit(&self.telemetry);
                self.planning.evidence = Some(evidence.clone());
                self.show_plan();
                Some(evidence)
            }
        }
    }

    /// Tells the re-check of the rows of a batch that has left, where it keeps the window on a device.
    pub(super) fn tell_recheck(&self, fresh: &Batch) {
        let Some(recheck) = self.planning.recheck.as_ref().filter(|recheck| recheck.follows()) else { return };
        let to = self.durable.progress.rows;
        let counts: Vec<bool> = fresh.subjects.iter().map(|subject| *subject != NO_SUBJECT).collect();
        let arrival = Arrival {
            numbering: recheck.numbering,
            from: to - fresh.rows() as u64,
            to,
            columns: self.learning.model.attributes().iter().map(|&a| kept(fresh.columns[a].iter(), &counts)).collect(),
            subjects: self.schema.subject.map(|_| kept(fresh.subjects.iter(), &counts)),
        };
        recheck.tell(arrival, self.learning.model.window().capacity());
    }

    /// Codes have another meaning from here on.
    pub(super) fn renumbered(&mut self) {
        if let Some(recheck) = &mut self.planning.recheck {
            recheck.numbering += 1;
        }
    }

    /// Copies of what evidence is gathered from. A record without a subject supports nobody and is left out.
    fn evidence_input(&self, recheck: &Recheck) -> EvidenceInput {
        let window = self.learning.model.window();
        let (older, newer) = window.subjects();
        let subjects = || older.iter().chain(newer);
        let counts: Vec<bool> = subjects().map(|subject| *subject != NO_SUBJECT).collect();
        let mut columns: Vec<Vec<Code>> = vec![Vec::new(); self.schema.attributes.len()];
        for &attribute in self.learning.model.attributes() {
            let (older, newer) = window.column(attribute);
            columns[attribute] = kept(older.iter().chain(newer), &counts);
        }
        let counted = self.learning.model.counted();
        // A model that is the sum of the window's rows is counted where the window lies already, rather than copied here.
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
            subjects: self.schema.subject.map(|_| kept(subjects(), &counts)),
            capacity: window.capacity(),
            to: self.durable.progress.rows,
            numbering: recheck.numbering,
            attributes: self.learning.model.attributes().to_vec(),
            model,
        }
    }
}

/// Returns the groups that are static under `before` and not under `after`. Until enough records were seen, an attribute counts as static
/// without evidence: a group of such attributes is not lost when its first measurement shows that they change.
fn lost_static_groups(before: &Plan, after: &Plan, schema: &Schema) -> Vec<StaticGroupLost> {
    let is_measured = |a: usize| before.paces.iter().any(|pace| pace.attribute == a && pace.share.is_some());
    let was_static = |name: &str| before.groups.iter().any(|group| group.name == name && before.is_static(group));
    let lost = after.groups.iter().filter(|group| was_static(&group.name) && !after.is_static(group));
    lost.map(|group| (group, after.changing(group)))
        .filter(|(_, changing)| changing.iter().any(|&a| is_measured(a)))
        .map(|(group, changing)| StaticGroupLost {
            group: group.name.clone(),
            attributes: changing.into_iter().map(|a| schema.attributes[a].name.clone()).collect(),
        })
        .collect()
}

/// The elements of the rows that count for somebody.
fn kept<'a, T: Copy + 'a>(elements: impl Iterator<Item = &'a T>, counts: &[bool]) -> Vec<T> {
    elements.zip(counts).filter(|(_, counts)| **counts).map(|(element, _)| *element).collect()
}
