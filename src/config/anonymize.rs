//! `[anonymize]`: one data set at once (`throng anonymize`).

use super::choice::choices;
use super::problem::Complaints;
use super::{Config, Diversity, ModelKind, quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

choices! {
    /// What the best policy has the best of.
    #[derive(Default, PartialOrd, Ord, strum::VariantArray)]
    enum Measure {
        /// Iyengar's Loss, arithmetic mean over the attributes; suppressed cells count 1.
        #[default]
        Loss = "loss",
        /// Loss, geometric mean over the attributes.
        LossGeometric = "loss_geometric",
        /// Sweeney's precision: 1 − mean level / height.
        Precision = "precision",
        /// Squared class sizes, and the size of the data for each suppressed record.
        Discernibility = "discernibility",
        /// Average size of the classes; the suppressed records are one.
        Aecs = "aecs",
        /// Non-uniform entropy in bits.
        Nue = "nue",
        /// Non-uniform entropy without what suppression costs.
        NueMonotonic = "nue_monotonic",
        /// Non-uniform entropy of each attribute as a share of losing it.
        NueNormalized = "nue_normalized",
        /// Kullback–Leibler divergence from the original in bits.
        KlDivergence = "kl_divergence",
    }
}

choices! {
    /// The way through the lattice. All find the same optimum.
    #[derive(Default, strum::VariantArray)]
    enum Strategy {
        /// Best first, then branch and bound: for lattices of any size, and under a time limit.
        #[default]
        Bfs = "bfs",
        /// Greedy chains with binary search; lattices up to 4 million policies, like all below.
        Flash = "flash",
        /// Flash in two phases.
        Flash2p = "flash2p",
        /// Every policy, nothing left out.
        Dfs = "dfs",
        /// Divide and conquer.
        Ola = "ola",
        /// Subsets of the attributes, small ones first.
        Incognito = "incognito",
    }
}

choices! {
    /// How records may be recoded.
    #[derive(Default)]
    enum Transformation {
        /// One policy for all records.
        #[default]
        FullDomain = "full_domain",
        /// A policy for the records that leave by it, another for those that it left, and so on. Better quality, and readers
        /// see levels mixed. Refused together with `delta_presence`.
        Local = "local",
    }
}

/// How `throng anonymize` looks for the policy of a data set; the daemon does not read this section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Anonymize {
    /// Share of the records that may be suppressed, 0 to 1.
    #[schemars(example = 0.05, extend("minimum" = 0, "maximum" = 1))]
    pub suppression_limit: f64,
    /// What the best policy has the best of.
    #[schemars(example = Measure::Loss)]
    pub measure: Measure,
    /// The way through the lattice.
    #[schemars(example = Strategy::Bfs)]
    pub strategy: Strategy,
    /// How long the search may take, all passes of `local` and all repetitions together; what leaves then is the best that
    /// was found. None: until it is proved.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = &"60s")]
    pub time_limit: Option<Duration>,
    /// An attribute of the schema whose value `true`, `1` or `yes` marks the records to be released; the others are
    /// the population that k-map and δ-presence count. It has the role insensitive, and does not leave. None: all are
    /// released.
    #[schemars(example = &"in_study")]
    pub released: Option<String>,
    /// How records may be recoded.
    #[schemars(example = Transformation::Local)]
    pub transformation: Transformation,
    /// Share of the records that the first pass of local recoding may leave, 0 to 1. Later passes take what they can, and
    /// what the last one leaves is suppressed: `suppression_limit` is the limit of that.
    #[schemars(example = 1.0, extend("minimum" = 0, "maximum" = 1))]
    pub pass_limit: f64,
    /// Micro-aggregation: quasi attributes of the type integer, or float with a rounding step. Classes are formed as always, then their
    /// members show the mean of their numbers instead of the interval. **Untruthful**: nobody need have the number that is shown, and a mean
    /// of k numbers tells the last to whoever knows the others. Means of fewer than k people are `*`. Refused together with
    /// `delta_presence`.
    #[schemars(example = ["age"])]
    pub microaggregation: Vec<String>,
    /// h-ceiling with counterfeits.
    pub ceiling: Ceiling,
}

impl Default for Anonymize {
    fn default() -> Self {
        Self {
            suppression_limit: 0.05,
            measure: Measure::Loss,
            strategy: Strategy::Bfs,
            time_limit: None,
            released: None,
            transformation: Transformation::FullDomain,
            pass_limit: 1.0,
            microaggregation: Vec::new(),
            ceiling: Ceiling::default(),
        }
    }
}

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
    pub fn is_on(&self) -> bool {
        self.lines.is_some()
    }
}

/// Complaints about `[anonymize]` and the keys of privacy models.
pub(super) fn anonymize(config: &Config, found: &mut Complaints) {
    let share = (0.0..=1.0).contains(&config.anonymize.suppression_limit);
    found.unless(share, "anonymize.suppression_limit", "a share is between 0 and 1", "give 0 to 1; 0.05 is usual");
    let time = config.anonymize.time_limit.is_none_or(|limit| limit > Duration::ZERO);
    found.unless(time, "anonymize.time_limit", "a search needs time", "give at least 1ms, or remove the key");
    let share = (0.0..=1.0).contains(&config.anonymize.pass_limit);
    found.unless(share, "anonymize.pass_limit", "a share is between 0 and 1", "give 0 to 1");
    presence(config, found);
    ceiling(config, found);
    for (index, model) in config.privacy.model.iter().enumerate() {
        for key in model.missing_keys() {
            let key = format!("privacy.model[{index}].{key}");
            found.unless(false, &key, "this model needs the key", "set it; docs/configuration.md has an example");
        }
    }
}

/// δ-presence speaks of everybody whom a class covers, present or not. A class that is absent says something of them too, and
/// an aggregate covers nobody.
fn presence(config: &Config, found: &mut Complaints) {
    if !config.privacy.model.iter().any(|model| model.kind == ModelKind::DeltaPresence) {
        return;
    }
    found.unless(
        config.anonymize.transformation == Transformation::FullDomain,
        "anonymize.transformation",
        "delta_presence does not hold for local recoding: that a class was left for a later pass tells who is present",
        "set \"full_domain\", or remove the model",
    );
    found.unless(
        config.anonymize.microaggregation.is_empty(),
        "anonymize.microaggregation",
        "delta_presence counts those whom the cells of a class cover, and an aggregate covers nobody",
        "remove it, or the model",
    );
}

/// A class of more lines than a ceiling can fill would be a mistake in the unit.
const MOST_LINES: usize = 1000;

/// What an h-ceiling goes with.
fn ceiling(config: &Config, found: &mut Complaints) {
    let (settings, ceiling) = (&config.anonymize, &config.anonymize.ceiling);
    let h = ceiling.h.is_none_or(|h| (0.0..=1.0).contains(&h));
    found.unless(h, "anonymize.ceiling.h", "a degree is between 0 and 1", "give 0 to 1, or remove the key");
    let share = (0.0..=1.0).contains(&ceiling.share);
    found.unless(share, "anonymize.ceiling.share", "a share is between 0 and 1", "give 0 to 1; 0.02 is usual");
    let Some(lines) = ceiling.lines else {
        let remedy = "set anonymize.ceiling.lines, which asks for the ceiling, or remove the key";
        found.unless(ceiling.h.is_none(), "anonymize.ceiling.h", "no ceiling is asked for", remedy);
        let none = ceiling.catalog.is_none();
        found.unless(none, "anonymize.ceiling.catalog", "there is no catalog without a ceiling", remedy);
        return;
    };
    found.unless(
        (config.privacy.crowd() + 1..=MOST_LINES).contains(&lines),
        "anonymize.ceiling.lines",
        "counterfeits count for no crowd, so a class has more lines than people it needs",
        "give more than privacy.k and privacy.colluders together, and at most 1000",
    );
    let full = settings.transformation == Transformation::FullDomain;
    let message = "a ceiling is kept by one policy for all records";
    found.unless(full, "anonymize.transformation", message, "set \"full_domain\", or remove anonymize.ceiling.lines");
    let message = "an aggregate is a number of members, and counterfeits have none";
    let remedy = "remove it, or anonymize.ceiling.lines";
    found.unless(settings.microaggregation.is_empty(), "anonymize.microaggregation", message, remedy);
    for (index, model) in config.privacy.model.iter().enumerate() {
        let holds = match model.kind {
            ModelKind::KAnonymity | ModelKind::KMap => true,
            ModelKind::LDiversity => model.diversity == Diversity::Distinct,
            ModelKind::TCloseness | ModelKind::DeltaPresence => false,
        };
        let key = format!("privacy.model[{index}].kind");
        let message = "counterfeits would change what a reader sees of this model in a class";
        let remedy =
            "remove it or anonymize.ceiling.lines; k_anonymity, k_map and distinct l_diversity go with a ceiling";
        found.unless(holds, &key, message, remedy);
    }
}
