//! Shards and deltas of the ledger. What a ledger has merged it writes as shards that make the same ledger, and a delta that
//! is applied once more changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_core::ledger::SHARDS;
use throng_core::ledger::delta::LedgerDelta;
use throng_core::ledger::per_subject::Ledger;
use throng_core::ledger::said::Said;
use throng_core::ledger::supporters::{SupportLimits, SupportShard, Supporters};
use throng_fuzz::survives;

const DAY_MS: i64 = 86_400_000;

fn empty() -> Ledger {
    let limits = SupportLimits { window_ms: DAY_MS, min_tenure: 3, max_classes: 4, max_entries: 10_000 };
    Ledger { supporters: Some(Supporters::new(limits)), said: Some(Said::new(DAY_MS, 10_000)) }
}

/// All that a ledger writes: tenure and budgets, and the release log.
fn shards(ledger: &Ledger) -> Vec<(SupportShard, Vec<(u128, i64)>)> {
    let (supporters, said) = (ledger.supporters.as_ref().expect("kept"), ledger.said.as_ref().expect("kept"));
    (0..SHARDS).map(|shard| (supporters.shard(shard), said.shard(shard))).collect()
}

fn merge(ledger: &mut Ledger, (supporters, said): &(SupportShard, Vec<(u128, i64)>)) {
    ledger.supporters.as_mut().expect("kept").merge(supporters);
    ledger.said.as_mut().expect("kept").merge(said);
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    let mut ledger = empty();
    if kind % 2 == 0 {
        let Some(read) = survives(data) else { return };
        merge(&mut ledger, &read);
    } else {
        let Some(delta) = survives::<LedgerDelta>(data) else { return };
        ledger.apply(&delta);
        let once = shards(&ledger);
        ledger.apply(&delta);
        assert!(shards(&ledger) == once, "applied twice, it is another ledger");
    }
    let written = shards(&ledger);
    let mut again = empty();
    written.iter().for_each(|shard| merge(&mut again, shard));
    assert!(shards(&again) == written, "read again, it is another ledger");
});
