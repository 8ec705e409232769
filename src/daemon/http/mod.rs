//! The HTTP pages: metrics, health, plan and the status page. They read the telemetry and nothing else, so that there
//! is no way from a record to a page. Beside them, for whoever has the token: the erasure of people.

mod access;
mod connections;
mod page;
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
use crate::daemon::erasure::{RequestErasure, page::forget};
use crate::daemon::requests::{NotTaken, ReloadRequests};
use crate::telemetry::{ReloadOutcome, Telemetry};
pub use access::Access;
pub use tls::HttpError;

/// What is served, to whom.
#[derive(Clone)]
pub struct Site {
    telemetry: Telemetry,
    access: Arc<Access>,
    tls: Option<TlsAcceptor>,
    erasures: Option<RequestErasure>,
    reloads: Option<ReloadRequests>,
}

impl Site {
    /// The pages as configured.
    pub fn new(telemetry: Telemetry, configured: &config::Telemetry) -> Result<Self, HttpError> {
        let tls = tls::acceptor(&configured.tls)?;
        Ok(Self { telemetry, access: Arc::new(Access::new(configured)?), tls, erasures: None, reloads: None })
    }

    /// The same pages, where a client that brings the token may request erasures and reloads. Without a token these routes do not exist.
    #[must_use]
    pub fn with_requests(self, erasures: RequestErasure, reloads: Option<ReloadRequests>) -> Self {
        if !self.access.asks_for_token() {
            return self;
        }
        Self { erasures: Some(erasures), reloads, ..self }
    }
}

/// Listens on `address`; port 0 takes a free one (see `local_addr`).
pub async fn bind(address: SocketAddr) -> Result<TcpListener, HttpError> {
    TcpListener::bind(address).await.map_err(|source| HttpError::Bind { address, source })
}

/// Serves the pages until `shutdown` is ready; answers under way then have two seconds to be finished.
pub async fn serve(listener: TcpListener, site: Site, shutdown: impl Future<Output = ()>) {
    let tls = site.tls.clone();
    connections::serve(listener, tls, router(site), shutdown).await;
}

/// `/`, `/metrics`, `/healthz`, `/readyz`, `/plan`, `/series.json`, `/status.json`, GET and HEAD only; `POST /forget` and `POST /reload` where they are served.
pub fn router(site: Site) -> Router {
    let pages = Router::new()
        .route("/", get(|| async { Html(page::PAGE.html.as_str()) }))
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
        requests = requests.route("/forget", post(move |request| forget(request, erasures)));
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
        .layer(middleware::from_fn(guard))
        .with_state(site.telemetry)
}

/// Requests a reload: 200 where a policy was replaced or says the same, 422 where it is refused, 503 where nobody answers.
async fn reload(reloads: ReloadRequests) -> Response {
    let unanswered = |text: &'static str| (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    let answered = match reloads.send(()) {
        Ok(answered) => answered,
        Err(NotTaken::Busy) => return unanswered("too many reloads wait already; ask again later\n"),
        Err(NotTaken::Ending) => return unanswered("the daemon is ending\n"),
    };
    match answered.await {
        Ok(answer) if answer.outcome == ReloadOutcome::Refused => {
            (StatusCode::UNPROCESSABLE_ENTITY, Json(answer)).into_response()
        }
        Ok(answer) => Json(answer).into_response(),
        Err(_) => unanswered("the daemon is ending\n"),
    }
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
