//! The HTTP pages: metrics, health, plan and the status page. They read the telemetry and nothing else, so that there
//! is no way from a record to a page. Beside them, for whoever has the token: the erasure of people.

mod access;
mod connections;
mod erasure;
mod error;
mod page;
mod reload;
mod tls;
mod token;

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, LazyLock},
};

use axum::{
    Extension, Json, Router,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::config;
use crate::daemon::errand::Ask;
use crate::daemon::reload_request::ReloadRequests;
use crate::telemetry::Telemetry;
pub use access::Access;
pub use error::HttpError;

/// What is served, to whom.
#[derive(Clone)]
pub struct Site {
    telemetry: Telemetry,
    access: Arc<Access>,
    /// Where erasures are asked for; none where nobody can be told from anybody, or nobody is there to do it.
    erasures: Option<Ask>,
    tls: Option<TlsAcceptor>,
    /// Where a reload is requested; none where nobody may.
    reloads: Option<ReloadRequests>,
}

impl Site {
    /// The pages as configured.
    ///
    /// # Errors
    /// [`HttpError::Token`] or [`HttpError::Tls`]: a file cannot be used.
    pub fn new(telemetry: Telemetry, configured: &config::Telemetry) -> Result<Self, HttpError> {
        let tls = tls::acceptor(&configured.tls)?;
        Ok(Self { telemetry, access: Arc::new(Access::new(configured)?), tls, erasures: None, reloads: None })
    }

    /// With the page by which people are erased, where a token is configured: without one it does not exist.
    #[must_use]
    pub fn with_erasures(self, ask: Ask) -> Self {
        let erasures = self.access.asks_for_token().then_some(ask);
        Self { erasures, ..self }
    }

    /// The same pages, where whoever brings the token may request a reload. Without a token the route is not there.
    #[must_use]
    pub fn with_reloads(mut self, reloads: Option<ReloadRequests>) -> Self {
        self.reloads = reloads.filter(|_| self.access.asks_for_token());
        self
    }
}

/// Listens on `address`; port 0 takes a free one (see `local_addr`).
///
/// # Errors
/// [`HttpError::Bind`]: the address is taken or is not of this machine.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, HttpError> {
    TcpListener::bind(address).await.map_err(|source| HttpError::Bind { address, source })
}

/// Serves the pages until `shutdown` is ready; answers under way then have two seconds to be finished.
pub async fn serve(listener: TcpListener, site: Site, shutdown: impl Future<Output = ()>) {
    let tls = site.tls.clone();
    connections::serve(listener, tls, router(site), shutdown).await;
}

/// `/`, `/metrics`, `/healthz`, `/readyz`, `/plan`, `/status.json`, GET and HEAD only; `POST /forget` and `POST /reload` where they are served.
pub fn router(site: Site) -> Router {
    let pages = Router::new()
        .route("/", get(|| async { Html(page::PAGE.html.as_str()) }))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/plan", get(plan))
        .route("/status.json", get(|State(telemetry): State<Telemetry>| async move { Json(telemetry.status()) }));
    let pages = match site.erasures {
        Some(ask) => {
            let asked = Router::new().route("/forget", post(move |request| erasure::answer(request, ask)));
            pages.merge(asked.layer(middleware::from_fn(token::brought)))
        }
        None => pages,
    };
    let pages = match site.reloads {
        Some(reloads) => {
            let asked = Router::new().route("/reload", post(reload::reload)).layer(Extension(reloads));
            pages.merge(asked.layer(middleware::from_fn(token::brought)))
        }
        None => pages,
    };
    pages
        .layer(middleware::from_fn_with_state(site.access, access::admit))
        .layer(middleware::from_fn(guard))
        .with_state(site.telemetry)
}

/// Indented: people read it too.
async fn plan(State(telemetry): State<Telemetry>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], format!("{:#}\n", telemetry.plan()))
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

pub mod chosen_page;
pub mod plan_page;
pub mod serve;
#[cfg(test)]
mod tests;
