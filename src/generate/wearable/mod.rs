//! Stream of wearable readings: 25 attributes per record, many records per subject.
//!
//! A record is the draw of a subject (Zipf-skewed), its activity in a ten-minute bout (a function of subject and time),
//! and device readings. Only clock and random generator carry over, so the first n records do not depend on the length.
//!
//! Subjects, devices and serial numbers are fictitious; areas and ZIP prefixes are real.

mod activity_schedule;
mod device_models;
mod device_readings;
mod home_areas;
mod wearable_subjects;

use self::device_readings::DeviceReading;
use self::wearable_subjects::{PopulationCohort, WearableSubjects};
use super::record_writer::{GeneratedCell, RecordLayout, csv_header};
use super::seeded_random::SeededRandom;
use super::{GenerateError, RecordStream};
pub use wearable_subjects::WearableSettings;

/// In output order.
#[rustfmt::skip]
const WEARABLE_FIELDS: [&str; 25] = [
    "user_id", "email", "age", "sex", "zip", "blood_group", "height_cm", "weight_kg", "device_serial",
    "device_model", "firmware", "timestamp", "activity", "heart_rate", "resting_hr", "hrv_ms", "spo2", "skin_temp",
    "steps", "calories", "distance_m", "stress", "battery", "sleep_stage", "position",
];

/// Wearable stream; memory depends on the subjects only.
#[derive(Debug)]
pub struct WearableStream {
    settings: WearableSettings,
    subjects: WearableSubjects,
    dice: SeededRandom,
    written: u64,
    /// Microseconds since the start.
    clock: u64,
    last: usize,
}

impl WearableStream {
    /// Creates the stream.
    ///
    /// # Errors
    /// [`GenerateError::OutOfRange`] with the name of the setting.
    pub fn new(settings: WearableSettings) -> Result<Self, GenerateError> {
        let within = |good: bool, setting, given: String, allowed| {
            if good { Ok(()) } else { Err(GenerateError::OutOfRange { setting, given, allowed }) }
        };
        let s = &settings;
        within((1..=10_000_000).contains(&s.subjects), "subjects", s.subjects.to_string(), "1 to 10000000")?;
        within((0.0..=4.0).contains(&s.skew), "skew", s.skew.to_string(), "0 to 4")?;
        within((0.0..=0.9).contains(&s.missing), "missing", s.missing.to_string(), "0 to 0.9")?;
        let interval = s.interval_micros;
        within(interval <= 3_600_000_000, "interval", format!("{interval} us"), "0 to one hour")?;
        let start = s.start_seconds;
        within((0..=32_503_680_000).contains(&start), "start", format!("{start} s"), "the years 1970 to 3000")?;
        let cohort = if s.shift_at == Some(0) { PopulationCohort::Shifted } else { PopulationCohort::First };
        Ok(Self {
            subjects: WearableSubjects::new(s, cohort),
            dice: SeededRandom::new(s.seed, 1),
            settings,
            written: 0,
            clock: 0,
            last: 0,
        })
    }

    /// Devices send within five seconds, one record in fifty up to half an hour late.
    fn measured_at(&mut self) -> i64 {
        self.clock += self.dice.uniform_below(2 * self.settings.interval_micros + 1);
        let late = self.dice.uniform_below(1 << 32);
        let delay = if late.is_multiple_of(50) { 5 + (late / 50) % 1_795 } else { (late / 50) % 5 };
        self.settings.start_seconds + (self.clock / 1_000_000) as i64 - delay as i64
    }
}

impl RecordStream for WearableStream {
    fn header(&self, out: &mut Vec<u8>) {
        if self.settings.layout == RecordLayout::Csv {
            csv_header(out, WEARABLE_FIELDS);
        }
    }

    fn append(&mut self, out: &mut Vec<u8>) {
        if self.settings.shift_at == Some(self.written) && self.written > 0 {
            self.subjects = WearableSubjects::new(&self.settings, PopulationCohort::Shifted);
        }
        self.written += 1;
        let seconds = self.measured_at();
        self.last = self.subjects.pick(self.dice.bits());
        let reading =
            DeviceReading::draw(self.subjects.profile(self.last), seconds, self.settings.missing, &mut self.dice);
        let mut line = self.subjects.start_record(self.last, self.settings.layout, out);
        line.time("timestamp", seconds);
        line.text("activity", GeneratedCell::Value(reading.activity.name()));
        line.integer("heart_rate", reading.heart_rate);
        line.integer("resting_hr", reading.resting_hr);
        line.integer("hrv_ms", reading.hrv_ms);
        line.integer("spo2", reading.spo2);
        line.tenths("skin_temp", reading.skin_temp_tenths);
        line.integer("steps", reading.steps);
        line.tenths("calories", reading.calories_tenths);
        line.integer("distance_m", reading.distance_m);
        line.integer("stress", reading.stress);
        line.integer("battery", reading.battery);
        line.text("sleep_stage", reading.sleep_stage.map(activity_schedule::SleepStage::name));
        line.place("position", reading.position);
        line.end_record();
    }

    fn append_subject(&self, out: &mut Vec<u8>) {
        self.subjects.append_id(self.last, out);
    }
}

#[cfg(test)]
mod tests;
