//! Requests from HTTP pages and other threads to the thread that answers them.

use crate::telemetry::ReloadOutcome;
use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// A request and the sender for its answer. The sender is dropped if the daemon ends first.
pub type PendingRequest<Q, A> = (Q, oneshot::Sender<A>);

/// Request sender; clones send to the same thread.
pub struct RequestSender<Q, A> {
    // Unbounded: only such a channel drops queued requests with its receiver, which ends the wait for their answers.
    sender: Sender<PendingRequest<Q, A>>,
    max_waiting: usize,
}

/// Sender of reload requests.
pub type ReloadSender = RequestSender<(), ReloadAnswer>;

/// Answer to a reload request. It contains names of keys, places, reasons and remedies, never values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// Outcome of the attempt.
    pub outcome: ReloadOutcome,
    /// First digits of the digest of the policy now in force.
    pub policy: String,
    /// Keys that have changed.
    pub changed: Vec<String>,
    /// Reasons for a refusal.
    pub reasons: Vec<String>,
}

/// Cause of a rejected request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRejection {
    /// The queue is full.
    Busy,
    /// The daemon is shutting down.
    Ending,
}

impl<Q, A> Clone for RequestSender<Q, A> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), max_waiting: self.max_waiting }
    }
}

impl<Q, A> RequestSender<Q, A> {
    /// Returns a sender and the receiver of its requests. The queue holds about `max_waiting` requests; each
    /// concurrent sender may exceed this by one.
    #[must_use]
    pub fn channel(max_waiting: usize) -> (Self, Receiver<PendingRequest<Q, A>>) {
        let (sender, requests) = unbounded();
        (Self { sender, max_waiting }, requests)
    }

    /// Sends a request and returns the channel for its answer.
    pub fn send(&self, request: Q) -> Result<oneshot::Receiver<A>, RequestRejection> {
        if self.sender.len() >= self.max_waiting {
            return Err(RequestRejection::Busy);
        }
        let (answer, answered) = oneshot::channel();
        self.sender.send((request, answer)).map_err(|_| RequestRejection::Ending)?;
        Ok(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_request_ends_when_receiver_is_dropped() {
        let (requests, receiver) = RequestSender::<u8, u8>::channel(1);
        let mut answered = requests.send(1).expect("there is room");
        assert_eq!(requests.send(2).err(), Some(RequestRejection::Busy));
        drop(receiver);
        assert_eq!(answered.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(requests.send(3).err(), Some(RequestRejection::Ending));
    }
}
