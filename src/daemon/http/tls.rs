//! TLS 1.3 for the pages, and the errors of their start.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::rustls::{ServerConfig, version};

use crate::config::{AccessError, PagesTls};

/// Error of the pages, without which the daemon does not start.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("cannot listen on {address}: {source} (set telemetry.listen to a free address and port of this machine)")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("telemetry.token_file: {0}")]
    Token(#[from] AccessError),
    #[error("{key}: {} cannot be used: {why} (give PEM files of a certificate and its key)", .file.display())]
    Tls { key: &'static str, file: PathBuf, why: String },
}

pub(super) fn acceptor(configured: &PagesTls) -> Result<Option<TlsAcceptor>, HttpError> {
    let (Some(cert_file), Some(key_file)) = (&configured.cert_file, &configured.key_file) else { return Ok(None) };
    let (cert, key) = ("telemetry.tls.cert_file", "telemetry.tls.key_file");
    let wrong = |key, file: &Path, why: String| HttpError::Tls { key, file: file.to_owned(), why };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert_file)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(cert, cert_file, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(cert, cert_file, "it contains no certificate".to_owned()));
    }
    // The message could repeat a part of the key.
    let private = PrivateKeyDer::from_pem_file(key_file)
        .map_err(|_| wrong(key, key_file, "it contains no readable private key".to_owned()))?;
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| wrong(cert, cert_file, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(key, key_file, error.to_string()))?;
    Ok(Some(TlsAcceptor::from(Arc::new(server))))
}
