//! Erasures that are asked for are done between two batches, while none is to be repeated.

use super::run::{Run, StreamError};
use crate::daemon::engine::Erasure;
use crate::daemon::errand::Errand;
use crate::faults::crash_point;
use crate::telemetry::ErasureFailed;

impl Run<'_> {
    /// Does the erasures that are asked for, if some are. While a batch is to be repeated they wait: that batch is what it was.
    pub(super) fn erase_who_is_named(&mut self) -> Result<(), StreamError> {
        if self.retry.is_some() {
            return Ok(());
        }
        self.erase_for_a_topic()?;
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

    /// Erases whoever a topic has named, once it is time.
    fn erase_for_a_topic(&mut self) -> Result<(), StreamError> {
        let Some(naming) = self.naming.as_mut() else { return Ok(()) };
        let Some(collected) = naming.collect()? else { return Ok(()) };
        if collected.people.is_empty() {
            self.engine.note_names_read(&collected.read)?;
            naming.settle(&collected);
            return Ok(());
        }
        match self.engine.erase_named(collected.people.clone(), &collected.read) {
            Erasure::Answered(Ok(_)) => {
                crash_point("erasure-unanswered");
                naming.settle(&collected);
            }
            Erasure::Answered(Err(error)) => {
                ErasureFailed { why: &error }.emit(self.telemetry);
                naming.wait_on(collected);
            }
            Erasure::Lost(error) => return Err(error.into()),
        }
        Ok(())
    }
}
