//! In which formats dates and times are spelled.

use super::proposal::Spelled;
use super::tokens::plain_number as number;
use super::values::Text;
use chrono::{Datelike as _, Utc};
use throng_core::values::dates::{Dates, Epoch, Format};
use throng_core::values::moment::DAY;
use throng_core::values::schema::Type;

/// What was found out.
pub(super) struct Dated {
    pub kind: Type,
    pub spelled: Spelled,
    pub missing: Vec<String>,
    pub misfits: u64,
    pub doubt: Option<String>,
}

/// Missing spellings and misfits where texts pass a test; none where too few do.
type Fits<'a> = dyn Fn(&dyn Fn(&str) -> bool) -> Option<(Vec<String>, u64)> + 'a;

/// Days, as exports write them; before a time of day.
const DAYS: [&str; 15] = [
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
/// Times of day behind a day.
const CLOCKS: [&str; 8] =
    ["", " %H:%M:%S%.f", " %H:%M", "T%H:%M:%S%.f", "T%H:%M:%S%.f%:z", " %H:%M:%S%.f%:z", " %I:%M:%S %p", " %I:%M %p"];
/// Formats of one column at most.
const MOST: usize = 4;
/// Texts that all formats are tried on.
const TRIED: usize = 500;
/// 2000-01-01 and 2100-01-01 in seconds since 1970.
const ERA: std::ops::Range<f64> = 946_684_800.0..4_102_444_800.0;

/// Every format of [`DAYS`] with every one of [`CLOCKS`], as texts that live as long as the program.
fn formats() -> Vec<(&'static str, Format)> {
    static SPELLED: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
        DAYS.iter().flat_map(|day| CLOCKS.iter().map(move |clock| format!("{day}{clock}"))).collect()
    });
    SPELLED.iter().filter_map(|text| Some((text.as_str(), format(text)?))).collect()
}

/// The first of the hundred years that years of two digits are taken for: the last of them is this year.
pub(super) fn first_year() -> i32 {
    Utc::now().year() - 99
}

/// A format as a proposal spells it.
pub(super) fn format(text: &str) -> Option<Format> {
    Format::from_year(text, Some(first_year())).ok()
}

/// Numbers that count from 1970, or write a day as eight digits, in a column that is called like a time.
pub(super) fn of_digits(texts: &[Text<'_>], fits: &Fits<'_>) -> Option<Dated> {
    let within = |scale: f64| move |text: &str| number(text).is_some_and(|n| ERA.contains(&(n / scale)));
    for (scale, epoch, read) in
        [(1.0, "s", Epoch::Seconds), (1e3, "ms", Epoch::Milliseconds), (1e6, "us", Epoch::Microseconds)]
    {
        if let Some((missing, misfits)) = fits(&within(scale)) {
            let kind = kind_of(texts, &Dates::Epoch(read));
            return Some(Dated { kind, spelled: Spelled::Epoch(epoch), missing, misfits, doubt: None });
        }
    }
    let dates = Dates::Formats(vec![Format::new("%Y%m%d").ok()?]);
    let is_day = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit()) && dates.read(text).is_some();
    let (missing, misfits) = fits(&is_day)?;
    Some(Dated { kind: Type::Date, spelled: Spelled::Formats(vec!["%Y%m%d"]), missing, misfits, doubt: None })
}

/// Days or moments: in ISO 8601, or in the fewest formats that read them.
pub(super) fn of_texts(texts: &[Text<'_>], fits: &Fits<'_>) -> Option<Dated> {
    // What has no digits is no date: most columns end here.
    let some: Vec<&Text<'_>> =
        texts.iter().filter(|text| text.text.bytes().any(|b| b.is_ascii_digit())).take(TRIED).collect();
    if some.is_empty() {
        return None;
    }
    if let Some((missing, misfits)) = fits(&|text| Dates::Iso.read(text.trim_ascii()).is_some()) {
        let kind = kind_of(texts, &Dates::Iso);
        return Some(Dated { kind, spelled: Spelled::Iso, missing, misfits, doubt: None });
    }
    let mut reads: Vec<(&'static str, Dates, Vec<bool>)> = Vec::new();
    for (text, format) in formats() {
        let dates = Dates::Formats(vec![format]);
        let read: Vec<bool> = some.iter().map(|text| dates.read(text.text.trim_ascii()).is_some()).collect();
        if read.contains(&true) {
            reads.push((text, dates, read));
        }
    }
    let (mut chosen, mut open): (Vec<usize>, Vec<bool>) = (Vec::new(), vec![true; some.len()]);
    while chosen.len() < MOST {
        let gain = |read: &[bool]| read.iter().zip(&open).filter(|(read, open)| **read && **open).count();
        let agrees = |at: usize| chosen.iter().all(|&other| !contradict(&reads[at].1, &reads[other].1));
        // Of equals the first.
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
            && chosen.iter().any(|&own| reads[own].2 == reads[at].2 && contradict(&reads[own].1, &reads[at].1))
    });
    let spelled: Vec<&'static str> = chosen.iter().map(|&at| reads[at].0).collect();
    let all = Dates::Formats(spelled.iter().filter_map(|text| format(text)).collect());
    let (missing, misfits) = fits(&|text| all.read(text.trim_ascii()).is_some())?;
    let two_readings = other
        .map(|at| format!("every one of them reads as {} too, another day: be sure of the right one", reads[at].0));
    let spelled = Spelled::Formats(spelled);
    let short = spelled.has_short_years().then(|| {
        let first = first_year();
        format!("years of two digits are taken for {first} to {}: correct first_year where they are others", first + 99)
    });
    let doubts: Vec<String> = two_readings.into_iter().chain(short).collect();
    let doubt = Some(doubts.join("; ")).filter(|doubt| !doubt.is_empty());
    Some(Dated { kind: kind_of(texts, &all), spelled, missing, misfits, doubt })
}

fn contradict(one: &Dates, other: &Dates) -> bool {
    match (one, other) {
        (Dates::Formats(one), Dates::Formats(other)) => one.iter().any(|a| other.iter().any(|b| a.contradicts(b))),
        _ => false,
    }
}

/// A date where every moment is midnight.
fn kind_of(texts: &[Text<'_>], dates: &Dates) -> Type {
    let midnight =
        |text: &Text<'_>| dates.read(text.text.trim_ascii()).is_none_or(|millis| millis.rem_euclid(DAY) == 0);
    if texts.iter().all(midnight) { Type::Date } else { Type::Timestamp }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Option<Dated> {
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text { text, cells: 1, people: 1 }).collect();
        of_texts(&texts, &|is| texts.iter().all(|text| is(text.text)).then(|| (vec![], 0)))
    }

    #[test]
    fn formats_of_exports_are_found() {
        for (texts, kind, spelled) in [
            (&["2021-05-24", "2021-06-01"][..], Type::Date, Spelled::Iso),
            (&["2021-05-24T10:00:00Z"], Type::Timestamp, Spelled::Iso),
            (&["5/24/2016", "4/1/2016"], Type::Date, Spelled::Formats(vec!["%m/%d/%Y"])),
            (&["24/5/2016", "1/4/2016"], Type::Date, Spelled::Formats(vec!["%d/%m/%Y"])),
            (&["24.12.2016"], Type::Date, Spelled::Formats(vec!["%d.%m.%Y"])),
            (
                &["5/12/2016 4:35:00 PM", "5/13/2016 1:00:00 AM"],
                Type::Timestamp,
                Spelled::Formats(vec!["%m/%d/%Y %I:%M:%S %p"]),
            ),
            (&["2021-05-24", "5/24/2021"], Type::Date, Spelled::Formats(vec!["%Y-%m-%d", "%m/%d/%Y"])),
        ] {
            let dated = found(texts).expect("dates");
            assert_eq!((dated.kind, dated.spelled, dated.doubt.is_some()), (kind, spelled, false), "{texts:?}");
        }
        let fitbit = found(&["05/24/16 10:00:00", "04/01/16 23:59:05"]).expect("times");
        assert_eq!((fitbit.kind, fitbit.doubt.is_some()), (Type::Timestamp, true));
        assert_eq!(fitbit.spelled, Spelled::Formats(vec!["%m/%d/%y %H:%M:%S%.f"]));
        assert!(found(&["1/2/2016", "3/4/2016"]).expect("dates").doubt.is_some(), "two readings");
        assert!(found(&["10:00:00"]).is_none() && found(&["none", "of", "these"]).is_none());
    }
}
