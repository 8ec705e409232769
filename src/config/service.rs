//! `[state]`, `[compute]` and `[telemetry]`: the surroundings of the pipeline.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the daemon keeps on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// The state directory; one daemon at a time owns it, with mode 0700. Without it a run over files or standard input keeps none; with
    /// it what a job over files has released counts for the next one.
    #[schemars(example = &"state/")]
    pub path: PathBuf,
    /// A file whose content is the secret that keys every digest of a subject, at least 16 bytes (a last newline is
    /// not part of it). `THRONG_SECRET` in the environment is the alternative; both at once are refused. Without
    /// either, the daemon draws a secret and keeps it in the state directory.
    #[schemars(example = &"secret/throng.key")]
    pub secret_file: Option<PathBuf>,
    /// People remembered at most for `privacy.min_tenure`, and classes that they support for `privacy.max_classes_per_subject`;
    /// at the limit nobody new is seen, and nobody supports a class that he does not support already.
    #[schemars(example = 2_000_000, extend("minimum" = 1))]
    pub max_budget_entries: usize,
}

impl Default for State {
    fn default() -> Self {
        Self { path: PathBuf::from("state"), secret_file: None, max_budget_entries: 2_000_000 }
    }
}

/// On what hardware groups are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Whichever is faster where groups are counted. Plans are made on the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU. `throng run` refuses it (exit code 3), since plans are made on the CPU; `throng audit` takes it.
    Cuda,
}

/// On what hardware groups are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Compute {
    /// `auto`, `cpu` or `cuda`; the answers are identical.
    #[schemars(example = Backend::Auto)]
    pub backend: Backend,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Its spelling in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// The least severe log line that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the levels of every logger")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// Its spelling in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Metrics, status page and logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Address and port of the HTTP pages (`/`, `/metrics`, `/healthz`, `/readyz`, `/plan`). Port 0 takes a free one. Without it a run
    /// over files or standard input serves none.
    #[schemars(example = &"127.0.0.1:9464")]
    pub listen: String,
    /// How log lines are written, on standard error.
    #[schemars(example = LogFormat::Text)]
    pub log_format: LogFormat,
    /// The least severe log line that is written.
    #[schemars(example = LogLevel::Info)]
    pub log_level: LogLevel,
    /// Names by which the pages may be asked for, besides `localhost` and addresses: the name of a container or of a
    /// service, say. A request by any other name is refused, so that no foreign page can read these through its reader's
    /// browser. `/healthz` and `/readyz` answer whatever the name.
    #[schemars(example = ["throng", "throng.internal.example"])]
    pub allowed_hosts: Vec<String>,
    /// A file whose content opens the pages, at least 16 visible characters (a last newline is not part of it), which
    /// only its owner and its group may read. Sent as `Authorization: Bearer …`, or typed as the password of any user
    /// where a browser asks. Without one, whoever reaches the address sees the pages. `/healthz` and `/readyz` stay open. With
    /// one, `throng forget` can ask a running daemon (`POST /forget`); without one there is no such page.
    #[schemars(example = &"secret/pages.token")]
    pub token_file: Option<PathBuf>,
    /// The pages over TLS 1.3, where both files are named.
    pub tls: PagesTls,
}

/// Certificate and key of the pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PagesTls {
    /// The certificate of the pages and those that it was signed with, as PEM, the pages' own first.
    #[schemars(example = &"secret/pages.crt")]
    pub cert_file: Option<PathBuf>,
    /// The private key of the certificate, as PEM, which only its owner and its group may read.
    #[schemars(example = &"secret/pages.key")]
    pub key_file: Option<PathBuf>,
}

impl Default for Telemetry {
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

impl Telemetry {
    /// `listen` as a socket address; None only for a configuration that [`load`](super::load) has not judged.
    #[must_use]
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.listen.parse().ok()
    }
}
