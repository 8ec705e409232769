//! Gathering the [`Evidence`] for a plan: triage by the model, the exact re-check of the window, aggregation.

use super::PlannerSettings;
use super::ladder::expected_loss;
use super::sample::Sample;
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::{
    Aggregation, AttributeInference, Evidence, StrongestInference, TriageEvidence, TriageSize,
};
use std::time::{Duration, Instant};
use throng_core::values::codebook::{Code, Codebook, FIRST_VALUE};
use throng_risk::adjacency::{Adjacency, AdjacencyError, Effort, Limits, Order, Triage, TriageReport};
use throng_risk::counting::{
    AttributeSet, Chosen, ColumnsError, ComputeError, CountedTable, CpuCounter, KeptWindow, Snapshot,
};
use throng_risk::exposure::measure;
use throng_risk::inferences::{InferenceQuestion, affordable, strongest};
use throng_risk::multigrid::{Attributes, CoarseAdjacency, Counts, Exact};
use throng_risk::qid::{self, Question, Strategy};

/// Lists are cut to this many sets; their numbers are given in full.
const LISTED_SETS: usize = 100;
const LISTED_NON_QIDS: usize = 10;
const LISTED_INFERENCES: usize = 40;
/// Record visits that looking for the strongest inferences may take.
const MOST_VISITS: u64 = 20_000_000;
/// Sets of one size that the triage judges; of wider tables it judges smaller sets alone, and of more than 894 attributes none.
const MOST_JUDGED: u64 = 400_000;
/// Edges of a model that is aggregated value by value.
const MOST_AGGREGATED: u64 = 1_000_000;

/// What evidence is gathered from: copies, since the release goes on.
#[derive(Clone, Debug)]
pub struct EvidenceInput {
    /// The plan that the evidence is for.
    pub plan: Plan,
    /// The sample that it was made from.
    pub sample: Sample,
    /// By attribute: what the codes mean.
    pub books: Vec<Codebook>,
    /// The columns of the window, one an attribute of the schema, and the subject of each row where the stream has subjects.
    /// Rows that count for nobody are left out.
    pub columns: Vec<Vec<Code>>,
    /// Subjects by row; none where the stream names no subjects.
    pub subjects: Option<Vec<u64>>,
    /// Records that the window holds at most.
    pub capacity: usize,
    /// Records of the stream up to the window's last, and which numbering its codes are of.
    pub to: u64,
    /// Which numbering the codes are of.
    pub numbering: u64,
    /// The attributes of the model, ascending.
    pub attributes: Vec<usize>,
    /// The model of the window, or how to count it.
    pub model: WindowModel,
}

/// The model of the window.
#[derive(Clone, Debug)]
pub enum WindowModel {
    /// Counted with the stream.
    Counted(CoarseAdjacency),
    /// To be counted from the rows of the window, and from them alone, within these limits.
    Recount(Limits),
}

impl EvidenceInput {
    /// The columns of all attributes of the model, in the codes of the stream.
    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            numbering: self.numbering,
            to: self.to,
            capacity: self.capacity,
            columns: self.attributes.iter().map(|&attribute| self.columns[attribute].as_slice()).collect(),
            subjects: self.subjects.as_deref(),
        }
    }
}

/// Why there is no evidence.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum EvidenceError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Compute(#[from] ComputeError),
    #[error(transparent)]
    Model(#[from] AdjacencyError),
}

/// Gathers evidence on this thread for at most about `budget`; `identifiers` of the plan are not searched. `counting` has
/// followed the stream, where it wanted to, and counts the window; what it says does not depend on it.
///
/// # Errors
/// When the window is no table, or the counting fails.
pub fn gather(
    mut from: EvidenceInput,
    settings: &PlannerSettings,
    counting: &mut KeptWindow,
    budget: Duration,
) -> Result<Evidence, EvidenceError> {
    let start = Instant::now();
    let k = u32::try_from(settings.k).unwrap_or(u32::MAX);
    let failures = counting.used().failures;
    let model = match &from.model {
        WindowModel::Counted(model) => model.prolonged()?,
        WindowModel::Recount(limits) => recounted(&from, *limits, counting)?,
    };
    let is_searched = |attribute: &&usize| !from.plan.identifiers.contains(attribute);
    let (places, searched): (Vec<usize>, Vec<usize>) =
        from.attributes.iter().enumerate().filter(|(_, a)| is_searched(a)).map(|(place, a)| (place, *a)).unzip();
    let own = |set: &AttributeSet| set.iter().map(|place| searched[place]).collect::<Vec<usize>>();
    let rows = searched.first().map_or(0, |&attribute| from.columns[attribute].len());
    // A device is told of the table in the codes of the stream.
    let stays = counting.may_ask(rows, searched.len());
    let mut column = |attribute: usize| {
        let codes = &mut from.columns[attribute];
        if stays { codes.clone() } else { std::mem::take(codes) }
    };
    let columns: Vec<Vec<Code>> = searched.iter().map(|&attribute| column(attribute)).collect();
    let missing: Vec<u32> = columns.iter().map(|column| missing_codes(column)).collect();
    let triage = Triage::new(model.inference(), MOST_JUDGED);
    let table = CountedTable::new(columns, from.subjects.as_deref().map(numbered))?;
    let strongest_inferences = strongest_inferences(&table, &missing, &searched, &triage, k);
    let table = table.masked(k);

    let all: AttributeSet = (0..table.width()).collect();
    let question = Question {
        k,
        strategy: Strategy::default(),
        threads: 1,
        // What is left goes to the triage and the aggregation.
        budget: Some(budget / 2),
        memory: None,
        columns: all.clone(),
    };
    let chosen = counting.counter(&from.snapshot(), &places, &table, k, 1);
    let found = qid::search_with(&table, chosen.counter(), &question, &|_| {})?;
    let computed_by = if chosen.on_device().is_some() && counting.used().failures > failures {
        "cuda, then cpu"
    } else {
        chosen.name()
    };
    let listed = &found.minimal_qids[..found.minimal_qids.len().min(LISTED_SETS)];
    // Where the whole window is smaller than k, the set of no attribute is the one quasi-identifier.
    let measurable = if listed.iter().any(AttributeSet::is_empty) { &[] } else { listed };
    let measured =
        measure(table.rows(), chosen.counter(), measurable, k, false, start.checked_add(budget), &|_, _| {})?;
    counting.counted(chosen);
    let EvidenceInput { plan, sample, books, .. } = &from;
    let mut qids_by_size = Vec::new();
    for set in &found.minimal_qids {
        qids_by_size.resize(qids_by_size.len().max(set.len()), 0);
        if let Some(count) = set.len().checked_sub(1).and_then(|at| qids_by_size.get_mut(at)) {
            *count += 1;
        }
    }
    let mut largest: Vec<&AttributeSet> = found.maximal_non_qids.iter().collect();
    largest.sort_by_key(|set| std::cmp::Reverse(set.len()));

    let minimal: Vec<AttributeSet> = found.minimal_qids.iter().map(|set| own(set).into_iter().collect()).collect();
    let report = found.complete.then(|| evidence_of(&triage.compare(&minimal)));
    let aggregation = aggregate(&model, &table, &all);
    let shared = plan.shared();
    // Of ranges nothing is expected: they have no ladder.
    let laddered = plan.groups.iter().filter(|group| !group.ranges);
    let losses = laddered.map(|group| group.without(&shared)).filter(|(own, _)| !own.is_empty());
    let losses = losses.map(|(own, ladder)| (own.len() as f64, expected_loss(&own, &ladder, sample, books, settings)));
    let (weight, loss) = losses.fold((0.0, 0.0), |(weight, sum), (width, loss)| (weight + width, sum + width * loss));
    Ok(Evidence {
        plan: plan.version,
        primed: plan.primed,
        k,
        records: table.rows() as u64,
        support: table.support() as u64,
        complete: found.complete,
        qids_by_size,
        minimal_qids: listed.iter().map(own).collect(),
        people_below: measured.iter().map(|measured| measured.people_below_k).collect(),
        maximal_non_qids: found.maximal_non_qids.len() as u64,
        largest_non_qids: largest.into_iter().take(LISTED_NON_QIDS).map(own).collect(),
        evaluated: found.evaluated,
        pruned: found.pruned,
        triage: report,
        inferences: inferences(&triage),
        strongest: strongest_inferences,
        aggregation,
        expected_loss: if weight > 0.0 { loss / weight } else { 0.0 },
        computed_by: computed_by.to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        attributes: searched,
    })
}

/// The model of the window: from the joint counts that the device makes of it, else counted here.
fn recounted(from: &EvidenceInput, limits: Limits, counting: &mut KeptWindow) -> Result<Adjacency, AdjacencyError> {
    let mut model = Adjacency::new(&from.attributes, limits)?;
    let table = if counting.follows() { model.table(&from.columns) } else { None };
    let chosen = table.as_ref().and_then(|table| counting.pairs(&from.snapshot(), table, 1));
    let columns = &from.columns;
    let mut count = || match (&table, chosen.as_ref().and_then(Chosen::on_device)) {
        (Some(table), Some(counter)) => model.add_counted(columns, table, &mut |pairs| counter.count_pairs(pairs)),
        _ => model.add(columns),
    };
    // One thread of its own: the release beside it has the others.
    let counted = match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(&mut count),
        Err(error) => {
            tracing::debug!(%error, "the model of the window is counted beside the release");
            count()
        }
    };
    if let Some(chosen) = chosen {
        counting.counted(chosen);
    }
    counted.map(|()| model)
}

/// The subjects numbered in the order in which they come.
fn numbered(subjects: &[u64]) -> Vec<u32> {
    let mut numbers = hashbrown::HashMap::new();
    let number = |subject: &u64| {
        let next = numbers.len() as u32;
        *numbers.entry(*subject).or_insert(next)
    };
    subjects.iter().map(number).collect()
}

fn evidence_of(report: &TriageReport) -> TriageEvidence {
    let nine_tenths = |size: usize| {
        let of = |order: Order| report.efforts.iter().find(|e: &&Effort| e.size == size && e.order == order);
        let effort = |order| of(order).map(|effort| effort.nine_tenths);
        Some([
            effort(Order::Deviation)?,
            effort(Order::Inference)?,
            effort(Order::Cardinality)?,
            effort(Order::Chance)?,
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

fn inferences(triage: &Triage) -> Vec<AttributeInference> {
    let attributes = triage.inference().attributes();
    let pairs = attributes.iter().flat_map(|&from| attributes.iter().map(move |&to| (from, to)));
    let mut all: Vec<AttributeInference> = pairs
        .filter(|(from, to)| from != to)
        .filter_map(|(from, to)| triage.inference().m(from, to).map(|mean| AttributeInference { from, to, mean }))
        .filter(|inference| inference.mean > 0.0)
        .collect();
    all.sort_by(|a, b| b.mean.total_cmp(&a.mean).then((a.from, a.to).cmp(&(b.from, b.to))));
    all.truncate(LISTED_INFERENCES);
    all
}

/// Different codes that are no value; the dense codes of a table begin with them.
fn missing_codes(column: &[Code]) -> u32 {
    (0..FIRST_VALUE).map(|missing| u32::from(column.contains(&missing))).sum()
}

/// The strongest inferences between the searched attributes, those pairs first that tell each other most on the mean.
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
    let pairs = affordable(&pairs, table.rows(), MOST_VISITS);
    let mut found = strongest(&CpuCounter::new(table, 1), &InferenceQuestion { k, missing, pairs, threads: 1 });
    found.sort_by(|a, b| a.stronger(b).then((a.from, a.to).cmp(&(b.from, b.to))));
    found.truncate(LISTED_INFERENCES);
    let named = found.iter().map(|found| StrongestInference {
        from: searched[found.from],
        to: searched[found.to],
        records: found.records,
        support: found.people,
        probability: found.probability(),
    });
    named.collect()
}

/// What exact aggregation leaves; `None` where the model is too large to be looked at beside the release.
fn aggregate(model: &Adjacency, table: &CountedTable, all: &AttributeSet) -> Option<Aggregation> {
    if model.edge_count() > MOST_AGGREGATED {
        return None;
    }
    let (counts, nodes) = Counts::of_model(model).ok()?;
    let attributes: Vec<u32> = nodes.iter().map(|node| node.attribute as u32).collect();
    let exact = Exact::of(&counts, &attributes);
    let kept = Attributes::of(table, all);
    Some(Aggregation {
        nodes: counts.nodes() as u64,
        edges: counts.edges() as u64,
        coarse_nodes: exact.coarse().nodes() as u64,
        coarse_edges: exact.coarse().edges() as u64,
        implied_attributes: (table.width() - kept.roots().len()) as u64,
    })
}

#[cfg(test)]
mod tests;
