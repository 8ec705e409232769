//! Division of `process.memory_limit` among the parts of a daemon.
//!
//! | part | enforcement |
//! |---|---|
//! | program, cache, reserve | reserved |
//! | queues | `batch.max_bytes` and the queues of the Kafka clients are lowered |
//! | ledger | entry limits are lowered for the worst-case entry size |
//! | window | the value pairs of the model are lowered |
//! | profiles | reserved at a typical size; limited by number |
//! | dictionaries | the remainder: the window evicts its oldest records, and unused values are pruned |
//!
//! No limit is ever raised; lower limits suppress more (docs/internals/architecture.md rule 8; decision 0055).

use crate::config::{Config, ConfigProblem, MOST_VALUES, SinkKind, SourceKind, format_size};
use crate::telemetry::{LimitsConfigured, MemoryPart};
use throng_core::stream::input_batch::BatchLimits;
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::Schema;
use throng_formats::DecodeLimits as CodecLimits;
use throng_risk::adjacency::MAX_EDGES;

/// Dictionaries of the stream, of a plan search, and of the exact re-check.
pub const DICTIONARY_COPIES: u64 = 3;

const MIB: u64 = 1 << 20;
/// Code, threads, Kafka clients and HTTP pages.
const PROGRAM_BYTES: u64 = 96 * MIB;
/// Fixed size of the database cache.
const CACHE_BYTES: u64 = 64 * MIB;
/// One filled, one waiting, one encoded ahead, one released; each as bytes and decoded.
const BATCHES_IN_MEMORY: u64 = 8;
const MODEL_PAIR_BYTES: u64 = 64;
/// Minimum useful sizes.
const MIN_PAIRS: u64 = 10_000;
const MIN_ENTRIES: u64 = 1_000;
const MIN_DICTIONARY_BYTES: u64 = 48 * MIB;
const MIN_CLIENT_BYTES: u64 = 4 * MIB;

/// Limits of the parts; without a memory limit as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBounds {
    /// Limit of `state.max_budget_entries`.
    pub max_budget_entries: usize,
    /// Remembered pairs of subject and group.
    pub max_said_lines: usize,
    /// Delayed lines.
    pub max_waiting_lines: usize,
    /// Value pairs in the model.
    pub max_edges: u64,
    /// Limit of `batch.max_bytes`.
    pub max_batch_bytes: u64,
    /// Maximum bytes of the window's distinct values; `None`: no limit.
    pub value_bytes: Option<u64>,
    /// Bytes of all dictionaries that start pruning; `None`: no limit.
    pub dictionary_bytes: Option<u64>,
}

/// Division of a memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDivision {
    /// `process.memory_limit` in bytes.
    pub limit: u64,
    /// Bytes of each part; their sum is the limit, apart from rounding.
    pub parts: Vec<(MemoryPart, u64)>,
    /// Resulting limits.
    pub bounds: MemoryBounds,
}

/// Queue sizes of the Kafka clients in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientQueueSizes {
    /// Prefetched records.
    pub fetched_kib: u64,
    /// Unacknowledged lines.
    pub sent_kib: u64,
}

fn configured_bounds(config: &Config) -> MemoryBounds {
    MemoryBounds {
        max_budget_entries: config.state.max_budget_entries,
        max_said_lines: config.tuning.max_said_lines,
        max_waiting_lines: config.max_waiting_lines(),
        max_edges: MAX_EDGES,
        max_batch_bytes: config.batch.max_bytes,
        value_bytes: None,
        dictionary_bytes: None,
    }
}

/// Batch processing, and freed memory kept by the allocator.
fn reserve(limit: u64) -> u64 {
    limit / 5
}

/// Bytes after the fixed reservations.
fn divisible_bytes(limit: u64) -> u64 {
    limit.saturating_sub(PROGRAM_BYTES + CACHE_BYTES + reserve(limit))
}

/// Returns the bytes of one batch, the fetch queue, the send queue, and their total.
fn queues_within(config: &Config, share: u64) -> (u64, u64, u64, u64) {
    let of = |key: &str, or: u64| {
        let named = config.source.librdkafka.iter().chain(config.sink.librdkafka.iter());
        let named = named.filter(|(name, _)| *name == key).filter_map(|(_, value)| value.parse::<u64>().ok()).max();
        named.map_or((or, false), |kib| (kib.saturating_mul(1 << 10), true))
    };
    let clients = |there: bool, (bytes, named): (u64, bool), most: u64| match (there, named) {
        (false, _) => 0,
        // The operator's value is kept.
        (true, true) => bytes,
        (true, false) => bytes.min(most.max(MIN_CLIENT_BYTES)),
    };
    let fetched = of("queued.max.messages.kbytes", 16 * MIB);
    let sent = of("queue.buffering.max.kbytes", 256 * MIB);
    let fetched = clients(config.source.kind == SourceKind::Kafka, fetched, share / 8);
    let sent = clients(config.sink.kind == SinkKind::Kafka, sent, share / 4);
    // A fetch in flight adds to the queue.
    let clients = fetched * 2 + sent;
    let batch = config
        .batch
        .max_bytes
        .min((share.saturating_sub(clients)) / BATCHES_IN_MEMORY)
        .max(config.source.max_record_bytes);
    (batch, fetched, sent, clients + batch * BATCHES_IN_MEMORY)
}

/// Worst-case bytes per entry: directly after the doubling of a table.
fn ledger_entry_bytes(config: &Config, schema: &Schema) -> [(u64, u64); 3] {
    let privacy = &config.privacy;
    let width = schema.attributes.len() as u64;
    let asked = privacy.min_tenure > 0 || privacy.max_classes_per_subject > 0;
    let delays = schema.subject.is_some() && !privacy.longest_delay().is_zero();
    [
        (config.state.max_budget_entries as u64, if asked { 160 } else { 0 }),
        (config.tuning.max_said_lines as u64, if delays { 76 } else { 0 }),
        (config.max_waiting_lines() as u64, if delays { 320 + 8 * width } else { 0 }),
    ]
}

/// Bytes of window, sample, and copies for searches.
fn window_row_bytes(config: &Config, schema: &Schema) -> u64 {
    let width = schema.attributes.len() as u64;
    2 * config.plan.window_records as u64 * (4 * width + 8) + 3 * config.plan.sample_records() as u64 * (4 * width + 16)
}

/// Twice the typical size: profiles read at a start replace the known ones.
fn profile_bytes(config: &Config, schema: &Schema) -> u64 {
    let of = |name: &str, people: usize| 2 * people as u64 * (96 + 32 * schema.attributes_of_join(name).len() as u64);
    config.join.iter().map(|join| of(&join.name, join.max_people)).sum()
}

/// `None` if `limit` is too small.
fn divide_limit(config: &Config, schema: &Schema, limit: u64) -> Option<MemoryDivision> {
    let rest = divisible_bytes(limit);
    let (max_batch_bytes, _, _, queues) = queues_within(config, rest * 3 / 10);

    let entries = ledger_entry_bytes(config, schema);
    let worst: u64 = entries.iter().map(|(number, bytes)| number.saturating_mul(*bytes)).fold(0, u64::saturating_add);
    let ledger = worst.min(rest * 3 / 10);
    let least = entries.iter().map(|(number, bytes)| (*number).min(MIN_ENTRIES) * bytes).sum();
    // All limits have one factor.
    let fitting = |at: usize| {
        let (number, bytes) = entries[at];
        let lowered = worst > ledger && bytes > 0;
        let fits = u128::from(number) * u128::from(ledger) / u128::from(worst.max(1));
        let fits = u64::try_from(fits).unwrap_or(u64::MAX).max(1).min(number);
        usize::try_from(if lowered { fits } else { number }).unwrap_or(usize::MAX)
    };

    let rows = window_row_bytes(config, schema);
    let pairs = MAX_EDGES.min((rest / 5).saturating_sub(rows) / MODEL_PAIR_BYTES).max(MIN_PAIRS);
    let window = rows + pairs * MODEL_PAIR_BYTES;
    let profiles = profile_bytes(config, schema).min(rest / 5);
    let dictionaries = rest.checked_sub(queues + ledger + window + profiles)?;
    if ledger < least || dictionaries < MIN_DICTIONARY_BYTES {
        return None;
    }
    let own = dictionaries / DICTIONARY_COPIES;
    let set_aside = [
        (MemoryPart::Program, PROGRAM_BYTES),
        (MemoryPart::Cache, CACHE_BYTES),
        (MemoryPart::Queues, queues),
        (MemoryPart::Ledger, ledger),
        (MemoryPart::Window, window),
        (MemoryPart::Profiles, profiles),
        (MemoryPart::Dictionaries, dictionaries),
        (MemoryPart::Reserve, reserve(limit)),
    ];
    let bounds = MemoryBounds {
        max_budget_entries: fitting(0),
        max_said_lines: fitting(1),
        max_waiting_lines: fitting(2),
        max_edges: pairs,
        max_batch_bytes,
        // The remainder serves sample, batches, withheld lines, and unpruned values.
        value_bytes: Some(own / 2),
        dictionary_bytes: Some(own),
    };
    Some(MemoryDivision { limit, parts: set_aside.to_vec(), bounds })
}

/// Returns the division; `None` without a limit.
pub fn memory_division(config: &Config, schema: &Schema) -> Option<MemoryDivision> {
    divide_limit(config, schema, config.process.memory_limit?)
}

/// Returns the limits of the parts.
pub fn memory_bounds(config: &Config, schema: &Schema) -> MemoryBounds {
    memory_division(config, schema).map_or_else(|| configured_bounds(config), |division| division.bounds)
}

/// Returns the limits that metrics of use are compared with.
pub fn usage_limits(config: &Config, schema: &Schema) -> LimitsConfigured {
    let bounds = memory_bounds(config, schema);
    LimitsConfigured {
        batch_records: config.batch.max_records as u64,
        supporters: bounds.max_budget_entries as u64,
        waiting_lines: bounds.max_waiting_lines as u64,
        said_lines: bounds.max_said_lines as u64,
        model_edges: bounds.max_edges,
        profiles: config.join.iter().map(|join| join.max_people as u64).sum(),
        memory_bytes: config.process.memory_limit.unwrap_or(0),
    }
}

/// Returns the limits that close a batch.
pub fn batch_limits(config: &Config, schema: &Schema) -> BatchLimits {
    let mut max_bytes = memory_bounds(config, schema).max_batch_bytes;
    if config.batch.is_whole && config.process.memory_limit.is_none() {
        max_bytes = max_bytes
            .min(machine_memory().map_or(MIB << 10, |memory| memory / JOB_MEMORY_DIVISOR))
            .max(config.source.max_record_bytes);
    }
    BatchLimits { max_bytes, ..configured_limits(config) }
}

/// Decoding, treatment and output need several times the bytes of a batch.
const JOB_MEMORY_DIVISOR: u64 = 16;

/// Memory of the machine or its control group, if reported.
fn machine_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok();
    let total = info.as_deref().and_then(|info| {
        let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
    });
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    total.into_iter().chain(group).min()
}

/// Maximum values of a dictionary: one per remembered record.
pub fn max_dictionary_values(config: &Config, schema: &Schema) -> usize {
    let room = schema.attributes.iter().map(|attribute| Codebook::value_limit(attribute)).min();
    if config.batch.is_whole {
        return MOST_VALUES.min(room.unwrap_or(MOST_VALUES));
    }
    // A message with records as elements is never split.
    let more = if schema.explode.is_some() { CodecLimits::default().max_elements - 1 } else { 0 };
    let needed = config.max_remembered_records() + config.max_remembered_batches() * more + config.max_waiting_lines();
    config.tuning.max_dictionary_values.max(needed)
}

/// Queue sizes; `None` without a limit.
pub fn client_queue_sizes(config: &Config) -> Option<ClientQueueSizes> {
    let (_, fetched, sent, _) = queues_within(config, divisible_bytes(config.process.memory_limit?) * 3 / 10);
    // At least the minimum of the client.
    let kib = |bytes: u64| (bytes >> 10).max(MIN_CLIENT_BYTES >> 10);
    Some(ClientQueueSizes { fetched_kib: kib(fetched), sent_kib: kib(sent) })
}

/// Reports a limit that is too small, with the smallest sufficient one.
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let Some(limit) = config.process.memory_limit.filter(|limit| divide_limit(config, schema, *limit).is_none()) else {
        return Vec::new();
    };
    let message = format!(
        "{} is too small for these limits of batches, window and sample: the dictionaries would have less than {}",
        format_size(limit),
        format_size(MIN_DICTIONARY_BYTES)
    );
    let remedy = match smallest_limit(config, schema) {
        Some(least) => {
            format!(
                "give at least {}, or lower plan.window_records, batch.max_bytes or source.max_record_bytes",
                format_size(least)
            )
        }
        None => "lower plan.window_records or source.max_record_bytes: no limit is sufficient".to_owned(),
    };
    vec![ConfigProblem::new(file, "process.memory_limit", message, &remedy)]
}

/// Smallest divisible limit, in whole MiB.
fn smallest_limit(config: &Config, schema: &Schema) -> Option<u64> {
    let (mut below, mut enough) = (0, 1 << 24);
    divide_limit(config, schema, enough * MIB)?;
    while enough - below > 1 {
        let middle = below + (enough - below) / 2;
        match divide_limit(config, schema, middle * MIB) {
            Some(_) => enough = middle,
            None => below = middle,
        }
    }
    Some(enough * MIB)
}

impl MemoryDivision {
    /// Lowered limits: key, configured and resulting value.
    pub fn lowered(&self, config: &Config) -> Vec<(&'static str, u64, u64)> {
        let (asked, own) = (configured_bounds(config), &self.bounds);
        let pairs = [
            ("batch.max_bytes", asked.max_batch_bytes, own.max_batch_bytes),
            ("pairs of values in the model", asked.max_edges, own.max_edges),
            ("state.max_budget_entries", asked.max_budget_entries as u64, own.max_budget_entries as u64),
            ("lines in the release log", asked.max_said_lines as u64, own.max_said_lines as u64),
            ("waiting lines", asked.max_waiting_lines as u64, own.max_waiting_lines as u64),
        ];
        pairs.into_iter().filter(|(_, asked, own)| own < asked).collect()
    }
}

fn configured_limits(config: &Config) -> BatchLimits {
    BatchLimits {
        max_records: config.batch.max_records as u64,
        max_bytes: config.batch.max_bytes,
        max_wait: config.batch.max_wait,
        max_age: config.batch.max_age,
        min_subjects: config.privacy.required_subjects(),
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
