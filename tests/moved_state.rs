//! Tests state that moves with its partition, on a broker.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use support::daemon::{LOT, Stage, conserved, records, sound};
use support::kafka::{Record, TestCluster};

/// Subjects per partition.
const PEOPLE: usize = 12;

fn visit(person: usize, partition: i32) -> Record {
    let payload = format!("{{\"person\":\"p{person}\",\"city\":\"Zug\",\"mood\":\"m{}\"}}", person % 2);
    Record { partition: Some(partition), payload: Some(payload.into_bytes()), ..Record::default() }
}

fn visits(partitions: i32) -> Vec<Record> {
    let partition = |person: usize| i32::try_from(person).expect("few people") % partitions;
    (0..PEOPLE * partitions as usize).map(|person| visit(person, partition(person))).collect()
}

fn configure(stage: &Stage, name: &str, batch: usize, more: &str) {
    let file = stage.configure(name, 2, batch, "300ms");
    fs::write(
        stage.dir.path().join("visits.toml"),
        "name = \"visits\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
         [[attribute]]\nname = \"city\"\ntype = \"string\"\nchanges = \"never\"\n\
         [[attribute]]\nname = \"mood\"\ntype = \"string\"\nchanges = \"always\"\n",
    )
    .expect("the schema");
    let text = fs::read_to_string(&file).expect("the configuration");
    let groups = text.find("[[group]]").expect("groups");
    let text = format!(
        "{}{more}\n[[group]]\nname = \"place\"\nattributes = [\"city\"]\n[[group]]\nname = \"now\"\nattributes = [\"mood\"]\n",
        text[..groups]
            .replace("max_lines_per_subject = 0", "max_lines_per_subject = 1")
            .replace("max_delay = \"0s\"", "max_delay = \"1ms\"")
    );
    fs::write(file, text).expect("the configuration");
}

fn lines(stage: &Stage) -> (usize, usize) {
    let released = stage.released();
    let of = |name: &str| released.values().flatten().filter(|line| line.contains(name)).count();
    (of("city"), of("mood"))
}

#[test]
fn lost_instance_passes_its_limits_to_the_next_one() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 2);
    let all = visits(2);
    for round in 1..=4 {
        let name = format!("round-{round}");
        configure(&stage, &name, all.len(), "");
        broker.produce_records(&stage.raw, &all);
        let mut daemon = stage.start(&name, None);
        stage.wait_consumed(round * all.len(), &mut [&mut daemon]);
        daemon.kill();
        if round % 2 == 0 {
            fs::remove_dir_all(stage.state(&name)).expect("its directory");
        }
    }
    assert_eq!(lines(&stage), (all.len(), 4 * all.len()), "each city once, each mood in every batch");
}

fn lots(numbers: std::ops::Range<usize>, lot: impl Fn(usize) -> usize) -> Vec<Record> {
    let payload = |n: usize| format!("{{\"person\":\"p{n}\",\"lot\":\"L{}\",\"age\":30,\"ward\":\"north\"}}", lot(n));
    let record = |n| Record { partition: Some(0), payload: Some(payload(n).into_bytes()), ..Record::default() };
    numbers.map(record).collect()
}

#[test]
fn lost_instance_held_records_are_released_once() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 1);
    let of_lot = |lot: &str| stage.released().values().flatten().filter(|line| line.contains(lot)).count();
    stage.configure("first", 9, 8, "1h");
    broker.produce_records(&stage.raw, &lots(0..8, |n| n / 6));
    let mut first = stage.start("first", None);
    stage.wait_consumed(8, &mut [&mut first]);
    first.kill();
    assert_eq!((of_lot("L0"), of_lot("L1")), (6, 0));
    fs::remove_dir_all(stage.state("first")).expect("its directory");
    stage.configure("second", 9, 8, "1h");
    broker.produce_records(&stage.raw, &lots(8..16, |n| if n < 10 { 1 } else { 2 }));
    let mut second = stage.start("second", None);
    stage.wait_consumed(16, &mut [&mut second]);
    second.stop();
    assert_eq!((of_lot("L0"), of_lot("L1"), of_lot("L2")), (6, 4, 6), "{:?}", stage.released());
    assert_eq!(conserved(&stage.state("second")), 10, "the two that it has restored count as consumed there");
    stage.configure("third", 9, 8, "1h");
    broker.produce_records(&stage.raw, &lots(16..24, |_| 3));
    let mut third = stage.start("third", None);
    stage.wait_consumed(24, &mut [&mut third]);
    third.stop();
    assert_eq!((of_lot("L1"), of_lot("L3")), (4, 8));
    assert_eq!(conserved(&stage.state("third")), 8);
}

#[test]
#[cfg(feature = "failpoints")]
fn instance_killed_in_a_transaction_is_replaced() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut stage = Stage::new(broker, 1);
    stage.security = "[sink.librdkafka]\n\"transaction.timeout.ms\" = \"900000\"\n".to_owned();
    let of_lot = |lot: &str| stage.released().values().flatten().filter(|line| line.contains(lot)).count();
    ["first", "second"].iter().for_each(|name| drop(stage.configure(name, 9, 8, "1h")));
    broker.produce_records(&stage.raw, &lots(0..24, |n| n / 8));
    let crash = "offsets-sent=1*off->return";
    stage.start("first", Some(crash)).crashes(crash);
    fs::remove_dir_all(stage.state("first")).expect("its directory");
    let mut second = stage.start("second", None);
    stage.wait_consumed(24, &mut [&mut second]);
    second.says("ended a transaction that was left open");
    second.stop();
    assert_eq!((of_lot("L0"), of_lot("L1"), of_lot("L2")), (8, 8, 8));
    assert_eq!(conserved(&stage.state("second")), 16);
}

#[test]
fn moved_partitions_keep_their_limits() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 4);
    let all = visits(4);
    for name in ["one", "two"] {
        configure(&stage, name, all.len() / 2, "");
    }
    let mut one = stage.start("one", None);
    let mut total = 0;
    for round in 0..4 {
        let mut two = (round % 2 == 1).then(|| stage.start("two", None));
        // A group reassigns partitions in two rounds, by heartbeat.
        std::thread::sleep(Duration::from_secs(6));
        broker.produce_records(&stage.raw, &all);
        total += all.len();
        let mut both: Vec<_> = std::iter::once(&mut one).chain(&mut two).collect();
        stage.wait_consumed(total, &mut both);
        if let Some(two) = &mut two {
            two.stop();
        }
    }
    one.stop();
    let sum = conserved(&stage.state("one")) + conserved(&stage.state("two"));
    assert_eq!(sum + stage.waiting(), total as u64, "every record once");
    let cities = lines(&stage).0;
    assert!(cities <= all.len() && cities > all.len() / 2, "{cities} cities of {} people in one window", all.len());
}

#[test]
#[cfg(feature = "failpoints")]
fn moved_partitions_alone_wait_for_their_state() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 4);
    let all = visits(4);
    ["one", "two"].iter().for_each(|name| configure(&stage, name, PEOPLE, ""));
    let mut one = stage.start("one", Some("restore-delayed=1*off->return(600000)"));
    broker.produce_records(&stage.raw, &all);
    stage.wait_consumed(all.len(), &mut [&mut one]);
    let mut two = stage.start("two", None);
    two.says("state of partitions read");
    two.stop();
    while one.said().matches("reading the state of partitions").count() < 2 {
        assert!(one.ended().is_none(), "it ended early: {}", one.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    broker.produce_records(&stage.raw, &all);
    stage.wait_consumed(all.len() + 2 * PEOPLE, &mut [&mut one]);
    let twice = 2 * i64::try_from(PEOPLE).expect("few people");
    let read: Vec<Option<i64>> = broker.group_offsets_now(&stage.group, &stage.raw).into_values().collect();
    assert_eq!(read.iter().filter(|at| **at == Some(twice)).count(), 2, "{read:?}");
    assert_eq!(read.iter().filter(|at| **at == Some(twice / 2)).count(), 2, "{read:?}");
    one.kill();
    let mut one = stage.start("one", None);
    stage.wait_consumed(2 * all.len(), &mut [&mut one]);
    one.stop();
    let sum = conserved(&stage.state("one")) + conserved(&stage.state("two"));
    assert_eq!(sum + stage.waiting(), 2 * all.len() as u64, "every record once");
}

#[test]
fn changelog_with_another_secret_is_refused_with_a_remedy() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 1);
    let all = visits(1);
    configure(&stage, "first", all.len(), "");
    broker.produce_records(&stage.raw, &all);
    let mut first = stage.start("first", None);
    stage.wait_consumed(all.len(), &mut [&mut first]);
    first.stop();
    configure(&stage, "second", all.len(), "");
    let file = stage.dir.path().join("second.toml");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(stage.dir.path().join("other-key"), "another secret, which is long enough as well").expect("a secret");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(stage.dir.path().join("other-key"), mode).expect("a file of ours");
    fs::write(&file, text.replace("/key\"", "/other-key\"")).expect("the configuration");
    let mut second = stage.start("second", None);
    assert_eq!(second.wait().code(), Some(2), "{}", second.said());
    assert!(second.said().contains("give all instances of a group one secret"), "{}", second.said());
}

#[test]
fn changelog_with_lost_entries_is_refused_until_accepted() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 1);
    let all = visits(1);
    configure(&stage, "only", all.len(), "");
    broker.produce_records(&stage.raw, &all);
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(all.len(), &mut [&mut daemon]);
    daemon.stop();
    let lost =
        Stage { group: stage.group.clone(), raw: stage.raw.clone(), out: stage.out.clone(), ..Stage::new(broker, 1) };
    configure(&lost, "only", all.len(), "");
    let mut daemon = lost.start("only", None);
    assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
    assert!(daemon.said().contains("it has lost entries, or the offsets were moved forward"), "{}", daemon.said());
    broker.produce_records(&stage.raw, &all);
    let mut daemon = lost.start_with("only", &["--accept-rewind"], None);
    lost.wait_consumed(2 * all.len(), &mut [&mut daemon]);
    daemon.stop();
}

#[test]
fn changelog_with_too_few_partitions_is_refused_with_a_command() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut stage = Stage::new(broker, 3);
    let few = support::kafka::unique("few");
    broker.create_topic(&few, 3, true);
    stage.changelog = few;
    stage.configure("only", 2, 10, "300ms");
    let mut daemon = stage.start("only", None);
    assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
    let said = daemon.said();
    assert!(said.contains("has 3 partitions and needs 4") && said.contains("--alter --topic"), "{said}");
}

#[test]
fn changelog_with_delete_policy_is_refused_with_a_command() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut stage = Stage::new(broker, 1);
    stage.changelog = support::kafka::unique("deleted");
    broker.create_topic(&stage.changelog, 2, false);
    stage.configure("only", 2, 10, "300ms");
    let mut daemon = stage.start("only", None);
    assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
    let said = daemon.said();
    assert!(said.contains("cleanup.policy=delete") && said.contains("--add-config cleanup.policy=compact"), "{said}");
}

#[test]
fn repeated_crashes_without_directory_are_exactly_once() {
    let Some(broker) = TestCluster::shared() else { return };
    let stage = Stage::new(broker, 3);
    let (batch, points) = (30, ["intent-flushed", "produced", "acknowledged", "offsets-sent", "committed", "applied"]);
    let total = (points.len() + 1) * 4 * batch;
    broker.produce_records(&stage.raw, &records(5, 0, total, 3));
    // The open transaction of a lost process hides later records until it times out.
    let configure = |name: &str| {
        let file = stage.configure(name, 2, batch, "300ms");
        let text = fs::read_to_string(&file).expect("the configuration");
        fs::write(&file, text + "[sink.librdkafka]\n\"transaction.timeout.ms\" = \"3000\"\n")
            .expect("the configuration");
    };
    for (number, point) in points.iter().enumerate() {
        let name = format!("process-{number}");
        configure(&name);
        let mut daemon = stage.start(&name, Some(&format!("{point}=2*off->return")));
        daemon.crashes(point);
        fs::remove_dir_all(stage.state(&name)).expect("its directory");
    }
    configure("only");
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    let mut lots: BTreeMap<String, usize> = BTreeMap::new();
    let released = stage.released();
    let lines = sound(released.values().flatten());
    for line in released.values().flatten().filter(|line| line.contains("\"L")) {
        *lots.entry(line.clone()).or_default() += 1;
    }
    assert!(lots.values().all(|count| *count <= LOT), "{lots:?}");
    assert!(lines > total / 2, "{lines} lines of {total} records");
    assert_eq!(stage.dead_letters().len(), (0..total).filter(|n| n % 97 != 5 && n % 89 == 7).count());
}
