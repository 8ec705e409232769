//! Finds a number that is nearly a linear combination of others, such as a total of its parts.
//!
//! A reader of statistics can subtract such numbers, and the difference can be the value of one person. The regression
//! is least trimmed squares (Rousseeuw 1984, with concentration steps): records that do not fit, such as totals without
//! their parts, hide no dependence as long as they are few.

use super::number_correlation::NumberValues;
use rayon::prelude::*;

/// Used records with all numbers, evenly spaced.
const MAX_RECORDS: usize = 2_000;
/// Records that are searched for them, evenly spaced.
const MAX_SEARCHED_RECORDS: usize = 40_000;
/// One record of this many is trimmed.
const TRIMMED_FRACTION: usize = 10;
/// Required share of explained variance (R²) in the other records.
const MIN_EXPLAINED: f64 = 0.999;
/// Required share of the variance that the trimmed records leave: a number that is nearly always 0 depends on none.
const MIN_VARIANCE_SHARE: f64 = 0.5;
const CONCENTRATION_STEPS: usize = 5;
/// Relative to the largest standardised coefficient.
const MIN_COEFFICIENT: f64 = 0.1;
/// Smallest unexplained variance of a further regressor.
const MIN_PIVOT: f64 = 1e-9;

/// Number that others determine.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearDependence {
    /// Position of the number.
    pub number: usize,
    /// Positions of the numbers that determine it, ascending.
    pub others: Vec<usize>,
    /// Share of explained variance (R²) in nine of ten records.
    pub explained: f64,
    /// Sum of the squared standardised coefficients.
    weight: f64,
}

impl LinearDependence {
    /// Returns a number that the others determine, if any; a total before its parts. All values are of the same records.
    #[must_use]
    pub fn find(numbers: &[&NumberValues]) -> Option<Self> {
        let found: Vec<Self> =
            (0..numbers.len()).into_par_iter().filter_map(|number| Self::of_number(numbers, number)).collect();
        // A total has smaller coefficients than its parts. The last number of a pair is found.
        found.into_iter().reduce(|best, next| if next.weight <= best.weight * (1.0 + 1e-6) { next } else { best })
    }

    fn of_number(numbers: &[&NumberValues], number: usize) -> Option<Self> {
        let own = numbers[number].values();
        let step = own.len().div_ceil(MAX_SEARCHED_RECORDS).max(1);
        let searched: Vec<usize> = (0..own.len()).step_by(step).filter(|row| own[*row].is_finite()).collect();
        let common = |at: usize| searched.iter().filter(|row| numbers[at].values()[**row].is_finite()).count();
        let most = common(number);
        let is_frequent = |at: usize| common(at) * 4 >= most * 3;
        let others: Vec<usize> = (0..numbers.len()).filter(|at| *at != number && is_frequent(*at)).collect();
        let columns: Vec<&[f64]> = others.iter().chain([&number]).map(|at| numbers[*at].values()).collect();
        let is_complete = |row: &usize| columns.iter().all(|column| column[*row].is_finite());
        let complete: Vec<usize> = searched.iter().copied().filter(is_complete).collect();
        if others.is_empty() || complete.len() < 3 * columns.len() + 10 {
            return None;
        }
        let values = |row: &usize| -> Vec<f64> { columns.iter().map(|column| column[*row]).collect() };
        let rows: Vec<Vec<f64>> = complete.iter().step_by(complete.len().div_ceil(MAX_RECORDS)).map(values).collect();
        let fitted = Regression::of_most(&rows).filter(|fitted| fitted.explained >= MIN_EXPLAINED)?;
        let largest = fitted.coefficients.iter().fold(0.0, |largest: f64, own| largest.max(own.abs()));
        let weight = fitted.coefficients.iter().map(|own| own * own).sum();
        let of_number = others.into_iter().zip(&fitted.coefficients);
        let others = of_number.filter(|(_, own)| own.abs() >= MIN_COEFFICIENT * largest).map(|(at, _)| at).collect();
        Some(Self { number, others, explained: fitted.explained, weight })
    }
}

/// Linear regression of the last column on the others.
struct Regression {
    /// Mean and reciprocal standard deviation of each column; 0 and 0 for a constant.
    scales: Vec<(f64, f64)>,
    /// Standardised coefficients of the columns before the last.
    coefficients: Vec<f64>,
    explained: f64,
}

impl Regression {
    /// Fits nine of ten rows; `None` for a nearly constant last column.
    fn of_most(rows: &[Vec<f64>]) -> Option<Self> {
        let all: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let mut fitted = Self::of_all(&all)?;
        let variance = fitted.variance();
        for _ in 0..CONCENTRATION_STEPS {
            let mut nearest = all.clone();
            // Bits of numbers that are not negative have the order of the numbers.
            nearest.sort_by_cached_key(|row| fitted.residual(row).to_bits());
            nearest.truncate(all.len() - all.len() / TRIMMED_FRACTION);
            fitted = Self::of_all(&nearest)?;
        }
        (fitted.variance() >= MIN_VARIANCE_SHARE * variance).then_some(fitted)
    }

    /// Fits all rows; `None` for a constant last column.
    fn of_all(rows: &[&[f64]]) -> Option<Self> {
        let scales = column_scales(rows);
        let last = scales.len().checked_sub(1).filter(|last| scales[*last].1 > 0.0)?;
        let n = rows.len() as f64;
        let mut correlations = vec![vec![0.0; scales.len()]; scales.len()];
        let mut scaled = vec![0.0; scales.len()];
        for row in rows {
            for ((cell, value), (mean, scale)) in scaled.iter_mut().zip(*row).zip(&scales) {
                *cell = (value - mean) * scale;
            }
            for (line, own) in correlations.iter_mut().zip(&scaled) {
                let own = own / n;
                for (cell, other) in line.iter_mut().zip(&scaled) {
                    *cell += own * other;
                }
            }
        }
        let coefficients = eliminate(&mut correlations);
        Some(Self { explained: 1.0 - correlations[last][last], scales, coefficients })
    }

    /// Returns the distance of a row from the fit, in standard deviations.
    fn residual(&self, row: &[f64]) -> f64 {
        let scaled = |at: usize| (row[at] - self.scales[at].0) * self.scales[at].1;
        let predicted: f64 = self.coefficients.iter().enumerate().map(|(at, own)| own * scaled(at)).sum();
        (scaled(self.coefficients.len()) - predicted).abs()
    }

    /// Returns the variance of the last column.
    fn variance(&self) -> f64 {
        self.scales[self.coefficients.len()].1.powi(-2)
    }
}

fn column_scales(rows: &[&[f64]]) -> Vec<(f64, f64)> {
    let n = rows.len() as f64;
    let of_column = |at: usize| {
        let mean = rows.iter().map(|row| row[at]).sum::<f64>() / n;
        let variance = rows.iter().map(|row| (row[at] - mean).powi(2)).sum::<f64>() / n;
        // Rounding errors are no variance.
        let varies = variance.is_finite() && variance > (1e-12 * mean).powi(2);
        if varies { (mean, variance.sqrt().recip()) } else { (0.0, 0.0) }
    };
    (0..rows.first().map_or(0, |row| row.len())).map(of_column).collect()
}

/// Eliminates all columns before the last, except those that others determine (Gauss-Jordan, largest diagonal first).
/// Returns their coefficients; the last diagonal element becomes the unexplained share of the variance.
fn eliminate(matrix: &mut [Vec<f64>]) -> Vec<f64> {
    let last = matrix.len() - 1;
    let mut is_done = vec![false; last];
    for _ in 0..last {
        let open = (0..last).filter(|at| !is_done[*at]);
        let largest = open.max_by(|one, other| matrix[*one][*one].total_cmp(&matrix[*other][*other]));
        let Some(pivot) = largest.filter(|pivot| matrix[*pivot][*pivot] >= MIN_PIVOT) else { break };
        is_done[pivot] = true;
        let size = matrix[pivot][pivot];
        let row: Vec<f64> = matrix[pivot].iter().map(|cell| cell / size).collect();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = other[pivot];
            for (cell, value) in other.iter_mut().zip(&row) {
                *cell -= factor * value;
            }
        }
        matrix[pivot] = row;
    }
    (0..last).map(|at| if is_done[at] { matrix[at][last] } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pseudo-random numbers below 1.
    fn noise(seed: u64, at: u64) -> f64 {
        let mixed = ((seed << 32) | at).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn numbers(columns: &[Vec<f64>]) -> Vec<NumberValues> {
        columns.iter().map(|column| column.iter().copied().collect()).collect()
    }

    fn find(columns: &[Vec<f64>]) -> Option<LinearDependence> {
        let numbers = numbers(columns);
        LinearDependence::find(&numbers.iter().collect::<Vec<_>>())
    }

    /// Searches sums and differences of two or more columns that are constant.
    fn has_constant_sum(columns: &[Vec<f64>]) -> bool {
        let coefficient = |code: usize, at: usize| [0.0, 1.0, -1.0][code / 3_usize.pow(at as u32) % 3];
        (0..3_usize.pow(columns.len() as u32)).any(|code| {
            let used = (0..columns.len()).filter(|at| coefficient(code, *at) != 0.0).count();
            let sum = |row: usize| (0..columns.len()).map(|at| coefficient(code, at) * columns[at][row]).sum::<f64>();
            used > 1 && (1..columns[0].len()).all(|row| sum(row) == sum(0))
        })
    }

    #[test]
    fn total_is_found_despite_records_without_parts_and_rounding() {
        let part = |seed: u64, size: f64| -> Vec<f64> {
            (0..400).map(|at| if at % 20 == 3 { 0.0 } else { size * noise(seed, at) }).collect()
        };
        let (first, second, third) = (part(1, 8.0), part(2, 5.0), part(3, 3.0));
        let total = |at: usize| match at % 20 {
            3 => 7.0 + noise(4, at as u64),
            _ => ((first[at] + second[at] + third[at]) * 10.0).round() / 10.0,
        };
        let total: Vec<f64> = (0..400).map(total).collect();
        let other: Vec<f64> = (0..400).map(|at| 60.0 + 20.0 * noise(5, at)).collect();
        let columns = [other.clone(), total, first.clone(), second.clone(), third.clone()];
        let found = find(&columns).expect("a dependence");
        assert_eq!((found.number, found.others), (1, vec![2, 3, 4]));
        assert!(found.explained > 0.999 && found.explained < 1.0, "{}", found.explained);
        assert_eq!(find(&[other, first, second, third]), None);
    }

    #[test]
    fn last_number_of_an_equal_pair_is_found() {
        let steps: Vec<f64> = (0..100).map(|at| noise(1, at)).collect();
        let distance = steps.iter().map(|steps| 3.0 - 0.7 * steps).collect();
        let found = find(&[steps, distance]).expect("a dependence");
        assert_eq!((found.number, found.others), (1, vec![0]));
    }

    #[test]
    fn missing_values_hide_no_dependence() {
        let gap = |at: u64| at % 9 == 4;
        let first: Vec<f64> = (0..300).map(|at| if gap(at) { f64::NAN } else { noise(1, at) }).collect();
        let second: Vec<f64> = (0..300).map(|at| noise(2, at)).collect();
        let total: Vec<f64> = first.iter().zip(&second).map(|(one, other)| one + other).collect();
        let rare: Vec<f64> = (0..300).map(|at| if at % 3 == 0 { noise(3, at) } else { f64::NAN }).collect();
        assert_eq!(find(&[first, second, rare, total]).map(|found| found.number), Some(3));
    }

    #[test]
    fn constant_sparse_and_short_numbers_depend_on_none() {
        let varying: Vec<f64> = (0..200).map(|at| noise(1, at)).collect();
        let sparse =
            |seed: u64| -> Vec<f64> { (0..200).map(|at| if at % 25 == 3 { noise(seed, at) } else { 0.0 }).collect() };
        assert_eq!(find(&[varying.clone(), vec![0.1; 200], sparse(2), sparse(3)]), None);
        assert_eq!(find(&[vec![1.0, 2.0, 4.0], vec![2.0, 4.0, 8.0]]), None);
        assert_eq!(find(&[varying]), None);
        assert_eq!(find(&[]), None);
    }

    proptest! {
        /// The reference tries every sum and difference.
        #[test]
        fn dependence_is_found_exactly_if_a_sum_is_constant(
            parts in prop::collection::vec(prop::collection::vec(0_u8..100, 60), 2..5),
            coefficients in prop::collection::vec(-1_i32..2, 4),
            error in any::<bool>(),
            place in 0_usize..5,
        ) {
            let mut columns: Vec<Vec<f64>> =
                parts.iter().map(|part| part.iter().map(|value| f64::from(*value)).collect()).collect();
            let value = |row: usize| {
                let sum: f64 = columns.iter().zip(&coefficients).map(|(part, own)| part[row] * f64::from(*own)).sum();
                // Values outside the rounding of a total.
                sum + 5.0 + if error { f64::from(row as u32 * 37 % 60) } else { 0.0 }
            };
            let total = (0..60).map(value).collect();
            columns.insert(place.min(columns.len()), total);
            prop_assert_eq!(find(&columns).is_some(), has_constant_sum(&columns));
            while let Some(found) = find(&columns) {
                prop_assert!(!found.others.is_empty() && !found.others.contains(&found.number));
                columns.remove(found.number);
            }
            prop_assert!(!has_constant_sum(&columns));
        }
    }
}
