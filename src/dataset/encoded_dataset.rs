//! Encoded data set and its distinct records.

use super::code_store::{CodeStore, CodeStoreWriter, RecordFields};
use super::dataset_source::{AnonymizationStep, DatasetSource, RunCallbacks, StepCallback};
use super::error::AnonymizeError;
use super::input_encoding::{self, DatasetInput, PreparedSchema};
use super::run_memory::{FEWER_ROWS_REMEDY, MemoryBudget};
use super::sensitive_support::SensitiveSupport;
use crate::config::{Config, format_size};
use crate::io::file::FileSnapshot;
use crate::io::table::named;
use crate::start::record_formats::file_format;
use std::ops::ControlFlow;
use throng_core::domain::Domain;
use throng_core::lattice::attribute_coding::{self, CodedAttribute};
use throng_core::lattice::table::{LatticeTable, LatticeTableError, TableRecords, UNCOUNTED_SUBJECT};
use throng_core::lattice::table_packing::{PackingLimitExceeded, TablePacker};
use throng_core::privacy::SensitiveDomain;
use throng_core::values::codebook::{Code, UNCOVERED};

/// Encoded data set.
pub struct EncodedDataset {
    /// Everything except the records.
    pub input: DatasetInput,
    pub codes: CodeStore,
    /// Records to be released.
    pub released: u64,
    /// Values per quasi attribute.
    pub quasi: Vec<DatasetValues>,
    /// Values per sensitive attribute.
    pub sensitive: Vec<DatasetValues>,
    pub room: MemoryBudget,
}

/// Values of one attribute, numbered for the search.
pub struct DatasetValues {
    pub domain: Domain,
    /// Value per code.
    pub value_of: Vec<u32>,
    /// Code per value.
    pub codes: Vec<Code>,
    /// Records to be released, per value.
    pub counts: Vec<u64>,
}

/// Estimates per cell and record in memory.
const MEMORY_CELL_BYTES: u64 = 12;
const MEMORY_RECORD_BYTES: u64 = 64;

/// Reads the source into memory or a file.
pub fn read_dataset(
    config: &Config,
    file: &str,
    source: &DatasetSource<'_>,
    RunCallbacks { note, step, .. }: RunCallbacks<'_>,
) -> Result<EncodedDataset, AnonymizeError> {
    let PreparedSchema { schema, books, key } = input_encoding::prepare_schema(config, file)?;
    let room = MemoryBudget::new(if source.temp.is_some() { source.memory } else { u64::MAX });
    let path = &config.source.path;
    let format = file_format(config.source.format_of_file(path), config.source.separator);
    let standing = source.temp.map(|_| FileSnapshot::of(path, source.more, format)).transpose()?;
    let mut writing = CodeStoreWriter::new(source.temp, &schema)?;
    let mut failed = None;
    let each: &mut input_encoding::BatchVisitor<'_> = &mut |batch, books| {
        let added = writing
            .add(batch)
            .and_then(|()| check_memory(config, source, room, &writing, input_encoding::codebook_bytes(books)));
        let heard = || step(AnonymizationStep::Reading { records: writing.rows() as u64 });
        match added.and_then(|()| heard()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let read = input_encoding::encode_source(config, file, (&schema, books, &key), source.more, note, each);
    if let Some(error) = failed {
        return Err(error);
    }
    let (books, swallowed) = read?;
    if let Some(standing) = standing {
        standing.reject_differences(path, source.more, format)?;
    }
    let rows = writing.rows();
    let mut codes = writing.finish()?;
    // Cells of profiles are counted per record.
    let of_profiles = |a: usize| match schema.attributes[a].from.join() {
        Some(_) => codes.counts[a].get(UNCOVERED as usize).copied().unwrap_or(0),
        None => 0,
    };
    input_encoding::report_uncovered_cells(&schema, &books, &of_profiles, note);
    let begun = PreparedSchema { schema: schema.clone(), books, key };
    let (input, marks) = input_encoding::describe_input(config, file, begun, swallowed, (rows as u64, &of_profiles))?;
    if rows >= u32::MAX as usize {
        return Err(LatticeTableError::Rows { rows, limit: u32::MAX as usize - 1 }.into());
    }
    codes.marks = marks;
    let of = |attribute: &usize| DatasetValues::of(&input, &codes, *attribute);
    let quasi: Vec<DatasetValues> = input.quasi.iter().map(of).collect::<Result<_, _>>()?;
    let sensitive: Vec<DatasetValues> = input.sensitive.iter().map(of).collect::<Result<_, _>>()?;
    let released = match &codes.marks {
        None => rows as u64,
        Some(marks) => {
            codes.counts[marks.attribute].iter().zip(&marks.released).map(|(n, &is)| if is { *n } else { 0 }).sum()
        }
    };
    if released == 0 {
        return Err(input_encoding::no_marked_record_error(file));
    }
    let numbered = 24 * codes.counts.iter().map(|counts| counts.len() as u64).sum::<u64>();
    let room = room.reserving(input_encoding::codebook_bytes(&input.books) + numbered);
    Ok(EncodedDataset { input, codes, released, quasi, sensitive, room })
}

const FEWER_VALUES_REMEDY: &str =
    "round attributes in the schema or remove those with the most values, or raise --memory";
const FEWER_SUBJECTS_REMEDY: &str = "raise --memory, or use the daemon (throng run)";

/// Refuses the records read so far if they exceed the memory limit.
fn check_memory(
    config: &Config,
    source: &DatasetSource<'_>,
    room: MemoryBudget,
    writing: &CodeStoreWriter,
    values: u64,
) -> Result<(), AnonymizeError> {
    let records = writing.rows() as u64;
    if source.temp.is_none() {
        if records * (writing.width() as u64 * MEMORY_CELL_BYTES + MEMORY_RECORD_BYTES) + values <= source.memory {
            return Ok(());
        }
        let (path, limit) = (named(&config.source.path, source.more), format_size(source.memory));
        return Err(AnonymizeError::TooLarge { path, records, limit });
    }
    // Half of the memory is for later steps.
    let (values, people) = (2 * values, 2 * writing.people_bytes());
    room.ensure_fits(|| format!("the distinct values of {records} records"), values, FEWER_VALUES_REMEDY)?;
    let number = || people / 2 / (size_of::<(u64, u32)>() as u64 + 1);
    room.reserving(values).ensure_fits(|| format!("{} people", number()), people, FEWER_SUBJECTS_REMEDY)
}

impl DatasetValues {
    fn of(input: &DatasetInput, codes: &CodeStore, attribute: usize) -> Result<Self, AnonymizeError> {
        let book = &input.books[attribute];
        let occurring: Vec<Code> =
            (0..).zip(&codes.counts[attribute]).filter(|(_, count)| **count > 0).map(|(code, _)| code).collect();
        // Each code once: the search numbers values.
        let CodedAttribute { domain, codes: by_value, .. } = attribute_coding::code_attribute(book, &occurring)?;
        let mut value_of = vec![u32::MAX; book.codes()];
        for (value, &code) in (0..).zip(&by_value) {
            value_of[code as usize] = value;
        }
        let released = codes.released_counts(attribute)?;
        let counts = by_value.iter().map(|&code| released[code as usize]).collect();
        Ok(Self { domain, value_of, codes: by_value, counts })
    }
}

impl EncodedDataset {
    /// Returns the quasi domains.
    pub fn domains(&self) -> Vec<Domain> {
        self.quasi.iter().map(|values| values.domain.clone()).collect()
    }

    /// Returns the sensitive domains.
    pub fn sensitive_domains(&self) -> Vec<Domain> {
        self.sensitive.iter().map(|values| values.domain.clone()).collect()
    }

    /// Returns, per sensitive attribute and value, true if fewer than k subjects to be released have it.
    pub fn rare_values(&self, k: usize, step: StepCallback<'_>) -> Result<Vec<Vec<bool>>, AnonymizeError> {
        let mut support = SensitiveSupport::new(k, self.sensitive.iter().map(|values| values.codes.len()));
        if self.sensitive.is_empty() {
            return Ok(support.rare_flags());
        }
        let wanted = RecordFields { attributes: &self.input.sensitive, people: true, ..RecordFields::default() };
        self.codes.visit_blocks(wanted, &mut |block| {
            for &at in &block.released {
                let person = Some(block.people[at as usize]).filter(|person| *person != UNCOUNTED_SUBJECT);
                for (number, values) in self.sensitive.iter().enumerate() {
                    let value = values.value_of[block.codes[number][at as usize] as usize];
                    support.count_record(number, value, person);
                }
            }
            step(AnonymizationStep::Counting { records: block.start as u64, of: self.codes.rows as u64 })
        })?;
        Ok(support.rare_flags())
    }

    /// Returns the distinct records to be released, and all others if a model needs the `population`. Sensitive values
    /// always distinguish records, because a class must be able to hide rare ones.
    pub fn distinct_records(&self, population: bool, step: StepCallback<'_>) -> Result<LatticeTable, AnonymizeError> {
        let mut attributes = self.input.quasi.clone();
        attributes.extend(&self.input.sensitive);
        // The search holds as much again.
        let bytes = usize::try_from(self.room.bytes_left() / 2).unwrap_or(usize::MAX);
        let mut packing = TablePacker::new(self.domains(), bytes);
        let named = self.codes.people.is_some();
        let population = population && self.codes.marks.is_some();
        let wanted = RecordFields { attributes: &attributes, people: named, ..RecordFields::default() };
        let mut taken = Vec::new();
        self.codes.visit_blocks(wanted, &mut |block| {
            taken.clear();
            if population {
                taken.extend(0..block.rows as u32);
            } else {
                taken.extend_from_slice(&block.released);
            }
            let column = |(codes, values): (&Vec<Code>, &DatasetValues)| -> Vec<u32> {
                taken.iter().map(|&at| values.value_of[codes[at as usize] as usize]).collect()
            };
            let (of_quasi, of_sensitive) = block.codes.split_at(self.quasi.len());
            let records = TableRecords {
                quasi: of_quasi.iter().zip(&self.quasi).map(column).collect(),
                sensitive: of_sensitive.iter().zip(&self.sensitive).map(|of| (column(of), of.1.codes.len())).collect(),
                subjects: named.then(|| taken.iter().map(|&at| block.people[at as usize]).collect()),
                released: population.then(|| block.release_flags()),
                ..TableRecords::default()
            };
            step(AnonymizationStep::Counting { records: block.start as u64, of: self.codes.rows as u64 })?;
            packing.add(&records).map_err(|PackingLimitExceeded { distinct, row_bytes }| {
                let what = format!("more than {distinct} distinct records and the search over them");
                self.room.exceeded_error(what, 2 * (distinct * row_bytes) as u64, FEWER_ROWS_REMEDY)
            })
        })?;
        let domain = |values: &DatasetValues| SensitiveDomain { counts: values.counts.clone(), rare: Vec::new() };
        let counts = self.quasi.iter().map(|values| values.counts.clone()).collect();
        if self.quasi.is_empty() {
            return Err(LatticeTableError::NoAttributes.into());
        }
        Ok(packing.finish(self.sensitive.iter().map(domain).collect(), counts, self.released))
    }

    /// Returns all records, including those of the population only.
    pub fn records(&self) -> Result<TableRecords, AnonymizeError> {
        let attributes: Vec<usize> = self.input.quasi.iter().chain(&self.input.sensitive).copied().collect();
        let (mut codes, people, released) = self.codes.read_all_records(&attributes)?;
        for (codes, values) in codes.iter_mut().zip(self.quasi.iter().chain(&self.sensitive)) {
            codes.iter_mut().for_each(|code| *code = values.value_of[*code as usize]);
        }
        let sensitive = codes.split_off(self.quasi.len()).into_iter().zip(&self.sensitive);
        Ok(TableRecords {
            quasi: codes,
            sensitive: sensitive.map(|(column, values)| (column, values.codes.len())).collect(),
            subjects: self.codes.people.map(|_| people),
            released,
            ..TableRecords::default()
        })
    }
}
