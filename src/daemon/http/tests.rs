//! The pages as a client sees them: over a socket, and in a real browser.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{HttpError, bind, serve};
use crate::telemetry::{
    BatchCommitted, BatchReport, PlanAdopted, Reason, Rebalanced, RiskPicture, SourceConnected, StageSeconds,
    SuppressionReason, Telemetry,
};

struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn get(address: SocketAddr, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Answer { status, head: head.to_ascii_lowercase(), body: body.into() }
}

/// Runs `visit` against pages of `telemetry`; the server has stopped when this returns.
fn visited<T>(telemetry: &Telemetry, visit: impl FnOnce(SocketAddr) -> T) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let listener = runtime.block_on(bind("127.0.0.1:0".parse().expect("an address"))).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (stop, stopped) = oneshot::channel::<()>();
    let server = runtime.spawn(serve(listener, telemetry.clone(), async {
        _ = stopped.await; // a dropped sender stops it as well
    }));
    let seen = visit(address);
    drop(stop);
    runtime.block_on(server).expect("the server does not panic").expect("and ends well");
    seen
}

fn empty() -> Telemetry {
    Telemetry::new(5, &["person".into(), "signals".into()])
}

/// Batches as a day of wearable records would give them.
fn commit(telemetry: &Telemetry, sequence: u32) {
    let swing = (f64::from(sequence) / 9.0).sin();
    let consumed = u64::from(9_000 + (sequence * 7_919) % 2_000);
    let suppressed = 60 + u64::from(sequence % 7) * 9;
    let dead = u64::from(sequence.is_multiple_of(11));
    BatchCommitted(BatchReport {
        sequence: u64::from(sequence),
        records: consumed,
        consumed,
        released: consumed - suppressed - dead - 2,
        suppressed: [(SuppressionReason::NoSupport, suppressed - 20), (SuppressionReason::Guard, 20)]
            .into_iter()
            .collect(),
        dead_lettered: [(Reason::MalformedJson, dead)].into_iter().collect(),
        dropped: 2,
        held: 0,
        bytes_in: consumed * 446,
        bytes_out: consumed * 402,
        fragments: consumed * 2,
        fragments_by_group: vec![consumed - suppressed, consumed - suppressed],
        seconds: StageSeconds {
            read: 0.012,
            decode: 0.021,
            encode: 0.018,
            treat: 0.033 + 0.01 * swing,
            verify: 0.009,
            learn: 0.004,
            commit: 0.014,
        },
        append_to_commit_seconds: Some(0.4 + 0.1 * swing),
        risk_before: RiskPicture { highest: 1.0, average: 0.71 + 0.04 * swing, share_below_k: 0.83 + 0.03 * swing },
        risk_after: RiskPicture { highest: 0.2, average: 0.031 - 0.004 * swing, share_below_k: 0.0 },
        loss: 0.051 + 0.006 * swing,
        exact_share: 0.88 - 0.01 * swing,
        ledger_classes: 48_211,
        ledger_bytes: 31 << 20,
        dictionary_values: 12_840,
        window_records: 200_000,
        state_bytes: 44 << 20,
        state_free_bytes: 7 << 30,
        lag_records: Some(u64::from(1_800 + (sequence * 31) % 700)),
        ..BatchReport::default()
    })
    .emit(telemetry);
}

fn running() -> Telemetry {
    let telemetry = empty();
    telemetry.set_readiness(|readiness| readiness.schema = true);
    SourceConnected.emit(&telemetry);
    Rebalanced { assigned: 3, ..Rebalanced::default() }.emit(&telemetry);
    PlanAdopted { version: 3, why: "drift", groups: 2, ladder_nodes: 744, seconds: 1.2 }.emit(&telemetry);
    telemetry.set_plan(json!({
        "version": 3,
        "groups": [
            { "name": "person", "quasi": ["age", "gender", "zip", "device"], "nodes": 344 },
            { "name": "signals", "quasi": ["heart_rate", "steps", "hour"], "sensitive": ["mood"], "nodes": 400 },
        ],
        "identifiers": ["e_mail"],
    }));
    telemetry
}

#[test]
fn every_page_answers_and_admits_nothing_foreign() {
    let telemetry = empty();
    visited(&telemetry, |address| {
        let page = get(address, "/");
        assert_eq!(page.status, 200);
        assert!(page.body.contains("<title>throng</title>"));
        assert!(page.head.contains("content-security-policy: default-src 'none'; style-src 'sha256-"), "{}", page.head);
        assert!(page.head.contains("x-content-type-options: nosniff"));
        assert!(get(address, "/metrics").body.contains("throng_build_info{version="));
        assert_eq!(get(address, "/healthz").status, 200);
        assert_eq!(get(address, "/elsewhere").status, 404);

        let ready = get(address, "/readyz");
        assert_eq!(ready.status, 503);
        assert!(ready.body.contains("the record schema is not loaded\n"), "{}", ready.body);
        telemetry.set_readiness(|readiness| readiness.schema = true);
        SourceConnected.emit(&telemetry);
        Rebalanced { assigned: 1, ..Rebalanced::default() }.emit(&telemetry);
        assert_eq!(get(address, "/readyz").status, 200);

        assert_eq!(get(address, "/plan").body, "null");
        telemetry.set_plan(json!({ "version": 9 }));
        assert_eq!(get(address, "/plan").body, "{\"version\":9}");
        let status: Value = serde_json::from_str(&get(address, "/status.json").body).expect("JSON");
        assert_eq!(
            (&status["k"], &status["plan"]["version"], &status["conserved"]),
            (&json!(5), &json!(9), &json!(true))
        );
    });
}

#[test]
fn a_taken_address_is_named_with_the_remedy() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let first = bind("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
        let address = first.local_addr().expect("bound");
        let error = bind(address).await.expect_err("taken");
        assert!(matches!(error, HttpError::Bind { .. }));
        let text = error.to_string();
        assert!(text.contains(&address.to_string()) && text.contains("telemetry.listen"), "{text}");
    });
}

#[test]
fn a_silent_client_does_not_keep_the_server_from_stopping() {
    let before = std::time::Instant::now();
    let _silent = visited(&empty(), |address| {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        write!(stream, "GET / HTTP/1.1\r\n").expect("half a request");
        // An answered request after it: the half one has been accepted.
        assert_eq!(get(address, "/healthz").status, 200);
        stream
    });
    assert!(before.elapsed() < Duration::from_secs(8), "{:?}", before.elapsed());
}

/// `THRONG_SCREENSHOT=FILE.png` keeps a picture; `THRONG_SCREENSHOT_SECONDS` says after how many seconds of records.
#[test]
fn a_real_browser_draws_the_page() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
    else {
        eprintln!("skipped: no Chromium is there; install the package chromium");
        return;
    };
    let profile = tempfile::tempdir().expect("a folder");
    let picture = std::env::var_os("THRONG_SCREENSHOT");
    let seconds: u32 = std::env::var("THRONG_SCREENSHOT_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    let telemetry = running();
    for sequence in 0..seconds * 4 {
        commit(&telemetry, sequence);
        std::thread::sleep(Duration::from_millis(250));
    }
    let consumed = telemetry.status().totals.consumed;
    let page = visited(&telemetry, |address| {
        let look = |extra: &[std::ffi::OsString]| {
            Command::new(browser)
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
                .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
                .args(["--virtual-time-budget=4000", "--window-size=1280,1180", "--hide-scrollbars"])
                .arg(format!("--user-data-dir={}", profile.path().display()))
                .args(extra)
                .arg(format!("http://{address}/"))
                .output()
                .expect("the browser starts")
        };
        if let Some(path) = &picture {
            let mut flag = std::ffi::OsString::from("--screenshot=");
            flag.push(path);
            let dark =
                std::env::var_os("THRONG_SCREENSHOT_DARK").map(|_| "--blink-settings=preferredColorScheme=0".into());
            let flags: Vec<_> = [flag].into_iter().chain(dark).collect();
            assert!(look(&flags).status.success());
        }
        let seen = look(&["--dump-dom".into()]);
        assert!(seen.status.success(), "{}", String::from_utf8_lossy(&seen.stderr));
        String::from_utf8_lossy(&seen.stdout).into_owned()
    });
    // Only the script writes these; a policy that refused it would leave the page empty.
    let account = page.split("<b id=\"consumed\">").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default();
    assert_eq!(account.replace(',', ""), consumed.to_string(), "the account was not drawn: {page}");
    for drawn in [
        "and it adds up",
        ">ready<",
        "heart_rate, steps, hour, mood (sensitive)",
        "identifiers: e_mail",
        "no support",
        "malformed json",
        "dashed 1/k = 20.0 %",
        "<path ",
    ] {
        assert!(page.contains(drawn), "{drawn} was not drawn");
    }
}
