//! h-ceiling with counterfeits ([HCE]; docs/methods.md §15): off unless asked for.
//!
//! `release::ceiling` recounts what leaves, and shares none of this.

pub mod fill;
pub mod grouping;
pub mod partition;
pub mod search;
