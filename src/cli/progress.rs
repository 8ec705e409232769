//! Progress display.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Creates a spinner, hidden without a terminal.
#[must_use]
pub fn spinner(template: &str) -> ProgressBar {
    styled(ProgressBar::new_spinner(), template)
}

/// Creates a progress bar, hidden without a terminal.
#[must_use]
pub fn progress_bar(template: &str, length: u64) -> ProgressBar {
    styled(ProgressBar::new(length), template)
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style))
}
