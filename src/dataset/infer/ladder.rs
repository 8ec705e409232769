//! What the values of an attribute may become on their way to `*`.

use super::dates;
use super::labels;
use super::names::Name;
use super::numbers::{self, Extent};
use super::people::People;
use super::proposal::{Generalized, Ladder, Reading, Round, Spelled};
use super::tokens::{is_nothing, number};
use super::values::{Text, Values};
use throng_core::values::canonical::MAX_STRING_BYTES;
use throng_core::values::dates::{Dates, Epoch};
use throng_core::values::moment::{self, Unit};
use throng_core::values::schema::Type;
use throng_core::values::shapes;

/// What was asked of a proposal that decides about hierarchies.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub k: u64,
    /// More records will come: what is known of times is no bound.
    pub endless: bool,
}

/// The hierarchy of a column that may leave.
pub(super) fn of(values: &Values<'_>, reading: &Reading, name: &Name, people: &People, wanted: Wanted) -> Generalized {
    match reading.kind {
        Type::Boolean => Generalized::of(Ladder::Flat),
        Type::Integer | Type::Float => {
            let told: Vec<Option<f64>> = values.texts.iter().map(|text| told(text, reading)).collect();
            numbers::ladder(&Extent::of(values, &told, people, wanted.k), reading.kind == Type::Integer, name)
        }
        Type::Date | Type::Timestamp => calendar(values, reading, name, people, wanted),
        Type::Coordinates => {
            Generalized { ladder: Ladder::Grid(vec![0.01, 0.1, 1.0]), round: Some(Round::Step(0.001)), remark: None }
        }
        Type::String if name.is_postal() => postal(values),
        Type::String => tree(values, wanted.k),
    }
}

/// What a sensitive column may become: its values are hidden where too few in a class have them, so that none is listed,
/// and numbers are rounded to what several can share.
pub(super) fn beside(generalized: Generalized) -> Generalized {
    let round = match &generalized.ladder {
        Ladder::Widths { widths, .. } => widths.first().copied().map(Round::Step),
        Ladder::Bounds { min, max, .. } => Some(Round::Step(numbers::nice((max - min) / 50.0))),
        _ => generalized.round,
    };
    let remark = generalized.remark.filter(|_| !matches!(generalized.ladder, Ladder::Tree(_)));
    Generalized { ladder: Ladder::Flat, round, remark }
}

/// The number that a text is, where it says one.
fn told(text: &Text<'_>, reading: &Reading) -> Option<f64> {
    number(text.text).filter(|_| !reading.missing.iter().any(|missing| missing == text.text.trim_ascii()))
}

/// The labels that a schema may name: shared by at least `k` people, and without the shape of an identifier.
fn tree(values: &Values<'_>, k: u64) -> Generalized {
    let may_stand = |text: &&Text<'_>| {
        let sound = !is_nothing(text.text, false) && text.text.len() < MAX_STRING_BYTES && !text.text.contains('\0');
        text.people >= k && sound && shapes::shape_of(text.text).is_none()
    };
    let labels: Vec<Text<'_>> = values.texts.iter().filter(may_stand).copied().collect();
    let rare = values.texts.iter().filter(|text| !is_nothing(text.text, false)).count() - labels.len();
    let cells: u64 = values.texts.iter().filter(|text| !is_nothing(text.text, false)).map(|text| text.cells).sum();
    let named: u64 = labels.iter().map(|text| text.cells).sum();
    let remark = (rare > 0).then(|| {
        format!(
            "{rare} value(s) in {} cell(s) that fewer than {k} people share are not listed, and are suppressed",
            cells - named
        )
    });
    Generalized { ladder: Ladder::Tree(labels::groups(&labels)), round: None, remark }
}

fn postal(values: &Values<'_>) -> Generalized {
    let longest = values.texts.iter().map(|text| text.text.chars().count()).max().unwrap_or(0);
    let keep: Vec<usize> = (1..longest.min(6)).rev().collect();
    Generalized::of(if keep.is_empty() { Ladder::Flat } else { Ladder::Prefix(keep) })
}

fn calendar(values: &Values<'_>, reading: &Reading, name: &Name, people: &People, wanted: Wanted) -> Generalized {
    let dates = match &reading.dates {
        Spelled::Iso => Dates::Iso,
        Spelled::Formats(formats) => Dates::Formats(formats.iter().filter_map(|text| dates::format(text)).collect()),
        Spelled::Epoch("s") => Dates::Epoch(Epoch::Seconds),
        Spelled::Epoch("ms") => Dates::Epoch(Epoch::Milliseconds),
        Spelled::Epoch(_) => Dates::Epoch(Epoch::Microseconds),
    };
    let moments: Vec<Option<i64>> = values.texts.iter().map(|text| dates.read(text.text.trim_ascii())).collect();
    if name.is_birth() {
        let round = (reading.kind == Type::Timestamp).then_some(Round::Unit(Unit::Day));
        let ladder = Ladder::Calendar { levels: vec![Unit::Month, Unit::Quarter, Unit::Year], domain: None };
        return Generalized { ladder, round, remark: None };
    }
    let (levels, round) = if reading.kind == Type::Date {
        (vec![Unit::Week, Unit::Month, Unit::Quarter], None)
    } else {
        let on = |unit: i64| moments.iter().flatten().all(|millis| millis.rem_euclid(unit) == 0);
        let round = if on(3_600_000) { Unit::Hour } else { Unit::Minute };
        let all = [Unit::Hour, Unit::Day, Unit::Week, Unit::Month];
        (all.into_iter().filter(|unit| *unit > round).collect(), Some(Round::Unit(round)))
    };
    let years = (!wanted.endless).then(|| years(values, &moments, people, wanted.k)).flatten();
    // A moment of the last day comes after its midnight.
    let end = |year: i32| {
        if reading.kind == Type::Date { format!("{year:04}-12-31") } else { format!("{:04}-01-01", year + 1) }
    };
    let domain = years.map(|(first, last)| (format!("{first:04}-01-01"), end(last)));
    let remark = domain
        .as_ref()
        .map(|_| "days outside min and max are suppressed; for records to come leave both out".to_owned());
    Generalized { ladder: Ladder::Calendar { levels, domain }, round, remark }
}

/// The first and the last year beyond which fewer than `k` people have a moment.
fn years(values: &Values<'_>, moments: &[Option<i64>], people: &People, k: u64) -> Option<(i32, i32)> {
    // Milliseconds of four-digit years are exact.
    let told: Vec<Option<f64>> = moments.iter().map(|millis| millis.map(|millis| millis as f64)).collect();
    let (low, high) = numbers::crowd(values, &told, people, k)?;
    let (first, last) = (moment::civil(low as i64).0, moment::civil(high as i64).0);
    (first <= last && first > 0 && last < 9999).then_some((first, last))
}
