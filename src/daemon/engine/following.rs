//! The state follows its instance: what was written goes with the next batch, and all of it where the topic has none of it, or somebody was
//! erased.

use super::batch_error::BatchError;
use super::fields::Engine;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::store::{Followed, Store};
use crate::faults::crash_point;
use crate::release::kept_sum::{KeptSum, StateChange};
use crate::release::sink::{DeliveryError, Keeping, Sink, parts_of};
use crate::telemetry::StateCopied;
use std::time::Instant;

/// Why a state is not in its topic.
pub(super) enum NotKept {
    State(StateError),
    Delivery(DeliveryError),
}

impl From<StateError> for NotKept {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<DeliveryError> for NotKept {
    fn from(error: DeliveryError) -> Self {
        Self::Delivery(error)
    }
}

impl From<NotKept> for BatchError {
    fn from(error: NotKept) -> Self {
        match error {
            NotKept::State(error) => error.into(),
            NotKept::Delivery(error) => Self::Fatal(error.to_string()),
        }
    }
}

/// What goes with the batch that has just been intended: what the topic lacks. More than goes with a batch is copied before it.
pub(super) fn going_along(store: &mut Store, sink: &mut dyn Sink) -> Result<Vec<StateChange>, NotKept> {
    if let Some(lacking) = store.lacking()? {
        return Ok(lacking);
    }
    let in_force = store.followed()?.map_or(0, |followed| followed.generation);
    copy(store, sink, in_force)?;
    Ok(store.lacking()?.unwrap_or_default())
}

/// Copies all values into the topic, where they take the place of the generation `in_force`, of which nothing stays. Until the last but
/// one step that one stays in force, and a start copies again.
fn copy(store: &mut Store, sink: &mut dyn Sink, in_force: u64) -> Result<(), NotKept> {
    let since = Instant::now();
    let generation = store.begin_copy(in_force)?;
    crash_point("state-copy-begun");
    let (mut several, mut values, mut kept) = (Vec::new(), 0, KeptSum::default());
    let mut last: Option<StateChange> = None;
    loop {
        let mut part = store.values_after(last.as_ref())?;
        if part.is_empty() {
            break;
        }
        sink.keep(Keeping::Part(generation, &part))?;
        values += part.len() as u64;
        kept = part.iter().fold(kept, KeptSum::with);
        let long = part.iter().map(|c| (c, parts_of(c.value.as_ref().map_or(0, Vec::len)))).filter(|(_, n)| *n > 1);
        several.extend(long.map(|(change, parts)| (change.tree, change.key.clone(), parts)));
        last = part.pop();
    }
    sink.keep(Keeping::InForce(generation, kept))?;
    sink.keep(Keeping::Clear(generation))?;
    let place = sink.keeps_in()?;
    store.end_copy(several, place)?;
    StateCopied { values, seconds: since.elapsed().as_secs_f64() }.emit();
    Ok(())
}

/// Copies all values into the topic, unless it has them: see [`Engine::keep_state`].
fn keep(store: &mut Store, sink: &mut dyn Sink, followed: Followed, in_force: Option<u64>) -> Result<(), NotKept> {
    let in_force = in_force.unwrap_or(followed.generation);
    let Some(before) = store.kept_in()?.filter(|_| followed.generation == in_force) else {
        return copy(store, sink, in_force);
    };
    let now = sink.keeps_in()?;
    if now.still_has(&before) {
        if now.end > before.end {
            store.note_place(now)?;
        }
        return Ok(());
    }
    tracing::warn!(
        topic = now.topic,
        partition = now.partition,
        before_topic = before.topic,
        before_partition = before.partition,
        "the state is not where it was kept, or not all of it: it is copied anew; what is still at the place before stays there"
    );
    copy(store, sink, in_force)
}

impl Engine {
    /// Makes sure that the topic, of which the copy `in_force` of the state is said to be, has all of it; nothing where no topic has the state. To be
    /// called before the first batch, and after an erasure (`None`: of the copy that was in force before).
    ///
    /// # Errors
    /// When the topic does not take it: the process must end, and the next start copies again.
    pub fn keep_state(&mut self, sink: &mut dyn Sink, in_force: Option<u64>) -> Result<(), BatchError> {
        let store = &mut self.durable.store;
        let Some(followed) = store.followed()? else { return Ok(()) };
        Ok(keep(store, sink, followed, in_force)?)
    }
}
