//! `throng diff`: effect of a changed policy.

use super::json;
use super::loaded_release::LoadedRelease;
use super::outcome::Failure;
use super::policy_test_runs::with_trial_secret;
use super::stop_signals::exit_on_signals;
use super::text_format;
use super::trial_run::{SilentWatcher, execute_trial_run, record_file_format};
use crate::config::{self, Config, OutputConfig};
use crate::io::file::is_rereadable;
use crate::start::checked_config::CheckedConfig;
use crate::start::config_changes::{changed_keys, reload_refusals};
use crate::telemetry::{Label, silence_panic_payloads};
use anyhow::{Context, anyhow};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use throng_core::values::schema::Role;
use throng_eval::quality::quality;
use throng_eval::risk::measure_risks;
use throng_eval::singling_out::search_singling_out;

/// Show the effect of a changed policy on risk, loss and suppression, as a table for a pull request
///
/// Runs both configurations over the records of INPUT through the real pipeline, keeps nothing, and measures both
/// releases. Prints the changed keys without their values, and no value of a record. Lists the attribute combinations
/// that single out subjects in a release.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  throng diff main.toml branch.toml --replay sample.ndjson >> $GITHUB_STEP_SUMMARY\n\nExit codes: 0 done · 1 a run failed · 2 bad usage or configuration · 4 with --fail-if-riskier: NEW has a smaller class, a higher risk or a weaker guarantee than OLD"
)]
pub struct DiffArgs {
    /// Configuration before the change
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Configuration after the change
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Records: CSV, NDJSON or Parquet, by extension or `source.format`
    #[arg(long, value_name = "INPUT")]
    replay: PathBuf,
    /// Print the complete result as JSON
    #[arg(long)]
    json: bool,
    /// End with exit code 4 if NEW is riskier: a smaller class size or k, a higher risk, a new combination that
    /// singles out subjects, a removed or changed privacy model, or an attribute with a less protective role
    #[arg(long)]
    fail_if_riskier: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(Default))]
struct RunMeasures {
    policy: String,
    k: usize,
    consumed: u64,
    released: u64,
    suppressed: u64,
    suppressed_by_reason: BTreeMap<&'static str, u64>,
    dead_lettered: u64,
    lines: u64,
    /// Mean loss of all quasi cells, [0, 1].
    loss: f64,
    exact: f64,
    loss_by_attribute: BTreeMap<String, f64>,
    /// Smallest class of a batch, in subjects, or else lines.
    smallest_crowd: Option<u64>,
    /// Highest and mean risk.
    risk_highest: f64,
    risk_mean: f64,
    below_k: f64,
    /// Minimal combinations shared by fewer than k subjects.
    singled_out_by: Vec<Vec<String>>,
    /// The search ended in time.
    singled_out_complete: bool,
}

#[derive(Debug, Serialize)]
struct PolicyDifference {
    old: RunMeasures,
    new: RunMeasures,
    changed: Vec<String>,
    /// Keys that need a restart.
    needs_start: Vec<String>,
    riskier: Vec<&'static str>,
}

/// Runs `throng diff`.
pub fn run(args: &DiffArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    if !is_rereadable(&args.replay) {
        let named = args.replay.display();
        return Err(Failure::Usage(anyhow!(
            "--replay: {named} is not a regular file, but the records are read twice (name a file)"
        )));
    }
    let stop = exit_on_signals()?;
    let loaded = |path: &Path| -> Result<(Config, CheckedConfig), Failure> {
        let config = config::load(path, std::env::vars())?;
        let checked = CheckedConfig::new(config.clone(), &path.display().to_string())?;
        Ok((config, checked))
    };
    let ((old, old_checked), (new, new_checked)) = (loaded(&args.old)?, loaded(&args.new)?);
    let mut needs_start: Vec<String> =
        reload_refusals(&old_checked, &new_checked).into_iter().map(|(key, _)| key).collect();
    needs_start.dedup();
    let changed = changed_keys(&old, &new);
    // With its own larger k, the stricter policy would seem riskier.
    let few = old.privacy.required_subjects().max(new.privacy.required_subjects());
    let measured = |config: &Config, checked: &CheckedConfig| measure_policy(config, checked, &args.replay, few, &stop);
    let (old, new) = (measured(&old, &old_checked)?, measured(&new, &new_checked)?);
    let mut riskier = risk_increases(&old, &new);
    riskier.extend(weakened_guarantees(&old_checked, &new_checked));
    let difference = PolicyDifference { old, new, changed, needs_start, riskier };
    if args.json {
        println!("{}", json::pretty_json(&difference)?);
    } else {
        print!("{}", format_markdown(&difference));
    }
    if args.fail_if_riskier && !difference.riskier.is_empty() {
        let what = difference.riskier.join(", ");
        return Err(Failure::FindingAboveLimit(anyhow!(
            "{} is riskier than {}: {what}",
            args.new.display(),
            args.old.display()
        )));
    }
    Ok(())
}

/// A combination singles out if fewer than `few` share its values.
fn measure_policy(
    config: &Config,
    checked: &CheckedConfig,
    input: &Path,
    few: usize,
    stop: &Arc<AtomicBool>,
) -> Result<RunMeasures, Failure> {
    let mut config = with_trial_secret(config)?;
    // Cells are compared under schema names.
    config.output = OutputConfig::default();
    let form = record_file_format(&config, input)?;
    let rehearsal = execute_trial_run(config, &checked.file, input, form, true, stop, &SilentWatcher)?;
    let (status, config) = (rehearsal.telemetry.status(), Config::clone(&rehearsal.config));
    let (released, lineage) = (config.sink.path.clone(), rehearsal.lineage());
    let k = config.privacy.required_subjects();
    let files = (input, released.as_path(), Some(lineage.as_path()));
    let LoadedRelease { original, facts, shapes, groups, .. } =
        LoadedRelease::read(config, &rehearsal.schema, rehearsal.shapes.clone(), &checked.file, files)?;
    let (quality, risks) =
        (quality(&original, &facts, &shapes, &groups), measure_risks(&original, &shapes, &groups, k));
    let singled = search_singling_out(&original, &groups, few, SINGLING_OUT_TIMEOUT)
        .context("cannot search the release for identifying combinations")?;
    let told: Vec<_> = risks.iter().filter(|group| group.smallest_class > 0).collect();
    let lines = |of: &dyn Fn(&throng_eval::risk::GroupRisk) -> f64| told.iter().map(|g| of(g)).fold(0.0, f64::max);
    let reasons = status.suppressed.iter().filter(|(_, n)| *n > 0).map(|(why, n)| (why.as_str(), n));
    Ok(RunMeasures {
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

/// Per group.
const SINGLING_OUT_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_DIFF_COMBINATIONS: usize = 20;

const ROUNDING_TOLERANCE: f64 = 1e-9;

fn risk_increases(old: &RunMeasures, new: &RunMeasures) -> Vec<&'static str> {
    let smaller = |old: Option<u64>, new: Option<u64>| new.is_some_and(|new| old.is_some_and(|old| new < old));
    let higher = |old: f64, new: f64| new > old + ROUNDING_TOLERANCE;
    let searched = old.singled_out_complete && new.singled_out_complete;
    let found = [
        (smaller(old.smallest_crowd, new.smallest_crowd), "smallest class"),
        (higher(old.risk_highest, new.risk_highest), "highest risk of a line"),
        (higher(old.risk_mean, new.risk_mean), "mean risk of a line"),
        (higher(old.below_k, new.below_k), "lines below k"),
        (searched && !uncovered_combinations(new, old).is_empty(), "a combination that singles people out"),
        // An interrupted search proves nothing.
        (!searched, "an incomplete search for combinations that single people out"),
    ];
    found.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

/// Those of `some` that contain none of `others`.
fn uncovered_combinations<'a>(some: &'a RunMeasures, others: &RunMeasures) -> Vec<&'a Vec<String>> {
    let is_part = |part: &Vec<String>, whole: &[String]| part.iter().all(|name| whole.contains(name));
    let covered = |whole: &[String]| others.singled_out_by.iter().any(|part| is_part(part, whole));
    some.singled_out_by.iter().filter(|whole| !covered(whole)).collect()
}

/// Independent of these records.
fn weakened_guarantees(old: &CheckedConfig, new: &CheckedConfig) -> Vec<&'static str> {
    let models = |checked: &CheckedConfig| checked.config.privacy.model.clone();
    // Smaller is more protective.
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
        (models(old).iter().any(|model| !models(new).contains(model)), "a removed or changed privacy model"),
        (opened, "an attribute with a less protective role"),
    ];
    found.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

fn count_row(name: &str, old: u64, new: u64) -> String {
    let change = match new.cmp(&old) {
        std::cmp::Ordering::Equal => "=".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", text_format::number(new - old)),
        std::cmp::Ordering::Less => format!("−{}", text_format::number(old - new)),
    };
    format!("| {name} | {} | {} | {change} |\n", text_format::number(old), text_format::number(new))
}

fn share_row(name: &str, old: f64, new: f64) -> String {
    let change = new - old;
    let change = if change.abs() < 0.000_05 { "=".to_owned() } else { format!("{change:+.4}").replace('-', "−") };
    format!("| {name} | {old:.4} | {new:.4} | {change} |\n")
}

fn class_size_row(name: &str, old: Option<u64>, new: Option<u64>) -> String {
    match (old, new) {
        (Some(old), Some(new)) => count_row(name, old, new),
        (old, new) => {
            let shown = |crowd: Option<u64>| crowd.map_or("none released".to_owned(), text_format::number);
            format!("| {name} | {} | {} | |\n", shown(old), shown(new))
        }
    }
}

/// Equal numbers may hide replaced combinations.
fn combination_row(old: &RunMeasures, new: &RunMeasures) -> String {
    let name = "combinations that single people out";
    let [before, after] = [old, new].map(|run| run.singled_out_by.len() as u64);
    match (uncovered_combinations(new, old).len(), uncovered_combinations(old, new).len()) {
        (added @ 1.., removed @ 1..) => format!("| {name} | {before} | {after} | +{added} −{removed} |\n"),
        _ => count_row(name, before, after),
    }
}

fn escape_table_cell(text: &str) -> String {
    text_format::sanitize_text(text).replace('|', "\\|").replace('`', "'")
}

fn format_markdown(difference: &PolicyDifference) -> String {
    let PolicyDifference { old, new, changed, needs_start, riskier } = difference;
    let mut out = format!("| | old `{}` | new `{}` | change |\n|---|---:|---:|---:|\n", old.policy, new.policy);
    out += &count_row("k", old.k as u64, new.k as u64);
    out += &count_row("records", old.consumed, new.consumed);
    out += &count_row("released", old.released, new.released);
    out += &count_row("suppressed", old.suppressed, new.suppressed);
    let reasons: std::collections::BTreeSet<&str> =
        old.suppressed_by_reason.keys().chain(new.suppressed_by_reason.keys()).copied().collect();
    for reason in reasons {
        let of = |run: &RunMeasures| run.suppressed_by_reason.get(reason).copied().unwrap_or(0);
        out += &count_row(&format!("— {}", reason.replace('_', " ")), of(old), of(new));
    }
    out += &count_row("dead letters", old.dead_lettered, new.dead_lettered);
    out += &count_row("lines", old.lines, new.lines);
    out += &class_size_row("smallest class", old.smallest_crowd, new.smallest_crowd);
    out += &share_row("highest risk of a line", old.risk_highest, new.risk_highest);
    out += &share_row("mean risk of a line", old.risk_mean, new.risk_mean);
    out += &share_row("lines below k", old.below_k, new.below_k);
    out += &combination_row(old, new);
    out += &share_row("mean loss", old.loss, new.loss);
    out += &share_row("exact cells", old.exact, new.exact);
    let names: std::collections::BTreeSet<&String> =
        old.loss_by_attribute.keys().chain(new.loss_by_attribute.keys()).collect();
    for name in names {
        let of = |run: &RunMeasures| run.loss_by_attribute.get(name).copied();
        out += &match (of(old), of(new)) {
            (Some(old), Some(new)) => share_row(&format!("loss of `{}`", escape_table_cell(name)), old, new),
            (old, new) => {
                let shown = |loss: Option<f64>| loss.map_or("not released".to_owned(), |loss| format!("{loss:.4}"));
                format!("| loss of `{}` | {} | {} | |\n", escape_table_cell(name), shown(old), shown(new))
            }
        };
    }
    let listed =
        |keys: &[String]| keys.iter().map(|key| format!("`{}`", escape_table_cell(key))).collect::<Vec<_>>().join(", ");
    out.push('\n');
    out += &match changed.as_slice() {
        [] => "No key differs.\n".to_owned(),
        keys => format!("Keys that differ: {}.\n", listed(keys)),
    };
    if !needs_start.is_empty() {
        out += &format!("A running daemon needs a restart for {}.\n", listed(needs_start));
    }
    for (what, sets) in [("New", uncovered_combinations(new, old)), ("Removed", uncovered_combinations(old, new))] {
        let named = |set: &&Vec<String>| {
            set.iter().map(|name| format!("`{}`", escape_table_cell(name))).collect::<Vec<_>>().join(" + ")
        };
        let first: Vec<String> = sets.iter().take(MAX_DIFF_COMBINATIONS).map(named).collect();
        let more = match sets.len().saturating_sub(MAX_DIFF_COMBINATIONS) {
            0 => String::new(),
            more => format!(" and {}", text_format::counted(more as u64, "other")),
        };
        if !first.is_empty() {
            out +=
                &format!("{what}: in the release, fewer than k people share values of {}{more}.\n", first.join(", "));
        }
    }
    if !(old.singled_out_complete && new.singled_out_complete) {
        out += "Not all combinations were examined: the search was cut short.\n";
    }
    if !riskier.is_empty() {
        out += &format!("**Riskier:** {}.\n", riskier.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_combination_is_no_equality() {
        let run = |sets: &[&[&str]]| {
            let names = |set: &&[&str]| set.iter().map(|name| (*name).to_owned()).collect();
            RunMeasures { singled_out_by: sets.iter().map(names).collect(), ..RunMeasures::default() }
        };
        let row = |old: &[&[&str]], new: &[&[&str]]| combination_row(&run(old), &run(new));
        assert!(row(&[&["a"]], &[&["b"]]).ends_with("| 1 | 1 | +1 −1 |\n"));
        assert!(row(&[&["a"]], &[&["a"]]).ends_with("| 1 | 1 | = |\n"));
        assert!(row(&[], &[&["a"], &["b", "c"]]).ends_with("| 0 | 2 | +2 |\n"));
    }
}
