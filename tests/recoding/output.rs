//! Parser of the written output.

use crate::recoding::cases::{Case, PLACES};

#[derive(Clone, Debug)]
pub struct Line {
    pub row: usize,
    pub age: String,
    pub place: String,
    pub illness: String,
}

pub fn lines(text: &str) -> Vec<Line> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let at = |name: &str| names.iter().position(|n| *n == name).expect("a column");
    let (row, age, place, illness) = (at("row"), at("age"), at("place"), at("illness"));
    let line = |line: &str| {
        let cells: Vec<String> = line.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect();
        assert_eq!(cells.len(), names.len(), "{line}");
        let cell = |at: usize| cells[at].clone();
        Line { row: cells[row].parse().expect("a number"), age: cell(age), place: cell(place), illness: cell(illness) }
    };
    lines.map(line).collect()
}

/// An empty cell covers only a missing value.
pub fn covers_age(cell: &str, age: Option<i64>) -> bool {
    match (cell, age) {
        ("*", _) | ("", None) => true,
        ("", _) | (_, None) => false,
        (cell, Some(age)) => match cell.split_once('-') {
            Some((from, to)) => (from.parse().expect("from")..=to.parse().expect("to")).contains(&age),
            None => cell.parse() == Ok(age),
        },
    }
}

pub fn covers_place(cell: &str, place: usize) -> bool {
    match cell {
        "*" => true,
        "north" => place < 2,
        "south" => (2..4).contains(&place),
        cell => cell == PLACES[place],
    }
}

impl Line {
    /// Aggregated ages are ignored.
    pub fn covers(&self, case: &Case, row: usize) -> bool {
        let record = &case.records[row];
        (case.aggregate || covers_age(&self.age, record.age)) && covers_place(&self.place, record.place)
    }
}
