//! `[anonymize.ceiling]`: h-ceiling with counterfeits ([HCE]).

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// h-ceiling with counterfeits, for `throng anonymize`: no record is generalized by more than `h`, and classes too small for
/// that get invented records, which a catalog beside the release counts and does not name. **Untruthful** without the catalog.
/// Counterfeits never count toward `privacy.k`. Off unless `lines` is given. The schema has exactly one sensitive attribute then,
/// and no insensitive one that leaves. `throng run` refuses it: no counterfeits are put into streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ceiling {
    /// Lines that every class shows at least, true and invented ones together: more than `privacy.k` and
    /// `privacy.colluders`, which count people. At most 1000. None: no ceiling, and nothing is invented.
    #[schemars(example = 10, extend("minimum" = 2, "maximum" = 1000))]
    pub lines: Option<usize>,
    /// How far a record may be generalized at most: the mean Loss of its quasi cells, 0 to 1. None: the one at which the
    /// reconstruction error is least.
    #[schemars(example = 0.3, extend("minimum" = 0, "maximum" = 1))]
    pub h: Option<f64>,
    /// Counterfeits at most, as a share of the records to be released, 0 to 1. Where that is too few, the smallest classes are
    /// suppressed as far as `suppression_limit` allows.
    #[schemars(example = 0.02, extend("minimum" = 0, "maximum" = 1))]
    pub share: f64,
    /// Where the catalog goes. Needed, here or as `--catalog`.
    #[schemars(example = &"adult.catalog.ndjson")]
    pub catalog: Option<PathBuf>,
}

impl Default for Ceiling {
    fn default() -> Self {
        Self { lines: None, h: None, share: 0.02, catalog: None }
    }
}

impl Ceiling {
    /// Whether it is asked for.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.lines.is_some()
    }
}
