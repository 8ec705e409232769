//! Release certificates, checked by an auditor: signatures, chains, counts, and where the output is at hand its bytes; without the daemon, its
//! state or the records before (`docs/certificates.md`).
//!
//! | file | what it holds |
//! |---|---|
//! | `lines` | the lines of a file of certificates, none longer than a certificate can be |
//! | `chain` | signatures, links, and what a certificate says of itself |
//! | `outputs` | the output, batch by batch |
//! | `finding` | what is broken, and where |

mod chain;
mod finding;
mod lines;
mod outputs;

pub use chain::Trust;
pub use finding::{BrokenCertificate, Certificates, ChainFound};
pub use lines::CertificateLines;

use super::error::EvaluationError;
use crate::config::Config;
use chain::Chains;
use std::path::Path;

/// Checks the certificates in `lines`, and where it is at hand the output at `released`, written as the sink of `config` writes.
///
/// # Errors
/// When a file cannot be read. What is broken is no error: it is in the [`Certificates`].
pub fn check(
    lines: impl Iterator<Item = Result<Option<Vec<u8>>, EvaluationError>>,
    trust: &Trust<'_>,
    released: Option<(&Config, &Path)>,
) -> Result<Certificates, EvaluationError> {
    let mut chains = Chains::new(trust);
    for (number, line) in (1..).zip(lines) {
        chains.take(number, line?.as_deref());
    }
    let (placed, mut found) = chains.end();
    if let Some((config, path)) = released {
        outputs::check(config, path, &placed, &mut found)?;
    } else {
        found.not_checked.push("the output: name it to have its bytes held against the digests");
    }
    Ok(found.into_report())
}

#[cfg(test)]
mod tests;
