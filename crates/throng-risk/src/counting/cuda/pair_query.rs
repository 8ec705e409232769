//! Joint counts and inferences of column pairs on the device.

use super::counting_route::{CandidateQuery, MAX_SLICED_CELLS, PlannedCandidate};
use super::cuda_counter::CudaCounter;
use super::device::{DeviceError, DeviceMemory, LaunchShape};
use super::kernel_tables::{KernelTableEntry, bytes_of, impl_table_entries, u32_words, u64_words};
use super::plan::launch_batches;
use super::row_source::RowSource;
use super::sliced_pairs::SlicedPairPlan;
use crate::counting::AttributeSet;
use crate::counting::pair_counts::{
    CycleInference, PairCounts, PairInference, PairNodes, ValueCount, all_pairs, count_pairs, cycle_inference,
    dense_cells,
};

/// Kernel structure Pair of `kernels/pairs.cu`.
struct PairEntry {
    counts: u64,
    probabilities: u64,
    rows: u64,
    first: u32,
    second: u32,
}

impl_table_entries! {
    PairEntry: counts probabilities rows first second;
}

enum PairQueryOutput<'a> {
    Counts(&'a mut Vec<Option<PairCounts>>),
    Inferences(&'a mut Vec<Option<PairInference>>),
    Nodes(&'a mut Vec<Option<PairNodes>>),
}

impl CudaCounter<'_> {
    /// Counts column pairs, each with the smaller column first; the CPU counts pairs too large for an array.
    pub fn count_pairs(&self, pairs: &[(usize, usize)]) -> Vec<PairCounts> {
        let mut found = vec![None; pairs.len()];
        self.query_pairs(pairs, &mut PairQueryOutput::Counts(&mut found));
        self.count_rest_on_cpu(pairs, found, |counts| counts)
    }

    /// Computes inferences of column pairs, with the same use of the CPU.
    pub fn infer_pairs(&self, pairs: &[(usize, usize)]) -> Vec<PairInference> {
        let mut found = vec![None; pairs.len()];
        self.query_pairs(pairs, &mut PairQueryOutput::Inferences(&mut found));
        self.count_rest_on_cpu(pairs, found, |counts| PairInference::from_counts(&counts))
    }

    /// Computes scf and mcf of every value; downloads only sums per pair.
    pub fn cycle_inference(&self) -> Vec<Vec<CycleInference>> {
        let pairs = all_pairs(self.table.width());
        let mut found = vec![None; pairs.len()];
        self.query_pairs(&pairs, &mut PairQueryOutput::Nodes(&mut found));
        let nodes = self.count_rest_on_cpu(&pairs, found, |counts| PairInference::from_counts(&counts).nodes);
        cycle_inference(self.table, pairs.into_iter().zip(nodes))
    }

    fn count_rest_on_cpu<T>(
        &self,
        pairs: &[(usize, usize)],
        mut found: Vec<Option<T>>,
        of: impl Fn(PairCounts) -> T,
    ) -> Vec<T> {
        let left: Vec<usize> = (0..pairs.len()).filter(|at| found[*at].is_none()).collect();
        let asked: Vec<(usize, usize)> = left.iter().map(|at| pairs[*at]).collect();
        self.usage.record_cpu_fallback(left.len() as u64);
        let counted = count_pairs(self.table, &asked).into_iter();
        left.into_iter().zip(counted).for_each(|(at, counts)| found[at] = Some(of(counts)));
        found.into_iter().flatten().collect()
    }

    fn query_pairs(&self, pairs: &[(usize, usize)], answer: &mut PairQueryOutput<'_>) {
        let mut state = self.state.lock().expect("no counter panics with the lock");
        if let Err(error) = self.run_pair_query(&mut state, pairs, answer) {
            self.handle_failure(&mut state, &error);
        }
    }

    fn run_pair_query(
        &self,
        state: &mut super::cuda_counter::DeviceCounterState<'_>,
        pairs: &[(usize, usize)],
        answer: &mut PairQueryOutput<'_>,
    ) -> Result<(), DeviceError> {
        let super::cuda_counter::DeviceCounterState { source, slots, scratch } = state;
        // Results use the codes of the table, not of the window.
        let Some(source @ (RowSource::Whole(_) | RowSource::Tiles { .. })) = source else { return Ok(()) };
        let radices = source.radices();
        // Counts records, not subjects.
        let ask = CandidateQuery { subjects: None, ..self.candidate_query(source, 0, false) };
        // Includes probabilities and nodes.
        let beside = if matches!(answer, PairQueryOutput::Counts(_)) { 1 } else { 5 };
        // Slices take at most a quarter of the scratch.
        let slices: u64 = radices.iter().filter(|values| **values <= MAX_SLICED_CELLS / 2).sum();
        let slice_bytes = 4 * slices * source.places().div_ceil(32);
        let slicing = self.slicing && slice_bytes <= *scratch / 4 && SlicedPairPlan::fits(&ask);
        let room = (*scratch - if slicing { slice_bytes } else { 0 }) / beside;
        let plan = |(at, (a, b)): (usize, &(usize, usize))| {
            dense_cells(self.table, *a, *b).filter(|cells| *cells > 0)?;
            let both = radices[*a] > 1 && radices[*b] > 1;
            let planned = PlannedCandidate::dense(at, &AttributeSet::from_iter([*a, *b]), &radices, &ask)?;
            let planned = if slicing { planned.sliced() } else { planned };
            (both && planned.bytes() <= room).then_some(planned)
        };
        let mut planned: Vec<PlannedCandidate> = pairs.iter().enumerate().filter_map(plan).collect();
        planned.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        for batch in launch_batches(&planned, room, 4096, &radices, &ask) {
            slots[0].count(&self.device, source, &batch, &ask)?;
            match answer {
                PairQueryOutput::Counts(found) => {
                    let asked = self.device.request(slots[0].counts(), 4 * batch.counts as usize)?;
                    let bytes = self.device.collect(asked)?;
                    let counts: Vec<u32> = u32_words(&bytes).collect();
                    for (at, candidate) in batch.set_indexes.iter().zip(&batch.candidates) {
                        let cells = candidate.counts as usize..(candidate.counts + candidate.cells) as usize;
                        found[*at] = Some(PairCounts::from_dense_cells(self.table, pairs[*at], counts[cells].to_vec()));
                    }
                }
                PairQueryOutput::Inferences(_) | PairQueryOutput::Nodes(_) => {
                    let (mut probabilities, mut rows) = (0, 0);
                    let mut entries = Vec::with_capacity(batch.set_indexes.len());
                    for (at, candidate) in batch.set_indexes.iter().zip(&batch.candidates) {
                        let (a, b) = pairs[*at];
                        let (first, second) = (radices[a] as u32, radices[b] as u32);
                        entries.push(PairEntry { counts: candidate.counts, probabilities, rows, first, second });
                        probabilities += 2 * candidate.cells;
                        rows += u64::from(first) + u64::from(second);
                    }
                    let counts = slots[0].counts();
                    if let PairQueryOutput::Inferences(found) = answer {
                        let (shares, nodes) = self.infer_on_device(&entries, counts, probabilities, rows)?;
                        for (at, pair) in batch.set_indexes.iter().zip(&entries) {
                            found[*at] = Some(decode_inference(pairs[*at], pair, &shares, &nodes));
                        }
                    } else if let PairQueryOutput::Nodes(found) = answer {
                        let (_, nodes) = self.infer_on_device(&entries, counts, 0, rows)?;
                        for (at, pair) in batch.set_indexes.iter().zip(&entries) {
                            found[*at] = Some(decode_nodes(pair, &nodes));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes probabilities only if any are requested.
    fn infer_on_device(
        &self,
        pairs: &[PairEntry],
        counts: u64,
        probabilities: u64,
        rows: u64,
    ) -> Result<(Vec<f64>, Vec<ValueCount>), DeviceError> {
        let device = &self.device;
        let table = bytes_of(pairs);
        let entries = DeviceMemory::new(device, table.len() as u64)?;
        let shares = DeviceMemory::new(device, 8 * probabilities)?;
        let nodes = DeviceMemory::new(device, 16 * rows)?;
        device.upload(entries.address, &table)?;
        let shares_at = if probabilities > 0 { shares.address } else { 0 };
        device.fill(shares.address, 8 * probabilities.max(1), 0)?;
        let threads = device.limits().threads;
        let shape = LaunchShape { columns: pairs.len() as u32, rows: 8, threads, shared_bytes: 0 };
        device.launch("infer", shape, &[entries.address, counts, shares_at, nodes.address])?;
        let asked = device.request(shares.address, 8 * probabilities as usize)?;
        let asked_nodes = device.request(nodes.address, 16 * rows as usize)?;
        let (share_bytes, node_bytes) = (device.collect(asked)?, device.collect(asked_nodes)?);
        let found: Vec<u64> = u64_words(&node_bytes).collect();
        let nodes = found
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[records, met]| ValueCount { records: *records, partner_values: *met });
        Ok((u64_words(&share_bytes).map(f64::from_bits).collect(), nodes.collect()))
    }
}

fn decode_inference(columns: (usize, usize), pair: &PairEntry, shares: &[f64], nodes: &[ValueCount]) -> PairInference {
    let cells = pair.first as usize * pair.second as usize;
    let at = pair.probabilities as usize;
    PairInference {
        columns,
        cardinalities: (pair.first, pair.second),
        forward: shares[at..at + cells].to_vec(),
        backward: shares[at + cells..at + 2 * cells].to_vec(),
        nodes: decode_nodes(pair, nodes),
    }
}

fn decode_nodes(pair: &PairEntry, nodes: &[ValueCount]) -> PairNodes {
    let (first, both) = (pair.rows as usize, (pair.first + pair.second) as usize);
    let (of_first, of_second) = nodes[first..first + both].split_at(pair.first as usize);
    (of_first.to_vec(), of_second.to_vec())
}
