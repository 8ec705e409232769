//! Treatment: from the codes of a batch to a proposal of what may leave. Everything here is checked again by
//! `release::verify`, which shares none of this code.

pub mod budget;
pub mod crowd;
pub mod dampen;
mod diverse;
mod divert;
pub mod exclusion;
pub mod forced_pairs;
pub mod hide;
pub mod hold;
pub mod mask;
mod names;
pub mod population;
pub mod proposal;
pub mod recode;
mod sensitive;
pub mod spaces;
pub mod strict;
pub mod treat;
