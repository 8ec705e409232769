//! HTTP client of a running daemon, with the token of `telemetry.token_file`.

use super::outcome::Failure;
use crate::config::TelemetryConfig;
use anyhow::{Context, anyhow};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use zeroize::Zeroizing;

const MAX_DAEMON_RESPONSE_BYTES: u64 = 1 << 20;

/// Posts `body` to `path` of the daemon at `url`, or at the address of `telemetry`. Returns address, status and body of
/// the answer; `None` without a token.
///
/// # Errors
/// [`Failure::Usage`] for an unusable file or address; [`Failure::Running`] without an answer.
pub fn post_to_daemon(
    telemetry: &TelemetryConfig,
    url: Option<&str>,
    path: &str,
    body: &str,
    timeout: Duration,
) -> Result<Option<(String, u16, String)>, Failure> {
    let token = telemetry.token().map_err(|error| Failure::Usage(anyhow!("telemetry.token_file: {error}")))?;
    let Some(token) = token else { return Ok(None) };
    let url = url.map_or_else(|| daemon_url(telemetry), |url| Ok(url.trim_end_matches('/').to_owned()))?;
    let mut tls = TlsConfig::builder();
    if let Some(path) = &telemetry.tls.cert_file {
        // Only the daemon's certificate is trusted.
        tls = tls.root_certs(RootCerts::Specific(Arc::new(certificates(path)?)));
    }
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        // No proxy receives the token.
        .proxy(None)
        .tls_config(tls.build())
        .build()
        .into();
    let bearer = Zeroizing::new(format!("Bearer {}", String::from_utf8_lossy(token.expose())));
    let request = agent.post(format!("{url}{path}")).header("Authorization", bearer.as_str());
    let mut answer = request.header("Content-Type", "application/json").send(body).map_err(|error| {
        Failure::Running(anyhow!(
            "the daemon at {url} did not answer: {error}; the outcome is unknown (check that it runs with this configuration and retry, or give its address with --url)"
        ))
    })?;
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(MAX_DAEMON_RESPONSE_BYTES).read_to_string();
    let text = text.with_context(|| format!("cannot read the answer of {url}"))?;
    Ok(Some((url, status, text)))
}

fn daemon_url(telemetry: &TelemetryConfig) -> Result<String, Failure> {
    let Some(mut address) = telemetry.address().filter(|address| address.port() != 0) else {
        let listen = &telemetry.listen;
        return Err(Failure::Usage(anyhow!(
            "telemetry.listen = {listen:?} is not an address of the daemon: give --url"
        )));
    };
    if address.ip().is_unspecified() {
        // It includes the loopback address.
        let here: IpAddr = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        address.set_ip(here);
    }
    let scheme = if telemetry.tls.cert_file.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{address}"))
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let unusable =
        |why: String| Failure::Usage(anyhow!("telemetry.tls.cert_file: {} cannot be used ({why})", path.display()));
    let pem = std::fs::read(path).map_err(|error| unusable(error.kind().to_string()))?;
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        Ok(_) | Err(_) => None,
    };
    let found: Vec<_> = parse_pem(&pem).filter_map(certificate).collect();
    if found.is_empty() { Err(unusable("it contains no certificate".to_owned())) } else { Ok(found) }
}
