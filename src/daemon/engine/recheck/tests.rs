use super::*;
use crate::anonymity::plan::Plan;
use crate::anonymity::planner::ladder::LadderLimits;
use crate::anonymity::planner::sample::Sample;
use crate::risk::adjacency::{Adjacency, Limits};
use crate::risk::compute::cuda::emulator::Emulator;
use crate::risk::compute::cuda::{Device, Wanted};

const SETTINGS: PlannerSettings = PlannerSettings {
    k: 3,
    ladder: LadderLimits { complete: 100, chosen: 10 },
    identifier_cardinality: 1.0,
    window_records: 400,
};
const ROWS: u64 = 200;
const ATTRIBUTES: [usize; 3] = [0, 1, 2];

/// Rows `from..to` of a stream of three columns.
fn columns(from: u64, to: u64) -> Vec<Vec<Code>> {
    ATTRIBUTES.iter().map(|c| (from..to).map(|row| (row * 7919 % 31 % (*c as u64 * 3 + 2)) as Code).collect()).collect()
}

fn subjects(from: u64, to: u64) -> Vec<u64> {
    (from..to).map(|row| row % 40 + 1).collect()
}

fn witnessed(to: u64, numbering: u64) -> Witnessed {
    let from = to.saturating_sub(SETTINGS.window_records as u64);
    let mut model = Adjacency::new(&ATTRIBUTES, Limits::default()).expect("in order");
    model.add(&columns(from, to)).expect("room");
    Witnessed {
        plan: Plan { version: to, identifiers: vec![], groups: vec![], rows: to },
        sample: Sample::new(ATTRIBUTES.len(), 10, 10),
        books: vec![],
        columns: columns(from, to),
        subjects: Some(subjects(from, to)),
        capacity: SETTINGS.window_records,
        to,
        numbering,
        model,
        recount: false,
    }
}

fn arrival(from: u64, to: u64, numbering: u64) -> Arrival {
    Arrival { numbering, from, to, columns: columns(from, to), subjects: Some(subjects(from, to)) }
}

struct Bench {
    device: Arc<Emulator>,
    telemetry: Telemetry,
    recheck: Recheck,
}

impl Bench {
    fn new(wanted: Wanted) -> Self {
        let (device, telemetry) = (Emulator::start(64 << 20, 3), Telemetry::new(3, &[]));
        let shared: Arc<dyn Device> = device.clone();
        let counting = KeptWindow::new(wanted, move || Ok(Arc::clone(&shared)));
        let recheck = Recheck::begin(counting, telemetry.clone()).expect("a thread");
        Self { device, telemetry, recheck }
    }

    fn gather(&mut self, to: u64) -> Evidence {
        assert!(self.recheck.ask(witnessed(to, self.recheck.numbering), SETTINGS, Duration::from_secs(60)));
        self.recheck.pending = false;
        self.recheck.answer.recv_timeout(Duration::from_secs(60)).expect("in time").expect("a table")
    }

    fn metric(&self, name: &str) -> u64 {
        let text = self.telemetry.render();
        let line = text.lines().find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')));
        line.unwrap_or_else(|| panic!("no sample {name}")).parse().expect("a number")
    }
}

#[test]
fn what_the_device_is_used_for_arrives_in_the_metrics() {
    let mut bench = Bench::new(Wanted::Cuda);
    let names = ["memory_bytes", "launches_total", "copied_bytes_total{direction=\"up\"}", "window_fills_total"];
    assert!(!bench.recheck.follows());
    let first = bench.gather(ROWS);
    assert_eq!((first.computed_by.as_str(), first.records), ("cuda", ROWS));
    assert!(bench.recheck.follows(), "the window is on the device");
    let once = names.map(|name| bench.metric(&format!("throng_gpu_{name}")));
    assert!(once.iter().all(|value| *value > 0), "{once:?}");
    assert_eq!(once[0], bench.device.taken());
    assert!(bench.metric("throng_gpu_copied_bytes_total{direction=\"down\"}") > 0);

    for from in (ROWS..2 * ROWS).step_by(20) {
        bench.recheck.tell(arrival(from, from + 20, 0), SETTINGS.window_records);
    }
    assert_eq!(bench.gather(2 * ROWS).records, 2 * ROWS);
    let twice = names.map(|name| bench.metric(&format!("throng_gpu_{name}")));
    assert!(twice[1] > once[1] && twice[2] > once[2], "{once:?} {twice:?}");
    assert_eq!(twice[3], 1, "the window stayed there");
    for name in ["throng_gpu_fallbacks_total", "throng_gpu_lost"] {
        assert_eq!(bench.metric(name), 0, "{name}");
    }
}

#[test]
fn a_device_that_fails_is_counted_and_the_evidence_is_there() {
    let mut bench = Bench::new(Wanted::Cuda);
    let expected = bench.gather(ROWS);
    bench.device.fail_after(3);
    let found = bench.gather(ROWS);
    assert_ne!(found.computed_by, "cuda");
    let timeless = |evidence: Evidence| Evidence { seconds: 0.0, computed_by: String::new(), ..evidence };
    assert_eq!(timeless(found), timeless(expected));
    assert_eq!(bench.metric("throng_gpu_fallbacks_total"), 1);
    assert_eq!(bench.metric("throng_gpu_lost"), 1);
    assert_eq!(bench.metric("throng_gpu_memory_bytes"), 0, "all of it was given back");
    assert!(!bench.recheck.follows(), "nobody wants to know of batches any more");
    assert_eq!(bench.gather(2 * ROWS).computed_by, "cpu");
    assert_eq!(bench.metric("throng_gpu_fallbacks_total"), 1, "it is not asked again");
}

#[test]
fn a_queue_that_is_full_makes_nobody_wait() {
    let mut bench = Bench::new(Wanted::Cuda);
    bench.gather(ROWS);
    let most = SETTINGS.window_records;
    // More rows than a window holds, faster than they can be taken: some are not told, and the evidence is right.
    for from in (ROWS..20 * ROWS).step_by(2) {
        bench.recheck.tell(arrival(from, from + 2, 0), most);
        assert!(bench.recheck.shared.rows.load(Ordering::Relaxed) <= most && bench.recheck.work.len() < QUEUE);
    }
    let (found, to) = (bench.gather(20 * ROWS), 20 * ROWS);
    let mut cpu = Bench::new(Wanted::Cpu);
    let expected = cpu.gather(to);
    assert_eq!((found.records, &found.minimal_qids), (expected.records, &expected.minimal_qids));
    assert_eq!(bench.metric("throng_gpu_fallbacks_total"), 0);
    // The CPU's side is asked for nothing and follows nothing.
    assert!(!cpu.recheck.follows());
    assert_eq!(cpu.metric("throng_gpu_launches_total") + cpu.metric("throng_gpu_memory_bytes"), 0);
    assert_eq!(cpu.device.taken(), 0);
}
