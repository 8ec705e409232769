//! Sets that are counted together: one histogram of the union of their columns, rolled up to each of them.

use super::matrix::Field;

/// Cells of the narrow counters of a slice: two bytes each, a key of two bytes always inside.
pub(super) const CELLS: usize = 1 << 16;

/// Rows of a slice for each cell of a shared histogram, at least: below that the sums cost more than they save.
const ROWS_A_CELL: usize = 8;

/// One set of a family, without the family's column.
#[derive(Clone, Debug)]
pub(super) struct Remainder {
    pub(super) at: usize,
    /// Cardinality descending.
    pub(super) rest: Vec<usize>,
    /// Product of their cardinalities.
    pub(super) domain: u64,
}

/// Some sets of a family, and what they are counted by.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) sets: Vec<Remainder>,
    /// Union of the columns of the sets; the one that all have in common comes last.
    pub(super) columns: Vec<usize>,
    /// Cells of the union; beyond [`CELLS`] only for a lone set.
    pub(super) domain: u64,
    /// Cells of the column that all its sets have in common; it varies fastest in every histogram.
    pub(super) run: usize,
    /// For each set the first cell of its own for each run of the union. Empty for a lone set.
    pub(super) rolls: Vec<Vec<u16>>,
}

/// Clusters of a family whose slices have about `rows` rows; neighbours share beginnings.
pub(super) fn clusters(mut sets: Vec<Remainder>, fields: &[Field], rows: usize, k: u32) -> Vec<Cluster> {
    let limit = (rows / ROWS_A_CELL).min(CELLS) as u64;
    sets.sort_by(|a, b| b.domain.cmp(&a.domain).then_with(|| a.rest.cmp(&b.rest)));
    let mut found: Vec<Cluster> = Vec::new();
    for set in sets {
        // A set that never fills its domain is refined, and needs no histogram.
        let fills = set.domain.saturating_mul(u64::from(k)) <= 4 * rows as u64 && set.domain <= limit;
        let grown = |cluster: &Cluster| {
            let new = set.rest.iter().filter(|c| !cluster.columns.contains(c));
            new.fold(cluster.domain, |d, c| d.saturating_mul(fields[*c].cardinality as u64))
        };
        let alike = |c: &Cluster| fills && c.domain <= limit && c.columns.last() == set.rest.first();
        let home = found.iter_mut().filter(|c| alike(c)).map(|c| (grown(c), c));
        match home.filter(|(domain, _)| *domain <= limit).min_by_key(|(domain, cluster)| *domain - cluster.domain) {
            Some((domain, cluster)) => {
                let new: Vec<usize> = set.rest.iter().filter(|c| !cluster.columns.contains(c)).copied().collect();
                cluster.columns.splice(0..0, new);
                cluster.domain = domain;
                cluster.sets.push(set);
            }
            None => found.push(Cluster {
                columns: set.rest.iter().rev().copied().collect(),
                run: set.rest.first().map_or(1, |c| fields[*c].cardinality),
                domain: set.domain,
                sets: vec![set],
                rolls: Vec::new(),
            }),
        }
    }
    for cluster in found.iter_mut().filter(|c| c.sets.len() > 1) {
        cluster.rolls = cluster.sets.iter().map(|set| roll(&cluster.columns, &set.rest, fields)).collect();
    }
    // What is refined shares beginnings with its neighbours.
    found.sort_by(|a, b| a.sets[0].rest.cmp(&b.sets[0].rest));
    found
}

/// For each run of cells of `columns` the first cell of the run of `of`: the last column of the one is the first of the
/// other, and is the run.
fn roll(columns: &[usize], of: &[usize], fields: &[Field]) -> Vec<u16> {
    let weight = |column: &usize| {
        let at = of.iter().position(|c| c == column)?;
        Some(of[..at].iter().map(|c| fields[*c].cardinality).product::<usize>())
    };
    let mut runs = vec![0_u16];
    // One column asked for twice leaves nothing beside the family's own.
    let Some((_, columns)) = columns.split_last() else { return runs };
    for column in columns {
        let weight = weight(column).unwrap_or(0);
        let step = |run: u16| (0..fields[*column].cardinality).map(move |code| run + (code * weight) as u16);
        runs = runs.into_iter().flat_map(step).collect();
    }
    runs
}
