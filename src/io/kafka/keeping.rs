//! A whole state goes to its topic: in transactions that carry nothing else, and no offsets.

use super::following::nowhere;
use super::marker::Marker;
use super::producer::classify;
use super::transaction::{Attempt, TransactionalSink};
use crate::faults::crash_point;
use crate::io::state_topic::spelling::Record;
use crate::release::sink::{DeliveryError, Keeping};
use rdkafka::producer::Producer;

/// Attempts at one step.
const ATTEMPTS: u32 = 5;
/// Records that go in one transaction.
const TOGETHER: usize = 100_000;

impl TransactionalSink {
    /// One step of keeping a whole state.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`]: nothing of the step is kept, and the copy before is in force; or whether it is cannot be told.
    pub(super) fn keep_state(&mut self, step: Keeping<'_>) -> Result<(), DeliveryError> {
        let Some(following) = &self.following else {
            return Err(nowhere());
        };
        match step {
            Keeping::Part(generation, values) => {
                let records = following.spell(generation, values);
                self.commit_state(&records, None)?;
                crash_point("state-part-kept");
            }
            Keeping::InForce(generation, kept) => {
                let marker = Marker { generation, kept, ..following.last };
                self.commit_state(&[], Some(marker))?;
                crash_point("state-in-force");
            }
            Keeping::Clear(generation) => {
                let others = following.topic.others(generation);
                let others = others.map_err(|error| DeliveryError::Fatal(error.to_string()))?;
                let gone: Vec<Record> = others.into_iter().map(|key| (key, None)).collect();
                for part in gone.chunks(TOGETHER) {
                    self.commit_state(part, None)?;
                    crash_point("state-part-cleared");
                }
            }
        }
        Ok(())
    }

    /// Commits a first marker of this transactional id, of a state that has had another id until now.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`].
    pub fn adopt(&mut self, marker: Marker) -> Result<(), DeliveryError> {
        self.commit_state(&[], Some(marker))
    }

    /// Commits `records`, and `marker` with them, where there is one.
    fn commit_state(&mut self, records: &[Record], marker: Option<Marker>) -> Result<(), DeliveryError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let producer = self.epochs.take(&self.stop)?;
            let attempt = Attempt { producer, sink: self };
            let outcome = match attempt.keep(records, marker).map_err(|error| attempt.named(error)) {
                Err(DeliveryError::Aborted(why)) => match attempt.abort() {
                    Ok(()) => Err(DeliveryError::Aborted(why)),
                    Err(failed) => Err(DeliveryError::Fatal(format!("{why}, and the abort failed: {failed}"))),
                },
                decided => decided,
            };
            let Attempt { producer, .. } = attempt;
            let before = self.following.as_ref().map(|following| following.last).unwrap_or_default();
            let last = marker.unwrap_or(before);
            match outcome {
                Ok(()) => {
                    self.epochs.renew(producer, last, Vec::new())?;
                    if let Some(following) = &mut self.following {
                        following.has_kept(last, records);
                    }
                    return Ok(());
                }
                Err(DeliveryError::Aborted(why)) if attempts < ATTEMPTS => {
                    tracing::warn!(why, "a part of the state was not taken: it is tried again");
                    self.epochs.renew(producer, last, Vec::new())?;
                }
                Err(DeliveryError::Aborted(why)) => return Err(DeliveryError::Fatal(why)),
                Err(fatal) => return Err(fatal),
            }
        }
    }
}

impl Attempt<'_> {
    fn keep(&self, records: &[Record], marker: Option<Marker>) -> Result<(), DeliveryError> {
        self.producer.begin_transaction().map_err(|e| classify(&e))?;
        self.send_state(records)?;
        marker.map_or(Ok(()), |marker| self.send_marker(marker, None))?;
        crash_point("state-produced");
        self.flush()?;
        self.commit()
    }
}
