//! HTML components of reports, without scripts and external resources.

use super::text_format::{number, sanitize_text};
use crate::html::{document, style_policy};
use chrono::{DateTime, Utc};
use maud::{Markup, Render, html};

/// Renders a report with `facts` and time below its heading.
#[must_use]
pub fn report_document(
    kind: &str,
    name: &str,
    facts: &Markup,
    now: DateTime<Utc>,
    alarms: &Markup,
    parts: &[Markup],
) -> String {
    let policy = html! { meta http-equiv="Content-Security-Policy" content=(style_policy()); };
    let body = html! {
        body {
            header {
                p.brand { "throng · " (kind) }
                h1 { (sanitize_text(name)) }
                p.facts { (facts) span { (now.format("%Y-%m-%d %H:%M UTC")) } }
                (alarms)
            }
            main { @for part in parts { (part) } }
            footer { span { "throng " (env!("CARGO_PKG_VERSION")) } }
        }
    };
    document(&format!("{}: {}", capital(kind), sanitize_text(name)), &policy, &body)
}

fn capital(text: &str) -> String {
    text.chars().take(1).flat_map(char::to_uppercase).chain(text.chars().skip(1)).collect()
}

/// Renders a count with its unit.
#[must_use]
pub fn fact_badge(count: impl Render, what: &str) -> Markup {
    html! { span { b { (count) } " " (what) } }
}

/// Renders a table cell.
#[must_use]
pub fn text(text: impl Render) -> Markup {
    html! { (text) }
}

/// Renders a table that becomes cards on a narrow screen. The first cell heads its row.
#[must_use]
pub fn table(label: &str, heads: &[&str], rows: impl Iterator<Item = Vec<Markup>>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table.long role="table" {
                thead role="rowgroup" {
                    tr role="row" {
                        @for (at, name) in heads.iter().enumerate() {
                            th scope="col" role="columnheader" class=[(at > 0).then_some("n")] { (name) }
                        }
                    }
                }
                tbody role="rowgroup" {
                    @for row in rows {
                        tr role="row" {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 {
                                    th scope="row" role="rowheader" class="set" { (cell) }
                                } @else {
                                    td.n role="cell" data-name=[heads.get(at)] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders a section.
#[must_use]
pub fn card(title: &str, sub: impl Render, content: impl Render) -> Markup {
    html! { section.card { h2 { (title) } p.sub { (sub) } (content) } }
}

/// Renders a figure with name and remark; `bad` selects the colour.
#[must_use]
pub fn tile(name: &str, value: &str, bad: bool, remark: &str) -> Markup {
    let colour = if bad { "warm" } else { "cool" };
    html! { div.tile { p.name { (name) } p.value.(colour) { (value) } p.remark { (remark) } } }
}

/// Renders a chart legend.
#[must_use]
pub fn legend(keys: &[(&str, &str)]) -> Markup {
    html! { p.legend { @for (colour, what) in keys { span { i.key.(colour) {} (what) } } } }
}

/// Renders names in boxes.
#[must_use]
pub fn name_boxes<'n>(names: impl IntoIterator<Item = &'n String>) -> Markup {
    html! { @for name in names { span { (sanitize_text(name)) } } }
}

/// Renders the number of hidden entries.
#[must_use]
pub fn hidden_count_note(all: usize, shown: usize) -> Markup {
    html! {
        @if all > shown { p.more { "… and " (number((all - shown) as u64)) " more; the JSON report has them all" } }
    }
}

/// Horizontal bar.
pub struct ChartBar {
    /// Name of the row.
    pub label: String,
    /// Lengths as shares of the longest bar, and colours.
    pub pieces: Vec<(f64, &'static str)>,
    /// Text after the bar.
    pub value: String,
    /// Tooltip.
    pub hint: String,
}

impl ChartBar {
    /// Hundredths; a share above 0 is visible.
    fn piece_positions(&self) -> Vec<(f64, f64, &'static str)> {
        let mut left = 0.0;
        let place = |(share, colour): &(f64, &'static str)| {
            let long = if *share > 0.0 { (share * 100.0).max(0.5).min(100.0 - left) } else { 0.0 };
            left += long;
            (left - long, long, *colour)
        };
        self.pieces.iter().map(place).filter(|(_, long, _)| *long > 0.0).collect()
    }
}

/// Renders horizontal bars.
#[must_use]
pub fn bars(name: &str, rows: &[ChartBar]) -> Markup {
    html! {
        ul.bars aria-label=(name) {
            @for row in rows {
                li title=(row.hint) {
                    span.name { (sanitize_text(&row.label)) }
                    svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                        rect.track width="100" height="10" {}
                        @for (left, long, colour) in row.piece_positions() {
                            rect.(colour) x={ (format!("{left:.2}")) } width={ (format!("{long:.2}")) } height="10" {}
                        }
                    }
                    span.value { (row.value) }
                }
            }
        }
    }
}
