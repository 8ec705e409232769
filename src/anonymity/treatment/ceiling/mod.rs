//! h-ceiling with counterfeits ([HCE]; docs/methods.md §15): off unless asked for.
//!
//! | file | what it holds |
//! |---|---|
//! | [`degree`] | D(r), how far a record is generalized |
//! | [`class`], [`partition`] | classes as the values they show; rows as classes |
//! | [`insertion`] | which values counterfeits show |
//! | [`grouping`] | which classes conceal whose counterfeits: Algorithm 2 |
//! | [`fill`] | the two together, for all classes of a policy |
//! | [`search`] | the policy of least reconstruction error: Algorithm 1 |
//!
//! `release::ceiling` recounts what leaves, and shares none of this.

pub mod class;
pub mod degree;
pub mod fill;
pub mod grouping;
pub mod insertion;
pub mod partition;
pub mod search;
