//! Requests of HTTP pages and other threads to the one that answers them.

use crate::telemetry::ReloadOutcome;
use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// A request, and the sender of its answer. It is dropped where the daemon ends first.
pub type Request<Q, A> = (Q, oneshot::Sender<A>);

/// Sends requests. Clones lead to the same thread.
pub struct Requests<Q, A> {
    // Unbounded, because only such a channel drops waiting requests, and so ends the wait for their answers, when its receiver goes.
    sender: Sender<Request<Q, A>>,
    max_waiting: usize,
}

/// Requests for a reload.
pub type ReloadRequests = Requests<(), ReloadAnswer>;

/// Answer to a reload request. Names of keys, places, reasons and remedies; never a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// Outcome of the attempt.
    pub outcome: ReloadOutcome,
    /// First digits of the digest of the policy that is in force now.
    pub policy: String,
    /// Keys that have changed.
    pub changed: Vec<String>,
    /// Reasons of a refusal.
    pub reasons: Vec<String>,
}

/// Cause of a request that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Too many wait already.
    Busy,
    /// The daemon is ending.
    Ending,
}

impl<Q, A> Clone for Requests<Q, A> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), max_waiting: self.max_waiting }
    }
}

impl<Q, A> Requests<Q, A> {
    /// Returns a sender, and the requests that it and its clones send. About `max_waiting` may wait: concurrent senders may exceed it by
    /// their number.
    #[must_use]
    pub fn channel(max_waiting: usize) -> (Self, Receiver<Request<Q, A>>) {
        let (sender, requests) = unbounded();
        (Self { sender, max_waiting }, requests)
    }

    /// Sends a request; the answer comes by the channel.
    pub fn send(&self, request: Q) -> Result<oneshot::Receiver<A>, NotTaken> {
        if self.sender.len() >= self.max_waiting {
            return Err(NotTaken::Busy);
        }
        let (answer, answered) = oneshot::channel();
        self.sender.send((request, answer)).map_err(|_| NotTaken::Ending)?;
        Ok(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_request_ends_with_the_receiver() {
        let (requests, receiver) = Requests::<u8, u8>::channel(1);
        let mut answered = requests.send(1).expect("there is room");
        assert_eq!(requests.send(2).err(), Some(NotTaken::Busy));
        drop(receiver);
        assert_eq!(answered.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(requests.send(3).err(), Some(NotTaken::Ending));
    }
}
