//! Where records go out that are handed on, and come in that were.

use super::marks::Marks;
use super::record::{Handed, MOST, Sender};
use crate::records::raw::Coordinate;
use crate::records::sealer::Sealer;
use crate::telemetry::RejectionReason;
use sha2::{Digest, Sha256};

/// Records that are handed on within so many milliseconds go to one partition, and so meet in one instance; after them it is another
/// partition's turn.
const TURN_MS: i64 = 10_000;

/// A record that was handed on to us, in a batch that is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residue {
    /// Where it lies in the topic.
    pub coordinate: Coordinate,
    /// What it says.
    pub handed: Handed,
}

/// Seals and opens what the instances of a group hand each other.
#[derive(Clone)]
pub struct Door {
    sealer: Sealer,
    group: String,
    terms: [u8; 16],
    /// Attributes of a record.
    width: usize,
}

impl Door {
    /// The door of `group`, for records of `width` attributes. `digests` names the keys of digests, `schema` is the fingerprint of the record
    /// schema and whatever else says how values are meant: what was handed on under others does not count here.
    #[must_use]
    pub fn new(sealer: Sealer, group: &str, digests: &[u8; 32], schema: &str, width: usize) -> Self {
        let hash = Sha256::new().chain_update(b"throng residue terms 1").chain_update(digests).chain_update(schema);
        let hash = hash.finalize();
        let mut terms = [0; 16];
        terms.copy_from_slice(&hash[..16]);
        Self { sealer, group: group.to_owned(), terms, width }
    }

    /// What both sides must have in common.
    #[must_use]
    pub fn terms(&self) -> [u8; 16] {
        self.terms
    }

    /// The partition of `partitions` to which records go that are handed on at `stamp_ms`: the same for all instances, whatever they know,
    /// so that those who may share a crowd meet.
    #[must_use]
    pub fn partition(stamp_ms: i64, partitions: i32) -> i32 {
        let turn = stamp_ms.div_euclid(TURN_MS).rem_euclid(i64::from(partitions.max(1)));
        i32::try_from(turn).expect("below the partition count")
    }

    /// `handed` as a record for `partition`; none where it is longer than a broker may take.
    #[must_use]
    pub fn seal(&self, handed: &Handed, sender: Sender, partition: i32) -> Option<Vec<u8>> {
        let record = handed.seal(sender, &self.group, partition, &self.sealer);
        (record.len() <= MOST).then_some(record)
    }

    /// What the record at `coordinate` says. `marks` are those of its partition, and note it.
    ///
    /// # Errors
    /// Why it is not taken up: it is too long, does not open here, is of another form, secret, group, partition or schema, or has been taken
    /// up before.
    pub fn open(&self, record: &[u8], coordinate: Coordinate, marks: &mut Marks) -> Result<Residue, RejectionReason> {
        if record.len() > MOST {
            return Err(RejectionReason::Oversized);
        }
        let (sender, sealed) = Sender::read(record).ok_or(RejectionReason::ResidueForeign)?;
        let handed = Handed::open(sender, sealed, &self.group, coordinate.partition, &self.sealer);
        let fits = |handed: &Handed| handed.terms == self.terms && handed.cells.len() == self.width;
        let handed = handed.filter(fits).ok_or(RejectionReason::ResidueForeign)?;
        if marks.take(sender, handed.stamp_ms) {
            Ok(Residue { coordinate, handed })
        } else {
            Err(RejectionReason::ResidueAgain)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(digests: u8, width: usize) -> Door {
        Door::new(Sealer::new(&[3; 32]), "group", &[digests; 32], "schema", width)
    }

    #[test]
    fn threat_39_only_what_fits_is_taken_up_and_once() {
        let ours = door(1, 2);
        let cells = vec!["a".to_owned(), "b".to_owned()];
        let handed = Handed { terms: ours.terms(), stamp_ms: 7, subject: 1, groups: vec![1], waited: None, cells };
        let sender = Sender { instance: [1; 16], sequence: 1, number: 0 };
        let record = ours.seal(&handed, sender, 0).expect("short");
        let at = Coordinate { topic: 1, partition: 0, offset: 4, element: 0 };
        let mut marks = Marks::default();
        let open = |door: &Door, marks: &mut Marks| door.open(&record, at, marks).map(|residue| residue.handed);
        assert_eq!(open(&ours, &mut marks), Ok(handed.clone()));
        assert_eq!(open(&ours, &mut marks), Err(RejectionReason::ResidueAgain));
        let fresh = &mut Marks::default();
        assert_eq!(open(&door(2, 2), fresh), Err(RejectionReason::ResidueForeign), "other digests");
        assert_eq!(open(&door(1, 3), fresh), Err(RejectionReason::ResidueForeign), "another width");
        assert_eq!(ours.open(&vec![0; MOST + 1], at, fresh), Err(RejectionReason::Oversized));
        assert_eq!(ours.open(b"nonsense", at, fresh), Err(RejectionReason::ResidueForeign));
        assert_eq!(fresh, &Marks::default(), "what is refused leaves no mark");
        let long = Handed { cells: vec!["x".repeat(MOST)], ..handed };
        assert_eq!(ours.seal(&long, sender, 0), None);
    }

    #[test]
    fn whoever_is_handed_on_at_a_time_meets() {
        assert_eq!(Door::partition(19_999, 4), Door::partition(10_000, 4));
        let turns: Vec<i32> = (0..5).map(|n| Door::partition(n * TURN_MS, 4)).collect();
        assert_eq!(turns, [0, 1, 2, 3, 0]);
        assert_eq!((Door::partition(-1, 4), Door::partition(7, 1)), (3, 0));
    }
}
