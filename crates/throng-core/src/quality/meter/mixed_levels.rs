//! Measures of local recoding.
//!
//! Entropies count records *of the whole table* per cell, and suppressed ones at the levels of the first pass. One pass
//! gives [`QualityMeter::quality_values`].

use super::{ClassSums, QualityMeasure, QualityMeter, QualityValues};
use crate::domain::{Domain, HierarchyLevel};
use strum::VariantArray;

/// Records at the same levels.
#[derive(Clone, Debug)]
pub struct LevelPart {
    /// Level by attribute.
    pub levels: Box<[u8]>,
    /// Records by attribute and value.
    pub counts: Vec<Vec<u64>>,
}

impl LevelPart {
    fn records(&self) -> u64 {
        self.counts.first().map_or(0, |counts| counts.iter().sum())
    }
}

#[derive(Clone, Copy)]
struct MixedAttribute<'a> {
    position: usize,
    domain: &'a Domain,
    counts: &'a [u64],
}

#[derive(Clone, Copy, Default)]
struct AttributeCellSums {
    loss: f64,
    height: f64,
    entropy: f64,
    suppressed_entropy: f64,
    /// Σ log₂(occurring values in the cell).
    cover: f64,
}

impl QualityMeter {
    /// Displayed values for `parts` with `gone` suppressed. `counts[a][v]` records of the table have value v of
    /// attribute a; `kept` sums released classes.
    pub fn quality_of_parts(
        &self,
        domains: &[Domain],
        counts: &[Vec<u64>],
        parts: &[LevelPart],
        gone: &LevelPart,
        kept: ClassSums,
    ) -> QualityValues {
        let attributes = domains.iter().zip(counts).enumerate();
        let sums: Vec<AttributeCellSums> = attributes
            .map(|(position, (domain, counts))| {
                let attribute = MixedAttribute { position, domain, counts };
                let mut sums = AttributeCellSums::default();
                for part in parts {
                    sums.add_released_part(attribute, part);
                }
                sums.add_suppressed_part(attribute, gone, self.attributes[position].values);
                sums
            })
            .collect();
        let (n, s) = (self.records as f64, gone.records());
        let share = |sum: f64| if n > 0.0 { sum / n } else { 0.0 };
        let of = |measure: QualityMeasure, a: &AttributeCellSums| match measure {
            QualityMeasure::Loss | QualityMeasure::LossGeometric => share(a.loss),
            QualityMeasure::Precision => share(a.height),
            QualityMeasure::NueMonotonic => a.entropy,
            QualityMeasure::Nue | QualityMeasure::NueNormalized => a.entropy + a.suppressed_entropy,
            _ => a.cover,
        };
        let cost =
            |measure: QualityMeasure| self.total_cost(measure, sums.iter().map(|a| of(measure, a)), 0.0, s, kept);
        let shown = |measure: QualityMeasure| (measure, measure.shown(cost(measure), domains.len()));
        QualityValues(QualityMeasure::VARIANTS.iter().copied().map(shown).collect())
    }
}

impl AttributeCellSums {
    fn add_released_part(&mut self, of: MixedAttribute<'_>, part: &LevelPart) {
        let index = usize::from(part.levels[of.position]);
        let (level, height) = (&of.domain.levels()[index], index as f64 / f64::from(of.domain.top()));
        let (records, values) = count_by_cell(level, of.counts);
        for (value, count) in nonzero_counts(&part.counts[of.position]) {
            let cell = level.cell_of[value] as usize;
            self.loss += count * level.loss[cell];
            self.height += count * height;
            self.entropy += count * (records[cell] / of.counts[value] as f64).log2();
            self.cover += count * values[cell].log2();
        }
    }

    fn add_suppressed_part(&mut self, of: MixedAttribute<'_>, gone: &LevelPart, all_values: f64) {
        let level = &of.domain.levels()[usize::from(gone.levels[of.position])];
        let (records, _) = count_by_cell(level, of.counts);
        let (own, _) = count_by_cell(level, &gone.counts[of.position]);
        let all = gone.records() as f64;
        for (value, count) in nonzero_counts(&gone.counts[of.position]) {
            let cell = level.cell_of[value] as usize;
            self.loss += count;
            self.height += count;
            self.entropy += count * (records[cell] / of.counts[value] as f64).log2();
            self.suppressed_entropy += count * (all / own[cell]).log2();
            self.cover += count * all_values;
        }
    }
}

fn nonzero_counts(counts: &[u64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    counts.iter().enumerate().filter(|&(_, &count)| count > 0).map(|(value, &count)| (value, count as f64))
}

/// Records and occurring values by cell.
fn count_by_cell(level: &HierarchyLevel, counts: &[u64]) -> (Vec<f64>, Vec<f64>) {
    let (mut records, mut values) = (vec![0.0; level.cells()], vec![0.0; level.cells()]);
    for (value, count) in nonzero_counts(counts) {
        let cell = level.cell_of[value] as usize;
        records[cell] += count;
        values[cell] += 1.0;
    }
    (records, values)
}
