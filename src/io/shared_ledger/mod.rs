//! The shared ledger: a topic in which the instances of one group tell each other what they have released.
//!
//! | room | what it holds |
//! |---|---|
//! | `terms` | what instances must have in common to count for each other |
//! | `record` | one sealed record |
//! | `teller` | what goes out with a batch's own transaction |
//! | `listener` | what the others have said, read on a thread of its own |
//! | `feed` | from that thread to the engine |
//!
//! It only ever adds to what an instance knows of its own; what is late, lost or refused makes crowds smaller (decision 0054).

mod feed;
mod listener;
mod record;
mod teller;
mod terms;

pub use feed::{Feed, Heard, News, Places, SharedLedgerError};
pub use listener::Listener;
pub use teller::Teller;
pub use terms::{SharedTerms, Terms};
