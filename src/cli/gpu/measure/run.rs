//! The cases one after the other, and at the end the peer.

use super::case::Case;
use super::error::BenchError;
use super::peer::{OnPeer, Peer};
use super::stand::{BenchQuestion, Measured, ROUNDS, Stand, fastest};
use super::tasks::{adjacency, batches, find_qid, recheck};
use super::works::counting;
use crate::counting::Device;
use crate::counting::cuda::Shape;
use std::sync::{Arc, Mutex};

/// Rows of the smallest table, however small the scale.
const LEAST_ROWS: usize = 200;

/// Measures the cases.
///
/// # Errors
/// When the device fails, or the question names no threads.
pub fn measure(
    device: &Arc<dyn Device>,
    question: &BenchQuestion,
    progress: &dyn Fn(&str),
) -> Result<Vec<Measured>, BenchError> {
    let peer = question.peer.as_deref().map(Peer::ready).transpose()?.map(Mutex::new);
    let stand = Stand { device, question, bandwidth: bandwidth(device)?, peer };
    let mut measured = Vec::new();
    for case in &question.cases {
        measured.extend(measured_case(*case, &stand, progress)?);
    }
    if let Some(peer) = &stand.peer {
        progress("the peer");
        hear(&peer.lock().expect("no question panics"), &mut measured);
    }
    Ok(measured)
}

/// One case, of tables of the size that it is meant for, times the scale.
fn measured_case(case: Case, stand: &Stand<'_>, tell: &dyn Fn(&str)) -> Result<Vec<Measured>, BenchError> {
    if case != Case::Counting {
        tell(case.name());
    }
    let rows = |rows: usize| ((rows as f64 * stand.question.scale) as usize).max(LEAST_ROWS);
    match case {
        Case::Counting => counting(stand, tell),
        Case::FindQid12 => find_qid(stand, "find-qid, 12 columns", rows(1_000_000), 12),
        Case::FindQid30 => find_qid(stand, "find-qid, 30 columns", rows(1_000_000), 30),
        Case::FindQid100 => find_qid(stand, "find-qid, 100 columns", rows(1_000_000), 100),
        Case::FindQid11 => find_qid(stand, "find-qid, 11 columns", rows(20_000_000), 11),
        Case::Adjacency => adjacency(stand, rows(1_000_000)),
        Case::AdjacencyBatches => Ok(vec![batches(stand, rows(10_000))?]),
        Case::Recheck => Ok(vec![recheck(stand, rows(1_000_000), rows(10_000))?]),
    }
}

/// Puts the answers of the peer beside the measurements. What was measured is told also where it fails.
fn hear(peer: &Peer, measured: &mut [Measured]) {
    let answers = peer.answers().unwrap_or_else(|error| {
        let failed = |work: &str| {
            let told = OnPeer { failure: Some(error.to_string()), ..OnPeer::default() };
            (work.to_owned(), told)
        };
        peer.works().map(failed).collect()
    });
    for (work, told) in answers {
        if let Some(measured) = measured.iter_mut().find(|measured| measured.work == work) {
            measured.peer = Some(told);
        }
    }
}

/// Bytes a second that a copy in the device's memory reads and writes.
fn bandwidth(device: &Arc<dyn Device>) -> Result<f64, BenchError> {
    let limits = device.limits();
    let bytes = (limits.free_bytes / 8).min(2 << 30) / 16 * 16;
    let addresses = [device.allocate(bytes)?, device.allocate(bytes)?];
    let measured = (|| {
        let [from, to] = addresses;
        let wait = || -> Result<(), BenchError> { Ok(device.collect(device.request(to, 8)?).map(|_| ())?) };
        let blocks =
            (bytes / 16).div_ceil(u64::from(limits.threads)).min(32 * u64::from(limits.multiprocessors)) as u32;
        let shape = Shape { columns: blocks.max(1), rows: 1, threads: limits.threads, shared_bytes: 0 };
        device.fill(from, bytes, 1)?;
        wait()?;
        fastest(ROUNDS, || {
            for _ in 0..8 {
                device.launch("copy", shape, &[from, to, bytes / 16])?;
            }
            wait()
        })
    })();
    addresses.into_iter().for_each(|address| device.free(address));
    Ok(8.0 * 2.0 * bytes as f64 / measured?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::cuda::emulator::Emulator;
    use std::time::Duration;

    #[test]
    fn every_work_agrees_on_the_emulated_device() {
        let device: Arc<dyn Device> = Emulator::start(256 << 20, 3);
        let question = BenchQuestion {
            cases: Case::ALL.to_vec(),
            rows: 300,
            scale: 0.000_3,
            threads: vec![1, 2],
            budget: Duration::from_secs(20),
            seed: 5,
            peer: None,
        };
        let measured = measure(&device, &question, &|_| {}).expect("there is room");
        assert_eq!(measured.len(), 12 + 4 * 3 + 2 + 1 + 1);
        for measured in measured {
            assert_eq!(measured.agrees, Some(true), "{measured:?}");
            assert!(measured.gpu_seconds > 0.0 && measured.bytes_floor_seconds > 0.0, "{measured:?}");
            assert!(
                !measured.cpu.is_empty() && measured.candidates > 0 && measured.bandwidth_share > 0.0,
                "{measured:?}"
            );
        }
    }
}
