//! Detects date and time formats.

use super::column_texts::DistinctText;
use super::schema_proposal::DateSpelling;
use super::text_values::parse_point_number as number;
use chrono::{Datelike as _, Utc};
use throng_core::values::date_formats::{DateFormat, DateFormats, EpochUnit};
use throng_core::values::moment::DAY;
use throng_core::values::schema::AttributeType;

pub(super) struct DetectedDates {
    pub kind: AttributeType,
    pub spelled: DateSpelling,
    pub missing: Vec<String>,
    pub misfits: u64,
    pub doubt: Option<String>,
}

/// Returns missing spellings and misfits, or `None` if too few texts pass.
type DateTest<'a> = dyn Fn(&dyn Fn(&str) -> bool) -> Option<(Vec<String>, u64)> + 'a;

/// Days of common exports.
const DAY_FORMATS: [&str; 15] = [
    "%Y-%m-%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d %B %Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
];
/// Times after a day.
const CLOCK_FORMATS: [&str; 8] =
    ["", " %H:%M:%S%.f", " %H:%M", "T%H:%M:%S%.f", "T%H:%M:%S%.f%:z", " %H:%M:%S%.f%:z", " %I:%M:%S %p", " %I:%M %p"];
const MAX_COLUMN_FORMATS: usize = 4;
/// On which all formats are tried.
const MAX_TRIED_TEXTS: usize = 500;
/// 2000-01-01 to 2100-01-01 in seconds since 1970.
const EPOCH_RANGE: std::ops::Range<f64> = 946_684_800.0..4_102_444_800.0;

fn candidate_formats() -> Vec<(&'static str, DateFormat)> {
    static SPELLED: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
        DAY_FORMATS.iter().flat_map(|day| CLOCK_FORMATS.iter().map(move |clock| format!("{day}{clock}"))).collect()
    });
    SPELLED.iter().filter_map(|text| Some((text.as_str(), parse_candidate(text)?))).collect()
}

/// Two-digit years denote a hundred years that end now.
pub(super) fn first_year() -> i32 {
    Utc::now().year() - 99
}

pub(super) fn parse_candidate(text: &str) -> Option<DateFormat> {
    DateFormat::with_first_year(text, Some(first_year())).ok()
}

/// Numbers since 1970 and eight-digit days, in a column named as a time.
pub(super) fn detect_numeric_dates(texts: &[DistinctText<'_>], fits: &DateTest<'_>) -> Option<DetectedDates> {
    let within = |scale: f64| move |text: &str| number(text).is_some_and(|n| EPOCH_RANGE.contains(&(n / scale)));
    for (scale, epoch, read) in
        [(1.0, "s", EpochUnit::Seconds), (1e3, "ms", EpochUnit::Milliseconds), (1e6, "us", EpochUnit::Microseconds)]
    {
        if let Some((missing, misfits)) = fits(&within(scale)) {
            let kind = date_or_timestamp(texts, &DateFormats::Epoch(read));
            return Some(DetectedDates { kind, spelled: DateSpelling::Epoch(epoch), missing, misfits, doubt: None });
        }
    }
    let dates = DateFormats::Formats(vec![DateFormat::new("%Y%m%d").ok()?]);
    let is_day = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit()) && dates.read(text).is_some();
    let (missing, misfits) = fits(&is_day)?;
    Some(DetectedDates {
        kind: AttributeType::Date,
        spelled: DateSpelling::Formats(vec!["%Y%m%d"]),
        missing,
        misfits,
        doubt: None,
    })
}

/// ISO 8601, or the fewest formats that read all.
pub(super) fn detect_text_dates(texts: &[DistinctText<'_>], fits: &DateTest<'_>) -> Option<DetectedDates> {
    // Texts without digits are not dates.
    let some: Vec<&DistinctText<'_>> =
        texts.iter().filter(|text| text.text.bytes().any(|b| b.is_ascii_digit())).take(MAX_TRIED_TEXTS).collect();
    if some.is_empty() {
        return None;
    }
    if let Some((missing, misfits)) = fits(&|text| DateFormats::Iso.read(text.trim_ascii()).is_some()) {
        let kind = date_or_timestamp(texts, &DateFormats::Iso);
        return Some(DetectedDates { kind, spelled: DateSpelling::Iso, missing, misfits, doubt: None });
    }
    let mut reads: Vec<(&'static str, DateFormats, Vec<bool>)> = Vec::new();
    for (text, format) in candidate_formats() {
        let dates = DateFormats::Formats(vec![format]);
        let read: Vec<bool> = some.iter().map(|text| dates.read(text.text.trim_ascii()).is_some()).collect();
        if read.contains(&true) {
            reads.push((text, dates, read));
        }
    }
    let (mut chosen, mut open): (Vec<usize>, Vec<bool>) = (Vec::new(), vec![true; some.len()]);
    while chosen.len() < MAX_COLUMN_FORMATS {
        let gain = |read: &[bool]| read.iter().zip(&open).filter(|(read, open)| **read && **open).count();
        let agrees = |at: usize| chosen.iter().all(|&other| !formats_contradict(&reads[at].1, &reads[other].1));
        // The first of equals.
        let best = (0..reads.len()).rev().filter(|at| agrees(*at)).max_by_key(|&at| gain(&reads[at].2))?;
        if gain(&reads[best].2) == 0 {
            break;
        }
        for (open, read) in open.iter_mut().zip(&reads[best].2) {
            *open &= !read;
        }
        chosen.push(best);
        if !open.contains(&true) {
            break;
        }
    }
    let other = (0..reads.len()).find(|&at| {
        !chosen.contains(&at)
            && chosen.iter().any(|&own| reads[own].2 == reads[at].2 && formats_contradict(&reads[own].1, &reads[at].1))
    });
    let spelled: Vec<&'static str> = chosen.iter().map(|&at| reads[at].0).collect();
    let all = DateFormats::Formats(spelled.iter().filter_map(|text| parse_candidate(text)).collect());
    let (missing, misfits) = fits(&|text| all.read(text.trim_ascii()).is_some())?;
    let two_readings =
        other.map(|at| format!("all values also match {}, with another date: choose the right format", reads[at].0));
    let spelled = DateSpelling::Formats(spelled);
    let short = spelled.has_short_years().then(|| {
        let first = first_year();
        format!("two-digit years are read as {first} to {}: correct first_year if this is wrong", first + 99)
    });
    let doubts: Vec<String> = two_readings.into_iter().chain(short).collect();
    let doubt = Some(doubts.join("; ")).filter(|doubt| !doubt.is_empty());
    Some(DetectedDates { kind: date_or_timestamp(texts, &all), spelled, missing, misfits, doubt })
}

fn formats_contradict(one: &DateFormats, other: &DateFormats) -> bool {
    match (one, other) {
        (DateFormats::Formats(one), DateFormats::Formats(other)) => {
            one.iter().any(|a| other.iter().any(|b| a.contradicts(b)))
        }
        _ => false,
    }
}

/// A date if every time is midnight.
fn date_or_timestamp(texts: &[DistinctText<'_>], dates: &DateFormats) -> AttributeType {
    let midnight =
        |text: &DistinctText<'_>| dates.read(text.text.trim_ascii()).is_none_or(|millis| millis.rem_euclid(DAY) == 0);
    if texts.iter().all(midnight) { AttributeType::Date } else { AttributeType::Timestamp }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Option<DetectedDates> {
        let texts: Vec<DistinctText<'_>> =
            texts.iter().map(|text| DistinctText { text, cells: 1, people: 1 }).collect();
        detect_text_dates(&texts, &|is| texts.iter().all(|text| is(text.text)).then(|| (vec![], 0)))
    }

    #[test]
    fn date_formats_of_exports_are_detected() {
        for (texts, kind, spelled) in [
            (&["2021-05-24", "2021-06-01"][..], AttributeType::Date, DateSpelling::Iso),
            (&["2021-05-24T10:00:00Z"], AttributeType::Timestamp, DateSpelling::Iso),
            (&["5/24/2016", "4/1/2016"], AttributeType::Date, DateSpelling::Formats(vec!["%m/%d/%Y"])),
            (&["24/5/2016", "1/4/2016"], AttributeType::Date, DateSpelling::Formats(vec!["%d/%m/%Y"])),
            (&["24.12.2016"], AttributeType::Date, DateSpelling::Formats(vec!["%d.%m.%Y"])),
            (
                &["5/12/2016 4:35:00 PM", "5/13/2016 1:00:00 AM"],
                AttributeType::Timestamp,
                DateSpelling::Formats(vec!["%m/%d/%Y %I:%M:%S %p"]),
            ),
            (&["2021-05-24", "5/24/2021"], AttributeType::Date, DateSpelling::Formats(vec!["%Y-%m-%d", "%m/%d/%Y"])),
        ] {
            let dated = found(texts).expect("dates");
            assert_eq!((dated.kind, dated.spelled, dated.doubt.is_some()), (kind, spelled, false), "{texts:?}");
        }
        let fitbit = found(&["05/24/16 10:00:00", "04/01/16 23:59:05"]).expect("times");
        assert_eq!((fitbit.kind, fitbit.doubt.is_some()), (AttributeType::Timestamp, true));
        assert_eq!(fitbit.spelled, DateSpelling::Formats(vec!["%m/%d/%y %H:%M:%S%.f"]));
        assert!(found(&["1/2/2016", "3/4/2016"]).expect("dates").doubt.is_some(), "two readings");
        assert!(found(&["10:00:00"]).is_none() && found(&["none", "of", "these"]).is_none());
    }
}
