//! Named places at which the crash tests end the process.
//!
//! They stand between the steps of the commit protocol (`docs/exactly-once.md` lists them). Without the feature
//! `failpoints` nothing of them is compiled.

/// Keeps the crash points of the environment armed for as long as it lives.
#[must_use = "the crash points are disarmed when this goes"]
#[derive(Default)]
pub struct Armed {
    #[cfg(feature = "failpoints")]
    _scenario: Option<fail::FailScenario<'static>>,
}

/// Arms the crash points that `FAILPOINTS` names: `intent-flushed=2*off->return` ends the process at the third passage.
pub fn arm() -> Armed {
    #[cfg(feature = "failpoints")]
    let armed = Armed { _scenario: Some(fail::FailScenario::setup()) };
    #[cfg(not(feature = "failpoints"))]
    let armed = Armed {};
    armed
}

/// Ends the process here, as a power cut would, when a crash test asks for it: no destructor runs, nothing is flushed.
#[cfg(feature = "failpoints")]
pub fn crash_point(name: &str) {
    fail::fail_point!(name, |_| std::process::abort());
}

/// Whether a test has set this fault: `FAILPOINTS="name=return"`.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn is_set(name: &str) -> bool {
    number(name).is_some()
}

/// The number that a test has given this fault, 0 where it has given none: `FAILPOINTS="name=return(7)"`.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn number(name: &str) -> Option<i64> {
    fail::fail_point!(name, |given: Option<String>| given.map_or(Some(0), |number| number.parse().ok()));
    None
}

/// No test sets anything in this build.
#[cfg(not(feature = "failpoints"))]
#[inline]
#[must_use]
pub fn is_set(_: &str) -> bool {
    false
}

/// No test sets anything in this build.
#[cfg(not(feature = "failpoints"))]
#[inline]
#[must_use]
pub fn number(_: &str) -> Option<i64> {
    None
}

/// Ends the process here when a crash test asks for it; in this build, never.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn crash_point(_: &str) {}
