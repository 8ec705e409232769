//! What a person does at an hour of the day: sleep by the person's own night, else a bout of ten minutes drawn from
//! the table of the hour.

use crate::generate::dice::mix;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Sleep,
    Rest,
    Walk,
    Run,
    Cycle,
    Strength,
    Vehicle,
}

impl Activity {
    pub const AWAKE: [Activity; 6] =
        [Activity::Rest, Activity::Walk, Activity::Run, Activity::Cycle, Activity::Strength, Activity::Vehicle];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Activity::Sleep => "sleep",
            Activity::Rest => "rest",
            Activity::Walk => "walk",
            Activity::Run => "run",
            Activity::Cycle => "cycle",
            Activity::Strength => "strength",
            Activity::Vehicle => "vehicle",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepStage {
    Awake,
    Light,
    Deep,
    Rem,
}

impl SleepStage {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SleepStage::Awake => "awake",
            SleepStage::Light => "light",
            SleepStage::Deep => "deep",
            SleepStage::Rem => "rem",
        }
    }
}

/// A person's habits.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Key of everything that is a function of person and time.
    pub key: u64,
    /// When the night begins, in seconds after local midnight; past 86,400 for those who go to bed after midnight.
    pub bed: i64,
    /// When it ends, in seconds after local midnight.
    pub wake: i64,
    /// How much sport the person does, 1 on average.
    pub sport: f64,
}

/// Rest, walk, run, cycle, strength, vehicle, in per mille of the hour (whoever is awake then).
const HOURS: [[u16; 6]; 24] = [
    [960, 25, 0, 0, 0, 15],
    [970, 20, 0, 0, 0, 10],
    [970, 20, 0, 0, 0, 10],
    [970, 20, 0, 0, 0, 10],
    [950, 30, 5, 0, 5, 10],
    [850, 60, 35, 10, 15, 30],
    [680, 110, 70, 25, 35, 80],
    [540, 160, 50, 45, 25, 180],
    [540, 160, 20, 40, 10, 230],
    [760, 130, 15, 15, 15, 65],
    [800, 120, 10, 10, 20, 40],
    [790, 130, 10, 10, 20, 40],
    [640, 250, 25, 15, 20, 50],
    [720, 200, 10, 10, 10, 50],
    [800, 120, 5, 10, 15, 50],
    [780, 130, 5, 15, 20, 50],
    [700, 140, 15, 30, 25, 90],
    [520, 170, 40, 50, 40, 180],
    [500, 190, 65, 45, 60, 140],
    [620, 180, 50, 25, 55, 70],
    [760, 140, 20, 10, 30, 40],
    [870, 80, 5, 5, 10, 30],
    [920, 50, 0, 0, 5, 25],
    [945, 35, 0, 0, 0, 20],
];

const BOUT_SECONDS: i64 = 600;
const SLEEP_CYCLE_SECONDS: i64 = 5_400;

/// What somebody does at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub activity: Activity,
    pub stage: SleepStage,
    /// Seconds after local midnight, 0 to 86,399.
    pub second: i64,
    pub weekend: bool,
}

impl Moment {
    /// `local` is the local time in seconds since 1970.
    #[must_use]
    pub fn of(habits: &Habits, local: i64) -> Self {
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let weekend = matches!(days.rem_euclid(7), 2 | 3); // 1 January 1970 was a Thursday
        let bout = mix(habits.key ^ mix(local.div_euclid(BOUT_SECONDS) as u64));
        let asleep_for = if second < habits.wake { second + 86_400 - habits.bed } else { second - habits.bed };
        let (activity, stage) = if asleep_for < 0 {
            (Self::awake(habits, second, bout), SleepStage::Awake)
        } else if bout & 0xff < 9 {
            (Activity::Rest, SleepStage::Awake)
        } else {
            (Activity::Sleep, Self::stage(asleep_for))
        };
        Self { activity, stage, second, weekend }
    }

    fn awake(habits: &Habits, second: i64, bout: u64) -> Activity {
        let mut weights = HOURS[(second / 3_600) as usize].map(f64::from);
        for sport in &mut weights[2..5] {
            *sport *= habits.sport;
        }
        let mut left = (bout >> 11) as f64 / 9_007_199_254_740_992.0 * weights.iter().sum::<f64>();
        for (activity, weight) in Activity::AWAKE.into_iter().zip(weights) {
            if left < weight {
                return activity;
            }
            left -= weight;
        }
        Activity::Rest
    }

    /// Cycles of ninety minutes: deep sleep in the early ones, dreams in the late ones.
    fn stage(asleep_for: i64) -> SleepStage {
        let (cycle, within) = (asleep_for / SLEEP_CYCLE_SECONDS, asleep_for % SLEEP_CYCLE_SECONDS);
        let deep = (2_400 - 550 * cycle).max(0);
        let dream = 600 + 350 * cycle.min(6);
        if within >= SLEEP_CYCLE_SECONDS - dream {
            SleepStage::Rem
        } else if (1_200..1_200 + deep).contains(&within) {
            SleepStage::Deep
        } else {
            SleepStage::Light
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HABITS: Habits = Habits { key: 5, bed: 82_800, wake: 25_200, sport: 1.0 };

    #[test]
    fn the_hours_add_up() {
        for (hour, weights) in HOURS.iter().enumerate() {
            assert_eq!(weights.iter().sum::<u16>(), 1_000, "hour {hour}");
        }
    }

    #[test]
    fn nights_are_slept_and_days_are_not() {
        let night_owl = Habits { bed: 90_000, ..HABITS };
        let mut asleep = 0;
        for day in 0..100 {
            let at = |hour: i64, habits| Moment::of(habits, day * 86_400 + hour * 3_600 + 300);
            assert_ne!(at(12, &HABITS).activity, Activity::Sleep);
            assert_eq!(at(12, &HABITS).stage, SleepStage::Awake);
            assert_ne!(at(0, &night_owl).activity, Activity::Sleep);
            asleep += i32::from(at(3, &HABITS).activity == Activity::Sleep);
            asleep += i32::from(at(3, &night_owl).activity == Activity::Sleep);
        }
        // Of 200 nights 3.5 % are interrupted at three o'clock; a fixed sequence of bouts, so it cannot fail by chance.
        assert!((170..200).contains(&asleep), "{asleep}");
    }

    #[test]
    fn a_bout_lasts_ten_minutes() {
        for bout in 0..500 {
            let first = Moment::of(&HABITS, 43_200 + bout * 86_400).activity;
            assert!((0..10).all(|m| Moment::of(&HABITS, 43_200 + bout * 86_400 + m * 60).activity == first));
        }
    }
}
