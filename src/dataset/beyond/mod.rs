//! A data set that is larger than memory: its codes lie in a file, and what leaves is verified part by part.
//!
//! The release is the one that the data set would have in memory, byte for byte: the same search over the same distinct records, the same
//! cells hidden, the same lines in the same order.
//!
//! | room | what it holds |
//! |---|---|
//! | [`anonymize`] | the way through |
//! | `refusals` | what needs the records in memory, told before they are read |
//! | `room` | what may be held |
//! | `file` | codes, and whom each record counts for, column by column |
//! | `data` | what is read, and its distinct records |
//! | `searched` | the search for a policy |
//! | `kept` | the classes that leave, and which record is in which |
//! | `support`, `hiding` | what hides in sensitive columns, with the records of few classes held |
//! | `parts` | the records that leave, in parts that memory holds |
//! | `release`, `lines` | parts verified, and their lines in order |

pub mod anonymize;
mod data;
mod file;
mod hiding;
mod kept;
mod lines;
mod parts;
mod refusals;
mod release;
mod room;
mod searched;
mod support;
#[cfg(test)]
mod tests;
