use super::*;
use crate::planner::LadderLimits;
use crate::planner::make_plan;
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::collections::VecDeque;
use std::sync::Arc;
use throng_core::plan::GroupShape;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::test_codebooks;
use throng_core::values::raw_batch::RawToken;
use throng_risk::counting::cuda::emulator::EmulatedDevice;
use throng_risk::counting::{BackendChoice, Device, DeviceError, WindowArrival};

const WIDTH: usize = 4;
const K: usize = 3;

fn witnessed(rows: &[[u8; WIDTH]], with_subjects: bool) -> (EvidenceInput, PlannerSettings) {
    let attribute = |name: &str| format!("[[attribute]]\nname = \"{name}\"\ntype = \"string\"\n");
    let text = format!("name = \"t\"\n{}", ["a", "b", "c", "d"].map(attribute).concat());
    let mut books = test_codebooks(&text, 1000);
    let mut batch = CodeBatch::new(WIDTH);
    for (number, row) in rows.iter().enumerate() {
        for ((column, book), value) in batch.columns.iter_mut().zip(&mut books).zip(row) {
            column.push(book.encode(RawToken::Text(&format!("v{value}"))).expect("a text"));
        }
        batch.subjects.push(number as u64 / 2 + 1);
    }
    let mut sample = PlannerSample::new(WIDTH, 100, 100);
    sample.add(&batch, 0);
    let mut model = CoarseAdjacency::new(&[0, 1, 2, 3], AdjacencyLimits::default()).expect("in order");
    model.add(&batch.columns).expect("room");
    let settings = PlannerSettings {
        k: K,
        ladder: LadderLimits { max_complete_nodes: 100, max_selected_nodes: 10 },
        identifier_cardinality: 1.0,
        window_records: 100,
        batch_records: 100,
    };
    let shape = GroupShape {
        name: "all".to_owned(),
        quasi: vec![0, 1, 2, 3],
        sensitive: vec![],
        insensitive: vec![],
        ranges: false,
    };
    let plan = make_plan(7, &[shape], &sample, &books, &settings);
    let subjects = with_subjects.then(|| (0..rows.len() as u64).map(|row| row / 2 + 1).collect());
    let (capacity, to) = (rows.len(), rows.len() as u64);
    (
        EvidenceInput {
            plan,
            sample,
            books,
            columns: batch.columns,
            subjects,
            capacity,
            to,
            numbering: 0,
            attributes: vec![0, 1, 2, 3],
            model: WindowModel::Counted(model),
        },
        settings,
    )
}

fn cpu_window() -> StreamWindow {
    StreamWindow::new(BackendChoice::Cpu, || Err(DeviceError::Absent { reason: "nobody asks for it".to_owned() }))
}

/// Minimal maskings with rare tuples.
fn qids(rows: &[[u8; WIDTH]], with_subjects: bool) -> Vec<Vec<usize>> {
    use std::collections::{BTreeMap, BTreeSet};
    let person = |row: usize| if with_subjects { row / 2 } else { row };
    let support = |of: &dyn Fn(usize) -> Vec<Option<u8>>| {
        let mut classes: BTreeMap<Vec<Option<u8>>, BTreeSet<usize>> = BTreeMap::new();
        (0..rows.len()).for_each(|row| {
            classes.entry(of(row)).or_default().insert(person(row));
        });
        classes
    };
    let masked: Vec<[Option<u8>; WIDTH]> = (0..rows.len())
        .map(|row| {
            std::array::from_fn(|a| {
                let alone = support(&|row| vec![Some(rows[row][a])]);
                (alone[&vec![Some(rows[row][a])]].len() >= K).then_some(rows[row][a])
            })
        })
        .collect();
    let is_qid = |set: &[usize]| {
        let classes = support(&|row| set.iter().map(|&a| masked[row][a]).collect());
        classes.values().any(|people| people.len() < K)
    };
    let sets = (1..1_usize << WIDTH).map(|mask| (0..WIDTH).filter(|a| mask >> a & 1 == 1).collect::<Vec<_>>());
    let all: Vec<Vec<usize>> = sets.filter(|set| is_qid(set)).collect();
    let has_smaller =
        |set: &Vec<usize>| all.iter().any(|other| other.len() < set.len() && other.iter().all(|a| set.contains(a)));
    let mut minimal: Vec<Vec<usize>> = all.iter().filter(|set| !has_smaller(set)).cloned().collect();
    minimal.sort_by_key(|set| (set.len(), set.clone()));
    minimal
}

/// A row loses all without a supported node.
fn expected_loss_of(rows: &[[u8; WIDTH]], plan: &Plan, least: usize) -> f64 {
    use std::collections::BTreeSet;
    let ladder = &plan.groups[0].ladder;
    let cells = |row: usize, levels: &[u8]| -> Vec<Option<u8>> {
        rows[row].iter().zip(levels).map(|(value, level)| (*level == 0).then_some(*value)).collect()
    };
    let people = |row: usize, levels: &[u8]| {
        let alike = (0..rows.len()).filter(|other| cells(*other, levels) == cells(row, levels));
        alike.map(|other| other / 2).collect::<BTreeSet<usize>>().len()
    };
    let lost = |row: usize| {
        let node = ladder.iter().find(|node| people(row, &node.levels) >= least);
        node.map_or(1.0, |node| node.levels.iter().filter(|level| **level > 0).count() as f64 / WIDTH as f64)
    };
    (0..rows.len()).map(lost).sum::<f64>() / rows.len() as f64
}

/// Probability, subjects and records.
fn inference(rows: &[[u8; WIDTH]], with_subjects: bool, a: usize, b: usize) -> Option<(f64, u64, u64)> {
    use std::collections::BTreeSet;
    let mut best: Option<(f64, u64, u64)> = None;
    for row in rows {
        let holds = |place: usize, at: usize| rows[place][at] == row[at];
        let of = |wanted: &dyn Fn(usize) -> bool| (0..rows.len()).filter(|place| wanted(*place)).collect::<Vec<_>>();
        let both = of(&|place| holds(place, a) && holds(place, b));
        let (given, told) = (of(&|place| holds(place, a)).len(), of(&|place| holds(place, b)).len());
        let people = both.iter().map(|place| if with_subjects { place / 2 } else { *place }).collect::<BTreeSet<_>>();
        if people.len() >= K && both.len() * rows.len() > given * told {
            let found = (both.len() as f64 / given as f64, people.len() as u64, both.len() as u64);
            best = Some(best.map_or(found, |best| if found > best { found } else { best }));
        }
    }
    best
}

proptest! {
    #[test]
    fn evidence_matches_definition_on_random_windows(
        rows in proptest::collection::vec([0_u8..4, 0_u8..3, 0_u8..6, 0_u8..2], 8..60),
        with_subjects in any::<bool>(),
    ) {
        let (from, settings) = witnessed(&rows, with_subjects);
        let searched: Vec<usize> = (0..WIDTH).filter(|a| !from.plan.identifiers.contains(a)).collect();
        // Scaled to the sample.
        let least = (K * rows.len()).div_ceil(100).clamp(2, K);
        let loss = expected_loss_of(&rows, &from.plan, least);
        let found = gather_evidence(from, &settings, &mut cpu_window(), Duration::from_secs(60)).expect("a table");
        prop_assert!(found.complete && found.plan == 7 && found.computed_by == "cpu");
        prop_assert_eq!(&found.attributes, &searched);
        if searched.len() == WIDTH {
            let expected = qids(&rows, with_subjects);
            prop_assert_eq!(found.qids_by_size.iter().sum::<u64>(), expected.len() as u64);
            let mut listed = found.minimal_qids.clone();
            listed.sort_by_key(|set| (set.len(), set.clone()));
            prop_assert_eq!(listed, expected);
        }
        if searched.len() == WIDTH {
            // Triage also counts by subject.
            let minimal = qids(&rows, with_subjects);
            for size in &found.triage.as_ref().expect("a complete search").sizes {
                let sets = (1..1_usize << WIDTH).map(|mask| (0..WIDTH).filter(|a| mask >> a & 1 == 1).collect::<Vec<_>>());
                let is_qid = |set: &Vec<usize>| minimal.iter().any(|qid| qid.iter().all(|a| set.contains(a)));
                let expected = sets.filter(|set| set.len() == size.size && is_qid(set)).count();
                prop_assert_eq!(size.qids, expected as u64);
            }
        }
        for &from in &searched {
            for &to in searched.iter().filter(|to| **to != from) {
                let ours = found.strongest.iter().find(|i| (i.from, i.to) == (from, to));
                let ours = ours.map(|i| (i.probability, i.support, i.records));
                prop_assert_eq!(ours, inference(&rows, with_subjects, from, to));
            }
        }
        prop_assert!(found.strongest.windows(2).all(|two| two[0].probability >= two[1].probability));
        prop_assert_eq!(found.records, rows.len() as u64);
        prop_assert_eq!(found.support, if with_subjects { rows.len().div_ceil(2) as u64 } else { rows.len() as u64 });
        prop_assert!((found.expected_loss - loss).abs() < 1e-6, "{} and {loss}", found.expected_loss);
        prop_assert!(found.inferences.iter().all(|i| i.from != i.to && i.mean > 0.0 && i.mean <= 1.0 + 1e-9));
        let aggregation = found.aggregation.expect("a small model");
        prop_assert!(aggregation.coarse_nodes <= aggregation.nodes && aggregation.coarse_edges <= aggregation.edges);
    }
}

thread_local! {
    static DEVICE: Arc<EmulatedDevice> = EmulatedDevice::start(64 << 20, 1);
}

/// Record and subject; 0: none.
type WindowTestRecord = ([u8; WIDTH], u8);

#[derive(Clone, Debug)]
enum WindowTestEvent {
    BatchReleased(Vec<WindowTestRecord>),
    /// Dropped by a full queue.
    BatchDropped(Vec<WindowTestRecord>),
    /// New codes after compaction.
    CodesRenumbered(usize, u32),
    /// Without this attribute.
    GatherEvidence(Option<usize>),
    /// After this many calls.
    DeviceFails(u64),
}

fn events() -> impl Strategy<Value = Vec<WindowTestEvent>> {
    let row = || ([0_u8..4, 0_u8..3, 0_u8..6, 0_u8..2], 0_u8..12);
    let rows = || proptest::collection::vec(row(), 0..40);
    let event = prop_oneof![
        6 => rows().prop_map(WindowTestEvent::BatchReleased),
        1 => rows().prop_map(WindowTestEvent::BatchDropped),
        1 => (0..WIDTH, 0_u32..700).prop_map(|(column, by)| WindowTestEvent::CodesRenumbered(column, by)),
        6 => proptest::option::weighted(0.3, 0..WIDTH).prop_map(WindowTestEvent::GatherEvidence),
        1 => (0_u64..60).prop_map(WindowTestEvent::DeviceFails),
    ];
    (rows(), proptest::collection::vec(event, 1..16)).prop_map(|(first, rest)| {
        [WindowTestEvent::BatchReleased(first), WindowTestEvent::GatherEvidence(None)]
            .into_iter()
            .chain(rest)
            .chain([WindowTestEvent::GatherEvidence(None)])
            .collect()
    })
}

/// As in the daemon.
struct WindowTestStream {
    with_subjects: bool,
    capacity: usize,
    window: VecDeque<WindowTestRecord>,
    to: u64,
    numbering: u64,
    /// Value v has code `v + shift`; odd shifts reverse the values.
    shifts: [u32; WIDTH],
}

impl WindowTestStream {
    fn code(&self, column: usize, value: u8) -> Code {
        let shift = self.shifts[column];
        shift + if shift % 2 == 1 { 9 - u32::from(value) } else { u32::from(value) }
    }

    fn rows_counted_for_subjects<'r>(&self, rows: impl Iterator<Item = &'r WindowTestRecord>) -> Vec<WindowTestRecord> {
        rows.filter(|(_, person)| !self.with_subjects || *person != 0).copied().collect()
    }

    fn columns(&self, rows: &[WindowTestRecord]) -> Vec<Vec<Code>> {
        (0..WIDTH).map(|c| rows.iter().map(|(values, _)| self.code(c, values[c])).collect()).collect()
    }

    fn subjects(&self, rows: &[WindowTestRecord]) -> Option<Vec<u64>> {
        self.with_subjects.then(|| rows.iter().map(|(_, person)| 1_000_000_007 * u64::from(*person)).collect())
    }

    fn add_batch_rows(&mut self, rows: &[WindowTestRecord]) -> WindowArrival {
        let from = self.to;
        self.to += rows.len() as u64;
        self.window.extend(rows);
        self.window.drain(..self.window.len().saturating_sub(self.capacity));
        let counted = self.rows_counted_for_subjects(rows.iter());
        let (columns, subjects) = (self.columns(&counted), self.subjects(&counted));
        WindowArrival { numbering: self.numbering, from, to: self.to, columns, subjects }
    }

    fn evidence_input_without(&self, without: Option<usize>) -> (EvidenceInput, PlannerSettings) {
        let counted = self.rows_counted_for_subjects(self.window.iter());
        let values: Vec<[u8; WIDTH]> = counted.iter().map(|(values, _)| *values).collect();
        let (mut from, settings) = witnessed(&values, false);
        from.columns = self.columns(&counted);
        from.subjects = self.subjects(&counted);
        let mut model = CoarseAdjacency::new(&[0, 1, 2, 3], AdjacencyLimits::default()).expect("in order");
        model.add(&from.columns).expect("room");
        from.model = WindowModel::Counted(model);
        from.plan.identifiers = without.into_iter().collect();
        (from.capacity, from.to, from.numbering) = (self.capacity, self.to, self.numbering);
        (from, settings)
    }
}

fn without_time(evidence: PlanEvidence) -> PlanEvidence {
    PlanEvidence { seconds: 0.0, computed_by: String::new(), ..evidence }
}

fn compare_device_with_cpu(
    events: &[WindowTestEvent],
    with_subjects: bool,
    capacity: usize,
    seed: u64,
) -> Result<StreamWindow, TestCaseError> {
    let device = DEVICE.with(Arc::clone);
    device.reseed(seed);
    let shared: Arc<dyn Device> = device.clone();
    let mut counting = StreamWindow::new(BackendChoice::Device, move || Ok(Arc::clone(&shared)));
    let (window, shifts) = (VecDeque::new(), [0; WIDTH]);
    let mut stream = WindowTestStream { with_subjects, capacity, window, to: 0, numbering: 0, shifts };
    let mut may_fail = false;
    for event in events {
        match event {
            WindowTestEvent::BatchReleased(rows) => counting.append_arrival(&stream.add_batch_rows(rows)),
            WindowTestEvent::BatchDropped(rows) => drop(stream.add_batch_rows(rows)),
            WindowTestEvent::CodesRenumbered(column, shift) => {
                stream.shifts[*column] = *shift;
                stream.numbering += 1;
            }
            WindowTestEvent::DeviceFails(calls) => {
                device.fail_after(*calls);
                may_fail = true;
            }
            WindowTestEvent::GatherEvidence(without) => {
                let (mut from, settings) = stream.evidence_input_without(*without);
                let rows = from.columns[0].len();
                let expected = gather_evidence(from.clone(), &settings, &mut cpu_window(), Duration::from_secs(60));
                if stream.to % 2 == 1 {
                    from.model = WindowModel::Recount(AdjacencyLimits::default());
                }
                let found = gather_evidence(from, &settings, &mut counting, Duration::from_secs(60)).expect("a table");
                if !may_fail {
                    prop_assert_eq!(found.computed_by.as_str(), if rows > 0 { "cuda" } else { "cpu" });
                }
                prop_assert_eq!(without_time(found), without_time(expected.expect("a table")));
            }
        }
    }
    device.fail_after(u64::MAX);
    prop_assert!(may_fail || counting.usage().failures == 0);
    prop_assert_eq!(counting.is_lost(), counting.usage().failures > 0);
    Ok(counting)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn device_window_gives_same_evidence_as_new_cpu_window(
        events in events(),
        with_subjects: bool,
        capacity in 8_usize..90,
        seed: u64,
    ) {
        let taken = DEVICE.with(|device| device.allocated_bytes());
        drop(compare_device_with_cpu(&events, with_subjects, capacity, seed)?);
        prop_assert_eq!(DEVICE.with(|device| device.allocated_bytes()), taken, "all memory was given back");
    }
}

#[test]
fn device_window_is_refilled_only_after_gap_or_renumbering() {
    let rows = |from: u8| {
        (from..from + 30).map(|n| ([n % 4, n % 3, n % 6, n / 16 % 2], n % 11 + 1)).collect::<Vec<WindowTestRecord>>()
    };
    let fills =
        |events: &[WindowTestEvent]| compare_device_with_cpu(events, true, 70, 1).expect("the same evidence").fills();
    let told = [0, 30, 60, 90, 120]
        .map(|from| [WindowTestEvent::BatchReleased(rows(from)), WindowTestEvent::GatherEvidence(None)])
        .concat();
    assert_eq!(fills(&told), 1, "what was there stays");
    let missed = [WindowTestEvent::BatchDropped(rows(7)), WindowTestEvent::GatherEvidence(None)];
    assert_eq!(fills(&[&told[..], &missed].concat()), 2, "a gap is filled anew");
    let renumbered = [
        WindowTestEvent::CodesRenumbered(2, 300),
        WindowTestEvent::BatchReleased(rows(9)),
        WindowTestEvent::GatherEvidence(None),
    ];
    assert_eq!(fills(&[&told[..], &renumbered].concat()), 2, "so are other codes");
    // A gap outside the window does not count.
    let healed = [
        [WindowTestEvent::BatchDropped(rows(7))].to_vec(),
        [1, 31, 61].map(|from| WindowTestEvent::BatchReleased(rows(from))).to_vec(),
    ]
    .concat();
    assert_eq!(fills(&[&told[..], &healed, &[WindowTestEvent::GatherEvidence(None)]].concat()), 1);
}
