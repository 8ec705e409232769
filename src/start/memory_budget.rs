//! Divides the memory budget of a daemon among its parts (`process.memory_limit`).
//!
//! | part | enforcement |
//! |---|---|
//! | program, cache, reserve | reserved for code and threads, the database cache, batch processing and the allocator |
//! | queues | `batch.max_bytes` and the queues of the Kafka clients are lowered to fit |
//! | ledger | entry limits are lowered to fit the worst-case entry size |
//! | window | the value pairs of the model are lowered to fit next to the records of the window |
//! | profiles | reserved at a typical size; profiles are limited by number |
//! | dictionaries | the remainder. The window evicts its oldest records by the measured size of their distinct values; unused values are pruned when all values exceed the part |
//!
//! No limit is ever raised. Lower limits count less and suppress more (docs/internals/architecture.md rule 8); decision 0055.

use crate::config::{Config, ConfigProblem, MOST_VALUES, SinkKind, SourceKind, format_size};
use crate::telemetry::MemoryPart;
use throng_core::stream::input_batch::BatchLimits;
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::Schema;
use throng_formats::DecodeLimits as CodecLimits;
use throng_risk::adjacency::MAX_EDGES;

/// Maximum number of dictionaries: that of the stream, and the copies for a plan search and for the exact re-check.
pub const DICTIONARY_COPIES: u64 = 3;

const MIB: u64 = 1 << 20;
/// Code, threads, and the basic memory of Kafka clients and HTTP pages.
const PROGRAM_BYTES: u64 = 96 * MIB;
/// Cache of the state database, which has a fixed size.
const CACHE_BYTES: u64 = 64 * MIB;
/// Batches in memory: one being filled, one waiting, one encoded ahead, one being released; each as bytes and in
/// decoded form.
const BATCHES_IN_MEMORY: u64 = 8;
const MODEL_PAIR_BYTES: u64 = 64;
/// Minimum useful sizes of the parts.
const MIN_PAIRS: u64 = 10_000;
const MIN_ENTRIES: u64 = 1_000;
const MIN_DICTIONARY_BYTES: u64 = 48 * MIB;
const MIN_CLIENT_BYTES: u64 = 4 * MIB;

/// Limits of the parts. Without a memory limit they equal the configured limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBounds {
    /// Limit of `state.max_budget_entries`.
    pub max_budget_entries: usize,
    /// Remembered pairs of subject and group that were released.
    pub max_said_lines: usize,
    /// Lines withheld for their delay.
    pub max_waiting_lines: usize,
    /// Value pairs counted by the model.
    pub max_edges: u64,
    /// Limit of `batch.max_bytes`.
    pub max_batch_bytes: u64,
    /// Maximum bytes of the distinct values of the window; `None` for no limit.
    pub value_bytes: Option<u64>,
    /// Bytes of all dictionaries from which unused values are pruned; `None` for no limit.
    pub dictionary_bytes: Option<u64>,
}

/// Division of a memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDivision {
    /// `process.memory_limit` in bytes.
    pub limit: u64,
    /// Bytes of each part; their sum is the limit, apart from rounding.
    pub parts: Vec<(MemoryPart, u64)>,
    /// Limits that result from the division.
    pub bounds: MemoryBounds,
}

/// Queue sizes of the Kafka clients in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientQueueSizes {
    /// Records fetched ahead.
    pub fetched_kib: u64,
    /// Lines not yet acknowledged.
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

/// Bytes for batch processing and for freed memory kept by the allocator.
fn reserve(limit: u64) -> u64 {
    limit / 5
}

/// Bytes to divide after the fixed reservations.
fn divisible_bytes(limit: u64) -> u64 {
    limit.saturating_sub(PROGRAM_BYTES + CACHE_BYTES + reserve(limit))
}

/// Fits batches and queues into their share. Returns the bytes of one batch, of the fetch queue, of the send queue,
/// and of all together.
fn queues_within(config: &Config, share: u64) -> (u64, u64, u64, u64) {
    let of = |key: &str, or: u64| {
        let named = config.source.librdkafka.iter().chain(config.sink.librdkafka.iter());
        let named = named.filter(|(name, _)| *name == key).filter_map(|(_, value)| value.parse::<u64>().ok()).max();
        named.map_or((or, false), |kib| (kib.saturating_mul(1 << 10), true))
    };
    let clients = |there: bool, (bytes, named): (u64, bool), most: u64| match (there, named) {
        (false, _) => 0,
        // A value set by the operator is kept.
        (true, true) => bytes,
        (true, false) => bytes.min(most.max(MIN_CLIENT_BYTES)),
    };
    let fetched = of("queued.max.messages.kbytes", 16 * MIB);
    let sent = of("queue.buffering.max.kbytes", 256 * MIB);
    let fetched = clients(config.source.kind == SourceKind::Kafka, fetched, share / 8);
    let sent = clients(config.sink.kind == SinkKind::Kafka, sent, share / 4);
    // A fetch in flight adds to the queued records.
    let clients = fetched * 2 + sent;
    let batch = config
        .batch
        .max_bytes
        .min((share.saturating_sub(clients)) / BATCHES_IN_MEMORY)
        .max(config.source.max_record_bytes);
    (batch, fetched, sent, clients + batch * BATCHES_IN_MEMORY)
}

/// Worst-case bytes of ledger entries per limit: tables and lists directly after doubling.
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

/// Bytes of the window records, of the sample records, and of the copies for searches.
fn window_row_bytes(config: &Config, schema: &Schema) -> u64 {
    let width = schema.attributes.len() as u64;
    2 * config.plan.window_records as u64 * (4 * width + 8) + 3 * config.plan.sample_records() as u64 * (4 * width + 16)
}

/// Twice the typical size of the profiles, because those read at a start replace the known ones.
fn profile_bytes(config: &Config, schema: &Schema) -> u64 {
    let of = |name: &str, people: usize| 2 * people as u64 * (96 + 32 * schema.attributes_of_join(name).len() as u64);
    config.join.iter().map(|join| of(&join.name, join.max_people)).sum()
}

/// Divides `limit`; `None` if it is too small.
fn divide_limit(config: &Config, schema: &Schema, limit: u64) -> Option<MemoryDivision> {
    let rest = divisible_bytes(limit);
    let (max_batch_bytes, _, _, queues) = queues_within(config, rest * 3 / 10);

    let entries = ledger_entry_bytes(config, schema);
    let worst: u64 = entries.iter().map(|(number, bytes)| number.saturating_mul(*bytes)).fold(0, u64::saturating_add);
    let ledger = worst.min(rest * 3 / 10);
    let least = entries.iter().map(|(number, bytes)| (*number).min(MIN_ENTRIES) * bytes).sum();
    // All limits are scaled by the same factor.
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
        // The remainder serves the sample, batches, withheld lines, and values not yet pruned.
        value_bytes: Some(own / 2),
        dictionary_bytes: Some(own),
    };
    Some(MemoryDivision { limit, parts: set_aside.to_vec(), bounds })
}

/// Returns the division of the limit; `None` without a limit.
pub fn memory_division(config: &Config, schema: &Schema) -> Option<MemoryDivision> {
    divide_limit(config, schema, config.process.memory_limit?)
}

/// Returns the limits of the parts.
pub fn memory_bounds(config: &Config, schema: &Schema) -> MemoryBounds {
    memory_division(config, schema).map_or_else(|| configured_bounds(config), |division| division.bounds)
}

/// Returns the limits that close a batch, from `batch` and the memory limit.
pub fn batch_limits(config: &Config, schema: &Schema) -> BatchLimits {
    let mut max_bytes = memory_bounds(config, schema).max_batch_bytes;
    if config.batch.is_whole && config.process.memory_limit.is_none() {
        max_bytes = max_bytes
            .min(machine_memory().map_or(MIB << 10, |memory| memory / JOB_MEMORY_DIVISOR))
            .max(config.source.max_record_bytes);
    }
    BatchLimits { max_bytes, ..configured_limits(config) }
}

/// Divisor of the machine memory for the bytes of one batch of a job; decoding, treatment and output need several
/// times that size.
const JOB_MEMORY_DIVISOR: u64 = 16;

/// Memory of this machine or of its control group, if the system reports it.
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

/// Maximum distinct values of a dictionary; every remembered record may add one.
pub fn max_dictionary_values(config: &Config, schema: &Schema) -> usize {
    let room = schema.attributes.iter().map(|attribute| Codebook::value_limit(attribute)).min();
    if config.batch.is_whole {
        return MOST_VALUES.min(room.unwrap_or(MOST_VALUES));
    }
    // A message with records as elements is never split across batches.
    let more = if schema.explode.is_some() { CodecLimits::default().max_elements - 1 } else { 0 };
    let needed = config.max_remembered_records() + config.max_remembered_batches() * more + config.max_waiting_lines();
    config.tuning.max_dictionary_values.max(needed)
}

/// Queue sizes of the Kafka clients; `None` without a limit.
pub fn client_queue_sizes(config: &Config) -> Option<ClientQueueSizes> {
    let (_, fetched, sent, _) = queues_within(config, divisible_bytes(config.process.memory_limit?) * 3 / 10);
    // At least the minimum queue size of the client, for sources and sinks of any kind.
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

/// Smallest limit that can be divided, in whole MiB.
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
    /// Lowered limits: the key, the configured value, and the resulting value.
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

/// Returns the configured limits of a batch.
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
