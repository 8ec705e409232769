//! Reads `/metrics` as a client.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ANSWER: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Fetches the metrics; `None` if the port does not answer.
    pub fn fetch(port: u16) -> Option<Self> {
        let mut connection = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), ANSWER).ok()?;
        connection.set_read_timeout(Some(ANSWER)).ok()?;
        connection.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.split_whitespace().nth(1).filter(|status| *status == "200")?;
        Some(Self::parse(body))
    }

    fn parse(text: &str) -> Self {
        let series = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(series.collect())
    }

    /// Returns the value of a series; the name includes the labels.
    ///
    /// # Panics
    /// If there is no such series.
    pub fn get(&self, series: &str) -> f64 {
        *self.0.get(series).unwrap_or_else(|| panic!("/metrics has no {series}"))
    }

    pub fn records(&self, outcome: &str) -> f64 {
        self.get(&format!("throng_records_total{{outcome=\"{outcome}\"}}"))
    }

    pub fn consumed(&self) -> u64 {
        self.records("consumed") as u64
    }

    pub fn stage_seconds(&self, stage: &str) -> f64 {
        self.get(&format!("throng_batch_duration_seconds_sum{{stage=\"{stage}\"}}"))
    }

    /// Returns the observations since `before`.
    pub fn histogram_since(&self, before: &Self, name: &str) -> Histogram {
        let prefix = format!("{name}_bucket{{le=\"");
        let mut buckets: Vec<(f64, f64)> = self
            .0
            .iter()
            .filter_map(|(series, count)| {
                let bound = series.strip_prefix(&prefix)?.strip_suffix("\"}")?;
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
                Some((bound, count - before.0.get(series).unwrap_or(&0.0)))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        Histogram { buckets }
    }
}

pub struct Histogram {
    buckets: Vec<(f64, f64)>,
}

impl Histogram {
    pub fn count(&self) -> f64 {
        self.buckets.last().map_or(0.0, |b| b.1)
    }

    /// Returns the bounds of the bucket that contains the quantile.
    pub fn quantile_within(&self, q: f64) -> Option<(f64, f64)> {
        let rank = (q * self.count()).ceil().max(1.0);
        let at = self.buckets.iter().position(|b| b.1 >= rank)?;
        let lower = if at == 0 { 0.0 } else { self.buckets[at - 1].0 };
        Some((lower, self.buckets[at].0))
    }
}
