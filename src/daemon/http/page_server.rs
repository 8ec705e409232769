//! Serves the HTTP pages on a separate thread.

use crate::config::Config;
use crate::daemon::erasure::ErasureSender;
use crate::daemon::http;
use crate::daemon::requests::ReloadSender;
use crate::daemon::run_error::RunError;
use crate::telemetry::Telemetry;

/// Running pages.
#[derive(Default)]
pub struct PageServer {
    shutdown: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl PageServer {
    /// Serves the pages at `telemetry.listen`, if configured.
    ///
    /// # Errors
    /// [`RunError::Http`]; [`RunError::Thread`].
    pub fn serve(
        config: &Config,
        telemetry: &Telemetry,
        erasures: ErasureSender,
        reloads: Option<ReloadSender>,
    ) -> Result<Self, RunError> {
        let Some(address) = config.telemetry.address() else { return Ok(Self { shutdown: None, thread: None }) };
        let site = http::PageSite::new(telemetry.clone(), &config.telemetry)?.with_requests(erasures, reloads);
        for warning in config.telemetry.exposure_warnings() {
            tracing::warn!("{warning}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Thread)?;
        let listener = runtime.block_on(http::bind(address))?;
        let (shutdown, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("pages".to_owned())
            .spawn(move || {
                runtime.block_on(http::serve(listener, site, async move {
                    let (Ok(()) | Err(_)) = stopped.await;
                }));
            })
            .map_err(RunError::Thread)?;
        Ok(Self { shutdown: Some(shutdown), thread: Some(thread) })
    }

    /// Ends the pages; a panic of their thread is only logged.
    pub fn end(self) {
        drop(self.shutdown);
        if let Some(thread) = self.thread
            && thread.join().is_err()
        {
            tracing::error!("the HTTP pages panicked");
        }
    }
}
