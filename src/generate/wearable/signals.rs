//! What the device reports: signals that follow age, fitness, hour and activity, and the gaps between them.

use super::day::{Activity, Moment, SleepStage};
use super::devices;
use super::subjects::Profile;
use crate::generate::dice::{Dice, bell_of, mix};
use crate::generate::layout::Cell;

/// The part of a record that changes from one record to the next, already in the unit it is written in.
#[derive(Debug)]
pub struct Reading {
    pub activity: Activity,
    /// Beats per minute.
    pub heart_rate: Cell<i64>,
    pub resting_hr: Cell<i64>,
    pub hrv_ms: Cell<i64>,
    /// Percent.
    pub spo2: Cell<i64>,
    /// Tenths of a degree Celsius.
    pub skin_temp_tenths: Cell<i64>,
    /// Of the last minute, like the next two.
    pub steps: Cell<i64>,
    /// Tenths of a kilocalorie.
    pub calories_tenths: Cell<i64>,
    pub distance_m: Cell<i64>,
    /// 0 to 100.
    pub stress: Cell<i64>,
    /// Percent.
    pub battery: Cell<i64>,
    pub sleep_stage: Cell<SleepStage>,
    /// Thousandths of a degree.
    pub position: Cell<(i64, i64)>,
}

/// Share of the heart-rate reserve, metabolic equivalents, steps a minute and their deviation, stride as a share of
/// the height, metres a minute without steps.
struct Effort {
    reserve: f64,
    equivalents: f64,
    steps: f64,
    steps_deviation: f64,
    stride: f64,
    metres: f64,
}

const fn effort(activity: Activity) -> Effort {
    let (reserve, equivalents, steps, steps_deviation, stride, metres) = match activity {
        Activity::Sleep => (-0.03, 0.95, 0.0, 0.0, 0.0, 0.0),
        Activity::Rest => (0.06, 1.3, 0.0, 0.0, 0.4, 0.0),
        Activity::Walk => (0.27, 3.5, 106.0, 9.0, 0.414, 0.0),
        Activity::Run => (0.66, 9.3, 162.0, 7.0, 0.62, 0.0),
        Activity::Cycle => (0.47, 7.0, 0.0, 0.0, 0.0, 310.0),
        Activity::Strength => (0.40, 5.0, 9.0, 5.0, 0.4, 0.0),
        Activity::Vehicle => (0.08, 1.5, 0.0, 0.0, 0.0, 0.0),
    };
    Effort { reserve, equivalents, steps, steps_deviation, stride, metres }
}

impl Reading {
    /// Draws a reading at `seconds` since 1970 (UTC). `missing` is the share of lost readings, 0 to 0.9.
    #[inline]
    pub fn draw(person: &Profile, seconds: i64, missing: f64, dice: &mut Dice) -> Self {
        let local = seconds + person.utc_offset;
        let now = Moment::of(&person.habits, local);
        let effort = effort(now.activity);
        let scatter = person.model.scatter;
        let hour = now.second as f64 / 3_600.0;
        // A day's wave between −1 (four in the morning) and +1 (four in the afternoon), made of two parabolas.
        let wave = {
            let phase = ((hour + 2.0) % 24.0) / 12.0 - 1.0; // −1 … 1, zero at ten in the morning
            4.0 * phase * (1.0 - phase.abs())
        };
        let day = local.div_euclid(86_400) as u64;
        let today = bell_of(mix(person.habits.key ^ day.rotate_left(32)));
        let resting = person.resting_hr + 1.5 * today;
        let highest = 208.0 - 0.7 * person.age; // [TAN]

        let pulse_noise = (2.5 + 8.0 * effort.reserve.max(0.0)) * scatter;
        let heart_rate = resting + effort.reserve * (highest - resting) + 2.0 * wave + pulse_noise * dice.bell();
        let calm = match now.activity {
            Activity::Sleep => 1.2,
            Activity::Rest | Activity::Vehicle => 1.0,
            Activity::Walk => 0.7,
            Activity::Cycle | Activity::Strength => 0.45,
            Activity::Run => 0.35,
        };
        let asleep = now.activity == Activity::Sleep;
        let hrv = person.hrv_ms * calm + 5.0 * scatter * dice.bell();
        let spo2 = person.spo2 - if asleep { 1.3 } else { 0.0 } + 0.7 * scatter * dice.bell();
        let skin = person.skin_temp
            + 0.4 * wave
            + match now.activity {
                Activity::Sleep => 1.4,
                Activity::Run | Activity::Cycle => -0.9,
                _ => 0.0,
            }
            + 0.25 * scatter * dice.bell();
        let pace = dice.bell();
        let steps = match now.activity {
            // Somebody at rest goes to the kitchen now and then.
            Activity::Rest if pace > 1.4 => (pace - 1.4) * 30.0,
            _ => effort.steps + effort.steps_deviation * pace,
        };
        let steps = steps.round().max(0.0);
        let calories = effort.equivalents * 3.5 * person.weight_kg / 200.0 * (1.0 + 0.06 * pace);
        let metres = steps * person.height_cm / 100.0 * effort.stride + effort.metres * (1.0 + 0.15 * pace);
        let working = !now.weekend && (9.0..17.0).contains(&hour);
        let load = match now.activity {
            Activity::Sleep => -18.0,
            Activity::Rest => 0.0,
            Activity::Vehicle => 8.0,
            _ => 14.0,
        };
        let stress = person.stress + load + if working { 9.0 } else { 0.0 } + 4.0 * today + 6.0 * dice.bell();

        let mut lost = Gaps::draw(person, missing, dice);
        Self {
            activity: now.activity,
            heart_rate: lost.on_wrist(0, 1.0, || heart_rate.round().clamp(35.0, 220.0) as i64),
            resting_hr: lost.reading(0, 0.5, || resting.round() as i64),
            hrv_ms: lost.on_wrist(devices::HRV, 2.0, || hrv.round().clamp(5.0, 200.0) as i64),
            spo2: lost.on_wrist(devices::SPO2, 2.0, || spo2.round().clamp(80.0, 100.0) as i64),
            skin_temp_tenths: lost.on_wrist(devices::SKIN, 1.0, || (skin * 10.0).round() as i64),
            steps: lost.reading(0, 0.3, || steps as i64),
            calories_tenths: lost.reading(0, 0.3, || (calories * 10.0).round() as i64),
            distance_m: lost.reading(0, 0.5, || metres.round().max(0.0) as i64),
            stress: lost.on_wrist(devices::HRV, 1.5, || stress.round().clamp(0.0, 100.0) as i64),
            battery: lost.reading(0, 0.2, || battery(person, seconds)),
            sleep_stage: lost.reading(devices::SLEEP, 0.5, || now.stage),
            position: lost.reading(devices::GPS, 3.0, || position(person, &now, working, pace)),
        }
    }
}

/// Falls evenly from 100 to 10 between two charges, whose moment is the person's own.
fn battery(person: &Profile, seconds: i64) -> i64 {
    let period = (person.model.battery_days * 86_400.0) as i64;
    let since_charge = (seconds + (person.habits.key >> 20) as i64).rem_euclid(period);
    100 - since_charge * 90 / period
}

/// At home or at work, out by how the person moves.
fn position(person: &Profile, now: &Moment, working: bool, pace: f64) -> (i64, i64) {
    let (home, work) = (person.home, person.work);
    let (lat, lon) = if now.activity == Activity::Vehicle {
        let part = (0.5 + pace / 7.0).clamp(0.0, 1.0);
        let along = |from: i64, to: i64| from + ((to - from) as f64 * part).round() as i64;
        (along(home.0, work.0), along(home.1, work.1))
    } else if working {
        work
    } else {
        home
    };
    let reach = match now.activity {
        Activity::Sleep | Activity::Rest | Activity::Strength => 0.0,
        Activity::Walk => 4.0,
        Activity::Run => 12.0,
        Activity::Cycle | Activity::Vehicle => 30.0,
    };
    let drift = bell_of(mix(person.habits.key ^ now.second as u64));
    (lat + (reach * pace).round() as i64, lon + (reach * drift).round() as i64)
}

/// Which readings of one record are lost. A sensor that the model does not have leaves its key out; a device that is
/// not worn loses all that is measured on the wrist at once; whether a loss is written as null is the model's habit.
struct Gaps {
    sensors: u8,
    /// Losses per 2¹⁶ readings of weight 1.
    rate: f64,
    off_wrist: bool,
    writes_null: u64,
    bits: [u64; 4],
    next: usize,
}

impl Gaps {
    #[inline]
    fn draw(person: &Profile, missing: f64, dice: &mut Dice) -> Self {
        let rate = missing * person.model.losses;
        Self {
            sensors: if missing > 0.0 { person.model.sensors } else { u8::MAX },
            rate: rate * 65_536.0,
            off_wrist: dice.chance(0.5 * rate),
            writes_null: (person.model.writes_null * 256.0) as u64,
            bits: [dice.bits(), dice.bits(), dice.bits(), dice.bits()],
            next: 0,
        }
    }

    /// Sixteen fresh bits a reading.
    #[inline]
    fn take(&mut self) -> u64 {
        let bits = self.bits[self.next / 4] >> (self.next % 4 * 16) & 0xffff;
        self.next += 1;
        bits
    }

    #[inline]
    fn reading<T>(&mut self, sensor: u8, weight: f64, value: impl FnOnce() -> T) -> Cell<T> {
        let bits = self.take();
        if self.sensors & sensor != sensor {
            Cell::Absent
        } else if (bits as f64) < self.rate * weight {
            self.gap(bits)
        } else {
            Cell::Value(value())
        }
    }

    #[inline]
    fn on_wrist<T>(&mut self, sensor: u8, weight: f64, value: impl FnOnce() -> T) -> Cell<T> {
        if self.off_wrist && self.sensors & sensor == sensor {
            let bits = self.take();
            return self.gap(bits);
        }
        self.reading(sensor, weight, value)
    }

    fn gap<T>(&self, bits: u64) -> Cell<T> {
        if mix(bits) & 0xff < self.writes_null { Cell::Null } else { Cell::Absent }
    }
}
