//! The lattice search: against brute force on small random tables, and against what an established tool found on real
//! data.

mod data;
mod fuller;
mod limits;
mod properties;
mod recoding;
mod reference;
mod soundness;
mod twin;
