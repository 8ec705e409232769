//! Comparison of the forms of a release on a sample: what each represents, how far its means are off, and how well it resists attacks.

use crate::cli::measured::{Measured, table};
use crate::cli::outcome::Failure;
use crate::cli::rehearsal::{Rehearsal, Written, rehearse};
use crate::cli::summary::UNREADABLE;
use crate::cli::text;
use crate::config::{Config, SinkKind};
use crate::evaluation::attack::series::Panel;
use crate::evaluation::attack::{self, Effort, Promises, Release, Yield};
use crate::evaluation::series::{Evidence, NoiseRatio, Usefulness, of_fragments};
use crate::start::forms::{as_daily_series, as_fragments, missing_for_series};
use crate::start::series::series_terms;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use throng_core::values::schema::Schema;

/// Targets of each attack: enough for an interval of about ± 7 percentage points.
const TARGETS: usize = 200;
/// Attributes that an attacker knows.
const KNOWN: usize = 2;
/// Records of a sample beyond which no attack is tried, and no form besides the configured one.
const MOST_RECORDS: u64 = 200_000;
/// Attributes beyond which no groups are chosen for a form of single records that is not configured: the choice takes minutes.
const MOST_ATTRIBUTES: usize = 30;

/// Form of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Single records.
    Fragments,
    /// Statistics of cohorts over time.
    Series,
}

/// One form of a release, measured on a sample.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Form {
    /// Its kind.
    pub form: Kind,
    /// Whether the configuration has it.
    pub is_configured: bool,
    /// Names of the series, or of the groups of fragments.
    pub outputs: Vec<String>,
    /// People and records represented, error of a daily mean.
    #[serde(flatten)]
    pub usefulness: Usefulness,
    /// The attack whose interval begins furthest above chance; none where none was tried.
    pub best_attack: Option<BestAttack>,
    /// Noise of each signal of the series with noise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<NoiseRatio>,
}

/// The attack whose interval begins furthest above chance: one lucky guess is no attack.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BestAttack {
    /// The attack.
    pub attack: &'static str,
    /// Input of the attack, in words.
    pub given: String,
    /// Targets that were tried.
    pub trials: u64,
    /// Mean probability of being right.
    pub rate: f64,
    /// The 95 % interval of the rate.
    pub interval: [f64; 2],
    /// The same by guessing without the release.
    pub chance: f64,
    /// Attacks that were tried.
    pub of: usize,
}

impl BestAttack {
    fn of(yields: &[Yield]) -> Option<Self> {
        let Yield { attack, given, trials, rate, interval, chance, .. } =
            attack::furthest_above_chance(yields)?.clone();
        let of = yields.iter().filter(|found| found.trials > 0).count();
        Some(Self { attack, given, trials, rate, interval, chance, of })
    }

    /// The attack in one sentence.
    fn described(&self) -> String {
        let [low, high] = self.interval;
        format!(
            "{} given {}: {} of {}, 95 % interval {} to {}, by chance {}; {} attacks were tried",
            self.attack,
            self.given,
            text::percent(self.rate),
            text::counted(self.trials, "trial"),
            text::percent(low),
            text::percent(high),
            text::percent(self.chance),
            self.of
        )
    }
}

/// The sample and the configuration that is tried on it.
pub(super) struct Trial<'a> {
    /// The configuration as it was read.
    pub config: &'a Config,
    /// Its file, for messages.
    pub file: &'a str,
    /// The records.
    pub input: &'a Path,
    /// Their format.
    pub written: Written,
    /// Set by signals.
    pub stop: &'a Arc<AtomicBool>,
}

impl Trial<'_> {
    /// Measures the forms that `rehearsal` has released, and the one that the configuration lacks where the records allow it.
    pub fn compare(&self, rehearsal: &Rehearsal, records: u64) -> Result<Vec<Form>, Failure> {
        let with_attacks = records <= MOST_RECORDS;
        let mut forms = measure(rehearsal, self.file, self.input, with_attacks, true)?;
        let has = |kind: Kind| forms.iter().any(|form| form.form == kind);
        let other = match (has(Kind::Fragments), has(Kind::Series)) {
            // Moments represent complete days alone.
            (false, true) if has_only_moments(self.config) => as_daily_series(self.config, &rehearsal.schema),
            (true, false) => as_daily_series(self.config, &rehearsal.schema),
            (false, true) if rehearsal.schema.attributes.len() <= MOST_ATTRIBUTES => Some(as_fragments(self.config)),
            _ => None,
        };
        if let Some(other) = other.filter(|_| with_attacks) {
            // A form that the rest of the configuration does not allow is left out of the comparison.
            match rehearse(other, self.file, self.input, self.written, true, self.stop) {
                Ok(rehearsal) => forms.extend(measure(&rehearsal, self.file, self.input, with_attacks, false)?),
                Err(Failure::Problems(_) | Failure::Usage(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        forms.sort_by_key(|form| !form.is_configured);
        Ok(forms)
    }

    /// The refusal of a release that represents too little, with the figures of a form that represents more.
    pub fn refusal(&self, rehearsal: &Rehearsal, forms: &[Form]) -> Option<Failure> {
        if self.config.sink.kind == SinkKind::None {
            return None;
        }
        let minimum = self.config.release.min_represented;
        let found = rehearsal.telemetry.represented().best().filter(|found| found.share() < minimum)?;
        let share = found.share();
        let better = forms.iter().find(|form| !form.is_configured && form.records_share() >= minimum.max(share));
        let remedy = match better {
            Some(form) => self.remedy(form),
            None if found.share_of_readable() >= minimum => UNREADABLE.to_owned(),
            None => no_better(forms, &rehearsal.schema),
        };
        Some(Failure::Found(anyhow::anyhow!(
            "the release of {} would represent {} of its records{}, and release.min_represented asks for {}: {remedy}; release.min_represented = 0 accepts it",
            self.input.display(),
            text::percent(share),
            found.note(),
            text::percent(minimum)
        )))
    }

    fn remedy(&self, form: &Form) -> String {
        let Usefulness { people, people_represented, .. } = form.usefulness;
        let (name, change) = match form.form {
            Kind::Series if has_only_moments(self.config) => ("rows of days", "remove moments from the series"),
            Kind::Series => ("series", "add [[series]] name = \"daily\", and release.fragments = false"),
            Kind::Fragments => ("single records", "set release.fragments = true"),
        };
        let purpose = match form.form {
            Kind::Series => "dashboards",
            Kind::Fragments => "rows",
        };
        format!(
            "{name} would represent {} of {} people and {} of the records ({change}, or begin again: throng init {} --for {purpose})",
            text::number(people_represented),
            text::number(people),
            text::percent(form.records_share()),
            self.input.display()
        )
    }
}

/// Advice where no other form represents enough.
fn no_better(forms: &[Form], schema: &Schema) -> String {
    if forms.iter().any(|form| form.form == Kind::Series) {
        return "no form represents more; longer buckets (every), fewer people a cohort (cohort.size, privacy.k) or more people help"
            .to_owned();
    }
    match missing_for_series(schema) {
        Some(missing) => format!(
            "statistics over time would represent more, but {missing}; privacy.max_lines_per_subject = 0 releases more lines of a person, at a price (docs/guarantees.md)"
        ),
        None => "no other form was tried".to_owned(),
    }
}

impl Form {
    fn records_share(&self) -> f64 {
        share(self.usefulness.records_represented, self.usefulness.records)
    }

    fn name(&self) -> String {
        let name = match self.form {
            Kind::Fragments => "single records".to_owned(),
            Kind::Series => format!("series {}", self.outputs.join(", ")),
        };
        if self.is_configured { format!("{name} (configured)") } else { name }
    }

    fn row(&self) -> Vec<String> {
        let Usefulness { people, people_represented, records, records_represented, error_ratio, .. } = self.usefulness;
        let unknown = || "-".to_owned();
        vec![
            self.name(),
            format!("{} of {}", text::number(people_represented), text::number(people)),
            format!("{} ({})", text::percent(share(records_represented, records)), text::number(records_represented)),
            error_ratio.map_or_else(unknown, |ratio| format!("{ratio:.2}")),
            self.best_attack.as_ref().map_or_else(unknown, |best| {
                format!("{} {} ({})", best.attack, text::percent(best.rate), text::percent(best.chance))
            }),
        ]
    }
}

/// Whether no series has rows of buckets.
fn has_only_moments(config: &Config) -> bool {
    !config.series.is_empty() && config.series.iter().all(|series| series.moments.is_some())
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Noise of each series against the sampling error, for its worst signal, with advice.
pub(super) fn noise(forms: &[Form]) -> Vec<String> {
    let all: Vec<&NoiseRatio> = forms.iter().flat_map(|form| &form.noise).collect();
    let is_worst = |of: &&&NoiseRatio| all.iter().all(|other| other.series != of.series || other.ratio <= of.ratio);
    let line = |of: &&NoiseRatio| {
        let people = text::number(of.people.round() as u64);
        let advice = if of.ratio > 1.0 {
            format!(
                ": remove epsilon_per_week, name fewer signals or give longer buckets below about {} people in a bucket",
                text::number(of.people_needed().ceil() as u64)
            )
        } else {
            String::new()
        };
        format!(
            "series {}: noise is {:.2} times the sampling error of the mean of {} over {people} people{advice}",
            text::clean(&of.series),
            of.ratio,
            text::clean(&of.signal)
        )
    };
    all.iter().filter(is_worst).map(line).collect()
}

/// The table of all forms, and below it the rule by which the best attack is chosen, with its figures.
pub(super) fn compared(forms: &[Form]) -> String {
    let head = ["form", "people", "records", "error ÷ sampling error", "best attack (by chance)"];
    let mut out = table(&head, &forms.iter().map(Form::row).collect::<Vec<_>>());
    let best: Vec<String> = forms
        .iter()
        .filter_map(|form| Some(format!("{}: {}", form.name(), form.best_attack.as_ref()?.described())))
        .collect();
    if !best.is_empty() {
        out += "\nbest attack: the one whose 95 % interval begins furthest above chance. Another draw can put another one first\n";
        best.iter().for_each(|line| out += &text::wrapped("  - ", line));
    }
    out
}

/// Measures every form that a rehearsal has released.
fn measure(
    rehearsal: &Rehearsal,
    file: &str,
    input: &Path,
    with_attacks: bool,
    is_configured: bool,
) -> Result<Vec<Form>, Failure> {
    let config = Config::clone(&rehearsal.config);
    let has_fragments = config.release.fragments;
    let series: Vec<String> = config.series.iter().map(|series| series.name.clone()).collect();
    let shapes = if has_fragments { rehearsal.shapes.clone() } else { Vec::new() };
    let released = config.sink.path.clone();
    let lineage = rehearsal.lineage();
    let files = (input, released.as_path(), Some(lineage.as_path()));
    let measured = Measured::read(config, &rehearsal.schema, shapes, file, files)?;
    let effort = Effort { targets: TARGETS, known: KNOWN, seed: 0 };
    let mut forms = Vec::new();
    if has_fragments {
        let Measured { config, original, facts, shapes, groups, .. } = &measured;
        let daily = as_daily_series(config, &original.schema);
        let daily = daily.and_then(|config| series_terms(&config, &original.schema, file).ok().flatten());
        let usefulness = of_fragments(original, groups, daily.as_ref()).unwrap_or_default();
        let promises = Promises::of(config, original.schema.subject.is_some());
        let release = Release::new(original, facts, shapes, groups, promises);
        let yields = if with_attacks { attack::run(&release, effort, &|_| ()) } else { Vec::new() };
        forms.push(Form {
            form: Kind::Fragments,
            is_configured,
            outputs: groups.iter().map(|group| group.name.clone()).collect(),
            usefulness,
            best_attack: BestAttack::of(&yields),
            noise: Vec::new(),
        });
    }
    if let Some(terms) = &rehearsal.terms {
        let evidence = Evidence::read(&measured.config, terms, &measured.original, &released, &lineage)?;
        let yields =
            if with_attacks { attack::series::run(&Panel::of(&evidence), effort, &|_| ()) } else { Vec::new() };
        forms.push(Form {
            form: Kind::Series,
            is_configured,
            outputs: series,
            usefulness: evidence.usefulness(),
            best_attack: BestAttack::of(&yields),
            noise: evidence.noise_ratios(),
        });
    }
    Ok(forms)
}
