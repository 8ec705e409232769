//! Profiles of people: what changes slowly of a person, read from a topic or a file and kept to be joined to the person's records.
//!
//! | file | what it holds |
//! |---|---|
//! | `table` | [`Table`]: the profiles of at most so many people |
//! | `people` | [`People`]: from raw cells to a person's digest and canonical cells |
//! | `feed` | [`Feed`]: what a reader on a thread of its own has read |
//! | `topic`, `file` | the readers |
//! | `join` | the cells that they bring to records |

mod feed;
mod file;
mod join;
mod people;
mod table;
mod topic;

pub use feed::{Feed, News, ProfilesError};
pub use file::{FileOfProfiles, WholeFile};
pub use join::{JoinedCells, join};
pub use people::{PERSON, People, Update};
pub use table::{Cells, Table, Taken};
pub use topic::TopicOfProfiles;
