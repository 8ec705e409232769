//! An h-ceiling with counterfeits over a data set ([HCE]; docs/methods.md §15).
//!
//! The search judges what values are shown by their support alone. Which cells leave as `*` beside them is known only when a
//! policy is: the best policies are settled as any release is, then filled once more by what their lines show; the first that still
//! hides every counterfeit leaves.

use super::attended::Attended;
use super::coded::Coded;
use super::error::{AnonymizeError, named, problem};
use super::hide::{self, Settled, content_key, settle_exactly};
use super::read::Input;
use super::search::Searched;
use super::write::Insertion;
use crate::anonymity::lattice::check::{Account, Checker, Terms};
use crate::anonymity::lattice::passes::{Cut, Pass, Recoded};
use crate::anonymity::lattice::search::{Best, Found as Searches};
use crate::anonymity::lattice::table::{NOBODY, Table};
use crate::anonymity::lattice::until::Until;
use crate::anonymity::privacy::Ratio;
use crate::anonymity::quality::{ClassSums, Part, Rce};
use crate::anonymity::treatment::ceiling::class::Class;
use crate::anonymity::treatment::ceiling::fill::{Asked, Filled};
use crate::anonymity::treatment::ceiling::search::{Candidate, Found, Question, Work, search};
use crate::config::{Config, Measure};
use crate::records::codebook::{CellId, SUPPRESSED};
use crate::records::digest::Keyed;
use crate::records::schema::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

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
    config: &Config,
    coded: &mut Coded,
    terms: &Terms,
    wanted: &Wanted,
    until: Until<'_>,
    attended: Attended<'_>,
) -> Result<(Searched, Insertion, Ceiled), AnonymizeError> {
    let k = config.privacy.crowd();
    coded.records.rare = hide::rare(&coded.records, |row| coded.records.is_released(row), k);
    let Coded { input, domains, records, .. } = &*coded;
    let table = Table::new(domains.clone(), records)?;
    let checker = Checker::new(&table, terms)?;
    let key = if config.secret.is_some() { input.covers.clone() } else { content_key(input) };
    let (of_class, of_draw, of_value) =
        (key.keyed("class of counterfeits"), key.keyed("counterfeit"), key.keyed("value of counterfeits"));
    let texts = Texts::new(input, &records.sensitive[0].0, &of_value);
    let question = Question {
        checker: &checker,
        records,
        h: wanted.h,
        asked: Asked { lines: wanted.lines as u32, people: k as u32, most: wanted.share.floor_of(table.records()) },
        identity: &|policy, row| of_class.digest(&texts.class(policy, row)),
        seed: &|identity, number| of_draw.digest(&[&identity.to_be_bytes()[..], &number.to_be_bytes()].concat()),
        mark: &|value| texts.marks[value as usize],
    };
    let found = search(&question, until, attended.watch)?;
    let work = Work::new(&question);
    let cut = (!found.complete).then(|| if until.is_stopped() { Cut::Stopped } else { Cut::Time });
    for (place, candidate) in found.candidates.iter().enumerate() {
        let making = Making { config, input, question: &question, work: &work, terms, texts: &texts, table: &table };
        let Some(made) = making.settle(candidate)? else { continue };
        let complete = found.complete && place == 0;
        let (recoded, settled, insertion, ceiled) = making.told(candidate, made, (&found, complete, cut), wanted);
        drop(work);
        drop(checker);
        return Ok((Searched { recoded, settled: Some(settled), table }, insertion, ceiled));
    }
    Err(match cut {
        Some(Cut::Stopped) => AnonymizeError::Stopped,
        Some(Cut::Time) => AnonymizeError::OutOfTime,
        None => AnonymizeError::NoCeiling { h: wanted.h.unwrap_or(1.0), checked: found.checked },
    })
}

/// The texts of cells, by which classes and values are known whatever the order of the input.
struct Texts<'a> {
    input: &'a Input,
    of_value: &'a Keyed,
    /// By value of the sensitive domain: a number of its text.
    marks: Vec<u64>,
}

impl<'a> Texts<'a> {
    fn new(input: &'a Input, column: &[u32], of_value: &'a Keyed) -> Self {
        let mut texts =
            Self { input, of_value, marks: vec![0; column.iter().max().map_or(0, |&most| most as usize + 1)] };
        let attribute = input.sensitive[0];
        let mut known = vec![false; texts.marks.len()];
        for (&value, &code) in column.iter().zip(&input.batch.columns[attribute]) {
            if !std::mem::replace(&mut known[value as usize], true) {
                texts.marks[value as usize] = texts.mark(input.books[attribute].cell(code, 0));
            }
        }
        texts
    }

    fn mark(&self, cell: CellId) -> u64 {
        // What hides has a mark of its own, the same before and after it is known which cells are.
        if cell == SUPPRESSED {
            return 0;
        }
        (self.of_value.digest(self.input.books[self.input.sensitive[0]].text(cell).as_bytes()) >> 64) as u64
    }

    fn class(&self, policy: &[u8], row: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (&attribute, &level) in self.input.quasi.iter().zip(policy) {
            let book = &self.input.books[attribute];
            let text = book.text(book.cell(self.input.batch.columns[attribute][row as usize], usize::from(level)));
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

/// Making a release of a candidate.
struct Making<'a> {
    config: &'a Config,
    input: &'a Input,
    question: &'a Question<'a>,
    work: &'a Work<'a>,
    terms: &'a Terms,
    texts: &'a Texts<'a>,
    table: &'a Table,
}

/// A release that hides its counterfeits.
struct Made {
    settled: Settled,
    filled: Filled,
    rce: Rce,
    /// By settled record: its class.
    class_of: Vec<u32>,
}

/// How often what leaves is settled again because a class could not be filled.
const TURNS: usize = 8;

impl Making<'_> {
    /// What leaves by a candidate; none where it cannot be filled by what its lines show.
    fn settle(&self, candidate: &Candidate) -> Result<Option<Made>, AnonymizeError> {
        let (records, k) = (self.question.records, self.config.privacy.crowd());
        let policy = &candidate.policy;
        let mut rows = self.work.leaving(policy).rows;
        let at = self.input.leaving.iter().position(|&a| a == self.input.sensitive[0]).unwrap_or_default();
        let book = &self.input.books[self.input.sensitive[0]];
        for _ in 0..TURNS {
            let recoded = self.recoded(policy, &rows);
            let settled = settle_exactly(self.input, &recoded, (records, self.table), &self.terms.models, k)?;
            let leaving = self.work.lines(policy, settled.rows.iter().map(|&row| row as u32).collect());
            if self.table.records() - leaving.rows.len() as u64 > self.question.checker.limit()
                || leaving.rows.is_empty()
            {
                return Ok(None);
            }
            let shown: Vec<u32> = settled.cells[at].clone();
            let (hides, mark) = (|cell: u32| !book.is_exact(cell), |cell: u32| self.texts.mark(cell));
            let filled = self.work.fill(policy, &leaving, &shown, &hides, &mark);
            if filled.removed.is_empty() {
                let beside = 1.0 / records.sensitive[0].1.max(1) as f64;
                let rce = self.work.rce(policy, &leaving, &shown, &filled, (&hides, beside));
                return Ok(Some(Made { settled, filled, rce, class_of: leaving.class_of }));
            }
            let stays = |(row, class): (&u32, &u32)| filled.removed.binary_search(class).is_err().then_some(*row);
            rows = leaving.rows.iter().zip(&leaving.class_of).filter_map(stays).collect();
        }
        Ok(None)
    }

    /// One pass by which `rows` leave; of its figures only what settling needs.
    fn recoded(&self, policy: &[u8], rows: &[u32]) -> Recoded {
        let mut by = vec![None; self.question.records.len()];
        rows.iter().for_each(|&row| by[row as usize] = Some(0));
        let found =
            Searches { best: None, complete: true, checked: 0, seconds: 0.0, history: Vec::new(), knowledge_bytes: 0 };
        let pass = Pass {
            policy: policy.into(),
            records: self.table.records(),
            released: rows.len() as u64,
            refused: 0,
            classes: 0,
            quality: 0.0,
            found: found.clone(),
        };
        Recoded {
            passes: vec![pass],
            by,
            searches: vec![found],
            after_first: None,
            account: self.question.checker.account(policy),
            limit: self.question.checker.limit(),
            cut: None,
        }
    }

    /// The figures of what was made.
    fn told(
        &self,
        candidate: &Candidate,
        made: Made,
        (found, complete, cut): (&Found, bool, Option<Cut>),
        wanted: &Wanted,
    ) -> (Recoded, Settled, Insertion, Ceiled) {
        let rows: Vec<u32> = made.settled.rows.iter().map(|&row| row as u32).collect();
        let mut recoded = self.recoded(&candidate.policy, &rows);
        recoded.account = self.account(&candidate.policy, &rows, &made.class_of);
        let best =
            Best { policy: candidate.policy.clone(), cost: made.rce.marginal, suppressed: recoded.account.suppressed };
        let search = Searches { best: Some(best), complete, checked: found.checked, ..recoded.searches[0].clone() };
        let pass = &mut recoded.passes[0];
        pass.classes = recoded.account.classes;
        pass.quality = recoded.account.worth.of(Measure::Loss);
        pass.found = search.clone();
        recoded.searches = vec![search];
        recoded.cut = cut;
        let degree = self.work.degree(&candidate.policy);
        let h = wanted.h.unwrap_or(degree);
        let mut like: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, &class) in made.class_of.iter().enumerate() {
            like.entry(class).or_insert(at);
        }
        let mut insertion =
            Insertion { lines: wanted.lines, h, catalog: wanted.catalog.clone(), ..Insertion::default() };
        let filled = &made.filled;
        for group in &filled.groups {
            let mut counts: BTreeMap<CellId, u64> = BTreeMap::new();
            for &at in group {
                for (&value, &count) in &filled.classes[at].counterfeits {
                    insertion.counterfeits.push((like[&filled.number[at]], value, count));
                    *counts.entry(value).or_default() += u64::from(count);
                }
            }
            let classes = group.iter().map(|&at| like[&filled.number[at]]).collect();
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
            rce: made.rce,
        };
        (recoded, made.settled, insertion, told)
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
