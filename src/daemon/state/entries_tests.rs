use super::*;
use proptest::prelude::*;

fn row(partition: i32, offset: i64) -> StoredRow {
    StoredRow {
        ordinal: offset.unsigned_abs(),
        subject: 7,
        coordinate: RecordPosition { topic: 0, partition, offset, element: 0 },
        waited: 1,
        released: false,
        parts: None,
        cells: vec!["1".to_owned()],
    }
}

fn codec(secret: &[u8], group: &str) -> EntryCodec {
    EntryCodec::new(&StateKeys::derive(secret), group)
}

fn progress(next: i64) -> ChangelogEntry {
    ChangelogEntry::Progress(Box::new(PartitionProgress {
        author: "state".to_owned(),
        sequence: 3,
        next,
        binding: StateBinding::default(),
    }))
}

fn read(
    codec: &EntryCodec,
    records: &[ChangelogRecord],
    places: &[InputPartition],
) -> Result<RestoredPartitions, UnreadableEntry> {
    let mut reader = EntryReader::new(codec.clone());
    records.iter().for_each(|record| reader.add_record((&record.key, record.value.as_deref())));
    reader.into_restored(|place| places.contains(&place))
}

#[test]
fn entry_reader_ignores_other_groups_and_partitions() {
    let (ours, theirs) = (codec(b"secret", "a"), codec(b"secret", "ab"));
    let records = [
        ours.set((0, 1), &progress(5)),
        theirs.set((0, 1), &progress(9)),
        ours.set((1, 1), &progress(7)),
        ours.set((0, 1), &ChangelogEntry::Said(3, 50)),
    ];
    let restored = read(&ours, &records, &[(0, 1)]).expect("readable");
    assert_eq!(restored.progress.get(&(0, 1)).map(|progress| progress.next), Some(5));
    assert_eq!((restored.progress.len(), restored.release_entries.as_slice()), (1, &[(3, 50)][..]));
}

#[test]
fn entry_of_another_secret_fails_the_restore() {
    let (ours, theirs) = (codec(b"secret", "a"), codec(b"another", "a"));
    let records = [ours.set((0, 0), &progress(5)), theirs.set((0, 0), &progress(9))];
    assert_eq!(read(&ours, &records, &[(0, 0)]).expect_err("one does not open"), UnreadableEntry);
}

#[test]
fn replaced_unreadable_entry_is_ignored() {
    let ours = codec(b"secret", "a");
    let mut torn = ours.set((0, 0), &progress(5));
    torn.value = torn.value.map(|value| value[1..].to_vec());
    assert!(read(&ours, std::slice::from_ref(&torn), &[(0, 0)]).is_err());
    let restored = read(&ours, &[torn.clone(), ours.set((0, 0), &progress(9))], &[(0, 0)]).expect("replaced");
    assert_eq!(restored.progress.get(&(0, 0)).map(|progress| progress.next), Some(9));
    assert!(read(&ours, &[torn, ours.remove((0, 0), EntryKey::Progress)], &[(0, 0)]).is_ok());
}

#[test]
fn entry_value_opens_only_under_its_name() {
    let ours = codec(b"secret", "a");
    let (mut one, other) = (ours.set((0, 0), &progress(5)), ours.set((0, 1), &progress(9)));
    one.value = other.value;
    assert!(read(&ours, &[one], &[(0, 0)]).is_err());
}

#[test]
fn changelog_record_contains_no_plain_text() {
    let record = codec(b"secret", "a").set((0, 1), &ChangelogEntry::Waiting(Box::new(row(1, 4))));
    assert_eq!(record.key.len(), 2 + ENTRY_NAME_BYTES);
    let value = record.value.expect("a value");
    assert!(!value.windows(2).any(|pair| pair == b"\"1"));
}

#[test]
fn binding_conflict_names_the_differing_part() {
    let bound = StateBinding { stream: 1, sink: 2, groups: 3 };
    for (other, expected) in [
        (bound, None),
        (StateBinding { sink: 0, groups: 0, ..bound }, None),
        (StateBinding { stream: 9, ..bound }, Some("another stream")),
        (StateBinding { sink: 9, ..bound }, Some("another sink")),
        (StateBinding { groups: 9, ..bound }, Some("other groups")),
    ] {
        let found = bound.conflict(&other);
        assert_eq!(found.is_some(), expected.is_some(), "{other:?}");
        assert!(found.zip(expected).is_none_or(|(found, expected)| found.starts_with(expected)), "{found:?}");
        assert_eq!(other.conflict(&bound), found);
    }
}

proptest! {
    #[test]
    fn entry_reader_keeps_the_last_value_per_name(
        changes in prop::collection::vec((0_i32..2, 0_i64..6, prop::option::of(0_i64..100)), 0..60),
    ) {
        let ours = codec(b"secret", "a");
        let mut twin: BTreeMap<(i32, i64), i64> = BTreeMap::new();
        let mut records = Vec::new();
        for (partition, offset, value) in changes {
            let place = (0, partition);
            let mut row = row(partition, offset);
            match value {
                Some(ordinal) => {
                    row.ordinal = ordinal.unsigned_abs();
                    records.push(ours.set(place, &ChangelogEntry::Waiting(Box::new(row))));
                    twin.insert((partition, offset), ordinal);
                }
                None => {
                    records.push(ours.remove(place, EntryKey::waiting(row.coordinate)));
                    twin.remove(&(partition, offset));
                }
            }
        }
        let restored = read(&ours, &records, &[(0, 1)]).expect("readable");
        let mut expected: Vec<(u64, i64)> =
            twin.iter().filter(|((partition, _), _)| *partition == 1).map(|((_, offset), o)| (o.unsigned_abs(), *offset)).collect();
        expected.sort_unstable();
        let found: Vec<(u64, i64)> = restored.waiting.iter().map(|row| (row.ordinal, row.coordinate.offset)).collect();
        prop_assert_eq!(found, expected);
    }
}
