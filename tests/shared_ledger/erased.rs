//! Who has been erased from a state supports nobody there, although the topic still has him.

use crate::scene::{HEARD, K, Scene, crowd, foreign, one_more};
use crate::support::kafka::Broker;

#[test]
fn an_erased_person_is_not_taken_in_again() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene { session: "45000", ..Scene::new(broker) };
    let [mut one, mut two] = scene.two(&[], ["", ""]);
    let (before, consumed) = (two.metric(HEARD), one.consumed());
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(consumed + K as u64);
    two.wait_for(HEARD, |records| records > before);
    two.end();
    // Released, told, and not heard by the other when the erasure comes.
    scene.visits(0, &crowd("Genf", 0));
    one.wait_consumed(consumed + 2 * K as u64);
    scene.forget(&two, &["Chur0", "Chur1"]);
    scene.start(&mut two, &[], "");
    two.wait_for(&foreign("erased"), |records| records == 1.0);
    let mut visits = one_more("Chur", "Bern");
    visits.push(("late-Genf".to_owned(), "Genf"));
    scene.visits(1, &visits);
    two.wait_consumed(K as u64 + 2);
    let released = scene.released();
    assert_eq!((released["Chur"], released["Genf"], released["Bern"]), (K, K, K), "who is left is no crowd");
    one.end();
    two.end();
}
