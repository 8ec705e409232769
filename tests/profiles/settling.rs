//! Records that arrive or wait while initial profiles are still being read, or while a batch is pending a retry.

use crate::profiles::{SCHEMA, line};
use crate::support::stand::{Collector, Fault, Stand, record};
use crossbeam_channel::{Sender, unbounded};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use throng::daemon::engine::{BatchError, Engine, NextBatchSource, QueuedBatch};
use throng::daemon::requests::RequestSender;
use throng::daemon::state::clock::{MachineClocks, StateClock};
use throng::daemon::state::directory::StateError;
use throng::daemon::state::records::Flush;
use throng::daemon::stream::source::{AssignmentNotice, BatchSource, SourceEvent, SourceFailure};
use throng::daemon::stream::stream_loop::{StreamError, StreamLoop};
use throng::io::profiles::{ProfileFeed, ProfileMessage, ProfileRevision, ProfileTable};
use throng_core::stream::input_batch::{CloseReason, OffsetRanges};
use throng_core::values::raw_batch::RawToken;

const SETTINGS: &str = "[[join]]\nname = \"profiles\"\npath = \"nobody-reads.csv\"\n\
    [privacy]\nk = 3\nmax_hold_batches = 9\n\
    [[group]]\nname = \"all\"\nattributes = [\"ward\", \"age\", \"sex\"]\n";
const NOW_MS: i64 = 1_000;
const BEGIN: i64 = 6;

enum Step {
    Batch(QueuedBatch),
    /// Delivers the aborted batch again.
    Again,
    Revoked(i32),
    /// Delivers no record for longer than `batch.max_age`.
    Quiet,
    /// Reports that the aborted batch cannot be read again.
    CannotReplay,
    /// Another instance has read past the aborted batch.
    Passed,
    /// As `Passed`, and other instances own all partitions.
    Alone,
    /// Fails the source.
    Breaks,
}

struct Script {
    steps: VecDeque<Step>,
    aborted: Option<QueuedBatch>,
    passed: bool,
    alone: bool,
    voided: Arc<AtomicUsize>,
}

impl NextBatchSource for Script {
    fn look(&mut self, _: &AtomicBool) -> Option<&mut QueuedBatch> {
        None
    }
}

impl BatchSource for Script {
    fn next_event(&mut self, _: Duration) -> Result<SourceEvent, SourceFailure> {
        Ok(match self.steps.pop_front() {
            Some(Step::Batch(turn)) => SourceEvent::Batch(turn, None),
            Some(Step::Again) => {
                let mut turn = self.aborted.take().expect("a batch was aborted");
                turn.input.closed = CloseReason::Replay;
                SourceEvent::Batch(turn, None)
            }
            Some(Step::Revoked(partition)) => {
                let (places, acknowledge) = (vec![(0, partition)], crossbeam_channel::unbounded().0);
                SourceEvent::Notice(AssignmentNotice::Revoked { places, is_lost: false, acknowledge })
            }
            Some(Step::Quiet) => SourceEvent::TimedOut,
            Some(Step::CannotReplay) => {
                SourceEvent::Notice(AssignmentNotice::CannotReplay { gone: OffsetRanges::new() })
            }
            Some(step @ (Step::Passed | Step::Alone)) => {
                (self.passed, self.alone) = (true, matches!(step, Step::Alone));
                SourceEvent::TimedOut
            }
            Some(Step::Breaks) => return Err(SourceFailure::ReaderThreadEnded),
            None => SourceEvent::End(Flush::Shutdown),
        })
    }

    fn rewind(
        &mut self,
        aborted: Option<(QueuedBatch, Option<Flush>)>,
        ranges: OffsetRanges,
    ) -> Result<(), SourceFailure> {
        self.voided.fetch_add(usize::from(aborted.is_none() && ranges.is_empty()), Ordering::Relaxed);
        self.aborted = aborted.map(|(turn, _)| turn);
        Ok(())
    }

    fn is_live(&self) -> bool {
        true
    }

    fn has_partitions(&self) -> bool {
        !self.alone
    }

    fn is_passed_by_others(&self, ranges: &OffsetRanges) -> bool {
        self.passed && !ranges.is_empty()
    }
}

fn run(stand: &mut Stand, steps: Vec<Step>, stops: bool) -> Result<(), StreamError> {
    run_counting(stand, steps, stops, &Arc::default())
}

fn run_counting(
    stand: &mut Stand,
    steps: Vec<Step>,
    stops: bool,
    voided: &Arc<AtomicUsize>,
) -> Result<(), StreamError> {
    let telemetry = stand.telemetry.clone();
    let (engine, sink) = stand.parts();
    let mut source =
        Script { steps: steps.into(), aborted: None, passed: false, alone: false, voided: Arc::clone(voided) };
    let clock = StateClock::resume(Arc::new(MachineClocks::new()), &[], Duration::from_secs(3_600));
    let stop = AtomicBool::new(stops);
    let max_age = Duration::ZERO;
    let (source, (_, erasures)) = (&mut source, RequestSender::channel(1));
    StreamLoop {
        source,
        engine,
        sink,
        telemetry: &telemetry,
        clock,
        max_age,
        retry: None,
        erasures: &erasures,
        erasure_topic: None,
        idle: None,
        assigned: BTreeSet::new(),
        restore: None,
        next: &crossbeam_channel::never(),
        stop: &stop,
    }
    .run()
}

fn person(engine: &Engine, number: usize) -> u64 {
    let mut subjects = engine.subjects().expect("a subject");
    subjects.digest(RawToken::Text(&format!("p{number}"))).expect("a text")
}

fn table(engine: &Engine, people: std::ops::Range<usize>, cells: &str) -> ProfileTable {
    let mut table = ProfileTable::new(100);
    for p in people {
        table.set(person(engine, p), Some(cells.into()));
    }
    table
}

fn reader(stand: &mut Stand) -> Sender<ProfileMessage> {
    let (says, news) = unbounded();
    stand.engine().set_profile_feeds(vec![ProfileFeed::new(news)]);
    says
}

fn visits(people: std::ops::Range<usize>) -> Vec<Option<Vec<u8>>> {
    people.map(|p| record(format!("{{\"person\":\"p{p}\",\"ward\":\"east\"}}"))).collect()
}

fn texts(sink: &Collector) -> Vec<&str> {
    sink.lines.iter().map(|l| l.text.as_str()).collect()
}

/// All profiles but two are equal. The records of those two, in partition 1, are held.
fn begun() -> (Stand, Sender<ProfileMessage>) {
    let mut stand = Stand::new(SCHEMA, SETTINGS);
    let says = reader(&mut stand);
    let mut all = table(stand.engine(), 2..9, "34\n\"f\"");
    all.set(person(stand.engine(), 0), Some("7\n\"x\"".into()));
    all.set(person(stand.engine(), 1), Some("93\n\"y\"".into()));
    says.send(ProfileMessage::InitialTable(all)).expect("it listens");
    assert!(stand.engine().read_profiles(&AtomicBool::new(false)).expect("they can be read"));
    stand.partition = 1;
    stand.offer(&visits(0..6), Flush::No, NOW_MS, Fault::Nothing);
    assert_eq!((stand.engine().unreleased_records(), stand.sink.lines.len()), (2, 4));
    stand.partition = 0;
    stand.sink.lines.clear();
    (stand, says)
}

#[test]
fn stop_before_profiles_are_read_releases_nothing() {
    let (mut stand, _says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.die();
    let says = reader(&mut stand);
    let turn = stand.turn(&visits(2..8), BEGIN);
    run(&mut stand, vec![Step::Batch(turn)], true).expect("it ends in order");
    assert!(stand.sink.lines.is_empty(), "{:?}", texts(&stand.sink));
    assert_eq!((stand.engine().unreleased_records(), stand.engine().progress().totals.consumed), (2, 6));

    let all = table(stand.engine(), 0..9, "61\n\"m\"");
    says.send(ProfileMessage::InitialTable(all)).expect("it listens");
    let turn = stand.turn(&visits(2..8), BEGIN);
    run(&mut stand, vec![Step::Batch(turn)], false).expect("it ends in order");
    assert_eq!(texts(&stand.sink), vec![line("61", "\"m\""); 8]);
}

#[test]
fn held_records_wait_for_initial_profiles_at_shutdown() {
    let (mut stand, _says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.die();
    let says = reader(&mut stand);
    let before = stand.engine().progress().totals;
    run(&mut stand, Vec::new(), true).expect("it ends in order");
    assert_eq!((stand.engine().unreleased_records(), stand.engine().progress().totals), (2, before));

    let nobody = ProfileTable::new(100);
    says.send(ProfileMessage::InitialTable(nobody)).expect("it listens");
    run(&mut stand, Vec::new(), true).expect("it ends in order");
    assert_eq!(stand.engine().unreleased_records(), 0, "settled with the profiles of now");
    assert!(!texts(&stand.sink).iter().any(|line| line.contains("\"x\"")), "{:?}", texts(&stand.sink));
}

/// A release in between would change the profiles of the pending batch.
#[test]
fn held_records_do_not_settle_between_batch_and_its_retry() {
    let (mut stand, says) = begun();
    let other = ProfileRevision { person: person(stand.engine(), 3), cells: Some("61\n\"m\"".into()) };
    says.send(ProfileMessage::Changed(other)).expect("it listens");
    let turn = stand.turn(&visits(2..6), BEGIN);
    stand.sink.abort_next = true;
    run(&mut stand, vec![Step::Batch(turn), Step::Quiet, Step::Again], false).expect("no damage");
    // The collector has compared the bytes of both attempts.
    assert_eq!(texts(&stand.sink)[..4], vec![line("34", "\"f\""); 4]);
    assert_eq!(stand.engine().unreleased_records(), 0);
}

#[test]
fn revoked_partition_of_pending_batch_does_not_block_daemon() {
    let (mut stand, says) = begun();
    let other = ProfileRevision { person: person(stand.engine(), 3), cells: Some("61\n\"m\"".into()) };
    says.send(ProfileMessage::Changed(other)).expect("it listens");
    let turn = stand.turn(&visits(2..6), BEGIN);
    stand.sink.abort_next = true;
    stand.sink.another_attempt_may_differ = true;
    run(&mut stand, vec![Step::Batch(turn), Step::Revoked(0), Step::Quiet], false).expect("no damage");
    assert_eq!((stand.engine().unreleased_records(), stand.engine().progress().totals.consumed), (0, 6));
}

/// The next batch must not release its records under another generalization.
#[test]
fn failed_settlement_is_retried_before_next_batch() {
    let (mut stand, says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.sink.aborts = 4;
    let other = ProfileRevision { person: person(stand.engine(), 0), cells: Some("61\n\"m\"".into()) };
    says.send(ProfileMessage::Changed(other)).expect("it listens");
    let turn = stand.turn(&visits(2..6), BEGIN);
    run(&mut stand, vec![Step::Quiet, Step::Batch(turn)], false).expect("it ends in order");
    assert_eq!((stand.engine().unreleased_records(), stand.sink.aborts), (0, 0));
    assert_eq!(stand.engine().progress().totals.consumed, 10);
}

#[test]
fn permanently_failing_settlement_ends_run_and_stays_pending() {
    let (mut stand, _says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.sink.aborts = 10_000;
    let error = run(&mut stand, vec![Step::Quiet], false).expect_err("it never succeeds");
    assert!(error.to_string().contains("of held records was aborted"), "{error}");
    assert_eq!(stand.engine().unreleased_records(), 2);
    stand.die();
    assert!(stand.is_pending());
}

/// An instance without partitions gets no notice of another owner.
#[test]
fn partitions_owned_by_others_do_not_block_daemon() {
    for (step, held) in [(Step::Passed, 2), (Step::Alone, 0)] {
        let (mut stand, _says) = begun();
        let turn = stand.turn(&visits(2..6), BEGIN);
        stand.sink.abort_next = true;
        stand.sink.another_attempt_may_differ = true;
        // Held records settle only after the batch of partition 0 is given up.
        let steps = vec![Step::Batch(turn), step, Step::Quiet, Step::Breaks];
        assert!(matches!(run(&mut stand, steps, false), Err(StreamError::Source(SourceFailure::ReaderThreadEnded))));
        assert_eq!(stand.engine().unreleased_records(), held);
    }
}

/// A partial batch left in the reader would count as complete.
#[test]
fn revocation_of_aborted_batch_discards_its_partial_read() {
    let (mut stand, _says) = begun();
    let turn = stand.turn(&visits(2..6), BEGIN);
    stand.sink.abort_next = true;
    stand.sink.another_attempt_may_differ = true;
    let voided = Arc::default();
    let steps = vec![Step::Batch(turn), Step::Revoked(0), Step::Breaks];
    let ended = run_counting(&mut stand, steps, false, &voided);
    assert!(matches!(ended, Err(StreamError::Source(SourceFailure::ReaderThreadEnded))));
    assert_eq!(voided.load(Ordering::Relaxed), 1);
}

/// Otherwise the next start would wait for its records.
#[test]
fn abandoned_batch_is_not_pending_after_shutdown() {
    for (step, stays) in [
        (Some(Step::Revoked(0)), false),
        (Some(Step::CannotReplay), false),
        (Some(Step::Passed), false),
        (Some(Step::Alone), false),
        (None, true),
    ] {
        let mut stand = Stand::new(SCHEMA, SETTINGS);
        let says = reader(&mut stand);
        says.send(ProfileMessage::InitialTable(table(stand.engine(), 0..9, "34\n\"f\""))).expect("it listens");
        let turn = stand.turn(&visits(2..6), BEGIN);
        stand.sink.abort_next = true;
        let steps = [Some(Step::Batch(turn)), step].into_iter().flatten().collect();
        run(&mut stand, steps, false).expect("it ends in order");
        assert_eq!(stand.engine().progress().totals.consumed, 0);
        stand.die();
        assert_eq!(stand.is_pending(), stays, "one that nobody else has is repeated by the next start");
    }
}

#[test]
fn batch_retry_with_changed_profiles_is_refused() {
    let (mut stand, says) = begun();
    stand.sink.abort_next = true;
    let Err(BatchError::Aborted { intent, .. }) = stand.process(&visits(2..6), BEGIN, Flush::No, None, NOW_MS) else {
        panic!("it was to be aborted");
    };
    let other = ProfileRevision { person: person(stand.engine(), 3), cells: Some("61\n\"m\"".into()) };
    says.send(ProfileMessage::Changed(other)).expect("it listens");
    stand.engine().receive_updates_while_idle().expect("it can be written");
    let refused = stand.process(&visits(2..6), BEGIN, Flush::No, Some(&intent), NOW_MS).expect_err("it is refused");
    assert!(matches!(refused, BatchError::State(StateError::Damaged { .. })), "{refused}");
    assert!(refused.to_string().contains("its profiles differ from those"), "{refused}");
    assert!(stand.sink.lines.is_empty());
}
