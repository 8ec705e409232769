//! The certificate of a batch, made with its intent, so that it leaves with the batch or not at all.

use super::fields::Engine;
use super::gathered::Gathered;
use crate::certificates::envelope::sign;
use crate::certificates::head::Head;
use crate::certificates::statement::{
    Chain, Counts, Crowds, PASSED, PREDICATE, Predicate, Program, Risk, STATEMENT, Sha256Hex, Statement, Verification,
};
use crate::daemon::state::records::{Certified, OffsetRange};
use crate::release::verified::Verified;
use crate::telemetry::{BatchCertified, BatchReport, ChainBegun, ChainHead, Label};
use std::collections::BTreeMap;

/// Records by reason, those that there are.
fn by_reason<L: Label>(counts: impl Iterator<Item = (L, u64)>) -> BTreeMap<String, u64> {
    counts.filter(|(_, records)| *records > 0).map(|(reason, n)| (reason.as_str().to_owned(), n)).collect()
}

impl Engine {
    /// The certificate of a batch that is about to leave; none where none are written.
    pub(super) fn certify(
        &self,
        gathered: &Gathered<'_>,
        verified: &Verified,
        report: &BatchReport,
        ranges: &[OffsetRange],
    ) -> Option<Certified> {
        let certifier = self.certifier.as_ref()?;
        let progress = &self.durable.progress;
        let sequence = progress.sequence + 1;
        let (subject, outputs) = certifier.outputs(verified, |_| None);
        let (crowds, risk, k) = (verified.crowds(), verified.risk(), certifier.k);
        let predicate = Predicate {
            chain: certifier.chain(sequence),
            clock_ms: gathered.clock_ms,
            program: Program {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            },
            policy: Sha256Hex { sha256: certifier.signer.policy.clone() },
            input: ranges.iter().map(|range| certifier.range(range)).collect(),
            counts: Counts {
                consumed: report.consumed,
                released: report.released,
                suppressed: by_reason(report.suppressed.iter()),
                dead_lettered: by_reason(report.dead_lettered.iter()),
                dropped: report.dropped,
                held: report.held,
            },
            outputs,
            crowds: Crowds {
                asked: certifier.asked,
                asked_in_batch: certifier.asked_in_batch,
                // What lies above is one crowd's own size, as on the pages.
                smallest: crowds.window.smallest.min(certifier.asked),
                smallest_in_batch: crowds.batch.smallest,
            },
            risk: Risk {
                highest: if risk.lines == 0 { 0.0 } else { risk.highest.max(1.0 / k.max(1) as f64) },
                lines_below_k: risk.below_k,
            },
            verification: Verification { result: PASSED.to_owned(), lines: report.fragments },
            untruthful: self.untruthful.clone(),
        };
        let statement =
            Statement { kind: STATEMENT.to_owned(), subject, predicate_type: PREDICATE.to_owned(), predicate };
        let signed = sign(&statement, &certifier.signer.key);
        let Chain { instance, number, .. } = &statement.predicate.chain;
        Some(Certified {
            key: format!("{instance}/{sequence:020}"),
            head: Head { number: *number, sequence, digest: signed.digest },
            line: signed.line,
        })
    }

    /// The chain stands where the batch that has left says.
    pub(super) fn go_on_certified(&mut self, certificate: Option<&Certified>) {
        if let (Some(certifier), Some(certificate)) = (&mut self.certifier, certificate) {
            let (first, sequence) = (certifier.head.is_none(), certificate.head.sequence);
            certifier.head = Some(certificate.head);
            if first && sequence > 1 {
                ChainBegun { instance: &certifier.instance, after: sequence - 1 }.emit();
            }
        }
    }

    /// Counts the certificate of a batch that has left.
    pub(super) fn tell_of_certificate(&self) {
        if self.certifier.is_some() {
            BatchCertified.emit(&self.telemetry);
        }
    }

    /// Says where the chain of certificates stands.
    pub fn tell_of_chain(&self) {
        let Some((certifier, head)) = self.certifier.as_ref().and_then(|c| Some((c, c.head?))) else { return };
        let Head { number, sequence, .. } = head;
        ChainHead { instance: &certifier.instance, number, sequence, head: &head.hex() }.emit();
    }
}
