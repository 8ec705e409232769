//! Treatment: from the codes of a batch to a proposal of what may leave. Everything here is checked again by
//! `release::verify`, which shares none of this code.

pub mod crowd;
pub mod dampen;
pub mod exits;
pub mod forced_pairs;
pub mod hold;
pub mod proposal;
pub mod recode;
pub mod sightings;
pub mod strict;
pub mod treat;
