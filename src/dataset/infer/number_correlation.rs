//! Correlation of numbers.

use super::schema_inference::InferredSchema;
use crate::io::table::LoadedTable;
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::raw_batch::RawToken;

const MIN_COMMON_RECORDS: f64 = 10.0;

/// Values by record; NaN if missing.
#[derive(Clone, Debug)]
pub struct NumberValues(Vec<f64>);

impl NumberValues {
    /// Reads the attribute `name` from its table, if known.
    #[must_use]
    pub fn read(inferred: &InferredSchema, table: &LoadedTable, name: &str) -> Option<Self> {
        let attribute = inferred.schema.attributes.iter().find(|attribute| attribute.name == name)?;
        let column = table.columns.get(*inferred.columns.get(name)?)?;
        let mut canonical = String::new();
        let value = |text: &str| match attribute.typing.canonical(RawToken::Untyped(text), &mut canonical) {
            Ok(CanonicalKind::Value) => canonical.parse::<f64>().unwrap_or(f64::NAN),
            _ => f64::NAN,
        };
        let of_code: Vec<f64> = column.dictionary.texts().map(value).collect();
        let of_row = |code: &u32| if *code < FIRST_VALUE { f64::NAN } else { of_code[(code - FIRST_VALUE) as usize] };
        Some(Self(column.codes.iter().map(of_row).collect()))
    }

    /// Returns the values by record.
    pub(super) fn values(&self) -> &[f64] {
        &self.0
    }

    /// Returns the Pearson correlation over common records; `None` for fewer than 10, or a constant number.
    #[must_use]
    pub fn correlation(&self, other: &Self) -> Option<f64> {
        let pairs = || self.0.iter().zip(&other.0).filter(|(one, other)| one.is_finite() && other.is_finite());
        let n = pairs().count() as f64;
        if n < MIN_COMMON_RECORDS {
            return None;
        }
        let (sum, other_sum) =
            pairs().fold((0.0, 0.0), |(sum, other_sum), (one, other)| (sum + one, other_sum + other));
        let (mean, other_mean) = (sum / n, other_sum / n);
        let (mut both, mut own, mut others) = (0.0, 0.0, 0.0);
        for (one, other) in pairs() {
            let (one, other) = (one - mean, other - other_mean);
            (both, own, others) = (both + one * other, own + one * one, others + other * other);
        }
        (own > 0.0 && others > 0.0).then(|| both / (own * others).sqrt())
    }
}

impl FromIterator<f64> for NumberValues {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_uses_records_with_both_numbers() {
        let one: NumberValues = (0..40).map(|at| if at % 4 == 0 { f64::NAN } else { f64::from(at) }).collect();
        let double: NumberValues = (0..40).map(|at| 5.0 - 2.0 * f64::from(at)).collect();
        let wave: NumberValues = (0..40).map(|at| f64::from(at % 2)).collect();
        let constant: NumberValues = (0..40).map(|_| 7.0).collect();
        assert!((one.correlation(&double).expect("a correlation") + 1.0).abs() < 1e-12);
        assert!(one.correlation(&wave).expect("a correlation").abs() < 0.5);
        assert_eq!(one.correlation(&constant), None);
        let few: NumberValues = (0..9).map(f64::from).collect();
        assert_eq!(few.correlation(&few), None);
    }
}
