//! HTTP pages, which read only the telemetry: no record can reach a page. The token allows erasures and reloads.

mod access;
mod connections;
mod status_page;
mod tls;

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, LazyLock},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::config;
use crate::daemon::erasure::{ErasureSender, forget_page::handle_forget};
use crate::daemon::requests::{ReloadSender, RequestRejection};
use crate::telemetry::{ReloadOutcome, Telemetry};
pub use access::PageAccess;
pub use tls::HttpError;

/// Served pages and their access rules.
#[derive(Clone)]
pub struct PageSite {
    telemetry: Telemetry,
    access: Arc<PageAccess>,
    tls: Option<TlsAcceptor>,
    erasures: Option<ErasureSender>,
    reloads: Option<ReloadSender>,
}

impl PageSite {
    /// Creates the configured pages.
    pub fn new(telemetry: Telemetry, configured: &config::TelemetryConfig) -> Result<Self, HttpError> {
        let tls = tls::acceptor(&configured.tls)?;
        Ok(Self { telemetry, access: Arc::new(PageAccess::new(configured)?), tls, erasures: None, reloads: None })
    }

    /// Adds routes for erasures and reloads, if a token is configured.
    #[must_use]
    pub fn with_requests(self, erasures: ErasureSender, reloads: Option<ReloadSender>) -> Self {
        if !self.access.requires_token() {
            return self;
        }
        Self { erasures: Some(erasures), reloads, ..self }
    }
}

/// Listens on `address`; port 0 selects a free port.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, HttpError> {
    TcpListener::bind(address).await.map_err(|source| HttpError::Bind { address, source })
}

/// Serves the pages until `shutdown`; pending answers then have two seconds.
pub async fn serve(listener: TcpListener, site: PageSite, shutdown: impl Future<Output = ()>) {
    let tls = site.tls.clone();
    connections::serve(listener, tls, router(site), shutdown).await;
}

/// Routes the pages (GET, HEAD), and `POST /forget` and `POST /reload` if enabled.
pub fn router(site: PageSite) -> Router {
    let pages = Router::new()
        .route("/", get(|| async { Html(status_page::STATUS_PAGE.html.as_str()) }))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/plan", get(plan))
        .route(
            "/series.json",
            get(|State(telemetry): State<Telemetry>| async move { Json(telemetry.series_charts().as_value()) }),
        )
        .route("/status.json", get(|State(telemetry): State<Telemetry>| async move { Json(telemetry.status()) }));
    let mut requests = Router::new();
    if let Some(erasures) = site.erasures {
        requests = requests.route("/forget", post(move |request| handle_forget(request, erasures)));
    }
    if let Some(reloads) = site.reloads {
        requests = requests.route("/reload", post(move || reload(reloads)));
    }
    let pages = if requests.has_routes() {
        pages.merge(requests.route_layer(middleware::from_fn(access::admit_bearer)))
    } else {
        pages
    };
    pages
        .layer(middleware::from_fn_with_state(site.access, access::admit))
        .layer(middleware::from_fn(add_security_headers))
        .with_state(site.telemetry)
}

async fn reload(reloads: ReloadSender) -> Response {
    let unanswered = |text: &'static str| (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    let answered = match reloads.send(()) {
        Ok(answered) => answered,
        Err(RequestRejection::Busy) => return unanswered("too many reloads are pending (retry later)\n"),
        Err(RequestRejection::Ending) => return unanswered("the daemon is stopping\n"),
    };
    match answered.await {
        Ok(answer) if answer.outcome == ReloadOutcome::Refused => {
            (StatusCode::UNPROCESSABLE_ENTITY, Json(answer)).into_response()
        }
        Ok(answer) => Json(answer).into_response(),
        Err(_) => unanswered("the daemon is stopping\n"),
    }
}

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

static SECURITY_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    // Base64 always converts; the fallback forbids scripts and styles.
    HeaderValue::from_str(&status_page::STATUS_PAGE.policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

async fn add_security_headers(request: axum::extract::Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, SECURITY_POLICY.clone());
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

pub mod page_server;
#[cfg(test)]
mod tests;
