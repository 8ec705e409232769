//! `throng reload`.

use super::outcome::Failure;
use super::text;
use crate::config::{self, Config};
use crate::daemon::reload_request::ReloadAnswer;
use crate::telemetry::ReloadOutcome;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use zeroize::Zeroizing;

/// Have the running daemon read its configuration anew, and say what became of it
///
/// The daemon reads the file that it was started with, runs its tests, ends the batch at work and starts again inside the process, from the
/// same state: no batch is treated by two policies. If it is refused or does not start, the old configuration goes on. FILE says where the daemon is (telemetry.listen) and with which
/// token it is asked (telemetry.token_file): without a token there is no way to ask but SIGHUP, whose outcome is in the log and in
/// throng_reloads_total.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  throng reload -c /etc/throng/throng.toml\n\nExit codes: 0 the new configuration is in force, or says the same · 1 the daemon refuses it and says why, or does not answer · 2 the configuration is wrong: the daemon was not asked"
)]
pub struct ReloadArgs {
    /// The configuration of the daemon
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Where its pages are, where that is not `telemetry.listen`: behind a name of its certificate, or a proxy
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// How long to wait for the tests, the end of the batch at work and the new start
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

/// Runs `throng reload`.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &ReloadArgs) -> Result<(), Failure> {
    let config = config::load(&args.config, std::env::vars())?;
    let file = args.config.display();
    let token = config.telemetry.token().map_err(|error| Failure::Usage(error.into()))?.ok_or_else(|| {
        let remedy = "set it and start the daemon anew; until then, send it SIGHUP";
        Failure::Usage(anyhow!("{file}: telemetry.token_file: without a token nobody may ask for a reload ({remedy})"))
    })?;
    let url = match &args.url {
        Some(url) => format!("{}/reload", url.trim_end_matches('/')),
        None => address(&config).ok_or_else(|| {
            Failure::Usage(anyhow!(
                "{file}: telemetry.listen: the daemon takes a free port; say where it is with --url"
            ))
        })?,
    };
    // Visible ASCII: the configuration has seen to that.
    let bearer = Zeroizing::new(format!("Bearer {}", String::from_utf8_lossy(token.expose())));
    let asked = agent(&config, Duration::from_secs(args.seconds))?.post(&url).header("Authorization", bearer.as_str());
    let mut response = asked.send_empty().map_err(|error| {
        Failure::Running(anyhow!(
            "the daemon at {url} does not answer: {error} (is it running, with this configuration?)"
        ))
    })?;
    let status = response.status().as_u16();
    let body = response.body_mut().read_to_string().context("what the daemon answers cannot be read")?;
    match status {
        200 | 422 => {
            let answer: ReloadAnswer = serde_json::from_str(&body).context("the daemon's answer is not understood")?;
            told(&answer, &file.to_string())
        }
        401 => Err(Failure::Running(anyhow!(
            "the daemon at {url} knows another token than that of telemetry.token_file (it was read at its start)"
        ))),
        404 | 405 => Err(Failure::Running(anyhow!(
            "the daemon at {url} takes no reloads: it was started without telemetry.token_file, or is none (send it SIGHUP)"
        ))),
        _ => Err(Failure::Running(anyhow!("the daemon at {url} answers {status}: {}", text::clean(body.trim())))),
    }
}

/// Where the pages of a configuration are; none where their port is not known beforehand.
fn address(config: &Config) -> Option<String> {
    let mut address = config.telemetry.address().filter(|address| address.port() != 0)?;
    if address.ip().is_unspecified() {
        // It listens everywhere: here, too.
        let here: std::net::IpAddr = match address {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(here);
    }
    let scheme = if config.telemetry.tls.cert_file.is_some() { "https" } else { "http" };
    Some(format!("{scheme}://{address}/reload"))
}

/// Whom the daemon's certificate is: its own file vouches for it.
fn agent(config: &Config, patience: Duration) -> Result<ureq::Agent, Failure> {
    let mut tls = TlsConfig::builder();
    if let Some(path) = &config.telemetry.tls.cert_file {
        tls = tls.root_certs(RootCerts::Specific(Arc::new(certificates(path)?)));
    }
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(0)
        // The token goes to the daemon, and to nobody whom the environment names.
        .proxy(None)
        .tls_config(tls.build())
        .build();
    Ok(agent.into())
}

fn certificates(path: &Path) -> Result<Vec<ureq::tls::Certificate<'static>>, Failure> {
    let unusable =
        |why: String| Failure::Usage(anyhow!("telemetry.tls.cert_file: {} cannot be used ({why})", path.display()));
    let pem = std::fs::read(path).map_err(|error| unusable(error.kind().to_string()))?;
    let found: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            Ok(_) | Err(_) => None,
        })
        .collect();
    if found.is_empty() { Err(unusable("it holds no certificate".to_owned())) } else { Ok(found) }
}

/// Says what became of it.
fn told(answer: &ReloadAnswer, file: &str) -> Result<(), Failure> {
    let changed: Vec<String> = answer.changed.iter().map(|key| text::clean(key)).collect();
    match answer.outcome {
        ReloadOutcome::Replaced => {
            let what = if changed.is_empty() { "files that it names".to_owned() } else { changed.join(", ") };
            println!("{file}: in force, policy {} (changed: {what})", text::clean(&answer.policy));
            Ok(())
        }
        ReloadOutcome::Unchanged => {
            println!("{file}: no changes, policy {}", text::clean(&answer.policy));
            Ok(())
        }
        ReloadOutcome::Refused => {
            for reason in &answer.reasons {
                eprintln!("refused: {}", text::clean(reason));
            }
            let policy = text::clean(&answer.policy);
            Err(Failure::Running(anyhow!("{file} is refused, and policy {policy} stays in force: see above")))
        }
    }
}
