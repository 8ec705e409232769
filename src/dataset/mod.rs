//! One data set at once: read, search, treat, verify, write.
//!
//! What leaves is verified by the release room from its bytes, as a batch of the daemon is; nothing is written before.
//!
//! Codes lie in memory, or in a file without a name where they do not fit: the same code reads them block by block either way, and the release
//! is the same, byte for byte. What needs the records in memory is refused by name for a data set in a file.
//!
//! | file | what it holds |
//! |---|---|
//! | `anonymize`, `frontier` | the two ways through this wing |
//! | `source`, `room`, `refusals` | what is read and who attends, the memory for it, and what a data set in a file cannot be asked |
//! | `read`, `codes`, `data` | from the source to codes, and to the distinct records that a search sees |
//! | `models`, `search` | what is asked of every class, and the search for a policy |
//! | `kept`, `aggregate`, `support`, `hide` | the classes that leave, their aggregates, and what hides in sensitive columns |
//! | `ceiling` | the search and the settling under an h-ceiling with counterfeits |
//! | `parts`, `claims`, `release`, `lines` | what leaves, in parts that memory holds: verified, and written in order |
//! | `truthful` | a release with counterfeits read by its catalog |
//! | [`infer`] | a record schema proposed from records |
//! | `summary`, `error` | figures and words |

mod aggregate;
mod anonymize;
mod ceiling;
mod claims;
mod codes;
mod data;
mod error;
mod frontier;
mod hide;
pub mod infer;
mod kept;
mod lines;
mod models;
mod parts;
mod read;
mod refusals;
mod release;
mod room;
mod search;
mod source;
mod summary;
mod support;
#[cfg(test)]
mod tests;
mod truthful;

pub use aggregate::Aggregated;
pub use anonymize::anonymize;
pub use ceiling::Ceiled;
pub use error::AnonymizeError;
pub use frontier::{Point, frontier};
pub use release::{GROUP, files as files_written};
pub use source::{Attended, OnStep, Source, Step, Watch};
pub use summary::{Anonymized, People, RawRisk};
pub use truthful::{Applied, ApplyError, apply_catalog};
