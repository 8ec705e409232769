//! Structures of `kernels/window.cuh` as bytes, in field order.

/// Kernel structure Column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnEntry {
    pub(super) address: u64,
    pub(super) width: u64,
}

/// Kernel structure Recoding of `kernels/ring.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecodingEntry {
    pub(super) from: u64,
    pub(super) from_width: u64,
    pub(super) codes: u64,
    pub(super) to: u64,
    pub(super) to_width: u64,
}

/// Kernel structure Term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TermEntry {
    pub(super) column: u32,
    pub(super) radix: u32,
    pub(super) slot: u32,
}

/// Kernel structure Stage; `keys` is a slot offset in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StageEntry {
    pub(super) keys: u64,
    pub(super) mask: u64,
    pub(super) first: u32,
    pub(super) terms: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CandidateEntry {
    pub(super) cells: u64,
    pub(super) counts: u64,
    pub(super) seen: u64,
    pub(super) seen_mask: u64,
    pub(super) first: u32,
    pub(super) terms: u32,
    pub(super) stage: u32,
    pub(super) stages: u32,
    pub(super) shared: u32,
    pub(super) replicas: u32,
    pub(super) family: u32,
    pub(super) most: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupEntry {
    pub(super) first: u32,
    pub(super) candidates: u32,
    pub(super) slot: u32,
    pub(super) slots: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CandidateOutcome {
    pub(super) smallest: u64,
    pub(super) classes: u64,
    pub(super) classes_below: u64,
    pub(super) records_below: u64,
    pub(super) subjects_below: u64,
    pub(super) verdict: EarlyVerdict,
    pub(super) overflow: bool,
}

/// Certain before all rows were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyVerdict {
    Undecided,
    Safe,
    Qid,
}

pub(super) const OUTCOME_BYTES: usize = 64;

pub(super) trait KernelTableEntry {
    fn put(&self, to: &mut Vec<u8>);
}

/// Appends a zero word as padding.
macro_rules! impl_table_entries {
    ($($name:ident: $($field:ident)* $(, $padding:literal)?;)*) => {
        $(impl KernelTableEntry for $name {
            fn put(&self, to: &mut Vec<u8>) {
                $(to.extend(self.$field.to_le_bytes());)*
                $(to.extend(u32::to_le_bytes($padding));)?
            }
        })*
    };
}
pub(super) use impl_table_entries;

impl_table_entries! {
    ColumnEntry: address width;
    RecodingEntry: from from_width codes to to_width;
    StageEntry: keys mask first terms;
    CandidateEntry: cells counts seen seen_mask first terms stage stages shared replicas family most;
    GroupEntry: first candidates slot slots;
    TermEntry: column radix slot, 0;
}

impl KernelTableEntry for u32 {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

impl KernelTableEntry for u64 {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

pub(super) fn bytes_of<E: KernelTableEntry>(entries: &[E]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 64);
    entries.iter().for_each(|entry| entry.put(&mut bytes));
    bytes
}

pub(super) fn blank_outcomes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count * OUTCOME_BYTES];
    bytes.chunks_exact_mut(OUTCOME_BYTES).for_each(|outcome| outcome[..8].fill(0xff));
    bytes
}

pub(super) fn u64_words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

pub(super) fn u32_words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word))
}

pub(super) fn decode_outcomes(bytes: &[u8]) -> Vec<CandidateOutcome> {
    let read = |bytes: &[u8]| {
        let mut long = u64_words(bytes);
        let mut next = || long.next().unwrap_or_default();
        let [smallest, classes, classes_below, records_below, subjects_below] = [(); 5].map(|()| next());
        let state: Vec<u32> = u32_words(&bytes[OUTCOME_BYTES - 8..]).collect();
        let verdict = match state[0] {
            0 => EarlyVerdict::Undecided,
            1 => EarlyVerdict::Safe,
            _ => EarlyVerdict::Qid,
        };
        let smallest = if classes == 0 { 0 } else { smallest };
        CandidateOutcome {
            smallest,
            classes,
            classes_below,
            records_below,
            subjects_below,
            verdict,
            overflow: state[1] != 0,
        }
    };
    bytes.chunks_exact(OUTCOME_BYTES).map(read).collect()
}
