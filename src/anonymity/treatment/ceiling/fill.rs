//! Small classes filled with counterfeits that groups conceal ([HCE] Alg. 1, lines 7 to 15; docs/methods.md §15.2).
//!
//! The paper draws from the domain of the sensitive attribute evenly. Then a rare value in a small class is likely a counterfeit.
//! Here a draw falls on each value as often as the records nearby have it, so that counterfeits correlate with the other
//! attributes as records do. It is decided by a key, the class and the number of the counterfeit in it alone: the same
//! class gets the same counterfeits again, whatever else of a file has changed, as long as the records nearby are the same.

use super::grouping::{Class, Counts, Grouped, group, total};
use std::collections::BTreeMap;
use throng_core::values::digest::mix;

/// The true lines of a release, without an order.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// By line: its class.
    pub class_of: &'a [u32],
    /// Number of classes.
    pub classes: usize,
    /// By line: the value that it shows.
    pub shown: &'a [u32],
}

/// How classes are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Lines of a class at least.
    pub lines: u32,
    /// True lines that every class has, whatever it is filled with.
    pub people: u32,
    /// Counterfeits at most.
    pub most: u64,
}

/// What draws depend on.
#[derive(Clone, Copy)]
pub struct Drawing<'a> {
    /// What names the class of a line, whatever the order of the input.
    pub identity: &'a dyn Fn(usize) -> u128,
    /// By identity of a class and number of a counterfeit in it: 128 bits that nobody can tell.
    pub seed: &'a dyn Fn(u128, u32) -> u128,
    /// A number of each value that depends on the value alone.
    pub mark: &'a dyn Fn(u32) -> u64,
    /// Whether a value shows less than itself, as `*` does. Such a line in a class without others would be a counterfeit.
    pub hides: &'a dyn Fn(u32) -> bool,
    /// By line: its class under a policy so many levels coarser, at least 1; none beyond the top.
    pub coarser: &'a dyn Fn(u8) -> Option<Vec<u32>>,
}

/// Lines around a class of which its counterfeits take values: fewer would be its neighbours' own.
const NEARBY: u32 = 30;

/// Classes with counterfeits, and those that conceal them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// The classes of all groups.
    pub classes: Vec<Class>,
    /// The class of the lines that each of them is.
    pub number: Vec<u32>,
    /// Positions in `classes`.
    pub groups: Vec<Vec<usize>>,
    /// Classes of the lines that cannot be filled safely: they must not leave.
    pub removed: Vec<u32>,
}

impl Filled {
    /// Counterfeits in all classes.
    pub fn counterfeits(&self) -> u64 {
        self.classes.iter().map(|class| u64::from(total(&class.counterfeits))).sum()
    }

    /// By class of the lines and value: the probability that a line which shows it there is true, to a reader of the catalog, where that is not 1.
    pub fn genuine(&self) -> BTreeMap<(u32, u32), f64> {
        let mut shares = BTreeMap::new();
        for group in &self.groups {
            let (mut invented, mut all) = (Counts::new(), Counts::new());
            for class in group.iter().map(|&at| &self.classes[at]) {
                for (&value, &count) in &class.counterfeits {
                    *invented.entry(value).or_default() += count;
                }
                for (&value, &count) in class.shown.iter().chain(&class.counterfeits) {
                    *all.entry(value).or_default() += count;
                }
            }
            for (&value, &count) in &invented {
                let share = 1.0 - f64::from(count) / f64::from(all[&value]);
                let showing = group.iter().filter(|&&at| self.classes[at].shown.contains_key(&value));
                shares.extend(showing.map(|&at| ((self.number[at], value), share)));
            }
        }
        shares
    }
}

/// Fills the classes of `lines`. Where that takes too many counterfeits, the smallest classes are removed until it does not: each
/// of their lines saves most. That is decided by sizes alone, so that who is removed says nothing of values.
pub fn fill(lines: Lines<'_>, asked: Asked, drawing: Drawing<'_>) -> Filled {
    let mut sizes = vec![0u32; lines.classes];
    lines.class_of.iter().for_each(|&class| sizes[class as usize] += 1);
    if !sizes.iter().any(|size| (1..asked.lines).contains(size)) {
        return Filled::default();
    }
    let mut taking: BTreeMap<u32, (usize, Counts)> = BTreeMap::new();
    for (line, (&class, &value)) in lines.class_of.iter().zip(lines.shown).enumerate() {
        if sizes[class as usize] <= asked.lines {
            *taking.entry(class).or_insert((line, Counts::new())).1.entry(value).or_default() += 1;
        }
    }
    let mut removed = too_dear(&taking, &sizes, asked, drawing.identity);
    removed.iter().for_each(|class| drop(taking.remove(class)));
    let small = |class: u32| sizes[class as usize] < asked.lines;
    let mut hosted = Counts::new();
    for (value, count) in taking.values().flat_map(|(_, shown)| shown) {
        *hosted.entry(*value).or_default() += count;
    }
    let mut near = nearby(lines, &taking, &small, drawing);
    let mut classes: Vec<(u32, Class)> = Vec::with_capacity(taking.len());
    for (&class, (line, shown)) in &taking {
        let identity = (drawing.identity)(*line);
        let mut filled = Class { identity, shown: shown.clone(), counterfeits: Counts::new() };
        if small(class) {
            let mut weights = near.remove(&class).unwrap_or_default();
            // What no other class of this size shows could not be concealed.
            let of = |counts: &Counts, value: &u32| counts.get(value).copied().unwrap_or(0);
            weights.retain(|value, _| of(&hosted, value) > of(shown, value));
            weights.retain(|value, _| !(drawing.hides)(*value) || shown.contains_key(value));
            let need = asked.lines - sizes[class as usize];
            filled.counterfeits = draw(need, &weights, &|number| (drawing.seed)(identity, number), drawing.mark);
            if total(&filled.counterfeits) < need {
                removed.push(class);
                continue;
            }
        }
        classes.push((class, filled));
    }
    classes.sort_by_key(|(_, class)| class.identity);
    concealed(classes, asked, removed)
}

/// The smallest classes, as many as leave counterfeits enough for the others.
fn too_dear(
    taking: &BTreeMap<u32, (usize, Counts)>,
    sizes: &[u32],
    asked: Asked,
    identity: &dyn Fn(usize) -> u128,
) -> Vec<u32> {
    let need = |class: u32| u64::from(asked.lines - sizes[class as usize]);
    let mut left: u64 = taking.keys().map(|&class| need(class)).sum();
    if left <= asked.most {
        return Vec::new();
    }
    let mut order: Vec<(u32, u128, u32)> =
        taking.iter().map(|(&class, (line, _))| (sizes[class as usize], identity(*line), class)).collect();
    order.sort_unstable();
    let dear = order.into_iter().map(|(_, _, class)| class).take_while(|&class| {
        let goes = left > asked.most;
        left -= need(class) * u64::from(goes);
        goes
    });
    dear.collect()
}

/// Groups the classes; those that nobody conceals are removed, and the others are grouped once more.
fn concealed(mut numbered: Vec<(u32, Class)>, asked: Asked, mut removed: Vec<u32>) -> Filled {
    loop {
        let (number, classes): (Vec<u32>, Vec<Class>) = numbered.into_iter().unzip();
        let Grouped { groups, open } = group(&classes, asked.lines.saturating_sub(asked.people));
        if open.is_empty() {
            removed.sort_unstable();
            return only_grouped(&classes, &number, &groups, removed);
        }
        removed.extend(open.iter().map(|&at| number[at]));
        let stays = |at: &usize| open.binary_search(at).is_err();
        let kept = number.into_iter().zip(classes).enumerate();
        numbered = kept.filter(|(at, _)| stays(at)).map(|(_, class)| class).collect();
    }
}

fn only_grouped(classes: &[Class], number: &[u32], groups: &[Vec<usize>], removed: Vec<u32>) -> Filled {
    let mut filled = Filled { removed, ..Filled::default() };
    for group in groups {
        let first = filled.classes.len();
        filled.classes.extend(group.iter().map(|&at| classes[at].clone()));
        filled.number.extend(group.iter().map(|&at| number[at]));
        filled.groups.push((first..filled.classes.len()).collect());
    }
    filled
}

/// By small class: what true lines show that share its class under a policy just coarse enough, its own left out.
fn nearby(
    lines: Lines<'_>,
    taking: &BTreeMap<u32, (usize, Counts)>,
    small: &dyn Fn(u32) -> bool,
    drawing: Drawing<'_>,
) -> BTreeMap<u32, Counts> {
    let mut found: BTreeMap<u32, Counts> = BTreeMap::new();
    let mut open: Vec<u32> = taking.keys().copied().filter(|&class| small(class)).collect();
    let mut step = 1;
    while !open.is_empty() {
        let Some(coarse) = (drawing.coarser)(step) else { break };
        let mut around: BTreeMap<u32, Counts> =
            open.iter().map(|class| (coarse[taking[class].0], Counts::new())).collect();
        for (class, &value) in coarse.iter().zip(lines.shown) {
            if let Some(counts) = around.get_mut(class) {
                *counts.entry(value).or_default() += 1;
            }
        }
        open.retain(|class| {
            let (line, own) = &taking[class];
            let mut counts = around[&coarse[*line]].clone();
            for (value, count) in own {
                counts.entry(*value).and_modify(|all| *all -= count);
            }
            counts.retain(|_, count| *count > 0);
            let enough = total(&counts) >= NEARBY;
            // The last step is the widest: what it finds is taken, however little that is.
            found.insert(*class, counts);
            !enough
        });
        step += 1;
    }
    found
}

/// Draws `need` values with the probabilities of `weights`. `seed` gives the number of each draw, uniform in 128 bits;
/// `mark` a number of each value that depends on the value alone.
///
/// Each draw is a race of exponential clocks, one a value: the share of wins is the share of the weight, and another
/// weight changes few winners.
///
/// Time: need × values.
fn draw(need: u32, weights: &Counts, seed: &dyn Fn(u32) -> u128, mark: &dyn Fn(u32) -> u64) -> Counts {
    let mut drawn = Counts::new();
    for number in 0..need {
        let seed = seed(number);
        let finish = |value: u32, weight: u32| -(unit(seed, mark(value)).ln()) / f64::from(weight);
        let running = weights.iter().filter(|(_, weight)| **weight > 0);
        let first = running.min_by(|a, b| finish(*a.0, *a.1).total_cmp(&finish(*b.0, *b.1)));
        if let Some((&value, _)) = first {
            *drawn.entry(value).or_default() += 1;
        }
    }
    drawn
}

/// A number in (0, 1] of a draw and a value.
fn unit(seed: u128, mark: u64) -> f64 {
    let mixed = mix(mix((seed >> 64) as u64 ^ mark).wrapping_add(seed as u64));
    ((mixed >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
