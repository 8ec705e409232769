//! One record of the shared ledger.
//!
//! In clear it says its form, the instance that has written it, the number of the batch and of the part. All else is sealed under a
//! key of the group's secret, for these words and the name of the group: a record that was cut, changed, renamed or copied from
//! another group does not open. Who may read the topic sees how many records there are and how long: their length is a multiple of
//! 4 KiB, so that it does not tell of single people.

use super::terms::Terms;
use crate::ledger::shared::SharedDelta;
use crate::records::sealer::Sealer;

/// What records of this form begin with.
const FORM: &[u8; 4] = b"tsl1";
/// A state is named by a UUID.
const NAME: usize = 36;
const HEADER: usize = FORM.len() + NAME + 8 + 2;
/// What is sealed is as long as a multiple of this, in bytes.
const STEP: usize = 4096;

/// Who has written a record, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Identity of the writer's state.
    pub instance: String,
    /// Number of its batch.
    pub sequence: u64,
    /// Number of the part, from 0.
    pub part: u16,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub terms: Terms,
    pub delta: SharedDelta,
}

impl Header {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = FORM.to_vec();
        out.extend_from_slice(self.instance.as_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.part.to_be_bytes());
        out
    }

    /// What a record says in clear, and what it has sealed; `None` where it is of no form that is known here.
    pub fn read(record: &[u8]) -> Option<(Self, &[u8])> {
        let (header, sealed) = record.split_at_checked(HEADER)?;
        let rest = header.strip_prefix(FORM)?;
        let (name, rest) = rest.split_at_checked(NAME)?;
        let instance = uuid::Uuid::try_parse(std::str::from_utf8(name).ok()?).ok()?.to_string();
        let (sequence, part) = rest.split_first_chunk::<8>()?;
        let part = u16::from_be_bytes(part.try_into().ok()?);
        Some((Self { instance, sequence: u64::from_be_bytes(*sequence), part }, sealed))
    }

    /// Where a record of the group opens, and nowhere else.
    fn place(&self, group: &str) -> Vec<u8> {
        [b"throng shared ledger\0".as_slice(), group.as_bytes(), &[0], &self.to_bytes()].concat()
    }
}

impl Body {
    /// The record that says this.
    pub fn seal(&self, header: &Header, group: &str, sealer: &Sealer) -> Vec<u8> {
        let mut plain = self.terms.to_bytes();
        plain.extend_from_slice(&self.delta.to_bytes());
        plain.resize(plain.len().next_multiple_of(STEP), 0);
        let mut record = header.to_bytes();
        record.extend_from_slice(&sealer.seal(&header.place(group), &plain));
        record
    }

    /// What was sealed; `None` where it does not open: it is not of our secret, not of our group, or was changed.
    pub fn open(header: &Header, sealed: &[u8], group: &str, sealer: &Sealer) -> Option<Self> {
        let plain = sealer.open(&header.place(group), sealed)?;
        let (terms, delta) = plain.split_at_checked(Terms::BYTES)?;
        Some(Self { terms: Terms::from_bytes(terms)?, delta: SharedDelta::from_bytes(delta)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(sequence: u64, part: u16) -> Header {
        Header { instance: uuid::Uuid::from_u128(7).to_string(), sequence, part }
    }

    fn body(classes: &[(u128, Vec<u64>)]) -> Body {
        let mut delta = SharedDelta { stamp_ms: 17, ..SharedDelta::default() };
        for (class, subjects) in classes {
            delta.classes.push((*class, u32::try_from(subjects.len()).expect("few")));
            delta.subjects.extend(subjects);
        }
        Body { terms: Terms::new(&[1; 32], "s", "o", &[2; 32]), delta }
    }

    proptest! {
        #[test]
        fn a_record_comes_back_and_opens_nowhere_else(
            classes in prop::collection::vec((any::<u128>(), prop::collection::vec(any::<u64>(), 0..9)), 0..60),
            sequence in any::<u64>(), part in any::<u16>(), at in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let (sealer, other) = (Sealer::new(&[3; 32]), Sealer::new(&[4; 32]));
            let (header, body) = (header(sequence, part), body(&classes));
            let record = body.seal(&header, "group", &sealer);
            prop_assert_eq!((record.len() - HEADER - 24 - 16) % STEP, 0, "the length tells little");
            let (read, sealed) = Header::read(&record).expect("a header");
            prop_assert_eq!(&read, &header);
            prop_assert_eq!(Body::open(&read, sealed, "group", &sealer), Some(body));
            prop_assert_eq!(Body::open(&read, sealed, "group", &other), None, "another secret");
            prop_assert_eq!(Body::open(&read, sealed, "groups", &sealer), None, "replayed in another group");
            // Cut anywhere, or one bit changed.
            let opens = |record: &[u8]| {
                Header::read(record).and_then(|(header, sealed)| Body::open(&header, sealed, "group", &sealer))
            };
            prop_assert_eq!(opens(&record[..at.index(record.len())]), None);
            let mut flipped = record;
            let place = at.index(flipped.len());
            flipped[place] ^= 1 << bit;
            // A name is the same in small and capital letters, and then no other; all else is told.
            let same_name = Header::read(&flipped).is_some_and(|(read, _)| read == header) && place < HEADER;
            prop_assert!(same_name || opens(&flipped).is_none());
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        for bytes in [&b""[..], b"tsl1", &[b"tsl2".as_slice(), &[b'0'; 100]].concat(), &[0xff; 200]] {
            assert_eq!(Header::read(bytes), None);
        }
    }
}
