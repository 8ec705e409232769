//! Audit report for a terminal.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;

use super::next_steps;
use crate::cli::text_format::{
    counted, identifier_reason, number, people, percent, sanitize_text, seconds, truncate_text,
};
use throng_risk::audit::{AuditReport, QidReport, RiskyRecord, SingletonPolicy};
use throng_risk::linking::ColumnSetLinks;

/// `--json` has all entries.
const MAX_LIST_ENTRIES: usize = 12;

/// Emphasis of the report.
#[derive(Clone, Copy, Debug)]
pub struct TerminalStyle {
    pub emphasis: bool,
}

impl TerminalStyle {
    /// Uses emphasis on a terminal without `NO_COLOR`.
    pub fn of_stdout() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { emphasis: std::io::stdout().is_terminal() && !plain }
    }

    fn with_escape_code(self, code: &str, text: &str) -> String {
        if self.emphasis { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.with_escape_code("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.with_escape_code("2", text)
    }

    fn highlight_risk(self, text: &str) -> String {
        self.with_escape_code("33", text)
    }
}

/// Formats the report; `page` is the HTML page, if any.
pub fn render(report: &AuditReport, page: Option<&Path>, style: TerminalStyle) -> String {
    let mut out = String::new();
    let parts = [
        head,
        arrays,
        risk,
        reach,
        identifiers,
        qids,
        attributes,
        riskiest,
        linked_records,
        inferences,
        safe_sets,
        what_next,
        report_footer,
    ];
    for part in parts {
        let text = part(report, style);
        if !text.is_empty() {
            out.push_str(&text);
            out.push('\n');
        }
    }
    if let Some(page) = page {
        writeln!(out, "{}", style.dim(&format!("page: {}", page.display()))).unwrap_or_default();
    }
    out
}

fn linked_records(report: &AuditReport, style: TerminalStyle) -> String {
    let Some(link) = &report.link else { return String::new() };
    let line = |tied: &ColumnSetLinks| {
        format!(
            "  {} linked, {} below {}, {} to one person, {} one to one  by {}\n",
            number(tied.records),
            number(tied.below_k),
            report.k,
            number(tied.uniquely),
            number(tied.one_to_one),
            tied.attributes.iter().map(|name| sanitize_text(name)).collect::<Vec<_>>().join(", ")
        )
    };
    let of = format!("{} of {}", counted(link.known, "row"), sanitize_text(&link.file));
    let mut out = format!("{}  {of}\n{}", style.bold("Records linked to known rows"), line(&link.all));
    link.combinations.iter().for_each(|tied| out.push_str(&line(tied)));
    if link.looked_at < link.of {
        writeln!(out, "  {} of {} combinations were searched", number(link.looked_at), number(link.of))
            .unwrap_or_default();
    }
    out
}

/// In eighths of a character.
fn text_bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = ((share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize).max(usize::from(share > 0.0));
    let mut bar: String = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8]);
    }
    let length = bar.chars().count();
    bar + &" ".repeat(width - length)
}

fn counted_unit(report: &AuditReport) -> &'static str {
    if report.subjects.is_some() { "people" } else { "records" }
}

fn head(report: &AuditReport, style: TerminalStyle) -> String {
    let people = report.subjects.map_or(String::new(), |n| format!(" of {}", people(n)));
    let searched = report.risk.attributes;
    let masked = if report.singletons == SingletonPolicy::Mask { ", rare single values masked" } else { "" };
    format!(
        "{}  {}{people}, k = {}, {searched} of {} searched{masked}\n",
        style.bold(&sanitize_text(&report.input)),
        counted(report.rows, "record"),
        report.k,
        counted(report.attributes.len() as u64, "column"),
    )
}

/// Precedes any number.
fn arrays(report: &AuditReport, style: TerminalStyle) -> String {
    next_steps::array_warning(report)
        .map_or(String::new(), |said| format!("{} {said}\n", style.highlight_risk("NOT JUDGED:")))
}

fn what_next(report: &AuditReport, style: TerminalStyle) -> String {
    let skip = usize::from(!report.arrays.is_empty());
    let steps: String =
        next_steps::recommended_steps(report).iter().skip(skip).map(|step| format!("  - {step}\n")).collect();
    if steps.is_empty() { steps } else { title("Next steps", "", style) + &steps }
}

fn title(text: &str, remark: &str, style: TerminalStyle) -> String {
    if remark.is_empty() {
        format!("{}\n", style.bold(text))
    } else {
        format!("{}  {}\n", style.bold(text), style.dim(remark))
    }
}

fn risk(report: &AuditReport, style: TerminalStyle) -> String {
    let risk = &report.risk.risk;
    if report.risk.attributes == 0 {
        return String::new();
    }
    let who = counted_unit(report);
    let mut out = title("Risk", "of re-identification by an attacker who knows every searched column", style);
    let smallest = if risk.smallest_class == 1 {
        "the smallest class has one member".to_owned()
    } else {
        format!("the smallest class has {} {who}", number(risk.smallest_class))
    };
    let mut line = |name: &str, value: String, remark: String| {
        out +=
            &format!("  {name:<11}{:>9}   {}\n", style.bold(&format!("{value:>9}")).trim_start(), style.dim(&remark));
    };
    line("highest", percent(risk.highest), smallest);
    line("average", percent(risk.average), format!("over {}", counted(report.rows, "record")));
    let below = format!("{} of {} in classes below {}", number(risk.records_below_k), number(report.rows), report.k);
    line("records", percent(risk.share_below_k), below);
    if let Some(people) = report.subjects {
        let below = format!("{} of {} with such a record", number(risk.people_below_k), number(people));
        line("people", percent(risk.share_people_below_k), below);
    }
    out
}

fn reach(report: &AuditReport, style: TerminalStyle) -> String {
    if report.risk.risk.records_below_k == 0 {
        return String::new();
    }
    let remark = format!("records in a class below {} for an attacker who knows the right columns", report.k);
    let mut out = title("Records at risk by number of known columns", &remark, style);
    let mut line = |name: String, records: u64| {
        let share = records as f64 / report.rows as f64;
        let bar = style.highlight_risk(&text_bar(share, 30));
        out += &format!("  {name:<11}{bar} {:>8}  {}\n", percent(share), style.dim(&counted(records, "record")));
    };
    for step in &report.risk.reach {
        line(if step.size == 1 { "1 column".to_owned() } else { format!("{} columns", step.size) }, step.records);
    }
    if !report.risk.reach_exhausted {
        line(format!("all {}", report.risk.attributes), report.risk.risk.records_below_k);
    }
    out
}

fn identifiers(report: &AuditReport, style: TerminalStyle) -> String {
    let found: Vec<_> = report.attributes.iter().filter(|a| !a.identifier.is_empty()).collect();
    if found.is_empty() && report.subject.is_none() {
        return title("Standalone identifiers", "none", style);
    }
    let mut out = title("Standalone identifiers", "not searched: each identifies people alone", style);
    if let Some(subject) = &report.subject {
        out += &format!("  {}{}\n", pad(subject), style.dim("subject column"));
    }
    for attribute in found.iter().take(MAX_LIST_ENTRIES) {
        let mut why: Vec<String> = attribute.identifier.iter().map(identifier_reason).collect();
        why.extend(attribute.safe_harbor.map(|category| format!("Safe Harbor: {}", category.title())));
        out += &format!("  {}{}\n", pad(&attribute.name), style.dim(&why.join("; ")));
    }
    out + &remaining_note(found.len(), style)
}

fn pad(name: &str) -> String {
    format!("{:<25} ", truncate_text(&sanitize_text(name), 25))
}

fn remaining_note(all: usize, style: TerminalStyle) -> String {
    match all.checked_sub(MAX_LIST_ENTRIES).filter(|rest| *rest > 0) {
        None => String::new(),
        Some(rest) => {
            format!("  {}\n", style.dim(&format!("… and {} more (--json has them all)", number(rest as u64))))
        }
    }
}

fn join_set_names(names: &[String]) -> String {
    truncate_text(&names.iter().map(|name| sanitize_text(name)).collect::<Vec<_>>().join(" + "), 78)
}

fn count_set_sizes(sets: &[Vec<String>]) -> String {
    let mut counts: std::collections::BTreeMap<usize, u64> = std::collections::BTreeMap::new();
    for set in sets {
        *counts.entry(set.len()).or_default() += 1;
    }
    let size = |(size, count): (&usize, &u64)| format!("{} of {size}", number(*count));
    counts.iter().map(size).collect::<Vec<_>>().join(", ")
}

fn qids(report: &AuditReport, style: TerminalStyle) -> String {
    let found = if report.complete { "" } else { " proved in time" };
    if report.minimal_qids.is_empty() {
        let remark = if report.risk.attributes == 0 { "nothing was searched" } else { "none" };
        return title(&format!("Minimal quasi-identifiers{found}"), remark, style);
    }
    let heading = format!("{}{found}", counted(report.minimal_qids.len() as u64, "minimal quasi-identifier"));
    let mut out = title(&heading, &format!("by columns: {}", count_set_sizes(&report.minimal_qids)), style);
    let mut worst: Vec<&QidReport> = report.qids.iter().collect();
    worst.sort_by_key(|qid| Reverse(qid.records_below_k));
    if !worst.is_empty() {
        out += &format!("  {}\n", style.dim(&format!("{:>10} {:>9}  columns together", "below k", "smallest")));
    }
    for qid in worst.iter().take(MAX_LIST_ENTRIES) {
        out += &format!(
            "  {:>10} {:>9}  {}\n",
            number(qid.records_below_k),
            number(qid.smallest_class),
            join_set_names(&qid.attributes)
        );
        if let Some(example) = &qid.example {
            let values: Vec<String> = example.iter().map(|value| sanitize_text(value)).collect();
            out += &format!(
                "  {:>20}  {}\n",
                "",
                style.dim(&truncate_text(&format!("for example {}", values.join(" · ")), 78))
            );
        }
    }
    out + &remaining_note(report.minimal_qids.len(), style)
}

fn attributes(report: &AuditReport, style: TerminalStyle) -> String {
    let searched: Vec<_> = report.attributes.iter().filter(|a| a.searched && a.minimal_qids > 0).collect();
    let most = searched.iter().map(|a| a.records_at_risk).max().unwrap_or(0).max(1) as f64;
    if searched.is_empty() {
        return String::new();
    }
    let mut out =
        title("Columns that matter most", "records that they help to identify; share in the quasi-identifiers", style);
    for attribute in searched.iter().take(MAX_LIST_ENTRIES) {
        let smallest = attribute.smallest_qid.map_or(String::new(), |n| format!("smallest set: {n}"));
        out += &format!(
            "  {}{} {:>9} {:>8}  {:>7} {}\n",
            pad(&attribute.name),
            style.highlight_risk(&text_bar(attribute.records_at_risk as f64 / most, 16)),
            number(attribute.records_at_risk),
            percent(attribute.records_at_risk as f64 / report.rows as f64),
            percent(attribute.involvement),
            style.dim(&smallest),
        );
    }
    out + &remaining_note(searched.len(), style)
}

const MAX_TERMINAL_COMBINATIONS: usize = 3;

fn riskiest(report: &AuditReport, style: TerminalStyle) -> String {
    let Some(found) = &report.riskiest else { return String::new() };
    if found.records.is_empty() {
        return title("Riskiest records", "none", style);
    }
    let remark = format!(
        "{} of {} with a combination of at most {} below {}",
        number(found.records.len() as u64),
        counted(found.at_risk, "record"),
        counted(found.largest as u64, "column"),
        report.k
    );
    let mut out = title("Riskiest records", &remark, style);
    out += &format!("  {}\n", style.dim(&format!("{:>10} {:>12}  singled out by", "record", "score")));
    for record in &found.records {
        out += &risky_record_lines(record, style);
    }
    out
}

fn risky_record_lines(record: &RiskyRecord, style: TerminalStyle) -> String {
    let shown = &record.combinations[..record.combinations.len().min(MAX_TERMINAL_COMBINATIONS)];
    let first = shown.first().map_or(String::new(), |names| join_set_names(names));
    let mut out = format!("  {:>10} {:>12}  {first}\n", number(record.record), number(record.score as u64));
    for names in shown.iter().skip(1) {
        out += &format!("  {:>23}  {}\n", "", join_set_names(names));
    }
    let rest = record.combinations_of - shown.len() as u64;
    if rest > 0 {
        out += &format!("  {:>23}  {}\n", "", style.dim(&format!("… and {} more (--json)", number(rest))));
    }
    out
}

fn inferences(report: &AuditReport, style: TerminalStyle) -> String {
    let Some(strongest) = report.inferences.first() else { return String::new() };
    let remark = format!("the strongest for each pair of columns, with {} or more {}", report.k, counted_unit(report));
    let mut out = title("Inferences between columns", &remark, style);
    let people = if strongest.people.is_some() { format!("{:>9} ", "people") } else { String::new() };
    out += &format!(
        "  {}\n",
        style.dim(&format!("{:>9} {:>9} {:>9} {people} value of → value of", "certainty", "baseline", "records"))
    );
    for inference in report.inferences.iter().take(MAX_LIST_ENTRIES) {
        let people = inference.people.map_or(String::new(), |people| format!("{:>9} ", number(people)));
        let names = format!("{} → {}", sanitize_text(&inference.from), sanitize_text(&inference.to));
        out += &format!(
            "  {:>9} {:>9} {:>9} {people} {}\n",
            percent(inference.probability),
            percent(inference.expected),
            number(inference.records),
            truncate_text(&names, 78)
        );
        if let Some([given, told]) = &inference.values {
            let example = format!("{} → {}", sanitize_text(given), sanitize_text(told));
            out += &format!("  {:>31} {}\n", "", style.dim(&truncate_text(&example, 78)));
        }
    }
    out + &remaining_note(report.inferences.len(), style)
}

fn safe_sets(report: &AuditReport, style: TerminalStyle) -> String {
    if report.maximal_non_qids.is_empty() {
        let remark = match (report.risk.attributes, report.complete) {
            (0, _) => "nothing was searched",
            (_, true) => "none: every column alone is a quasi-identifier",
            (_, false) => "none proved in time",
        };
        return title("Largest safe sets", remark, style);
    }
    let heading = counted(report.maximal_non_qids.len() as u64, "largest safe set");
    let remark = format!("every combination is shared by {} or more {}", report.k, counted_unit(report));
    let mut out = title(&heading, &remark, style);
    for set in report.maximal_non_qids.iter().rev().take(5) {
        out += &format!("  {:>3}  {}\n", set.len(), join_set_names(set));
    }
    if let Some(rest) = report.maximal_non_qids.len().checked_sub(5).filter(|rest| *rest > 0) {
        out += &format!("  {}\n", style.dim(&format!("… and {} more (--json has them all)", number(rest as u64))));
    }
    if let Some(id) = &report.likely_subject {
        let id = sanitize_text(id);
        out += &format!(
            "  {}\n",
            style.dim(&format!("{id} is likely to be the id of a person: no set with it is safe to release"))
        );
    }
    out
}

fn report_footer(report: &AuditReport, style: TerminalStyle) -> String {
    let mut out = String::new();
    for note in &report.notes {
        out += &format!("{} {note}\n", style.highlight_risk("note:"));
    }
    let t = report.timings;
    let done = if report.complete { "complete" } else { "cut short" };
    let line = format!(
        "{done}: {} counted, {} decided without counting, {} (reading {}, search {}, measuring {}; {}, {}, {})",
        counted(report.evaluated, "set"),
        number(report.pruned),
        seconds(report.seconds),
        seconds(t.read),
        seconds(t.search),
        seconds(t.measure),
        report.strategy,
        report.backend,
        counted(report.threads as u64, "thread"),
    );
    out + &style.dim(&line) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_bar_shows_small_shares_and_never_exceeds_width() {
        assert_eq!(text_bar(0.0, 4), "    ");
        assert_eq!(text_bar(1e-9, 4), "▏   ");
        assert_eq!(text_bar(0.5, 4), "██  ");
        assert_eq!((text_bar(1.0, 4), text_bar(7.0, 4)), ("████".into(), "████".into()));
        assert!((0..=1000).all(|i| text_bar(f64::from(i) / 1000.0, 30).chars().count() == 30));
    }
}
