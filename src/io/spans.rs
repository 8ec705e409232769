//! Spans of batches to an OpenTelemetry collector: OTLP over HTTP, in JSON, from a thread of its own.
//!
//! A trace a batch: the batch, and below it a span a stage. The durations are measured; stages lie end to end in their order,
//! although some of them run beside each other. Nothing waits for a collector: what finds no room in the queue is dropped, what a
//! collector does not take is dropped, and both are counted.

use crate::telemetry::{BatchSpan, Label, SpanOutcome, Stage, Telemetry};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Batches that wait at most.
const QUEUE: usize = 1_024;
/// Batches that one request tells of, at most.
const TOLD_AT_A_TIME: usize = 128;
/// How long batches are gathered for a request.
const GATHER: Duration = Duration::from_secs(1);
/// How long a request may take: an end waits for one that is under way, and for the last.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why batches cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum SpansError {
    /// The authorities that vouch for the collector.
    #[error("telemetry.otlp_ca_file: {path} cannot be read: {what} (name a PEM file of certificates)")]
    Authorities {
        /// The file.
        path: String,
        /// Why not.
        what: String,
    },
    /// The system has no thread to give.
    #[error("there is no thread for the spans of batches: {0}")]
    Thread(std::io::Error),
}

/// The thread that tells a collector of batches.
#[derive(Debug)]
pub struct Spans {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Spans {
    /// Begins to tell the collector at `endpoint` (`http://HOST:PORT`) of every batch that `telemetry` hears of. `authorities` are a PEM file
    /// of those that vouch for it; the public ones without.
    ///
    /// # Errors
    /// When the authorities cannot be read, or there is no thread.
    pub fn begin(endpoint: &str, authorities: Option<&Path>, telemetry: &Telemetry) -> Result<Self, SpansError> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = authorities {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(certificates(path)?)));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(ureq::Proxy::try_from_env())
            .tls_config(tls.build())
            .build();
        let teller = Teller {
            agent: config.into(),
            url: format!("{}/v1/traces", endpoint.trim_end_matches('/')),
            telemetry: telemetry.clone(),
            refused: false,
        };
        let (queue, batches) = bounded(QUEUE);
        let (end, ended) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("spans".to_owned())
            .spawn(move || teller.run(&batches, &ended))
            .map_err(SpansError::Thread)?;
        telemetry.trace_to(queue);
        Ok(Self { end, thread })
    }

    /// Tells of what is in the queue and ends, within two requests.
    pub fn end(self) {
        drop(self.end);
        if self.thread.join().is_err() {
            tracing::warn!("the thread that tells of spans has failed");
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, SpansError> {
    let failed = |what: String| SpansError::Authorities { path: path.display().to_string(), what };
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| failed(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(failed("no certificate is in it".to_owned())) } else { Ok(found) }
}

/// What the thread has.
struct Teller {
    agent: ureq::Agent,
    url: String,
    telemetry: Telemetry,
    /// The last request was not taken, and the log says so.
    refused: bool,
}

impl Teller {
    fn run(mut self, batches: &Receiver<BatchSpan>, ended: &Receiver<()>) {
        loop {
            // The other end sends nothing: it goes.
            let mut over = !matches!(ended.recv_timeout(GATHER), Err(RecvTimeoutError::Timeout));
            while !batches.is_empty() {
                let some: Vec<BatchSpan> = batches.try_iter().take(TOLD_AT_A_TIME).collect();
                self.tell(&some);
                over |= !matches!(ended.try_recv(), Err(TryRecvError::Empty));
                if over {
                    self.telemetry.count_spans(SpanOutcome::Dropped, batches.try_iter().count() as u64);
                }
            }
            if over {
                return;
            }
        }
    }

    /// One request; what is not taken is not sent again.
    fn tell(&mut self, batches: &[BatchSpan]) {
        let request = self.agent.post(&self.url).header("Content-Type", "application/json");
        let (outcome, why) = match request.send(request_of(batches).to_string().as_str()) {
            Ok(answer) if answer.status().is_success() => (SpanOutcome::Sent, None),
            Ok(answer) => (SpanOutcome::Refused, Some(format!("status {}", answer.status().as_u16()))),
            Err(error) => (SpanOutcome::Refused, Some(error.to_string())),
        };
        self.telemetry.count_spans(outcome, batches.len() as u64);
        match why {
            Some(why) if !self.refused => {
                tracing::warn!(
                    why,
                    "the collector of telemetry.otlp_endpoint does not take spans; they are dropped and counted until it does"
                );
            }
            None if self.refused => tracing::info!("the collector takes spans again"),
            _ => {}
        }
        self.refused = outcome == SpanOutcome::Refused;
    }
}

/// An `ExportTraceServiceRequest` as OTLP spells it in JSON: identifiers in hex, times and whole numbers as text.
fn request_of(batches: &[BatchSpan]) -> Value {
    let named = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    json!({"resourceSpans": [{
        "resource": {"attributes": [named("service.name", "throng"), named("service.version", env!("CARGO_PKG_VERSION"))]},
        "scopeSpans": [{
            "scope": {"name": "throng", "version": env!("CARGO_PKG_VERSION")},
            "spans": batches.iter().flat_map(spans_of).collect::<Vec<_>>(),
        }],
    }]})
}

/// The span of a batch, and those of its stages.
fn spans_of(batch: &BatchSpan) -> Vec<Value> {
    const NANOS: u64 = 100_000;
    let trace = uuid::Uuid::new_v4().simple().to_string();
    let id = || uuid::Uuid::new_v4().simple().to_string()[..16].to_owned();
    let tenths = |seconds: f64| (seconds * 1e4).round().max(0.0) as u64;
    let span = |name: &str, own: &str, from: u64, to: u64| {
        json!({
            "traceId": trace, "spanId": own, "name": name, "kind": 1,
            "startTimeUnixNano": (from * NANOS).to_string(), "endTimeUnixNano": (to * NANOS).to_string(),
        })
    };
    let all: u64 = Stage::ALL.iter().map(|stage| tenths(batch.seconds.get(*stage))).sum();
    let (root, mut at) = (id(), batch.ended.saturating_sub(all));
    let mut whole = span("batch", &root, at, batch.ended);
    let count = |name: &str, n: u64| json!({"key": format!("throng.{name}"), "value": {"intValue": n.to_string()}});
    let counts = std::iter::once(("sequence", batch.sequence)).chain(batch.counts);
    whole["attributes"] = counts.map(|(name, n)| count(name, n)).collect();
    let mut spans = vec![whole];
    for stage in Stage::ALL {
        let to = at + tenths(batch.seconds.get(*stage));
        let mut part = span(stage.as_str(), &id(), at, to);
        part["parentSpanId"] = json!(root);
        spans.push(part);
        at = to;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{BatchCommitted, BatchReport, StageSeconds};

    fn batch() -> BatchSpan {
        let mut seconds = StageSeconds::default();
        seconds.add(Stage::Treat, 0.25);
        seconds.add(Stage::Commit, 0.5);
        let counts = ["records", "released", "suppressed", "held", "dead_lettered", "dropped", "fragments"];
        BatchSpan { sequence: 7, ended: 20_000_000, seconds, counts: counts.map(|name| (name, 3)) }
    }

    #[test]
    fn a_batch_is_a_trace_of_its_stages() {
        let spans = spans_of(&batch());
        assert_eq!(spans.len(), 1 + Stage::ALL.len());
        let time = |span: &Value, key: &str| span[key].as_str().expect("a text").parse::<u64>().expect("a number");
        let ends = |span: &Value| (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano"));
        assert_eq!(ends(&spans[0]), (1_999_250_000_000, 2_000_000_000_000));
        let mut at = ends(&spans[0]).0;
        for (span, stage) in spans[1..].iter().zip(Stage::ALL) {
            assert_eq!(span["name"], stage.as_str());
            assert_eq!((&span["parentSpanId"], &span["traceId"]), (&spans[0]["spanId"], &spans[0]["traceId"]));
            assert_eq!(ends(span).0, at);
            at = ends(span).1;
        }
        assert_eq!(at, ends(&spans[0]).1);
        assert_eq!(spans[0]["traceId"].as_str().map(str::len), Some(32));
        assert_eq!(spans[0]["spanId"].as_str().map(str::len), Some(16));
        assert_eq!(spans[0]["attributes"][0], json!({"key": "throng.sequence", "value": {"intValue": "7"}}));
    }

    #[test]
    fn nothing_waits_for_a_collector() {
        let telemetry = Telemetry::new(5, &[]);
        let (queue, batches) = bounded(1);
        telemetry.trace_to(queue);
        (0..3).for_each(|_| BatchCommitted(BatchReport::default()).emit(&telemetry));
        assert_eq!(batches.len(), 1);
        assert!(telemetry.render().contains("throng_spans_total{outcome=\"dropped\"} 2\n"));
    }
}
