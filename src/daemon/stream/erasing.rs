//! Erasures that are asked for are done between two batches, while none is to be repeated.

use super::run::{Run, StreamError};
use crate::daemon::engine::Erasure;
use crate::daemon::errand::Errand;
use crate::faults::crash_point;

impl Run<'_> {
    /// Does the erasure that is asked for, if one is. While a batch is to be repeated it waits: that batch is what it was.
    pub(super) fn erase_who_is_named(&mut self) -> Result<(), StreamError> {
        if self.retry.is_some() {
            return Ok(());
        }
        let Ok(Errand { asked, answer }) = self.erasures.try_recv() else { return Ok(()) };
        match self.engine.erase(&asked) {
            Erasure::Answered(done) => {
                crash_point("erasure-unanswered");
                // Whoever asked may have gone: it is done all the same, and asking again finds nobody.
                drop(answer.send(done));
                Ok(())
            }
            Erasure::Lost(error) => Err(error.into()),
        }
    }
}
