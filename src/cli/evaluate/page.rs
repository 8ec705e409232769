//! The evaluation as one page, in the look of the audit's: what a release is worth, what it gives away, what can be learned.

use super::report::Evaluation;
use crate::cli::page::bars::{Bar, bars};
use crate::cli::page::{card, document, escape, more, table};
use crate::cli::text::{number, percent};
use crate::evaluation::learning::{Learning, Scores};
use crate::evaluation::quality::{AttributeQuality, PairQuality};
use chrono::{DateTime, Utc};

/// Rows of a table and bars of a chart at most; the JSON report has all.
const SHOWN: usize = 40;

/// The page of an evaluation of the file `name`; `now` is written on it.
#[must_use]
pub fn render(evaluation: &Evaluation, name: &str, now: DateTime<Utc>) -> String {
    let parts = [verdict, tiles, worth, risk, counts, learned, attributes, pairs, method];
    let body: String = parts.iter().map(|part| part(evaluation)).collect();
    let quality = &evaluation.quality;
    let head = format!(
        "<header><p class=\"brand\">throng · evaluation of a release</p><h1>{}</h1><p class=\"facts\"><span><b>{}</b> records \
         before</span><span><b>{}</b> lines after</span><span><b>{}</b> groups</span><span><b>k = {}</b></span><span>{}</span></p></header>",
        escape(name),
        number(quality.records),
        number(quality.lines),
        quality.groups.len(),
        evaluation.k,
        now.format("%Y-%m-%d %H:%M UTC"),
    );
    document(&format!("Evaluation: {}", escape(name)), &head, &body)
}

fn three(value: f64) -> String {
    format!("{value:.3}")
}

fn verdict(evaluation: &Evaluation) -> String {
    let smallest = evaluation.risk.iter().map(|risk| risk.smallest_class).min().unwrap_or(0);
    let counted = evaluation.risk.first().map_or("lines", |risk| risk.counted);
    let (colour, says) = if smallest >= evaluation.k as u64 {
        ("good", format!("Every line stands in a class of <b>at least {} {counted}</b>.", number(smallest)))
    } else {
        ("bad", format!("The smallest class has <b>{} {counted}</b>: fewer than k.", number(smallest)))
    };
    let kept = percent(evaluation.quality.pairwise_information);
    format!(
        "<section class=\"card verdict {colour}\"><p class=\"says\">{says} The lines keep {kept} of what attributes say of each \
         other.</p></section>"
    )
}

fn tiles(evaluation: &Evaluation) -> String {
    let quality = &evaluation.quality;
    let tile = |name: &str, value: String, remark: String| {
        format!(
            "<div class=\"tile\"><p class=\"name\">{name}</p><p class=\"value cool\">{value}</p><p class=\"remark\">{remark}</p></div>"
        )
    };
    let left = quality.nothing_released.map_or("needs a lineage".to_owned(), |share| percent(1.0 - share));
    format!(
        "<section class=\"tiles\">{}{}{}{}</section>",
        tile("Mean loss of the lines", three(quality.loss), format!("of all records {}", three(quality.loss_of_all))),
        tile("Exact cells", percent(quality.exact), format!("{} altered", percent(quality.distortion))),
        tile(
            "Pairwise information",
            percent(quality.pairwise_information),
            "of the lines; 100 % is all of it".to_owned()
        ),
        tile("Records of which something left", left, "thinned records leave nothing".to_owned()),
    )
}

fn worth(evaluation: &Evaluation) -> String {
    let quality = &evaluation.quality;
    let rows = [
        ("mean loss (0 best)", three(quality.loss), three(quality.loss_of_all)),
        (
            "pairwise information (1 best)",
            three(quality.pairwise_information),
            three(quality.pairwise_information_of_all),
        ),
        ("exact cells", percent(quality.exact), String::new()),
        ("altered cells (distortion)", percent(quality.distortion), String::new()),
        ("data score, of the original's", String::new(), three(quality.data_score)),
    ];
    let rows = rows.into_iter().map(|(name, lines, all)| vec![name.to_owned(), lines, all]);
    card(
        "Worth",
        "A record without a line is lost in the second column",
        &table("Worth", &["measure", "of the lines", "of all records"], rows),
    )
}

fn risk(evaluation: &Evaluation) -> String {
    let heads =
        ["group", "lines", "classes", "smallest", "in a batch", "highest risk", "mean risk", "below k", "alone before"];
    let counted = evaluation.risk.first().map_or("lines", |risk| risk.counted);
    card(
        "Risk",
        &format!("Classes are counted in {counted}; the risk of a line is 1 / its class"),
        &table("Risk", &heads, evaluation.risk_rows(escape).into_iter()),
    )
}

fn counts(evaluation: &Evaluation) -> String {
    let row = |q: &crate::evaluation::queries::QueryErrors| {
        vec![format!("{} attributes", q.attributes), number(q.queries as u64), percent(q.median), percent(q.mean)]
    };
    let heads = ["ranges over", "asked", "median error", "mean error"];
    let table = table("Errors of counts", &heads, evaluation.queries.iter().map(row));
    card("Errors of counts", "What an analyst gets wrong who asks for ranges of values", &table)
}

fn learned(evaluation: &Evaluation) -> String {
    let one = |of: &Learning| {
        let bar = |name: &str, scores: Option<&Scores>, colour: &'static str| Bar {
            label: name.to_owned(),
            pieces: vec![(scores.map_or(0.0, |scores| scores.accuracy), colour)],
            value: scores.map_or("nothing to learn from".to_owned(), |scores| {
                let balanced = percent(scores.balanced_accuracy);
                format!("{}  (balanced {balanced}, AUC {})", percent(scores.accuracy), three(scores.auc))
            }),
            tells: scores.map_or(String::new(), |scores| format!("learned from {} rows", number(scores.rows))),
        };
        let rows = [
            bar("before, all attributes", of.whole.as_ref(), "pale"),
            bar("before, those of the group", of.before.as_ref(), "coolpale"),
            bar("after", of.after.as_ref(), "cool"),
        ];
        let leaks = if of.leaks { " Without a lineage, lines of who is held out are learned from too." } else { "" };
        let sub = format!(
            "Accuracy of a logistic regression by {}, on {} records held out by {}; always the same: {}.{leaks}",
            if of.features.is_empty() {
                "nothing: it leaves alone".to_owned()
            } else {
                escape(&of.features.join(", "))
            },
            number(of.tested),
            of.split_by,
            percent(of.majority)
        );
        card(&format!("Learning {}", escape(&of.target)), &sub, &bars(&rows, "accuracy before and after"))
    };
    evaluation.learning.iter().map(one).collect()
}

fn attributes(evaluation: &Evaluation) -> String {
    let row = |a: &AttributeQuality| {
        let falsified = if a.falsified == 0 { String::new() } else { number(a.falsified) };
        vec![
            escape(&a.attribute),
            escape(&a.group),
            three(a.loss),
            three(a.loss_of_all),
            percent(a.exact),
            format!("{:.2}", a.bits_hidden),
            falsified,
        ]
    };
    let heads = ["attribute", "group", "loss", "of all", "exact", "bits hidden", "falsified"];
    let all = &evaluation.quality.attributes;
    let table = table("Attributes", &heads, all.iter().take(SHOWN).map(row));
    card("Attributes", "In the order of the schema", &(table + &more(all.len(), SHOWN)))
}

fn pairs(evaluation: &Evaluation) -> String {
    let bar = |pair: &PairQuality| Bar {
        label: pair.attributes.join(" · "),
        pieces: vec![(pair.kept, "cool")],
        value: format!("{} of {:.2} bits", percent(pair.kept), pair.bits),
        tells: format!("{}: the lines keep {}", pair.attributes.join(" and "), percent(pair.kept)),
    };
    let rows: Vec<Bar> = evaluation.quality.pairs.iter().map(bar).collect();
    let sub = "The pairs of attributes that say most of each other in the original; nothing is kept of a pair that no line holds";
    card("What attributes say of each other", sub, &bars(&rows, "information that the lines keep"))
}

fn method(_: &Evaluation) -> String {
    let definitions = "<dl><dt>loss</dt><dd>of a cell: the share of its attribute's range or values that it covers, less one value; 0 is exact, \
         1 says nothing</dd><dt>class</dt><dd>the lines of a group with the same quasi cells</dd><dt>bits hidden</dt><dd>entropy of the value behind a cell</dd>\
         <dt>falsified</dt><dd>cells that are not true of their record; only perturbed and aggregated numbers may be</dd></dl>";
    card("How to read this", "This page holds no value of the data, only names of attributes and counts.", definitions)
}
