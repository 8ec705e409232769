//! `throng check --sample`: the configuration tried on records, with nothing kept.

use crate::cli::outcome::Failure;
use crate::cli::rehearsal::{Rehearsal, rehearse, written};
use crate::cli::run::LIMIT_REACHED;
use crate::cli::stopping::end_on_signals;
use crate::cli::text;
use crate::config::Config;
use crate::io::file::is_at_rest;
use crate::records::schema::Schema;
use crate::start::probe::{Probe, probe};
use crate::telemetry::{Label, Limit};
use anyhow::{Context, anyhow};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Lines of each group that are shown.
const SHOWN: usize = 3;

/// Tries a configuration on the records of `input` and prints what became of them.
///
/// # Errors
/// Where the input cannot be read or the run fails; [`Failure::Usage`] where nothing could be released.
pub(super) fn run(config: Config, file: &str, input: &Path, as_json: bool) -> Result<(), Failure> {
    if !is_at_rest(input) {
        let named = input.display();
        return Err(Failure::Usage(anyhow!(
            "--sample: the records are read more than once: name a file ({named} is none)"
        )));
    }
    let written = written(&config, input)?;
    let rehearsal = rehearse(config, file, input, written, false, &end_on_signals()?)?;
    let probed = probe(&rehearsal.config, &rehearsal.schema, input);
    let probed = probed.map_err(|error| Failure::Usage(anyhow::Error::from(error).context("--sample")))?;
    let groups = groups(&rehearsal)?;
    if as_json {
        println!("{:#}", as_value(&rehearsal, &probed, &groups, input));
    } else {
        print!("{}", described(&rehearsal, &probed, &groups, input));
    }
    if rehearsal.telemetry.status().totals.released == 0 {
        let message = format!("nothing of {} could be released with {file}: see above", input.display());
        return Err(Failure::Usage(anyhow!(message)));
    }
    Ok(())
}

/// What left in a group.
struct Left {
    name: String,
    lines: u64,
    first: Vec<String>,
}

fn groups(rehearsal: &Rehearsal) -> anyhow::Result<Vec<Left>> {
    let of = |(name, path): &(String, std::path::PathBuf)| {
        let (lines, first) = Rehearsal::lines(path, SHOWN).context("the output of the rehearsal cannot be read")?;
        Ok(Left { name: name.clone(), lines, first })
    };
    rehearsal.outputs.iter().map(of).collect()
}

/// Counts by attribute, in words.
fn by_name(schema: &Schema, counts: &[(usize, u64)]) -> String {
    let said = counts
        .iter()
        .map(|(a, count)| format!("{} ({})", text::clean(&schema.attributes[*a].name), text::number(*count)));
    said.collect::<Vec<_>>().join(", ")
}

fn described(rehearsal: &Rehearsal, probed: &Probe, groups: &[Left], input: &Path) -> String {
    let (schema, status) = (&rehearsal.schema, rehearsal.telemetry.status());
    let totals = status.totals;
    let mut out = format!("{}: {} tried, nothing kept\n", input.display(), text::counted(probed.records, "record"));
    let mut line = |words: String| out += &text::wrapped("  ", &words);
    let share = |count: u64| text::percent(count as f64 / (totals.consumed.max(1)) as f64);
    line(format!("released {} ({})", text::number(totals.released), share(totals.released)));
    if totals.suppressed > 0 {
        let why = status.suppressed.iter().filter(|(_, n)| *n > 0);
        let why: Vec<String> = why.map(|(why, n)| format!("{} {}", why.as_str(), text::number(n))).collect();
        let why = why.join(", ");
        line(format!("suppressed {} ({}): {why}", text::number(totals.suppressed), share(totals.suppressed)));
    }
    if totals.dead_lettered > 0 {
        let dead = totals.dead_lettered;
        line(format!(
            "dead letters {} ({}), {} of them no records",
            text::number(dead),
            share(dead),
            probed.unreadable
        ));
    }
    if let Some(loss) = status.mean_loss {
        line(format!("mean loss {loss:.3} of the quasi cells that are there (0: all exact, 1: all suppressed)"));
    }
    if status.thinned_fragments > 0 {
        line(
            "thinned: other lines of their person stand for them (privacy.max_lines_per_subject, privacy.max_delay)"
                .into(),
        );
    }
    let names = |attributes: &[usize]| {
        let names = attributes.iter().map(|a| text::clean(&schema.attributes[*a].name));
        names.collect::<Vec<_>>().join(", ")
    };
    if rehearsal.telemetry.has_reached(Limit::WaitingLines) || rehearsal.telemetry.has_reached(Limit::SaidLines) {
        line(LIMIT_REACHED.into());
    }
    if !probed.never_met.is_empty() {
        line(format!("warning: without a value in every record: {}", names(&probed.never_met)));
    }
    if !probed.wrong_type.is_empty() {
        line(format!("warning: not of their type, by records: {}", by_name(schema, &probed.wrong_type)));
    }
    if !probed.uncovered.is_empty() {
        line(format!("warning: not covered by a hierarchy, by cells: {}", by_name(schema, &probed.uncovered)));
    }
    if !probed.dropped.is_empty() {
        let names: Vec<String> = probed.dropped.iter().map(|name| text::clean(name)).collect();
        line(format!("dropped, since the schema does not know them: {}", names.join(", ")));
    }
    if probed.unnamed > 0 {
        let why = if probed.uncounted {
            "people cannot be counted: no record names its subject"
        } else {
            "fewer than k people have them"
        };
        line(format!("and {} more, not named since {why}", text::counted(probed.unnamed as u64, "key")));
    }
    for group in groups {
        out += &format!("group {}: {}\n", group.name, text::counted(group.lines, "line"));
        for first in &group.first {
            out += &format!("  {}\n", text::clean(first));
        }
    }
    out
}

fn as_value(rehearsal: &Rehearsal, probed: &Probe, groups: &[Left], input: &Path) -> Value {
    let (schema, status) = (&rehearsal.schema, rehearsal.telemetry.status());
    let name = |a: usize| schema.attributes[a].name.clone();
    let counts = |counts: &[(usize, u64)]| counts.iter().map(|(a, n)| (name(*a), json!(n))).collect::<Map<_, _>>();
    let why: Map<String, Value> =
        status.suppressed.iter().filter(|(_, n)| *n > 0).map(|(why, n)| (why.as_str().to_owned(), json!(n))).collect();
    let group = |group: &Left| {
        let first: Vec<Value> = group.first.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        json!({ "name": group.name, "lines": group.lines, "first": first })
    };
    json!({
        "input": input.display().to_string(),
        "records": probed.records,
        "released": status.totals.released,
        "suppressed": status.totals.suppressed,
        "suppressed_why": why,
        "dead_lettered": status.totals.dead_lettered,
        "dropped_records": status.totals.dropped,
        "mean_loss": status.mean_loss,
        "never_met": probed.never_met.iter().map(|a| name(*a)).collect::<Vec<_>>(),
        "wrong_type": counts(&probed.wrong_type),
        "uncovered": counts(&probed.uncovered),
        "unknown": probed.dropped,
        "unknown_unnamed": probed.unnamed,
        "groups": groups.iter().map(group).collect::<Vec<_>>(),
    })
}
