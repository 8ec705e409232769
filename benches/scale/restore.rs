//! Benchmark of the restore of a partition's state from its changelog, compared with a reader that only counts the
//! records.

use super::kafka::{Record, TestCluster};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use throng::daemon::state::entries::{ChangelogEntry, EntryCodec, EntryReader, PartitionProgress, StateBinding};
use throng::daemon::state::state_keys::StateKeys;
use throng_kafka::changelog;
use throng_kafka::connection::KafkaCluster;

const PORTION: u64 = 50_000;

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

pub fn run(broker: &TestCluster, numbers: &[u64]) {
    println!(
        "| entries | bytes an entry | written, s | restored, s | entries/s | read and counted alone, s | ratio | peak memory, MiB |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for &number in numbers {
        let topic = format!("bench.changelog.{number}");
        broker.create_topic(&topic, 2, true);
        row(broker, &topic, number);
    }
}

fn row(broker: &TestCluster, topic: &str, number: u64) {
    let keys = StateKeys::derive(b"a secret of the benchmark");
    let codec = EntryCodec::new(&keys, "bench");
    let (mut bytes, started) = (0, Instant::now());
    for first in (0..number).step_by(PORTION as usize) {
        let entry = |n: u64| {
            let said = ChangelogEntry::Said(
                u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
                1_800_000_000_000,
            );
            let record = codec.set((0, 0), &said);
            Record { partition: Some(1), key: Some(record.key), payload: record.value, ..Record::default() }
        };
        let portion: Vec<Record> = (first..number.min(first + PORTION)).map(entry).collect();
        bytes += portion
            .iter()
            .map(|r| r.key.as_ref().map_or(0, Vec::len) + r.payload.as_ref().map_or(0, Vec::len))
            .sum::<usize>();
        broker.produce_records(topic, &portion);
    }
    let progress =
        PartitionProgress { author: "bench".to_owned(), sequence: 1, next: 1, binding: StateBinding::default() };
    let record = codec.set((0, 0), &ChangelogEntry::Progress(Box::new(progress)));
    broker.produce_records(
        topic,
        &[Record { partition: Some(1), key: Some(record.key), payload: record.value, ..Record::default() }],
    );
    let written = started.elapsed();

    let cluster = KafkaCluster::new(&broker.bootstrap(), std::collections::BTreeMap::new());
    let read = |visit: &mut dyn FnMut(changelog::RawChangelogRecord<'_>)| -> Duration {
        let started = Instant::now();
        let whole = changelog::read_state(&cluster, topic, &BTreeSet::from([0]), &|| false, &mut || Ok(()), visit)
            .expect("a changelog");
        assert!(whole);
        started.elapsed()
    };
    let mut counted = 0_u64;
    let alone = read(&mut |_| counted += 1);
    assert_eq!(counted, number + 1);
    let started = Instant::now();
    let mut reader = EntryReader::new(codec);
    read(&mut |record| reader.add_record(record));
    let restored = reader.into_restored(|_| true).expect("entries of one secret");
    let taken = started.elapsed();
    assert_eq!(restored.release_entries.len() as u64, number);
    let seconds = taken.as_secs_f64();
    println!(
        "| {number} | {} | {:.1} | {seconds:.1} | {:.0} | {:.1} | {:.2} | {} |",
        bytes as u64 / number,
        written.as_secs_f64(),
        number as f64 / seconds,
        alone.as_secs_f64(),
        seconds / alone.as_secs_f64(),
        peak_mib()
    );
}
