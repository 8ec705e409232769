//! The number of a copy of the state in its topic.

use super::keeper::FOLLOWED;
use super::seal::Keys;
use serde::{Deserialize, Serialize};

/// Which copy in its topic a directory is a cache of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Followed {
    /// A number drawn at random: the topic knows the copy by it.
    pub generation: u64,
    /// The one that it takes the place of; 0 where there was none.
    pub before: u64,
}

impl Followed {
    /// A new copy, which takes the place of `before`.
    pub(super) fn after(before: u64) -> Self {
        Self { generation: uuid::Uuid::new_v4().as_u64_pair().0.max(1), before }
    }
}

/// The sealed note of a state that no topic has yet.
pub(super) fn first(keys: &Keys) -> Vec<u8> {
    let plain = postcard::to_stdvec(&Followed::after(0)).expect("plain values always serialize");
    keys.sealer().seal(FOLLOWED, &plain)
}
