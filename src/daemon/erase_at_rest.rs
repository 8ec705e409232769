//! Somebody is forgotten while no daemon runs on the state.

use super::engine::assemble::{AtRest, open_at_rest};
use super::erasure::{Asked, ErasureError, Receipt, digests, erased};
use super::state::store::Pending;
use crate::records::digest::{DigestKey, NameDigest};
use crate::records::subject::Subjects;
use crate::start::checked::Checked;
use crate::telemetry::SubjectsErased;
use std::sync::Arc;
use std::time::Instant;

/// Takes those who are named out of the state that `checked` names. Whether a batch that was about to leave has left only a start
/// finds out: until then nothing is erased.
///
/// # Errors
/// [`ErasureError`]; [`StateError::Locked`](super::state::directory::StateError::Locked) where a daemon has the state.
pub fn erase_at_rest(checked: &Checked, asked: &Asked) -> Result<Receipt, ErasureError> {
    let start = Instant::now();
    let Checked { config, schema, shapes, .. } = checked;
    let AtRest { mut store, keys, .. } = open_at_rest(checked)?;
    let attribute = schema.subject.map(|a| Arc::clone(&schema.attributes[a]));
    let subjects = attribute.map(|attribute| Subjects::new(attribute, &DigestKey(keys.subjects)));
    let names = NameDigest::new(&DigestKey(keys.classes));
    let people = digests(asked, subjects.as_ref(), schema)?;
    let who = erased(people, shapes, schema, |name| names.digest(name));
    let window = config.plan.window_records as u64;
    let gone = store.erase(&who, window, Pending::Refuse, asked.dry_run, None)?;
    if !asked.dry_run {
        let (people, dropped) = (who.people() as u64, gone.dropped);
        SubjectsErased { people, by: "command", dropped, seconds: start.elapsed().as_secs_f64() }
            .emit(&checked.telemetry());
    }
    Ok(Receipt::new(who.people(), asked.dry_run, &gone))
}
