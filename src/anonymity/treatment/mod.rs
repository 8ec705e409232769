//! Treatment: from the codes of a batch to a proposal of what may leave. Everything here is checked again by
//! `release::verify`, which shares none of this code.

pub mod alter;
pub mod budget;
pub mod ceiling;
pub mod crowd;
pub mod forced_pairs;
pub mod hide;
pub mod hold;
pub mod mask;
pub mod names;
pub mod proposal;
pub mod ranges;
pub mod recode;
mod sensitive;
pub mod treat;
