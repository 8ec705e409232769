//! Signals by age, fitness, hour and activity, with missing values.

use super::activity_schedule::{ActivityState, SleepStage, WearerActivity};
use super::device_models;
use super::wearable_subjects::SubjectProfile;
use crate::generate::record_writer::GeneratedCell;
use crate::generate::seeded_random::{SeededRandom, hash_bits, standard_normal_of};

/// Variable part of a record, in output units.
#[derive(Debug)]
pub struct DeviceReading {
    pub activity: WearerActivity,
    /// Beats per minute.
    pub heart_rate: GeneratedCell<i64>,
    pub resting_hr: GeneratedCell<i64>,
    pub hrv_ms: GeneratedCell<i64>,
    /// Percent.
    pub spo2: GeneratedCell<i64>,
    /// Tenths of a degree Celsius.
    pub skin_temp_tenths: GeneratedCell<i64>,
    /// Steps in the last minute, as the next two fields.
    pub steps: GeneratedCell<i64>,
    /// Tenths of a kilocalorie.
    pub calories_tenths: GeneratedCell<i64>,
    pub distance_m: GeneratedCell<i64>,
    /// 0 to 100.
    pub stress: GeneratedCell<i64>,
    /// Percent.
    pub battery: GeneratedCell<i64>,
    pub sleep_stage: GeneratedCell<SleepStage>,
    /// Thousandths of a degree.
    pub position: GeneratedCell<(i64, i64)>,
}

/// Share of the heart-rate reserve, metabolic equivalents, steps per minute and deviation, stride per height, metres
/// per minute without steps.
struct ActivityEffort {
    reserve: f64,
    equivalents: f64,
    steps: f64,
    steps_deviation: f64,
    stride: f64,
    metres: f64,
}

const fn effort(activity: WearerActivity) -> ActivityEffort {
    let (reserve, equivalents, steps, steps_deviation, stride, metres) = match activity {
        WearerActivity::Sleep => (-0.03, 0.95, 0.0, 0.0, 0.0, 0.0),
        WearerActivity::Rest => (0.06, 1.3, 0.0, 0.0, 0.4, 0.0),
        WearerActivity::Walk => (0.27, 3.5, 106.0, 9.0, 0.414, 0.0),
        WearerActivity::Run => (0.66, 9.3, 162.0, 7.0, 0.62, 0.0),
        WearerActivity::Cycle => (0.47, 7.0, 0.0, 0.0, 0.0, 310.0),
        WearerActivity::Strength => (0.40, 5.0, 9.0, 5.0, 0.4, 0.0),
        WearerActivity::Vehicle => (0.08, 1.5, 0.0, 0.0, 0.0, 0.0),
    };
    ActivityEffort { reserve, equivalents, steps, steps_deviation, stride, metres }
}

impl DeviceReading {
    /// Draws a reading at `seconds` since 1970 (UTC); `missing` is the lost share, 0 to 0.9.
    #[inline]
    pub fn draw(person: &SubjectProfile, seconds: i64, missing: f64, dice: &mut SeededRandom) -> Self {
        let local = seconds + person.utc_offset;
        let now = ActivityState::at_local_time(&person.habits, local);
        let effort = effort(now.activity);
        let scatter = person.model.scatter;
        let hour = now.second as f64 / 3_600.0;
        // Between −1 (4 a.m.) and +1 (4 p.m.), of two parabolas.
        let wave = {
            let phase = ((hour + 2.0) % 24.0) / 12.0 - 1.0; // −1 … 1, zero at ten in the morning
            4.0 * phase * (1.0 - phase.abs())
        };
        let day = local.div_euclid(86_400) as u64;
        let today = standard_normal_of(hash_bits(person.habits.key ^ day.rotate_left(32)));
        let resting = person.resting_hr + 1.5 * today;
        let highest = 208.0 - 0.7 * person.age; // [TAN]

        let pulse_noise = (2.5 + 8.0 * effort.reserve.max(0.0)) * scatter;
        let heart_rate =
            resting + effort.reserve * (highest - resting) + 2.0 * wave + pulse_noise * dice.standard_normal();
        let calm = match now.activity {
            WearerActivity::Sleep => 1.2,
            WearerActivity::Rest | WearerActivity::Vehicle => 1.0,
            WearerActivity::Walk => 0.7,
            WearerActivity::Cycle | WearerActivity::Strength => 0.45,
            WearerActivity::Run => 0.35,
        };
        let asleep = now.activity == WearerActivity::Sleep;
        let hrv = person.hrv_ms * calm + 5.0 * scatter * dice.standard_normal();
        let spo2 = person.spo2 - if asleep { 1.3 } else { 0.0 } + 0.7 * scatter * dice.standard_normal();
        let skin = person.skin_temp
            + 0.4 * wave
            + match now.activity {
                WearerActivity::Sleep => 1.4,
                WearerActivity::Run | WearerActivity::Cycle => -0.9,
                _ => 0.0,
            }
            + 0.25 * scatter * dice.standard_normal();
        let pace = dice.standard_normal();
        let steps = match now.activity {
            // A few steps now and then.
            WearerActivity::Rest if pace > 1.4 => (pace - 1.4) * 30.0,
            _ => effort.steps + effort.steps_deviation * pace,
        };
        let steps = steps.round().max(0.0);
        let calories = effort.equivalents * 3.5 * person.weight_kg / 200.0 * (1.0 + 0.06 * pace);
        let metres = steps * person.height_cm / 100.0 * effort.stride + effort.metres * (1.0 + 0.15 * pace);
        let working = !now.weekend && (9.0..17.0).contains(&hour);
        let load = match now.activity {
            WearerActivity::Sleep => -18.0,
            WearerActivity::Rest => 0.0,
            WearerActivity::Vehicle => 8.0,
            _ => 14.0,
        };
        let stress =
            person.stress + load + if working { 9.0 } else { 0.0 } + 4.0 * today + 6.0 * dice.standard_normal();

        let mut lost = ReadingGaps::draw(person, missing, dice);
        Self {
            activity: now.activity,
            heart_rate: lost.wrist_sensor_cell(0, 1.0, || heart_rate.round().clamp(35.0, 220.0) as i64),
            resting_hr: lost.sensor_cell(0, 0.5, || resting.round() as i64),
            hrv_ms: lost.wrist_sensor_cell(device_models::HRV, 2.0, || hrv.round().clamp(5.0, 200.0) as i64),
            spo2: lost.wrist_sensor_cell(device_models::SPO2, 2.0, || spo2.round().clamp(80.0, 100.0) as i64),
            skin_temp_tenths: lost
                .wrist_sensor_cell(device_models::SKIN_TEMPERATURE, 1.0, || (skin * 10.0).round() as i64),
            steps: lost.sensor_cell(0, 0.3, || steps as i64),
            calories_tenths: lost.sensor_cell(0, 0.3, || (calories * 10.0).round() as i64),
            distance_m: lost.sensor_cell(0, 0.5, || metres.round().max(0.0) as i64),
            stress: lost.wrist_sensor_cell(device_models::HRV, 1.5, || stress.round().clamp(0.0, 100.0) as i64),
            battery: lost.sensor_cell(0, 0.2, || battery(person, seconds)),
            sleep_stage: lost.sensor_cell(device_models::SLEEP, 0.5, || now.stage),
            position: lost.sensor_cell(device_models::GPS, 3.0, || position(person, &now, working, pace)),
        }
    }
}

/// Linear from 100 to 10 between two charges.
fn battery(person: &SubjectProfile, seconds: i64) -> i64 {
    let period = (person.model.battery_days * 86_400.0) as i64;
    let since_charge = (seconds + (person.habits.key >> 20) as i64).rem_euclid(period);
    100 - since_charge * 90 / period
}

/// Displaced by the activity.
fn position(person: &SubjectProfile, now: &ActivityState, working: bool, pace: f64) -> (i64, i64) {
    let (home, work) = (person.home, person.work);
    let (lat, lon) = if now.activity == WearerActivity::Vehicle {
        let part = (0.5 + pace / 7.0).clamp(0.0, 1.0);
        let along = |from: i64, to: i64| from + ((to - from) as f64 * part).round() as i64;
        (along(home.0, work.0), along(home.1, work.1))
    } else if working {
        work
    } else {
        home
    };
    let reach = match now.activity {
        WearerActivity::Sleep | WearerActivity::Rest | WearerActivity::Strength => 0.0,
        WearerActivity::Walk => 4.0,
        WearerActivity::Run => 12.0,
        WearerActivity::Cycle | WearerActivity::Vehicle => 30.0,
    };
    let drift = standard_normal_of(hash_bits(person.habits.key ^ now.second as u64));
    (lat + (reach * pace).round() as i64, lon + (reach * drift).round() as i64)
}

/// Sensors that the model lacks have no key. A device not worn loses all wrist readings. The model decides between null
/// and absent.
struct ReadingGaps {
    sensors: u8,
    /// Losses per 2¹⁶ readings of weight 1.
    rate: f64,
    off_wrist: bool,
    writes_null: u64,
    bits: [u64; 4],
    next: usize,
}

impl ReadingGaps {
    #[inline]
    fn draw(person: &SubjectProfile, missing: f64, dice: &mut SeededRandom) -> Self {
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

    /// Sixteen bits per reading.
    #[inline]
    fn next_bits(&mut self) -> u64 {
        let bits = self.bits[self.next / 4] >> (self.next % 4 * 16) & 0xffff;
        self.next += 1;
        bits
    }

    #[inline]
    fn sensor_cell<T>(&mut self, sensor: u8, weight: f64, value: impl FnOnce() -> T) -> GeneratedCell<T> {
        let bits = self.next_bits();
        if self.sensors & sensor != sensor {
            GeneratedCell::Absent
        } else if (bits as f64) < self.rate * weight {
            self.missing_cell(bits)
        } else {
            GeneratedCell::Value(value())
        }
    }

    #[inline]
    fn wrist_sensor_cell<T>(&mut self, sensor: u8, weight: f64, value: impl FnOnce() -> T) -> GeneratedCell<T> {
        if self.off_wrist && self.sensors & sensor == sensor {
            let bits = self.next_bits();
            return self.missing_cell(bits);
        }
        self.sensor_cell(sensor, weight, value)
    }

    fn missing_cell<T>(&self, bits: u64) -> GeneratedCell<T> {
        if hash_bits(bits) & 0xff < self.writes_null { GeneratedCell::Null } else { GeneratedCell::Absent }
    }
}
