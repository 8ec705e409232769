//! `throng diff`: what a changed policy does.

use super::json;
use super::measured::Measured;
use super::outcome::Failure;
use super::rehearsal::{rehearse, written};
use super::stopping::end_on_signals;
use super::text;
use super::trials::for_trial;
use crate::config::{self, Config, Output};
use crate::evaluation::quality::quality;
use crate::evaluation::risk::risks;
use crate::evaluation::singled::singled_out;
use crate::io::file::is_at_rest;
use crate::start::changes::{changed, refusals};
use crate::start::checked::Checked;
use crate::telemetry::{Label, silence_panic_payloads};
use anyhow::{Context, anyhow};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use throng_core::values::schema::Role;

/// What a changed policy does to risk, loss and suppression: a table for a pull request
///
/// Runs both configurations over the records of INPUT through the real pipeline, with nothing kept, and measures what each lets out. The
/// keys that differ are named, their values are not, and no value of a record is printed. Combinations of attributes that single people out
/// in what leaves are named.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  throng diff main.toml branch.toml --replay sample.ndjson >> $GITHUB_STEP_SUMMARY\n\nExit codes: 0 done · 1 a run failed · 2 bad usage or configuration · 4 with --fail-if-riskier: a crowd, a risk or a promise of NEW is worse than of OLD"
)]
pub struct DiffArgs {
    /// The configuration before
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The configuration after
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// The records: CSV, NDJSON or Parquet, by its extension or `source.format`
    #[arg(long, value_name = "INPUT")]
    replay: PathBuf,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// End with exit code 4 where a smallest crowd is smaller, a risk higher or a combination that singles people out new, k or the crowd
    /// in a batch smaller, a privacy model gone or another, or an attribute guarded less by its role
    #[arg(long)]
    fail_if_riskier: bool,
}

/// One run.
#[derive(Debug, Serialize)]
struct Measures {
    policy: String,
    k: usize,
    consumed: u64,
    released: u64,
    suppressed: u64,
    suppressed_by_reason: BTreeMap<&'static str, u64>,
    dead_lettered: u64,
    lines: u64,
    /// Mean loss of all quasi cells of the records, [0, 1].
    loss: f64,
    /// Share of the quasi cells that left exactly.
    exact: f64,
    /// Mean loss by attribute, over all records.
    loss_by_attribute: BTreeMap<String, f64>,
    /// Subjects, or lines where nobody names subjects, of the smallest class in its batch; none where nothing left.
    smallest_crowd: Option<u64>,
    /// Highest and mean risk of a line.
    risk_highest: f64,
    risk_mean: f64,
    /// Share of the lines whose class is below k.
    below_k: f64,
    /// Minimal combinations of attributes, as they leave, of which some values are shown by fewer than k people.
    singled_out_by: Vec<Vec<String>>,
    /// All of them were found in time.
    singled_out_complete: bool,
}

#[derive(Debug, Serialize)]
struct Difference {
    old: Measures,
    new: Measures,
    /// Keys that differ.
    changed: Vec<String>,
    /// Keys for which a running daemon needs a new start.
    needs_start: Vec<String>,
    riskier: Vec<&'static str>,
}

/// Runs `throng diff`.
pub fn run(args: &DiffArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    if !is_at_rest(&args.replay) {
        let named = args.replay.display();
        return Err(Failure::Usage(anyhow!("--replay: the records are read twice: name a file ({named} is none)")));
    }
    let stop = end_on_signals()?;
    let loaded = |path: &Path| -> Result<(Config, Checked), Failure> {
        let config = config::load(path, std::env::vars())?;
        let checked = Checked::new(config.clone(), &path.display().to_string())?;
        Ok((config, checked))
    };
    let ((old, old_checked), (new, new_checked)) = (loaded(&args.old)?, loaded(&args.new)?);
    let mut needs_start: Vec<String> = refusals(&old_checked, &new_checked).into_iter().map(|(key, _)| key).collect();
    needs_start.dedup();
    let changed = changed(&old, &new);
    // Who is few is the same in both: with another k of its own the stricter policy would single out more people.
    let few = old.privacy.crowd().max(new.privacy.crowd());
    let measured = |config: &Config, checked: &Checked| measured(config, checked, &args.replay, few, &stop);
    let (old, new) = (measured(&old, &old_checked)?, measured(&new, &new_checked)?);
    let mut riskier = riskier(&old, &new);
    riskier.extend(weaker(&old_checked, &new_checked));
    let difference = Difference { old, new, changed, needs_start, riskier };
    if args.json {
        println!("{}", json::pretty(&difference)?);
    } else {
        print!("{}", markdown(&difference));
    }
    if args.fail_if_riskier && !difference.riskier.is_empty() {
        let what = difference.riskier.join(", ");
        return Err(Failure::Found(anyhow!("{} is riskier than {}: {what}", args.new.display(), args.old.display())));
    }
    Ok(())
}

/// What becomes of the records of `input`. Fewer than `few` people are singled out by what they alone share.
fn measured(
    config: &Config,
    checked: &Checked,
    input: &Path,
    few: usize,
    stop: &Arc<AtomicBool>,
) -> Result<Measures, Failure> {
    let mut config = for_trial(config)?;
    // Cells are compared under the names of their attributes.
    config.output = Output::default();
    let form = written(&config, input)?;
    let rehearsal = rehearse(config, &checked.file, input, form, true, stop)?;
    let (status, config) = (rehearsal.telemetry.status(), Config::clone(&rehearsal.config));
    let (released, lineage) = (config.sink.path.clone(), rehearsal.lineage());
    let k = config.privacy.crowd();
    let files = (input, released.as_path(), Some(lineage.as_path()));
    let Measured { original, facts, shapes, groups, .. } =
        Measured::read(config, &rehearsal.schema, rehearsal.shapes.clone(), &checked.file, files)?;
    let (quality, risks) = (quality(&original, &facts, &shapes, &groups), risks(&original, &shapes, &groups, k));
    let singled = singled_out(&original, &groups, few, SEARCHING).context("what has left cannot be searched")?;
    let told: Vec<_> = risks.iter().filter(|group| group.smallest_class > 0).collect();
    let lines =
        |of: &dyn Fn(&crate::evaluation::risk::GroupRisk) -> f64| told.iter().map(|g| of(g)).fold(0.0, f64::max);
    let reasons = status.suppressed.iter().filter(|(_, n)| *n > 0).map(|(why, n)| (why.as_str(), n));
    Ok(Measures {
        policy: checked.policy.short(),
        k: checked.config.privacy.k,
        consumed: status.totals.consumed,
        released: status.totals.released,
        suppressed: status.totals.suppressed,
        suppressed_by_reason: reasons.collect(),
        dead_lettered: status.totals.dead_lettered,
        lines: quality.lines,
        loss: quality.loss_of_all,
        exact: quality.exact,
        loss_by_attribute: quality.attributes.iter().map(|a| (a.attribute.clone(), a.loss_of_all)).collect(),
        smallest_crowd: told.iter().filter_map(|group| group.smallest_class_in_batch).min(),
        risk_highest: lines(&|group| group.prosecutor_highest),
        risk_mean: lines(&|group| group.prosecutor_average),
        below_k: lines(&|group| group.below_k),
        singled_out_by: singled.minimal_qids,
        singled_out_complete: singled.complete,
    })
}

/// How long the lines of one group are searched for what singles people out.
const SEARCHING: Duration = Duration::from_secs(10);

/// Combinations that are named, of those that are new and of those that are gone.
const NAMED: usize = 20;

/// Differences that are rounding.
const ROUNDING: f64 = 1e-9;

/// What of the new release lets more be known of somebody.
fn riskier(old: &Measures, new: &Measures) -> Vec<&'static str> {
    let smaller = |old: Option<u64>, new: Option<u64>| new.is_some_and(|new| old.is_some_and(|old| new < old));
    let higher = |old: f64, new: f64| new > old + ROUNDING;
    let searched = old.singled_out_complete && new.singled_out_complete;
    let found = [
        (smaller(old.smallest_crowd, new.smallest_crowd), "smallest crowd"),
        (higher(old.risk_highest, new.risk_highest), "highest risk of a line"),
        (higher(old.risk_mean, new.risk_mean), "mean risk of a line"),
        (higher(old.below_k, new.below_k), "lines below k"),
        (searched && !beyond(new, old).is_empty(), "a combination that singles people out"),
        // Whoever asks must know: nothing was found, for nobody has looked.
        (!searched, "a search for what singles people out that was cut short"),
    ];
    found.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

/// The combinations of `some` that single out whom none of `others` does: no part of them is among those.
fn beyond<'a>(some: &'a Measures, others: &Measures) -> Vec<&'a Vec<String>> {
    let is_part = |part: &Vec<String>, whole: &[String]| part.iter().all(|name| whole.contains(name));
    let covered = |whole: &[String]| others.singled_out_by.iter().any(|part| is_part(part, whole));
    some.singled_out_by.iter().filter(|whole| !covered(whole)).collect()
}

/// What the new policy no longer promises, whatever became of these records.
fn weaker(old: &Checked, new: &Checked) -> Vec<&'static str> {
    let models = |checked: &Checked| checked.config.privacy.model.clone();
    // How much a role lets be said of somebody, the less the smaller.
    let open = |role: Role| match role {
        Role::Insensitive => 2,
        Role::Sensitive => 1,
        _ => 0,
    };
    let opened = old.schema.attributes.iter().any(|before| {
        let after = new.schema.attributes.iter().find(|after| after.name == before.name);
        after.is_some_and(|after| open(after.role) > open(before.role))
    });
    let found = [
        (new.config.privacy.k < old.config.privacy.k, "a smaller k"),
        (models(old).iter().any(|model| !models(new).contains(model)), "a privacy model that is gone or another"),
        (opened, "an attribute whose role guards it less"),
    ];
    found.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

/// A row of the table: before, after, and the change.
fn counts(name: &str, old: u64, new: u64) -> String {
    let change = match new.cmp(&old) {
        std::cmp::Ordering::Equal => "=".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", text::number(new - old)),
        std::cmp::Ordering::Less => format!("−{}", text::number(old - new)),
    };
    format!("| {name} | {} | {} | {change} |\n", text::number(old), text::number(new))
}

fn shares(name: &str, old: f64, new: f64) -> String {
    let change = new - old;
    let change = if change.abs() < 0.000_05 { "=".to_owned() } else { format!("{change:+.4}").replace('-', "−") };
    format!("| {name} | {old:.4} | {new:.4} | {change} |\n")
}

fn crowds(name: &str, old: Option<u64>, new: Option<u64>) -> String {
    match (old, new) {
        (Some(old), Some(new)) => counts(name, old, new),
        (old, new) => {
            let shown = |crowd: Option<u64>| crowd.map_or("none left".to_owned(), text::number);
            format!("| {name} | {} | {} | |\n", shown(old), shown(new))
        }
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text::clean(text).replace('|', "\\|").replace('`', "'")
}

fn markdown(difference: &Difference) -> String {
    let Difference { old, new, changed, needs_start, riskier } = difference;
    let mut out = format!("| | old `{}` | new `{}` | change |\n|---|---:|---:|---:|\n", old.policy, new.policy);
    out += &counts("k", old.k as u64, new.k as u64);
    out += &counts("records", old.consumed, new.consumed);
    out += &counts("released", old.released, new.released);
    out += &counts("suppressed", old.suppressed, new.suppressed);
    let reasons: std::collections::BTreeSet<&str> =
        old.suppressed_by_reason.keys().chain(new.suppressed_by_reason.keys()).copied().collect();
    for reason in reasons {
        let of = |run: &Measures| run.suppressed_by_reason.get(reason).copied().unwrap_or(0);
        out += &counts(&format!("— {}", reason.replace('_', " ")), of(old), of(new));
    }
    out += &counts("dead letters", old.dead_lettered, new.dead_lettered);
    out += &counts("lines", old.lines, new.lines);
    out += &crowds("smallest crowd", old.smallest_crowd, new.smallest_crowd);
    out += &shares("highest risk of a line", old.risk_highest, new.risk_highest);
    out += &shares("mean risk of a line", old.risk_mean, new.risk_mean);
    out += &shares("lines below k", old.below_k, new.below_k);
    let combinations = |run: &Measures| run.singled_out_by.len() as u64;
    out += &counts("combinations that single people out", combinations(old), combinations(new));
    out += &shares("mean loss", old.loss, new.loss);
    out += &shares("exact cells", old.exact, new.exact);
    let names: std::collections::BTreeSet<&String> =
        old.loss_by_attribute.keys().chain(new.loss_by_attribute.keys()).collect();
    for name in names {
        let of = |run: &Measures| run.loss_by_attribute.get(name).copied();
        out += &match (of(old), of(new)) {
            (Some(old), Some(new)) => shares(&format!("loss of `{}`", cell(name)), old, new),
            (old, new) => {
                let shown = |loss: Option<f64>| loss.map_or("does not leave".to_owned(), |loss| format!("{loss:.4}"));
                format!("| loss of `{}` | {} | {} | |\n", cell(name), shown(old), shown(new))
            }
        };
    }
    let listed = |keys: &[String]| keys.iter().map(|key| format!("`{}`", cell(key))).collect::<Vec<_>>().join(", ");
    out.push('\n');
    out += &match changed.as_slice() {
        [] => "No key differs.\n".to_owned(),
        keys => format!("Keys that differ: {}.\n", listed(keys)),
    };
    if !needs_start.is_empty() {
        out += &format!("A running daemon needs a new start for {}.\n", listed(needs_start));
    }
    for (what, sets) in [("New", beyond(new, old)), ("Gone", beyond(old, new))] {
        let named =
            |set: &&Vec<String>| set.iter().map(|name| format!("`{}`", cell(name))).collect::<Vec<_>>().join(" + ");
        let first: Vec<String> = sets.iter().take(NAMED).map(named).collect();
        let more = match sets.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {}", text::counted(more as u64, "other")),
        };
        if !first.is_empty() {
            out +=
                &format!("{what}: in what leaves, fewer than k people share values of {}{more}.\n", first.join(", "));
        }
    }
    if !(old.singled_out_complete && new.singled_out_complete) {
        out += "Not all combinations were looked at: the search was cut short.\n";
    }
    if !riskier.is_empty() {
        out += &format!("**Riskier:** {}.\n", riskier.join(", "));
    }
    out
}
