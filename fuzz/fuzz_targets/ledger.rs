//! Shards and deltas of the ledger. What a ledger has merged it writes as shards that make the same ledger, and a delta that
//! is applied once more changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::ledger::SHARDS;
use throng::ledger::delta::LedgerDelta;
use throng::ledger::per_subject::Ledger;
use throng::ledger::said::Said;
use throng::ledger::supporters::{SupportLimits, Supporters};

const DAY_MS: i64 = 86_400_000;

fn empty() -> Ledger {
    let mut ledger = Ledger::default();
    let limits = SupportLimits { window_ms: DAY_MS, min_tenure: 3, max_classes: 4, max_entries: 10_000 };
    ledger.supporters = Some(Supporters::new(limits));
    ledger.said = Some(Said::new(DAY_MS, 10_000));
    ledger
}

/// All that a ledger writes: tenure and budgets, and the release log.
fn shards(ledger: &Ledger) -> Vec<[Vec<u8>; 2]> {
    let said = ledger.said.as_ref().expect("kept");
    (0..SHARDS).map(|shard| [ledger.shard_to_bytes(shard), said.shard_to_bytes(shard)]).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    let mut ledger = empty();
    let read = match kind % 3 {
        0 => ledger.merge_shard(data),
        1 => ledger.said.as_mut().expect("kept").merge_shard(data),
        _ => LedgerDelta::from_bytes(data).map(|delta| {
            assert_eq!(delta.to_bytes(), data, "a delta is written as it was read");
            ledger.apply(&delta);
            let once = shards(&ledger);
            ledger.apply(&delta);
            assert!(shards(&ledger) == once, "applied twice, it is another ledger");
        }),
    };
    if read.is_none() {
        return;
    }
    let written = shards(&ledger);
    let mut again = empty();
    for [supporters, said] in &written {
        again.merge_shard(supporters).expect("what was written");
        again.said.as_mut().expect("kept").merge_shard(said).expect("what was written");
    }
    assert!(shards(&again) == written, "read again, it is another ledger");
});
