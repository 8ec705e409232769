//! Random small data sets with random settings.

use proptest::prelude::*;
use std::fmt::Write as _;

pub const PLACES: [&str; 5] = ["Aa", "Bb", "Cc", "Dd", "Ee"];
pub const ILLNESSES: [&str; 3] = ["flu", "cold", "gout"];

/// `Ee` is `*` above the raw level.
pub const SCHEMA: &str = r#"
name = "people"
[[attribute]]
name = "row"
type = "integer"
role = "insensitive"
[[attribute]]
name = "mark"
type = "boolean"
role = "insensitive"
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 39
widths = [10, 20]
[[attribute]]
name = "place"
type = "string"
[attribute.hierarchy]
kind = "file"
path = "places.csv"
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
[attribute.hierarchy]
kind = "tree"
tree = ["flu", "cold", "gout"]
"#;

pub const PERSON: &str = "[[attribute]]\nname = \"person\"\ntype = \"integer\"\nrole = \"subject\"\n";

pub const HIERARCHY: &str = "Aa;north;*\nBb;north;*\nCc;south;*\nDd;south;*\nEe;*;*\n";

#[derive(Clone, Debug)]
pub struct Record {
    pub age: Option<i64>,
    pub place: usize,
    pub illness: usize,
    pub mark: bool,
    pub person: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extra {
    None,
    Distinct { l: usize },
    Closeness { tenths: u32 },
    Map { k: usize },
    Presence { min: u32, max: u32 },
}

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "a case is drawn from all of them")]
pub struct Case {
    pub records: Vec<Record>,
    pub subjects: bool,
    pub marked: bool,
    pub k: usize,
    pub extra: Extra,
    pub local: bool,
    pub pass_tenths: u32,
    pub limit_tenths: u32,
    pub aggregate: bool,
}

impl Case {
    pub fn config(&self) -> String {
        let mut text = format!(
            "[schema]\nfile = \"schema.toml\"\n[source]\nkind = \"file\"\npath = \"in.csv\"\n[sink]\nkind = \"file\"\n\
             path = \"out.csv\"\n[privacy]\nk = {}\n[anonymize]\nsuppression_limit = {:.1}\npass_limit = {:.1}\n\
             transformation = \"{}\"\n",
            self.k,
            f64::from(self.limit_tenths) / 10.0,
            f64::from(self.pass_tenths) / 10.0,
            if self.local { "local" } else { "full_domain" },
        );
        if self.marked {
            text += "released = \"mark\"\n";
        }
        if self.aggregate {
            text += "microaggregation = [\"age\"]\n";
        }
        let model = match self.extra {
            Extra::None => String::new(),
            Extra::Distinct { l } => format!("kind = \"l_diversity\"\nattribute = \"illness\"\nl = {l}.0"),
            Extra::Closeness { tenths } => {
                format!("kind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.{tenths}")
            }
            Extra::Map { k } => format!("kind = \"k_map\"\nk = {k}"),
            Extra::Presence { min, max } => {
                format!("kind = \"delta_presence\"\nmin = 0.{min}\nmax = {:.1}", f64::from(max) / 10.0)
            }
        };
        if !model.is_empty() {
            writeln!(text, "[[privacy.model]]\n{model}").expect("room");
        }
        text
    }

    pub fn csv(&self) -> String {
        let mut text = "row,mark,age,place,illness,person\n".to_owned();
        for (row, r) in self.records.iter().enumerate() {
            let age = r.age.map_or(String::new(), |age| age.to_string());
            let (place, illness) = (PLACES[r.place], ILLNESSES[r.illness]);
            writeln!(text, "{row},{},{age},{place},{illness},{}", r.mark, r.person).expect("room");
        }
        text
    }

    pub fn schema(&self) -> String {
        format!("{SCHEMA}{}", if self.subjects { PERSON } else { "" })
    }

    pub fn leaves(&self, row: usize) -> bool {
        !self.marked || self.records[row].mark
    }

    pub fn person(&self, row: usize) -> usize {
        if self.subjects { self.records[row].person as usize } else { row }
    }
}

fn record() -> impl Strategy<Value = Record> {
    let age = prop_oneof![1 => Just(None), 5 => (0i64..40).prop_map(Some), 5 => (20i64..24).prop_map(Some)];
    let place = prop_oneof![6 => 0usize..4, 1 => Just(4)];
    (age, place, 0usize..3, prop::bool::weighted(0.7), 0u32..12)
        .prop_map(|(age, place, illness, mark, person)| Record { age, place, illness, mark, person })
}

pub fn case() -> impl Strategy<Value = Case> {
    let extra = prop_oneof![
        3 => Just(Extra::None),
        2 => (1usize..4).prop_map(|l| Extra::Distinct { l }),
        2 => (1u32..6).prop_map(|tenths| Extra::Closeness { tenths }),
        2 => (2usize..8).prop_map(|k| Extra::Map { k }),
        2 => (0u32..4, 4u32..11).prop_map(|(min, max)| Extra::Presence { min, max }),
    ];
    let passes = (any::<bool>(), 0u32..11);
    let aggregate = prop::bool::weighted(0.6);
    let records = prop::collection::vec(record(), 5..60);
    (records, prop::bool::weighted(0.3), any::<bool>(), 2usize..4, extra, passes, 0u32..8, aggregate).prop_map(
        |(records, subjects, marked, k, extra, (local, pass_tenths), limit_tenths, aggregate)| {
            let presence = matches!(extra, Extra::Presence { .. });
            Case {
                records,
                // Invalid configurations are tested in `scenarios`.
                subjects: subjects && !presence,
                marked,
                k,
                extra,
                local: local && !presence,
                pass_tenths,
                limit_tenths,
                aggregate: aggregate && !presence,
            }
        },
    )
}
