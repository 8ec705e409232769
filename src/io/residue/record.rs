//! One record that is handed on.
//!
//! In clear it says its form, the instance that has written it, the number of the batch and its own in the batch. All else is sealed
//! under a key of the group's secret, for these words, the name of the group and the partition: a record that was cut, changed, renamed,
//! or copied from another group or partition does not open. Who may read the topic sees how many records there are, whose, and how long:
//! their length is a multiple of 1 KiB, so that it tells little of the values.

use crate::records::sealer::Sealer;
use serde::{Deserialize, Serialize};

/// What records of this form begin with.
const FORM: &[u8; 4] = b"trr2";
/// A state is named by a UUID.
const NAME: usize = 16;
const HEADER: usize = FORM.len() + NAME + 8 + 4;
/// What is sealed is as long as a multiple of this, in bytes.
const STEP: usize = 1024;
/// Bytes of a record at most: brokers take a message of 1 MB by default.
pub(super) const MOST: usize = 1 << 19;

/// Who has handed a record on, and which of theirs it is. Those of one sender rise by batch and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Identity of the sender's state.
    pub instance: [u8; NAME],
    /// Number of its batch.
    pub sequence: u64,
    /// Number of the record in the batch, from 0.
    pub number: u32,
}

/// What is handed on of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// Digest of what both sides must have in common: the keys of digests, and the record schema.
    pub terms: [u8; 16],
    /// Stamp of the batch that hands it on, milliseconds since 1970.
    pub stamp_ms: i64,
    /// Whom the record counts for, as a keyed digest; 0: nobody.
    pub subject: u64,
    /// Digests that name the groups in which it may still leave.
    pub groups: Vec<u128>,
    /// Batches that it was held for, where its partition was taken away while it waited: it goes on waiting where it comes to. `None`: it has
    /// found no crowd, and waits no more.
    pub waited: Option<u8>,
    /// Canonical texts, one an attribute.
    pub cells: Vec<String>,
}

impl Sender {
    fn to_bytes(self) -> Vec<u8> {
        let mut out = FORM.to_vec();
        out.extend_from_slice(&self.instance);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.number.to_be_bytes());
        out
    }

    /// What a record says in clear, and what it has sealed; `None` where it is of no form that is known here.
    pub(super) fn read(record: &[u8]) -> Option<(Self, &[u8])> {
        let (header, sealed) = record.split_at_checked(HEADER)?;
        let (instance, rest) = header.strip_prefix(FORM)?.split_first_chunk::<NAME>()?;
        let (sequence, number) = rest.split_first_chunk::<8>()?;
        let number = u32::from_be_bytes(number.try_into().ok()?);
        Some((Self { instance: *instance, sequence: u64::from_be_bytes(*sequence), number }, sealed))
    }

    /// Where a record of the group opens, and nowhere else.
    fn place(self, group: &str, partition: i32) -> Vec<u8> {
        [b"throng residue\0".as_slice(), group.as_bytes(), &[0], &partition.to_be_bytes(), &self.to_bytes()].concat()
    }
}

impl Handed {
    /// The record that says this, for one partition.
    pub(super) fn seal(&self, sender: Sender, group: &str, partition: i32, sealer: &Sealer) -> Vec<u8> {
        let mut plain = postcard::to_stdvec(self).expect("plain values always serialize");
        plain.resize(plain.len().next_multiple_of(STEP), 0);
        let mut record = sender.to_bytes();
        record.extend_from_slice(&sealer.seal(&sender.place(group, partition), &plain));
        record
    }

    /// What was sealed; `None` where it does not open: it is not of our secret, our group or this partition, or was changed.
    pub(super) fn open(sender: Sender, sealed: &[u8], group: &str, partition: i32, sealer: &Sealer) -> Option<Self> {
        let plain = sealer.open(&sender.place(group, partition), sealed)?;
        postcard::take_from_bytes(&plain).ok().map(|(handed, _)| handed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn handed(cells: Vec<String>, groups: Vec<u128>) -> Handed {
        Handed { terms: [7; 16], stamp_ms: 17, subject: 5, groups, waited: Some(2), cells }
    }

    proptest! {
        #[test]
        fn threat_39_a_record_comes_back_and_opens_nowhere_else(
            cells in prop::collection::vec(".{0,60}", 0..40), groups in prop::collection::vec(any::<u128>(), 0..6),
            sequence in any::<u64>(), number in any::<u32>(), partition in 0..i32::MAX,
            at in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let (sealer, other) = (Sealer::new(&[3; 32]), Sealer::new(&[4; 32]));
            let (sender, handed) = (Sender { instance: [9; NAME], sequence, number }, handed(cells, groups));
            let record = handed.seal(sender, "group", partition, &sealer);
            prop_assert_eq!((record.len() - HEADER - 24 - 16) % STEP, 0, "the length tells little");
            let (read, sealed) = Sender::read(&record).expect("a header");
            prop_assert_eq!(read, sender);
            prop_assert_eq!(Handed::open(read, sealed, "group", partition, &sealer), Some(handed));
            prop_assert_eq!(Handed::open(read, sealed, "group", partition, &other), None, "another secret");
            prop_assert_eq!(Handed::open(read, sealed, "groups", partition, &sealer), None, "another group");
            prop_assert_eq!(Handed::open(read, sealed, "group", partition - 1, &sealer), None, "another partition");
            // Cut anywhere, or one bit changed.
            let opens = |record: &[u8]| {
                Sender::read(record).and_then(|(sender, sealed)| Handed::open(sender, sealed, "group", partition, &sealer))
            };
            prop_assert_eq!(opens(&record[..at.index(record.len())]), None);
            let mut flipped = record;
            let place = at.index(flipped.len());
            flipped[place] ^= 1 << bit;
            prop_assert_eq!(opens(&flipped), None);
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        for bytes in [&b""[..], b"trr2", &[b"trr1".as_slice(), &[0; 100]].concat(), &[0xff; 200]] {
            assert_eq!(Sender::read(bytes), None);
        }
    }
}
