use super::*;
use crate::records::digest::DigestKey;
use crate::records::schema::Schema;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const BASE: u128 = 5;

fn books() -> Vec<Codebook> {
    let schema = Schema::parse(
        "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"integer\"\nhierarchy = { kind = \"intervals\", min = 0, max = 9, origin = 0, widths = [5] }\n",
        "t.toml",
        Path::new("."),
    )
    .unwrap();
    schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &DigestKey([3; 32]), 100).unwrap()).collect()
}

fn empty(k: usize, limit: usize) -> Witnesses {
    Witnesses::new(k, limit, vec![Space { base: BASE, attributes: vec![0] }])
}

fn raw(value: u8, books: &mut [Codebook]) -> RawTuple {
    let text = value.to_string();
    let code = books[0].encode_canonical(&text);
    RawTuple { key: BASE.wrapping_add(books[0].digests(0)[code as usize]), base: BASE, texts: vec![text] }
}

type Event = (u8, u8, u32, u64);

fn class(n: u8) -> u128 {
    u128::from(n) << 121 | u128::from(n)
}

/// Class, value, time, subject; one delta an event, as if each had been a batch.
fn add(witnesses: &mut Witnesses, events: &[Event], books: &mut [Codebook]) {
    for &(c, value, time, subject) in events {
        let raw = raw(value, books);
        let seen = vec![Seen { class: class(c), subject, time, sequence: u64::from(time), raw: raw.key }];
        assert!(witnesses.apply(&WitnessDelta { seen, raws: vec![raw] }, books));
    }
}

fn all(witnesses: &Witnesses) -> Vec<Seen> {
    (0..SHARDS).flat_map(|shard| witnesses.shard(shard)).collect()
}

/// What the state keeps of witnesses: their raw tuples and entries.
fn written(witnesses: &Witnesses, books: &mut [Codebook]) -> WitnessDelta {
    let known = (0u8..10).map(|v| raw(v, books)).filter(|r| witnesses.numbers.contains_key(&r.key)).collect();
    WitnessDelta { seen: all(witnesses), raws: known }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0u8..3, 0u8..10, 0u32..60, 1u64..40), 0..150)
}

proptest! {
    #[test]
    fn order_repetition_and_merging_do_not_matter(a in events(), b in events(), k in 2usize..4) {
        let books = &mut books();
        let together: Vec<Event> = a.iter().chain(&b).chain(&a).copied().collect();
        let reversed: Vec<Event> = together.iter().rev().copied().collect();
        let [mut once, mut back, mut part, mut merged] = [(); 4].map(|()| empty(k, 10_000));
        add(&mut once, &together, books);
        add(&mut back, &reversed, books);
        add(&mut part, &a, books);
        add(&mut merged, &b, books);
        merged.apply(&written(&part, books), books);
        prop_assert_eq!(all(&once), all(&back));
        prop_assert_eq!(all(&once), all(&merged));
        prop_assert_eq!(once.entries(), all(&once).len());
    }

    #[test]
    fn a_restart_keeps_what_is_known_in_its_order(events in events(), k in 2usize..4) {
        let mut before = empty(k, 10_000);
        add(&mut before, &events, &mut books());
        // Other codes for the same values: what is read back does not depend on them.
        let mut fresh = books();
        for value in (0..10).rev() {
            raw(value, &mut fresh);
        }
        let mut after = empty(k, 10_000);
        after.apply(&written(&before, &mut books()), &mut fresh);
        prop_assert_eq!(all(&before), all(&after));
        for c in 0..3 {
            for witness in after.of_class(class(c)) {
                let text = fresh[0].canonical(after.raw_tuple(witness.raw)[0]);
                prop_assert!(events.iter().any(|e| (e.0, e.3) == (c, witness.subject) && e.1.to_string() == text));
            }
        }
    }

    #[test]
    fn a_class_keeps_the_latest(events in events(), k in 2usize..4) {
        let books = &mut books();
        let mut witnesses = empty(k, 10_000);
        add(&mut witnesses, &events, books);
        let mut expected = Vec::new();
        for c in 0..3 {
            let mut latest: BTreeMap<(u128, u64), u32> = BTreeMap::new();
            for (_, value, time, subject) in events.iter().filter(|e| e.0 == c) {
                let known = latest.entry((raw(*value, books).key, *subject)).or_default();
                *known = (*known).max(*time);
            }
            let mut order: Vec<(u32, u64, u128)> = latest.into_iter().map(|((raw, s), time)| (time, s, raw)).collect();
            order.sort_unstable_by(|a, b| b.cmp(a));
            let mut of_raw: BTreeMap<u128, usize> = BTreeMap::new();
            order.retain(|(_, _, raw)| {
                let same = of_raw.entry(*raw).or_default();
                *same += 1;
                *same <= k
            });
            order.truncate(PER_CLASS * k);
            expected.extend(order.into_iter().map(|(time, subject, raw)| Seen { class: class(c), subject, time, sequence: u64::from(time), raw }));
        }
        prop_assert_eq!(all(&witnesses), expected);
    }

    #[test]
    fn raw_tuples_go_with_their_last_use(events in events(), now in 0u32..80) {
        let books = &mut books();
        let mut witnesses = empty(2, 10_000);
        add(&mut witnesses, &events, books);
        for shard in 0..SHARDS {
            witnesses.expire(shard, |w| w.time > now);
        }
        let kept = all(&witnesses);
        prop_assert!(kept.iter().all(|s| s.time > now));
        prop_assert_eq!(witnesses.entries(), kept.len());
        let gone = witnesses.take_gone();
        for value in 0..10 {
            let key = raw(value, books).key;
            let used = kept.iter().any(|s| s.raw == key);
            prop_assert_eq!(witnesses.numbers.contains_key(&key), used);
            prop_assert_eq!(gone.contains(&key), !used && events.iter().any(|e| e.1 == value));
        }
    }
}

#[test]
fn full_witnesses_understate() {
    let books = &mut books();
    let mut witnesses = empty(2, 1);
    let one = raw(1, books);
    let seen = |subject| Seen { class: class(1), subject, time: 9, sequence: 9, raw: one.key };
    assert!(witnesses.apply(&WitnessDelta { seen: vec![seen(1)], raws: vec![one.clone()] }, books));
    assert!(!witnesses.apply(&WitnessDelta { seen: vec![seen(2)], raws: vec![] }, books));
    assert_eq!(all(&witnesses), [seen(1)]);
}

#[test]
fn a_raw_tuple_that_the_codebooks_read_otherwise_is_not_learned() {
    let books = &mut books();
    let mut witnesses = empty(2, 10);
    let mut wrong = raw(1, books);
    wrong.texts = vec!["2".to_owned()];
    let seen = vec![Seen { class: class(1), subject: 1, time: 9, sequence: 9, raw: wrong.key }];
    witnesses.apply(&WitnessDelta { seen, raws: vec![wrong] }, books);
    assert_eq!(all(&witnesses), []);
}
