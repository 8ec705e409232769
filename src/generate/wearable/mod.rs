//! Readings of wearable devices as a stream: 25 attributes a record, many records a subject.
//!
//! A record is drawn in three steps: whose it is (Zipf-skewed over the subjects), what that person is doing at that
//! hour ([`day`]), and what the device makes of it ([`signals`]). Everything about a person and a device is fixed
//! when the stream starts ([`subjects`]); what somebody does in a given ten minutes is a function of person and time
//! alone. So no state is kept from record to record, and the first n records of a stream are the same however many
//! follow them.
//!
//! All people, devices and serial numbers are invented; areas and their first three ZIP digits are those of cities.

mod day;
mod devices;
mod places;
mod signals;
mod subjects;

use self::signals::Reading;
use self::subjects::{Cohort, Subjects};
use super::dice::Dice;
use super::layout::{Cell, Layout, csv_header};
use super::{GenerateError, RecordStream};
pub use subjects::WearableSettings;

/// The 25 attributes, in the order in which they are written.
#[rustfmt::skip]
const FIELDS: [&str; 25] = [
    "user_id", "email", "age", "sex", "zip", "blood_group", "height_cm", "weight_kg", "device_serial",
    "device_model", "firmware", "timestamp", "activity", "heart_rate", "resting_hr", "hrv_ms", "spo2", "skin_temp",
    "steps", "calories", "distance_m", "stress", "battery", "sleep_stage", "position",
];

/// The stream. Memory is that of its subjects, whatever the number of records.
#[derive(Debug)]
pub struct Wearable {
    settings: WearableSettings,
    subjects: Subjects,
    dice: Dice,
    /// Records written so far.
    written: u64,
    /// Microseconds since the start of the stream.
    clock: u64,
    /// The subject of the record written last.
    last: usize,
}

impl Wearable {
    /// # Errors
    /// [`GenerateError::OutOfRange`] names the setting that is outside its range.
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
        let cohort = if s.shift_at == Some(0) { Cohort::Shifted } else { Cohort::First };
        Ok(Self {
            subjects: Subjects::new(s, cohort),
            dice: Dice::new(s.seed, 1),
            settings,
            written: 0,
            clock: 0,
            last: 0,
        })
    }

    /// When the record is said to have been measured: devices send within five seconds, but one record in fifty waited
    /// up to half an hour for a connection.
    fn measured_at(&mut self) -> i64 {
        self.clock += self.dice.below(2 * self.settings.interval_micros + 1);
        let late = self.dice.below(1 << 32);
        let delay = if late.is_multiple_of(50) { 5 + (late / 50) % 1_795 } else { (late / 50) % 5 };
        self.settings.start_seconds + (self.clock / 1_000_000) as i64 - delay as i64
    }
}

impl RecordStream for Wearable {
    fn header(&self, out: &mut Vec<u8>) {
        if self.settings.layout == Layout::Csv {
            csv_header(out, FIELDS);
        }
    }

    fn append(&mut self, out: &mut Vec<u8>) {
        if self.settings.shift_at == Some(self.written) && self.written > 0 {
            self.subjects = Subjects::new(&self.settings, Cohort::Shifted);
        }
        self.written += 1;
        let seconds = self.measured_at();
        self.last = self.subjects.pick(self.dice.bits());
        let reading = Reading::draw(self.subjects.profile(self.last), seconds, self.settings.missing, &mut self.dice);
        let mut line = self.subjects.begin(self.last, self.settings.layout, out);
        line.time("timestamp", seconds);
        line.text("activity", Cell::Value(reading.activity.name()));
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
        line.text("sleep_stage", reading.sleep_stage.map(day::SleepStage::name));
        line.place("position", reading.position);
        line.close();
    }

    fn append_subject(&self, out: &mut Vec<u8>) {
        self.subjects.append_id(self.last, out);
    }
}

#[cfg(test)]
mod tests;
