//! Generated stream. Released lines contain the record number, so the test can identify their subject.

use crate::support::daemon::Dice;
use crate::support::kafka::Record;
use crate::support::schemas::schema;
use std::fmt::Write;

pub const PARTITIONS: i32 = 5;
const PEOPLE: u64 = 150;
const REGIONS: u64 = 9;
const CITIES: u64 = 3;
const ILLNESSES: [&str; 5] = ["flu", "cold", "gout", "mumps", "rash"];

const HEAD: &str = schema!("visits"; person, sensitive "illness", more r#"
[[attribute]]
name = "n"
type = "integer"
role = "insensitive"
[[attribute]]
name = "city"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"#);

pub const GROUP: &str = r#"
[[group]]
name = "visit"
attributes = ["city", "illness", "n"]
[[privacy.model]]
kind = "l_diversity"
attribute = "illness"
l = 2
"#;

pub fn schema() -> String {
    let mut text = HEAD.to_owned();
    for region in 0..REGIONS {
        let cities: Vec<String> = (0..CITIES).map(|city| format!("\"C{region}{city}\"")).collect();
        writeln!(text, "\"R{region}\" = [{}]", cities.join(", ")).expect("text");
    }
    text
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub person: u64,
    pub city: String,
    pub illness: &'static str,
}

impl Visit {
    pub fn region(&self) -> String {
        format!("R{}", &self.city[1..2])
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Stream(pub u64);

impl Stream {
    fn dice(self, of: u64, number: u64) -> Dice {
        let mut dice = Dice::new(self.0 ^ (of << 56) ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        // Similar seeds give similar first numbers.
        for _ in 0..4 {
            dice.roll(2);
        }
        dice
    }

    /// Returns `None` for a malformed record or a tombstone.
    pub fn visit(self, number: usize) -> Option<Visit> {
        if self.is_broken(number) || self.is_tombstone(number) {
            return None;
        }
        let mut dice = self.dice(1, number as u64);
        let person = dice.roll(PEOPLE);
        // Low regions are crowded and high ones are sparse.
        let mut home = self.dice(2, person);
        let region = home.roll(REGIONS).min(home.roll(REGIONS));
        let city = home.roll(CITIES).min(home.roll(CITIES));
        let (region, city) = if dice.roll(5) == 0 { (dice.roll(REGIONS), dice.roll(CITIES)) } else { (region, city) };
        let illness = [home.roll(5), dice.roll(5)][dice.roll(2) as usize] as usize;
        Some(Visit { person, city: format!("C{region}{city}"), illness: ILLNESSES[illness] })
    }

    pub fn is_tombstone(self, number: usize) -> bool {
        number % 97 == 5
    }

    pub fn is_broken(self, number: usize) -> bool {
        number % 89 == 7 && !self.is_tombstone(number)
    }

    /// The records of a person are spread over all partitions.
    pub fn record(self, number: usize) -> Record {
        let payload = self.visit(number).map(|Visit { person, city, illness }| {
            format!("{{\"person\":\"p{person}\",\"city\":\"{city}\",\"illness\":\"{illness}\",\"n\":{number}}}")
        });
        let broken = self.is_broken(number).then(|| "{\"person\": \"cut sho".to_owned());
        let partition = self.dice(3, number as u64).roll(PARTITIONS as u64);
        Record {
            partition: Some(i32::try_from(partition).expect("few partitions")),
            payload: payload.or(broken).map(String::into_bytes),
            ..Record::default()
        }
    }
}
