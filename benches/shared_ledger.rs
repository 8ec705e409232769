//! What a ledger that instances share costs, without Kafka: `./dev bench shared_ledger`.
//!
//! Instances treat, verify and remember batches of generated wearable records, each of its own people; what each would tell is sealed as
//! for the topic, and taken in by all others when they have made one more batch. The same number of records by one, two, and up to fifty
//! instances: what is told, what taking it in costs, and what that comes to at a million records a second. Beside it stands what the model
//! of docs/scale.md says: that instances tell together what one would, and what they have not yet heard of each other.

#[allow(dead_code, reason = "the other benchmarks use the rest")]
#[path = "pipeline/machine.rs"]
mod machine;
#[allow(dead_code, reason = "the other benchmarks use the rest")]
#[path = "support/wearable.rs"]
mod wearable;

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng::generate::WearableSettings;
use throng::io::shared_ledger::{SharedTerms, Teller};
use throng::ledger::shared::SharedDelta;
use throng::records::sealer::Sealer;
use wearable::Stand;

/// Records of a batch of one instance.
const BATCH: usize = 2_000;
/// People in all.
const PEOPLE: u32 = 100_000;
/// Batches of one instance, where there are fifty.
const ROUNDS: usize = 10;
const MOST: usize = 50;
/// Records a second of all instances, for which the costs are told.
const RATE: f64 = 1_000_000.0;
/// A label and offsets in the topic, about.
const FRAME: usize = 60;

/// What so many instances told each other, and what it cost.
#[derive(Default)]
struct Outcome {
    /// Entries told, by the records that had been released before: in portions of a fiftieth of all.
    told: Vec<u64>,
    bytes: u64,
    /// Bytes of the last tenth of the records.
    late_bytes: u64,
    taken: u64,
    taking: Duration,
    telling: Duration,
    classes: usize,
    ledger_bytes: usize,
}

fn main() {
    // `cargo test --benches` runs this too, without the flag: then it is enough that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("the cost of a shared ledger is measured with `./dev bench shared_ledger`");
        return;
    }
    let records = BATCH * ROUNDS * MOST;
    println!(
        "Machine: {}. {records} wearable records of {PEOPLE} people, batches of {BATCH}, `batch_crowd = 0`.\n",
        machine::description()
    );
    println!(
        "| instances | entries told | by the model | bytes a record | of the last tenth | sealing, µs a batch | taking in, ns an entry | \
         classes | ledger, MiB | at 1 M records/s: read by each, MB/s | share of a core |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut alone: Option<Vec<u64>> = None;
    for instances in [1, 2, 4, 10, 25, 50] {
        let outcome = simulated(instances, records);
        let told: u64 = outcome.told.iter().sum();
        let model = alone.as_ref().map_or(told as f64, |alone| predicted(alone, instances));
        row(instances, records, &outcome, told, model);
        alone.get_or_insert(outcome.told);
    }
}

fn row(instances: usize, records: usize, outcome: &Outcome, told: u64, model: f64) {
    let others = (instances - 1) as f64 / instances as f64;
    let bytes = outcome.bytes as f64 / records as f64;
    let entry = if outcome.taken == 0 { 0.0 } else { outcome.taking.as_secs_f64() / outcome.taken as f64 };
    println!(
        "| {instances} | {told} | {model:.0} | {bytes:.1} | {:.1} | {:.0} | {:.0} | {} | {:.1} | {:.1} | {:.2} |",
        outcome.late_bytes as f64 / (records / 10) as f64,
        outcome.telling.as_secs_f64() * 1e6 / (records / BATCH) as f64,
        entry * 1e9,
        outcome.classes,
        outcome.ledger_bytes as f64 / f64::from(1 << 20),
        RATE * bytes * others / 1e6,
        RATE * others * told as f64 / records as f64 * entry,
    );
}

/// What the model says that `instances` tell together: what one would, and what each tells before it has heard of the others. `alone` is
/// what one has told, by the records before it.
fn predicted(alone: &[u64], instances: usize) -> f64 {
    let all: u64 = alone.iter().sum();
    // The first two batches of each are made before anything is heard: as many records as 2 · instances batches.
    let portion = ROUNDS * MOST / alone.len();
    let unheard = |batches: usize| -> f64 {
        let whole: u64 = alone.iter().take(batches / portion).sum();
        let rest =
            alone.get(batches / portion).map_or(0.0, |next| *next as f64 * (batches % portion) as f64 / portion as f64);
        whole as f64 + rest
    };
    all as f64 - unheard(2 * instances) + instances as f64 * unheard(2)
}

/// So many instances, each with the same share of `records`.
fn simulated(instances: usize, records: usize) -> Outcome {
    let people = PEOPLE / u32::try_from(instances).expect("few instances");
    let stand = |seed: usize| {
        let settings = WearableSettings { seed: 1 + seed as u64, subjects: people, ..WearableSettings::default() };
        Stand::sharing(settings, BATCH, 5)
    };
    let mut stands: Vec<Stand> = (0..instances).map(stand).collect();
    let teller = Teller {
        sealer: Sealer::new(&[7; 32]),
        group: "throng".to_owned(),
        instance: uuid::Uuid::from_u128(7).to_string(),
        terms: SharedTerms::default(),
        wall: Arc::new(|| i64::MAX),
        has_spoken: true,
    };
    let portion = records / BATCH / 50;
    let mut outcome = Outcome { told: vec![0; 50], ..Outcome::default() };
    let mut unheard: Vec<(usize, Vec<u8>)> = Vec::new();
    for batch in 0..records / BATCH {
        let at = batch % instances;
        if at == 0 {
            hear(&mut stands, &std::mem::take(&mut unheard), &mut outcome);
        }
        let stand = &mut stands[at];
        let clock_ms = stand.clock_ms;
        let verified = stand.release(BATCH);
        let begun = Instant::now();
        let sealed = teller.records(verified.delta(), batch as u64, clock_ms);
        outcome.telling += begun.elapsed();
        let bytes = sealed.iter().map(|record| (record.len() + FRAME) as u64).sum::<u64>();
        outcome.bytes += bytes;
        if batch >= records / BATCH / 10 * 9 {
            outcome.late_bytes += bytes;
        }
        for mut part in SharedDelta::parts(verified.delta(), clock_ms, 512 * 1024) {
            outcome.told[batch / portion] += part.entries() as u64;
            // Nobody is at two instances.
            part.subjects.iter_mut().for_each(|subject| *subject ^= (at as u64) << 56);
            unheard.push((at, teller.sealer.seal(b"", &part.to_bytes())));
        }
    }
    hear(&mut stands, &unheard, &mut outcome);
    outcome.classes = stands[0].ledger.classes();
    outcome.ledger_bytes = stands[0].ledger.approximate_bytes();
    outcome
}

/// Everybody takes in what the others have told, from the sealed bytes on.
fn hear(stands: &mut [Stand], told: &[(usize, Vec<u8>)], outcome: &mut Outcome) {
    let sealer = Sealer::new(&[7; 32]);
    for (hearer, stand) in stands.iter_mut().enumerate() {
        let begun = Instant::now();
        for (_, sealed) in told.iter().filter(|(teller, _)| *teller != hearer) {
            let plain = sealer.open(b"", sealed).expect("as it was sealed");
            let delta = SharedDelta::from_bytes(&plain).expect("as it was told");
            outcome.taken += delta.entries() as u64;
            let time = u32::try_from(stand.clock_ms / 1000).expect("before 2106");
            assert!(stand.ledger.learn(&delta.at(time)), "the ledger has room");
        }
        outcome.taking += begun.elapsed();
    }
}
