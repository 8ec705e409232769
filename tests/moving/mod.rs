//! Static and changing attributes: `attacks` joins fragments by repetition, `streams` runs random streams with all
//! faults.

mod attacks;
mod streams;
