//! Profiles of people: what changes slowly of a person, read from a topic or a file and kept to be joined to the person's records.
//!
//! | file | what it holds |
//! |---|---|
//! | `table` | [`Table`]: the profiles of at most so many people |
//! | `people` | [`People`]: from raw cells to a person's digest and canonical cells |
//! | `feed` | [`Feed`]: what a reader on a thread of its own has read |
//! | `topic`, `file` | the readers |

mod feed;
mod file;
mod people;
mod table;
mod topic;

pub use feed::{Feed, News, ProfilesError};
pub use file::FileOfProfiles;
pub use people::{People, Update};
pub use table::{Cells, Table, Taken};
pub use topic::TopicOfProfiles;
