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
pub mod fields;
mod places;
mod settings;
mod signals;
mod subjects;

use self::fields::FIELDS;
use self::signals::Reading;
use self::subjects::{Cohort, Subjects};
use super::dice::Dice;
use super::layout::{Cell, Layout, csv_header};
use super::{GenerateError, RecordStream};
pub use settings::WearableSettings;

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
            csv_header(out, FIELDS.iter().map(|f| f.name));
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
        line.time(&fields::TIMESTAMP, seconds);
        line.text(&fields::ACTIVITY, Cell::Value(reading.activity.name()));
        line.integer(&fields::HEART_RATE, reading.heart_rate);
        line.integer(&fields::RESTING_HR, reading.resting_hr);
        line.integer(&fields::HRV_MS, reading.hrv_ms);
        line.integer(&fields::SPO2, reading.spo2);
        line.tenths(&fields::SKIN_TEMP, reading.skin_temp_tenths);
        line.integer(&fields::STEPS, reading.steps);
        line.tenths(&fields::CALORIES, reading.calories_tenths);
        line.integer(&fields::DISTANCE_M, reading.distance_m);
        line.integer(&fields::STRESS, reading.stress);
        line.integer(&fields::BATTERY, reading.battery);
        line.text(&fields::SLEEP_STAGE, reading.sleep_stage.map(day::SleepStage::name));
        line.place(&fields::POSITION, reading.position);
        line.close();
    }

    fn append_subject(&self, out: &mut Vec<u8>) {
        self.subjects.append_id(self.last, out);
    }
}

#[cfg(test)]
mod tests;
