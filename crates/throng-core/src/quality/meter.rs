//! Costs of levels and suppression for a table.

mod mixed_levels;

pub use mixed_levels::LevelPart;

use super::QualityMeasure;
use crate::domain::Domain;
use strum::VariantArray;

/// Fractional bits of [`ClassSums::size_bits`].
const CLASS_SUM_FRACTION_BITS: i32 = 40;

/// Integer sums over classes.
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
    /// Adds a class.
    pub fn add(&mut self, size: u64) {
        self.classes += 1;
        self.squares += u128::from(size) * u128::from(size);
    }

    /// Adds other classes.
    pub fn add_class_sums(&mut self, other: Self) {
        self.classes += other.classes;
        self.squares += other.squares;
        self.size_bits += other.size_bits;
    }

    /// Adds the bits of a class (for the divergence).
    pub fn add_bits(&mut self, size: u64) {
        self.size_bits += (size as f64 * (size as f64).log2() * 2f64.powi(CLASS_SUM_FRACTION_BITS)).round() as u128;
    }
}

/// Suppressed records of a policy.
#[derive(Clone, Copy, Debug)]
pub struct SuppressedCounts<'a> {
    /// Number.
    pub records: u64,
    /// Number by attribute and cell.
    pub cells: &'a [Vec<u64>],
}

#[derive(Clone, Debug)]
struct LevelMeter {
    loss: f64,
    /// Level / (levels − 1).
    height: f64,
    /// −Σ log₂(n(value) / n(cell)).
    entropy: f64,
    /// Σ log₂(occurring values in the cell).
    cover: f64,
    /// (1 − loss) / n by cell.
    suppression: Vec<f64>,
    /// log₂(occurring values) by cell.
    cover_of: Vec<f64>,
    /// Suppression cost and records, ascending.
    cheapest: Vec<(f64, u64)>,
    occupied: u64,
}

#[derive(Clone, Debug)]
struct AttributeMeter {
    levels: Vec<LevelMeter>,
    /// −Σ log₂(n(value) / n).
    full_loss_entropy: f64,
    /// log₂ of the occurring values.
    values: f64,
}

/// Table data for measures.
#[derive(Clone, Debug)]
pub struct QualityMeter {
    records: u64,
    attributes: Vec<AttributeMeter>,
    /// Σ size·log₂(size) over raw tuples.
    raw_bits: u128,
}

/// Displayed value of every measure.
#[derive(Clone, Debug, PartialEq)]
pub struct QualityValues(pub Vec<(QualityMeasure, f64)>);

impl QualityValues {
    /// Value of one measure.
    pub fn measure_value(&self, wanted: QualityMeasure) -> f64 {
        self.0.iter().find(|(measure, _)| *measure == wanted).map_or(f64::NAN, |&(_, value)| value)
    }
}

impl QualityMeter {
    /// Creates a meter. `counts[a][v]` records have value v of attribute a; `raw` sums raw tuples.
    pub fn new(domains: &[Domain], counts: &[Vec<u64>], records: u64, raw: ClassSums) -> Self {
        let attributes = domains.iter().zip(counts).map(|(d, c)| AttributeMeter::new(d, c, records)).collect();
        Self { records, attributes, raw_bits: raw.size_bits }
    }

    /// Records of the table.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Least cost at `levels` and above with at least `suppressed` records suppressed.
    pub fn bound(&self, measure: QualityMeasure, levels: &[u8], suppressed: u64) -> f64 {
        let at = |(attribute, &level): (usize, &u8)| &self.attributes[attribute].levels[level as usize];
        let levels = levels.iter().enumerate().map(at);
        let n = self.records as f64;
        match measure {
            QualityMeasure::Loss | QualityMeasure::LossGeometric => self.combine_attribute_costs(
                measure,
                levels.map(|level| level.loss + level.cheapest_suppression(suppressed)),
            ),
            QualityMeasure::Precision => {
                let share = if n > 0.0 { suppressed as f64 / n } else { 0.0 };
                self.combine_attribute_costs(measure, levels.map(|level| level.height + share * (1.0 - level.height)))
            }
            QualityMeasure::Nue | QualityMeasure::NueMonotonic | QualityMeasure::NueNormalized => {
                self.combine_attribute_costs(measure, levels.map(|level| level.entropy))
            }
            QualityMeasure::Discernibility => {
                // Suppressed records cost n each; the best classes have equal size.
                let classes: f64 = levels.map(|level| level.occupied as f64).product();
                let even = n * n / classes.max(1.0);
                even.max(suppressed as f64 * n + (n - suppressed as f64)) * (1.0 - 1e-12)
            }
            QualityMeasure::Aecs => {
                let classes: f64 = levels.map(|level| level.occupied as f64).product();
                n / classes.clamp(1.0, n.max(1.0)) * (1.0 - 1e-12)
            }
            QualityMeasure::KlDivergence => 0.0,
        }
    }

    /// Least cost including generalizations, from `all` classes. Equals [`bound`](Self::bound) for measures of cells.
    pub fn class_bound(&self, measure: QualityMeasure, levels: &[u8], all: ClassSums) -> f64 {
        match measure {
            QualityMeasure::Discernibility => all.squares as f64,
            QualityMeasure::Aecs => self.records as f64 / all.classes.max(1) as f64,
            // Rounding tolerance.
            QualityMeasure::KlDivergence => {
                let cover: f64 = self.levels(levels).map(|level| level.cover).sum();
                self.divergence(all.size_bits, cover) * (1.0 - 1e-9) - 1e-9
            }
            _ => self.bound(measure, levels, 0),
        }
    }

    /// Cost of a policy with released classes `kept`.
    pub fn cost(
        &self,
        measure: QualityMeasure,
        levels: &[u8],
        suppressed: SuppressedCounts<'_>,
        kept: ClassSums,
    ) -> f64 {
        let (n, s) = (self.records as f64, suppressed.records as f64);
        let share = if n > 0.0 { s / n } else { 0.0 };
        let mut hidden = 0.0;
        if measure == QualityMeasure::KlDivergence && s > 0.0 {
            hidden = s * self.attributes.iter().map(|attribute| attribute.values).sum::<f64>();
        }
        let of = |(level, cells): (&LevelMeter, &Vec<u64>)| {
            let weighted =
                |each: &[f64]| cells.iter().zip(each).map(|(&count, &each)| count as f64 * each).sum::<f64>();
            match measure {
                QualityMeasure::Loss | QualityMeasure::LossGeometric => level.loss + weighted(&level.suppression),
                QualityMeasure::Precision => level.height + share * (1.0 - level.height),
                QualityMeasure::NueMonotonic => level.entropy,
                QualityMeasure::Nue | QualityMeasure::NueNormalized => {
                    let present = cells.iter().filter(|&&count| count > 0);
                    let more = present.map(|&count| count as f64 * (s / count as f64).log2().max(0.0));
                    level.entropy + more.sum::<f64>()
                }
                QualityMeasure::KlDivergence => level.cover - weighted(&level.cover_of),
                QualityMeasure::Discernibility | QualityMeasure::Aecs => 0.0,
            }
        };
        self.total_cost(measure, self.levels(levels).zip(suppressed.cells).map(of), hidden, suppressed.records, kept)
    }

    /// Attribute terms; for the divergence Σ log₂(occurring values per cell) plus `hidden` for suppressed cells.
    fn total_cost(
        &self,
        measure: QualityMeasure,
        attributes: impl Iterator<Item = f64>,
        hidden: f64,
        suppressed: u64,
        kept: ClassSums,
    ) -> f64 {
        match measure {
            QualityMeasure::Discernibility => (kept.squares + u128::from(suppressed) * u128::from(self.records)) as f64,
            QualityMeasure::Aecs => self.records as f64 / (kept.classes + u64::from(suppressed > 0)).max(1) as f64,
            QualityMeasure::KlDivergence => {
                let mut all = kept;
                if suppressed > 0 {
                    all.add_bits(suppressed);
                }
                self.divergence(all.size_bits, attributes.fold(hidden, |sum, cover| sum + cover))
            }
            _ => self.combine_attribute_costs(measure, attributes),
        }
    }

    /// Displayed values for a policy.
    pub fn quality_values(&self, levels: &[u8], suppressed: SuppressedCounts<'_>, kept: ClassSums) -> QualityValues {
        let value = |measure: QualityMeasure| measure.shown(self.cost(measure, levels, suppressed, kept), levels.len());
        QualityValues(QualityMeasure::VARIANTS.iter().map(|&measure| (measure, value(measure))).collect())
    }

    fn levels<'a>(&'a self, levels: &'a [u8]) -> impl Iterator<Item = &'a LevelMeter> {
        self.attributes.iter().zip(levels).map(|(attribute, &level)| &attribute.levels[level as usize])
    }

    /// Increasing in each cost.
    fn combine_attribute_costs(&self, measure: QualityMeasure, costs: impl Iterator<Item = f64>) -> f64 {
        let attributes = self.attributes.len().max(1) as f64;
        match measure {
            QualityMeasure::LossGeometric => costs.map(|cost| cost + 1.0).product(),
            QualityMeasure::NueNormalized => costs
                .zip(&self.attributes)
                .map(
                    |(cost, attribute)| {
                        if attribute.full_loss_entropy > 0.0 { cost / attribute.full_loss_entropy } else { 0.0 }
                    },
                )
                .sum(),
            QualityMeasure::Nue | QualityMeasure::NueMonotonic => costs.sum(),
            _ => costs.sum::<f64>() / attributes,
        }
    }

    fn divergence(&self, size_bits: u128, cover: f64) -> f64 {
        if self.records == 0 {
            return 0.0;
        }
        let unit = 2f64.powi(CLASS_SUM_FRACTION_BITS);
        // Negative: merged classes have more bits than raw ones.
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
                // Rounding must not break monotonicity.
                meter.loss = meter.loss.max(below.loss);
                meter.entropy = meter.entropy.max(below.entropy);
            }
            levels.push(meter);
        }
        let whole = levels.last().map_or(0.0, |level| level.entropy);
        let values = counts.iter().filter(|&&count| count > 0).count().max(1) as f64;
        Self { levels, full_loss_entropy: whole, values: values.log2() }
    }
}

impl LevelMeter {
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
        // Tolerance for another order of addition.
        sum * (1.0 - 1e-9)
    }
}
