//! Handler of `POST /forget`, after the token check.

use super::{ErasureReceipt, ErasureRequest, ErasureSender};
use crate::daemon::requests::RequestRejection;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use tokio::time::timeout;

const MAX_FORGET_BYTES: usize = 1 << 20;
const FORGET_BODY_TIMEOUT: Duration = Duration::from_secs(10);
const ERASURE_TIMEOUT: Duration = Duration::from_mins(30);

const ENDING_MESSAGE: &str =
    "the daemon is stopping: the outcome is unknown (repeat the request: it is applied at most once)";

/// Answers with a receipt after the erasure; never repeats the request.
pub async fn handle_forget(request: Request, erasures: ErasureSender) -> Response {
    match process_forget(request, &erasures).await {
        Ok(receipt) => Json(receipt).into_response(),
        Err((status, text)) => (status, format!("{text}\n")).into_response(),
    }
}

async fn process_forget(request: Request, erasures: &ErasureSender) -> Result<ErasureReceipt, (StatusCode, String)> {
    let refused = |status, text: &str| (status, text.to_owned());
    let body = timeout(FORGET_BODY_TIMEOUT, to_bytes(request.into_body(), MAX_FORGET_BYTES))
        .await
        .map_err(|_| refused(StatusCode::REQUEST_TIMEOUT, "the request did not arrive within ten seconds"))?
        .map_err(|_| {
            refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is larger than 1 MiB (name fewer subjects per request)")
        })?;
    // The parser's message could repeat the request.
    let named = serde_json::from_slice(&body)
        .map_err(|_| refused(StatusCode::BAD_REQUEST, "send JSON: {\"subjects\": [\"…\"], \"dry_run\": false}"))?;
    drop(body);
    let answered = erasures.send(ErasureRequest::Named(named)).map_err(|error| match error {
        RequestRejection::Busy => refused(StatusCode::SERVICE_UNAVAILABLE, "another erasure is pending (retry later)"),
        RequestRejection::Ending => refused(StatusCode::SERVICE_UNAVAILABLE, ENDING_MESSAGE),
    })?;
    let late = "no batch has ended since the request (repeat it: it is applied at most once)";
    let answer = timeout(ERASURE_TIMEOUT, answered).await.map_err(|_| refused(StatusCode::GATEWAY_TIMEOUT, late))?;
    answer.map_err(|_| refused(StatusCode::SERVICE_UNAVAILABLE, ENDING_MESSAGE))?.map_err(|error| {
        let status = if error.is_usage() { StatusCode::BAD_REQUEST } else { StatusCode::INTERNAL_SERVER_ERROR };
        (status, error.to_string())
    })
}
