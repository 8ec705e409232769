use super::*;
use crate::values::raw_batch::{RawBatch, RecordPosition};
use crate::values::schema::Schema;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Subject and a value.
const WIDTH: usize = 2;

fn limits(max_records: u64, max_bytes: u64, min_subjects: usize) -> BatchLimits {
    let second = Duration::from_secs(1);
    BatchLimits { max_records, max_bytes, max_wait: second, max_age: second, min_subjects }
}

fn subject(kind: &str) -> Option<SubjectAttribute> {
    let schema = format!("name = \"s\"\n[[attribute]]\nname = \"person\"\ntype = \"{kind}\"\nrole = \"subject\"\n");
    Schema::parse(&schema, "s.toml", Path::new(".")).expect("a schema").subject_attribute()
}

/// Elements share a subject, or have one each.
#[derive(Clone, Debug)]
struct PartitionMessage {
    partition: i32,
    shared: bool,
    elements: Vec<(Option<u8>, usize)>,
}

fn messages() -> impl Strategy<Value = Vec<PartitionMessage>> {
    let subject = prop::option::weighted(0.9, prop_oneof![3 => Just(0u8), 2 => 1u8..6]);
    let elements = prop::collection::vec((subject, 0usize..9), 1..6);
    let message = (0i32..2, any::<bool>(), elements);
    prop::collection::vec(message, 0..40).prop_map(|all| {
        all.into_iter().map(|(partition, shared, elements)| PartitionMessage { partition, shared, elements }).collect()
    })
}

fn append(raw: &mut RawBatch, message: &PartitionMessage, offset: i64) -> Vec<(Option<String>, String)> {
    let coordinate = RecordPosition { topic: 0, partition: message.partition, offset, element: 0 };
    let name = |subject: Option<u8>| subject.map(|number| format!("p{number}"));
    let first = name(message.elements[0].0);
    raw.push_row(coordinate);
    if let (true, Some(first)) = (message.shared, &first) {
        raw.set(0, RawToken::Text(first));
    }
    let elements = message.elements.clone();
    raw.explode(elements, u64::MAX, |raw, (subject, length)| {
        if let (false, Some(name)) = (message.shared, name(subject)) {
            raw.set(0, RawToken::Text(&name));
        }
        raw.set(1, RawToken::Number(&"7".repeat(length)));
        Ok(())
    })
    .expect("nothing is refused");
    let subject = |own: Option<u8>| if message.shared { first.clone() } else { name(own) };
    message.elements.iter().map(|(own, length)| (subject(*own), "7".repeat(*length))).collect()
}

fn rows_of(raw: &RawBatch) -> Vec<(RecordPosition, Option<String>, String)> {
    let text = |token: RawToken<'_>| match token {
        RawToken::Text(text) | RawToken::Number(text) => Some(text.to_owned()),
        _ => None,
    };
    let row = |at: usize| (raw.coordinates()[at], text(raw.token(at, 0)), text(raw.token(at, 1)).unwrap_or_default());
    (0..raw.rows()).map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Compares with a count, for any interleaving.
    #[test]
    fn share_of_a_subject_is_that_of_a_count_by_partition(all in messages(), most in 1u64..40, people in 1usize..6) {
        let limits = limits(most, u64::MAX, people);
        let mut batch = InputBatch::new(WIDTH, 0);
        let mut share = SubjectShare::new(subject("string"), &limits);
        let mut used: BTreeMap<(i32, Option<String>), u64> = BTreeMap::new();
        let mut expected = Vec::new();
        for (offset, message) in (0i64..).zip(&all) {
            let mark = batch.raw.mark();
            let rows = append(&mut batch.raw, message, offset);
            let places: Vec<RecordPosition> = batch.raw.coordinates()[mark.rows()..].to_vec();
            share.admit(&mut batch, mark, (0, message.partition), 100);
            for (place, (subject, value)) in places.into_iter().zip(rows) {
                let used = used.entry((message.partition, subject.clone())).or_default();
                *used += 1;
                if subject.is_none() || *used <= (most / people as u64).max(1) {
                    expected.push((place, subject, value));
                }
            }
        }
        let total: usize = all.iter().map(|message| message.elements.len()).sum();
        let kept = expected.len();
        let subjects: HashSet<&String> = used.keys().filter_map(|(_, subject)| subject.as_ref()).collect();
        prop_assert_eq!(share.is_enough(&batch), subjects.len() >= people);
        prop_assert_eq!(rows_of(&batch.raw), expected);
        prop_assert_eq!(batch.thinned_rows() as usize, total - kept);

        // Replay with partition 1 first.
        let mut again = InputBatch::new(WIDTH, 0);
        let mut share = SubjectShare::new(subject("string"), &limits);
        let mut order: Vec<(i64, &PartitionMessage)> = (0i64..).zip(&all).collect();
        order.sort_by_key(|(_, message)| -message.partition);
        for (offset, message) in order {
            let mark = again.raw.mark();
            append(&mut again.raw, message, offset);
            share.admit(&mut again, mark, (0, message.partition), 100);
        }
        let sorted = |batch: &InputBatch| {
            let mut rows = rows_of(&batch.raw);
            rows.sort();
            rows
        };
        prop_assert_eq!(sorted(&again), sorted(&batch));
        prop_assert_eq!(&again.thinned, &batch.thinned);
        prop_assert_eq!(again.kept_bytes, batch.kept_bytes);
    }
}

/// Dropped values use no memory.
#[test]
fn bytes_of_one_subject_do_not_close_a_batch() {
    let limits = limits(1000, 10_000, 5);
    let mut batch = InputBatch::new(WIDTH, 0);
    let mut share = SubjectShare::new(subject("string"), &limits);
    for offset in 0..500 {
        let mark = batch.raw.mark();
        let flood = PartitionMessage { partition: 0, shared: false, elements: vec![(Some(0), 300)] };
        append(&mut batch.raw, &flood, offset);
        share.admit(&mut batch, mark, (0, 0), 300);
    }
    assert!(!share.is_full(&batch, &limits), "{} bytes", batch.weight());
    assert!(batch.weight() <= 2400 && batch.raw.arena_bytes() <= 2400);
    assert_eq!(batch.records(), 500);
    for (number, offset) in (1u8..=4).zip(500..) {
        let mark = batch.raw.mark();
        append(
            &mut batch.raw,
            &PartitionMessage { partition: 0, shared: false, elements: vec![(Some(number), 9)] },
            offset,
        );
        share.admit(&mut batch, mark, (0, 0), 9);
    }
    assert!(share.is_enough(&batch));
}

/// Unreadable names are no subject.
#[test]
fn spellings_of_one_name_share_one_limit() {
    let text = ["flood", "flood ", " flood", "flood\u{200b}", "flood\t"].map(RawToken::Text);
    let number = [
        RawToken::Number("7"),
        RawToken::Text("07"),
        RawToken::Number("7.0"),
        RawToken::Number("7e0"),
        RawToken::Untyped(" 7"),
    ];
    let unread = ["a", "b", "c", "d", "e", "f"].map(RawToken::Text);
    let cases = [("string", &text[..], 20), ("integer", &number[..], 20), ("integer", &unread[..], 300)];
    for (kind, spellings, kept) in cases {
        let limits = limits(100, 1 << 20, 5);
        let mut batch = InputBatch::new(WIDTH, 0);
        let mut share = SubjectShare::new(subject(kind), &limits);
        for offset in 0..300 {
            let mark = batch.raw.mark();
            batch.raw.push_row(RecordPosition { topic: 0, partition: 0, offset, element: 0 });
            batch.raw.set(0, spellings[offset as usize % spellings.len()]);
            share.admit(&mut batch, mark, (0, 0), 1);
        }
        assert_eq!(batch.raw.rows(), kept, "{kind}");
        assert!(!share.is_enough(&batch) && !share.is_full(&batch, &limits), "{kind}");
    }
}

#[test]
fn bytes_of_rejected_messages_are_not_kept() {
    let limits = limits(100, 1000, 5);
    let mut batch = InputBatch::new(WIDTH, 0);
    let mut share = SubjectShare::new(subject("string"), &limits);
    let mark = batch.raw.mark();
    share.admit(&mut batch, mark, (0, 0), 5000);
    assert_eq!(batch.weight(), 0);
}

#[test]
fn rows_without_a_subject_share_one_limit_of_bytes() {
    let limits = limits(100, 1000, 5);
    let mut batch = InputBatch::new(WIDTH, 0);
    let mut share = SubjectShare::new(subject("string"), &limits);
    for offset in 0..300 {
        let mark = batch.raw.mark();
        append(&mut batch.raw, &PartitionMessage { partition: 0, shared: false, elements: vec![(None, 1)] }, offset);
        share.admit(&mut batch, mark, (0, 0), 1);
    }
    assert_eq!((batch.raw.rows(), batch.thinned_rows()), (200, 100));
    assert!(!share.is_enough(&batch) && !share.is_full(&batch, &limits));
}

#[test]
fn revoked_partition_releases_its_subject_share() {
    let limits = limits(10, u64::MAX, 2);
    let mut batch = InputBatch::new(WIDTH, 0);
    let mut share = SubjectShare::new(subject("string"), &limits);
    for (offset, partition) in [0, 0, 1, 1, 1, 1, 1, 1].into_iter().enumerate() {
        let mark = batch.raw.mark();
        let one = PartitionMessage { partition, shared: false, elements: vec![(Some(partition as u8), 1)] };
        append(&mut batch.raw, &one, offset as i64);
        share.admit(&mut batch, mark, (0, partition), 1);
    }
    assert!(share.is_enough(&batch));
    assert_eq!((batch.records(), batch.thinned_rows()), (8, 1));
    share.forget((0, 1));
    batch.count_unselected((0, 1), 3);
    batch.forget_partition((0, 1));
    assert!(!share.is_enough(&batch));
    assert_eq!((batch.records(), batch.thinned_rows()), (2, 0));
}

#[test]
fn rejected_records_and_tombstones_count_up_to_the_rows() {
    let limits = limits(100, u64::MAX, 5);
    let mut batch = InputBatch::new(WIDTH, 0);
    let mut share = SubjectShare::new(subject("string"), &limits);
    for number in 0..40u8 {
        let mark = batch.raw.mark();
        append(&mut batch.raw, &PartitionMessage { partition: 0, shared: false, elements: vec![(Some(number), 1)] }, 0);
        share.admit(&mut batch, mark, (0, 0), 1);
    }
    batch.tombstones.insert((0, 1), 500);
    assert!(!share.is_full(&batch, &limits), "40 rows and 500 tombstones");
    batch.tombstones.insert((0, 1), 800);
    assert!(share.is_full(&batch, &limits), "memory is bounded");
    batch.tombstones.clear();
    batch.count_unselected((0, 1), 5000);
    assert!(!share.is_full(&batch, &limits), "unselected records take no memory and close no batch");
    assert_eq!(batch.records(), 5040);
    for number in 40..99u8 {
        let mark = batch.raw.mark();
        append(&mut batch.raw, &PartitionMessage { partition: 0, shared: false, elements: vec![(Some(number), 1)] }, 0);
        share.admit(&mut batch, mark, (0, 0), 1);
    }
    assert!(!share.is_full(&batch, &limits), "99 rows");
    batch.tombstones.insert((0, 1), 1);
    assert!(share.is_full(&batch, &limits), "99 rows and a tombstone");
}
