//! State that moves with its partition, erasure of subjects, and the time of a state.

pub(crate) mod changelog;
pub mod clock;
pub(crate) mod live_erasure;
