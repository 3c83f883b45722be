//! Whom this machine trusts, asked once by ourselves: the client of Redis keeps to itself why it has no connection.

use std::{io, sync::Arc};

use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A handshake, with the authorities that the client of Redis trusts as well: the system's, or those in `SSL_CERT_FILE`.
pub(crate) async fn greet(connection: TcpStream, host: String) -> io::Result<()> {
    let mut trusted = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let _ = trusted.add_parsable_certificates(found.certs);
    let client = ClientConfig::builder()
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let greeted = TlsConnector::from(Arc::new(client)).connect(name, connection).await;
    // Nobody is trusted whose certificate could not be read.
    greeted.map(drop).map_err(|error| match found.errors.first() {
        Some(unread) => io::Error::new(error.kind(), format!("{error} (authorities: {unread})")),
        None => error,
    })
}
