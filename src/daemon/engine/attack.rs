//! Attacks on a copy of a batch that has left, in a thread of their own at the lowest priority.

use super::recheck::LEAST_PRIORITY;
use crate::anonymity::planner::GroupShape;
use crate::evaluation::attack::{Effort, Promises, Release, Yield, on_a_batch};
use crate::evaluation::facts::AttributeFacts;
use crate::evaluation::original::Original;
use crate::evaluation::released::ReleasedGroup;
use crate::telemetry::{Attack, AttacksTried, Label, Telemetry, in_steps};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first attacks are tried this long after the start, where that is sooner than the interval.
const FIRST_AFTER_MS: i64 = 30_000;
/// How hard is tried.
const EFFORT: Effort = Effort { targets: 500, known: 2, seed: 0 };
/// Yields are in steps of this.
const STEP: f64 = 0.05;
/// Trials below which a yield is not told: one person would move it.
const FEWEST_TRIALS: u64 = 500;

/// When attacks are tried.
#[derive(Debug, Default)]
pub(super) struct Attacks {
    /// The age at which they are tried next; none before the first batch.
    next_ms: Option<i64>,
    /// How often they were.
    turns: u64,
    is_running: Arc<AtomicBool>,
}

/// A copy of a batch that leaves.
pub(super) struct Target {
    pub original: Original,
    pub shapes: Vec<GroupShape>,
    pub groups: Vec<ReleasedGroup>,
    pub promises: Promises,
}

impl Attacks {
    /// Whether it is time to try them at `age_ms`, every `interval_ms`.
    pub fn are_due(&mut self, age_ms: i64, interval_ms: i64) -> bool {
        let next_ms = *self.next_ms.get_or_insert(age_ms.saturating_add(interval_ms.min(FIRST_AFTER_MS)));
        age_ms >= next_ms && !self.is_running.load(Ordering::Acquire)
    }

    /// Tries them on a batch that has left, and again no sooner than at `next_ms`.
    pub fn begin(&mut self, target: Target, next_ms: i64, telemetry: &Telemetry) {
        self.next_ms = Some(next_ms);
        self.turns += 1;
        self.is_running.store(true, Ordering::Release);
        let (telemetry, turn, ended) = (telemetry.clone(), self.turns, Ended(Arc::clone(&self.is_running)));
        let thread = std::thread::Builder::new().name("attacks".to_owned()).spawn(move || {
            let _ended = ended;
            if let Err(error) = rustix::process::setpriority_process(None, LEAST_PRIORITY) {
                tracing::debug!(%error, "attacks are tried at the daemon's own priority");
            }
            tell(&tried(&target), turn, &telemetry);
        });
        if let Err(error) = thread {
            tracing::warn!(%error, "attacks on the release have no thread");
        }
    }
}

/// Whatever becomes of the thread, the next one may begin.
struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn tried(target: &Target) -> Vec<Yield> {
    let Target { original, shapes, groups, promises } = target;
    // One after the other: a pool's threads have the daemon's own priority.
    let attributes = 0..original.schema.attributes.len();
    let facts: Vec<AttributeFacts> = attributes.map(|attribute| AttributeFacts::of(original, attribute)).collect();
    on_a_batch(&Release::new(original, &facts, shapes, groups, *promises), EFFORT)
}

/// Of each attack what gave an outsider most, rounded; above a promise where there is one, by more than rounding can do.
fn tell(yields: &[Yield], turn: u64, telemetry: &Telemetry) {
    let draws = telemetry.draws();
    let of = |&attack: &Attack| {
        let is_told = |found: &&Yield| found.attack.starts_with(attack.as_str()) && found.trials >= FEWEST_TRIALS;
        let rounded = |(at, found): (usize, &Yield)| {
            let shown = in_steps(found.rate, STEP, draws.draw(&format!("attack {attack} {at}"), turn));
            let above = |bound: f64| !found.open && shown > bound.max(1.5 * found.chance) + STEP;
            (shown, found.bound.is_some_and(above))
        };
        let told: Vec<(f64, bool)> = yields.iter().filter(is_told).enumerate().map(rounded).collect();
        let most = told.iter().map(|(shown, _)| *shown).reduce(f64::max)?;
        Some((attack, most, told.iter().any(|(_, above)| *above)))
    };
    AttacksTried { tried: Attack::ALL.iter().filter_map(of).collect() }.emit(telemetry);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the pages say of linkage: the yield, and whether it is above its promise.
    fn told(trials: u64, rate: f64, bound: f64) -> [String; 2] {
        let found = Yield {
            attack: "linkage",
            given: String::new(),
            trials,
            rate,
            interval: [rate, rate],
            chance: 0.0,
            bound: Some(bound),
            open: false,
        };
        let telemetry = Telemetry::new(5, &[]);
        telemetry.key_draws(&[3; 32]);
        tell(&[found], 1, &telemetry);
        let page = telemetry.render();
        ["throng_attack_yield", "throng_attack_above_promise"].map(|name| {
            let series = format!("{name}{{attack=\"linkage\"}} ");
            let line = page.lines().find_map(|line| line.strip_prefix(&series));
            line.expect("a series").to_owned()
        })
    }

    #[test]
    fn a_yield_of_few_trials_is_not_told() {
        assert_eq!(told(FEWEST_TRIALS - 1, 1.0, 0.2), ["NaN", "NaN"]);
        assert_eq!(told(FEWEST_TRIALS, 1.0, 0.2), ["1", "1"]);
    }

    /// Rounding raises no alarm, and one trial more or less changes next to no page.
    #[test]
    fn a_yield_is_told_in_steps_and_judged_by_them() {
        for rate in [0.2, 0.21, 0.24, 0.249] {
            assert_eq!(told(1_000, rate, 0.2)[1], "0", "{rate}");
        }
        assert_eq!(told(1_000, 0.4, 0.2)[1], "1");
        let moved = (0..100).filter(|n| {
            let rate = f64::from(*n) / 100.0 + 0.003;
            told(1_000, rate, 0.2)[0] != told(1_000, rate + 0.001, 0.2)[0]
        });
        assert!(moved.count() < 10);
    }
}
