//! The 107 attributes: 27 of a person, and four families of twenty.

use crate::generate::layout::Field;

const fn field(name: &'static str) -> Field {
    Field { name }
}

/// Running number, from 1.
pub const NUMBER: Field = field("number");
/// `male` or `female`.
pub const GENDER: Field = field("gender");
/// Form of address.
pub const TITLE: Field = field("title");
/// Given name.
pub const GIVEN_NAME: Field = field("given_name");
/// Surname.
pub const SURNAME: Field = field("surname");
/// Street and number.
pub const STREET: Field = field("street");
/// City.
pub const CITY: Field = field("city");
/// State.
pub const STATE: Field = field("state");
/// Postal code.
pub const ZIP: Field = field("zip");
/// Country.
pub const COUNTRY: Field = field("country");
/// Electronic mail address.
pub const EMAIL: Field = field("email");
/// Telephone number.
pub const TELEPHONE: Field = field("telephone");
/// National identification number.
pub const NATIONAL_ID: Field = field("national_id");
/// Date of birth.
pub const BIRTHDAY: Field = field("birthday");
/// Years.
pub const AGE: Field = field("age");
/// Sign of the zodiac.
pub const ZODIAC: Field = field("zodiac");
/// Blood type.
pub const BLOOD_TYPE: Field = field("blood_type");
/// Height in cm.
pub const CENTIMETERS: Field = field("centimeters");
/// Height in feet and inches.
pub const FEET_INCHES: Field = field("feet_inches");
/// Weight in kg.
pub const KILOGRAMS: Field = field("kilograms");
/// Weight in lb.
pub const POUNDS: Field = field("pounds");
/// Occupation.
pub const OCCUPATION: Field = field("occupation");
/// Employer.
pub const COMPANY: Field = field("company");
/// Car.
pub const VEHICLE: Field = field("vehicle");
/// Favourite colour.
pub const COLOR: Field = field("color");
/// Degrees north.
pub const LATITUDE: Field = field("latitude");
/// Degrees east.
pub const LONGITUDE: Field = field("longitude");

/// Members of a family.
pub const FAMILY: usize = 20;

macro_rules! family {
    ($name:literal: $($member:literal)*) => { [$(field(concat!($name, "_", $member))),*] };
}
macro_rules! twenty {
    ($name:literal) => { family!($name: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19) };
}

/// Diseases.
pub const DISEASES: [Field; FAMILY] = twenty!("disease");
/// Drugs.
pub const DRUGS: [Field; FAMILY] = twenty!("drug");
/// Single-nucleotide polymorphisms.
pub const SNPS: [Field; FAMILY] = twenty!("snp");
/// Genes.
pub const GENES: [Field; FAMILY] = twenty!("gene");

const PERSON: [Field; 27] = [
    NUMBER,
    GENDER,
    TITLE,
    GIVEN_NAME,
    SURNAME,
    STREET,
    CITY,
    STATE,
    ZIP,
    COUNTRY,
    EMAIL,
    TELEPHONE,
    NATIONAL_ID,
    BIRTHDAY,
    AGE,
    ZODIAC,
    BLOOD_TYPE,
    CENTIMETERS,
    FEET_INCHES,
    KILOGRAMS,
    POUNDS,
    OCCUPATION,
    COMPANY,
    VEHICLE,
    COLOR,
    LATITUDE,
    LONGITUDE,
];

/// All of them, in the order in which they are written.
pub fn all() -> impl Iterator<Item = &'static Field> {
    PERSON.iter().chain(&DISEASES).chain(&DRUGS).chain(&SNPS).chain(&GENES)
}
