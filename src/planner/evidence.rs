//! Gathers the [`PlanEvidence`].

use super::PlannerSettings;
use super::ladder::expected_loss;
use super::planner_sample::PlannerSample;
use std::time::{Duration, Instant};
use throng_core::plan::Plan;
use throng_core::plan::evidence::{
    AggregationSize, AttributeInference, PlanEvidence, StrongestInference, TriageEvidence, TriageSize,
};
use throng_core::values::codebook::{Code, Codebook, FIRST_VALUE};
use throng_risk::adjacency::{
    Adjacency, AdjacencyError, AdjacencyLimits, Triage, TriageCheckEffort, TriageCheckOrder, TriageReport,
};
use throng_risk::counting::{
    AttributeSet, ColumnsError, ComputeError, CountedTable, CpuCounter, SelectedBackend, StreamWindow, WindowSnapshot,
};
use throng_risk::exposure::measure_qids;
use throng_risk::inferences::{InferenceRequest, affordable_pairs, find_strongest_inferences};
use throng_risk::multigrid::{AttributeAggregation, CoarseAdjacency, ExactAggregation, NodeCounts};
use throng_risk::qid::{self, QidSearchRequest, QidStrategy};

/// Counts are complete.
const MAX_LISTED_SETS: usize = 100;
const MAX_LISTED_NON_QIDS: usize = 10;
const MAX_EVIDENCE_INFERENCES: usize = 40;
const MAX_RECORD_VISITS: u64 = 20_000_000;
/// Wider tables judge only smaller sets; above 894 attributes none.
const MAX_JUDGED_SETS: u64 = 400_000;
const MAX_AGGREGATED_EDGES: u64 = 1_000_000;

/// Copied input: the release continues.
#[derive(Clone, Debug)]
pub struct EvidenceInput {
    /// Judged plan.
    pub plan: Plan,
    /// Sample of the plan.
    pub sample: PlannerSample,
    /// Codebooks by attribute.
    pub books: Vec<Codebook>,
    /// Window columns of counted records, by attribute.
    pub columns: Vec<Vec<Code>>,
    /// Subjects by row; none without subjects.
    pub subjects: Option<Vec<u64>>,
    /// Maximum records of the window.
    pub capacity: usize,
    /// Stream records up to the window's end.
    pub to: u64,
    /// Version of the code numbering.
    pub numbering: u64,
    /// Model attributes, ascending.
    pub attributes: Vec<usize>,
    /// Window model or counting limits.
    pub model: WindowModel,
}

/// Model of the window.
#[derive(Clone, Debug)]
pub enum WindowModel {
    /// Counted with the stream.
    Counted(CoarseAdjacency),
    /// Counted within these limits.
    Recount(AdjacencyLimits),
}

impl EvidenceInput {
    fn snapshot(&self) -> WindowSnapshot<'_> {
        WindowSnapshot {
            numbering: self.numbering,
            to: self.to,
            capacity: self.capacity,
            columns: self.attributes.iter().map(|&attribute| self.columns[attribute].as_slice()).collect(),
            subjects: self.subjects.as_deref(),
        }
    }
}

/// Reason for missing evidence.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants and their fields")]
pub enum EvidenceError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Compute(#[from] ComputeError),
    #[error(transparent)]
    Model(#[from] AdjacencyError),
}

/// Returns the number of sets with 1, 2, … attributes.
fn count_by_size(sets: &[AttributeSet]) -> Vec<u64> {
    let mut by_size = Vec::new();
    for set in sets {
        by_size.resize(by_size.len().max(set.len()), 0);
        if let Some(count) = set.len().checked_sub(1).and_then(|at| by_size.get_mut(at)) {
            *count += 1;
        }
    }
    by_size
}

/// Gathers evidence on this thread for about `budget`; the state of `counting` does not affect the result.
///
/// # Errors
///
/// When the window is no table, or counting fails.
pub fn gather_evidence(
    mut from: EvidenceInput,
    settings: &PlannerSettings,
    counting: &mut StreamWindow,
    budget: Duration,
) -> Result<PlanEvidence, EvidenceError> {
    let start = Instant::now();
    let k = u32::try_from(settings.k).unwrap_or(u32::MAX);
    let failures = counting.usage().failures;
    let model = match &from.model {
        WindowModel::Counted(model) => model.to_fine_adjacency()?,
        WindowModel::Recount(limits) => count_window_model(&from, *limits, counting)?,
    };
    let is_searched = |attribute: &&usize| !from.plan.identifiers.contains(attribute);
    let (places, searched): (Vec<usize>, Vec<usize>) =
        from.attributes.iter().enumerate().filter(|(_, a)| is_searched(a)).map(|(place, a)| (place, *a)).unzip();
    let own = |set: &AttributeSet| set.iter().map(|place| searched[place]).collect::<Vec<usize>>();
    let rows = searched.first().map_or(0, |&attribute| from.columns[attribute].len());
    // A device needs the codes of the stream.
    let stays = counting.may_use_device(rows, searched.len());
    let mut column = |attribute: usize| {
        let codes = &mut from.columns[attribute];
        if stays { codes.clone() } else { std::mem::take(codes) }
    };
    let columns: Vec<Vec<Code>> = searched.iter().map(|&attribute| column(attribute)).collect();
    let missing: Vec<u32> = columns.iter().map(|column| missing_codes(column)).collect();
    let triage = Triage::new(model.inference(), MAX_JUDGED_SETS);
    let table = CountedTable::new(columns, from.subjects.as_deref().map(number_subjects))?;
    let strongest_inferences = strongest_inferences(&table, &missing, &searched, &triage, k);
    let table = table.masked(k);

    let all: AttributeSet = (0..table.width()).collect();
    let question = QidSearchRequest {
        k,
        strategy: QidStrategy::default(),
        threads: 1,
        // The rest is for triage and aggregation.
        budget: Some(budget / 2),
        memory: None,
        columns: all.clone(),
    };
    let chosen = counting.counter(&from.snapshot(), &places, &table, k, 1);
    let found = qid::search_on_backend(&table, chosen.counter(), &question, &|_| {})?;
    let computed_by = if chosen.device_counter().is_some() && counting.usage().failures > failures {
        "cuda, then cpu"
    } else {
        chosen.name()
    };
    let listed = &found.minimal_qids[..found.minimal_qids.len().min(MAX_LISTED_SETS)];
    // Below k in all, the empty set is the only quasi-identifier.
    let measurable = if listed.iter().any(AttributeSet::is_empty) { &[] } else { listed };
    let measured =
        measure_qids(table.rows(), chosen.counter(), measurable, k, false, start.checked_add(budget), &|_, _| {})?;
    counting.return_counter(chosen);
    let EvidenceInput { plan, sample, books, .. } = &from;
    let mut largest: Vec<&AttributeSet> = found.maximal_non_qids.iter().collect();
    largest.sort_by_key(|set| std::cmp::Reverse(set.len()));

    let minimal: Vec<AttributeSet> = found.minimal_qids.iter().map(|set| own(set).into_iter().collect()).collect();
    let report = found.complete.then(|| triage_evidence(&triage.compare(&minimal)));
    let aggregation = measure_aggregation(&model, &table, &all);
    let shared = plan.attributes_in_several_groups();
    // Range groups have no ladder.
    let laddered = plan.groups.iter().filter(|group| !group.ranges);
    let losses = laddered.map(|group| group.without_shared_attributes(&shared)).filter(|(own, _)| !own.is_empty());
    let losses = losses.map(|(own, ladder)| (own.len() as f64, expected_loss(&own, &ladder, sample, books, settings)));
    let (weight, loss) = losses.fold((0.0, 0.0), |(weight, sum), (width, loss)| (weight + width, sum + width * loss));
    Ok(PlanEvidence {
        plan: plan.version,
        primed: plan.primed,
        k,
        records: table.rows() as u64,
        support: table.support() as u64,
        complete: found.complete,
        qids_by_size: count_by_size(&found.minimal_qids),
        minimal_qids: listed.iter().map(own).collect(),
        people_below: measured.iter().map(|measured| measured.people_below_k).collect(),
        maximal_non_qids: found.maximal_non_qids.len() as u64,
        largest_non_qids: largest.into_iter().take(MAX_LISTED_NON_QIDS).map(own).collect(),
        evaluated: found.evaluated,
        pruned: found.pruned,
        triage: report,
        inferences: mean_inferences(&triage),
        strongest: strongest_inferences,
        aggregation,
        expected_loss: if weight > 0.0 { loss / weight } else { 0.0 },
        computed_by: computed_by.to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        attributes: searched,
    })
}

fn count_window_model(
    from: &EvidenceInput,
    limits: AdjacencyLimits,
    counting: &mut StreamWindow,
) -> Result<Adjacency, AdjacencyError> {
    let mut model = Adjacency::new(&from.attributes, limits)?;
    let table = if counting.needs_arrivals() { model.table(&from.columns) } else { None };
    let chosen = table.as_ref().and_then(|table| counting.pair_counter(&from.snapshot(), table, 1));
    let columns = &from.columns;
    let mut count = || match (&table, chosen.as_ref().and_then(SelectedBackend::device_counter)) {
        (Some(table), Some(counter)) => model.add_counted(columns, table, &mut |pairs| counter.count_pairs(pairs)),
        _ => model.add(columns),
    };
    // Leaves other threads to the release.
    let counted = match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(&mut count),
        Err(error) => {
            tracing::debug!(%error, "no separate counting thread: counting the window in the shared thread pool");
            count()
        }
    };
    if let Some(chosen) = chosen {
        counting.return_counter(chosen);
    }
    counted.map(|()| model)
}

/// By first occurrence.
fn number_subjects(subjects: &[u64]) -> Vec<u32> {
    let mut numbers = hashbrown::HashMap::new();
    let number = |subject: &u64| {
        let next = numbers.len() as u32;
        *numbers.entry(*subject).or_insert(next)
    };
    subjects.iter().map(number).collect()
}

fn triage_evidence(report: &TriageReport) -> TriageEvidence {
    let nine_tenths = |size: usize| {
        let of = |order: TriageCheckOrder| {
            report.efforts.iter().find(|e: &&TriageCheckEffort| e.size == size && e.order == order)
        };
        let effort = |order| of(order).map(|effort| effort.nine_tenths);
        Some([
            effort(TriageCheckOrder::Deviation)?,
            effort(TriageCheckOrder::Inference)?,
            effort(TriageCheckOrder::Cardinality)?,
            effort(TriageCheckOrder::RandomOrder)?,
        ])
    };
    let sizes = report.detections.iter().map(|found| TriageSize {
        size: found.size,
        sets: found.sets,
        suspects: found.suspects,
        qids: found.qids,
        precision: found.precision(),
        recall: found.recall(),
        nine_tenths: nine_tenths(found.size),
    });
    TriageEvidence { theta: report.theta, sizes: sizes.collect() }
}

fn mean_inferences(triage: &Triage) -> Vec<AttributeInference> {
    let attributes = triage.inference().attributes();
    let pairs = attributes.iter().flat_map(|&from| attributes.iter().map(move |&to| (from, to)));
    let mut all: Vec<AttributeInference> = pairs
        .filter(|(from, to)| from != to)
        .filter_map(|(from, to)| triage.inference().m(from, to).map(|mean| AttributeInference { from, to, mean }))
        .filter(|inference| inference.mean > 0.0)
        .collect();
    all.sort_by(|a, b| b.mean.total_cmp(&a.mean).then((a.from, a.to).cmp(&(b.from, b.to))));
    all.truncate(MAX_EVIDENCE_INFERENCES);
    all
}

fn missing_codes(column: &[Code]) -> u32 {
    (0..FIRST_VALUE).map(|missing| u32::from(column.contains(&missing))).sum()
}

/// By highest mean.
fn strongest_inferences(
    table: &CountedTable,
    missing: &[u32],
    searched: &[usize],
    triage: &Triage,
    k: u32,
) -> Vec<StrongestInference> {
    let mean = |from: usize, to: usize| triage.inference().m(searched[from], searched[to]).unwrap_or(0.0);
    let places = 0..searched.len();
    let mut pairs: Vec<(usize, usize)> = places.flat_map(|a| (a + 1..searched.len()).map(move |b| (a, b))).collect();
    pairs.sort_by(|&(a, b), &(c, d)| {
        let strength = |a: usize, b: usize| mean(a, b).max(mean(b, a));
        strength(c, d).total_cmp(&strength(a, b)).then((a, b).cmp(&(c, d)))
    });
    let pairs = affordable_pairs(&pairs, table.rows(), MAX_RECORD_VISITS);
    let mut found =
        find_strongest_inferences(&CpuCounter::new(table, 1), &InferenceRequest { k, missing, pairs, threads: 1 });
    found.sort_by(|a, b| a.compare_strength(b).then((a.from, a.to).cmp(&(b.from, b.to))));
    found.truncate(MAX_EVIDENCE_INFERENCES);
    let named = found.iter().map(|found| StrongestInference {
        from: searched[found.from],
        to: searched[found.to],
        records: found.records,
        support: found.people,
        probability: found.probability(),
    });
    named.collect()
}

/// `None` if too large.
fn measure_aggregation(model: &Adjacency, table: &CountedTable, all: &AttributeSet) -> Option<AggregationSize> {
    if model.edge_count() > MAX_AGGREGATED_EDGES {
        return None;
    }
    let (counts, nodes) = NodeCounts::of_model(model).ok()?;
    let attributes: Vec<u32> = nodes.iter().map(|node| node.attribute as u32).collect();
    let exact = ExactAggregation::of(&counts, &attributes);
    let kept = AttributeAggregation::of(table, all);
    Some(AggregationSize {
        nodes: counts.nodes() as u64,
        edges: counts.edges() as u64,
        coarse_nodes: exact.coarse().nodes() as u64,
        coarse_edges: exact.coarse().edges() as u64,
        implied_attributes: (table.width() - kept.roots().len()) as u64,
    })
}

#[cfg(test)]
mod tests;
