//! Models prepared to judge classes.

use super::closeness::GroundDistance;
use super::closeness::{ClosenessTarget, GroundMetric};
use super::decimal_ratio::DecimalRatio;
use super::diversity::{entropy_lost_records, recursive_lost_records};

/// Privacy model (docs/internals/methods.md §8). Attributes are indices of sensitive attributes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the symbols of the formula")]
pub enum ClassPrivacyModel {
    /// At least k subjects per class; k ≥ 1.
    KAnonymity { k: u64 },
    /// At least k subjects of the population per class; k ≥ 1.
    KMap { k: u64 },
    /// Requirement for sensitive values per class.
    Sensitive { attribute: usize, of: ValueRequirement<GroundMetric> },
    /// min ≤ released / population ≤ max in each released class; 0 ≤ min ≤ max ≤ 1.
    Presence { min: f64, max: f64 },
}

/// Limit of ℓ in a stream.
const MAX_CLASS_VALUES: usize = 1000;

/// Requirement for the sensitive values of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the symbols of the formula")]
pub enum ValueRequirement<G = GroundDistance> {
    /// At least ℓ values; ℓ ≥ 1.
    Distinct { l: usize },
    /// Entropy ≥ ln ℓ and ⌈ℓ⌉ values; ℓ ≥ 1.
    Entropy { l: f64 },
    /// r₁ < c·(r_ℓ + … + r_m) with descending counts r; 0 < c < 1000, ℓ ≥ 2.
    Recursive { c: f64, l: usize },
    /// Earth mover's distance ≤ t to the whole table, including suppressed records; 0 ≤ t ≤ 1.
    Closeness { t: f64, ground: G },
}

impl ValueRequirement {
    /// Values required of different subjects: ⌈ℓ⌉, or 0.
    pub fn required_representatives(&self) -> usize {
        match *self {
            Self::Distinct { l } | Self::Recursive { l, .. } => l,
            Self::Entropy { l } => l.ceil() as usize,
            Self::Closeness { .. } => 0,
        }
    }

    /// Returns true for closeness.
    pub fn needs_reference(&self) -> bool {
        matches!(self, Self::Closeness { .. })
    }

    /// Returns true for a hierarchical ground distance.
    pub fn needs_tree(&self) -> bool {
        matches!(self, Self::Closeness { ground: GroundDistance::Hierarchical, .. })
    }

    /// Checks the parameters for a stream.
    ///
    /// # Errors
    /// Invalid parameter and its range.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let unless = |sound: bool, parameter, range| if sound { Ok(()) } else { Err((parameter, range)) };
        match *self {
            Self::Distinct { l } => unless((2..=MAX_CLASS_VALUES).contains(&l), "l", "2 to 1000"),
            Self::Entropy { l } => unless(l > 1.0 && l <= MAX_CLASS_VALUES as f64, "l", "above 1 and at most 1000"),
            Self::Recursive { c, l } => {
                unless((2..=MAX_CLASS_VALUES).contains(&l), "l", "2 to 1000")?;
                unless(
                    DecimalRatio::from_decimal_text(c).is_some_and(|ratio| ratio.value() > 0.0),
                    "c",
                    "above 0 and below 1000",
                )
            }
            Self::Closeness { t, .. } => unless((0.0..1.0).contains(&t), "t", "at least 0 and below 1"),
        }
    }

    /// Adds `tree` to the ground distance ([`GroundMetric::Hierarchical`]).
    pub fn with_ground_metric(self, tree: &[Vec<u32>]) -> ValueRequirement<GroundMetric> {
        match self {
            Self::Distinct { l } => ValueRequirement::Distinct { l },
            Self::Entropy { l } => ValueRequirement::Entropy { l },
            Self::Recursive { c, l } => ValueRequirement::Recursive { c, l },
            Self::Closeness { t, ground: GroundDistance::Equal } => {
                ValueRequirement::Closeness { t, ground: GroundMetric::Equal }
            }
            Self::Closeness { t, ground: GroundDistance::Ordered } => {
                ValueRequirement::Closeness { t, ground: GroundMetric::Ordered }
            }
            Self::Closeness { t, ground: GroundDistance::Hierarchical } => {
                ValueRequirement::Closeness { t, ground: GroundMetric::Hierarchical(tree.to_vec()) }
            }
        }
    }
}

/// Reason for an invalid model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants and their fields")]
pub enum ClassModelError {
    #[error("{model}: {parameter} is out of range; give {range}")]
    Range { model: &'static str, parameter: &'static str, range: &'static str },
    #[error("{model} refers to sensitive attribute {attribute}, but the table has {present}; name an existing one")]
    NoAttribute { model: &'static str, attribute: usize, present: usize },
    #[error(
        "t_closeness: the ground tree of sensitive attribute {attribute} does not fit its values; build it from its hierarchy"
    )]
    Tree { attribute: usize },
}

impl ClassPrivacyModel {
    /// Name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::KAnonymity { .. } => "k_anonymity",
            Self::KMap { .. } => "k_map",
            Self::Sensitive { of: ValueRequirement::Closeness { .. }, .. } => "t_closeness",
            Self::Sensitive { .. } => "l_diversity",
            Self::Presence { .. } => "delta_presence",
        }
    }

    /// Sensitive attribute.
    pub fn attribute(&self) -> Option<usize> {
        match *self {
            Self::KAnonymity { .. } | Self::KMap { .. } | Self::Presence { .. } => None,
            Self::Sensitive { attribute, .. } => Some(attribute),
        }
    }
}

/// Sensitive values in the table.
#[derive(Clone, Debug, Default)]
pub struct SensitiveDomain {
    /// Records by value.
    pub counts: Vec<u64>,
    /// Rare values, released as `*` and not counted.
    pub rare: Vec<bool>,
}

/// Equivalence class.
#[derive(Clone, Copy, Debug)]
pub struct JudgedClass<'a> {
    /// Records to release.
    pub records: u64,
    /// Their subjects, or records.
    pub subjects: u64,
    /// Records of the population with these values.
    pub population: u64,
    /// Their subjects, or records.
    pub population_subjects: u64,
    /// Distinct values with counts, by sensitive attribute.
    pub values: &'a [Vec<(u32, u32)>],
}

/// Scratch memory per thread.
#[derive(Clone, Debug, Default)]
pub struct JudgeScratch {
    counts: Vec<u32>,
    surplus: Vec<i128>,
    values_without_rare: Vec<Vec<(u32, u32)>>,
}

#[derive(Clone, Debug)]
enum PreparedModel {
    KAnonymity(u64),
    KMap(u64),
    Distinct(usize, usize),
    Entropy(usize, f64),
    Recursive(usize, DecimalRatio, usize),
    Closeness(usize, DecimalRatio, ClosenessTarget),
    Presence(DecimalRatio, DecimalRatio),
}

/// Models prepared for a table; all must hold.
#[derive(Clone, Debug)]
pub struct ModelJudge {
    models: Vec<PreparedModel>,
    /// Minimal class size max(k, ⌈ℓ⌉): m of \[FL2] §2.7.
    pub(crate) smallest_class: u64,
    pub(crate) needs_values: bool,
    pub(crate) needs_population: bool,
    pub(crate) needs_subjects: bool,
    rare: Vec<Vec<bool>>,
}

impl ModelJudge {
    /// Prepares `models`.
    ///
    /// # Errors
    /// First parameter out of range, missing attribute, or invalid tree.
    pub fn new(models: &[ClassPrivacyModel], domains: &[SensitiveDomain]) -> Result<Self, ClassModelError> {
        let mut rare: Vec<Vec<bool>> = domains.iter().map(|domain| domain.rare.clone()).collect();
        if !rare.iter().flatten().any(|rare| *rare) {
            rare.clear();
        }
        let hides = !rare.is_empty();
        let mut judge = Self {
            models: Vec::new(),
            smallest_class: 1,
            needs_values: hides,
            needs_population: false,
            needs_subjects: hides,
            rare,
        };
        for model in models {
            let name = model.name();
            let unless = |sound: bool, parameter, range| {
                if sound { Ok(()) } else { Err(ClassModelError::Range { model: name, parameter, range }) }
            };
            if let Some(attribute) = model.attribute().filter(|&a| a >= domains.len()) {
                return Err(ClassModelError::NoAttribute { model: name, attribute, present: domains.len() });
            }
            judge.needs_values |= model.attribute().is_some();
            let ratio = |value: f64, parameter, range| {
                DecimalRatio::from_decimal_text(value).ok_or(ClassModelError::Range { model: name, parameter, range })
            };
            let prepared = match model {
                &ClassPrivacyModel::KAnonymity { k } => {
                    unless(k >= 1, "k", "1 or more")?;
                    judge.needs_subjects = true;
                    PreparedModel::KAnonymity(k)
                }
                &ClassPrivacyModel::KMap { k } => {
                    unless(k >= 1, "k", "1 or more")?;
                    judge.needs_population = true;
                    judge.needs_subjects = true;
                    PreparedModel::KMap(k)
                }
                ClassPrivacyModel::Sensitive { attribute, of } => match of {
                    &ValueRequirement::Distinct { l } => {
                        unless(l >= 1, "l", "1 or more")?;
                        PreparedModel::Distinct(*attribute, l)
                    }
                    &ValueRequirement::Entropy { l } => {
                        unless((1.0..1e9).contains(&l), "l", "1 to a billion")?;
                        PreparedModel::Entropy(*attribute, l)
                    }
                    &ValueRequirement::Recursive { c, l } => {
                        unless(c > 0.0, "c", "above 0 and below 1000")?;
                        unless(l >= 2, "l", "2 or more")?;
                        PreparedModel::Recursive(*attribute, ratio(c, "c", "above 0 and below 1000")?, l)
                    }
                    ValueRequirement::Closeness { t, ground } => {
                        unless((0.0..=1.0).contains(t), "t", "0 to 1")?;
                        let counts = domains[*attribute].counts.clone();
                        if !is_ground_tree_valid(ground, counts.len()) {
                            return Err(ClassModelError::Tree { attribute: *attribute });
                        }
                        let reference = ClosenessTarget::new(counts, ground.clone());
                        PreparedModel::Closeness(*attribute, ratio(*t, "t", "0 to 1")?, reference)
                    }
                },
                &ClassPrivacyModel::Presence { min, max } => {
                    unless((0.0..=1.0).contains(&min), "min", "0 to 1")?;
                    unless(min <= max && max <= 1.0, "max", "min to 1")?;
                    judge.needs_population = true;
                    PreparedModel::Presence(ratio(min, "min", "0 to 1")?, ratio(max, "max", "min to 1")?)
                }
            };
            judge.smallest_class = judge.smallest_class.max(match &prepared {
                PreparedModel::KAnonymity(k) => *k,
                PreparedModel::Distinct(_, l) | PreparedModel::Recursive(_, _, l) => *l as u64,
                PreparedModel::Entropy(_, l) => l.ceil() as u64,
                PreparedModel::KMap(_) | PreparedModel::Closeness(..) | PreparedModel::Presence(..) => 1,
            });
            judge.models.push(prepared);
        }
        Ok(judge)
    }

    /// Returns true if large enough for k-anonymity and k-map.
    pub fn has_enough_members(&self, class: &JudgedClass<'_>) -> bool {
        class.records >= self.smallest_class
            && self.models.iter().all(|model| match model {
                PreparedModel::KAnonymity(k) => class.subjects >= *k,
                PreparedModel::KMap(k) => class.population_subjects >= *k,
                _ => true,
            })
    }

    /// None if all models hold; otherwise the **least** suppressed records under any split (may be 0).
    pub fn lost_records(&self, class: &JudgedClass<'_>, room: &mut JudgeScratch) -> Option<u64> {
        if self.rare.is_empty() {
            return self.lost_records_ignoring_rare(class, room);
        }
        // A `*` of more than half of a class would reveal its value. Accepted parts contain at most half; others the
        // excess.
        let mut lost: Option<u64> = None;
        let mut shown = std::mem::take(&mut room.values_without_rare);
        shown.resize(class.values.len(), Vec::new());
        for ((values, rare), shown) in class.values.iter().zip(&self.rare).zip(&mut shown) {
            shown.clear();
            for &(value, count) in values {
                if !rare.get(value as usize).copied().unwrap_or(false) {
                    shown.push((value, count));
                } else if 2 * u64::from(count) > class.subjects {
                    lost = lost.max(Some((2 * u64::from(count)).saturating_sub(class.records)));
                }
            }
        }
        let others = self.lost_records_ignoring_rare(&JudgedClass { values: &shown, ..*class }, room);
        room.values_without_rare = shown;
        lost.max(others)
    }

    fn lost_records_ignoring_rare(&self, class: &JudgedClass<'_>, room: &mut JudgeScratch) -> Option<u64> {
        let mut lost: Option<u64> = None;
        for model in &self.models {
            if let Some(more) = model.lost_records_by_model(class, room) {
                lost = Some(lost.unwrap_or(0).max(more));
                if more >= class.records {
                    break;
                }
            }
        }
        lost
    }
}

fn is_ground_tree_valid(ground: &GroundMetric, values: usize) -> bool {
    let GroundMetric::Hierarchical(levels) = ground else { return true };
    let mut nodes = values;
    for parents in levels {
        if parents.len() != nodes {
            return false;
        }
        nodes = parents.iter().max().map_or(0, |&p| p as usize + 1);
    }
    nodes <= 1 && !levels.is_empty()
}

impl PreparedModel {
    fn lost_records_by_model(&self, class: &JudgedClass<'_>, room: &mut JudgeScratch) -> Option<u64> {
        let all = |fails: bool| fails.then_some(class.records);
        match self {
            // Parts have no additional subjects, population or values.
            Self::KAnonymity(k) => all(class.subjects < *k),
            Self::KMap(k) => all(class.population_subjects < *k),
            Self::Distinct(attribute, l) => all(class.values[*attribute].len() < *l),
            Self::Entropy(attribute, l) => entropy_lost_records(descending_counts(&class.values[*attribute], room), *l),
            Self::Recursive(attribute, c, l) => {
                recursive_lost_records(descending_counts(&class.values[*attribute], room), *c, *l)
            }
            Self::Closeness(attribute, t, reference) => {
                let (part, whole) = reference.distance(&class.values[*attribute], &mut room.surplus);
                if t.is_at_least_quotient(part, whole) {
                    return None;
                }
                // By convexity, the weighted mean of parts is at least D. Accepted parts have at most t, others at most
                // 1, so others are at least (D − t)/(1 − t) of the records.
                let (distance, t) = (part as f64 / whole as f64, t.value());
                let share = (distance - t) / (1.0 - t);
                let shown: u64 = class.values[*attribute].iter().map(|&(_, count)| u64::from(count)).sum();
                let records = (shown as f64 * share * (1.0 - 1e-9)).ceil().max(1.0);
                Some((records as u64).min(class.records))
            }
            Self::Presence(min, max) => {
                let (part, whole) = (u128::from(class.records), u128::from(class.population));
                if !max.is_at_least_quotient(part, whole) {
                    // Accepted parts release at most max.
                    return Some(class.records - max.floor_of(class.population).min(class.records));
                }
                // A part without unreleased population may be accepted.
                min.is_above_quotient(class.records, class.population).then_some(0)
            }
        }
    }
}

fn descending_counts<'a>(values: &[(u32, u32)], room: &'a mut JudgeScratch) -> &'a [u32] {
    room.counts.clear();
    room.counts.extend(values.iter().map(|&(_, count)| count));
    room.counts.sort_unstable_by(|a, b| b.cmp(a));
    &room.counts
}
