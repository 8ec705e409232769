//! Tests `POST /forget` with any kind of request.

use crate::forget::at_rest::{SCHEMA, line};
use crate::forget::running::LIVE;
use crate::forget::{TOKEN, start, with_token};
use crate::support::binary::{Place, ask};
use crate::support::canaries::Canaries;
use base64::{Engine as _, engine::general_purpose::STANDARD};

fn post(place: &Place, head: &str, body: &[u8]) -> (u16, String) {
    let head = format!("{head}Content-Length: {}\r\n", body.len());
    ask(place.port, "POST /forget", &head, body).expect("an answer")
}

#[test]
fn erasure_page_requires_the_token_and_repeats_no_name() {
    let canaries = Canaries::default();
    let place = Place::new(SCHEMA, "");
    with_token(&place);
    let mut process = start(&place, &LIVE, None);
    process.feed((0..9).map(|n| line(&format!("p{n}"), 30, "Zug")).collect::<String>());
    process.until("all are consumed", |s| s["totals"]["consumed"] == 9);
    let person = canaries.text();
    let named = format!("{{\"subjects\":[\"{person}\"]}}").into_bytes();
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let password = format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("any:{TOKEN}")));
    let large = format!("{{\"subjects\":[\"{}\"]}}", "x".repeat(2 << 20)).into_bytes();
    let odd = format!("{{\"subjects\":[\"p1\"],\"{person}\":1}}").into_bytes();
    for (head, body, status) in [
        ("", &named, 401),
        ("Authorization: Bearer another-token-that-is-as-long-as-it\r\n", &named, 401),
        ("Authorization: Bearer \r\n", &named, 401),
        (&password, &named, 403),
        (&bearer, &large, 413),
        (&bearer, &person.clone().into_bytes(), 400),
        (&bearer, &odd, 400),
        (&bearer, &b"{\"subjects\":[]}".to_vec(), 400),
        (&bearer, &b"{\"subjects\":[\"\"]}".to_vec(), 400),
        (&bearer, &Vec::new(), 400),
        (&bearer, &named, 200),
    ] {
        let (found, said) = post(&place, head, body);
        assert_eq!(found, status, "{said}");
        canaries.absent_from("an answer", said);
    }
    let (status, _) = ask(place.port, "GET /forget", &bearer, b"").expect("an answer");
    assert_eq!(status, 405);
    let foreign = ask(place.port, "POST http://evil.example/forget", &bearer, b"").expect("an answer");
    assert_eq!(foreign.0, 421, "{}", foreign.1);
    let outcome = process.wait().expect(0);
    canaries.absent_from("the log", &outcome.stderr);
    assert_eq!(outcome.stderr.matches("people were erased from the state").count(), 1, "once for all of these");
}
