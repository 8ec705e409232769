//! What waits when its partition is taken away goes on waiting with another instance, once, whoever is killed meanwhile.

use crate::scene::{Account, Instance, K, Scene, people, together, wait};
use crate::support::binary::Place;
use crate::support::kafka::Broker;
use crate::support::schemas::schema;
use std::time::Duration;

/// So many batches that nothing here is held in vain, and nobody settles what waits.
const PATIENT: [(&str, &str); 2] = [("PRIVACY__MAX_HOLD_BATCHES", "100"), ("BATCH__MAX_AGE", "10m")];

/// Records that some instances hold.
fn held(instances: &[&Instance]) -> u64 {
    let Account { consumed, released, suppressed, dead_lettered, dropped, forwarded } = together(instances);
    consumed - (released + suppressed + dead_lettered + dropped + forwarded)
}

/// One instance with both partitions, which has released two crowds and holds one person less than a crowd of each partition.
fn holding(scene: &Scene, more: &[(&str, &str)]) -> Instance {
    let mut one = scene.instance("one");
    scene.start(&mut one, more, "");
    for (partition, whole, part) in [(0, "Bern", "Chur"), (1, "Sion", "Genf")] {
        let mut visits = people(whole, 0, K);
        visits.extend(people(part, 0, K - 1));
        scene.visits(partition, &visits);
    }
    let waiting = 2 * (K as u64 - 1);
    wait("what has no crowd waits", &[&one], || one.account().released == 2 * K as u64 && held(&[&one]) == waiting);
    one
}

fn assigned(instance: &Instance) -> f64 {
    instance.metric("throng_partitions_assigned")
}

/// Whoever holds what waits finds the last one of each crowd in a partition of its own; nothing was lost on the way.
fn finds_crowds(scene: &Scene, both: &[&Instance]) {
    for partition in [0, 1] {
        let other = 10 + usize::try_from(partition).expect("a number");
        scene.visits(partition, &[people("Chur", other, 1), people("Genf", other, 1)].concat());
    }
    let mut sent = 2 * (2 * K as u64 - 1) + 4;
    for round in 1..200 {
        // So many people that a batch of them is worth closing, whatever lies in it already.
        for partition in [0, 1] {
            let from = (2 * round + usize::try_from(partition).expect("a number")) * K;
            scene.visits(partition, &people("Bern", from, K));
        }
        sent += 2 * K as u64;
        std::thread::sleep(Duration::from_millis(700));
        let (released, account) = (scene.released(), together(both));
        let found = released.contains_key("Chur") && released.contains_key("Genf");
        if found && account.consumed == sent + account.forwarded {
            break;
        }
    }
    let released = scene.released();
    assert_eq!((released.get("Chur"), released.get("Genf")), (Some(&K), Some(&K)), "{:?}", together(both));
    let account = together(both);
    assert_eq!((account.suppressed, account.consumed, held(both)), (0, sent + account.forwarded, 2), "{account:?}");
}

#[test]
fn what_waits_goes_on_waiting_where_its_partition_goes() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let mut one = holding(&scene, &PATIENT);
    let mut two = scene.instance("two");
    scene.start(&mut two, &PATIENT, "");
    let both = [&one, &two];
    let moved = K as u64 - 1;
    wait("the other one has a partition", &both, || {
        assigned(&one) >= 1.0 && assigned(&two) >= 1.0 && assigned(&one) + assigned(&two) == 3.0
    });
    wait("what waited of it is handed on", &both, || together(&both).forwarded == moved);
    finds_crowds(&scene, &both);
    assert_eq!(together(&both).forwarded, moved);
    one.end();
    two.end();
}

/// The first one dies while it hands on what waits, and is started again: it is moved, or goes on waiting where it was.
#[test]
fn threat_39_what_waits_is_moved_once_whoever_is_killed() {
    let Some(broker) = Broker::shared() else { return };
    let deaths = ["intent-flushed=return", "produced=return", "committed=return", "applied=return"];
    let deaths = if std::env::var_os("THRONG_LONG").is_some() { &deaths[..] } else { &deaths[1..3] };
    // A static member that dies in the middle of a cooperative rebalance leaves what it gave up with nobody.
    let [hold, age] = PATIENT;
    let dynamic = [hold, age, ("SOURCE__LIBRDKAFKA__GROUP_INSTANCE_ID", "")];
    for death in deaths {
        let scene = Scene { session: "8000", ..Scene::new(broker) };
        let mut one = holding(&scene, &dynamic);
        // The next batch of it is the one that hands on.
        one.process.take().expect("it runs").kill();
        scene.start(&mut one, &dynamic, death);
        wait("it has its partitions again", &[&one], || assigned(&one) == 3.0);
        let mut two = scene.instance("two");
        scene.start(&mut two, &dynamic, "");
        let died = one.process.take().expect("it runs").ends_within(Duration::from_secs(60));
        assert!(died, "it has handed nothing on at {death}");
        scene.start(&mut one, &dynamic, "");
        let both = [&one, &two];
        wait("both have partitions", &both, || {
            assigned(&one) >= 1.0 && assigned(&two) >= 1.0 && assigned(&one) + assigned(&two) == 3.0
        });
        finds_crowds(&scene, &both);
        let account = together(&both);
        assert!([0, K as u64 - 1].contains(&account.forwarded), "{death}: {account:?}");
        one.end();
        two.end();
    }
}

const CHANGING: &str = schema!("visits"; person, text "city");
const AT_A_TIME: usize = 40;

/// Who has seen no record of the source does not know that anything changes; who hands it on does.
#[test]
fn an_owner_that_has_seen_nothing_lets_leave_what_changes() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::of_partitions(broker, 1);
    let more = [
        ("PRIVACY__MAX_DELAY", "1h"),
        ("PRIVACY__MAX_LINES_PER_SUBJECT", "1"),
        ("BATCH__MAX_RECORDS", "41"),
        ("BATCH__MAX_WAIT", "2s"),
        ("PLAN__INTERVAL", "1s"),
    ];
    let instance = |name| Instance { place: Place::new(CHANGING, ""), process: None, name };
    let mut both = [instance("one"), instance("two")];
    both.iter_mut().for_each(|instance| scene.start(instance, &more, ""));
    let all: Vec<&Instance> = both.iter().collect();
    wait("one has the source, the other the residue", &all, || all.iter().all(|one| assigned(one) == 1.0));
    let mut sent = 0;
    let mut send = |visits: Vec<(String, &'static str)>| {
        scene.visits(0, &visits);
        sent += visits.len() as u64;
        wait("they are read", &all, || together(&all).consumed >= sent);
    };
    let crowd = |city: &'static str| -> Vec<(String, &'static str)> {
        (0..AT_A_TIME).map(|person| (format!("p{person}"), city)).collect()
    };
    for city in ["Bern", "Sion", "Genf", "Bern", "Sion", "Genf", "Bern", "Sion"] {
        send(crowd(city));
    }
    // Of each of these batches one person is alone; together they are a crowd.
    let mut visits = Vec::new();
    for lonely in people("Chur", 0, K) {
        visits.extend(crowd("Bern"));
        visits.push(lonely);
    }
    send(visits);
    wait("a crowd is found", &all, || scene.released().get("Chur") == Some(&K));
    both.iter_mut().for_each(Instance::end);
}
