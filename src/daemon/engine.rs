//! The engine: one batch from raw tokens to a committed release, and everything that it remembers.
//!
//! Nothing that is remembered changes before the batch has left: an aborted batch leaves the engine as it was (but for
//! dictionary entries, on which no output depends).
//!
//! | file | what it holds |
//! |---|---|
//! | `fields` | all that an engine knows and remembers |
//! | `configured`, `parts`, `assemble`, `prime`, `resume` | from a configuration and a state directory to an engine |
//! | `process`, `steps`, `gathered` | the steps of a batch |
//! | `ahead`, `input`, `joins`, `joining`, `turnout`, `repetition`, `draws`, `altering` | what comes before its treatment |
//! | `terms`, `protection`, `unjudged` | what its verification is told |
//! | `held`, `holding`, `settling` | what waits |
//! | `model`, `memory`, `misfits` | what is learned and forgotten |
//! | `erasing` | erasure of people while the daemon runs |
//! | `planning`, `search`, `recheck`, `rechecking` | the next plan, sought beside the release |
//! | `account`, `picture`, `audit` | what is told and recorded of a batch |
//! | `clock` | the time of a state |
//! | `settings`, `batch_error`, `doors` | what the rest of the daemon sees |

pub use ahead::{POLL_INTERVAL, Turn, Unseen, Upcoming};
pub use batch_error::BatchError;
pub use draws::Draws;
pub use fields::Engine;
pub use parts::{Blank, Parts, Past};
pub use settings::{EngineSettings, RepetitionSettings, SearchSettings};
pub use settling::Settling;

mod account;
mod ahead;
mod altering;
pub mod assemble;
pub mod audit;
mod batch_error;
pub mod clock;
mod configured;
mod doors;
mod draws;
mod erasing;
mod fields;
mod gathered;
pub mod held;
mod holding;
mod input;
mod joining;
mod joins;
mod memory;
mod misfits;
pub mod model;
mod parts;
pub mod picture;
mod planning;
pub mod prime;
mod process;
mod protection;
mod recheck;
mod rechecking;
mod repetition;
mod resume;
mod search;
mod settings;
mod settling;
mod steps;
pub mod terms;
mod turnout;
mod unjudged;
