//! Generates unique values that must appear only in the source.

use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write as _;

const LENGTH: usize = 16;

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes every text");
        text
    })
}

#[derive(Default)]
pub struct Canaries {
    made: RefCell<Vec<String>>,
}

impl Canaries {
    fn make(&self, canary: impl Fn(&[u8]) -> String) -> String {
        let mut made = self.made.borrow_mut();
        let seed = Sha256::digest(format!("canary {}", made.len()));
        let canary = canary(&seed);
        assert_eq!(canary.len(), LENGTH);
        made.push(canary.clone());
        canary
    }

    pub fn text(&self) -> String {
        self.make(|seed| {
            seed.iter().take(LENGTH).map(|b| char::from(b"bcdfghjkmnpqrtvwxz23456789"[usize::from(*b) % 26])).collect()
        })
    }

    /// Integer exactly representable as a double.
    pub fn number(&self) -> String {
        self.make(|seed| {
            let digits = seed.iter().take(LENGTH - 1).map(|b| char::from(b'0' + b % 10));
            std::iter::once('7').chain(digits).collect()
        })
    }

    pub fn count(&self) -> usize {
        self.made.borrow().len()
    }

    /// Verbatim, in capitals, or as hexadecimal digits.
    pub fn found_in(&self, bytes: &[u8]) -> Vec<String> {
        let made = self.made.borrow();
        let plain: HashSet<&[u8]> = made.iter().map(String::as_bytes).collect();
        let digits: HashSet<Vec<u8>> = made.iter().map(|c| hex(c.as_bytes()).into_bytes()).collect();
        let lower = bytes.to_ascii_lowercase();
        let mut found: Vec<String> = lower
            .windows(LENGTH)
            .filter(|window| plain.contains(window))
            .chain(lower.windows(2 * LENGTH).filter(|window| digits.contains(*window)))
            .map(|window| String::from_utf8_lossy(window).into_owned())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[track_caller]
    pub fn absent_from(&self, what: &str, bytes: impl AsRef<[u8]>) {
        let found = self.found_in(bytes.as_ref());
        let around = found.first().and_then(|canary| {
            let text = String::from_utf8_lossy(bytes.as_ref()).to_ascii_lowercase();
            let at = text.find(canary)?;
            Some(text.chars().skip(text[..at].chars().count().saturating_sub(80)).take(200).collect::<String>())
        });
        assert!(found.is_empty(), "{what} shows {} canaries, such as {:?}", found.len(), around);
    }
}
