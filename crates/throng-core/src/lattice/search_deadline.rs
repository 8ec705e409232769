//! End of a search.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time since a fixed moment.
pub type SearchClock<'a> = &'a (dyn Fn() -> Duration + Sync);

/// End of one or several searches.
#[derive(Clone, Copy)]
pub struct SearchDeadline<'a> {
    now: SearchClock<'a>,
    end: Option<Duration>,
    stop: &'a AtomicBool,
}

static NEVER_STOPPED: AtomicBool = AtomicBool::new(false);

impl SearchDeadline<'static> {
    /// Unlimited.
    pub fn without_deadline() -> Self {
        Self { now: &|| Duration::ZERO, end: None, stop: &NEVER_STOPPED }
    }
}

impl<'a> SearchDeadline<'a> {
    /// Ends after `limit`, if given, or a stop.
    pub fn new(now: SearchClock<'a>, limit: Option<Duration>, stop: &'a AtomicBool) -> Self {
        Self { now, end: limit.map(|limit| now().saturating_add(limit)), stop }
    }

    /// Ends after `limit`, if given.
    pub fn timed(now: SearchClock<'a>, limit: Option<Duration>) -> Self {
        Self::new(now, limit, &NEVER_STOPPED)
    }

    /// Ends after a share of the remaining time.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        let part = |left: Duration| (self.now)().saturating_add(left.mul_f64(share.clamp(0.0, 1.0)));
        Self { end: self.remaining_time().map(part), ..self }
    }

    /// Ends with `other`, if earlier.
    #[must_use]
    pub fn no_later_than(self, other: &Self) -> Self {
        Self { end: self.end.into_iter().chain(other.end).min(), ..self }
    }

    /// Ends at most `limit` from now.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        let end = (self.now)().saturating_add(limit);
        Self { end: Some(self.end.map_or(end, |own| own.min(end))), ..self }
    }

    /// Ignores a stop for `grace`, within the end.
    #[must_use]
    pub fn with_stop_grace(self, grace: Duration) -> Self {
        Self { stop: &NEVER_STOPPED, ..self.within(grace) }
    }

    /// Returns true if stopped.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns true if stopped or out of time.
    pub fn must_stop_now(&self) -> bool {
        self.is_stopped() || self.end.is_some_and(|end| (self.now)() >= end)
    }

    /// Remaining time; none if unlimited.
    pub fn remaining_time(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub((self.now)()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn deadline_shares_never_exceed_the_total() {
        let (hand, stop) = (AtomicU64::new(5), AtomicBool::new(false));
        let now = || Duration::from_secs(hand.load(Ordering::Relaxed));
        let whole = SearchDeadline::new(&now, Some(Duration::from_secs(64)), &stop);
        let early = whole.share(0.75);
        for (left, given) in [(64, 32), (32, 16), (16, 0)] {
            assert_eq!(whole.remaining_time(), Some(Duration::from_secs(left)));
            let pass = whole.share(0.5).no_later_than(&early);
            assert_eq!(pass.remaining_time(), Some(Duration::from_secs(given)));
            assert_eq!(pass.must_stop_now(), given == 0);
            hand.fetch_add(given, Ordering::Relaxed);
        }
        assert!(!whole.must_stop_now());
        stop.store(true, Ordering::Relaxed);
        assert!(whole.must_stop_now() && whole.is_stopped());
        let graced = whole.with_stop_grace(Duration::from_secs(3));
        assert!(!graced.must_stop_now() && graced.remaining_time() == Some(Duration::from_secs(3)));
        assert_eq!(whole.with_stop_grace(Duration::from_secs(99)).remaining_time(), Some(Duration::from_secs(16)));
        assert_eq!(
            (SearchDeadline::without_deadline().remaining_time(), SearchDeadline::without_deadline().must_stop_now()),
            (None, false)
        );
    }
}
