//! `throng check --sample`: the configuration tried on records, with nothing kept.

use super::consumer::Consumer;
use super::forms::{Form, Trial, compared, noise};
use crate::cli::outcome::Failure;
use crate::cli::rehearsal::{Rehearsal, rehearse, written};
use crate::cli::stopping::end_on_signals;
use crate::cli::summary::{LIMIT_REACHED, missing_rows, represented, suppressed_since, too_short};
use crate::cli::text;
use crate::cli::trials::for_trial;
use crate::config::Config;
use crate::io::file::is_at_rest;
use crate::start::probe::{Probe, probe};
use crate::telemetry::{Label, Limit};
use anyhow::{Context, anyhow};
use serde_json::{Map, Value, json};
use std::path::Path;
use throng_core::values::schema::Schema;

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
    // The lineage names people by digests under the secret: a job without one gets one for the trial.
    let config = if config.secret.is_some() { config } else { for_trial(&config)? };
    let (written, stop) = (written(&config, input)?, end_on_signals()?);
    let rehearsal = rehearse(config.clone(), file, input, written, true, &stop)?;
    let probed = probe(&rehearsal.config, &rehearsal.schema, input);
    let probed = probed.map_err(|error| Failure::Usage(anyhow::Error::from(error).context("--sample")))?;
    let left = left(&rehearsal)?;
    let nothing = left.iter().all(|output| output.lines == 0);
    let trial = Trial { config: &config, file, input, written, stop: &stop };
    let has_noise = config.series.iter().any(|series| series.epsilon_per_week.is_some());
    let forms = if nothing && !has_noise { Vec::new() } else { trial.compare(&rehearsal, probed.records)? };
    let fragments = rehearsal.config.release.fragments.then_some(rehearsal.shapes.as_slice());
    let consumer = Consumer::of(&rehearsal.schema, fragments, rehearsal.terms.as_deref(), &forms);
    let found = Found { rehearsal: &rehearsal, probed: &probed, left: &left, forms: &forms, consumer: &consumer };
    if as_json {
        println!("{:#}", found.as_value(&config, input));
    } else {
        print!("{}", found.described(input));
    }
    if nothing {
        let why = rehearsal.telemetry.status().series.as_ref().and_then(too_short);
        let why = why.unwrap_or_else(|| "see above".to_owned());
        let message = format!("nothing of {} could be released with {file}: {why}", input.display());
        return Err(Failure::Usage(anyhow!(message)));
    }
    trial.refusal(&rehearsal, &forms).map_or(Ok(()), Err)
}

/// Everything that was found on a sample.
struct Found<'a> {
    rehearsal: &'a Rehearsal,
    probed: &'a Probe,
    left: &'a [Left],
    forms: &'a [Form],
    consumer: &'a Consumer,
}

/// Lines of one output.
struct Left {
    kind: &'static str,
    name: String,
    lines: u64,
    first: Vec<String>,
}

fn left(rehearsal: &Rehearsal) -> anyhow::Result<Vec<Left>> {
    let of = |kind: &'static str, (name, path): &(String, std::path::PathBuf)| {
        let (lines, first) = Rehearsal::lines(path, SHOWN).context("the output of the rehearsal cannot be read")?;
        Ok(Left { kind, name: name.clone(), lines, first })
    };
    let groups = rehearsal.outputs.iter().map(|output| of("group", output));
    groups.chain(rehearsal.series.iter().map(|output| of("series", output))).collect()
}

/// Counts by attribute, in words.
fn by_name(schema: &Schema, counts: &[(usize, u64)]) -> String {
    let said = counts
        .iter()
        .map(|(a, count)| format!("{} ({})", text::clean(&schema.attributes[*a].name), text::number(*count)));
    said.collect::<Vec<_>>().join(", ")
}

impl Found<'_> {
    fn described(&self, input: &Path) -> String {
        let mut out =
            format!("{}: {} tried, nothing kept\n", input.display(), text::counted(self.probed.records, "record"));
        if !self.forms.is_empty() {
            out += &format!("\n{}\n{}\n", compared(self.forms), self.consumer.described());
        }
        for words in self.outcome().into_iter().chain(self.warnings()) {
            out += &text::wrapped("  ", &words);
        }
        for output in self.left {
            out += &format!("{} {}: {}\n", output.kind, output.name, text::counted(output.lines, "line"));
            for first in &output.first {
                out += &format!("  {}\n", text::clean(first));
            }
        }
        out
    }

    /// What became of the records, in sentences.
    fn outcome(&self) -> Vec<String> {
        let status = self.rehearsal.telemetry.status();
        let totals = status.totals;
        let counted = |count: u64| {
            let share = text::percent(count as f64 / totals.consumed.max(1) as f64);
            format!("{} ({share})", text::number(count))
        };
        let mut lines = represented(&status);
        if !status.only_series {
            lines.push(format!("released {}", counted(totals.released)));
            let suppressed = status.suppressed.iter().filter(|(_, records)| *records > 0);
            let why = |(why, records)| format!("suppressed {}: {}", counted(records), suppressed_since(why, &status));
            lines.extend(suppressed.map(why));
        }
        lines.extend(status.series.iter().filter_map(missing_rows));
        lines.extend(noise(self.forms));
        if totals.dead_lettered > 0 {
            let unreadable = self.probed.unreadable;
            lines.push(format!("dead letters {}, {unreadable} of them no records", counted(totals.dead_lettered)));
        }
        if let Some(loss) = status.mean_loss.filter(|_| !status.only_series) {
            lines.push(format!(
                "mean loss {loss:.3} of the quasi cells that are there (0: all exact, 1: all suppressed)"
            ));
        }
        if status.thinned_fragments > 0 && !status.only_series {
            lines.push(
                "thinned lines: privacy.max_lines_per_subject and privacy.max_delay limit the lines of a person"
                    .to_owned(),
            );
        }
        lines
    }

    /// What does not fit the schema, in sentences.
    fn warnings(&self) -> Vec<String> {
        let (schema, probed, telemetry) = (&self.rehearsal.schema, self.probed, &self.rehearsal.telemetry);
        let names = |attributes: &[usize]| {
            let names = attributes.iter().map(|a| text::clean(&schema.attributes[*a].name));
            names.collect::<Vec<_>>().join(", ")
        };
        let mut lines = Vec::new();
        if telemetry.has_reached(Limit::WaitingLines) || telemetry.has_reached(Limit::SaidLines) {
            lines.push(LIMIT_REACHED.to_owned());
        }
        if !probed.never_met.is_empty() {
            lines.push(format!("warning: without a value in every record: {}", names(&probed.never_met)));
        }
        if !probed.wrong_type.is_empty() {
            lines.push(format!("warning: not of their type, by records: {}", by_name(schema, &probed.wrong_type)));
        }
        if !probed.uncovered.is_empty() {
            lines
                .push(format!("warning: not covered by a hierarchy, by cells: {}", by_name(schema, &probed.uncovered)));
        }
        if !probed.dropped.is_empty() {
            let names: Vec<String> = probed.dropped.iter().map(|name| text::clean(name)).collect();
            lines.push(format!("dropped, since the schema does not know them: {}", names.join(", ")));
        }
        if probed.unnamed > 0 {
            let why = if probed.uncounted {
                "people cannot be counted: no record names its subject"
            } else {
                "fewer than k people have them"
            };
            lines.push(format!("and {} more, not named since {why}", text::counted(probed.unnamed as u64, "key")));
        }
        lines
    }

    fn as_value(&self, config: &Config, input: &Path) -> Value {
        let (schema, probed) = (&self.rehearsal.schema, self.probed);
        let status = self.rehearsal.telemetry.status();
        let name = |a: usize| schema.attributes[a].name.clone();
        let counts = |counts: &[(usize, u64)]| counts.iter().map(|(a, n)| (name(*a), json!(n))).collect::<Map<_, _>>();
        let why: Map<String, Value> = status
            .suppressed
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(why, n)| (why.as_str().to_owned(), json!(n)))
            .collect();
        let output = |output: &Left| {
            let first: Vec<Value> = output.first.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
            json!({ "name": output.name, "lines": output.lines, "first": first })
        };
        let outputs = |kind: &str| self.left.iter().filter(|left| left.kind == kind).map(output).collect::<Vec<_>>();
        json!({
            "input": input.display().to_string(),
            "records": probed.records,
            "forms": self.forms,
            "represented": status.represented.share(),
            "min_represented": config.release.min_represented,
            "can_learn": self.consumer.can_learn,
            "cannot_learn": self.consumer.cannot_learn,
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
            "groups": outputs("group"),
            "series": outputs("series"),
        })
    }
}
