//! A data set: what is read of it, and its distinct records as the search sees them.

use super::codes::{Codes, Wanted, Writing};
use super::error::AnonymizeError;
use super::read::{self, Begun, Input};
use super::room::{FEWER_ROWS, Room};
use super::source::{Attended, OnStep, Source, Step};
use super::support::Support;
use crate::anonymity::domain::Domain;
use crate::anonymity::lattice::coding::{self, Coded};
use crate::anonymity::lattice::packing::{Full, Packing};
use crate::anonymity::lattice::table::{NOBODY, Records, Table, TableError};
use crate::anonymity::privacy::SensitiveDomain;
use crate::config::{Config, format_size};
use crate::io::file::Standing;
use crate::io::table::named;
use crate::start::reading::file_format;
use std::ops::ControlFlow;
use throng_core::values::codebook::{Code, UNCOVERED};

/// A data set.
pub struct Data {
    /// Everything but the records.
    pub input: Input,
    pub codes: Codes,
    /// Records to be released.
    pub released: u64,
    /// By quasi attribute.
    pub quasi: Vec<Values>,
    /// By sensitive attribute.
    pub sensitive: Vec<Values>,
    pub room: Room,
}

/// The values of one attribute as the search numbers them.
pub struct Values {
    pub domain: Domain,
    /// By code: its value.
    pub value_of: Vec<u32>,
    /// By value: its code.
    pub codes: Vec<Code>,
    /// By value: records to be released.
    pub counts: Vec<u64>,
}

/// Bytes of a cell, and of a record beside its cells, that are counted for a data set in memory.
const A_CELL: u64 = 12;
const A_RECORD: u64 = 64;

/// Reads the source of `config` into memory, or into a file.
pub fn read(
    config: &Config,
    file: &str,
    source: &Source<'_>,
    Attended { note, step, .. }: Attended<'_>,
) -> Result<Data, AnonymizeError> {
    let Begun { schema, books, key } = read::begin(config, file)?;
    let room = Room::new(if source.temp.is_some() { source.memory } else { u64::MAX });
    let path = &config.source.path;
    let format = file_format(config.source.format_of_file(path), config.source.separator);
    let standing = source.temp.map(|_| Standing::of(path, source.more, format)).transpose()?;
    let mut writing = Writing::new(source.temp, &schema)?;
    let mut failed = None;
    let each: &mut read::Each<'_> = &mut |batch, books| {
        let added = writing.add(batch).and_then(|()| fits(config, source, room, &writing, read::values(books)));
        let heard = || step(Step::Reading { records: writing.rows() as u64 });
        match added.and_then(|()| heard()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let read = read::encoded(config, file, (&schema, books, &key), source.more, note, each);
    if let Some(error) = failed {
        return Err(error);
    }
    let (books, swallowed) = read?;
    if let Some(standing) = standing {
        standing.refuse_changed(path, source.more, format)?;
    }
    let rows = writing.rows();
    let mut codes = writing.finish()?;
    // Cells of profiles are counted by record, as the others are.
    let of_profiles = |a: usize| match schema.attributes[a].from.join() {
        Some(_) => codes.counts[a].get(UNCOVERED as usize).copied().unwrap_or(0),
        None => 0,
    };
    read::note_uncovered(&schema, &books, &of_profiles, note);
    let begun = Begun { schema: schema.clone(), books, key };
    let (input, marks) = read::described(config, file, begun, swallowed, (rows as u64, &of_profiles))?;
    if rows >= u32::MAX as usize {
        return Err(TableError::Rows { rows, limit: u32::MAX as usize - 1 }.into());
    }
    codes.marks = marks;
    let of = |attribute: &usize| Values::of(&input, &codes, *attribute);
    let quasi: Vec<Values> = input.quasi.iter().map(of).collect::<Result<_, _>>()?;
    let sensitive: Vec<Values> = input.sensitive.iter().map(of).collect::<Result<_, _>>()?;
    let released = match &codes.marks {
        None => rows as u64,
        Some(marks) => {
            codes.counts[marks.attribute].iter().zip(&marks.released).map(|(n, &is)| if is { *n } else { 0 }).sum()
        }
    };
    if released == 0 {
        return Err(read::nothing_marked(file));
    }
    let numbered = 24 * codes.counts.iter().map(|counts| counts.len() as u64).sum::<u64>();
    let room = room.with(read::values(&input.books) + numbered);
    Ok(Data { input, codes, released, quasi, sensitive, room })
}

const FEWER_VALUES: &str =
    "round attributes in the schema or leave out those with the most values, or allow more (--memory)";
const FEWER_PEOPLE: &str = "allow more (--memory), or run it through the daemon (throng run)";

/// Refuses what has been read so far, with so many bytes of different values, where it takes more than it may.
fn fits(
    config: &Config,
    source: &Source<'_>,
    room: Room,
    writing: &Writing,
    values: u64,
) -> Result<(), AnonymizeError> {
    let records = writing.rows() as u64;
    if source.temp.is_none() {
        if records * (writing.width() as u64 * A_CELL + A_RECORD) + values <= source.memory {
            return Ok(());
        }
        let (path, limit) = (named(&config.source.path, source.more), format_size(source.memory));
        return Err(AnonymizeError::TooLarge { path, records, limit });
    }
    // Half is left for everything that comes.
    let (values, people) = (2 * values, 2 * writing.people_bytes());
    room.holds(|| format!("the different values of {records} records"), values, FEWER_VALUES)?;
    let number = || people / 2 / (size_of::<(u64, u32)>() as u64 + 1);
    room.with(values).holds(|| format!("{} people", number()), people, FEWER_PEOPLE)
}

impl Values {
    fn of(input: &Input, codes: &Codes, attribute: usize) -> Result<Self, AnonymizeError> {
        let book = &input.books[attribute];
        let occurring: Vec<Code> =
            (0..).zip(&codes.counts[attribute]).filter(|(_, count)| **count > 0).map(|(code, _)| code).collect();
        // The column is each code once: what the search numbers are values, not records.
        let Coded { domain, codes: by_value, .. } = coding::coded(book, &occurring)?;
        let mut value_of = vec![u32::MAX; book.codes()];
        for (value, &code) in (0..).zip(&by_value) {
            value_of[code as usize] = value;
        }
        let released = codes.released_counts(attribute)?;
        let counts = by_value.iter().map(|&code| released[code as usize]).collect();
        Ok(Self { domain, value_of, codes: by_value, counts })
    }
}

impl Data {
    /// The domains of the quasi attributes.
    pub fn domains(&self) -> Vec<Domain> {
        self.quasi.iter().map(|values| values.domain.clone()).collect()
    }

    /// The domains of the sensitive attributes.
    pub fn sensitive_domains(&self) -> Vec<Domain> {
        self.sensitive.iter().map(|values| values.domain.clone()).collect()
    }

    /// By sensitive attribute and value: whether fewer than k people have it among the records to be released.
    pub fn rare(&self, k: usize, step: OnStep<'_>) -> Result<Vec<Vec<bool>>, AnonymizeError> {
        let mut support = Support::new(k, self.sensitive.iter().map(|values| values.codes.len()));
        if self.sensitive.is_empty() {
            return Ok(support.rare());
        }
        let wanted = Wanted { attributes: &self.input.sensitive, people: true, ..Wanted::default() };
        self.codes.each(wanted, &mut |block| {
            for &at in &block.released {
                let person = Some(block.people[at as usize]).filter(|person| *person != NOBODY);
                for (number, values) in self.sensitive.iter().enumerate() {
                    let value = values.value_of[block.codes[number][at as usize] as usize];
                    support.note(number, value, person);
                }
            }
            step(Step::Counting { records: block.start as u64, of: self.codes.rows as u64 })
        })?;
        Ok(support.rare())
    }

    /// The distinct records: those to be released, and where a model asks for the `population` the others too. Sensitive values divide them,
    /// also where no model looks at them: a class must be able to hide what is rare.
    pub fn table(&self, population: bool, step: OnStep<'_>) -> Result<Table, AnonymizeError> {
        let mut attributes = self.input.quasi.clone();
        attributes.extend(&self.input.sensitive);
        // What the search holds beside it is more than as much again.
        let bytes = usize::try_from(self.room.left() / 2).unwrap_or(usize::MAX);
        let mut packing = Packing::new(self.domains(), bytes);
        let named = self.codes.people.is_some();
        let population = population && self.codes.marks.is_some();
        let wanted = Wanted { attributes: &attributes, people: named, ..Wanted::default() };
        let mut taken = Vec::new();
        self.codes.each(wanted, &mut |block| {
            taken.clear();
            if population {
                taken.extend(0..block.rows as u32);
            } else {
                taken.extend_from_slice(&block.released);
            }
            let column = |(codes, values): (&Vec<Code>, &Values)| -> Vec<u32> {
                taken.iter().map(|&at| values.value_of[codes[at as usize] as usize]).collect()
            };
            let (of_quasi, of_sensitive) = block.codes.split_at(self.quasi.len());
            let records = Records {
                quasi: of_quasi.iter().zip(&self.quasi).map(column).collect(),
                sensitive: of_sensitive.iter().zip(&self.sensitive).map(|of| (column(of), of.1.codes.len())).collect(),
                subjects: named.then(|| taken.iter().map(|&at| block.people[at as usize]).collect()),
                released: population.then(|| block.is_released()),
                ..Records::default()
            };
            step(Step::Counting { records: block.start as u64, of: self.codes.rows as u64 })?;
            packing.add(&records).map_err(|Full { distinct, row_bytes }| {
                let what = format!("more than {distinct} distinct records and the search over them");
                self.room.refusal(what, 2 * (distinct * row_bytes) as u64, FEWER_ROWS)
            })
        })?;
        let domain = |values: &Values| SensitiveDomain { counts: values.counts.clone(), rare: Vec::new() };
        let counts = self.quasi.iter().map(|values| values.counts.clone()).collect();
        if self.quasi.is_empty() {
            return Err(TableError::NoAttributes.into());
        }
        Ok(packing.finish(self.sensitive.iter().map(domain).collect(), counts, self.released))
    }

    /// All records, those that only make up the population too: each a row of its own.
    pub fn records(&self) -> Result<Records, AnonymizeError> {
        let attributes: Vec<usize> = self.input.quasi.iter().chain(&self.input.sensitive).copied().collect();
        let (mut codes, people, released) = self.codes.all(&attributes)?;
        for (codes, values) in codes.iter_mut().zip(self.quasi.iter().chain(&self.sensitive)) {
            codes.iter_mut().for_each(|code| *code = values.value_of[*code as usize]);
        }
        let sensitive = codes.split_off(self.quasi.len()).into_iter().zip(&self.sensitive);
        Ok(Records {
            quasi: codes,
            sensitive: sensitive.map(|(column, values)| (column, values.codes.len())).collect(),
            subjects: self.codes.people.map(|_| people),
            released,
            ..Records::default()
        })
    }
}
