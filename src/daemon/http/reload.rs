//! `POST /reload`: the configuration is read anew, and the answer says what became of it.

use crate::daemon::errand::NotAsked;
use crate::daemon::reload_request::ReloadRequests;
use crate::telemetry::ReloadOutcome;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

/// Asks for a reload and waits for what becomes of it: 200 where a policy was replaced or says the same, 422 where it is refused, 503
/// where nobody answers.
pub(super) async fn reload(Extension(reloads): Extension<ReloadRequests>) -> Response {
    let unanswered = |said: &'static str| (StatusCode::SERVICE_UNAVAILABLE, said).into_response();
    match reloads.ask() {
        Err(NotAsked::Busy) => unanswered("too many reloads wait already; ask again later\n"),
        Err(NotAsked::Ending) => unanswered("the daemon is ending\n"),
        Ok(answered) => match answered.await {
            Ok(answer) if answer.outcome == ReloadOutcome::Refused => {
                (StatusCode::UNPROCESSABLE_ENTITY, Json(answer)).into_response()
            }
            Ok(answer) => Json(answer).into_response(),
            Err(_) => unanswered("the daemon is ending\n"),
        },
    }
}
