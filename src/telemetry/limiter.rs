//! A bound on how often one kind of event is logged; metrics count every one of them.

use std::collections::BTreeMap;

/// Lines of one kind written within [`WINDOW_MS`].
const BURST: u32 = 5;
const WINDOW_MS: u64 = 10_000;

/// What to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Write it, and say before that so many like it were not written.
    Write {
        unwritten: u64,
    },
    Skip,
}

#[derive(Default)]
struct Window {
    began_ms: u64,
    written: u32,
    unwritten: u64,
}

/// Counts lines by kind. Kinds are literals and labels of the program, so their number is bounded.
#[derive(Default)]
pub(super) struct Limiter(BTreeMap<(&'static str, &'static str), Window>);

impl Limiter {
    pub fn judge(&mut self, kind: &'static str, label: &'static str, now_ms: u64) -> Verdict {
        let window = self.0.entry((kind, label)).or_default();
        let mut unwritten = 0;
        if now_ms.saturating_sub(window.began_ms) >= WINDOW_MS {
            unwritten = window.unwritten;
            *window = Window { began_ms: now_ms, ..Window::default() };
        }
        if window.written == BURST {
            window.unwritten += 1;
            return Verdict::Skip;
        }
        window.written += 1;
        Verdict::Write { unwritten }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BURST, Limiter, Verdict, WINDOW_MS};

    #[test]
    fn a_flood_is_cut_and_accounted_for() {
        let mut limiter = Limiter::default();
        let written = (0..100).filter(|_| limiter.judge("a", "", 3) != Verdict::Skip).count();
        assert_eq!(written, BURST as usize);
        assert_eq!(limiter.judge("a", "other", 3), Verdict::Write { unwritten: 0 });
        assert_eq!(limiter.judge("a", "", WINDOW_MS), Verdict::Write { unwritten: 95 });
    }

    proptest! {
        #[test]
        fn no_line_is_lost_from_the_account(gaps in prop::collection::vec(0u64..4_000, 1..200)) {
            let (mut limiter, mut now, mut written, mut named) = (Limiter::default(), 0, 0u64, 0u64);
            for gap in &gaps {
                now += gap;
                if let Verdict::Write { unwritten } = limiter.judge("a", "", now) {
                    written += 1;
                    named += unwritten;
                }
            }
            // The line after a window names all that were skipped; only those of the last window are still unnamed.
            if let Verdict::Write { unwritten } = limiter.judge("a", "", now + WINDOW_MS) {
                named += unwritten;
            }
            prop_assert_eq!(written + named, gaps.len() as u64);
        }
    }
}
