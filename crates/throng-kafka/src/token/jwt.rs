//! Claims of a token, not verified here but by the broker.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(super) struct TokenClaims {
    /// Expiry, in seconds since 1970.
    #[serde(default)]
    exp: Option<f64>,
    #[serde(default)]
    pub sub: Option<String>,
}

impl TokenClaims {
    /// Empty if the token is no JWT.
    pub(super) fn of(token: &str) -> Self {
        let part = token.split('.').nth(1).map(|part| part.trim_end_matches('='));
        let body = part.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default()
    }

    pub(super) fn expires_ms(&self) -> Option<i64> {
        self.exp.filter(|seconds| (0.0..1e12).contains(seconds)).map(|seconds| (seconds * 1000.0) as i64)
    }
}

pub(super) fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Visible ASCII, at most 64 KiB.
pub(super) fn is_token(text: &str) -> bool {
    (1..=64 << 10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jwt_claims_are_parsed_and_malformed_tokens_have_none() {
        let body = URL_SAFE_NO_PAD.encode("{\"sub\":\"throng\",\"exp\":1700000000,\"aud\":[\"kafka\"]}");
        let claims = TokenClaims::of(&format!("e30.{body}.signature"));
        assert_eq!((claims.sub.as_deref(), claims.expires_ms()), (Some("throng"), Some(1_700_000_000_000)));
        for odd in ["", "opaque", "a.b.c", "a.!.c", "..", "e30.bnVsbA.x"] {
            assert_eq!(TokenClaims::of(odd).expires_ms(), None, "{odd}");
        }
        assert!(is_token("a.b") && !is_token("") && !is_token("a\nb") && !is_token("a b"));
    }
}
