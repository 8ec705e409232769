//! Clocks that differ: within what is allowed what others have released counts; beyond it is ignored, counted and said.

use crate::scene::{HEARD, K, Scene, crowd, foreign, one_more};
use crate::support::kafka::Broker;

/// How many lines of Chur there are when the clock of the one who has released a crowd there is off by `apart_ms`.
fn with_clocks(apart_ms: i64, window: &str) -> (usize, bool) {
    let broker = Broker::shared().expect("a broker");
    let scene = Scene::new(broker);
    let faults = format!("wall-clock=return({apart_ms})");
    let mut one = scene.instance("one");
    let more = [("PRIVACY__SUPPORT_WINDOW", window)];
    scene.start(&mut one, &more, &faults);
    one.wait_for("throng_partitions_assigned", |partitions| partitions == 2.0);
    scene.visits(0, &crowd("Chur", 0));
    one.wait_consumed(K as u64);
    one.end();
    let mut two = scene.instance("two");
    scene.start(&mut two, &more, "");
    scene.visits(1, &one_more("Chur", "Bern"));
    two.wait_consumed(K as u64 + 1);
    let ignored = two.metric(&foreign("clock")) == 1.0;
    assert!(ignored || two.metric(HEARD) <= 1.0);
    two.end();
    (scene.released()["Chur"], ignored)
}

#[test]
fn half_a_minute_apart_in_either_direction_is_allowed_for() {
    if Broker::shared().is_none() {
        return;
    }
    assert_eq!(with_clocks(30_000, "24h"), (K + 1, false), "ahead");
    assert_eq!(with_clocks(-30_000, "24h"), (K + 1, false), "behind");
}

#[test]
fn a_clock_that_is_further_ahead_is_ignored_and_counted() {
    if Broker::shared().is_none() {
        return;
    }
    assert_eq!(with_clocks(600_000, "24h"), (K, true));
}

/// What is allowed for the clocks is taken off the window, wherever they stand: nothing looks younger than it is.
#[test]
fn behind_the_window_less_what_the_clocks_may_differ_nothing_supports() {
    if Broker::shared().is_none() {
        return;
    }
    assert_eq!(with_clocks(-30_000, "80s"), (K, false), "half a minute and the minute that is allowed for");
}
