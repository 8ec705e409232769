//! What a policy must fulfil: the models of a release, prepared for many classes.

use super::closeness::{Ground, Reference};
use super::diversity::{entropy_failing, recursive_failing};
use super::ratio::Ratio;
use crate::config::GroundDistance;

/// A privacy model (docs/methods.md §8). Sensitive attributes are positions in the table's list of them.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the symbols of the formula")]
pub enum Model {
    /// At least k subjects in each class; k ≥ 1.
    KAnonymity { k: u64 },
    /// At least k people of the population share the class's values; k ≥ 1.
    KMap { k: u64 },
    /// What is required of the values of a sensitive attribute in each class.
    Sensitive { attribute: usize, of: Requirement<Ground> },
    /// min ≤ released / population ≤ max in each class that has anything to release; 0 ≤ min ≤ max ≤ 1.
    Presence { min: f64, max: f64 },
}

/// No class of a stream has more values than this.
const MOST_VALUES: usize = 1000;

/// What is asked of the values of a sensitive attribute in each class. Before it is known which values there are, the ground distance
/// has but a name.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are the symbols of the formula")]
pub enum Requirement<G = GroundDistance> {
    /// At least ℓ values; ℓ ≥ 1.
    Distinct { l: usize },
    /// Entropy at least ln ℓ (and ⌈ℓ⌉ values); 1 ≤ ℓ.
    Entropy { l: f64 },
    /// r₁ < c·(r_ℓ + … + r_m), r the counts of the values, descending; 0 < c < 1000, ℓ ≥ 2.
    Recursive { c: f64, l: usize },
    /// Earth mover's distance to the whole table (suppressed records included) ≤ t; 0 ≤ t ≤ 1.
    Closeness { t: f64, ground: G },
}

impl Requirement {
    /// Values that must belong to as many different subjects: ⌈ℓ⌉, 0 where it is no diversity.
    pub fn representatives(&self) -> usize {
        match *self {
            Self::Distinct { l } | Self::Recursive { l, .. } => l,
            Self::Entropy { l } => l.ceil() as usize,
            Self::Closeness { .. } => 0,
        }
    }

    /// Whether classes are compared with a distribution.
    pub fn needs_reference(&self) -> bool {
        matches!(self, Self::Closeness { .. })
    }

    /// Whether the attribute's hierarchy decides which values are near each other.
    pub fn needs_tree(&self) -> bool {
        matches!(self, Self::Closeness { ground: GroundDistance::Hierarchical, .. })
    }

    /// Whether its parameters are in range for a stream.
    ///
    /// # Errors
    /// The parameter that is not, and its range.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let unless = |sound: bool, parameter, range| if sound { Ok(()) } else { Err((parameter, range)) };
        match *self {
            Self::Distinct { l } => unless((2..=MOST_VALUES).contains(&l), "l", "2 to 1000"),
            Self::Entropy { l } => unless(l > 1.0 && l <= MOST_VALUES as f64, "l", "above 1 and at most 1000"),
            Self::Recursive { c, l } => {
                unless((2..=MOST_VALUES).contains(&l), "l", "2 to 1000")?;
                unless(Ratio::of(c).is_some_and(|ratio| ratio.value() > 0.0), "c", "above 0 and below 1000")
            }
            Self::Closeness { t, .. } => unless((0.0..1.0).contains(&t), "t", "0 up to, but not, 1"),
        }
    }

    /// The same of values whose hierarchy is `tree` ([`Ground::Hierarchical`]; empty where nothing asks for it).
    pub fn over(self, tree: &[Vec<u32>]) -> Requirement<Ground> {
        match self {
            Self::Distinct { l } => Requirement::Distinct { l },
            Self::Entropy { l } => Requirement::Entropy { l },
            Self::Recursive { c, l } => Requirement::Recursive { c, l },
            Self::Closeness { t, ground: GroundDistance::Equal } => Requirement::Closeness { t, ground: Ground::Equal },
            Self::Closeness { t, ground: GroundDistance::Ordered } => {
                Requirement::Closeness { t, ground: Ground::Ordered }
            }
            Self::Closeness { t, ground: GroundDistance::Hierarchical } => {
                Requirement::Closeness { t, ground: Ground::Hierarchical(tree.to_vec()) }
            }
        }
    }
}

/// A model that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum ModelError {
    #[error("{model}: {parameter} is out of range; give {range}")]
    Range { model: &'static str, parameter: &'static str, range: &'static str },
    #[error("{model} names sensitive attribute {attribute}, and the table has {present}; name one that is there")]
    NoAttribute { model: &'static str, attribute: usize, present: usize },
    #[error(
        "t_closeness: the ground tree of sensitive attribute {attribute} does not fit its values; build it from its hierarchy"
    )]
    Tree { attribute: usize },
}

impl Model {
    /// The name that the configuration uses.
    pub fn name(&self) -> &'static str {
        match self {
            Self::KAnonymity { .. } => "k_anonymity",
            Self::KMap { .. } => "k_map",
            Self::Sensitive { of: Requirement::Closeness { .. }, .. } => "t_closeness",
            Self::Sensitive { .. } => "l_diversity",
            Self::Presence { .. } => "delta_presence",
        }
    }

    /// The sensitive attribute that it looks at.
    pub fn attribute(&self) -> Option<usize> {
        match *self {
            Self::KAnonymity { .. } | Self::KMap { .. } | Self::Presence { .. } => None,
            Self::Sensitive { attribute, .. } => Some(attribute),
        }
    }
}

/// The values of one sensitive attribute in the whole table.
#[derive(Clone, Debug, Default)]
pub struct SensitiveDomain {
    /// Records by value.
    pub counts: Vec<u64>,
    /// By value: too few people have it, so that it leaves as `*` and counts for nothing. Empty: none.
    pub rare: Vec<bool>,
}

/// One equivalence class.
#[derive(Clone, Copy, Debug)]
pub struct Class<'a> {
    /// Records to be released.
    pub records: u64,
    /// Distinct subjects among them; the records where nothing counts subjects.
    pub subjects: u64,
    /// Records of the population with these values, the released ones included.
    pub population: u64,
    /// Distinct subjects among those; the records where nothing counts subjects.
    pub people: u64,
    /// By sensitive attribute: the values present among the records, each once, with their counts.
    pub values: &'a [Vec<(u32, u32)>],
}

/// Scratch of one thread.
#[derive(Clone, Debug, Default)]
pub struct Room {
    counts: Vec<u32>,
    surplus: Vec<i128>,
    shown: Vec<Vec<(u32, u32)>>,
}

#[derive(Clone, Debug)]
enum Prepared {
    KAnonymity(u64),
    KMap(u64),
    Distinct(usize, usize),
    Entropy(usize, f64),
    Recursive(usize, Ratio, usize),
    Closeness(usize, Ratio, Reference),
    Presence(Ratio, Ratio),
}

/// The models of a release, prepared for a table. All of them must hold.
#[derive(Clone, Debug)]
pub struct Judge {
    models: Vec<Prepared>,
    /// Records that a class needs before any model can hold: max(k, ⌈ℓ⌉), the m of [FL2] §2.7.
    pub(crate) smallest_class: u64,
    /// Whether a model looks at sensitive values.
    pub(crate) needs_values: bool,
    /// Whether a model looks at the population.
    pub(crate) needs_population: bool,
    /// Whether a model counts subjects.
    pub(crate) needs_subjects: bool,
    /// By attribute and value, what is rare; empty where nothing is.
    rare: Vec<Vec<bool>>,
}

impl Judge {
    /// Prepares `models` for a table with these sensitive attributes.
    ///
    /// # Errors
    /// The first parameter out of range, attribute that is not there, or tree that does not fit.
    pub fn new(models: &[Model], domains: &[SensitiveDomain]) -> Result<Self, ModelError> {
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
                if sound { Ok(()) } else { Err(ModelError::Range { model: name, parameter, range }) }
            };
            if let Some(attribute) = model.attribute().filter(|&a| a >= domains.len()) {
                return Err(ModelError::NoAttribute { model: name, attribute, present: domains.len() });
            }
            judge.needs_values |= model.attribute().is_some();
            let ratio = |value: f64, parameter, range| {
                Ratio::of(value).ok_or(ModelError::Range { model: name, parameter, range })
            };
            let prepared = match model {
                &Model::KAnonymity { k } => {
                    unless(k >= 1, "k", "1 or more")?;
                    judge.needs_subjects = true;
                    Prepared::KAnonymity(k)
                }
                &Model::KMap { k } => {
                    unless(k >= 1, "k", "1 or more")?;
                    judge.needs_population = true;
                    judge.needs_subjects = true;
                    Prepared::KMap(k)
                }
                Model::Sensitive { attribute, of } => match of {
                    &Requirement::Distinct { l } => {
                        unless(l >= 1, "l", "1 or more")?;
                        Prepared::Distinct(*attribute, l)
                    }
                    &Requirement::Entropy { l } => {
                        unless((1.0..1e9).contains(&l), "l", "1 to a billion")?;
                        Prepared::Entropy(*attribute, l)
                    }
                    &Requirement::Recursive { c, l } => {
                        unless(c > 0.0, "c", "above 0 and below 1000")?;
                        unless(l >= 2, "l", "2 or more")?;
                        Prepared::Recursive(*attribute, ratio(c, "c", "above 0 and below 1000")?, l)
                    }
                    Requirement::Closeness { t, ground } => {
                        unless((0.0..=1.0).contains(t), "t", "0 to 1")?;
                        let counts = domains[*attribute].counts.clone();
                        if !fits(ground, counts.len()) {
                            return Err(ModelError::Tree { attribute: *attribute });
                        }
                        let reference = Reference::new(counts, ground.clone());
                        Prepared::Closeness(*attribute, ratio(*t, "t", "0 to 1")?, reference)
                    }
                },
                &Model::Presence { min, max } => {
                    unless((0.0..=1.0).contains(&min), "min", "0 to 1")?;
                    unless(min <= max && max <= 1.0, "max", "min to 1")?;
                    judge.needs_population = true;
                    Prepared::Presence(ratio(min, "min", "0 to 1")?, ratio(max, "max", "min to 1")?)
                }
            };
            judge.smallest_class = judge.smallest_class.max(match &prepared {
                Prepared::KAnonymity(k) => *k,
                Prepared::Distinct(_, l) | Prepared::Recursive(_, _, l) => *l as u64,
                Prepared::Entropy(_, l) => l.ceil() as u64,
                Prepared::KMap(_) | Prepared::Closeness(..) | Prepared::Presence(..) => 1,
            });
            judge.models.push(prepared);
        }
        Ok(judge)
    }

    /// Whether the class is large enough for every model that counts members alone (k-anonymity, k-map): what else it
    /// may lack, it lacks in the values of its records.
    pub fn is_crowd(&self, class: &Class<'_>) -> bool {
        class.records >= self.smallest_class
            && self.models.iter().all(|model| match model {
                Prepared::KAnonymity(k) => class.subjects >= *k,
                Prepared::KMap(k) => class.people >= *k,
                _ => true,
            })
    }

    /// None if every model holds; otherwise how many of the class's records are suppressed **at least**, in this class
    /// and, taken together, in whatever parts a specialisation splits it into. May be 0, is never more than the records.
    pub fn failing(&self, class: &Class<'_>, room: &mut Room) -> Option<u64> {
        if self.rare.is_empty() {
            return self.failing_shown(class, room);
        }
        // A value that hides counts for no model, and must not be that of more than half of a class: its `*` would be
        // its name. Parts that hold are made of it by no more than half, so the others have the rest of it.
        let mut lost: Option<u64> = None;
        let mut shown = std::mem::take(&mut room.shown);
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
        let others = self.failing_shown(&Class { values: &shown, ..*class }, room);
        room.shown = shown;
        lost.max(others)
    }

    fn failing_shown(&self, class: &Class<'_>, room: &mut Room) -> Option<u64> {
        let mut lost: Option<u64> = None;
        for model in &self.models {
            if let Some(more) = model.failing(class, room) {
                lost = Some(lost.unwrap_or(0).max(more));
                if more >= class.records {
                    break;
                }
            }
        }
        lost
    }
}

fn fits(ground: &Ground, values: usize) -> bool {
    let Ground::Hierarchical(levels) = ground else { return true };
    let mut nodes = values;
    for parents in levels {
        if parents.len() != nodes {
            return false;
        }
        nodes = parents.iter().max().map_or(0, |&p| p as usize + 1);
    }
    nodes <= 1 && !levels.is_empty()
}

impl Prepared {
    fn failing(&self, class: &Class<'_>, room: &mut Room) -> Option<u64> {
        let all = |fails: bool| fails.then_some(class.records);
        match self {
            // Parts have fewer subjects, fewer members of the population, and no other values than the whole.
            Self::KAnonymity(k) => all(class.subjects < *k),
            Self::KMap(k) => all(class.people < *k),
            Self::Distinct(attribute, l) => all(class.values[*attribute].len() < *l),
            Self::Entropy(attribute, l) => entropy_failing(descending(&class.values[*attribute], room), *l),
            Self::Recursive(attribute, c, l) => recursive_failing(descending(&class.values[*attribute], room), *c, *l),
            Self::Closeness(attribute, t, reference) => {
                let (part, whole) = reference.distance(&class.values[*attribute], &mut room.surplus);
                if t.at_least(part, whole) {
                    return None;
                }
                // The distance is convex: the mean over the parts, weighted by size, is at least that of the whole.
                // Parts that hold have at most t, the others at most 1, so those are (D − t)/(1 − t) of the records.
                let (distance, t) = (part as f64 / whole as f64, t.value());
                let share = (distance - t) / (1.0 - t);
                let shown: u64 = class.values[*attribute].iter().map(|&(_, count)| u64::from(count)).sum();
                let records = (shown as f64 * share * (1.0 - 1e-9)).ceil().max(1.0);
                Some((records as u64).min(class.records))
            }
            Self::Presence(min, max) => {
                let (part, whole) = (u128::from(class.records), u128::from(class.population));
                if !max.at_least(part, whole) {
                    // Parts that hold release at most max of their population, hence of the whole one.
                    return Some(class.records - max.floor_of(class.population).min(class.records));
                }
                // A part may leave the unreleased population behind and hold: nothing is lost for certain.
                min.exceeds(class.records, class.population).then_some(0)
            }
        }
    }
}

/// The counts of a class's values, descending.
fn descending<'a>(values: &[(u32, u32)], room: &'a mut Room) -> &'a [u32] {
    room.counts.clear();
    room.counts.extend(values.iter().map(|&(_, count)| count));
    room.counts.sort_unstable_by(|a, b| b.cmp(a));
    &room.counts
}
