//! Metrics of plans and of the evidence for them.

use prometheus::{Gauge, GaugeVec, IntCounter, IntGauge, Opts};

use super::labels::{Label, QidSize};
use super::shelf::{PerLabel, Shelf};

/// Plans and the evidence for them.
pub(super) struct Planning {
    pub drift: Gauge,
    pub plan_version: IntGauge,
    pub plan_nodes: IntGauge,
    pub plan_static_groups: IntGauge,
    pub plan_seconds: Gauge,
    pub plans: IntCounter,
    pub planner_failures: IntCounter,
    pub minimal_qids: IntGauge,
    pub qids_by_size: PerLabel<QidSize, Gauge>,
    /// By attribute of the schema: there are as many as the schema names, whatever the records hold.
    pub involvement: GaugeVec,
    pub recheck_complete: IntGauge,
    pub recheck_seconds: Gauge,
    pub expected_loss: Gauge,
}

impl Planning {
    pub fn new(shelf: &Shelf) -> Self {
        let involvement = shelf.keep(GaugeVec::new(
            Opts::new(
                "throng_attribute_involvement",
                "Share of those minimal quasi-identifiers that the attribute is in, 0 to 1; told once a plan.",
            ),
            &["attribute"],
        ));
        Self {
            drift: shelf.gauge("throng_plan_drift", "Largest divergence of an attribute's values from those that the plan was made for, in bits; rounded and held."),
            plan_version: shelf.count("throng_plan_version", "Version of the plan in force."),
            plan_nodes: shelf.count("throng_plan_ladder_nodes", "Generalization nodes in all ladders of the plan."),
            plan_static_groups: shelf.count(
                "throng_plan_static_groups",
                "Groups of attributes that do not change within a subject, and so say things once a window.",
            ),
            plan_seconds: shelf.gauge("throng_plan_search_seconds", "Time that the search for the plan took."),
            plans: shelf.counter("throng_plans_total", "Plans adopted."),
            planner_failures: shelf.counter("throng_planner_failures_total", "Searches that gave no plan; the old one stays."),
            minimal_qids: shelf.count("throng_minimal_qids", "Minimal quasi-identifiers of the window, as last searched, that single out many people."),
            qids_by_size: shelf.gauges(
                "throng_quasi_identifiers",
                "The same by their number of attributes; told once a plan.",
                "size",
            ),
            involvement,
            recheck_complete: shelf.count("throng_recheck_complete", "1 where the last search of the window found all of them in time."),
            recheck_seconds: shelf.gauge("throng_recheck_seconds", "Time that the last search of the window took, triage and aggregation included."),
            expected_loss: shelf.gauge("throng_plan_expected_loss", "Mean loss of a cell that the plan is expected to cost."),
        }
    }

    /// Makes the series of these attributes, zero where they are new.
    pub fn name_attributes(&self, attributes: &[&str]) {
        for attribute in attributes {
            self.involvement.with_label_values(&[attribute]);
        }
    }

    /// Shows how many quasi-identifiers have one, two, … attributes.
    pub fn show_sizes(&self, by_size: &[u64]) {
        for size in QidSize::ALL {
            let of_size = if *size == QidSize::More {
                by_size.iter().skip(size.index()).sum()
            } else {
                by_size.get(size.index()).copied().unwrap_or(0)
            };
            self.qids_by_size.of(*size).set(of_size as f64);
        }
    }

    /// Shows in which share of them each attribute is; those that are not named are in none.
    pub fn show_involvement(&self, shares: &[(String, f64)]) {
        for (attribute, share) in shares {
            self.involvement.with_label_values(&[attribute.as_str()]).set(*share);
        }
    }
}
