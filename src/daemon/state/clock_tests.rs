use super::*;
use proptest::prelude::*;
use std::sync::Mutex;
use std::time::Duration;

const HOUR: i64 = 3_600_000;
const WINDOW: Duration = Duration::from_secs(3600);
const MAX_STEP_MS: i64 = HOUR + 1000;

struct SettableClocks(Mutex<ClockReading>);

impl SettableClocks {
    fn at(wall_ms: i64, running_ms: i64, boot: u128) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ClockReading { wall_ms, running_ms, boot })))
    }

    fn change(&self, change: impl FnOnce(&mut ClockReading)) {
        change(&mut self.0.lock().expect("one test"));
    }

    fn pass(&self, ms: i64) {
        self.change(|r| {
            r.wall_ms += ms;
            r.running_ms += ms;
        });
    }
}

impl ClockSource for SettableClocks {
    fn read(&self) -> ClockReading {
        *self.0.lock().expect("one test")
    }
}

fn clock_after_one_hour(clocks: &Arc<SettableClocks>) -> (StateClock, ClockAnchor) {
    let mut clock = StateClock::resume(Arc::clone(clocks) as Arc<dyn ClockSource>, &[], WINDOW);
    clocks.pass(HOUR);
    let now = clock.now();
    assert_eq!(now.age_ms, HOUR);
    (clock, now.anchor)
}

fn resumed_age(clocks: &Arc<SettableClocks>, anchor: ClockAnchor) -> i64 {
    StateClock::resume(Arc::clone(clocks) as Arc<dyn ClockSource>, &[anchor], WINDOW).now().age_ms
}

#[test]
fn age_with_wall_clock_set_back_while_running_advances() {
    let clocks = SettableClocks::at(1_700_000_000_000, 5000, 7);
    let (mut clock, _) = clock_after_one_hour(&clocks);
    clocks.change(|r| r.wall_ms -= 2 * HOUR);
    assert_eq!(clock.now().age_ms, HOUR);
    clocks.pass(5000);
    assert_eq!(clock.now().age_ms, HOUR + 5000);
}

#[test]
fn age_with_wall_clock_set_back_across_restart_advances() {
    let clocks = SettableClocks::at(1_700_000_000_000, 5000, 7);
    let (_, anchor) = clock_after_one_hour(&clocks);
    clocks.pass(5000);
    clocks.change(|r| r.wall_ms -= 2 * HOUR);
    assert_eq!(
        resumed_age(&clocks, anchor),
        HOUR + 5000,
        "the same start of the machine knows the time that has passed"
    );
    // Unknown elapsed time: all support must end.
    clocks.change(|r| (r.boot, r.running_ms) = (8, 10));
    assert_eq!(resumed_age(&clocks, anchor), HOUR + MAX_STEP_MS);
    clocks.change(|r| r.wall_ms += 2 * HOUR);
    assert_eq!(resumed_age(&clocks, anchor), HOUR + 5000);
}

#[test]
fn age_with_wall_clock_set_ahead_advances_one_window() {
    let clocks = SettableClocks::at(1_700_000_000_000, 5000, 7);
    let (mut clock, anchor) = clock_after_one_hour(&clocks);
    clocks.change(|r| r.wall_ms += 200 * 365 * 24 * HOUR);
    assert_eq!(clock.now().age_ms, HOUR + MAX_STEP_MS);
    assert_eq!(resumed_age(&clocks, anchor), HOUR + MAX_STEP_MS);
    clocks.pass(1000);
    assert_eq!(clock.now().age_ms, HOUR + MAX_STEP_MS + 1000);
    clocks.change(|r| r.wall_ms -= 200 * 365 * 24 * HOUR);
    clocks.pass(1000);
    assert_eq!(clock.now().age_ms, HOUR + MAX_STEP_MS + 2000, "ages go on by the machine's run");
}

#[test]
fn age_after_machine_pause_follows_wall_clock() {
    let clocks = SettableClocks::at(1_700_000_000_000, 5000, 7);
    let (mut clock, _) = clock_after_one_hour(&clocks);
    clocks.change(|r| r.wall_ms += HOUR / 2);
    assert_eq!(clock.now().age_ms, HOUR + HOUR / 2);
}

#[test]
fn age_with_small_clock_shifts_accumulates_them() {
    let clocks = SettableClocks::at(1_700_000_000_000, 5000, 7);
    let (mut clock, _) = clock_after_one_hour(&clocks);
    for _ in 0..60 {
        clocks.pass(1000);
        clocks.change(|r| r.wall_ms += 50);
        clock.now();
    }
    let age = clock.now().age_ms;
    assert!((HOUR + 63_000 - SLACK_MS..=HOUR + 63_000).contains(&age), "{age}");
}

#[test]
fn age_without_boot_identifier_follows_wall_clock() {
    let clocks = SettableClocks::at(1_700_000_000_000, 5000, 0);
    let (_, anchor) = clock_after_one_hour(&clocks);
    clocks.pass(5000);
    assert_eq!(resumed_age(&clocks, anchor), HOUR + 5000);
}

proptest! {
    /// While one clock is correct, an age is understated by at most the slack.
    #[test]
    fn age_under_random_clock_steps_never_decreases(steps in prop::collection::vec((0i64..10_000, -20_000i64..20_000, 0u8..6), 1..60)) {
        let clocks = SettableClocks::at(1_700_000_000_000, 5000, 7);
        let (mut clock, _) = clock_after_one_hour(&clocks);
        let (mut truth, mut before, mut anchor) = (HOUR, HOUR, clock.now().anchor);
        for (passed, shift, event) in steps {
            clocks.pass(passed);
            truth += passed;
            match event {
                0 => clocks.change(|r| r.wall_ms += shift),
                1 => clock = StateClock::resume(Arc::clone(&clocks) as Arc<dyn ClockSource>, &[anchor], WINDOW),
                _ => {}
            }
            let now = clock.now();
            prop_assert!(now.age_ms >= before);
            prop_assert!(now.age_ms >= truth - SLACK_MS * 60, "{} after {truth}", now.age_ms);
            (before, anchor) = (now.age_ms, now.anchor);
        }
    }
}

#[derive(Default)]
struct SkewedClocks(std::sync::Mutex<ClockReading>);

impl ClockSource for SkewedClocks {
    fn read(&self) -> ClockReading {
        *self.0.lock().expect("no panic")
    }
}

impl SkewedClocks {
    fn pass(&self, ran_ms: i64, wall_ms: i64) {
        let mut reading = self.0.lock().expect("no panic");
        reading.running_ms += ran_ms;
        reading.wall_ms += wall_ms;
    }
}

#[test]
fn group_age_after_clock_step_returns_to_wall_clock() {
    const HOUR: i64 = 3_600_000;
    let clocks =
        Arc::new(SkewedClocks(std::sync::Mutex::new(ClockReading { wall_ms: 1_000 * HOUR, running_ms: 0, boot: 1 })));
    let window = std::time::Duration::from_secs(24 * 3600);
    let mut clock = StateClock::resume(Arc::clone(&clocks) as Arc<dyn ClockSource>, &[], window).shared_by_group();
    assert_eq!(clock.now().age_ms, 1_000 * HOUR);
    clocks.pass(HOUR, 11 * HOUR);
    assert_eq!(clock.now().age_ms, 1_011 * HOUR);
    clocks.pass(0, -10 * HOUR);
    for _ in 0..40 {
        let before = clock.now().age_ms;
        clocks.pass(HOUR, HOUR);
        assert!(clock.now().age_ms >= before, "ages never fall");
    }
    let ahead = clock.now().age_ms - clocks.read().wall_ms;
    assert!((0..=HOUR).contains(&ahead), "{ahead} ms ahead after 40 hours");
    let anchor = ClockAnchor { age_ms: 1_000 * HOUR, reading: clocks.read() };
    clocks.pass(8_760 * HOUR, 8_760 * HOUR);
    let mut late = StateClock::resume(Arc::clone(&clocks) as Arc<dyn ClockSource>, &[anchor], window).shared_by_group();
    assert!(late.now().age_ms >= clocks.read().wall_ms);
}
