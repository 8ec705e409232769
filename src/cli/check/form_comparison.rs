//! Comparison of release forms on a sample.

use crate::cli::loaded_release::{LoadedRelease, aligned_table};
use crate::cli::outcome::Failure;
use crate::cli::run_summary::UNREADABLE_ADVICE;
use crate::cli::text_format;
use crate::cli::trial_run::{RecordFileFormat, TrialRun, execute_trial_run};
use crate::config::{Config, SinkKind};
use crate::evaluation::release_guarantees::release_guarantees;
use crate::evaluation::series_evidence::read_series_evidence;
use crate::start::release_forms::{as_daily_series, as_fragments, missing_for_series};
use crate::start::series_settings::series_terms;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use throng_core::values::schema::Schema;
use throng_eval::attack::series::Panel;
use throng_eval::attack::{self, AttackEffort, AttackInput, AttackYield};
use throng_eval::series::{NoiseRatio, ReleaseUtility, fragment_utility};

/// Interval of about ± 7 percentage points.
const TARGETS_PER_ATTACK: usize = 200;
const KNOWN_ATTRIBUTES: usize = 2;
/// Above it, no attacks and no other form.
const MAX_ATTACKED_RECORDS: u64 = 200_000;
/// Above it, the group choice takes minutes.
const MAX_GROUPED_ATTRIBUTES: usize = 30;

/// Form of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReleaseFormKind {
    /// Single records.
    Fragments,
    /// Statistics of cohorts.
    Series,
}

/// Form measured on a sample.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MeasuredForm {
    /// Kind.
    pub form: ReleaseFormKind,
    /// The configuration releases this form.
    pub is_configured: bool,
    /// Series or fragment groups.
    pub outputs: Vec<String>,
    /// Represented share, and error of a daily mean.
    #[serde(flatten)]
    pub usefulness: ReleaseUtility,
    /// Attack furthest above chance, if any was tried.
    pub best_attack: Option<BestAttack>,
    /// Noise per signal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<NoiseRatio>,
}

/// Attack with the interval furthest above chance; its lower bound excludes luck.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BestAttack {
    /// Name.
    pub attack: &'static str,
    /// Input of the attack.
    pub given: String,
    /// Tried targets.
    pub trials: u64,
    /// Probability of a correct answer.
    pub rate: f64,
    /// 95 % interval of the rate.
    pub interval: [f64; 2],
    /// Rate without the release.
    pub chance: f64,
    /// Tried attacks.
    pub of: usize,
}

impl BestAttack {
    fn furthest_from_chance(yields: &[AttackYield]) -> Option<Self> {
        let AttackYield { attack, given, trials, rate, interval, chance, .. } =
            attack::furthest_above_chance(yields)?.clone();
        let of = yields.iter().filter(|found| found.trials > 0).count();
        Some(Self { attack, given, trials, rate, interval, chance, of })
    }

    fn attack_sentence(&self) -> String {
        let [low, high] = self.interval;
        format!(
            "{} given {}: {} of {}, 95 % interval {} to {}, by chance {}; {} attacks were tried",
            self.attack,
            self.given,
            text_format::percent(self.rate),
            text_format::counted(self.trials, "trial"),
            text_format::percent(low),
            text_format::percent(high),
            text_format::percent(self.chance),
            self.of
        )
    }
}

/// Sample and configuration under trial.
pub(super) struct SampleTrial<'a> {
    /// Configuration of the file.
    pub config: &'a Config,
    /// Its name in messages.
    pub file: &'a str,
    /// Records.
    pub input: &'a Path,
    /// Their format.
    pub written: RecordFileFormat,
    /// Stop flag.
    pub stop: &'a Arc<AtomicBool>,
}

impl SampleTrial<'_> {
    /// Measures the forms of `rehearsal`, and the missing one if possible.
    pub fn compare(&self, rehearsal: &TrialRun, records: u64) -> Result<Vec<MeasuredForm>, Failure> {
        let with_attacks = records <= MAX_ATTACKED_RECORDS;
        let mut forms = measure_forms(rehearsal, self.file, self.input, with_attacks, true)?;
        let has = |kind: ReleaseFormKind| forms.iter().any(|form| form.form == kind);
        let other = match (has(ReleaseFormKind::Fragments), has(ReleaseFormKind::Series)) {
            // Moments represent complete days only.
            (false, true) if has_only_moments(self.config) => as_daily_series(self.config, &rehearsal.schema),
            (true, false) => as_daily_series(self.config, &rehearsal.schema),
            (false, true) if rehearsal.schema.attributes.len() <= MAX_GROUPED_ATTRIBUTES => {
                Some(as_fragments(self.config))
            }
            _ => None,
        };
        if let Some(other) = other.filter(|_| with_attacks) {
            // Omits a form that the configuration forbids.
            match execute_trial_run(other, self.file, self.input, self.written, true, self.stop) {
                Ok(rehearsal) => forms.extend(measure_forms(&rehearsal, self.file, self.input, with_attacks, false)?),
                Err(Failure::Problems(_) | Failure::Usage(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        forms.sort_by_key(|form| !form.is_configured);
        Ok(forms)
    }

    /// Refuses too small a represented share, and names a better form.
    pub fn refusal(&self, rehearsal: &TrialRun, forms: &[MeasuredForm]) -> Option<Failure> {
        if self.config.sink.kind == SinkKind::None {
            return None;
        }
        let minimum = self.config.release.min_represented;
        let found = rehearsal.telemetry.represented().best().filter(|found| found.share() < minimum)?;
        let share = found.share();
        let better = forms.iter().find(|form| !form.is_configured && form.records_share() >= minimum.max(share));
        let remedy = match better {
            Some(form) => self.remedy(form),
            None if found.share_of_readable() >= minimum => UNREADABLE_ADVICE.to_owned(),
            None => advice_without_better_form(forms, &rehearsal.schema),
        };
        Some(Failure::FindingAboveLimit(anyhow::anyhow!(
            "the release of {} would represent {} of its records{}, but release.min_represented requires {}: {remedy}; release.min_represented = 0 accepts it",
            self.input.display(),
            text_format::percent(share),
            found.note(),
            text_format::percent(minimum)
        )))
    }

    fn remedy(&self, form: &MeasuredForm) -> String {
        let ReleaseUtility { people, people_represented, .. } = form.usefulness;
        let (name, change) = match form.form {
            ReleaseFormKind::Series if has_only_moments(self.config) => {
                ("rows of days", "remove moments from the series")
            }
            ReleaseFormKind::Series => ("series", "add [[series]] name = \"daily\", and release.fragments = false"),
            ReleaseFormKind::Fragments => ("single records", "set release.fragments = true"),
        };
        let purpose = match form.form {
            ReleaseFormKind::Series => "dashboards",
            ReleaseFormKind::Fragments => "rows",
        };
        format!(
            "{name} would represent {} of {} people and {} of the records ({change}, or start again: throng init {} --for {purpose})",
            text_format::number(people_represented),
            text_format::number(people),
            text_format::percent(form.records_share()),
            self.input.display()
        )
    }
}

fn advice_without_better_form(forms: &[MeasuredForm], schema: &Schema) -> String {
    if forms.iter().any(|form| form.form == ReleaseFormKind::Series) {
        return "no form represents more; longer buckets (every), fewer people per cohort (cohort.size, privacy.k) or more people help"
            .to_owned();
    }
    match missing_for_series(schema) {
        Some(missing) => format!(
            "statistics over time would represent more, but {missing}; privacy.max_lines_per_subject = 0 releases more lines per person, with weaker protection (docs/guarantees.md)"
        ),
        None => "no other form was tried".to_owned(),
    }
}

impl MeasuredForm {
    fn records_share(&self) -> f64 {
        ratio_of_counts(self.usefulness.records_represented, self.usefulness.records)
    }

    fn name(&self) -> String {
        let name = match self.form {
            ReleaseFormKind::Fragments => "single records".to_owned(),
            ReleaseFormKind::Series => format!("series {}", self.outputs.join(", ")),
        };
        if self.is_configured { format!("{name} (configured)") } else { name }
    }

    fn row(&self) -> Vec<String> {
        let ReleaseUtility { people, people_represented, records, records_represented, error_ratio, .. } =
            self.usefulness;
        let unknown = || "-".to_owned();
        vec![
            self.name(),
            format!("{} of {}", text_format::number(people_represented), text_format::number(people)),
            format!(
                "{} ({})",
                text_format::percent(ratio_of_counts(records_represented, records)),
                text_format::number(records_represented)
            ),
            error_ratio.map_or_else(unknown, |ratio| format!("{ratio:.2}")),
            self.best_attack.as_ref().map_or_else(unknown, |best| {
                format!("{} {} ({})", best.attack, text_format::percent(best.rate), text_format::percent(best.chance))
            }),
        ]
    }
}

fn has_only_moments(config: &Config) -> bool {
    !config.series.is_empty() && config.series.iter().all(|series| series.moments.is_some())
}

fn ratio_of_counts(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Noise relative to the sampling error, for the worst signal.
pub(super) fn describe_noise(forms: &[MeasuredForm]) -> Vec<String> {
    let all: Vec<&NoiseRatio> = forms.iter().flat_map(|form| &form.noise).collect();
    let is_worst = |of: &&&NoiseRatio| all.iter().all(|other| other.series != of.series || other.ratio <= of.ratio);
    let line = |of: &&NoiseRatio| {
        let people = text_format::number(of.people.round() as u64);
        let advice = if of.ratio > 1.0 {
            format!(
                " (below about {} people in a bucket, remove epsilon_per_week, name fewer signals or use longer buckets)",
                text_format::number(of.subjects_needed().ceil() as u64)
            )
        } else {
            String::new()
        };
        format!(
            "series {}: noise is {:.2} times the sampling error of the mean of {} over {people} people{advice}",
            text_format::sanitize_text(&of.series),
            of.ratio,
            text_format::sanitize_text(&of.signal)
        )
    };
    all.iter().filter(is_worst).map(line).collect()
}

/// All forms, best attacks, and their selection rule.
pub(super) fn format_comparison(forms: &[MeasuredForm]) -> String {
    let head = ["form", "people", "records", "error ÷ sampling error", "best attack (by chance)"];
    let mut out = aligned_table(&head, &forms.iter().map(MeasuredForm::row).collect::<Vec<_>>());
    let best: Vec<String> = forms
        .iter()
        .filter_map(|form| Some(format!("{}: {}", form.name(), form.best_attack.as_ref()?.attack_sentence())))
        .collect();
    if !best.is_empty() {
        out += "\nbest attack: the one whose 95 % interval begins furthest above chance. Another draw can put another attack first\n";
        best.iter().for_each(|line| out += &text_format::wrap_text("  - ", line));
    }
    out
}

fn measure_forms(
    rehearsal: &TrialRun,
    file: &str,
    input: &Path,
    with_attacks: bool,
    is_configured: bool,
) -> Result<Vec<MeasuredForm>, Failure> {
    let config = Config::clone(&rehearsal.config);
    let has_fragments = config.release.fragments;
    let series: Vec<String> = config.series.iter().map(|series| series.name.clone()).collect();
    let shapes = if has_fragments { rehearsal.shapes.clone() } else { Vec::new() };
    let released = config.sink.path.clone();
    let lineage = rehearsal.lineage();
    let files = (input, released.as_path(), Some(lineage.as_path()));
    let measured = LoadedRelease::read(config, &rehearsal.schema, shapes, file, files)?;
    let effort = AttackEffort { targets: TARGETS_PER_ATTACK, known_attributes: KNOWN_ATTRIBUTES, seed: 0 };
    let mut forms = Vec::new();
    if has_fragments {
        let LoadedRelease { config, original, facts, shapes, groups, .. } = &measured;
        let daily = as_daily_series(config, &original.schema);
        let daily = daily.and_then(|config| series_terms(&config, &original.schema, file).ok().flatten());
        let usefulness = fragment_utility(original, groups, daily.as_ref()).unwrap_or_default();
        let promises = release_guarantees(config, original.schema.subject.is_some());
        let release = AttackInput::new(original, facts, shapes, groups, promises);
        let yields = if with_attacks { attack::run(&release, effort, &|_| ()) } else { Vec::new() };
        forms.push(MeasuredForm {
            form: ReleaseFormKind::Fragments,
            is_configured,
            outputs: groups.iter().map(|group| group.name.clone()).collect(),
            usefulness,
            best_attack: BestAttack::furthest_from_chance(&yields),
            noise: Vec::new(),
        });
    }
    if let Some(terms) = &rehearsal.terms {
        let evidence = read_series_evidence(&measured.config, terms, &measured.original, &released, &lineage)?;
        let yields = if with_attacks {
            attack::series::run(&Panel::from_evidence(&evidence), effort, &|_| ())
        } else {
            Vec::new()
        };
        forms.push(MeasuredForm {
            form: ReleaseFormKind::Series,
            is_configured,
            outputs: series,
            usefulness: evidence.series_utility(),
            best_attack: BestAttack::furthest_from_chance(&yields),
            noise: evidence.noise_ratios(),
        });
    }
    Ok(forms)
}
