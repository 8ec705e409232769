//! An h-ceiling with counterfeits over a data set ([HCE]; docs/methods.md §15).
//!
//! The search judges what values are shown by their support alone. Which cells leave as `*` beside them is known only when a
//! policy is: the best policies are settled as any release is, then filled once more by what their lines show; the first that still
//! hides every counterfeit leaves.

use super::data::Data;
use super::error::{AnonymizeError, named, problem};
use super::hide::{Asked as ToHide, Hidden, hidden};
use super::kept::Kept;
use super::read::Input;
use super::release::Insertion;
use super::search::{Searched, Settled};
use super::source::{Attended, OnStep, Step};
use crate::anonymity::lattice::check::{Account, Checker, Terms};
use crate::anonymity::lattice::passes::{Cut, Pass, Recoded};
use crate::anonymity::lattice::search::{Best, Found as Searches};
use crate::anonymity::lattice::settle::SettledClass;
use crate::anonymity::lattice::table::{NOBODY, Records, Table};
use crate::anonymity::lattice::until::Until;
use crate::anonymity::privacy::Ratio;
use crate::anonymity::quality::{ClassSums, Part, Rce};
use crate::anonymity::treatment::ceiling::fill::{Asked, Filled};
use crate::anonymity::treatment::ceiling::grouping::Class;
use crate::anonymity::treatment::ceiling::search::{Candidate, Found, Leaving, Question, Work, search};
use crate::config::{Config, Measure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::digest::Keyed;
use throng_core::values::schema::Role;

/// What a ceiling came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiled {
    /// The ceiling: as configured, or the degree at which the reconstruction error is least.
    pub h: f64,
    /// Whether it was found.
    pub is_found: bool,
    /// The highest degree of any record, at most `h`.
    pub degree: f64,
    /// Lines of every class at least.
    pub lines: usize,
    /// Invented records.
    pub counterfeits: u64,
    /// Classes that have any.
    pub filled: u64,
    /// Groups of the catalog, and classes in them.
    pub groups: (u64, u64),
    /// Reconstruction error over the records to be released.
    pub rce: Rce,
}

/// A ceiling that is asked for, after everything that it needs.
pub(super) struct Wanted {
    h: Option<f64>,
    lines: usize,
    share: Ratio,
    catalog: PathBuf,
}

/// What `[anonymize.ceiling]` asks for; none where it asks for nothing.
pub(super) fn wanted(config: &Config, file: &str, input: &Input) -> Result<Option<Wanted>, AnonymizeError> {
    let ceiling = &config.anonymize.ceiling;
    let Some(lines) = ceiling.lines else { return Ok(None) };
    let refuse = |key: &str, message: String, remedy: &str| {
        Err(problem(file, format!("anonymize.ceiling.{key}"), message, remedy))
    };
    let Some(catalog) = ceiling.catalog.clone() else {
        let message = "counterfeits without a catalog would be untruthful for good".to_owned();
        return refuse("catalog", message, "name a file, or give --catalog FILE");
    };
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<&str> {
        let leaving = input.leaving.iter().map(|&a| &input.schema.attributes[a]);
        leaving.filter(|attribute| wanted(attribute.role)).map(|attribute| attribute.name.as_str()).collect()
    };
    let sensitive = of(&|role| role == Role::Sensitive);
    let schema = named(&config.schema.file);
    if sensitive.len() != 1 {
        let message = match sensitive.len() {
            0 => format!("{schema} has no sensitive attribute, of which a catalog could speak"),
            _ => format!(
                "{schema} has several sensitive attributes ({}), and a catalog speaks of one",
                sensitive.join(", ")
            ),
        };
        return refuse("lines", message, "give exactly one attribute the role sensitive, or remove the key");
    }
    let others = of(&|role| !role.is_quasi() && role != Role::Sensitive);
    if !others.is_empty() {
        let message = format!("{} of {schema} would leave as it is, and no counterfeit has one", others.join(", "));
        return refuse("lines", message, "give it the role quasi or identifier, or remove the key");
    }
    let share = Ratio::of(ceiling.share).filter(|share| share.value() <= 1.0);
    let Some(share) = share else {
        return refuse("share", "a share is between 0 and 1".to_owned(), "give 0 to 1; 0.02 is usual");
    };
    Ok(Some(Wanted { h: ceiling.h, lines, share, catalog }))
}

/// Searches, settles and fills.
pub(super) fn ceiled(
    (data, table): (&Data, &mut Table),
    (config, terms): (&Config, &Terms),
    wanted: &Wanted,
    until: Until<'_>,
    attended: Attended<'_>,
) -> Result<(Searched, Insertion, Ceiled), AnonymizeError> {
    let k = config.privacy.crowd();
    let mut records = data.records()?;
    records.rare = data.rare(k, attended.step)?;
    table.set_rare(&records.rare);
    let (table, records) = (&*table, &records);
    let checker = Checker::new(table, terms)?;
    let key = data.input.covers.clone();
    let (of_class, of_draw, of_value) =
        (key.keyed("class of counterfeits"), key.keyed("counterfeit"), key.keyed("value of counterfeits"));
    let texts = Texts::new(data, records, &of_value);
    let question = Question {
        checker: &checker,
        records,
        h: wanted.h,
        asked: Asked { lines: wanted.lines as u32, people: k as u32, most: wanted.share.floor_of(table.records()) },
        identity: &|policy, row| of_class.digest(&texts.class(policy, row)),
        seed: &|identity, number| of_draw.digest(&[&identity.to_be_bytes()[..], &number.to_be_bytes()].concat()),
        mark: &|value| texts.marks[value as usize],
    };
    (attended.step)(Step::Searching)?;
    let found = search(&question, until, attended.watch)?;
    let work = Work::new(&question);
    let cut = (!found.complete).then(|| if until.is_stopped() { Cut::Stopped } else { Cut::Time });
    let step = attended.step;
    let making = Making { config, data, question: &question, work: &work, terms, texts: &texts, table, step };
    for (place, candidate) in found.candidates.iter().enumerate() {
        let Some(made) = making.settle(candidate)? else { continue };
        let complete = found.complete && place == 0;
        let (recoded, insertion, ceiled) = making.told(candidate, &made, (&found, complete, cut), wanted);
        let Made { kept, hidden, .. } = made;
        let settled = Some(Settled { kept, hidden, aggregated: Vec::new() });
        return Ok((Searched { recoded, settled }, insertion, ceiled));
    }
    Err(match cut {
        Some(Cut::Stopped) => AnonymizeError::Stopped,
        Some(Cut::Time) => AnonymizeError::OutOfTime,
        None => AnonymizeError::NoCeiling { h: wanted.h.unwrap_or(1.0), checked: found.checked },
    })
}

/// The texts of cells, by which classes and values are known whatever the order of the input.
struct Texts<'a> {
    data: &'a Data,
    records: &'a Records,
    of_value: &'a Keyed,
    /// By value of the sensitive domain: a number of its text.
    marks: Vec<u64>,
}

impl<'a> Texts<'a> {
    fn new(data: &'a Data, records: &'a Records, of_value: &'a Keyed) -> Self {
        let mut texts = Self { data, records, of_value, marks: Vec::new() };
        let book = &data.input.books[data.input.sensitive[0]];
        texts.marks = data.sensitive[0].codes.iter().map(|&code| texts.mark(book.cell(code, 0))).collect();
        texts
    }

    fn mark(&self, cell: CellId) -> u64 {
        // What hides has a mark of its own, the same before and after it is known which cells are.
        if cell == SUPPRESSED {
            return 0;
        }
        let input = &self.data.input;
        (self.of_value.digest(input.books[input.sensitive[0]].text(cell).as_bytes()) >> 64) as u64
    }

    fn class(&self, policy: &[u8], row: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let columns = self.records.quasi.iter().zip(&self.data.quasi).zip(&self.data.input.quasi);
        for (((column, values), &attribute), &level) in columns.zip(policy) {
            let book = &self.data.input.books[attribute];
            let text = book.text(book.cell(values.codes[column[row as usize] as usize], usize::from(level)));
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

/// Making a release of a candidate.
struct Making<'a> {
    config: &'a Config,
    data: &'a Data,
    question: &'a Question<'a>,
    work: &'a Work<'a>,
    terms: &'a Terms,
    texts: &'a Texts<'a>,
    table: &'a Table,
    step: OnStep<'a>,
}

/// A release that hides its counterfeits.
struct Made {
    kept: Kept,
    hidden: Hidden,
    /// By class: as which it was found among `kept`.
    found: BTreeMap<u32, u32>,
    leaving: Leaving,
    filled: Filled,
    rce: Rce,
}

/// How often what leaves is settled again because a class could not be filled.
const TURNS: usize = 8;

impl Making<'_> {
    /// What leaves by a candidate; none where it cannot be filled by what its lines show.
    fn settle(&self, candidate: &Candidate) -> Result<Option<Made>, AnonymizeError> {
        let (records, k) = (self.question.records, self.config.privacy.crowd());
        let policy = &candidate.policy;
        let book = &self.data.input.books[self.data.input.sensitive[0]];
        let (column, codes) = (&records.sensitive[0].0, &self.data.sensitive[0].codes);
        let mut rows = self.work.leaving(policy).rows;
        for _ in 0..TURNS {
            let lines = self.work.lines(policy, rows);
            let (kept, found) = self.kept(policy, &lines);
            let (data, table, models, step) = (self.data, self.table, &self.terms.models, self.step);
            let hidden = hidden(&ToHide { data, kept: &kept, table, models, k, known: &records.rare, step })?;
            rows = lines.rows;
            rows.retain(|row| hidden.lost.binary_search(row).is_err());
            let leaving = self.work.lines(policy, rows);
            if self.table.records() - leaving.rows.len() as u64 > self.question.checker.limit()
                || leaving.rows.is_empty()
            {
                return Ok(None);
            }
            let shows = |row: &u32| match hidden.masked.binary_search(row) {
                Ok(_) => SUPPRESSED,
                Err(_) => book.cell(codes[column[*row as usize] as usize], 0),
            };
            let shown: Vec<CellId> = leaving.rows.iter().map(shows).collect();
            let (hides, mark) = (|cell: u32| !book.is_exact(cell), |cell: u32| self.texts.mark(cell));
            let filled = self.work.fill(policy, &leaving, &shown, &hides, &mark);
            if filled.removed.is_empty() {
                let beside = 1.0 / records.sensitive[0].1.max(1) as f64;
                let rce = self.work.rce(policy, &leaving, &shown, &filled, (&hides, beside));
                return Ok(Some(Made { kept, hidden, found, leaving, filled, rce }));
            }
            let stays = |(row, class): (&u32, &u32)| filled.removed.binary_search(class).is_err().then_some(*row);
            rows = leaving.rows.iter().zip(&leaving.class_of).filter_map(stays).collect();
        }
        Ok(None)
    }

    /// The classes of `lines`, and as which of them each class was found.
    fn kept(&self, policy: &[u8], lines: &Leaving) -> (Kept, BTreeMap<u32, u32>) {
        let mut sizes: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        for (&row, &class) in lines.rows.iter().zip(&lines.class_of) {
            sizes.entry(class).or_insert((row, 0)).1 += 1;
        }
        let mut kept = Kept::new(self.data, std::iter::once(policy));
        for &(row, records) in sizes.values() {
            let values: Vec<u32> = self.question.records.quasi.iter().map(|column| column[row as usize]).collect();
            kept.add(self.data, 0, &values, SettledClass { row, records, leaves: true });
        }
        kept.join(&self.data.input.books, &self.data.input.quasi);
        (kept, sizes.into_keys().zip(0..).collect())
    }

    /// The figures of what was made.
    fn told(
        &self,
        candidate: &Candidate,
        made: &Made,
        (found, complete, cut): (&Found, bool, Option<Cut>),
        wanted: &Wanted,
    ) -> (Recoded, Insertion, Ceiled) {
        let Made { leaving, filled, rce, .. } = made;
        let account = self.account(&candidate.policy, &leaving.rows, &leaving.class_of);
        let best = Best { policy: candidate.policy.clone(), cost: rce.marginal, suppressed: account.suppressed };
        let search = Searches {
            best: Some(best),
            complete,
            checked: found.checked,
            seconds: 0.0,
            history: Vec::new(),
            knowledge_bytes: 0,
        };
        let pass = Pass {
            policy: candidate.policy.clone(),
            records: self.table.records(),
            released: leaving.rows.len() as u64,
            refused: 0,
            classes: account.classes,
            quality: account.worth.of(Measure::Loss),
            found: search.clone(),
        };
        let recoded = Recoded {
            passes: vec![pass],
            classes: Vec::new(),
            searches: vec![search],
            after_first: None,
            account,
            before: self.question.checker.raw_worth(&self.table.lattice().bottom()),
            limit: self.question.checker.limit(),
            cut,
        };
        let degree = self.work.degree(&candidate.policy);
        let h = wanted.h.unwrap_or(degree);
        let mut insertion =
            Insertion { lines: wanted.lines, h, catalog: wanted.catalog.clone(), ..Insertion::default() };
        for group in &filled.groups {
            let mut counts: BTreeMap<CellId, u64> = BTreeMap::new();
            for &at in group {
                for (&value, &count) in &filled.classes[at].counterfeits {
                    insertion.counterfeits.push((made.found[&filled.number[at]], value, count));
                    *counts.entry(value).or_default() += u64::from(count);
                }
            }
            let classes = group.iter().map(|&at| made.found[&filled.number[at]]).collect();
            insertion.groups.push((classes, counts.into_iter().collect()));
        }
        let has_any = |class: &&Class| !class.counterfeits.is_empty();
        let told = Ceiled {
            h,
            is_found: wanted.h.is_none(),
            degree,
            lines: wanted.lines,
            counterfeits: filled.counterfeits(),
            filled: filled.classes.iter().filter(has_any).count() as u64,
            groups: (filled.groups.len() as u64, filled.classes.len() as u64),
            rce: *rce,
        };
        (recoded, insertion, told)
    }

    /// What leaves, by every measure: of true records alone.
    fn account(&self, policy: &[u8], rows: &[u32], class_of: &[u32]) -> Account {
        let (records, table) = (self.question.records, self.table);
        let empty = || -> Vec<Vec<u64>> { table.domains().iter().map(|domain| vec![0; domain.values()]).collect() };
        let mut kept = Part { levels: policy.into(), counts: empty() };
        let mut gone = Part { levels: policy.into(), counts: empty() };
        for ((all, kept), (gone, column)) in
            table.counts().iter().zip(&mut kept.counts).zip(gone.counts.iter_mut().zip(&records.quasi))
        {
            rows.iter().for_each(|&row| kept[column[row as usize] as usize] += 1);
            gone.iter_mut().zip(all.iter().zip(kept.iter())).for_each(|(gone, (all, kept))| *gone = all - kept);
        }
        let mut classes: BTreeMap<u32, (u64, BTreeSet<u32>)> = BTreeMap::new();
        for (&class, &row) in class_of.iter().zip(rows) {
            let person = records.subjects.as_ref().map_or(row, |subjects| subjects[row as usize]);
            let (lines, people) = classes.entry(class).or_default();
            *lines += 1;
            people.extend(Some(person).filter(|&person| person != NOBODY));
        }
        let mut sums = ClassSums::default();
        for &(lines, _) in classes.values() {
            sums.add(lines);
            sums.add_bits(lines);
        }
        let risk: f64 = classes.values().map(|(lines, people)| *lines as f64 / people.len().max(1) as f64).sum();
        Account {
            suppressed: table.records() - rows.len() as u64,
            classes: classes.len() as u64,
            smallest: classes.values().map(|(lines, _)| *lines).min().unwrap_or(0),
            average_risk: risk / rows.len().max(1) as f64,
            worth: self.question.checker.meter().worth_of_parts(table.domains(), table.counts(), &[kept], &gone, sums),
        }
    }
}
