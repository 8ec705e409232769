//! The HTTP pages: metrics, health, plan and the status page. They read the telemetry and nothing else, so that there
//! is no way from a record to a page.

mod page;

use std::{
    future::{Future, IntoFuture},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::get,
    serve::Listener,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
};

use crate::telemetry::Telemetry;

/// Connections served at once; more wait in the system's queue.
const CONNECTIONS: usize = 256;
/// How long answers under way may take after the shutdown.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Why the pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error(
        "{address} cannot be listened on ({source}); set telemetry.listen to a free address and port of this machine"
    )]
    Bind { address: SocketAddr, source: io::Error },
    #[error("the HTTP pages stopped ({0}); restart the daemon")]
    Serve(io::Error),
}

/// Listens on `address`; port 0 takes a free one (see `local_addr`).
///
/// # Errors
/// [`HttpError::Bind`]: the address is taken or is not of this machine.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, HttpError> {
    TcpListener::bind(address).await.map_err(|source| HttpError::Bind { address, source })
}

/// Serves the pages until `shutdown` is ready; answers under way then have two seconds to be finished.
///
/// # Errors
/// [`HttpError::Serve`]: the listener failed.
pub async fn serve(
    listener: TcpListener,
    telemetry: Telemetry,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), HttpError> {
    let bounded = Bounded { listener, slots: Arc::new(Semaphore::new(CONNECTIONS)) };
    let (told, stopping) = oneshot::channel::<()>();
    let served = axum::serve(bounded, router(telemetry)).with_graceful_shutdown(async move {
        shutdown.await;
        drop(told);
    });
    // A client that never ends its request must not keep the daemon from stopping.
    tokio::select! {
        result = served.into_future() => result.map_err(HttpError::Serve),
        () = async { _ = stopping.await; tokio::time::sleep(LAST_ANSWERS).await } => Ok(()),
    }
}

/// `/`, `/metrics`, `/healthz`, `/readyz`, `/plan`, `/status.json`; GET and HEAD only.
pub fn router(telemetry: Telemetry) -> Router {
    Router::new()
        .route("/", get(|| async { Html(page::PAGE.html.as_str()) }))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/plan", get(|State(telemetry): State<Telemetry>| async move { Json(telemetry.plan()) }))
        .route("/status.json", get(|State(telemetry): State<Telemetry>| async move { Json(telemetry.status()) }))
        .layer(middleware::from_fn(guard))
        .with_state(telemetry)
}

async fn metrics(State(telemetry): State<Telemetry>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], telemetry.render())
}

async fn ready(State(telemetry): State<Telemetry>) -> (StatusCode, String) {
    let reasons = telemetry.readiness().reasons();
    if reasons.is_empty() {
        return (StatusCode::OK, "ready\n".into());
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n")
}

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    // The hashes are base64 text: a policy without them shows a page without script, which is the safe side.
    HeaderValue::from_str(&page::PAGE.policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// What a browser may do with any of the answers: show them, and nothing else.
async fn guard(request: axum::extract::Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A listener that accepts no more connections than it has slots.
struct Bounded {
    listener: TcpListener,
    slots: Arc<Semaphore>,
}

/// A connection that gives its slot back when it is dropped.
struct Slotted {
    stream: TcpStream,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Listener for Bounded {
    type Io = Slotted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Slotted, SocketAddr) {
        // The semaphore is never closed; were it, connections would be served unbounded rather than not at all.
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Slotted { stream, _slot: slot }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Slotted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Slotted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
