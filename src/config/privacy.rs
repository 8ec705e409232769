//! `[privacy]`: what a release promises.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PrivacyModel, quantity};

/// Which raw tuples count toward a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recoding {
    /// A record takes the cheapest node of the ladder at which its class has support. Syntactic k-anonymity: where earlier
    /// batches support a class, an observer may exclude raw values that would have left finer.
    Ladder,
    /// Only raw tuples that an observer of ledger and ladder cannot exclude count toward a class. Costs nothing where
    /// `batch_crowd` is `k`.
    #[default]
    Strict,
}

/// What a release promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// The smallest crowd: every released fragment shares its quasi values with at least k distinct subjects. At
    /// least 2.
    #[schemars(example = 5, extend("minimum" = 1))]
    pub k: usize,
    /// How long a released fragment supports later ones. `0s`: the batch alone counts, for readers who watch arrival
    /// times. May not exceed the retention of the sink topic, since support must still be visible to readers.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"24h")]
    pub support_window: Duration,
    /// Distinct subjects that every class, and every sensitive value, needs in the batch that shows it, whatever was released
    /// before: the crowd that a reader sees who knows when a batch arrived. Models of sensitive attributes are asked of the
    /// batch alone, too, where it is above 0. Without it `k`; 0: support inside `support_window` is enough, for readers who do not see batches arrive. At most `k`.
    #[schemars(example = Some(5))]
    pub batch_crowd: Option<usize>,
    /// People whom one adversary can invent or join hands with. Every count of subjects asks for as many more: the support of
    /// classes and of sensitive values, `batch_crowd` above 0, the smallest batch, the counting guard between groups, and
    /// the subjects that the values of a diverse class belong to. What the adversary adds then completes no crowd of `k`.
    #[schemars(example = 4)]
    pub colluders: usize,
    /// Classes of a group that a subject supports inside `support_window` at most; 0: any number. A subject beyond it still
    /// leaves, where others give it a crowd, and supports nobody: so invented people complete few crowds. What is
    /// remembered counts toward `state.max_ledger_classes` by itself; where it is full, nobody supports anything new.
    #[schemars(example = 0)]
    pub max_classes_per_subject: usize,
    /// Batches that a subject must have been in before one in which it supports others; 0: none. A subject that is not seen for
    /// `support_window` begins anew. Nothing leaves of a stream's first batches then.
    #[schemars(example = 0)]
    pub min_tenure: u32,
    /// How many batches a record may wait for a better crowd, where releasing it now would cost more than a twentieth of its cells; 0 holds none.
    #[schemars(example = 5)]
    pub max_hold_batches: u32,
    /// Which raw tuples count toward a class.
    #[schemars(example = Recoding::Strict)]
    pub recoding: Recoding,
    /// Lines of one subject that a batch releases at most, in each group of attributes that change from record to record;
    /// which of a subject's records that are does not depend on their order or values. The others are thinned: they do
    /// not leave in that group. 0: no limit. Needs a subject in the record schema, else every record is its own subject.
    #[schemars(example = 1)]
    pub max_lines_per_subject: usize,
    /// A group of attributes that do not change within a person (see `changes` in the record schema) says it once:
    /// per subject and `support_window` at most one line of it leaves (24h where the window is `0s`), after a delay
    /// drawn at random between nothing and this. The longer it is, the less do times and batches tell whose lines
    /// belong together; as long as the window, nothing but who was there in that window. `0s`: such groups leave with
    /// every record, as all others do. Without it an hour, or the window where that is shorter. Needs a subject in the
    /// record schema.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("24h"))]
    pub max_delay: Option<Duration>,
    /// Models that every class must satisfy beside k. In a stream they hold for the sensitive values that a class shows
    /// inside `support_window`, a subject counting once for each value; where they would not, the values are
    /// suppressed. A stream refuses δ-presence, and a k-anonymity or k-map that asks for more than `k`, which it
    /// implies up to there. A k-map with a `population` is judged by that file, whatever its k.
    #[schemars(example = Vec::<PrivacyModel>::new())]
    pub model: Vec<PrivacyModel>,
}

/// `privacy.batch_crowd` of a configuration that does not name it, for its `k`.
fn default_batch_crowd(k: usize) -> usize {
    k
}

/// `privacy.max_delay` of a configuration that does not name it, where that is no longer than a line stands for the others.
const DELAY_UNLESS_GIVEN: Duration = Duration::from_hours(1);

impl Privacy {
    /// Distinct subjects that everything counts to: `k`, and the `colluders` beside them.
    #[must_use]
    pub fn crowd(&self) -> usize {
        self.k + self.colluders
    }

    /// Distinct subjects that a class needs in its own batch: `batch_crowd`, or the default, and the `colluders` beside
    /// them; 0 where it needs none.
    #[must_use]
    pub fn crowd_in_batch(&self) -> usize {
        match self.batch_crowd.unwrap_or_else(|| default_batch_crowd(self.k)) {
            0 => 0,
            crowd => crowd + self.colluders,
        }
    }
}

impl Default for Privacy {
    fn default() -> Self {
        Self {
            k: 5,
            support_window: Duration::from_hours(24),
            batch_crowd: None,
            colluders: 0,
            max_classes_per_subject: 0,
            min_tenure: 0,
            max_hold_batches: 0,
            recoding: Recoding::Strict,
            max_lines_per_subject: 1,
            max_delay: None,
            model: Vec::new(),
        }
    }
}

impl Privacy {
    /// How long one line of a subject stands for the others in a group that does not change: the support window, or a
    /// day where a batch stands alone.
    #[must_use]
    pub fn repetition_window(&self) -> Duration {
        if self.support_window.is_zero() { Duration::from_hours(24) } else { self.support_window }
    }

    /// The longest delay of a line in such a group: `max_delay`, or the default, which is never longer than the line stands
    /// for the others.
    #[must_use]
    pub fn longest_delay(&self) -> Duration {
        self.max_delay.unwrap_or(DELAY_UNLESS_GIVEN.min(self.repetition_window()))
    }
}
