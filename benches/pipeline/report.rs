//! Table as Markdown for `docs/performance.md`.

use std::fmt::Write as _;

use crate::machine::Spent;

#[derive(Default)]
pub struct Report {
    head: Vec<String>,
    rates: Vec<String>,
    figures: Vec<[String; 2]>,
    targets: Vec<[String; 4]>,
}

impl Report {
    pub fn head(&mut self, line: String) {
        self.head.push(line);
    }

    /// Adds a measurement. `rate` replaces the quotient of `records` and `spent`.
    pub fn rate(&mut self, what: &str, records: u64, spent: Spent, rate: Option<f64>) -> f64 {
        let rate = rate.unwrap_or(records as f64 / spent.seconds);
        let Spent { seconds, throng, broker, bench, others } = spent;
        let row = format!(
            "| {what} | {} | {seconds:.1} | {throng:.1} | {broker:.1} | {bench:.1} | {others:.1} |",
            grouped(rate.round() as u64)
        );
        eprintln!("{row}");
        self.rates.push(row);
        rate
    }

    pub fn figure(&mut self, what: &str, value: String) {
        eprintln!("{what}: {value}");
        self.figures.push([what.to_owned(), value]);
    }

    pub fn target(&mut self, what: &str, measured: String, wanted: &str, met: bool) {
        let verdict = if met { "met" } else { "missed" };
        self.targets.push([what.to_owned(), measured, wanted.to_owned(), verdict.to_owned()]);
    }

    pub fn markdown(&self) -> String {
        let mut text = self.head.join("\n");
        text.push_str("\n\n| | records/s | wall, s | CPU, s: throng | broker | bench | others |\n");
        text.push_str("|---|---:|---:|---:|---:|---:|---:|\n");
        text.push_str(&self.rates.join("\n"));
        text.push_str("\n\n| | |\n|---|---|\n");
        for [what, value] in &self.figures {
            writeln!(text, "| {what} | {value} |").expect("writing to a string");
        }
        text.push_str("\n| target | measured | wanted | |\n|---|---|---|---|\n");
        for [what, measured, wanted, verdict] in &self.targets {
            writeln!(text, "| {what} | {measured} | {wanted} | {verdict} |").expect("writing to a string");
        }
        text
    }
}

/// Formats 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
