use super::*;
use proptest::prelude::*;
use std::sync::Mutex;
use std::time::Duration;

const HOUR: i64 = 3_600_000;
const WINDOW: Duration = Duration::from_secs(3600);
const MOST: i64 = HOUR + 1000;

/// Clocks that a test sets.
struct Set(Mutex<Reading>);

impl Set {
    fn at(wall_ms: i64, running_ms: i64, boot: u128) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Reading { wall_ms, running_ms, boot })))
    }

    fn change(&self, change: impl FnOnce(&mut Reading)) {
        change(&mut self.0.lock().expect("one test"));
    }

    /// Time passes for both clocks.
    fn pass(&self, ms: i64) {
        self.change(|r| {
            r.wall_ms += ms;
            r.running_ms += ms;
        });
    }
}

impl Clocks for Set {
    fn read(&self) -> Reading {
        *self.0.lock().expect("one test")
    }
}

/// A clock of a state that is an hour old, and the anchor that it left then.
fn an_hour_on(clocks: &Arc<Set>) -> (StateClock, Anchor) {
    let mut clock = StateClock::resume(Arc::clone(clocks) as Arc<dyn Clocks>, &[], WINDOW);
    clocks.pass(HOUR);
    let now = clock.now();
    assert_eq!(now.age_ms, HOUR);
    (clock, now.anchor)
}

fn resumed(clocks: &Arc<Set>, anchor: Anchor) -> i64 {
    StateClock::resume(Arc::clone(clocks) as Arc<dyn Clocks>, &[anchor], WINDOW).now().age_ms
}

#[test]
fn a_wall_clock_set_back_while_running_stops_no_age() {
    let clocks = Set::at(1_700_000_000_000, 5000, 7);
    let (mut clock, _) = an_hour_on(&clocks);
    clocks.change(|r| r.wall_ms -= 2 * HOUR);
    assert_eq!(clock.now().age_ms, HOUR);
    clocks.pass(5000);
    assert_eq!(clock.now().age_ms, HOUR + 5000);
}

#[test]
fn a_wall_clock_set_back_over_a_restart_stops_no_age() {
    let clocks = Set::at(1_700_000_000_000, 5000, 7);
    let (_, anchor) = an_hour_on(&clocks);
    clocks.pass(5000);
    clocks.change(|r| r.wall_ms -= 2 * HOUR);
    assert_eq!(resumed(&clocks, anchor), HOUR + 5000, "the same start of the machine knows the time that has passed");
    // Another start of the machine does not: nothing may support anything any more.
    clocks.change(|r| (r.boot, r.running_ms) = (8, 10));
    assert_eq!(resumed(&clocks, anchor), HOUR + MOST);
    // The true time, where the wall clock was left alone.
    clocks.change(|r| r.wall_ms += 2 * HOUR);
    assert_eq!(resumed(&clocks, anchor), HOUR + 5000);
}

#[test]
fn a_wall_clock_set_ahead_ends_support_once_and_no_more() {
    let clocks = Set::at(1_700_000_000_000, 5000, 7);
    let (mut clock, anchor) = an_hour_on(&clocks);
    // To the year 2200, and back.
    clocks.change(|r| r.wall_ms += 200 * 365 * 24 * HOUR);
    assert_eq!(clock.now().age_ms, HOUR + MOST);
    assert_eq!(resumed(&clocks, anchor), HOUR + MOST);
    clocks.pass(1000);
    assert_eq!(clock.now().age_ms, HOUR + MOST + 1000);
    clocks.change(|r| r.wall_ms -= 200 * 365 * 24 * HOUR);
    clocks.pass(1000);
    assert_eq!(clock.now().age_ms, HOUR + MOST + 2000, "ages go on by the machine's run");
}

#[test]
fn a_machine_that_stood_still_is_believed_by_the_wall_clock() {
    let clocks = Set::at(1_700_000_000_000, 5000, 7);
    let (mut clock, _) = an_hour_on(&clocks);
    clocks.change(|r| r.wall_ms += HOUR / 2);
    assert_eq!(clock.now().age_ms, HOUR + HOUR / 2);
}

#[test]
fn small_shifts_add_up_until_they_count() {
    let clocks = Set::at(1_700_000_000_000, 5000, 7);
    let (mut clock, _) = an_hour_on(&clocks);
    for _ in 0..60 {
        clocks.pass(1000);
        clocks.change(|r| r.wall_ms += 50);
        clock.now();
    }
    let age = clock.now().age_ms;
    assert!((HOUR + 63_000 - SLACK_MS..=HOUR + 63_000).contains(&age), "{age}");
}

#[test]
fn a_system_that_does_not_name_its_starts_goes_by_the_wall_clock() {
    let clocks = Set::at(1_700_000_000_000, 5000, 0);
    let (_, anchor) = an_hour_on(&clocks);
    clocks.pass(5000);
    assert_eq!(resumed(&clocks, anchor), HOUR + 5000);
}

proptest! {
    /// Whatever is done to the clocks, an age never falls, and while one of them is left alone none is understated by more
    /// than the slack.
    #[test]
    fn no_age_falls_or_is_understated(steps in prop::collection::vec((0i64..10_000, -20_000i64..20_000, 0u8..6), 1..60)) {
        let clocks = Set::at(1_700_000_000_000, 5000, 7);
        let (mut clock, _) = an_hour_on(&clocks);
        let (mut truth, mut before, mut anchor) = (HOUR, HOUR, clock.now().anchor);
        for (passed, shift, event) in steps {
            clocks.pass(passed);
            truth += passed;
            match event {
                // Somebody sets the wall clock.
                0 => clocks.change(|r| r.wall_ms += shift),
                // The process ends and another one goes on.
                1 => clock = StateClock::resume(Arc::clone(&clocks) as Arc<dyn Clocks>, &[anchor], WINDOW),
                _ => {}
            }
            let now = clock.now();
            prop_assert!(now.age_ms >= before);
            prop_assert!(now.age_ms >= truth - SLACK_MS * 60, "{} after {truth}", now.age_ms);
            (before, anchor) = (now.age_ms, now.anchor);
        }
    }
}

/// The clocks of a test, set by hand.
#[derive(Default)]
struct ByHand(std::sync::Mutex<Reading>);

impl Clocks for ByHand {
    fn read(&self) -> Reading {
        *self.0.lock().expect("no panic")
    }
}

impl ByHand {
    fn pass(&self, ran_ms: i64, wall_ms: i64) {
        let mut reading = self.0.lock().expect("no panic");
        reading.running_ms += ran_ms;
        reading.wall_ms += wall_ms;
    }
}

#[test]
fn ages_of_a_group_begin_at_the_wall_clock_and_come_back_to_it() {
    const HOUR: i64 = 3_600_000;
    let clocks = Arc::new(ByHand(std::sync::Mutex::new(Reading { wall_ms: 1_000 * HOUR, running_ms: 0, boot: 1 })));
    let window = std::time::Duration::from_secs(24 * 3600);
    let mut clock = StateClock::resume(Arc::clone(&clocks) as Arc<dyn Clocks>, &[], window).of_group();
    assert_eq!(clock.now().age_ms, 1_000 * HOUR);
    // Set ahead by ten hours, and back again.
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
    // A state that has lain still for a year.
    let anchor = Anchor { age_ms: 1_000 * HOUR, reading: clocks.read() };
    clocks.pass(8_760 * HOUR, 8_760 * HOUR);
    let mut late = StateClock::resume(Arc::clone(&clocks) as Arc<dyn Clocks>, &[anchor], window).of_group();
    assert!(late.now().age_ms >= clocks.read().wall_ms);
}
