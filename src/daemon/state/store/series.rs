//! State of the series on the disk: one sealed value for each person, each person's open buckets and each cohort, and one for the rest.

use super::Store;
use crate::anonymity::series::{Cohort, Head, OpenBucket, Participant, SeriesChanges, SeriesState};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered::{number_of, numbered};
use serde::de::DeserializeOwned;

/// Key of the [`Head`].
pub const HEAD: &[u8] = b"series-head";
/// Name of the keys of cohorts, by their number.
pub const COHORT: &str = "series-cohort";
/// Name of the keys of open buckets, by the digest of their person.
pub const OPEN: &str = "series-open";
/// Name of the keys of people, by their digest.
pub const PERSON: &str = "series-person";

impl Store {
    /// Adds the changed entries of a batch to a write.
    pub(super) fn write_series(&self, batch: &mut sled::Batch, changes: &SeriesChanges) {
        batch.insert(HEAD, self.seal(HEAD, &changes.head));
        for (subject, person) in &changes.people {
            let key = numbered(PERSON, *subject);
            batch.insert(key.clone(), self.seal(&key, person));
        }
        for (subject, buckets) in &changes.open {
            let key = numbered(OPEN, *subject);
            if buckets.is_empty() {
                batch.remove(key);
            } else {
                batch.insert(key.clone(), self.seal(&key, buckets));
            }
        }
        for (number, cohort) in &changes.cohorts {
            let key = numbered(COHORT, u64::from(*number));
            batch.insert(key.clone(), self.seal(&key, cohort));
        }
    }

    /// Reads the state of the series; none where no batch has had any.
    pub(super) fn load_series(&self) -> Result<Option<SeriesState>, StateError> {
        let Some(head) = self.read::<Head>(HEAD)? else { return Ok(None) };
        let people: Vec<(u64, Participant)> = self.entries(PERSON)?;
        let open: Vec<(u64, Vec<OpenBucket>)> = self.entries(OPEN)?;
        let cohorts: Vec<(u64, Cohort)> = self.entries(COHORT)?;
        let cohorts = cohorts.into_iter().map(|(number, cohort)| (number as u32, cohort)).collect();
        let mut state = SeriesState::default();
        state.apply(SeriesChanges { head, people, open, cohorts });
        Ok(Some(state))
    }

    fn entries<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<(u64, T)>, StateError> {
        let entry = |(key, sealed): (Vec<u8>, sled::IVec)| {
            let number = number_of(&key).ok_or_else(|| self.damaged("an entry of the series has no number"))?;
            Ok((number, self.open_value(&key, &sealed)?))
        };
        self.scan(name)?.into_iter().map(entry).collect()
    }
}
