//! Verification of the rows of series (docs/methods.md §13), from the contributions.
//!
//! Claim. If [`verify_series`] returns `Ok`, then: (1) every contributor set is a union of whole atoms of a cohort that is not retired,
//! and is the set that was locked at its first publication; (2) each atom has at least `crowd` members who are in no atom before it; (3)
//! at least `crowd` members of the set contributed to the bucket; (4) n, mean, deviation, quartiles and filled share are those of the
//! contributions and the carried values, to half a rounding step; (5) neither one nor two members dominate, and not all values are
//! equal; (6) no bucket is published that was closed before, and no row twice; (7) rows of several cohorts follow from published rows.
//!
//! Nothing is taken from the proposal but the rows, the new cohorts with their sets, and the rounding steps: sums, histories and
//! carried values are computed anew from the records and the state before.

use crate::anonymity::series::{
    CARRY, Cohort, Participant, Readings, RowFormat, SeriesProposal, SeriesRow, SeriesState, SeriesTerms, Terms,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Why the rows of a batch may not leave. None of these happens unless the code that proposes rows is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("verification refused the series {series:?}: {claim}")]
pub struct SeriesRefusal {
    /// Name of the series; empty where no single one is at fault.
    pub series: String,
    /// The claim that does not hold.
    pub claim: &'static str,
}

/// Rows that may leave: only [`verify_series`] makes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifiedSeries {
    /// None where the configuration has no series.
    terms: Option<Arc<Terms>>,
    rows: Vec<SeriesRow>,
}

impl VerifiedSeries {
    /// The rows in the order in which they leave.
    #[must_use]
    pub fn rows(&self) -> &[SeriesRow] {
        &self.rows
    }

    /// Number of series of the configuration.
    #[must_use]
    pub fn series(&self) -> usize {
        self.terms.as_ref().map_or(0, |terms| terms.series.len())
    }

    /// The rows of one series, written down.
    pub fn lines(&self, series: usize, format: RowFormat) -> impl Iterator<Item = Vec<u8>> + '_ {
        let rows = self.rows.iter().filter(move |row| row.series == series);
        self.terms.iter().flat_map(move |terms| {
            let strata = &terms.cohorts.strata_names;
            rows.clone().map(move |row| row.written(&terms.series[series], strata, format))
        })
    }
}

/// Count and sum by signal.
type Sums = Vec<(u32, f64)>;
/// End of the window, position of the series, bucket.
type Place = (i64, usize, i64);

/// What a person's channel has been so far.
#[derive(Clone, Copy, Default)]
struct Past {
    values: f64,
    sum: f64,
    last: f64,
    bucket: i64,
}

struct Recount<'a> {
    terms: &'a Terms,
    before: &'a SeriesState,
    /// Cohorts as they are after the batch.
    cohorts: BTreeMap<u32, &'a Cohort>,
    closing: BTreeMap<Place, BTreeMap<u64, Sums>>,
    past: HashMap<(u64, usize), Past>,
    /// In a job over files: everybody's first value by channel.
    first: HashMap<(u64, usize), f64>,
    steps: &'a [Option<f64>],
}

/// Recounts the rows of `proposal` from `readings` and the state before.
///
/// # Errors
/// The first claim that does not hold; no row may leave then.
pub fn verify_series(
    terms: &Arc<Terms>,
    before: &SeriesState,
    readings: &Readings,
    clock_ms: Option<i64>,
    proposal: &SeriesProposal,
) -> Result<VerifiedSeries, SeriesRefusal> {
    let claim = |claim| SeriesRefusal { series: String::new(), claim };
    let changes = &proposal.changes;
    let mut cohorts: BTreeMap<u32, &Cohort> = before.cohorts.iter().map(|(number, cohort)| (*number, cohort)).collect();
    cohorts.extend(changes.cohorts.iter().map(|(number, cohort)| (*number, cohort)));
    verify_atoms(terms, before, &cohorts).map_err(claim)?;
    if proposal.rows.is_empty() {
        return Ok(VerifiedSeries { terms: Some(Arc::clone(terms)), rows: Vec::new() });
    }
    for (step, known) in changes.head.steps.iter().zip(&before.head.steps) {
        if known.is_some() && step != known {
            return Err(claim("a rounding step has changed"));
        }
    }
    let mut recount = Recount {
        terms,
        before,
        cohorts,
        closing: closing_sums(terms, before, readings, clock_ms, proposal),
        past: HashMap::new(),
        first: HashMap::new(),
        steps: &changes.head.steps,
    };
    let mut rows: BTreeMap<Place, Vec<&SeriesRow>> = BTreeMap::new();
    for row in &proposal.rows {
        let named = |claim| SeriesRefusal { series: String::new(), claim };
        let series = terms.series.get(row.series).ok_or_else(|| named("a row is of no series"))?;
        let place = (series.end(row.bucket), row.series, row.bucket);
        rows.entry(place).or_default().push(row);
    }
    recount.note_first_values();
    let places: Vec<Place> = recount.closing.keys().copied().collect();
    if let Some((_, series, _)) = rows.keys().find(|place| !recount.closing.contains_key(place)) {
        return Err(SeriesRefusal {
            series: terms.series[*series].name.clone(),
            claim: "a row is of a bucket that does not close with this batch",
        });
    }
    for place in places {
        let name = || terms.series[place.1].name.clone();
        let of_bucket = rows.get(&place).map_or(&[][..], Vec::as_slice);
        recount.verify_bucket(place, of_bucket).map_err(|claim| SeriesRefusal { series: name(), claim })?;
        recount.remember(place);
    }
    Ok(VerifiedSeries { terms: Some(Arc::clone(terms)), rows: proposal.rows.clone() })
}

/// Claims (1) and (2) of every cohort, old and new.
fn verify_atoms(terms: &Terms, before: &SeriesState, cohorts: &BTreeMap<u32, &Cohort>) -> Result<(), &'static str> {
    let crowd = terms.cohorts.crowd;
    let mut known: BTreeSet<u64> = BTreeSet::new();
    for (number, cohort) in cohorts {
        if cohort.sets.len() != terms.channels() || cohort.atoms.is_empty() || cohort.atoms.len() > 16 {
            return Err("a cohort does not fit the series");
        }
        let old = before.cohorts.get(number);
        let mut own: BTreeSet<u64> = BTreeSet::new();
        for atom in &cohort.atoms {
            let fresh = atom.members.iter().filter(|member| !known.contains(member)).count();
            // An erasure takes members out of atoms that were whole when they were formed.
            if fresh < crowd && old.is_none() {
                return Err("an atom has fewer new members than a crowd");
            }
            if !atom.members.iter().all(|member| own.insert(*member)) {
                return Err("a person is twice in a cohort");
            }
        }
        known.extend(own);
        let within = u16::try_from((1u32 << cohort.atoms.len()) - 1).unwrap_or(u16::MAX);
        if cohort.sets.iter().flatten().any(|set| *set == 0 || set & !within != 0) {
            return Err("a contributor set is no union of atoms");
        }
        if let Some(old) = old {
            let kept = old.sets.iter().zip(&cohort.sets).all(|(old, new)| old.is_none() || old == new);
            if old.atoms != cohort.atoms || old.token != cohort.token || !kept {
                return Err("a locked cohort has changed");
            }
            if old.is_retired && (!cohort.is_retired || old.sets != cohort.sets) {
                return Err("a retired cohort publishes again");
            }
        }
    }
    Ok(())
}

/// Sums of the buckets that close with this batch: open ones of the state and records of the batch.
fn closing_sums(
    terms: &Terms,
    before: &SeriesState,
    readings: &Readings,
    clock_ms: Option<i64>,
    proposal: &SeriesProposal,
) -> BTreeMap<Place, BTreeMap<u64, Sums>> {
    let mut closing: BTreeMap<Place, BTreeMap<u64, Sums>> = BTreeMap::new();
    let closed_ms = &proposal.changes.head.closed_ms;
    let place = |series: usize, bucket: i64| -> Option<Place> {
        let end = terms.series[series].end(bucket);
        (end > before.head.closed_ms[series] && end <= closed_ms[series]).then_some((end, series, bucket))
    };
    for (subject, buckets) in &before.open {
        for open in buckets {
            if let Some(place) = place(usize::from(open.series), open.bucket) {
                let sums = open.partials.iter().map(|partial| (partial.count, partial.sum)).collect();
                closing.entry(place).or_default().insert(*subject, sums);
            }
        }
    }
    for (row, time) in readings.times.iter().enumerate() {
        let (subject, Some(time)) = (readings.subjects[row], *time) else { continue };
        if subject == 0 || clock_ms.is_some_and(|clock| time > clock) {
            continue;
        }
        for (series, of_series) in terms.series.iter().enumerate() {
            let Some(place) = place(series, of_series.bucket(time)) else { continue };
            if proposal.dropped.contains(&(row, series)) {
                continue;
            }
            let empty = || vec![(0, 0.0); of_series.signals.len()];
            let sums = closing.entry(place).or_default().entry(subject).or_insert_with(empty);
            for (sum, signal) in sums.iter_mut().zip(&of_series.signals) {
                let value = readings.values[signal.attribute][row];
                if !value.is_nan() {
                    *sum = (sum.0 + 1, sum.1 + value);
                }
            }
        }
    }
    closing
}

/// Mean of the values of a person, within the range of the signal.
fn value_of(sums: Option<&Sums>, signal: usize, terms: &SeriesTerms) -> Option<f64> {
    let (count, sum) = *sums?.get(signal)?;
    let (low, high) = terms.signals[signal].range;
    (count > 0 && sum.is_finite()).then(|| (sum / f64::from(count)).max(low).min(high))
}

impl Recount<'_> {
    fn note_first_values(&mut self) {
        if !self.terms.cohorts.is_batch {
            return;
        }
        for ((_, series, bucket), people) in &self.closing {
            let terms = &self.terms.series[*series];
            for (subject, sums) in people {
                for signal in 0..terms.signals.len() {
                    if let Some(value) = value_of(Some(sums), signal, terms) {
                        let channel = self.terms.first_channel(*series) + terms.channel(*bucket, signal);
                        self.first.entry((*subject, channel)).or_insert(value);
                    }
                }
            }
        }
    }

    fn past(&self, subject: u64, channel: usize) -> Past {
        if let Some(past) = self.past.get(&(subject, channel)) {
            return *past;
        }
        let history = |person: &Participant| person.histories.get(channel).copied();
        self.before.people.get(&subject).and_then(history).map_or_else(Past::default, |history| {
            let values = f64::from(history.values);
            Past { values, sum: history.mean * values, last: history.last, bucket: history.bucket }
        })
    }

    fn remember(&mut self, place: Place) {
        let (_, series, bucket) = place;
        let terms = &self.terms.series[series];
        for (subject, sums) in self.closing[&place].clone() {
            for signal in 0..terms.signals.len() {
                let Some(value) = value_of(Some(&sums), signal, terms) else { continue };
                let channel = self.terms.first_channel(series) + terms.channel(bucket, signal);
                let Past { values, sum, .. } = self.past(subject, channel);
                let past = Past { values: values + 1.0, sum: sum + value, last: value, bucket };
                self.past.insert((subject, channel), past);
            }
        }
    }

    fn carried(&self, subject: u64, channel: usize, terms: &SeriesTerms, bucket: i64) -> Option<f64> {
        let past = self.past(subject, channel);
        if past.values == 0.0 {
            return self.first.get(&(subject, channel)).copied();
        }
        let center = past.sum / past.values;
        let mut distance = past.last - center;
        for _ in 0..terms.windows_between(past.bucket, bucket).min(4_000) {
            distance *= CARRY;
        }
        Some(center + distance)
    }

    fn verify_bucket(&self, place: Place, rows: &[&SeriesRow]) -> Result<(), &'static str> {
        let (_, series, bucket) = place;
        let terms = &self.terms.series[series];
        let people = &self.closing[&place];
        let mut seen = BTreeSet::new();
        for row in rows {
            if row.signal >= terms.signals.len() || !seen.insert((row.signal, &row.cohort, &row.stratum)) {
                return Err("a row is of no signal, or leaves twice");
            }
            let channel = self.terms.first_channel(series) + terms.channel(bucket, row.signal);
            let step = self.steps.get(channel).copied().flatten().ok_or("a row has no rounding step")?;
            if step.is_nan() || step <= 0.0 {
                return Err("a rounding step is not above zero");
            }
            let Some(blocks) = self.members_of(row, terms, channel)? else {
                Self::verify_population(row, rows, step)?;
                continue;
            };
            let sums = |subject: &u64| value_of(people.get(subject), row.signal, terms);
            let present = blocks.iter().filter(|subject| sums(subject).is_some()).count();
            if present < self.terms.cohorts.crowd {
                return Err("fewer members than a crowd are present");
            }
            let value = |subject: &u64| sums(subject).or_else(|| self.carried(*subject, channel, terms, bucket));
            let values: Option<Vec<f64>> = blocks.iter().map(value).collect();
            let values = values.ok_or("a member has no value and no history")?;
            self.verify_statistics(row, &values, present, step)?;
        }
        Ok(())
    }

    /// Members of the contributor set of a row; none where the row stands for several published rows.
    fn members_of(
        &self,
        row: &SeriesRow,
        terms: &SeriesTerms,
        channel: usize,
    ) -> Result<Option<Vec<u64>>, &'static str> {
        if row.sets.is_empty() {
            return Ok(None);
        }
        if terms.pooled != row.cohort.is_none() || !terms.pooled && row.sets.len() != 1 {
            return Err("a row of a cohort is of several, or one of several names a cohort");
        }
        let mut members = Vec::new();
        let mut seen = BTreeSet::new();
        for &(number, atoms) in &row.sets {
            let cohort = self.cohorts.get(&number).ok_or("a row is of no cohort")?;
            let was_retired = self.before.cohorts.get(&number).is_some_and(|cohort| cohort.is_retired);
            if was_retired || row.stratum.as_ref() != Some(&cohort.stratum) || !seen.insert(number) {
                return Err("a row is of a retired cohort, of one twice or of another stratum");
            }
            if cohort.sets[channel] != Some(atoms) {
                return Err("a row is of a set that is not locked");
            }
            if row.cohort.as_ref().is_some_and(|token| *token != cohort.token) {
                return Err("a row has the name of another cohort");
            }
            members.extend(cohort.members(atoms));
        }
        Ok(Some(members))
    }

    fn verify_statistics(
        &self,
        row: &SeriesRow,
        values: &[f64],
        present: usize,
        step: f64,
    ) -> Result<(), &'static str> {
        let n = values.len() as f64;
        let is_near = |shown: f64, exact: f64| {
            (shown - exact).abs() <= step * 0.500_001 + exact.abs() * 1e-12 && is_multiple(shown, step)
        };
        let center = values.iter().sum::<f64>() / n;
        let deviation = (values.iter().map(|x| (x - center) * (x - center)).sum::<f64>() / (n - 1.0)).sqrt();
        if row.n != values.len() as u64 || !is_near(row.mean, center) || !is_near(row.sd, deviation) {
            return Err("a mean or a deviation is not that of the contributions");
        }
        if row.sd <= 0.0 {
            return Err("all members have one value");
        }
        let filled = (n - present as f64) / n;
        if (row.filled - filled).abs() > 0.050_001 || !is_multiple(row.filled, 0.1) {
            return Err("the filled share is not that of the contributions");
        }
        let mut sizes: Vec<f64> = values.iter().map(|x| x.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.reverse();
        let total: f64 = sizes.iter().sum();
        let rest: f64 = sizes[2..].iter().sum();
        // Carried values are computed in another order than proposed ones: a boundary is judged up to floating-point error.
        if rest < sizes[0] / 10.0 * (1.0 - 1e-9) || sizes[0] > total / 2.0 * (1.0 + 1e-9) {
            return Err("one or two members dominate a sum");
        }
        if row.quartiles.is_some() != (values.len() >= 2 * self.terms.cohorts.crowd) {
            return Err("quartiles of a small set leave, or those of a large one are missing");
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        for (share, shown) in [0.25, 0.5, 0.75].into_iter().zip(row.quartiles.into_iter().flatten()) {
            let at = share * (n - 1.0);
            let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
            if !is_near(shown, low + (high - low) * at.fract()) {
                return Err("a quartile is not that of the contributions");
            }
        }
        Ok(())
    }

    /// Recomputes a row of several cohorts from the rows of the cohorts.
    fn verify_population(row: &SeriesRow, rows: &[&SeriesRow], step: f64) -> Result<(), &'static str> {
        let is_part = |part: &&&SeriesRow| {
            !part.sets.is_empty() && part.signal == row.signal && (row.stratum.is_none() || part.stratum == row.stratum)
        };
        let parts: Vec<&&SeriesRow> = rows.iter().filter(is_part).collect();
        let people: f64 = parts.iter().map(|part| part.n as f64).sum();
        if parts.is_empty() || row.quartiles.is_some() || (people - row.n as f64).abs() > 0.5 {
            return Err("a row of several cohorts stands for other people than theirs");
        }
        let present = |part: &SeriesRow| f64::max(1.0 - part.filled, 0.1) * part.n as f64;
        let (mut total, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for part in &parts {
            total += present(part);
            sum += present(part) * part.mean;
            squares += present(part) * (part.sd * part.sd + part.mean * part.mean);
        }
        let center = sum / total;
        let deviation = (squares / total - center * center).max(0.0).sqrt();
        let is_near = |shown: f64, exact: f64| (shown - exact).abs() <= step * 0.500_001 + exact.abs() * 1e-12;
        let missing = parts.iter().map(|part| part.filled * part.n as f64).sum::<f64>() / people;
        let filled = (row.filled - missing).abs() <= 0.050_001;
        if is_near(row.mean, center) && is_near(row.sd, deviation) && filled {
            Ok(())
        } else {
            Err("a row of several cohorts does not follow from theirs")
        }
    }
}

/// Whether a value is a multiple of a step, up to floating-point error.
fn is_multiple(value: f64, step: f64) -> bool {
    let multiple = value / step;
    (multiple - multiple.round()).abs() <= 1e-6 * multiple.abs().max(1.0)
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
