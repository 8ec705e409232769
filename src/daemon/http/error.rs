//! Why the pages cannot be served.

use crate::config::AccessError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the pages cannot be served. The daemon does not start then: nobody could see what it does.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error(
        "{address} cannot be listened on ({source}); set telemetry.listen to a free address and port of this machine"
    )]
    Bind { address: SocketAddr, source: io::Error },
    #[error("telemetry.token_file: {0}")]
    Token(#[from] AccessError),
    #[error("{key}: {} cannot be used ({why}); give PEM files of a certificate and its own key", .file.display())]
    Tls { key: &'static str, file: PathBuf, why: String },
}
