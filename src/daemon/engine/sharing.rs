//! What other instances of the group have released, taken into the ledger (decision 0054).
//!
//! The ledger changes by it at two moments only: before a batch is begun, and while nothing else is to be done; never while a batch is
//! to be repeated. It is on the disk with the intent of the batch at the latest. So a repeated batch sees what it was made with.

use super::batch_error::BatchError;
use super::clock::{Anchor, Moment, Reading};
use super::fields::Engine;
use super::others::{Shared, Sharing, Taken};
use crate::daemon::state::store::HeardUpTo;
use crate::faults::crash_point;
use crate::io::shared_ledger::{Feed, News, SharedLedgerError, SharedTerms};
use crate::ledger::SHARDS;
use crate::ledger::shared::Present;
use crate::telemetry::{Limit, LimitReached, SharedLedgerLate};
use crossbeam_channel::{RecvTimeoutError, TryRecvError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often whoever waits for the others looks whether the daemon is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long the first batch waits for all that the others have said. Whatever is not read then makes crowds smaller, and nothing worse.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of records taken in at a time, about: they are written at once.
const TAKEN_AT_A_TIME: u64 = 4 << 20;

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4)
}

impl Engine {
    /// Others are listened to in `topic` from here on; see [`heard`](Self::heard).
    pub fn listen_to(&mut self, topic: &str) {
        self.durable.store.listen_to(topic);
    }

    /// Others are heard by `feed` from here on, under `terms`, whose clocks may be `skew` apart; what they have released counts for `window`.
    pub fn share(&mut self, feed: Feed, terms: SharedTerms, (skew, window): (Duration, Duration)) {
        let skew_ms = milliseconds(skew);
        // Whoever reads them later than this goes by a clock that was set back by less than a window.
        let period_ms = milliseconds(2 * (window + skew)).max(1);
        for Anchor { age_ms, reading } in [self.durable.store.heard().anchor, self.durable.progress.anchor] {
            if reading != Reading::default() {
                self.durable.store.see_clocks(Present { wall_ms: reading.wall_ms, age_ms }, period_ms);
            }
        }
        self.sharing = Sharing(Some(Shared { feed, terms, skew_ms, period_ms, is_ready: false, next_shard: 0 }));
    }

    /// How far others have been heard.
    #[must_use]
    pub fn heard(&self) -> &HeardUpTo {
        self.durable.store.heard()
    }

    /// Another policy is in force for what others are told, and what counts of what they tell.
    pub(super) fn put_terms(&self, policy: &[u8; 32]) {
        if let Sharing(Some(shared)) = &self.sharing {
            shared.terms.put_policy(policy);
        }
    }

    /// Takes in what others have said, before a batch is begun that is not a repetition. The first one waits for all that there was at the
    /// start, for a while. `now` is asked for the present. False where `stop` came first.
    ///
    /// # Errors
    /// When nothing more can be read of it, or what is found at the start is foreign; or when the state fails.
    pub fn take_in_others(&mut self, now: &mut dyn FnMut() -> Moment, stop: &AtomicBool) -> Result<bool, BatchError> {
        let since = Instant::now();
        while let Sharing(Some(shared)) = &mut self.sharing
            && !shared.is_ready
        {
            if stop.load(Ordering::Acquire) {
                return Ok(false);
            }
            if since.elapsed() >= PATIENCE {
                SharedLedgerLate.emit();
                shared.is_ready = true;
                break;
            }
            match shared.feed.news.recv_timeout(LOOK) {
                Ok(news) => {
                    self.take_in(Some(news), now())?;
                    // What is written at once is bounded; the first batch has no part in it.
                    self.flush()?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(SharedLedgerError::Gone.into()),
            }
        }
        if self.sharing.0.is_some() {
            self.take_in(None, now())?;
        }
        Ok(true)
    }

    /// Takes in what others have said while there is nothing else to do. Not while a batch is to be repeated.
    ///
    /// # Errors
    /// As [`take_in_others`](Self::take_in_others).
    pub fn take_in_others_between_batches(&mut self, now: &mut dyn FnMut() -> Moment) -> Result<(), BatchError> {
        if self.sharing.0.is_some() { self.take_in(None, now()) } else { Ok(()) }
    }

    /// Takes in what has come by `now`, a bounded part of it, `first` before all else.
    fn take_in(&mut self, first: Option<News>, now: Moment) -> Result<(), BatchError> {
        let Sharing(Some(shared)) = &mut self.sharing else { return Ok(()) };
        self.durable.store.see_clocks(now.into(), shared.period_ms);
        self.durable.store.keep_clocks();
        let heard = self.durable.store.heard();
        let (present, erased_ms) = (heard.highest.present(now.into()), heard.erased_ms);
        let (mut taken, mut first) = (Taken::default(), first);
        while taken.bytes < TAKEN_AT_A_TIME {
            let news = match first.take().map_or_else(|| shared.feed.news.try_recv(), Ok) {
                Ok(news) => news,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(SharedLedgerError::Gone.into()),
            };
            match news {
                News::Heard(heard) => taken.take(heard, present, shared.skew_ms, erased_ms, &self.telemetry),
                News::Whole(places) => {
                    shared.is_ready = true;
                    taken.places = Some(places);
                }
                News::Failed(error) => return Err(error.into()),
            }
        }
        let Some(places) = taken.places else { return Ok(()) };
        let mut all = true;
        for delta in &taken.deltas {
            all &= self.ledger.learn(delta);
            self.ledger.expire(shared.next_shard, now.age_ms);
            shared.next_shard = (shared.next_shard + 1) % SHARDS;
        }
        if !all {
            LimitReached { limit: Limit::LedgerClasses }.emit(&self.telemetry);
        }
        self.durable.store.note_heard(&taken.deltas, places, now.anchor);
        crash_point("others-taken-in");
        Ok(())
    }
}
