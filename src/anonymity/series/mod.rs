//! Statistics of locked cohorts over time (docs/methods.md §13).
//!
//! | module | content |
//! |---|---|
//! | `terms` | what the configuration asks for: signals, buckets, sizes |
//! | `state` | people, open buckets and cohorts: what survives the process |
//! | `propose`, `step` | one batch: contributions in, rows and changed entries out |
//! | `intake` | contributions of the records of a batch |
//! | `sums`, `contributions` | the same as partial sums, on their way to another instance |
//! | `watermark` | up to which time buckets close |
//! | `grouping` | groups of people who are alike (MDAV) |
//! | `cohorts` | admission, the draw of cohorts, retirement |
//! | `publish` | closing of buckets: fill, contributor sets, rows |
//! | `bins` | shares in intervals, where a sum is dominated |
//! | `noise`, `noise_terms`, `noise_draw` | rows of everybody with differential privacy: closing, budget, draws |
//! | `moments` | means and covariances of all signals, for models |
//! | `statistics` | mean, deviation, quartiles, dominance, rounding |
//! | `row`, `drawn` | a published row as it is written, and for a chart |

mod bins;
mod cohorts;
mod contributions;
mod drawn;
mod grouping;
mod intake;
mod moments;
mod nested;
mod noise;
mod noise_draw;
mod noise_terms;
mod propose;
mod publish;
mod row;
mod state;
mod statistics;
mod step;
mod sums;
mod terms;
mod watermark;

#[cfg(test)]
mod twin_tests;

pub use contributions::{BucketSums, Contributions, PersonSums, Received};
pub use intake::Readings;
pub use noise_terms::{DELTA, GRID_STEPS, NoiseScale, divides_week, epsilon_of, noisy_mean, on_grid, rho_of};
pub use propose::propose;
pub use publish::CARRY;
pub use row::{ColumnType, MomentStatistic, NoisyStatistic, RowFormat, SeriesRow, Statistic, columns, read_text};
pub use state::{
    Atom, Cohort, Epochs, Head, History, Membership, OpenBucket, Partial, Participant, PersonMoments, SeriesChanges,
    SeriesState, SourceFront, SourcePartition, Totals, WeekSpent, digest_end,
};
pub use statistics::MeanStatistic;
pub use step::{Draw, SeriesProposal};
pub use sums::sum_up;
pub use terms::{
    CohortTerms, Cycle, DAY_MS, MAX_MOMENT_SIGNALS, MomentTerms, NoiseTerms, SeriesTerms, Signal, Terms, moment_count,
};
