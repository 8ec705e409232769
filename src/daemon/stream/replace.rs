//! The swap of a policy, between two batches of the stream.

use crate::daemon::engine::Engine;
use crate::daemon::engine::assemble::{Options, state_clock};
use crate::daemon::engine::clock::StateClock;
use crate::daemon::errand::Errands;
use crate::daemon::reload::candidate::Candidate;
use crate::faults::crash_point;
use crate::io::closing::SharedLimits;
use crate::start::memory::closing;
use crossbeam_channel::Receiver;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a stream is asked for between two batches: policies that are to take the place of the one in force, and people to erase.
pub struct Replacements<'a> {
    /// Candidates; none where the daemon does not reload.
    pub candidates: Option<Receiver<Candidate>>,
    /// Erasures that are asked for.
    pub erasures: &'a Errands,
    /// By which the reader of the source closes batches.
    pub limits: SharedLimits,
    /// Of the start.
    pub options: &'a Options,
}

/// What a swap changes of the loop itself.
pub(super) struct Swap {
    pub clock: StateClock,
    pub max_age: Duration,
}

impl Replacements<'_> {
    /// Puts the engine of a candidate in the place of `engine`, where there is one. To be called between two batches, none of which is to
    /// be repeated. Where it cannot be, `engine` goes on.
    pub(super) fn swap(&self, engine: &mut Engine) -> Option<Swap> {
        let Candidate { checked, answer } = self.candidates.as_ref()?.try_recv().ok()?;
        let (start, config) = (Instant::now(), Arc::clone(&checked.config));
        let limits = closing(&config, &checked.schema);
        crash_point("reload-begun");
        let (swap, said) = match engine.successor(checked) {
            Ok(next) => {
                crash_point("reload-noted");
                *engine = next;
                self.limits.set(limits);
                let clock = state_clock(&config, self.options, engine, None);
                (Some(Swap { clock, max_age: config.batch.max_age }), Ok(start.elapsed()))
            }
            Err(error) => (None, Err(vec![error.to_string()])),
        };
        crash_point("reload-done");
        // Who has asked may have gone.
        drop(answer.send(said));
        swap
    }
}
