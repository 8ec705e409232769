//! The report for a terminal.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;

use super::next;
use crate::cli::text::{clean, counted, number, percent, reason, seconds, short};
use throng_risk::audit::{QidReport, Report, RiskyRecord, Singletons};
use throng_risk::linking::Tied;

/// How many of each list are shown; `--json` has them all.
const SHOWN: usize = 12;

/// Whether emphasis is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub emphasis: bool,
}

impl Style {
    /// Emphasis on a terminal, unless `NO_COLOR` is set.
    pub fn of_stdout() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { emphasis: std::io::stdout().is_terminal() && !plain }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.emphasis { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn soft(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// What is at risk.
    fn warm(self, text: &str) -> String {
        self.wrap("33", text)
    }
}

/// The report; `page` is where it was also written as a page.
pub fn render(report: &Report, page: Option<&Path>, style: Style) -> String {
    let mut out = String::new();
    let parts =
        [head, arrays, risk, reach, identifiers, qids, attributes, riskiest, link, inferences, safe, what_next, foot];
    for part in parts {
        let text = part(report, style);
        if !text.is_empty() {
            out.push_str(&text);
            out.push('\n');
        }
    }
    if let Some(page) = page {
        writeln!(out, "{}", style.soft(&format!("page: {}", page.display()))).unwrap_or_default();
    }
    out
}

/// What ties records to known people.
fn link(report: &Report, style: Style) -> String {
    let Some(link) = &report.link else { return String::new() };
    let line = |tied: &Tied| {
        format!(
            "  {} tied, {} below {}, {} to one person, {} one to one  by {}\n",
            number(tied.records),
            number(tied.below_k),
            report.k,
            number(tied.uniquely),
            number(tied.one_to_one),
            tied.attributes.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ")
        )
    };
    let of = format!("{} of {}", counted(link.known, "row"), clean(&link.file));
    let mut out = format!("{}  {of}\n{}", style.bold("Records that what is known ties"), line(&link.all));
    link.combinations.iter().for_each(|tied| out.push_str(&line(tied)));
    if link.looked_at < link.of {
        writeln!(out, "  {} of {} combinations were looked at", number(link.looked_at), number(link.of))
            .unwrap_or_default();
    }
    out
}

/// A bar of `width` characters at most, in eighths.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = ((share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize).max(usize::from(share > 0.0));
    let mut bar: String = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8]);
    }
    let length = bar.chars().count();
    bar + &" ".repeat(width - length)
}

fn crowd(report: &Report) -> &'static str {
    if report.subjects.is_some() { "people" } else { "records" }
}

fn head(report: &Report, style: Style) -> String {
    let people = report.subjects.map_or(String::new(), |n| format!(" of {} people", number(n)));
    let searched = report.risk.attributes;
    let masked = if report.singletons == Singletons::Mask { ", rare single values masked" } else { "" };
    format!(
        "{}  {}{people}, k = {}, {searched} of {} searched{masked}\n",
        style.bold(&clean(&report.input)),
        counted(report.rows, "record"),
        report.k,
        counted(report.attributes.len() as u64, "column"),
    )
}

/// Before any number: what the numbers do not speak of.
fn arrays(report: &Report, style: Style) -> String {
    next::about_arrays(report).map_or(String::new(), |said| format!("{} {said}\n", style.warm("NOT JUDGED:")))
}

fn what_next(report: &Report, style: Style) -> String {
    let skip = usize::from(!report.arrays.is_empty());
    let steps: String = next::steps(report).iter().skip(skip).map(|step| format!("  - {step}\n")).collect();
    if steps.is_empty() { steps } else { title("What to do next", "", style) + &steps }
}

fn title(text: &str, remark: &str, style: Style) -> String {
    if remark.is_empty() {
        format!("{}\n", style.bold(text))
    } else {
        format!("{}  {}\n", style.bold(text), style.soft(remark))
    }
}

fn risk(report: &Report, style: Style) -> String {
    let risk = &report.risk.risk;
    if report.risk.attributes == 0 {
        return String::new();
    }
    let who = crowd(report);
    let mut out = title("Risk", "of being picked out by somebody who knows every searched column", style);
    let smallest = if risk.smallest_class == 1 {
        "somebody stands alone".to_owned()
    } else {
        format!("the smallest crowd has {} {who}", number(risk.smallest_class))
    };
    let mut line = |name: &str, value: String, remark: String| {
        out +=
            &format!("  {name:<11}{:>9}   {}\n", style.bold(&format!("{value:>9}")).trim_start(), style.soft(&remark));
    };
    line("highest", percent(risk.highest), smallest);
    line("average", percent(risk.average), format!("over {}", counted(report.rows, "record")));
    let below = format!("{} of {} in crowds below {}", number(risk.records_below_k), number(report.rows), report.k);
    line("records", percent(risk.share_below_k), below);
    if let Some(people) = report.subjects {
        let below = format!("{} of {} with such a record", number(risk.people_below_k), number(people));
        line("people", percent(risk.share_people_below_k), below);
    }
    out
}

fn reach(report: &Report, style: Style) -> String {
    if report.risk.risk.records_below_k == 0 {
        return String::new();
    }
    let remark = format!("records in a crowd below {} for somebody who knows the right columns", report.k);
    let mut out = title("How little is enough", &remark, style);
    let mut line = |name: String, records: u64| {
        let share = records as f64 / report.rows as f64;
        let bar = style.warm(&bar(share, 30));
        out += &format!("  {name:<11}{bar} {:>8}  {}\n", percent(share), style.soft(&counted(records, "record")));
    };
    for step in &report.risk.reach {
        line(if step.size == 1 { "1 column".to_owned() } else { format!("{} columns", step.size) }, step.records);
    }
    if !report.risk.reach_exhausted {
        line(format!("all {}", report.risk.attributes), report.risk.risk.records_below_k);
    }
    out
}

fn identifiers(report: &Report, style: Style) -> String {
    let found: Vec<_> = report.attributes.iter().filter(|a| !a.identifier.is_empty()).collect();
    if found.is_empty() && report.subject.is_none() {
        return title("Standalone identifiers", "none", style);
    }
    let mut out = title("Standalone identifiers", "not searched: each gives people away by itself", style);
    if let Some(subject) = &report.subject {
        out += &format!("  {}{}\n", pad(subject), style.soft("counts the people"));
    }
    for attribute in found.iter().take(SHOWN) {
        let mut why: Vec<String> = attribute.identifier.iter().map(reason).collect();
        why.extend(attribute.safe_harbor.map(|category| format!("Safe Harbor: {}", category.title())));
        out += &format!("  {}{}\n", pad(&attribute.name), style.soft(&why.join("; ")));
    }
    out + &more(found.len(), style)
}

fn pad(name: &str) -> String {
    format!("{:<25} ", short(&clean(name), 25))
}

fn more(all: usize, style: Style) -> String {
    match all.checked_sub(SHOWN).filter(|rest| *rest > 0) {
        None => String::new(),
        Some(rest) => {
            format!("  {}\n", style.soft(&format!("… and {} more (--json has them all)", number(rest as u64))))
        }
    }
}

/// Names of a set, joined.
fn joined(names: &[String]) -> String {
    short(&names.iter().map(|name| clean(name)).collect::<Vec<_>>().join(" + "), 78)
}

/// How many sets of each size.
fn sizes(sets: &[Vec<String>]) -> String {
    let mut counts: std::collections::BTreeMap<usize, u64> = std::collections::BTreeMap::new();
    for set in sets {
        *counts.entry(set.len()).or_default() += 1;
    }
    let size = |(size, count): (&usize, &u64)| format!("{} of {size}", number(*count));
    counts.iter().map(size).collect::<Vec<_>>().join(", ")
}

fn qids(report: &Report, style: Style) -> String {
    let found = if report.complete { "" } else { " proved in time" };
    if report.minimal_qids.is_empty() {
        let remark = if report.risk.attributes == 0 { "nothing was searched" } else { "none" };
        return title(&format!("Minimal quasi-identifiers{found}"), remark, style);
    }
    let heading = format!("{} minimal quasi-identifiers{found}", number(report.minimal_qids.len() as u64));
    let mut out = title(&heading, &format!("by columns: {}", sizes(&report.minimal_qids)), style);
    let mut worst: Vec<&QidReport> = report.qids.iter().collect();
    worst.sort_by_key(|qid| Reverse(qid.records_below_k));
    if !worst.is_empty() {
        out += &format!("  {}\n", style.soft(&format!("{:>10} {:>9}  columns together", "below k", "smallest")));
    }
    for qid in worst.iter().take(SHOWN) {
        out += &format!(
            "  {:>10} {:>9}  {}\n",
            number(qid.records_below_k),
            number(qid.smallest_class),
            joined(&qid.attributes)
        );
        if let Some(example) = &qid.example {
            let values: Vec<String> = example.iter().map(|value| clean(value)).collect();
            out +=
                &format!("  {:>20}  {}\n", "", style.soft(&short(&format!("for example {}", values.join(" · ")), 78)));
        }
    }
    out + &more(report.minimal_qids.len(), style)
}

fn attributes(report: &Report, style: Style) -> String {
    let searched: Vec<_> = report.attributes.iter().filter(|a| a.searched && a.minimal_qids > 0).collect();
    let most = searched.iter().map(|a| a.records_at_risk).max().unwrap_or(0).max(1) as f64;
    if searched.is_empty() {
        return String::new();
    }
    let mut out =
        title("Columns that matter most", "records that they help to give away; share in the quasi-identifiers", style);
    for attribute in searched.iter().take(SHOWN) {
        let smallest = attribute.smallest_qid.map_or(String::new(), |n| format!("smallest set: {n}"));
        out += &format!(
            "  {}{} {:>9} {:>8}  {:>7} {}\n",
            pad(&attribute.name),
            style.warm(&bar(attribute.records_at_risk as f64 / most, 16)),
            number(attribute.records_at_risk),
            percent(attribute.records_at_risk as f64 / report.rows as f64),
            percent(attribute.involvement),
            style.soft(&smallest),
        );
    }
    out + &more(searched.len(), style)
}

/// Combinations of one record that are shown.
const COMBINATIONS: usize = 3;

fn riskiest(report: &Report, style: Style) -> String {
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
    out += &format!("  {}\n", style.soft(&format!("{:>10} {:>12}  singled out by", "record", "score")));
    for record in &found.records {
        out += &risky(record, style);
    }
    out
}

/// A record, and below it the rest of what singles it out.
fn risky(record: &RiskyRecord, style: Style) -> String {
    let shown = &record.combinations[..record.combinations.len().min(COMBINATIONS)];
    let first = shown.first().map_or(String::new(), |names| joined(names));
    let mut out = format!("  {:>10} {:>12}  {first}\n", number(record.record), number(record.score as u64));
    for names in shown.iter().skip(1) {
        out += &format!("  {:>23}  {}\n", "", joined(names));
    }
    let rest = record.combinations_of - shown.len() as u64;
    if rest > 0 {
        out += &format!("  {:>23}  {}\n", "", style.soft(&format!("… and {} more (--json)", number(rest))));
    }
    out
}

fn inferences(report: &Report, style: Style) -> String {
    let Some(strongest) = report.inferences.first() else { return String::new() };
    let remark = format!("the strongest of each pair of columns that {} or more {} support", report.k, crowd(report));
    let mut out = title("What gives what away", &remark, style);
    let people = if strongest.people.is_some() { format!("{:>9} ", "people") } else { String::new() };
    out += &format!(
        "  {}\n",
        style.soft(&format!("{:>9} {:>9} {:>9} {people} value of → value of", "sure", "guessed", "records"))
    );
    for inference in report.inferences.iter().take(SHOWN) {
        let people = inference.people.map_or(String::new(), |people| format!("{:>9} ", number(people)));
        let names = format!("{} → {}", clean(&inference.from), clean(&inference.to));
        out += &format!(
            "  {:>9} {:>9} {:>9} {people} {}\n",
            percent(inference.probability),
            percent(inference.expected),
            number(inference.records),
            short(&names, 78)
        );
        if let Some([given, told]) = &inference.values {
            let example = format!("{} → {}", clean(given), clean(told));
            out += &format!("  {:>31} {}\n", "", style.soft(&short(&example, 78)));
        }
    }
    out + &more(report.inferences.len(), style)
}

fn safe(report: &Report, style: Style) -> String {
    if report.maximal_non_qids.is_empty() {
        let remark = match (report.risk.attributes, report.complete) {
            (0, _) => "nothing was searched",
            (_, true) => "none: every column alone is a quasi-identifier",
            (_, false) => "none proved in time",
        };
        return title("Safe together", remark, style);
    }
    let heading = format!("{} largest safe sets", number(report.maximal_non_qids.len() as u64));
    let remark = format!("every combination is shared by {} or more {}", report.k, crowd(report));
    let mut out = title(&heading, &remark, style);
    for set in report.maximal_non_qids.iter().rev().take(5) {
        out += &format!("  {:>3}  {}\n", set.len(), joined(set));
    }
    if let Some(rest) = report.maximal_non_qids.len().checked_sub(5).filter(|rest| *rest > 0) {
        out += &format!("  {}\n", style.soft(&format!("… and {} more (--json has them all)", number(rest as u64))));
    }
    if let Some(id) = &report.likely_subject {
        let id = clean(id);
        out += &format!(
            "  {}\n",
            style.soft(&format!("{id} is likely to be the id of a person: no set with it is safe to release"))
        );
    }
    out
}

fn foot(report: &Report, style: Style) -> String {
    let mut out = String::new();
    for note in &report.notes {
        out += &format!("{} {note}\n", style.warm("note:"));
    }
    let t = report.timings;
    let done = if report.complete { "complete" } else { "cut short" };
    let line = format!(
        "{done}: {} counted, {} decided without, {} (reading {}, search {}, measuring {}; {}, {}, {})",
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
    out + &style.soft(&line) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_a_little_of_little_and_never_more_than_all() {
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(1e-9, 4), "▏   ");
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!((bar(1.0, 4), bar(7.0, 4)), ("████".into(), "████".into()));
        assert!((0..=1000).all(|i| bar(f64::from(i) / 1000.0, 30).chars().count() == 30));
    }
}
