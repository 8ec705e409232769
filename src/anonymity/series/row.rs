//! A published row, and how it is written.

use super::noise_terms::DELTA;
use super::statistics::MeanStatistic;
use super::terms::{DAY_MS, SeriesTerms, Terms};
use serde_json::{Map, Value};
use throng_core::values::formula::{guarded, unguarded};
use throng_core::values::moment::rfc3339;

/// Statistics of one signal in one bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// Position of the series.
    pub series: usize,
    /// Name of the cohort; none for all published cohorts together.
    pub cohort: Option<String>,
    /// Labels of the stratum; none for all strata together.
    pub stratum: Option<Vec<String>>,
    /// The bucket.
    pub bucket: i64,
    /// Position of the signal in the series.
    pub signal: usize,
    /// Contributor set: cohorts by number, each with its atoms as bits. Not written. Empty for rows of several rows.
    pub sets: Vec<(u32, u16)>,
    /// People of the contributor set.
    pub n: u64,
    /// What the row shows of them.
    pub statistic: Statistic,
    /// Share of members whose value was carried over, in tenths.
    pub filled: f64,
}

/// Statistic over the values of a contributor set.
#[derive(Clone, Debug, PartialEq)]
pub enum Statistic {
    /// Location and spread.
    Mean(MeanStatistic),
    /// Share of members in one interval of the signal's hierarchy. The rows of all intervals that hold members leave together.
    Bin {
        /// Label of the interval.
        label: String,
        /// Share, in hundredths.
        share: f64,
    },
    /// Moments of the signal and of another over an epoch, which starts at the row's bucket.
    Moment(MomentStatistic),
    /// Mean with noise over everybody with a value, whose noisy number is `n`.
    Noisy(NoisyStatistic),
}

/// Mean with noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyStatistic {
    /// Noisy sum over noisy count, clipped to the range of the signal.
    pub mean: f64,
    /// The noisy sum on the grid of the signal. Not written; 0 in a row that is read back.
    pub sum: i64,
}

/// Moments of a signal and of another, or itself, over an epoch. Steps are at most a thousandth of a deviation or of the product of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentStatistic {
    /// Position of the other signal, not before the first.
    pub with: usize,
    /// Mean of the signal, where both are one.
    pub mean: Option<f64>,
    /// Covariance, or the variance where both are one, with the number of people in the denominator.
    pub covariance: f64,
}

/// How a row is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// JSON: the labels of the stratum are an object, and members without a value are left out.
    Json,
    /// JSON with one member for each column, null where there is no value.
    FlatJson,
    /// CSV with this separator, an empty field where there is no value.
    Csv(u8),
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    Text,
    /// A whole number that is not negative.
    Count,
    /// A number.
    Number,
}

/// Columns of a series in their order: name and type.
#[must_use]
pub fn columns(terms: &SeriesTerms, strata: &[String]) -> Vec<(String, ColumnType)> {
    let text = |name: &str| (name.to_owned(), ColumnType::Text);
    let number = |name: &str| (name.to_owned(), ColumnType::Number);
    let count = |name: &str| (name.to_owned(), ColumnType::Count);
    let mut columns = vec![text("series"), text("cohort")];
    columns.extend(strata.iter().map(|name| text(&format!("stratum_{name}"))));
    columns.extend([text("bucket"), text("every")]);
    columns.extend(terms.cycle.map(|_| count("slot")));
    columns.extend([text("signal"), text("unit"), count("n")]);
    if terms.moments.is_some() {
        columns.extend([number("mean"), number("filled"), text("with"), number("covariance")]);
    } else {
        columns.extend(["mean", "sd", "q25", "q50", "q75", "filled"].map(number));
        columns.extend([text("bin"), number("share")]);
    }
    if terms.noise.is_some() {
        columns.extend(["epsilon", "delta"].map(number));
    }
    columns
}

impl SeriesRow {
    /// Whether the row is of an epoch and not of a bucket.
    #[must_use]
    pub fn is_of_epoch(&self) -> bool {
        matches!(self.statistic, Statistic::Moment(_))
    }

    /// Position of the contributor set among those of a cohort.
    #[must_use]
    pub fn channel(&self, terms: &Terms) -> usize {
        terms.first_channel(self.series) + terms.series[self.series].channel(self.bucket, self.signal)
    }

    /// Mean, deviation and quartiles; none of a row of another statistic.
    #[must_use]
    pub fn mean_statistic(&self) -> Option<MeanStatistic> {
        match self.statistic {
            Statistic::Mean(statistic) => Some(statistic),
            Statistic::Bin { .. } | Statistic::Moment(_) | Statistic::Noisy(_) => None,
        }
    }

    /// Mean of a signal in a bucket, with noise or without.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        match self.statistic {
            Statistic::Mean(of) => Some(of.mean),
            Statistic::Noisy(of) => Some(of.mean),
            Statistic::Bin { .. } | Statistic::Moment(_) => None,
        }
    }

    /// The row as one line without a line break. `strata` names the attributes of the strata.
    #[must_use]
    pub fn written(&self, terms: &SeriesTerms, strata: &[String], format: RowFormat) -> Vec<u8> {
        let names = columns(terms, strata).into_iter().map(|(name, _)| name);
        let cells = self.cells(terms, strata);
        match format {
            RowFormat::Json => self.nested(names.zip(cells), strata).to_string().into_bytes(),
            RowFormat::FlatJson => Value::Object(names.zip(cells).collect()).to_string().into_bytes(),
            RowFormat::Csv(separator) => csv_line(&cells, separator),
        }
    }

    fn cells(&self, terms: &SeriesTerms, strata: &[String]) -> Vec<Value> {
        let signal = &terms.signals[self.signal];
        let mut cells = vec![terms.name.as_str().into(), self.cohort.clone().into()];
        let label = |at: usize| self.stratum.as_ref().map(|labels| labels[at].clone()).into();
        cells.extend((0..strata.len()).map(label));
        cells.extend(match &terms.moments {
            Some(epoch) => [time_label(self.bucket, epoch.every_ms).into(), epoch.every.as_str().into()],
            None => [time_label(terms.window(self.bucket), terms.every_ms).into(), terms.every.as_str().into()],
        });
        cells.extend(terms.cycle.map(|_| Value::from(terms.slot(self.bucket))));
        cells.extend([signal.name.as_str().into(), signal.unit.clone().into(), self.n.into()]);
        let filled = Some(self.filled);
        match &self.statistic {
            Statistic::Mean(MeanStatistic { mean, sd, quartiles }) => {
                let [q25, q50, q75] = quartiles.map_or([None; 3], |quartiles| quartiles.map(Some));
                cells.extend([Some(*mean), Some(*sd), q25, q50, q75, filled].map(number));
                cells.extend([Value::Null, Value::Null]);
            }
            Statistic::Bin { label, share } => {
                cells.extend([None, None, None, None, None, filled].map(number));
                cells.extend([label.as_str().into(), number(Some(*share))]);
            }
            Statistic::Moment(MomentStatistic { with, mean, covariance }) => {
                let with = terms.signals[*with].name.as_str().into();
                cells.extend([number(*mean), number(filled), with, number(Some(*covariance))]);
            }
            Statistic::Noisy(of) => {
                cells.extend([Some(of.mean), None, None, None, None, None].map(number));
                cells.extend([Value::Null, Value::Null]);
            }
        }
        if let Some(noise) = &terms.noise {
            cells.extend([noise.epsilon, DELTA].map(|value| number(Some(value))));
        }
        cells
    }

    /// The labels of the stratum under `stratum`; the cohort is null where there is none, and what else is missing is left out.
    fn nested(&self, cells: impl Iterator<Item = (String, Value)>, strata: &[String]) -> Value {
        let mut row = Map::new();
        for (name, value) in cells {
            match name.strip_prefix("stratum_").filter(|name| strata.iter().any(|known| known == name)) {
                Some(label) => {
                    let labels = row.entry("stratum").or_insert_with(|| Map::new().into());
                    if let Some(labels) = labels.as_object_mut() {
                        labels.insert(label.to_owned(), value);
                    }
                }
                None if value.is_null() && name != "cohort" => {}
                None => {
                    row.insert(name, value);
                }
            }
        }
        Value::Object(row)
    }
}

/// A number as people write it: without a fraction where it is whole.
fn number(value: Option<f64>) -> Value {
    match value {
        Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => Value::from(whole as i64),
        Some(value) => Value::from(value),
        None => Value::Null,
    }
}

/// A text as CSV of series writes it: nothing stands for a missing value, so an empty text is a `'`, and one of these has another.
fn spelled_text(text: &str) -> String {
    if text.chars().all(|letter| letter == '\'') { format!("'{text}") } else { guarded(text) }
}

/// The text behind a field that [`spelled_text`] has written and that is not empty.
#[must_use]
pub fn read_text(field: &str) -> &str {
    if field.chars().all(|letter| letter == '\'') { &field[1..] } else { unguarded(field) }
}

fn csv_line(cells: &[Value], separator: u8) -> Vec<u8> {
    let fields = cells.iter().map(|cell| match cell {
        Value::Null => String::new(),
        Value::String(text) => spelled_text(text),
        other => other.to_string(),
    });
    let terminator = csv::Terminator::Any(b'\n');
    let mut writer = csv::WriterBuilder::new().delimiter(separator).terminator(terminator).from_writer(Vec::new());
    let written = writer.write_record(fields).ok().and_then(|()| writer.into_inner().ok());
    let mut line = written.expect("a vector takes every row");
    line.truncate(line.len() - 1);
    line
}

/// Start of a window of `every_ms`: a date where windows are whole days, else a moment in UTC.
fn time_label(start_ms: i64, every_ms: i64) -> String {
    let text = rfc3339(start_ms).unwrap_or_else(|| start_ms.to_string());
    if every_ms % DAY_MS == 0 { text[..text.len().min(10)].to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::terms::Signal;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_text_of_csv_is_read_back(text in "['=a]{0,4}") {
            let field = spelled_text(&text);
            prop_assert!(!field.is_empty(), "an empty field is a missing value");
            prop_assert_eq!(read_text(&field), text);
        }
    }

    #[test]
    fn a_label_that_a_spreadsheet_would_run_has_a_guard_in_csv() {
        let signal = Signal { attribute: 0, name: "s".into(), unit: None, range: (-9.0, 9.0), intervals: None };
        let terms = SeriesTerms {
            name: "daily".into(),
            every_ms: DAY_MS,
            every: "1d".into(),
            cycle: None,
            signals: vec![signal],
            lateness_ms: 0,
            pooled: false,
            min_values: 4,
            moments: None,
            noise: None,
        };
        let row = SeriesRow {
            series: 0,
            cohort: Some("c".into()),
            stratum: Some(vec!["=cmd|'/C calc'!A0".into()]),
            bucket: 0,
            signal: 0,
            sets: Vec::new(),
            n: 6,
            statistic: Statistic::Bin { label: "-5--1".into(), share: 0.5 },
            filled: 0.0,
        };
        let strata = ["sex".to_owned()];
        let text = |format| String::from_utf8(row.written(&terms, &strata, format)).expect("text");
        let csv = text(RowFormat::Csv(b','));
        assert!(csv.starts_with("daily,c,'=cmd|'/C calc'!A0,1970-01-01,1d,s,,6,"), "{csv}");
        assert!(csv.ends_with(",'-5--1,0.5"), "{csv}");
        assert!(text(RowFormat::Json).contains("\"bin\":\"-5--1\""));
        let mean = MeanStatistic { mean: -3.5, sd: 2.0, quartiles: None };
        let row = SeriesRow { statistic: Statistic::Mean(mean), ..row };
        let csv = String::from_utf8(row.written(&terms, &strata, RowFormat::Csv(b','))).expect("text");
        assert!(csv.contains(",6,-3.5,2,"), "numbers stay numbers: {csv}");
    }
}
