//! Benchmark from codes to verified fragments: treatment, recount, and the search for a plan.
//!
//! Wearable batches with k = 5, warmed up with 200,000 records.
#![allow(missing_docs, reason = "what the macros of criterion make")]

#[allow(dead_code, reason = "every benchmark is a crate of its own and uses a part of what is here")]
#[path = "support/wearable.rs"]
mod wearable;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use throng::config::DiversityKind;
use wearable::Stand;

const WARM_RECORDS: usize = 200_000;

fn treatment(criterion: &mut Criterion) {
    for rows in [1_000, 10_000] {
        let mut stand = Stand::warm(rows, WARM_RECORDS / rows);
        let batch = stand.batch(rows);
        let proposal = stand.treat(&batch);
        let mut group = criterion.benchmark_group(format!("wearable/{rows}"));
        group.throughput(Throughput::Elements(rows as u64)).sample_size(20).measurement_time(Duration::from_secs(8));
        group.bench_function("treat", |bencher| bencher.iter(|| black_box(stand.treat(&batch))));
        group.bench_function("verify", |bencher| {
            bencher.iter_batched(
                || proposal.groups.clone(),
                |proposed| stand.verify(proposed, &batch),
                BatchSize::LargeInput,
            );
        });
        group.finish();
        if rows == 10_000 {
            let mut group = criterion.benchmark_group("wearable");
            group.sample_size(10);
            group.bench_function("make_plan", |bencher| bencher.iter(|| black_box(stand.make_plan())));
            group.finish();
        }
    }
}

fn models(criterion: &mut Criterion) {
    let rows = 10_000;
    for (name, diversity) in [("distinct", DiversityKind::Distinct), ("entropy", DiversityKind::Entropy)] {
        let mut stand = Stand::warm_and_diverse(diversity, rows, WARM_RECORDS / rows);
        let batch = stand.batch(rows);
        let proposal = stand.treat(&batch);
        eprintln!("{name}: {} of {rows} cells withheld", proposal.withheld_cells);
        let mut group = criterion.benchmark_group(format!("wearable/{rows}/{name} diversity"));
        group.throughput(Throughput::Elements(rows as u64)).sample_size(20).measurement_time(Duration::from_secs(8));
        group.bench_function("treat", |bencher| bencher.iter(|| black_box(stand.treat(&batch))));
        group.bench_function("verify", |bencher| {
            bencher.iter_batched(
                || proposal.groups.clone(),
                |proposed| stand.verify(proposed, &batch),
                BatchSize::LargeInput,
            );
        });
        let delta = stand.verify(proposal.groups.clone(), &batch).delta().clone();
        group.bench_function("apply", |bencher| bencher.iter(|| stand.ledger.apply(&delta)));
        group.finish();
    }
}

criterion_group!(benches, treatment, models);
criterion_main!(benches);
