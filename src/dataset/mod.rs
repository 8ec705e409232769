//! One data set at once: read, search, treat, verify, write.
//!
//! What leaves is verified by the release room from its bytes, as a batch of the daemon is; nothing is written before.
//!
//! | file | what it holds |
//! |---|---|
//! | `anonymize`, `frontier` | the two ways through this wing |
//! | `source` | what is read, and the room for it |
//! | `read`, `coded` | from a file to the records that a search sees |
//! | `models`, `search` | what is asked of every class, and the search for a policy |
//! | `ceiling` | the search and the settling under an h-ceiling with counterfeits |
//! | `hide`, `aggregate` | what becomes of sensitive values and of aggregated attributes |
//! | `beyond` | all of it for a data set that is larger than memory |
//! | `claims`, `write` | what verification is told, and the files that leave |
//! | `truthful` | a release with counterfeits read by its catalog |
//! | [`infer`] | a record schema proposed from records |
//! | `done`, `summary`, `attended`, `step`, `error` | figures and words |

mod aggregate;
mod anonymize;
mod attended;
mod beyond;
mod ceiling;
mod claims;
mod coded;
mod done;
mod error;
mod frontier;
mod hide;
pub mod infer;
mod models;
mod read;
mod search;
mod source;
mod step;
mod summary;
mod truthful;
mod write;

pub use aggregate::Aggregated;
pub use anonymize::anonymize;
pub use attended::{Attended, Watch};
pub use ceiling::Ceiled;
pub use done::Anonymized;
pub use error::AnonymizeError;
pub use frontier::{Point, frontier};
pub use source::Source;
pub use step::Step;
pub use summary::{People, RawRisk};
pub use truthful::{Applied, ApplyError, apply_catalog};
pub use write::files as files_written;
