//! TLS over a [`TcpStream`] that never waits: rustls between the bytes of a session and those of the socket.
//!
//! [`Stream`] is either kind of connection, with the verbs of [`TcpStream`]. What is sent before the
//! handshake is over is kept and leaves when it is. A server may ask for certificates of its clients; a
//! client verifies the server's, against authorities it was given or the system's, for the name it connects
//! to (which it also sends: SNI), unless it is to trust anybody.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, RootCertStore, ServerConfig,
    ServerConnection, SignatureScheme, SupportedProtocolVersion,
};

use crate::tcp::{Received, TcpStream};
use crate::wait::{WaitStrategy, Waiter};

/// Why certificates and keys could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file.
    #[error("{path}: {what}; a PEM file is wanted")]
    File {
        /// Which.
        path: PathBuf,
        /// What was wrong.
        what: String,
    },
    /// Certificate, key and authorities do not go together.
    #[error("the certificates cannot be used: {0}")]
    Unusable(String),
    /// Nobody can have a certificate for this.
    #[error("{0:?} is neither a host name nor an address, so no certificate can be for it")]
    Name(String),
}

/// A certificate (with those that lead to its authority behind it) and its key, in PEM files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The chain.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Whether clients need certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientCertificates {
    /// They are not asked for.
    None,
    /// One that is shown must be from these authorities.
    Optional(Vec<PathBuf>),
    /// There must be one from these authorities.
    Required(Vec<PathBuf>),
}

/// The side that is connected to.
#[derive(Clone, Debug)]
pub struct TlsServer(Arc<ServerConfig>);

/// The side that connects.
#[derive(Clone, Debug)]
pub struct TlsClient(Arc<ClientConfig>);

fn of_file(path: &Path) -> impl Fn(&dyn std::fmt::Display) -> TlsError + '_ {
    move |e| TlsError::File {
        path: path.to_owned(),
        what: e.to_string(),
    }
}

/// Whom a side believes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// The authorities that the system trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` name others).
    System,
    /// The authorities of these files, PEM or DER.
    Files(Vec<PathBuf>),
    /// Anybody: nothing is verified, so that the connection is private and nobody knows with whom.
    Anybody,
}

/// What is asked of a connection beside certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// TLS 1.2 is spoken. Default `true`.
    pub has_1_2: bool,
    /// TLS 1.3 is spoken. Default `true`.
    pub has_1_3: bool,
    /// A client says which name it wants (SNI). Default `true`.
    pub sends_name: bool,
    /// Files of revoked certificates (CRL, PEM): who shows one of them is refused, and so is who shows one of
    /// an authority that none of them is of. Default none: nothing is revoked.
    pub revoked: Vec<PathBuf>,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            has_1_2: true,
            has_1_3: true,
            sends_name: true,
            revoked: Vec::new(),
        }
    }
}

impl Terms {
    fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        let both = [
            (self.has_1_3, &rustls::version::TLS13),
            (self.has_1_2, &rustls::version::TLS12),
        ];
        both.into_iter()
            .filter(|(is_on, _)| *is_on)
            .map(|(_, version)| version)
            .collect()
    }

    fn revocations(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let mut all = Vec::new();
        for path in &self.revoked {
            let wrong = of_file(path);
            let lists = CertificateRevocationListDer::pem_file_iter(path).map_err(|e| wrong(&e))?;
            let before = all.len();
            for list in lists {
                all.push(list.map_err(|e| wrong(&e))?);
            }
            if all.len() == before {
                return Err(wrong(&"it has no list of revoked certificates"));
            }
        }
        Ok(all)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = of_file(path);
    let bytes = std::fs::read(path).map_err(|e| wrong(&e))?;
    // A certificate in DER is a sequence of more than 127 bytes.
    if bytes.starts_with(&[0x30, 0x81]) || bytes.starts_with(&[0x30, 0x82]) {
        return Ok(vec![CertificateDer::from(bytes)]);
    }
    let all: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|e| wrong(&e))?;
    match all.is_empty() {
        true => Err(wrong(&"it has no certificate")),
        false => Ok(all),
    }
}

fn authorities<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for path in paths {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|e| of_file(path)(&e))?;
        }
    }
    Ok(roots)
}

/// What the system trusts; some of its certificates may be unusable, but not all.
fn system_authorities() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    match added {
        0 => Err(TlsError::Unusable(match found.errors.first() {
            Some(e) => format!("the system's trusted authorities: {e}"),
            None => "the system has no trusted authorities (the package ca-certificates)".into(),
        })),
        _ => Ok(roots),
    }
}

fn identity(files: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| of_file(&files.key)(&e))?;
    Ok((certificates(&files.certificate)?, key))
}

fn unusable(e: impl std::fmt::Display) -> TlsError {
    TlsError::Unusable(e.to_string())
}

impl TlsServer {
    /// Shows this certificate to clients, and asks for theirs or not.
    ///
    /// # Errors
    /// A file that is not there or not what it should be; a key of another certificate.
    pub fn new(own: &Identity, clients: &ClientCertificates) -> Result<TlsServer, TlsError> {
        TlsServer::with(own, clients, &Terms::default())
    }

    /// The same on these terms.
    ///
    /// # Errors
    /// As [`TlsServer::new`]; no version is left.
    pub fn with(own: &Identity, clients: &ClientCertificates, terms: &Terms) -> Result<TlsServer, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = match clients {
            ClientCertificates::None => WebPkiClientVerifier::no_client_auth(),
            ClientCertificates::Optional(paths) | ClientCertificates::Required(paths) => {
                let roots = Arc::new(authorities(paths)?);
                let revoked = terms.revocations()?;
                let builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
                let builder = match clients {
                    ClientCertificates::Optional(_) => builder.allow_unauthenticated(),
                    _ => builder,
                };
                let builder = match revoked.is_empty() {
                    true => builder,
                    false => builder.with_crls(revoked).only_check_end_entity_revocation(),
                };
                builder.build().map_err(unusable)?
            }
        };
        let (chain, key) = identity(own)?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&terms.versions())
            .map_err(unusable)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        Ok(TlsServer(Arc::new(config)))
    }

    /// Takes a connection; the handshake goes on with its bytes.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn accept(&self, tcp: TcpStream) -> Result<Stream, TlsError> {
        let connection = ServerConnection::new(self.0.clone()).map_err(unusable)?;
        Ok(Stream::Tls(Box::new(TlsStream::new(tcp, connection.into()))))
    }
}

impl TlsClient {
    /// Trusts the authorities of this file, and shows a certificate of its own to servers that ask for one.
    ///
    /// # Errors
    /// As [`TlsServer::new`].
    pub fn new(trusted: &Path, own: Option<&Identity>) -> Result<TlsClient, TlsError> {
        TlsClient::with(&Trust::Files(vec![trusted.to_owned()]), own, &Terms::default())
    }

    /// The same with any trust, on these terms.
    ///
    /// # Errors
    /// As [`TlsServer::with`]; the system trusts nobody.
    pub fn with(trust: &Trust, own: Option<&Identity>, terms: &Terms) -> Result<TlsClient, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&terms.versions())
            .map_err(unusable)?;
        let builder = match trust {
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(provider))),
            Trust::System | Trust::Files(_) => {
                let roots = match trust {
                    Trust::Files(paths) => authorities(paths)?,
                    _ => system_authorities()?,
                };
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
                let revoked = terms.revocations()?;
                let verifier = match revoked.is_empty() {
                    true => verifier,
                    false => verifier.with_crls(revoked).only_check_end_entity_revocation(),
                };
                builder.with_webpki_verifier(verifier.build().map_err(unusable)?)
            }
        };
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let (chain, key) = identity(own)?;
                builder.with_client_auth_cert(chain, key).map_err(unusable)?
            }
        };
        config.enable_sni = terms.sends_name;
        // Servers on OpenSSL that verify clients without a session id context, QuickFIX C++ among them,
        // refuse to resume with an internal error, for ever; sessions last a day, so that a whole handshake
        // each time costs nothing.
        config.resumption = Resumption::disabled();
        Ok(TlsClient(Arc::new(config)))
    }

    /// Begins the handshake over a connection, with a server that must be `name`.
    ///
    /// # Errors
    /// Not a name.
    pub fn connect(&self, tcp: TcpStream, name: &str) -> Result<Stream, TlsError> {
        let wanted = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))?;
        let connection = ClientConnection::new(self.0.clone(), wanted).map_err(unusable)?;
        let mut stream = TlsStream::new(tcp, connection.into());
        stream.push_out().map_err(unusable)?;
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// Believes every server that has the key of the certificate it shows, whoever it is ([`Trust::Anybody`]).
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A connection with or without TLS.
#[derive(Debug)]
pub enum Stream {
    /// Without.
    Plain(TcpStream),
    /// With.
    Tls(Box<TlsStream>),
}

impl Stream {
    /// As [`TcpStream::recv`]. A violation of TLS is an error of kind `InvalidData` that says which.
    ///
    /// # Errors
    /// What the kernel or rustls says.
    #[inline]
    pub fn recv<'b>(&mut self, buf: &'b mut [u8]) -> io::Result<Received<'b>> {
        match self {
            Stream::Plain(tcp) => tcp.recv(buf),
            Stream::Tls(tls) => tls.recv(buf),
        }
    }

    /// As [`TcpStream::send`].
    ///
    /// # Errors
    /// As [`TcpStream::send`]; while the handshake is not over, also when more than 64 KiB wait.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(tcp) => tcp.send(bytes),
            Stream::Tls(tls) => tls.send(bytes),
        }
    }

    /// As [`TcpStream::acknowledge`].
    #[inline]
    pub fn acknowledge(&mut self) {
        match self {
            Stream::Plain(tcp) => tcp.acknowledge(),
            Stream::Tls(tls) => tls.tcp.acknowledge(),
        }
    }

    /// As [`TcpStream::flush`].
    ///
    /// # Errors
    /// What the kernel says.
    #[inline]
    pub fn flush(&mut self) -> io::Result<bool> {
        match self {
            Stream::Plain(tcp) => tcp.flush(),
            Stream::Tls(tls) => tls.tcp.flush(),
        }
    }

    /// As [`TcpStream::has_unsent`].
    #[inline]
    pub fn has_unsent(&self) -> bool {
        match self {
            Stream::Plain(tcp) => tcp.has_unsent(),
            Stream::Tls(tls) => tls.tcp.has_unsent(),
        }
    }

    /// Who is on the other side.
    pub fn peer(&self) -> std::net::SocketAddr {
        match self {
            Stream::Plain(tcp) => tcp.peer(),
            Stream::Tls(tls) => tls.tcp.peer(),
        }
    }

    /// As [`TcpStream::was_reset`].
    pub fn was_reset(&self) -> bool {
        match self {
            Stream::Plain(tcp) => tcp.was_reset(),
            Stream::Tls(tls) => tls.tcp.was_reset(),
        }
    }

    /// Whether bytes have been taken from the socket that [`Stream::recv`] has not given yet: waiting for the
    /// socket would miss them.
    #[inline]
    pub fn has_input(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(tls) => tls.may_have_more,
        }
    }

    /// Waits, up to `timeout`, for the end of the handshake of a client; for a thread that may wait. Without
    /// TLS there is nothing to wait for.
    ///
    /// A server of TLS 1.3 is also given a moment to send its session ticket, the only sign that its side of
    /// the handshake is over (RFC 8446, section 4.6.1): some servers, QuickFIX/J's on MINA 2.2 among them,
    /// keep what comes right behind the client's `Finished` until something else comes, which after a Logon
    /// is never.
    ///
    /// # Errors
    /// What the kernel or rustls says; `TimedOut`; `ConnectionAborted` when the server closes.
    pub fn establish(&mut self, timeout: Duration) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.establish(timeout),
        }
    }

    /// As [`TcpStream::finish`]; the other side is told that this is no cut.
    pub fn finish(&mut self) {
        match self {
            Stream::Plain(tcp) => tcp.finish(),
            Stream::Tls(tls) => {
                tls.connection.send_close_notify();
                // Who is gone need not be told.
                let _ = tls.push_out();
                tls.tcp.finish();
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Plain(tcp) => tcp.as_fd(),
            Stream::Tls(tls) => tls.tcp.as_fd(),
        }
    }
}

/// The largest record and its head (RFC 8446, section 5.2).
const RECORD_BYTES: usize = 5 + (1 << 14) + 256;

/// How long a server may take from the end of the handshake, as its client sees it, to its session ticket.
/// One that sends none costs this once a connection.
const TICKET_WAIT: Duration = Duration::from_millis(250);

/// A connection with TLS. See [`Stream`].
#[derive(Debug)]
pub struct TlsStream {
    tcp: TcpStream,
    connection: Connection,
    /// Bytes of the socket, `raw[from..to]` not seen by rustls yet.
    raw: Box<[u8]>,
    from: usize,
    to: usize,
    may_have_more: bool,
}

/// What [`TlsStream::pull_in`] met.
enum Pulled {
    /// Bytes, perhaps not a whole record.
    Some,
    /// Nothing at the moment.
    Nothing,
    /// The end of the connection.
    Closed,
}

/// Where rustls writes.
struct Out<'t>(&'t mut TcpStream);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    fn new(tcp: TcpStream, connection: Connection) -> TlsStream {
        TlsStream {
            tcp,
            connection,
            raw: vec![0; RECORD_BYTES].into_boxed_slice(),
            from: 0,
            to: 0,
            may_have_more: false,
        }
    }

    /// Hands what rustls has to say to the socket.
    fn push_out(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut Out(&mut self.tcp))?;
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let taken = self.connection.writer().write(bytes)?;
        self.push_out()?;
        if taken == bytes.len() {
            return Ok(());
        }
        // Beyond the limit of what is kept before the handshake is over, or one record each after it.
        let rest = &bytes[taken..];
        if self.connection.is_handshaking() {
            let reason = "the handshake is not over and too much waits for it";
            return Err(io::Error::new(io::ErrorKind::WouldBlock, reason));
        }
        self.send(rest)
    }

    fn recv<'b>(&mut self, buf: &'b mut [u8]) -> io::Result<Received<'b>> {
        loop {
            match self.connection.reader().read(buf) {
                Ok(0) => return self.ended(),
                Ok(len) => {
                    self.may_have_more = true;
                    return Ok(Received::Bytes(&buf[..len]));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // Cut off without a word.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return self.ended(),
                Err(e) => return Err(e),
            }
            match self.pull_in()? {
                Pulled::Some => {}
                Pulled::Nothing => {
                    self.may_have_more = false;
                    return Ok(Received::Nothing);
                }
                Pulled::Closed => return self.ended(),
            }
        }
    }

    /// Hands what the socket has to rustls, and its answer to the socket.
    fn pull_in(&mut self) -> io::Result<Pulled> {
        if self.from == self.to {
            match self.tcp.recv(&mut self.raw)? {
                Received::Bytes(bytes) => (self.from, self.to) = (0, bytes.len()),
                Received::Nothing => return Ok(Pulled::Nothing),
                Received::Closed => return Ok(Pulled::Closed),
            }
        }
        let mut rest = &self.raw[self.from..self.to];
        self.connection.read_tls(&mut rest)?;
        self.from = self.to - rest.len();
        let state = self.connection.process_new_packets();
        // What is answered includes the reason why it was refused.
        let pushed = self.push_out();
        state.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {e}")))?;
        pushed?;
        Ok(Pulled::Some)
    }

    /// See [`Stream::establish`].
    fn establish(&mut self, timeout: Duration) -> io::Result<()> {
        let mut until = Instant::now() + timeout;
        let mut was_handshaking = true;
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        let watch = waiter.watch(&self.tcp);
        loop {
            let is_handshaking = self.connection.is_handshaking();
            if was_handshaking && !is_handshaking {
                until = until.min(Instant::now() + TICKET_WAIT);
                was_handshaking = false;
            }
            let has_ticket = match &self.connection {
                Connection::Client(client) => client.tls13_tickets_received() > 0,
                Connection::Server(_) => true,
            };
            let is_1_3 = self.connection.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
            let left = until.saturating_duration_since(Instant::now());
            if !is_handshaking && (has_ticket || !is_1_3 || left.is_zero()) {
                // What came behind the ticket is not seen by a wait for the socket.
                self.may_have_more = true;
                return Ok(());
            }
            // What the peer has said is read before it is called late: this thread may have stood still.
            match self.pull_in()? {
                Pulled::Some => {}
                Pulled::Nothing if left.is_zero() => {
                    let reason = format!("no TLS handshake within {timeout:?}");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
                }
                Pulled::Nothing => {
                    let flushed = self.tcp.flush()?;
                    waiter.want_output(watch, !flushed);
                    waiter.wait(left.as_nanos() as u64);
                }
                Pulled::Closed => {
                    let reason = "closed before the TLS handshake was over";
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason));
                }
            }
        }
    }

    fn ended<'b>(&mut self) -> io::Result<Received<'b>> {
        self.may_have_more = false;
        Ok(Received::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpListener;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    /// Certificates of a test, in files.
    struct Files(PathBuf);

    impl Files {
        fn new(name: &str) -> Files {
            let dir = std::env::temp_dir().join(format!("tickwire-tls-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            let files = Files(dir);
            for authority in ["ca", "other"] {
                let key = KeyPair::generate().unwrap();
                let mut params = CertificateParams::new(Vec::new()).unwrap();
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                params.distinguished_name.push(DnType::CommonName, authority);
                let own = params.self_signed(&key).unwrap();
                files.write(&format!("{authority}.pem"), &own.pem());
                let issuer = Issuer::new(params, key);
                for holder in ["localhost", "client"] {
                    let key = KeyPair::generate().unwrap();
                    let params = CertificateParams::new(vec![holder.into()]).unwrap();
                    let signed = params.signed_by(&key, &issuer).unwrap();
                    files.write(&format!("{authority}-{holder}.pem"), &signed.pem());
                    files.write(&format!("{authority}-{holder}.key"), &key.serialize_pem());
                }
            }
            files
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.0.join(name), text).unwrap();
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn identity(&self, name: &str) -> Identity {
            Identity {
                certificate: self.path(&format!("{name}.pem")),
                key: self.path(&format!("{name}.key")),
            }
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn pair(server: &TlsServer, client: &TlsClient, name: &str) -> (Stream, Stream) {
        let mut listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap(), Duration::from_secs(5)).unwrap();
        let far = loop {
            if let Some(stream) = listener.accept().unwrap() {
                break stream;
            }
        };
        (client.connect(near, name).unwrap(), server.accept(far).unwrap())
    }

    /// Reads both sides until each has so much, or one fails.
    fn exchange(near: &mut Stream, far: &mut Stream, len: usize) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let (mut at_near, mut at_far) = (Vec::new(), Vec::new());
        let begin = Instant::now();
        while at_near.len() < len || at_far.len() < len {
            assert!(begin.elapsed() < Duration::from_secs(20), "nothing comes");
            for (stream, got) in [(&mut *near, &mut at_near), (&mut *far, &mut at_far)] {
                let mut buf = [0; 1000];
                match stream.recv(&mut buf)? {
                    Received::Bytes(bytes) => got.extend_from_slice(bytes),
                    Received::Nothing => {
                        stream.flush()?;
                    }
                    Received::Closed => return Err(io::ErrorKind::ConnectionAborted.into()),
                }
            }
        }
        Ok((at_near, at_far))
    }

    #[test]
    fn bytes_sent_before_and_after_the_handshake_arrive_on_both_sides() {
        let files = Files::new("both");
        let required = ClientCertificates::Required(vec![files.path("ca.pem")]);
        let server = TlsServer::new(&files.identity("ca-localhost"), &required).unwrap();
        let own = files.identity("ca-client");
        let client = TlsClient::new(&files.path("ca.pem"), Some(&own)).unwrap();
        let (mut near, mut far) = pair(&server, &client, "localhost");
        near.send(b"early").unwrap();
        far.send(b"EARLY").unwrap();
        let (at_near, at_far) = exchange(&mut near, &mut far, 5).unwrap();
        assert_eq!((&at_near[..], &at_far[..]), (&b"EARLY"[..], &b"early"[..]));
        let long: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        near.send(&long).unwrap();
        far.send(&long).unwrap();
        assert_eq!(
            exchange(&mut near, &mut far, long.len()).unwrap(),
            (long.clone(), long)
        );
        near.finish();
        let mut buf = [0; 10];
        let begin = Instant::now();
        while far.recv(&mut buf).unwrap() != Received::Closed {
            assert!(begin.elapsed() < Duration::from_secs(20), "no end");
        }
    }

    #[test]
    fn a_client_that_waits_for_the_handshake_gives_its_server_time_to_end_it() {
        let files = Files::new("establish");
        let mut server = TlsServer::new(&files.identity("ca-localhost"), &ClientCertificates::None).unwrap();
        let client = TlsClient::new(&files.path("ca.pem"), None).unwrap();
        let patience = Duration::from_secs(20);
        // With a ticket, and without one.
        for tickets in [2, 0] {
            Arc::make_mut(&mut server.0).send_tls13_tickets = tickets;
            let (mut near, mut far) = pair(&server, &client, "localhost");
            far.send(b"first word").unwrap();
            let answering = std::thread::spawn(move || {
                let begin = Instant::now();
                let mut buf = [0; 100];
                while begin.elapsed() < patience {
                    match far.recv(&mut buf).unwrap() {
                        Received::Bytes(bytes) => return bytes.to_vec(),
                        Received::Nothing => drop(far.flush().unwrap()),
                        Received::Closed => break,
                    }
                }
                panic!("nothing came");
            });
            near.establish(patience).unwrap();
            let Stream::Tls(tls) = &near else { unreachable!() };
            let Connection::Client(state) = &tls.connection else {
                unreachable!()
            };
            assert!(!state.is_handshaking());
            assert_eq!(state.tls13_tickets_received() > 0, tickets > 0);
            assert!(near.has_input(), "what came with the ticket waits for nobody");
            near.send(b"logon").unwrap();
            assert_eq!(answering.join().unwrap(), b"logon");
            let (mut buf, begin) = ([0; 100], Instant::now());
            while near.recv(&mut buf).unwrap() != Received::Bytes(b"first word") {
                assert!(begin.elapsed() < patience, "the first word is lost");
            }
        }
        // Nobody answers; and somebody who ends it.
        let (mut near, far) = pair(&server, &client, "localhost");
        let error = near.establish(Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
        let error = near.establish(patience).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }

    /// The client has no time left whenever it comes to its socket, as after a time in which it stood still.
    #[test]
    fn a_handshake_that_lies_in_the_socket_is_read_before_it_is_called_late() {
        let files = Files::new("late");
        let server = TlsServer::new(&files.identity("ca-localhost"), &ClientCertificates::None).unwrap();
        let client = TlsClient::new(&files.path("ca.pem"), None).unwrap();
        let (mut near, mut far) = pair(&server, &client, "localhost");
        let mut buf = [0; 100];
        let mut established = Err(io::ErrorKind::TimedOut.into());
        for _ in 0..100_000 {
            assert_eq!(far.recv(&mut buf).unwrap(), Received::Nothing);
            far.flush().unwrap();
            established = near.establish(Duration::ZERO);
            match &established {
                Err(e) if e.kind() == io::ErrorKind::TimedOut => {}
                _ => break,
            }
        }
        established.unwrap();
    }

    #[test]
    fn who_cannot_be_verified_is_refused_with_the_reason() {
        let files = Files::new("refused");
        let none = ClientCertificates::None;
        let server = TlsServer::new(&files.identity("ca-localhost"), &none).unwrap();
        let stranger = TlsClient::new(&files.path("other.pem"), None).unwrap();
        let friend = TlsClient::new(&files.path("ca.pem"), None).unwrap();
        let strict = TlsServer::new(
            &files.identity("ca-localhost"),
            &ClientCertificates::Required(vec![files.path("ca.pem")]),
        )
        .unwrap();
        let wrong = files.identity("other-client");
        let forger = TlsClient::new(&files.path("ca.pem"), Some(&wrong)).unwrap();
        for (server, client, name, reason) in [
            (&server, &stranger, "localhost", "UnknownIssuer"),
            (&server, &friend, "elsewhere", "not valid for name"),
            (&strict, &friend, "localhost", "no certificates"),
            (&strict, &forger, "localhost", "UnknownIssuer"),
        ] {
            let (mut near, mut far) = pair(server, client, name);
            near.send(b"x").unwrap();
            let error = exchange(&mut near, &mut far, 1).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
    }

    #[test]
    fn plain_bytes_and_wrong_files_are_errors_that_say_so() {
        let files = Files::new("plain");
        let server = TlsServer::new(&files.identity("ca-localhost"), &ClientCertificates::None).unwrap();
        let client = TlsClient::new(&files.path("ca.pem"), None).unwrap();
        let (near, mut far) = pair(&server, &client, "localhost");
        let Stream::Tls(near) = near else { unreachable!() };
        let mut tcp = near.tcp;
        tcp.send(b"8=FIX.4.4\x019=5\x01").unwrap();
        let mut buf = [0; 100];
        let error = loop {
            match far.recv(&mut buf) {
                Ok(Received::Nothing) => {}
                Ok(other) => panic!("{other:?}"),
                Err(e) => break e,
            }
        };
        assert!(error.to_string().starts_with("TLS: "), "{error}");
        let missing = TlsClient::new(&files.path("none.pem"), None)
            .unwrap_err()
            .to_string();
        assert!(missing.contains("none.pem"), "{missing}");
        let key = files.path("ca-localhost.key");
        assert!(
            TlsClient::new(&key, None)
                .unwrap_err()
                .to_string()
                .contains("no certificate")
        );
        let mixed = Identity {
            certificate: files.path("ca-localhost.pem"),
            key: files.path("ca-client.key"),
        };
        assert!(matches!(
            TlsServer::new(&mixed, &ClientCertificates::None),
            Err(TlsError::Unusable(_))
        ));
    }
}
