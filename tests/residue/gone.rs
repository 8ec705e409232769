//! Records that were handed on are gone from their topic before whoever has taken them up could release them.

use crate::scene::{K, Scene, people, wait};
use crate::support::kafka::Broker;

const SOON: (&str, &str) = ("BATCH__MAX_AGE", "2s");
/// Of those who are alone: fewer than a crowd.
const ALONE: usize = K - 1;

/// What the batch has of the source is treated afresh, once; what is gone is said.
#[test]
fn a_batch_that_has_lost_what_it_took_up_gives_the_rest_once() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "2000", ..Scene::new(broker) };
    let mut one = scene.instance("one");
    scene.start(&mut one, &[SOON], "produced=1*off->return");
    let mut visits = people("Bern", 0, K);
    visits.extend(people("Chur", 0, ALONE));
    scene.visits(0, &visits);
    wait("it has handed on", &[&one], || scene.broker.read_committed(&scene.residue).len() == ALONE);
    let mut visits = people("Sion", 0, K);
    visits.extend(people("Chur", 5, 1));
    scene.visits(0, &visits);
    let died = one.process.take().expect("it runs").wait();
    assert!(died.code.is_none(), "{}", died.stderr);
    let handed_on = broker.read_uncommitted(&scene.residue);
    let taken = handed_on[ALONE - 1].offset + 1;
    broker.remove_before(&scene.residue, 0, taken);
    scene.start(&mut one, &[SOON], "");
    // The one who is alone behind it is handed on, and suppressed.
    let all = (2 * K + ALONE + 2) as u64;
    wait("the rest is settled", &[&one], || one.account().consumed == all && one.account().suppressed == 1);
    assert_eq!(one.account().released, 2 * K as u64);
    assert_eq!(scene.released().values().sum::<usize>(), 2 * K);
    let process = one.process.take().expect("it runs");
    process.terminate();
    let said = process.wait().expect(0).stderr;
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("input is lost")).collect();
    assert!(lines.len() == 1 && lines[0].contains(&scene.residue), "{said}");
}
