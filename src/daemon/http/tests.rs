//! Tests of the pages over a socket and in a real browser.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{HttpError, PageSite, bind, serve};
use crate::config;
use crate::telemetry::{
    BatchCommitted, BatchReport, PartitionsChanged, PlanAdopted, RejectionReason, RiskFigures, SourceConnected,
    StageSeconds, SuppressionReason, Telemetry,
};

struct HttpAnswer {
    status: u16,
    head: String,
    body: String,
}

fn get(address: SocketAddr, path: &str) -> HttpAnswer {
    get_with_head(address, path, "Host: localhost\r\n")
}

fn get_with_head(address: SocketAddr, path: &str, head: &str) -> HttpAnswer {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    request_over(stream, path, head)
}

fn request_over(mut stream: impl std::io::Read + std::io::Write, path: &str, head: &str) -> HttpAnswer {
    write!(stream, "GET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    HttpAnswer { status, head: head.to_ascii_lowercase(), body: body.into() }
}

fn with_page_server<T>(telemetry: &Telemetry, visit: impl FnOnce(SocketAddr) -> T) -> T {
    with_configured_server(telemetry, &config::TelemetryConfig::default(), visit)
}

fn with_configured_server<T>(
    telemetry: &Telemetry,
    configured: &config::TelemetryConfig,
    visit: impl FnOnce(SocketAddr) -> T,
) -> T {
    let site = PageSite::new(telemetry.clone(), configured).expect("files that can be used");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let listener = runtime.block_on(bind("127.0.0.1:0".parse().expect("an address"))).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (stop, stopped) = oneshot::channel::<()>();
    let server = runtime.spawn(serve(listener, site, async {
        _ = stopped.await; // a dropped sender stops it as well
    }));
    let seen = visit(address);
    drop(stop);
    runtime.block_on(server).expect("the server does not panic");
    seen
}

fn empty_telemetry() -> Telemetry {
    Telemetry::new(5, &["person".into(), "signals".into()])
}

fn emit_committed_batch(telemetry: &Telemetry, sequence: u32) {
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
        dead_lettered: [(RejectionReason::MalformedJson, dead)].into_iter().collect(),
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
        risk_before: RiskFigures { highest: 1.0, average: 0.71 + 0.04 * swing, share_below_k: 0.83 + 0.03 * swing },
        risk_after: RiskFigures { highest: 0.2, average: 0.031 - 0.004 * swing, share_below_k: 0.0 },
        loss: 0.051 + 0.006 * swing,
        exact_share: 0.88 - 0.01 * swing,
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

fn running_telemetry() -> Telemetry {
    let telemetry = empty_telemetry();
    telemetry.set_readiness(|readiness| readiness.schema = true);
    SourceConnected.emit(&telemetry);
    PartitionsChanged { assigned: 3, ..PartitionsChanged::default() }.emit(&telemetry);
    PlanAdopted { version: 3, why: "drift", groups: 2, ladder_nodes: 744, static_groups: 1, seconds: 1.2 }
        .emit(&telemetry);
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
fn pages_answer_with_security_headers() {
    let telemetry = empty_telemetry();
    with_page_server(&telemetry, |address| {
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
        PartitionsChanged { assigned: 1, ..PartitionsChanged::default() }.emit(&telemetry);
        assert_eq!(get(address, "/readyz").status, 200);

        assert_eq!(get(address, "/plan").body, "null\n");
        telemetry.set_plan(json!({ "version": 9 }));
        assert_eq!(get(address, "/plan").body, "{\n  \"version\": 9\n}\n");
        let status: Value = serde_json::from_str(&get(address, "/status.json").body).expect("JSON");
        assert_eq!(
            (&status["k"], &status["plan"]["version"], &status["conserved"]),
            (&json!(5), &json!(9), &json!(true))
        );
    });
}

#[test]
fn bind_to_taken_address_names_address_and_key() {
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
fn shutdown_with_silent_client_completes() {
    let before = std::time::Instant::now();
    let _silent = with_page_server(&empty_telemetry(), |address| {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        write!(stream, "GET / HTTP/1.1\r\n").expect("half a request");
        assert_eq!(get(address, "/healthz").status, 200);
        stream
    });
    assert!(before.elapsed() < Duration::from_secs(8), "{:?}", before.elapsed());
}

/// `THRONG_SCREENSHOT=FILE.png` saves a screenshot after `THRONG_SCREENSHOT_SECONDS` s of records.
#[test]
fn status_page_in_real_browser_is_drawn() {
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
    let telemetry = running_telemetry();
    for sequence in 0..seconds * 4 {
        emit_committed_batch(&telemetry, sequence);
        std::thread::sleep(Duration::from_millis(250));
    }
    let consumed = telemetry.status().totals.consumed;
    let page = with_page_server(&telemetry, |address| {
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
    // Only the script writes these.
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

#[test]
fn threat_28_request_for_foreign_host_is_rejected() {
    let configured =
        config::TelemetryConfig { allowed_hosts: vec!["throng".into()], ..config::TelemetryConfig::default() };
    with_configured_server(&running_telemetry(), &configured, |address| {
        for path in ["/", "/metrics", "/status.json", "/plan", "/elsewhere"] {
            for foreign in ["Host: evil.example.org\r\n", "", "Host: localhost\r\nHost: evil.example.org\r\n"] {
                let answer = get_with_head(address, path, foreign);
                assert!([400, 421].contains(&answer.status), "{path} {foreign:?}: {}", answer.status);
                assert!(!answer.body.contains("throng_"), "{path}");
            }
            let absolute = get_with_head(address, &format!("http://evil.example.org{path}"), "Host: localhost\r\n");
            assert_eq!(absolute.status, 421, "{path}");
        }
        let own = [format!("Host: {address}\r\n"), "Host: throng:9464\r\n".into(), "Host: 10.0.0.7:9464\r\n".into()];
        for own in own {
            assert_eq!(get_with_head(address, "/metrics", &own).status, 200, "{own}");
        }
        assert_eq!(get_with_head(address, "/healthz", "Host: evil.example.org\r\n").status, 200);
        assert_eq!(get_with_head(address, "/readyz", "Host: some-pod\r\n").status, 200);
    });
}

#[test]
fn configured_token_is_required_except_by_probes() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("token");
    std::fs::write(&path, "correct-horse-battery\n").expect("a file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("our own file");
    let configured = config::TelemetryConfig { token_file: Some(path), ..config::TelemetryConfig::default() };
    with_configured_server(&running_telemetry(), &configured, |address| {
        let with = |path: &str, authorization: &str| {
            get_with_head(address, path, &format!("Host: localhost\r\n{authorization}"))
        };
        for path in ["/", "/metrics", "/status.json", "/plan", "/elsewhere"] {
            for wrong in
                ["", "Authorization: Bearer correct-horse\r\n", "Authorization: Bearer correct-horse-batterz\r\n"]
            {
                let answer = with(path, wrong);
                assert_eq!(answer.status, 401, "{path} {wrong}");
                assert!(answer.head.contains("www-authenticate: basic"), "a browser asks: {}", answer.head);
            }
        }
        assert_eq!(with("/metrics", "Authorization: Bearer correct-horse-battery\r\n").status, 200);
        // base64 of anybody:correct-horse-battery
        let basic = "Authorization: Basic YW55Ym9keTpjb3JyZWN0LWhvcnNlLWJhdHRlcnk=\r\n";
        assert_eq!(with("/status.json", basic).status, 200);
        assert_eq!((with("/healthz", "").status, with("/readyz", "").status), (200, 200));
    });
}

/// A certificate for `localhost`, valid for a hundred years, and its key.
const CERT: &str = include_str!("testing.crt");
const KEY: &str = include_str!("testing.key");

#[test]
fn configured_tls_refuses_plain_requests() {
    use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring};

    let home = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        std::fs::write(home.path().join(name), text).expect("a file");
        Some(home.path().join(name))
    };
    let tls = config::PagesTls { cert_file: file("pages.crt", CERT), key_file: file("pages.key", KEY) };
    let configured = config::TelemetryConfig { tls: tls.clone(), ..config::TelemetryConfig::default() };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERT.as_bytes()).expect("PEM")).expect("a certificate");
    let client = ClientConfig::builder_with_provider(std::sync::Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    with_configured_server(&running_telemetry(), &configured, |address| {
        let name = "localhost".try_into().expect("a name");
        let connection = ClientConnection::new(std::sync::Arc::new(client), name).expect("a client");
        let stream = StreamOwned::new(connection, TcpStream::connect(address).expect("the server listens"));
        let answer = request_over(stream, "/metrics", "Host: localhost\r\n");
        assert!(answer.status == 200 && answer.body.contains("throng_build_info"));
        let mut plain = TcpStream::connect(address).expect("the server listens");
        write!(plain, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
        let mut text = Vec::new();
        let (Ok(_) | Err(_)) = plain.read_to_end(&mut text);
        assert!(!String::from_utf8_lossy(&text).contains("throng_"), "no page without TLS");
    });
    let unusable = [
        (config::PagesTls { cert_file: file("a", KEY), ..tls.clone() }, "cert_file"),
        (config::PagesTls { key_file: file("b", CERT), ..tls.clone() }, "key_file"),
        (config::PagesTls { cert_file: Some("no/such.crt".into()), ..tls }, "cert_file"),
    ];
    for (tls, key) in unusable {
        let configured = config::TelemetryConfig { tls, ..config::TelemetryConfig::default() };
        let error =
            PageSite::new(empty_telemetry(), &configured).err().expect("a file that cannot be used").to_string();
        assert!(error.contains(key) && !error.contains("PRIVATE"), "{error}");
    }
}

#[test]
fn half_sent_requests_do_not_block_probes() {
    with_page_server(&empty_telemetry(), |address| {
        let half: Vec<TcpStream> = (0..600)
            .map(|_| {
                let mut stream = TcpStream::connect(address).expect("the server listens");
                write!(stream, "GET / HTTP/1.1\r\nHost: loc").expect("half a request");
                stream
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(get(address, "/healthz").status, 200);
        }
        let mut oldest = &half[0];
        oldest.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let mut text = Vec::new();
        assert!(!matches!(oldest.read_to_end(&mut text), Ok(1..)), "{}", String::from_utf8_lossy(&text));
    });
}

#[test]
fn unfinished_request_is_closed_by_timeout() {
    with_page_server(&empty_telemetry(), |address| {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        write!(stream, "GET / HTTP/1.1\r\nHost: loc").expect("half a request");
        let mut text = Vec::new();
        let ended = stream.read_to_end(&mut text);
        assert!(ended.is_ok(), "closed by the server, not by our patience: {ended:?}");
        assert!(!String::from_utf8_lossy(&text).contains(" 200 "));
    });
}
