//! Lookups of writer schemas, with one cache and time limit per source. The sender of a record chooses its schema
//! number, which must not stop a stream: beyond the limits records become dead letters. They wait only for a registry
//! without an answer.

use super::client::{RegistryClient, RegistryError, WriterSchema};
use crate::telemetry::{RegistryAnswered, RegistryLost, SchemaLookupsExhausted, SchemaUnknown, Telemetry};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The registry may receive the schema later.
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

const MAX_UNKNOWN: usize = 1 << 16;

const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A node may lag behind the producer of a schema.
const GRACE: Duration = Duration::from_secs(3);

/// At most 5 % delay.
const GRACE_INTERVAL: Duration = Duration::from_mins(1);

/// Time without a request after which no record waits for the registry.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Immediate time for lookups without a usable schema.
const UNUSABLE_BURST: Duration = Duration::from_secs(2);

/// Immediate time for lookups and compilations of usable schemas: a start may need hundreds.
const USABLE_BURST: Duration = Duration::from_secs(30);

/// Time limit: `burst` immediately, then a tenth of the elapsed time.
#[derive(Debug)]
struct TimeBudget {
    burst: Duration,
    full_at: Option<Instant>,
}

impl TimeBudget {
    /// Divisor of the elapsed time.
    const SHARE: u32 = 10;

    fn new(burst: Duration) -> Self {
        Self { burst, full_at: None }
    }

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
    Found(Box<WriterSchema>, Duration),
    /// `is_new` after a request.
    Unknown {
        is_new: bool,
    },
    /// No request was sent.
    Exhausted,
    LookupPending,
}

/// Finds schemas by number in a registry.
#[derive(Debug)]
pub struct SchemaLookup {
    client: RegistryClient,
    telemetry: Telemetry,
    state: Mutex<LookupState>,
    is_lost: AtomicBool,
}

#[derive(Debug)]
struct LookupState {
    unknown: HashMap<u32, Instant>,
    resting: Option<Instant>,
    /// Last request without an answer.
    lost: Option<Instant>,
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
    /// Creates lookups by `client`, without a request.
    #[must_use]
    pub fn new(client: RegistryClient, telemetry: Telemetry) -> Self {
        Self { client, telemetry, state: Mutex::new(LookupState::new()), is_lost: AtomicBool::new(false) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, LookupState> {
        self.state.lock().expect("no panic while the state of lookups is held")
    }

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

    /// The lock admits one request at a time.
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

    pub(super) fn spend(&self, spent: Duration, is_usable: bool) {
        let mut state = self.state();
        let budget = if is_usable { &mut state.usable } else { &mut state.unusable };
        budget.spend(spent, Instant::now());
    }

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

/// Redirects and refused credentials are not final.
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

    /// Registry with only schema 7 and 30 ms per answer.
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
        // Grace period, burst, stream and a tenth of it, and successful lookups.
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
        // 1 ms passes when no lookup is allowed.
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
