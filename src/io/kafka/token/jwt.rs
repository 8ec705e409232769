//! What a token says of itself. Nothing is verified: that is the broker's part.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// The claims that matter to us.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Claims {
    /// When it ends, in seconds since 1970.
    #[serde(default)]
    exp: Option<f64>,
    /// Whom it is of.
    #[serde(default)]
    pub sub: Option<String>,
}

impl Claims {
    /// The claims of a token; none of one that is no JWT.
    pub(super) fn of(token: &str) -> Self {
        let part = token.split('.').nth(1).map(|part| part.trim_end_matches('='));
        let body = part.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default()
    }

    /// When it ends, in milliseconds since 1970.
    pub(super) fn expires_ms(&self) -> Option<i64> {
        self.exp.filter(|seconds| (0.0..1e12).contains(seconds)).map(|seconds| (seconds * 1000.0) as i64)
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Whether a text may be a token: visible ASCII, and not too long.
pub(super) fn is_token(text: &str) -> bool {
    (1..=64 << 10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_and_nothing_else_breaks() {
        let body = URL_SAFE_NO_PAD.encode("{\"sub\":\"throng\",\"exp\":1700000000,\"aud\":[\"kafka\"]}");
        let claims = Claims::of(&format!("e30.{body}.signature"));
        assert_eq!((claims.sub.as_deref(), claims.expires_ms()), (Some("throng"), Some(1_700_000_000_000)));
        for odd in ["", "opaque", "a.b.c", "a.!.c", "..", "e30.bnVsbA.x"] {
            assert_eq!(Claims::of(odd).expires_ms(), None, "{odd}");
        }
        assert!(is_token("a.b") && !is_token("") && !is_token("a\nb") && !is_token("a b"));
    }
}
