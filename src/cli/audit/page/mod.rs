//! The report as one page: no script, nothing fetched, light and dark, made to be printed and handed on.

mod charts;

use std::cmp::Reverse;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::next;
use crate::cli::page::{card, document, escape, more, set, table};
use crate::cli::text::{counted, number, percent, ratio, reason, seconds};
use crate::risk::audit::{AttributeReport, InferenceReport, QidReport, Report, RiskyRecord, Singletons};
use crate::risk::linking::Tied;

/// Rows of a table and bars of a chart at most; the JSON report has all.
const SHOWN: usize = 25;

/// What a page was made from.
#[derive(Debug, Default)]
pub struct MadeFrom {
    /// Digest of the input; none where it was standard input.
    pub sha256: Option<String>,
    /// Options and their values; a value may be empty.
    pub options: Vec<(&'static str, String)>,
}

/// The page; `now` is written on it.
pub fn render(report: &Report, made: &MadeFrom, now: DateTime<Utc>) -> String {
    let mut body = String::new();
    body += &verdict(report);
    body += &tiles(report);
    body += &what_next(report);
    body += &identifiers(report);
    if report.risk.attributes > 0 {
        body += &format!("<div class=\"row\">{}{}</div>", reach(report), crowds(report));
        body += &format!("<div class=\"row\">{}{}</div>", sizes(report), safe(report));
    }
    body += &attributes(report);
    body += &qids(report);
    body += &riskiest(report);
    body += &link(report);
    body += &inferences(report);
    body += &columns(report);
    body += &method(report);
    body += &made_from(made);
    document(&format!("Re-identification audit: {}", escape(&name(report))), &head(report, now), &body)
}

/// The input without the folders of somebody's machine.
fn name(report: &Report) -> String {
    Path::new(&report.input)
        .file_name()
        .map_or_else(|| report.input.clone(), |name| name.to_string_lossy().into_owned())
}

fn who(report: &Report) -> &'static str {
    if report.subjects.is_some() { "people" } else { "records" }
}

fn head(report: &Report, now: DateTime<Utc>) -> String {
    let people = report.subjects.map_or(String::new(), |n| format!("<span><b>{}</b> people</span>", number(n)));
    let masked = match report.singletons {
        Singletons::Include => String::new(),
        Singletons::Mask => format!("<span><b>{}</b> rare cells masked first</span>", number(report.masked_cells)),
    };
    let alarm = if report.complete {
        String::new()
    } else {
        "<p class=\"alarm\"><b>The search was cut short.</b> This page holds what was proved by then; every set of \
         columns that is not inside a listed safe set is to be treated as unsafe.</p>"
            .to_owned()
    };
    let arrays = next::about_arrays(report)
        .map_or(String::new(), |said| format!("<p class=\"alarm\"><b>Not judged.</b> {}</p>", escape(&said)));
    format!(
        "<header><p class=\"brand\">throng · re-identification audit</p><h1>{}</h1>\
         <p class=\"facts\"><span><b>{}</b> records</span>{people}<span><b>{}</b> columns, <b>{}</b> searched</span>\
         <span><b>k = {}</b></span>{masked}<span>{}</span></p>{arrays}{alarm}</header>",
        escape(&name(report)),
        number(report.rows),
        report.attributes.len(),
        report.risk.attributes,
        report.k,
        now.format("%Y-%m-%d %H:%M UTC"),
    )
}

fn verdict(report: &Report) -> String {
    let risk = &report.risk.risk;
    if report.risk.attributes == 0 {
        return "<section class=\"card\"><p>No column was left to search: all of them identify people by themselves or \
                were left out.</p></section>"
            .to_owned();
    }
    let columns = counted(report.risk.attributes, "searched column");
    if risk.records_below_k == 0 && !report.arrays.is_empty() {
        return format!(
            "<section class=\"card verdict\"><p class=\"says\">Outside its arrays, every record stands in a crowd of at least \
             {} {}. <b>What is inside the arrays was not judged.</b></p>{}</section>",
            number(risk.smallest_class),
            who(report),
            charts::hundred(report),
        );
    }
    if risk.records_below_k == 0 {
        return format!(
            "<section class=\"card verdict good\"><p class=\"says\">Every record stands in a crowd of <b>at least {} \
             {}</b>, even for somebody who knows all {columns}.</p>{}</section>",
            number(risk.smallest_class),
            who(report),
            charts::hundred(report),
        );
    }
    let half = report.risk.reach.iter().find(|step| step.records * 2 >= risk.records_below_k);
    let enough = half.map_or(String::new(), |step| {
        let share = percent(step.records as f64 / report.rows as f64);
        match step.size {
            1 => format!(" One column, the right one, is enough for {share}."),
            n => format!(" {n} columns, the right ones, are enough for {share}."),
        }
    });
    format!(
        "<section class=\"card verdict bad\"><p class=\"says\">Somebody who knows all {columns} of a person finds \
         <b>{} of the records</b> in a crowd of fewer than {} {}.{}</p>{}</section>",
        percent(risk.share_below_k),
        report.k,
        who(report),
        enough,
        charts::hundred(report),
    )
}

fn tiles(report: &Report) -> String {
    let risk = &report.risk.risk;
    if report.risk.attributes == 0 {
        return String::new();
    }
    let tile = |name: &str, value: String, bad: bool, remark: String| {
        let colour = if bad { "warm" } else { "cool" };
        format!(
            "<div class=\"tile\"><p class=\"name\">{name}</p><p class=\"value {colour}\">{value}</p>\
             <p class=\"remark\">{remark}</p></div>"
        )
    };
    let k = report.k;
    let bad = risk.records_below_k > 0;
    let crowd = match risk.smallest_class {
        1 => "somebody stands alone".to_owned(),
        n => format!("the smallest crowd has {} {}", number(n), who(report)),
    };
    let mut out = String::from("<section class=\"tiles\">");
    out += &tile("Highest risk of a record", percent(risk.highest), bad, crowd);
    let limit = percent(1.0 / f64::from(k));
    out += &tile(
        "Average risk",
        percent(risk.average),
        risk.average > 1.0 / f64::from(k),
        format!("crowds of {k}: {limit}"),
    );
    let of = format!("{} of {}", number(risk.records_below_k), number(report.rows));
    out += &tile(&format!("Records below {k}"), percent(risk.share_below_k), bad, of);
    if let Some(people) = report.subjects {
        let of = format!("{} of {}", number(risk.people_below_k), number(people));
        out += &tile(&format!("People below {k}"), percent(risk.share_people_below_k), bad, of);
    }
    let qids = report.minimal_qids.len() as u64;
    let safe = counted(report.maximal_non_qids.len() as u64, "largest safe set");
    out += &tile("Quasi-identifiers", number(qids), qids > 0, format!("minimal ones; {safe}"));
    out + "</section>"
}

fn what_next(report: &Report) -> String {
    let steps: String = next::steps(report).iter().map(|step| format!("<li>{}</li>", escape(step))).collect();
    if steps.is_empty() {
        return steps;
    }
    card("What to do next", "In the order in which it helps", &format!("<ol class=\"steps\">{steps}</ol>"))
}

fn made_from(made: &MadeFrom) -> String {
    let digest = made.sha256.as_ref().map_or_else(
        || "standard input or several files, of which there is no digest".to_owned(),
        |digest| format!("SHA-256 <code>{digest}</code>"),
    );
    let option = |(name, value): &(&str, String)| format!("<code>{}</code>", escape(format!("{name} {value}").trim()));
    let options: Vec<String> = made.options.iter().map(option).collect();
    let content = format!("<dl><dt>input</dt><dd>{digest}</dd><dt>options</dt><dd>{}</dd></dl>", options.join(" "));
    card("What this page was made from", "The same input and options give the same numbers", &content)
}

fn reach(report: &Report) -> String {
    if report.risk.risk.records_below_k == 0 {
        return card("Who is at risk", "Nobody: no set of the searched columns is a quasi-identifier.", "");
    }
    let sub = format!(
        "Records in a crowd below {} for somebody who knows so many columns, for each record the ones that give it away \
         soonest",
        report.k
    );
    let legend = "<p class=\"legend\"><span><i class=\"key warm\"></i>by this many columns</span>\
                  <span><i class=\"key pale\"></i>by fewer already</span></p>";
    card("Who is at risk", &sub, &(charts::reach(report) + legend))
}

fn crowds(report: &Report) -> String {
    let sub = format!("Records by the number of {} that share all their searched values", who(report));
    let legend = format!(
        "<p class=\"legend\"><span><i class=\"key warmer\"></i>alone</span><span><i class=\"key warm\"></i>below {k}</span>\
         <span><i class=\"key cool\"></i>{k} and more</span></p>",
        k = report.k
    );
    card("Sizes of the crowds", &sub, &(charts::crowds(report) + &legend))
}

fn sizes(report: &Report) -> String {
    if report.minimal_qids.is_empty() && report.maximal_non_qids.is_empty() {
        return card("Quasi-identifiers by size", "Nothing was searched.", "");
    }
    let legend = "<p class=\"legend\"><span><i class=\"key warm\"></i>minimal quasi-identifiers</span>\
                  <span><i class=\"key cool\"></i>largest sets that are none</span></p>";
    let sub = "Sets by their number of columns: the further left the first, the less it takes";
    card("Quasi-identifiers by size", sub, &(charts::sizes(report) + legend))
}

fn identifiers(report: &Report) -> String {
    let found: Vec<_> = report.attributes.iter().filter(|a| !a.identifier.is_empty()).collect();
    let mut rows = String::new();
    if let Some(subject) = &report.subject {
        rows += &format!(
            "<tr><th scope=\"row\" class=\"set\"><span>{}</span></th><td class=\"soft\">counts the people</td></tr>",
            escape(subject)
        );
    }
    for attribute in found.iter().take(SHOWN) {
        let mut why: Vec<String> = attribute.identifier.iter().map(|why| escape(&reason(why))).collect();
        why.extend(attribute.safe_harbor.map(|c| format!("<span class=\"tag\">Safe Harbor: {}</span>", c.title())));
        rows += &format!(
            "<tr><th scope=\"row\" class=\"set\"><span>{}</span></th><td class=\"soft\">{}</td></tr>",
            escape(&attribute.name),
            why.join("<br>")
        );
    }
    let content =
        if rows.is_empty() { String::new() } else { format!("<table class=\"names\"><tbody>{rows}</tbody></table>") };
    let sub = if rows.is_empty() {
        "None: no column identifies people by itself."
    } else {
        "These columns give people away by themselves and were not searched; remove them before sharing"
    };
    card("Standalone identifiers", sub, &(content + &more(found.len(), SHOWN)))
}

fn attributes(report: &Report) -> String {
    let involved = report.attributes.iter().filter(|a| a.searched && a.minimal_qids > 0).count();
    if involved == 0 {
        return String::new();
    }
    let sub = "Records in which the column's value is part of a smallest combination that gives them away · its share in \
               the minimal quasi-identifiers, each set's one vote divided among its columns";
    card("Columns that matter most", sub, &(charts::attributes(report, SHOWN) + &more(involved, SHOWN)))
}

fn qids(report: &Report) -> String {
    if report.qids.is_empty() {
        return String::new();
    }
    let mut worst: Vec<&QidReport> = report.qids.iter().collect();
    worst.sort_by_key(|qid| Reverse(qid.records_below_k));
    let row = |qid: &&QidReport| {
        let example = qid.example.as_ref().map_or(String::new(), |values| {
            let values: Vec<String> = values.iter().map(|value| escape(value)).collect();
            format!("<div class=\"values\">for example {}</div>", values.join(" · "))
        });
        let mut cells = vec![
            format!("{}{example}", set(&qid.attributes)),
            number(qid.records_below_k),
            percent(qid.share_below_k),
            number(qid.classes_below_k),
            number(qid.smallest_class),
        ];
        if report.subjects.is_some() {
            cells.insert(3, number(qid.people_below_k));
        }
        cells
    };
    let mut heads = vec!["columns together", "records", "share", "combinations", "smallest crowd"];
    if report.subjects.is_some() {
        heads.insert(3, "people");
    }
    let table = table("The worst quasi-identifiers", &heads, worst.iter().take(SHOWN).map(row));
    let sub = format!(
        "Sets of columns in which some combination of values is shared by fewer than {} {}, and no part of which is \
         one. Counted: what they leave below {}",
        report.k,
        who(report),
        report.k
    );
    let all = report.minimal_qids.len();
    card("The worst quasi-identifiers", &sub, &(table + &more(all, SHOWN.min(worst.len()))))
}

/// Combinations of one record that are shown.
const COMBINATIONS: usize = 5;

fn riskiest(report: &Report) -> String {
    let Some(found) = &report.riskiest else { return String::new() };
    let title = "The riskiest records";
    if found.records.is_empty() {
        return card(title, "None: no small combination of values singles a record out.", "");
    }
    let row = |record: &RiskyRecord| {
        let shown = record.combinations.iter().take(COMBINATIONS);
        let combinations: String = shown.map(|names| format!("<div>{}</div>", set(names))).collect();
        let rest = record.combinations_of.saturating_sub(COMBINATIONS as u64);
        let rest =
            if rest > 0 { format!("<p class=\"more\">… and {} more</p>", number(rest)) } else { String::new() };
        let cell = format!("{combinations}{rest}");
        vec![cell, number(record.record), number(record.score as u64)]
    };
    let heads = ["singled out by", "record", "score"];
    let table = table(title, &heads, found.records.iter().map(row));
    let sub = format!(
        "Records by number in the input, with the smallest sets of columns whose values together are shared by fewer than {} {}. \
         The score (SUDA) is higher, the more such sets there are and the smaller they are; sets of at most {} were looked at. \
         {} with such a set in all",
        report.k,
        who(report),
        counted(found.largest as u64, "column"),
        counted(found.at_risk, "record"),
    );
    card(title, &sub, &table)
}

fn link(report: &Report) -> String {
    let Some(link) = &report.link else { return String::new() };
    let row = |tied: &Tied| {
        let counts = [tied.records, tied.below_k, tied.uniquely, tied.one_to_one];
        let mut cells = vec![set(&tied.attributes)];
        cells.extend(counts.map(number));
        cells
    };
    let below = format!("below {}", report.k);
    let heads = ["columns together", "records tied", below.as_str(), "to one person", "one to one"];
    let rows = std::iter::once(&link.all).chain(&link.combinations).map(row);
    let sub = format!(
        "Records whose values are those of one of the {} known rows: by all shared columns, then by the few that tie most. One to \
         one: nobody else is known with these values, and nobody else has them",
        number(link.known)
    );
    card("Records that what is known ties", &sub, &table("Tied records", &heads, rows))
}

/// Largest safe sets shown beside the chart of sizes.
const SAFE_SHOWN: usize = 6;

fn safe(report: &Report) -> String {
    let title = "Largest sets that are safe together";
    if report.maximal_non_qids.is_empty() {
        let why = if report.complete {
            "None: every column alone is a quasi-identifier."
        } else {
            "None was proved in time."
        };
        return card(title, why, "");
    }
    let mut rows = String::new();
    for names in report.maximal_non_qids.iter().rev().take(SAFE_SHOWN) {
        let shown = &names[..names.len().min(SHOWN)];
        let rest = names.len() - shown.len();
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        rows += &format!("<tr><td class=\"set safe last\">{}{rest}</td></tr>", set(shown));
    }
    let sub = format!(
        "In each of them every combination of values is shared by {} or more {}. Two of them side by side can still be \
         joined",
        report.k,
        who(report)
    );
    let table = format!("<table><tbody>{rows}</tbody></table>");
    card(title, &sub, &(table + &more(report.maximal_non_qids.len(), SAFE_SHOWN)))
}

fn inferences(report: &Report) -> String {
    let Some(strongest) = report.inferences.first() else { return String::new() };
    let row = |inference: &InferenceReport| {
        let values = inference.values.as_ref().map_or(String::new(), |[given, told]| {
            format!("<div class=\"values\">{} → {}</div>", escape(given), escape(told))
        });
        let names =
            format!("<span>{}</span> → <span>{}</span>{values}", escape(&inference.from), escape(&inference.to));
        let mut cells = vec![names, percent(inference.probability), percent(inference.expected)];
        cells.extend(inference.people.map(number));
        cells.push(number(inference.records));
        cells
    };
    let mut heads = vec!["a value of one column tells one of another", "how surely", "a guess", "records"];
    if strongest.people.is_some() {
        heads.insert(3, "people");
    }
    let table = table("What gives what away", &heads, report.inferences.iter().take(SHOWN).map(row));
    let sub = format!(
        "Of each ordered pair of columns the strongest inference that {} or more {} support. Whoever knows the one value \
         knows the other so surely, whatever the size of the crowd",
        report.k,
        who(report)
    );
    card("What gives what away", &sub, &(table + &more(report.inferences.len(), SHOWN)))
}

fn column_row(report: &Report, attribute: &AttributeReport) -> Vec<String> {
    let array =
        if report.arrays.contains(&attribute.name) { "<span class=\"tag warm\">array, not judged</span>" } else { "" };
    let tag = if !attribute.identifier.is_empty() {
        "<span class=\"tag warm\">identifier</span>"
    } else if attribute.searched {
        ""
    } else {
        "<span class=\"tag\">left out</span>"
    };
    let harbor = attribute.safe_harbor.map_or(String::new(), |c| format!("<span class=\"tag\">{}</span>", c.title()));
    vec![
        format!("<span>{}</span>{tag} {harbor}{array}", escape(&attribute.name)),
        number(attribute.distinct),
        number(attribute.missing),
        ratio(attribute.cardinality),
        ratio(attribute.entropy),
        number(attribute.smallest_class),
        number(attribute.records_below_k),
    ]
}

fn columns(report: &Report) -> String {
    let sub = "Different values (a missing one counts as one), values per record, entropy in nats, and what each column \
               shows by itself";
    let below = format!("records below {}", report.k);
    let heads = ["column", "different", "missing", "per record", "entropy", "rarest value", below.as_str()];
    let rows = report.attributes.iter().take(8 * SHOWN).map(|attribute| column_row(report, attribute));
    let table = table("All columns", &heads, rows);
    card("All columns", sub, &(table + &more(report.attributes.len(), 8 * SHOWN)))
}

fn method(report: &Report) -> String {
    let notes: String = report.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul class=\"notes\">{notes}</ul>") };
    let t = report.timings;
    let shown = report.qids.iter().any(|qid| qid.example.is_some())
        || report.inferences.iter().any(|inference| inference.values.is_some());
    let values = if shown {
        "This page holds values of the data, because they were asked for."
    } else {
        "This page holds no value of the data, only names of columns and counts."
    };
    let definitions = format!(
        "<dl><dt>crowd</dt><dd>the {who} that share all values over a set of columns</dd>\
         <dt>risk of a record</dt><dd>1 / size of its crowd: the chance of picking the right one</dd>\
         <dt>quasi-identifier</dt><dd>a set of columns in which some combination of values has a crowd below k = {k}; \
         minimal, if no part of it is one</dd>\
         <dt>standalone identifier</dt><dd>a column with (nearly) a value of its own for every record or person, or whose \
         values have the form of an identifier</dd>\
         <dt>what this does not say</dt><dd>crowds limit singling out. They do not stop the inference of a value that a \
         whole crowd shares, and say nothing about a person's sequence of records</dd>\
         <dt>search</dt><dd>{evaluated} sets counted, {pruned} decided without counting, {time} in all; strategy {strategy}, \
         {backend}</dd></dl>",
        who = who(report),
        k = report.k,
        evaluated = number(report.evaluated),
        pruned = number(report.pruned),
        time = seconds(t.read + t.search + t.measure),
        strategy = report.strategy,
        backend = report.backend,
    );
    card("How to read this", values, &(definitions + &notes))
}
