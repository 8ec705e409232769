//! `[batch]`, `[erasure]`, `[state]`, `[compute]`, `[process]` and `[telemetry]`: the surroundings of the pipeline.

use super::choice::choices;
use super::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What the daemon keeps on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// The state directory; one daemon at a time owns it, with mode 0700. Without it a run over files or standard input keeps none; with
    /// it what a job over files has released counts for the next one.
    #[schemars(example = &"state/")]
    pub path: PathBuf,
    /// A file whose content is the secret that keys every digest of a subject, at least 16 bytes (a last newline is
    /// not part of it). It may be readable by owner and group only. A job over files creates it where it does not exist.
    /// `THRONG_SECRET` in the environment is the alternative; both at once are refused. Without
    /// either, the daemon draws a secret and keeps it in the state directory, and a job without a state draws one for each run.
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

choices! {
    /// How log lines are written.
    #[derive(Default)]
    enum LogFormat {
        /// For people.
        #[default]
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

choices! {
    /// The least severe log line that is written.
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

/// Metrics, status page and logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Address and port of the HTTP pages (`/`, `/metrics`, `/healthz`, `/readyz`, `/plan`, `/series.json`). Port 0 takes a free one. Without it a run
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
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.listen.parse().ok()
    }
}

/// When a micro-batch is closed: by records, by bytes or by time, whichever comes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Batch {
    /// A batch of this many records is closed once it has as many subjects as `privacy.k` and `privacy.colluders` together, n; one subject
    /// fills at most 1/n of it (and of `max_bytes`), its further records of the batch are suppressed with reason `thinned`. Larger batches lose less information and wait longer. Without it a file is one batch as
    /// far as memory goes (`batch.max_bytes`, `process.memory_limit`): whoever reads the output sees it whole.
    #[schemars(example = 10_000, extend("minimum" = 1))]
    pub max_records: usize,
    /// A batch of this many payload bytes is closed (without it, where a file is one batch, one of 2GiB, or a sixteenth of the memory where that is less); what encloses the elements of an array counts for each of them. At least `source.max_record_bytes`, at most 2GiB.
    #[serde(with = "quantity::size")]
    #[schemars(with = "quantity::Size", example = &"64MiB", extend("maximum" = 2_147_483_648_u32))]
    pub max_bytes: u64,
    /// A batch this old is closed, if it has as many subjects as `privacy.k` and `privacy.colluders` together.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1s")]
    pub max_wait: Duration,
    /// A batch that is still below that at this age is settled: its records are suppressed with reason `quiet`.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5m")]
    pub max_age: Duration,
    /// The files of a job are one batch, as far as memory goes: `max_records` is not given.
    #[serde(skip)]
    #[schemars(skip)]
    pub is_whole: bool,
}

impl Default for Batch {
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

/// What the daemon may take of its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// Memory that the daemon may take, as a size; without it there is no limit but those of each part. It is divided among the parts
    /// that grow, and `throng check` prints how: limits that are numbers of entries are lowered to what fits (never raised), batches are
    /// closed earlier, the clients of the brokers fetch and queue less, and the window forgets its oldest records and the dictionaries
    /// their unused values once they outgrow their parts. At a limit less is counted and more is suppressed; nothing is released for want of
    /// memory. Profiles of joins are limited by their number alone. Keep it a fifth below what the system would kill the daemon for. Part
    /// of the policy digest where it is set.
    #[serde(with = "quantity::optional_size")]
    #[schemars(with = "Option<quantity::Size>", example = &"2GiB")]
    pub memory_limit: Option<u64>,
}

/// Who is to be erased, named in a topic that every instance reads for itself. `throng forget` and the pages erase people
/// without it as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Erasure {
    /// The Kafka topic, on the brokers of the source, of which every message names a person by its key: UTF-8, spelled as `throng forget` takes
    /// it. Its value is not read, and one without a value names the person all the same. For sources of kind `kafka`; without it (`""`) there is none.
    #[schemars(example = &"throng.erasures")]
    pub topic: String,
}

impl Erasure {
    /// Whether people are named in a topic.
    pub fn is_on(&self) -> bool {
        !self.topic.is_empty()
    }
}
