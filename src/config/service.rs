//! Environment of the pipeline: state, batches, hardware, memory and telemetry.

use super::choice::choices;
use super::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Sets the state that the daemon keeps on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StateConfig {
    /// Sets the state directory, owned by one daemon, with mode 0700. Without it a run over files or standard input
    /// keeps no state. With it, the releases of a job over files count for the next job.
    #[schemars(example = &"state/")]
    pub path: PathBuf,
    /// Sets the file with the secret for every digest of a subject: at least 16 bytes (a last newline does not count),
    /// readable by owner and group only. A job over files creates a missing one. Alternative: `THRONG_SECRET` in the
    /// environment, not both. Without either, the daemon keeps a generated secret in the state directory; a job without
    /// a state generates one per run.
    #[schemars(example = &"secret/throng.key")]
    pub secret_file: Option<PathBuf>,
    /// Limits the subjects remembered for `privacy.min_tenure`, and their classes for
    /// `privacy.max_classes_per_subject`. At the limit no subject or class is added.
    #[schemars(example = 2_000_000, extend("minimum" = 1))]
    pub max_budget_entries: usize,
}

impl Default for StateConfig {
    fn default() -> Self {
        Self { path: PathBuf::from("state"), secret_file: None, max_budget_entries: 2_000_000 }
    }
}

/// Hardware that counts groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComputeBackend {
    /// The faster of both for each count. Plans are made on the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU. Without one, a command ends with exit code 3.
    Cuda,
}

/// Selects the hardware that counts groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ComputeConfig {
    /// Selects `auto`, `cpu` or `cuda`; the results are identical.
    #[schemars(example = ComputeBackend::Auto)]
    pub backend: ComputeBackend,
}

choices! {
    /// Format of log lines.
    #[derive(Default)]
    enum LogFormat {
        /// Human-readable text.
        #[default]
        Text = "text",
        /// One JSON object per line.
        Json = "json",
    }
}

choices! {
    /// Lowest severity of written log lines.
    #[derive(Default)]
    #[allow(missing_docs, reason = "the levels of every logger")]
    enum LogLevel {
        Error = "error",
        Warn = "warn",
        #[default]
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
}

/// Sets metrics, status page and logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Sets the address of the HTTP pages (`/`, `/metrics`, `/healthz`, `/readyz`, `/plan`, `/series.json`). Port 0
    /// selects a free port. Without it a run over files or standard input serves no pages.
    #[schemars(example = &"127.0.0.1:9464")]
    pub listen: String,
    /// Sets the format of log lines, on standard error.
    #[schemars(example = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Sets the lowest severity of written log lines.
    #[schemars(example = LogLevel::Info)]
    pub log_level: LogLevel,
    /// Accepts requests for the pages under these host names, such as that of a container, in addition to `localhost`
    /// and addresses. Other names are refused, so that no foreign page reads these pages through a browser. Not for
    /// `/healthz` and `/readyz`.
    #[schemars(example = ["throng", "throng.internal.example"])]
    pub allowed_hosts: Vec<String>,
    /// Sets the file with the access token of the pages: at least 16 visible characters (a last newline does not
    /// count), readable by owner and group only. Clients send it as `Authorization: Bearer …`, or as the password of
    /// any user. Without a token, every client can read the pages, and `throng forget` cannot ask a running daemon
    /// (`POST /forget`). `/healthz` and `/readyz` stay open.
    #[schemars(example = &"secret/pages.token")]
    pub token_file: Option<PathBuf>,
    /// Serves the pages over TLS 1.3, if both files are named.
    pub tls: PagesTls,
}

/// Sets certificate and key of the pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PagesTls {
    /// Sets the certificate of the pages, followed by its chain of signers, as PEM.
    #[schemars(example = &"secret/pages.crt")]
    pub cert_file: Option<PathBuf>,
    /// Sets the private key of the certificate, as PEM, readable by owner and group only.
    #[schemars(example = &"secret/pages.key")]
    pub key_file: Option<PathBuf>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:9464".into(),
            log_format: LogFormat::Text,
            log_level: LogLevel::Info,
            allowed_hosts: Vec::new(),
            token_file: None,
            tls: PagesTls::default(),
        }
    }
}

impl TelemetryConfig {
    /// Returns `listen` as a socket address; always Some for a configuration from [`load`](super::load).
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.listen.parse().ok()
    }
}

/// Sets the limits of a micro-batch; the first one reached closes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// Closes a batch at this many records, once it has at least n subjects (`privacy.k` plus `privacy.colluders`). One
    /// subject fills at most 1/n of the batch (and of `max_bytes`); its further records are suppressed with reason
    /// `thinned`. Larger batches lose less information and wait longer. Without it a file is one batch as far as memory
    /// allows (`batch.max_bytes`, `process.memory_limit`).
    #[schemars(example = 10_000, extend("minimum" = 1))]
    pub max_records: usize,
    /// Closes a batch at this many payload bytes. Default for a file as one batch: 2GiB, at most a sixteenth of the
    /// memory. The data around the elements of an array counts once per element. At least `source.max_record_bytes`, at
    /// most 2GiB.
    #[serde(with = "quantity::size")]
    #[schemars(with = "quantity::Size", example = &"64MiB", extend("maximum" = 2_147_483_648_u32))]
    pub max_bytes: u64,
    /// Closes a batch at this age, if it has at least `privacy.k` plus `privacy.colluders` subjects.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1s")]
    pub max_wait: Duration,
    /// Closes a batch at this age even with fewer subjects; its records are then suppressed with reason `quiet`.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5m")]
    pub max_age: Duration,
    /// True for a job over files without `max_records`: one batch as far as memory allows.
    #[serde(skip)]
    #[schemars(skip)]
    pub is_whole: bool,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            max_records: 10_000,
            max_bytes: 64 << 20,
            max_wait: Duration::from_secs(1),
            max_age: Duration::from_mins(5),
            is_whole: false,
        }
    }
}

/// Limits the machine resources that the daemon uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessConfig {
    /// Limits the memory of the daemon. It is divided among the parts that grow; `throng check` prints the division.
    /// Limits in numbers of entries are lowered, never raised. Batches close earlier, broker clients queue less, the
    /// window forgets its oldest records, and dictionaries their unused values. Less memory suppresses more and never
    /// causes a release. Profiles of joins are limited only by number. Keep it a fifth below the system's memory limit
    /// for the process. Part of the policy digest if set.
    #[serde(with = "quantity::optional_size")]
    #[schemars(with = "Option<quantity::Size>", example = &"2GiB")]
    pub memory_limit: Option<u64>,
}

/// Erases subjects named in a topic, which every instance reads completely. Not needed for `throng forget` and the
/// pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ErasureConfig {
    /// Sets the Kafka topic, on the brokers of the source, with subjects to erase as message keys: UTF-8, spelled as
    /// for `throng forget`. Values are ignored. For sources of kind `kafka`. Disabled if empty (`""`).
    #[schemars(example = &"throng.erasures")]
    pub topic: String,
}

impl ErasureConfig {
    /// Returns true if a topic is configured.
    pub fn is_enabled(&self) -> bool {
        !self.topic.is_empty()
    }
}
