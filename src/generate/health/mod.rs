//! A wide table of health records: 107 attributes, one record a person.
//!
//! Modelled on the semi-synthetic data set of [POD] (§4.5.1, §6.3, Appendix A): the shares of countries and blood types
//! are those of its tables A.1 and A.2, the numbers of distinct heights, names, cities, states, companies, diseases and
//! SNPs follow the other tables, names and codes are invented. It is full of what a search for quasi-identifiers has to
//! cope with: near-identifiers, long tails, functional dependencies (zip → city → state → country, birthday → age and
//! zodiac, centimeters → feet), and sparse columns.
//!
//! Three diseases depend on the person: on age, sex, weight, height, blood type and a variant of a gene, and a drug is taken for each
//! ([`risks`]).

mod names;
mod risks;

pub use risks::CORONARY_ARTERY_DISEASE;

use self::names::{name, word};
use self::risks::{Course, DISEASES, Factors};
use super::RecordStream;
use super::dice::{Dice, mix, pow};
use super::layout::{Cell, Layout, Line, csv_header};
use super::weighted::Weighted;
use chrono::Datelike as _;
use throng_core::values::moment::{DAY, date};

/// Members of a family.
const FAMILY: usize = 20;

macro_rules! family {
    ($name:literal: $($member:literal)*) => { [$(concat!($name, "_", $member)),*] };
}
macro_rules! twenty {
    ($name:literal) => { family!($name: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19) };
}

/// Diseases, drugs, single-nucleotide polymorphisms, genes.
const FAMILIES: [[&str; FAMILY]; 4] = [twenty!("disease"), twenty!("drug"), twenty!("snp"), twenty!("gene")];

#[rustfmt::skip]
const PERSON: [&str; 27] = [
    "number", "gender", "title", "given_name", "surname", "street", "city", "state", "zip", "country", "email", "telephone",
    "national_id", "birthday", "age", "zodiac", "blood_type", "centimeters", "feet_inches", "kilograms", "pounds",
    "occupation", "company", "vehicle", "color", "latitude", "longitude",
];

/// All of them, in the order in which they are written.
fn fields() -> impl Iterator<Item = &'static str> {
    PERSON.iter().chain(FAMILIES.iter().flatten()).copied()
}

/// What a table of health records is made of.
#[derive(Clone, Debug)]
pub struct HealthSettings {
    /// The same seed gives the same records.
    pub seed: u64,
    /// Draw each family (diseases, drugs, SNPs, genes) once a record, so that its twenty columns are identical: what
    /// the generator published with [POD] does; no disease depends on the person then. By default they are drawn independently of each other.
    pub legacy: bool,
    /// How records are written down.
    pub layout: Layout,
}

/// The stream; its memory does not grow.
#[derive(Debug)]
pub struct Health {
    settings: HealthSettings,
    dice: Dice,
    /// Draws of the diseases that depend on the person.
    risk_dice: Dice,
    written: u64,
    shares: Shares,
}

/// Per million; the last is "Other" ([POD] Table A.1).
const COUNTRIES: [(&str, f64, &str); 5] = [
    ("DE", 849_981.0, "+49"),
    ("NO", 50_000.0, "+47"),
    ("FR", 50_000.0, "+33"),
    ("IT", 50_000.0, "+39"),
    ("Other", 19.0, ""),
];
/// First state of each country and number of its states, 156 in all.
const STATES: [(usize, usize); 4] = [(0, 16), (16, 18), (34, 22), (56, 100)];
const CITIES_PER_STATE: usize = 151;
/// South-western corner and extent, in thousandths of a degree.
const BOXES: [(i64, i64, i64, i64); 4] = [
    (47_600, 6_300, 6_800, 8_200),
    (58_200, 5_500, 6_500, 6_000),
    (43_500, -1_000, 6_500, 7_500),
    (38_000, 8_500, 8_000, 8_500),
];
/// Per million (Table A.2); whoever lives in "Other" has the blood type "Other".
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
/// Last day of each sign before the next begins, from January on.
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
/// Distinct values of a disease, a drug, an SNP and a gene.
const VALUES: [usize; 4] = [113, 180, 1_802, 400];
/// 1 January 2022, in days since 1970: the day on which ages are told.
const TODAY: i64 = 18_993;

#[derive(Debug)]
struct Shares {
    countries: Weighted,
    states: [Weighted; 4],
    cities: Weighted,
    blood_types: Weighted,
    given_names: Weighted,
    surnames: Weighted,
    occupations: Weighted,
    vehicles: Weighted,
    families: [Weighted; 4],
}

impl Shares {
    fn new() -> Self {
        let zipf = |n, z| Weighted::new(&Weighted::zipf_weights(n, z));
        Self {
            countries: Weighted::new(&COUNTRIES.map(|(_, share, _)| share)),
            states: STATES.map(|(_, n)| zipf(n, 0.7)),
            cities: zipf(CITIES_PER_STATE, 0.8),
            blood_types: Weighted::new(&BLOOD_TYPES.map(|(_, share)| share)),
            given_names: zipf(GIVEN_NAMES, 0.9),
            surnames: zipf(SURNAMES, 0.8),
            occupations: zipf(OCCUPATIONS, 0.5),
            vehicles: zipf(VEHICLES, 0.7),
            // Diseases are nearly even (Table A.10), SNPs have a long tail (Table A.11).
            families: [zipf(VALUES[0], 0.3), zipf(VALUES[1], 0.6), zipf(VALUES[2], 1.0), zipf(VALUES[3], 0.8)],
        }
    }
}

/// A value of a family: one of the drawn ones, or that of a disease which depends on the person.
#[derive(Clone, Copy, Debug)]
enum Member {
    Drawn(usize),
    Risk(&'static str),
}

/// The four families of one record: which value, if any.
type Families = [[Option<Member>; FAMILY]; 4];

/// Puts a value where the main ones stand: at the first place in half of the records, at each further one in half of the rest; where another
/// such value stands, at the next place.
fn put(values: &mut [Option<Member>; FAMILY], value: &'static str, bits: u64) {
    let first = (bits.trailing_zeros() as usize).min(FAMILY - 1);
    let is_free = |at: &usize| !matches!(values[*at], Some(Member::Risk(_)));
    if let Some(at) = (first..FAMILY).chain(0..first).find(is_free) {
        values[at] = Some(Member::Risk(value));
    }
}

impl Health {
    /// A stream with these settings.
    #[must_use]
    pub fn new(settings: HealthSettings) -> Self {
        let (dice, risk_dice) = (Dice::new(settings.seed, 1), Dice::new(settings.seed, 2));
        Self { dice, risk_dice, settings, written: 0, shares: Shares::new() }
    }

    fn families(&mut self, factors: &Factors) -> Families {
        let mut families: Families = [[None; FAMILY]; 4];
        let drawn = if self.settings.legacy { 1 } else { FAMILY };
        for member in 0..drawn {
            // Few people have many diseases: each further column is filled a fifth less often.
            let filled = 0.73 * pow(0.8, member as f64);
            for (family, values) in families.iter_mut().enumerate() {
                let (there, bits) = (self.dice.chance(filled), self.dice.bits());
                values[member] = there.then(|| Member::Drawn(self.shares.families[family].pick(bits)));
            }
            // Half of the drugs are the one that is given for the disease beside it.
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

    /// Adds the diseases that depend on the person, the drugs that are taken for them, and the variants.
    fn draw_risks(&mut self, factors: &Factors, families: &mut Families) {
        let [diseases, drugs, snps, _] = families;
        for disease in &DISEASES {
            let Course { is_sick, is_carrier, takes_drug } = disease.draw(factors, &mut self.risk_dice);
            let places = [self.risk_dice.bits(), self.risk_dice.bits(), self.risk_dice.bits()];
            if is_sick {
                put(diseases, disease.doid, places[0]);
            }
            if takes_drug {
                put(drugs, disease.drug, places[1]);
            }
            if is_carrier {
                put(snps, disease.snp, places[2]);
            }
        }
    }

    fn write_families(&mut self, factors: &Factors, line: &mut Line<'_>) {
        let families = self.families(factors);
        let mut text = String::new();
        for (family, fields) in FAMILIES.iter().enumerate() {
            for (field, value) in fields.iter().zip(families[family]) {
                let Some(value) = value else {
                    line.text(field, Cell::Null);
                    continue;
                };
                text.clear();
                let value = match value {
                    Member::Drawn(value) => value,
                    Member::Risk(name) => {
                        line.text(field, Cell::Value(name));
                        continue;
                    }
                };
                match family {
                    0 => text.push_str(&format!("DOID:{}", 100 + value * 119)),
                    1 => text.push_str(&word(60_000 + value)),
                    2 => text.push_str(&format!("rs{}", 10_500_000 + value * 7_919)),
                    _ => text.push_str(&word(90_000 + value * 11).to_ascii_uppercase()),
                }
                line.text(field, Cell::Value(&text));
            }
        }
    }
}

impl RecordStream for Health {
    fn header(&self, out: &mut Vec<u8>) {
        if self.settings.layout == Layout::Csv {
            csv_header(out, fields());
        }
    }

    fn append(&mut self, out: &mut Vec<u8>) {
        let number = self.written;
        self.written += 1;
        let person = Person::draw(&self.shares, &mut self.dice);
        let mut line = Line::open(self.settings.layout, out);
        person.write(number, &mut line);
        self.write_families(&person.factors(), &mut line);
        line.close();
    }

    /// Every record is its own subject: no key.
    fn append_subject(&self, _out: &mut Vec<u8>) {}
}

struct Person {
    female: bool,
    country: usize,
    /// State and city, both counted over all countries; none in "Other".
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
    /// For everything that is drawn evenly.
    bits: [u64; 3],
}

/// In centimeters.
fn mean_height(female: bool) -> f64 {
    if female { 165.0 } else { 178.0 }
}

impl Person {
    fn draw(shares: &Shares, dice: &mut Dice) -> Self {
        let female = dice.chance(0.5);
        let country = shares.countries.pick(dice.bits());
        let (state_bits, city_bits) = (dice.bits(), dice.bits());
        let home = STATES.get(country).map(|(first, _)| {
            let state = first + shares.states[country].pick(state_bits);
            (state, state * CITIES_PER_STATE + shares.cities.pick(city_bits))
        });
        let blood_bits = dice.bits();
        let blood_type = home.map_or("Other", |_| BLOOD_TYPES[shares.blood_types.pick(blood_bits)].0);
        let centimeters = (mean_height(female) + 7.0 * dice.bell()).round().clamp(140.0, 222.0);
        let mass_index = (25.0 + 4.5 * dice.bell()).max(16.0);
        Self {
            female,
            country,
            home,
            given_name: shares.given_names.pick(dice.bits()) * 2 + usize::from(female),
            surname: shares.surnames.pick(dice.bits()),
            blood_type,
            birthday: TODAY - 365 * 18 - dice.below(365 * 68) as i64,
            centimeters: centimeters as i64,
            kilograms_tenths: (mass_index * centimeters * centimeters / 1_000.0).round() as i64,
            occupation: shares.occupations.pick(dice.bits()),
            vehicle: shares.vehicles.pick(dice.bits()),
            bits: [dice.bits(), dice.bits(), dice.bits()],
        }
    }

    /// Years completed on 1 January 2022: the difference of the years, less one but for those born on the day.
    fn age(&self) -> i32 {
        let birthday = date(self.birthday * DAY);
        2_022 - birthday.year() - i32::from((birthday.month(), birthday.day()) != (1, 1))
    }

    fn factors(&self) -> Factors {
        let meters = self.centimeters as f64 / 100.0;
        Factors {
            is_male: !self.female,
            age: self.age().into(),
            mass_index: self.kilograms_tenths as f64 / 10.0 / (meters * meters),
            height: self.centimeters as f64 - mean_height(self.female),
            blood_type: self.blood_type,
        }
    }

    fn write(&self, number: u64, line: &mut Line<'_>) {
        let [many, more, rest] = self.bits;
        let title = match (many % 16, self.female) {
            (0, _) => "Dr.",
            (_, true) => "Ms.",
            (_, false) => "Mr.",
        };
        let (given_name, surname) = (name(self.given_name), name(40_000 + self.surname));
        line.integer("number", Cell::Value(number as i64 + 1));
        line.text("gender", Cell::Value(if self.female { "female" } else { "male" }));
        line.text("title", Cell::Value(title));
        line.text("given_name", Cell::Value(&given_name));
        line.text("surname", Cell::Value(&surname));
        let street = format!("{} {}", name(100_000 + (many >> 8) as usize % 3_000), 1 + (many >> 40) % 120);
        line.text("street", Cell::Value(&street));
        let missing = |text: Option<String>, field, line: &mut Line<'_>| {
            line.text(field, text.as_deref().map_or(Cell::Null, Cell::Value));
        };
        let city_name = |(_, city)| name(city);
        let state_name = |(state, _): (usize, usize)| {
            format!("{}-{:02}", COUNTRIES[self.country].0, state - STATES[self.country].0 + 1)
        };
        missing(self.home.map(city_name), "city", line);
        missing(self.home.map(state_name), "state", line);
        // Three districts a city; the code tells the city, the city does not tell the code.
        let zip = |(_, city)| format!("{:05}", 10_000 + city * 3 + (more % 3) as usize);
        missing(self.home.map(zip), "zip", line);
        let (country, _, prefix) = COUNTRIES[self.country];
        line.text("country", Cell::Value(country));
        let email = format!("{}.{}{number}@example.org", given_name.to_ascii_lowercase(), surname.to_ascii_lowercase());
        line.text("email", Cell::Value(&email));
        line.text("telephone", Cell::Value(&format!("{prefix} {:09}", (more >> 8) % 1_000_000_000)));
        line.text("national_id", Cell::Value(&format!("{:011}", rest % 100_000_000_000)));
        self.write_birth(line);
        line.text("blood_type", Cell::Value(self.blood_type));
        line.integer("centimeters", Cell::Value(self.centimeters));
        let inches = (self.centimeters * 100 + 127) / 254;
        line.text("feet_inches", Cell::Value(&format!("{} ft {} in", inches / 12, inches % 12)));
        line.tenths("kilograms", Cell::Value(self.kilograms_tenths));
        line.tenths("pounds", Cell::Value((self.kilograms_tenths * 220_462 + 50_000) / 100_000));
        line.text("occupation", Cell::Value(&word(120_000 + self.occupation)));
        let company = ((u128::from(mix(rest)) * u128::from(COMPANIES)) >> 64) as usize;
        line.text("company", Cell::Value(&name(130_000 + company)));
        let vehicle = format!("{} {}", 2000 + (rest >> 40) % 22, name(140_000 + self.vehicle));
        line.text("vehicle", Cell::Value(&vehicle));
        line.text("color", Cell::Value(COLORS[((rest >> 50) % 10) as usize]));
        self.write_place(mix(more), line);
    }

    fn write_birth(&self, line: &mut Line<'_>) {
        let birthday = date(self.birthday * DAY);
        let text = birthday.to_string();
        line.text("birthday", Cell::Value(&text));
        line.integer("age", Cell::Value(self.age().into()));
        let day = &text.as_bytes()[5..];
        let sign = ZODIAC.iter().find(|(last, _)| day <= &last[..]).map_or("Capricorn", |(_, sign)| sign);
        line.text("zodiac", Cell::Value(sign));
    }

    /// Within a tenth of a degree of the city.
    fn write_place(&self, bits: u64, line: &mut Line<'_>) {
        let place = self.home.map(|(_, city)| {
            let (south, west, height, width) = BOXES[self.country];
            let at = mix(city as u64);
            let near = |bits: u64| (bits & 0xffff) as i64 % 201 - 100;
            (south + (at >> 40) as i64 % height + near(bits), west + (at & 0xff_ffff) as i64 % width + near(bits >> 16))
        });
        let cell = |value: Option<i64>| value.map_or(Cell::Null, Cell::Value);
        line.decimal("latitude", cell(place.map(|p| p.0)), 3);
        line.decimal("longitude", cell(place.map(|p| p.1)), 3);
    }
}

#[cfg(test)]
mod tests;
