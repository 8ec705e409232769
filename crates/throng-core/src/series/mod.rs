//! Statistics of locked cohorts over time (docs/internals/methods.md §13).

mod batch_step;
mod bucket_closing;
mod charted_row;
mod cohort_formation;
mod contributions;
mod gaussian_noise;
mod grouping;
mod interval_bins;
mod moments;
mod nested_signals;
mod noise_budget;
mod noisy_rows;
mod partition_sums;
mod propose;
mod published_row;
mod record_intake;
mod series_entry;
mod series_watermark;
mod state;
mod statistics;
mod terms;

#[cfg(test)]
mod reference_tests;

pub use batch_step::{KeyedDraw, SeriesProposal};
pub use bucket_closing::CARRIED_SHARE;
pub use charted_row::PublishedMean;
pub use contributions::{BucketSums, PartitionContributions, ReceivedContributions, SubjectSums};
pub use noise_budget::{DELTA, GRID_STEPS, NoiseScale, divides_week, epsilon_of, noisy_mean, rho_of, to_grid};
pub use partition_sums::sum_contributions;
pub use propose::propose_series;
pub use published_row::{
    ColumnType, MomentStatistic, NoisyStatistic, RowFormat, RowStatistic, SeriesRow, bucket_label, decode_csv_text,
    series_columns,
};
pub use record_intake::SeriesReadings;
pub use series_entry::SeriesEntry;
pub use state::{
    CohortAtom, CohortMembership, CohortState, MomentEpochs, OpenBucket, PartialSum, SeriesChanges, SeriesCounts,
    SeriesState, SharedSeriesState, SourceFront, SourcePartition, SubjectChannelHistory, SubjectMoments, SubjectState,
    WeekSpent, digest_suffix,
};
pub use statistics::MeanStatistic;
pub use terms::{
    AllSeriesTerms, CohortTerms, DAY_MS, MAX_MOMENT_SIGNALS, MomentTerms, NoiseTerms, SeriesSignal, SeriesTerms,
    SlotCycle, moment_count,
};
