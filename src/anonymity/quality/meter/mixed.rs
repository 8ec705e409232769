//! Measures of a release whose records are at different levels: local recoding.
//!
//! Every measure is the definition of [`measure`](crate::anonymity::quality::Measure) with each record at the levels
//! it left at. Entropies ask how many records *of the whole table* have a value that the cell covers. A suppressed record
//! is, where its level counts (the entropies), at the levels of the first pass. With one pass this is what
//! [`Meter::worth`] says of it.

use super::{ClassSums, Measure, Meter, Worth};
use crate::anonymity::domain::{Domain, Level};
use strum::VariantArray;

/// Records that share their levels.
#[derive(Clone, Debug)]
pub struct Part {
    /// A level for each attribute.
    pub levels: Box<[u8]>,
    /// By attribute and value: how many.
    pub counts: Vec<Vec<u64>>,
}

impl Part {
    fn records(&self) -> u64 {
        self.counts.first().map_or(0, |counts| counts.iter().sum())
    }
}

/// One attribute of the whole table.
#[derive(Clone, Copy)]
struct Attribute<'a> {
    position: usize,
    domain: &'a Domain,
    /// By value, over all records.
    counts: &'a [u64],
}

/// What the cells of one attribute add up to.
#[derive(Clone, Copy, Default)]
struct Sums {
    loss: f64,
    height: f64,
    entropy: f64,
    /// What suppression adds to the entropy.
    suppressed_entropy: f64,
    /// Σ log₂(occurring values covered).
    cover: f64,
}

impl Meter {
    /// Every measure of a release in `parts` with the records of `gone` suppressed, as shown. `counts[a][v]` records of
    /// the whole table have value v of attribute a; `kept` are the sums over the classes that leave.
    pub fn worth_of_parts(
        &self,
        domains: &[Domain],
        counts: &[Vec<u64>],
        parts: &[Part],
        gone: &Part,
        kept: ClassSums,
    ) -> Worth {
        let attributes = domains.iter().zip(counts).enumerate();
        let sums: Vec<Sums> = attributes
            .map(|(position, (domain, counts))| {
                let attribute = Attribute { position, domain, counts };
                let mut sums = Sums::default();
                for part in parts {
                    sums.leave(attribute, part);
                }
                sums.suppress(attribute, gone, self.attributes[position].values);
                sums
            })
            .collect();
        let (n, s) = (self.records as f64, gone.records());
        let share = |sum: f64| if n > 0.0 { sum / n } else { 0.0 };
        let of = |measure: Measure, a: &Sums| match measure {
            Measure::Loss | Measure::LossGeometric => share(a.loss),
            Measure::Precision => share(a.height),
            Measure::NueMonotonic => a.entropy,
            Measure::Nue | Measure::NueNormalized => a.entropy + a.suppressed_entropy,
            _ => a.cover,
        };
        let cost = |measure: Measure| self.total(measure, sums.iter().map(|a| of(measure, a)), 0.0, s, kept);
        let shown = |measure: Measure| (measure, measure.shown(cost(measure), domains.len()));
        Worth(Measure::VARIANTS.iter().copied().map(shown).collect())
    }
}

impl Sums {
    fn leave(&mut self, of: Attribute<'_>, part: &Part) {
        let index = usize::from(part.levels[of.position]);
        let (level, height) = (&of.domain.levels()[index], index as f64 / f64::from(of.domain.top()));
        let (records, values) = covered(level, of.counts);
        for (value, count) in present(&part.counts[of.position]) {
            let cell = level.cell_of[value] as usize;
            self.loss += count * level.loss[cell];
            self.height += count * height;
            self.entropy += count * (records[cell] / of.counts[value] as f64).log2();
            self.cover += count * values[cell].log2();
        }
    }

    /// `all_values` is log₂ of the occurring values.
    fn suppress(&mut self, of: Attribute<'_>, gone: &Part, all_values: f64) {
        let level = &of.domain.levels()[usize::from(gone.levels[of.position])];
        let (records, _) = covered(level, of.counts);
        let (own, _) = covered(level, &gone.counts[of.position]);
        let all = gone.records() as f64;
        for (value, count) in present(&gone.counts[of.position]) {
            let cell = level.cell_of[value] as usize;
            self.loss += count;
            self.height += count;
            self.entropy += count * (records[cell] / of.counts[value] as f64).log2();
            self.suppressed_entropy += count * (all / own[cell]).log2();
            self.cover += count * all_values;
        }
    }
}

fn present(counts: &[u64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    counts.iter().enumerate().filter(|&(_, &count)| count > 0).map(|(value, &count)| (value, count as f64))
}

/// By cell of a level: records, and values that occur.
fn covered(level: &Level, counts: &[u64]) -> (Vec<f64>, Vec<f64>) {
    let (mut records, mut values) = (vec![0.0; level.cells()], vec![0.0; level.cells()]);
    for (value, count) in present(counts) {
        let cell = level.cell_of[value] as usize;
        records[cell] += count;
        values[cell] += 1.0;
    }
    (records, values)
}
