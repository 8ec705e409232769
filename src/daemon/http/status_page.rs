//! The status page, with embedded style and script.

use std::sync::LazyLock;

use crate::html::series_chart::legend;
use crate::html::{STYLE, csp_source_hash, document};
use crate::telemetry::{Label, RejectionReason, SuppressionReason};
use maud::{Markup, PreEscaped, html};

const STATUS_SCRIPT: &str = include_str!("status.js");

pub(super) struct StatusPage {
    pub html: String,
    /// Content-Security-Policy for this style and script.
    pub policy: String,
}

pub(super) static STATUS_PAGE: LazyLock<StatusPage> = LazyLock::new(|| StatusPage {
    html: document("throng", &html! {}, &body()),
    policy: format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        csp_source_hash(STYLE),
        csp_source_hash(STATUS_SCRIPT)
    ),
});

fn section(name: &str, title: &str, about: &str, content: &Markup) -> Markup {
    html! {
        section aria-labelledby={ (name) "-title" } {
            h2 id={ (name) "-title" } { (title) }
            @if !about.is_empty() { p.legend { (about) } }
            (content)
        }
    }
}

fn facts_table(id: &str) -> Markup {
    html! { table { tbody id=(id) {} } }
}

fn reason_descriptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let suppressed = SuppressionReason::ALL.iter().map(|reason| (reason.as_str(), reason.reason_text()));
    suppressed.chain(RejectionReason::ALL.iter().map(|reason| (reason.as_str(), reason.reason_clause())))
}

fn body() -> Markup {
    html! {
        body.status {
            header {
                h1 { "throng" }
                p.soft #promise { "each record is released in a class of at least k people" }
                p.pill #state role="status" { "connecting" }
            }
            noscript {
                p.alarm { "This page needs JavaScript. Without it, see " a href="metrics" { "/metrics" } "." }
            }
            svg #ink hidden {}
            dl #reasons hidden {
                @for (name, words) in reason_descriptions() { dt { (name) } dd { (words) } }
            }
            div.alarm #unrepresented role="alert" hidden {}
            main {
                div #doubts hidden {
                    (section("doubts", "Warnings about the record schema", "", &html! { div.card { ul #doubt-list {} } }))
                }
                (section("represented", "Represented people and records", "since the beginning, across restarts",
                    &html! { div.card { (facts_table("represented-facts")) p.says #represented-line {} } }))
                div #series hidden {
                    (section("series", "Released series", "the latest published buckets since the start of this process",
                        &html! { div { (legend(false)) } div.row.three #charts {} }))
                }
                div #fragments {
                    (section("risk", "Re-identification risk", "probability of identifying a person by the values of a record",
                        &html! { div.row.three #risk {} }))
                }
                (section("account", "Every record accounted for", "since the beginning, across restarts", &account()))
                (section("flow", "Flow and cost", "", &html! { div.row.three #flow {} }))
                (section("plan", "Plan", "", &plan()))
                div #evidence hidden {
                    (section("evidence", "Disclosure risks of recent records, before treatment",
                        "names of attributes only, and no result about few people", &evidence()))
                }
                (section("detail", "Details", "", &details()))
            }
            footer {
                @for (page, name) in [("metrics", "metrics"), ("plan", "plan"), ("status.json", "status"), ("readyz", "readiness")] {
                    a href=(page) { (name) }
                }
                span #version {}
            }
            script { (PreEscaped(STATUS_SCRIPT)) }
        }
    }
}

fn account() -> Markup {
    html! {
        div.card {
            p.figure { b #consumed { "0" } " consumed " span.soft #conserved {} }
            div #bar role="img" aria-label="records by outcome" {}
            ul.legend #outcomes {}
            p.says {
                "Released: at least one value was released. Suppressed: nothing was released. Held: waits for more people. Dead \
                lettered: could not be read; only its position is kept. Dropped: a record without content, which Kafka writes \
                to delete a key."
            }
        }
    }
}

fn plan() -> Markup {
    let heads = [("group", ""), ("attributes", ""), ("ways to generalize", "n"), ("records released", "n")];
    html! {
        div.card {
            p.sub #plan-line {}
            div.scroll tabindex="0" role="region" aria-labelledby="plan-title" {
                table.long role="table" {
                    thead role="rowgroup" {
                        tr role="row" {
                            @for (name, class) in heads { th scope="col" role="columnheader" class=(class) { (name) } }
                        }
                    }
                    tbody #groups role="rowgroup" {}
                }
            }
            p.soft #chosen-line {}
            ul.soft #wishes {}
            p.soft #treatments {}
        }
    }
}

fn evidence() -> Markup {
    html! {
        div.row {
            div.card {
                p.sub #evidence-line {}
                (facts_table("evidence-facts"))
                h3 { "Combinations of attributes that single out many people" }
                p.set #qids {}
                p.says {
                    "Quasi-identifiers: fewer than k people share some combination of their values. Quasi-identifiers that single out \
                    only few people are not listed."
                }
            }
            div.card {
                h3 { "Attributes that predict others" }
                p.says {
                    "Solid line: one attribute predicts the other on average; the thicker, the more certain. Dashed: some single value \
                    of one attribute predicts the other."
                }
                svg #inferences viewBox="0 0 460 330" role="img" aria-label="attributes, connected if one predicts the other" {}
                h3 { "Single values with the strongest predictions" }
                p.says {
                    "Predicting and predicted attribute, probability, and number of people. The values themselves are not shown."
                }
                (facts_table("strongest"))
            }
        }
    }
}

fn details() -> Markup {
    html! {
        div.row.three {
            div.card { h3 { "Suppressed, by reason" } (facts_table("suppressed")) }
            div.card { h3 { "Dead letters, by reason" } (facts_table("dead")) }
            div.card {
                h3 { "State" }
                (facts_table("sizes"))
                p.says {
                    "Numbers marked “about” are rounded, and updated with a plan or every ten minutes, to reveal nothing \
                    about a single record."
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::STATUS_PAGE;

    #[test]
    fn status_page_loads_no_external_resource() {
        let html = &STATUS_PAGE.html;
        for foreign in
            ["https:", "http://", "//cdn", "@import", "url(", "<img", "<iframe", "src=", "eval(", "innerHTML"]
        {
            assert!(!html.contains(foreign), "the page contains {foreign}");
        }
        for (start, _) in html.match_indices("href=\"") {
            let link = &html[start + 6..];
            let own = ["data:,", "metrics", "plan", "status.json", "readyz"];
            assert!(own.iter().any(|page| link.starts_with(&format!("{page}\""))), "{}", &link[..20]);
        }
        assert!(!html.contains("/*STYLE*/") && !html.contains("/*SCRIPT*/"));
        assert!(!html.contains(" style=\"") && !html.contains(" onclick="), "the policy would refuse it");
    }

    #[test]
    fn status_page_is_accessible_and_without_jargon() {
        let html = &STATUS_PAGE.html;
        assert!(html.contains("<main>") && html.contains("max-width: 40rem"));
        assert_eq!(html.matches("<th ").count(), html.matches("<th scope=").count());
        assert_eq!(
            html.matches("class=\"scroll\"").count(),
            html.matches("class=\"scroll\" tabindex=\"0\" role=\"region\"").count()
        );
        for jargon in ["triage", "by chance", "ladder", "prosecutor", "entropy"] {
            assert!(!html.contains(jargon), "{jargon} is explained nowhere");
        }
        let charts = html.matches("chart(\"flow\"").count() + html.matches("  risk(\"").count();
        assert!(charts >= 9 && html.matches("says: \"").count() == charts, "{charts} charts");
    }
}
