//! h-ceiling with counterfeits (\[HCE]; docs/internals/methods.md §15), off by default.
//!
//! `release::ceiling` recounts the release and shares none of this code.

pub mod fill;
pub mod grouping;
pub mod partition;
pub mod search;
