//! The 107 attributes: 27 of a person, and four families of twenty.

use crate::generate::layout::Field;

const fn field(name: &'static str) -> Field {
    Field { name, section: "" }
}

pub const NUMBER: Field = field("number");
pub const GENDER: Field = field("gender");
pub const TITLE: Field = field("title");
pub const GIVEN_NAME: Field = field("given_name");
pub const SURNAME: Field = field("surname");
pub const STREET: Field = field("street");
pub const CITY: Field = field("city");
pub const STATE: Field = field("state");
pub const ZIP: Field = field("zip");
pub const COUNTRY: Field = field("country");
pub const EMAIL: Field = field("email");
pub const TELEPHONE: Field = field("telephone");
pub const NATIONAL_ID: Field = field("national_id");
pub const BIRTHDAY: Field = field("birthday");
pub const AGE: Field = field("age");
pub const ZODIAC: Field = field("zodiac");
pub const BLOOD_TYPE: Field = field("blood_type");
pub const CENTIMETERS: Field = field("centimeters");
pub const FEET_INCHES: Field = field("feet_inches");
pub const KILOGRAMS: Field = field("kilograms");
pub const POUNDS: Field = field("pounds");
pub const OCCUPATION: Field = field("occupation");
pub const COMPANY: Field = field("company");
pub const VEHICLE: Field = field("vehicle");
pub const COLOR: Field = field("color");
pub const LATITUDE: Field = field("latitude");
pub const LONGITUDE: Field = field("longitude");

/// Members of a family.
pub const FAMILY: usize = 20;

macro_rules! family {
    ($name:literal: $($member:literal)*) => { [$(field(concat!($name, "_", $member))),*] };
}
macro_rules! twenty {
    ($name:literal) => { family!($name: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19) };
}

pub const DISEASES: [Field; FAMILY] = twenty!("disease");
pub const DRUGS: [Field; FAMILY] = twenty!("drug");
pub const SNPS: [Field; FAMILY] = twenty!("snp");
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
