//! Sequences: whoever knows what a device measured at some moments follows its person through the release [KAZ].
//!
//! The outsider knows the raw quasi values of a group in several records of a person, and their batches, and takes a line that fits
//! each. Lines of a person are not linked, so that each moment has to be found for itself. The second yield says what a pseudonym
//! would give away: how many people have lines that fit all the moments.

use super::release::{Effort, Known, Release};
use super::trials::{Trials, Yield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

/// Moments that are known.
const MOMENTS: usize = 4;

/// Tries `effort.targets` people and groups.
pub fn run(release: &Release<'_>, effort: Effort, dice: &mut ChaCha8Rng) -> Vec<Yield> {
    let known = release.known();
    let mut targets: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, group) in known.iter().enumerate() {
        let long = group.lines_by_person(&release.people).into_values().filter(|lines| lines.len() >= MOMENTS);
        targets.extend(long.map(|lines| (at, lines.into_values().collect())));
    }
    targets.shuffle(dice);
    targets.truncate(effort.targets);
    let (mut followed, mut linked) = (Trials::default(), Trials::default());
    let nobody = 1.0 / release.population.max(1) as f64;
    for (at, mut lines) in targets {
        lines.shuffle(dice);
        lines.truncate(MOMENTS);
        let (mut right, mut chance, mut fitting) = (1.0, 1.0, None::<BTreeSet<u32>>);
        for &line in &lines {
            let (group, own) = (&known[at], known[at].person(&release.people, line));
            let there = &group.batches[&group.origins[line].batch];
            let fits = fits(release, group, line, there);
            let of_own = |lines: &[usize]| {
                lines.iter().filter(|line| group.person(&release.people, **line) == own).count() as f64
            };
            right *= of_own(&fits) / fits.len().max(1) as f64;
            chance *= of_own(there) / there.len() as f64;
            let people: BTreeSet<u32> = fits.iter().map(|line| group.person(&release.people, *line)).collect();
            fitting = Some(fitting.map_or_else(|| people.clone(), |fitting| &fitting & &people));
        }
        followed.add_to(&known[at].shape.name, right, chance);
        let fitting = fitting.unwrap_or_default();
        let own = known[at].person(&release.people, lines[0]);
        linked.add(if fitting.contains(&own) { 1.0 / fitting.len() as f64 } else { 0.0 }, nobody);
    }
    let given = format!("the values at {MOMENTS} moments: all their lines");
    let as_if = format!("the values at {MOMENTS} moments, were lines linked");
    vec![
        release.of_lines(followed.sum_up("sequences", given, Some(release.in_batch()))),
        linked.sum_up("sequences", as_if, None).measured_only(),
    ]
}

/// The lines of a batch that fit the raw quasi values behind `line`.
fn fits(release: &Release<'_>, known: &Known<'_>, line: usize, there: &[usize]) -> Vec<usize> {
    let (row, columns) = (known.origins[line].row as usize, known.quasi_columns());
    there.iter().copied().filter(|line| release.fits(&columns, *line, row)).collect()
}
