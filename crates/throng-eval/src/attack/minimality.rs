//! Minimality attack: suppression of a sensitive cell reveals information \[WON], \[XIA].

use super::attack_input::{AttackEffort, AttackInput};
use super::trials::{AttackTrials, AttackYield};
use crate::facts::is_present;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, Code, UNCOVERED};

/// Maximum share of one unprintable value (docs/internals/methods.md §12.2).
const HIDDEN_VALUE_BOUND: f64 = 0.5;

/// Attacks `effort.targets` inexact sensitive cells.
pub fn run(release: &AttackInput<'_>, effort: AttackEffort, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let known = release.linked_groups();
    if known.iter().all(|group| group.shape.sensitive.is_empty()) {
        return Vec::new();
    }
    let mut printed: BTreeMap<(usize, CellId), u64> = BTreeMap::new();
    let mut beside: BTreeSet<(usize, usize, u64, Vec<CellId>, CellId)> = BTreeSet::new();
    let mut hidden: Vec<(usize, usize, usize)> = Vec::new();
    let mut hiding: BTreeMap<(usize, usize, u64, Vec<CellId>, CellId), BTreeSet<u32>> = BTreeMap::new();
    for (at, group) in known.iter().enumerate() {
        for &attribute in &group.shape.sensitive {
            let Some(cells) = group.group.column(attribute) else { continue };
            for (line, &cell) in cells.iter().enumerate() {
                let batch = group.origins[line].batch;
                if release.facts[attribute].get(cell).exact {
                    beside.insert((at, attribute, batch, group.class(line), cell));
                    let first = printed.entry((attribute, cell)).or_insert(batch);
                    *first = batch.min(*first);
                } else {
                    hidden.push((at, attribute, line));
                    let people = hiding.entry((at, attribute, batch, group.class(line), cell)).or_default();
                    people.insert(group.person(&release.people, line));
                }
            }
        }
    }
    let (mut what, mut beside_what, mut who) =
        (AttackTrials::default(), AttackTrials::default(), AttackTrials::default());
    // The guarantee holds per hidden cell.
    for &(at, attribute, line) in &hidden {
        let group = &known[at];
        let cell = group.group.column(attribute).map_or(0, |column| column[line]);
        let people =
            hiding.get(&(at, attribute, group.origins[line].batch, group.class(line), cell)).map_or(1, BTreeSet::len);
        who.add_to_group(&group.shape.name, 1.0 / people.max(1) as f64, 1.0 / release.population.max(1) as f64);
    }
    hidden.shuffle(dice);
    hidden.truncate(effort.targets);
    for (at, attribute, line) in hidden {
        let (group, origin) = (&known[at], known[at].origins[line]);
        let cell = group.group.column(attribute).map_or(0, |column| column[line]);
        let (book, counts) = (&release.original.books[attribute], &release.facts[attribute].counts);
        let is_unprinted =
            |code: &Code| printed.get(&(attribute, book.cell(*code, 0))).is_none_or(|first| *first > origin.batch);
        let covered = |code: &Code| {
            is_present(*code)
                && *code != UNCOVERED
                && release.facts[attribute].holds(cell, *code)
                && counts[*code as usize] > 0
        };
        let class = group.class(line);
        let is_unprinted_beside = |code: &Code| {
            let printed = (at, attribute, origin.batch, class.clone(), book.cell(*code, 0));
            !beside.contains(&printed)
        };
        let guessed = |is_candidate: &dyn Fn(&Code) -> bool| {
            let candidates = (0..counts.len() as Code).filter(covered).filter(is_candidate);
            candidates.max_by_key(|code| (counts[*code as usize], std::cmp::Reverse(*code)))
        };
        let own = release.original.batch.columns[attribute][origin.row as usize];
        let share = |code: Code| counts[code as usize] as f64 / release.original.rows().max(1) as f64;
        let name = &group.shape.name;
        let guesses = [guessed(&is_unprinted), guessed(&is_unprinted_beside)];
        for (trials, guess) in [&mut what, &mut beside_what].into_iter().zip(guesses) {
            trials.add_to_group(name, f64::from(u8::from(guess == Some(own))), guess.map_or(0.0, share));
        }
    }
    let crowd = release.promises.crowd.max(1) as f64;
    vec![
        what.into_yield("minimality", "a hidden cell: its value".to_owned(), Some(HIDDEN_VALUE_BOUND)),
        beside_what
            .into_yield(
                "minimality",
                "a hidden cell and the shown values of its class: its value".to_owned(),
                Some(HIDDEN_VALUE_BOUND),
            )
            .allow_chance(),
        who.into_yield("minimality", "a hidden cell: its person".to_owned(), Some(1.0 / crowd)).judge_each_trial(),
    ]
}
