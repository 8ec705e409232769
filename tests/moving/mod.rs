//! Static and changing attributes.
//!
//! Static values are released once per window after an individual delay; changing values have a limit of lines per
//! subject and batch. `attacks` joins fragments by repetition with and without these limits, and `streams` runs
//! random streams with all faults.

mod attacks;
mod streams;
