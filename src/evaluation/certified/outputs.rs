//! The output, batch by batch: whether its bytes are those of the digests.

use super::chain::Placed;
use super::finding::{BrokenCertificate, Found};
use crate::certificates::output::{Framing, OutputDigest};
use crate::config::{Config, Format};
use crate::evaluation::error::EvaluationError;
use crate::evaluation::released::files;
use crate::io::file::open_text;
use std::io::Read;
use std::path::Path;

/// The lines of one output.
struct Lines {
    text: Vec<u8>,
    /// Where each ends, before its line break.
    ends: Vec<usize>,
    /// Where each begins.
    begins: Vec<usize>,
}

impl Lines {
    /// Reads the files of an output one after the other, their headers left out.
    fn read(config: &Config, path: &Path, name: &str, alone: bool) -> Result<Self, EvaluationError> {
        let quotes = config.sink.format() == Format::Csv;
        let mut lines = Self { text: Vec::new(), ends: Vec::new(), begins: Vec::new() };
        for file in files(config, path, name, alone)? {
            let unreadable = |source| EvaluationError::Release { path: file.clone(), source };
            let from = lines.text.len();
            open_text(&file).and_then(|mut opened| opened.read_to_end(&mut lines.text)).map_err(unreadable)?;
            lines.divide(from, quotes);
        }
        Ok(lines)
    }

    /// Finds the lines of a file that begins at `from`. Where there are `quotes`, a line break inside them ends none, and the first is a
    /// header.
    fn divide(&mut self, from: usize, quotes: bool) {
        let (mut begin, mut quoted, mut header) = (from, false, quotes);
        let mut end = |begin: usize, end: usize| {
            if !std::mem::take(&mut header) {
                self.begins.push(begin);
                self.ends.push(end);
            }
        };
        for (at, byte) in self.text.iter().enumerate().skip(from) {
            match byte {
                b'"' if quotes => quoted = !quoted,
                b'\n' if !quoted => {
                    end(begin, at);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        if begin < self.text.len() {
            end(begin, self.text.len());
        }
    }

    /// The digest of `count` lines from number `first` on; none where they are not all there.
    fn digest(&self, first: u64, count: u64) -> Option<String> {
        let first = usize::try_from(first).ok()?;
        let last = first.checked_add(usize::try_from(count).ok()?)?;
        let (begins, ends) = (self.begins.get(first..last)?, self.ends.get(first..last)?);
        let mut digest = OutputDigest::new(Framing::Newline);
        begins.iter().zip(ends).for_each(|(begin, end)| digest.add(&self.text[*begin..*end]));
        Some(digest.hex())
    }

    fn count(&self) -> u64 {
        self.begins.len() as u64
    }
}

/// Holds the output at `path` against the certificates.
pub(super) fn check(config: &Config, path: &Path, placed: &[Placed], found: &mut Found) -> Result<(), EvaluationError> {
    if placed.iter().any(|certificate| certificate.instance > 0) {
        found.not_checked.push("the output: several instances have written it, and their lines are not told apart");
        return Ok(());
    }
    let names = config.output_names();
    let strange = placed.iter().filter(|of| of.subjects.iter().map(|s| s.name.as_str()).ne(names.iter().copied()));
    let strange: Vec<&Placed> = strange.collect();
    if !strange.is_empty() {
        for of in strange {
            found.note("a batch leaves to the outputs of this configuration", Some(of.line), Some(of.batch));
        }
        return Ok(());
    }
    if placed.iter().flat_map(|of| &of.outputs).any(|output| output.framing == Framing::Length) {
        found.not_checked.push("the output: its messages are no lines of text");
        return Ok(());
    }
    for (at, name) in names.iter().enumerate() {
        let lines = Lines::read(config, path, name, names.len() < 2)?;
        check_output(at, name, &lines, placed, found);
    }
    Ok(())
}

/// Holds output number `at` against the certificates.
fn check_output(at: usize, name: &str, lines: &Lines, placed: &[Placed], found: &mut Found) {
    // Where the certificates give no place, batches follow each other.
    let (mut next, mut last) = (0_u64, 0_u64);
    let mut firsts = Vec::with_capacity(placed.len());
    for certificate in placed {
        let output = &certificate.outputs[at];
        let first = output.first_line.unwrap_or(next);
        next = first.saturating_add(output.lines);
        last = last.max(next);
        firsts.push(first);
    }
    // Lines that were added or removed move all that is behind them: what comes later is looked for there as well.
    let moved = i128::from(lines.count()) - i128::from(last);
    let mut by = 0_i128;
    for (certificate, first) in placed.iter().zip(&firsts) {
        let (output, wanted) = (&certificate.outputs[at], certificate.subjects[at].digest.sha256.as_str());
        if output.lines == 0 {
            continue;
        }
        let is_at = |by: i128| {
            let first = u64::try_from(i128::from(*first) + by).ok();
            first.and_then(|first| lines.digest(first, output.lines)).is_some_and(|found| found == wanted)
        };
        match [by, 0, moved].into_iter().find(|by| is_at(*by)) {
            Some(found) => by = found,
            None => found.add(BrokenCertificate {
                promise: "the output of a batch has the bytes that are certified",
                line: Some(certificate.line),
                batch: Some(certificate.batch),
                output: Some(name.to_owned()),
                found: None,
                asked: None,
            }),
        }
    }
    let behind = i128::from(lines.count()) - (i128::from(last) + by);
    if behind > 0 {
        found.add(BrokenCertificate {
            promise: "every line is of a batch that has a certificate",
            line: None,
            batch: None,
            output: Some(name.to_owned()),
            found: Some(lines.count()),
            asked: Some(last),
        });
    }
    if firsts.first().is_some_and(|first| *first > 0) {
        found.not_checked.push("lines before the first certificate");
    }
}
