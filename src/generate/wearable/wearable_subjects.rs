//! Subjects, with the constant start of their records as text.

use super::activity_schedule::SubjectHabits;
use super::device_models::{DEVICE_MODELS, DeviceModel};
use super::home_areas::{HomeSampler, district_centre};
use crate::generate::alias_table::AliasTable;
use crate::generate::record_writer::{GeneratedCell, RecordLayout, RecordLineWriter};
use crate::generate::seeded_random::{SeededRandom, hash_bits};

/// Settings; equal ones give equal bytes on every machine.
#[derive(Clone, Debug)]
pub struct WearableSettings {
    /// Random seed.
    pub seed: u64,
    /// Subjects, 1 to 10,000,000, at about 500 bytes.
    pub subjects: u32,
    /// Zipf exponent of records per subject, 0 (uniform) to 4.
    pub skew: f64,
    /// Share of lost readings, 0 to 0.9, before device-specific losses; at 0 every record has all attributes.
    pub missing: f64,
    /// First record (from 0) of an older population in other places with newer devices.
    pub shift_at: Option<u64>,
    /// First record, seconds since 1970.
    pub start_seconds: i64,
    /// Mean microseconds between records.
    pub interval_micros: u64,
    /// Output format.
    pub layout: RecordLayout,
}

impl Default for WearableSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            subjects: 10_000,
            skew: 0.6,
            missing: 0.03,
            shift_at: None,
            start_seconds: 1_767_621_600, // Monday 2026-01-05, 14:00 UTC: morning in the east, night in the west
            interval_micros: 100_000,
            layout: RecordLayout::Flat,
        }
    }
}

/// First population, or that after the shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopulationCohort {
    First,
    Shifted,
}

/// Subject properties behind the signals.
#[derive(Debug)]
pub struct SubjectProfile {
    pub habits: SubjectHabits,
    pub model: &'static DeviceModel,
    /// Seconds added to UTC.
    pub utc_offset: i64,
    pub age: f64,
    pub height_cm: f64,
    pub weight_kg: f64,
    pub resting_hr: f64,
    pub hrv_ms: f64,
    pub spo2: f64,
    pub skin_temp: f64,
    pub stress: f64,
    /// Thousandths of a degree.
    pub home: (i64, i64),
    pub work: (i64, i64),
}

/// Subjects of a cohort.
#[derive(Debug)]
pub struct WearableSubjects {
    first_number: u64,
    record_share: AliasTable,
    profiles: Vec<SubjectProfile>,
    /// Concatenated; subject i has `heads[ends[i-1]..ends[i]]`.
    heads: Vec<u8>,
    ends: Vec<u64>,
}

impl WearableSubjects {
    #[must_use]
    pub fn new(settings: &WearableSettings, cohort: PopulationCohort) -> Self {
        let count = settings.subjects as usize;
        let shifted = cohort == PopulationCohort::Shifted;
        let mut dice = SeededRandom::new(settings.seed, if shifted { 3 } else { 2 });
        let mut weights = AliasTable::zipf_weights(count, settings.skew);
        // Otherwise IDs would be sorted by records.
        for i in (1..count).rev() {
            weights.swap(i, dice.uniform_below(i as u64 + 1) as usize);
        }
        let market = PopulationDistributions::new(shifted);
        let first_number = if shifted { u64::from(settings.subjects) } else { 0 };
        let mut subjects = Self {
            first_number,
            record_share: AliasTable::new(&weights),
            profiles: Vec::with_capacity(count),
            heads: Vec::with_capacity(count * 256),
            ends: Vec::with_capacity(count),
        };
        for i in 0..count {
            let person = DrawnSubject::draw(&market, &mut dice);
            let mut head = RecordLineWriter::begin_record(settings.layout, &mut subjects.heads);
            person.write(first_number + i as u64, settings, &mut dice, &mut head);
            subjects.ends.push(subjects.heads.len() as u64);
            subjects.profiles.push(person.profile);
        }
        subjects
    }

    #[inline]
    #[must_use]
    pub fn pick(&self, bits: u64) -> usize {
        self.record_share.sample_outcome(bits)
    }

    #[inline]
    #[must_use]
    pub fn profile(&self, subject: usize) -> &SubjectProfile {
        &self.profiles[subject]
    }

    /// Copies the constant start, and returns the line to continue.
    #[inline]
    pub fn start_record<'o>(&self, subject: usize, layout: RecordLayout, out: &'o mut Vec<u8>) -> RecordLineWriter<'o> {
        let start = if subject == 0 { 0 } else { self.ends[subject - 1] as usize };
        out.extend_from_slice(&self.heads[start..self.ends[subject] as usize]);
        RecordLineWriter::continue_record(layout, out)
    }

    pub fn append_id(&self, subject: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(user_id(self.first_number + subject as u64).as_bytes());
    }
}

fn user_id(number: u64) -> String {
    format!("u{number:07}")
}

struct PopulationDistributions {
    ages: AliasTable,
    models: AliasTable,
    firmware: Vec<AliasTable>,
    blood_groups: AliasTable,
    homes: HomeSampler,
}

/// Weights per five years from 18, in the first and shifted cohort.
const FIRST_COHORT_AGES: [f64; 14] = [14.0, 15.0, 16.0, 13.0, 11.0, 9.0, 7.0, 5.0, 4.0, 3.0, 1.6, 0.8, 0.4, 0.2];
const SHIFTED_COHORT_AGES: [f64; 14] = [2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 13.0, 12.0, 10.0, 8.0, 5.0, 2.0];

/// United States, percent.
const BLOOD_GROUPS: [(&str, f64); 8] =
    [("O+", 37.4), ("A+", 35.7), ("B+", 8.5), ("O-", 6.6), ("A-", 6.3), ("AB+", 3.4), ("B-", 1.5), ("AB-", 0.6)];

const FEMALE_NAMES: [&str; 16] = [
    "maria", "anna", "emma", "olivia", "sofia", "amina", "grace", "helen", "ines", "julia", "karen", "laura", "mei",
    "nora", "priya", "ruth",
];
const MALE_NAMES: [&str; 16] = [
    "james", "david", "omar", "luis", "peter", "ivan", "noah", "henry", "karl", "samuel", "victor", "wei", "tomas",
    "ravi", "jonas", "felix",
];
const SURNAMES: [&str; 24] = [
    "smith", "johnson", "garcia", "nguyen", "jensen", "kowalski", "okafor", "patel", "kim", "rossi", "muller", "lopez",
    "brown", "silva", "cohen", "haddad", "novak", "tanaka", "walker", "young", "reed", "murphy", "diaz", "fischer",
];

impl PopulationDistributions {
    fn new(shifted: bool) -> Self {
        let share = |m: &DeviceModel| if shifted { m.shifted_share } else { m.share };
        Self {
            ages: AliasTable::new(if shifted { &SHIFTED_COHORT_AGES } else { &FIRST_COHORT_AGES }),
            models: AliasTable::new(&DEVICE_MODELS.each_ref().map(share)),
            firmware: DEVICE_MODELS
                .iter()
                .map(|m| AliasTable::new(&m.firmware.iter().map(|(_, share)| *share).collect::<Vec<_>>()))
                .collect(),
            blood_groups: AliasTable::new(&BLOOD_GROUPS.map(|(_, share)| share)),
            homes: HomeSampler::new(shifted),
        }
    }
}

/// Profile, and values of the record start.
struct DrawnSubject {
    profile: SubjectProfile,
    sex: &'static str,
    zip: u32,
    blood_group: &'static str,
    firmware: &'static str,
}

impl DrawnSubject {
    fn draw(market: &PopulationDistributions, dice: &mut SeededRandom) -> Self {
        let age = 18.0 + 5.0 * market.ages.sample_outcome(dice.bits()) as f64 + dice.uniform_below(5) as f64;
        let sex = match dice.uniform_below(100) {
            0..=49 => "female",
            50..=98 => "male",
            _ => "diverse",
        };
        let male = if sex == "diverse" { dice.uniform_unit() } else { f64::from(u8::from(sex == "male")) };
        let height_cm = (162.0 + 13.5 * male + 6.8 * dice.standard_normal()).round();
        // Body mass index of at least 17, rising with age.
        let mass_index = (25.5 + 0.035 * (age - 40.0) + 4.0 * dice.standard_normal()).max(17.0);
        let weight_kg = (mass_index * height_cm * height_cm / 1_000.0).round() / 10.0;
        let sport = (1.0 + 0.5 * dice.standard_normal() - 0.012 * (age - 40.0)).clamp(0.1, 2.5);
        let model_index = market.models.sample_outcome(dice.bits());
        let model = &DEVICE_MODELS[model_index];
        let firmware = model.firmware[market.firmware[model_index].sample_outcome(dice.bits())].0;
        let (area, zip) = market.homes.sample_home(dice.bits(), dice.bits());
        let (lat, lon) = district_centre(area, zip);
        let mut near = |(lat, lon): (i64, i64), radius: f64| {
            (
                lat + (radius * dice.standard_normal()).round() as i64,
                lon + (radius * dice.standard_normal()).round() as i64,
            )
        };
        let home = near((lat, lon), 8.0);
        let work = near((area.lat, area.lon), 60.0);
        let habits = SubjectHabits {
            key: dice.bits(),
            bed: 81_900 + (4_000.0 * dice.standard_normal()).clamp(-9_000.0, 14_000.0) as i64,
            wake: 24_300 + (3_600.0 * dice.standard_normal()).clamp(-9_000.0, 12_000.0) as i64,
            sport,
        };
        let profile = SubjectProfile {
            habits,
            model,
            utc_offset: area.utc_hours * 3_600,
            age,
            height_cm,
            weight_kg,
            resting_hr: (67.0 - 3.0 * male - 7.0 * (sport - 1.0) + 5.5 * dice.standard_normal()).clamp(42.0, 95.0),
            hrv_ms: (62.0 - 0.75 * (age - 35.0) + 8.0 * (sport - 1.0) + 11.0 * dice.standard_normal())
                .clamp(12.0, 130.0),
            spo2: 97.6 - 0.015 * (age - 40.0) + 0.4 * dice.standard_normal(),
            skin_temp: 33.1 + 0.4 * dice.standard_normal(),
            stress: 32.0 + 9.0 * dice.standard_normal() - 4.0 * (sport - 1.0),
            home,
            work,
        };
        let blood_group = BLOOD_GROUPS[market.blood_groups.sample_outcome(dice.bits())].0;
        Self { profile, sex, zip, blood_group, firmware }
    }

    /// Gaps are constant too: an undisclosed value is always missing.
    fn write(
        &self,
        number: u64,
        settings: &WearableSettings,
        dice: &mut SeededRandom,
        line: &mut RecordLineWriter<'_>,
    ) {
        let name_bits = hash_bits(self.profile.habits.key);
        let names = if self.sex == "male" { &MALE_NAMES } else { &FEMALE_NAMES };
        let first = names[(name_bits % 16) as usize];
        let last = SURNAMES[((name_bits >> 8) % 24) as usize];
        let mut undisclosed = |weight: f64| {
            let (lost, null) = (dice.uniform_unit(), dice.uniform_unit());
            if lost >= settings.missing * weight {
                GeneratedCell::Value(())
            } else if null < self.profile.model.writes_null {
                GeneratedCell::Null
            } else {
                GeneratedCell::Absent
            }
        };
        line.text("user_id", GeneratedCell::Value(&user_id(number)));
        line.text("email", GeneratedCell::Value(&format!("{first}.{last}{number}@example.org")));
        line.integer("age", undisclosed(0.5).map(|()| self.profile.age as i64));
        line.text("sex", undisclosed(0.5).map(|()| self.sex));
        let zip = format!("{:05}", self.zip);
        line.text("zip", undisclosed(1.0).map(|()| zip.as_str()));
        line.text("blood_group", undisclosed(5.0).map(|()| self.blood_group));
        line.integer("height_cm", undisclosed(1.0).map(|()| self.profile.height_cm as i64));
        line.tenths("weight_kg", undisclosed(2.0).map(|()| (self.profile.weight_kg * 10.0).round() as i64));
        line.text("device_serial", GeneratedCell::Value(&serial(number, settings.seed)));
        line.text("device_model", GeneratedCell::Value(self.profile.model.name));
        line.text("firmware", GeneratedCell::Value(self.firmware));
    }
}

/// Ten characters, distinct below 2⁴⁰: an odd multiplier is a bijection.
fn serial(number: u64, seed: u64) -> String {
    const SERIAL_DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKLMNPQRTUVWXY";
    let scrambled = number.wrapping_add(hash_bits(seed)).wrapping_mul(0x9e_3779_b97b);
    let digits = (0..8).map(|place| char::from(SERIAL_DIGITS[(scrambled >> (35 - 5 * place) & 31) as usize]));
    "SN".chars().chain(digits).collect()
}
