//! Certificates of what has left. Digests of statements tell nothing of records; what they say does not depend on one.

use crate::telemetry::status::Telemetry;

/// A committed batch has its certificate.
#[derive(Clone, Copy, Debug)]
pub struct BatchCertified;

impl BatchCertified {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().flow.certificates.inc();
    }
}

/// A chain begins with a batch that is not the first of its state.
#[derive(Clone, Copy, Debug)]
pub struct ChainBegun<'a> {
    /// The state.
    pub instance: &'a str,
    /// The last batch without a certificate.
    pub after: u64,
}

impl ChainBegun<'_> {
    /// Tells the log.
    pub fn emit(self) {
        let Self { instance, after } = self;
        tracing::warn!(
            instance,
            after,
            "chain of certificates started anew: earlier batches of this state have none in it"
        );
    }
}

/// Where a chain stands when a daemon ends: whoever keeps this elsewhere sees later whether the end of the chain was cut off.
#[derive(Clone, Copy, Debug)]
pub struct ChainHead<'a> {
    /// The state.
    pub instance: &'a str,
    /// Number of the last certificate in the chain.
    pub number: u64,
    /// The batch that it is of.
    pub sequence: u64,
    /// SHA-256 of its statement, in hex.
    pub head: &'a str,
}

impl ChainHead<'_> {
    /// Tells the log.
    pub fn emit(self) {
        let Self { instance, number, sequence, head } = self;
        tracing::info!(instance, number, sequence, head, "certificates end here: verify-release --head checks it");
    }
}
