//! When a search ends before it is through: its time is over, or somebody stops it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time since a moment that does not change.
pub type Clock<'a> = &'a (dyn Fn() -> Duration + Sync);

/// The end of one search or of several.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    now: Clock<'a>,
    end: Option<Duration>,
    stop: &'a AtomicBool,
}

static NOBODY_STOPS: AtomicBool = AtomicBool::new(false);

impl Until<'static> {
    /// Without an end: until it is proved.
    pub fn proved() -> Self {
        Self { now: &|| Duration::ZERO, end: None, stop: &NOBODY_STOPS }
    }
}

impl<'a> Until<'a> {
    /// `limit` from now, if there is one, or until `stop` is set.
    pub fn new(now: Clock<'a>, limit: Option<Duration>, stop: &'a AtomicBool) -> Self {
        Self { now, end: limit.map(|limit| now().saturating_add(limit)), stop }
    }

    /// `limit` from now.
    pub fn timed(now: Clock<'a>, limit: Option<Duration>) -> Self {
        Self::new(now, limit, &NOBODY_STOPS)
    }

    /// Ends after this share of the time that is left, if time is limited.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        let part = |left: Duration| (self.now)().saturating_add(left.mul_f64(share.clamp(0.0, 1.0)));
        Self { end: self.left().map(part), ..self }
    }

    /// Ends when `other` does, if that is earlier.
    #[must_use]
    pub fn no_later_than(self, other: &Self) -> Self {
        Self { end: self.end.into_iter().chain(other.end).min(), ..self }
    }

    /// Ends after `limit` from now at the latest.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        let end = (self.now)().saturating_add(limit);
        Self { end: Some(self.end.map_or(end, |own| own.min(end))), ..self }
    }

    /// Goes on although it was stopped, for `grace` and never beyond the end.
    #[must_use]
    pub fn despite_stop(self, grace: Duration) -> Self {
        Self { stop: &NOBODY_STOPS, ..self.within(grace) }
    }

    /// Whether somebody has stopped the search.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the search has to end: it was stopped, or its time is up.
    pub fn is_over(&self) -> bool {
        self.is_stopped() || self.end.is_some_and(|end| (self.now)() >= end)
    }

    /// The time left; none where it is not limited.
    pub fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub((self.now)()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn shares_never_add_up_to_more_than_the_whole() {
        let (hand, stop) = (AtomicU64::new(5), AtomicBool::new(false));
        let now = || Duration::from_secs(hand.load(Ordering::Relaxed));
        let whole = Until::new(&now, Some(Duration::from_secs(64)), &stop);
        let early = whole.share(0.75);
        for (left, given) in [(64, 32), (32, 16), (16, 0)] {
            assert_eq!(whole.left(), Some(Duration::from_secs(left)));
            let pass = whole.share(0.5).no_later_than(&early);
            assert_eq!(pass.left(), Some(Duration::from_secs(given)));
            assert_eq!(pass.is_over(), given == 0);
            hand.fetch_add(given, Ordering::Relaxed);
        }
        assert!(!whole.is_over());
        stop.store(true, Ordering::Relaxed);
        assert!(whole.is_over() && whole.is_stopped());
        let graced = whole.despite_stop(Duration::from_secs(3));
        assert!(!graced.is_over() && graced.left() == Some(Duration::from_secs(3)));
        assert_eq!(whole.despite_stop(Duration::from_secs(99)).left(), Some(Duration::from_secs(16)));
        assert_eq!((Until::proved().left(), Until::proved().is_over()), (None, false));
    }
}
