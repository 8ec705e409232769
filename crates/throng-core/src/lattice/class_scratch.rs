//! Scratch memory of one thread for class members.

use super::row_grouping::RowGrouping;
use super::table::{CodedRows, SearchMemoryLimits, UNCOUNTED_SUBJECT};
use crate::privacy::JudgeScratch;

#[derive(Debug, Default)]
pub(super) struct ClassScratch {
    pub(super) grouping: RowGrouping,
    pub(super) judge_scratch: JudgeScratch,
    /// By class, among the judged classes.
    pub(super) judged_position: Vec<u32>,
    /// In `order`, by position.
    start: Vec<u32>,
    order: Vec<u32>,
    /// Values and counts of one class, by sensitive attribute.
    pub(super) values: Vec<Vec<(u32, u32)>>,
    class_value_counts: Vec<Vec<u32>>,
    /// Last class with a released record, and with any record.
    last_class_by_subject: Vec<[u32; 2]>,
    pub(super) suppressed_class_numbers: Vec<u32>,
    /// Large enough, but refused by a model of values.
    pub(super) refused_class_numbers: Vec<u32>,
    pub(super) population: Vec<u64>,
}

const UNJUDGED_CLASS: u32 = u32::MAX;

impl ClassScratch {
    pub(super) fn new(allowed: SearchMemoryLimits) -> Self {
        Self { grouping: RowGrouping::new(allowed), ..Self::default() }
    }

    /// Sorts rows by class, for classes of at least `smallest` records, and counts their population.
    pub(super) fn sort_rows_by_class(&mut self, rows: &CodedRows, smallest: u64) {
        let RowGrouping { class_of, cells, occupied, .. } = &self.grouping;
        if self.judged_position.len() < cells.len() {
            self.judged_position.resize(cells.len(), 0);
        }
        self.start.clear();
        for &class in occupied {
            let judged = u64::from(cells[class as usize].records) >= smallest;
            self.judged_position[class as usize] = if judged { self.start.len() as u32 } else { UNJUDGED_CLASS };
            if judged {
                self.start.push(0);
            }
        }
        let classes = self.start.len();
        self.start.push(0);
        for &class in class_of {
            let place = self.judged_position[class as usize];
            if place != UNJUDGED_CLASS {
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
        // Backward, each end moves to the start.
        for (row, &class) in class_of.iter().enumerate().rev() {
            let place = self.judged_position[class as usize];
            if place != UNJUDGED_CLASS {
                let start = &mut self.start[place as usize];
                *start -= 1;
                self.order[*start as usize] = row as u32;
            }
        }
        self.population.clear();
        if !rows.population.is_empty() {
            self.population.resize(classes, 0);
            for (&class, &population) in class_of.iter().zip(&rows.population) {
                let place = self.judged_position[class as usize];
                if place != UNJUDGED_CLASS {
                    self.population[place as usize] += u64::from(population);
                }
            }
        }
        self.values.resize(rows.sensitive.len(), Vec::new());
        self.class_value_counts.resize(rows.sensitive.len(), Vec::new());
        self.last_class_by_subject.clear();
    }

    pub(super) fn collect_class_values(&mut self, rows: &CodedRows, place: u32) -> ClassSubjectCounts {
        let members = &self.order[self.start[place as usize] as usize..self.start[place as usize + 1] as usize];
        for ((column, values), tally) in rows.sensitive.iter().zip(&mut self.values).zip(&mut self.class_value_counts) {
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
            return ClassSubjectCounts { subjects, population_subject_count: None };
        }
        let (mut subjects, mut people) = (0, 0);
        for &row in members.iter().filter(|&&row| rows.subject[row as usize] != UNCOUNTED_SUBJECT) {
            let subject = rows.subject[row as usize] as usize;
            if self.last_class_by_subject.len() <= subject {
                self.last_class_by_subject.resize(subject + 1, [0; 2]);
            }
            // Places are stored plus one; 0: none.
            let [released, known] = &mut self.last_class_by_subject[subject];
            people += u64::from(std::mem::replace(known, place + 1) != place + 1);
            if rows.count[row as usize] > 0 {
                subjects += u64::from(std::mem::replace(released, place + 1) != place + 1);
            }
        }
        ClassSubjectCounts { subjects, population_subject_count: Some(people) }
    }
}

pub(super) struct ClassSubjectCounts {
    /// Subjects with a record to be released; else records.
    pub subjects: u64,
    /// Subjects of the population, if any.
    pub population_subject_count: Option<u64>,
}
