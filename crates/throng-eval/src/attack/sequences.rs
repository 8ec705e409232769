//! Sequence attack: an attacker follows a subject by raw values of several records \[KAZ]. The second yield counts
//! subjects that fit all moments.

use super::attack_input::{AttackEffort, AttackInput, LinkedGroup};
use super::trials::{AttackTrials, AttackYield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

const MOMENTS: usize = 4;

/// Attacks `effort.targets` pairs of subject and group.
pub fn run(release: &AttackInput<'_>, effort: AttackEffort, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let known = release.linked_groups();
    let mut targets: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, group) in known.iter().enumerate() {
        let long = group.lines_by_person(&release.people).into_values().filter(|lines| lines.len() >= MOMENTS);
        targets.extend(long.map(|lines| (at, lines.into_values().collect())));
    }
    targets.shuffle(dice);
    targets.truncate(effort.targets);
    let (mut followed, mut linked) = (AttackTrials::default(), AttackTrials::default());
    let nobody = 1.0 / release.population.max(1) as f64;
    for (at, mut lines) in targets {
        lines.shuffle(dice);
        lines.truncate(MOMENTS);
        let (mut right, mut chance, mut fitting) = (1.0, 1.0, None::<BTreeSet<u32>>);
        for &line in &lines {
            let (group, own) = (&known[at], known[at].person(&release.people, line));
            let there = &group.batches[&group.origins[line].batch];
            let fits = fitting_lines(release, group, line, there);
            let of_own = |lines: &[usize]| {
                lines.iter().filter(|line| group.person(&release.people, **line) == own).count() as f64
            };
            right *= of_own(&fits) / fits.len().max(1) as f64;
            chance *= of_own(there) / there.len() as f64;
            let people: BTreeSet<u32> = fits.iter().map(|line| group.person(&release.people, *line)).collect();
            fitting = Some(fitting.map_or_else(|| people.clone(), |fitting| &fitting & &people));
        }
        followed.add_to_group(&known[at].shape.name, right, chance);
        let fitting = fitting.unwrap_or_default();
        let own = known[at].person(&release.people, lines[0]);
        linked.add(if fitting.contains(&own) { 1.0 / fitting.len() as f64 } else { 0.0 }, nobody);
    }
    let given = format!("the values at {MOMENTS} moments: all their lines");
    let as_if = format!("the values at {MOMENTS} moments, if lines were linked");
    vec![
        release.adjust_line_yield(followed.into_yield("sequences", given, Some(release.batch_bound()))),
        linked.into_yield("sequences", as_if, None).measured_only(),
    ]
}

fn fitting_lines(release: &AttackInput<'_>, known: &LinkedGroup<'_>, line: usize, there: &[usize]) -> Vec<usize> {
    let (row, columns) = (known.origins[line].row as usize, known.quasi_columns());
    there.iter().copied().filter(|line| release.fits(&columns, *line, row)).collect()
}
