//! Multigrid node aggregation.

mod approximate;
mod attributes;
mod counts;
mod exact;
mod implications;
mod level;
mod stream;

pub use approximate::{Approximate, Strength};
pub use attributes::Attributes;
pub use counts::{Counts, Node};
pub use exact::Exact;
pub use level::Level;
pub use stream::Stream;

#[cfg(test)]
pub mod brute_force;
#[cfg(test)]
mod tests;
