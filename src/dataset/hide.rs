//! The cells that leave: quasi cells by the policies, and sensitive cells exactly or as `*`, so that `*` says neither who
//! nor what ([`crate::anonymity::treatment::hide`]).
//!
//! A data set is one large batch. The search judges classes by what they will show: values that fewer than k people have
//! count for nothing there. What it cannot know is who covers for them, so a class whose models do not survive that shows
//! nothing of the attribute.

use super::aggregate::{AggregateQuestion, Aggregated, aggregate};
use super::error::AnonymizeError;
use super::read::Input;
use crate::anonymity::lattice::passes::Recoded;
use crate::anonymity::lattice::table::{NOBODY, Records, Table};
use crate::anonymity::privacy::{Class, Judge, Model, ModelError, Room, SensitiveDomain};
use crate::anonymity::treatment::hide::{Hiding, Models, Side};
use crate::records::codebook::{CellId, SUPPRESSED};
use crate::records::digest::DigestKey;
use crate::records::holders::Holders;
use std::collections::{BTreeMap, BTreeSet};

/// What a policy becomes.
pub struct Settled {
    /// The records that leave.
    pub rows: Vec<usize>,
    /// By attribute that leaves, and row of `rows`.
    pub cells: Vec<Vec<CellId>>,
    pub aggregated: Vec<Aggregated>,
    /// Sensitive cells that leave as `*`.
    pub hidden: u64,
    /// Records of classes whose `*` would say what it hides: they do not leave.
    pub lost: Vec<u32>,
}

/// By sensitive attribute and value: whether fewer than k people have it among the records that `leave`.
pub fn rare(records: &Records, leaves: impl Fn(usize) -> bool, k: usize) -> Vec<Vec<bool>> {
    let of = |(column, values): &(Vec<u32>, usize)| -> Vec<bool> {
        let mut people: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); *values];
        for (row, &value) in column.iter().enumerate().filter(|(row, _)| leaves(*row)) {
            let person = records.subjects.as_ref().map_or(row as u32, |subjects| subjects[row]);
            let known = &mut people[value as usize];
            if person != NOBODY && known.len() < k {
                known.insert(person);
            }
        }
        people.into_iter().map(|people| people.len() < k).collect()
    };
    records.sensitive.iter().map(of).collect()
}

/// Settles the records that leave by a pass, at its policy.
pub fn settle(
    input: &mut Input,
    recoded: &Recoded,
    aggregates: &[AggregateQuestion],
    (records, table): (&Records, &Table),
    models: &[Model],
    k: usize,
) -> Result<Settled, AnonymizeError> {
    let rows: Vec<usize> = (0..input.batch.rows()).filter(|&row| recoded.by[row].is_some()).collect();
    let mut cells = cells(input, recoded, &rows);
    let aggregated = aggregate(input, aggregates, &rows, &mut cells, k)?;
    settle_beside(input, Quasi { rows, cells, aggregated }, (records, table), models, k)
}

/// As [`settle`], where nothing is aggregated.
pub fn settle_exactly(
    input: &Input,
    recoded: &Recoded,
    of: (&Records, &Table),
    models: &[Model],
    k: usize,
) -> Result<Settled, AnonymizeError> {
    let rows: Vec<usize> = (0..input.batch.rows()).filter(|&row| recoded.by[row].is_some()).collect();
    let cells = cells(input, recoded, &rows);
    settle_beside(input, Quasi { rows, cells, aggregated: Vec::new() }, of, models, k)
}

/// Records whose quasi cells are settled; by attribute that leaves, and row of `rows`.
struct Quasi {
    rows: Vec<usize>,
    cells: Vec<Vec<CellId>>,
    aggregated: Vec<Aggregated>,
}

/// Settles the sensitive cells beside quasi cells.
fn settle_beside(
    input: &Input,
    quasi: Quasi,
    (records, table): (&Records, &Table),
    models: &[Model],
    k: usize,
) -> Result<Settled, AnonymizeError> {
    let Quasi { rows, mut cells, aggregated } = quasi;
    let mut class = vec![0u128; input.batch.rows()];
    for (&attribute, column) in input.leaving.iter().zip(&cells).filter(|(a, _)| input.quasi.contains(a)) {
        for (&row, &cell) in rows.iter().zip(column) {
            class[row] = class[row].wrapping_add(input.books[attribute].digest(cell));
        }
    }
    let side = |(position, &attribute): (usize, &usize)| Side {
        attribute,
        levels: 1,
        protected: models.iter().any(|model| model.attribute() == Some(position)),
        floors: vec![0; input.batch.rows()],
    };
    let sides = input.sensitive.iter().enumerate().map(side).collect();
    let mut judged =
        OfData::new(input, &records.sensitive, table, models).map_err(|e| AnonymizeError::Terms(e.into()))?;
    let bases: Vec<u128> = input.schema.attributes.iter().map(|_| 0).collect();
    let order = content_key(input).keyed("who covers");
    let person = |row: u32| input.subjects.as_ref().map_or(row, |subjects| subjects[row as usize]);
    let hiding = Hiding {
        batch: &input.batch,
        books: &input.books,
        k,
        strict: false,
        bases: &bases,
        order: &|row| order.digest(&person(row).to_be_bytes()),
        holders: &Holders::default(),
        class: &class,
        bare: false,
        beside: false,
    };
    let hidden = hiding.settle(sides, rows.iter().map(|&row| row as u32).collect(), &mut judged);
    let lost: BTreeSet<u32> = hidden.failing.iter().copied().collect();
    for (&attribute, column) in input.sensitive.iter().zip(&hidden.columns) {
        let at = input.leaving.iter().position(|&a| a == attribute).unwrap_or_default();
        cells[at] = rows.iter().map(|&row| column[row]).collect();
    }
    let stays: Vec<bool> = rows.iter().map(|&row| !lost.contains(&(row as u32))).collect();
    for column in &mut cells {
        let mut stays = stays.iter();
        column.retain(|_| stays.next().copied().unwrap_or(false));
    }
    let suppressed = |(&a, column): (&usize, &Vec<CellId>)| {
        let counts = input.sensitive.contains(&a);
        column.iter().filter(|cell| counts && **cell == SUPPRESSED).count() as u64
    };
    Ok(Settled {
        hidden: input.leaving.iter().zip(&cells).map(suppressed).sum(),
        rows: rows.into_iter().zip(stays).filter(|(_, stays)| *stays).map(|(row, _)| row).collect(),
        cells,
        aggregated,
        lost: lost.into_iter().collect(),
    })
}

/// The order in which people cover is that of the data under a secret: with the same secret a second release of the same data
/// hides the same cells, and comparing the two tells nothing.
pub(super) fn content_key(input: &Input) -> DigestKey {
    let texts = input.books.iter().zip(&input.batch.columns).flat_map(|(book, column)| {
        let name = std::iter::once(book.attribute().name.as_bytes());
        name.chain(column.iter().map(|&code| book.canonical(code).as_bytes()))
    });
    DigestKey::of_content(std::iter::once(input.covers.0.as_slice()).chain(texts))
}

/// By attribute that leaves and row of `rows`: the cell on the level of the pass that the record leaves by.
fn cells(input: &Input, recoded: &Recoded, rows: &[usize]) -> Vec<Vec<CellId>> {
    let of = |&attribute: &usize| -> Vec<CellId> {
        let (book, column) = (&input.books[attribute], &input.batch.columns[attribute]);
        let at = input.quasi.iter().position(|&a| a == attribute);
        let level = |row: usize| match (at, recoded.by[row]) {
            (Some(at), Some(pass)) => usize::from(recoded.passes[usize::from(pass)].policy[at]),
            _ => 0,
        };
        rows.iter().map(|&row| book.cell(column[row], level(row))).collect()
    };
    input.leaving.iter().map(of).collect()
}

/// The models of a data set, each asked of the values that a class shows.
pub struct OfData<'a> {
    /// By sensitive attribute and row: its value.
    values: &'a [(Vec<u32>, usize)],
    /// By sensitive attribute: its position in the schema, and its models.
    judges: Vec<(usize, Judge)>,
    room: Room,
}

impl<'a> OfData<'a> {
    /// The models of the sensitive attributes of `input`, of which `values` has a column each; `table` knows the whole.
    pub fn new(
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
