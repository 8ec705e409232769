//! Token of OAUTHBEARER from an identity provider or a file.

pub(super) mod endpoint;
mod file;
mod jwt;

use super::managed_client::BearerToken;
use super::refusal::ConnectionRefusal;
use crate::security::{SaslMechanism, SecurityConfig};
use jwt::now_ms;
use std::time::Duration;

#[derive(Debug)]
pub(super) enum TokenProvider {
    Endpoint,
    File,
}

const TOKEN_FILE_INTERVAL: Duration = Duration::from_secs(1);

const MIN_TOKEN_WAIT: Duration = Duration::from_millis(500);
const MAX_TOKEN_WAIT: Duration = Duration::from_secs(3600);

impl TokenProvider {
    pub(super) fn of(security: &SecurityConfig) -> Option<Self> {
        match security.mechanism? {
            SaslMechanism::Oauthbearer if security.oauth.token_file.is_some() => Some(Self::File),
            SaslMechanism::Oauthbearer => Some(Self::Endpoint),
            SaslMechanism::Plain | SaslMechanism::ScramSha256 | SaslMechanism::ScramSha512 => None,
        }
    }

    pub(super) fn token(&self, security: &SecurityConfig) -> Result<BearerToken, ConnectionRefusal> {
        match self {
            Self::Endpoint => endpoint::token(&security.oauth),
            Self::File => file::token(&security.oauth),
        }
    }

    /// The client's refresh at 80 % of the lifetime is not handled.
    pub(super) fn renewal_wait(&self, token: &BearerToken) -> Duration {
        let left = Duration::from_millis(u64::try_from(token.expires_ms - now_ms()).unwrap_or(0));
        match self {
            Self::File => TOKEN_FILE_INTERVAL,
            Self::Endpoint => left.mul_f64(0.7).clamp(MIN_TOKEN_WAIT, MAX_TOKEN_WAIT),
        }
    }
}
