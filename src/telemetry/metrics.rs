//! All metrics; every series is created at the start.

use super::labels::{
    AbortReason, BatchOutcome, Copied, CrowdSize, Direction, Label, Limit, MemoryPart, Outcome, PartitionChange,
    Picture, QidSize, ReloadOutcome, SchemaOutcome, Stage, Statistic, SuppressionReason, WrittenAs,
};
use super::process_figures::ProcessFigures;
use super::reason::{RejectionReason, stage_of};
use prometheus::core::Collector;
use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry, TextEncoder,
};
use std::marker::PhantomData;
use throng_kafka::refusal::SecurityRefusal;

pub(super) struct Metrics {
    registry: Registry,
    pub flow: Flow,
    pub dead_letters: PerLabel<RejectionReason, IntCounter>,
    /// By group; the last is `other`.
    pub fragments: Vec<IntCounter>,
    pub quality: Quality,
    pub source: Source,
    /// By topic and assigned partition: records cannot add a series.
    pub partition_lag: GaugeVec,
    pub profiles: Profiles,
    pub memory: Memory,
    pub limits: Limits,
    pub process: Process,
    pub erasures: Erasures,
    pub series: Series,
    pub planning: Planning,
    /// By schema attribute: records cannot add a series.
    pub involvement: GaugeVec,
    pub gpu: Gpu,
    pub health: Health,
}

/// Type of a series, by its method of [`Shelf`].
macro_rules! series_type {
    (counter) => { IntCounter };
    (sum) => { Counter };
    (count) => { IntGauge };
    (gauge) => { Gauge };
    (waits) => { Histogram };
    (counters $label:ty) => { PerLabel<$label, IntCounter> };
    (gauges $label:ty) => { PerLabel<$label, Gauge> };
    (histograms $label:ty) => { PerLabel<$label, Histogram> };
    (counter_table $one:ty, $other:ty) => { PerLabel<$one, PerLabel<$other, IntCounter>> };
    (gauge_table $one:ty, $other:ty) => { PerLabel<$one, PerLabel<$other, Gauge>> };
}

/// Declares sets of series: `field: kind<labels> name, help, label names;`.
macro_rules! series {
    ($($(#[$about:meta])* $set:ident {
        $($(#[$of:meta])* $field:ident: $kind:ident $(<$($label:ty),+>)? $($text:literal),+;)+
    })+) => {$(
        $(#[$about])*
        pub(super) struct $set { $($(#[$of])* pub $field: series_type!($kind $($($label),+)?),)+ }

        impl $set {
            fn new(shelf: &Shelf) -> Self {
                Self { $($field: shelf.$kind($($text),+),)+ }
            }
        }
    )+};
}

series! {
    /// Records, batches and bytes, with times.
    Flow {
        records: counters<Outcome> "throng_records_total",
            "Records by outcome, across restarts: consumed = released + suppressed + dead_lettered + dropped + moved + held.", "outcome";
        held: count "throng_records_held", "Held records: they wait for a larger class.";
        suppressed: counters<SuppressionReason> "throng_suppressed_records_total",
            "Records of which nothing was released, by reason, since the start of the process.", "reason";
        batches: counters<BatchOutcome> "throng_batches_total", "Batches by outcome.", "outcome";
        aborts: counters<AbortReason> "throng_batch_aborts_total", "Aborted batches by reason.", "reason";
        bytes: counters<Direction> "throng_bytes_total",
            "Payload bytes consumed (in; rounded and delayed) and released (out).", "direction";
        durations: histograms<Stage> "throng_batch_duration_seconds", "Time that a committed batch spent in each stage.", "stage";
        append_to_commit: waits "throng_append_to_commit_seconds",
            "Time from the append of a batch's oldest record at the source to the commit of the batch.";
        thinned_fragments: counter "throng_thinned_fragments_total",
            "Fragments suppressed because other lines represent their subject, rounded and delayed.";
        delayed_lines: counter "throng_delayed_lines_total",
            "Lines of static groups that were released or suppressed after their delay, rounded and delayed.";
        delayed_seconds: sum "throng_delayed_lines_seconds_total",
            "Total delay of the lines of static groups that were released or suppressed after it, rounded and delayed.";
        waiting_lines: count "throng_waiting_lines", "Lines of static groups that wait for the end of their delay.";
        said_lines: count "throng_said_lines",
            "Pairs of subject and group in the release log: released, and not released again in their window.";
        batch_sequence: count "throng_batch_sequence", "Number of the last committed batch.";
        batch_clock: gauge "throng_last_commit_timestamp_seconds", "Batch clock of the last commit.";
    }

    /// Risk and information loss of the release.
    Quality {
        risk: gauge_table<Picture, Statistic> "throng_reidentification_risk",
            "Re-identification risk (1 / subjects in a record's class): highest is a bound, average is of at least 1,000 records, rounded and delayed.",
            "picture", "statistic";
        below_k: gauges<Picture> "throng_records_below_k_share",
            "Share of records whose class has fewer than k subjects; before: of at least 1,000 records, rounded and delayed.", "picture";
        crowds: gauges<CrowdSize> "throng_crowd_subjects",
            "Subjects in the class of a fragment; smallest: of the last batch, k at most; average: of at least 1,000, rounded and delayed.", "statistic";
        crowds_below_k: gauge "throng_fragments_below_k_share",
            "Share of the last batch's fragments with fewer than k subjects in their class.";
        loss: gauge "throng_information_loss", "Mean loss of the last batch's present cells, 0 to 1.";
        exact_share: gauge "throng_cells_exact_share", "Share of the last batch's cells that were released unchanged.";
        suppressed_share: gauge "throng_records_suppressed_share",
            "Share of the last batch's records of which nothing was released, without held ones.";
        unknown_cells: counters<WrittenAs> "throng_unknown_cells_total",
            "Cells of attributes that the schema does not know, by the format of the records.", "format";
        uncovered_cells: counter "throng_uncovered_cells_total",
            "Cells generalized to the root of their hierarchy, because the value is not in it or looks like an identifier.";
        altered_cells: counter "throng_altered_cells_total",
            "Numbers that were replaced (treatment perturb or aggregate), in thousands.";
        withheld_cells: counter "throng_withheld_cells_total",
            "Cells of sensitive attributes that a privacy model withheld (*) in released fragments.";
    }

    /// Source of the records.
    Source {
        lag: gauge "throng_source_lag_records",
            "Records of the assigned partitions after the last commit, where known; NaN if none is known.";
        connected: count "throng_source_connected", "1 while the source answers.";
        losses: counter "throng_source_losses_total", "Times that the source stopped answering.";
        partitions: count "throng_partitions_assigned", "Partitions that this instance reads.";
        partition_changes: counters<PartitionChange> "throng_partition_changes_total",
            "Partitions assigned to, revoked from and lost by this instance.", "change";
        refusals: counters<SecurityRefusal> "throng_source_refusals_total",
            "Failed authentications between this instance and brokers.", "reason";
        registry_waited_for: count "throng_registry_waited_for",
            "1 while records wait for a schema registry that does not answer.";
        registry_losses: counter "throng_registry_losses_total", "Requests to the schema registry without an answer.";
        writer_schemas: counter_table<WrittenAs, SchemaOutcome> "throng_writer_schemas_total",
            "Writer schemas found in records since the start of the process.", "format", "outcome";
    }

    /// Profiles and joins.
    Profiles {
        kept: count "throng_profiles", "Profiles of people that joins keep, rounded and delayed.";
        updates: counter "throng_profile_updates_total", "Profiles and removals read from topics of profiles.";
        refused: counters<RejectionReason> "throng_profiles_refused_total",
            "Profiles that could not be read: the cells that they would add are missing.", "reason";
        unjoined: counter "throng_unjoined_records_total",
            "Records without joined cells, because their subject has no profile; rounded and delayed.";
        lag: gauge "throng_profiles_lag_records", "Messages behind the ends of the topics of profiles; NaN if unknown.";
    }

    /// Data in memory and on disk.
    Memory {
        ledger_bytes: count "throng_ledger_bytes", "Memory of the ledger, rounded and delayed.";
        supporters: count "throng_ledger_supporters",
            "People, and classes per person, that the ledger remembers for tenure and budgets.";
        dictionary_values: count "throng_dictionary_values", "Distinct values in all dictionaries, rounded and delayed.";
        window_records: count "throng_window_records", "Records in the planner's window.";
        model_nodes: count "throng_model_nodes", "Values that the model of the window counts, rounded and delayed.";
        model_edges: count "throng_model_edges",
            "Pairs of co-occurring values that the model counts, rounded and delayed.";
        model_bytes: count "throng_model_bytes", "Memory of the model's counts, rounded and delayed.";
        model_left_out_pairs: count "throng_model_left_out_pairs",
            "Pairs of attributes that the model no longer counts: limit of plan.max_edges or of the memory.";
        state_bytes: count "throng_state_bytes", "State on disk, rounded and delayed.";
        state_free_bytes: count "throng_state_free_bytes", "Bytes that are free on the disk of the state.";
        state_recovery_seconds: gauge "throng_state_recovery_seconds",
            "Time that the last start took to read its state.";
        state_recovered_deltas: count "throng_state_recovered_deltas", "Batch deltas replayed at the last start.";
        part_limits: gauges<MemoryPart> "throng_memory_limit_bytes",
            "Share of process.memory_limit for each part of the memory; 0 without a limit.", "part";
        part_bytes: gauges<MemoryPart> "throng_memory_used_bytes",
            "Memory used by each part, including copies for searches, rounded and delayed; NaN for parts that are not measured.", "part";
    }

    /// Limits of the metrics of use, lowered by process.memory_limit.
    Limits {
        batch_records: count "throng_batch_records_limit", "Records at which a batch is closed (batch.max_records).";
        supporters: count "throng_ledger_supporters_limit", "Limit of throng_ledger_supporters.";
        waiting_lines: count "throng_waiting_lines_limit", "Limit of throng_waiting_lines; 0 without a delay.";
        said_lines: count "throng_said_lines_limit", "Limit of throng_said_lines.";
        model_edges: count "throng_model_edges_limit", "Limit of throng_model_edges.";
        profiles: count "throng_profiles_limit", "Limit of throng_profiles: max_people of all joins.";
        memory_bytes: count "throng_process_memory_limit_bytes", "Limit of the memory (process.memory_limit); 0 without a limit.";
    }

    /// Standard figures of the process.
    Process {
        started: gauge "process_start_time_seconds", "Unix time of the start of the process.";
        processor_seconds: counter "process_cpu_seconds_total", "Processor time of the process, in whole seconds.";
        open_files: count "process_open_fds", "Open file descriptors.";
        max_files: count "process_max_fds", "Limit of open file descriptors.";
        resident_bytes: count "process_resident_memory_bytes", "Resident memory of the process, rounded.";
    }

    /// Represented records and subjects, and rows of series.
    Series {
        people: count "throng_people_represented", "People whose values are in published rows of series.";
        share: gauge "throng_records_represented_share",
            "Share of the records that the release represents, fragments or series, whichever is more, 0 to 1; NaN before the first.";
        minimum: gauge "throng_records_represented_minimum", "Share required by release.min_represented; 0: not checked.";
        rows: gauge "throng_series_rows", "Rows of series published since the state was created.";
        late: gauge "throng_series_late_records",
            "Records that came after their bucket was closed, or that fit no bucket, since the state was created.";
        too_few: gauge "throng_series_rows_too_few", "Rows of series withheld because too few members of the cohort were present.";
        dominated: gauge "throng_series_rows_dominated",
            "Rows of series withheld because one or two members dominate a sum, or all have the same value, and no intervals have enough members.";
    }

    /// Erasures of subjects.
    Erasures {
        done: counter "throng_erasures_total",
            "Erasures of people from the state, since the start of the process.";
        failed: counter "throng_erasure_failures_total",
            "Failed erasures of people named in the erasure topic; they are retried.";
        dropped: counter "throng_erased_held_records_total",
            "Held records dropped because their person was erased; they are included in the dropped records.";
        requests: counter "throng_erasure_requests_total",
            "Valid messages read from the erasure topic, since the start of the process.";
        refused: counter "throng_erasure_requests_refused_total",
            "Messages read from the erasure topic that name no subject: the key is missing or invalid.";
        missed: counter "throng_erasure_partitions_missed_total",
            "Partitions of the erasure topic with messages that were deleted before they were read.";
        lag: gauge "throng_erasure_lag_records",
            "Messages of the erasure topic that are not yet processed, read or not; NaN if unknown.";
    }

    /// Plans and their evidence.
    Planning {
        drift: gauge "throng_plan_drift",
            "Largest divergence of an attribute's values from those that the plan was made for, in bits; rounded and delayed.";
        plan_version: count "throng_plan_version", "Version of the active plan.";
        plan_nodes: count "throng_plan_ladder_nodes", "Generalization nodes in all ladders of the plan.";
        plan_static_groups: count "throng_plan_static_groups",
            "Static groups: their attributes do not change within a subject, and are released once per window.";
        static_groups_lost: counter "throng_plan_static_groups_lost_total",
            "Groups that are no longer static, because a new plan found that their attributes change: released with every record.";
        plan_seconds: gauge "throng_plan_search_seconds", "Duration of the search for the active plan.";
        plans: counter "throng_plans_total", "Plans adopted.";
        planner_failures: counter "throng_planner_failures_total", "Plan searches that failed or timed out; the old plan stays active.";
        minimal_qids: count "throng_minimal_qids",
            "Minimal quasi-identifiers that single out many people, from the last search of the window.";
        qids_by_size: gauges<QidSize> "throng_quasi_identifiers",
            "Minimal quasi-identifiers that single out many people, by number of attributes; updated with each plan.", "size";
        recheck_complete: count "throng_recheck_complete",
            "1 if the last search of the window for quasi-identifiers was complete.";
        recheck_seconds: gauge "throng_recheck_seconds",
            "Duration of the last search of the window for quasi-identifiers, with triage and aggregation.";
        expected_loss: gauge "throng_plan_expected_loss", "Expected mean loss of a cell under the active plan.";
    }

    /// Counting on a GPU.
    Gpu {
        bytes: count "throng_gpu_memory_bytes", "Memory held on the GPU.";
        launches: counter "throng_gpu_launches_total", "Kernels started on the GPU.";
        copied: counters<Copied> "throng_gpu_copied_bytes_total",
            "Bytes copied to the GPU (up) and from it (down).", "direction";
        fills: counter "throng_gpu_window_fills_total",
            "Copies of the whole window to the GPU, instead of the new rows.";
        fallbacks: counter "throng_gpu_fallbacks_total", "Failures of the GPU, after which the CPU counted instead.";
        sets_left: counter "throng_gpu_sets_left_total",
            "Attribute sets that the CPU counted in a search on the GPU: after a failure, for lack of memory, or because they have one class.";
        lost: count "throng_gpu_lost", "1 after a permanent failure of the GPU: the CPU counts until the next start.";
    }

    /// Health of the daemon.
    Health {
        refusals: counter "throng_verification_refusals_total", "Batches that verification refused.";
        violations: counter "throng_verification_violations_total", "Fragments that verification refused.";
        limits: counters<Limit> "throng_limit_reached_total",
            "Times that a limit was reached; limits that depend on values count at most every ten minutes.", "limit";
        ready: count "throng_ready", "1 while the daemon is ready.";
        reloads: counters<ReloadOutcome> "throng_reloads_total",
            "Reloads of the configuration, by outcome.", "outcome";
        reload_refused: count "throng_last_reload_refused",
            "1 if the last reload was refused: an older configuration is active.";
        reload_time: gauge "throng_last_reload_timestamp_seconds",
            "Time of the last reload of the configuration; 0 if none since the start.";
        /// `privacy.k` of the active policy.
        k: count "throng_privacy_k", "Configured minimum class size (privacy.k), in distinct subjects.";
    }
}

impl Process {
    pub fn set(&self, figures: &ProcessFigures) {
        self.started.set(figures.started);
        // Scrapes may overlap.
        self.processor_seconds.inc_by(figures.processor_seconds.saturating_sub(self.processor_seconds.get()));
        self.open_files.set(clamped(figures.open_files));
        self.max_files.set(clamped(figures.max_files));
        self.resident_bytes.set(clamped(figures.resident_bytes));
    }
}

impl Metrics {
    /// Creates all series at zero.
    pub fn new(k: usize, groups: &[String]) -> Self {
        let shelf = Shelf(Registry::new());
        let build = shelf.register_metric(GaugeVec::new(
            Opts::new("throng_build_info", "Constant 1; the label is the running version."),
            &["version"],
        ));
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
        let dead_letters = shelf.register_metric(IntCounterVec::new(
            Opts::new("throng_dead_letters_total", "Dead letters committed since the start of the process."),
            &["stage", "reason"],
        ));
        let fragments = shelf.register_metric(IntCounterVec::new(
            Opts::new("throng_fragments_total", "Fragments released, by configured group of attributes."),
            &["group"],
        ));
        let groups = groups.iter().map(String::as_str).chain(["other"]);
        let memory = Memory::new(&shelf);
        MemoryPart::ALL.iter().for_each(|part| memory.part_bytes.of(*part).set(f64::NAN));
        let source = Source::new(&shelf);
        source.lag.set(f64::NAN);
        let health = Health::new(&shelf);
        health.k.set(clamped(k as u64));
        Self {
            flow: Flow::new(&shelf),
            dead_letters: PerLabel::new(|reason: RejectionReason| {
                dead_letters.with_label_values(&[stage_of(reason).as_str(), reason.as_str()])
            }),
            fragments: groups.map(|group| fragments.with_label_values(&[group])).collect(),
            quality: Quality::new(&shelf),
            source,
            partition_lag: shelf.register_metric(GaugeVec::new(
                Opts::new(
                    "throng_source_partition_lag_records",
                    "Records of an assigned partition after the last commit; NaN if unknown.",
                ),
                &["topic", "partition"],
            )),
            profiles: Profiles::new(&shelf),
            memory,
            limits: Limits::new(&shelf),
            process: Process::new(&shelf),
            erasures: Erasures::new(&shelf),
            series: Series::new(&shelf),
            planning: Planning::new(&shelf),
            involvement: shelf.register_metric(GaugeVec::new(
                Opts::new(
                    "throng_attribute_involvement",
                    "Share of the minimal quasi-identifiers that contain the attribute, 0 to 1; updated with each plan.",
                ),
                &["attribute"],
            )),
            gpu: Gpu::new(&shelf),
            health,
            registry: shelf.0,
        }
    }

    /// Renders the text exposition format.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics could not be rendered");
        }
        text
    }
}

pub(super) fn clamped(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// One series per label value.
pub(super) struct PerLabel<L, M> {
    series: Vec<M>,
    label: PhantomData<L>,
}

impl<L: Label, M> PerLabel<L, M> {
    fn new(of: impl Fn(L) -> M) -> Self {
        Self { series: L::ALL.iter().map(|label| of(*label)).collect(), label: PhantomData }
    }

    pub fn of(&self, label: L) -> &M {
        &self.series[label.index()]
    }
}

/// Registry of series. Names and labels are literals registered once, so no input causes a prometheus error.
struct Shelf(Registry);

impl Shelf {
    fn register_metric<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("metric names and labels are well-formed literals");
        self.0.register(Box::new(metric.clone())).expect("every metric is registered once");
        metric
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register_metric(IntCounter::new(name, help))
    }

    fn sum(&self, name: &str, help: &str) -> Counter {
        self.register_metric(Counter::new(name, help))
    }

    fn count(&self, name: &str, help: &str) -> IntGauge {
        self.register_metric(IntGauge::new(name, help))
    }

    fn gauge(&self, name: &str, help: &str) -> Gauge {
        self.register_metric(Gauge::new(name, help))
    }

    /// Finer buckets around one second, the default of `batch.max_wait`.
    fn waits(&self, name: &str, help: &str) -> Histogram {
        let mut bounds = buckets();
        bounds.extend([0.75, 1.0, 1.25, 1.5, 3.0, 6.0]);
        bounds.sort_unstable_by(f64::total_cmp);
        self.register_metric(Histogram::with_opts(HistogramOpts::new(name, help).buckets(bounds)))
    }

    fn counters<L: Label>(&self, name: &str, help: &str, label: &str) -> PerLabel<L, IntCounter> {
        let family = self.register_metric(IntCounterVec::new(Opts::new(name, help), &[label]));
        PerLabel::new(|value: L| family.with_label_values(&[value.as_str()]))
    }

    fn gauges<L: Label>(&self, name: &str, help: &str, label: &str) -> PerLabel<L, Gauge> {
        let family = self.register_metric(GaugeVec::new(Opts::new(name, help), &[label]));
        PerLabel::new(|value: L| family.with_label_values(&[value.as_str()]))
    }

    fn histograms<L: Label>(&self, name: &str, help: &str, label: &str) -> PerLabel<L, Histogram> {
        let family =
            self.register_metric(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets()), &[label]));
        PerLabel::new(|value: L| family.with_label_values(&[value.as_str()]))
    }

    fn counter_table<A: Label, B: Label>(
        &self,
        name: &str,
        help: &str,
        one: &str,
        other: &str,
    ) -> PerLabel<A, PerLabel<B, IntCounter>> {
        let family = self.register_metric(IntCounterVec::new(Opts::new(name, help), &[one, other]));
        PerLabel::new(|a: A| PerLabel::new(|b: B| family.with_label_values(&[a.as_str(), b.as_str()])))
    }

    fn gauge_table<A: Label, B: Label>(
        &self,
        name: &str,
        help: &str,
        one: &str,
        other: &str,
    ) -> PerLabel<A, PerLabel<B, Gauge>> {
        let family = self.register_metric(GaugeVec::new(Opts::new(name, help), &[one, other]));
        PerLabel::new(|a: A| PerLabel::new(|b: B| family.with_label_values(&[a.as_str(), b.as_str()])))
    }
}

/// From 1 ms to about 65 s, doubling.
fn buckets() -> Vec<f64> {
    (0..17).map(|step| 0.001 * f64::from(1u32 << step)).collect()
}
