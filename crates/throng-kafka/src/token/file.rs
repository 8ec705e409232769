//! Token in a file that another program renews.

use super::jwt::{TokenClaims, is_token, now_ms};
use crate::managed_client::BearerToken;
use crate::refusal::ConnectionRefusal;
use crate::security::OauthConfig;
use std::io::Read;
use zeroize::Zeroizing;

const MAX_TOKEN_FILE_BYTES: u64 = 128 << 10;

/// Assumed without an expiry.
const ASSUMED_LIFETIME_MS: i64 = 3_600_000;

pub(super) fn token(oauth: &OauthConfig) -> Result<BearerToken, ConnectionRefusal> {
    let path = oauth.token_file.as_deref().ok_or(ConnectionRefusal::NoToken)?;
    let mut text = Zeroizing::new(String::new());
    let file = std::fs::File::open(path).map_err(|_| ConnectionRefusal::NoToken)?;
    file.take(MAX_TOKEN_FILE_BYTES).read_to_string(&mut text).map_err(|_| ConnectionRefusal::NoToken)?;
    let value = Zeroizing::new(text.trim().to_owned());
    if !is_token(&value) {
        return Err(ConnectionRefusal::NoToken);
    }
    let claims = TokenClaims::of(&value);
    let expires_ms = claims.expires_ms().unwrap_or(now_ms() + ASSUMED_LIFETIME_MS);
    if expires_ms <= now_ms() {
        return Err(ConnectionRefusal::NoToken);
    }
    let principal = claims.sub.unwrap_or_else(|| "throng".to_owned());
    Ok(BearerToken { value, principal, expires_ms, extensions: oauth.extensions.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    #[test]
    fn token_file_is_reread_and_expired_token_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let oauth = OauthConfig { token_file: Some(path.clone()), ..OauthConfig::default() };
        assert_eq!(token(&oauth).err(), Some(ConnectionRefusal::NoToken));
        for (text, taken) in [("one\n", true), ("two", true), ("", false), ("two words", false)] {
            std::fs::write(&path, text).expect("a file");
            assert_eq!(token(&oauth).ok().map(|t| t.value.to_string()), taken.then(|| text.trim().to_owned()));
        }
        for (exp, taken) in [(now_ms() / 1000 - 1, false), (now_ms() / 1000 + 60, true)] {
            let body = URL_SAFE_NO_PAD.encode(format!("{{\"exp\":{exp},\"sub\":\"system\"}}"));
            std::fs::write(&path, format!("e30.{body}.")).expect("a file");
            assert_eq!(token(&oauth).is_ok_and(|t| t.principal == "system"), taken);
        }
    }
}
