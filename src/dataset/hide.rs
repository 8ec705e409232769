//! The sensitive cells that leave: exactly or as `*`, so that `*` says neither who nor what ([`crate::anonymity::treatment::hide`]).
//!
//! A data set is one large batch. The search judges classes by what they will show: values that fewer than k people have count for nothing there.
//! What it cannot know is who covers for them, so a class whose models do not survive that shows nothing of the attribute.
//!
//! A class none of whose values is rare hides nothing: it shows what it has, and its models are satisfied, since the search has judged just that
//! (classes of several passes that print the same satisfy together what each does). Held are the records of the other classes. What those beside
//! them show is known by its people, k of them for each value, which is all that [`Hiding`] asks of lines beside its own. Cells only ever grow
//! coarser: so where every value of a class that is not held has its k people at the end, it had them all the way, and what was settled is what
//! would have been settled with all records held. Where one has not, its classes are held too, and it begins again.

use super::codes::{Block, Wanted};
use super::data::{Data, Values};
use super::error::AnonymizeError;
use super::kept::Kept;
use super::read::Input;
use super::source::{OnStep, Step};
use super::support::Support;
use crate::anonymity::lattice::table::{NOBODY, Table};
use crate::anonymity::privacy::{Class, Judge, Model, ModelError, Room, SensitiveDomain};
use crate::anonymity::treatment::hide::{Hiding, Models, Side};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::SUPPRESSED;
use throng_core::values::digest::{ContentKey, DigestKey, mix};
use throng_core::values::holders::Holders;
use throng_core::values::subject::NO_SUBJECT;
use throng_core::values::table::Batch;

/// What hides in the records that leave.
#[derive(Debug, Default)]
pub struct Hidden {
    /// Records of classes that cannot hide what they must: they do not leave. Ascending.
    pub lost: Vec<u32>,
    /// Records that leave and hide something. Ascending.
    pub masked: Vec<u32>,
    /// What each of them hides, a bit by sensitive attribute: so many words that each attribute has one.
    pub masks: Vec<u32>,
    /// By sensitive attribute: whether some record that leaves shows its value.
    pub shows: Vec<bool>,
    /// By sensitive attribute and value: whether fewer than k people have it among the records that a policy keeps.
    pub rare: Vec<Vec<bool>>,
}

/// Bytes of a record of a class that is held while it is settled, and of each of its sensitive cells.
const A_RECORD: u64 = 360;
const A_CELL: u64 = 40;

const FEWER_HIDING: &str = "give rare sensitive values a coarser spelling in the input, leave a sensitive attribute out, or allow more (--memory)";

/// What is asked of what hides.
pub struct Asked<'a> {
    pub data: &'a Data,
    pub kept: &'a Kept,
    pub table: &'a Table,
    pub models: &'a [Model],
    pub k: usize,
    /// By sensitive attribute and value: what the search took to be hidden.
    pub known: &'a [Vec<bool>],
    pub step: OnStep<'a>,
}

/// The records of the classes that are held.
#[derive(Default)]
struct Held {
    /// Their numbers, ascending.
    numbers: Vec<u32>,
    people: Vec<u32>,
    digests: Vec<u64>,
    classes: Vec<u32>,
    /// By sensitive attribute: their values.
    values: Vec<(Vec<u32>, usize)>,
}

/// Settles the sensitive cells of the records of the classes that leave.
pub fn hidden(asked: &Asked<'_>) -> Result<Hidden, AnonymizeError> {
    let Asked { data, kept, known, .. } = *asked;
    if data.sensitive.is_empty() {
        return Ok(Hidden::default());
    }
    let leaves = !kept.sizes.is_empty();
    let rare = asked.rare()?;
    let mut doubtful = rare.clone();
    for (doubtful, known) in doubtful.iter_mut().flatten().zip(known.iter().flatten()) {
        *doubtful |= *known;
    }
    // What prints no exact value hides by itself.
    for (doubtful, (values, &attribute)) in doubtful.iter_mut().zip(data.sensitive.iter().zip(&data.input.sensitive)) {
        let book = &data.input.books[attribute];
        for (doubtful, &code) in doubtful.iter_mut().zip(&values.codes) {
            let cell = book.cell(code, 0);
            *doubtful |= cell == SUPPRESSED || !book.is_exact(cell);
        }
    }
    loop {
        let affected = asked.affected(&doubtful)?;
        if !affected.contains(&true) {
            return Ok(Hidden { shows: vec![leaves; data.sensitive.len()], rare, ..Hidden::default() });
        }
        let (held, beside) = asked.held(&affected)?;
        match asked.settled(&held, &beside)? {
            Settled::As(hidden) => return Ok(Hidden { rare, ..hidden }),
            Settled::Lacks(more) => more.into_iter().for_each(|(attribute, value)| doubtful[attribute][value] = true),
        }
    }
}

enum Settled {
    As(Hidden),
    /// These values of classes that are not held lack people by now.
    Lacks(Vec<(usize, usize)>),
}

impl Asked<'_> {
    fn attributes(&self) -> Vec<usize> {
        let input = &self.data.input;
        input.quasi.iter().chain(&input.sensitive).copied().collect()
    }

    /// Hands over the records of classes that leave: the block, the place in it and the class of each.
    fn each(
        &self,
        (digests, people): (bool, bool),
        visit: &mut dyn FnMut(&Block, u32, u32) -> Result<(), AnonymizeError>,
    ) -> Result<(), AnonymizeError> {
        let attributes = self.attributes();
        let codes = &self.data.codes;
        codes.each(Wanted { attributes: &attributes, digests, people }, &mut |block| {
            (self.step)(Step::Counting { records: block.start as u64, of: codes.rows as u64 })?;
            for &at in &block.released {
                if let Some(found) = self.kept.found(block, at) {
                    visit(block, at, self.kept.class_of(found))?;
                }
            }
            Ok(())
        })
    }

    /// The values of a record, by sensitive attribute.
    fn values<'b>(&'b self, block: &'b Block, at: u32) -> impl Iterator<Item = (usize, u32)> + 'b {
        let columns = block.codes[self.data.quasi.len()..].iter().zip(&self.data.sensitive).enumerate();
        columns.map(move |(number, (codes, values))| (number, values.value_of[codes[at as usize] as usize]))
    }

    fn support<P: Copy + PartialEq>(&self) -> Support<P> {
        Support::new(self.k, self.data.sensitive.iter().map(|values| values.codes.len()))
    }

    /// By sensitive attribute and value: whether fewer than k people have it among the records of classes that leave.
    fn rare(&self) -> Result<Vec<Vec<bool>>, AnonymizeError> {
        let mut support = self.support();
        self.each((false, true), &mut |block, at, _| {
            let person = Some(block.people[at as usize]).filter(|person| *person != NOBODY);
            self.values(block, at).for_each(|(attribute, value)| support.note(attribute, value, person));
            Ok(())
        })?;
        Ok(support.rare())
    }

    /// By class: whether any of its records has a doubtful value.
    fn affected(&self, doubtful: &[Vec<bool>]) -> Result<Vec<bool>, AnonymizeError> {
        let mut affected = vec![false; self.kept.sizes.len()];
        let occurs = |(number, values): (usize, &Values)| {
            values.counts.iter().zip(&doubtful[number]).any(|(count, doubtful)| *count > 0 && *doubtful)
        };
        if !self.data.sensitive.iter().enumerate().any(occurs) {
            return Ok(affected);
        }
        self.each((false, false), &mut |block, at, class| {
            affected[class as usize] |= self.values(block, at).any(|(number, value)| doubtful[number][value as usize]);
            Ok(())
        })?;
        Ok(affected)
    }

    /// The records of the affected classes, and the people of the values of the others.
    fn held(&self, affected: &[bool]) -> Result<(Held, Support<u64>), AnonymizeError> {
        let records: u64 = self.kept.sizes.iter().zip(affected).filter(|(_, is)| **is).map(|(size, _)| size).sum();
        let sensitive = &self.data.sensitive;
        let needed = records * (A_RECORD + A_CELL * sensitive.len() as u64)
            + sensitive.iter().map(|values| values.codes.len() as u64).sum::<u64>() * 8 * (self.k as u64 + 8);
        let room = self.data.room;
        let (table, kept) = (self.table.bytes() as u64, self.kept.bytes());
        let what = || {
            format!("the {records} records of classes with rare sensitive values (beside {} classes)", affected.len())
        };
        room.holds(what, needed + table + kept, FEWER_HIDING)?;
        let values = sensitive.iter().map(|values| (Vec::new(), values.codes.len())).collect();
        let mut held = Held { values, ..Held::default() };
        let mut beside = self.support();
        self.each((true, true), &mut |block, at, class| {
            let digest = block.digests[at as usize];
            if affected[class as usize] {
                held.numbers.push(block.start as u32 + at);
                held.people.push(block.people[at as usize]);
                held.digests.push(digest);
                held.classes.push(class);
                self.values(block, at).for_each(|(number, value)| held.values[number].0.push(value));
            } else {
                // What nobody shows lacks people all the same.
                let person = Some(digest).filter(|digest| *digest != NO_SUBJECT);
                self.values(block, at).for_each(|(number, value)| beside.note(number, value, person));
            }
            Ok(())
        })?;
        Ok((held, beside))
    }

    /// Settles what is held.
    fn settled(&self, held: &Held, beside: &Support<u64>) -> Result<Settled, AnonymizeError> {
        let (input, sensitive) = (&self.data.input, &self.data.sensitive);
        let mut batch = Batch::new(input.schema.attributes.len());
        batch.subjects.clone_from(&held.digests);
        for (&attribute, (values, column)) in input.sensitive.iter().zip(sensitive.iter().zip(&held.values)) {
            batch.columns[attribute] = column.0.iter().map(|&value| values.codes[value as usize]).collect();
        }
        // Numbers of classes as keys: spread, and different where they are.
        let spread = |&class: &u32| u128::from(mix(u64::from(class))) << 64 | u128::from(mix(!u64::from(class)));
        let class: Vec<u128> = held.classes.iter().map(spread).collect();
        let keyed = input.key.keyed("beside the classes that are held");
        let bases: Vec<u128> = input.schema.attributes.iter().map(|a| keyed.digest(a.name.as_bytes())).collect();
        let mut holders = Holders::default();
        for (number, &attribute) in input.sensitive.iter().enumerate() {
            for (&code, (people, _)) in sensitive[number].codes.iter().zip(beside.values(number)) {
                let value = input.books[attribute].digests(0)[code as usize];
                holders.add(bases[attribute].wrapping_add(value), people);
            }
        }
        let order = content_key(self.data)?.keyed("who covers");
        let side = |(position, &attribute): (usize, &usize)| Side {
            attribute,
            levels: 1,
            protected: self.models.iter().any(|model| model.attribute() == Some(position)),
            floors: vec![0; held.numbers.len()],
        };
        let sides = input.sensitive.iter().enumerate().map(side).collect();
        let mut judged =
            OfData::new(input, &held.values, self.table, self.models).map_err(|e| AnonymizeError::Terms(e.into()))?;
        let hiding = Hiding {
            batch: &batch,
            books: &input.books,
            k: self.k,
            strict: false,
            bases: &bases,
            order: &|row| order.digest(&held.people[row as usize].to_be_bytes()),
            holders: &holders,
            class: &class,
            bare: false,
            beside: beside.any(),
        };
        let settled = hiding.settle(sides, (0..held.numbers.len() as u32).collect(), &mut judged);
        let lost: BTreeSet<u32> = settled.failing.iter().copied().collect();
        let leaving = || (0..held.numbers.len() as u32).filter(|row| !lost.contains(row));
        let mut lacking = Vec::new();
        for (number, cells) in settled.columns.iter().enumerate() {
            let mut shown = beside.values(number).to_vec();
            for row in leaving().filter(|&row| cells[row as usize] != SUPPRESSED) {
                let (value, person) = (held.values[number].0[row as usize] as usize, held.digests[row as usize]);
                let known = &mut shown[value].0;
                if person != NO_SUBJECT && known.len() < self.k && !known.contains(&person) {
                    known.push(person);
                }
            }
            let lacks = shown.iter().enumerate().filter(|(_, (people, is_met))| *is_met && people.len() < self.k);
            lacking.extend(lacks.map(|(value, _)| (number, value)));
        }
        if !lacking.is_empty() {
            return Ok(Settled::Lacks(lacking));
        }
        let shows = |cells: &Vec<u32>| beside.any() || leaving().any(|row| cells[row as usize] != SUPPRESSED);
        let mut hidden = Hidden {
            shows: settled.columns.iter().map(shows).collect(),
            lost: lost.iter().map(|&row| held.numbers[row as usize]).collect(),
            ..Hidden::default()
        };
        for row in leaving() {
            let hides = |cells: &Vec<u32>| cells[row as usize] == SUPPRESSED;
            if settled.columns.iter().any(hides) {
                hidden.masked.push(held.numbers[row as usize]);
                let word = |columns: &[Vec<u32>]| {
                    columns.iter().enumerate().fold(0, |mask, (at, cells)| mask | u32::from(hides(cells)) << at)
                };
                hidden.masks.extend(settled.columns.chunks(u32::BITS as usize).map(word));
            }
        }
        Ok(Settled::As(hidden))
    }
}

/// The order in which people cover is that of the data under a secret: with the same secret a second release of the same data
/// hides the same cells, and comparing the two tells nothing.
fn content_key(data: &Data) -> Result<DigestKey, AnonymizeError> {
    let mut key = ContentKey::default();
    key.add(&data.input.covers.0);
    for (attribute, book) in data.input.books.iter().enumerate() {
        key.add(book.attribute().name.as_bytes());
        data.codes.each(Wanted { attributes: &[attribute], ..Wanted::default() }, &mut |block| {
            block.codes[0].iter().for_each(|&code| key.add(book.canonical(code).as_bytes()));
            Ok(())
        })?;
    }
    Ok(key.finish())
}

/// The models of a data set, each asked of the values that a class shows.
struct OfData<'a> {
    /// By sensitive attribute and row: its value.
    values: &'a [(Vec<u32>, usize)],
    /// By sensitive attribute: its position in the schema, and its models.
    judges: Vec<(usize, Judge)>,
    room: Room,
}

impl<'a> OfData<'a> {
    /// The models of the sensitive attributes of `input`, of which `values` has a column each; `table` knows the whole.
    fn new(
        input: &Input,
        values: &'a [(Vec<u32>, usize)],
        table: &Table,
        models: &[Model],
    ) -> Result<Self, ModelError> {
        let whole = |domain: &SensitiveDomain| SensitiveDomain { rare: Vec::new(), ..domain.clone() };
        let domains: Vec<SensitiveDomain> = table.sensitive().iter().map(whole).collect();
        let judge = |(position, &attribute): (usize, &usize)| {
            let mine: Vec<Model> = models.iter().filter(|m| m.attribute() == Some(position)).cloned().collect();
            Ok((attribute, Judge::new(&mine, &domains)?))
        };
        let judges = input.sensitive.iter().enumerate().map(judge).collect::<Result<_, _>>()?;
        Ok(Self { values, judges, room: Room::default() })
    }
}

impl Models for OfData<'_> {
    fn refused(&mut self, attribute: usize, showing: &[(u128, u32)]) -> Vec<u128> {
        let Some(position) = self.judges.iter().position(|(of, _)| *of == attribute) else { return Vec::new() };
        let mut refused = Vec::new();
        let mut values: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.judges.len()];
        for of_class in showing.chunk_by(|a, b| a.0 == b.0) {
            let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
            for (_, row) in of_class {
                *counts.entry(self.values[position].0[*row as usize]).or_default() += 1;
            }
            values[position] = counts.into_iter().collect();
            let records = of_class.len() as u64;
            let class = Class { records, subjects: records, population: records, people: records, values: &values };
            if self.judges[position].1.failing(&class, &mut self.room).is_some() {
                refused.push(of_class[0].0);
            }
        }
        refused
    }
}
