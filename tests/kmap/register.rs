//! A register of people and who of them a printed line could be: sets and loops over raw values, sharing nothing with
//! the product.

use crate::support::invariants::{Line, cells};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A schema with a label of its tree on two levels.
pub const QUASI: &str = r#"
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 100
widths = [5, 20]
[[attribute]]
name = "city"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree."CH"]
"CH" = ["Zug", "Bern"]
[attribute.hierarchy.tree."FR"]
"Sud" = ["Lyon", "Nice"]
"Nord" = ["Lille"]
[[attribute]]
name = "mood"
type = "string"
"#;

pub const NAMES: [&str; 3] = ["age", "city", "mood"];

/// Raw cells as JSON, `""` for an absent one; frequent ones stand more than once. The last two of `city` and the last
/// of `age` are covered by nothing.
pub const AGES: [&str; 10] = ["31", "31", "32", "33", "38", "52", "97", "null", "", "150"];
pub const CITIES: [&str; 9] = ["Zug", "Zug", "Bern", "Lyon", "Nice", "Lille", "null", "", "nowhere"];
pub const MOODS: [&str; 6] = ["calm", "calm", "tired", "*", "null", ""];

const ABOVE: [(&str, &[&str]); 5] = [
    ("Zug", &["CH"]),
    ("Bern", &["CH"]),
    ("Lyon", &["Sud", "FR"]),
    ("Nice", &["Sud", "FR"]),
    ("Lille", &["Nord", "FR"]),
];

/// The raw cell number `choice` of an attribute.
pub fn raw(attribute: usize, choice: u8) -> String {
    let quoted = |text: &str| if text.is_empty() || text == "null" { text.to_owned() } else { format!("\"{text}\"") };
    let choice = usize::from(choice);
    match attribute {
        0 => AGES[choice % AGES.len()].to_owned(),
        1 => quoted(CITIES[choice % CITIES.len()]),
        _ => quoted(MOODS[choice % MOODS.len()]),
    }
}

/// Whether a raw cell generalizes to what is printed (none: nothing is).
pub fn generalizes(attribute: usize, raw: &str, printed: Option<&str>) -> bool {
    let Some(printed) = printed else { return raw.is_empty() };
    if printed == "\"*\"" {
        return true;
    }
    let text = |json: &str| serde_json::from_str::<String>(json).ok();
    match (attribute, text(raw), text(printed)) {
        (0, None, Some(interval)) => {
            let (from, to) = interval.split_once('-').expect("an interval");
            let within = |age: u32| (from.parse().expect("a number")..=to.parse().expect("a number")).contains(&age);
            raw.parse::<u32>().is_ok_and(within)
        }
        (0, None, None) => raw == printed && raw != "150",
        (1, Some(city), Some(printed)) => {
            ABOVE.iter().any(|(name, above)| *name == city && (printed == city || above.contains(&printed.as_str())))
        }
        // A raw `*` is written with a backslash before it.
        (2, Some(mood), Some(printed)) => printed == if mood == "*" { "\\*".to_owned() } else { mood },
        (_, None, None) => raw == printed,
        _ => false,
    }
}

/// A register: whom each record is of, and its raw cells.
#[derive(Clone, Debug, Default)]
pub struct Register {
    pub records: Vec<(Option<String>, Vec<String>)>,
    /// Attributes that it has, by position in [`NAMES`].
    pub known: Vec<usize>,
    pub k: usize,
}

impl Register {
    /// Its people, where a record names them and `named` says that it does; otherwise its records.
    fn person(&self, record: usize, named: bool) -> Option<String> {
        if named { self.records[record].0.clone() } else { Some(record.to_string()) }
    }

    pub fn people(&self, named: bool) -> usize {
        (0..self.records.len()).filter_map(|record| self.person(record, named)).collect::<BTreeSet<_>>().len()
    }

    /// As NDJSON, with a column that no schema knows.
    pub fn file(&self, named: bool) -> String {
        let mut text = String::new();
        for (person, cells) in &self.records {
            let mut fields = vec!["\"shoe size\":43".to_owned()];
            if named {
                let person = person.as_ref().map_or("null".to_owned(), |person| format!("\"{person}\""));
                fields.push(format!("\"person\":{person}"));
            }
            for &a in &self.known {
                if !cells[a].is_empty() {
                    fields.push(format!("\"{}\":{}", NAMES[a], cells[a]));
                }
            }
            writeln!(text, "{{{}}}", fields.join(",")).expect("a string");
        }
        text
    }

    /// Attributes that a reader of the file can know of.
    fn visible(&self) -> Vec<usize> {
        self.known.iter().copied().filter(|&a| self.records.iter().any(|(_, cells)| !cells[a].is_empty())).collect()
    }

    /// Whether the file says anything.
    pub fn is_possible(&self, named: bool) -> bool {
        !self.visible().is_empty() && self.people(named) >= self.k
    }

    /// How many people of the register could be the one of a line whose class has the attributes `quasi`; all of them
    /// where it says nothing that the register knows.
    pub fn candidates(&self, line: &Line, quasi: &[usize], named: bool) -> Result<usize, String> {
        let cells = cells(line)?;
        let printed = |a: usize| cells.iter().find(|(name, _)| name == NAMES[a]).map(|(_, text)| text.as_str());
        let asked: Vec<usize> = self.visible().into_iter().filter(|a| quasi.contains(a)).collect();
        let could_be = |record: &usize| asked.iter().all(|&a| generalizes(a, &self.records[*record].1[a], printed(a)));
        let who = (0..self.records.len()).filter(could_be).filter_map(|record| self.person(record, named));
        Ok(who.collect::<BTreeSet<_>>().len())
    }
}
