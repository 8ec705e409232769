//! How far an audit is.

use crate::cli::progress::{bar_of, spinner};
use crate::cli::text;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use throng_risk::audit::Step;

/// A line on standard error where that is a terminal.
pub(super) struct Bar(pub(super) ProgressBar, Cell<bool>);

/// A bar of so many bytes, or a spinner; hidden where standard error is no terminal.
pub(super) fn bar(template: &str, length: Option<u64>) -> Bar {
    Bar(length.map_or_else(|| spinner(template), |length| bar_of(template, length)), Cell::new(false))
}

impl Bar {
    /// Says what the audit is at.
    pub(super) fn show(&self, step: Step) {
        match step {
            Step::Searching(at) => {
                let (found, open) = (text::number(at.found as u64), text::number(at.open as u64));
                let counted = text::counted(at.evaluated, "set");
                self.0.set_message(format!("searching: {counted} counted, {found} quasi-identifiers, {open} open"));
            }
            Step::Measuring(done, of) => {
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
