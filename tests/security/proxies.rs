//! A proxy from the environment never gets a password: requests with credentials and without TLS bypass it.

use crate::support::binary::{Outcome, Place, Process};
use crate::support::schemas::VISITS;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SECRET: &str = "canary-secret-of-a-proxy-7713";
const REFUSED: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BROKEN: &str = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

struct Ear {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Ear {
    fn saying(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let theirs = Arc::clone(&heard);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
                let (mut question, mut read) = (vec![0; 16 << 10], 0);
                while !String::from_utf8_lossy(&question[..read]).contains("\r\n\r\n") {
                    match stream.read(&mut question[read..]) {
                        Ok(0) | Err(_) => break,
                        Ok(more) => read += more,
                    }
                }
                theirs.lock().expect("a list").push(String::from_utf8_lossy(&question[..read]).into_owned());
                if stream.write_all(answer.as_bytes()).is_err() {
                    eprintln!("whoever asked has gone");
                }
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("a list").clone()
    }
}

fn desk(schema: &str, settings: &str) -> Place {
    let place = Place::new(schema, "");
    let port = place.port;
    let common = format!(
        "[schema]\nfile = \"schema.toml\"\n[state]\npath = \"state\"\nsecret_file = \"secret\"\n[telemetry]\nlisten = \"127.0.0.1:{port}\"\n"
    );
    place.write("throng.toml", format!("{settings}{common}"));
    place.write("password", SECRET);
    std::fs::set_permissions(place.path("password"), PermissionsExt::from_mode(0o600)).expect("a file of ours");
    place
}

fn start(place: &Place, proxy: &Ear) -> Process {
    let mut command = place.command(&[], &[]);
    command.env_remove("FAILPOINTS").env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, format!("http://{}", proxy.address));
    }
    Process::spawn(command, place.port)
}

fn once_heard(process: Process, ear: &Ear) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(90);
    while ear.heard().is_empty() {
        assert!(Instant::now() < deadline, "nothing was asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    process.terminate();
    process.wait()
}

fn knows(heard: &[String], user: &str) -> bool {
    let pair = STANDARD.encode(format!("{user}:{SECRET}"));
    heard.iter().any(|question| question.contains(&pair) || question.contains(SECRET))
}

fn of_tokens(endpoint: &str) -> String {
    format!(
        "[source]\nkind = \"kafka\"\nbrokers = \"127.0.0.1:1\"\ntopics = [\"raw\"]\ngroup = \"g\"\n[source.security]\nprotocol = \"sasl_tls\"\nmechanism = \"oauthbearer\"\n[source.security.oauth]\ntoken_endpoint = \"{endpoint}\"\nclient_id = \"throng\"\nclient_secret_file = \"password\"\n[sink]\nkind = \"kafka\"\ntopic = \"out\"\n"
    )
}

#[test]
fn proxy_does_not_receive_oauth_client_secret() {
    let (provider, proxy) = (Ear::saying(REFUSED), Ear::saying(BROKEN));
    let place = desk(VISITS, &of_tokens(&format!("http://{}/token", provider.address)));
    let outcome = start(&place, &proxy).wait().expect(2);
    assert!(outcome.stderr.contains("the identity provider refuses a token"), "{}", outcome.stderr);
    assert!(knows(&provider.heard(), "throng"), "it was asked by itself: {:?}", provider.heard());
    assert_eq!(proxy.heard(), [""; 0]);
    // Over TLS the proxy cannot read the tunneled request.
    let (provider, proxy) = (Ear::saying(REFUSED), Ear::saying(BROKEN));
    let place = desk(VISITS, &of_tokens(&format!("https://{}/token", provider.address)));
    let outcome = once_heard(start(&place, &proxy), &proxy);
    let heard = proxy.heard();
    assert!(heard.iter().all(|question| question.starts_with("CONNECT ")), "{heard:?}");
    assert!(!knows(&heard, "throng") && !outcome.stderr.contains(SECRET), "{heard:?}");
}

fn of_registry(url: &str, user: &str) -> String {
    format!(
        "[source]\nkind = \"kafka\"\nbrokers = \"127.0.0.1:1\"\ntopics = [\"raw\"]\ngroup = \"g\"\n[registry]\nurl = \"{url}\"\n{user}[sink]\nkind = \"kafka\"\ntopic = \"out\"\nformat = \"avro\"\n"
    )
}

#[test]
fn proxy_does_not_receive_registry_password() {
    let user = "user = \"throng\"\npassword_file = \"password\"\n";
    let (registry, proxy) = (Ear::saying(REFUSED), Ear::saying(BROKEN));
    let place = desk(VISITS, &of_registry(&format!("http://{}", registry.address), user));
    let outcome = start(&place, &proxy).wait().expect(2);
    assert!(outcome.stderr.contains("registry.user"), "{}", outcome.stderr);
    assert!(knows(&registry.heard(), "throng"), "it was asked by itself: {:?}", registry.heard());
    assert_eq!(proxy.heard(), [""; 0]);
    let (registry, proxy) = (Ear::saying(REFUSED), Ear::saying(BROKEN));
    let place = desk(VISITS, &of_registry(&format!("http://{}", registry.address), ""));
    once_heard(start(&place, &proxy), &proxy);
    assert_eq!(registry.heard(), [""; 0]);
}
