//! Activity by time: sleep at night, otherwise a ten-minute bout by the hour.

use crate::generate::seeded_random::hash_bits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WearerActivity {
    Sleep,
    Rest,
    Walk,
    Run,
    Cycle,
    Strength,
    Vehicle,
}

impl WearerActivity {
    pub const AWAKE_ACTIVITIES: [WearerActivity; 6] = [
        WearerActivity::Rest,
        WearerActivity::Walk,
        WearerActivity::Run,
        WearerActivity::Cycle,
        WearerActivity::Strength,
        WearerActivity::Vehicle,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WearerActivity::Sleep => "sleep",
            WearerActivity::Rest => "rest",
            WearerActivity::Walk => "walk",
            WearerActivity::Run => "run",
            WearerActivity::Cycle => "cycle",
            WearerActivity::Strength => "strength",
            WearerActivity::Vehicle => "vehicle",
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

/// Habits of a subject.
#[derive(Clone, Copy, Debug)]
pub struct SubjectHabits {
    /// Key of values that depend only on subject and time.
    pub key: u64,
    /// Start of the night, seconds after local midnight; may exceed 86,400.
    pub bed: i64,
    /// End of the night, seconds after local midnight.
    pub wake: i64,
    /// Sport, 1 on average.
    pub sport: f64,
}

/// Rest, walk, run, cycle, strength, vehicle: per mille of waking time by hour.
const HOURLY_ACTIVITY_PER_MILLE: [[u16; 6]; 24] = [
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

/// Activity and sleep stage.
#[derive(Clone, Copy, Debug)]
pub struct ActivityState {
    pub activity: WearerActivity,
    pub stage: SleepStage,
    /// Seconds after local midnight.
    pub second: i64,
    pub weekend: bool,
}

impl ActivityState {
    /// Computes the state at local seconds since 1970.
    #[must_use]
    pub fn at_local_time(habits: &SubjectHabits, local: i64) -> Self {
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let weekend = matches!(days.rem_euclid(7), 2 | 3); // 1 January 1970 was a Thursday
        let bout = hash_bits(habits.key ^ hash_bits(local.div_euclid(BOUT_SECONDS) as u64));
        let asleep_for = if second < habits.wake { second + 86_400 - habits.bed } else { second - habits.bed };
        let (activity, stage) = if asleep_for < 0 {
            (Self::draw_awake_activity(habits, second, bout), SleepStage::Awake)
        } else if bout & 0xff < 9 {
            (WearerActivity::Rest, SleepStage::Awake)
        } else {
            (WearerActivity::Sleep, Self::stage(asleep_for))
        };
        Self { activity, stage, second, weekend }
    }

    fn draw_awake_activity(habits: &SubjectHabits, second: i64, bout: u64) -> WearerActivity {
        let mut weights = HOURLY_ACTIVITY_PER_MILLE[(second / 3_600) as usize].map(f64::from);
        for sport in &mut weights[2..5] {
            *sport *= habits.sport;
        }
        let mut left = (bout >> 11) as f64 / 9_007_199_254_740_992.0 * weights.iter().sum::<f64>();
        for (activity, weight) in WearerActivity::AWAKE_ACTIVITIES.into_iter().zip(weights) {
            if left < weight {
                return activity;
            }
            left -= weight;
        }
        WearerActivity::Rest
    }

    /// Ninety-minute cycles: first more deep sleep, later more REM sleep.
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

    const TEST_HABITS: SubjectHabits = SubjectHabits { key: 5, bed: 82_800, wake: 25_200, sport: 1.0 };

    #[test]
    fn hourly_activity_sums_to_one_thousand() {
        for (hour, weights) in HOURLY_ACTIVITY_PER_MILLE.iter().enumerate() {
            assert_eq!(weights.iter().sum::<u16>(), 1_000, "hour {hour}");
        }
    }

    #[test]
    fn sleep_occurs_only_at_night() {
        let night_owl = SubjectHabits { bed: 90_000, ..TEST_HABITS };
        let mut asleep = 0;
        for day in 0..100 {
            let at = |hour: i64, habits| ActivityState::at_local_time(habits, day * 86_400 + hour * 3_600 + 300);
            assert_ne!(at(12, &TEST_HABITS).activity, WearerActivity::Sleep);
            assert_eq!(at(12, &TEST_HABITS).stage, SleepStage::Awake);
            assert_ne!(at(0, &night_owl).activity, WearerActivity::Sleep);
            asleep += i32::from(at(3, &TEST_HABITS).activity == WearerActivity::Sleep);
            asleep += i32::from(at(3, &night_owl).activity == WearerActivity::Sleep);
        }
        // 3.5 % of nights are interrupted then; the sequence is fixed.
        assert!((170..200).contains(&asleep), "{asleep}");
    }

    #[test]
    fn activity_is_constant_for_ten_minutes() {
        for bout in 0..500 {
            let first = ActivityState::at_local_time(&TEST_HABITS, 43_200 + bout * 86_400).activity;
            assert!(
                (0..10)
                    .all(|m| ActivityState::at_local_time(&TEST_HABITS, 43_200 + bout * 86_400 + m * 60).activity
                        == first)
            );
        }
    }
}
