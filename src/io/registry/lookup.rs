//! Lookups of writer schemas: one cache of unknown numbers and one limit on time for all decoders of a source.
//!
//! The number of a schema is four bytes of a record, chosen by its sender. Three limits keep numbers without a usable schema from
//! stopping a stream: a number that the registry does not know is remembered for all decoders; waiting for a schema that may still
//! be on its way is one grace period a minute; and the time of lookups is bounded by [`TimeBudget`]. Records beyond a limit are
//! dead letters at once. A registry that does not answer decides nothing: records wait for it.

use super::client::{Client, RegistryError, WriterSchema};
use crate::telemetry::{RegistryAnswered, RegistryLost, SchemaLookupsExhausted, SchemaUnknown, Telemetry};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long an unknown number is remembered: the registry may learn of it.
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

/// Unknown numbers that are remembered. Beyond them the expired ones are forgotten, then all.
const MAX_UNKNOWN: usize = 1 << 16;

/// How long a registry that did not answer is left alone.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Wait for unknown numbers: a registry of several nodes may be behind the producer that has just registered a schema.
const GRACE: Duration = Duration::from_secs(3);

/// Time between the beginnings of two grace periods: unknown numbers delay a stream by 5 % at most.
const GRACE_INTERVAL: Duration = Duration::from_mins(1);

/// Time without another question after which the registry counts as answering again: the records that waited have left.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Time at once for lookups that find no usable schema.
const UNUSABLE_BURST: Duration = Duration::from_secs(2);

/// Time at once for lookups that find a usable schema, and for compiling it: a start may need hundreds of them.
const USABLE_BURST: Duration = Duration::from_secs(30);

/// A limit on time: `burst` at once, then a tenth of the time that passes.
#[derive(Debug)]
struct TimeBudget {
    burst: Duration,
    /// When the budget would be full again if nothing more was spent.
    full_at: Option<Instant>,
}

impl TimeBudget {
    /// Share of the time that may be spent in the long run: one in this many.
    const SHARE: u32 = 10;

    fn new(burst: Duration) -> Self {
        Self { burst, full_at: None }
    }

    /// Whether anything is left at `now`.
    fn has_time(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|full| full.saturating_duration_since(now) < self.burst * Self::SHARE)
    }

    fn spend(&mut self, spent: Duration, now: Instant) {
        let full = self.full_at.map_or(now, |full| full.max(now));
        self.full_at = Some(full + spent * Self::SHARE);
    }
}

/// The answer to one lookup.
#[derive(Debug)]
pub(super) enum Lookup {
    /// The schema, to be compiled, and the time that its lookup took.
    Found(Box<WriterSchema>, Duration),
    /// There is no such schema; whether this was asked just now.
    Unknown { is_new: bool },
    /// The time for lookups is spent: nothing was asked.
    Exhausted,
    /// To be asked again later.
    Wait,
}

/// Asks a registry for schemas by their number.
#[derive(Debug)]
pub struct SchemaLookup {
    client: Client,
    telemetry: Telemetry,
    state: Mutex<LookupState>,
    /// Whether records wait for the registry.
    is_lost: AtomicBool,
}

#[derive(Debug)]
struct LookupState {
    /// Unknown numbers, and until when they count as unknown.
    unknown: HashMap<u32, Instant>,
    /// Not asked before.
    resting: Option<Instant>,
    /// When the registry last did not answer.
    lost: Option<Instant>,
    /// When the last grace period began.
    grace: Option<Instant>,
    unusable: TimeBudget,
    usable: TimeBudget,
}

impl LookupState {
    fn new() -> Self {
        Self {
            unknown: HashMap::new(),
            resting: None,
            lost: None,
            grace: None,
            unusable: TimeBudget::new(UNUSABLE_BURST),
            usable: TimeBudget::new(USABLE_BURST),
        }
    }

    fn has_time(&self, now: Instant) -> bool {
        self.unusable.has_time(now) && self.usable.has_time(now)
    }

    /// Whether a number that is unknown now may still be on its way.
    fn is_in_grace(&mut self, now: Instant) -> bool {
        match self.grace {
            Some(begun) if now.saturating_duration_since(begun) < GRACE_INTERVAL => {
                now.saturating_duration_since(begun) < GRACE
            }
            _ => {
                self.grace = Some(now);
                true
            }
        }
    }

    fn remember_unknown(&mut self, id: u32, now: Instant) {
        if self.unknown.len() >= MAX_UNKNOWN {
            self.unknown.retain(|_, until| *until > now);
        }
        if self.unknown.len() >= MAX_UNKNOWN {
            self.unknown.clear();
        }
        self.unknown.insert(id, now + UNKNOWN_FOR);
    }
}

impl SchemaLookup {
    /// Lookups by `client`. Nothing is asked yet.
    #[must_use]
    pub fn new(client: Client, telemetry: Telemetry) -> Self {
        Self { client, telemetry, state: Mutex::new(LookupState::new()), is_lost: AtomicBool::new(false) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, LookupState> {
        self.state.lock().expect("no panic while the state of lookups is held")
    }

    /// A record whose schema is known has come. Ends the wait for a registry that no record needs any longer.
    pub(super) fn pass(&self) {
        if self.is_lost.load(Ordering::Relaxed) {
            self.forget_loss(&mut self.state(), Instant::now());
        }
    }

    fn forget_loss(&self, state: &mut LookupState, now: Instant) {
        if state.lost.is_some_and(|lost| now.saturating_duration_since(lost) > FORGOTTEN_AFTER) {
            self.answered(state);
        }
    }

    fn answered(&self, state: &mut LookupState) {
        if state.lost.take().is_some() {
            self.is_lost.store(false, Ordering::Relaxed);
            RegistryAnswered.emit(&self.telemetry);
        }
    }

    /// Asks for schema number `id`. The lock is held meanwhile: the registry gets one question at a time.
    pub(super) fn find(&self, id: u32) -> Lookup {
        self.find_by(id, &Instant::now)
    }

    fn find_by(&self, id: u32, clock: &dyn Fn() -> Instant) -> Lookup {
        let mut state = self.state();
        let now = clock();
        self.forget_loss(&mut state, now);
        if state.unknown.get(&id).is_some_and(|until| *until > now) {
            return Lookup::Unknown { is_new: false };
        }
        if state.resting.is_some_and(|until| until > now) {
            return Lookup::Wait;
        }
        if !state.has_time(now) {
            SchemaLookupsExhausted.emit(&self.telemetry);
            return Lookup::Exhausted;
        }
        let answer = self.client.schema(id);
        let asked = clock();
        let spent = asked.saturating_duration_since(now);
        match answer {
            Ok(schema) => {
                self.answered(&mut state);
                Lookup::Found(Box::new(schema), spent)
            }
            Err(error) if is_decided(&error) => {
                self.answered(&mut state);
                state.unusable.spend(spent, asked);
                if matches!(error, RegistryError::Unknown { .. }) && state.is_in_grace(asked) {
                    state.resting = Some(asked + RETRY_DELAY);
                    return Lookup::Wait;
                }
                state.remember_unknown(id, asked);
                SchemaUnknown { id, error: &error }.emit(&self.telemetry);
                Lookup::Unknown { is_new: true }
            }
            Err(error) => {
                state.resting = Some(asked + RETRY_DELAY);
                state.lost = Some(asked);
                self.is_lost.store(true, Ordering::Relaxed);
                RegistryLost { error: &error }.emit(&self.telemetry);
                Lookup::Wait
            }
        }
    }

    /// Counts the time of a lookup, or of compiling what it found.
    pub(super) fn spend(&self, spent: Duration, is_usable: bool) {
        let mut state = self.state();
        let budget = if is_usable { &mut state.usable } else { &mut state.unusable };
        budget.spend(spent, Instant::now());
    }

    /// Compiles something where time is left for it, and counts that time.
    pub(super) fn compile<T, E>(&self, compile: impl FnOnce() -> Result<T, E>) -> Option<Result<T, E>> {
        let now = Instant::now();
        if !self.state().has_time(now) {
            SchemaLookupsExhausted.emit(&self.telemetry);
            return None;
        }
        let compiled = compile();
        self.spend(now.elapsed(), compiled.is_ok());
        Some(compiled)
    }
}

/// The registry has answered, and there is nothing to wait for: all refusals but those of us.
fn is_decided(error: &RegistryError) -> bool {
    match error {
        RegistryError::Unknown { .. } => true,
        RegistryError::Refused { status, .. } => !matches!(status, 300..=399 | 401 | 403),
        RegistryError::Unreachable { .. } | RegistryError::Authorities(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::registry::client::tests::client_by;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    const SECOND: Duration = Duration::from_secs(1);

    /// A registry that knows schema 7 alone and takes 30 ms for an answer, by a clock that only it and waiting move.
    struct SlowRegistry {
        lookup: SchemaLookup,
        begin: Instant,
        millis: Arc<AtomicU64>,
        questions: Arc<AtomicU64>,
    }

    impl SlowRegistry {
        fn new() -> Self {
            let (millis, questions) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let (passed, asked) = (Arc::clone(&millis), Arc::clone(&questions));
            let client = client_by(move |path| {
                passed.fetch_add(30, Ordering::Relaxed);
                asked.fetch_add(1, Ordering::Relaxed);
                match path {
                    "/schemas/ids/7" => ("200 OK", r#"{"schema": "\"int\""}"#.to_owned()),
                    _ => ("404 Not Found", r#"{"error_code": 40403, "message": "Schema not found"}"#.to_owned()),
                }
            });
            let lookup = SchemaLookup::new(client, Telemetry::new(5, &[]));
            Self { lookup, begin: Instant::now(), millis, questions }
        }

        /// Asks as a stream does: a record that has to wait is asked for again.
        fn find(&self, id: u32) -> Lookup {
            let clock = || self.begin + Duration::from_millis(self.millis.load(Ordering::Relaxed));
            loop {
                match self.lookup.find_by(id, &clock) {
                    Lookup::Wait => self.wait(200),
                    found => return found,
                }
            }
        }

        fn wait(&self, millis: u64) {
            self.millis.fetch_add(millis, Ordering::Relaxed);
        }

        fn seconds(&self) -> u64 {
            self.millis.load(Ordering::Relaxed) / 1_000
        }
    }

    #[test]
    fn unknown_numbers_stop_no_stream() {
        let registry = SlowRegistry::new();
        let (mut unknown, mut found) = (0, 0);
        for id in 1_000..2_000 {
            // Keys and values share what is known.
            for _ in 0..2 {
                match registry.find(id) {
                    Lookup::Unknown { .. } | Lookup::Exhausted => unknown += 1,
                    other => panic!("{other:?}"),
                }
            }
            if let Lookup::Found(..) = registry.find(7) {
                found += 1;
            }
            registry.wait(1);
        }
        assert_eq!(unknown, 2_000);
        assert!(found > 40, "a schema that the registry has is still found: {found}");
        // One grace period, a burst of two seconds, the time of the stream and a tenth of it; and what was found.
        let (seconds, questions) = (registry.seconds(), registry.questions.load(Ordering::Relaxed));
        assert!(seconds < 3 + 2 + 2 + found * 30 / 1_000 + 1, "{seconds} s, {questions} questions");
        assert!(questions < 120 + found, "{questions} questions");
    }

    #[test]
    fn a_schema_registered_within_the_grace_period_is_found() {
        let (asked, known) = (Arc::new(AtomicU64::new(0)), r#"{"schema": "\"int\""}"#);
        let client = client_by(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => ("404 Not Found", r#"{"error_code": 40403}"#.to_owned()),
            _ => ("200 OK", known.to_owned()),
        });
        let (lookup, begin) = (SchemaLookup::new(client, Telemetry::new(5, &[])), Instant::now());
        let waits = (0..5).take_while(|second| matches!(lookup.find_by(7, &|| begin + *second * SECOND), Lookup::Wait));
        assert_eq!(waits.count(), 2);
    }

    #[test]
    fn time_budget_allows_a_burst_then_a_tenth() {
        let begin = Instant::now();
        let mut budget = TimeBudget::new(2 * SECOND);
        let (mut now, mut spent) = (begin, Duration::ZERO);
        // Lookups of 30 ms, one after the other for ten minutes; where none is allowed, 1 ms passes.
        while now < begin + 600 * SECOND {
            if budget.has_time(now) {
                now += Duration::from_millis(30);
                spent += Duration::from_millis(30);
                budget.spend(Duration::from_millis(30), now);
            } else {
                now += Duration::from_millis(1);
            }
        }
        assert!((61..=63).contains(&spent.as_secs()), "{spent:?}");
        assert!(budget.has_time(now + SECOND), "one lookup a third of a second");
        // A single long lookup is paid for before the next.
        budget.spend(10 * SECOND, now);
        assert!(!budget.has_time(now + 80 * SECOND) && budget.has_time(now + 101 * SECOND));
    }

    #[test]
    fn grace_is_one_period_a_minute_for_all_numbers() {
        let (begin, mut state) = (Instant::now(), LookupState::new());
        let waits: u64 =
            (0..600_u64).map(|tenth| u64::from(state.is_in_grace(begin + Duration::from_millis(tenth * 100)))).sum();
        assert_eq!(waits, 30, "three seconds of sixty");
        assert!(state.is_in_grace(begin + 60 * SECOND), "the next minute");
    }

    #[test]
    fn unknown_numbers_are_bounded_and_expire() {
        let (begin, mut state) = (Instant::now(), LookupState::new());
        for id in 0..MAX_UNKNOWN as u32 {
            state.remember_unknown(id, begin);
        }
        state.remember_unknown(1 << 20, begin);
        assert_eq!(state.unknown.len(), 1);
        for id in 0..MAX_UNKNOWN as u32 - 1 {
            state.remember_unknown(id, begin + UNKNOWN_FOR / 2);
        }
        state.remember_unknown(1 << 21, begin + UNKNOWN_FOR + SECOND);
        assert_eq!(state.unknown.len(), MAX_UNKNOWN, "only the expired one has gone");
    }
}
