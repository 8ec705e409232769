//! A batch that is repeated sees the ledger that it was made with, whatever others have released meanwhile.

use crate::scene::{HEARD, K, Scene, crowd, one_more};
use crate::support::kafka::Broker;

fn repeated_at(point: &str) {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    // The point is passed once by the batch that tells who reads which partition, if it is that one's.
    let [mut one, mut two] = scene.two(&[], ["", ""]);
    two.end();
    scene.start(&mut two, &[], &format!("{point}=return"));
    two.wait_for("throng_partitions_assigned", |partitions| partitions == 1.0);
    let (before, consumed) = (two.metric(HEARD), one.consumed());
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(consumed + K as u64);
    two.wait_for(HEARD, |records| records > before);
    // One who is supported now, and one who is supported only by what comes next.
    let mut visits = one_more("Chur", "Bern");
    visits.push(("late-Genf".to_owned(), "Genf"));
    scene.visits(1, &visits);
    let died = two.process.take().expect("it runs").wait();
    assert!(died.code.is_none(), "{point} was not reached: {}", died.stderr);
    let attempted = scene.attempted();
    scene.visits(0, &crowd("Genf", 0));
    one.wait_consumed(consumed + 2 * K as u64);
    scene.start(&mut two, &[], "");
    two.wait_consumed(K as u64 + 2);
    let released = scene.released();
    assert_eq!((released["Chur"], released["Bern"]), (K + 1, K), "{point}: {released:?}");
    assert_eq!(released["Genf"], K, "{point}: the repetition has seen what came after its first attempt");
    if point != "intent-flushed" {
        assert_eq!(attempted["Chur"], K + 1, "{point}: the first attempt had produced");
    }
    // From then on it counts.
    two.wait_for(HEARD, |records| records >= 1.0);
    scene.visits(1, &[("a".to_owned(), "Genf"), ("b".to_owned(), "Bern"), ("c".to_owned(), "Bern")]);
    two.wait_consumed(2 * K as u64 + 2);
    assert_eq!(scene.released()["Genf"], K + 1, "{point}");
    one.end();
    two.end();
}

#[test]
fn the_ledger_is_the_same_when_the_intent_was_written() {
    repeated_at("intent-flushed");
}

#[test]
fn the_ledger_is_the_same_when_some_had_been_produced() {
    repeated_at("acknowledged");
}

/// What was heard and not yet written when a process dies is heard again.
#[test]
fn what_was_not_written_is_heard_again() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    let [mut one, mut two] = scene.two(&[], ["", ""]);
    two.end();
    let consumed = one.consumed();
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(consumed + K as u64);
    scene.start(&mut two, &[], "others-taken-in=return");
    let died = two.process.take().expect("it runs").wait();
    assert!(died.code.is_none(), "nothing was taken in: {}", died.stderr);
    scene.start(&mut two, &[], "");
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    assert_eq!(scene.released()["Chur"], K + 1);
    one.end();
    two.end();
}
