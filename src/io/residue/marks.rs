//! What has been taken up of each sender in one partition.
//!
//! A sender writes to a partition in the order of its batches and numbers, so whatever does not rise is shown again. The marks are
//! committed with the offsets of the partition, in the words that an offset may have: whoever owns it next goes on with them.

use super::record::Sender;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::collections::BTreeMap;

/// Senders of a partition that are remembered at most. The brokers take words of 4096 bytes, and a mark has 48 of them.
const MOST: usize = 64;
/// Bytes of a mark.
const MARK: usize = 36;

/// The last record of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    sequence: u64,
    number: u32,
    stamp_ms: i64,
}

/// The last record of each sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<[u8; 16], Mark>);

impl Marks {
    /// Notes a record with this stamp. False where it, or one behind it, has been taken up before.
    #[must_use]
    pub fn take(&mut self, sender: Sender, stamp_ms: i64) -> bool {
        let Sender { instance, sequence, number } = sender;
        if self.0.get(&instance).is_some_and(|mark| (mark.sequence, mark.number) >= (sequence, number)) {
            return false;
        }
        self.0.insert(instance, Mark { sequence, number, stamp_ms });
        if self.0.len() > MOST
            && let Some(oldest) = self.0.iter().min_by_key(|(_, mark)| mark.stamp_ms).map(|(instance, _)| *instance)
        {
            self.0.remove(&oldest);
        }
        true
    }

    /// As the words of an offset.
    #[must_use]
    pub fn to_words(&self) -> String {
        let mut bytes = Vec::with_capacity(self.0.len() * MARK);
        for (instance, mark) in &self.0 {
            bytes.extend_from_slice(instance);
            bytes.extend_from_slice(&mark.sequence.to_be_bytes());
            bytes.extend_from_slice(&mark.number.to_be_bytes());
            bytes.extend_from_slice(&mark.stamp_ms.to_be_bytes());
        }
        STANDARD_NO_PAD.encode(bytes)
    }

    /// What such words say; nothing is known of words that are none of ours.
    #[must_use]
    pub fn from_words(words: &str) -> Self {
        let bytes = STANDARD_NO_PAD.decode(words).unwrap_or_default();
        let mark = |bytes: &[u8]| {
            let (instance, rest) = bytes.split_first_chunk::<16>()?;
            let (sequence, rest) = rest.split_first_chunk::<8>()?;
            let (number, stamp) = rest.split_first_chunk::<4>()?;
            let stamp_ms = i64::from_be_bytes(stamp.try_into().ok()?);
            let (sequence, number) = (u64::from_be_bytes(*sequence), u32::from_be_bytes(*number));
            Some((*instance, Mark { sequence, number, stamp_ms }))
        };
        Self(bytes.chunks_exact(MARK).take(MOST).filter_map(mark).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sender(instance: u8, sequence: u64, number: u32) -> Sender {
        Sender { instance: [instance; 16], sequence, number }
    }

    #[test]
    fn threat_39_nothing_is_taken_up_twice() {
        let mut marks = Marks::default();
        assert!(marks.take(sender(1, 3, 0), 0) && marks.take(sender(1, 3, 2), 0) && marks.take(sender(2, 1, 0), 0));
        assert!(!marks.take(sender(1, 3, 2), 0) && !marks.take(sender(1, 3, 1), 0) && !marks.take(sender(1, 2, 9), 0));
        let mut marks = Marks::from_words(&marks.to_words());
        assert!(!marks.take(sender(1, 3, 2), 0) && !marks.take(sender(2, 1, 0), 0), "nor by the next owner");
        assert!(marks.take(sender(1, 4, 0), 0) && marks.take(sender(2, 1, 1), 0));
        for words in ["", "words of somebody else", "AAAA", "ü"] {
            assert_eq!(Marks::from_words(words), Marks::default(), "{words}");
        }
    }

    proptest! {
        #[test]
        fn the_words_say_all_and_fit_an_offset(
            taken in prop::collection::vec((any::<u8>(), any::<u64>(), any::<u32>(), any::<i64>()), 0..200)
        ) {
            let mut marks = Marks::default();
            let _taken = taken.into_iter().filter(|&(i, s, n, at)| marks.take(sender(i, s, n), at)).count();
            let words = marks.to_words();
            prop_assert!(words.len() <= 4096 && words.is_ascii());
            prop_assert_eq!(Marks::from_words(&words), marks);
        }
    }
}
