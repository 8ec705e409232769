//! The structures of `kernels/window.cuh` as bytes, field by field in the same order.

/// `Column`: where its codes lie, and bytes a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) address: u64,
    pub(super) width: u64,
}

/// `Recoding`: a column of the ring, and the one of a copy in other codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recoding {
    pub(super) from: u64,
    pub(super) from_width: u64,
    pub(super) codes: u64,
    pub(super) to: u64,
    pub(super) to_width: u64,
}

/// `Term`: a column of a candidate, its radix, its slot in the tile of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) column: u32,
    pub(super) radix: u32,
    pub(super) slot: u32,
}

/// `Stage`: a hash table on the way to a class. `keys` counts slots from the start of the batch's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) keys: u64,
    pub(super) mask: u64,
    pub(super) first: u32,
    pub(super) terms: u32,
}

/// `Candidate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
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

/// `Group`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) first: u32,
    pub(super) candidates: u32,
    pub(super) slot: u32,
    pub(super) slots: u32,
}

/// `Outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) smallest: u64,
    pub(super) classes: u64,
    pub(super) classes_below: u64,
    pub(super) records_below: u64,
    pub(super) subjects_below: u64,
    pub(super) verdict: Verdict,
    pub(super) overflow: bool,
}

/// What was certain before all rows were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Undecided,
    Safe,
    Qid,
}

/// Bytes of an `Outcome`.
pub(super) const OUTCOME: usize = 64;

/// Something that stands in a table of a launch.
pub(super) trait Entry {
    fn put(&self, to: &mut Vec<u8>);
}

/// Puts fields in the order of the kernels' structure, then a word of zeros where it is padded.
macro_rules! entries {
    ($($name:ident: $($field:ident)* $(, $padding:literal)?;)*) => {
        $(impl Entry for $name {
            fn put(&self, to: &mut Vec<u8>) {
                $(to.extend(self.$field.to_le_bytes());)*
                $(to.extend(u32::to_le_bytes($padding));)?
            }
        })*
    };
}
pub(super) use entries;

entries! {
    Column: address width;
    Recoding: from from_width codes to to_width;
    Stage: keys mask first terms;
    Candidate: cells counts seen seen_mask first terms stage stages shared replicas family most;
    Group: first candidates slot slots;
    Term: column radix slot, 0;
}

impl Entry for u32 {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

impl Entry for u64 {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

/// The bytes of some entries.
pub(super) fn bytes_of<E: Entry>(entries: &[E]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 64);
    entries.iter().for_each(|entry| entry.put(&mut bytes));
    bytes
}

/// The outcomes of `count` candidates before anything was counted.
pub(super) fn blank_outcomes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count * OUTCOME];
    bytes.chunks_exact_mut(OUTCOME).for_each(|outcome| outcome[..8].fill(0xff));
    bytes
}

/// Words of eight bytes, little-endian.
pub(super) fn longs(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// Words of four bytes, little-endian.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word))
}

/// Reads outcomes back.
pub(super) fn outcomes(bytes: &[u8]) -> Vec<Outcome> {
    let read = |bytes: &[u8]| {
        let mut long = longs(bytes);
        let mut next = || long.next().unwrap_or_default();
        let [smallest, classes, classes_below, records_below, subjects_below] = [(); 5].map(|()| next());
        let state: Vec<u32> = words(&bytes[OUTCOME - 8..]).collect();
        let verdict = match state[0] {
            0 => Verdict::Undecided,
            1 => Verdict::Safe,
            _ => Verdict::Qid,
        };
        let smallest = if classes == 0 { 0 } else { smallest };
        Outcome { smallest, classes, classes_below, records_below, subjects_below, verdict, overflow: state[1] != 0 }
    };
    bytes.chunks_exact(OUTCOME).map(read).collect()
}
