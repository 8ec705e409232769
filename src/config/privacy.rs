//! `[privacy]`: what a release promises.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PrivacyModel, quantity};

/// What a release promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// The smallest crowd: every released fragment shares its quasi values with at least k distinct subjects. At
    /// least 2.
    #[schemars(example = 5, extend("minimum" = 1))]
    pub k: usize,
    /// How long one line of a subject stands for the others in a group of attributes that do not change, and how long tenure
    /// and budgets of a subject are remembered. Above 0.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"24h")]
    pub release_window: Duration,
    /// People whom one adversary can invent or join hands with. Every count of subjects asks for as many more: the crowds of
    /// classes and of sensitive values, the smallest batch, the counting guard between groups, and the subjects that the
    /// values of a diverse class belong to. What the adversary adds then completes no crowd of `k`.
    #[schemars(example = 4)]
    pub colluders: usize,
    /// Classes of a group that a subject supports inside `release_window` at most; 0: any number. A subject beyond it still
    /// leaves, where others give it a crowd, and supports nobody: so invented people complete few crowds. What is
    /// remembered counts toward `state.max_budget_entries`; where it is full, nobody supports anything new.
    #[schemars(example = 0)]
    pub max_classes_per_subject: usize,
    /// Batches that a subject must have been in before one in which it supports others; 0: none. A subject that is not seen for
    /// `release_window` begins anew. Nothing leaves of a stream's first batches then.
    #[schemars(example = 0)]
    pub min_tenure: u32,
    /// How many batches a record may wait for a better crowd, where releasing it now would cost more than a twentieth of its cells; 0 holds none.
    #[schemars(example = 5)]
    pub max_hold_batches: u32,
    /// Lines of one subject that a batch releases at most, in each group of attributes that change from record to record;
    /// which of a subject's records that are does not depend on their order or values. The others are thinned: they do
    /// not leave in that group. 0: no limit. Needs a subject in the record schema, else every record is its own subject.
    #[schemars(example = 1)]
    pub max_lines_per_subject: usize,
    /// A group of attributes that do not change within a person (see `changes` in the record schema) says it once:
    /// per subject and `release_window` at most one line of it leaves, after a delay
    /// drawn at random between nothing and this. The longer it is, the less do times and batches tell whose lines
    /// belong together; as long as the window, nothing but who was there in that window. `0s`: such groups leave with
    /// every record, as all others do. Without it an hour, or the window where that is shorter. Needs a subject in the
    /// record schema.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("24h"))]
    pub max_delay: Option<Duration>,
    /// Models that every class must satisfy beside k. In a stream they hold for the sensitive values that a class shows
    /// in its batch, a subject counting once for each value; where they would not, the values are suppressed. A stream refuses
    /// δ-presence and k-map, and a k-anonymity that asks for more than `k`, which it implies up to there.
    #[schemars(example = Vec::<PrivacyModel>::new())]
    pub model: Vec<PrivacyModel>,
}

/// `privacy.max_delay` of a configuration that does not name it, where that is no longer than a line stands for the others.
const DELAY_UNLESS_GIVEN: Duration = Duration::from_hours(1);

impl Privacy {
    /// Distinct subjects that everything counts to: `k`, and the `colluders` beside them.
    #[must_use]
    pub fn crowd(&self) -> usize {
        self.k + self.colluders
    }
}

impl Default for Privacy {
    fn default() -> Self {
        Self {
            k: 5,
            release_window: Duration::from_hours(24),
            colluders: 0,
            max_classes_per_subject: 0,
            min_tenure: 0,
            max_hold_batches: 0,
            max_lines_per_subject: 1,
            max_delay: None,
            model: Vec::new(),
        }
    }
}

impl Privacy {
    /// The longest delay of a line in a group that does not change: `max_delay`, or the default, which is never longer than the line stands
    /// for the others.
    #[must_use]
    pub fn longest_delay(&self) -> Duration {
        self.max_delay.unwrap_or(DELAY_UNLESS_GIVEN.min(self.release_window))
    }
}
