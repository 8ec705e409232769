//! Series state on disk, in sealed values.

use super::StateStore;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered_keys::{key_number, numbered_key};
use serde::de::DeserializeOwned;
use throng_core::series::{CohortState, OpenBucket, SeriesChanges, SeriesState, SharedSeriesState, SubjectState};

/// Key of the [`SharedSeriesState`].
pub const SERIES_HEAD: &[u8] = b"series-head";
/// Prefix of cohort keys, before the number.
pub const SERIES_COHORT_PREFIX: &str = "series-cohort";
/// Prefix of open-bucket keys, before the subject's digest.
pub const SERIES_OPEN_PREFIX: &str = "series-open";
/// Prefix of subject keys, before the digest.
pub const SERIES_SUBJECT_PREFIX: &str = "series-person";

impl StateStore {
    pub(super) fn write_series(&self, batch: &mut sled::Batch, changes: &SeriesChanges) {
        batch.insert(SERIES_HEAD, self.seal_for_write(SERIES_HEAD, &changes.head));
        for (subject, person) in &changes.people {
            let key = numbered_key(SERIES_SUBJECT_PREFIX, *subject);
            batch.insert(key.clone(), self.seal_for_write(&key, person));
        }
        for (subject, buckets) in &changes.open {
            let key = numbered_key(SERIES_OPEN_PREFIX, *subject);
            if buckets.is_empty() {
                batch.remove(key);
            } else {
                batch.insert(key.clone(), self.seal_for_write(&key, buckets));
            }
        }
        for (number, cohort) in &changes.cohorts {
            let key = numbered_key(SERIES_COHORT_PREFIX, u64::from(*number));
            batch.insert(key.clone(), self.seal_for_write(&key, cohort));
        }
    }

    pub(super) fn load_series(&self) -> Result<Option<SeriesState>, StateError> {
        let Some(head) = self.read::<SharedSeriesState>(SERIES_HEAD)? else { return Ok(None) };
        let people: Vec<(u64, SubjectState)> = self.read_series_entries(SERIES_SUBJECT_PREFIX)?;
        let open: Vec<(u64, Vec<OpenBucket>)> = self.read_series_entries(SERIES_OPEN_PREFIX)?;
        let cohorts: Vec<(u64, CohortState)> = self.read_series_entries(SERIES_COHORT_PREFIX)?;
        let cohorts = cohorts.into_iter().map(|(number, cohort)| (number as u32, cohort)).collect();
        let mut state = SeriesState::default();
        state.apply(SeriesChanges { head, people, open, cohorts });
        Ok(Some(state))
    }

    fn read_series_entries<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<(u64, T)>, StateError> {
        let entry = |(key, sealed): (Vec<u8>, sled::IVec)| {
            let number = key_number(&key).ok_or_else(|| self.damage_error("an entry of the series has no number"))?;
            Ok((number, self.open_value(&key, &sealed)?))
        };
        self.scan(name)?.into_iter().map(entry).collect()
    }
}
