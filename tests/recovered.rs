//! Checks that the ledger after a restart equals the ledger of the previous process, for any crash point.

use crate::support;

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use support::copies;
use throng::daemon::state::records::{BatchIntent, Flush, StreamProgress};
use throng::daemon::state::store::StateStore;
use throng_core::ledger::ledger_delta::LedgerDelta;
use throng_core::ledger::release_log::{ReleaseLog, ReleaseLogDelta};
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::ledger::supporters::{SupportDelta, SupportLimits, SupporterTable};

const WINDOW_MS: i64 = 100_000;
const SHARDS: usize = throng_core::ledger::SHARDS;

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    No,
    Ordered,
    /// The batch is released, and its effect is not stored.
    Killed,
}

#[derive(Clone, Debug)]
struct Batch {
    step_s: u32,
    people: BTreeSet<u64>,
    counted: BTreeSet<(u8, u64)>,
    end: End,
}

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let end = prop_oneof![3 => Just(End::No), 2 => Just(End::Ordered), 2 => Just(End::Killed)];
    let people = prop::collection::btree_set(0u64..6, 0..5);
    let counted = prop::collection::btree_set((0u8..5, 0u64..6), 0..7);
    let one = (0u32..60, people, counted, end);
    prop::collection::vec(one.prop_map(|(step_s, people, counted, end)| Batch { step_s, people, counted, end }), 1..14)
}

fn class(n: u8) -> u128 {
    u128::from(n) << 125 | u128::from(n)
}

fn ledger() -> SubjectLedger {
    let mut ledger = SubjectLedger::default();
    let limits = SupportLimits { window_ms: WINDOW_MS, min_tenure: 3, max_classes: 2, max_entries: 1000 };
    ledger.supporters = Some(SupporterTable::new(limits));
    ledger.release_log = Some(ReleaseLog::new(WINDOW_MS, 1000));
    ledger
}

fn delta(batch: &Batch, sequence: u64, time: u32) -> LedgerDelta {
    let time_ms = i64::from(time) * 1000;
    LedgerDelta {
        support: SupportDelta {
            sequence,
            time_ms,
            people: batch.people.iter().copied().collect(),
            pairs: batch.counted.iter().map(|(c, subject)| (7, *subject, class(*c))).collect(),
        },
        said: ReleaseLogDelta(batch.people.iter().map(|p| (class(*p as u8), time_ms + WINDOW_MS / 2)).collect()),
    }
}

fn intent(sequence: u64, age_ms: i64, delta: &LedgerDelta) -> BatchIntent {
    BatchIntent {
        attempt: sequence,
        ranges: Vec::new(),
        flush: Flush::No,
        after: StreamProgress { sequence, age_ms, ..StreamProgress::default() },
        ledger: Some(delta.clone()),
        sampled: Vec::new(),
        held: Vec::new(),
        settled: Vec::new(),
        plan: None,
        baseline: None,
        evidence: None,
        references: Vec::new(),
        met: None,
        profiles: 0,
        series: None,
        series_place: None,
        idle: Vec::new(),
        sources: Vec::new(),
    }
}

fn answers(ledger: &SubjectLedger, now_ms: i64) -> Vec<String> {
    let mut told = Vec::new();
    let supporters = ledger.supporters.as_ref().expect("they are kept");
    for subject in 0..6u64 {
        let mut supported = Vec::new();
        supporters.supported_classes(7, subject, now_ms, &mut supported);
        told.push(format!("{subject} is settled: {}, {supported:?}", supporters.has_tenure(subject, now_ms)));
        let said = ledger.release_log.as_ref().expect("it is kept").has_current_entry(class(subject as u8), now_ms);
        told.push(format!("{subject} has said it: {said}"));
    }
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn ledger_after_a_restart_gives_the_same_answers(batches in batches(), later_s in 0u32..120) {
        let home = tempfile::tempdir().expect("a directory");
        let open = |path: &Path, ledger: &mut SubjectLedger| {
            StateStore::open(path, Some(b"a secret of the tests"), ledger).expect("a state")
        };
        let (mut straight, mut found) = (self::ledger(), self::ledger());
        let mut path = home.path().join("state");
        let (mut store, ..) = open(&path, &mut found);
        let mut time = 0;
        for (sequence, batch) in (1u64..).zip(&batches) {
            time += batch.step_s;
            let (age_ms, delta) = (i64::from(time) * 1000, delta(batch, sequence, time));
            let intent = intent(sequence, age_ms, &delta);
            store.write_intent(&intent, &found).expect("a write");
            for ledger in [&mut straight, &mut found] {
                ledger.apply(&delta);
                ledger.expire(sequence as usize % SHARDS, age_ms);
            }
            store.mark_released(intent);
            if batch.end == End::Ordered {
                store.flush(&found).expect("a write");
            }
            if batch.end != End::No {
                drop(store);
                found = self::ledger();
                // A process started by another test may briefly hold the lock of the original.
                let copy = home.path().join(sequence.to_string());
                copies::tree(&path, &copy);
                path = copy;
                let (opened, _, recovered) = open(&path, &mut found);
                store = opened;
                prop_assert_eq!(recovered.intent.is_some(), batch.end == End::Killed);
                if let Some(intent) = recovered.intent {
                    store.resolve_recovered_intent(intent, true, &mut found).expect("a write");
                }
            }
            for now_ms in [age_ms, age_ms + i64::from(later_s) * 1000] {
                prop_assert_eq!(answers(&straight, now_ms), answers(&found, now_ms), "behind batch {}", sequence);
            }
        }
    }
}
