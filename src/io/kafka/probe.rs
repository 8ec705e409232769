//! Why a broker's certificate is refused: the client only says that it is, so the broker is asked for it once more.

use super::refusal::Refusal;
use crate::config::Security;
use std::io::{ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, StreamOwned, crypto::ring,
};

/// How long one broker may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// `refusal` more closely, where it can be told: of the brokers in turn, the first one that says something.
pub(super) fn closer(refusal: Refusal, brokers: &str, security: &Security) -> Refusal {
    let Some(authorities) = security.ca_file.as_deref().filter(|_| refusal == Refusal::Certificate) else {
        return refusal;
    };
    brokers.split(',').find_map(|broker| reason(broker.trim(), authorities)).unwrap_or(refusal)
}

fn reason(broker: &str, authorities: &Path) -> Option<Refusal> {
    let broker = broker.rsplit_once("://").map_or(broker, |(_, rest)| rest);
    let (host, _) = broker.rsplit_once(':')?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authorities).ok()? {
        roots.add(certificate.ok()?).ok()?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().ok()?.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).ok()?;
    let connection = ClientConnection::new(Arc::new(config), name).ok()?;
    let address = broker.to_socket_addrs().ok()?.next()?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE))).ok()?;
    // Nothing is asked: reading shakes hands, and the broker then waits for us until our patience ends.
    let failed = StreamOwned::new(connection, stream).read(&mut [0]).err()?;
    if failed.kind() != ErrorKind::InvalidData {
        return None;
    }
    match failed.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(why) => Some(match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Refusal::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Refusal::OtherName,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Refusal::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Refusal::NotYetValid,
            _ => Refusal::Certificate,
        }),
        _ => None,
    }
}
