//! Wide table of health records: 107 attributes, one record per subject.
//!
//! Modelled on the data set of \[POD] (§4.5.1, §6.3, Appendix A): shares of countries and blood types (tables A.1 and
//! A.2), and numbers of distinct values. Names and codes are fictitious. It has near-identifiers, long tails, sparse
//! columns, and functional dependencies (zip → city → state → country, birthday → age and zodiac, centimeters → feet).
//!
//! Three diseases depend on age, sex, weight, height, blood type and a gene variant.

mod disease_risks;
mod fictitious_names;

pub use disease_risks::CORONARY_ARTERY_DISEASE;

use self::disease_risks::{DISEASE_RISKS, DiseaseDraw, RiskFactors};
use self::fictitious_names::{name, word};
use super::RecordStream;
use super::alias_table::AliasTable;
use super::record_writer::{GeneratedCell, RecordLayout, RecordLineWriter, csv_header};
use super::seeded_random::{SeededRandom, hash_bits, pow};
use chrono::Datelike as _;
use throng_core::values::moment::{DAY, date};

const FAMILY_COLUMNS: usize = 20;

macro_rules! family {
    ($name:literal: $($member:literal)*) => { [$(concat!($name, "_", $member)),*] };
}
macro_rules! twenty {
    ($name:literal) => { family!($name: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19) };
}

const FAMILY_FIELDS: [[&str; FAMILY_COLUMNS]; 4] =
    [twenty!("disease"), twenty!("drug"), twenty!("snp"), twenty!("gene")];

#[rustfmt::skip]
const SUBJECT_FIELDS: [&str; 27] = [
    "number", "gender", "title", "given_name", "surname", "street", "city", "state", "zip", "country", "email", "telephone",
    "national_id", "birthday", "age", "zodiac", "blood_type", "centimeters", "feet_inches", "kilograms", "pounds",
    "occupation", "company", "vehicle", "color", "latitude", "longitude",
];

/// In output order.
fn fields() -> impl Iterator<Item = &'static str> {
    SUBJECT_FIELDS.iter().chain(FAMILY_FIELDS.iter().flatten()).copied()
}

/// Settings of health records.
#[derive(Clone, Debug)]
pub struct HealthSettings {
    /// Random seed.
    pub seed: u64,
    /// Draws each family (diseases, drugs, SNPs, genes) once per record, as the generator of \[POD] does: its twenty
    /// columns are identical, and no disease depends on the subject.
    pub legacy: bool,
    /// Output format.
    pub layout: RecordLayout,
}

/// Health records with constant memory.
#[derive(Debug)]
pub struct HealthRecordStream {
    settings: HealthSettings,
    dice: SeededRandom,
    /// For diseases that depend on the subject.
    risk_dice: SeededRandom,
    written: u64,
    shares: AttributeDistributions,
}

/// Per million, with telephone prefixes; the last is "Other" (\[POD] Table A.1).
const COUNTRIES: [(&str, f64, &str); 5] = [
    ("DE", 849_981.0, "+49"),
    ("NO", 50_000.0, "+47"),
    ("FR", 50_000.0, "+33"),
    ("IT", 50_000.0, "+39"),
    ("Other", 19.0, ""),
];
/// First state and number per country.
const STATES: [(usize, usize); 4] = [(0, 16), (16, 18), (34, 22), (56, 100)];
const CITIES_PER_STATE: usize = 151;
/// South-western corner and extent, thousandths of a degree.
const COUNTRY_BOUNDS: [(i64, i64, i64, i64); 4] = [
    (47_600, 6_300, 6_800, 8_200),
    (58_200, 5_500, 6_500, 6_000),
    (43_500, -1_000, 6_500, 7_500),
    (38_000, 8_500, 8_000, 8_500),
];
/// Per million (Table A.2); "Other" countries have the type "Other".
const BLOOD_TYPES: [(&str, f64); 8] = [
    ("O+", 365_101.0),
    ("A+", 263_196.0),
    ("B+", 225_406.0),
    ("AB+", 50_263.0),
    ("O-", 43_200.0),
    ("A-", 34_516.0),
    ("B-", 13_881.0),
    ("AB-", 4_437.0),
];
const COLORS: [&str; 10] = ["blue", "green", "red", "black", "purple", "orange", "white", "yellow", "silver", "brown"];
/// Last day of each sign.
const ZODIAC: [(&[u8; 5], &str); 13] = [
    (b"01-19", "Capricorn"),
    (b"02-18", "Aquarius"),
    (b"03-20", "Pisces"),
    (b"04-19", "Aries"),
    (b"05-20", "Taurus"),
    (b"06-20", "Gemini"),
    (b"07-22", "Cancer"),
    (b"08-22", "Leo"),
    (b"09-22", "Virgo"),
    (b"10-22", "Libra"),
    (b"11-21", "Scorpio"),
    (b"12-21", "Sagittarius"),
    (b"12-31", "Capricorn"),
];
const GIVEN_NAMES: usize = 7_092; // of each gender
const SURNAMES: usize = 31_409;
const COMPANIES: u64 = 1_031;
const OCCUPATIONS: usize = 300;
const VEHICLES: usize = 400;
/// Distinct diseases, drugs, SNPs and genes.
const FAMILY_VALUE_COUNTS: [usize; 4] = [113, 180, 1_802, 400];
/// 1 January 2022, for ages.
const AGE_REFERENCE_DAY: i64 = 18_993;

#[derive(Debug)]
struct AttributeDistributions {
    countries: AliasTable,
    states: [AliasTable; 4],
    cities: AliasTable,
    blood_types: AliasTable,
    given_names: AliasTable,
    surnames: AliasTable,
    occupations: AliasTable,
    vehicles: AliasTable,
    families: [AliasTable; 4],
}

impl AttributeDistributions {
    fn new() -> Self {
        let zipf = |n, z| AliasTable::new(&AliasTable::zipf_weights(n, z));
        Self {
            countries: AliasTable::new(&COUNTRIES.map(|(_, share, _)| share)),
            states: STATES.map(|(_, n)| zipf(n, 0.7)),
            cities: zipf(CITIES_PER_STATE, 0.8),
            blood_types: AliasTable::new(&BLOOD_TYPES.map(|(_, share)| share)),
            given_names: zipf(GIVEN_NAMES, 0.9),
            surnames: zipf(SURNAMES, 0.8),
            occupations: zipf(OCCUPATIONS, 0.5),
            vehicles: zipf(VEHICLES, 0.7),
            // Diseases are nearly uniform (Table A.10), SNPs have a long tail (Table A.11).
            families: [
                zipf(FAMILY_VALUE_COUNTS[0], 0.3),
                zipf(FAMILY_VALUE_COUNTS[1], 0.6),
                zipf(FAMILY_VALUE_COUNTS[2], 1.0),
                zipf(FAMILY_VALUE_COUNTS[3], 0.8),
            ],
        }
    }
}

/// Random, or of a disease that depends on the subject.
#[derive(Clone, Copy, Debug)]
enum FamilyValue {
    Drawn(usize),
    Risk(&'static str),
}

type FamilyColumns = [[Option<FamilyValue>; FAMILY_COLUMNS]; 4];

/// At the first position in half of the records, at each further one in half of the rest; then the next free one.
fn insert_risk_value(values: &mut [Option<FamilyValue>; FAMILY_COLUMNS], value: &'static str, bits: u64) {
    let first = (bits.trailing_zeros() as usize).min(FAMILY_COLUMNS - 1);
    let is_free = |at: &usize| !matches!(values[*at], Some(FamilyValue::Risk(_)));
    if let Some(at) = (first..FAMILY_COLUMNS).chain(0..first).find(is_free) {
        values[at] = Some(FamilyValue::Risk(value));
    }
}

impl HealthRecordStream {
    /// Creates a stream.
    #[must_use]
    pub fn new(settings: HealthSettings) -> Self {
        let (dice, risk_dice) = (SeededRandom::new(settings.seed, 1), SeededRandom::new(settings.seed, 2));
        Self { dice, risk_dice, settings, written: 0, shares: AttributeDistributions::new() }
    }

    fn families(&mut self, factors: &RiskFactors) -> FamilyColumns {
        let mut families: FamilyColumns = [[None; FAMILY_COLUMNS]; 4];
        let drawn = if self.settings.legacy { 1 } else { FAMILY_COLUMNS };
        for member in 0..drawn {
            // Each further column is filled with 0.8 times the probability.
            let filled = 0.73 * pow(0.8, member as f64);
            for (family, values) in families.iter_mut().enumerate() {
                let (there, bits) = (self.dice.chance(filled), self.dice.bits());
                values[member] = there.then(|| FamilyValue::Drawn(self.shares.families[family].sample_outcome(bits)));
            }
            // Half of the drugs belong to the disease of the same column.
            let treated = self.dice.chance(0.5);
            if let (true, Some(disease)) = (treated, families[0][member]) {
                families[1][member] = Some(disease);
            }
        }
        for values in &mut families {
            let (first, rest) = values.split_at_mut(drawn);
            rest.fill(first[0]);
        }
        if !self.settings.legacy {
            self.draw_risks(factors, &mut families);
        }
        families
    }

    fn draw_risks(&mut self, factors: &RiskFactors, families: &mut FamilyColumns) {
        let [diseases, drugs, snps, _] = families;
        for disease in &DISEASE_RISKS {
            let DiseaseDraw { is_sick, is_carrier, takes_drug } = disease.draw(factors, &mut self.risk_dice);
            let places = [self.risk_dice.bits(), self.risk_dice.bits(), self.risk_dice.bits()];
            if is_sick {
                insert_risk_value(diseases, disease.doid, places[0]);
            }
            if takes_drug {
                insert_risk_value(drugs, disease.drug, places[1]);
            }
            if is_carrier {
                insert_risk_value(snps, disease.snp, places[2]);
            }
        }
    }

    fn write_families(&mut self, factors: &RiskFactors, line: &mut RecordLineWriter<'_>) {
        let families = self.families(factors);
        let mut text = String::new();
        for (family, fields) in FAMILY_FIELDS.iter().enumerate() {
            for (field, value) in fields.iter().zip(families[family]) {
                let Some(value) = value else {
                    line.text(field, GeneratedCell::Null);
                    continue;
                };
                text.clear();
                let value = match value {
                    FamilyValue::Drawn(value) => value,
                    FamilyValue::Risk(name) => {
                        line.text(field, GeneratedCell::Value(name));
                        continue;
                    }
                };
                match family {
                    0 => text.push_str(&format!("DOID:{}", 100 + value * 119)),
                    1 => text.push_str(&word(60_000 + value)),
                    2 => text.push_str(&format!("rs{}", 10_500_000 + value * 7_919)),
                    _ => text.push_str(&word(90_000 + value * 11).to_ascii_uppercase()),
                }
                line.text(field, GeneratedCell::Value(&text));
            }
        }
    }
}

impl RecordStream for HealthRecordStream {
    fn header(&self, out: &mut Vec<u8>) {
        if self.settings.layout == RecordLayout::Csv {
            csv_header(out, fields());
        }
    }

    fn append(&mut self, out: &mut Vec<u8>) {
        let number = self.written;
        self.written += 1;
        let person = HealthSubject::draw(&self.shares, &mut self.dice);
        let mut line = RecordLineWriter::begin_record(self.settings.layout, out);
        person.write(number, &mut line);
        self.write_families(&person.factors(), &mut line);
        line.end_record();
    }

    /// Appends nothing: every record is a subject.
    fn append_subject(&self, _out: &mut Vec<u8>) {}
}

struct HealthSubject {
    female: bool,
    country: usize,
    /// Numbered over all countries; `None` in "Other".
    home: Option<(usize, usize)>,
    given_name: usize,
    surname: usize,
    blood_type: &'static str,
    /// Days since 1970.
    birthday: i64,
    centimeters: i64,
    kilograms_tenths: i64,
    occupation: usize,
    vehicle: usize,
    /// For all uniform draws.
    bits: [u64; 3],
}

/// Centimeters.
fn mean_height(female: bool) -> f64 {
    if female { 165.0 } else { 178.0 }
}

impl HealthSubject {
    fn draw(shares: &AttributeDistributions, dice: &mut SeededRandom) -> Self {
        let female = dice.chance(0.5);
        let country = shares.countries.sample_outcome(dice.bits());
        let (state_bits, city_bits) = (dice.bits(), dice.bits());
        let home = STATES.get(country).map(|(first, _)| {
            let state = first + shares.states[country].sample_outcome(state_bits);
            (state, state * CITIES_PER_STATE + shares.cities.sample_outcome(city_bits))
        });
        let blood_bits = dice.bits();
        let blood_type = home.map_or("Other", |_| BLOOD_TYPES[shares.blood_types.sample_outcome(blood_bits)].0);
        let centimeters = (mean_height(female) + 7.0 * dice.standard_normal()).round().clamp(140.0, 222.0);
        let mass_index = (25.0 + 4.5 * dice.standard_normal()).max(16.0);
        Self {
            female,
            country,
            home,
            given_name: shares.given_names.sample_outcome(dice.bits()) * 2 + usize::from(female),
            surname: shares.surnames.sample_outcome(dice.bits()),
            blood_type,
            birthday: AGE_REFERENCE_DAY - 365 * 18 - dice.uniform_below(365 * 68) as i64,
            centimeters: centimeters as i64,
            kilograms_tenths: (mass_index * centimeters * centimeters / 1_000.0).round() as i64,
            occupation: shares.occupations.sample_outcome(dice.bits()),
            vehicle: shares.vehicles.sample_outcome(dice.bits()),
            bits: [dice.bits(), dice.bits(), dice.bits()],
        }
    }

    /// Completed years on 1 January 2022.
    fn age(&self) -> i32 {
        let birthday = date(self.birthday * DAY);
        2_022 - birthday.year() - i32::from((birthday.month(), birthday.day()) != (1, 1))
    }

    fn factors(&self) -> RiskFactors {
        let meters = self.centimeters as f64 / 100.0;
        RiskFactors {
            is_male: !self.female,
            age: self.age().into(),
            mass_index: self.kilograms_tenths as f64 / 10.0 / (meters * meters),
            height: self.centimeters as f64 - mean_height(self.female),
            blood_type: self.blood_type,
        }
    }

    fn write(&self, number: u64, line: &mut RecordLineWriter<'_>) {
        let [many, more, rest] = self.bits;
        let title = match (many % 16, self.female) {
            (0, _) => "Dr.",
            (_, true) => "Ms.",
            (_, false) => "Mr.",
        };
        let (given_name, surname) = (name(self.given_name), name(40_000 + self.surname));
        line.integer("number", GeneratedCell::Value(number as i64 + 1));
        line.text("gender", GeneratedCell::Value(if self.female { "female" } else { "male" }));
        line.text("title", GeneratedCell::Value(title));
        line.text("given_name", GeneratedCell::Value(&given_name));
        line.text("surname", GeneratedCell::Value(&surname));
        let street = format!("{} {}", name(100_000 + (many >> 8) as usize % 3_000), 1 + (many >> 40) % 120);
        line.text("street", GeneratedCell::Value(&street));
        let missing = |text: Option<String>, field, line: &mut RecordLineWriter<'_>| {
            line.text(field, text.as_deref().map_or(GeneratedCell::Null, GeneratedCell::Value));
        };
        let city_name = |(_, city)| name(city);
        let state_name = |(state, _): (usize, usize)| {
            format!("{}-{:02}", COUNTRIES[self.country].0, state - STATES[self.country].0 + 1)
        };
        missing(self.home.map(city_name), "city", line);
        missing(self.home.map(state_name), "state", line);
        // The code determines the city, not vice versa.
        let zip = |(_, city)| format!("{:05}", 10_000 + city * 3 + (more % 3) as usize);
        missing(self.home.map(zip), "zip", line);
        let (country, _, prefix) = COUNTRIES[self.country];
        line.text("country", GeneratedCell::Value(country));
        let email = format!("{}.{}{number}@example.org", given_name.to_ascii_lowercase(), surname.to_ascii_lowercase());
        line.text("email", GeneratedCell::Value(&email));
        line.text("telephone", GeneratedCell::Value(&format!("{prefix} {:09}", (more >> 8) % 1_000_000_000)));
        line.text("national_id", GeneratedCell::Value(&format!("{:011}", rest % 100_000_000_000)));
        self.write_birth(line);
        line.text("blood_type", GeneratedCell::Value(self.blood_type));
        line.integer("centimeters", GeneratedCell::Value(self.centimeters));
        let inches = (self.centimeters * 100 + 127) / 254;
        line.text("feet_inches", GeneratedCell::Value(&format!("{} ft {} in", inches / 12, inches % 12)));
        line.tenths("kilograms", GeneratedCell::Value(self.kilograms_tenths));
        line.tenths("pounds", GeneratedCell::Value((self.kilograms_tenths * 220_462 + 50_000) / 100_000));
        line.text("occupation", GeneratedCell::Value(&word(120_000 + self.occupation)));
        let company = ((u128::from(hash_bits(rest)) * u128::from(COMPANIES)) >> 64) as usize;
        line.text("company", GeneratedCell::Value(&name(130_000 + company)));
        let vehicle = format!("{} {}", 2000 + (rest >> 40) % 22, name(140_000 + self.vehicle));
        line.text("vehicle", GeneratedCell::Value(&vehicle));
        line.text("color", GeneratedCell::Value(COLORS[((rest >> 50) % 10) as usize]));
        self.write_place(hash_bits(more), line);
    }

    fn write_birth(&self, line: &mut RecordLineWriter<'_>) {
        let birthday = date(self.birthday * DAY);
        let text = birthday.to_string();
        line.text("birthday", GeneratedCell::Value(&text));
        line.integer("age", GeneratedCell::Value(self.age().into()));
        let day = &text.as_bytes()[5..];
        let sign = ZODIAC.iter().find(|(last, _)| day <= &last[..]).map_or("Capricorn", |(_, sign)| sign);
        line.text("zodiac", GeneratedCell::Value(sign));
    }

    /// Within a tenth of a degree of the city.
    fn write_place(&self, bits: u64, line: &mut RecordLineWriter<'_>) {
        let place = self.home.map(|(_, city)| {
            let (south, west, height, width) = COUNTRY_BOUNDS[self.country];
            let at = hash_bits(city as u64);
            let near = |bits: u64| (bits & 0xffff) as i64 % 201 - 100;
            (south + (at >> 40) as i64 % height + near(bits), west + (at & 0xff_ffff) as i64 % width + near(bits >> 16))
        });
        let cell = |value: Option<i64>| value.map_or(GeneratedCell::Null, GeneratedCell::Value);
        line.decimal("latitude", cell(place.map(|p| p.0)), 3);
        line.decimal("longitude", cell(place.map(|p| p.1)), 3);
    }
}

#[cfg(test)]
mod tests;
