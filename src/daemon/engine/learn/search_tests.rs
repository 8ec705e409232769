use super::*;
use crate::config::parse;
use crate::daemon::engine::Engine;
use crate::daemon::engine::build::assemble::assemble;
use crate::daemon::engine::gather::encode_ahead::NoNextBatch;
use crate::daemon::state::records::Flush;
use crate::planner::LadderLimits;
use crate::planner::evidence::WindowModel;
use crate::planner::planner_sample::PlannerSample;
use crate::start::checked_config::CheckedConfig;
use throng_core::plan::Plan;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::stream::input_batch::InputBatch;
use throng_core::stream::release_sink::{BatchEnvelope, BatchSink, DeliveryError};
use throng_core::values::codebook::Code;
use throng_core::values::raw_batch::{RawToken, RecordPosition};
use throng_risk::adjacency::AdjacencyLimits;
use throng_risk::counting::cuda::emulator::EmulatedDevice;
use throng_risk::counting::{BackendChoice, Device};
use throng_risk::multigrid::CoarseAdjacency;

const SETTINGS: PlannerSettings = PlannerSettings {
    k: 3,
    ladder: LadderLimits { max_complete_nodes: 100, max_selected_nodes: 10 },
    identifier_cardinality: 1.0,
    window_records: 400,
    batch_records: 400,
};
const ROWS: u64 = 200;
const ATTRIBUTES: [usize; 3] = [0, 1, 2];

fn columns(from: u64, to: u64) -> Vec<Vec<Code>> {
    ATTRIBUTES.iter().map(|c| (from..to).map(|row| (row * 7919 % 31 % (*c as u64 * 3 + 2)) as Code).collect()).collect()
}

fn subjects(from: u64, to: u64) -> Vec<u64> {
    (from..to).map(|row| row % 40 + 1).collect()
}

fn evidence_input_at(to: u64, numbering: u64) -> EvidenceInput {
    let from = to.saturating_sub(SETTINGS.window_records as u64);
    let mut model = CoarseAdjacency::new(&ATTRIBUTES, AdjacencyLimits::default()).expect("in order");
    model.add(&columns(from, to)).expect("room");
    EvidenceInput {
        plan: Plan { version: to, rows: to, ..Plan::inactive(vec![]) },
        sample: PlannerSample::new(ATTRIBUTES.len(), 10, 10),
        books: vec![],
        columns: columns(from, to),
        subjects: Some(subjects(from, to)),
        capacity: SETTINGS.window_records,
        to,
        numbering,
        attributes: ATTRIBUTES.to_vec(),
        model: WindowModel::Counted(model),
    }
}

fn arrival(from: u64, to: u64, numbering: u64) -> WindowArrival {
    WindowArrival { numbering, from, to, columns: columns(from, to), subjects: Some(subjects(from, to)) }
}

struct RecheckBench {
    device: Arc<EmulatedDevice>,
    telemetry: Telemetry,
    recheck: EvidenceRecheck,
}

impl RecheckBench {
    fn new(wanted: BackendChoice) -> Self {
        let (device, telemetry) = (EmulatedDevice::start(64 << 20, 3), Telemetry::new(3, &[]));
        let shared: Arc<dyn Device> = device.clone();
        let counting = StreamWindow::new(wanted, move || Ok(Arc::clone(&shared)));
        let recheck = EvidenceRecheck::begin(counting, telemetry.clone()).expect("a thread");
        Self { device, telemetry, recheck }
    }

    fn gather(&mut self, to: u64) -> PlanEvidence {
        assert!(self.recheck.request_evidence(
            evidence_input_at(to, self.recheck.numbering),
            SETTINGS,
            Duration::from_secs(60)
        ));
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
fn recheck_device_use_is_reported_in_metrics() {
    let mut bench = RecheckBench::new(BackendChoice::Device);
    assert!(!bench.recheck.follows());
    let first = bench.gather(ROWS);
    assert_eq!((first.computed_by.as_str(), first.records), ("cuda", ROWS));
    assert!(bench.recheck.follows(), "the window is on the device");
    assert_eq!(bench.metric("throng_gpu_window_fills_total"), 1);
    let taken = bench.device.allocated_bytes();
    assert!(taken > 0 && [0, 1 << 20].contains(&bench.metric("throng_gpu_memory_bytes")), "{taken}");

    for from in (ROWS..2 * ROWS).step_by(20) {
        bench.recheck.append_rows(arrival(from, from + 20, 0), SETTINGS.window_records);
    }
    assert_eq!(bench.gather(2 * ROWS).records, 2 * ROWS);
    assert_eq!(bench.metric("throng_gpu_window_fills_total"), 1, "the window stayed there");
    for name in ["throng_gpu_fallbacks_total", "throng_gpu_lost"] {
        assert_eq!(bench.metric(name), 0, "{name}");
    }
}

#[test]
fn recheck_device_failure_is_counted_and_falls_back_to_cpu() {
    let mut bench = RecheckBench::new(BackendChoice::Device);
    let expected = bench.gather(ROWS);
    bench.device.fail_after(3);
    let found = bench.gather(ROWS);
    assert_ne!(found.computed_by, "cuda");
    let timeless = |evidence: PlanEvidence| PlanEvidence { seconds: 0.0, computed_by: String::new(), ..evidence };
    assert_eq!(timeless(found), timeless(expected));
    assert_eq!(bench.metric("throng_gpu_fallbacks_total"), 1);
    assert_eq!(bench.metric("throng_gpu_lost"), 1);
    assert_eq!(bench.metric("throng_gpu_memory_bytes"), 0, "all of it was given back");
    assert!(!bench.recheck.follows(), "nobody wants to know of batches any more");
    assert_eq!(bench.gather(2 * ROWS).computed_by, "cpu");
    assert_eq!(bench.metric("throng_gpu_fallbacks_total"), 1, "it is not asked again");
}

#[test]
fn recheck_full_queue_does_not_block() {
    let mut bench = RecheckBench::new(BackendChoice::Device);
    bench.gather(ROWS);
    let most = SETTINGS.window_records;
    // Faster than processed: some are skipped, yet evidence is correct.
    for from in (ROWS..20 * ROWS).step_by(2) {
        bench.recheck.append_rows(arrival(from, from + 2, 0), most);
        assert!(
            bench.recheck.shared.rows.load(Ordering::Relaxed) <= most && bench.recheck.work.len() < RECHECK_QUEUE_LEN
        );
    }
    let (found, to) = (bench.gather(20 * ROWS), 20 * ROWS);
    let mut cpu = RecheckBench::new(BackendChoice::Cpu);
    let expected = cpu.gather(to);
    assert_eq!((found.records, &found.minimal_qids), (expected.records, &expected.minimal_qids));
    assert_eq!(bench.metric("throng_gpu_fallbacks_total"), 0);
    assert!(!cpu.recheck.follows());
    assert_eq!(cpu.metric("throng_gpu_launches_total") + cpu.metric("throng_gpu_memory_bytes"), 0);
    assert_eq!(cpu.device.allocated_bytes(), 0);
}

/// Engine in monitoring mode; its window holds 240 records, its dictionaries 600 values.
fn engine(folder: &std::path::Path, telemetry: &mut Option<Telemetry>) -> Engine {
    let place = folder.display();
    let schema = r#"name = "visits"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "lot"
type = "string"
[[attribute]]
name = "age"
type = "integer"
[[attribute]]
name = "ward"
type = "string"
"#;
    std::fs::write(folder.join("visits.toml"), schema).expect("the schema");
    crate::config::Secret::create(&folder.join("key")).expect("the secret");
    let config = format!(
        "[source]\nkind = \"file\"\npath = \"-\"\nformat = \"json\"\n[sink]\nkind = \"none\"\n\
         [schema]\nfile = \"{place}/visits.toml\"\n[batch]\nmax_records = 40\n[privacy]\nk = 2\n\
         max_lines_per_subject = 0\nmax_delay = \"0s\"\nmax_hold_batches = 0\n[plan]\nwindow_records = 240\n\
         interval = \"1s\"\n[state]\npath = \"{place}/state\"\nsecret_file = \"{place}/key\"\n\
         [compute]\nbackend = \"cpu\"\n[telemetry]\nlisten = \"127.0.0.1:0\"\n"
    );
    let mut config = parse(&config, "visits", std::iter::empty()).expect("a configuration");
    config.tuning.handover_batches = 0;
    config.tuning.max_dictionary_values = 600;
    let checked = CheckedConfig::new(config, "visits").expect("a sound configuration");
    let own = checked.telemetry();
    let assembled = assemble(checked, &own, false, &mut |_, _| Ok(false)).expect("an engine");
    *telemetry = Some(own);
    assembled.engine
}

struct DiscardingSink;

impl BatchSink for DiscardingSink {
    fn deliver(&mut self, _: &ReleasableBatch, _: &BatchEnvelope<'_>) -> Result<(), DeliveryError> {
        Ok(())
    }

    fn bytes_out(&self) -> u64 {
        0
    }
}

/// From the twentieth batch on, some visits lack a subject.
fn visits(batch: i64) -> InputBatch {
    let mut input = InputBatch::new(4, 0);
    let (from, to) = (batch * 40, batch * 40 + 40);
    for visit in from..to {
        input.raw.push_row(RecordPosition { topic: 0, partition: 0, offset: visit, element: 0 });
        let person = format!("p{}", visit % 90);
        let token = if batch >= 20 && visit % 7 == 0 { RawToken::Null } else { RawToken::Text(&person) };
        input.raw.set(0, token);
        input.raw.set(1, RawToken::Text(&format!("L{visit}")));
        input.raw.set(2, RawToken::Number(&(20 + visit * visit % 11).to_string()));
        input.raw.set(3, RawToken::Text(["north", "south", "east", "tent", "west"][(visit / 3 % 5) as usize]));
    }
    input.ranges.insert((0, 0), (from, to));
    input
}

fn evidence_after(engine: &mut Engine, batch: i64) -> PlanEvidence {
    let mut turn = Box::new(visits(batch)).into();
    engine
        .process(&mut turn, Flush::No, None, &mut DiscardingSink, batch * 2000, &mut NoNextBatch)
        .expect("nothing fails");
    let waiting = engine.planning.recheck.as_ref().expect("a thread");
    assert!(waiting.pending, "every batch has a plan of its own");
    for _ in 0..60_000 {
        if !waiting.answer.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    engine.take_evidence().expect("in time")
}

#[test]
fn recheck_window_stays_on_device_through_expiry_and_renumbering() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut telemetry = None;
    let mut plain = engine(folders[0].path(), &mut None);
    let mut engine = engine(folders[1].path(), &mut telemetry);
    let device = EmulatedDevice::start(64 << 20, 5);
    let shared: Arc<dyn Device> = device.clone();
    let counting = StreamWindow::new(BackendChoice::Device, move || Ok(Arc::clone(&shared)));
    let telemetry = telemetry.expect("one was made");
    engine.planning.recheck = Some(EvidenceRecheck::begin(counting, telemetry.clone()).expect("a thread"));
    let fills = || -> u64 {
        let text = telemetry.render();
        let line = text.lines().find_map(|line| line.strip_prefix("throng_gpu_window_fills_total "));
        line.and_then(|count| count.parse().ok()).expect("a number")
    };
    let timeless = |evidence: PlanEvidence| PlanEvidence { seconds: 0.0, computed_by: String::new(), ..evidence };
    for batch in 0..26 {
        let (found, expected) = (evidence_after(&mut engine, batch), evidence_after(&mut plain, batch));
        assert_eq!((found.computed_by.as_str(), expected.computed_by.as_str()), ("cuda", "cpu"));
        assert_eq!(timeless(found), timeless(expected), "after batch {batch}");
        let renumbered = engine.planning.recheck.as_ref().map_or(0, |recheck| recheck.numbering);
        assert!(fills() <= 1 + renumbered, "{} fills after batch {batch}", fills());
        assert!(batch != 12 || (fills(), renumbered) == (1, 0), "expiry needs no upload");
    }
    assert!(
        engine.planning.recheck.as_ref().is_some_and(|recheck| recheck.numbering > 1),
        "dictionaries were compacted"
    );

    device.fail_after(5);
    let (found, expected) = (evidence_after(&mut engine, 26), evidence_after(&mut plain, 26));
    assert_ne!(found.computed_by, "cuda");
    assert_eq!(timeless(found), timeless(expected));
    assert!(telemetry.render().contains("throng_gpu_lost 1"));
}
