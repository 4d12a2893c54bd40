//! Opening connections: one per call, owned by its caller, never reconnected behind his back.

use std::fmt;
use std::future::ready;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use ferrymq_tls::{ClientTls, PeerCertificate};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel as GrpcChannel, Endpoint};

use crate::error::{ConnectError, TlsFault};
use crate::limits::{
    CLIENT_KEEPALIVE_INTERVAL, CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES_MAX, KEEPALIVE_TIMEOUT,
    STREAM_WINDOW_BYTES,
};

/// A server to dial: `host:port`, `[::1]:port`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// A DNS name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A text that is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not host:port")]
pub struct TargetError(String);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(inside) => inside.parse::<Ipv6Addr>().map_err(|_| wrong())?.to_string(),
            None => {
                ServerName::try_from(host)
                    .ok()
                    .filter(|_| !host.contains(':'))
                    .ok_or_else(wrong)?;
                host.to_owned()
            }
        };
        Ok(Self { host, port })
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }
}

/// Who was reached.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// Which of the targets.
    pub target: Target,
    /// The address behind it.
    pub address: SocketAddr,
    /// Its certificate; none without TLS.
    pub certificate: Option<Arc<PeerCertificate>>,
    /// The name of the cipher suite; none without TLS.
    pub cipher_suite: Option<&'static str>,
}

/// An open connection. When it is lost, its calls fail; it is not opened again.
///
/// With TLS 1.3 a client's handshake is finished before the server has judged the client's certificate: a refusal comes with the first
/// call. [`failure`](Self::failure) then tells why.
#[derive(Debug, Clone)]
pub struct Connection {
    channel: GrpcChannel,
    server: Arc<ServerInfo>,
    failure: Failure,
}

/// The first error of the socket.
type Failure = Arc<Mutex<Option<io::Error>>>;

impl Connection {
    /// For the clients that tonic generates.
    #[must_use]
    pub fn channel(&self) -> GrpcChannel {
        self.channel.clone()
    }

    /// Who is at the other end.
    #[must_use]
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Why the connection was lost, given once, if the socket or TLS said so. tonic's own errors hold no more than a text of it.
    #[must_use]
    pub fn failure(&self) -> Option<ConnectError> {
        let error = self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        Some(ConnectError::from_io(
            &self.server.target.to_string(),
            error,
            false,
        ))
    }
}

/// Opens a connection to the first of `targets` that can be reached and is accepted, within `deadline` for all of them: each gets an equal
/// share of what is left.
///
/// Source: IBM MQ, CONNAME with several names are tried in order.
///
/// # Errors
/// [`ConnectError`] of the target whose failure tells most; its [`reason`](ConnectError::reason) is 2538, 2393 or 2398.
pub async fn connect(
    targets: &[Target],
    tls: Option<&ClientTls>,
    deadline: Duration,
) -> Result<Connection, ConnectError> {
    let end = Instant::now() + deadline;
    let mut worst: Option<ConnectError> = None;
    for (index, target) in targets.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let shares = u32::try_from(targets.len() - index).unwrap_or(u32::MAX);
        let share = left / shares.max(1);
        let attempt = Box::pin(connect_one(target, tls));
        let error = match timeout_at(Instant::now() + share, attempt).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => error,
            Err(_) => ConnectError::Timeout {
                target: target.to_string(),
                after: share,
            },
        };
        tracing::debug!(%target, %error, "target not usable");
        if worst.as_ref().is_none_or(|w| error.weight() >= w.weight()) {
            worst = Some(error);
        }
    }
    Err(worst.unwrap_or_else(|| ConnectError::Unreachable {
        target: "nothing".to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, "no target was given"),
    }))
}

async fn connect_one(target: &Target, tls: Option<&ClientTls>) -> Result<Connection, ConnectError> {
    let name = target.to_string();
    let (tcp, address) = dial(target, tls.is_some()).await?;
    let mut server = ServerInfo {
        target: target.clone(),
        address,
        certificate: None,
        cipher_suite: None,
    };
    let stream = match tls {
        None => Stream::Plain(tcp),
        Some(tls) => {
            let stream = shake_hands(target, tcp, tls).await?;
            let session = stream.get_ref().1;
            server.certificate = session
                .peer_certificates()
                .and_then(|chain| chain.first())
                .and_then(|leaf| PeerCertificate::from_der(leaf).ok())
                .map(Arc::new);
            server.cipher_suite = session
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str());
            Stream::Tls(Box::new(stream))
        }
    };
    let failure = Failure::default();
    let io = ClientIo {
        stream,
        failure: Arc::clone(&failure),
    };
    let channel = speak_grpc(&name, io)
        .await
        .map_err(|source| ConnectError::Unreachable {
            target: name,
            source,
        })?;
    Ok(Connection {
        channel,
        server: Arc::new(server),
        failure,
    })
}

/// The first address that accepts.
async fn dial(target: &Target, encrypted: bool) -> Result<(TcpStream, SocketAddr), ConnectError> {
    let unreachable = |source| ConnectError::Unreachable {
        target: target.to_string(),
        source,
    };
    let addresses: Vec<SocketAddr> = match target.host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, target.port)],
        Err(_) => lookup_host((target.host.as_str(), target.port))
            .await
            .map_err(unreachable)?
            .collect(),
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        if !encrypted && !address.ip().to_canonical().is_loopback() {
            return Err(ConnectError::PlainText {
                target: target.to_string(),
                address,
            });
        }
        match open_socket(address).await {
            Ok(tcp) => return Ok((tcp, address)),
            Err(error) => last = error,
        }
    }
    Err(unreachable(last))
}

async fn open_socket(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_keepalive(true)?;
    let tcp = socket.connect(address).await?;
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

async fn shake_hands(
    target: &Target,
    tcp: TcpStream,
    tls: &ClientTls,
) -> Result<TlsStream<TcpStream>, ConnectError> {
    let name = target.to_string();
    let server_name =
        ServerName::try_from(target.host.clone()).map_err(|_| ConnectError::Unreachable {
            target: name.clone(),
            source: io::Error::new(io::ErrorKind::InvalidInput, "not a host name"),
        })?;
    let stream = TlsConnector::from(tls.config())
        .connect(server_name, tcp)
        .await
        .map_err(|error| ConnectError::from_io(&name, error, true))?;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(ConnectError::Tls {
            target: name,
            source: TlsFault::NoHttp2,
        });
    }
    Ok(stream)
}

/// Gives the open connection to tonic, which finds no second one when the first is lost.
async fn speak_grpc(name: &str, io: ClientIo) -> io::Result<GrpcChannel> {
    let endpoint = Endpoint::from_shared(format!("http://{name}"))
        .map_err(io::Error::other)?
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_header_list_size(HEADER_LIST_BYTES_MAX)
        .http2_keep_alive_interval(CLIENT_KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    let mut only = Some(TokioIo::new(io));
    let connector =
        tower::service_fn(move |_: http::Uri| {
            ready(only.take().ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotConnected, "the connection was lost")
            }))
        });
    endpoint
        .connect_with_connector(connector)
        .await
        .map_err(io::Error::other)
}

enum Stream {
    Tls(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

/// Remembers the first error, since HTTP/2 keeps only its text.
struct ClientIo {
    stream: Stream,
    failure: Failure,
}

impl ClientIo {
    fn note<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match polled {
            Poll::Ready(Err(error)) => {
                let kind = error.kind();
                let text = error.to_string();
                self.failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(error);
                Poll::Ready(Err(io::Error::new(kind, text)))
            }
            Poll::Ready(Ok(_)) | Poll::Pending => polled,
        }
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = match &mut this.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
        };
        this.note(polled)
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = match &mut this.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
        };
        this.note(polled)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = match &mut this.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
        };
        this.note(polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = match &mut this.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
            Stream::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
        };
        this.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tls(tls) => tls.is_write_vectored(),
            Stream::Plain(tcp) => tcp.is_write_vectored(),
        }
    }
}
