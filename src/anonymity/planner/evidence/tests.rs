use super::*;
use crate::anonymity::planner::LadderLimits;
use crate::anonymity::planner::{GroupShape, make_plan};
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::collections::VecDeque;
use std::sync::Arc;
use throng_core::values::codebook::books_of;
use throng_core::values::raw::Token;
use throng_core::values::table::Batch;
use throng_risk::counting::cuda::emulator::Emulator;
use throng_risk::counting::{Arrival, Device, DeviceError, Wanted};

const WIDTH: usize = 4;
const K: usize = 3;

fn witnessed(rows: &[[u8; WIDTH]], with_subjects: bool) -> (EvidenceInput, PlannerSettings) {
    let attribute = |name: &str| format!("[[attribute]]\nname = \"{name}\"\ntype = \"string\"\n");
    let text = format!("name = \"t\"\n{}", ["a", "b", "c", "d"].map(attribute).concat());
    let mut books = books_of(&text, 1000);
    let mut batch = Batch::new(WIDTH);
    for (number, row) in rows.iter().enumerate() {
        for ((column, book), value) in batch.columns.iter_mut().zip(&mut books).zip(row) {
            column.push(book.encode(Token::Text(&format!("v{value}"))).expect("a text"));
        }
        batch.subjects.push(number as u64 / 2 + 1);
    }
    let mut sample = Sample::new(WIDTH, 100, 100);
    sample.add(&batch, 0);
    let mut model = CoarseAdjacency::new(&[0, 1, 2, 3], Limits::default()).expect("in order");
    model.add(&batch.columns).expect("room");
    let settings = PlannerSettings {
        k: K,
        ladder: LadderLimits { complete: 100, chosen: 10 },
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

fn on_the_cpu() -> KeptWindow {
    KeptWindow::new(Wanted::Cpu, || Err(DeviceError::Absent { reason: "nobody asks for it".to_owned() }))
}

/// All attribute sets by definition: masked cells, then some tuple with a support below k.
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

/// By definition: each row takes the first node at which enough people share its cells, and loses the cells that are
/// suppressed there; one that finds none loses all.
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

/// The strongest inference from `a` to `b` by definition: probability, people, records.
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
    fn the_evidence_is_what_the_window_shows(
        rows in proptest::collection::vec([0_u8..4, 0_u8..3, 0_u8..6, 0_u8..2], 8..60),
        with_subjects in any::<bool>(),
    ) {
        let (from, settings) = witnessed(&rows, with_subjects);
        let searched: Vec<usize> = (0..WIDTH).filter(|a| !from.plan.identifiers.contains(a)).collect();
        // Of a window of 100 the sample has all rows: as many people are needed as the sample's share of the window says.
        let least = (K * rows.len()).div_ceil(100).clamp(2, K);
        let loss = expected_loss_of(&rows, &from.plan, least);
        let found = gather(from, &settings, &mut on_the_cpu(), Duration::from_secs(60)).expect("a table");
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
            // The triage is compared with the quasi-identifiers of people, where there are people.
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
    static DEVICE: Arc<Emulator> = Emulator::start(64 << 20, 1);
}

/// A record, and whom it counts for; 0: for nobody.
type Row = ([u8; WIDTH], u8);

#[derive(Clone, Debug)]
enum Event {
    /// A batch has left.
    Batch(Vec<Row>),
    /// One that the queue had no room for.
    Missed(Vec<Row>),
    /// The dictionary of a column was compacted: its codes are others.
    Renumbered(usize, u32),
    /// Evidence is gathered, without this attribute.
    Gather(Option<usize>),
    /// The device fails after some more calls.
    Fails(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let row = || ([0_u8..4, 0_u8..3, 0_u8..6, 0_u8..2], 0_u8..12);
    let rows = || proptest::collection::vec(row(), 0..40);
    let event = prop_oneof![
        6 => rows().prop_map(Event::Batch),
        1 => rows().prop_map(Event::Missed),
        1 => (0..WIDTH, 0_u32..700).prop_map(|(column, by)| Event::Renumbered(column, by)),
        6 => proptest::option::weighted(0.3, 0..WIDTH).prop_map(Event::Gather),
        1 => (0_u64..60).prop_map(Event::Fails),
    ];
    (rows(), proptest::collection::vec(event, 1..16)).prop_map(|(first, rest)| {
        [Event::Batch(first), Event::Gather(None)].into_iter().chain(rest).chain([Event::Gather(None)]).collect()
    })
}

/// The daemon's side of a stream: its window, and the codes of its values.
struct Stream {
    with_subjects: bool,
    capacity: usize,
    window: VecDeque<Row>,
    to: u64,
    numbering: u64,
    /// The code of value v in a column: `v + shift`, of every other value turned round.
    shifts: [u32; WIDTH],
}

impl Stream {
    fn code(&self, column: usize, value: u8) -> Code {
        let shift = self.shifts[column];
        shift + if shift % 2 == 1 { 9 - u32::from(value) } else { u32::from(value) }
    }

    fn counted<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Vec<Row> {
        rows.filter(|(_, person)| !self.with_subjects || *person != 0).copied().collect()
    }

    fn columns(&self, rows: &[Row]) -> Vec<Vec<Code>> {
        (0..WIDTH).map(|c| rows.iter().map(|(values, _)| self.code(c, values[c])).collect()).collect()
    }

    fn subjects(&self, rows: &[Row]) -> Option<Vec<u64>> {
        self.with_subjects.then(|| rows.iter().map(|(_, person)| 1_000_000_007 * u64::from(*person)).collect())
    }

    fn arrives(&mut self, rows: &[Row]) -> Arrival {
        let from = self.to;
        self.to += rows.len() as u64;
        self.window.extend(rows);
        self.window.drain(..self.window.len().saturating_sub(self.capacity));
        let counted = self.counted(rows.iter());
        let (columns, subjects) = (self.columns(&counted), self.subjects(&counted));
        Arrival { numbering: self.numbering, from, to: self.to, columns, subjects }
    }

    fn witnessed(&self, without: Option<usize>) -> (EvidenceInput, PlannerSettings) {
        let counted = self.counted(self.window.iter());
        let values: Vec<[u8; WIDTH]> = counted.iter().map(|(values, _)| *values).collect();
        let (mut from, settings) = witnessed(&values, false);
        from.columns = self.columns(&counted);
        from.subjects = self.subjects(&counted);
        let mut model = CoarseAdjacency::new(&[0, 1, 2, 3], Limits::default()).expect("in order");
        model.add(&from.columns).expect("room");
        from.model = WindowModel::Counted(model);
        from.plan.identifiers = without.into_iter().collect();
        (from.capacity, from.to, from.numbering) = (self.capacity, self.to, self.numbering);
        (from, settings)
    }
}

fn without_time(evidence: Evidence) -> Evidence {
    Evidence { seconds: 0.0, computed_by: String::new(), ..evidence }
}

/// What is gathered after these events, by a window that follows them on the device; the same as from a fresh one on the
/// CPU, whatever happens.
fn follow(events: &[Event], with_subjects: bool, capacity: usize, seed: u64) -> Result<KeptWindow, TestCaseError> {
    let device = DEVICE.with(Arc::clone);
    device.reseed(seed);
    let shared: Arc<dyn Device> = device.clone();
    let mut counting = KeptWindow::new(Wanted::Device, move || Ok(Arc::clone(&shared)));
    let (window, shifts) = (VecDeque::new(), [0; WIDTH]);
    let mut stream = Stream { with_subjects, capacity, window, to: 0, numbering: 0, shifts };
    let mut may_fail = false;
    for event in events {
        match event {
            Event::Batch(rows) => counting.arrive(&stream.arrives(rows)),
            Event::Missed(rows) => drop(stream.arrives(rows)),
            Event::Renumbered(column, shift) => {
                stream.shifts[*column] = *shift;
                stream.numbering += 1;
            }
            Event::Fails(calls) => {
                device.fail_after(*calls);
                may_fail = true;
            }
            Event::Gather(without) => {
                let (mut from, settings) = stream.witnessed(*without);
                let rows = from.columns[0].len();
                let expected = gather(from.clone(), &settings, &mut on_the_cpu(), Duration::from_secs(60));
                // Every other time the model is counted where the window is.
                if stream.to % 2 == 1 {
                    from.model = WindowModel::Recount(Limits::default());
                }
                let found = gather(from, &settings, &mut counting, Duration::from_secs(60)).expect("a table");
                if !may_fail {
                    prop_assert_eq!(found.computed_by.as_str(), if rows > 0 { "cuda" } else { "cpu" });
                }
                prop_assert_eq!(without_time(found), without_time(expected.expect("a table")));
            }
        }
    }
    device.fail_after(u64::MAX);
    prop_assert!(may_fail || counting.used().failures == 0);
    prop_assert_eq!(counting.is_lost(), counting.used().failures > 0);
    Ok(counting)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_window_that_stays_on_the_device_gives_the_evidence_of_a_fresh_one(
        events in events(),
        with_subjects: bool,
        capacity in 8_usize..90,
        seed: u64,
    ) {
        let taken = DEVICE.with(|device| device.taken());
        drop(follow(&events, with_subjects, capacity, seed)?);
        prop_assert_eq!(DEVICE.with(|device| device.taken()), taken, "all memory was given back");
    }
}

#[test]
fn only_what_is_new_goes_to_the_device() {
    let rows =
        |from: u8| (from..from + 30).map(|n| ([n % 4, n % 3, n % 6, n / 16 % 2], n % 11 + 1)).collect::<Vec<Row>>();
    let fills = |events: &[Event]| follow(events, true, 70, 1).expect("the same evidence").fills();
    let told = [0, 30, 60, 90, 120].map(|from| [Event::Batch(rows(from)), Event::Gather(None)]).concat();
    assert_eq!(fills(&told), 1, "what was there stays");
    let missed = [Event::Missed(rows(7)), Event::Gather(None)];
    assert_eq!(fills(&[&told[..], &missed].concat()), 2, "a gap is filled anew");
    let renumbered = [Event::Renumbered(2, 300), Event::Batch(rows(9)), Event::Gather(None)];
    assert_eq!(fills(&[&told[..], &renumbered].concat()), 2, "so are other codes");
    // A gap that has left the window is none.
    let healed =
        [[Event::Missed(rows(7))].to_vec(), [1, 31, 61].map(|from| Event::Batch(rows(from))).to_vec()].concat();
    assert_eq!(fills(&[&told[..], &healed, &[Event::Gather(None)]].concat()), 1);
}
