//! The release: the check of what is about to leave.
//!
//! Nothing here knows plans or treatments. [`verify::verify`] sees the encoded lines and the ledger, recounts, and is the
//! only way to a [`verified::Verified`], which is the only thing that a [`sink::Sink`] takes.

pub mod aggregates;
mod budget;
pub mod ceiling;
pub mod forced_pairs;
pub mod given;
mod hidden;
mod identifying;
pub mod invariants;
pub mod models;
pub mod narrowing;
pub mod parts;
pub mod population;
pub mod protected;
mod ranges;
mod recount;
pub mod repetition;
pub mod series;
mod series_bins;
mod series_means;
mod series_moments;
mod series_nested;
mod series_noise;
pub mod series_sums;
mod shared;
pub mod sink;
pub mod verified;
pub mod verify;
mod violation;
