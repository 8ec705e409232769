//! A retried batch uses the profiles of its first attempt, although they have changed since.
#![cfg(feature = "failpoints")]

use crate::profiles::{Scene, classes, line, lines};
use crate::support::kafka::TestCluster;

const BATCH: usize = 12;

fn all(age: i64) -> Vec<(usize, Option<(i64, &'static str)>)> {
    (0..BATCH).map(|p| (p, Some((age, "f")))).collect()
}

fn dies(scene: &Scene, crash: &str) {
    let outcome = scene.start(Some(crash)).wait();
    assert!(outcome.code.is_none(), "{crash} was not reached: {:?} {}", outcome.code, outcome.stderr);
}

fn repeated_at(point: &str) {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::new(broker, BATCH, "");
    scene.profiles(&all(34));
    scene.visits(0..BATCH);
    scene.visits(0..BATCH);
    dies(&scene, &format!("{point}=1*off->return"));
    let attempted = lines(&broker.read_uncommitted(&scene.out));
    let produced = attempted.len() == 2 * BATCH;
    assert!(produced || attempted.len() == BATCH, "{point}: {} lines", attempted.len());
    // A second crash comes before the batch is released.
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
fn retried_batch_has_same_bytes_after_intent_despite_profile_changes() {
    repeated_at("intent-flushed");
}

#[test]
fn retried_batch_has_same_bytes_after_produce_despite_profile_changes() {
    repeated_at("acknowledged");
}

/// Updates received with a batch are only in memory until its effects are written.
#[test]
fn unwritten_profile_updates_are_read_again_after_crash() {
    let Some(broker) = TestCluster::shared() else { return };
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

/// Every batch has one kind of profile, because all profiles change together and between batches.
#[test]
fn kills_during_profile_updates_lose_and_duplicate_nothing() {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::new(broker, BATCH, "");
    scene.profiles(&all(34));
    // Passages of each point before the crash, with three batches per round.
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
