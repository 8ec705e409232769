//! Rate-limited log lines on standard error.

use std::any::Any;
use std::collections::BTreeMap;
use std::env::VarError;
use std::io::Write;
use throng_core::printable::printable;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Error of the logging setup.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum LoggingError {
    #[error("log format `{0}` is unknown (set telemetry.log_format to \"text\" or \"json\")")]
    Format(String),
    #[error("log level `{0}` is unknown (set telemetry.log_level to error, warn, info, debug or trace)")]
    Level(String),
    #[error("logging is already initialised (initialise it once, at the start of the process)")]
    Twice,
}

/// Log target of the lines of librdkafka, which may quote message keys and host names: off by default.
const CLIENT_TARGET: &str = "librdkafka";

/// Common prefix of throng's log targets.
const OWN_TARGETS: &str = "throng";

/// Starts logging to standard error. `format` is `text` or `json`; `level` applies to throng, other crates log only if
/// `RUST_LOG` names their target. Directives in `RUST_LOG` override `level`; if they are invalid, they are ignored with a
/// warning.
///
/// # Errors
/// Fails for an unknown format or level, or a second call.
pub fn init_logging(format: &str, level: &str) -> Result<(), LoggingError> {
    let own: LevelFilter = level.parse().map_err(|_| LoggingError::Level(level.into()))?;
    let (filter, ignored) = log_filter(own, std::env::var("RUST_LOG"));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr())
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
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
    begun.map_err(|_| LoggingError::Twice)?;
    if let Some(reason) = ignored {
        tracing::warn!("RUST_LOG is ignored: {reason} (use directives such as throng=debug or librdkafka=debug)");
    }
    Ok(())
}

/// Returns the filter of `own` and `given`, the value of `RUST_LOG`; of `own` alone, with the reason, if `given` is
/// invalid.
fn log_filter(own: LevelFilter, given: Result<String, VarError>) -> (EnvFilter, Option<String>) {
    let configured = || EnvFilter::builder().parse_lossy(filter_directives(own, ""));
    let given = match given {
        Ok(given) => given,
        Err(VarError::NotPresent) => return (configured(), None),
        Err(VarError::NotUnicode(_)) => return (configured(), Some("not UTF-8".to_owned())),
    };
    match EnvFilter::builder().parse(filter_directives(own, &given)) {
        Ok(filter) => (filter, None),
        Err(error) => (configured(), Some(format!("{error} in {:?}", printable(&given)))),
    }
}

/// A directive of `given` without a target, such as `debug`, applies to throng's targets only; a level replaces `own`.
fn filter_directives(own: LevelFilter, given: &str) -> String {
    let (mut level, mut targets) = (own, String::new());
    // The empty text is a level for the parser.
    for part in given.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.parse::<LevelFilter>() {
            Ok(given) => level = given,
            Err(_) if part.starts_with('[') => targets += &format!(",{OWN_TARGETS}{part}"),
            Err(_) => targets += &format!(",{part}"),
        }
    }
    format!("{OWN_TARGETS}={level},{CLIENT_TARGET}=off{targets}")
}

/// Returns true for the panic of `println!` on a broken pipe.
pub fn is_broken_pipe_panic(payload: &(dyn Any + Send)) -> bool {
    payload.downcast_ref::<String>().is_some_and(|said| {
        said.starts_with("failed printing to stdout")
            && said.ends_with(&format!("(os error {})", rustix::io::Errno::PIPE.raw_os_error()))
    })
}

/// Makes panics log only their position: the message may quote a value of a record.
pub fn silence_panic_payloads() {
    std::panic::set_hook(Box::new(|panic| {
        if is_broken_pipe_panic(panic.payload()) {
            return;
        }
        let (file, line) = panic.location().map_or(("", 0), |place| (place.file(), place.line()));
        if tracing::dispatcher::has_been_set() {
            tracing::error!(file, line, "a thread of the daemon panicked; its unfinished work is not released");
            return;
        }
        let said = writeln!(std::io::stderr(), "error: throng has a bug and ended at {file}:{line}; please report it");
        if said.is_err() {
            // No reader remains.
        }
    }));
}

const MAX_LINES_PER_WINDOW: u32 = 5;
const LOG_WINDOW_MS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogDecision {
    /// Preceded by the number of suppressed lines.
    Write {
        unwritten: u64,
    },
    Skip,
}

#[derive(Default)]
struct LogWindow {
    began_ms: u64,
    written: u32,
    unwritten: u64,
}

/// Kinds are literals, so their number is bounded.
#[derive(Default)]
pub(super) struct LogLimiter(BTreeMap<(&'static str, &'static str), LogWindow>);

impl LogLimiter {
    pub fn admit_line(&mut self, kind: &'static str, label: &'static str, now_ms: u64) -> LogDecision {
        let window = self.0.entry((kind, label)).or_default();
        let mut unwritten = 0;
        if now_ms.saturating_sub(window.began_ms) >= LOG_WINDOW_MS {
            unwritten = window.unwritten;
            *window = LogWindow { began_ms: now_ms, ..LogWindow::default() };
        }
        if window.written == MAX_LINES_PER_WINDOW {
            window.unwritten += 1;
            return LogDecision::Skip;
        }
        window.written += 1;
        LogDecision::Write { unwritten }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        LOG_WINDOW_MS, LogDecision, LogLimiter, LoggingError, MAX_LINES_PER_WINDOW, filter_directives, init_logging,
        log_filter,
    };
    use proptest::prelude::*;
    use std::env::VarError;
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::filter::LevelFilter;

    #[test]
    fn unknown_log_format_or_level_is_named() {
        assert!(matches!(init_logging("xml", "info"), Err(LoggingError::Format(f)) if f == "xml"));
        assert!(matches!(init_logging("text", "loud"), Err(LoggingError::Level(l)) if l == "loud"));
    }

    #[test]
    fn given_directives_override_the_configured_level() {
        let of = |given: &str| filter_directives(LevelFilter::INFO, given);
        assert_eq!(of(""), "throng=info,librdkafka=off");
        assert_eq!(of("librdkafka=debug"), "throng=info,librdkafka=off,librdkafka=debug");
        for directives in ["", "debug", "throng=trace", "librdkafka=debug, warn", "[span]=debug"].map(of) {
            assert!(EnvFilter::builder().parse(&directives).is_ok(), "{directives}");
        }
    }

    #[test]
    fn directives_without_a_target_apply_to_throng_only() {
        let of = |given: &str| filter_directives(LevelFilter::INFO, given);
        assert_eq!(of("debug"), "throng=debug,librdkafka=off");
        assert_eq!(of(" warn ,h2=error, TRACE"), "throng=trace,librdkafka=off,h2=error");
        assert_eq!(of("[span]=debug"), "throng=info,librdkafka=off,throng[span]=debug");
    }

    #[test]
    fn invalid_directives_are_ignored_with_a_reason() {
        let filter_of = |given| {
            let (filter, ignored) = log_filter(LevelFilter::INFO, given);
            (filter.to_string(), ignored)
        };
        let (configured, none) = filter_of(Err(VarError::NotPresent));
        assert_eq!((none, filter_of(Ok("error".to_owned())).1), (None, None));
        for given in ["throng=loud", "debug,=", "a b[", "[span"] {
            let (filter, ignored) = filter_of(Ok(given.to_owned()));
            assert_eq!(filter, configured, "{given}");
            assert!(ignored.is_some_and(|reason| reason.contains(given)), "{given}");
        }
        let (filter, ignored) = filter_of(Err(VarError::NotUnicode("x".into())));
        assert!(filter == configured && ignored.is_some());
    }

    #[test]
    fn log_flood_is_limited_and_counted() {
        let mut limiter = LogLimiter::default();
        let written = (0..100).filter(|_| limiter.admit_line("a", "", 3) != LogDecision::Skip).count();
        assert_eq!(written, MAX_LINES_PER_WINDOW as usize);
        assert_eq!(limiter.admit_line("a", "other", 3), LogDecision::Write { unwritten: 0 });
        assert_eq!(limiter.admit_line("a", "", LOG_WINDOW_MS), LogDecision::Write { unwritten: 95 });
    }

    proptest! {
        #[test]
        fn skipped_log_lines_are_all_reported(gaps in prop::collection::vec(0u64..4_000, 1..200)) {
            let (mut limiter, mut now, mut written, mut named) = (LogLimiter::default(), 0, 0u64, 0u64);
            for gap in &gaps {
                now += gap;
                if let LogDecision::Write { unwritten } = limiter.admit_line("a", "", now) {
                    written += 1;
                    named += unwritten;
                }
            }
            // Lines skipped in the last window are not yet reported.
            if let LogDecision::Write { unwritten } = limiter.admit_line("a", "", now + LOG_WINDOW_MS) {
                named += unwritten;
            }
            prop_assert_eq!(written + named, gaps.len() as u64);
        }
    }
}
