//! The type of a column's values, and which of its texts say that there is none.

use super::dates;
use super::names::Name;
use super::proposal::Reading;
use super::tokens::{is_nothing, number, plain_number, thousands_mark};
use super::values::{Text, Values};
use throng_core::values::schema::Type;
use throng_core::values::shapes::shape_of;

/// Numbers that devices and questionnaires write where there is nothing.
const SENTINELS: [f64; 5] = [-1.0, -9.0, -99.0, -999.0, -9999.0];
/// Spellings that a schema lists at most, beside the usual ones.
const FEW: usize = 8;

/// What does not fit a type.
struct Fit {
    missing: Vec<String>,
    misfits: u64,
}

/// Whether the texts are of a type, but for labels with a crowd, which say that something is missing, and a hundredth of the
/// cells.
fn fit(texts: &[Text<'_>], k: u64, is: impl Fn(&str) -> bool) -> Option<Fit> {
    let total: u64 = texts.iter().map(|text| text.cells).sum();
    let (mut missing, mut misfits, mut labelled) = (Vec::new(), 0, 0);
    for text in texts.iter().filter(|text| !is(text.text)) {
        let is_label = text.people >= k && text.text.chars().count() <= 32 && shape_of(text.text).is_none();
        if is_label {
            missing.push(text.text.to_owned());
            labelled += text.cells;
        } else {
            misfits += text.cells;
        }
    }
    let sound = missing.len() <= FEW && labelled * 5 <= total && misfits * 100 <= total;
    (sound && total > labelled + misfits).then_some(Fit { missing, misfits })
}

fn is_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0
}

/// Digits that are no number: with a leading zero, or too many for one.
fn is_code(text: &str) -> bool {
    let text = text.trim_ascii();
    text.bytes().all(|b| b.is_ascii_digit()) && (text.len() > 1 && text.starts_with('0') || text.len() > 15)
}

fn truth(text: &str) -> Option<bool> {
    match text.trim_ascii() {
        "true" | "True" | "TRUE" | "1" | "1.0" => Some(true),
        "false" | "False" | "FALSE" | "0" | "0.0" => Some(false),
        _ => None,
    }
}

fn is_pair(text: &str) -> bool {
    let part = |text: &str, most: f64| plain_number(text).is_some_and(|n| text.contains('.') && n.abs() <= most);
    text.split_once(',').is_some_and(|(latitude, longitude)| part(latitude, 90.0) && part(longitude, 180.0))
}

/// How the cells of a column called `name` are to be read.
pub(super) fn read(values: &Values<'_>, name: &Name, k: u64) -> Reading {
    let texts = &values.texts;
    let nothing = |numeric: bool| -> Vec<String> {
        texts.iter().filter(|text| is_nothing(text.text, numeric)).map(|text| text.text.to_owned()).collect()
    };
    let rest = |numeric: bool| -> Vec<Text<'_>> {
        texts.iter().filter(|text| !is_nothing(text.text, numeric)).copied().collect()
    };
    let plain = Reading::of_texts(Vec::new());
    let told = rest(true);
    let typed = |kind: Type, fit: Fit| {
        let missing = [nothing(true), fit.missing].concat();
        Reading { kind, missing, misfits: fit.misfits, ..plain.clone() }
    };
    let truths: Vec<Option<bool>> = told.iter().map(|text| truth(text.text)).collect();
    if truths.contains(&Some(true)) && truths.contains(&Some(false)) && !truths.contains(&None) {
        return typed(Type::Boolean, Fit { missing: vec![], misfits: 0 });
    }
    if name.is_temporal()
        && let Some(dated) = dates::of_digits(&told, &|is| fit(&told, k, is).map(|f| (f.missing, f.misfits)))
    {
        let fitted = Fit { missing: dated.missing, misfits: dated.misfits };
        return Reading { dates: dated.spelled, ..typed(dated.kind, fitted) };
    }
    let is_coded = name.is_postal() || name.is_version() || told.iter().any(|text| is_code(text.text));
    if !is_coded && let Some(fitted) = fit(&told, k, |text| plain_number(text).is_some()) {
        let numbers = told.iter().filter_map(|text| plain_number(text.text));
        let kind = if numbers.clone().all(is_whole) { Type::Integer } else { Type::Float };
        let points_may_group = thousands_mark(&told.iter().map(|text| text.text)) == Some('.');
        let mut reading = Reading { points_may_group, ..typed(kind, fitted) };
        reading.missing.extend(sentinel(&told, k));
        return reading;
    }
    if !is_coded && let Some(fitted) = commas(&told, &|is| fit(&told, k, is)) {
        let mut reading = Reading { decimal_comma: true, ..typed(Type::Float, fitted) };
        reading.missing.extend(sentinel(&told, k));
        return reading;
    }
    if let Some(dated) = dates::of_texts(&told, &|is| fit(&told, k, is).map(|f| (f.missing, f.misfits))) {
        let fitted = Fit { missing: dated.missing, misfits: dated.misfits };
        return Reading { dates: dated.spelled, doubt: dated.doubt, ..typed(dated.kind, fitted) };
    }
    if name.is_place()
        && let Some(fitted) = fit(&told, k, is_pair)
    {
        return typed(Type::Coordinates, fitted);
    }
    let doubt = thousands_mark(&told.iter().map(|text| text.text)).map(|_| {
        "whole numbers with a mark between thousands, read as texts: write them without it to have intervals".to_owned()
    });
    Reading { missing: nothing(false), doubt, ..plain }
}

/// Whether the texts are numbers with a decimal comma. Three digits behind every comma may be thousands: those are not taken for
/// numbers.
fn commas(texts: &[Text<'_>], fits: &dyn Fn(&dyn Fn(&str) -> bool) -> Option<Fit>) -> Option<Fit> {
    let is_number = |text: &str| !text.contains('.') && number(text).is_some();
    let behind = |text: &Text<'_>| text.text.trim_ascii().split_once(',').map(|(_, digits)| digits.len());
    let is_decimal = texts.iter().filter_map(behind).any(|digits| digits > 0 && digits != 3);
    if is_decimal { fits(&is_number) } else { None }
}

/// A number below all others, which are not negative, that a crowd has: as it is spelled.
fn sentinel(texts: &[Text<'_>], k: u64) -> Option<String> {
    let negative = |text: &&Text<'_>| number(text.text).is_some_and(|value| value < 0.0);
    let below: Vec<&Text<'_>> = texts.iter().filter(negative).collect();
    let first = number(below.first()?.text)?;
    let same = below.iter().all(|text| number(text.text) == Some(first));
    let people = below.iter().map(|text| text.people).max()?;
    (same && SENTINELS.contains(&first) && people >= k).then(|| below[0].text.trim_ascii().to_owned())
}
