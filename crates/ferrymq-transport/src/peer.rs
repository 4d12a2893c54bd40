//! An accepted connection and what is known of the peer.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ferrymq_tls::PeerCertificate;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::limits::PREFACE_BYTES;

/// Who is at the other end of an accepted connection: `request.extensions().get::<PeerInfo>()`.
#[derive(Clone)]
pub struct PeerInfo {
    /// The address of the socket, never of a header.
    pub address: SocketAddr,
    /// The certificate that the peer proved to own, if it sent one. It was valid at the handshake.
    pub certificate: Option<Arc<PeerCertificate>>,
    /// The certificate and those of intermediate authorities as they were sent, to be judged again after a reload
    /// ([`TlsIdentity::verify_client_again`](ferrymq_tls::TlsIdentity::verify_client_again)).
    pub chain: Arc<[CertificateDer<'static>]>,
    /// Whether the connection is encrypted. Without it, nothing is known but the address.
    pub tls: bool,
    /// The name of the cipher suite.
    pub cipher_suite: Option<&'static str>,
    /// The server name that the client asked for.
    pub sni: Option<Arc<str>>,
    pub(crate) cut: CancellationToken,
}

impl PeerInfo {
    /// Ends this connection at once, with everything that runs on it.
    pub fn disconnect(&self) {
        self.cut.cancel();
    }
}

impl fmt::Debug for PeerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerInfo")
            .field("address", &self.address)
            .field("certificate", &self.certificate)
            .field("tls", &self.tls)
            .field("cipher_suite", &self.cipher_suite)
            .field("sni", &self.sni)
            .finish_non_exhaustive()
    }
}

/// The bytes of an accepted connection.
pub(crate) enum Stream {
    /// Decrypted.
    Tls(Box<TlsStream<TcpStream>>),
    /// As they are.
    Plain(TcpStream),
}

/// An accepted connection: reads fail once it is cut or if the peer does not begin to speak HTTP/2 in time.
pub struct PeerIo {
    stream: Stream,
    info: PeerInfo,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Until so many bytes have come, by then.
    preface: Option<(usize, Pin<Box<Sleep>>)>,
    /// A place among the listener's connections.
    _place: OwnedSemaphorePermit,
}

impl fmt::Debug for PeerIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PeerIo").field(&self.info).finish()
    }
}

impl PeerIo {
    pub(crate) fn new(
        stream: Stream,
        info: PeerInfo,
        preface_deadline: Instant,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            stream,
            cut: Box::pin(info.cut.clone().cancelled_owned()),
            info,
            preface: Some((PREFACE_BYTES, Box::pin(sleep_until(preface_deadline)))),
            _place: place,
        }
    }
}

impl Connected for PeerIo {
    type ConnectInfo = PeerInfo;

    fn connect_info(&self) -> PeerInfo {
        self.info.clone()
    }
}

impl AsyncRead for PeerIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection was ended by this side",
            )));
        }
        let before = buf.filled().len();
        let polled = match &mut this.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
        };
        if let Some((missing, deadline)) = &mut this.preface {
            *missing = missing.saturating_sub(buf.filled().len().saturating_sub(before));
            if *missing == 0 {
                this.preface = None;
            } else if deadline.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the peer did not begin to speak HTTP/2 in time",
                )));
            }
        }
        polled
    }
}

impl AsyncWrite for PeerIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
        }
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
        match &mut self.get_mut().stream {
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
            Stream::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tls(tls) => tls.is_write_vectored(),
            Stream::Plain(tcp) => tcp.is_write_vectored(),
        }
    }
}
