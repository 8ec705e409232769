//! Log lines on standard error, as text or JSON, and how often one kind of them is written.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::Write;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Why logging could not begin.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each says it")]
pub enum LoggingError {
    #[error("log format `{0}` is unknown; set telemetry.log_format to \"text\" or \"json\"")]
    Format(String),
    #[error("log level `{0}` is unknown; set telemetry.log_level to error, warn, info, debug or trace")]
    Level(String),
    #[error("logging has begun already; initialise it once, at the start of the process")]
    Twice,
}

/// Begins logging to standard error: `format` is `text` or `json`, `level` the least severe level of our own lines
/// (other crates speak from `warn` on).
///
/// # Errors
/// [`LoggingError`]: an unknown format or level, or a second call in one process.
pub fn init_logging(format: &str, level: &str) -> Result<(), LoggingError> {
    let own: LevelFilter = level.parse().map_err(|_| LoggingError::Level(level.into()))?;
    let others = own.min(LevelFilter::WARN);
    let filter = EnvFilter::builder()
        .with_default_directive(others.into())
        .parse(format!("throng={own}"))
        .map_err(|_| LoggingError::Level(level.into()))?;
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(colours);
    let begun = match format {
        "text" => lines.finish().try_init(),
        "json" => lines.json().flatten_event(true).finish().try_init(),
        other => return Err(LoggingError::Format(other.into())),
    };
    begun.map_err(|_| LoggingError::Twice)
}

/// Whether a panic says that nobody reads standard output any more, for which `println!` has no other way.
pub fn says_nobody_reads(payload: &(dyn Any + Send)) -> bool {
    payload.downcast_ref::<String>().is_some_and(|said| {
        said.starts_with("failed printing to stdout")
            && said.ends_with(&format!("(os error {})", rustix::io::Errno::PIPE.raw_os_error()))
    })
}

/// Makes a panic log its place only: its text may quote a value of a record (a failed assertion does).
pub fn silence_panic_payloads() {
    std::panic::set_hook(Box::new(|panic| {
        if says_nobody_reads(panic.payload()) {
            return;
        }
        let (file, line) = panic.location().map_or(("", 0), |place| (place.file(), place.line()));
        if tracing::dispatcher::has_been_set() {
            tracing::error!(file, line, "a part of the daemon panicked; nothing that it worked on is released");
            return;
        }
        let said = writeln!(std::io::stderr(), "error: throng has a bug and ended at {file}:{line}; please report it");
        if said.is_err() {
            // Nobody reads what is said.
        }
    }));
}

/// Lines of one kind written within [`WINDOW_MS`].
const BURST: u32 = 5;
const WINDOW_MS: u64 = 10_000;

/// What to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Write it, and say before that so many like it were not written.
    Write {
        unwritten: u64,
    },
    Skip,
}

#[derive(Default)]
struct Window {
    began_ms: u64,
    written: u32,
    unwritten: u64,
}

/// Counts lines by kind. Kinds are literals and labels of the program, so their number is bounded.
#[derive(Default)]
pub(super) struct Limiter(BTreeMap<(&'static str, &'static str), Window>);

impl Limiter {
    pub fn judge(&mut self, kind: &'static str, label: &'static str, now_ms: u64) -> Verdict {
        let window = self.0.entry((kind, label)).or_default();
        let mut unwritten = 0;
        if now_ms.saturating_sub(window.began_ms) >= WINDOW_MS {
            unwritten = window.unwritten;
            *window = Window { began_ms: now_ms, ..Window::default() };
        }
        if window.written == BURST {
            window.unwritten += 1;
            return Verdict::Skip;
        }
        window.written += 1;
        Verdict::Write { unwritten }
    }
}

#[cfg(test)]
mod tests {
    use super::{BURST, Limiter, LoggingError, Verdict, WINDOW_MS, init_logging};
    use proptest::prelude::*;

    #[test]
    fn unknown_spellings_are_named() {
        assert!(matches!(init_logging("xml", "info"), Err(LoggingError::Format(f)) if f == "xml"));
        assert!(matches!(init_logging("text", "loud"), Err(LoggingError::Level(l)) if l == "loud"));
    }

    #[test]
    fn a_flood_is_cut_and_accounted_for() {
        let mut limiter = Limiter::default();
        let written = (0..100).filter(|_| limiter.judge("a", "", 3) != Verdict::Skip).count();
        assert_eq!(written, BURST as usize);
        assert_eq!(limiter.judge("a", "other", 3), Verdict::Write { unwritten: 0 });
        assert_eq!(limiter.judge("a", "", WINDOW_MS), Verdict::Write { unwritten: 95 });
    }

    proptest! {
        #[test]
        fn no_line_is_lost_from_the_account(gaps in prop::collection::vec(0u64..4_000, 1..200)) {
            let (mut limiter, mut now, mut written, mut named) = (Limiter::default(), 0, 0u64, 0u64);
            for gap in &gaps {
                now += gap;
                if let Verdict::Write { unwritten } = limiter.judge("a", "", now) {
                    written += 1;
                    named += unwritten;
                }
            }
            // The line after a window names all that were skipped; only those of the last window are still unnamed.
            if let Verdict::Write { unwritten } = limiter.judge("a", "", now + WINDOW_MS) {
                named += unwritten;
            }
            prop_assert_eq!(written + named, gaps.len() as u64);
        }
    }
}
