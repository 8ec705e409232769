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

/// Ends the process here when a crash test asks for it; in this build, never.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn crash_point(_: &str) {}
