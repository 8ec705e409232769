//! The people: everything that does not change from record to record, drawn once, with the constant beginning of
//! their records already written.

use super::day::Habits;
use super::devices::{MODELS, Model};
use super::places::{Homes, centre};
use crate::generate::dice::{Dice, mix};
use crate::generate::layout::{Cell, Layout, Line};
use crate::generate::weighted::Weighted;

/// What a stream of wearable records is made of. The same settings give the same bytes on every machine.
#[derive(Clone, Debug)]
pub struct WearableSettings {
    /// The same seed gives the same records.
    pub seed: u64,
    /// Number of people, 1 to 10,000,000. Each takes about 500 bytes of memory.
    pub subjects: u32,
    /// Zipf exponent of the number of records per subject, 0 (even) to 4.
    pub skew: f64,
    /// Share of readings that are lost, 0 to 0.9, before the device's own weaknesses. At 0 every device has every
    /// sensor and every record all 25 attributes.
    pub missing: f64,
    /// From this record on (counted from 0), other subjects take over: older, living elsewhere, with newer devices.
    pub shift_at: Option<u64>,
    /// Time of the first record, in seconds since 1970.
    pub start_seconds: i64,
    /// Mean time between two records of the stream, in microseconds.
    pub interval_micros: u64,
    /// How records are written down.
    pub layout: Layout,
}

impl Default for WearableSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            subjects: 10_000,
            skew: 0.6,
            missing: 0.03,
            shift_at: None,
            start_seconds: 1_767_621_600, // Monday 2026-01-05, 14:00 UTC: breakfast in the east, the end of the night in the west
            interval_micros: 100_000,
            layout: Layout::Flat,
        }
    }
}

/// Who sends: the first cohort, or the one that takes over when the population shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cohort {
    First,
    Shifted,
}

/// What the signals of one person depend on.
#[derive(Debug)]
pub struct Profile {
    pub habits: Habits,
    pub model: &'static Model,
    /// Seconds to add to UTC.
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

/// All people of a cohort.
#[derive(Debug)]
pub struct Subjects {
    first_number: u64,
    who: Weighted,
    profiles: Vec<Profile>,
    /// The constant beginnings of the records one after the other; person i has `heads[ends[i-1]..ends[i]]`.
    heads: Vec<u8>,
    ends: Vec<u64>,
}

impl Subjects {
    #[must_use]
    pub fn new(settings: &WearableSettings, cohort: Cohort) -> Self {
        let count = settings.subjects as usize;
        let shifted = cohort == Cohort::Shifted;
        let mut dice = Dice::new(settings.seed, if shifted { 3 } else { 2 });
        let mut weights = Weighted::zipf_weights(count, settings.skew);
        // Without this the order of the ids would be the order of zeal.
        for i in (1..count).rev() {
            weights.swap(i, dice.below(i as u64 + 1) as usize);
        }
        let market = Market::new(shifted);
        let first_number = if shifted { u64::from(settings.subjects) } else { 0 };
        let mut subjects = Self {
            first_number,
            who: Weighted::new(&weights),
            profiles: Vec::with_capacity(count),
            heads: Vec::with_capacity(count * 256),
            ends: Vec::with_capacity(count),
        };
        for i in 0..count {
            let person = Person::draw(&market, &mut dice);
            let mut head = Line::open(settings.layout, &mut subjects.heads);
            person.write(first_number + i as u64, settings, &mut dice, &mut head);
            subjects.ends.push(subjects.heads.len() as u64);
            subjects.profiles.push(person.profile);
        }
        subjects
    }

    #[inline]
    #[must_use]
    pub fn pick(&self, bits: u64) -> usize {
        self.who.pick(bits)
    }

    #[inline]
    #[must_use]
    pub fn profile(&self, subject: usize) -> &Profile {
        &self.profiles[subject]
    }

    /// Copies the constant beginning of the subject's records and lets the line go on from there.
    #[inline]
    pub fn begin<'o>(&self, subject: usize, layout: Layout, out: &'o mut Vec<u8>) -> Line<'o> {
        let start = if subject == 0 { 0 } else { self.ends[subject - 1] as usize };
        out.extend_from_slice(&self.heads[start..self.ends[subject] as usize]);
        Line::resume(layout, out)
    }

    pub fn append_id(&self, subject: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(user_id(self.first_number + subject as u64).as_bytes());
    }
}

fn user_id(number: u64) -> String {
    format!("u{number:07}")
}

/// The distributions from which people are drawn.
struct Market {
    ages: Weighted,
    models: Weighted,
    firmware: Vec<Weighted>,
    blood_groups: Weighted,
    homes: Homes,
}

/// Per five years from 18 on: who wears a device, and who wears one in the shifted cohort.
const AGES: [f64; 14] = [14.0, 15.0, 16.0, 13.0, 11.0, 9.0, 7.0, 5.0, 4.0, 3.0, 1.6, 0.8, 0.4, 0.2];
const SHIFTED_AGES: [f64; 14] = [2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 13.0, 12.0, 10.0, 8.0, 5.0, 2.0];

/// In the United States, in percent.
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

impl Market {
    fn new(shifted: bool) -> Self {
        let share = |m: &Model| if shifted { m.shifted_share } else { m.share };
        Self {
            ages: Weighted::new(if shifted { &SHIFTED_AGES } else { &AGES }),
            models: Weighted::new(&MODELS.each_ref().map(share)),
            firmware: MODELS
                .iter()
                .map(|m| Weighted::new(&m.firmware.iter().map(|(_, share)| *share).collect::<Vec<_>>()))
                .collect(),
            blood_groups: Weighted::new(&BLOOD_GROUPS.map(|(_, share)| share)),
            homes: Homes::new(shifted),
        }
    }
}

/// A person as drawn: the profile, and what only the beginning of the record says.
struct Person {
    profile: Profile,
    sex: &'static str,
    zip: u32,
    blood_group: &'static str,
    firmware: &'static str,
}

impl Person {
    fn draw(market: &Market, dice: &mut Dice) -> Self {
        let age = 18.0 + 5.0 * market.ages.pick(dice.bits()) as f64 + dice.below(5) as f64;
        let sex = match dice.below(100) {
            0..=49 => "female",
            50..=98 => "male",
            _ => "diverse",
        };
        let male = if sex == "diverse" { dice.unit() } else { f64::from(u8::from(sex == "male")) };
        let height_cm = (162.0 + 13.5 * male + 6.8 * dice.bell()).round();
        // Body mass index, not below 17, rising a little with age.
        let mass_index = (25.5 + 0.035 * (age - 40.0) + 4.0 * dice.bell()).max(17.0);
        let weight_kg = (mass_index * height_cm * height_cm / 1_000.0).round() / 10.0;
        let sport = (1.0 + 0.5 * dice.bell() - 0.012 * (age - 40.0)).clamp(0.1, 2.5);
        let model_index = market.models.pick(dice.bits());
        let model = &MODELS[model_index];
        let firmware = model.firmware[market.firmware[model_index].pick(dice.bits())].0;
        let (area, zip) = market.homes.pick(dice.bits(), dice.bits());
        let (lat, lon) = centre(area, zip);
        let mut near = |(lat, lon): (i64, i64), radius: f64| {
            (lat + (radius * dice.bell()).round() as i64, lon + (radius * dice.bell()).round() as i64)
        };
        let home = near((lat, lon), 8.0);
        let work = near((area.lat, area.lon), 60.0);
        let habits = Habits {
            key: dice.bits(),
            bed: 81_900 + (4_000.0 * dice.bell()).clamp(-9_000.0, 14_000.0) as i64,
            wake: 24_300 + (3_600.0 * dice.bell()).clamp(-9_000.0, 12_000.0) as i64,
            sport,
        };
        let profile = Profile {
            habits,
            model,
            utc_offset: area.utc_hours * 3_600,
            age,
            height_cm,
            weight_kg,
            resting_hr: (67.0 - 3.0 * male - 7.0 * (sport - 1.0) + 5.5 * dice.bell()).clamp(42.0, 95.0),
            hrv_ms: (62.0 - 0.75 * (age - 35.0) + 8.0 * (sport - 1.0) + 11.0 * dice.bell()).clamp(12.0, 130.0),
            spo2: 97.6 - 0.015 * (age - 40.0) + 0.4 * dice.bell(),
            skin_temp: 33.1 + 0.4 * dice.bell(),
            stress: 32.0 + 9.0 * dice.bell() - 4.0 * (sport - 1.0),
            home,
            work,
        };
        let blood_group = BLOOD_GROUPS[market.blood_groups.pick(dice.bits())].0;
        Self { profile, sex, zip, blood_group, firmware }
    }

    /// The attributes that are the same in every record of this person, as are the gaps among them: what somebody
    /// did not want to say is missing in all of the records.
    fn write(&self, number: u64, settings: &WearableSettings, dice: &mut Dice, line: &mut Line<'_>) {
        let name_bits = mix(self.profile.habits.key);
        let names = if self.sex == "male" { &MALE_NAMES } else { &FEMALE_NAMES };
        let first = names[(name_bits % 16) as usize];
        let last = SURNAMES[((name_bits >> 8) % 24) as usize];
        let mut undisclosed = |weight: f64| {
            let (lost, null) = (dice.unit(), dice.unit());
            if lost >= settings.missing * weight {
                Cell::Value(())
            } else if null < self.profile.model.writes_null {
                Cell::Null
            } else {
                Cell::Absent
            }
        };
        line.text("user_id", Cell::Value(&user_id(number)));
        line.text("email", Cell::Value(&format!("{first}.{last}{number}@example.org")));
        line.integer("age", undisclosed(0.5).map(|()| self.profile.age as i64));
        line.text("sex", undisclosed(0.5).map(|()| self.sex));
        let zip = format!("{:05}", self.zip);
        line.text("zip", undisclosed(1.0).map(|()| zip.as_str()));
        line.text("blood_group", undisclosed(5.0).map(|()| self.blood_group));
        line.integer("height_cm", undisclosed(1.0).map(|()| self.profile.height_cm as i64));
        line.tenths("weight_kg", undisclosed(2.0).map(|()| (self.profile.weight_kg * 10.0).round() as i64));
        line.text("device_serial", Cell::Value(&serial(number, settings.seed)));
        line.text("device_model", Cell::Value(self.profile.model.name));
        line.text("firmware", Cell::Value(self.firmware));
    }
}

/// Ten characters, different for every number below 2⁴⁰: an odd multiplier is a bijection of the numbers modulo 2⁴⁰.
fn serial(number: u64, seed: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKLMNPQRTUVWXY";
    let scrambled = number.wrapping_add(mix(seed)).wrapping_mul(0x9e_3779_b97b);
    let digits = (0..8).map(|place| char::from(DIGITS[(scrambled >> (35 - 5 * place) & 31) as usize]));
    "SN".chars().chain(digits).collect()
}
