//! One budget for the memory of a daemon, divided among its parts (`process.memory_limit`).
//!
//! | part | how its share is kept |
//! |---|---|
//! | program, cache, reserve | set aside: code and threads, the cache of the database, the work of a batch and of the allocator |
//! | queues | `batch.max_bytes` and the queues of the clients of the brokers are lowered to what fits |
//! | ledger | the limits of its entries are lowered to what fits, at what an entry takes at worst |
//! | window | the pairs of the model are lowered to what fits beside the records of the window |
//! | profiles | set aside at a usual size; profiles are limited by their number |
//! | dictionaries | everything else. By what is measured: the window forgets its oldest records by what their different values weigh, and unused values are forgotten once all values outgrow the part |
//!
//! No limit is ever raised. Whatever is lowered, less is counted and more is suppressed (docs/architecture.md rule 8); decision 0055.

use crate::config::{Config, MOST_VALUES, Problem, SinkKind, SourceKind, format_size};
use crate::io::input::Limits;
use crate::telemetry::MemoryPart;
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::Schema;
use throng_formats::Limits as CodecLimits;
use throng_risk::adjacency::MAX_EDGES;

/// Dictionaries there are at most: that of the stream, and the copies that a search for a plan and the exact re-check work on.
pub const COPIES: u64 = 3;

const MIB: u64 = 1 << 20;
/// Code, threads, and what clients of brokers and pages take by themselves.
const PROGRAM: u64 = 96 * MIB;
/// The cache of the state's database, which is as large as it is.
const CACHE: u64 = 64 * MIB;
/// Batches in hand: one is filled, one waits, one is encoded ahead, one leaves; each as bytes and as what they were taken apart into.
const BATCHES: u64 = 8;
/// Bytes of a pair of values in the model, and of the copy of it.
const A_PAIR: u64 = 64;
/// The least that makes sense of a part.
const LEAST_PAIRS: u64 = 10_000;
const LEAST_ENTRIES: u64 = 1_000;
const LEAST_DICTIONARIES: u64 = 48 * MIB;
const LEAST_CLIENT: u64 = 4 * MIB;

/// What the parts may hold. Without a limit these are the limits of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// As `state.max_budget_entries`.
    pub max_budget_entries: usize,
    /// Pairs of a subject and a group that are remembered as said.
    pub max_said_lines: usize,
    /// Lines that wait for their delay.
    pub max_waiting_lines: usize,
    /// Pairs of values that the model counts.
    pub max_edges: u64,
    /// As `batch.max_bytes`.
    pub max_batch_bytes: u64,
    /// Bytes that the different values of the window may weigh; `None`: any.
    pub value_bytes: Option<u64>,
    /// Bytes of all dictionaries from which on unused values are forgotten; `None`: any.
    pub dictionary_bytes: Option<u64>,
}

/// A limit divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// `process.memory_limit`, in bytes.
    pub limit: u64,
    /// What each part may take, in bytes; together they are the limit.
    pub parts: Vec<(MemoryPart, u64)>,
    /// What that comes to.
    pub bounds: Bounds,
}

/// What the clients of brokers may queue, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Records fetched ahead.
    pub fetched_kib: u64,
    /// Lines that are on their way.
    pub sent_kib: u64,
}

fn unlimited(config: &Config) -> Bounds {
    Bounds {
        max_budget_entries: config.state.max_budget_entries,
        max_said_lines: config.tuning.max_said_lines,
        max_waiting_lines: config.max_waiting_lines(),
        max_edges: MAX_EDGES,
        max_batch_bytes: config.batch.max_bytes,
        value_bytes: None,
        dictionary_bytes: None,
    }
}

/// Bytes set aside for the work of a batch and for what the allocator keeps of freed memory.
fn reserve(limit: u64) -> u64 {
    limit / 5
}

/// What is there to be divided, beside what is set aside.
fn rest(limit: u64) -> u64 {
    limit.saturating_sub(PROGRAM + CACHE + reserve(limit))
}

/// Batches and queues within their share: bytes of a batch, of what is fetched ahead and of what is on its way, and what all
/// of that takes.
fn queues_within(config: &Config, share: u64) -> (u64, u64, u64, u64) {
    let of = |key: &str, or: u64| {
        let named = config.source.librdkafka.iter().chain(config.sink.librdkafka.iter());
        let named = named.filter(|(name, _)| *name == key).filter_map(|(_, value)| value.parse::<u64>().ok()).max();
        named.map_or((or, false), |kib| (kib.saturating_mul(1 << 10), true))
    };
    let clients = |there: bool, (bytes, named): (u64, bool), most: u64| match (there, named) {
        (false, _) => 0,
        // What an operator has named stays.
        (true, true) => bytes,
        (true, false) => bytes.min(most.max(LEAST_CLIENT)),
    };
    let fetched = of("queued.max.messages.kbytes", 16 * MIB);
    let sent = of("queue.buffering.max.kbytes", 256 * MIB);
    let fetched = clients(config.source.kind == SourceKind::Kafka, fetched, share / 8);
    let sent = clients(config.sink.kind == SinkKind::Kafka, sent, share / 4);
    // A fetch that is under way comes on top of what waits.
    let clients = fetched * 2 + sent;
    let batch =
        config.batch.max_bytes.min((share.saturating_sub(clients)) / BATCHES).max(config.source.max_record_bytes);
    (batch, fetched, sent, clients + batch * BATCHES)
}

/// Bytes that entries of the ledger take at worst, by limit: tables and lists that have just doubled.
fn entries(config: &Config, schema: &Schema) -> [(u64, u64); 3] {
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

/// Bytes of the window's records, of the sample's, and of the copies that searches work on.
fn rows(config: &Config, schema: &Schema) -> u64 {
    let width = schema.attributes.len() as u64;
    2 * config.plan.window_records as u64 * (4 * width + 8) + 3 * config.plan.sample_records() as u64 * (4 * width + 16)
}

/// Profiles at a usual size, twice: those that are read at a start take the place of those that are known.
fn profiles(config: &Config, schema: &Schema) -> u64 {
    let of = |name: &str, people: usize| 2 * people as u64 * (96 + 32 * schema.joined_by(name).len() as u64);
    config.join.iter().map(|join| of(&join.name, join.max_people)).sum()
}

/// Divides `limit`; `None` where it is too small.
fn divide(config: &Config, schema: &Schema, limit: u64) -> Option<Division> {
    let rest = rest(limit);
    let (max_batch_bytes, _, _, queues) = queues_within(config, rest * 3 / 10);

    let entries = entries(config, schema);
    let worst: u64 = entries.iter().map(|(number, bytes)| number.saturating_mul(*bytes)).fold(0, u64::saturating_add);
    let ledger = worst.min(rest * 3 / 10);
    let least = entries.iter().map(|(number, bytes)| (*number).min(LEAST_ENTRIES) * bytes).sum();
    // Every limit by the same share: what is asked for in more entries has more of them.
    let fitting = |at: usize| {
        let (number, bytes) = entries[at];
        let lowered = worst > ledger && bytes > 0;
        let fits = u128::from(number) * u128::from(ledger) / u128::from(worst.max(1));
        let fits = u64::try_from(fits).unwrap_or(u64::MAX).max(1).min(number);
        usize::try_from(if lowered { fits } else { number }).unwrap_or(usize::MAX)
    };

    let rows = rows(config, schema);
    let pairs = MAX_EDGES.min((rest / 5).saturating_sub(rows) / A_PAIR).max(LEAST_PAIRS);
    let window = rows + pairs * A_PAIR;
    let profiles = profiles(config, schema).min(rest / 5);
    let dictionaries = rest.checked_sub(queues + ledger + window + profiles)?;
    if ledger < least || dictionaries < LEAST_DICTIONARIES {
        return None;
    }
    let own = dictionaries / COPIES;
    let set_aside = [
        (MemoryPart::Program, PROGRAM),
        (MemoryPart::Cache, CACHE),
        (MemoryPart::Queues, queues),
        (MemoryPart::Ledger, ledger),
        (MemoryPart::Window, window),
        (MemoryPart::Profiles, profiles),
        (MemoryPart::Dictionaries, dictionaries),
        (MemoryPart::Reserve, reserve(limit)),
    ];
    let bounds = Bounds {
        max_budget_entries: fitting(0),
        max_said_lines: fitting(1),
        max_waiting_lines: fitting(2),
        max_edges: pairs,
        max_batch_bytes,
        // The rest is for the sample, for batches, for what waits, and for what has gone since values were last forgotten.
        value_bytes: Some(own / 2),
        dictionary_bytes: Some(own),
    };
    Some(Division { limit, parts: set_aside.to_vec(), bounds })
}

/// How the limit is divided; `None` where there is none.
pub fn division(config: &Config, schema: &Schema) -> Option<Division> {
    divide(config, schema, config.process.memory_limit?)
}

/// What the parts may hold.
pub fn bounds(config: &Config, schema: &Schema) -> Bounds {
    division(config, schema).map_or_else(|| unlimited(config), |division| division.bounds)
}

/// When a batch is closed, by `batch` and by what fits.
pub fn closing(config: &Config, schema: &Schema) -> Limits {
    let mut max_bytes = bounds(config, schema).max_batch_bytes;
    if config.batch.is_whole && config.process.memory_limit.is_none() {
        max_bytes = max_bytes
            .min(machine_memory().map_or(MIB << 10, |memory| memory / OF_A_JOB))
            .max(config.source.max_record_bytes);
    }
    Limits { max_bytes, ..Limits::of(config) }
}

/// The part of the memory that the bytes of one batch of a job are at most: taken apart, treated and written they take several times that.
const OF_A_JOB: u64 = 16;

/// The memory of this machine, or of the control group that the process is in, where the system tells.
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

/// Distinct values that a dictionary holds at most: every record that is remembered may bring one of its own.
pub fn max_dictionary_values(config: &Config, schema: &Schema) -> usize {
    let room = schema.attributes.iter().map(|attribute| Codebook::most_values(attribute)).min();
    if config.batch.is_whole {
        return MOST_VALUES.min(room.unwrap_or(MOST_VALUES));
    }
    // A message whose elements are the records is not divided among batches.
    let more = if schema.explode.is_some() { CodecLimits::default().max_elements - 1 } else { 0 };
    let needed = config.rows_remembered() + config.batches_remembered() * more + config.max_waiting_lines();
    config.tuning.max_dictionary_values.max(needed)
}

/// What the clients of brokers may queue; `None` without a limit.
pub fn queues(config: &Config) -> Option<Queues> {
    let (_, fetched, sent, _) = queues_within(config, rest(config.process.memory_limit?) * 3 / 10);
    // No less than the client takes for a queue, whatever kind of client it is.
    let kib = |bytes: u64| (bytes >> 10).max(LEAST_CLIENT >> 10);
    Some(Queues { fetched_kib: kib(fetched), sent_kib: kib(sent) })
}

/// A limit that is too small, with the least that would do.
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let Some(limit) = config.process.memory_limit.filter(|limit| divide(config, schema, *limit).is_none()) else {
        return Vec::new();
    };
    let message = format!(
        "{} is too little for these limits of batches, window and sample: what is left for the dictionaries would be less than {}",
        format_size(limit),
        format_size(LEAST_DICTIONARIES)
    );
    let remedy = match least(config, schema) {
        Some(least) => {
            format!(
                "give at least {}, or lower plan.window_records, batch.max_bytes or source.max_record_bytes",
                format_size(least)
            )
        }
        None => "lower plan.window_records or source.max_record_bytes: no limit would do".to_owned(),
    };
    vec![Problem::new(file, "process.memory_limit", message, &remedy)]
}

/// The least limit that can be divided, in whole MiB.
fn least(config: &Config, schema: &Schema) -> Option<u64> {
    let (mut below, mut enough) = (0, 1 << 24);
    divide(config, schema, enough * MIB)?;
    while enough - below > 1 {
        let middle = below + (enough - below) / 2;
        match divide(config, schema, middle * MIB) {
            Some(_) => enough = middle,
            None => below = middle,
        }
    }
    Some(enough * MIB)
}

impl Division {
    /// The limits that were lowered: the key, what the configuration says, and what it comes to.
    pub fn lowered(&self, config: &Config) -> Vec<(&'static str, u64, u64)> {
        let (asked, own) = (unlimited(config), &self.bounds);
        let pairs = [
            ("batch.max_bytes", asked.max_batch_bytes, own.max_batch_bytes),
            ("pairs of values in the model", asked.max_edges, own.max_edges),
            ("state.max_budget_entries", asked.max_budget_entries as u64, own.max_budget_entries as u64),
            ("lines remembered as said", asked.max_said_lines as u64, own.max_said_lines as u64),
            ("lines that wait", asked.max_waiting_lines as u64, own.max_waiting_lines as u64),
        ];
        pairs.into_iter().filter(|(_, asked, own)| own < asked).collect()
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
