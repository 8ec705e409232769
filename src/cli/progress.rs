//! Progress display.

use super::text_format;
use crate::daemon::stream::stream_loop::ReadProgressWatcher;
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

/// Shows `message` and the elapsed time during `work`.
pub fn with_spinner<T>(message: impl Into<std::borrow::Cow<'static, str>>, work: impl FnOnce() -> T) -> T {
    let bar = spinner("{spinner} {msg} {elapsed}");
    bar.set_message(message);
    let done = work();
    bar.finish_and_clear();
    done
}

/// Shows the read share of a file as a message, then that its release is being made.
pub struct ReadingMessage<'a> {
    /// Display.
    pub bar: &'a ProgressBar,
    /// Beginning of the message.
    pub what: &'a str,
    /// Bytes of the file, if known.
    pub length: Option<u64>,
}

impl ReadProgressWatcher for ReadingMessage<'_> {
    fn bytes_read(&self, bytes: u64) {
        let step = match self.length {
            Some(length) if bytes < length => {
                format!("{} read", text_format::percent(bytes as f64 / length as f64))
            }
            Some(_) => "releasing".to_owned(),
            None => format!("{} read", indicatif::HumanBytes(bytes)),
        };
        self.bar.set_message(format!("{}: {step}", self.what));
    }
}
