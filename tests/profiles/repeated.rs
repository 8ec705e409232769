//! A batch that is repeated sees the profiles that it was made with, whatever has changed meanwhile.
#![cfg(feature = "failpoints")]

use crate::profiles::{Scene, classes, line, lines};
use crate::support::kafka::Broker;

const BATCH: usize = 12;

/// Profiles of everybody, all of one kind.
fn all(age: i64) -> Vec<(usize, Option<(i64, &'static str)>)> {
    (0..BATCH).map(|p| (p, Some((age, "f")))).collect()
}

/// Lets the daemon die at `crash`, which is in its second batch.
fn dies(scene: &Scene, crash: &str) {
    let outcome = scene.start(Some(crash)).wait();
    assert!(outcome.code.is_none(), "{crash} was not reached: {:?} {}", outcome.code, outcome.stderr);
}

/// Profiles change between the intent of a batch and its repetition.
fn repeated_at(point: &str) {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker, BATCH, "");
    scene.profiles(&all(34));
    scene.visits(0..BATCH);
    scene.visits(0..BATCH);
    dies(&scene, &format!("{point}=1*off->return"));
    let attempted = lines(&broker.read_uncommitted(&scene.out));
    let produced = attempted.len() == 2 * BATCH;
    assert!(produced || attempted.len() == BATCH, "{point}: {} lines", attempted.len());
    // Some change, some go, and a second death comes before the batch has left.
    let mut changed = all(61);
    changed.truncate(BATCH / 2);
    changed.extend((BATCH / 2..BATCH).map(|p| (p, None)));
    scene.profiles(&changed);
    dies(&scene, "acknowledged=return");
    let again = lines(&broker.read_uncommitted(&scene.out));
    let second = &again[again.len() - BATCH..];
    if produced {
        assert_eq!(second, &attempted[BATCH..], "{point}: the attempts differ");
    }
    scene.visits(0..BATCH);
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 3 * BATCH);
    process.terminate();
    process.wait().expect(0);
    let released = scene.released();
    assert_eq!(released.len(), 3 * BATCH, "{point}");
    assert_eq!(&released[BATCH..2 * BATCH], second, "{point}: the repeated batch has other bytes");
    assert_eq!(classes(second)[&line("34", "\"f\"")], BATCH, "{point}: what was known then");
    let third = classes(&released[2 * BATCH..]);
    assert_eq!(third[&line("61", "\"f\"")], BATCH / 2, "{point}: what is known now: {third:?}");
    assert_eq!(third[&line("null", "null")], BATCH / 2, "{point}: what is known now: {third:?}");
}

#[test]
fn the_bytes_are_the_same_when_the_intent_was_written() {
    repeated_at("intent-flushed");
}

#[test]
fn the_bytes_are_the_same_when_some_had_been_produced() {
    repeated_at("acknowledged");
}

/// Between the end of a batch and the write of its effect, updates that came with it are in memory alone.
#[test]
fn updates_that_were_not_written_are_read_again() {
    let Some(broker) = Broker::shared() else { return };
    for point in ["committed", "delivered", "applied"] {
        let scene = Scene::new(broker, BATCH, "");
        scene.profiles(&all(34));
        scene.visits(0..BATCH);
        scene.visits(0..BATCH);
        dies(&scene, &format!("{point}=1*off->return"));
        scene.profiles(&all(61));
        scene.visits(0..BATCH);
        let process = scene.start(None);
        process.until("all are consumed", |s| s["totals"]["consumed"] == 3 * BATCH);
        process.terminate();
        process.wait().expect(0);
        let released = scene.released();
        assert_eq!(released.len(), 3 * BATCH, "{point}");
        assert_eq!(classes(&released[..2 * BATCH])[&line("34", "\"f\"")], 2 * BATCH, "{point}");
        assert_eq!(classes(&released[2 * BATCH..])[&line("61", "\"f\"")], BATCH, "{point}");
    }
}

/// Updates that stream in while batches leave and the process dies at every point: each record leaves once, and every batch is of one
/// kind, for all profiles change at once and between batches alone.
#[test]
fn kills_among_updates_lose_and_double_nothing() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker, BATCH, "");
    scene.profiles(&all(34));
    // How often each is passed before: once a batch, of which a round has three; the state is also written when profiles are taken over.
    let points = [
        ("state-unwritten", 3),
        ("state-unflushed", 3),
        ("intent-flushed", 1),
        ("produced", 1),
        ("committed", 1),
        ("applied", 1),
        ("rows-laid", 1),
    ];
    for (round, (point, passages)) in points.into_iter().enumerate() {
        for _ in 0..3 {
            scene.visits(0..BATCH);
            scene.profiles(&all(if round % 2 == 0 { 61 } else { 34 }));
        }
        dies(&scene, &format!("{point}={passages}*off->return"));
    }
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 3 * BATCH * points.len());
    process.terminate();
    process.wait().expect(0);
    let released = scene.released();
    assert_eq!(released.len(), 3 * BATCH * points.len(), "each record once");
    let kinds = [line("34", "\"f\""), line("61", "\"f\"")];
    for (at, batch) in released.chunks(BATCH).enumerate() {
        let known = classes(batch);
        assert!(known.len() == 1 && known.keys().all(|l| kinds.contains(l)), "batch {at}: {known:?}");
    }
}
