//! Progress of an audit.

use crate::cli::progress::{progress_bar, spinner};
use crate::cli::text_format;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use throng_risk::audit::AuditStep;

/// Progress line, only on a terminal. The flag marks the measuring phase.
pub(super) struct AuditProgressBar(pub(super) ProgressBar, Cell<bool>);

/// A spinner without `length`.
pub(super) fn audit_progress_bar(template: &str, length: Option<u64>) -> AuditProgressBar {
    AuditProgressBar(
        length.map_or_else(|| spinner(template), |length| progress_bar(template, length)),
        Cell::new(false),
    )
}

impl AuditProgressBar {
    pub(super) fn show_step(&self, step: AuditStep) {
        match step {
            AuditStep::Searching(at) => {
                let (counted, open) = (text_format::counted(at.evaluated, "set"), text_format::number(at.open as u64));
                let found = text_format::counted(at.found as u64, "quasi-identifier");
                self.0.set_message(format!("searching: {counted} counted, {found}, {open} open"));
            }
            AuditStep::Measuring(done, of) => {
                if !self.1.replace(true) {
                    let style = ProgressStyle::with_template("measuring {bar:30} {pos}/{len} quasi-identifiers");
                    if let Ok(style) = style {
                        self.0.set_style(style);
                    }
                }
                self.0.set_length(of as u64);
                self.0.set_position(done as u64);
            }
        }
    }
}
