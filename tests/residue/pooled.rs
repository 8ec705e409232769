//! Who is alone where he is may have a crowd elsewhere.

use crate::scene::{Account, Instance, K, Scene, people, together, wait};
use crate::support::binary::Place;
use crate::support::kafka::{Broker, Record, Stored};
use crate::support::schemas::schema;

/// What stands before the sealed words of a record, with nonce and tag.
const HEAD: usize = 32 + 24 + 16;

/// Crowds of Bern and Sion in one partition each, and of Chur two people in one and one in the other.
fn send(scene: &Scene) -> u64 {
    let (mut left, mut right) = (people("Bern", 0, K), people("Sion", 0, K));
    left.extend(people("Chur", 0, 2));
    right.extend(people("Chur", 2, 1));
    scene.visits(0, &left);
    scene.visits(1, &right);
    2 * K as u64 + 3
}

#[test]
fn threat_39_a_crowd_that_is_spread_over_two_instances_leaves_and_nothing_is_told_on_the_way() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let [mut one, mut two] = scene.two(&[]);
    let sent = send(&scene);
    let both = [&one, &two];
    wait("all has been released", &both, || together(&both).released == sent);
    // Whose batch is still open when the others' come need not hand on its own.
    let account = together(&both);
    let forwarded = account.forwarded;
    assert!((1..=3).contains(&forwarded), "{account:?}");
    assert_eq!(account, Account { consumed: sent + forwarded, released: sent, forwarded, ..Account::default() });
    let released = scene.released();
    assert_eq!((released["Chur"], released["Bern"], released["Sion"]), (K, K, K));
    for direction in ["in", "out"] {
        let series = format!("throng_residue_records_total{{direction=\"{direction}\"}}");
        assert_eq!(one.metric(&series) + two.metric(&series), forwarded as f64);
    }
    let handed = scene.broker.read_uncommitted(&scene.residue);
    assert_eq!(handed.len() as u64, forwarded);
    for stored in handed {
        assert!(stored.key.is_none() && stored.headers.is_empty(), "a record that is handed on has a payload alone");
        let bytes = stored.payload.expect("a record");
        assert_eq!((bytes.len() - HEAD) % 1024, 0, "its length tells little");
        for word in ["Chur", "city", "person", &scene.group] {
            let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{word} is in the residue topic");
        }
    }
    one.end();
    two.end();
}

#[test]
fn without_the_topic_it_is_suppressed() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let [mut one, mut two] = scene.two(&[("SINK__RESIDUE_TOPIC", "")]);
    let sent = send(&scene);
    let both = [&one, &two];
    wait("all has been consumed", &both, || together(&both).consumed == sent);
    assert_eq!(together(&both), Account { consumed: sent, released: sent - 3, suppressed: 3, ..Account::default() });
    assert!(scene.broker.read_uncommitted(&scene.residue).is_empty());
    let page = one.process().get("/status.json").expect("a page").1;
    assert!(!page.contains("forwarded") && !page.contains("taken_up"), "the page is what it was");
    one.end();
    two.end();
}

/// What finds no crowd among others' either is suppressed there, for good.
#[test]
fn nothing_is_handed_on_twice() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let [mut one, mut two] = scene.two(&[]);
    let (mut left, mut right) = (people("Bern", 0, K), people("Sion", 0, K));
    left.extend(people("Chur", 0, 1));
    right.extend(people("Genf", 0, 1));
    right.extend(people("Basel", 0, 1));
    scene.visits(0, &left);
    scene.visits(1, &right);
    let both = [&one, &two];
    wait("what was handed on has been settled", &both, || together(&both).suppressed == 3);
    let wanted = Account {
        consumed: 2 * K as u64 + 6,
        released: 2 * K as u64,
        suppressed: 3,
        forwarded: 3,
        ..Account::default()
    };
    assert_eq!(together(&both), wanted);
    // Where few come at a time, for long enough, a batch of them is too small to be judged.
    let of = |reason: &str| {
        let series = format!("throng_suppressed_records_total{{reason=\"{reason}\"}}");
        one.metric(&series) + two.metric(&series)
    };
    assert_eq!(of("no_support") + of("quiet"), 3.0);
    // A settling may not hand it on again either.
    one.end();
    two.end();
    assert_eq!(scene.broker.read_uncommitted(&scene.residue).len(), 3);
}

/// By the clock of the batch that takes it up.
#[test]
fn what_was_handed_on_too_long_ago_is_suppressed_by_name() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    let mut one = scene.instance("one");
    scene.start(&mut one, &[], "applied=return");
    let mut visits = people("Bern", 0, K);
    visits.extend(people("Chur", 0, K - 1));
    scene.visits(0, &visits);
    let died = one.process.take().expect("it runs").wait();
    assert!(died.code.is_none(), "it has handed nothing on: {}", died.stderr);
    assert_eq!(scene.broker.read_committed(&scene.residue).len(), K - 1);
    scene.start(&mut one, &[("BATCH__MAX_AGE", "2s")], "wall-clock=return(660000)");
    scene.visits(0, &people("Sion", 0, K));
    wait("all is settled", &[&one], || one.account().consumed == (2 * K + 2 * (K - 1)) as u64);
    let account = one.account();
    assert_eq!((account.suppressed, account.forwarded, account.released), (K as u64 - 1, K as u64 - 1, 2 * K as u64));
    assert_eq!(one.metric("throng_suppressed_records_total{reason=\"residue_late\"}"), (K - 1) as f64);
    one.end();
}

/// After a new start the account goes on where it was.
#[test]
fn what_was_handed_on_is_remembered() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    let mut one = scene.instance("one");
    scene.start(&mut one, &[], "");
    let mut visits = people("Bern", 0, K);
    visits.extend(people("Chur", 0, K));
    visits.extend(people("Genf", 0, 1));
    scene.visits(0, &visits);
    wait("one is handed on", &[&one], || one.account().forwarded == 1);
    let before = one.account();
    one.end();
    scene.start(&mut one, &[], "");
    wait("it is there", &[&one], || one.metric("throng_partitions_assigned") == 3.0);
    let after = one.account();
    assert_eq!((after.forwarded, after.released), (before.forwarded, before.released));
    assert_eq!(one.metric("throng_records_total{outcome=\"forwarded\"}"), 1.0);
    one.end();
}

const WITH_BLOOD: &str =
    schema!("visits"; person, text "city", more "changes = \"always\"\n", text "blood", more "changes = \"never\"\n");
const GROUPS: &str =
    "[[group]]\nname = \"home\"\nattributes = [\"city\"]\n[[group]]\nname = \"body\"\nattributes = [\"blood\"]\n";

/// What is said once a window is said at home: whoever takes a record up cannot know whether it has been said.
#[test]
fn what_is_said_once_a_window_is_not_said_again_elsewhere() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let more =
        [("PRIVACY__MAX_DELAY", "1h"), ("PRIVACY__MAX_LINES_PER_SUBJECT", "1"), ("TELEMETRY__LOG_LEVEL", "warn")];
    let instance = |name| Instance { place: Place::new(WITH_BLOOD, GROUPS), process: None, name };
    let mut both = [instance("one"), instance("two")];
    both.iter_mut().for_each(|instance| scene.start(instance, &more, ""));
    let assigned = |instance: &&Instance| instance.metric("throng_partitions_assigned");
    let all: Vec<&Instance> = both.iter().collect();
    wait("each has a partition", &all, || {
        all.iter().all(|one| assigned(one) >= 1.0) && all.iter().map(assigned).sum::<f64>() == 3.0
    });
    let send = |partition: i32, visits: &[(String, &str)]| {
        let record = |(person, city): &(String, &str)| Record {
            partition: Some(partition),
            payload: Some(format!("{{\"person\":\"{person}\",\"city\":\"{city}\",\"blood\":\"0\"}}").into_bytes()),
            ..Record::default()
        };
        scene.broker.produce_records(&scene.raw, &visits.iter().map(record).collect::<Vec<_>>());
    };
    let (mut left, mut right) = (people("Bern", 0, K), people("Sion", 0, K));
    left.extend(people("Chur", 0, 2));
    right.extend(people("Chur", 2, 1));
    let persons = (left.len() + right.len()) as u64;
    // Each claims the line of its window with its first record, which waits; the second finds it claimed.
    for round in 1..=2 {
        send(0, &left);
        send(1, &right);
        wait("the round is consumed", &all, || together(&all).consumed >= round * persons);
    }
    let lines = || -> Vec<String> {
        let payload = |stored: Stored| String::from_utf8(stored.payload.expect("a line")).expect("text");
        scene.broker.read_committed(&scene.out).into_iter().map(payload).collect()
    };
    let of = |word: &str| lines().iter().filter(|line| line.contains(word)).count();
    // The third of them leaves with the two that come to it, or all three meet elsewhere.
    wait("a crowd is found", &all, || of("Chur") == K);
    assert!(together(&all).forwarded >= 1);
    both.iter_mut().for_each(Instance::end);
    let lines = lines();
    let of = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
    assert_eq!(of("Chur"), K, "what has found a crowd elsewhere: {lines:?}");
    assert!(of("blood") as u64 <= persons, "{} lines of the blood of {persons} people", of("blood"));
    assert!(of("blood") >= K, "nobody's blood is said");
}
