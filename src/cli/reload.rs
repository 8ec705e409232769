//! `throng reload`.

use super::outcome::Failure;
use super::{daemon_client, text};
use crate::config;
use crate::daemon::requests::ReloadAnswer;
use crate::telemetry::ReloadOutcome;
use anyhow::{Context, anyhow};
use std::path::PathBuf;
use std::time::Duration;

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
pub fn run(args: &ReloadArgs) -> Result<(), Failure> {
    let config = config::load(&args.config, std::env::vars())?;
    let file = args.config.display();
    let timeout = Duration::from_secs(args.seconds);
    let answer = daemon_client::post(&config.telemetry, args.url.as_deref(), "/reload", "", timeout)?;
    let Some((url, status, body)) = answer else {
        let remedy = "set it and start the daemon anew; until then, send it SIGHUP";
        return Err(Failure::Usage(anyhow!(
            "{file}: telemetry.token_file: without a token nobody may ask for a reload ({remedy})"
        )));
    };
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
