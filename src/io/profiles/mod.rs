//! Subject profiles, joined to the records of a subject.

mod profile_decoder;
mod profile_feed;
mod profile_file;
mod profile_join;
mod profile_table;
mod profile_topic;

pub use profile_decoder::{ProfileDecoder, ProfileRevision, SUBJECT_COLUMN};
pub use profile_feed::{ProfileFeed, ProfileMessage, ProfileReadError};
pub use profile_file::{ProfileFile, ProfileFileContent};
pub use profile_join::{ProfileJoinCounts, join};
pub use profile_table::{ProfileCells, ProfileSetOutcome, ProfileTable};
pub use profile_topic::ProfileTopic;
