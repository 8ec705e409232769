//! How far each partition has been read since it came or was last sought.
//!
//! The client may hand its last message out once more: it notes how far we are when a message is taken, and a pause of its own that falls
//! just before that note begins again with the same message (seen once in 27 million records, with two members and a broker that died).
//! Nothing else but a seek goes back.

use crate::io::input::Place;
use crate::io::residue::Marks;
use std::collections::BTreeMap;

/// What an offset is to what has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It follows.
    On,
    /// The last message once more.
    Again,
    /// It lies before that: the topic is not what it was.
    Back,
}

/// The next offset of each partition, where something of it has been taken.
#[derive(Default)]
pub(super) struct Followed {
    next: BTreeMap<Place, i64>,
    /// What has been taken up of a partition in which instances hand each other records.
    marks: BTreeMap<Place, Marks>,
}

impl Followed {
    /// What `offset` of `place` is.
    pub(super) fn step(&self, place: Place, offset: i64) -> Step {
        match self.next.get(&place) {
            Some(next) if offset + 1 == *next => Step::Again,
            Some(next) if offset < *next => Step::Back,
            _ => Step::On,
        }
    }

    /// Notes that a message was taken.
    pub(super) fn take(&mut self, place: Place, offset: i64) {
        self.next.insert(place, offset + 1);
    }

    /// A partition has gone; it may come back at another offset.
    pub(super) fn forget(&mut self, place: Place) {
        self.next.remove(&place);
        self.marks.remove(&place);
    }

    /// Every partition is sought.
    pub(super) fn clear(&mut self) {
        self.next.clear();
        self.marks.clear();
    }

    /// What has been taken up of a partition; none where that is not known yet.
    pub(super) fn marks(&mut self, place: Place) -> Option<&mut Marks> {
        self.marks.get_mut(&place)
    }

    /// Notes what had been taken up of a partition before it came.
    pub(super) fn know(&mut self, place: Place, marks: Marks) {
        self.marks.insert(place, marks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_seek_goes_back() {
        let (here, there) = ((0, 1), (0, 2));
        let mut followed = Followed::default();
        assert_eq!(followed.step(here, 7), Step::On, "wherever it begins");
        followed.take(here, 7);
        assert_eq!(followed.step(here, 7), Step::Again);
        assert_eq!(followed.step(here, 8), Step::On);
        assert_eq!(followed.step(here, 12), Step::On, "offsets have gaps");
        assert_eq!(followed.step(here, 6), Step::Back);
        assert_eq!(followed.step(there, 6), Step::On, "partitions are counted by themselves");
        followed.forget(here);
        assert_eq!(followed.step(here, 6), Step::On);
        followed.take(there, 6);
        followed.clear();
        assert_eq!(followed.step(there, 0), Step::On);
    }
}
