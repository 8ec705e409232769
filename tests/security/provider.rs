//! Identity provider for tests. It issues tokens for `client_credentials` to one known client.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::certificates::token;

pub const SECRET: &str = "canary-client-secret-5192";

#[derive(Debug)]
pub struct Manners {
    /// Lifetime of tokens in seconds.
    pub life: AtomicI64,
    pub given: AtomicU64,
    pub down: AtomicBool,
    pub astray: AtomicBool,
}

pub struct Provider {
    pub address: String,
    pub manners: Arc<Manners>,
}

impl Provider {
    pub fn start(dir: PathBuf, client: String, life: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}/token", listener.local_addr().expect("its address"));
        let manners = Arc::new(Manners {
            life: AtomicI64::new(life),
            given: AtomicU64::new(0),
            down: AtomicBool::new(false),
            astray: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&manners);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &dir, &client, &theirs);
            }
        });
        Self { address, manners }
    }
}

fn answer(mut stream: TcpStream, dir: &std::path::Path, client: &str, manners: &Manners) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    let (mut question, mut read) = (vec![0; 16 << 10], 0);
    while !String::from_utf8_lossy(&question[..read]).contains("grant_type=client_credentials") {
        match stream.read(&mut question[read..]) {
            Ok(0) | Err(_) => return,
            Ok(more) => read += more,
        }
    }
    let question = String::from_utf8_lossy(&question[..read]).into_owned();
    let known = question.contains(&STANDARD.encode(format!("{client}:{SECRET}")));
    let (status, body) = if manners.down.load(Ordering::SeqCst) {
        ("503 Service Unavailable", String::new())
    } else if known {
        let life = manners.life.load(Ordering::SeqCst);
        let astray = manners.astray.load(Ordering::SeqCst);
        manners.given.fetch_add(1, Ordering::SeqCst);
        let mut token = token(dir, "idp", client, if astray { "elsewhere" } else { "kafka" }, life);
        if astray {
            // Apache Kafka 4.1.1 accepts a token for another audience here, so this token also has an invalid
            // signature.
            let (said, signature) = token.rsplit_once('.').expect("three parts");
            token = format!("{said}.{}", signature.chars().rev().collect::<String>());
        }
        ("200 OK", format!("{{\"access_token\":\"{token}\",\"token_type\":\"Bearer\",\"expires_in\":{life}}}"))
    } else {
        ("401 Unauthorized", "{\"error\":\"invalid_client\"}".to_owned())
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    if stream.write_all(head.as_bytes()).is_err() {
        eprintln!("whoever asked for a token has gone");
    }
}
