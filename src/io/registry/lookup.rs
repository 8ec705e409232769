//! Lookups of writer schemas: one cache of unknown numbers and one time limit for all decoders of a source.
//!
//! The number of a schema is four bytes of a record, chosen by its sender. Three limits prevent numbers without a
//! usable schema from stopping a stream:
//!
//! - A number that the registry does not know is cached for all decoders.
//! - The wait for a schema that may be registered later is limited to one grace period per minute.
//! - The time of lookups is limited by [`TimeBudget`].
//!
//! Records beyond a limit become dead letters immediately. A registry that does not answer decides nothing: records
//! wait for it.

use super::client::{RegistryClient, RegistryError, WriterSchema};
use crate::telemetry::{RegistryAnswered, RegistryLost, SchemaLookupsExhausted, SchemaUnknown, Telemetry};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for which an unknown number is cached; the registry may receive the schema later.
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

/// Largest number of cached unknown numbers. Beyond it, the expired ones are removed; if none has expired, all are
/// removed.
const MAX_UNKNOWN: usize = 1 << 16;

/// Delay before the next request to a registry that did not answer.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Wait for an unknown number: a node of the registry may lag behind the producer that has just registered the
/// schema.
const GRACE: Duration = Duration::from_secs(3);

/// Time between the starts of two grace periods. Unknown numbers delay a stream by at most 5 %.
const GRACE_INTERVAL: Duration = Duration::from_mins(1);

/// Time without another request after which the registry counts as available again: no record waits for it any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Time available immediately for lookups that find no usable schema.
const UNUSABLE_BURST: Duration = Duration::from_secs(2);

/// Time available immediately for lookups of usable schemas, and for compiling these. A start may need hundreds of
/// them.
const USABLE_BURST: Duration = Duration::from_secs(30);

/// Time limit: `burst` immediately, then a tenth of the elapsed time.
#[derive(Debug)]
struct TimeBudget {
    burst: Duration,
    /// Time at which the budget is full again without further use.
    full_at: Option<Instant>,
}

impl TimeBudget {
    /// Divisor of the elapsed time: the share that may be used in the long run.
    const SHARE: u32 = 10;

    fn new(burst: Duration) -> Self {
        Self { burst, full_at: None }
    }

    /// Returns true if time is left at `now`.
    fn has_time(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|full| full.saturating_duration_since(now) < self.burst * Self::SHARE)
    }

    fn spend(&mut self, spent: Duration, now: Instant) {
        let full = self.full_at.map_or(now, |full| full.max(now));
        self.full_at = Some(full + spent * Self::SHARE);
    }
}

#[derive(Debug)]
pub(super) enum LookupResult {
    /// The schema, not yet compiled, and the time of its lookup.
    Found(Box<WriterSchema>, Duration),
    /// No such schema exists. `is_new` is true if the registry was asked in this lookup.
    Unknown { is_new: bool },
    /// The time for lookups is used up: no request was sent.
    Exhausted,
    /// The lookup must be repeated later.
    LookupPending,
}

/// Finds schemas by number in a registry.
#[derive(Debug)]
pub struct SchemaLookup {
    client: RegistryClient,
    telemetry: Telemetry,
    state: Mutex<LookupState>,
    /// True while records wait for the registry.
    is_lost: AtomicBool,
}

#[derive(Debug)]
struct LookupState {
    /// Unknown numbers, with the end of their cache time.
    unknown: HashMap<u32, Instant>,
    /// No request is sent before this time.
    resting: Option<Instant>,
    /// Time of the last request without an answer.
    lost: Option<Instant>,
    /// Start of the last grace period.
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

    /// Returns true if an unknown number may still become known.
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
    /// Creates lookups by `client`. No request is sent yet.
    #[must_use]
    pub fn new(client: RegistryClient, telemetry: Telemetry) -> Self {
        Self { client, telemetry, state: Mutex::new(LookupState::new()), is_lost: AtomicBool::new(false) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, LookupState> {
        self.state.lock().expect("no panic while the state of lookups is held")
    }

    /// Notes that a record with a known schema has arrived. Ends the outage of a registry that no record needs any
    /// longer.
    pub(super) fn note_known_schema(&self) {
        if self.is_lost.load(Ordering::Relaxed) {
            self.forget_loss(&mut self.state(), Instant::now());
        }
    }

    fn forget_loss(&self, state: &mut LookupState, now: Instant) {
        if state.lost.is_some_and(|lost| now.saturating_duration_since(lost) > FORGOTTEN_AFTER) {
            self.note_registry_answer(state);
        }
    }

    fn note_registry_answer(&self, state: &mut LookupState) {
        if state.lost.take().is_some() {
            self.is_lost.store(false, Ordering::Relaxed);
            RegistryAnswered.emit(&self.telemetry);
        }
    }

    /// Requests schema number `id`. The lock is held meanwhile, so that the registry receives one request at a time.
    pub(super) fn find(&self, id: u32) -> LookupResult {
        self.find_by(id, &Instant::now)
    }

    fn find_by(&self, id: u32, clock: &dyn Fn() -> Instant) -> LookupResult {
        let mut state = self.state();
        let now = clock();
        self.forget_loss(&mut state, now);
        if state.unknown.get(&id).is_some_and(|until| *until > now) {
            return LookupResult::Unknown { is_new: false };
        }
        if state.resting.is_some_and(|until| until > now) {
            return LookupResult::LookupPending;
        }
        if !state.has_time(now) {
            SchemaLookupsExhausted.emit(&self.telemetry);
            return LookupResult::Exhausted;
        }
        let answer = self.client.schema(id);
        let asked = clock();
        let spent = asked.saturating_duration_since(now);
        match answer {
            Ok(schema) => {
                self.note_registry_answer(&mut state);
                LookupResult::Found(Box::new(schema), spent)
            }
            Err(error) if is_final_answer(&error) => {
                self.note_registry_answer(&mut state);
                state.unusable.spend(spent, asked);
                if matches!(error, RegistryError::Unknown { .. }) && state.is_in_grace(asked) {
                    state.resting = Some(asked + RETRY_DELAY);
                    return LookupResult::LookupPending;
                }
                state.remember_unknown(id, asked);
                SchemaUnknown { id, error: &error }.emit(&self.telemetry);
                LookupResult::Unknown { is_new: true }
            }
            Err(error) => {
                state.resting = Some(asked + RETRY_DELAY);
                state.lost = Some(asked);
                self.is_lost.store(true, Ordering::Relaxed);
                RegistryLost { error: &error }.emit(&self.telemetry);
                LookupResult::LookupPending
            }
        }
    }

    /// Adds the time of a lookup, or of compiling its result.
    pub(super) fn spend(&self, spent: Duration, is_usable: bool) {
        let mut state = self.state();
        let budget = if is_usable { &mut state.usable } else { &mut state.unusable };
        budget.spend(spent, Instant::now());
    }

    /// Runs `compile` if time is left for it, and counts that time. Returns `None` otherwise.
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

/// Returns true if the registry has given a final answer. Redirects and refused credentials are not final.
fn is_final_answer(error: &RegistryError) -> bool {
    match error {
        RegistryError::Unknown { .. } => true,
        RegistryError::Refused { status, .. } => !matches!(status, 300..=399 | 401 | 403),
        RegistryError::Unreachable { .. } | RegistryError::Authorities(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::registry::client::tests::client_by_path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    const SECOND: Duration = Duration::from_secs(1);

    /// Registry that has only schema 7 and takes 30 ms per answer. Only answers and waits advance the clock.
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
            let client = client_by_path(move |path| {
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

        /// Repeats the lookup while the record has to wait, like a stream.
        fn find(&self, id: u32) -> LookupResult {
            let clock = || self.begin + Duration::from_millis(self.millis.load(Ordering::Relaxed));
            loop {
                match self.lookup.find_by(id, &clock) {
                    LookupResult::LookupPending => self.wait(200),
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
            // Keys and values share the cache.
            for _ in 0..2 {
                match registry.find(id) {
                    LookupResult::Unknown { .. } | LookupResult::Exhausted => unknown += 1,
                    other => panic!("{other:?}"),
                }
            }
            if let LookupResult::Found(..) = registry.find(7) {
                found += 1;
            }
            registry.wait(1);
        }
        assert_eq!(unknown, 2_000);
        assert!(found > 40, "a schema that the registry has is still found: {found}");
        // One grace period, a burst of two seconds, the time of the stream and a tenth of it, and the successful
        // lookups.
        let (seconds, questions) = (registry.seconds(), registry.questions.load(Ordering::Relaxed));
        assert!(seconds < 3 + 2 + 2 + found * 30 / 1_000 + 1, "{seconds} s, {questions} questions");
        assert!(questions < 120 + found, "{questions} questions");
    }

    #[test]
    fn a_schema_registered_within_the_grace_period_is_found() {
        let (asked, known) = (Arc::new(AtomicU64::new(0)), r#"{"schema": "\"int\""}"#);
        let client = client_by_path(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => ("404 Not Found", r#"{"error_code": 40403}"#.to_owned()),
            _ => ("200 OK", known.to_owned()),
        });
        let (lookup, begin) = (SchemaLookup::new(client, Telemetry::new(5, &[])), Instant::now());
        let waits = (0..5).take_while(|second| {
            matches!(lookup.find_by(7, &|| begin + *second * SECOND), LookupResult::LookupPending)
        });
        assert_eq!(waits.count(), 2);
    }

    #[test]
    fn time_budget_allows_a_burst_then_a_tenth() {
        let begin = Instant::now();
        let mut budget = TimeBudget::new(2 * SECOND);
        let (mut now, mut spent) = (begin, Duration::ZERO);
        // Consecutive lookups of 30 ms for ten minutes; 1 ms passes when none is allowed.
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
        // A single long lookup delays the next one accordingly.
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
