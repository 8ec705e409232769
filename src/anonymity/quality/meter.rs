//! The meter of one table: what each level costs by itself, and what suppression adds.

mod mixed;

pub use mixed::Part;

use super::Measure;
use crate::anonymity::domain::Domain;
use strum::VariantArray;

/// Binary digits after the point of [`ClassSums::size_bits`].
const POINT: i32 = 40;

/// Sums over equivalence classes, in integers, so that no order of adding changes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSums {
    /// Number of classes.
    pub classes: u64,
    /// Σ size².
    pub squares: u128,
    /// Σ size·log₂(size), in units of 2⁻⁴⁰.
    pub size_bits: u128,
}

impl ClassSums {
    /// Adds one class.
    pub fn add(&mut self, size: u64) {
        self.classes += 1;
        self.squares += u128::from(size) * u128::from(size);
    }

    /// Adds the sums over other classes.
    pub fn join(&mut self, other: Self) {
        self.classes += other.classes;
        self.squares += other.squares;
        self.size_bits += other.size_bits;
    }

    /// Adds the bits of one class; only the divergence asks for them, and logarithms are slow.
    pub fn add_bits(&mut self, size: u64) {
        self.size_bits += (size as f64 * (size as f64).log2() * 2f64.powi(POINT)).round() as u128;
    }
}

/// The suppressed records of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Suppressed<'a> {
    /// Their number.
    pub records: u64,
    /// By attribute: how many of them by cell of the policy's level.
    pub cells: &'a [Vec<u64>],
}

/// One attribute on one level.
#[derive(Clone, Debug)]
struct LevelMeter {
    /// Mean loss of all records.
    loss: f64,
    /// Level / (levels − 1).
    height: f64,
    /// −Σ log₂(n(value) / n(cell)) over all records.
    entropy: f64,
    /// Σ log₂(occurring values that the cell covers) over all records.
    cover: f64,
    /// By cell: what a record more costs when it is suppressed, (1 − loss) / n.
    suppression: Vec<f64>,
    /// By cell: log₂(occurring values).
    cover_of: Vec<f64>,
    /// The records by (suppression cost), cheapest first: how many at that cost.
    cheapest: Vec<(f64, u64)>,
    /// Cells with any record.
    occupied: u64,
}

#[derive(Clone, Debug)]
struct AttributeMeter {
    levels: Vec<LevelMeter>,
    /// −Σ log₂(n(value) / n): the entropy of losing the attribute altogether.
    whole: f64,
    /// log₂ of the occurring values.
    values: f64,
}

/// Everything about a table that its measures need beside the classes of a policy.
#[derive(Clone, Debug)]
pub struct Meter {
    records: u64,
    attributes: Vec<AttributeMeter>,
    /// Σ size·log₂(size) over the distinct raw tuples.
    raw_bits: u128,
}

/// Every measure of one policy, as shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth(pub Vec<(Measure, f64)>);

impl Worth {
    /// The value of one measure.
    pub fn of(&self, wanted: Measure) -> f64 {
        self.0.iter().find(|(measure, _)| *measure == wanted).map_or(f64::NAN, |&(_, value)| value)
    }
}

impl Meter {
    /// The meter of a table of `records` records, where `counts[a][v]` of them have value v of attribute a, and whose
    /// distinct raw tuples have the sums `raw`.
    pub fn new(domains: &[Domain], counts: &[Vec<u64>], records: u64, raw: ClassSums) -> Self {
        let attributes = domains.iter().zip(counts).map(|(d, c)| AttributeMeter::new(d, c, records)).collect();
        Self { records, attributes, raw_bits: raw.size_bits }
    }

    /// Records of the table.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The least cost of a policy at `levels` and of all its generalizations, known without grouping. `suppressed`
    /// records are known to be suppressed at least.
    pub fn bound(&self, measure: Measure, levels: &[u8], suppressed: u64) -> f64 {
        let at = |(attribute, &level): (usize, &u8)| &self.attributes[attribute].levels[level as usize];
        let levels = levels.iter().enumerate().map(at);
        let n = self.records as f64;
        match measure {
            Measure::Loss | Measure::LossGeometric => {
                self.combined(measure, levels.map(|level| level.loss + level.cheapest_suppression(suppressed)))
            }
            Measure::Precision => {
                let share = if n > 0.0 { suppressed as f64 / n } else { 0.0 };
                self.combined(measure, levels.map(|level| level.height + share * (1.0 - level.height)))
            }
            Measure::Nue | Measure::NueMonotonic | Measure::NueNormalized => {
                self.combined(measure, levels.map(|level| level.entropy))
            }
            Measure::Discernibility => {
                // Suppressed records cost n each and kept ones at least their share of an even division into classes.
                let classes: f64 = levels.map(|level| level.occupied as f64).product();
                let even = n * n / classes.max(1.0);
                even.max(suppressed as f64 * n + (n - suppressed as f64)) * (1.0 - 1e-12)
            }
            Measure::Aecs => {
                let classes: f64 = levels.map(|level| level.occupied as f64).product();
                n / classes.clamp(1.0, n.max(1.0)) * (1.0 - 1e-12)
            }
            Measure::KlDivergence => 0.0,
        }
    }

    /// The least cost of a policy whose classes, before any is suppressed, have the sums `all`, and of all its
    /// generalizations. For measures of cells this is [`bound`](Self::bound).
    pub fn class_bound(&self, measure: Measure, levels: &[u8], all: ClassSums) -> f64 {
        match measure {
            Measure::Discernibility => all.squares as f64,
            Measure::Aecs => self.records as f64 / all.classes.max(1) as f64,
            // Logarithms round: what is equal may differ in the last digits.
            Measure::KlDivergence => {
                let cover: f64 = self.levels(levels).map(|level| level.cover).sum();
                self.divergence(all.size_bits, cover) * (1.0 - 1e-9) - 1e-9
            }
            _ => self.bound(measure, levels, 0),
        }
    }

    /// The cost of a policy: what its levels cost, and what its suppressed records add. `kept` are the sums over the
    /// classes that leave.
    pub fn cost(&self, measure: Measure, levels: &[u8], suppressed: Suppressed<'_>, kept: ClassSums) -> f64 {
        let (n, s) = (self.records as f64, suppressed.records as f64);
        let share = if n > 0.0 { s / n } else { 0.0 };
        let mut hidden = 0.0;
        if measure == Measure::KlDivergence && s > 0.0 {
            hidden = s * self.attributes.iter().map(|attribute| attribute.values).sum::<f64>();
        }
        let of = |(level, cells): (&LevelMeter, &Vec<u64>)| {
            let weighted =
                |each: &[f64]| cells.iter().zip(each).map(|(&count, &each)| count as f64 * each).sum::<f64>();
            match measure {
                Measure::Loss | Measure::LossGeometric => level.loss + weighted(&level.suppression),
                Measure::Precision => level.height + share * (1.0 - level.height),
                Measure::NueMonotonic => level.entropy,
                Measure::Nue | Measure::NueNormalized => {
                    let present = cells.iter().filter(|&&count| count > 0);
                    let more = present.map(|&count| count as f64 * (s / count as f64).log2().max(0.0));
                    level.entropy + more.sum::<f64>()
                }
                Measure::KlDivergence => level.cover - weighted(&level.cover_of),
                Measure::Discernibility | Measure::Aecs => 0.0,
            }
        };
        self.total(measure, self.levels(levels).zip(suppressed.cells).map(of), hidden, suppressed.records, kept)
    }

    /// The cost of a release from what each attribute adds: its cost, or for the divergence Σ log₂(occurring values that a cell covers),
    /// beside what the `hidden` cells cover.
    fn total(
        &self,
        measure: Measure,
        attributes: impl Iterator<Item = f64>,
        hidden: f64,
        suppressed: u64,
        kept: ClassSums,
    ) -> f64 {
        match measure {
            Measure::Discernibility => (kept.squares + u128::from(suppressed) * u128::from(self.records)) as f64,
            Measure::Aecs => self.records as f64 / (kept.classes + u64::from(suppressed > 0)).max(1) as f64,
            Measure::KlDivergence => {
                let mut all = kept;
                if suppressed > 0 {
                    all.add_bits(suppressed);
                }
                self.divergence(all.size_bits, attributes.fold(hidden, |sum, cover| sum + cover))
            }
            _ => self.combined(measure, attributes),
        }
    }

    /// Every measure of a policy, as shown.
    pub fn worth(&self, levels: &[u8], suppressed: Suppressed<'_>, kept: ClassSums) -> Worth {
        let value = |measure: Measure| measure.shown(self.cost(measure, levels, suppressed, kept), levels.len());
        Worth(Measure::VARIANTS.iter().map(|&measure| (measure, value(measure))).collect())
    }

    fn levels<'a>(&'a self, levels: &'a [u8]) -> impl Iterator<Item = &'a LevelMeter> {
        self.attributes.iter().zip(levels).map(|(attribute, &level)| &attribute.levels[level as usize])
    }

    /// From the cost of each attribute to that of the table, rising with each.
    fn combined(&self, measure: Measure, costs: impl Iterator<Item = f64>) -> f64 {
        let attributes = self.attributes.len().max(1) as f64;
        match measure {
            Measure::LossGeometric => costs.map(|cost| cost + 1.0).product(),
            Measure::NueNormalized => costs
                .zip(&self.attributes)
                .map(|(cost, attribute)| if attribute.whole > 0.0 { cost / attribute.whole } else { 0.0 })
                .sum(),
            Measure::Nue | Measure::NueMonotonic => costs.sum(),
            _ => costs.sum::<f64>() / attributes,
        }
    }

    fn divergence(&self, size_bits: u128, cover: f64) -> f64 {
        if self.records == 0 {
            return 0.0;
        }
        let unit = 2f64.powi(POINT);
        // Merged classes have more bits than the raw ones: the difference is what their sizes hide, negative here.
        let sizes = (size_bits as i128 - self.raw_bits as i128) as f64 / unit;
        ((cover - sizes) / self.records as f64).max(0.0)
    }
}

impl AttributeMeter {
    fn new(domain: &Domain, counts: &[u64], records: u64) -> Self {
        let n = records as f64;
        let top = f64::from(domain.top());
        let mut levels: Vec<LevelMeter> = Vec::with_capacity(domain.levels().len());
        for (index, level) in domain.levels().iter().enumerate() {
            let mut of_cell = vec![0u64; level.cells()];
            let mut values = vec![0u64; level.cells()];
            for (&cell, &count) in level.cell_of.iter().zip(counts) {
                of_cell[cell as usize] += count;
                values[cell as usize] += u64::from(count > 0);
            }
            let share = |count: u64| if n > 0.0 { count as f64 / n } else { 0.0 };
            let mut meter = LevelMeter {
                loss: of_cell.iter().zip(&level.loss).map(|(&count, &loss)| share(count) * loss).sum(),
                height: index as f64 / top,
                entropy: (level.cell_of.iter().zip(counts))
                    .filter(|&(_, &count)| count > 0)
                    .map(|(&cell, &count)| count as f64 * (of_cell[cell as usize] as f64 / count as f64).log2())
                    .sum(),
                cover: 0.0,
                suppression: level.loss.iter().map(|loss| if n > 0.0 { (1.0 - loss) / n } else { 0.0 }).collect(),
                cover_of: values.iter().map(|&count| (count.max(1) as f64).log2()).collect(),
                cheapest: Vec::new(),
                occupied: of_cell.iter().filter(|&&count| count > 0).count() as u64,
            };
            meter.cover = of_cell.iter().zip(&meter.cover_of).map(|(&count, &bits)| count as f64 * bits).sum();
            meter.cheapest = meter.suppression.iter().copied().zip(of_cell).filter(|&(_, count)| count > 0).collect();
            meter.cheapest.sort_by(|a, b| a.0.total_cmp(&b.0));
            if let Some(below) = levels.last() {
                // Sums that are equal may round differently: a level never costs less than the one below.
                meter.loss = meter.loss.max(below.loss);
                meter.entropy = meter.entropy.max(below.entropy);
            }
            levels.push(meter);
        }
        let whole = levels.last().map_or(0.0, |level| level.entropy);
        let values = counts.iter().filter(|&&count| count > 0).count().max(1) as f64;
        Self { levels, whole, values: values.log2() }
    }
}

impl LevelMeter {
    /// What `records` suppressed records add at least.
    fn cheapest_suppression(&self, records: u64) -> f64 {
        let mut left = records;
        let mut sum = 0.0;
        for &(each, count) in &self.cheapest {
            if left == 0 {
                break;
            }
            let taken = count.min(left);
            sum += taken as f64 * each;
            left -= taken;
        }
        // Another order of adding may come out a little lower.
        sum * (1.0 - 1e-9)
    }
}
