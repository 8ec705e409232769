//! The lines of a file of certificates.

use crate::certificates::envelope::LONGEST;
use crate::evaluation::error::EvaluationError;
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// The lines of a reader; none in place of one that is longer than a certificate can be, behind which nothing is read.
pub struct CertificateLines<R> {
    reader: R,
    path: PathBuf,
    over: bool,
}

impl<R: BufRead> CertificateLines<R> {
    /// Of a reader that is called `path` in errors.
    pub fn new(reader: R, path: PathBuf) -> Self {
        Self { reader, path, over: false }
    }
}

impl<R: BufRead> Iterator for CertificateLines<R> {
    type Item = Result<Option<Vec<u8>>, EvaluationError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let mut line = Vec::new();
        match self.reader.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line) {
            Err(source) => {
                self.over = true;
                return Some(Err(EvaluationError::Certificates { path: self.path.clone(), source }));
            }
            Ok(0) => return None,
            Ok(_) => {}
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LONGEST {
            self.over = true;
            return Some(Ok(None));
        }
        Some(Ok(Some(line)))
    }
}
