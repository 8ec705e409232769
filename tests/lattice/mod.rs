//! Lattice search against brute force, and against the results of an established tool on real data.

mod data;
mod fuller;
mod limits;
mod properties;
mod recoding;
mod reference;
mod soundness;
mod twin;
