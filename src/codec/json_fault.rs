//! What is wrong with a text that is no JSON.

use crate::telemetry::RejectionReason;

/// Why `serde_json` could not read a text.
pub(super) fn of_syntax(error: &serde_json::Error) -> RejectionReason {
    if error.is_eof() { RejectionReason::Truncated } else { RejectionReason::MalformedJson }
}
