//! Measures counterfeits in a stream: over many batches they are detected, so streams have none.

use super::*;
use std::collections::BTreeSet;

const PEOPLE: u64 = 6000;
const POSSIBLE: u64 = 12;

const POPULATIONS: u64 = 4;

fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn population(seed: u64) -> Vec<String> {
    let mut next = dice(seed);
    let mut person = |_| {
        let (age, place) = (next(100).min(next(100)).min(next(100)), next(8).min(next(8)));
        let illness = (age * POSSIBLE / 150 + place / 4 * 2 + next(POSSIBLE).min(next(POSSIBLE))) % POSSIBLE;
        let place = ["Aa", "Bb", "Cc", "Dd", "Ee", "Ff", "Gg", "Hh"][place as usize];
        format!("{age},{place},i{illness}\n")
    };
    (0..PEOPLE).map(&mut person).collect()
}

type Shown = (Vec<String>, String);

struct Released {
    policy: serde_json::Value,
    lines: Vec<Line>,
    /// Values shown by its classes.
    shown: BTreeSet<Shown>,
    /// Possible counterfeits by the catalog.
    named: BTreeSet<Shown>,
}

impl Released {
    fn new(policy: serde_json::Value, lines: Vec<Line>, catalog: &str) -> Self {
        let shown = lines.iter().map(|line| (line.class.clone(), line.value.clone())).collect();
        let bare = |text: &String| text.trim_matches('"').to_owned();
        let of_group = |group: CatalogGroup| {
            let values = group.counterfeits.iter().map(|(value, _)| bare(value)).collect::<Vec<_>>();
            let classes = group.classes.iter().map(|class| class.iter().map(bare).collect::<Vec<_>>());
            classes
                .flat_map(|class| values.iter().map(move |value| (class.clone(), value.clone())).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let groups = catalog.lines().map(|line| CatalogGroup::parse_catalog_line(line).expect("a group"));
        Self { policy, lines, shown, named: groups.flat_map(of_group).collect() }
    }
}

fn batches(seed: u64, count: usize, percent: u64, secret: &dyn Fn(usize) -> String) -> Vec<Released> {
    let all = population(seed);
    let mut next = dice(seed + 1000);
    let mut release_of = |number: usize| {
        let rows: String = all.iter().filter(|_| next(100) < percent).map(String::as_str).collect();
        let folder = folder(&format!("age,place,illness\n{rows}"), CEILING);
        let (text, catalog) = release(folder.path(), &[("THRONG_SECRET", &secret(number))]);
        let lines = told_apart(folder.path(), &folder.path().join("schema.toml"), &text, ',');
        Released::new(report(folder.path())["policy"].clone(), lines, &catalog)
    };
    let released: Vec<Released> = (0..count).map(&mut release_of).collect();
    // Classes of other levels would not be comparable.
    assert!(released.iter().all(|batch| batch.policy == released[0].policy), "one policy for all batches");
    released
}

/// Returns the attacker's knowledge in sixths: the share of batches in which the class shows the value, and the share
/// of those in which the catalog names it.
fn known(seen: &[Released], line: &Line) -> (usize, usize) {
    let look = (line.class.clone(), line.value.clone());
    let shown: Vec<&Released> = seen.iter().filter(|batch| batch.shown.contains(&look)).collect();
    let named = shown.iter().filter(|batch| batch.named.contains(&look)).count();
    (6 * shown.len() / seen.len(), 6 * named / shown.len().max(1))
}

fn looks(seen: &[Released]) -> Vec<Vec<((usize, usize), bool)>> {
    let last = seen.last().expect("a batch");
    let filled = |lines: &Vec<&Line>| lines.iter().any(|line| !line.is_true);
    let of_class = |lines: Vec<&Line>| lines.into_iter().map(|line| (known(seen, line), line.is_true)).collect();
    classes(&last.lines).into_values().filter(filled).map(of_class).collect()
}

/// AUC over the classes not trained on, by [`known`].
fn told(looks: &[Vec<((usize, usize), bool)>]) -> f64 {
    let (mut above, mut pairs) = (0.0, 0.0);
    for half in 0..2 {
        let mut counts: BTreeMap<(usize, usize), [f64; 2]> = BTreeMap::new();
        let told = looks.iter().enumerate().filter(|(at, _)| at % 2 != half).flat_map(|(_, lines)| lines);
        told.for_each(|(look, is_true)| counts.entry(*look).or_insert([0.5; 2])[usize::from(!is_true)] += 1.0);
        let score = |look: &(usize, usize)| {
            let [genuine, invented] = counts.get(look).copied().unwrap_or([0.5; 2]);
            invented / (genuine + invented)
        };
        for lines in looks.iter().enumerate().filter(|(at, _)| at % 2 == half).map(|(_, lines)| lines) {
            for (invented, _) in lines.iter().filter(|(_, is_true)| !is_true) {
                for (genuine, _) in lines.iter().filter(|(_, is_true)| *is_true) {
                    let (one, other) = (score(invented), score(genuine));
                    above += if one > other { 1.0 } else { f64::from(u8::from((one - other).abs() < 1e-12)) / 2.0 };
                    pairs += 1.0;
                }
            }
        }
    }
    above / pairs
}

#[test]
fn counterfeits_are_detected_over_many_batches() {
    const MOST: usize = 8;
    println!("| people who send | batches | drawn anew | staying with the class |");
    for (percent, at_least) in [(50, 0.65), (90, 0.8)] {
        let of = |secret: &dyn Fn(usize) -> String| -> Vec<Vec<Released>> {
            (0..POPULATIONS).map(|seed| batches(seed, MOST, percent, secret)).collect()
        };
        let anew = of(&|number| format!("a secret of batch {number} and of no other"));
        let staying = of(&|_| "one secret of all the batches".to_owned());
        let mut found = Vec::new();
        for seen in [1, 2, 4, MOST] {
            let by = [&anew, &staying]
                .map(|all| told(&all.iter().flat_map(|batches| looks(&batches[MOST - seen..])).collect::<Vec<_>>()));
            println!("| {percent} % | {seen} | {:.3} | {:.3} |", by[0], by[1]);
            found.push(by);
        }
        for way in 0..2 {
            let (one, many) = (found[0][way], found[3][way]);
            assert!(many > at_least && many > one + 0.03, "{percent} %, way {way}: {one} of one batch, {many} of all");
        }
    }
}
