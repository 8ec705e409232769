//! A running daemon is asked to erase people.

use crate::cli::outcome::Failure;
use crate::config::Telemetry;
use crate::daemon::erasure::{Asked, Receipt};
use crate::telemetry::foreign;
use anyhow::{Context, anyhow};
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// As long as the daemon takes at most, and a little more.
const PATIENCE: Duration = Duration::from_secs(31 * 60);
/// Bytes of an answer.
const MOST_BYTES: u64 = 1 << 20;

/// Asks the daemon whose pages `telemetry` describes, or the one at `url`.
///
/// # Errors
/// [`Failure::Usage`] where no token is configured, [`Failure::Running`] where the daemon does not answer or refuses.
pub fn ask(telemetry: &Telemetry, url: Option<&str>, asked: &Asked) -> Result<Receipt, Failure> {
    let token = telemetry.token().map_err(|error| Failure::Usage(anyhow!("telemetry.token_file: {error}")))?;
    let Some(token) = token else {
        return Err(Failure::Usage(anyhow!(
            "a daemon has the state, and a running daemon erases only for whoever has its token: set telemetry.token_file and start it again, or stop it and ask again"
        )));
    };
    let url = match url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => address(telemetry)?,
    };
    let mut tls = TlsConfig::builder();
    if let Some(path) = &telemetry.tls.cert_file {
        let pem = std::fs::read(path).with_context(|| format!("telemetry.tls.cert_file {}", path.display()))?;
        let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        tls = tls.root_certs(RootCerts::Specific(Arc::new(certificates)));
    }
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .max_redirects(0)
        // The token goes to the daemon and to nobody on the way.
        .proxy(None)
        .tls_config(tls.build())
        .build()
        .into();
    let body = zeroize::Zeroizing::new(serde_json::to_string(asked).context("the request has no JSON")?);
    let bearer = zeroize::Zeroizing::new(format!("Bearer {}", String::from_utf8_lossy(token.expose())));
    let sent = agent
        .post(format!("{url}/forget"))
        .header("Authorization", bearer.as_str())
        .header("Content-Type", "application/json")
        .send(body.as_str());
    let mut answer = sent.map_err(|error| {
        Failure::Running(anyhow!(
            "the daemon at {url} did not answer ({error}): whether it is done is not known; ask again, or name its address with --url"
        ))
    })?;
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(MOST_BYTES).read_to_string();
    let text = text.with_context(|| format!("the answer of {url} cannot be read"))?;
    let said = foreign(&text);
    match status {
        200 => serde_json::from_str(&text)
            .map_err(|_| Failure::Running(anyhow!("the answer of {url} is no receipt: is another service there?"))),
        400 | 413 => Err(Failure::Usage(anyhow!("the daemon at {url} refuses: {said}"))),
        401 | 403 => Err(Failure::Usage(anyhow!("the daemon at {url} does not know this token: {said}"))),
        404 => Err(Failure::Usage(anyhow!(
            "the daemon at {url} erases nobody: it was started without telemetry.token_file, or is another version"
        ))),
        _ => Err(Failure::Running(anyhow!("the daemon at {url} has not done it (status {status}): {said}"))),
    }
}

/// Where the pages of a daemon of this configuration are.
fn address(telemetry: &Telemetry) -> Result<String, Failure> {
    let address = telemetry.address().filter(|address| address.port() != 0);
    let Some(mut address) = address else {
        let listen = &telemetry.listen;
        return Err(Failure::Usage(anyhow!(
            "a daemon has the state, and telemetry.listen = {listen:?} does not say where it is: give --url"
        )));
    };
    if address.ip().is_unspecified() {
        let own = if address.is_ipv4() { "127.0.0.1" } else { "::1" };
        address.set_ip(own.parse().context("an address of this machine")?);
    }
    let scheme = if telemetry.tls.cert_file.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{address}"))
}
