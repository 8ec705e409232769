//! Shards and deltas of the ledger. What a ledger has merged it writes as shards that make the same ledger, and a delta that
//! is applied once more changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::ledger::SHARDS;
use throng::ledger::classes::Ledger;
use throng::ledger::delta::LedgerDelta;
use throng::ledger::said::Said;
use throng::ledger::supporters::{SupportLimits, Supporters};
use throng::ledger::tally::{Keeps, Tally};

const DAY_MS: i64 = 86_400_000;

fn empty(k: usize) -> Ledger {
    let mut ledger = Ledger::new(k, 86_400, 10_000);
    let limits = SupportLimits { window_ms: DAY_MS, min_tenure: 3, max_classes: 4, max_entries: 10_000 };
    ledger.keep_supporters(Supporters::new(limits));
    ledger.keep_tally(Tally::new(DAY_MS, 10_000, &[(0, Keeps::Everything), (1, Keeps::Few { l: 2 })]));
    ledger.keep_said(Said::new(DAY_MS, 10_000));
    ledger
}

/// All that a ledger writes: classes with supporters, tally, what was said.
fn shards(ledger: &Ledger) -> Vec<[Vec<u8>; 3]> {
    let of = |shard| {
        let (tally, said) = (ledger.tally().expect("kept"), ledger.said().expect("kept"));
        [ledger.shard_to_bytes(shard), tally.shard_to_bytes(shard), said.shard_to_bytes(shard)]
    };
    (0..SHARDS).map(of).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    let k = 2 + usize::from(kind / 4) % 4;
    let mut ledger = empty(k);
    let read = match kind % 4 {
        0 => ledger.merge_shard(data),
        1 => ledger.tally_mut().expect("kept").merge_shard(data),
        2 => ledger.said_mut().expect("kept").merge_shard(data),
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
    let mut again = empty(k);
    for [classes, tally, said] in &written {
        again.merge_shard(classes).expect("what was written");
        again.tally_mut().expect("kept").merge_shard(tally).expect("what was written");
        again.said_mut().expect("kept").merge_shard(said).expect("what was written");
    }
    assert!(shards(&again) == written, "read again, it is another ledger");
});
