//! Audit report as one HTML page.

mod charts;

use std::cmp::Reverse;
use std::path::Path;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::next_steps;
use crate::cli::page_components::{
    card, fact_badge, hidden_count_note, legend, name_boxes, report_document as page, table, text, tile,
};
use crate::cli::text_format::{counted, identifier_reason, number, percent, plural, ratio, sanitize_text, seconds};
use throng_risk::audit::{AttributeReport, AuditReport, InferenceReport, QidReport, RiskyRecord, SingletonPolicy};
use throng_risk::linking::ColumnSetLinks;

/// The JSON report has all rows.
const MAX_AUDIT_PAGE_ROWS: usize = 25;

/// Origin of a page.
#[derive(Debug, Default)]
pub struct PageOrigin {
    /// Digest of a single input file.
    pub sha256: Option<String>,
    /// Options with values, which may be empty.
    pub options: Vec<(&'static str, String)>,
}

/// Renders the page; `now` is its creation time.
pub fn render(report: &AuditReport, made: &PageOrigin, now: DateTime<Utc>) -> String {
    let charts = html! {
        @if report.risk.attributes > 0 {
            div.row { (reach(report)) (crowds(report)) }
            div.row { (sizes(report)) (safe_sets_card(report)) }
        }
    };
    let parts = [
        verdict(report),
        tiles(report),
        next_steps_card(report),
        identifiers(report),
        charts,
        attributes(report),
        qids(report),
        riskiest(report),
        linked_records_card(report),
        inferences(report),
        columns(report),
        method(report),
        origin_card(made),
    ];
    page("re-identification audit", &input_file_name(report), &facts(report), now, &alarms(report), &parts)
}

/// Omits local directories.
fn input_file_name(report: &AuditReport) -> String {
    Path::new(&report.input)
        .file_name()
        .map_or_else(|| report.input.clone(), |name| name.to_string_lossy().into_owned())
}

fn class_unit(report: &AuditReport) -> &'static str {
    if report.subjects.is_some() { "people" } else { "records" }
}

fn facts(report: &AuditReport) -> Markup {
    let columns = report.attributes.len();
    html! {
        (fact_badge(number(report.rows), plural(report.rows, "record", "records")))
        @if let Some(people) = report.subjects { (fact_badge(number(people), plural(people, "person", "people"))) }
        span { b { (columns) } " " (plural(columns as u64, "column", "columns")) ", " b { (report.risk.attributes) } " searched" }
        span { b { "k = " (report.k) } }
        @if report.singletons == SingletonPolicy::Mask { (fact_badge(number(report.masked_cells), plural(report.masked_cells, "rare cell masked first", "rare cells masked first"))) }
    }
}

fn alarms(report: &AuditReport) -> Markup {
    html! {
        @if let Some(said) = next_steps::array_warning(report) { p.alarm { b { "Not judged." } " " (said) } }
        @if !report.complete {
            p.alarm {
                b { "The search was cut short." } " This page contains the results proved by then; treat every set of columns \
                that is not part of a listed safe set as unsafe."
            }
        }
    }
}

fn verdict(report: &AuditReport) -> Markup {
    let risk = &report.risk.risk;
    if report.risk.attributes == 0 {
        return html! {
            section.card {
                p { "No column to search: all of them identify people alone or were excluded." }
            }
        };
    }
    let columns = counted(report.risk.attributes, "searched column");
    let crowd = format!("at least {} {}", number(risk.smallest_class), class_unit(report));
    let half = report.risk.reach.iter().find(|step| step.records * 2 >= risk.records_below_k);
    let (class, says) = if risk.records_below_k > 0 {
        let says = html! {
            "An attacker who knows all " (columns) " of a person finds " b { (percent(risk.share_below_k)) " of the records" }
            " in a class of fewer than " (report.k) " " (class_unit(report)) "."
            @if let Some(step) = half {
                @if step.size == 1 { " One well-chosen column is" } @else { " " (step.size) " well-chosen columns are" }
                " enough for " (percent(step.records as f64 / report.rows as f64)) "."
            }
        };
        ("bad", says)
    } else if report.arrays.is_empty() {
        let says = html! { "Every record is in a class of " b { (crowd) } ", even for an attacker who knows all " (columns) "." };
        ("good", says)
    } else {
        let says = html! {
            "Outside its arrays, every record is in a class of " (crowd) ". "
            b { "The contents of the arrays were not judged." }
        };
        ("open", says)
    };
    html! { section.card.verdict.(class) { p { (says) } (charts::hundred_dots_chart(report)) } }
}

fn tiles(report: &AuditReport) -> Markup {
    let (risk, k) = (&report.risk.risk, report.k);
    if report.risk.attributes == 0 {
        return html! {};
    }
    let (bad, least) = (risk.records_below_k > 0, 1.0 / f64::from(k));
    let crowd = match risk.smallest_class {
        1 => "the smallest class has one member".to_owned(),
        n => format!("the smallest class has {} {}", number(n), class_unit(report)),
    };
    let of = |n: u64, all: u64| format!("{} of {}", number(n), number(all));
    let qids = report.minimal_qids.len() as u64;
    let safe = format!("minimal ones; {}", counted(report.maximal_non_qids.len() as u64, "largest safe set"));
    html! {
        section.tiles {
            (tile("Highest risk of a record", &percent(risk.highest), bad, &crowd))
            (tile("Average risk", &percent(risk.average), risk.average > least, &format!("classes of {k}: {}", percent(least))))
            (tile(&format!("Records below {k}"), &percent(risk.share_below_k), bad, &of(risk.records_below_k, report.rows)))
            @if let Some(people) = report.subjects {
                (tile(&format!("People below {k}"), &percent(risk.share_people_below_k), bad, &of(risk.people_below_k, people)))
            }
            (tile("Quasi-identifiers", &number(qids), qids > 0, &safe))
        }
    }
}

fn next_steps_card(report: &AuditReport) -> Markup {
    let steps = next_steps::recommended_steps(report);
    if steps.is_empty() {
        return html! {};
    }
    let list = html! { ol.steps { @for step in steps { li { (step) } } } };
    card("Next steps", "Most urgent first", list)
}

fn origin_card(made: &PageOrigin) -> Markup {
    let content = html! {
        dl {
            dt { "input" }
            dd {
                @if let Some(digest) = &made.sha256 { "SHA-256 " code { (digest) } }
                @else { "standard input or several files, without a digest" }
            }
            dt { "options" }
            dd { @for (name, value) in &made.options { code { (format!("{name} {value}").trim()) } " " } }
        }
    };
    card("Sources of this page", "The same input and options give the same numbers", content)
}

fn reach(report: &AuditReport) -> Markup {
    if report.risk.risk.records_below_k == 0 {
        return card("Records at risk", "None: no set of the searched columns is a quasi-identifier.", "");
    }
    let sub = format!(
        "Records in a class below {} by the number of columns that an attacker knows, for each record the most identifying \
         ones",
        report.k
    );
    let keys = legend(&[("warm", "with this number of columns"), ("pale", "with fewer columns")]);
    card("Records at risk", sub, html! { (charts::reach_chart(report)) (keys) })
}

fn crowds(report: &AuditReport) -> Markup {
    let k = report.k;
    let sub = format!("Records by the number of {} that share all their searched values", class_unit(report));
    let (below, more) = (format!("below {k}"), format!("{k} and more"));
    let keys = legend(&[("warmer", "unique"), ("warm", &below), ("cool", &more)]);
    card("Class sizes", sub, html! { (charts::class_size_chart(report)) (keys) })
}

fn sizes(report: &AuditReport) -> Markup {
    let title = "Quasi-identifiers by size";
    if report.minimal_qids.is_empty() && report.maximal_non_qids.is_empty() {
        return card(title, "Nothing was searched.", "");
    }
    let keys = legend(&[("warm", "minimal quasi-identifiers"), ("cool", "largest safe sets")]);
    let sub = "Sets by their number of columns; a quasi-identifier of fewer columns is easier to know";
    card(title, sub, html! { (charts::set_size_chart(report)) (keys) })
}

fn identifiers(report: &AuditReport) -> Markup {
    let title = "Standalone identifiers";
    let found: Vec<_> = report.attributes.iter().filter(|a| !a.identifier.is_empty()).collect();
    if report.subject.is_none() && found.is_empty() {
        return card(title, "None: no column identifies people alone.", "");
    }
    let content = html! {
        table.names {
            tbody {
                @if let Some(subject) = &report.subject {
                    tr { th scope="row" class="set" { (name_boxes([subject])) } td.soft { "subject column" } }
                }
                @for attribute in found.iter().take(MAX_AUDIT_PAGE_ROWS) {
                    tr {
                        th scope="row" class="set" { (name_boxes([&attribute.name])) }
                        td.soft {
                            @for (at, why) in attribute.identifier.iter().enumerate() {
                                @if at > 0 { br; }
                                (identifier_reason(why))
                            }
                            @if let Some(category) = attribute.safe_harbor {
                                br; span.tag { "Safe Harbor: " (category.title()) }
                            }
                        }
                    }
                }
            }
        }
        (hidden_count_note(found.len(), MAX_AUDIT_PAGE_ROWS))
    };
    card(title, "These columns identify people alone and were not searched; remove them before sharing", content)
}

fn attributes(report: &AuditReport) -> Markup {
    let involved = report.attributes.iter().filter(|a| a.searched && a.minimal_qids > 0).count();
    if involved == 0 {
        return html! {};
    }
    let sub = "Records in which the column's value is part of a smallest identifying combination · its share in the minimal \
               quasi-identifiers, with one vote per set, divided among its columns";
    card(
        "Columns that matter most",
        sub,
        html! { (charts::attribute_risk_chart(report, MAX_AUDIT_PAGE_ROWS)) (hidden_count_note(involved, MAX_AUDIT_PAGE_ROWS)) },
    )
}

fn qids(report: &AuditReport) -> Markup {
    if report.qids.is_empty() {
        return html! {};
    }
    let mut worst: Vec<&QidReport> = report.qids.iter().collect();
    worst.sort_by_key(|qid| Reverse(qid.records_below_k));
    let row = |qid: &&QidReport| {
        let names = html! {
            (name_boxes(&qid.attributes))
            @if let Some(values) = &qid.example { div.values { "for example " (values.join(" · ")) } }
        };
        let mut cells = vec![names, text(number(qid.records_below_k)), text(percent(qid.share_below_k))];
        if report.subjects.is_some() {
            cells.push(text(number(qid.people_below_k)));
        }
        cells.extend([qid.classes_below_k, qid.smallest_class].map(|n| text(number(n))));
        cells
    };
    let mut heads = vec!["columns together", "records", "share", "combinations", "smallest class"];
    if report.subjects.is_some() {
        heads.insert(3, "people");
    }
    let table = table("The worst quasi-identifiers", &heads, worst.iter().take(MAX_AUDIT_PAGE_ROWS).map(row));
    let sub = format!(
        "Minimal sets of columns in which some combination of values is shared by fewer than {} {}. Counted: records in \
         classes below {}",
        report.k,
        class_unit(report),
        report.k
    );
    let rest = hidden_count_note(report.minimal_qids.len(), MAX_AUDIT_PAGE_ROWS.min(worst.len()));
    card("The worst quasi-identifiers", sub, html! { (table) (rest) })
}

const MAX_PAGE_COMBINATIONS: usize = 5;

fn riskiest(report: &AuditReport) -> Markup {
    let Some(found) = &report.riskiest else { return html! {} };
    let title = "The riskiest records";
    if found.records.is_empty() {
        return card(title, "None: no small combination of values singles a record out.", "");
    }
    let row = |record: &RiskyRecord| {
        let rest = record.combinations_of.saturating_sub(MAX_PAGE_COMBINATIONS as u64);
        let combinations = html! {
            @for names in record.combinations.iter().take(MAX_PAGE_COMBINATIONS) { div { (name_boxes(names)) } }
            @if rest > 0 { p.more { "… and " (number(rest)) " more" } }
        };
        vec![combinations, text(number(record.record)), text(number(record.score as u64))]
    };
    let table = table(title, &["singled out by", "record", "score"], found.records.iter().map(row));
    let sub = format!(
        "Records by number in the input, with the smallest sets of columns whose values together are shared by fewer than {} {}. \
         The score (SUDA) is higher, the more such sets there are and the smaller they are; sets of at most {} were searched. \
         {} with such a set in all",
        report.k,
        class_unit(report),
        counted(found.largest as u64, "column"),
        counted(found.at_risk, "record"),
    );
    card(title, sub, table)
}

fn linked_records_card(report: &AuditReport) -> Markup {
    let Some(link) = &report.link else { return html! {} };
    let row = |tied: &ColumnSetLinks| {
        let counts = [tied.records, tied.below_k, tied.uniquely, tied.one_to_one];
        std::iter::once(name_boxes(&tied.attributes)).chain(counts.map(|n| text(number(n)))).collect()
    };
    let below = format!("below {}", report.k);
    let heads = ["columns together", "records linked", below.as_str(), "to one person", "one to one"];
    let rows = std::iter::once(&link.all).chain(&link.combinations).map(row);
    let sub = format!(
        "Records with the values of one of the {} known rows: by all shared columns, then by the few columns that link most. \
         One to one: no other known row and no other person has these values",
        number(link.known)
    );
    card("Records linked to known rows", sub, table("Linked records", &heads, rows))
}

const MAX_SAFE_SETS: usize = 6;

fn safe_sets_card(report: &AuditReport) -> Markup {
    let title = "Largest sets that are safe together";
    let all = &report.maximal_non_qids;
    if all.is_empty() {
        let why = if report.complete {
            "None: every column alone is a quasi-identifier."
        } else {
            "None was proved in time."
        };
        return card(title, why, "");
    }
    let content = html! {
        table {
            tbody {
                @for names in all.iter().rev().take(MAX_SAFE_SETS) {
                    tr {
                        td.set.safe {
                            (name_boxes(names.iter().take(MAX_AUDIT_PAGE_ROWS)))
                            @if names.len() > MAX_AUDIT_PAGE_ROWS { " and " (names.len() - MAX_AUDIT_PAGE_ROWS) " more" }
                        }
                    }
                }
            }
        }
        (hidden_count_note(all.len(), MAX_SAFE_SETS))
    };
    let sub = format!(
        "In each of them every combination of values is shared by {} or more {}. Two of them together can still be \
         joined{}",
        report.k,
        class_unit(report),
        report.likely_subject.as_ref().map_or(String::new(), |id| format!(
            ". {} is likely to be the id of a person: no set with it is safe to release",
            sanitize_text(id)
        ))
    );
    card(title, sub, content)
}

fn inferences(report: &AuditReport) -> Markup {
    let Some(strongest) = report.inferences.first() else { return html! {} };
    let row = |inference: &InferenceReport| {
        let names = html! {
            (name_boxes([&inference.from])) " → " (name_boxes([&inference.to]))
            @if let Some([given, told]) = &inference.values { div.values { (given) " → " (told) } }
        };
        let mut cells = vec![names, text(percent(inference.probability)), text(percent(inference.expected))];
        cells.extend(inference.people.map(|people| text(number(people))));
        cells.push(text(number(inference.records)));
        cells
    };
    let mut heads = vec!["value and inferred value", "certainty", "baseline", "records"];
    if strongest.people.is_some() {
        heads.insert(3, "people");
    }
    let table =
        table("Inferences between columns", &heads, report.inferences.iter().take(MAX_AUDIT_PAGE_ROWS).map(row));
    let sub = format!(
        "The strongest inference for each ordered pair of columns, with {} or more {}. An attacker who knows the \
         first value infers the second with this certainty, regardless of the class size",
        report.k,
        class_unit(report)
    );
    card(
        "Inferences between columns",
        sub,
        html! { (table) (hidden_count_note(report.inferences.len(), MAX_AUDIT_PAGE_ROWS)) },
    )
}

fn column_row(report: &AuditReport, attribute: &AttributeReport) -> Vec<Markup> {
    let names = html! {
        (name_boxes([&attribute.name]))
        @if !attribute.identifier.is_empty() { span.tag.warm { "identifier" } }
        @else if !attribute.searched { span.tag { "excluded" } }
        @if let Some(category) = attribute.safe_harbor { span.tag { (category.title()) } }
        @if report.arrays.contains(&attribute.name) { span.tag.warm { "array, not judged" } }
    };
    let counts = |n: u64| text(number(n));
    vec![
        names,
        counts(attribute.distinct),
        counts(attribute.missing),
        text(ratio(attribute.cardinality)),
        text(ratio(attribute.entropy)),
        counts(attribute.smallest_class),
        counts(attribute.records_below_k),
    ]
}

fn columns(report: &AuditReport) -> Markup {
    let sub = "Different values (a missing one counts as one), values per record, entropy in nats, and the risk of each \
               column alone";
    let below = format!("records below {}", report.k);
    let heads = ["column", "different", "missing", "per record", "entropy", "rarest value", below.as_str()];
    let rows = report.attributes.iter().take(8 * MAX_AUDIT_PAGE_ROWS).map(|attribute| column_row(report, attribute));
    let table = table("All columns", &heads, rows);
    card("All columns", sub, html! { (table) (hidden_count_note(report.attributes.len(), 8 * MAX_AUDIT_PAGE_ROWS)) })
}

fn method(report: &AuditReport) -> Markup {
    let t = report.timings;
    let shown = report.qids.iter().any(|qid| qid.example.is_some())
        || report.inferences.iter().any(|inference| inference.values.is_some());
    let values = if shown {
        "This page contains values of the data, as requested."
    } else {
        "This page contains no value of the data, only column names and counts."
    };
    let content = html! {
        dl {
            dt { "class" } dd { "the " (class_unit(report)) " that share the values of all columns of a set" }
            dt { "risk of a record" } dd { "1 / size of its class: the probability of picking the right one" }
            dt { "quasi-identifier" }
            dd {
                "a set of columns in which some combination of values has a class below k = " (report.k) "; minimal, if no part \
                of it is one"
            }
            dt { "standalone identifier" }
            dd {
                "a column with a different value for (nearly) every record or person, or whose values have the form of an identifier"
            }
            dt { "limits" }
            dd {
                "classes limit singling out. They do not prevent the inference of a value that a whole class shares, and do not \
                cover a person's sequence of records"
            }
            dt { "search" }
            dd {
                (number(report.evaluated)) " sets counted, " (number(report.pruned)) " decided without counting, "
                (seconds(t.read + t.search + t.measure)) " in total; strategy " (report.strategy) ", " (report.backend)
            }
        }
        @if !report.notes.is_empty() { ul.notes { @for note in &report.notes { li { (sanitize_text(note)) } } } }
    };
    card("How to read this", values, content)
}
