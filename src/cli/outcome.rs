//! Failures with exit codes.

use crate::config::ConfigProblem;
use crate::daemon::run::RunError;
use crate::generate::GenerateError;
use std::process::ExitCode;

/// Failure of a command.
#[derive(Debug)]
pub enum Failure {
    /// Usage or configuration: exit code 2.
    Usage(anyhow::Error),
    /// Configuration problems: exit code 2.
    Problems(Vec<ConfigProblem>),
    /// Missing hardware: exit code 3.
    Hardware(anyhow::Error),
    /// Finding above a limit: exit code 4.
    FindingAboveLimit(anyhow::Error),
    /// While running: exit code 1.
    Running(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if matches!(error.downcast_ref::<GenerateError>(), Some(GenerateError::OutOfRange { .. })) {
            Self::Usage(error)
        } else {
            Self::Running(error)
        }
    }
}

impl From<Vec<ConfigProblem>> for Failure {
    fn from(problems: Vec<ConfigProblem>) -> Self {
        Self::Problems(problems)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Configuration(problems) => Self::Problems(problems),
            error if error.is_usage() => Self::Usage(error.into()),
            error => Self::Running(error.into()),
        }
    }
}

/// Skips causes in the preceding text.
fn error_chain_message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |message, cause| match (message.as_str(), &cause) {
        ("", _) => cause,
        (before, cause) if before.contains(cause.as_str()) => message,
        _ => format!("{message}: {cause}"),
    })
}

/// Prints a failure and returns its exit code.
#[must_use]
pub fn print_failure(failure: &Failure) -> ExitCode {
    let (code, kind, error) = match failure {
        Failure::Problems(problems) => {
            for problem in problems {
                eprintln!("error: {}: {}: {}", problem.file, problem.key, problem.message);
                eprintln!("       {}", problem.remedy);
            }
            return ExitCode::from(2);
        }
        Failure::Usage(error) => (2, "error", error),
        Failure::Hardware(error) => (3, "error", error),
        Failure::FindingAboveLimit(error) => (4, "found", error),
        Failure::Running(error) => (1, "error", error),
    };
    eprintln!("{kind}: {}", error_chain_message(error));
    ExitCode::from(code)
}
