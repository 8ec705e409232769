//! Series from topics: identical rows despite kills, and several instances with a recount of the rows.

use super::{SCHEMA, SERIES, days};
use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::crash_points::{self, kill_at};
use support::daemon::{Dice, SECRET, Stage, TestDaemon};
use support::kafka::{Record, TestCluster};
use throng::daemon::state::entries::{EntryCodec, EntryReader};
use throng::daemon::state::state_keys::StateKeys;
use throng_core::series::SeriesState;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::SubjectDigester;
use throng_kafka::changelog;
use throng_kafka::connection::KafkaCluster;

const PEOPLE: u64 = 24;

/// A batch has 40 records or ends after `max_wait`.
fn configure(stage: &Stage<'_>, name: &str, max_wait: &str) {
    let place = stage.dir.path().display();
    let Stage { group, raw, out, letters, changelog, properties, sessions, brokers, .. } = stage;
    fs::write(stage.dir.path().join("days.toml"), SCHEMA).expect("the schema");
    let text = format!(
        "[sink.librdkafka]\n\"transaction.timeout.ms\" = \"3000\"\n[source]\nkind = \"kafka\"\nbrokers = \"{brokers}\"\ntopics = [\"{raw}\"]\ngroup = \"{group}\"\n\
         [source.librdkafka]\n{sessions}\n\"fetch.wait.max.ms\" = \"50\"\n{properties}\n\
         [sink]\nkind = \"kafka\"\ntopic = \"{out}\"\ndead_letter_topic = \"{letters}\"\nchangelog_topic = \"{changelog}\"\n\
         [schema]\nfile = \"{place}/days.toml\"\n[batch]\nmax_records = 40\nmax_wait = \"{max_wait}\"\nmax_age = \"{max_wait}\"\n\
         [privacy]\nk = 3\n[plan]\ninterval = \"1h\"\n\
         [state]\npath = \"{place}/{name}\"\nsecret_file = \"{place}/key\"\n[telemetry]\nlisten = \"127.0.0.1:0\"\n{SERIES}"
    );
    let text = text.replace("strata = [\"sex\"]", "strata = [\"sex\"]\nwarm_up = \"5d\"");
    fs::write(stage.dir.path().join(format!("{name}.toml")), text).expect("the configuration");
}

fn stage(broker: &TestCluster, partitions: i32) -> Stage<'_> {
    let stage = Stage::new(broker, partitions);
    broker.create_topic(&contributions(&stage), 1, false);
    stage
}

fn contributions(stage: &Stage<'_>) -> String {
    format!("{}.contributions", stage.changelog)
}

fn records(days_of: std::ops::Range<usize>, partitions: i32) -> Vec<Record> {
    let json = |(who, day, steps, sex): (String, String, u64, &str)| {
        let person: i32 = who[1..].parse().expect("a number");
        let text = format!("{{\"who\":\"{who}\",\"day\":\"{day}\",\"steps\":{steps},\"sex\":\"{sex}\"}}");
        Record { payload: Some(text.into_bytes()), partition: Some(person % partitions), ..Record::default() }
    };
    let is_within = |(_, day, ..): &(String, String, u64, &str)| days_of.contains(&number_of(day));
    days(PEOPLE, 60, 5).into_iter().filter(is_within).map(json).collect()
}

fn number_of(day: &str) -> usize {
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a date");
    let day: chrono::NaiveDate = day.parse().expect("a date");
    usize::try_from((day - first).num_days()).expect("no earlier day")
}

fn released(stage: &Stage<'_>) -> Vec<String> {
    let stored = stage.broker.read_committed(&stage.out);
    stored.into_iter().map(|line| String::from_utf8(line.payload.unwrap_or_default()).expect("text")).collect()
}

fn wait_contributed(stage: &Stage<'_>, daemons: &mut [&mut TestDaemon]) {
    let topic = contributions(stage);
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let next = stage.broker.group_offsets_now(&stage.group, &topic)[&0].unwrap_or(0);
        let last = stage.broker.read_committed(&topic).into_iter().map(|stored| stored.offset).max();
        if last.is_none_or(|last| last < next) {
            return;
        }
        for daemon in &mut *daemons {
            assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
        }
        assert!(Instant::now() < deadline, "contributions up to {last:?} are read up to {next}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn series_kills_at_any_point_change_no_row() {
    let Some(broker) = TestCluster::shared() else { return };
    let total = 28 * 40;
    let all: Vec<Record> = records(0..60, 1).into_iter().take(total).collect();
    let calm = stage(broker, 1).with_static_membership();
    configure(&calm, "only", "1h");
    broker.produce_records(&calm.raw, &all);
    let mut daemon = calm.start("only", None);
    calm.wait_consumed(total, &mut [&mut daemon]);
    wait_contributed(&calm, &mut [&mut daemon]);
    daemon.stop();
    let undisturbed = released(&calm);
    assert!(undisturbed.len() > 100, "{} rows: {}", undisturbed.len(), daemon.said());

    let stage = stage(broker, 1).with_static_membership();
    configure(&stage, "only", "1h");
    broker.produce_records(&stage.raw, &all);
    let mut dice = Dice::new(9);
    for (number, point) in crash_points::TOPIC.into_iter().enumerate() {
        let crash = kill_at(point, &mut dice);
        stage.start("only", Some(&crash)).crashes(&crash);
        if number % 3 == 2 {
            fs::remove_dir_all(stage.state("only")).expect("its directory");
        }
    }
    assert!((stage.consumed() as usize) < total, "the last crash came after the end of the stream");
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut daemon]);
    wait_contributed(&stage, &mut [&mut daemon]);
    daemon.stop();
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    assert!(sorted(released(&stage)) == sorted(undisturbed), "the rows differ");
}

fn state_of(stage: &Stage<'_>) -> SeriesState {
    let cluster = KafkaCluster::new(&stage.broker.bootstrap(), BTreeMap::new());
    let mut reader = EntryReader::new(EntryCodec::new(&StateKeys::derive(SECRET.as_bytes()), &stage.group));
    let mut take = |record: changelog::RawChangelogRecord<'_>| reader.add_record(record);
    changelog::read_state(&cluster, &stage.changelog, &BTreeSet::from([0]), &|| false, &mut || Ok(()), &mut take)
        .expect("the changelog");
    reader.into_restored(|place| place == (1, 0)).expect("entries of our secret").series.expect("series")
}

fn presence(stage: &Stage<'_>) -> BTreeMap<u64, BTreeSet<String>> {
    let schema = Schema::load(&stage.dir.path().join("days.toml")).expect("the schema");
    let who = schema.attributes.iter().find(|attribute| attribute.name == "who").expect("the subject");
    let subjects = SubjectDigester::new(Arc::clone(who), &DigestKey(StateKeys::derive(SECRET.as_bytes()).subjects));
    let mut days_of: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for (who, day, ..) in days(PEOPLE, 60, 5) {
        let digest = subjects.digest_canonical(&format!("\"{who}\""));
        days_of.entry(digest).or_default().insert(day);
    }
    days_of
}

/// Returns the number of cohort rows. Each bucket is released once, and each atom has enough new members. A member
/// counts as present on days with a record.
fn recount(stage: &Stage<'_>, state: &SeriesState) -> usize {
    let days_of = presence(stage);
    let mut known: BTreeSet<u64> = BTreeSet::new();
    for cohort in state.cohorts.values() {
        for atom in &cohort.atoms {
            let new = atom.members.iter().filter(|member| !known.contains(*member)).count();
            assert!(new >= 3, "an atom of {new} new members");
        }
        known.extend(cohort.all_members());
    }
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut rows = 0;
    for line in released(stage) {
        let row: Value = serde_json::from_str(&line).expect("a row");
        let bucket = row["bucket"].as_str().expect("a day");
        let name = (format!("{}{}{}", row["cohort"], row["stratum"], row["bin"]), bucket.to_owned());
        assert!(seen.insert(name), "it left twice: {line}");
        let Some(token) = row["cohort"].as_str() else { continue };
        let cohort = state.cohorts.values().find(|cohort| cohort.token == token).expect("a cohort of the state");
        let members: Vec<u64> = cohort.members(cohort.sets[0].expect("a locked set")).collect();
        let absent = members.iter().filter(|member| !days_of[member].contains(bucket)).count();
        let filled = row["filled"].as_f64().expect("a share");
        assert_eq!(row["n"], members.len() as u64, "{line}");
        assert!(members.len() - absent >= 3, "{absent} of {} are absent: {line}", members.len());
        assert!((filled - absent as f64 / members.len() as f64).abs() <= 0.050_001, "{absent} are absent: {line}");
        rows += 1;
    }
    rows
}

/// One partition has no records. In each round one instance is killed, sometimes with its directory.
#[test]
fn changing_instances_publish_each_series_bucket_once_with_all_present_members() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = stage(broker, 5);
    let names = ["one", "two", "three", "four"];
    names.iter().for_each(|name| configure(&stage, name, "300ms"));
    let mut running: BTreeMap<&str, TestDaemon> =
        names[..3].iter().map(|name| (*name, stage.start(name, None))).collect();
    let mut dice = Dice::new(30);
    let mut total = 0;
    for round in 0..6 {
        let part = records(round * 10..(round + 1) * 10, 4);
        total += part.len();
        broker.produce_records(&stage.raw, &part);
        if round % 2 == 1 {
            stage.wait_consumed(total, &mut running.values_mut().collect::<Vec<_>>());
        }
        let at = dice.roll(running.len() as u64) as usize;
        let name = *running.keys().nth(at).expect("it runs");
        running.remove(name).expect("it runs").kill();
        if dice.roll(2) == 0 && stage.state(name).exists() {
            fs::remove_dir_all(stage.state(name)).expect("its directory");
        }
        let absent = names.iter().find(|other| **other != name && !running.contains_key(*other)).expect("four names");
        running.insert(*absent, stage.start(absent, None));
    }
    stage.wait_consumed(total, &mut running.values_mut().collect::<Vec<_>>());
    wait_contributed(&stage, &mut running.values_mut().collect::<Vec<_>>());
    // The last buckets wait only for the partition without records.
    let deadline = Instant::now() + Duration::from_secs(60);
    let last_closed = || state_of(&stage).head.closed_ms[0];
    let fifty_eight_days = 1_767_225_600_000 + 58 * 86_400_000;
    while last_closed() < fifty_eight_days {
        assert!(Instant::now() < deadline, "buckets are closed up to {}", last_closed());
        std::thread::sleep(Duration::from_millis(300));
    }
    running.values_mut().for_each(TestDaemon::stop);
    let state = state_of(&stage);
    let open: u64 = state.open.values().flatten().map(|open| u64::from(open.records)).sum();
    let counts = state.head.totals();
    assert_eq!((counts.records + open, counts.dropped()), (total as u64, 0), "every record contributes once");
    let rows = recount(&stage, &state);
    assert!(rows > 100, "{rows} rows of cohorts");
}
