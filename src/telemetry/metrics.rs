//! Every metric of the product, each named once. All series are made at the start.

use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry, TextEncoder,
};

use super::divided::Parts;
use super::erasure_metrics::Erasures;
use super::labels::{
    AbortReason, BatchOutcome, Copied, CrowdSize, Direction, Label, Limit, Outcome, PartitionChange, Picture,
    ReloadOutcome, SchemaOutcome, SecurityRefusal, Stage, Statistic, SuppressionReason, WrittenAs,
};
use super::planned::Planning;
use super::reason::RejectionReason;
use super::shelf::{PerLabel, Shelf, buckets, waits};

/// Every metric of the product.
pub(super) struct Metrics {
    registry: Registry,
    pub flow: Flow,
    pub quality: Quality,
    pub source: Source,
    pub profiles: Profiles,
    pub memory: Memory,
    pub erasures: Erasures,
    pub planning: Planning,
    pub gpu: Gpu,
    pub health: Health,
}

/// Records, batches and bytes, and how long they take.
pub(super) struct Flow {
    pub records: PerLabel<Outcome, IntCounter>,
    pub held: IntGauge,
    pub suppressed: PerLabel<SuppressionReason, IntCounter>,
    pub dead_letters: PerLabel<RejectionReason, IntCounter>,
    pub batches: PerLabel<BatchOutcome, IntCounter>,
    pub aborts: PerLabel<AbortReason, IntCounter>,
    pub bytes: PerLabel<Direction, IntCounter>,
    /// By group, in the order of the names given at the start; the last is `other`.
    pub fragments: Vec<IntCounter>,
    pub durations: PerLabel<Stage, Histogram>,
    pub append_to_commit: Histogram,
    pub thinned_fragments: IntCounter,
    pub delayed_lines: IntCounter,
    pub delayed_seconds: Counter,
    pub waiting_lines: IntGauge,
    pub said_lines: IntGauge,
    pub batch_sequence: IntGauge,
    pub batch_clock: Gauge,
}

/// What a release tells of people, and what it costs.
pub(super) struct Quality {
    pub risk: PerLabel<Picture, PerLabel<Statistic, Gauge>>,
    pub below_k: PerLabel<Picture, Gauge>,
    pub crowds: PerLabel<CrowdSize, Gauge>,
    pub crowds_below_k: Gauge,
    pub loss: Gauge,
    pub exact_share: Gauge,
    pub suppressed_share: Gauge,
    pub unknown_cells: PerLabel<WrittenAs, IntCounter>,
    pub uncovered_cells: IntCounter,
    pub altered_cells: IntCounter,
    pub withheld_cells: IntCounter,
}

/// Where the records come from.
pub(super) struct Source {
    pub lag: Gauge,
    pub connected: IntGauge,
    pub losses: IntCounter,
    pub partitions: IntGauge,
    pub partition_changes: PerLabel<PartitionChange, IntCounter>,
    pub refusals: PerLabel<SecurityRefusal, IntCounter>,
    pub registry_waited_for: IntGauge,
    pub registry_losses: IntCounter,
    pub writer_schemas: PerLabel<WrittenAs, PerLabel<SchemaOutcome, IntCounter>>,
}

/// Profiles of people, and what joins bring to records.
pub(super) struct Profiles {
    pub kept: IntGauge,
    pub updates: IntCounter,
    pub refused: PerLabel<RejectionReason, IntCounter>,
    pub unjoined: IntCounter,
    pub lag: Gauge,
}

/// What is remembered, in memory and on disk.
pub(super) struct Memory {
    pub ledger_bytes: IntGauge,
    pub supporters: IntGauge,
    pub dictionary_values: IntGauge,
    pub window_records: IntGauge,
    pub model_nodes: IntGauge,
    pub model_edges: IntGauge,
    pub model_bytes: IntGauge,
    pub model_left_out_pairs: IntGauge,
    pub state_bytes: IntGauge,
    pub state_free_bytes: IntGauge,
    pub state_recovery_seconds: Gauge,
    pub state_recovered_deltas: IntGauge,
    pub resident: IntGauge,
    pub parts: Parts,
}

/// Counting on a GPU.
pub(super) struct Gpu {
    pub bytes: IntGauge,
    pub launches: IntCounter,
    pub copied: PerLabel<Copied, IntCounter>,
    pub fills: IntCounter,
    pub fallbacks: IntCounter,
    pub sets_left: IntCounter,
    pub lost: IntGauge,
}

/// Whether the daemon works as it should.
pub(super) struct Health {
    pub refusals: IntCounter,
    pub violations: IntCounter,
    pub limits: PerLabel<Limit, IntCounter>,
    pub ready: IntGauge,
    pub reloads: PerLabel<ReloadOutcome, IntCounter>,
    pub reload_refused: IntGauge,
    pub reload_time: Gauge,
    /// `privacy.k` of the policy in force.
    pub k: IntGauge,
}

impl Metrics {
    /// All series, at zero. Those of fragments are named by `groups`, in this order, and `other`.
    pub fn new(k: usize, groups: &[String]) -> Self {
        let shelf = Shelf(Registry::new());
        let build = shelf.keep(GaugeVec::new(
            Opts::new("throng_build_info", "Constant 1; the label names the version that runs."),
            &["version"],
        ));
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
        let health = Health::new(&shelf);
        health.k.set(i64::try_from(k).unwrap_or(i64::MAX));
        Self {
            flow: Flow::new(&shelf, groups),
            quality: Quality::new(&shelf),
            source: Source::new(&shelf),
            profiles: Profiles::new(&shelf),
            memory: Memory::new(&shelf),
            erasures: Erasures::new(&shelf),
            planning: Planning::new(&shelf),
            gpu: Gpu::new(&shelf),
            health,
            registry: shelf.0,
        }
    }

    /// The text exposition format of all series.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics could not be rendered");
        }
        text
    }
}

impl Flow {
    fn new(shelf: &Shelf, groups: &[String]) -> Self {
        let dead_letters = shelf.keep(IntCounterVec::new(
            Opts::new("throng_dead_letters_total", "Dead letters committed since the start of the process."),
            &["stage", "reason"],
        ));
        let fragments = shelf.keep(IntCounterVec::new(
            Opts::new("throng_fragments_total", "Fragments released, by configured group of attributes."),
            &["group"],
        ));
        let durations = shelf.keep(HistogramVec::new(
            HistogramOpts::new("throng_batch_duration_seconds", "Time that a committed batch spent in each stage.")
                .buckets(buckets()),
            &["stage"],
        ));
        Self {
            records: shelf.counters(
                "throng_records_total",
                "Records by outcome, across restarts: consumed = released + suppressed + dead_lettered + dropped + held.",
                "outcome",
            ),
            held: shelf.count("throng_records_held", "Records that wait for a better crowd."),
            suppressed: shelf.counters(
                "throng_suppressed_records_total",
                "Records of which nothing was released, by reason, since the start of the process.",
                "reason",
            ),
            dead_letters: PerLabel::new(|reason: RejectionReason| {
                dead_letters.with_label_values(&[reason.stage().as_str(), reason.as_str()])
            }),
            batches: shelf.counters("throng_batches_total", "Batches by outcome.", "outcome"),
            aborts: shelf.counters("throng_batch_aborts_total", "Aborted batches by reason.", "reason"),
            bytes: shelf.counters("throng_bytes_total", "Payload bytes consumed (in; rounded and held) and released (out).", "direction"),
            fragments: groups
                .iter()
                .map(String::as_str)
                .chain(["other"])
                .map(|group| fragments.with_label_values(&[group]))
                .collect(),
            durations: PerLabel::new(|stage: Stage| durations.with_label_values(&[stage.as_str()])),
            append_to_commit: shelf.keep(Histogram::with_opts(
                HistogramOpts::new(
                    "throng_append_to_commit_seconds",
                    "From the append of a batch's oldest record at the source to its commit.",
                )
                .buckets(waits()),
            )),
            thinned_fragments: shelf.counter(
                "throng_thinned_fragments_total",
                "Fragments that did not leave because other lines of their subject stand for them, rounded and held.",
            ),
            delayed_lines: shelf.counter(
                "throng_delayed_lines_total",
                "Lines of attributes that do not change that were settled after their delay, rounded and held.",
            ),
            delayed_seconds: shelf.keep(Counter::new(
                "throng_delayed_lines_seconds_total",
                "Time that those lines have waited, in all, rounded and held.",
            )),
            waiting_lines: shelf.count("throng_waiting_lines", "Lines that wait for their delay."),
            said_lines: shelf.count(
                "throng_said_lines",
                "Pairs of a subject and a group that have been said and are not said again in their window.",
            ),
            batch_sequence: shelf.count("throng_batch_sequence", "Number of the last committed batch."),
            batch_clock: shelf.gauge("throng_last_commit_timestamp_seconds", "Batch clock of the last commit."),
        }
    }
}

impl Quality {
    fn new(shelf: &Shelf) -> Self {
        let risk = shelf.keep(GaugeVec::new(
            Opts::new(
                "throng_reidentification_risk",
                "Re-identification risk (1 / subjects in a record's class): highest is a bound, average is of at least 1,000 records, rounded and held.",
            ),
            &["picture", "statistic"],
        ));
        Self {
            risk: PerLabel::new(|picture: Picture| {
                PerLabel::new(|statistic: Statistic| {
                    risk.with_label_values(&[picture.as_str(), statistic.as_str()])
                })
            }),
            below_k: shelf.gauges(
                "throng_records_below_k_share",
                "Share of records whose class has fewer than k subjects; before: of at least 1,000 records, rounded and held.",
                "picture",
            ),
            crowds: shelf.gauges(
                "throng_crowd_subjects",
                "Subjects in the class of a fragment; smallest: of the last batch, k at most; average: of at least 1,000, rounded and held.",
                "statistic",
            ),
            crowds_below_k: shelf.gauge(
                "throng_fragments_below_k_share",
                "Share of the last batch's fragments with fewer than k subjects in their class.",
            ),
            loss: shelf.gauge("throng_information_loss", "Mean loss of the last batch's present cells, 0 to 1."),
            exact_share: shelf.gauge("throng_cells_exact_share", "Share of the last batch's cells that left exactly."),
            suppressed_share: shelf.gauge(
                "throng_records_suppressed_share",
                "Share of the last batch's settled records of which nothing was released.",
            ),
            unknown_cells: shelf.counters(
                "throng_unknown_cells_total",
                "Cells of attributes that the schema does not know, by the format of the records.",
                "format",
            ),
            uncovered_cells: shelf.counter(
                "throng_uncovered_cells_total",
                "Cells whose value its hierarchy misses; they count as the root.",
            ),
            altered_cells: shelf.counter("throng_altered_cells_total", "Numbers that another one of their batch has taken the place of (treatment perturb or aggregate), in thousands."),
            withheld_cells: shelf.counter(
                "throng_withheld_cells_total",
                "Cells of sensitive attributes under a privacy model that left as *, in fragments that were released.",
            ),
        }
    }
}

impl Source {
    fn new(shelf: &Shelf) -> Self {
        let writer_schemas = shelf.keep(IntCounterVec::new(
            Opts::new(
                "throng_writer_schemas_total",
                "Schemas of records that were met since the start of the process.",
            ),
            &["format", "outcome"],
        ));
        Self {
            lag: shelf.gauge("throng_source_lag_records", "Records behind the end of the source; NaN if unknown."),
            connected: shelf.count("throng_source_connected", "1 while the source answers."),
            losses: shelf.counter("throng_source_losses_total", "Times that the source stopped answering."),
            partitions: shelf.count("throng_partitions_assigned", "Partitions that this instance reads."),
            partition_changes: shelf.counters(
                "throng_partition_changes_total",
                "Partitions assigned to, revoked from and lost by this instance.",
                "change",
            ),
            refusals: shelf.counters(
                "throng_source_refusals_total",
                "Times that brokers did not let us in, or that we did not trust them.",
                "reason",
            ),
            registry_waited_for: shelf.count(
                "throng_registry_waited_for",
                "1 while records wait for a schema registry that does not answer.",
            ),
            registry_losses: shelf
                .counter("throng_registry_losses_total", "Questions to the schema registry that had no answer."),
            writer_schemas: PerLabel::new(|format: WrittenAs| {
                PerLabel::new(|outcome: SchemaOutcome| {
                    writer_schemas.with_label_values(&[format.as_str(), outcome.as_str()])
                })
            }),
        }
    }
}

impl Profiles {
    fn new(shelf: &Shelf) -> Self {
        Self {
            kept: shelf.count("throng_profiles", "Profiles of people that joins keep, rounded and held."),
            updates: shelf
                .counter("throng_profile_updates_total", "Profiles and removals read from topics of profiles."),
            refused: shelf.counters(
                "throng_profiles_refused_total",
                "Profiles that could not be read: what they would bring is missing.",
                "reason",
            ),
            unjoined: shelf.counter(
                "throng_unjoined_records_total",
                "Records to which a join brought nothing, for it has no profile of their subject; rounded and held.",
            ),
            lag: shelf.gauge(
                "throng_profiles_lag_records",
                "Messages behind the ends of the topics of profiles; NaN if unknown.",
            ),
        }
    }
}

impl Memory {
    fn new(shelf: &Shelf) -> Self {
        Self {
            ledger_bytes: shelf.count("throng_ledger_bytes", "Memory of the ledger, rounded and held."),
            supporters: shelf.count(
                "throng_ledger_supporters",
                "People, and classes that each of them supports, that the ledger remembers for tenure and budgets.",
            ),
            dictionary_values: shelf
                .count("throng_dictionary_values", "Distinct values in all dictionaries, rounded and held."),
            window_records: shelf.count("throng_window_records", "Records in the planner's window."),
            model_nodes: shelf
                .count("throng_model_nodes", "Values that the model of the window counts, rounded and held."),
            model_edges: shelf
                .count("throng_model_edges", "Pairs of values seen together that the model counts, rounded and held."),
            model_bytes: shelf.count("throng_model_bytes", "Memory of the model's counts, rounded and held."),
            model_left_out_pairs: shelf.count(
                "throng_model_left_out_pairs",
                "Pairs of attributes that the model no longer counts, for want of room.",
            ),
            state_bytes: shelf.count("throng_state_bytes", "State on disk, rounded and held."),
            state_free_bytes: shelf.count("throng_state_free_bytes", "Bytes that are free on the disk of the state."),
            state_recovery_seconds: shelf
                .gauge("throng_state_recovery_seconds", "Time that the last start took to read its state."),
            state_recovered_deltas: shelf
                .count("throng_state_recovered_deltas", "Batch deltas replayed at the last start."),
            resident: shelf.count("throng_process_resident_memory_bytes", "Resident memory of the process."),
            parts: Parts::new(shelf),
        }
    }
}

impl Gpu {
    fn new(shelf: &Shelf) -> Self {
        Self {
            bytes: shelf.count("throng_gpu_memory_bytes", "Memory held on the GPU."),
            launches: shelf.counter("throng_gpu_launches_total", "Kernels started on the GPU."),
            copied: shelf.counters("throng_gpu_copied_bytes_total", "Bytes copied to the GPU (up) and from it (down).", "direction"),
            fills: shelf.counter(
                "throng_gpu_window_fills_total",
                "Times that the whole window was copied to the GPU, instead of what was new.",
            ),
            fallbacks: shelf.counter(
                "throng_gpu_fallbacks_total",
                "Times that the GPU failed and the CPU answered in its place.",
            ),
            sets_left: shelf.counter(
                "throng_gpu_sets_left_total",
                "Attribute sets that the CPU counted in a search on the GPU: after a failure, for want of room, or for being one class.",
            ),
            lost: shelf.count("throng_gpu_lost", "1 after the GPU failed for good: the CPU counts until the next start."),
        }
    }
}

impl Health {
    fn new(shelf: &Shelf) -> Self {
        Self {
            refusals: shelf.counter("throng_verification_refusals_total", "Batches that verification refused."),
            violations: shelf.counter("throng_verification_violations_total", "Fragments that verification refused."),
            limits: shelf.counters(
                "throng_limit_reached_total",
                "Times that a stated limit was reached; one that values reach, at most every ten minutes.",
                "limit",
            ),
            ready: shelf.count("throng_ready", "1 while the daemon is ready."),
            reloads: shelf.counters(
                "throng_reloads_total",
                "Times that the configuration was read anew, by outcome.",
                "outcome",
            ),
            reload_refused: shelf.count(
                "throng_last_reload_refused",
                "1 while the configuration that was read last was refused: an older one is in force.",
            ),
            reload_time: shelf.gauge(
                "throng_last_reload_timestamp_seconds",
                "When the configuration was last read anew; 0 if not since the start.",
            ),
            k: shelf.count("throng_privacy_k", "Smallest crowd, in distinct subjects, as configured."),
        }
    }
}

/// A gauge's value; what exceeds it is shown as the largest.
pub(super) fn clamped(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
