//! Purposes of a release.

use crate::cli::outcome::Failure;
use crate::cli::text_format;
use crate::dataset::infer::{InferredSchema, TooFewSteps};
use crate::start::release_forms::{event_times, missing_for_series, quoted};
use crate::start::series_settings::is_signal;
use anyhow::anyhow;

/// Thresholds for series as the default: mean records, and days or hours of the median subject.
const MIN_MEAN_RECORDS: u64 = 10;
const MIN_MEDIAN_BUCKETS: u64 = 8;
/// A series needs this many buckets per subject.
const MIN_SHOWN_BUCKETS: u64 = 4;

/// Purpose of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// Statistics of cohorts over time: mean, deviation and quartiles of every number, one row per day. Represents
    /// most records
    Dashboards,
    /// Means and covariances of a few numbers every four weeks, for linear models, without rows of days
    Models,
    /// Single records, as fragments with values that k subjects share
    Rows,
    /// No release: only measure the risk
    Monitoring,
}

impl Purpose {
    /// Parses a purpose.
    ///
    /// # Errors
    /// Fails for an unknown name.
    pub fn parse_purpose(name: &str) -> Result<Self, Failure> {
        <Self as clap::ValueEnum>::from_str(name, true).map_err(|_| {
            Failure::Usage(anyhow!("unknown purpose {name:?}: choose dashboards, models, rows or monitoring"))
        })
    }

    /// Returns true for series without fragments.
    #[must_use]
    pub fn is_series(self) -> bool {
        matches!(self, Self::Dashboards | Self::Models)
    }

    /// Refuses a purpose that the records do not allow.
    ///
    /// # Errors
    /// Fails for series without subjects, times or numbers, and for models with one number.
    pub fn refuse_unsuited(self, inferred: &InferredSchema) -> Result<(), Failure> {
        let schema = &inferred.schema;
        match missing_for_statistics(inferred).filter(|_| self.is_series()) {
            Some(missing) => Err(Failure::Usage(anyhow!(
                "statistics over time need people, times and numbers: {missing} (single records need none of them: --for rows)"
            ))),
            None if self == Self::Models && schema.attributes.iter().filter(|a| is_signal(a)).count() < 2 => {
                Err(Failure::Usage(anyhow!(
                    "models need two numbers that change within a person, but there is only one (use --for dashboards)"
                )))
            }
            None => Ok(()),
        }
    }
}

/// `None` if nothing is missing.
fn missing_for_statistics(inferred: &InferredSchema) -> Option<String> {
    let missing = missing_for_series(&inferred.schema)?;
    let unmeasured = missing.excluded().iter().filter_map(|name| Some((name.clone(), *inferred.unmeasured.get(name)?)));
    let (names, steps): (Vec<String>, Vec<u64>) = unmeasured.unzip();
    Some(match steps.iter().max() {
        None => missing.to_string(),
        Some(steps) => format!(
            "the records are too few to measure whether {} changes within a person: there are {} of consecutive records of one person, and {} are needed (give records of more days or of more people)",
            quoted(&names),
            text_format::counted(*steps, "pair"),
            TooFewSteps::NEEDED
        ),
    })
}

/// Bucket length of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketLength {
    /// Days.
    Day,
    /// Hours, for short histories.
    Hour,
}

impl BucketLength {
    /// Longest length with enough buckets for the median subject.
    fn for_cadence(inferred: &InferredSchema) -> Option<Self> {
        let cadences = event_times(&inferred.schema).filter_map(|name| inferred.cadences.get(name));
        cadences.fold(None, |found, cadence| match found {
            Some(Self::Day) => found,
            _ if cadence.days >= MIN_MEDIAN_BUCKETS => Some(Self::Day),
            _ if cadence.hours >= MIN_MEDIAN_BUCKETS => Some(Self::Hour),
            _ => found,
        })
    }

    /// Chooses days for a stream, or if neither length has enough buckets.
    #[must_use]
    pub fn choose(inferred: &InferredSchema, is_stream: bool) -> Self {
        if is_stream { Self::Day } else { Self::for_cadence(inferred).unwrap_or(Self::Day) }
    }
}

/// Returns a note if the median subject has too few days.
#[must_use]
pub fn short_history_note(inferred: &InferredSchema) -> Option<String> {
    let days = event_times(&inferred.schema).filter_map(|name| inferred.cadences.get(name)).map(|cadence| cadence.days);
    let days = days
        .max()
        .filter(|_| BucketLength::for_cadence(inferred).is_none())
        .filter(|days| *days < MIN_SHOWN_BUCKETS)?;
    Some(format!(
        "note: most people have records of at most {}, but a daily series includes only people with values on {MIN_SHOWN_BUCKETS} days or more: give records of a longer time, or shorter buckets (every in [[series]])",
        text_format::counted(days, "day")
    ))
}

/// Returns the default purpose and its reason.
#[must_use]
pub fn suggest_purpose(inferred: &InferredSchema, is_stream: bool) -> (Purpose, String) {
    let each = inferred.records / inferred.people.max(1);
    let has_buckets = is_stream || BucketLength::for_cadence(inferred).is_some();
    let rows = |why: String| (Purpose::Rows, format!("purpose: rows (single records, since {why})"));
    match missing_for_statistics(inferred) {
        Some(missing) => rows(missing),
        None if each < MIN_MEAN_RECORDS => rows(format!(
            "people have fewer than {MIN_MEAN_RECORDS} records each; for statistics over time: --for dashboards"
        )),
        None if !has_buckets => rows(format!(
            "most people have records of fewer than {MIN_MEDIAN_BUCKETS} days or hours; for statistics over time: --for dashboards"
        )),
        None => {
            let (people, each) = (text_format::number(inferred.people), text_format::number(each));
            let why = format!(
                "purpose: dashboards (statistics of cohorts over time, since {people} people have {each} records each, and most of these could not be released one by one; for single records: --for rows)"
            );
            (Purpose::Dashboards, why)
        }
    }
}
