//! Where a record came from.

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Where a record came from. Sources without partitions use partition 0; offsets of files count their lines or rows from 0.
///
/// Unique in a source: the records that are elements of one message differ by `element`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinate {
    /// Index into the source's list of topics (0 for a file).
    pub topic: u16,
    /// The partition, from 0; 0 for a file.
    pub partition: i32,
    /// The place in the partition; for a file the number of the line or row, from 0.
    pub offset: i64,
    /// 0 where the record is all of the message (or line); else the number of its element in the array, from 1.
    pub element: u32,
}

impl Coordinate {
    /// The index of the element in its array, as JSON pointers count; none where the record is all of its message.
    #[must_use]
    pub fn index(self) -> Option<u32> {
        self.element.checked_sub(1)
    }
}

/// A message as a whole is three numbers. Where there is an element it comes fourth, and the partition before it is written as its
/// complement, which is negative: what was written before there were elements is read as it is.
impl Serialize for Coordinate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.element == 0;
        let mut tuple = serializer.serialize_tuple(if whole { 3 } else { 4 })?;
        tuple.serialize_element(&self.topic)?;
        tuple.serialize_element(&if whole { self.partition } else { !self.partition })?;
        tuple.serialize_element(&self.offset)?;
        if !whole {
            tuple.serialize_element(&self.element)?;
        }
        tuple.end()
    }
}

impl<'de> Deserialize<'de> for Coordinate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Coordinate;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("three or four numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Coordinate, A::Error> {
                let short = |at| A::Error::invalid_length(at, &"three or four numbers");
                let topic = numbers.next_element()?.ok_or_else(|| short(0))?;
                let partition: i32 = numbers.next_element()?.ok_or_else(|| short(1))?;
                let offset = numbers.next_element()?.ok_or_else(|| short(2))?;
                if partition >= 0 {
                    return Ok(Coordinate { topic, partition, offset, element: 0 });
                }
                let element = numbers.next_element()?.filter(|element| *element > 0).ok_or_else(|| short(3))?;
                Ok(Coordinate { topic, partition: !partition, offset, element })
            }
        }
        deserializer.deserialize_tuple(4, Numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_place_is_read_as_it_was_written(topic: u16, partition in 0..i32::MAX, offset in 0..i64::MAX, element: u32) {
            let places = [Coordinate { topic, partition, offset, element }, Coordinate { topic, partition, offset, element: 0 }];
            let bytes = postcard::to_stdvec(&places).expect("numbers");
            prop_assert_eq!(postcard::from_bytes::<[Coordinate; 2]>(&bytes).expect("what was written"), places);
        }

        /// The places of states that were written before there were elements.
        #[test]
        fn a_message_as_a_whole_is_three_numbers(topic: u16, partition in 0..i32::MAX, offset: i64) {
            let bytes = postcard::to_stdvec(&(topic, partition, offset)).expect("numbers");
            let place = Coordinate { topic, partition, offset, element: 0 };
            prop_assert_eq!(&postcard::to_stdvec(&place).expect("numbers"), &bytes);
            prop_assert_eq!(postcard::from_bytes::<Coordinate>(&bytes).expect("numbers"), place);
        }
    }

    #[test]
    fn a_place_that_is_cut_off_is_refused() {
        let bytes = postcard::to_stdvec(&(1_u16, !7_i32, 9_i64)).expect("numbers");
        assert!(postcard::from_bytes::<Coordinate>(&bytes).is_err());
        let bytes = postcard::to_stdvec(&(1_u16, !7_i32, 9_i64, 0_u32)).expect("numbers");
        assert!(postcard::from_bytes::<Coordinate>(&bytes).is_err(), "the message as a whole is not spelled so");
    }
}
