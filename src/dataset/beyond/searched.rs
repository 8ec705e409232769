//! The search for a policy over distinct records, made again as [`search`](crate::dataset::search) makes it again.

use super::data::Data;
use super::hiding::{Asked, Hidden, hidden};
use super::kept::Kept;
use crate::anonymity::lattice::check::Terms;
use crate::anonymity::lattice::passes::{Passes, PassesError, Recoded};
use crate::anonymity::lattice::search::Progress;
use crate::anonymity::lattice::table::Table;
use crate::anonymity::lattice::until::Until;
use crate::anonymity::lattice::whole::{Whole, recode_whole};
use crate::anonymity::quality::Worth;
use crate::dataset::attended::Attended;
use crate::dataset::error::AnonymizeError;
use crate::dataset::search::{OF_TURN, TURNS};
use rayon::ThreadPool;

/// What a search came to.
pub struct Searched {
    pub recoded: Recoded,
    /// Every measure of the records as they are.
    pub before: Worth,
    /// None where too much would have to be suppressed.
    pub settled: Option<(Kept, Hidden)>,
}

/// Searches, and settles what would hide; once more where values that hide had been taken for common ones, and a class could not hide them.
/// Gives the table back.
pub fn searched(
    data: &Data,
    (mut table, pool): (Table, &ThreadPool),
    terms: &Terms,
    (passes, k): (Passes, usize),
    until: Until<'_>,
    attended: Attended<'_>,
) -> Result<(Searched, Table), AnonymizeError> {
    let Attended { watch, step, .. } = attended;
    let told = |progress: &Progress| watch(&Progress { left: until.left(), ..progress.clone() });
    let mut before: Option<Searched> = None;
    let mut known = data.rare(k, step)?;
    for turn in 1.. {
        let one = data.sensitive.is_empty() || turn == TURNS;
        let time = if one { until } else { until.share(OF_TURN) };
        table = table.with_rare(&known);
        let (found, kept) = pool.install(|| recoded(data, &table, terms, passes, time, &told))?;
        let Whole { mut recoded, before: worth } = found;
        let kept = kept.filter(|_| !recoded.passes.is_empty() && recoded.account.suppressed <= recoded.limit);
        let Some(kept) = kept else {
            if let Some(mut before) = before.filter(|_| recoded.cut.is_some()) {
                before.recoded.cut = recoded.cut;
                return Ok((before, table));
            }
            return Ok((Searched { recoded, before: worth, settled: None }, table));
        };
        let asked = Asked { data, kept: &kept, table: &table, models: &terms.models, k, known: &known, step };
        let hidden = hidden(&asked)?;
        let mut wider = hidden.rare.clone();
        for (wider, known) in wider.iter_mut().flatten().zip(known.iter().flatten()) {
            *wider |= *known;
        }
        let last = hidden.lost.is_empty() || turn == TURNS || wider == known || until.is_over();
        recoded.account.suppressed += hidden.lost.len() as u64;
        let possible = recoded.account.suppressed <= recoded.limit;
        let found = Searched { recoded, before: worth, settled: Some((kept, hidden)) };
        if last {
            return Ok((found, table));
        }
        before = possible.then_some(found).or(before);
        known = wider;
    }
    unreachable!("the last turn returns")
}

/// One search, and the classes that leave by what it found.
fn recoded(
    data: &Data,
    table: &Table,
    terms: &Terms,
    passes: Passes,
    until: Until<'_>,
    watch: &(dyn Fn(&Progress) + Sync),
) -> Result<(Whole, Option<Kept>), PassesError> {
    let mut kept: Option<Kept> = None;
    let mut note = |policy: &[u8], values: &[u32], records: u64| {
        kept.get_or_insert_with(|| Kept::new(data, policy)).add(data, values, records);
    };
    let found = recode_whole(table, terms, passes, until, watch, &mut note)?;
    kept.iter_mut().for_each(Kept::close);
    Ok((found, kept))
}
