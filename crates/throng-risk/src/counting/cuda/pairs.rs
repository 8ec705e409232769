//! Joint counts and inferences of pairs of columns on the device.

use super::counter::CudaCounter;
use super::device::{DeviceError, Memory, Shape};
use super::plan::batches;
use super::route::{Ask, Planned, SLICED_CELLS};
use super::slices::Slicing;
use super::source::Source;
use super::tables::{Entry, bytes_of, entries, longs, words};
use crate::counting::AttributeSet;
use crate::counting::pairs::{
    CycleInference, PairCounts, PairInference, PairNodes, ValueCount, all_pairs, count_pairs, cycle_inference,
    dense_cells,
};

/// `Pair` of `kernels/pairs.cu`.
struct Pair {
    counts: u64,
    probabilities: u64,
    rows: u64,
    first: u32,
    second: u32,
}

entries! {
    Pair: counts probabilities rows first second;
}

/// What is asked of the pairs.
enum Answer<'a> {
    Counts(&'a mut Vec<Option<PairCounts>>),
    Inferences(&'a mut Vec<Option<PairInference>>),
    Nodes(&'a mut Vec<Option<PairNodes>>),
}

impl CudaCounter<'_> {
    /// Counts pairs of columns (each with the smaller number first). Pairs of too many cells for an array, and all of
    /// them where the device fails, are counted on the CPU.
    pub fn count_pairs(&self, pairs: &[(usize, usize)]) -> Vec<PairCounts> {
        let mut found = vec![None; pairs.len()];
        self.pairs_on_device(pairs, &mut Answer::Counts(&mut found));
        self.rest(pairs, found, |counts| counts)
    }

    /// The conditional probabilities and nodes of pairs of columns, likewise.
    pub fn infer_pairs(&self, pairs: &[(usize, usize)]) -> Vec<PairInference> {
        let mut found = vec![None; pairs.len()];
        self.pairs_on_device(pairs, &mut Answer::Inferences(&mut found));
        self.rest(pairs, found, |counts| PairInference::of(&counts))
    }

    /// Summed and mean cycle inference (scf, mcf) of every value of every column, likewise. Only the sums of each pair leave
    /// the device.
    pub fn cycle_inference(&self) -> Vec<Vec<CycleInference>> {
        let pairs = all_pairs(self.table.width());
        let mut found = vec![None; pairs.len()];
        self.pairs_on_device(&pairs, &mut Answer::Nodes(&mut found));
        let nodes = self.rest(&pairs, found, |counts| PairInference::of(&counts).nodes);
        cycle_inference(self.table, pairs.into_iter().zip(nodes))
    }

    fn rest<T>(&self, pairs: &[(usize, usize)], mut found: Vec<Option<T>>, of: impl Fn(PairCounts) -> T) -> Vec<T> {
        let left: Vec<usize> = (0..pairs.len()).filter(|at| found[*at].is_none()).collect();
        let asked: Vec<(usize, usize)> = left.iter().map(|at| pairs[*at]).collect();
        self.usage.left_to_the_cpu(left.len() as u64);
        let counted = count_pairs(self.table, &asked).into_iter();
        left.into_iter().zip(counted).for_each(|(at, counts)| found[at] = Some(of(counts)));
        found.into_iter().flatten().collect()
    }

    fn pairs_on_device(&self, pairs: &[(usize, usize)], answer: &mut Answer<'_>) {
        let mut state = self.state.lock().expect("no counter panics with the lock");
        if let Err(error) = self.ask_pairs(&mut state, pairs, answer) {
            self.failed(&mut state, &error);
        }
    }

    fn ask_pairs(
        &self,
        state: &mut super::counter::State<'_>,
        pairs: &[(usize, usize)],
        answer: &mut Answer<'_>,
    ) -> Result<(), DeviceError> {
        let super::counter::State { source, slots, scratch } = state;
        // A window's codes are not those of the table, which the answer is about.
        let Some(source @ (Source::Whole(_) | Source::Tiles { .. })) = source else { return Ok(()) };
        let radices = source.radices();
        // Records, whoever they belong to.
        let ask = Ask { people: None, ..self.asks(source, 0, false) };
        // Probabilities and nodes take their own memory beside the counts.
        let beside = if matches!(answer, Answer::Counts(_)) { 1 } else { 5 };
        // Slices take a quarter of the scratch, or there are none.
        let slices: u64 = radices.iter().filter(|values| **values <= SLICED_CELLS / 2).sum();
        let slice_bytes = 4 * slices * source.places().div_ceil(32);
        let slicing = self.slicing && slice_bytes <= *scratch / 4 && Slicing::fits(&ask);
        let room = (*scratch - if slicing { slice_bytes } else { 0 }) / beside;
        let plan = |(at, (a, b)): (usize, &(usize, usize))| {
            dense_cells(self.table, *a, *b).filter(|cells| *cells > 0)?;
            let both = radices[*a] > 1 && radices[*b] > 1;
            let planned = Planned::dense(at, &AttributeSet::from_iter([*a, *b]), &radices, &ask)?;
            let planned = if slicing { planned.sliced() } else { planned };
            (both && planned.bytes() <= room).then_some(planned)
        };
        let mut planned: Vec<Planned> = pairs.iter().enumerate().filter_map(plan).collect();
        planned.sort_by(|a, b| a.order().cmp(&b.order()));
        for batch in batches(&planned, room, 4096, &radices, &ask) {
            slots[0].count(&self.device, source, &batch, &ask)?;
            match answer {
                Answer::Counts(found) => {
                    let asked = self.device.request(slots[0].counts(), 4 * batch.counts as usize)?;
                    let bytes = self.device.collect(asked)?;
                    let counts: Vec<u32> = words(&bytes).collect();
                    for (at, candidate) in batch.places.iter().zip(&batch.candidates) {
                        let cells = candidate.counts as usize..(candidate.counts + candidate.cells) as usize;
                        found[*at] = Some(PairCounts::dense(self.table, pairs[*at], counts[cells].to_vec()));
                    }
                }
                Answer::Inferences(_) | Answer::Nodes(_) => {
                    // The counts stay on the device.
                    let (mut probabilities, mut rows) = (0, 0);
                    let mut entries = Vec::with_capacity(batch.places.len());
                    for (at, candidate) in batch.places.iter().zip(&batch.candidates) {
                        let (a, b) = pairs[*at];
                        let (first, second) = (radices[a] as u32, radices[b] as u32);
                        entries.push(Pair { counts: candidate.counts, probabilities, rows, first, second });
                        probabilities += 2 * candidate.cells;
                        rows += u64::from(first) + u64::from(second);
                    }
                    let counts = slots[0].counts();
                    if let Answer::Inferences(found) = answer {
                        let (shares, nodes) = self.infer(&entries, counts, probabilities, rows)?;
                        for (at, pair) in batch.places.iter().zip(&entries) {
                            found[*at] = Some(inference(pairs[*at], pair, &shares, &nodes));
                        }
                    } else if let Answer::Nodes(found) = answer {
                        let (_, nodes) = self.infer(&entries, counts, 0, rows)?;
                        for (at, pair) in batch.places.iter().zip(&entries) {
                            found[*at] = Some(nodes_of(pair, &nodes));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Probabilities (8 bytes each; none where 0 are asked for) and nodes of some pairs whose counts are on the device.
    fn infer(
        &self,
        pairs: &[Pair],
        counts: u64,
        probabilities: u64,
        rows: u64,
    ) -> Result<(Vec<f64>, Vec<ValueCount>), DeviceError> {
        let device = &self.device;
        let table = bytes_of(pairs);
        let entries = Memory::new(device, table.len() as u64)?;
        let shares = Memory::new(device, 8 * probabilities)?;
        let nodes = Memory::new(device, 16 * rows)?;
        device.upload(entries.address, &table)?;
        // Without an address for them the kernel makes none.
        let shares_at = if probabilities > 0 { shares.address } else { 0 };
        device.fill(shares.address, 8 * probabilities.max(1), 0)?;
        let threads = device.limits().threads;
        let shape = Shape { columns: pairs.len() as u32, rows: 8, threads, shared_bytes: 0 };
        device.launch("infer", shape, &[entries.address, counts, shares_at, nodes.address])?;
        let asked = device.request(shares.address, 8 * probabilities as usize)?;
        let asked_nodes = device.request(nodes.address, 16 * rows as usize)?;
        let (share_bytes, node_bytes) = (device.collect(asked)?, device.collect(asked_nodes)?);
        let found: Vec<u64> = longs(&node_bytes).collect();
        let nodes = found.as_chunks::<2>().0.iter().map(|[records, met]| ValueCount { records: *records, met: *met });
        Ok((longs(&share_bytes).map(f64::from_bits).collect(), nodes.collect()))
    }
}

fn inference(columns: (usize, usize), pair: &Pair, shares: &[f64], nodes: &[ValueCount]) -> PairInference {
    let cells = pair.first as usize * pair.second as usize;
    let at = pair.probabilities as usize;
    PairInference {
        columns,
        cardinalities: (pair.first, pair.second),
        forward: shares[at..at + cells].to_vec(),
        backward: shares[at + cells..at + 2 * cells].to_vec(),
        nodes: nodes_of(pair, nodes),
    }
}

fn nodes_of(pair: &Pair, nodes: &[ValueCount]) -> PairNodes {
    let (first, both) = (pair.rows as usize, (pair.first + pair.second) as usize);
    let (of_first, of_second) = nodes[first..first + both].split_at(pair.first as usize);
    (of_first.to_vec(), of_second.to_vec())
}
