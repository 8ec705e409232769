//! State that moves with its partition; erasure of subjects.

pub(crate) mod changelog;
pub(crate) mod live_erasure;
