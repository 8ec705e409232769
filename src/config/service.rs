//! `[batch]`, `[erasure]`, `[state]`, `[compute]`, `[process]` and `[telemetry]`: the environment of the pipeline.

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
    /// Sets the state directory; one daemon at a time owns it, with mode 0700. Without it a run over files or
    /// standard input keeps no state. With it, the releases of a job over files count for the next job.
    #[schemars(example = &"state/")]
    pub path: PathBuf,
    /// Sets the file that contains the secret for every digest of a subject, at least 16 bytes (a last newline is not
    /// part of it). It may be readable by owner and group only. A job over files creates it if it does not exist.
    /// `THRONG_SECRET` in the environment is the alternative; both together are refused. Without either, the daemon
    /// generates a secret and keeps it in the state directory, and a job without a state generates one per run.
    #[schemars(example = &"secret/throng.key")]
    pub secret_file: Option<PathBuf>,
    /// Limits the subjects remembered for `privacy.min_tenure`, and the classes that they support for
    /// `privacy.max_classes_per_subject`. At the limit no new subject is registered, and no subject supports a
    /// further class.
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
    /// The faster of both, for each count. Plans are made on the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU. Without a usable device a command ends with exit code 3.
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
    /// Lowest severity of the log lines that are written.
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
    /// Sets address and port of the HTTP pages (`/`, `/metrics`, `/healthz`, `/readyz`, `/plan`, `/series.json`).
    /// Port 0 selects a free port. Without it a run over files or standard input serves no pages.
    #[schemars(example = &"127.0.0.1:9464")]
    pub listen: String,
    /// Sets the format of log lines, on standard error.
    #[schemars(example = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Sets the lowest severity of the log lines that are written.
    #[schemars(example = LogLevel::Info)]
    pub log_level: LogLevel,
    /// Accepts requests for the pages under these host names, in addition to `localhost` and addresses; for example
    /// the name of a container or service. A request with any other name is refused, so that a foreign page cannot
    /// read these pages through a browser. `/healthz` and `/readyz` answer under any name.
    #[schemars(example = ["throng", "throng.internal.example"])]
    pub allowed_hosts: Vec<String>,
    /// Sets the file that contains the access token of the pages, at least 16 visible characters (a last newline is
    /// not part of it). It may be readable by owner and group only. Sent as `Authorization: Bearer …`, or typed as
    /// the password of any user if a browser asks. Without a token, every client that reaches the address sees the
    /// pages. `/healthz` and `/readyz` stay open. With a token, `throng forget` can ask a running daemon (`POST
    /// /forget`); without one that page does not exist.
    #[schemars(example = &"secret/pages.token")]
    pub token_file: Option<PathBuf>,
    /// Serves the pages over TLS 1.3, if both files are named.
    pub tls: PagesTls,
}

/// Sets certificate and key of the pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PagesTls {
    /// Sets the certificate of the pages and its chain of signers, as PEM, the page certificate first.
    #[schemars(example = &"secret/pages.crt")]
    pub cert_file: Option<PathBuf>,
    /// Sets the private key of the certificate, as PEM. It may be readable by owner and group only.
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
    /// Returns `listen` as a socket address; None only for a configuration that [`load`](super::load) has not
    /// validated.
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.listen.parse().ok()
    }
}

/// Sets the limits that close a micro-batch: records, bytes or time, whichever is reached first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// Closes a batch at this many records, once it has at least n subjects (n is `privacy.k` plus
    /// `privacy.colluders`). One subject fills at most 1/n of the batch (and of `max_bytes`); its further records are
    /// suppressed with reason `thinned`. Larger batches lose less information and wait longer. Without it a file is
    /// one batch as far as memory allows (`batch.max_bytes`, `process.memory_limit`), because consumers see the
    /// output as a whole.
    #[schemars(example = 10_000, extend("minimum" = 1))]
    pub max_records: usize,
    /// Closes a batch at this many payload bytes. Default for a file as one batch: 2GiB, or a sixteenth of the memory
    /// if that is less. The data around the elements of an array counts once per element. At least
    /// `source.max_record_bytes`, at most 2GiB.
    #[serde(with = "quantity::size")]
    #[schemars(with = "quantity::Size", example = &"64MiB", extend("maximum" = 2_147_483_648_u32))]
    pub max_bytes: u64,
    /// Closes a batch at this age, if it has at least as many subjects as `privacy.k` and `privacy.colluders`
    /// together.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1s")]
    pub max_wait: Duration,
    /// Closes a batch at this age even if it still has fewer subjects; its records are then suppressed with reason
    /// `quiet`.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5m")]
    pub max_age: Duration,
    /// True if the files of a job are one batch as far as memory allows: `max_records` is not given.
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
    /// Limits the memory of the daemon, as a size; without it only the limits of each part apply. It is divided among
    /// the parts that grow, and `throng check` prints the division. Limits in numbers of entries are lowered to the
    /// available memory (never raised). Batches are closed earlier, and the clients of the brokers fetch and queue
    /// less. The window forgets its oldest records, and the dictionaries their unused values, when they exceed their
    /// shares. At a limit less is counted and more is suppressed; lack of memory never causes a release. Profiles of
    /// joins are limited only by their number. Keep it a fifth below the system's memory limit for the process. Part
    /// of the policy digest if set.
    #[serde(with = "quantity::optional_size")]
    #[schemars(with = "Option<quantity::Size>", example = &"2GiB")]
    pub memory_limit: Option<u64>,
}

/// Erases subjects named in a topic that every instance reads completely. `throng forget` and the pages can erase
/// subjects without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ErasureConfig {
    /// Sets the Kafka topic, on the brokers of the source, that names the subjects to erase by its message keys:
    /// UTF-8, spelled as for `throng forget`. The value is ignored; a message without a value also names the subject.
    /// For sources of kind `kafka`. Disabled if empty (`""`).
    #[schemars(example = &"throng.erasures")]
    pub topic: String,
}

impl ErasureConfig {
    /// Returns true if a topic of erasures is configured.
    pub fn is_enabled(&self) -> bool {
        !self.topic.is_empty()
    }
}
