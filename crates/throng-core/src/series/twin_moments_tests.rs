//! Reference moments: loops over subjects, epochs and rows.

use super::reference_step as step_of;
use super::*;

impl ReferenceSeries<'_> {
    pub(super) fn rows_by_epoch(&self, person: u64, series: usize) -> BTreeMap<i64, Vec<Vec<f64>>> {
        let terms = &self.terms.series[series];
        let mut epochs: BTreeMap<i64, Vec<Vec<f64>>> = BTreeMap::new();
        for (bucket, _) in self.history(person, series, 0, 0) {
            let row = (0..terms.signals.len()).map(|signal| self.values[&(series, person, bucket, signal)]).collect();
            epochs.entry(bucket.div_euclid(EPOCH_MS) * EPOCH_MS).or_default().push(row);
        }
        epochs.retain(|_, rows| rows.len() >= terms.min_values as usize);
        epochs
    }

    fn mean_moment(
        &self,
        members: &[u64],
        series: usize,
        epoch: i64,
        of: &dyn Fn(&[f64]) -> f64,
    ) -> (f64, Vec<f64>, usize) {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let of_rows = |rows: &Vec<Vec<f64>>| mean(&rows.iter().map(|row| of(row)).collect::<Vec<f64>>());
        let mut present = 0;
        let mut of_person = |person: &u64| {
            let epochs = self.rows_by_epoch(*person, series);
            let earlier: Vec<f64> = epochs.range(..epoch).map(|(_, rows)| of_rows(rows)).collect();
            present += usize::from(epochs.contains_key(&epoch));
            match epochs.get(&epoch) {
                Some(rows) => of_rows(rows),
                None if earlier.is_empty() => of_rows(epochs.values().next().expect("an epoch")),
                None => mean(&earlier),
            }
        };
        let values: Vec<f64> = members.iter().map(&mut of_person).collect();
        (mean(&values), values, present)
    }

    pub(super) fn expected_moments(&self, series: usize, cohorts: &[ReferenceCohort]) -> Vec<ReferenceRow> {
        let (terms, crowd) = (&self.terms.series[series], self.terms.cohorts.crowd);
        let epochs: BTreeSet<i64> =
            self.people.iter().flat_map(|person| self.rows_by_epoch(*person, series).into_keys()).collect();
        let mut found = Vec::new();
        for epoch in epochs {
            for block in self.blocks(terms, cohorts) {
                let is_whole =
                    |atom: &&Vec<u64>| atom.iter().all(|person| self.reaches_min_values(*person, (series, 0, 0)));
                let atoms = block.iter().flat_map(|cohort| cohort.atoms.iter().filter(is_whole));
                let members: Vec<u64> = atoms.flatten().copied().collect();
                let (_, _, present) = self.mean_moment(&members, series, epoch, &|_| 0.0);
                if present < crowd {
                    continue;
                }
                let colluders = self.terms.cohorts.colluders;
                let moment = |of: &dyn Fn(&[f64]) -> f64| self.mean_moment(&members, series, epoch, of);
                let range = |signal: usize| terms.signals[signal].range;
                let covariance = |a: usize, b: usize| {
                    let from = |(x, y): (f64, f64)| moment(&|row| (row[a] - x) * (row[b] - y)).1;
                    let means = (moment(&|row| row[a]).0, moment(&|row| row[b]).0);
                    let ends = [(range(a).0, range(b).0), (range(a).1, range(b).1), means];
                    let is_dominated = ends.iter().any(|ends| is_largest_dominating(&from(*ends), colluders));
                    let product = moment(&|row| row[a] * row[b]).0;
                    (product - moment(&|row| row[a]).0 * moment(&|row| row[b]).0, is_dominated)
                };
                let variance = |signal: usize| {
                    let (mean_square, ..) = moment(&|row| row[signal] * row[signal]);
                    let (variance, is_square_dominated) = covariance(signal, signal);
                    let is_sum_dominated = is_dominated(&moment(&|row| row[signal]).1, range(signal), colluders);
                    let is_shown = !is_square_dominated && !is_sum_dominated && variance > 1e-10 * mean_square;
                    let step = step_of(variance / 1_000.0).filter(|_| is_shown)?;
                    Some((variance / step).round() * step)
                };
                let mut variances: Vec<Option<f64>> = (0..terms.signals.len()).map(variance).collect();
                for b in 0..terms.signals.len() {
                    let values = |signal: usize| moment(&|row| row[signal]).1;
                    let is_given_away = |a: usize| is_small_rest(&values(a), &values(b), &self.terms.cohorts);
                    if (0..b).any(|a| variances[a].is_some() && is_given_away(a)) {
                        variances[b] = None;
                    }
                }
                for a in 0..terms.signals.len() {
                    for b in a..terms.signals.len() {
                        let (Some(one), Some(other)) = (variances[a], variances[b]) else { continue };
                        let (exact, is_dominated) = covariance(a, b);
                        if is_dominated {
                            continue;
                        }
                        let cohort = (!terms.pooled).then(|| block[0].token.clone());
                        let stratum = Some(block[0].stratum.clone());
                        let target = (one * other).sqrt() / 1_000.0;
                        let mean =
                            (a == b).then(|| (moment(&|row| row[a]).0, step_of(one.sqrt() / 1_000.0).expect("a step")));
                        // Steps of variances follow from their exact values.
                        let step = step_of(if a == b { exact / 1_000.0 } else { target }).expect("a step");
                        found.push(ReferenceRow {
                            name: (series, epoch, a, cohort, stratum, Some(format!("with {b}"))),
                            n: members.len() as u64,
                            filled: (members.len() - present) as f64 / members.len() as f64,
                            expected_statistic: ReferenceStatistic::Moment { mean, covariance: exact, step },
                        });
                    }
                }
            }
        }
        found
    }
}

/// Above half of the sum, or ten times the rest without the next ones.
fn is_largest_dominating(values: &[f64], colluders: usize) -> bool {
    let mut sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let rest: f64 = sizes.iter().skip(1 + usize::max(colluders, 1)).sum();
    rest * 10.0 < sizes[0] || sizes[0] * 2.0 > sizes.iter().sum::<f64>()
}
