//! The token of Amazon MSK: a signed request to connect, which the broker lets AWS verify.

use super::clock::now_ms;
use super::signature::{Request, Signer};
use crate::config::Aws;
use crate::io::kafka::live::Token;
use crate::io::kafka::refusal::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// How long a token is good for, in seconds; AWS takes no longer ones.
const LIFE: u32 = 900;

/// SHA-256 of nothing.
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Signs a token with the credentials as they are now.
pub(super) fn token(aws: &Aws) -> Result<Token, Refusal> {
    let region = aws.region.as_deref().ok_or(Refusal::Provider)?;
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let signer = match aws.credentials().map_err(|_| Refusal::Provider)? {
        Some(text) => of_profile(&text, aws.profile.as_deref().unwrap_or("default")),
        None => variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY")).map(|(id, secret)| Signer {
            id,
            secret: Zeroizing::new(secret),
            session: variable("AWS_SESSION_TOKEN").map(Zeroizing::new),
        }),
    };
    Ok(signed(region, &signer.ok_or(Refusal::Provider)?, now_ms()))
}

fn signed(region: &str, signer: &Signer, now_ms: i64) -> Token {
    let at = chrono::DateTime::from_timestamp_millis(now_ms).unwrap_or_default().format("%Y%m%dT%H%M%SZ").to_string();
    let host = format!("kafka.{region}.amazonaws.com");
    let query = vec![("Action", "kafka-cluster:Connect")];
    let request = Request {
        host: &host,
        path: "/",
        query,
        region,
        service: "kafka-cluster",
        body: NOTHING,
        at: &at,
        expires: LIFE,
    };
    let address = request.signed(signer);
    let address = Zeroizing::new(format!("{}&User-Agent=throng", address.as_str()));
    let value = Zeroizing::new(URL_SAFE_NO_PAD.encode(address.as_bytes()));
    let expires_ms = now_ms / 1000 * 1000 + i64::from(LIFE) * 1000;
    Token { value, principal: "throng".to_owned(), expires_ms, extensions: BTreeMap::new() }
}

/// The credentials of one profile, as AWS's tools write them.
fn of_profile(text: &str, profile: &str) -> Option<Signer> {
    let mut inside = false;
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = name.trim().trim_start_matches("profile ").trim() == profile;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
            found.insert(key.trim(), value.trim());
        }
    }
    let secret = |key: &str| found.get(key).map(|value| Zeroizing::new((*value).to_owned()));
    let id = found.get("aws_access_key_id").map(|id| (*id).to_owned())?;
    Some(Signer { id, secret: secret("aws_secret_access_key")?, session: secret("aws_session_token") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_signed_address_of_a_quarter_of_an_hour() {
        let text = "[default]\naws_access_key_id = OTHER\naws_secret_access_key = x\n[throng]\n# ours\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key = canary-secret/+=\naws_session_token=sess/ion==\n";
        let signer = of_profile(text, "throng").expect("a profile");
        assert_eq!((signer.id.as_str(), signer.secret.as_str()), ("AKIDEXAMPLE", "canary-secret/+="));
        assert!(of_profile(text, "nobody").is_none());
        let now = 1_700_000_000_123;
        let token = signed("eu-central-1", &signer, now);
        assert_eq!(token.expires_ms, 1_700_000_900_000);
        let address = URL_SAFE_NO_PAD.decode(token.value.as_bytes()).expect("base64");
        let address = String::from_utf8(address).expect("text");
        let start = "https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20231114%2Feu-central-1%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20231114T221320Z&X-Amz-Expires=900&X-Amz-Security-Token=sess%2Fion%3D%3D&X-Amz-SignedHeaders=host&X-Amz-Signature=";
        assert!(address.starts_with(start) && address.ends_with("&User-Agent=throng"), "{address}");
        assert!(!address.contains("canary"));
    }
}
