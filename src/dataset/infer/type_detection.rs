//! Detects types and missing spellings of a column.

use super::column_names::ColumnName;
use super::column_texts::{ColumnTexts, DistinctText};
use super::date_detection;
use super::schema_proposal::ColumnReading;
use super::text_values::{is_missing_text, parse_number, parse_point_number, thousands_mark};
use throng_core::values::identifier_shapes::detect_shape;
use throng_core::values::schema::AttributeType;

/// Missing values of devices and questionnaires.
const MISSING_NUMBERS: [f64; 5] = [-1.0, -9.0, -99.0, -999.0, -9999.0];
/// Besides the usual ones.
const MAX_MISSING_SPELLINGS: usize = 8;

struct TypeExceptions {
    missing: Vec<String>,
    misfits: u64,
}

/// `None` for too many exceptions: frequent labels are missing spellings, and at most a hundredth of the cells are
/// misfits.
fn type_exceptions(texts: &[DistinctText<'_>], k: u64, is: impl Fn(&str) -> bool) -> Option<TypeExceptions> {
    let total: u64 = texts.iter().map(|text| text.cells).sum();
    let (mut missing, mut misfits, mut labelled) = (Vec::new(), 0, 0);
    for text in texts.iter().filter(|text| !is(text.text)) {
        let is_label = text.people >= k && text.text.chars().count() <= 32 && detect_shape(text.text).is_none();
        if is_label {
            missing.push(text.text.to_owned());
            labelled += text.cells;
        } else {
            misfits += text.cells;
        }
    }
    let sound = missing.len() <= MAX_MISSING_SPELLINGS && labelled * 5 <= total && misfits * 100 <= total;
    (sound && total > labelled + misfits).then_some(TypeExceptions { missing, misfits })
}

fn is_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0
}

/// Leading zero, or too long for a number.
fn is_digit_code(text: &str) -> bool {
    let text = text.trim_ascii();
    text.bytes().all(|b| b.is_ascii_digit()) && (text.len() > 1 && text.starts_with('0') || text.len() > 15)
}

fn boolean_of_text(text: &str) -> Option<bool> {
    match text.trim_ascii() {
        "true" | "True" | "TRUE" | "1" | "1.0" => Some(true),
        "false" | "False" | "FALSE" | "0" | "0.0" => Some(false),
        _ => None,
    }
}

fn is_coordinate_pair(text: &str) -> bool {
    let part = |text: &str, most: f64| parse_point_number(text).is_some_and(|n| text.contains('.') && n.abs() <= most);
    text.split_once(',').is_some_and(|(latitude, longitude)| part(latitude, 90.0) && part(longitude, 180.0))
}

/// Determines the reading of a column called `name`.
pub(super) fn determine_reading(values: &ColumnTexts<'_>, name: &ColumnName, k: u64) -> ColumnReading {
    let texts = &values.texts;
    let nothing = |numeric: bool| -> Vec<String> {
        texts.iter().filter(|text| is_missing_text(text.text, numeric)).map(|text| text.text.to_owned()).collect()
    };
    let rest = |numeric: bool| -> Vec<DistinctText<'_>> {
        texts.iter().filter(|text| !is_missing_text(text.text, numeric)).copied().collect()
    };
    let plain = ColumnReading::of_texts(Vec::new());
    let told = rest(true);
    let typed = |kind: AttributeType, fit: TypeExceptions| {
        let missing = [nothing(true), fit.missing].concat();
        ColumnReading { kind, missing, misfits: fit.misfits, ..plain.clone() }
    };
    let truths: Vec<Option<bool>> = told.iter().map(|text| boolean_of_text(text.text)).collect();
    if truths.contains(&Some(true)) && truths.contains(&Some(false)) && !truths.contains(&None) {
        return typed(AttributeType::Boolean, TypeExceptions { missing: vec![], misfits: 0 });
    }
    if name.is_temporal()
        && let Some(dated) = date_detection::detect_numeric_dates(&told, &|is| {
            type_exceptions(&told, k, is).map(|f| (f.missing, f.misfits))
        })
    {
        let fitted = TypeExceptions { missing: dated.missing, misfits: dated.misfits };
        return ColumnReading { dates: dated.spelled, ..typed(dated.kind, fitted) };
    }
    let is_coded = name.is_postal() || name.is_version() || told.iter().any(|text| is_digit_code(text.text));
    if !is_coded && let Some(fitted) = type_exceptions(&told, k, |text| parse_point_number(text).is_some()) {
        let numbers = told.iter().filter_map(|text| parse_point_number(text.text));
        let kind = if numbers.clone().all(is_whole) { AttributeType::Integer } else { AttributeType::Float };
        let points_may_group = thousands_mark(&told.iter().map(|text| text.text)) == Some('.');
        let mut reading = ColumnReading { points_may_group, ..typed(kind, fitted) };
        reading.missing.extend(missing_number(&told, k));
        return reading;
    }
    if !is_coded && let Some(fitted) = decimal_comma_exceptions(&told, &|is| type_exceptions(&told, k, is)) {
        let mut reading = ColumnReading { decimal_comma: true, ..typed(AttributeType::Float, fitted) };
        reading.missing.extend(missing_number(&told, k));
        return reading;
    }
    if let Some(dated) =
        date_detection::detect_text_dates(&told, &|is| type_exceptions(&told, k, is).map(|f| (f.missing, f.misfits)))
    {
        let fitted = TypeExceptions { missing: dated.missing, misfits: dated.misfits };
        return ColumnReading { dates: dated.spelled, operator_question: dated.doubt, ..typed(dated.kind, fitted) };
    }
    if name.is_place()
        && let Some(fitted) = type_exceptions(&told, k, is_coordinate_pair)
    {
        return typed(AttributeType::Coordinates, fitted);
    }
    let doubt = thousands_mark(&told.iter().map(|text| text.text)).map(|_| {
        "whole numbers with thousands separators, read as text: remove the separators to get intervals".to_owned()
    });
    ColumnReading { missing: nothing(false), operator_question: doubt, ..plain }
}

/// Refuses three digits after every comma: they may be thousands.
fn decimal_comma_exceptions(
    texts: &[DistinctText<'_>],
    fits: &dyn Fn(&dyn Fn(&str) -> bool) -> Option<TypeExceptions>,
) -> Option<TypeExceptions> {
    let is_number = |text: &str| !text.contains('.') && parse_number(text).is_some();
    let behind = |text: &DistinctText<'_>| text.text.trim_ascii().split_once(',').map(|(_, digits)| digits.len());
    let is_decimal = texts.iter().filter_map(behind).any(|digits| digits > 0 && digits != 3);
    if is_decimal { fits(&is_number) } else { None }
}

/// The only negative number, shared by at least k subjects.
fn missing_number(texts: &[DistinctText<'_>], k: u64) -> Option<String> {
    let negative = |text: &&DistinctText<'_>| parse_number(text.text).is_some_and(|value| value < 0.0);
    let below: Vec<&DistinctText<'_>> = texts.iter().filter(negative).collect();
    let first = parse_number(below.first()?.text)?;
    let same = below.iter().all(|text| parse_number(text.text) == Some(first));
    let people = below.iter().map(|text| text.people).max()?;
    (same && MISSING_NUMBERS.contains(&first) && people >= k).then(|| below[0].text.trim_ascii().to_owned())
}
