//! Purposes of a release, and the default for a set of records.

use crate::cli::outcome::Failure;
use crate::cli::text;
use crate::dataset::infer::{Inferred, TooFewSteps};
use crate::start::forms::{event_times, missing_for_series, quoted};
use crate::start::series::is_signal;
use anyhow::anyhow;

/// Records of a person in the mean, and days or hours of the median person, from which statistics over time are the default. A series
/// shows nobody with fewer than 4 buckets.
const MANY_RECORDS: u64 = 10;
const MANY_BUCKETS: u64 = 8;
/// Buckets with values from which a person is shown in a series.
const SHOWN_FROM: u64 = 4;

/// Purpose of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// Statistics of cohorts over time: mean, deviation and quartiles of every number, a row each day. Represents most records
    Dashboards,
    /// Every four weeks the means and covariances of a few numbers, from which linear models are fitted, and no rows of days
    Models,
    /// Single records, as fragments whose values k people share
    Rows,
    /// Nothing leaves: the risk is measured
    Monitoring,
}

impl Purpose {
    /// The purpose of a typed name.
    ///
    /// # Errors
    /// Names of no purpose.
    pub fn read(name: &str) -> Result<Self, Failure> {
        <Self as clap::ValueEnum>::from_str(name, true)
            .map_err(|_| Failure::Usage(anyhow!("{name:?} is no purpose: dashboards, models, rows or monitoring")))
    }

    /// Whether only series leave.
    #[must_use]
    pub fn is_series(self) -> bool {
        matches!(self, Self::Dashboards | Self::Models)
    }

    /// Refuses a purpose that the records do not allow.
    ///
    /// # Errors
    /// Statistics over time of records without people, times or numbers.
    pub fn refuse_unsuited(self, inferred: &Inferred) -> Result<(), Failure> {
        let schema = &inferred.schema;
        match missing(inferred).filter(|_| self.is_series()) {
            Some(missing) => Err(Failure::Usage(anyhow!(
                "statistics over time need people, times and numbers: {missing}. Single records need none of them: --for rows"
            ))),
            None if self == Self::Models && schema.attributes.iter().filter(|a| is_signal(a)).count() < 2 => {
                Err(Failure::Usage(anyhow!(
                    "models need two numbers that change within a person, and there is one: --for dashboards"
                )))
            }
            None => Ok(()),
        }
    }
}

/// The part that statistics over time need and the records lack, in words; none where they have all.
fn missing(inferred: &Inferred) -> Option<String> {
    let missing = missing_for_series(&inferred.schema)?;
    let unmeasured = missing.excluded().iter().filter_map(|name| Some((name.clone(), *inferred.unmeasured.get(name)?)));
    let (names, steps): (Vec<String>, Vec<u64>) = unmeasured.unzip();
    Some(match steps.iter().max() {
        None => missing.to_string(),
        Some(steps) => format!(
            "the records are too few to measure whether {} changes within a person: there are {} of a record and the next one of the same person, and {} are needed (give records of more days or of more people)",
            quoted(&names),
            text::counted(*steps, "pair"),
            TooFewSteps::NEEDED
        ),
    })
}

/// Buckets of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// Days.
    Day,
    /// Hours: people of the records have fewer days.
    Hour,
}

impl Bucket {
    /// The longest bucket of which the median person has many; none where that is neither days nor hours.
    fn of_records(inferred: &Inferred) -> Option<Self> {
        let cadences = event_times(&inferred.schema).filter_map(|name| inferred.cadences.get(name));
        cadences.fold(None, |found, cadence| match found {
            Some(Self::Day) => found,
            _ if cadence.days >= MANY_BUCKETS => Some(Self::Day),
            _ if cadence.hours >= MANY_BUCKETS => Some(Self::Hour),
            _ => found,
        })
    }

    /// The bucket for records, of a stream and of records with few of both days.
    #[must_use]
    pub fn choose(inferred: &Inferred, is_stream: bool) -> Self {
        if is_stream { Self::Day } else { Self::of_records(inferred).unwrap_or(Self::Day) }
    }
}

/// Returns a note where the median person has records of too few days for a series of days; none where they have enough.
#[must_use]
pub fn too_short(inferred: &Inferred) -> Option<String> {
    let days = event_times(&inferred.schema).filter_map(|name| inferred.cadences.get(name)).map(|cadence| cadence.days);
    let days = days.max().filter(|_| Bucket::of_records(inferred).is_none()).filter(|days| *days < SHOWN_FROM)?;
    Some(format!(
        "note: most people have records of at most {}, and a series of days shows people with values on {SHOWN_FROM} days or more: give records of a longer time, or shorter buckets (every in [[series]])",
        text::counted(days, "day")
    ))
}

/// Returns the purpose for records where none is given, and the reason in one line.
#[must_use]
pub fn suggest(inferred: &Inferred, is_stream: bool) -> (Purpose, String) {
    let each = inferred.records / inferred.people.max(1);
    let has_buckets = is_stream || Bucket::of_records(inferred).is_some();
    let rows = |why: String| (Purpose::Rows, format!("purpose: rows (single records, since {why})"));
    match missing(inferred) {
        Some(missing) => rows(missing),
        None if each < MANY_RECORDS => rows(format!(
            "people have fewer than {MANY_RECORDS} records each; for statistics over time: --for dashboards"
        )),
        None if !has_buckets => rows(format!(
            "most people have records of fewer than {MANY_BUCKETS} days or hours; for statistics over time: --for dashboards"
        )),
        None => {
            let (people, each) = (text::number(inferred.people), text::number(each));
            let why = format!(
                "purpose: dashboards (statistics of cohorts over time, since {people} people have {each} records each, and most of those could not leave one by one; for single records: --for rows)"
            );
            (Purpose::Dashboards, why)
        }
    }
}
