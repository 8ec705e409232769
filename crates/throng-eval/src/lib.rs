//! Utility and disclosure risk of a release, measured from original records, released lines and lineage. No code here
//! takes part in a release.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod attack;
pub mod error;
pub mod facts;
pub mod information;
pub mod joined_rows;
pub mod learning;
pub mod lineage;
pub mod original;
pub mod quality;
pub mod queries;
pub mod released_lines;
pub mod risk;
pub mod series;
pub mod singling_out;
