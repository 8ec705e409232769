//! What `throng verify-release` is given to check certificates, and what it says of them.

use crate::certificates::head::Head;
use crate::certificates::key::PublicKey;
use crate::cli::measured::table;
use crate::cli::outcome::Failure;
use crate::cli::text::{counted, number};
use crate::config::Config;
use crate::evaluation::certified::{BrokenCertificate, CertificateLines, Certificates, Trust, check};
use crate::io::kafka::values::values;
use crate::start::clusters::sink_cluster;
use anyhow::{Context, anyhow};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Findings that are printed; `--json` has more.
const SHOWN: usize = 20;

/// How long a cluster may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// What stands before the name of a topic.
const TOPIC: &str = "topic:";

/// The certificates to check, and whom to believe.
#[derive(Debug, clap::Args)]
pub struct CertificateArgs {
    /// Certificates to check: a file, - for standard input, or topic:NAME at the brokers of the configuration. Without RELEASED their
    /// chains and signatures alone
    #[arg(long, value_name = "FILE")]
    certificates: Option<PathBuf>,
    /// The public key of whoever signs, as PEM or hex; several where the key was changed
    #[arg(long, value_name = "FILE", requires = "certificates")]
    public_key: Vec<PathBuf>,
    /// The digest in which a chain is known to end, as the daemon logs it when it stops: shows what was cut off
    #[arg(long, value_name = "HEX", requires = "certificates")]
    head: Option<String>,
}

impl CertificateArgs {
    /// Checks the certificates, where some are named: by the `policy` that batches are promised under, and by what was released.
    pub fn check(
        &self,
        config: &Config,
        policy: &str,
        released: Option<&Path>,
    ) -> Result<Option<Certificates>, Failure> {
        let Some(path) = &self.certificates else { return Ok(None) };
        let keys = self.public_key.iter().map(|path| public_key(path)).collect::<Result<Vec<_>, _>>()?;
        let head = self
            .head
            .as_deref()
            .map(|text| Head::parse(text).ok_or_else(|| Failure::Usage(anyhow!("--head: a digest is 64 hex digits"))));
        let trust = Trust { keys: &keys, policy: Some(policy), head: head.transpose()? };
        let released = released.map(|path| (config, path));
        let topic = path.to_str().and_then(|text| text.strip_prefix(TOPIC));
        let found = if let Some(topic) = topic {
            let cluster = sink_cluster(config).map_err(|error| Failure::Usage(error.into()))?;
            let lines = values(&cluster, topic, "cannot read the certificates", PATIENCE);
            let lines = lines.map_err(|error| Failure::Running(error.into()))?;
            check(lines.into_iter().map(|line| Ok(Some(line))), &trust, released)?
        } else {
            let reader: Box<dyn BufRead> = if path.as_os_str() == "-" {
                Box::new(std::io::stdin().lock())
            } else {
                Box::new(BufReader::new(File::open(path).with_context(|| path.display().to_string())?))
            };
            check(CertificateLines::new(reader, path.clone()), &trust, released)?
        };
        Ok(Some(found))
    }
}

fn public_key(path: &Path) -> Result<PublicKey, Failure> {
    let content = std::fs::read(path).with_context(|| path.display().to_string())?;
    PublicKey::parse(&content).map_err(|error| {
        let remedy = "write one with `openssl pkey -in KEY -pubout`";
        Failure::Usage(anyhow!("--public-key {}: {error} ({remedy})", path.display()))
    })
}

/// The certificates as people read it.
pub fn words(found: &Certificates) -> String {
    let heads = ["chain", "certificates", "from batch", "to batch", "without", "begins"];
    let rows: Vec<Vec<String>> = found
        .chains
        .iter()
        .map(|chain| {
            vec![
                chain.instance.clone(),
                number(chain.certificates),
                number(chain.first_batch),
                number(chain.last_batch),
                number(chain.batches_without),
                if chain.anew || chain.first_batch > 1 { "anew" } else { "with its state" }.to_owned(),
            ]
        })
        .collect();
    let mut text = format!(
        "{} of {}\n\n{}",
        counted(found.certificates, "certificate"),
        counted(found.lines, "line"),
        table(&heads, &rows)
    );
    found.chains.iter().for_each(|chain| text += &format!("head of {}: {}\n", chain.instance, chain.head));
    if found.kept {
        text += "\nnothing of the certificates that was checked is broken\n";
    } else {
        text += &format!("\n{}:\n", counted(found.broken_in_all, "broken promise"));
        found.broken.iter().take(SHOWN).for_each(|broken| text += &line(broken));
        if found.broken_in_all > SHOWN as u64 {
            text += &format!("  … and {} more\n", number(found.broken_in_all - SHOWN as u64));
        }
    }
    if !found.not_checked.is_empty() {
        text += "\nnot checked of the certificates:\n";
        found.not_checked.iter().for_each(|what| text += &format!("  {what}\n"));
    }
    text
}

fn line(broken: &BrokenCertificate) -> String {
    let mut places: Vec<String> = Vec::new();
    places.extend(broken.batch.map(|batch| format!("batch {batch}")));
    places.extend(broken.line.map(|line| format!("line {line}")));
    places.extend(broken.output.as_ref().map(|name| format!("output {name}")));
    let counts = match (broken.found, broken.asked) {
        (Some(found), Some(asked)) => format!(": {} of {}", number(found), number(asked)),
        _ => String::new(),
    };
    let place = if places.is_empty() { String::new() } else { format!("{}: ", places.join(", ")) };
    format!("  {place}{}{counts}\n", broken.promise)
}
