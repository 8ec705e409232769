//! Records that come or wait while the profiles of a start are still being read, or while a batch is to be repeated.

use crate::profiles::{SCHEMA, line};
use crate::support::stand::{Collector, Fault, Stand, record};
use crossbeam_channel::{Sender, unbounded};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use throng::daemon::engine::clock::{MachineClocks, StateClock};
use throng::daemon::engine::{BatchError, Engine, Settling, Turn, Upcoming};
use throng::daemon::requests::Requests;
use throng::daemon::state::directory::StateError;
use throng::daemon::stream::run::{Run, StreamError};
use throng::daemon::stream::source::{Next, Notice, Source, SourceFailure};
use throng::io::input::{Closed, Ranges};
use throng::io::profiles::{Feed, News, Table, Update};
use throng_core::values::raw::Token;

const SETTINGS: &str = "[[join]]\nname = \"profiles\"\npath = \"nobody-reads.csv\"\n\
    [privacy]\nk = 3\nmax_hold_batches = 9\n\
    [[group]]\nname = \"all\"\nattributes = [\"ward\", \"age\", \"sex\"]\n";
const NOW_MS: i64 = 1_000;
/// Where partition 0 goes on.
const BEGIN: i64 = 6;

/// What a source says next.
enum Step {
    Batch(Turn),
    /// The batch that was aborted.
    Again,
    /// A partition is taken away.
    Revoked(i32),
    /// Nothing comes for longer than `batch.max_age`.
    Quiet,
    /// What was aborted is not where it was any more.
    CannotReplay,
    /// Nobody has said so, but somebody else has read on there.
    Passed,
    /// And all partitions are with others.
    Alone,
    /// Nothing more can be read.
    Breaks,
}

/// A live source that says what it is told to, and then that it is to end.
struct Script {
    steps: VecDeque<Step>,
    aborted: Option<Turn>,
    passed: bool,
    alone: bool,
    /// Counts commands to forget what was read of an aborted batch.
    voided: Arc<AtomicUsize>,
}

impl Upcoming for Script {
    fn look(&mut self, _: &AtomicBool) -> Option<&mut Turn> {
        None
    }
}

impl Source for Script {
    fn next(&mut self, _: Duration) -> Result<Next, SourceFailure> {
        Ok(match self.steps.pop_front() {
            Some(Step::Batch(turn)) => Next::Batch(turn, None),
            Some(Step::Again) => {
                let mut turn = self.aborted.take().expect("a batch was aborted");
                turn.input.closed = Closed::Replay;
                Next::Batch(turn, None)
            }
            Some(Step::Revoked(partition)) => {
                let (places, acknowledge) = (vec![(0, partition)], crossbeam_channel::unbounded().0);
                Next::Notice(Notice::Revoked { places, is_lost: false, acknowledge })
            }
            Some(Step::Quiet) => Next::Nothing,
            Some(Step::CannotReplay) => Next::Notice(Notice::CannotReplay { gone: Ranges::new() }),
            Some(step @ (Step::Passed | Step::Alone)) => {
                (self.passed, self.alone) = (true, matches!(step, Step::Alone));
                Next::Nothing
            }
            Some(Step::Breaks) => return Err(SourceFailure::ReaderGone),
            None => Next::End(Settling::Shutdown),
        })
    }

    fn rewind(&mut self, aborted: Option<(Turn, Option<Settling>)>, ranges: Ranges) -> Result<(), SourceFailure> {
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

    fn has_passed(&self, ranges: &Ranges) -> bool {
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
    let (source, (_, erasures)) = (&mut source, Requests::channel(1));
    Run {
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
    subjects.digest(Token::Text(&format!("p{number}"))).expect("a text")
}

/// The profiles of people that are all of one kind.
fn table(engine: &Engine, people: std::ops::Range<usize>, cells: &str) -> Table {
    let mut table = Table::new(100);
    for p in people {
        table.set(person(engine, p), Some(cells.into()));
    }
    table
}

/// A reader of profiles that says what the test says.
fn reader(stand: &mut Stand) -> Sender<News> {
    let (says, news) = unbounded();
    stand.engine().take_profiles_from(vec![Feed::new(news)]);
    says
}

fn visits(people: std::ops::Range<usize>) -> Vec<Option<Vec<u8>>> {
    people.map(|p| record(format!("{{\"person\":\"p{p}\",\"ward\":\"east\"}}"))).collect()
}

fn texts(sink: &Collector) -> Vec<&str> {
    sink.lines.iter().map(|l| l.text.as_str()).collect()
}

/// A state that knows everybody as 34 and f but two people, each like nobody else, whose records of partition 1 wait.
fn begun() -> (Stand, Sender<News>) {
    let mut stand = Stand::new(SCHEMA, SETTINGS);
    let says = reader(&mut stand);
    let mut all = table(stand.engine(), 2..9, "34\n\"f\"");
    all.set(person(stand.engine(), 0), Some("7\n\"x\"".into()));
    all.set(person(stand.engine(), 1), Some("93\n\"y\"".into()));
    says.send(News::Whole(all)).expect("it listens");
    assert!(stand.engine().read_profiles(&AtomicBool::new(false)).expect("they can be read"));
    stand.partition = 1;
    stand.offer(&visits(0..6), Settling::No, NOW_MS, Fault::Nothing);
    assert_eq!((stand.engine().held(), stand.sink.lines.len()), (2, 4));
    stand.partition = 0;
    stand.sink.lines.clear();
    (stand, says)
}

#[test]
fn a_stop_before_the_profiles_are_read_lets_nothing_leave() {
    let (mut stand, _says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.die();
    let says = reader(&mut stand);
    let turn = stand.turn(&visits(2..8), BEGIN);
    run(&mut stand, vec![Step::Batch(turn)], true).expect("it ends in order");
    assert!(stand.sink.lines.is_empty(), "{:?}", texts(&stand.sink));
    assert_eq!((stand.engine().held(), stand.engine().progress().totals.consumed), (2, 6));

    // The next start has them, and they are others.
    let all = table(stand.engine(), 0..9, "61\n\"m\"");
    says.send(News::Whole(all)).expect("it listens");
    let turn = stand.turn(&visits(2..8), BEGIN);
    run(&mut stand, vec![Step::Batch(turn)], false).expect("it ends in order");
    assert_eq!(texts(&stand.sink), vec![line("61", "\"m\""); 8]);
}

#[test]
fn what_is_held_waits_for_the_profiles_of_the_start_at_the_end() {
    let (mut stand, _says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.die();
    let says = reader(&mut stand);
    let before = stand.engine().progress().totals;
    run(&mut stand, Vec::new(), true).expect("it ends in order");
    assert_eq!((stand.engine().held(), stand.engine().progress().totals), (2, before));

    let nobody = Table::new(100);
    says.send(News::Whole(nobody)).expect("it listens");
    run(&mut stand, Vec::new(), true).expect("it ends in order");
    assert_eq!(stand.engine().held(), 0, "settled with the profiles of now");
    assert!(!texts(&stand.sink).iter().any(|line| line.contains("\"x\"")), "{:?}", texts(&stand.sink));
}

/// What leaves in between would change the profiles under the batch, and take along records that it had.
#[test]
fn nothing_that_is_held_settles_between_a_batch_and_its_repetition() {
    let (mut stand, says) = begun();
    let other = Update { person: person(stand.engine(), 3), cells: Some("61\n\"m\"".into()) };
    says.send(News::Changed(other)).expect("it listens");
    let turn = stand.turn(&visits(2..6), BEGIN);
    stand.sink.abort_next = true;
    run(&mut stand, vec![Step::Batch(turn), Step::Quiet, Step::Again], false).expect("no damage");
    // The collector has compared the bytes of both attempts.
    assert_eq!(texts(&stand.sink)[..4], vec![line("34", "\"f\""); 4]);
    assert_eq!(stand.engine().held(), 0);
}

/// A batch whose partition goes is not repeated here, and the daemon goes on.
#[test]
fn a_batch_whose_partition_goes_holds_nothing_up() {
    let (mut stand, says) = begun();
    let other = Update { person: person(stand.engine(), 3), cells: Some("61\n\"m\"".into()) };
    says.send(News::Changed(other)).expect("it listens");
    let turn = stand.turn(&visits(2..6), BEGIN);
    stand.sink.abort_next = true;
    stand.sink.another_attempt_may_differ = true;
    run(&mut stand, vec![Step::Batch(turn), Step::Revoked(0), Step::Quiet], false).expect("no damage");
    assert_eq!((stand.engine().held(), stand.engine().progress().totals.consumed), (0, 6));
}

/// A settling that was tried may have been seen: what comes next must not take its records along under another generalization.
#[test]
fn a_settling_that_fails_again_and_again_is_repeated_before_anything_else() {
    let (mut stand, says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.sink.aborts = 4;
    let other = Update { person: person(stand.engine(), 0), cells: Some("61\n\"m\"".into()) };
    says.send(News::Changed(other)).expect("it listens");
    let turn = stand.turn(&visits(2..6), BEGIN);
    run(&mut stand, vec![Step::Quiet, Step::Batch(turn)], false).expect("it ends in order");
    // The collector has compared the bytes of all attempts.
    assert_eq!((stand.engine().held(), stand.sink.aborts), (0, 0));
    assert_eq!(stand.engine().progress().totals.consumed, 10);
}

/// It is not given up silently: the next start repeats it.
#[test]
fn a_settling_that_never_succeeds_ends_the_run_and_stays_pending() {
    let (mut stand, _says) = begun();
    stand.engine().flush().expect("a state that can be written");
    stand.sink.aborts = 10_000;
    let error = run(&mut stand, vec![Step::Quiet], false).expect_err("it never succeeds");
    assert!(error.to_string().contains("could not be settled"), "{error}");
    assert_eq!(stand.engine().held(), 2);
    stand.die();
    assert!(stand.is_pending());
}

/// Nobody says so to an instance that gets no partition any more: it asks, or held records, erasures and other policies would wait for ever.
#[test]
fn a_batch_whose_partitions_stay_with_others_holds_nothing_up() {
    for (step, held) in [(Step::Passed, 2), (Step::Alone, 0)] {
        let (mut stand, _says) = begun();
        let turn = stand.turn(&visits(2..6), BEGIN);
        stand.sink.abort_next = true;
        stand.sink.another_attempt_may_differ = true;
        // Nothing comes while the batch of partition 0 is to be repeated: what is held settles only without that batch.
        let steps = vec![Step::Batch(turn), step, Step::Quiet, Step::Breaks];
        assert!(matches!(run(&mut stand, steps, false), Err(StreamError::Source(SourceFailure::ReaderGone))));
        assert_eq!(stand.engine().held(), held);
    }
}

/// A part of the batch that stayed in the reader would count as all of it when the partitions come back: their other records would be skipped.
#[test]
fn revocation_of_an_aborted_batch_voids_what_the_reader_has_of_it() {
    let (mut stand, _says) = begun();
    let turn = stand.turn(&visits(2..6), BEGIN);
    stand.sink.abort_next = true;
    stand.sink.another_attempt_may_differ = true;
    let voided = Arc::default();
    let steps = vec![Step::Batch(turn), Step::Revoked(0), Step::Breaks];
    let ended = run_counting(&mut stand, steps, false, &voided);
    assert!(matches!(ended, Err(StreamError::Source(SourceFailure::ReaderGone))));
    assert_eq!(voided.load(Ordering::Relaxed), 1);
}

/// Somebody else has its records: a start that still knew of it would wait for them, and refuse another policy until then.
#[test]
fn a_batch_that_is_given_up_is_not_pending_after_an_ordered_end() {
    for (step, stays) in [
        (Some(Step::Revoked(0)), false),
        (Some(Step::CannotReplay), false),
        (Some(Step::Passed), false),
        (Some(Step::Alone), false),
        (None, true),
    ] {
        let mut stand = Stand::new(SCHEMA, SETTINGS);
        let says = reader(&mut stand);
        says.send(News::Whole(table(stand.engine(), 0..9, "34\n\"f\""))).expect("it listens");
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
fn a_batch_is_not_repeated_with_other_profiles() {
    let (mut stand, says) = begun();
    stand.sink.abort_next = true;
    let Err(BatchError::Aborted { intent, .. }) = stand.process(&visits(2..6), BEGIN, Settling::No, None, NOW_MS)
    else {
        panic!("it was to be aborted");
    };
    let other = Update { person: person(stand.engine(), 3), cells: Some("61\n\"m\"".into()) };
    says.send(News::Changed(other)).expect("it listens");
    stand.engine().take_updates_between_batches().expect("it can be written");
    let refused = stand.process(&visits(2..6), BEGIN, Settling::No, Some(&intent), NOW_MS).expect_err("it is refused");
    assert!(matches!(refused, BatchError::State(StateError::Damaged { .. })), "{refused}");
    assert!(refused.to_string().contains("the profiles are not those"), "{refused}");
    assert!(stand.sink.lines.is_empty());
}
