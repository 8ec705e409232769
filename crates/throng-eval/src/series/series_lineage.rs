//! Series entries of the lineage.

use crate::error::EvaluationError;
use crate::lineage::{lineage_entry_error, series_entries};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use throng_core::series::SeriesEntry;
use throng_core::series::{AllSeriesTerms, SeriesTerms, SlotCycle};

const MAX_ATOMS: usize = 16;

/// Cohort of the lineage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CohortRecord {
    /// Number, in creation order.
    pub number: u32,
    /// Name in rows.
    pub token: String,
    /// Stratum labels.
    pub stratum: Vec<String>,
    /// Member digests per atom, ascending.
    pub atoms: Vec<Vec<u64>>,
    /// Last 16 digest bits of members erased earlier.
    pub erased: Vec<u16>,
    /// Formed by an earlier run; members may be erased.
    pub is_older: bool,
    /// Locked contributor sets by channel.
    pub sets: BTreeMap<usize, LockedSet>,
    /// Per series: latest bucket end closed before formation.
    pub formed_after: Vec<i64>,
    /// Per series: latest bucket end published, once retired.
    pub retired_after: Option<Vec<i64>>,
    /// Line in the file, from 1.
    pub line: u64,
}

/// Locked contributor set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockedSet {
    /// Atoms as bits.
    pub atoms: u16,
    /// Line in the file, from 1.
    pub line: u64,
}

/// Number and digest of a bucket's rows, as recorded by the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsDigest {
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of the JSON lines, in hexadecimal.
    pub sha256: String,
}

/// Contradiction between two lineage lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineageConflict {
    /// Later line, from 1.
    pub line: u64,
    /// Violated rule.
    pub claim: &'static str,
}

/// Series entries of a lineage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesLineage {
    /// File path.
    pub path: PathBuf,
    /// Cohorts by number.
    pub cohorts: BTreeMap<u32, CohortRecord>,
    /// Cohorts of pooled rows, by series and output line.
    pub pooled: BTreeMap<(usize, u64), Vec<u32>>,
    /// Records without contribution: offset, element (0: whole line), series.
    pub dropped: BTreeSet<(i64, u32, usize)>,
    /// Published rows by series, bucket, and epoch flag.
    pub published: BTreeMap<(usize, i64, bool), RowsDigest>,
    /// Per series: latest closed bucket end.
    pub closed_ms: Vec<i64>,
    /// Per series: latest bucket end closed earlier.
    pub begun_after: Vec<i64>,
    /// Lines that contradict earlier ones.
    pub conflicts: Vec<LineageConflict>,
    has_older_cohorts: bool,
    numbers: BTreeMap<String, u32>,
}

impl CohortRecord {
    /// Returns the members of `atoms`.
    pub fn members(&self, atoms: u16) -> impl Iterator<Item = u64> + '_ {
        let chosen = self.atoms.iter().enumerate().filter(move |(index, _)| atoms & (1 << index) != 0);
        chosen.flat_map(|(_, atom)| atom.iter().copied())
    }

    /// Returns a channel's locked atoms; 0 without a set.
    #[must_use]
    pub fn locked_atoms(&self, channel: usize) -> u16 {
        self.sets.get(&channel).map_or(0, |set| set.atoms)
    }
}

impl SeriesLineage {
    /// Reads a lineage, without fragment entries.
    ///
    /// # Errors
    ///
    /// When the file is unreadable or a line invalid.
    pub fn read(path: &Path, terms: &AllSeriesTerms) -> Result<Self, EvaluationError> {
        let closed_ms = vec![i64::MIN; terms.series.len()];
        let begun_after = closed_ms.clone();
        let mut lineage = Self { path: path.to_owned(), closed_ms, begun_after, ..Self::default() };
        for entry in series_entries(path)? {
            let (line, entry) = entry?;
            lineage.add(terms, line, entry).map_err(|why| lineage_entry_error(path, line, why))?;
        }
        Ok(lineage)
    }

    fn add(&mut self, terms: &AllSeriesTerms, line: u64, entry: SeriesEntry) -> Result<(), &'static str> {
        match entry {
            SeriesEntry::Cohort { number, token, stratum, atoms, erased, is_older } => {
                let digest = |text: &String| u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16);
                let atom = |atom: &Vec<String>| atom.iter().map(digest).collect::<Option<Vec<u64>>>();
                let atoms: Option<Vec<Vec<u64>>> = atoms.iter().map(atom).collect();
                let atoms = atoms.ok_or("a member is not a digest of 16 hexadecimal digits")?;
                if atoms.is_empty() || atoms.len() > MAX_ATOMS || stratum.len() != terms.cohorts.strata.len() {
                    return Err("a cohort does not fit the configuration");
                }
                let formed_after = self.closed_ms.clone();
                let sets = BTreeMap::new();
                let cohort = CohortRecord {
                    number,
                    token,
                    stratum,
                    atoms,
                    erased,
                    is_older,
                    sets,
                    formed_after,
                    retired_after: None,
                    line,
                };
                self.add_cohort(cohort);
            }
            SeriesEntry::Set { series, signal, slot, cohort, atoms } => {
                let channel = match signal {
                    Some(signal) => signal_channel(terms, &series, &signal, slot)?,
                    None => moments_channel(terms, &series)?,
                };
                let cohort = self.cohorts.get_mut(&cohort).ok_or("no cohort has this number")?;
                if atoms.iter().any(|atom| *atom >= cohort.atoms.len()) {
                    return Err("no atom of the cohort has this number");
                }
                let atoms = atoms.iter().fold(0, |bits, atom| bits | 1 << atom);
                if cohort.sets.insert(channel, LockedSet { atoms, line }).is_some_and(|before| before.atoms != atoms) {
                    self.conflicts.push(LineageConflict { line, claim: "a locked contributor set does not change" });
                }
            }
            SeriesEntry::Pooled { series, line, cohorts } => {
                self.pooled.insert((series_by_name(terms, &series)?, line), cohorts);
            }
            SeriesEntry::Dropped { series, offset, element } => {
                let element = element.map_or(0, |index| index.saturating_add(1));
                self.dropped.insert((offset, element, series_by_name(terms, &series)?));
            }
            SeriesEntry::Rows { series, bucket, is_of_epoch, rows, sha256 } => {
                let key = (series_by_name(terms, &series)?, bucket, is_of_epoch);
                if self.published.insert(key, RowsDigest { rows, sha256 }).is_some() {
                    self.conflicts.push(LineageConflict { line, claim: "a bucket is published only once" });
                }
            }
            SeriesEntry::Closed { series, until, is_older } => {
                let series = series_by_name(terms, &series)?;
                if is_older && until > self.closed_ms[series] {
                    self.begun_after[series] = until;
                }
                self.closed_ms[series] = until.max(self.closed_ms[series]);
            }
            SeriesEntry::Retired { cohort } => {
                let closed_ms = self.closed_ms.clone();
                let cohort = self.cohorts.get_mut(&cohort).ok_or("no cohort has this number")?;
                cohort.retired_after.get_or_insert(closed_ms);
            }
        }
        Ok(())
    }

    /// Later runs repeat cohorts without members erased since.
    fn add_cohort(&mut self, cohort: CohortRecord) {
        let Some(known) = self.cohorts.get(&cohort.number) else {
            if self.cohorts.last_key_value().is_some_and(|(last, _)| *last > cohort.number) {
                let claim = "cohorts are numbered in the order of their creation";
                self.conflicts.push(LineageConflict { line: cohort.line, claim });
            }
            self.has_older_cohorts |= cohort.is_older;
            self.numbers.entry(cohort.token.clone()).or_insert(cohort.number);
            self.cohorts.insert(cohort.number, cohort);
            return;
        };
        let is_part = |(now, before): (&Vec<u64>, &Vec<u64>)| now.iter().all(|member| before.contains(member));
        let is_same = cohort.is_older
            && (&known.token, &known.stratum, known.atoms.len())
                == (&cohort.token, &cohort.stratum, cohort.atoms.len())
            && cohort.atoms.iter().zip(&known.atoms).all(is_part);
        if !is_same {
            self.conflicts.push(LineageConflict { line: cohort.line, claim: "a cohort is formed only once" });
        }
    }

    /// Returns true after an earlier run, whose records carried values may need.
    #[must_use]
    pub fn has_earlier_run(&self) -> bool {
        self.has_older_cohorts || self.begun_after.iter().any(|until| *until > i64::MIN)
    }

    /// Returns a cohort by name.
    #[must_use]
    pub fn cohort_by_token(&self, token: &str) -> Option<&CohortRecord> {
        self.cohorts.get(self.numbers.get(token)?)
    }
}

fn series_by_name(terms: &AllSeriesTerms, name: &str) -> Result<usize, &'static str> {
    terms.series.iter().position(|series| series.name == name).ok_or("the configuration has no such series")
}

fn moments_channel(terms: &AllSeriesTerms, series: &str) -> Result<usize, &'static str> {
    let series = series_by_name(terms, series)?;
    let of = &terms.series[series];
    of.moments.as_ref().map(|_| terms.first_channel(series)).ok_or("the series has no moments")
}

fn signal_channel(terms: &AllSeriesTerms, series: &str, signal: &str, slot: usize) -> Result<usize, &'static str> {
    let series = series_by_name(terms, series)?;
    let of: &SeriesTerms = &terms.series[series];
    if of.moments.is_some() {
        return Err("a series with moments has one contributor set for all signals, and no rounding steps");
    }
    let signal = of.signals.iter().position(|known| known.name == signal).ok_or("the series has no such signal")?;
    if slot >= of.cycle.map_or(1, SlotCycle::slots) {
        return Err("the cycle has no such slot");
    }
    Ok(terms.first_channel(series) + slot * of.signals.len() + signal)
}
