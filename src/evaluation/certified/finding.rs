//! What is broken, and where: lines, batches and counts, never a value.

use serde::Serialize;

/// Findings that are listed one by one; the others are counted.
const LISTED: usize = 100;

/// A promise that a certificate, or the output of its batch, breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenCertificate {
    /// What is promised, in words.
    pub promise: &'static str,
    /// The line of the certificates, from 1; none where it is none's.
    pub line: Option<u64>,
    /// The batch; none where the line is no certificate.
    pub batch: Option<u64>,
    /// The output, where it is one's.
    pub output: Option<String>,
    /// What was found, where something was counted.
    pub found: Option<u64>,
    /// What is asked for.
    pub asked: Option<u64>,
}

/// A chain that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainFound {
    /// The state whose batches it certifies.
    pub instance: String,
    /// Its certificates.
    pub certificates: u64,
    /// The first batch.
    pub first_batch: u64,
    /// The last one.
    pub last_batch: u64,
    /// SHA-256 of the last statement, in hex.
    pub head: String,
    /// Batches between the first and the last that have no certificate, as the certificates around them say.
    pub batches_without: u64,
    /// It was started anew behind certificates of the same state.
    pub anew: bool,
}

/// Certificates as an auditor finds them.
#[derive(Clone, Debug, Serialize)]
pub struct Certificates {
    /// Nothing that was checked is broken.
    pub kept: bool,
    /// How many there are.
    pub certificates: u64,
    /// Lines that they certify.
    pub lines: u64,
    /// The chains, in the order in which they begin.
    pub chains: Vec<ChainFound>,
    /// How much is broken.
    pub broken_in_all: u64,
    /// The first hundred.
    pub broken: Vec<BrokenCertificate>,
    /// What these files cannot show.
    pub not_checked: Vec<&'static str>,
}

/// Findings as they are made.
#[derive(Default)]
pub(super) struct Found {
    pub certificates: u64,
    pub lines: u64,
    pub chains: Vec<ChainFound>,
    pub not_checked: Vec<&'static str>,
    first: Vec<BrokenCertificate>,
    in_all: u64,
}

impl Found {
    /// Notes that `promise` is broken by the certificate of a line and batch.
    pub(super) fn note(&mut self, promise: &'static str, line: Option<u64>, batch: Option<u64>) {
        self.add(BrokenCertificate { promise, line, batch, output: None, found: None, asked: None });
    }

    /// The same with what was counted.
    pub(super) fn count(&mut self, promise: &'static str, (line, batch): (u64, u64), [found, asked]: [u64; 2]) {
        let (line, batch, found, asked) = (Some(line), Some(batch), Some(found), Some(asked));
        self.add(BrokenCertificate { promise, line, batch, output: None, found, asked });
    }

    pub(super) fn add(&mut self, broken: BrokenCertificate) {
        self.in_all += 1;
        if self.first.len() < LISTED {
            self.first.push(broken);
        }
    }

    pub(super) fn into_report(self) -> Certificates {
        Certificates {
            kept: self.in_all == 0,
            certificates: self.certificates,
            lines: self.lines,
            chains: self.chains,
            broken_in_all: self.in_all,
            broken: self.first,
            not_checked: self.not_checked,
        }
    }
}
