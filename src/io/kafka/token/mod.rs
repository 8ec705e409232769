//! Provides the token of OAUTHBEARER: from an identity provider, or from a file that another program renews.

pub(super) mod endpoint;
mod file;
mod jwt;

use super::live::Token;
use super::refusal::Refusal;
use crate::config::{Mechanism, Security};
use jwt::now_ms;
use std::time::Duration;

/// What gives tokens.
#[derive(Debug)]
pub(super) enum Provider {
    Endpoint,
    File,
}

/// How often a file is read again.
const LOOK: Duration = Duration::from_secs(1);

/// The shortest and the longest that a token is kept before the next one is asked for.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(3600);

impl Provider {
    /// What gives the tokens of `security`; none for mechanisms without.
    pub(super) fn of(security: &Security) -> Option<Self> {
        match security.mechanism? {
            Mechanism::Oauthbearer if security.oauth.token_file.is_some() => Some(Self::File),
            Mechanism::Oauthbearer => Some(Self::Endpoint),
            Mechanism::Plain | Mechanism::ScramSha256 | Mechanism::ScramSha512 => None,
        }
    }

    /// A token as it is given now.
    pub(super) fn token(&self, security: &Security) -> Result<Token, Refusal> {
        match self {
            Self::Endpoint => endpoint::token(&security.oauth),
            Self::File => file::token(&security.oauth),
        }
    }

    /// How long to wait before the next one is asked for. The client itself would ask at 80 % of its life, and nobody hears it.
    pub(super) fn pause(&self, token: &Token) -> Duration {
        let left = Duration::from_millis(u64::try_from(token.expires_ms - now_ms()).unwrap_or(0));
        match self {
            Self::File => LOOK,
            Self::Endpoint => left.mul_f64(0.7).clamp(SHORTEST, LONGEST),
        }
    }
}
