//! Proposes hierarchies.

use super::column_names::ColumnName;
use super::column_texts::{ColumnTexts, DistinctText};
use super::date_detection;
use super::label_groups;
use super::number_intervals::{self, NumberRange};
use super::schema_proposal::{ColumnReading, DateSpelling, HierarchyProposal, ProposedHierarchy, ProposedRounding};
use super::subject_choice::TableSubjects;
use super::text_values::{is_missing_text, parse_number};
use throng_core::values::canonical::MAX_STRING_BYTES;
use throng_core::values::date_formats::{DateFormats, EpochUnit};
use throng_core::values::identifier_shapes;
use throng_core::values::moment::{self, CalendarUnit};
use throng_core::values::schema::AttributeType;

#[derive(Clone, Copy)]
pub(super) struct HierarchyOptions {
    pub k: u64,
    /// Known times do not limit the domain.
    pub more_records_follow: bool,
}

/// For a column that may be released.
pub(super) fn propose_hierarchy(
    values: &ColumnTexts<'_>,
    reading: &ColumnReading,
    name: &ColumnName,
    people: &TableSubjects,
    wanted: HierarchyOptions,
) -> HierarchyProposal {
    match reading.kind {
        AttributeType::Boolean => HierarchyProposal::of(ProposedHierarchy::Flat),
        AttributeType::Integer | AttributeType::Float => {
            let told: Vec<Option<f64>> = values.texts.iter().map(|text| number_of_text(text, reading)).collect();
            number_intervals::propose_intervals(
                &NumberRange::of(values, &told, people, wanted.k),
                reading.kind == AttributeType::Integer,
                name,
            )
        }
        AttributeType::Date | AttributeType::Timestamp => calendar_units(values, reading, name, people, wanted),
        AttributeType::Coordinates => HierarchyProposal {
            ladder: ProposedHierarchy::Grid(vec![0.01, 0.1, 1.0]),
            round: Some(ProposedRounding::Step(0.001)),
            remark: None,
        },
        AttributeType::String if name.is_postal() => postal_prefixes(values),
        AttributeType::String => label_tree(values, wanted.k),
    }
}

/// Lists no value, because rare ones are hidden; rounds numbers to steps that several subjects can share.
pub(super) fn sensitive_hierarchy(generalized: HierarchyProposal) -> HierarchyProposal {
    let round = match &generalized.ladder {
        ProposedHierarchy::Widths { widths, .. } => widths.first().copied().map(ProposedRounding::Step),
        ProposedHierarchy::Bounds { min, max, .. } => {
            Some(ProposedRounding::Step(number_intervals::round_step_below((max - min) / 50.0)))
        }
        _ => generalized.round,
    };
    let remark = generalized.remark.filter(|_| !matches!(generalized.ladder, ProposedHierarchy::Tree(_)));
    HierarchyProposal { ladder: ProposedHierarchy::Flat, round, remark }
}

fn number_of_text(text: &DistinctText<'_>, reading: &ColumnReading) -> Option<f64> {
    parse_number(text.text).filter(|_| !reading.missing.iter().any(|missing| missing == text.text.trim_ascii()))
}

/// Labels of at least `k` subjects without an identifier's shape.
fn label_tree(values: &ColumnTexts<'_>, k: u64) -> HierarchyProposal {
    let may_stand = |text: &&DistinctText<'_>| {
        let sound =
            !is_missing_text(text.text, false) && text.text.len() < MAX_STRING_BYTES && !text.text.contains('\0');
        text.people >= k && sound && identifier_shapes::detect_shape(text.text).is_none()
    };
    let labels: Vec<DistinctText<'_>> = values.texts.iter().filter(may_stand).copied().collect();
    let rare = values.texts.iter().filter(|text| !is_missing_text(text.text, false)).count() - labels.len();
    let cells: u64 = values.texts.iter().filter(|text| !is_missing_text(text.text, false)).map(|text| text.cells).sum();
    let named: u64 = labels.iter().map(|text| text.cells).sum();
    let remark = (rare > 0).then(|| {
        format!(
            "{rare} value(s) in {} cell(s) are shared by fewer than {k} people: not listed, and suppressed",
            cells - named
        )
    });
    HierarchyProposal { ladder: ProposedHierarchy::Tree(label_groups::propose_groups(&labels)), round: None, remark }
}

fn postal_prefixes(values: &ColumnTexts<'_>) -> HierarchyProposal {
    let longest = values.texts.iter().map(|text| text.text.chars().count()).max().unwrap_or(0);
    let keep: Vec<usize> = (1..longest.min(6)).rev().collect();
    HierarchyProposal::of(if keep.is_empty() { ProposedHierarchy::Flat } else { ProposedHierarchy::Prefix(keep) })
}

fn calendar_units(
    values: &ColumnTexts<'_>,
    reading: &ColumnReading,
    name: &ColumnName,
    people: &TableSubjects,
    wanted: HierarchyOptions,
) -> HierarchyProposal {
    let dates = match &reading.dates {
        DateSpelling::Iso => DateFormats::Iso,
        DateSpelling::Formats(formats) => {
            DateFormats::Formats(formats.iter().filter_map(|text| date_detection::parse_candidate(text)).collect())
        }
        DateSpelling::Epoch("s") => DateFormats::Epoch(EpochUnit::Seconds),
        DateSpelling::Epoch("ms") => DateFormats::Epoch(EpochUnit::Milliseconds),
        DateSpelling::Epoch(_) => DateFormats::Epoch(EpochUnit::Microseconds),
    };
    let moments: Vec<Option<i64>> = values.texts.iter().map(|text| dates.read(text.text.trim_ascii())).collect();
    if name.is_birth() {
        let round = (reading.kind == AttributeType::Timestamp).then_some(ProposedRounding::Unit(CalendarUnit::Day));
        let ladder = ProposedHierarchy::Calendar {
            levels: vec![CalendarUnit::Month, CalendarUnit::Quarter, CalendarUnit::Year],
            domain: None,
        };
        return HierarchyProposal { ladder, round, remark: None };
    }
    let (levels, round) = if reading.kind == AttributeType::Date {
        (vec![CalendarUnit::Week, CalendarUnit::Month, CalendarUnit::Quarter], None)
    } else {
        let on = |unit: i64| moments.iter().flatten().all(|millis| millis.rem_euclid(unit) == 0);
        let round = if on(3_600_000) { CalendarUnit::Hour } else { CalendarUnit::Minute };
        let all = [CalendarUnit::Hour, CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month];
        (all.into_iter().filter(|unit| *unit > round).collect(), Some(ProposedRounding::Unit(round)))
    };
    let years = (!wanted.more_records_follow).then(|| frequent_years(values, &moments, people, wanted.k)).flatten();
    // A time on the last day is after its midnight.
    let end = |year: i32| {
        if reading.kind == AttributeType::Date { format!("{year:04}-12-31") } else { format!("{:04}-01-01", year + 1) }
    };
    let domain = years.map(|(first, last)| (format!("{first:04}-01-01"), end(last)));
    let remark =
        domain.as_ref().map(|_| "days outside min and max are suppressed; omit both if more records follow".to_owned());
    HierarchyProposal { ladder: ProposedHierarchy::Calendar { levels, domain }, round, remark }
}

/// Years with times of at least `k` subjects in or beyond them.
fn frequent_years(
    values: &ColumnTexts<'_>,
    moments: &[Option<i64>],
    people: &TableSubjects,
    k: u64,
) -> Option<(i32, i32)> {
    // Exact in a float for four-digit years.
    let told: Vec<Option<f64>> = moments.iter().map(|millis| millis.map(|millis| millis as f64)).collect();
    let (low, high) = number_intervals::k_subject_limits(values, &told, people, k)?;
    let (first, last) = (moment::civil(low as i64).0, moment::civil(high as i64).0);
    (first <= last && first > 0 && last < 9999).then_some((first, last))
}
