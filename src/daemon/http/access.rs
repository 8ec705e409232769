//! Access: the name that was asked for, and the token. Requests that change something bring the token as no page of another site can send it.

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

use crate::config::{AccessError, Telemetry};

/// Pages that tell whether the daemon runs and nothing of what it does: probes know neither names nor tokens.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// Who may see the pages.
#[derive(Default)]
pub struct Access {
    hosts: Vec<String>,
    /// Digest of the token: digests are of one length and can be compared in constant time.
    token: Option<[u8; 32]>,
}

impl Access {
    /// Access as configured.
    pub fn new(configured: &Telemetry) -> Result<Self, AccessError> {
        let hosts = configured.allowed_hosts.iter().map(|name| plain(name)).collect();
        let token = configured.token()?.map(|token| Sha256::digest(token.expose()).into());
        Ok(Self { hosts, token })
    }

    /// Whether a token is asked for.
    pub(super) fn asks_for_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether the request asks for this daemon by a name that is its own. A page of somebody else whose name is made to
    /// lead here (DNS rebinding) asks by that name; an address is no name that anybody could make lead elsewhere.
    fn is_meant(&self, request: &Request) -> bool {
        let mut asked = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (asked.next(), asked.next()) else { return false };
        let of_uri = request.uri().host().is_none_or(|host| self.knows(&plain(host)));
        of_uri && host.to_str().is_ok_and(|host| self.knows(&without_port(host)))
    }

    fn knows(&self, name: &str) -> bool {
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        name == "localhost"
            || name.ends_with(".localhost")
            || address.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|host| host == name)
    }

    /// Whether the request carries the token, where one is asked for.
    fn is_let_in(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(presented);
        let given: [u8; 32] = Sha256::digest(given.unwrap_or_default()).into();
        // Every byte is looked at, so that the time taken tells nothing.
        token.iter().zip(given).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// The token of `Bearer TOKEN`, or the password of `Basic base64(USER:PASSWORD)`: what a browser asks for.
fn presented(authorization: &str) -> Option<Vec<u8>> {
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

fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// `name:port` or `[address]:port` without its port.
fn without_port(host: &str) -> String {
    let end = host.rfind(':').filter(|at| !host[*at..].contains(']')).unwrap_or(host.len());
    plain(&host[..end])
}

/// Answers only those who may see the pages.
pub(super) async fn admit(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    if !access.is_meant(&request) {
        let said = "these pages do not answer to this name; add it to telemetry.allowed_hosts\n";
        return (StatusCode::MISDIRECTED_REQUEST, said).into_response();
    }
    if !access.is_let_in(request.headers()) {
        let mut response =
            (StatusCode::UNAUTHORIZED, "the token of telemetry.token_file is asked for\n").into_response();
        let how = response.headers_mut();
        how.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"throng\""));
        how.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"throng\", charset=\"UTF-8\""));
        return response;
    }
    next.run(request).await
}

/// Whether the token comes as `Bearer TOKEN`. A browser sends what it was told for `Basic` by itself, whatever page makes it ask; a bearer
/// token is sent by nobody who does not know it. Whether it is the right one has been judged before.
fn is_bearer(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(one), None) = (given.next(), given.next()) else { return false };
    one.to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
}

/// Lets only requests through that bring the token themselves.
pub(super) async fn admit_bearer(request: Request, next: Next) -> Response {
    if is_bearer(request.headers()) {
        return next.run(request).await;
    }
    let said = "this needs the header `Authorization: Bearer TOKEN`, with the token of telemetry.token_file\n";
    (StatusCode::FORBIDDEN, said).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_port_case_and_dot() {
        let access = Access { hosts: vec![plain("Throng")], token: None };
        for own in
            ["localhost", "LOCALHOST:9464", "a.localhost", "127.0.0.1:9464", "[::1]:9464", "throng:80", "THRONG."]
        {
            assert!(access.knows(&without_port(own)), "{own}");
        }
        for foreign in [
            "evil.example.org",
            "evil.example.org:9464",
            "localhost.evil.example.org",
            "throng.evil",
            "",
            "127.0.0.1.evil",
        ] {
            assert!(!access.knows(&without_port(foreign)), "{foreign}");
        }
    }

    #[test]
    fn a_token_comes_in_two_spellings() {
        assert_eq!(presented("Bearer abc").as_deref(), Some(b"abc".as_slice()));
        assert_eq!(presented("bearer  abc ").as_deref(), Some(b"abc".as_slice()));
        assert_eq!(presented("Basic dXNlcjphOmI=").as_deref(), Some(b"a:b".as_slice()));
        for none in ["abc", "Digest abc", "Basic !", "Basic dXNlcg=="] {
            assert_eq!(presented(none), None, "{none}");
        }
    }

    #[test]
    fn only_a_bearer_brings_the_token() {
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
