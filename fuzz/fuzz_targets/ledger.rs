//! Merges shards and deltas of the ledger. A merged ledger is unchanged after writing and reading; a repeated delta
//! changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_core::ledger::SHARDS;
use throng_core::ledger::ledger_delta::LedgerDelta;
use throng_core::ledger::release_log::ReleaseLog;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::ledger::supporters::{SupportLimits, SupportShard, SupporterTable};
use throng_fuzz::survives;

const DAY_MS: i64 = 86_400_000;

fn empty() -> SubjectLedger {
    let limits = SupportLimits { window_ms: DAY_MS, min_tenure: 3, max_classes: 4, max_entries: 10_000 };
    SubjectLedger { supporters: Some(SupporterTable::new(limits)), release_log: Some(ReleaseLog::new(DAY_MS, 10_000)) }
}

/// Tenure and budgets, and the release log.
fn shards(ledger: &SubjectLedger) -> Vec<(SupportShard, Vec<(u128, i64)>)> {
    let (supporters, release_log) =
        (ledger.supporters.as_ref().expect("kept"), ledger.release_log.as_ref().expect("kept"));
    (0..SHARDS).map(|shard| (supporters.shard(shard), release_log.shard(shard))).collect()
}

fn merge(ledger: &mut SubjectLedger, (supporters, release_log): &(SupportShard, Vec<(u128, i64)>)) {
    ledger.supporters.as_mut().expect("kept").merge(supporters);
    ledger.release_log.as_mut().expect("kept").merge(release_log);
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
