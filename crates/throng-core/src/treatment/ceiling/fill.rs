//! Fills small classes with counterfeits that groups conceal (\[HCE] Alg. 1, lines 7 to 15; docs/internals/methods.md
//! §15.2).
//!
//! A draw depends only on a key, the class and the number of the counterfeit, so it is reproducible.

use super::grouping::{CatalogClass, ClassGrouping, ValueCounts, group_classes, total_lines};
use crate::values::digest::mix;
use std::collections::BTreeMap;

/// True lines of a release, unordered.
#[derive(Clone, Copy, Debug)]
pub struct TrueLines<'a> {
    /// Class of each line.
    pub class_of: &'a [u32],
    /// Number of classes.
    pub classes: usize,
    /// Value of each line.
    pub shown: &'a [u32],
}

/// Limits for filling classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillLimits {
    /// Minimum lines of a class.
    pub min_lines: u32,
    /// Minimum true lines of a class.
    pub min_true_lines: u32,
    /// Maximum number of counterfeits.
    pub max_counterfeits: u64,
}

/// Inputs of the draws.
#[derive(Clone, Copy)]
pub struct CounterfeitDraw<'a> {
    /// Returns the identity of a line's class, independent of the input order.
    pub identity: &'a dyn Fn(usize) -> u128,
    /// Returns 128 secret pseudorandom bits for a class identity and a counterfeit's number.
    pub seed: &'a dyn Fn(u128, u32) -> u128,
    /// Returns a number that depends only on the value.
    pub number_of_value: &'a dyn Fn(u32) -> u64,
    /// Returns true for inexact values such as `*`, recognizable in a class without such true lines.
    pub is_inexact: &'a dyn Fn(u32) -> bool,
    /// Returns the class of each line n ≥ 1 levels coarser; `None` beyond the top.
    pub coarser_classes: &'a dyn Fn(u8) -> Option<Vec<u32>>,
}

/// Fewer lines would expose the values of the neighbours.
const MIN_NEARBY_LINES: u32 = 30;

/// Classes with counterfeits, and the classes that conceal them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledClasses {
    /// Classes of all groups.
    pub classes: Vec<CatalogClass>,
    /// Class number of each entry of `classes`.
    pub class_numbers: Vec<u32>,
    /// Groups as positions in `classes`.
    pub groups: Vec<Vec<usize>>,
    /// Numbers of classes that must not be released.
    pub removed: Vec<u32>,
}

impl FilledClasses {
    /// Returns the number of counterfeits.
    pub fn counterfeits(&self) -> u64 {
        self.classes.iter().map(|class| u64::from(total_lines(&class.counterfeits))).sum()
    }

    /// Returns, by class number and value, the probability below 1 that such a line is true.
    pub fn truth_probabilities(&self) -> BTreeMap<(u32, u32), f64> {
        let mut shares = BTreeMap::new();
        for group in &self.groups {
            let (mut invented, mut all) = (ValueCounts::new(), ValueCounts::new());
            for class in group.iter().map(|&at| &self.classes[at]) {
                for (&value, &count) in &class.counterfeits {
                    *invented.entry(value).or_default() += count;
                }
                for (&value, &count) in class.true_counts.iter().chain(&class.counterfeits) {
                    *all.entry(value).or_default() += count;
                }
            }
            for (&value, &count) in &invented {
                let share = 1.0 - f64::from(count) / f64::from(all[&value]);
                let showing = group.iter().filter(|&&at| self.classes[at].true_counts.contains_key(&value));
                shares.extend(showing.map(|&at| ((self.class_numbers[at], value), share)));
            }
        }
        shares
    }
}

/// Fills the classes below `min_lines`.
///
/// Above `max_counterfeits`, removes the smallest classes: the choice depends only on sizes and reveals no values.
pub fn fill_classes(lines: TrueLines<'_>, asked: FillLimits, drawing: CounterfeitDraw<'_>) -> FilledClasses {
    let mut sizes = vec![0u32; lines.classes];
    lines.class_of.iter().for_each(|&class| sizes[class as usize] += 1);
    if !sizes.iter().any(|size| (1..asked.min_lines).contains(size)) {
        return FilledClasses::default();
    }
    let mut taking: BTreeMap<u32, (usize, ValueCounts)> = BTreeMap::new();
    for (line, (&class, &value)) in lines.class_of.iter().zip(lines.shown).enumerate() {
        if sizes[class as usize] <= asked.min_lines {
            *taking.entry(class).or_insert((line, ValueCounts::new())).1.entry(value).or_default() += 1;
        }
    }
    let mut removed = classes_over_limit(&taking, &sizes, asked, drawing.identity);
    removed.iter().for_each(|class| drop(taking.remove(class)));
    let small = |class: u32| sizes[class as usize] < asked.min_lines;
    let mut hosted = ValueCounts::new();
    for (value, count) in taking.values().flat_map(|(_, shown)| shown) {
        *hosted.entry(*value).or_default() += count;
    }
    let mut near = nearby_values(lines, &taking, &small, drawing);
    let mut classes: Vec<(u32, CatalogClass)> = Vec::with_capacity(taking.len());
    for (&class, (line, shown)) in &taking {
        let identity = (drawing.identity)(*line);
        let mut filled = CatalogClass { identity, true_counts: shown.clone(), counterfeits: ValueCounts::new() };
        if small(class) {
            let mut weights = near.remove(&class).unwrap_or_default();
            // No other class of this size could conceal such a value.
            let of = |counts: &ValueCounts, value: &u32| counts.get(value).copied().unwrap_or(0);
            weights.retain(|value, _| of(&hosted, value) > of(shown, value));
            weights.retain(|value, _| !(drawing.is_inexact)(*value) || shown.contains_key(value));
            let need = asked.min_lines - sizes[class as usize];
            filled.counterfeits =
                draw_values(need, &weights, &|number| (drawing.seed)(identity, number), drawing.number_of_value);
            if total_lines(&filled.counterfeits) < need {
                removed.push(class);
                continue;
            }
        }
        classes.push((class, filled));
    }
    classes.sort_by_key(|(_, class)| class.identity);
    group_until_concealed(classes, asked, removed)
}

fn classes_over_limit(
    taking: &BTreeMap<u32, (usize, ValueCounts)>,
    sizes: &[u32],
    asked: FillLimits,
    identity: &dyn Fn(usize) -> u128,
) -> Vec<u32> {
    let need = |class: u32| u64::from(asked.min_lines - sizes[class as usize]);
    let mut left: u64 = taking.keys().map(|&class| need(class)).sum();
    if left <= asked.max_counterfeits {
        return Vec::new();
    }
    let mut order: Vec<(u32, u128, u32)> =
        taking.iter().map(|(&class, (line, _))| (sizes[class as usize], identity(*line), class)).collect();
    order.sort_unstable();
    let dear = order.into_iter().map(|(_, _, class)| class).take_while(|&class| {
        let goes = left > asked.max_counterfeits;
        left -= need(class) * u64::from(goes);
        goes
    });
    dear.collect()
}

/// Removes classes with unconcealed counterfeits and repeats.
fn group_until_concealed(
    mut numbered: Vec<(u32, CatalogClass)>,
    asked: FillLimits,
    mut removed: Vec<u32>,
) -> FilledClasses {
    loop {
        let (number, classes): (Vec<u32>, Vec<CatalogClass>) = numbered.into_iter().unzip();
        let ClassGrouping { groups, unconcealed_classes: open } =
            group_classes(&classes, asked.min_lines.saturating_sub(asked.min_true_lines));
        if open.is_empty() {
            removed.sort_unstable();
            return keep_grouped_classes(&classes, &number, &groups, removed);
        }
        removed.extend(open.iter().map(|&at| number[at]));
        let stays = |at: &usize| open.binary_search(at).is_err();
        let kept = number.into_iter().zip(classes).enumerate();
        numbered = kept.filter(|(at, _)| stays(at)).map(|(_, class)| class).collect();
    }
}

fn keep_grouped_classes(
    classes: &[CatalogClass],
    number: &[u32],
    groups: &[Vec<usize>],
    removed: Vec<u32>,
) -> FilledClasses {
    let mut filled = FilledClasses { removed, ..FilledClasses::default() };
    for group in groups {
        let first = filled.classes.len();
        filled.classes.extend(group.iter().map(|&at| classes[at].clone()));
        filled.class_numbers.extend(group.iter().map(|&at| number[at]));
        filled.groups.push((first..filled.classes.len()).collect());
    }
    filled
}

/// Returns for each small class the values of other true lines in a coarser class.
fn nearby_values(
    lines: TrueLines<'_>,
    taking: &BTreeMap<u32, (usize, ValueCounts)>,
    small: &dyn Fn(u32) -> bool,
    drawing: CounterfeitDraw<'_>,
) -> BTreeMap<u32, ValueCounts> {
    let mut found: BTreeMap<u32, ValueCounts> = BTreeMap::new();
    let mut open: Vec<u32> = taking.keys().copied().filter(|&class| small(class)).collect();
    let mut step = 1;
    while !open.is_empty() {
        let Some(coarse) = (drawing.coarser_classes)(step) else { break };
        let mut around: BTreeMap<u32, ValueCounts> =
            open.iter().map(|class| (coarse[taking[class].0], ValueCounts::new())).collect();
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
            let enough = total_lines(&counts) >= MIN_NEARBY_LINES;
            // The last, widest step may have too few lines.
            found.insert(*class, counts);
            !enough
        });
        step += 1;
    }
    found
}

/// Draws `need` values by a race of exponential clocks, one per value: small changes of the weights change few winners.
fn draw_values(need: u32, weights: &ValueCounts, seed: &dyn Fn(u32) -> u128, mark: &dyn Fn(u32) -> u64) -> ValueCounts {
    let mut drawn = ValueCounts::new();
    for number in 0..need {
        let seed = seed(number);
        let finish = |value: u32, weight: u32| -(unit_interval_number(seed, mark(value)).ln()) / f64::from(weight);
        let running = weights.iter().filter(|(_, weight)| **weight > 0);
        let first = running.min_by(|a, b| finish(*a.0, *a.1).total_cmp(&finish(*b.0, *b.1)));
        if let Some((&value, _)) = first {
            *drawn.entry(value).or_default() += 1;
        }
    }
    drawn
}

fn unit_interval_number(seed: u128, mark: u64) -> f64 {
    let mixed = mix(mix((seed >> 64) as u64 ^ mark).wrapping_add(seed as u64));
    ((mixed >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
