//! How series are made: each kept in a registry, families with a series for every value of their label.

use std::marker::PhantomData;

use prometheus::{Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, core::Collector};

use super::labels::Label;

/// One series for every value of a label.
pub(super) struct PerLabel<L, M> {
    series: Vec<M>,
    label: PhantomData<L>,
}

impl<L: Label, M> PerLabel<L, M> {
    pub fn new(of: impl Fn(L) -> M) -> Self {
        Self { series: L::ALL.iter().map(|label| of(*label)).collect(), label: PhantomData }
    }

    pub fn of(&self, label: L) -> &M {
        &self.series[label.index()]
    }
}

/// Makes series and registers them. Names and labels are literals of this file and are registered once, so that the
/// only errors prometheus knows (a bad name, a double one) cannot arise from any input.
pub(super) struct Shelf(pub Registry);

impl Shelf {
    pub fn keep<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("metric names and labels are well-formed literals");
        self.0.register(Box::new(metric.clone())).expect("every metric is registered once");
        metric
    }

    pub fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.keep(IntCounter::new(name, help))
    }

    pub fn count(&self, name: &str, help: &str) -> IntGauge {
        self.keep(IntGauge::new(name, help))
    }

    pub fn gauge(&self, name: &str, help: &str) -> Gauge {
        self.keep(Gauge::new(name, help))
    }

    pub fn counters<L: Label>(&self, name: &str, help: &str, label: &str) -> PerLabel<L, IntCounter> {
        let family = self.keep(IntCounterVec::new(Opts::new(name, help), &[label]));
        PerLabel::new(|value: L| family.with_label_values(&[value.as_str()]))
    }

    pub fn gauges<L: Label>(&self, name: &str, help: &str, label: &str) -> PerLabel<L, Gauge> {
        let family = self.keep(GaugeVec::new(Opts::new(name, help), &[label]));
        PerLabel::new(|value: L| family.with_label_values(&[value.as_str()]))
    }
}

/// 1 ms to about 65 s, each bucket twice the one before.
pub(super) fn buckets() -> Vec<f64> {
    (0..17).map(|step| 0.001 * f64::from(1u32 << step)).collect()
}

/// As [`buckets`], and finer about a second, where `batch.max_wait` puts most batches: 1.25 s tells whether one was late.
pub(super) fn waits() -> Vec<f64> {
    let mut bounds = buckets();
    bounds.extend([0.75, 1.0, 1.25, 1.5, 3.0, 6.0]);
    bounds.sort_unstable_by(f64::total_cmp);
    bounds
}

/// Gauges of which nothing is known yet.
pub(super) fn untold<L: Label>(gauges: PerLabel<L, Gauge>) -> PerLabel<L, Gauge> {
    L::ALL.iter().for_each(|value| gauges.of(*value).set(f64::NAN));
    gauges
}
