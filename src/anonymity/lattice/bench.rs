//! The bench of one thread: the members of every class brought together for the judge.

use super::grouping::Grouping;
use super::table::{Allowance, NOBODY, Rows};
use crate::anonymity::privacy::Room;

/// What one thread works with.
#[derive(Debug, Default)]
pub(super) struct Bench {
    pub(super) grouping: Grouping,
    pub(super) room: Room,
    /// By class: its place among those that are judged.
    pub(super) place: Vec<u32>,
    /// By place: where the rows of the class begin in `order`.
    start: Vec<u32>,
    order: Vec<u32>,
    /// By sensitive attribute: the values of one class with their counts.
    pub(super) values: Vec<Vec<(u32, u32)>>,
    /// By sensitive attribute and value: the count in one class.
    tally: Vec<Vec<u32>>,
    /// By subject: the last class that saw it released, and at all.
    seen: Vec<[u32; 2]>,
    /// Classes that are suppressed.
    pub(super) failed: Vec<u32>,
    /// Those of them that are large enough: what they lack is in their values.
    pub(super) refused: Vec<u32>,
    pub(super) population: Vec<u64>,
}

/// The place of a class that is suppressed unjudged.
const NOWHERE: u32 = u32::MAX;

impl Bench {
    /// A bench whose groupings may hold so much.
    pub(super) fn new(allowed: Allowance) -> Self {
        Self { grouping: Grouping::new(allowed), ..Self::default() }
    }

    /// Brings the rows of classes with at least `smallest` records into the order of the classes, and counts the
    /// population of each.
    pub(super) fn arrange(&mut self, rows: &Rows, smallest: u64) {
        let Grouping { class_of, cells, occupied, .. } = &self.grouping;
        if self.place.len() < cells.len() {
            self.place.resize(cells.len(), 0);
        }
        self.start.clear();
        for &class in occupied {
            let judged = u64::from(cells[class as usize].records) >= smallest;
            self.place[class as usize] = if judged { self.start.len() as u32 } else { NOWHERE };
            if judged {
                self.start.push(0);
            }
        }
        let classes = self.start.len();
        self.start.push(0);
        for &class in class_of {
            let place = self.place[class as usize];
            if place != NOWHERE {
                self.start[place as usize] += 1;
            }
        }
        let mut end = 0;
        for start in &mut self.start {
            end += *start;
            *start = end;
        }
        self.order.clear();
        self.order.resize(end as usize, 0);
        // From the back: every class's end moves to where it begins.
        for (row, &class) in class_of.iter().enumerate().rev() {
            let place = self.place[class as usize];
            if place != NOWHERE {
                let start = &mut self.start[place as usize];
                *start -= 1;
                self.order[*start as usize] = row as u32;
            }
        }
        self.population.clear();
        if !rows.population.is_empty() {
            self.population.resize(classes, 0);
            for (&class, &population) in class_of.iter().zip(&rows.population) {
                let place = self.place[class as usize];
                if place != NOWHERE {
                    self.population[place as usize] += u64::from(population);
                }
            }
        }
        self.values.resize(rows.sensitive.len(), Vec::new());
        self.tally.resize(rows.sensitive.len(), Vec::new());
        self.seen.clear();
    }

    /// The values of the class at `place` into `values`; how many people it has.
    pub(super) fn gather(&mut self, rows: &Rows, place: u32) -> Gathered {
        let members = &self.order[self.start[place as usize] as usize..self.start[place as usize + 1] as usize];
        for ((column, values), tally) in rows.sensitive.iter().zip(&mut self.values).zip(&mut self.tally) {
            values.clear();
            for &row in members {
                let (value, count) = (column[row as usize], rows.count[row as usize]);
                if count == 0 {
                    continue;
                }
                if tally.len() <= value as usize {
                    tally.resize(value as usize + 1, 0);
                }
                let known = &mut tally[value as usize];
                if *known == 0 {
                    values.push((value, 0));
                }
                *known += count;
            }
            for (value, count) in values.iter_mut() {
                *count = std::mem::take(&mut tally[*value as usize]);
            }
        }
        if rows.subject.is_empty() {
            let subjects = members.iter().map(|&row| u64::from(rows.count[row as usize])).sum();
            return Gathered { subjects, people: None };
        }
        let (mut subjects, mut people) = (0, 0);
        for &row in members.iter().filter(|&&row| rows.subject[row as usize] != NOBODY) {
            let subject = rows.subject[row as usize] as usize;
            if self.seen.len() <= subject {
                self.seen.resize(subject + 1, [0; 2]);
            }
            // Places are marked plus one: nought is nobody's.
            let [released, known] = &mut self.seen[subject];
            people += u64::from(std::mem::replace(known, place + 1) != place + 1);
            if rows.count[row as usize] > 0 {
                subjects += u64::from(std::mem::replace(released, place + 1) != place + 1);
            }
        }
        Gathered { subjects, people: Some(people) }
    }
}

/// The people of one class.
pub(super) struct Gathered {
    /// Distinct subjects with a record to be released; the records where nothing counts subjects.
    pub subjects: u64,
    /// Distinct subjects of the population, where something counts subjects.
    pub people: Option<u64>,
}
