//! Published row and output formats.

use super::noise_budget::DELTA;
use super::statistics::MeanStatistic;
use super::terms::{AllSeriesTerms, DAY_MS, SeriesTerms};
use crate::values::formula::{guarded, unguarded};
use crate::values::moment::rfc3339;
use serde_json::{Map, Value};

/// Statistics of one signal in one bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// Series index.
    pub series: usize,
    /// Cohort name; none for all cohorts.
    pub cohort: Option<String>,
    /// Stratum labels; none for all strata.
    pub stratum: Option<Vec<String>>,
    /// Start of the bucket or epoch.
    pub bucket: i64,
    /// Signal index in the series.
    pub signal: usize,
    /// Contributor set: cohorts with atoms as bits. Not written; empty in combined rows.
    pub sets: Vec<(u32, u16)>,
    /// Number of subjects, possibly with noise.
    pub n: u64,
    /// Published statistic.
    pub statistic: RowStatistic,
    /// Share of carried values, in tenths.
    pub filled: f64,
}

/// Statistic over a contributor set.
#[derive(Clone, Debug, PartialEq)]
pub enum RowStatistic {
    /// Location and spread.
    Mean(MeanStatistic),
    /// Share of members in an interval; all occupied intervals are released together.
    Bin {
        /// Interval label.
        label: String,
        /// Share, in hundredths.
        share: f64,
    },
    /// Moments of two signals over an epoch.
    Moment(MomentStatistic),
    /// Mean with noise over all subjects.
    Noisy(NoisyStatistic),
}

/// Mean with noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyStatistic {
    /// Noisy sum / noisy count, clipped to the signal's range.
    pub mean: f64,
    /// Noisy grid sum. Not written; 0 when read back.
    pub sum: i64,
}

/// Moments of two signals over an epoch, rounded to at most a thousandth of the deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentStatistic {
    /// Other signal, not before the first.
    pub with: usize,
    /// Mean, if both are equal.
    pub mean: Option<f64>,
    /// Covariance with denominator n.
    pub covariance: f64,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// JSON with stratum object, without missing values.
    Json,
    /// JSON with nulls.
    FlatJson,
    /// CSV with this separator.
    Csv(u8),
}

/// Column type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    Text,
    /// Non-negative integer.
    Count,
    /// Number.
    Number,
    /// Start of a bucket, in UTC.
    Time,
}

/// Column names and types of a series.
#[must_use]
pub fn series_columns(terms: &SeriesTerms, strata: &[String]) -> Vec<(String, ColumnType)> {
    let text = |name: &str| (name.to_owned(), ColumnType::Text);
    let number = |name: &str| (name.to_owned(), ColumnType::Number);
    let count = |name: &str| (name.to_owned(), ColumnType::Count);
    let mut columns = vec![text("series"), text("cohort")];
    columns.extend(strata.iter().map(|name| text(&format!("stratum_{name}"))));
    columns.extend([("bucket".to_owned(), ColumnType::Time), text("every")]);
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
    /// Returns true for rows of an epoch.
    #[must_use]
    pub fn is_of_epoch(&self) -> bool {
        matches!(self.statistic, RowStatistic::Moment(_))
    }

    /// Channel of the contributor set.
    #[must_use]
    pub fn channel(&self, terms: &AllSeriesTerms) -> usize {
        terms.first_channel(self.series) + terms.series[self.series].channel(self.bucket, self.signal)
    }

    /// Mean, deviation and quartiles, if any.
    #[must_use]
    pub fn mean_statistic(&self) -> Option<MeanStatistic> {
        match self.statistic {
            RowStatistic::Mean(statistic) => Some(statistic),
            RowStatistic::Bin { .. } | RowStatistic::Moment(_) | RowStatistic::Noisy(_) => None,
        }
    }

    /// Mean, with or without noise, if any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        match self.statistic {
            RowStatistic::Mean(of) => Some(of.mean),
            RowStatistic::Noisy(of) => Some(of.mean),
            RowStatistic::Bin { .. } | RowStatistic::Moment(_) => None,
        }
    }

    /// Encodes the row as one line. `strata` are attribute names.
    #[must_use]
    pub fn to_output_line(&self, terms: &SeriesTerms, strata: &[String], format: RowFormat) -> Vec<u8> {
        let names = series_columns(terms, strata).into_iter().map(|(name, _)| name);
        let cells = self.cells(terms, strata);
        match format {
            RowFormat::Json => self.to_json_object(names.zip(cells), strata).to_string().into_bytes(),
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
            Some(epoch) => [bucket_label(terms, self.bucket).into(), epoch.every.as_str().into()],
            None => [bucket_label(terms, terms.window(self.bucket)).into(), terms.every.as_str().into()],
        });
        cells.extend(terms.cycle.map(|_| Value::from(terms.slot(self.bucket))));
        cells.extend([signal.name.as_str().into(), signal.unit.clone().into(), self.n.into()]);
        let filled = Some(self.filled);
        match &self.statistic {
            RowStatistic::Mean(MeanStatistic { mean, sd, quartiles }) => {
                let [q25, q50, q75] = quartiles.map_or([None; 3], |quartiles| quartiles.map(Some));
                cells.extend([Some(*mean), Some(*sd), q25, q50, q75, filled].map(json_number));
                cells.extend([Value::Null, Value::Null]);
            }
            RowStatistic::Bin { label, share } => {
                cells.extend([None, None, None, None, None, filled].map(json_number));
                cells.extend([label.as_str().into(), json_number(Some(*share))]);
            }
            RowStatistic::Moment(MomentStatistic { with, mean, covariance }) => {
                let with = terms.signals[*with].name.as_str().into();
                cells.extend([json_number(*mean), json_number(filled), with, json_number(Some(*covariance))]);
            }
            RowStatistic::Noisy(of) => {
                cells.extend([Some(of.mean), None, None, None, None, None].map(json_number));
                cells.extend([Value::Null, Value::Null]);
            }
        }
        if let Some(noise) = &terms.noise {
            cells.extend([noise.epsilon, DELTA].map(|value| json_number(Some(value))));
        }
        cells
    }

    /// Omits missing values except the cohort (null).
    fn to_json_object(&self, cells: impl Iterator<Item = (String, Value)>, strata: &[String]) -> Value {
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

fn json_number(value: Option<f64>) -> Value {
    match value {
        Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => Value::from(whole as i64),
        Some(value) => Value::from(value),
        None => Value::Null,
    }
}

/// Empty fields are missing values, so empty texts become `'`.
fn encode_csv_text(text: &str) -> String {
    if text.chars().all(|letter| letter == '\'') { format!("'{text}") } else { guarded(text) }
}

/// Decodes a non-empty field of `encode_csv_text`.
#[must_use]
pub fn decode_csv_text(field: &str) -> &str {
    if field.chars().all(|letter| letter == '\'') { &field[1..] } else { unguarded(field) }
}

fn csv_line(cells: &[Value], separator: u8) -> Vec<u8> {
    let fields = cells.iter().map(|cell| match cell {
        Value::Null => String::new(),
        Value::String(text) => encode_csv_text(text),
        other => other.to_string(),
    });
    let terminator = csv::Terminator::Any(b'\n');
    let mut writer = csv::WriterBuilder::new().delimiter(separator).terminator(terminator).from_writer(Vec::new());
    let written = writer.write_record(fields).ok().and_then(|()| writer.into_inner().ok());
    let mut line = written.expect("a vector takes every row");
    line.truncate(line.len() - 1);
    line
}

/// Text of the column `bucket` for a window or epoch that starts at `start_ms`.
#[must_use]
pub fn bucket_label(terms: &SeriesTerms, start_ms: i64) -> String {
    time_label(start_ms, terms.moments.as_ref().map_or(terms.every_ms, |epoch| epoch.every_ms))
}

/// Date for windows of whole days, otherwise UTC time.
fn time_label(start_ms: i64, every_ms: i64) -> String {
    let text = rfc3339(start_ms).unwrap_or_else(|| start_ms.to_string());
    if every_ms % DAY_MS == 0 { text[..text.len().min(10)].to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::terms::SeriesSignal;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn csv_texts_are_decoded_unchanged(text in "['=a]{0,4}") {
            let field = encode_csv_text(&text);
            prop_assert!(!field.is_empty(), "an empty field is a missing value");
            prop_assert_eq!(decode_csv_text(&field), text);
        }
    }

    #[test]
    fn csv_labels_that_look_like_formulas_are_guarded() {
        let signal = SeriesSignal { attribute: 0, name: "s".into(), unit: None, range: (-9.0, 9.0), intervals: None };
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
            statistic: RowStatistic::Bin { label: "-5--1".into(), share: 0.5 },
            filled: 0.0,
        };
        let strata = ["sex".to_owned()];
        let text = |format| String::from_utf8(row.to_output_line(&terms, &strata, format)).expect("text");
        let csv = text(RowFormat::Csv(b','));
        assert!(csv.starts_with("daily,c,'=cmd|'/C calc'!A0,1970-01-01,1d,s,,6,"), "{csv}");
        assert!(csv.ends_with(",'-5--1,0.5"), "{csv}");
        assert!(text(RowFormat::Json).contains("\"bin\":\"-5--1\""));
        let mean = MeanStatistic { mean: -3.5, sd: 2.0, quartiles: None };
        let row = SeriesRow { statistic: RowStatistic::Mean(mean), ..row };
        let csv = String::from_utf8(row.to_output_line(&terms, &strata, RowFormat::Csv(b','))).expect("text");
        assert!(csv.contains(",6,-3.5,2,"), "numbers stay numbers: {csv}");
    }
}
