use super::super::said::SaidDelta;
use super::super::supporters::SupportDelta;
use super::super::tally::Showing;
use super::super::tally::TallyDelta;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Event = (u8, u32, u64);

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0u8..5, 0u32..200, 1u64..9), 0..80)
}

fn class(n: u8) -> u128 {
    u128::from(n) << 121 | u128::from(n)
}

fn filled(k: usize, events: &[Event]) -> Ledger {
    let mut ledger = Ledger::new(k, 50, 1000);
    for &(c, time, subject) in events {
        ledger.apply(&LedgerDelta {
            time,
            classes: vec![(class(c), 1)],
            subjects: vec![subject],
            ..LedgerDelta::default()
        });
    }
    ledger
}

fn bytes(ledger: &Ledger) -> Vec<Vec<u8>> {
    (0..SHARDS).map(|s| ledger.shard_to_bytes(s)).collect()
}

proptest! {
    #[test]
    fn support_is_the_number_of_distinct_fresh_subjects(events in events(), now in 0i64..260, k in 2usize..5) {
        let ledger = filled(k, &events);
        for c in 0..5 {
            let mut latest: BTreeMap<u64, u32> = BTreeMap::new();
            for (_, t, s) in events.iter().filter(|e| e.0 == c) {
                let known = latest.entry(*s).or_default();
                *known = (*known).max(*t);
            }
            let truth = latest.values().filter(|t| now + 1 - i64::from(**t) <= 50).count();
            let mut out = vec![0; k];
            prop_assert_eq!(ledger.at(now * 1000).fresh_subjects(class(c), &mut out), truth.min(k));
        }
    }

    #[test]
    fn order_repetition_and_merging_do_not_matter(a in events(), b in events(), k in 2usize..5) {
        let together: Vec<Event> = a.iter().chain(&b).chain(&a).copied().collect();
        let mut reversed = together.clone();
        reversed.reverse();
        let mut merged = filled(k, &b);
        for shard in bytes(&filled(k, &a)) {
            merged.merge_shard(&shard).unwrap();
        }
        prop_assert_eq!(bytes(&filled(k, &together)), bytes(&filled(k, &reversed)));
        prop_assert_eq!(bytes(&filled(k, &together)), bytes(&merged));
    }

    #[test]
    fn expiry_changes_no_support(events in events(), now in 0i64..260, k in 2usize..5) {
        let mut ledger = filled(k, &events);
        let support = |l: &Ledger, c| l.at(now * 1000).fresh_subjects(class(c), &mut vec![0; k]);
        let before: Vec<usize> = (0..5).map(|c| support(&ledger, c)).collect();
        for shard in 0..SHARDS {
            ledger.expire(shard, now * 1000);
        }
        let after: Vec<usize> = (0..5).map(|c| support(&ledger, c)).collect();
        prop_assert_eq!(before, after);
        ledger.apply(&LedgerDelta { time: 300, classes: vec![(class(0), 1)], subjects: vec![3], ..LedgerDelta::default() });
        prop_assert!(ledger.classes() <= 5);
    }

    #[test]
    fn a_delta_survives_its_bytes(
        classes in prop::collection::vec((any::<u128>(), prop::collection::vec(any::<u64>(), 0..4)), 0..6),
        showings in prop::collection::vec((any::<u32>(), any::<u128>(), any::<u64>(), any::<u64>()), 0..4),
        cut in any::<u16>(),
    ) {
        let showing = |&(attribute, class, value, subject): &_| Showing { attribute, class, value, subject };
        let mut showings: Vec<Showing> = showings.iter().map(showing).collect();
        showings.sort_unstable();
        showings.dedup();
        let support = SupportDelta { sequence: 4, time_ms: 7_000, people: vec![2, 5], pairs: vec![(1, 2, 3)] };
        let delta = LedgerDelta {
            support,
            time: 7,
            classes: classes.iter().map(|(c, s)| (*c, u32::try_from(s.len()).unwrap())).collect(),
            subjects: classes.iter().flat_map(|(_, s)| s.clone()).collect(),
            said: SaidDelta(classes.iter().map(|(c, _)| (*c, 9_000)).collect()),
            tally: if showings.is_empty() { TallyDelta::default() } else { TallyDelta { time_ms: 7_654, sequence: 7, showings } },
        };
        let bytes = delta.to_bytes();
        prop_assert_eq!(LedgerDelta::from_bytes(&bytes), Some(delta.clone()));
        let cut = usize::from(cut) % bytes.len();
        // What is whole without its last showings is another delta; it is sealed against being cut.
        let read = LedgerDelta::from_bytes(&bytes[..cut]);
        prop_assert!(read.is_none_or(|read| read.classes == delta.classes && read.tally.showings.len() < delta.tally.showings.len()));
    }
}

#[test]
fn a_full_ledger_understates() {
    let mut ledger = Ledger::new(2, 50, 1);
    let delta = |c| LedgerDelta { time: 9, classes: vec![(class(c), 1)], subjects: vec![4], ..LedgerDelta::default() };
    assert!(ledger.apply(&delta(1)));
    assert!(!ledger.apply(&delta(2)));
    assert_eq!((ledger.classes(), ledger.unrecorded()), (1, 1));
    assert_eq!(ledger.at(9000).fresh_subjects(class(2), &mut [0; 2]), 0);
}
