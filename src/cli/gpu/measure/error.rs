//! Why a benchmark broke off.

use super::peer::PeerError;
use crate::counting::{ComputeError, DeviceError};
use crate::risk::adjacency::AdjacencyError;

/// Why a benchmark broke off.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Compute(#[from] ComputeError),
    #[error(transparent)]
    Model(#[from] AdjacencyError),
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("no threads for the CPU: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    #[error("on how many threads of the CPU? Name one number at least")]
    NoThreads,
}
