//! Packs records that arrive in parts, with the result of [`LatticeTable::new`].

use super::table::{
    CodedRows, CompositeColumn, LatticeTable, TableRecords, build_composites, merge_equal_rows, rows_from_records,
};
use crate::domain::Domain;
use crate::privacy::SensitiveDomain;

const ROWS_PER_PACKING_SORT: usize = 1 << 20;
const MIN_PACKING_SORT_ROWS: usize = 1 << 12;
/// Position and first-of-kind mark.
const SORT_BYTES_PER_ROW: usize = 5;

/// Distinct rows so far.
#[derive(Debug)]
pub struct TablePacker {
    domains: Vec<Domain>,
    composites: Vec<CompositeColumn>,
    rows: CodedRows,
    /// Leading rows, distinct and in order.
    distinct: usize,
    bytes: usize,
}

/// More distinct rows than memory permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackingLimitExceeded {
    /// Distinct rows so far.
    pub distinct: usize,
    /// Bytes per row.
    pub row_bytes: usize,
}

impl TablePacker {
    /// Creates a packer within `bytes`.
    #[must_use]
    pub fn new(domains: Vec<Domain>, bytes: usize) -> Self {
        let composites = build_composites(&domains);
        Self { domains, composites, rows: CodedRows::default(), distinct: 0, bytes }
    }

    fn row_bytes(&self) -> usize {
        let columns = self.composites.len()
            + self.rows.sensitive.len()
            + 1
            + usize::from(!self.rows.subject.is_empty())
            + usize::from(!self.rows.population.is_empty());
        columns * size_of::<u32>()
    }

    /// Adds records; all parts have `released` marks, or none.
    ///
    /// # Errors
    /// When the distinct rows exceed their memory limit.
    pub fn add(&mut self, records: &TableRecords) -> Result<(), PackingLimitExceeded> {
        let more = rows_from_records(records, &self.composites);
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
        // Compaction holds one column twice.
        let a_row = self.row_bytes() + SORT_BYTES_PER_ROW + size_of::<u32>();
        let room = (self.bytes / a_row).saturating_sub(self.distinct);
        let enough = (self.distinct / 2).max(ROWS_PER_PACKING_SORT).min(room).max(MIN_PACKING_SORT_ROWS);
        if held - self.distinct >= enough {
            self.compact_packed_rows();
            if self.rows.len() * a_row > self.bytes {
                return Err(PackingLimitExceeded { distinct: self.rows.len(), row_bytes: a_row });
            }
        }
        Ok(())
    }

    /// Returns the table with these value counts.
    #[must_use]
    pub fn finish(mut self, sensitive: Vec<SensitiveDomain>, counts: Vec<Vec<u64>>, records: u64) -> LatticeTable {
        self.compact_packed_rows();
        for column in self.rows.distinguishing_columns() {
            column.shrink_to_fit();
        }
        self.rows.count.shrink_to_fit();
        self.rows.population.shrink_to_fit();
        LatticeTable::from_packed_rows((self.domains, self.composites), self.rows, sensitive, counts, records)
    }

    fn compact_packed_rows(&mut self) {
        self.distinct = merge_equal_rows(&mut self.rows, self.distinct);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::HierarchyLevel;
    use proptest::prelude::*;

    fn domain(values: usize) -> Domain {
        let bottom = HierarchyLevel { cell_of: (0..values as u32).collect(), loss: vec![0.0; values] };
        let top = HierarchyLevel { cell_of: vec![0; values], loss: vec![1.0] };
        Domain::new("a", vec![bottom, top]).expect("a hierarchy")
    }

    proptest! {
        #[test]
        fn packing_in_parts_equals_packing_all_records(
            parts in prop::collection::vec(prop::collection::vec((0u32..5, 0u32..90, 0u32..3, 0u32..4), 0..60), 1..6),
            (named, marked) in any::<(bool, bool)>(),
        ) {
            let records = |rows: &[(u32, u32, u32, u32)]| TableRecords {
                released: marked.then(|| rows.iter().map(|row| row.2 != row.3).collect()),
                quasi: vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()],
                sensitive: vec![(rows.iter().map(|row| row.2).collect(), 3)],
                subjects: named.then(|| rows.iter().map(|row| row.3).collect()),
                ..TableRecords::default()
            };
            let all = parts.concat();
            let domains = vec![domain(5), domain(90)];
            let whole = LatticeTable::new(domains.clone(), &records(&all)).expect("a table");
            let mut packing = TablePacker::new(domains, usize::MAX);
            for part in &parts {
                packing.add(&records(part)).expect("there is room");
                packing.compact_packed_rows();
            }
            let packed = packing.finish(whole.sensitive().to_vec(), whole.counts().to_vec(), whole.records());
            let told = |table: &LatticeTable| format!("{:?}", table.rows);
            prop_assert_eq!(told(&packed), told(&whole));
        }
    }

    #[test]
    fn packing_above_memory_limit_reports_distinct_rows() {
        let mut packing = TablePacker::new(vec![domain(5), domain(20_000)], 100_000);
        let records = TableRecords { quasi: vec![vec![0; 20_000], (0..20_000).collect()], ..TableRecords::default() };
        let full = packing.add(&records).expect_err("too many");
        assert_eq!((full.distinct, full.row_bytes), (20_000, packing.row_bytes() + 9));
    }
}
