//! Position of each partition since its assignment or last seek. After an internal pause the client may deliver its
//! last message twice; another message there means lost records.

use hashbrown::DefaultHashBuilder;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use throng_core::stream::input_batch::InputPartition;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PositionCheck {
    NewMessage,
    Redelivered,
    Regressed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MessageContent<'a>(pub Option<i64>, pub Option<&'a [u8]>, pub Option<&'a [u8]>);

#[derive(Default)]
pub(super) struct PartitionPositions {
    places: BTreeMap<InputPartition, (i64, u64)>,
    digests: DefaultHashBuilder,
}

impl PartitionPositions {
    fn digest(&self, MessageContent(time, key, value): MessageContent<'_>) -> u64 {
        self.digests.hash_one((time, key, value))
    }

    pub(super) fn compare_position(
        &self,
        place: InputPartition,
        offset: i64,
        content: MessageContent<'_>,
    ) -> PositionCheck {
        match self.places.get(&place) {
            Some((next, last)) if offset + 1 == *next && self.digest(content) == *last => PositionCheck::Redelivered,
            Some((next, _)) if offset < *next => PositionCheck::Regressed,
            _ => PositionCheck::NewMessage,
        }
    }

    pub(super) fn advance_position(&mut self, place: InputPartition, offset: i64, content: MessageContent<'_>) {
        self.places.insert(place, (offset + 1, self.digest(content)));
    }

    pub(super) fn forget(&mut self, place: InputPartition) {
        self.places.remove(&place);
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_before_position_is_accepted_only_after_seek() {
        let (here, there) = ((0, 1), (0, 2));
        let message = MessageContent(Some(5), None, Some(b"value"));
        let mut followed = PartitionPositions::default();
        assert_eq!(followed.compare_position(here, 7, message), PositionCheck::NewMessage, "wherever it begins");
        followed.advance_position(here, 7, message);
        assert_eq!(followed.compare_position(here, 7, message), PositionCheck::Redelivered);
        assert_eq!(followed.compare_position(here, 8, message), PositionCheck::NewMessage);
        assert_eq!(followed.compare_position(here, 12, message), PositionCheck::NewMessage, "offsets have gaps");
        assert_eq!(followed.compare_position(here, 6, message), PositionCheck::Regressed);
        assert_eq!(
            followed.compare_position(there, 6, message),
            PositionCheck::NewMessage,
            "partitions are counted by themselves"
        );
        followed.forget(here);
        assert_eq!(followed.compare_position(here, 6, message), PositionCheck::NewMessage);
        followed.advance_position(there, 6, message);
        followed.clear();
        assert_eq!(followed.compare_position(there, 0, message), PositionCheck::NewMessage);
    }

    /// A leader that lacked the last message has reused its offset.
    #[test]
    fn different_message_at_last_offset_is_a_regression() {
        let (place, mut followed) = ((0, 1), PartitionPositions::default());
        let message = MessageContent(Some(5), Some(b"key"), Some(b"value"));
        followed.advance_position(place, 7, message);
        for other in [
            MessageContent(Some(6), Some(b"key"), Some(b"value")),
            MessageContent(None, Some(b"key"), Some(b"value")),
            MessageContent(Some(5), Some(b"kez"), Some(b"value")),
            MessageContent(Some(5), None, Some(b"value")),
            MessageContent(Some(5), Some(b"key"), Some(b"valuf")),
            MessageContent(Some(5), Some(b"key"), None),
        ] {
            assert_eq!(followed.compare_position(place, 7, other), PositionCheck::Regressed, "{other:?}");
        }
        assert_eq!(followed.compare_position(place, 7, message), PositionCheck::Redelivered);
    }
}
