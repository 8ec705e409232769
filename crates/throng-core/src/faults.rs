//! Named crash points at which the crash tests end the process.
//!
//! They are between the steps of the commit protocol (`docs/internals/exactly-once.md` lists them). They are compiled only with
//! the feature `failpoints`.

/// Guard that keeps the crash points of the environment armed until it is dropped.
#[must_use = "the crash points are disarmed when this is dropped"]
#[derive(Default)]
pub struct ArmedFaults {
    #[cfg(feature = "failpoints")]
    _scenario: Option<fail::FailScenario<'static>>,
}

/// Arms the crash points named in `FAILPOINTS`. `intent-flushed=2*off->return` ends the process at the third passage.
pub fn arm() -> ArmedFaults {
    #[cfg(feature = "failpoints")]
    let armed = ArmedFaults { _scenario: Some(fail::FailScenario::setup()) };
    #[cfg(not(feature = "failpoints"))]
    let armed = ArmedFaults {};
    armed
}

/// Aborts the process when a crash test has armed this point. As after a power cut, no destructor runs and no buffer
/// is flushed.
#[cfg(feature = "failpoints")]
pub fn crash_point(name: &str) {
    fail::fail_point!(name, |_| std::process::abort());
}

/// Returns true if a test has set this fault: `FAILPOINTS="name=return"`.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn is_set(name: &str) -> bool {
    number(name).is_some()
}

/// Returns the number that a test has given this fault, or 0 if the test gave none: `FAILPOINTS="name=return(7)"`.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn number(name: &str) -> Option<i64> {
    fail::fail_point!(name, |given: Option<String>| given.map_or(Some(0), |number| number.parse().ok()));
    None
}

/// Returns false: this build has no faults.
#[cfg(not(feature = "failpoints"))]
#[inline]
#[must_use]
pub fn is_set(_: &str) -> bool {
    false
}

/// Returns `None`: this build has no faults.
#[cfg(not(feature = "failpoints"))]
#[inline]
#[must_use]
pub fn number(_: &str) -> Option<i64> {
    None
}

/// Does nothing: this build has no crash points.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn crash_point(_: &str) {}
