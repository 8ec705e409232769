//! Recounts privacy models in a stream from printed texts, their subjects and times, without code of the product.
//!
//! A class is a printed tuple of quasi cells. Its values of an attribute are the texts other than `"*"`, each counted
//! once per subject.

use super::invariants::{Line, cells, tuple};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub enum Question {
    Distinct(usize),
    Entropy(f64),
    Recursive {
        c: f64,
        l: usize,
    },
    /// At most `t` from the distribution `over`, by texts in the order of the ground distance.
    Closeness {
        t: f64,
        ground: Ground,
    },
}

#[derive(Clone, Debug)]
pub enum Ground {
    Equal,
    Ordered,
    /// Generalizations of each text, the root last.
    Tree(BTreeMap<String, Vec<String>>),
}

#[derive(Clone, Debug)]
pub struct Models {
    pub group: usize,
    pub quasi: Vec<String>,
    pub attribute: String,
    pub asked: Vec<Question>,
}

pub type Values = BTreeMap<Option<String>, BTreeSet<String>>;

/// Number of subjects by text, in order.
pub type Distribution = Vec<(Option<String>, u64)>;

const SLACK: f64 = 1e-7;

impl Models {
    /// Returns the number of shown cells.
    pub fn check_batch(&self, lines: &[Line], batch: u64, over: &Distribution) -> Result<usize, String> {
        let mut classes: BTreeMap<Vec<Option<String>>, (Values, usize)> = BTreeMap::new();
        for line in lines.iter().filter(|l| l.group == self.group && l.batch == batch) {
            let cells = cells(line)?;
            let shown = tuple(&cells, std::slice::from_ref(&self.attribute)).remove(0);
            if shown.as_deref() == Some("\"*\"") {
                continue;
            }
            let (values, now) = classes.entry(tuple(&cells, &self.quasi)).or_default();
            match &line.subject {
                Some(person) => {
                    values.entry(shown).or_default().insert(person.clone());
                }
                None => return Err(format!("a value is shown that counts for nobody: {line:?}")),
            }
            *now += 1;
        }
        let mut total = 0;
        for (class, (values, now)) in &classes {
            for asked in &self.asked {
                if !asked.holds(values, over) {
                    return Err(format!(
                        "batch {batch}: {asked:?} does not hold in {class:?}: {values:?} over {over:?}"
                    ));
                }
            }
            total += now;
        }
        Ok(total)
    }
}

impl Question {
    pub fn holds(&self, values: &Values, over: &Distribution) -> bool {
        let mut counts: Vec<f64> = values.values().map(|people| people.len() as f64).collect();
        counts.sort_by(|a, b| b.total_cmp(a));
        let all: f64 = counts.iter().sum();
        match self {
            Self::Distinct(l) => different_people(values, *l),
            Self::Entropy(l) => {
                let entropy: f64 = counts.iter().map(|n| -(n / all) * (n / all).ln()).sum();
                entropy >= l.ln() - SLACK && different_people(values, l.ceil() as usize)
            }
            Self::Recursive { c, l } => {
                let tail: f64 = counts.iter().skip(l - 1).sum();
                counts[0] < c * tail + SLACK && different_people(values, *l)
            }
            Self::Closeness { t, ground } => distance(values, over, ground).is_some_and(|d| d <= t + SLACK),
        }
    }
}

/// Returns whether `needed` values can be assigned to as many different subjects.
fn different_people(values: &Values, needed: usize) -> bool {
    fn most(values: &[&BTreeSet<String>], used: &mut BTreeSet<String>, needed: usize) -> bool {
        if needed == 0 {
            return true;
        }
        let Some((first, rest)) = values.split_first() else { return false };
        if values.len() < needed {
            return false;
        }
        for person in *first {
            if used.insert(person.clone()) {
                if most(rest, used, needed - 1) {
                    return true;
                }
                used.remove(person);
            }
        }
        most(rest, used, needed)
    }
    most(&values.values().collect::<Vec<_>>(), &mut BTreeSet::new(), needed)
}

/// Returns the earth mover's distance, or `None` if a text is not in the distribution.
fn distance(values: &Values, over: &Distribution, ground: &Ground) -> Option<f64> {
    let all: f64 = values.values().map(|people| people.len() as f64).sum();
    let whole: f64 = over.iter().map(|(_, n)| *n as f64).sum();
    if !values.keys().all(|text| over.iter().any(|(known, _)| known == text)) {
        return None;
    }
    let gap: Vec<f64> = over
        .iter()
        .map(|(text, n)| values.get(text).map_or(0.0, |people| people.len() as f64) / all - *n as f64 / whole)
        .collect();
    Some(match ground {
        Ground::Equal => gap.iter().map(|g| g.abs()).sum::<f64>() / 2.0,
        Ground::Ordered => {
            let cumulated = (1..=gap.len()).map(|end| gap[..end].iter().sum::<f64>().abs());
            cumulated.sum::<f64>() / (gap.len().max(2) - 1) as f64
        }
        Ground::Tree(above) => {
            // Half of the imbalance below each node, at each level except the root's, over the height.
            let height = above.values().next().map_or(1, Vec::len);
            let mut sum = 0.0;
            for level in 0..height {
                let mut nodes: BTreeMap<String, f64> = BTreeMap::new();
                for ((text, _), gap) in over.iter().zip(&gap) {
                    let own = text.clone().unwrap_or_default();
                    let node = if level == 0 {
                        own
                    } else {
                        above.get(&own).map_or(own.clone(), |levels| levels[level - 1].clone())
                    };
                    *nodes.entry(node).or_default() += gap;
                }
                sum += nodes.values().map(|gap| gap.abs()).sum::<f64>() / 2.0;
            }
            sum / height as f64
        }
    })
}
