//! Residue: records that find no crowd where they are, handed to another instance of the group.
//!
//! | room | what it holds |
//! |---|---|
//! | `record` | one sealed record |
//! | `marks` | what has been taken up of each sender, so that nothing is taken up twice |
//! | `door` | sealing on the way out, opening on the way in |
//!
//! The topic is one more topic of the source: the group divides it, and its offsets are committed with the batches (decision 0058).

mod door;
mod marks;
mod record;

pub use door::{Door, Residue};
pub use marks::Marks;
pub use record::{Handed, Sender};
