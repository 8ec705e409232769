//! Access control. Side effects need a bearer token, which a page of another site cannot send.

use std::net::IpAddr;
use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

use crate::config::{AccessError, TelemetryConfig};

/// Probes know neither host names nor tokens.
const PROBE_PAGES: [&str; 2] = ["/healthz", "/readyz"];

/// Access rules of the pages.
#[derive(Default)]
pub struct PageAccess {
    hosts: Vec<String>,
    /// Equal lengths allow a comparison in constant time.
    token: Option<[u8; 32]>,
}

impl PageAccess {
    /// Creates the configured access rules.
    pub fn new(configured: &TelemetryConfig) -> Result<Self, AccessError> {
        let hosts = configured.allowed_hosts.iter().map(|name| normalized_host(name)).collect();
        let token = configured.token()?.map(|token| Sha256::digest(token.expose()).into());
        Ok(Self { hosts, token })
    }

    pub(super) fn requires_token(&self) -> bool {
        self.token.is_some()
    }

    /// Prevents DNS rebinding by foreign names; an IP address cannot be rebound.
    fn has_known_host(&self, request: &Request) -> bool {
        let mut asked = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (asked.next(), asked.next()) else { return false };
        let of_uri = request.uri().host().is_none_or(|host| self.is_known_host(&normalized_host(host)));
        of_uri && host.to_str().is_ok_and(|host| self.is_known_host(&without_port(host)))
    }

    fn is_known_host(&self, name: &str) -> bool {
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        name == "localhost"
            || name.ends_with(".localhost")
            || address.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|host| host == name)
    }

    fn has_valid_token(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(presented_token);
        let given: [u8; 32] = Sha256::digest(given.unwrap_or_default()).into();
        // Compares every byte: constant time.
        token.iter().zip(given).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// Returns the `Bearer` token or the `Basic` password, which browsers send.
fn presented_token(authorization: &str) -> Option<Vec<u8>> {
    let (scheme, rest) = authorization.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().as_bytes().to_vec());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = STANDARD.decode(rest.trim()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

fn normalized_host(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn without_port(host: &str) -> String {
    let end = host.rfind(':').filter(|at| !host[*at..].contains(']')).unwrap_or(host.len());
    normalized_host(&host[..end])
}

pub(super) async fn admit(State(access): State<Arc<PageAccess>>, request: Request, next: Next) -> Response {
    if PROBE_PAGES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    if !access.has_known_host(&request) {
        let said = "unknown host name for these pages (add it to telemetry.allowed_hosts)\n";
        return (StatusCode::MISDIRECTED_REQUEST, said).into_response();
    }
    if !access.has_valid_token(request.headers()) {
        let mut response =
            (StatusCode::UNAUTHORIZED, "the token of telemetry.token_file is required\n").into_response();
        let how = response.headers_mut();
        how.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"throng\""));
        how.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"throng\", charset=\"UTF-8\""));
        return response;
    }
    next.run(request).await
}

/// A browser repeats a `Basic` password for any page, but no bearer token.
fn is_bearer(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(one), None) = (given.next(), given.next()) else { return false };
    one.to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
}

pub(super) async fn admit_bearer(request: Request, next: Next) -> Response {
    if is_bearer(request.headers()) {
        return next.run(request).await;
    }
    let said = "this request needs the header `Authorization: Bearer TOKEN`, with the token of telemetry.token_file\n";
    (StatusCode::FORBIDDEN, said).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_comparison_ignores_port_case_and_dot() {
        let access = PageAccess { hosts: vec![normalized_host("Throng")], token: None };
        for own in
            ["localhost", "LOCALHOST:9464", "a.localhost", "127.0.0.1:9464", "[::1]:9464", "throng:80", "THRONG."]
        {
            assert!(access.is_known_host(&without_port(own)), "{own}");
        }
        for foreign in [
            "evil.example.org",
            "evil.example.org:9464",
            "localhost.evil.example.org",
            "throng.evil",
            "",
            "127.0.0.1.evil",
        ] {
            assert!(!access.is_known_host(&without_port(foreign)), "{foreign}");
        }
    }

    #[test]
    fn token_is_read_from_bearer_and_basic() {
        assert_eq!(presented_token("Bearer abc").as_deref(), Some(b"abc".as_slice()));
        assert_eq!(presented_token("bearer  abc ").as_deref(), Some(b"abc".as_slice()));
        assert_eq!(presented_token("Basic dXNlcjphOmI=").as_deref(), Some(b"a:b".as_slice()));
        for none in ["abc", "Digest abc", "Basic !", "Basic dXNlcg=="] {
            assert_eq!(presented_token(none), None, "{none}");
        }
    }

    #[test]
    fn bearer_check_rejects_basic_and_repeated_headers() {
        let with = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            is_bearer(&headers)
        };
        assert!(with(&["Bearer abc"]) && with(&["bearer abc"]));
        assert!(!with(&[]) && !with(&["Basic dXNlcjphYmM="]) && !with(&["abc"]));
        assert!(!with(&["Basic dXNlcjphYmM=", "Bearer abc"]), "which of them was judged is not known");
    }
}
