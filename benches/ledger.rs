//! The ledger: recording a batch, asking about its classes, forgetting, and writing a shard down.
//!
//! The classes are those of wearable batches of 10,000 records, over a ledger that 200,000 records have filled.
#![allow(missing_docs, reason = "what the macros of criterion make")]

#[allow(dead_code, reason = "every benchmark is a crate of its own and uses a part of what is here")]
#[path = "support/wearable.rs"]
mod wearable;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use throng::ledger::classes::Ledger;
use wearable::Stand;

const ROWS: usize = 10_000;

fn ledger(criterion: &mut Criterion) {
    // The first batch of a fresh ledger records every class, a later one only those that need it.
    let mut fresh = Stand::warm(ROWS, 0);
    let first = fresh.release(ROWS).delta().clone();
    let mut stand = Stand::warm(ROWS, 20);
    let later = stand.release(ROWS).delta().clone();
    eprintln!("{} classes after {} batches", stand.ledger.classes(), 21);

    let (k, limit) = (stand.config.privacy.k, stand.config.state.max_ledger_classes);
    let mut group = criterion.benchmark_group("ledger");
    group.throughput(Throughput::Elements(first.classes.len() as u64));
    group.bench_function(format!("apply/{} new classes", first.classes.len()), |bencher| {
        bencher.iter_batched_ref(
            || Ledger::new(k, 24 * 3600, limit),
            |ledger| black_box(ledger.apply(&first)),
            BatchSize::LargeInput,
        );
    });
    group.bench_function(format!("well_supported/{} classes", first.classes.len()), |bencher| {
        let at = stand.ledger.at(stand.clock_ms);
        bencher.iter(|| first.classes.iter().filter(|(class, _)| at.well_supported(*class)).count());
    });
    group.throughput(Throughput::Elements(later.classes.len() as u64));
    group.bench_function(format!("apply/{} classes of a warm ledger", later.classes.len()), |bencher| {
        bencher.iter(|| black_box(stand.ledger.apply(&later)));
    });
    group.bench_function("to_bytes", |bencher| bencher.iter(|| black_box(later.to_bytes())));
    let shard = stand.ledger.classes() as u64 / throng::ledger::SHARDS as u64;
    group.throughput(Throughput::Elements(shard));
    group.bench_function("expire/one shard of 64", |bencher| bencher.iter(|| stand.ledger.expire(0, stand.clock_ms)));
    group.bench_function("shard_to_bytes/one shard of 64", |bencher| {
        bencher.iter(|| black_box(stand.ledger.shard_to_bytes(0)));
    });
    group.finish();
}

criterion_group!(benches, ledger);
criterion_main!(benches);
