//! Evaluation report as one HTML page.

use super::moment_models::{COEFFICIENT_HEADS, FIT_HEADS, coefficient_rows, fit_rows, model_sentences};
use super::report::{
    CONTRAST_HEADS, EvaluationReport, FragmentEvaluation, SIGNAL_HEADS, UsefulnessByForm, contrast_rows, moments_note,
    signal_rows, three_decimals,
};
use crate::cli::page_components::{
    ChartBar, bars, card, fact_badge, hidden_count_note, report_document, table, text, tile,
};
use crate::cli::text_format::{counted, number, percent, plural, sanitize_text};
use crate::html::series_chart::SeriesCharts;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use throng_eval::learning::{LearningScores, PredictionScores};
use throng_eval::quality::PairQuality;
use throng_eval::queries::QueryErrors;
use throng_eval::series::{MomentModel, SeriesQuality};

/// The JSON report has all rows.
const MAX_EVALUATION_ROWS: usize = 40;

/// Renders the page for the file `name`; `now` is its creation time.
pub fn render(of: &EvaluationReport, charts: &SeriesCharts, name: &str, now: DateTime<Utc>) -> String {
    let mut facts = html! {};
    let mut parts = vec![usefulness(of)];
    if let Some(series) = &of.series {
        parts.extend([series_charts_card(charts), signals(series), contrasts(series)]);
    }
    parts.extend(of.models.iter().map(model));
    if let Some(evaluation) = &of.fragments {
        let (quality, groups) = (&evaluation.quality, evaluation.quality.groups.len());
        facts = html! {
            (fact_badge(number(quality.records), "records before")) (fact_badge(number(quality.lines), "lines after"))
            (fact_badge(groups, plural(groups as u64, "group", "groups"))) span { b { "k = " (evaluation.k) } }
        };
        let of_fragments = [verdict, tiles, worth, risk, counts, learning_cards, attributes, pairs, method];
        parts.extend(of_fragments.map(|part| part(evaluation)));
    }
    report_document("evaluation of a release", name, &facts, now, &html! {}, &parts)
}

fn usefulness(of: &EvaluationReport) -> Markup {
    let rows = of.usefulness.rows().into_iter().map(text_cells);
    let sub = "Compared with the records before; a ratio below 1 is less than the error of the sample itself";
    card("Represented", sub, table("Represented", &UsefulnessByForm::HEADS, rows))
}

fn series_charts_card(charts: &SeriesCharts) -> Markup {
    if charts.is_empty() {
        return html! {};
    }
    card("Published series", "The latest buckets of each signal, as they were released", charts.cards())
}

fn signals(of: &SeriesQuality) -> Markup {
    let sub = "Published means of all people against the true ones; cells are values of a person in a bucket";
    let sub = moments_note(of).map_or_else(|| sub.to_owned(), |note| format!("{sub}. {note}"));
    card("Series", &sub, table("Series", &SIGNAL_HEADS, signal_rows(of, sanitize_text).into_iter().map(text_cells)))
}

fn contrasts(of: &SeriesQuality) -> Markup {
    if of.contrasts.is_empty() {
        return html! {};
    }
    let sub = "Differences of strata, mean over the buckets in which both are published";
    card(
        "Contrasts",
        sub,
        table("Contrasts", &CONTRAST_HEADS, contrast_rows(of, sanitize_text).into_iter().map(text_cells)),
    )
}

fn model(of: &MomentModel) -> Markup {
    let rows = fit_rows(of).into_iter().map(text_cells);
    let coefficients = coefficient_rows(of, sanitize_text).into_iter().map(text_cells);
    let tables = html! {
        (table("Fit", &FIT_HEADS, rows))
        @if !of.coefficients.is_empty() { (table("Coefficients", &COEFFICIENT_HEADS, coefficients)) }
        @for sentence in model_sentences(of, sanitize_text).iter().skip(1) { p { (sentence) } }
    };
    card(
        &format!("Linear model of {}", sanitize_text(&of.target)),
        model_sentences(of, sanitize_text).swap_remove(0),
        tables,
    )
}

fn text_cells(row: Vec<String>) -> Vec<Markup> {
    row.into_iter().map(text).collect()
}

fn verdict(evaluation: &FragmentEvaluation) -> Markup {
    let smallest = evaluation.risk.iter().map(|risk| risk.smallest_class).min().unwrap_or(0);
    let counted = evaluation.risk.first().map_or("lines", |risk| risk.counted);
    let good = smallest >= evaluation.k as u64;
    html! {
        section.card.verdict.(if good { "good" } else { "bad" }) {
            p {
                @if good {
                    "Every line is in a class of " b { "at least " (number(smallest)) " " (counted) } "."
                } @else {
                    "The smallest class has " b { (number(smallest)) " " (counted) } ": fewer than k."
                }
                " The lines keep " (percent(evaluation.quality.pairwise_information)) " of the mutual information between attributes."
            }
        }
    }
}

fn tiles(evaluation: &FragmentEvaluation) -> Markup {
    let quality = &evaluation.quality;
    let left = quality.nothing_released.map_or("needs a lineage".to_owned(), |share| percent(1.0 - share));
    let of_all = format!("of all records {}", three_decimals(quality.loss_of_all));
    html! {
        section.tiles {
            (tile("Mean loss of the lines", &three_decimals(quality.loss), false, &of_all))
            (tile("Exact cells", &percent(quality.exact), false, &format!("{} altered", percent(quality.distortion))))
            (tile("Pairwise information", &percent(quality.pairwise_information), false, "of the lines; 100 % is the original"))
            (tile("Records with a released line", &left, false, "thinned records have none"))
        }
    }
}

fn worth(evaluation: &FragmentEvaluation) -> Markup {
    let rows = evaluation.worth_rows().into_iter().map(|row| text_cells(row.into()));
    let table = table("Utility", &["measure", "of the lines", "of all records"], rows);
    card("Utility", "A record without a line counts as lost in the second column", table)
}

fn risk(evaluation: &FragmentEvaluation) -> Markup {
    let heads = [
        "group",
        "lines",
        "classes",
        "smallest",
        "in a batch",
        "highest risk",
        "mean risk",
        "below k",
        "unique before",
    ];
    let counted = evaluation.risk.first().map_or("lines", |risk| risk.counted);
    let sub = format!("Classes are counted in {counted}; the risk of a line is 1 / its class");
    card("Risk", sub, table("Risk", &heads, evaluation.risk_rows(sanitize_text).into_iter().map(text_cells)))
}

fn counts(evaluation: &FragmentEvaluation) -> Markup {
    let row = |q: &QueryErrors| {
        let of = counted(q.attributes as u64, "attribute");
        text_cells(vec![of, number(q.queries as u64), percent(q.median), percent(q.mean)])
    };
    let heads = ["ranges over", "queries", "median error", "mean error"];
    let table = table("Errors of counts", &heads, evaluation.queries.iter().map(row));
    card("Errors of counts", "Relative errors of random range queries", table)
}

fn learning_cards(evaluation: &FragmentEvaluation) -> Markup {
    html! { @for learning in &evaluation.learning { (learning_card(learning)) } }
}

fn learning_card(of: &LearningScores) -> Markup {
    let bar = |name: &str, scores: Option<&PredictionScores>, colour: &'static str| ChartBar {
        label: name.to_owned(),
        pieces: vec![(scores.map_or(0.0, |scores| scores.accuracy), colour)],
        value: scores.map_or("no training data".to_owned(), |scores| {
            let balanced = percent(scores.balanced_accuracy);
            let errors = scores.errors.map_or(String::new(), |errors| {
                let [positives, negatives] = [errors.false_positives, errors.false_negatives].map(percent);
                format!(", false positives {positives}, false negatives {negatives}")
            });
            format!("{}  (balanced {balanced}, AUC {}{errors})", percent(scores.accuracy), three_decimals(scores.auc))
        }),
        hint: scores.map_or(String::new(), |scores| format!("trained on {}", counted(scores.rows, "row"))),
    };
    let rows = [
        bar("before, all attributes", of.whole.as_ref(), "pale"),
        bar("before, those of the group", of.before.as_ref(), "coolpale"),
        bar("after", of.after.as_ref(), "cool"),
    ];
    let features =
        if of.features.is_empty() { "no attribute (released alone)".to_owned() } else { of.features.join(", ") };
    let sub = html! {
        "Accuracy of a logistic regression by " (features) ", on " (number(of.tested)) " records held out by " (of.split_by)
        "; majority class: " (percent(of.majority)) "."
        @if of.leaks { " Without a lineage, training includes lines of held-out records." }
    };
    card(&format!("Prediction of {}", sanitize_text(&of.target)), sub, bars("accuracy before and after", &rows))
}

fn attributes(evaluation: &FragmentEvaluation) -> Markup {
    let all = evaluation.quality.attributes.len();
    let rows = evaluation.attribute_rows(sanitize_text).take(MAX_EVALUATION_ROWS).map(text_cells);
    let table = table("Attributes", &FragmentEvaluation::ATTRIBUTE_HEADS, rows);
    card("Attributes", "In the order of the schema", html! { (table) (hidden_count_note(all, MAX_EVALUATION_ROWS)) })
}

fn pairs(evaluation: &FragmentEvaluation) -> Markup {
    let bar = |pair: &PairQuality| ChartBar {
        label: pair.attributes.join(" · "),
        pieces: vec![(pair.kept, "cool")],
        value: format!("{} of {:.2} bits", percent(pair.kept), pair.bits),
        hint: format!("{}: the lines keep {}", pair.attributes.join(" and "), percent(pair.kept)),
    };
    let rows: Vec<ChartBar> = evaluation.quality.pairs.iter().map(bar).collect();
    let sub = "The pairs of attributes with the most mutual information in the original; a pair that no line contains keeps none";
    card("Pairwise information", sub, bars("information that the lines keep", &rows))
}

fn method(_: &FragmentEvaluation) -> Markup {
    let definitions = html! {
        dl {
            dt { "loss" } dd { "of a cell: the share of its attribute's range or values that it covers, less one value; 0 is exact, 1 is suppressed" }
            dt { "class" } dd { "the lines of a group with the same quasi cells" }
            dt { "bits hidden" } dd { "entropy of the value behind a cell" }
            dt { "falsified" } dd { "cells that are false for their record; only perturbed and aggregated numbers may be" }
        }
    };
    card("How to read this", "This page contains no value of the data, only attribute names and counts.", definitions)
}
