//! What every work is measured on, and the two floors of the device: bytes that must move, operations that must be made.

use super::case::Case;
use super::error::BenchError;
use super::peer::{OnPeer, Peer, PeerQuestion};
use crate::counting::{CountedTable, Device};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Lanes that one multiprocessor serves in a cycle.
const LANES: f64 = 32.0;

/// Times that a short work is done; the fastest counts.
pub(super) const ROUNDS: usize = 3;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct BenchQuestion {
    pub cases: Vec<Case>,
    /// Rows of the tables of [`Case::Counting`].
    pub rows: usize,
    /// The rows of all other cases, as a share of what they are meant for.
    pub scale: f64,
    /// Threads of the CPU, one measurement each.
    pub threads: Vec<usize>,
    /// Time for each search for quasi-identifiers.
    pub budget: Duration,
    pub seed: u64,
    /// A program with its arguments, split at blanks, that answers the same questions (`benches/gpu/peer.py`).
    pub peer: Option<String>,
}

/// What a work took on some threads of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct OnCpu {
    pub threads: usize,
    pub seconds: f64,
}

/// One work, on both backends.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Measured {
    pub work: String,
    pub rows: u64,
    /// Sets of columns that were counted or judged.
    pub candidates: u64,
    pub cpu: Vec<OnCpu>,
    pub gpu_seconds: f64,
    /// How many times faster the device was than the last of `cpu`.
    pub speedup: f64,
    /// The bytes of the columns that the candidates read, once, over the bandwidth of the device's memory: bytes read and
    /// written in a second by a copy in it, measured in this run.
    pub bytes_floor_seconds: f64,
    /// That floor over what the device took: the share of the copy bandwidth that the work came to.
    pub bandwidth_share: f64,
    /// A lane and a cycle for every row of every candidate.
    pub operations_floor_seconds: f64,
    /// Were the answers equal, and the device's its own? `None` where the time for one of them ended first.
    pub agrees: Option<bool>,
    /// The same work by the peer, where one was named and knows this work.
    pub peer: Option<OnPeer>,
}

/// What a work is made of, for its floors.
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) candidates: u64,
    /// Of a row of the columns that are read.
    pub(super) row_bytes: u64,
}

/// The device and what is known of it.
pub(super) struct Stand<'b> {
    pub(super) device: &'b Arc<dyn Device>,
    pub(super) question: &'b BenchQuestion,
    /// Bytes a second.
    pub(super) bandwidth: f64,
    pub(super) peer: Option<Mutex<Peer>>,
}

impl Stand<'_> {
    pub(super) fn measured(
        &self,
        work: &str,
        size: &Size,
        cpu: Vec<OnCpu>,
        gpu_seconds: f64,
        agrees: Option<bool>,
    ) -> Measured {
        let limits = self.device.limits();
        let lanes = f64::from(limits.multiprocessors) * LANES * limits.clock_hertz as f64;
        let rows = size.rows as f64;
        let bytes_floor_seconds = rows * size.row_bytes as f64 / self.bandwidth;
        Measured {
            work: work.to_owned(),
            rows: size.rows as u64,
            candidates: size.candidates,
            speedup: cpu.last().map_or(f64::NAN, |cpu| cpu.seconds / gpu_seconds),
            cpu,
            gpu_seconds,
            bytes_floor_seconds,
            bandwidth_share: bytes_floor_seconds / gpu_seconds,
            operations_floor_seconds: rows * size.candidates as f64 / lanes,
            agrees,
            peer: None,
        }
    }

    /// Has the peer, where there is one, answer the same work at the end. `uploads`: the device's time includes the upload.
    pub(super) fn ask_peer(
        &self,
        work: &str,
        table: &CountedTable,
        asked: &PeerQuestion<'_>,
        uploads: bool,
    ) -> Result<(), BenchError> {
        let Some(peer) = &self.peer else { return Ok(()) };
        Ok(peer.lock().expect("no question panics").ask(work, table, asked, uploads)?)
    }

    /// The time on every number of threads, and the last answer. The pool of that many is the current one.
    pub(super) fn on_cpu<T: Send>(
        &self,
        rounds: usize,
        work: impl Fn(usize) -> Result<T, BenchError> + Sync,
    ) -> Result<(Vec<OnCpu>, T), BenchError> {
        let mut times = Vec::new();
        let mut answer = None;
        for &threads in &self.question.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
            let (seconds, found) = pool.install(|| fastest(rounds, || work(threads)))?;
            times.push(OnCpu { threads, seconds });
            answer = Some(found);
        }
        answer.map(|answer| (times, answer)).ok_or(BenchError::NoThreads)
    }
}

/// The fastest of some rounds, in seconds, and the last answer.
pub(super) fn fastest<T>(
    rounds: usize,
    mut work: impl FnMut() -> Result<T, BenchError>,
) -> Result<(f64, T), BenchError> {
    let mut best = f64::INFINITY;
    let mut answer = None;
    for _ in 0..rounds.max(1) {
        let started = Instant::now();
        answer = Some(work()?);
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok((best, answer.expect("at least one round")))
}
