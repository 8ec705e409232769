//! A published row, and how it is written.

use super::terms::{DAY_MS, SeriesTerms};
use crate::records::moment::rfc3339;
use serde_json::{Map, Value};

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
    /// Mean over them, rounded to the signal's step.
    pub mean: f64,
    /// Standard deviation over them (n − 1), rounded likewise.
    pub sd: f64,
    /// Quartiles, rounded likewise; none of fewer than two crowds.
    pub quartiles: Option<[f64; 3]>,
    /// Share of members whose value was carried over, in tenths.
    pub filled: f64,
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
    columns.extend(["mean", "sd", "q25", "q50", "q75", "filled"].map(number));
    columns
}

impl SeriesRow {
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
        cells.extend([bucket_label(terms, self.bucket).into(), terms.every.as_str().into()]);
        cells.extend(terms.cycle.map(|_| Value::from(terms.slot(self.bucket))));
        cells.extend([signal.name.as_str().into(), signal.unit.clone().into(), self.n.into()]);
        let [q25, q50, q75] = self.quartiles.map_or([None; 3], |quartiles| quartiles.map(Some));
        cells.extend([Some(self.mean), Some(self.sd), q25, q50, q75, Some(self.filled)].map(number));
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

fn csv_line(cells: &[Value], separator: u8) -> Vec<u8> {
    let fields = cells.iter().map(|cell| match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let terminator = csv::Terminator::Any(b'\n');
    let mut writer = csv::WriterBuilder::new().delimiter(separator).terminator(terminator).from_writer(Vec::new());
    let written = writer.write_record(fields).ok().and_then(|()| writer.into_inner().ok());
    let mut line = written.expect("a vector takes every row");
    line.truncate(line.len() - 1);
    line
}

/// Start of a bucket's window: a date where windows are whole days, else a moment in UTC.
fn bucket_label(terms: &SeriesTerms, bucket: i64) -> String {
    let text = rfc3339(terms.window(bucket)).unwrap_or_else(|| terms.window(bucket).to_string());
    if terms.every_ms % DAY_MS == 0 { text[..text.len().min(10)].to_owned() } else { text }
}
