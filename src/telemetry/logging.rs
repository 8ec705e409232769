//! Log lines on standard error, as text or JSON.

use std::any::Any;
use std::io::Write;
use tracing_subscriber::{EnvFilter, filter::LevelFilter, util::SubscriberInitExt};

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
#[must_use]
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

#[cfg(test)]
mod tests {
    use super::{LoggingError, init_logging};

    #[test]
    fn unknown_spellings_are_named() {
        assert!(matches!(init_logging("xml", "info"), Err(LoggingError::Format(f)) if f == "xml"));
        assert!(matches!(init_logging("text", "loud"), Err(LoggingError::Level(l)) if l == "loud"));
    }
}
