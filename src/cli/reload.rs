//! `throng reload`.

use super::outcome::Failure;
use super::{daemon_client, text_format};
use crate::config;
use crate::daemon::requests::ReloadAnswer;
use crate::telemetry::ReloadOutcome;
use anyhow::{Context, anyhow};
use std::path::PathBuf;
use std::time::Duration;

/// Reload the configuration of the running daemon and print the outcome
///
/// The daemon reads the file it was started with, runs its tests, ends the current batch and restarts inside the
/// process from the same state: no batch is treated by two policies. If the new configuration is refused or does not
/// start, the old one stays active. FILE gives the address of the daemon (telemetry.listen) and the token for the
/// request (telemetry.token_file). Without a token, only SIGHUP reloads; its outcome is in the log and in
/// throng_reloads_total.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  throng reload -c /etc/throng/throng.toml\n\nExit codes: 0 the new configuration is active, or unchanged · 1 the daemon refuses it, with reasons, or does not answer · 2 the configuration is invalid: no request was sent"
)]
pub struct ReloadArgs {
    /// Configuration of the daemon
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Base URL of the daemon's pages, if it is not `telemetry.listen`: a host name of its certificate, or a proxy
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Time to wait for the tests, the end of the current batch and the restart
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

/// Runs `throng reload`.
pub fn run(args: &ReloadArgs) -> Result<(), Failure> {
    let config = config::load(&args.config, std::env::vars())?;
    let file = args.config.display();
    let timeout = Duration::from_secs(args.seconds);
    let answer = daemon_client::post_to_daemon(&config.telemetry, args.url.as_deref(), "/reload", "", timeout)?;
    let Some((url, status, body)) = answer else {
        let remedy = "set it and restart the daemon; until then, send it SIGHUP";
        return Err(Failure::Usage(anyhow!("{file}: telemetry.token_file: a reload request needs a token ({remedy})")));
    };
    match status {
        200 | 422 => {
            let answer: ReloadAnswer = serde_json::from_str(&body).context("cannot parse the daemon's answer")?;
            print_reload_outcome(&answer, &file.to_string())
        }
        401 => Err(Failure::Running(anyhow!(
            "the daemon at {url} rejected the token of telemetry.token_file (the daemon reads it only at startup)"
        ))),
        404 | 405 => Err(Failure::Running(anyhow!(
            "the daemon at {url} does not accept reload requests: it was started without telemetry.token_file, or is another service (send it SIGHUP)"
        ))),
        _ => Err(Failure::Running(anyhow!(
            "the daemon at {url} answered with status {status}: {}",
            text_format::sanitize_text(body.trim())
        ))),
    }
}

fn print_reload_outcome(answer: &ReloadAnswer, file: &str) -> Result<(), Failure> {
    let changed: Vec<String> = answer.changed.iter().map(|key| text_format::sanitize_text(key)).collect();
    match answer.outcome {
        ReloadOutcome::Replaced => {
            let what = if changed.is_empty() { "referenced files".to_owned() } else { changed.join(", ") };
            println!("{file}: reloaded, policy {} (changed: {what})", text_format::sanitize_text(&answer.policy));
            Ok(())
        }
        ReloadOutcome::Unchanged => {
            println!("{file}: no changes, policy {}", text_format::sanitize_text(&answer.policy));
            Ok(())
        }
        ReloadOutcome::Refused => {
            for reason in &answer.reasons {
                eprintln!("refused: {}", text_format::sanitize_text(reason));
            }
            let policy = text_format::sanitize_text(&answer.policy);
            Err(Failure::Running(anyhow!("{file} was refused, policy {policy} stays active: see above")))
        }
    }
}
