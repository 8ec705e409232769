//! The ledger at one moment: what of it counts now.

use super::classes::{Ledger, is_fresh};
use super::occurrences::occurrences;
use super::said::Said;
use super::supporters::{SupportLimits, Supporters};
use super::tally::Tally;
use super::witnesses::{Witness, WitnessDelta, Witnesses};
use crate::records::codebook::{CellId, Code, Codebook};
use crate::records::table::Batch;

/// The ledger at one moment.
#[derive(Clone, Copy)]
pub struct LedgerAt<'a> {
    ledger: &'a Ledger,
    /// Whole seconds, rounded up.
    pub(super) now: u32,
    now_ms: i64,
}

impl Ledger {
    /// The ledger as it is seen at `now_ms`: a release counts while it is younger than the window. Ages are rounded up.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> LedgerAt<'_> {
        LedgerAt { ledger: self, now: u32::try_from(now_ms.div_euclid(1000) + 1).unwrap_or(u32::MAX), now_ms }
    }
}

impl<'a> LedgerAt<'a> {
    /// Writes distinct subjects of `class` whose release is still inside the support window to the front of `out`, as many as
    /// fit, and returns how many. It may know fewer than there are, never more.
    #[must_use]
    pub fn fresh_subjects(&self, class: u128, out: &mut [u64]) -> usize {
        if self.ledger.window_seconds == 0 {
            return 0;
        }
        let fresh = self.ledger.entry(class).iter().filter(|(t, _)| is_fresh(*t, self.now, self.ledger.window_seconds));
        fresh.zip(out).map(|((_, s), o)| *o = *s).count()
    }

    /// Whether a class has k subjects that all stay fresh for most of the window still: recording it once more would
    /// change nothing that matters soon, and is left out. Understates ages by no more than an eighth of the window.
    #[must_use]
    pub fn well_supported(&self, class: u128) -> bool {
        let entry = self.ledger.entry(class);
        entry.len() == self.ledger.k
            && entry.iter().all(|(t, _)| is_fresh(*t, self.now, self.ledger.window_seconds / 8))
    }

    /// The raw tuples of what has left, where they are kept: recoding is strict then.
    #[must_use]
    pub fn witnesses(&self) -> Option<WitnessesAt<'a>> {
        let of = |witnesses| WitnessesAt { witnesses, now: self.now, window_seconds: self.ledger.window_seconds };
        self.ledger.witnesses.as_ref().map(of)
    }

    /// What the witnesses must learn when batch number `sequence` has been committed; nothing where none are kept. `cells` are
    /// those that leave, by attribute and row.
    #[must_use]
    pub fn witness_delta(
        &self,
        sequence: u64,
        time: u32,
        batch: &Batch,
        cells: &[Vec<CellId>],
        books: &[Codebook],
    ) -> WitnessDelta {
        match &self.ledger.witnesses {
            Some(witnesses) if self.ledger.window_seconds > 0 => {
                let found = occurrences(witnesses.spaces(), batch, cells, books);
                witnesses.delta(&found, sequence, time, batch, books)
            }
            _ => WitnessDelta::default(),
        }
    }

    /// What has been said, where that is kept.
    #[must_use]
    pub fn said(&self) -> Option<&'a Said> {
        self.ledger.said()
    }

    /// The sensitive values that were shown, where they are kept.
    #[must_use]
    pub fn shown(&self) -> Option<ShownAt<'a>> {
        self.ledger.tally().map(|tally| ShownAt { tally, now_ms: self.now_ms })
    }

    /// Who supports what, where that is kept.
    #[must_use]
    pub fn supporters(&self) -> Option<SupportersAt<'a>> {
        self.ledger.supporters().map(|supporters| SupportersAt { supporters, now_ms: self.now_ms })
    }
}

/// The raw tuples of earlier releases, and which of them still count. It may know fewer than there are, never more.
#[derive(Clone, Copy)]
pub struct WitnessesAt<'a> {
    witnesses: &'a Witnesses,
    now: u32,
    window_seconds: u32,
}

impl<'a> WitnessesAt<'a> {
    /// The releases in a class; at most one for a subject and a raw tuple, in an order that a restart keeps.
    #[must_use]
    pub fn of_class(&self, class: u128) -> &'a [Witness] {
        self.witnesses.of_class(class)
    }

    /// Whether it is still inside the support window.
    #[must_use]
    pub fn is_fresh(&self, witness: &Witness) -> bool {
        self.window_seconds > 0 && is_fresh(witness.time, self.now, self.window_seconds)
    }

    /// One code for every attribute of the class.
    #[must_use]
    pub fn raw_tuple(&self, raw: u32) -> &'a [Code] {
        self.witnesses.raw_tuple(raw)
    }
}

/// The sensitive values of earlier releases, inside the support window.
#[derive(Clone, Copy)]
pub struct ShownAt<'a> {
    tally: &'a Tally,
    now_ms: i64,
}

impl<'a> ShownAt<'a> {
    /// What is kept of each attribute.
    #[must_use]
    pub fn tally(&self) -> &'a Tally {
        self.tally
    }

    /// Appends the pairs (value, subject) of `attribute` that were shown in `class` and count now.
    pub fn pairs(&self, attribute: usize, class: u128, out: &mut Vec<(u64, u64)>) {
        self.tally.pairs(attribute, class, self.now_ms, out);
    }

    /// Whether values of `attribute` may be shown at all: everything that its models must know of the past is known, and
    /// what `rows` rows show would find room.
    #[must_use]
    pub fn is_open(&self, attribute: usize, rows: usize) -> bool {
        self.tally.is_open(attribute, rows, self.now_ms)
    }
}

/// How many classes of a group somebody supports inside the support window, and who may support any.
#[derive(Clone, Copy)]
pub struct SupportersAt<'a> {
    supporters: &'a Supporters,
    now_ms: i64,
}

impl SupportersAt<'_> {
    /// What is asked of supporters.
    #[must_use]
    pub fn limits(&self) -> SupportLimits {
        self.supporters.limits()
    }

    /// Whether a subject has been seen for long enough to support others.
    #[must_use]
    pub fn is_settled(&self, subject: u64) -> bool {
        self.supporters.is_settled(subject, self.now_ms)
    }

    /// Writes the classes of `group` that `subject` supports already to `out`.
    pub fn supported(&self, group: u128, subject: u64, out: &mut Vec<u128>) {
        self.supporters.supported(group, subject, self.now_ms, out);
    }

    /// Whether a class more for each of `rows` rows could be remembered.
    #[must_use]
    pub fn has_room(&self, rows: usize) -> bool {
        self.supporters.has_room(rows)
    }
}
