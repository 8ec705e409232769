//! The way of a data set in a file, from the source to the sink.

use super::data::{self, Data};
use super::parts;
use super::refusals::refuse;
use super::release::{Leaving, release};
use super::searched::{Searched, searched};
use crate::anonymity::lattice::table::{NOBODY, Table};
use crate::anonymity::lattice::until::Until;
use crate::config::Config;
use crate::dataset::attended::Attended;
use crate::dataset::done::Anonymized;
use crate::dataset::error::AnonymizeError;
use crate::dataset::search::{self, possible};
use crate::dataset::source::Source;
use crate::dataset::summary::{self, People, RawRisk, Sizes};
use crate::dataset::write;
use std::path::Path;
use std::time::Instant;

/// Anonymizes the source of `config` into its sink, with its codes in a file in `directory`.
///
/// Memory: that of `source`; what does not fit is refused by name.
///
/// # Errors
/// See [`AnonymizeError`]; no line has been written then, but where writing itself failed.
pub fn anonymize(
    config: &Config,
    file: &str,
    (source, directory): (&Source<'_>, &Path),
    attended: Attended<'_>,
) -> Result<Anonymized, AnonymizeError> {
    let begun = Instant::now();
    refuse(config, file)?;
    let place = write::ready(config)?;
    let step = attended.step;
    let data = data::read(config, file, (source, directory), attended.note, step)?;
    let k = config.privacy.crowd();
    let terms = search::terms(config, file, &data.input, &data.sensitive_domains())?;
    let table = data.table(step)?;
    let threads = rayon::current_num_threads();
    let (table, threads) = data.room.search(table, &terms, data.codes.people.unwrap_or(0), threads)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| AnonymizeError::Threads(error.to_string()))?;
    let risk_before = raw_risk(&table);
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = Until::new(&clock, config.anonymize.time_limit, attended.stop);
    let (found, table) = searched(&data, (table, &pool), &terms, (search::passes(config), k), until, attended)?;
    let Searched { recoded, before, settled } = found;
    let say = |policy: &[u8]| summary::policy(&data.domains(), &data.input, policy);
    pool.install(|| possible(&say, &recoded, &table, &terms, until))?;
    let (kept, hidden) = settled.ok_or(AnonymizeError::SaysNothing)?;
    let lattice = table.lattice().approximate_size();
    drop(table);
    let policy = recoded.passes.first().map(|pass| pass.policy.clone()).ok_or(AnonymizeError::SaysNothing)?;
    let most = source.part.unwrap_or(usize::MAX).min(parts::most(&data, &kept, k)).max(1);
    let (parts, seen) = parts::divided(&data, &kept, &hidden, (k, most), step)?;
    let rare_sensitive_cells = hidden.masks.iter().map(|(_, mask)| u64::from(mask.count_ones())).sum();
    drop((kept, hidden));
    let people = seen.people.map(|(all, left)| People { all, lost: all - left });
    let leaving = Leaving { config, data: &data, policy: &policy, models: &terms.models, parts };
    let risk = release(place, &leaving, seen, step)?;
    let Data { input, codes, released, .. } = data;
    Ok(Anonymized {
        rows: codes.rows as u64,
        to_release: released,
        swallowed: input.swallowed,
        quasi: input.quasi.iter().map(|&a| input.schema.attributes[a].name.clone()).collect(),
        labels: summary::labels(&input),
        people,
        risk_before,
        transformation: config.anonymize.transformation,
        recoded,
        before,
        measure: config.anonymize.measure,
        strategy: config.anonymize.strategy,
        lattice,
        risk,
        rare_sensitive_cells,
        aggregated: Vec::new(),
        ceiled: None,
        warnings: input.schema.warnings(),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// As [`summary::raw_risk`], of distinct rows.
fn raw_risk(table: &Table) -> RawRisk {
    let mut sizes = Sizes::default();
    let mut people: Vec<u32> = Vec::new();
    table.each_raw_tuple(&mut |records, subjects| {
        let known = subjects.map_or(records, |subjects| {
            people.clear();
            people.extend(subjects.iter().copied().filter(|&subject| subject != NOBODY));
            people.sort_unstable();
            people.dedup();
            (people.len() as u64).max(1)
        });
        sizes.add(records, known);
    });
    sizes.risk()
}
