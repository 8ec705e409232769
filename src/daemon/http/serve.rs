//! The HTTP pages, on a thread of their own as long as the daemon runs.

use crate::config::Config;
use crate::daemon::erasure::RequestErasure;
use crate::daemon::http;
use crate::daemon::requests::ReloadRequests;
use crate::daemon::run_error::RunError;
use crate::telemetry::Telemetry;

/// The running pages.
#[derive(Default)]
pub struct Pages {
    shutdown: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pages {
    /// Serves the pages at `telemetry.listen` from here on; where no address is set, nothing is served.
    ///
    /// # Errors
    /// [`RunError::Http`] when the address, the token or the TLS files cannot be used, [`RunError::Thread`] when the
    /// system gives no thread.
    pub fn serve(
        config: &Config,
        telemetry: &Telemetry,
        erasures: RequestErasure,
        reloads: Option<ReloadRequests>,
    ) -> Result<Self, RunError> {
        let Some(address) = config.telemetry.address() else { return Ok(Self { shutdown: None, thread: None }) };
        let site = http::Site::new(telemetry.clone(), &config.telemetry)?.with_requests(erasures, reloads);
        for warning in config.telemetry.warnings() {
            tracing::warn!("{warning}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Thread)?;
        let listener = runtime.block_on(http::bind(address))?;
        let (shutdown, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("pages".to_owned())
            .spawn(move || {
                runtime.block_on(http::serve(listener, site, async move {
                    // Dropping the sender ends the pages as well.
                    let (Ok(()) | Err(_)) = stopped.await;
                }));
            })
            .map_err(RunError::Thread)?;
        Ok(Self { shutdown: Some(shutdown), thread: Some(thread) })
    }

    /// Ends the pages and waits for their thread. A panic of theirs is logged: it does not make the run a failure.
    pub fn end(self) {
        drop(self.shutdown);
        if let Some(thread) = self.thread
            && thread.join().is_err()
        {
            tracing::error!("the HTTP pages panicked");
        }
    }
}
