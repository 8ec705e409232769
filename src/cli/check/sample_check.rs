//! `throng check --sample`.

use super::consumer_knowledge::ConsumerKnowledge;
use super::form_comparison::{FormComparison, SampleTrial, describe_carried_values, describe_noise, format_comparison};
use crate::cli::outcome::Failure;
use crate::cli::policy_test_runs::with_trial_secret;
use crate::cli::progress::spinner;
use crate::cli::run_summary::{
    LIMIT_REACHED_NOTE, missing_buckets_advice, missing_rows_reasons, represented_lines, suppression_reason_text,
};
use crate::cli::stop_signals::exit_on_signals;
use crate::cli::text_format;
use crate::cli::trial_run::{TrialRun, record_file_format};
use crate::config::Config;
use crate::io::file::is_rereadable;
use crate::start::schema_comparison::{SchemaComparison, compare_file};
use crate::telemetry::{Label, Limit};
use anyhow::{Context, anyhow};
use serde_json::{Map, Value, json};
use std::path::Path;
use throng_core::values::schema::Schema;

const MAX_SHOWN_LINES: usize = 3;

/// Tries a configuration on `input` and keeps nothing.
///
/// # Errors
/// Fails for unreadable input or a failed run; [`Failure::Usage`] if nothing can be released.
pub(super) fn run(config: Config, file: &str, input: &Path, as_json: bool) -> Result<(), Failure> {
    if !is_rereadable(input) {
        let named = input.display();
        return Err(Failure::Usage(anyhow!(
            "--sample: {named} is not a regular file, but the records are read more than once: name a file"
        )));
    }
    // The lineage needs keyed digests.
    let config = if config.secret.is_some() { config } else { with_trial_secret(&config)? };
    let (written, stop) = (record_file_format(&config, input)?, exit_on_signals()?);
    let bar = spinner("{spinner} {msg} {elapsed}");
    let trial = SampleTrial { config: &config, file, input, written, stop: &stop, bar: &bar };
    let findings = SampleFindings::measure(&trial);
    bar.finish_and_clear();
    let found = findings?;
    if as_json {
        println!("{:#}", found.findings_json(&config, input));
    } else {
        print!("{}", found.findings_text(input));
    }
    if has_no_lines(&found.left) {
        let why = found.rehearsal.telemetry.status().series.as_ref().and_then(missing_buckets_advice);
        let why = why.unwrap_or_else(|| "see above".to_owned());
        let message = format!("nothing of {} could be released with {file}: {why}", input.display());
        return Err(Failure::Usage(anyhow!(message)));
    }
    trial.refusal(&found.rehearsal, &found.comparison.forms).map_or(Ok(()), Err)
}

struct SampleFindings {
    rehearsal: TrialRun,
    probed: SchemaComparison,
    left: Vec<ShownOutput>,
    comparison: FormComparison,
    consumer: ConsumerKnowledge,
}

struct ShownOutput {
    kind: &'static str,
    name: String,
    lines: u64,
    first: Vec<String>,
}

fn read_trial_outputs(rehearsal: &TrialRun) -> anyhow::Result<Vec<ShownOutput>> {
    let of = |kind: &'static str, (name, path): &(String, std::path::PathBuf)| {
        let (lines, first) =
            TrialRun::read_first_lines(path, MAX_SHOWN_LINES).context("cannot read the output of the trial run")?;
        Ok(ShownOutput { kind, name: name.clone(), lines, first })
    };
    let groups = rehearsal.outputs.iter().map(|output| of("group", output));
    groups.chain(rehearsal.series.iter().map(|output| of("series", output))).collect()
}

fn has_no_lines(left: &[ShownOutput]) -> bool {
    left.iter().all(|output| output.lines == 0)
}

fn format_attribute_counts(schema: &Schema, counts: &[(usize, u64)]) -> String {
    let said = counts.iter().map(|(a, count)| {
        format!("{} ({})", text_format::sanitize_text(&schema.attributes[*a].name), text_format::number(*count))
    });
    said.collect::<Vec<_>>().join(", ")
}

impl SampleFindings {
    fn measure(trial: &SampleTrial<'_>) -> Result<Self, Failure> {
        let SampleTrial { config, input, bar, .. } = *trial;
        let rehearsal = trial.run(config.clone(), "trying the configuration")?;
        bar.set_message("comparing the records with the schema");
        let probed = compare_file(&rehearsal.config, &rehearsal.schema, input);
        let probed = probed.map_err(|error| Failure::Usage(anyhow::Error::from(error).context("--sample")))?;
        let left = read_trial_outputs(&rehearsal)?;
        let has_noise = config.series.iter().any(|series| series.epsilon_per_week.is_some());
        let comparison = if has_no_lines(&left) && !has_noise {
            FormComparison::default()
        } else {
            trial.compare(&rehearsal, probed.records)?
        };
        let fragments = rehearsal.config.release.fragments.then_some(rehearsal.shapes.as_slice());
        let (schema, terms) = (&rehearsal.schema, rehearsal.terms.as_deref());
        let consumer = ConsumerKnowledge::from_forms(schema, fragments, terms, &comparison.forms);
        Ok(Self { rehearsal, probed, left, comparison, consumer })
    }

    fn findings_text(&self, input: &Path) -> String {
        let mut out = format!(
            "{}: {} tried, nothing kept\n",
            input.display(),
            text_format::counted(self.probed.records, "record")
        );
        if !self.comparison.forms.is_empty() {
            out += &format!("\n{}\n{}\n", format_comparison(&self.comparison), self.consumer.learning_text());
        }
        for words in self.outcome_sentences().into_iter().chain(self.mismatch_sentences()) {
            out += &text_format::wrap_text("  ", &words);
        }
        for output in &self.left {
            out += &format!("{} {}: {}\n", output.kind, output.name, text_format::counted(output.lines, "line"));
            for first in &output.first {
                out += &format!("  {}\n", text_format::sanitize_text(first));
            }
        }
        out
    }

    fn outcome_sentences(&self) -> Vec<String> {
        let status = self.rehearsal.telemetry.status();
        let totals = status.totals;
        let counted = |count: u64| {
            let share = text_format::percent(count as f64 / totals.consumed.max(1) as f64);
            format!("{} ({share})", text_format::number(count))
        };
        let mut lines = represented_lines(&status);
        if !status.only_series {
            lines.push(format!("released {}", counted(totals.released)));
            let suppressed = status.suppressed.iter().filter(|(_, records)| *records > 0);
            let why =
                |(why, records)| format!("suppressed {}: {}", counted(records), suppression_reason_text(why, &status));
            lines.extend(suppressed.map(why));
        }
        lines.extend(status.series.iter().filter_map(missing_rows_reasons));
        lines.extend(describe_carried_values(&self.comparison.forms));
        lines.extend(describe_noise(&self.comparison.forms));
        if totals.dead_lettered > 0 {
            let unreadable = self.probed.unreadable;
            lines.push(format!("dead letters {}, {unreadable} of them unreadable", counted(totals.dead_lettered)));
        }
        if let Some(loss) = status.mean_loss.filter(|_| !status.only_series) {
            lines.push(format!("mean loss {loss:.3} over the present quasi cells (0: all exact, 1: all suppressed)"));
        }
        if status.thinned_fragments > 0 && !status.only_series {
            lines.push(
                "thinned lines: privacy.max_lines_per_subject and privacy.max_delay limit the lines per person"
                    .to_owned(),
            );
        }
        lines
    }

    fn mismatch_sentences(&self) -> Vec<String> {
        let (schema, probed, telemetry) = (&self.rehearsal.schema, &self.probed, &self.rehearsal.telemetry);
        let names = |attributes: &[usize]| {
            let names = attributes.iter().map(|a| text_format::sanitize_text(&schema.attributes[*a].name));
            names.collect::<Vec<_>>().join(", ")
        };
        let mut lines = Vec::new();
        if telemetry.has_reached(Limit::WaitingLines) || telemetry.has_reached(Limit::SaidLines) {
            lines.push(LIMIT_REACHED_NOTE.to_owned());
        }
        if !probed.empty_attributes.is_empty() {
            lines.push(format!("warning: no value in any record: {}", names(&probed.empty_attributes)));
        }
        if !probed.wrong_type.is_empty() {
            lines.push(format!(
                "warning: values of the wrong type, by records: {}",
                format_attribute_counts(schema, &probed.wrong_type)
            ));
        }
        if !probed.uncovered.is_empty() {
            lines.push(format!(
                "warning: not covered by a hierarchy, by cells: {}",
                format_attribute_counts(schema, &probed.uncovered)
            ));
        }
        if !probed.dropped.is_empty() {
            let names: Vec<String> = probed.dropped.iter().map(|name| text_format::sanitize_text(name)).collect();
            lines.push(format!("dropped, not in the schema: {}", names.join(", ")));
        }
        if probed.unnamed > 0 {
            let why = if probed.uncounted {
                "people cannot be counted: no record names its subject"
            } else {
                "fewer than k people have them"
            };
            lines.push(format!(
                "and {} more, not named since {why}",
                text_format::counted(probed.unnamed as u64, "key")
            ));
        }
        lines
    }

    fn findings_json(&self, config: &Config, input: &Path) -> Value {
        let (schema, probed) = (&self.rehearsal.schema, &self.probed);
        let status = self.rehearsal.telemetry.status();
        let name = |a: usize| schema.attributes[a].name.clone();
        let counts = |counts: &[(usize, u64)]| counts.iter().map(|(a, n)| (name(*a), json!(n))).collect::<Map<_, _>>();
        let why: Map<String, Value> = status
            .suppressed
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(why, n)| (why.as_str().to_owned(), json!(n)))
            .collect();
        let output = |output: &ShownOutput| {
            let first: Vec<Value> = output.first.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
            json!({ "name": output.name, "lines": output.lines, "first": first })
        };
        let outputs = |kind: &str| self.left.iter().filter(|left| left.kind == kind).map(output).collect::<Vec<_>>();
        json!({
            "input": input.display().to_string(),
            "records": probed.records,
            "forms": self.comparison.forms,
            "not_compared": self.comparison.skipped,
            "represented": status.represented.share(),
            "min_represented": config.release.min_represented,
            "can_learn": self.consumer.can_learn,
            "cannot_learn": self.consumer.cannot_learn,
            "no_rows": self.consumer.no_rows,
            "released": status.totals.released,
            "suppressed": status.totals.suppressed,
            "suppressed_why": why,
            "dead_lettered": status.totals.dead_lettered,
            "dropped_records": status.totals.dropped,
            "mean_loss": status.mean_loss,
            "never_met": probed.empty_attributes.iter().map(|a| name(*a)).collect::<Vec<_>>(),
            "wrong_type": counts(&probed.wrong_type),
            "uncovered": counts(&probed.uncovered),
            "unknown": probed.dropped,
            "unknown_unnamed": probed.unnamed,
            "groups": outputs("group"),
            "series": outputs("series"),
        })
    }
}
