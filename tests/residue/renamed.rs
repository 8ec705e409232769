//! Another topic to hand records on through, or another one of the same name: it begins anew. What is merely read again is refused.

use crate::scene::{Account, Instance, K, Scene, people, wait};
use crate::support::binary::Outcome;
use crate::support::kafka::{Broker, unique};

const SOON: (&str, &str) = ("BATCH__MAX_AGE", "2s");
/// Of those who are alone in each round.
const ALONE: usize = K - 1;

/// A crowd that leaves in `city`, and some elsewhere who are too few; they are handed on, taken up and suppressed. It is the round of this
/// `number` in the life of the state, from 1.
fn round(scene: &Scene, one: &Instance, number: u64, (city, alone): (&'static str, &'static str)) {
    let mut visits = people(city, 0, K);
    visits.extend(people(alone, 0, ALONE));
    scene.visits(0, &visits);
    let wanted = Account {
        consumed: number * (K + 2 * ALONE) as u64,
        released: number * K as u64,
        suppressed: number * ALONE as u64,
        forwarded: number * ALONE as u64,
        ..Account::default()
    };
    wait("what was handed on is settled", &[one], || one.account() == wanted);
}

/// A member that has a name leaves the group when its session of two seconds is over. One that comes back sooner has the partitions that it
/// had, whatever it subscribes to now.
fn forget_member() {
    std::thread::sleep(std::time::Duration::from_secs(4));
}

fn ended(one: &mut Instance) -> Outcome {
    let process = one.process.take().expect("a running instance");
    process.terminate();
    process.wait().expect(0)
}

/// An instance that has read some of the topic, and does not run.
fn read(scene: &Scene) -> Instance {
    let mut one = scene.instance("one");
    scene.start(&mut one, &[SOON], "");
    round(scene, &one, 1, ("Bern", "Chur"));
    assert!(!ended(&mut one).stderr.contains("handed on through another topic"));
    one
}

#[test]
fn another_topic_begins_without_the_positions_of_the_one_before() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "2000", ..Scene::new(broker) };
    let mut one = read(&scene);
    forget_member();
    let other = unique("other");
    broker.create_topic(&other, 1, false);
    let more = [SOON, ("SINK__RESIDUE_TOPIC", other.as_str())];
    scene.start(&mut one, &more, "");
    round(&scene, &one, 2, ("Sion", "Genf"));
    let said = ended(&mut one).stderr;
    assert!(said.contains("handed on through another topic") && said.contains(&scene.residue), "{said}");
    // From then on it is the topic of this state.
    scene.start(&mut one, &more, "");
    round(&scene, &one, 3, ("Basel", "Lugano"));
    let said = ended(&mut one).stderr;
    assert!(!said.contains("handed on through another topic"), "{said}");
}

#[test]
fn a_topic_that_was_made_anew_begins_anew() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    let mut one = read(&scene);
    broker.delete_topic(&scene.residue);
    broker.create_topic(&scene.residue, 1, false);
    scene.start(&mut one, &[SOON], "");
    round(&scene, &one, 2, ("Sion", "Genf"));
    let said = ended(&mut one).stderr;
    assert!(said.contains("WARN") && said.contains("another one of that name"), "{said}");
    scene.start(&mut one, &[SOON], "");
    round(&scene, &one, 3, ("Basel", "Lugano"));
    assert!(!ended(&mut one).stderr.contains("another one of that name"));
}

/// With the offsets go the marks by which what is shown again is known.
#[test]
fn threat_39_a_group_that_was_set_back_is_refused() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "2000", ..Scene::new(broker) };
    let mut one = scene.instance("one");
    scene.start(&mut one, &[SOON], "");
    round(&scene, &one, 1, ("Bern", "Chur"));
    ended(&mut one);
    forget_member();
    broker.set_group_offset(&scene.group, &scene.residue, 0, 0);
    scene.start(&mut one, &[SOON], "");
    let outcome = one.process.take().expect("it was started").wait();
    assert_ne!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("starts at offset 0"), "{}", outcome.stderr);
}

/// What a batch has taken up and not settled stays in the topic before; the rest of it is read again.
#[test]
fn a_batch_of_the_topic_before_is_not_repeated_and_its_loss_is_said() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "2000", ..Scene::new(broker) };
    let mut one = scene.instance("one");
    scene.start(&mut one, &[SOON], "produced=1*off->return");
    let mut visits = people("Bern", 0, K);
    visits.extend(people("Chur", 0, ALONE));
    scene.visits(0, &visits);
    wait("it has handed on", &[&one], || scene.broker.read_committed(&scene.residue).len() == ALONE);
    let mut visits = people("Sion", 0, K);
    visits.extend(people("Chur", 0, 1));
    scene.visits(0, &visits);
    let died = one.process.take().expect("it runs").wait();
    assert!(died.code.is_none(), "{}", died.stderr);
    forget_member();
    let other = unique("other");
    broker.create_topic(&other, 1, false);
    scene.start(&mut one, &[SOON, ("SINK__RESIDUE_TOPIC", other.as_str())], "");
    // One more is handed on anew; those in the topic before are not there any more.
    let all = (2 * K + ALONE + 2) as u64;
    wait("the rest is settled", &[&one], || one.account().consumed == all && one.account().suppressed == 1);
    assert_eq!(one.account().released, 2 * K as u64);
    let said = ended(&mut one).stderr;
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("input is lost")).collect();
    assert!(lines.len() == 1 && lines[0].contains(&scene.residue), "{said}");
}
