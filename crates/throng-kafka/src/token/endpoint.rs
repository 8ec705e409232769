//! Identity provider for `client_credentials` (RFC 6749, part 4.4).

use super::jwt::{TokenClaims, is_token, now_ms};
use crate::managed_client::BearerToken;
use crate::refusal::ConnectionRefusal;
use crate::security::OauthConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use zeroize::Zeroizing;

const MAX_RESPONSE_BYTES: u64 = 128 << 10;

const TOKEN_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

const DEFAULT_LIFETIME_MS: i64 = 300_000;

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    #[serde(default)]
    expires_in: Option<serde_json::Value>,
}

impl TokenResponse {
    /// Some providers write a text.
    fn seconds(&self) -> Option<i64> {
        let said = self.expires_in.as_ref()?;
        let seconds = said.as_f64().or_else(|| said.as_str()?.parse().ok())?;
        (seconds < 1e9).then_some((seconds as i64).max(0))
    }
}

pub(super) fn token(oauth: &OauthConfig) -> Result<BearerToken, ConnectionRefusal> {
    let (Some(address), Some(client)) = (oauth.token_endpoint.as_deref(), oauth.client_id.as_deref()) else {
        return Err(ConnectionRefusal::Provider);
    };
    let secret = oauth.client_secret().ok().flatten().ok_or(ConnectionRefusal::Provider)?;
    let mut tls = TlsConfig::builder();
    if let Some(path) = &oauth.ca_file {
        let text = std::fs::read(path).map_err(|_| ConnectionRefusal::NoToken)?;
        let authorities: Vec<Certificate<'static>> = parse_pem(&text)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        tls = tls.root_certs(RootCerts::Specific(Arc::new(authorities)));
    }
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TOKEN_REQUEST_TIMEOUT))
        .http_status_as_error(false)
        // A redirect would disclose the secret to another host.
        .max_redirects(0)
        // Without TLS, a proxy would learn the secret.
        .proxy(if address.starts_with("https://") { ureq::Proxy::try_from_env() } else { None })
        .tls_config(tls.build())
        .build()
        .into();
    let pair = Zeroizing::new(format!("{}:{}", encode_form_value(client), encode_form_value(&secret)));
    let authorization = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut body = "grant_type=client_credentials".to_owned();
    if let Some(scope) = &oauth.scope {
        body.push_str(&format!("&scope={}", encode_form_value(scope)));
    }
    let request = agent.post(address).header("Authorization", authorization.as_str());
    let request =
        request.header("Accept", "application/json").header("Content-Type", "application/x-www-form-urlencoded");
    let mut answer = request.send(body.as_str()).map_err(|_| ConnectionRefusal::NoToken)?;
    let status = answer.status().as_u16();
    let text = answer
        .body_mut()
        .with_config()
        .limit(MAX_RESPONSE_BYTES)
        .read_to_string()
        .map_err(|_| ConnectionRefusal::NoToken)?;
    let text = Zeroizing::new(text);
    match status {
        200 => {}
        // The provider denies a token.
        400 | 401 | 403 => return Err(ConnectionRefusal::Provider),
        _ => return Err(ConnectionRefusal::NoToken),
    }
    let mut answer: TokenResponse = serde_json::from_str(&text).map_err(|_| ConnectionRefusal::NoToken)?;
    let value = Zeroizing::new(std::mem::take(&mut answer.access_token));
    if !is_token(&value) {
        return Err(ConnectionRefusal::NoToken);
    }
    let claims = TokenClaims::of(&value);
    let by_answer = answer.seconds().map(|seconds| now_ms() + seconds * 1000);
    let expires_ms = by_answer.into_iter().chain(claims.expires_ms()).min().unwrap_or(now_ms() + DEFAULT_LIFETIME_MS);
    if expires_ms <= now_ms() {
        return Err(ConnectionRefusal::NoToken);
    }
    let principal = claims.sub.unwrap_or_else(|| client.to_owned());
    Ok(BearerToken { value, principal, expires_ms, extensions: oauth.extensions.clone() })
}

fn encode_form_value(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    /// Starts an identity provider with `answers` (status, body); its thread returns the requests.
    pub fn serve_tokens(answers: Vec<(&'static str, String)>) -> (OauthConfig, tempfile::TempDir, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}/token", listener.local_addr().expect("its address"));
        let served = std::thread::spawn(move || {
            let mut questions = String::new();
            for ((status, body), mut stream) in answers.into_iter().zip(listener.incoming().flatten()) {
                let (mut question, mut read) = (vec![0; 8192], 0);
                while !String::from_utf8_lossy(&question[..read]).contains("client_credentials") {
                    read += stream.read(&mut question[read..]).expect("a question");
                }
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
                    // The client has read as much as it needs.
                }
                questions += &String::from_utf8_lossy(&question[..read]);
            }
            questions
        });
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "canary 5+5\n").expect("a file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("our file");
        let oauth = OauthConfig {
            token_endpoint: Some(address),
            client_id: Some("throng".into()),
            client_secret_file: Some(path),
            scope: Some("kafka read".into()),
            ..OauthConfig::default()
        };
        (oauth, folder, served)
    }

    fn request_token(status: &'static str, body: String) -> (Result<BearerToken, ConnectionRefusal>, String) {
        let (oauth, _folder, served) = serve_tokens(vec![(status, body)]);
        (token(&oauth), served.join().expect("it served"))
    }

    #[test]
    fn token_request_follows_rfc_6749_and_answer_size_is_bounded() {
        let (given, question) = request_token("200 OK", "{\"access_token\":\"opaque\",\"expires_in\":\"60\"}".into());
        let given = given.expect("a token");
        assert_eq!((given.value.as_str(), given.principal.as_str()), ("opaque", "throng"));
        assert!((55_000..=60_000).contains(&(given.expires_ms - now_ms())));
        let pair = STANDARD.encode("throng:canary%205%2B5");
        assert!(question.contains(&format!("Basic {pair}")) && question.contains("scope=kafka%20read"), "{question}");
        for (status, body, expected) in [
            ("401 Unauthorized", "{\"error\":\"invalid_client\"}".to_owned(), ConnectionRefusal::Provider),
            ("503 Service Unavailable", String::new(), ConnectionRefusal::NoToken),
            ("302 Found", String::new(), ConnectionRefusal::NoToken),
            ("200 OK", "no token".to_owned(), ConnectionRefusal::NoToken),
            ("200 OK", "{\"access_token\":\"opaque\",\"expires_in\":0}".to_owned(), ConnectionRefusal::NoToken),
            ("200 OK", "{\"access_token\":\"opaque\",\"expires_in\":-5}".to_owned(), ConnectionRefusal::NoToken),
            ("200 OK", "{\"access_token\":\"a b\"}".to_owned(), ConnectionRefusal::NoToken),
            ("200 OK", format!("{{\"access_token\":\"{}\"}}", "a".repeat(1 << 20)), ConnectionRefusal::NoToken),
        ] {
            assert_eq!(request_token(status, body).0.err(), Some(expected), "{status}");
        }
    }
}
