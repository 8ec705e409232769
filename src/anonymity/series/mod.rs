//! Statistics of locked cohorts over time (docs/methods.md §13).
//!
//! | module | content |
//! |---|---|
//! | `terms` | what the configuration asks for: signals, buckets, sizes |
//! | `state` | people, open buckets and cohorts: what survives the process |
//! | `propose`, `step` | one batch: contributions in, rows and changed entries out |
//! | `intake` | contributions of the records of a batch |
//! | `grouping` | groups of people who are alike (MDAV) |
//! | `cohorts` | admission, the draw of cohorts, retirement |
//! | `publish` | closing of buckets: fill, contributor sets, rows |
//! | `statistics` | mean, deviation, quartiles, dominance, rounding |
//! | `row` | a published row as JSON |

mod cohorts;
mod grouping;
mod intake;
mod propose;
mod publish;
mod row;
mod state;
mod statistics;
mod step;
mod terms;

pub use intake::Readings;
pub use propose::propose;
pub use publish::CARRY;
pub use row::{ColumnType, RowFormat, SeriesRow, columns};
pub use state::{
    Atom, Cohort, Head, History, Membership, OpenBucket, Partial, Participant, SeriesChanges, SeriesState, Totals,
};
pub use step::{Draw, SeriesProposal};
pub use terms::{CohortTerms, Cycle, DAY_MS, SeriesTerms, Signal, Terms};
