//! What one batch adds to the ledger.

use super::bytes::Reader;
use super::said::SaidDelta;
use super::supporters::SupportDelta;
use super::tally::TallyDelta;

/// What one batch adds: classes with the subjects released in them, all at the batch's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerDelta {
    /// Age of the state in whole seconds, rounded down.
    pub time: u32,
    /// Class keys, each with the number of its subjects in `subjects`.
    pub classes: Vec<(u128, u32)>,
    /// The subjects of all classes, one class after the other.
    pub subjects: Vec<u64>,
    /// Who was in the batch and whom its classes counted; empty where nothing is asked of supporters.
    pub support: SupportDelta,
    /// Lines of groups that say things once a window; empty where none does.
    pub said: SaidDelta,
    /// Sensitive values shown; empty where no model protects any.
    pub tally: TallyDelta,
}

impl LedgerDelta {
    /// The delta as it is written to the state.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.classes.len() * 20 + self.subjects.len() * 8);
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.classes.len()).expect("bounded by the batch").to_le_bytes());
        for (class, subjects) in &self.classes {
            out.extend_from_slice(&class.to_le_bytes());
            out.extend_from_slice(&subjects.to_le_bytes());
        }
        for subject in &self.subjects {
            out.extend_from_slice(&subject.to_le_bytes());
        }
        self.support.append_to(&mut out);
        self.said.append_to(&mut out);
        self.tally.append_to(&mut out);
        out
    }

    /// `None` when `bytes` are not what [`to_bytes`](Self::to_bytes) writes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let time = reader.u32()?;
        let count = reader.u32()?;
        let mut classes = Vec::new();
        let mut total = 0usize;
        for _ in 0..count {
            let class = reader.u128()?;
            let subjects = reader.u32()?;
            total = total.checked_add(subjects as usize)?;
            classes.push((class, subjects));
        }
        let mut subjects = Vec::new();
        for _ in 0..total {
            subjects.push(reader.u64()?);
        }
        let support = SupportDelta::read(&mut reader)?;
        let said = SaidDelta::read(&mut reader)?;
        let tally = TallyDelta::read(&mut reader)?;
        Some(Self { time, classes, subjects, support, said, tally })
    }
}
