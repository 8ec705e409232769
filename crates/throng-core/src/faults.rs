//! Named crash points between the steps of the commit protocol (`docs/internals/exactly-once.md`), compiled with the
//! feature `failpoints`.

/// Guard that keeps crash points armed.
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

/// Aborts the process at an armed point, without destructors or flushes.
#[cfg(feature = "failpoints")]
pub fn crash_point(name: &str) {
    fail::fail_point!(name, |_| std::process::abort());
}

/// Returns true if a test has set `FAILPOINTS="name=return"`.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn is_set(name: &str) -> bool {
    number(name).is_some()
}

/// Number of a fault, or 0: `FAILPOINTS="name=return(7)"`.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn number(name: &str) -> Option<i64> {
    fail::fail_point!(name, |given: Option<String>| given.map_or(Some(0), |number| number.parse().ok()));
    None
}

/// Returns false.
#[cfg(not(feature = "failpoints"))]
#[inline]
#[must_use]
pub fn is_set(_: &str) -> bool {
    false
}

/// Returns `None`.
#[cfg(not(feature = "failpoints"))]
#[inline]
#[must_use]
pub fn number(_: &str) -> Option<i64> {
    None
}

/// Does nothing.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn crash_point(_: &str) {}
