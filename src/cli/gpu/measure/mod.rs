//! Both backends on the same work, and where one is named a peer: how long each takes.
//!
//! | file | what it holds |
//! |---|---|
//! | `case` | what can be measured |
//! | `stand` | what every work is measured on, and the floors of the device |
//! | `works` | each way of counting, alone |
//! | `tasks` | whole tasks: a search, a model, a batch that is checked again |
//! | `peer` | the same questions to another program |
//! | `run` | the cases one after the other |

mod case;
mod error;
mod peer;
mod run;
mod stand;
mod tasks;
mod works;

pub use case::Case;
pub use peer::OnPeer;
pub use run::measure;
pub use stand::{BenchQuestion, Measured};
