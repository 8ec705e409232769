//! A token in a file that somebody else renews, as Kubernetes does.

use super::jwt::{Claims, is_token, now_ms};
use crate::config::Oauth;
use crate::io::kafka::live::Token;
use crate::io::kafka::refusal::Refusal;
use std::io::Read;
use zeroize::Zeroizing;

/// The most that is read.
const MOST_BYTES: u64 = 128 << 10;

/// How long a token is taken for good that does not say: it is read again long before.
const UNLESS_SAID: i64 = 3_600_000;

/// The token that stands there now.
pub(super) fn token(oauth: &Oauth) -> Result<Token, Refusal> {
    let path = oauth.token_file.as_deref().ok_or(Refusal::NoToken)?;
    let mut text = Zeroizing::new(String::new());
    let file = std::fs::File::open(path).map_err(|_| Refusal::NoToken)?;
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(|_| Refusal::NoToken)?;
    let value = Zeroizing::new(text.trim().to_owned());
    if !is_token(&value) {
        return Err(Refusal::NoToken);
    }
    let claims = Claims::of(&value);
    let expires_ms = claims.expires_ms().unwrap_or(now_ms() + UNLESS_SAID);
    if expires_ms <= now_ms() {
        return Err(Refusal::NoToken);
    }
    let principal = claims.sub.unwrap_or_else(|| "throng".to_owned());
    Ok(Token { value, principal, expires_ms, extensions: oauth.extensions.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    #[test]
    fn a_token_is_read_each_time_and_one_that_has_ended_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let oauth = Oauth { token_file: Some(path.clone()), ..Oauth::default() };
        assert_eq!(token(&oauth).err(), Some(Refusal::NoToken));
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
