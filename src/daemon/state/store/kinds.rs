//! Kinds of values in the state: their keys, and how their plain bytes are read.

use super::binding::{ERASURE_POSITION, GROUPS, JOB, POLICY, SINK, STREAM, TopicPosition, UNTRUTHFUL};
use super::series::{COHORT, HEAD, OPEN, PERSON};
use super::{BASELINE, CHECK, EVIDENCE, INTENT, MET, PROGRESS};
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::series::{Cohort, Head, OpenBucket, Participant};
use crate::daemon::state::profile_journal::{PREFIX, VERSION, place_of};
use crate::daemon::state::records::{Intent, KeptRow, Progress};
use crate::daemon::state::rows::RowBlock;
use crate::io::profiles::Cells;
use crate::start::findings::Met;
use serde::de::DeserializeOwned;
use throng_core::ledger::delta::LedgerDelta;
use throng_core::ledger::supporters::SupportShard;

/// Kind of a value.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Whether plain bytes are a value of this kind.
    pub reads: fn(&[u8]) -> bool,
}

/// Name of the kind of keys that no version of this format writes.
pub const UNKNOWN: &str = "unknown";
/// Name of the kind of the check value, which is not sealed.
pub const CHECK_VALUE: &str = "check";

fn is<T: DeserializeOwned>(plain: &[u8]) -> bool {
    postcard::from_bytes::<T>(plain).is_ok()
}

/// Values with a fixed key.
const SINGLE: [(&[u8], Kind); 15] = [
    (CHECK, Kind { name: CHECK_VALUE, reads: |_| true }),
    (PROGRESS, Kind { name: "progress", reads: is::<Progress> }),
    (INTENT, Kind { name: "intent", reads: is::<Intent> }),
    (BASELINE, Kind { name: "baseline", reads: is::<Baseline> }),
    (EVIDENCE, Kind { name: "evidence", reads: is::<Evidence> }),
    (MET, Kind { name: "met", reads: is::<Met> }),
    (VERSION, Kind { name: "profiles", reads: is::<u64> }),
    (STREAM, Kind { name: "stream", reads: is::<String> }),
    (SINK, Kind { name: "sink", reads: is::<String> }),
    (GROUPS, Kind { name: "groups", reads: is::<String> }),
    (POLICY, Kind { name: "policy", reads: is::<[u8; 32]> }),
    (JOB, Kind { name: "job", reads: is::<[u8; 32]> }),
    (ERASURE_POSITION, Kind { name: "erasure-position", reads: is::<TopicPosition> }),
    (HEAD, Kind { name: "series-head", reads: is::<Head> }),
    (UNTRUTHFUL, Kind { name: "untruthful", reads: is::<bool> }),
];

/// Values with a number of eight bytes behind their name and a slash.
const NUMBERED: [Kind; 10] = [
    Kind { name: "delta", reads: is::<LedgerDelta> },
    Kind { name: "shard", reads: is::<(u64, SupportShard)> },
    Kind { name: "said", reads: is::<Vec<(u128, i64)>> },
    Kind { name: "sample", reads: is::<Vec<KeptRow>> },
    Kind { name: "held", reads: is::<KeptRow> },
    Kind { name: "plan", reads: is::<Plan> },
    Kind { name: COHORT, reads: is::<Cohort> },
    Kind { name: OPEN, reads: is::<Vec<OpenBucket>> },
    Kind { name: PERSON, reads: is::<Participant> },
    Kind { name: "reference", reads: is::<Vec<ReferenceCounts>> },
];

impl Kind {
    /// Returns the kind of a key in the tree of the window or in the other one.
    #[must_use]
    pub fn of(window: bool, key: &[u8]) -> Self {
        let numbered = |name: &str| {
            let number = key.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"/"));
            number.is_some_and(|number| number.len() == 8)
        };
        let found = if window {
            numbered("rows").then_some(Self { name: "rows", reads: is::<RowBlock> })
        } else if place_of(key).is_some() {
            Some(Self { name: PREFIX, reads: is::<Cells> })
        } else {
            let single = SINGLE.into_iter().find(|(whole, _)| *whole == key).map(|(_, kind)| kind);
            single.or_else(|| NUMBERED.into_iter().find(|kind| numbered(kind.name)))
        };
        found.unwrap_or(Self { name: UNKNOWN, reads: |_| false })
    }
}
