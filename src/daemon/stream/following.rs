//! The start of an instance whose state is in a topic: the directory is used, made from the topic, or refused.

use super::run::StreamError;
use crate::config::{Config, Secret};
use crate::daemon::engine::BatchError;
use crate::daemon::run_error::RunError;
use crate::daemon::state::directory::{self, StateError};
use crate::daemon::state::restore::restore;
use crate::daemon::state::seal::Keys;
use crate::daemon::state::store::{Standing, Store};
use crate::faults::crash_point;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::following::Following;
use crate::io::kafka::marker::Marker;
use crate::io::kafka::transaction::TransactionalSink;
use crate::io::state_topic::{Spelling, StateTopic, StateTopicError};
use crate::telemetry::{StateRestored, Telemetry};
use std::time::Instant;

/// What is done with a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    /// It is in step with the topic, or is refused by the checks of every start.
    Use,
    /// The topic is ahead of it.
    Behind,
    /// It is the cache of another instance, whose volume this is.
    Other,
}

/// Whether the directory that stands at `standing` goes on behind `committed`, the last of `instance`.
fn judged(standing: &Standing, committed: Marker, instance: &str) -> Cache {
    let Marker { sequence, attempt, generation, .. } = committed;
    if standing.followed.is_some() && standing.id != instance {
        return Cache::Other;
    }
    let Some(followed) = standing.followed.filter(|_| generation > 0) else { return Cache::Use };
    // A copy of its own that was not finished takes the place of the one in force.
    if generation != followed.generation && generation != followed.before {
        return Cache::Behind;
    }
    let is_behind = match standing.intent {
        Some((intended, by)) => intended < sequence || intended == sequence && by != attempt,
        None => standing.sequence < sequence,
    };
    if is_behind { Cache::Behind } else { Cache::Use }
}

/// The state topic of a configuration; none where the directory is the state. A stand-in for a broker `is_asked` nothing of topics.
pub(super) fn topic(config: &Config, cluster: &Cluster, is_asked: bool) -> Result<Option<StateTopic>, RunError> {
    let (Some(instance), Some(secret)) = (config.state.follows(), config.secret.as_ref().map(Secret::expose)) else {
        return Ok(None);
    };
    let keys = Keys::derive(secret);
    let spelling = Spelling::new(&config.source.group, instance, &keys.followed.0, &keys.followed.1);
    Ok(Some(StateTopic::find(cluster, &config.state.topic, spelling, is_asked)?))
}

/// Makes the directory what the topic has, where it is not. `committed` is the last marker of the instance, final by now unless a process that
/// was between two epochs has taken the id back: `look` tells the one that is the last then.
pub(super) fn prepare(
    config: &Config,
    topic: &StateTopic,
    committed: Marker,
    look: &dyn Fn() -> Result<Marker, KafkaFailure>,
    telemetry: &Telemetry,
) -> Result<(), RunError> {
    let since = Instant::now();
    let path = &config.state.path;
    let secret = config.secret.as_ref().map(Secret::expose).unwrap_or_default();
    let is_state = path.join("format").try_exists();
    let is_state = is_state.map_err(|source| StateError::Io { path: path.clone(), source })?;
    let why = if is_state {
        let (store, _) = Store::existing(path, Some(secret))?;
        let standing = store.standing()?;
        let instance = config.state.follows().unwrap_or_default();
        match judged(&standing, committed, instance) {
            Cache::Use => {
                // Whatever is written from here on is marked anew.
                if standing.intent == Some((committed.sequence, committed.attempt)) {
                    store.has_left(committed.attempt)?;
                }
                return Ok(());
            }
            Cache::Behind => "the instance has run elsewhere since",
            Cache::Other => {
                let what = format!("it is that of {:?}", standing.id);
                return Err(
                    StateError::OtherInstance { path: path.clone(), instance: instance.to_owned(), what }.into()
                );
            }
        }
    } else if committed == Marker::default() {
        // A new instance; what a killed restore has left is in its way.
        return Ok(directory::clear_vacant(path)?);
    } else {
        "there is none"
    };
    if committed.generation == 0 {
        return Err(topic.missing().into());
    }
    tracing::warn!(path = %path.display(), why, "the state directory is made from its topic");
    // Before it is read: nobody else writes what is ours.
    let place = Some(topic.kept_in().map_err(StateTopicError::from)?);
    let kept = match topic.read(committed.generation, committed.kept) {
        // What is there is of a later batch: nothing is wrong with it.
        Err(error) if error.is_usage() && look()? != committed => return Err(topic.overtaken().into()),
        read => read?,
    };
    let values = kept.values.len() as u64;
    restore(path, secret, kept.values, place.filter(|_| kept.is_alone), committed.attempt)?;
    StateRestored { values, bytes: kept.bytes, seconds: since.elapsed().as_secs_f64() }.emit(telemetry);
    Ok(())
}

/// Whether the directory is a state that no topic has yet.
pub(super) fn is_unknown(config: &Config) -> Result<Option<Standing>, StateError> {
    let path = &config.state.path;
    if config.state.follows().is_none() || directory::must_exist(path).is_err() {
        return Ok(None);
    }
    let standing = Store::existing(path, config.secret.as_ref().map(Secret::expose))?.0.standing()?;
    Ok(Some(standing).filter(|standing| standing.followed.is_none()))
}

/// Makes a state that no topic has yet that of the instance. `before` is the last marker of the id that it has had, `own` that of the
/// instance. Gives the marker that the instance has then.
pub(super) fn adopt(
    config: &Config,
    standing: &Standing,
    (before, own): (Marker, Marker),
    sink: &mut TransactionalSink,
) -> Result<Marker, RunError> {
    let path = &config.state.path;
    let instance = config.state.follows().unwrap_or_default();
    let refused = |what: &str| StateError::OtherInstance {
        path: path.clone(),
        instance: instance.to_owned(),
        what: what.to_owned(),
    };
    if standing.intent.is_some() || before.sequence != standing.sequence {
        let what = "no topic has its state, and whether its last batch has left is not settled: start it once with state.kind = \"local\", and end it in order";
        return Err(refused(what).into());
    }
    let marker = Marker { sequence: standing.sequence, attempt: before.attempt, ..Marker::default() };
    if own != marker {
        if own != Marker::default() {
            return Err(refused("no topic has its state, and another state has this name").into());
        }
        sink.adopt(marker).map_err(|error| StreamError::from(BatchError::Fatal(error.to_string())))?;
    }
    crash_point("state-adopting");
    Store::adopt(path, config.secret.as_ref().map(Secret::expose), instance)?;
    crash_point("state-adopted");
    tracing::info!(path = %path.display(), instance, "the state follows its instance from here on");
    Ok(marker)
}

/// What the sink is to know of it.
pub(super) fn following(topic: StateTopic, last: Marker, telemetry: &Telemetry) -> Following {
    Following { topic, last, telemetry: telemetry.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::state::store::Followed;

    #[test]
    fn a_directory_is_used_where_it_is_in_step_and_made_anew_where_it_is_behind() {
        let committed = Marker { sequence: 7, attempt: 70, generation: 3, ..Marker::default() };
        let at = |generation, before, sequence, intent| Standing {
            id: "one".to_owned(),
            followed: Some(Followed { generation, before }),
            sequence,
            intent,
        };
        for (standing, cache) in [
            (at(3, 2, 7, None), Cache::Use),
            (at(3, 2, 6, Some((7, 70))), Cache::Use),
            (at(3, 2, 7, Some((8, 80))), Cache::Use),
            // A copy that was not finished.
            (at(4, 3, 7, None), Cache::Use),
            (at(3, 2, 6, Some((7, 71))), Cache::Behind),
            (at(3, 2, 5, Some((6, 60))), Cache::Behind),
            (at(3, 2, 6, None), Cache::Behind),
            (at(4, 3, 6, None), Cache::Behind),
            // Somebody was erased elsewhere.
            (at(2, 1, 7, None), Cache::Behind),
            (at(5, 2, 7, None), Cache::Behind),
            // Ahead: the checks of every start refuse it.
            (at(3, 2, 8, None), Cache::Use),
            (Standing { followed: None, ..at(0, 0, 7, None) }, Cache::Use),
        ] {
            assert_eq!(judged(&standing, committed, "one"), cache, "{standing:?}");
            let other = if standing.followed.is_some() { Cache::Other } else { Cache::Use };
            assert_eq!(judged(&standing, committed, "two"), other, "{standing:?}");
        }
        assert_eq!(judged(&at(3, 0, 0, None), Marker::default(), "one"), Cache::Use, "no topic has it yet");
    }
}
