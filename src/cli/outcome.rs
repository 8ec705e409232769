//! How a command failed: what is printed, and which exit code it gets.

use crate::config::Problem;
use crate::daemon::run::RunError;
use crate::generate::GenerateError;
use std::process::ExitCode;

/// A failed command.
#[derive(Debug)]
pub enum Failure {
    /// Bad usage or configuration: exit code 2.
    Usage(anyhow::Error),
    /// Every problem of a configuration: exit code 2.
    Problems(Vec<Problem>),
    /// The named hardware is not there: exit code 3.
    Hardware(anyhow::Error),
    /// A finding lies above the limit that was given: exit code 4.
    Found(anyhow::Error),
    /// It failed while running: exit code 1.
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

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Self {
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

/// An error with its causes; a cause that the text before it names already is not repeated.
fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |message, cause| match (message.as_str(), &cause) {
        ("", _) => cause,
        (before, cause) if before.contains(cause.as_str()) => message,
        _ => format!("{message}: {cause}"),
    })
}

/// Prints a failure on standard error.
#[must_use]
pub fn report(failure: &Failure) -> ExitCode {
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
        Failure::Found(error) => (4, "found", error),
        Failure::Running(error) => (1, "error", error),
    };
    eprintln!("{kind}: {}", message(error));
    ExitCode::from(code)
}
