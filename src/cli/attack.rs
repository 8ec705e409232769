//! `throng attack`.

use super::json;
use super::measured::{Measured, Named, table};
use super::outcome::Failure;
use super::progress::spinner;
use super::run::share;
use super::text::{counted, number, percent};
use crate::anonymity::series::DELTA;
use crate::config::Series;
use crate::evaluation::attack::series::Panel;
use crate::evaluation::attack::{self, Effort, Judgement, Promises, Release, Yield};
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use std::path::PathBuf;

/// Try on a release what outsiders try, and say how often they would be right
///
/// Runs record linkage with known values, joins fragments by order, time, counts, values and covariance over the batches, looks for people by
/// the moments at which they sent and by what they measured, undoes generalization, joins several releases of a person, and guesses
/// sensitive values. Of series it takes differences of rows, solves for values and levels, and looks for members. The lineage says afterwards how
/// often that was right. Each yield comes with its 95 % interval, what guessing without the release gives, and what the guarantee promises. No
/// value of the data is printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 done · 1 a file cannot be read · 2 bad usage or configuration · 4 a yield is above --fail-above, or with\n`--fail-above promise` above what is promised (where nothing is: 1.5 × chance), in the mean, in a group, or where each line\nis promised in a single one\n\nBest attack: the one whose 95 % interval begins furthest above what guessing gives. Targets and guesses are drawn (--seed), so that\nanother draw can put another attack first; its figure moves within the interval."
)]
pub struct AttackArgs {
    /// What left: the `sink.path` of the run. Of several groups the files beside it with the name of the group before the extension
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// The records before: CSV, NDJSON or Parquet, by its extension or `source.format`
    #[arg(long, value_name = "FILE")]
    original: PathBuf,
    /// Which line came from which record (the file of `throng run --lineage`)
    #[arg(long, value_name = "FILE")]
    lineage: PathBuf,
    /// The configuration that made it
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Attributes of a person that an outsider knows at most; all of them are tried as well
    #[arg(long, value_name = "N", default_value_t = 4)]
    known: usize,
    /// Targets of each attack
    #[arg(long, value_name = "N", default_value_t = 1000)]
    targets: usize,
    /// Fixes every draw
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// End with exit code 4 when the interval of a yield lies above this share, 0 to 1, or (`promise`) above what is promised
    #[arg(long, value_name = "SHARE|promise", value_parser = limit)]
    fail_above: Option<Limit>,
}

/// What no yield may lie above.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Share(f64),
    Promise,
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "promise" { Ok(Limit::Promise) } else { share(text).map(Limit::Share) }
}

/// Runs `throng attack`.
pub fn run(args: &AttackArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let named = Named {
        original: &args.original,
        released: &args.released,
        config: &args.config,
        lineage: Some(&args.lineage),
    };
    let Measured { config, original, facts, shapes, groups, series } = named.read()?;
    let effort = Effort { targets: args.targets.max(1), known: args.known.max(1), seed: args.seed };
    let bar = spinner("{spinner} trying {msg}");
    let show = |attack| bar.set_message(attack);
    let mut yields = Vec::new();
    if config.release.fragments {
        let promises = Promises::of(&config, original.schema.subject.is_some());
        let release = Release::new(&original, &facts, &shapes, &groups, promises);
        yields = attack::run(&release, effort, &show);
    }
    match &series {
        Some(evidence) => yields.extend(attack::series::run(&Panel::of(evidence), effort, &show)),
        None if config.series.is_empty() => {}
        None => {
            return Err(Failure::Usage(anyhow!(
                "the people of the series are not known: the secret of the run is gone (name a file in state.secret_file, and run again)"
            )));
        }
    }
    bar.finish_and_clear();
    if args.json {
        println!("{}", json::pretty(&yields)?);
    } else {
        print!("{}{}", words(&yields), best(&yields));
        config.series.iter().filter_map(noise_bound).for_each(|bound| println!("{bound}"));
    }
    let above = |found: &&Yield| match args.fail_above {
        None => false,
        Some(Limit::Promise) => found.is_above(),
        Some(Limit::Share(most)) => found.is_above_share(most),
    };
    match yields.iter().find(above) {
        Some(found) => Err(Failure::Found(anyhow!("{}", sentence(found)))),
        None => Ok(()),
    }
}

/// The attack that is furthest above chance, and the rule by which it is chosen; nothing where none was tried.
fn best(yields: &[Yield]) -> String {
    let Some(found) = attack::furthest_above_chance(yields) else { return String::new() };
    let (low, chance) = (percent(found.interval[0]), percent(found.chance));
    let rule =
        "the 95 % interval that begins furthest above chance; another draw (--seed) can put another attack first";
    if found.above_chance() > 0.0 {
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

/// A yield in one sentence, with the group in which it is highest.
fn sentence(found: &Yield) -> String {
    let of = |rate: f64, trials: u64| format!("{} of {}", percent(rate), counted(trials, "trial"));
    let mut text = format!("{} given {}: right in {}", found.attack, found.given, of(found.rate, found.trials));
    if let Some(worst) = &found.worst_group {
        text += &format!(", in {} of group {}", of(worst.rate, worst.trials), worst.group);
    }
    if found.share_above > 0.0 {
        text += &format!("; above what is promised in {}", of(found.share_above, found.trials));
    }
    text
}

/// The bound on attacks on a series with noise, of which none is tried.
fn noise_bound(series: &Series) -> Option<String> {
    let epsilon = series.epsilon_per_week?;
    let odds = epsilon.exp();
    Some(format!(
        "series {:?} has noise, and no attack on it is tried: with ε = {epsilon} and δ = {DELTA} for a person and week, whoever knows all other \
         records tells two equally likely weeks of a person apart with a probability of {:.2} % at most",
        series.name,
        100.0 * (odds + DELTA) / (odds + 1.0)
    ))
}

/// The yields as people read them.
fn words(yields: &[Yield]) -> String {
    let row = |found: &Yield| {
        let named = [found.attack.to_owned(), found.given.clone(), number(found.trials)];
        let figures = if found.trials == 0 {
            ["nothing to try", "", "", "", "", ""].map(str::to_owned)
        } else {
            let worst = found.worst_group.as_ref();
            [
                percent(found.rate),
                format!("{}–{}", percent(found.interval[0]), percent(found.interval[1])),
                worst.map_or_else(String::new, |worst| format!("{} ({})", percent(worst.rate), worst.group)),
                percent(found.worst_decile),
                percent(found.chance),
                promised(found),
            ]
        };
        named.into_iter().chain(figures).collect::<Vec<String>>()
    };
    table(
        &["attack", "given", "trials", "right or R²", "95 %", "worst group", "worst tenth", "by chance", "promised"],
        &yields.iter().map(row).collect::<Vec<_>>(),
    )
}

/// What is promised of a yield, in words.
fn promised(found: &Yield) -> String {
    match (found.bound, found.judged) {
        (Some(bound), Judgement::Open) => format!("nothing: aim ≤ {}", percent(bound)),
        (None, Judgement::Open) => "nothing: measured only".to_owned(),
        (Some(bound), Judgement::EachTrial) if bound < 1.0 => format!("each ≤ {}", percent(bound)),
        (Some(bound), Judgement::MeanOrChance) if bound < 1.0 => format!("≤ {}, or 1.5 × chance", percent(bound)),
        (Some(bound), _) if bound < 1.0 => format!("≤ {}", percent(bound)),
        _ => "nothing".to_owned(),
    }
}
