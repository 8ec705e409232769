//! Requests that change something: only with the token, and only as no page of somebody else can send it.

use axum::{
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Whether the token comes as `Bearer TOKEN`. A browser sends what it was told for `Basic` by itself, whatever page makes it ask; a bearer
/// token is sent by nobody who does not know it. Whether it is the right one has been judged before.
fn is_bearer(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(one), None) = (given.next(), given.next()) else { return false };
    one.to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
}

/// Lets only requests through that bring the token themselves.
pub(super) async fn brought(request: Request, next: Next) -> Response {
    if is_bearer(request.headers()) {
        return next.run(request).await;
    }
    let said = "this needs the header `Authorization: Bearer TOKEN`, with the token of telemetry.token_file\n";
    (StatusCode::FORBIDDEN, said).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_a_bearer_brings_the_token() {
        let with = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            is_bearer(&headers)
        };
        assert!(with(&["Bearer abc"]) && with(&["bearer abc"]));
        assert!(!with(&[]) && !with(&["Basic dXNlcjphYmM="]) && !with(&["abc"]));
        assert!(!with(&["Basic dXNlcjphYmM=", "Bearer abc"]), "which of them was judged is not known");
    }
}
