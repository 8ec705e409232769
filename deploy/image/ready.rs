//! Readiness probe: exits with 0 if the daemon of this container is ready. The image has neither a shell nor curl.
//! `/readyz` requires no token and no host name. With `telemetry.tls` the probe fails, because it does not use TLS.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);

fn ready() -> std::io::Result<bool> {
    let listen = std::env::var("THRONG__TELEMETRY__LISTEN").unwrap_or_default();
    let port = listen.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(9464);
    let mut pages = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE)?;
    pages.set_read_timeout(Some(PATIENCE))?;
    pages.set_write_timeout(Some(PATIENCE))?;
    pages.write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut status = [0; "HTTP/1.0 200".len()];
    pages.read_exact(&mut status)?;
    Ok(status.starts_with(b"HTTP/1.") && status.ends_with(b" 200"))
}

fn main() -> ExitCode {
    match ready() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the pages do not answer: {error}");
            ExitCode::FAILURE
        }
    }
}
