//! `POST /forget`: people are erased from the state of the running daemon.
//!
//! Whoever asks has shown the token already; here it must come as `Authorization: Bearer`, which no page of somebody else can make a
//! browser send (a password that a browser has once been told goes along with any request).

use axum::{
    Json,
    body::to_bytes,
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use std::time::Duration;
use tokio::time::timeout;

use crate::daemon::erasure::Asked;
use crate::daemon::errand::{Ask, NotAsked};

/// Bytes of a request.
const MOST_BYTES: usize = 1 << 20;
/// For a request to come in.
const ASKING_TIME: Duration = Duration::from_secs(10);
/// For the erasure: it waits for a batch that is under way, and writes the state anew.
const ANSWERING_TIME: Duration = Duration::from_mins(30);

/// Answers with a receipt once it is done.
pub(super) async fn answer(request: Request, ask: Ask) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let is_bearer = authorization
        .and_then(|text| text.split_once(' '))
        .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if !is_bearer {
        return said(StatusCode::FORBIDDEN, "send the token as Authorization: Bearer, and not as a password");
    }
    let body = match timeout(ASKING_TIME, to_bytes(request.into_body(), MOST_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return said(StatusCode::PAYLOAD_TOO_LARGE, "the request is above 1 MiB: name fewer at once"),
        Err(_) => return said(StatusCode::REQUEST_TIMEOUT, "the request did not come in within ten seconds"),
    };
    // The parser's own words could repeat what it has read.
    let Ok(asked) = serde_json::from_slice::<Asked>(&body) else {
        return said(StatusCode::BAD_REQUEST, "send JSON: {\"subjects\": [\"…\"], \"dry_run\": false}");
    };
    drop(body);
    let answered = match ask.ask(asked) {
        Ok(answered) => answered,
        Err(NotAsked::Busy) => {
            return said(StatusCode::SERVICE_UNAVAILABLE, "another erasure waits already; ask again");
        }
        Err(NotAsked::Ending) => return said(StatusCode::SERVICE_UNAVAILABLE, ENDING),
    };
    match timeout(ANSWERING_TIME, answered).await {
        Ok(Ok(Ok(receipt))) => Json(receipt).into_response(),
        Ok(Ok(Err(error))) if error.is_usage() => said(StatusCode::BAD_REQUEST, &error.to_string()),
        Ok(Ok(Err(error))) => said(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        Ok(Err(_)) => said(StatusCode::SERVICE_UNAVAILABLE, ENDING),
        Err(_) => said(StatusCode::GATEWAY_TIMEOUT, "no batch has ended since; ask again, it is done at most once"),
    }
}

const ENDING: &str = "the daemon is ending: whether it is done is not known; ask again, it is done at most once";

fn said(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}
