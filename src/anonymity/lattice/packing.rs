//! Distinct rows of records that come in parts: a table whose records are never all there.
//!
//! What has come is sorted now and then, and merged with what was distinct before. The table is the one that
//! [`Table::new`] would make of all records at once, row by row.

use super::table::{Composite, Records, Rows, Table, compact, composites_of, undivided};
use crate::anonymity::domain::Domain;
use crate::anonymity::privacy::SensitiveDomain;

/// Rows that are sorted at once, where there is room.
const AT_ONCE: usize = 1 << 20;
/// Fewer rows are never worth sorting by themselves.
const FEW: usize = 1 << 12;
/// Bytes beside a row's codes while it is sorted: its place in the order, whether it is the first of its kind.
const SORTING: usize = 5;

/// The distinct rows so far.
#[derive(Debug)]
pub struct Packing {
    domains: Vec<Domain>,
    composites: Vec<Composite>,
    rows: Rows,
    /// So many of the rows are distinct, in order.
    distinct: usize,
    bytes: usize,
}

/// There are more distinct rows than may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Those that were counted by then.
    pub distinct: usize,
    /// Bytes that each takes.
    pub row_bytes: usize,
}

impl Packing {
    /// For records with quasi attributes of these `domains`, whose rows may take so many `bytes`.
    #[must_use]
    pub fn new(domains: Vec<Domain>, bytes: usize) -> Self {
        let composites = composites_of(&domains);
        Self { domains, composites, rows: Rows::default(), distinct: 0, bytes }
    }

    /// Bytes of a row.
    fn row_bytes(&self) -> usize {
        let columns = self.composites.len()
            + self.rows.sensitive.len()
            + 1
            + usize::from(!self.rows.subject.is_empty())
            + usize::from(!self.rows.population.is_empty());
        columns * size_of::<u32>()
    }

    /// Adds records. Where they say which of them are to be released, the others make up the population with them; all parts say it, or none.
    ///
    /// # Errors
    /// When the distinct rows take more than they may.
    pub fn add(&mut self, records: &Records) -> Result<(), Full> {
        let more = undivided(records, &self.composites);
        let append = |to: &mut Vec<Vec<u32>>, from: &[Vec<u32>]| {
            to.resize(from.len(), Vec::new());
            to.iter_mut().zip(from).for_each(|(to, from)| to.extend_from_slice(from));
        };
        append(&mut self.rows.codes, &more.codes);
        append(&mut self.rows.sensitive, &more.sensitive);
        self.rows.subject.extend_from_slice(&more.subject);
        self.rows.count.extend_from_slice(&more.count);
        self.rows.population.extend_from_slice(&more.population);
        let held = self.rows.len();
        // While rows are gathered one of their columns is there twice.
        let a_row = self.row_bytes() + SORTING + size_of::<u32>();
        let room = (self.bytes / a_row).saturating_sub(self.distinct);
        let enough = (self.distinct / 2).max(AT_ONCE).min(room).max(FEW);
        if held - self.distinct >= enough {
            self.compact();
            if self.rows.len() * a_row > self.bytes {
                return Err(Full { distinct: self.rows.len(), row_bytes: a_row });
            }
        }
        Ok(())
    }

    /// The table, whose sensitive attributes and values have these counts.
    #[must_use]
    pub fn finish(mut self, sensitive: Vec<SensitiveDomain>, counts: Vec<Vec<u64>>, records: u64) -> Table {
        self.compact();
        for column in self.rows.columns() {
            column.shrink_to_fit();
        }
        self.rows.count.shrink_to_fit();
        self.rows.population.shrink_to_fit();
        Table::of_rows((self.domains, self.composites), self.rows, sensitive, counts, records)
    }

    /// Makes all rows distinct.
    fn compact(&mut self) {
        self.distinct = compact(&mut self.rows, self.distinct);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::domain::Level;
    use proptest::prelude::*;

    fn domain(values: usize) -> Domain {
        let bottom = Level { cell_of: (0..values as u32).collect(), loss: vec![0.0; values] };
        let top = Level { cell_of: vec![0; values], loss: vec![1.0] };
        Domain::new("a", vec![bottom, top]).expect("a hierarchy")
    }

    proptest! {
        #[test]
        fn parts_are_packed_as_the_whole_is(
            parts in prop::collection::vec(prop::collection::vec((0u32..5, 0u32..90, 0u32..3, 0u32..4), 0..60), 1..6),
            (named, marked) in any::<(bool, bool)>(),
        ) {
            let records = |rows: &[(u32, u32, u32, u32)]| Records {
                released: marked.then(|| rows.iter().map(|row| row.2 != row.3).collect()),
                quasi: vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()],
                sensitive: vec![(rows.iter().map(|row| row.2).collect(), 3)],
                subjects: named.then(|| rows.iter().map(|row| row.3).collect()),
                ..Records::default()
            };
            let all = parts.concat();
            let domains = vec![domain(5), domain(90)];
            let whole = Table::new(domains.clone(), &records(&all)).expect("a table");
            let mut packing = Packing::new(domains, usize::MAX);
            for part in &parts {
                packing.add(&records(part)).expect("there is room");
                packing.compact();
            }
            let packed = packing.finish(whole.sensitive().to_vec(), whole.counts().to_vec(), whole.records());
            let told = |table: &Table| format!("{:?}", table.rows);
            prop_assert_eq!(told(&packed), told(&whole));
        }
    }

    #[test]
    fn rows_that_take_too_much_are_told_with_their_number() {
        let mut packing = Packing::new(vec![domain(5), domain(20_000)], 100_000);
        let records = Records { quasi: vec![vec![0; 20_000], (0..20_000).collect()], ..Records::default() };
        let full = packing.add(&records).expect_err("too many");
        assert_eq!((full.distinct, full.row_bytes), (20_000, packing.row_bytes() + 9));
    }
}
