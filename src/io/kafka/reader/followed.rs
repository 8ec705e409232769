//! How far each partition has been read since it came or was last sought.
//!
//! The client may hand its last message out once more: it notes how far we are when a message is taken, and a pause of its own that falls
//! just before that note begins again with the same message (seen once in 27 million records, with two members and a broker that died).
//! Nothing else but a seek goes back. Another message at that offset is none of ours: the topic has lost what we have read, as after the
//! election of a leader that had not got it.

use crate::io::input::Place;
use hashbrown::DefaultHashBuilder;
use std::collections::BTreeMap;
use std::hash::BuildHasher;

/// What an offset is to what has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It follows.
    On,
    /// The last message once more.
    Again,
    /// It lies before that, or is another message there: the topic is not what it was.
    Back,
}

/// What makes a message another one: its time, key and value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'a>(pub Option<i64>, pub Option<&'a [u8]>, pub Option<&'a [u8]>);

/// The next offset of each partition, where something of it has been taken, and a digest of the message before it.
#[derive(Default)]
pub(super) struct Followed {
    places: BTreeMap<Place, (i64, u64)>,
    digests: DefaultHashBuilder,
}

impl Followed {
    fn digest(&self, Content(time, key, value): Content<'_>) -> u64 {
        self.digests.hash_one((time, key, value))
    }

    /// What the message at `offset` of `place` is.
    pub(super) fn step(&self, place: Place, offset: i64, content: Content<'_>) -> Step {
        match self.places.get(&place) {
            Some((next, last)) if offset + 1 == *next && self.digest(content) == *last => Step::Again,
            Some((next, _)) if offset < *next => Step::Back,
            _ => Step::On,
        }
    }

    /// Notes that a message was taken.
    pub(super) fn take(&mut self, place: Place, offset: i64, content: Content<'_>) {
        self.places.insert(place, (offset + 1, self.digest(content)));
    }

    /// A partition has gone; it may come back at another offset.
    pub(super) fn forget(&mut self, place: Place) {
        self.places.remove(&place);
    }

    /// Every partition is sought.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_seek_goes_back() {
        let (here, there) = ((0, 1), (0, 2));
        let message = Content(Some(5), None, Some(b"value"));
        let mut followed = Followed::default();
        assert_eq!(followed.step(here, 7, message), Step::On, "wherever it begins");
        followed.take(here, 7, message);
        assert_eq!(followed.step(here, 7, message), Step::Again);
        assert_eq!(followed.step(here, 8, message), Step::On);
        assert_eq!(followed.step(here, 12, message), Step::On, "offsets have gaps");
        assert_eq!(followed.step(here, 6, message), Step::Back);
        assert_eq!(followed.step(there, 6, message), Step::On, "partitions are counted by themselves");
        followed.forget(here);
        assert_eq!(followed.step(here, 6, message), Step::On);
        followed.take(there, 6, message);
        followed.clear();
        assert_eq!(followed.step(there, 0, message), Step::On);
    }

    /// A leader that had not got our last message has given its offset to the next one.
    #[test]
    fn another_message_at_the_last_offset_is_not_passed_over() {
        let (place, mut followed) = ((0, 1), Followed::default());
        let message = Content(Some(5), Some(b"key"), Some(b"value"));
        followed.take(place, 7, message);
        for other in [
            Content(Some(6), Some(b"key"), Some(b"value")),
            Content(None, Some(b"key"), Some(b"value")),
            Content(Some(5), Some(b"kez"), Some(b"value")),
            Content(Some(5), None, Some(b"value")),
            Content(Some(5), Some(b"key"), Some(b"valuf")),
            Content(Some(5), Some(b"key"), None),
        ] {
            assert_eq!(followed.step(place, 7, other), Step::Back, "{other:?}");
        }
        assert_eq!(followed.step(place, 7, message), Step::Again);
    }
}
