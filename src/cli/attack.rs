//! `throng attack`: success of attacks on a release.

use super::json;
use super::loaded_release::{LoadedRelease, ReleaseFiles, aligned_table};
use super::outcome::Failure;
use super::progress::spinner;
use super::run::share_argument;
use super::text_format::{counted, number, percent, percent_with_digits};
use crate::config::SeriesConfig;
use crate::evaluation::release_guarantees::release_guarantees;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use std::path::PathBuf;
use throng_core::series::DELTA;
use throng_eval::attack::series::Panel;
use throng_eval::attack::{self, AttackEffort, AttackInput, AttackYield, YieldCriterion};

/// Try the attacks of an outsider on a release and report their success rates
///
/// Runs record linkage with known values; joins fragments by order, time, counts, values and covariance over the
/// batches; searches for subjects by the times and values of their records; undoes generalization; joins several
/// releases of a subject; and guesses sensitive values. On series, it takes differences of rows, solves for values
/// and levels, and infers membership. The lineage then shows the share of correct results. Each result has a 95 %
/// interval, the success rate of guessing without the release, and the guaranteed bound. No value of the data is
/// printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 done · 1 a file cannot be read · 2 bad usage or configuration · 4 the success rate of an attack is above --fail-above,\nor with `--fail-above promise` above the guarantee (without a guarantee: 1.5 × chance), on average, in a group, or, if every\nline has a guarantee, for a single line\n\nBest attack: the one whose 95 % interval begins furthest above the success rate of guessing. Targets and guesses are drawn (--seed):\nanother draw can put another attack first, and its success rate varies within the interval."
)]
pub struct AttackArgs {
    /// Release: the `sink.path` of the run. With several groups, also the files next to it with the group name before
    /// the extension
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// Original records: CSV, NDJSON or Parquet, by extension or `source.format`
    #[arg(long, value_name = "FILE")]
    original: PathBuf,
    /// Lineage, from record to output line (the file of `throng run --lineage`)
    #[arg(long, value_name = "FILE")]
    lineage: PathBuf,
    /// Configuration of the run
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Maximum number of attributes known to an outsider; knowledge of all attributes is tried as well
    #[arg(long, value_name = "N", default_value_t = 4)]
    known: usize,
    /// Targets per attack
    #[arg(long, value_name = "N", default_value_t = 1000)]
    targets: usize,
    /// Seed of all random draws
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Print the complete results as JSON
    #[arg(long)]
    json: bool,
    /// End with exit code 4 if the whole interval of a result is above this share (0 to 1), or above the guarantee
    /// (`promise`)
    #[arg(long, value_name = "SHARE|promise", value_parser = limit_argument)]
    fail_above: Option<YieldLimit>,
}

#[derive(Clone, Copy, Debug)]
enum YieldLimit {
    Share(f64),
    Promise,
}

fn limit_argument(text: &str) -> Result<YieldLimit, String> {
    if text == "promise" { Ok(YieldLimit::Promise) } else { share_argument(text).map(YieldLimit::Share) }
}

/// Runs `throng attack`.
pub fn run(args: &AttackArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let named = ReleaseFiles {
        original: &args.original,
        released: &args.released,
        config: &args.config,
        lineage: Some(&args.lineage),
    };
    let LoadedRelease { config, original, facts, shapes, groups, series } = named.load_release()?;
    let effort = AttackEffort { targets: args.targets.max(1), known_attributes: args.known.max(1), seed: args.seed };
    let bar = spinner("{spinner} trying {msg}");
    let show = |attack| bar.set_message(attack);
    let mut yields = Vec::new();
    if config.release.fragments {
        let promises = release_guarantees(&config, original.schema.subject.is_some());
        let release = AttackInput::new(&original, &facts, &shapes, &groups, promises);
        yields = attack::run(&release, effort, &show);
    }
    match &series {
        Some(evidence) => yields.extend(attack::series::run(&Panel::from_evidence(evidence), effort, &show)),
        None if config.series.is_empty() => {}
        None => {
            return Err(Failure::Usage(anyhow!(
                "the people of the series cannot be identified: the secret of the run is missing (set state.secret_file and run again)"
            )));
        }
    }
    bar.finish_and_clear();
    if args.json {
        println!("{}", json::pretty_json(&yields)?);
    } else {
        print!("{}{}", yields_table(&yields), describe_best_attack(&yields));
        config.series.iter().filter_map(noise_bound).for_each(|bound| println!("{bound}"));
    }
    let above = |found: &&AttackYield| match args.fail_above {
        None => false,
        Some(YieldLimit::Promise) => found.is_above(),
        Some(YieldLimit::Share(most)) => found.is_above_share(most),
    };
    match yields.iter().find(above) {
        Some(found) => Err(Failure::FindingAboveLimit(anyhow!("{}", yield_sentence(found)))),
        None => Ok(()),
    }
}

/// The attack furthest above chance; empty without attacks.
fn describe_best_attack(yields: &[AttackYield]) -> String {
    let Some(found) = attack::furthest_above_chance(yields) else { return String::new() };
    let (low, chance) = (percent(found.interval[0]), percent(found.chance));
    let rule =
        "the 95 % interval that begins furthest above chance; another draw (--seed) can put another attack first";
    if found.is_above_chance() {
        let right = percent(found.rate);
        format!(
            "\nbest attack: {} given {}: {right} (95 % interval from {low}), by chance {chance} ({rule})\n",
            found.attack, found.given
        )
    } else {
        format!(
            "\nbest attack: none. No interval begins above chance; the closest is {} given {}: from {low}, by chance {chance} ({rule})\n",
            found.attack, found.given
        )
    }
}

fn yield_sentence(found: &AttackYield) -> String {
    let of = |rate: f64, trials: u64| format!("{} of {}", percent(rate), counted(trials, "trial"));
    let mut text = format!("{} given {}: right in {}", found.attack, found.given, of(found.rate, found.trials));
    if let Some(worst) = &found.worst_group {
        text += &format!(", in {} of group {}", of(worst.rate, worst.trials), worst.group);
    }
    if found.share_above > 0.0 {
        text += &format!("; above the guarantee in {}", of(found.share_above, found.trials));
    }
    text
}

/// No attack is tried on a series with noise.
fn noise_bound(series: &SeriesConfig) -> Option<String> {
    let epsilon = series.epsilon_per_week?;
    let odds = epsilon.exp();
    let bound = (odds + DELTA) / (odds + 1.0);
    let shown = percent_with_digits(bound, 2);
    let limit = if bound > 0.9999 { format!("{shown}: hardly a limit") } else { format!("at most {shown}") };
    Some(format!(
        "series {:?} has noise, so no attack on it is tried: with ε = {epsilon} and δ = {DELTA} per person and week, an attacker who knows all \
         other records distinguishes two equally likely weeks of a person with a probability of {limit}",
        series.name
    ))
}

fn yields_table(yields: &[AttackYield]) -> String {
    let row = |found: &AttackYield| {
        let named = [found.attack.to_owned(), found.given.clone(), number(found.trials)];
        let figures = if found.trials == 0 {
            ["no targets", "", "", "", "", ""].map(str::to_owned)
        } else {
            let worst = found.worst_group.as_ref();
            [
                percent(found.rate),
                format!("{}–{}", percent(found.interval[0]), percent(found.interval[1])),
                worst.map_or_else(String::new, |worst| format!("{} ({})", percent(worst.rate), worst.group)),
                percent(found.worst_decile),
                percent(found.chance),
                promise_cell(found),
            ]
        };
        named.into_iter().chain(figures).collect::<Vec<String>>()
    };
    aligned_table(
        &["attack", "given", "trials", "right or R²", "95 %", "worst group", "worst tenth", "by chance", "promised"],
        &yields.iter().map(row).collect::<Vec<_>>(),
    )
}

fn promise_cell(found: &AttackYield) -> String {
    match (found.bound, found.judged) {
        (Some(bound), YieldCriterion::Open) => format!("nothing: aim ≤ {}", percent(bound)),
        (_, YieldCriterion::Chance) => "≤ 1.5 × chance".to_owned(),
        (None, YieldCriterion::Open) => "nothing: measured only".to_owned(),
        (Some(bound), YieldCriterion::EachTrial) if bound < 1.0 => format!("each ≤ {}", percent(bound)),
        (Some(bound), YieldCriterion::MeanOrChance) if bound < 1.0 => format!("≤ {}, or 1.5 × chance", percent(bound)),
        (Some(bound), _) if bound < 1.0 => format!("≤ {}", percent(bound)),
        _ => "nothing".to_owned(),
    }
}
