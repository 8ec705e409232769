//! Borders of a sliding window, kept up to date.
//!
//! Each set of the border keeps the supports of its classes, which a row that comes or goes changes by one. As long as
//! every minimal QID still is a QID and every maximal non-QID still is none, the border stands: any set lies above the
//! one or below the other. Where a set has flipped, the levels are walked again; what lies above a QID or below a
//! non-QID that still stands is known, so only the neighbourhood of the flipped sets is counted.

use super::exhaustive::joined;
use super::{Borders, Question};
use crate::counting::{AttributeSet, Columns, ColumnsError, CpuCounter, GroupCounter};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// A window of rows and its borders. Equal to a fresh search of the window at any time.
///
/// `singletons = mask` is not kept up to date: a mask depends on all rows at once.
///
/// Memory: 4 bytes a cell of the window, and for each tracked set a tuple and its subjects for each of its classes, at
/// most `most_tracked` tuples in all. Sets beyond that are counted anew each time the borders are asked for.
pub struct IncrementalBorders {
    width: usize,
    question: Question,
    most_tracked: usize,
    window: VecDeque<Row>,
    /// Subjects of the window and their rows.
    subjects: HashMap<u32, u32>,
    qids: Vec<Tracked>,
    non_qids: Vec<Tracked>,
    borders: Borders,
    /// Rows came or went since the borders were asked for.
    changed: bool,
}

struct Row {
    codes: Box<[u32]>,
    subject: Option<u32>,
}

/// A set of the border with the supports of its classes.
struct Tracked {
    set: AttributeSet,
    /// Rows by tuple and subject; `None` beyond the bound of memory.
    classes: Option<HashMap<Box<[u32]>, Class>>,
    /// Classes with a support below k.
    below: usize,
}

#[derive(Default)]
struct Class {
    /// Records, where there are no subjects.
    records: u32,
    /// Records of each subject.
    subjects: HashMap<u32, u32>,
}

impl Class {
    fn support(&self) -> u32 {
        self.records + self.subjects.len() as u32
    }

    fn add(&mut self, subject: Option<u32>) {
        match subject {
            None => self.records += 1,
            Some(subject) => *self.subjects.entry(subject).or_insert(0) += 1,
        }
    }

    fn remove(&mut self, subject: Option<u32>) {
        match subject {
            None => self.records -= 1,
            Some(subject) => {
                let records = self.subjects.get_mut(&subject).expect("the row was added");
                *records -= 1;
                if *records == 0 {
                    self.subjects.remove(&subject);
                }
            }
        }
    }
}

impl Tracked {
    fn tuple(&self, row: &Row) -> Box<[u32]> {
        self.set.iter().map(|c| row.codes[c]).collect()
    }

    /// A row comes or goes. Gives the change in the number of classes.
    fn follow(&mut self, row: &Row, k: u32, comes: bool) -> isize {
        let tuple = self.tuple(row);
        let Some(classes) = &mut self.classes else { return 0 };
        let is_below = |support: u32| usize::from(support > 0 && support < k);
        let class = classes.entry_ref(&*tuple).or_default();
        let before = class.support();
        if comes {
            class.add(row.subject);
        } else {
            class.remove(row.subject);
        }
        let after = class.support();
        self.below = self.below + is_below(after) - is_below(before);
        if after == 0 {
            classes.remove(&tuple);
        }
        isize::from(before == 0) - isize::from(after == 0)
    }
}

/// What of the old border is known of a set.
struct Known<'a> {
    qids: Vec<&'a AttributeSet>,
    non_qids: Vec<&'a AttributeSet>,
}

impl IncrementalBorders {
    /// An empty window of `width` columns. The question's strategy and budget do not matter here.
    #[must_use]
    pub fn new(width: usize, question: &Question, most_tracked: usize) -> Self {
        let columns: AttributeSet = question.columns.iter().filter(|c| *c < width).collect();
        let borders = Borders::settled(vec![], vec![columns.clone()]);
        Self {
            width,
            question: Question { columns, budget: None, ..question.clone() },
            most_tracked,
            window: VecDeque::new(),
            subjects: HashMap::new(),
            qids: Vec::new(),
            non_qids: Vec::new(),
            borders,
            changed: false,
        }
    }

    #[must_use]
    pub fn rows(&self) -> usize {
        self.window.len()
    }

    /// Adds a row: a code a column, and its subject, in a window where all rows have one or none has.
    ///
    /// # Panics
    /// If the row has another width.
    pub fn insert(&mut self, codes: &[u32], subject: Option<u32>) {
        assert_eq!(codes.len(), self.width, "a row has a code for each column");
        let row = Row { codes: codes.into(), subject };
        if let Some(subject) = subject {
            *self.subjects.entry(subject).or_insert(0) += 1;
        }
        self.follow(&row, true);
        self.window.push_back(row);
    }

    /// Removes the oldest rows, all where there are no more.
    pub fn expire(&mut self, rows: usize) {
        for _ in 0..rows.min(self.window.len()) {
            let row = self.window.pop_front().expect("counted");
            if let Some(subject) = row.subject {
                let records = self.subjects.get_mut(&subject).expect("the row was inserted");
                *records -= 1;
                if *records == 0 {
                    self.subjects.remove(&subject);
                }
            }
            self.follow(&row, false);
        }
    }

    fn follow(&mut self, row: &Row, comes: bool) {
        self.changed = true;
        let k = self.question.k;
        let mut tracked = self.tracked() as isize;
        for set in self.qids.iter_mut().chain(&mut self.non_qids) {
            tracked += set.follow(row, k, comes);
            if tracked > self.most_tracked as isize {
                tracked -= set.classes.take().map_or(0, |classes| classes.len() as isize);
            }
        }
    }

    /// Tuples in memory.
    #[must_use]
    pub fn tracked(&self) -> usize {
        self.qids.iter().chain(&self.non_qids).filter_map(|t| t.classes.as_ref()).map(HashMap::len).sum()
    }

    /// The borders of the window as it is now. `evaluated` counts the sets counted anew for it.
    pub fn borders(&mut self) -> Result<&Borders, ColumnsError> {
        if self.changed {
            self.changed = false;
            self.refresh()?;
        }
        Ok(&self.borders)
    }

    fn support(&self) -> usize {
        if self.subjects.is_empty() { self.window.len() } else { self.subjects.len() }
    }

    fn refresh(&mut self) -> Result<(), ColumnsError> {
        let (k, columns) = (self.question.k, self.question.columns.clone());
        let ends = if self.window.is_empty() || k < 2 {
            Some(Borders::settled(vec![], vec![columns]))
        } else if self.support() < k as usize {
            Some(Borders::settled(vec![AttributeSet::new()], vec![]))
        } else {
            None
        };
        if let Some(borders) = ends {
            (self.qids, self.non_qids, self.borders) = (vec![], vec![], borders);
            return Ok(());
        }
        let untracked = self.qids.iter().chain(&self.non_qids).any(|t| t.classes.is_none());
        let flipped = self.qids.iter().any(|t| t.below == 0) || self.non_qids.iter().any(|t| t.below > 0);
        let unknown = self.qids.is_empty() && self.non_qids.is_empty();
        if untracked || flipped || unknown {
            self.search_again()?;
        } else {
            self.borders.evaluated = 0;
        }
        Ok(())
    }

    fn search_again(&mut self) -> Result<(), ColumnsError> {
        let table = self.table()?;
        let counter = CpuCounter::new(&table, self.question.threads);
        let stands = |t: &&Tracked, qid: bool| t.classes.is_some() && (t.below > 0) == qid;
        let known = Known {
            qids: self.qids.iter().filter(|t| stands(t, true)).map(|t| &t.set).collect(),
            non_qids: self.non_qids.iter().filter(|t| stands(t, false)).map(|t| &t.set).collect(),
        };
        let borders = known.walk(&counter, &self.question);
        let mut room = self.most_tracked;
        let mut old: HashMap<AttributeSet, Tracked> =
            self.qids.drain(..).chain(self.non_qids.drain(..)).map(|t| (t.set.clone(), t)).collect();
        let mut track = |set: &AttributeSet| {
            let fits = |t: &Tracked| t.classes.as_ref().is_some_and(|classes| classes.len() <= room);
            let kept = old.remove(set).filter(fits);
            let tracked = kept.unwrap_or_else(|| Self::track(&self.window, set, self.question.k, room));
            room -= tracked.classes.as_ref().map_or(0, HashMap::len).min(room);
            tracked
        };
        self.qids = borders.minimal_qids.iter().map(&mut track).collect();
        self.non_qids = borders.maximal_non_qids.iter().map(&mut track).collect();
        self.borders = borders;
        Ok(())
    }

    /// Counts a set from the window, unless it has more tuples than there is room for.
    fn track(window: &VecDeque<Row>, set: &AttributeSet, k: u32, room: usize) -> Tracked {
        let mut tracked = Tracked { set: set.clone(), classes: Some(HashMap::new()), below: 0 };
        for row in window {
            tracked.follow(row, k, true);
            if tracked.classes.as_ref().is_some_and(|classes| classes.len() > room) {
                tracked.classes = None;
                break;
            }
        }
        tracked
    }

    fn table(&self) -> Result<Columns, ColumnsError> {
        let column = |c: usize| self.window.iter().map(|row| row.codes[c]).collect();
        let subjects = self.window.iter().map(|row| row.subject).collect();
        Columns::new((0..self.width).map(column).collect(), subjects)
    }
}

impl Known<'_> {
    /// Level by level; counted is what the old border does not tell.
    fn walk(&self, counter: &CpuCounter<'_>, question: &Question) -> Borders {
        let mut borders = Borders::settled(vec![], vec![]);
        let mut level = vec![AttributeSet::new()];
        let mut candidates: Vec<AttributeSet> = question.columns.iter().map(|c| AttributeSet::from_iter([c])).collect();
        while !candidates.is_empty() {
            let mut verdicts: Vec<Option<bool>> = candidates.iter().map(|set| self.tells(set)).collect();
            let open: Vec<usize> = (0..candidates.len()).filter(|at| verdicts[*at].is_none()).collect();
            let sets: Vec<AttributeSet> = open.iter().map(|at| candidates[*at].clone()).collect();
            let judged = counter.judge(&sets, question.k, &|| false).expect("the columns are the table's");
            open.into_iter().zip(judged).for_each(|(at, verdict)| verdicts[at] = verdict);
            borders.evaluated += sets.len() as u64;
            borders.pruned += (candidates.len() - sets.len()) as u64;
            let mut next = Vec::new();
            for (set, verdict) in candidates.into_iter().zip(verdicts) {
                if verdict == Some(true) { borders.minimal_qids.push(set) } else { next.push(set) }
            }
            borders.maximal_non_qids.extend(super::exhaustive::uncovered(level, &next));
            candidates = joined(&next).unwrap_or_else(|| {
                borders.complete = false;
                vec![]
            });
            level = next;
        }
        borders.maximal_non_qids.extend(level);
        borders.minimal_qids.sort_unstable();
        borders.maximal_non_qids.sort_unstable();
        borders
    }

    fn tells(&self, set: &AttributeSet) -> Option<bool> {
        if self.non_qids.iter().any(|other| set.is_subset(other)) {
            Some(false)
        } else if self.qids.iter().any(|other| other.is_subset(set)) {
            Some(true)
        } else {
            None
        }
    }
}
