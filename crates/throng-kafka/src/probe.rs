//! Reason of a rejected broker certificate, from a separate connection.

use super::refusal::ConnectionRefusal;
use crate::security::SecurityConfig;
use std::io::{ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, StreamOwned, crypto::ring,
};

const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn refine_refusal(
    refusal: ConnectionRefusal,
    brokers: &str,
    security: &SecurityConfig,
) -> ConnectionRefusal {
    let Some(authorities) = security.ca_file.as_deref().filter(|_| refusal == ConnectionRefusal::Certificate) else {
        return refusal;
    };
    brokers.split(',').find_map(|broker| certificate_refusal(broker.trim(), authorities)).unwrap_or(refusal)
}

fn certificate_refusal(broker: &str, authorities: &Path) -> Option<ConnectionRefusal> {
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
    let stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT)).and_then(|()| stream.set_write_timeout(Some(PROBE_TIMEOUT))).ok()?;
    // No request is sent: the read runs the handshake.
    let failed = StreamOwned::new(connection, stream).read(&mut [0]).err()?;
    if failed.kind() != ErrorKind::InvalidData {
        return None;
    }
    match failed.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(why) => Some(match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => ConnectionRefusal::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                ConnectionRefusal::OtherName
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => ConnectionRefusal::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                ConnectionRefusal::NotYetValid
            }
            _ => ConnectionRefusal::Certificate,
        }),
        _ => None,
    }
}
