//! Comparison of release forms on a sample.

use crate::cli::loaded_release::{LoadedRelease, aligned_table};
use crate::cli::outcome::Failure;
use crate::cli::progress::ReadingMessage;
use crate::cli::run_summary::UNREADABLE_ADVICE;
use crate::cli::text_format;
use crate::cli::trial_run::{RecordFileFormat, TrialRun, execute_trial_run};
use crate::config::{Config, SinkKind};
use crate::evaluation::release_guarantees::release_guarantees;
use crate::evaluation::series_evidence::read_series_evidence;
use crate::io::file::plain_length;
use crate::start::release_forms::{as_daily_series, as_fragments, missing_for_series};
use crate::start::series_settings::series_terms;
use indicatif::ProgressBar;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use throng_core::values::schema::Schema;
use throng_eval::attack::series::Panel;
use throng_eval::attack::{self, AttackEffort, AttackInput, AttackYield};
use throng_eval::series::{CarriedValues, NoiseRatio, ReleaseUtility, SignalRows, fragment_utility};

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
    /// Rows per signal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SignalRows>,
    /// Carried values per series.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedValues>,
}

/// Form that was not compared.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SkippedForm {
    /// Kind.
    pub form: ReleaseFormKind,
    /// Reason.
    pub reason: String,
    /// Way to a comparison.
    pub remedy: String,
}

/// Measured forms, the configured ones first.
#[derive(Clone, Debug, Default)]
pub(super) struct FormComparison {
    /// Measured forms.
    pub forms: Vec<MeasuredForm>,
    /// Form without a measurement, if any.
    pub skipped: Option<SkippedForm>,
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
    /// The interval begins above chance: otherwise no attack is.
    pub is_above_chance: bool,
}

impl BestAttack {
    fn furthest_from_chance(yields: &[AttackYield]) -> Option<Self> {
        let best = attack::furthest_above_chance(yields)?;
        let AttackYield { attack, given, trials, rate, interval, chance, .. } = best.clone();
        let of = yields.iter().filter(|found| found.trials > 0).count();
        Some(Self { attack, given, trials, rate, interval, chance, of, is_above_chance: best.is_above_chance() })
    }

    fn cell(&self) -> String {
        if self.is_above_chance {
            format!("{} {} ({})", self.attack, text_format::percent(self.rate), text_format::percent(self.chance))
        } else {
            "none above chance".to_owned()
        }
    }

    fn attack_sentence(&self) -> String {
        let [low, high] = self.interval;
        let none = if self.is_above_chance { "" } else { "none above chance; the closest is " };
        format!(
            "{none}{} given {}: {} of {}, 95 % interval {} to {}, by chance {}; {} {} tried",
            self.attack,
            self.given,
            text_format::percent(self.rate),
            text_format::counted(self.trials, "trial"),
            text_format::percent(low),
            text_format::percent(high),
            text_format::percent(self.chance),
            text_format::counted(self.of as u64, "attack"),
            text_format::plural(self.of as u64, "was", "were")
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
    /// Progress.
    pub bar: &'a ProgressBar,
}

impl SampleTrial<'_> {
    /// Runs `config` on the sample; `what` names it in the progress.
    pub fn run(&self, config: Config, what: &str) -> Result<TrialRun, Failure> {
        self.bar.set_message(what.to_owned());
        let watcher = ReadingMessage { bar: self.bar, what, length: plain_length(self.input) };
        execute_trial_run(config, self.file, self.input, self.written, true, self.stop, &watcher)
    }

    /// Measures the forms of `rehearsal`, and the missing one if possible.
    pub fn compare(&self, rehearsal: &TrialRun, records: u64) -> Result<FormComparison, Failure> {
        let with_attacks = records <= MAX_ATTACKED_RECORDS;
        let mut found = FormComparison { forms: self.measure(rehearsal, with_attacks, true)?, skipped: None };
        if let Some((form, config)) = self.other_form(&found.forms, &rehearsal.schema) {
            found.skipped = self.skip_reason(form, records, &rehearsal.schema);
            if found.skipped.is_none() {
                // Omits a form that the configuration forbids.
                match self.run(config, "trying the other form") {
                    Ok(rehearsal) => found.forms.extend(self.measure(&rehearsal, with_attacks, false)?),
                    Err(Failure::Problems(_) | Failure::Usage(_)) => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
        found.forms.sort_by_key(|form| !form.is_configured);
        Ok(found)
    }

    /// Returns the form that is not configured, if the schema allows it.
    fn other_form(&self, forms: &[MeasuredForm], schema: &Schema) -> Option<(ReleaseFormKind, Config)> {
        let has = |kind: ReleaseFormKind| forms.iter().any(|form| form.form == kind);
        let series = || Some((ReleaseFormKind::Series, as_daily_series(self.config, schema)?));
        match (has(ReleaseFormKind::Fragments), has(ReleaseFormKind::Series)) {
            // Moments represent complete days only.
            (false, true) if has_only_moments(self.config) => series(),
            (true, false) => series(),
            (false, true) => Some((ReleaseFormKind::Fragments, as_fragments(self.config))),
            _ => None,
        }
    }

    fn skip_reason(&self, form: ReleaseFormKind, records: u64, schema: &Schema) -> Option<SkippedForm> {
        if records > MAX_ATTACKED_RECORDS {
            return Some(SkippedForm {
                form,
                reason: format!("more than {} records", text_format::number(MAX_ATTACKED_RECORDS)),
                remedy: "give a file with all records of fewer people: then both forms are compared and attacked"
                    .to_owned(),
            });
        }
        let is_wide = form == ReleaseFormKind::Fragments && schema.attributes.len() > MAX_GROUPED_ATTRIBUTES;
        is_wide.then(|| SkippedForm {
            form,
            reason: format!("more than {MAX_GROUPED_ATTRIBUTES} attributes"),
            remedy: format!(
                "`throng init {0} --for rows --name rows` writes a configuration for them, and `throng check -c rows.toml --sample {0}` compares both forms; with so many attributes it takes minutes",
                self.input.display()
            ),
        })
    }

    fn measure(
        &self,
        rehearsal: &TrialRun,
        with_attacks: bool,
        is_configured: bool,
    ) -> Result<Vec<MeasuredForm>, Failure> {
        self.bar.set_message("measuring");
        let config = Config::clone(&rehearsal.config);
        let has_fragments = config.release.fragments;
        let series: Vec<String> = config.series.iter().map(|series| series.name.clone()).collect();
        let shapes = if has_fragments { rehearsal.shapes.clone() } else { Vec::new() };
        let released = config.sink.path.clone();
        let lineage = rehearsal.lineage();
        let files = (self.input, released.as_path(), Some(lineage.as_path()));
        let measured = LoadedRelease::read(config, &rehearsal.schema, shapes, self.file, files)?;
        let effort = AttackEffort { targets: TARGETS_PER_ATTACK, known_attributes: KNOWN_ATTRIBUTES, seed: 0 };
        let show = |attack: &'static str| self.bar.set_message(format!("attacking: {attack}"));
        let mut forms = Vec::new();
        if has_fragments {
            let LoadedRelease { config, original, facts, shapes, groups, .. } = &measured;
            let daily = as_daily_series(config, &original.schema);
            let daily = daily.and_then(|config| series_terms(&config, &original.schema, self.file).ok().flatten());
            let usefulness = fragment_utility(original, groups, daily.as_ref()).unwrap_or_default();
            let promises = release_guarantees(config, original.schema.subject.is_some());
            let release = AttackInput::new(original, facts, shapes, groups, promises);
            let yields = if with_attacks { attack::run(&release, effort, &show) } else { Vec::new() };
            forms.push(MeasuredForm {
                form: ReleaseFormKind::Fragments,
                is_configured,
                outputs: groups.iter().map(|group| group.name.clone()).collect(),
                usefulness,
                best_attack: BestAttack::furthest_from_chance(&yields),
                noise: Vec::new(),
                signals: Vec::new(),
                carried: Vec::new(),
            });
        }
        if let Some(terms) = &rehearsal.terms {
            let evidence = read_series_evidence(&measured.config, terms, &measured.original, &released, &lineage)?;
            let yields = if with_attacks {
                attack::series::run(&Panel::from_evidence(&evidence), effort, &show)
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
                signals: evidence.signal_rows(),
                carried: evidence.carried_values(),
            });
        }
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
            None => advice_without_better_form(forms, (share, minimum), &rehearsal.schema),
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

/// For forms below `minimum`, of which the configured one represents `share`.
fn advice_without_better_form(forms: &[MeasuredForm], (share, minimum): (f64, f64), schema: &Schema) -> String {
    if forms.iter().any(|form| form.form == ReleaseFormKind::Series) {
        let others = forms.iter().filter(|form| !form.is_configured && form.records_share() > share);
        let most = others.max_by(|one, other| one.records_share().total_cmp(&other.records_share()));
        let most = most.map_or_else(String::new, |form| {
            format!(
                ", {} would represent more, {} of the records",
                form.name(),
                text_format::percent(form.records_share())
            )
        });
        return format!(
            "no compared form reaches {}{most}; longer buckets (every), fewer people per cohort (cohort.size, privacy.k) or more people help",
            text_format::percent(minimum)
        );
    }
    match missing_for_series(schema) {
        Some(missing) => format!(
            "statistics over time would represent more, but {missing}; privacy.max_lines_per_subject = 0 releases more lines per person, with weaker protection (docs/guarantees.md)"
        ),
        None => "no other form was tried".to_owned(),
    }
}

impl ReleaseFormKind {
    /// Name of a form that is not configured.
    fn name(self) -> &'static str {
        match self {
            Self::Fragments => "single records",
            Self::Series => "series daily",
        }
    }
}

impl MeasuredForm {
    fn records_share(&self) -> f64 {
        ratio_of_counts(self.usefulness.records_represented, self.usefulness.records)
    }

    fn name(&self) -> String {
        let name = match self.form {
            ReleaseFormKind::Fragments => self.form.name().to_owned(),
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
            self.best_attack.as_ref().map_or_else(unknown, BestAttack::cell),
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

/// Carried values, one sentence per series.
pub(super) fn describe_carried_values(forms: &[MeasuredForm]) -> Vec<String> {
    let line = |of: &CarriedValues| {
        format!(
            "series {}: filled is 0.5 or more in {} of the rows (median {:.1}): there, half or more of the members sent no value, and an earlier value of each is carried forward",
            text_format::sanitize_text(&of.series),
            text_format::percent(ratio_of_counts(of.half_carried, of.rows)),
            of.median
        )
    };
    forms.iter().filter(|form| form.is_configured).flat_map(|form| &form.carried).map(line).collect()
}

/// All forms, best attacks, and their selection rule.
pub(super) fn format_comparison(comparison: &FormComparison) -> String {
    let FormComparison { forms, skipped } = comparison;
    let head = ["form", "people", "records", "error ÷ sampling error", "best attack (by chance)"];
    let mut out = aligned_table(&head, &forms.iter().map(MeasuredForm::row).collect::<Vec<_>>());
    if let Some(SkippedForm { form, reason, remedy }) = skipped {
        let names = forms.iter().map(|form| form.name().chars().count());
        let width = names.chain([head[0].len()]).max().unwrap_or(0);
        out += &format!("{:<width$}  not compared: {reason}\n\n", form.name());
        out += &text_format::wrap_text("", &format!("{}: {remedy}", form.name()));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use throng_eval::attack::YieldCriterion;

    fn measured(form: ReleaseFormKind, is_configured: bool, records_represented: u64) -> MeasuredForm {
        MeasuredForm {
            form,
            is_configured,
            outputs: vec!["daily".to_owned()],
            usefulness: ReleaseUtility { records: 1000, records_represented, ..ReleaseUtility::default() },
            best_attack: None,
            noise: Vec::new(),
            signals: Vec::new(),
            carried: Vec::new(),
        }
    }

    fn schema() -> Schema {
        Schema::load(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/wearable.toml").as_ref()).expect("our schema")
    }

    fn best_attack(rate: f64, trials: u64) -> Option<BestAttack> {
        let found = AttackYield {
            attack: "series: quartiles",
            given: "the level".to_owned(),
            trials,
            rate,
            interval: [rate / 2.0, 1.0],
            chance: 0.0,
            worst_group: None,
            groups: Vec::new(),
            worst_decile: rate,
            share_above: 0.0,
            bound: None,
            judged: YieldCriterion::Chance,
        };
        BestAttack::furthest_from_chance(&[found])
    }

    #[test]
    fn advice_names_the_minimum_and_the_form_that_represents_more() {
        let forms = [measured(ReleaseFormKind::Fragments, true, 2), measured(ReleaseFormKind::Series, false, 447)];
        let advice = advice_without_better_form(&forms, (0.002, 0.5), &schema());
        let expected = "no compared form reaches 50.0 %, series daily would represent more, 44.7 % of the records; ";
        assert!(advice.starts_with(expected), "{advice}");
        let forms = [measured(ReleaseFormKind::Series, true, 447), measured(ReleaseFormKind::Fragments, false, 2)];
        let advice = advice_without_better_form(&forms, (0.447, 0.5), &schema());
        assert!(advice.starts_with("no compared form reaches 50.0 %; "), "{advice}");
    }

    #[test]
    fn skipped_form_has_a_row_with_reason_and_remedy() {
        let skipped = SkippedForm {
            form: ReleaseFormKind::Fragments,
            reason: "more than 30 attributes".to_owned(),
            remedy: "name fewer".to_owned(),
        };
        let forms = vec![measured(ReleaseFormKind::Series, true, 447)];
        let text = format_comparison(&FormComparison { forms, skipped: Some(skipped) });
        let row = "\nsingle records             not compared: more than 30 attributes\n\nsingle records: name fewer\n";
        assert!(text.contains("\nseries daily (configured)  ") && text.contains(row), "{text}");
    }

    #[test]
    fn attack_that_chance_explains_is_not_the_best() {
        let none = best_attack(0.0, 1).expect("a tried attack");
        assert_eq!(none.cell(), "none above chance");
        assert!(none.attack_sentence().starts_with("none above chance; the closest is series: quartiles given"));
        let best = best_attack(0.5, 40).expect("a tried attack");
        assert_eq!(best.cell(), "series: quartiles 50.0 % (0 %)");
        assert!(best.attack_sentence().ends_with("; 1 attack was tried"), "{}", best.attack_sentence());
        assert!(best_attack(0.0, 0).is_none(), "an attack without targets was not tried");
    }

    #[test]
    fn carried_values_are_described_for_the_configured_form() {
        let of = |is_configured| {
            let carried = CarriedValues { series: "daily".to_owned(), rows: 1000, half_carried: 410, median: 0.3 };
            MeasuredForm { carried: vec![carried], ..measured(ReleaseFormKind::Series, is_configured, 900) }
        };
        let lines = describe_carried_values(&[of(true), of(false)]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("series daily: filled is 0.5 or more in 41.0 % of the rows (median 0.3): "));
    }
}
