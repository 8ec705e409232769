//! Kinds of values in the state: keys and decoding.

use super::state_binding::{ERASURE_POSITION, GROUPS, JOB_INPUT, POLICY, SINK, STREAM, TopicPosition, UNTRUTHFUL};
use super::stored_series::{SERIES_COHORT_PREFIX, SERIES_HEAD, SERIES_OPEN_PREFIX, SERIES_SUBJECT_PREFIX};
use super::{BASELINE, CHECK, EVIDENCE, FINDINGS_KEY, INTENT, PROGRESS};
use crate::daemon::state::profile_journal::{PROFILE_PREFIX, PROFILES_VERSION, parse_profile_key};
use crate::daemon::state::records::{BatchIntent, StoredRow, StreamProgress};
use crate::daemon::state::rows::RowBlock;
use crate::io::profiles::ProfileCells;
use crate::planner::closeness_counts::ReferenceCounts;
use crate::planner::drift::DriftBaseline;
use crate::start::run_findings::RunStatistics;
use serde::de::DeserializeOwned;
use throng_core::ledger::ledger_delta::LedgerDelta;
use throng_core::ledger::supporters::SupportShard;
use throng_core::plan::Plan;
use throng_core::plan::evidence::PlanEvidence;
use throng_core::series::{CohortState, OpenBucket, SharedSeriesState, SubjectState};

/// Kind of a value.
#[derive(Clone, Copy)]
pub struct StoredValueKind {
    /// Name of the kind.
    pub name: &'static str,
    /// Returns true if the plain bytes decode as this kind.
    pub reads: fn(&[u8]) -> bool,
}

/// Name of the kind of unknown keys.
pub const UNKNOWN_KIND: &str = "unknown";
/// Name of the kind of the unsealed check value.
pub const CHECK_VALUE_KIND: &str = "check";

fn decodes_as<T: DeserializeOwned>(plain: &[u8]) -> bool {
    postcard::from_bytes::<T>(plain).is_ok()
}

const FIXED_KEY_KINDS: [(&[u8], StoredValueKind); 15] = [
    (CHECK, StoredValueKind { name: CHECK_VALUE_KIND, reads: |_| true }),
    (PROGRESS, StoredValueKind { name: "progress", reads: decodes_as::<StreamProgress> }),
    (INTENT, StoredValueKind { name: "intent", reads: decodes_as::<BatchIntent> }),
    (BASELINE, StoredValueKind { name: "baseline", reads: decodes_as::<DriftBaseline> }),
    (EVIDENCE, StoredValueKind { name: "evidence", reads: decodes_as::<PlanEvidence> }),
    (FINDINGS_KEY, StoredValueKind { name: "met", reads: decodes_as::<RunStatistics> }),
    (PROFILES_VERSION, StoredValueKind { name: "profiles", reads: decodes_as::<u64> }),
    (STREAM, StoredValueKind { name: "stream", reads: decodes_as::<String> }),
    (SINK, StoredValueKind { name: "sink", reads: decodes_as::<String> }),
    (GROUPS, StoredValueKind { name: "groups", reads: decodes_as::<String> }),
    (POLICY, StoredValueKind { name: "policy", reads: decodes_as::<[u8; 32]> }),
    (JOB_INPUT, StoredValueKind { name: "job", reads: decodes_as::<[u8; 32]> }),
    (ERASURE_POSITION, StoredValueKind { name: "erasure-position", reads: decodes_as::<TopicPosition> }),
    (SERIES_HEAD, StoredValueKind { name: "series-head", reads: decodes_as::<SharedSeriesState> }),
    (UNTRUTHFUL, StoredValueKind { name: "untruthful", reads: decodes_as::<bool> }),
];

/// Name, slash and number of eight bytes.
const NUMBERED_KINDS: [StoredValueKind; 10] = [
    StoredValueKind { name: "delta", reads: decodes_as::<LedgerDelta> },
    StoredValueKind { name: "shard", reads: decodes_as::<(u64, SupportShard)> },
    StoredValueKind { name: "said", reads: decodes_as::<Vec<(u128, i64)>> },
    StoredValueKind { name: "sample", reads: decodes_as::<Vec<StoredRow>> },
    StoredValueKind { name: "held", reads: decodes_as::<StoredRow> },
    StoredValueKind { name: "plan", reads: decodes_as::<Plan> },
    StoredValueKind { name: SERIES_COHORT_PREFIX, reads: decodes_as::<CohortState> },
    StoredValueKind { name: SERIES_OPEN_PREFIX, reads: decodes_as::<Vec<OpenBucket>> },
    StoredValueKind { name: SERIES_SUBJECT_PREFIX, reads: decodes_as::<SubjectState> },
    StoredValueKind { name: "reference", reads: decodes_as::<Vec<ReferenceCounts>> },
];

impl StoredValueKind {
    /// Returns the kind of a key in the `window` or main tree.
    #[must_use]
    pub fn of(window: bool, key: &[u8]) -> Self {
        let numbered = |name: &str| {
            let number = key.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"/"));
            number.is_some_and(|number| number.len() == 8)
        };
        let found = if window {
            numbered("rows").then_some(Self { name: "rows", reads: decodes_as::<RowBlock> })
        } else if parse_profile_key(key).is_some() {
            Some(Self { name: PROFILE_PREFIX, reads: decodes_as::<ProfileCells> })
        } else {
            let single = FIXED_KEY_KINDS.into_iter().find(|(whole, _)| *whole == key).map(|(_, kind)| kind);
            single.or_else(|| NUMBERED_KINDS.into_iter().find(|kind| numbered(kind.name)))
        };
        found.unwrap_or(Self { name: UNKNOWN_KIND, reads: |_| false })
    }
}
