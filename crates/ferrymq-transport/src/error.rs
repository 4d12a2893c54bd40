//! Why a connection could not be made, or was lost.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ferrymq_authority::PeerMismatch;
use ferrymq_tls::ServerNameMismatch;
use ferrymq_types::ReasonCode;
use rustls::AlertDescription;

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Plain text on an address that other machines reach.
    #[error("{0} is not a loopback address: without TLS a listener is for this machine only")]
    PlainText(SocketAddr),
    /// The address cannot be used.
    #[error("listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// Why there is no connection to a server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No address, nobody listens, or the network is down.
    #[error("connect to {target}")]
    Unreachable {
        /// What was dialled.
        target: String,
        /// Why.
        source: io::Error,
    },
    /// No TLS, and the server is on another machine.
    #[error(
        "{target} is {address}, not a loopback address: without TLS only this machine can be reached"
    )]
    PlainText {
        /// What was dialled.
        target: String,
        /// What it resolved to.
        address: SocketAddr,
    },
    /// The deadline passed.
    #[error("connect to {target}: no answer within {after:?}")]
    Timeout {
        /// What was dialled.
        target: String,
        /// How long it was tried.
        after: Duration,
    },
    /// The handshake failed, or the server ended the connection with a TLS alert: it does so after the client's handshake if it does not
    /// accept the client's certificate.
    #[error("TLS with {target}")]
    Tls {
        /// What was dialled.
        target: String,
        /// What went wrong.
        source: TlsFault,
    },
    /// A genuine server, but with another name than was wanted.
    #[error("{target} is {got}, wanted {wanted}: {mismatch}")]
    PeerRefused {
        /// What was dialled.
        target: String,
        /// The subject of its certificate.
        got: String,
        /// The pattern.
        wanted: String,
        /// The first element that differs.
        mismatch: Box<PeerMismatch>,
    },
}

/// What went wrong in TLS.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TlsFault {
    /// By the rules of the protocol: a bad certificate, an alert, bytes that are no TLS.
    #[error(transparent)]
    Protocol(rustls::Error),
    /// The other end closed the connection.
    #[error("the other end closed the connection during the handshake; does it speak TLS?")]
    Closed,
    /// The other end speaks TLS, but not HTTP/2.
    #[error("the other end does not offer HTTP/2 (ALPN h2)")]
    NoHttp2,
}

impl ConnectError {
    /// 2538 (`MQRC_HOST_NOT_AVAILABLE`), 2393 (`MQRC_SSL_INITIALIZATION_ERROR`) or 2398 (`MQRC_SSL_PEER_NAME_MISMATCH`).
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => ReasonCode::new(2538),
            Self::PlainText { .. } | Self::Tls { .. } => ReasonCode::new(2393),
            Self::PeerRefused { .. } => ReasonCode::new(2398),
        }
    }

    /// The alert that the server sent, if that is why.
    #[must_use]
    pub fn alert(&self) -> Option<AlertDescription> {
        match self {
            Self::Tls {
                source: TlsFault::Protocol(rustls::Error::AlertReceived(alert)),
                ..
            } => Some(*alert),
            Self::Tls { .. }
            | Self::Unreachable { .. }
            | Self::PlainText { .. }
            | Self::Timeout { .. }
            | Self::PeerRefused { .. } => None,
        }
    }

    /// How much it tells: of the failures of several targets the one that tells most is reported.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            Self::Unreachable { .. } => 0,
            Self::Timeout { .. } => 1,
            Self::PlainText { .. } => 2,
            Self::Tls { .. } => 3,
            Self::PeerRefused { .. } => 4,
        }
    }

    /// Reads a failed read, write or handshake.
    pub(crate) fn from_io(target: &str, error: io::Error, handshaking: bool) -> Self {
        let target = target.to_owned();
        if let Some(tls) = find_tls(&error) {
            if let Some(name) = find_mismatch(tls) {
                return Self::PeerRefused {
                    target,
                    got: name.subject.clone(),
                    wanted: name.pattern.clone(),
                    mismatch: Box::new(name.mismatch.clone()),
                };
            }
            return Self::Tls {
                target,
                source: TlsFault::Protocol(tls.clone()),
            };
        }
        let closed = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
        );
        if handshaking && closed {
            return Self::Tls {
                target,
                source: TlsFault::Closed,
            };
        }
        Self::Unreachable {
            target,
            source: error,
        }
    }
}

/// The error of rustls in an I/O error, however deep.
pub(crate) fn find_tls(error: &io::Error) -> Option<&rustls::Error> {
    let mut next: Option<&(dyn Error + 'static)> =
        error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    while let Some(current) = next {
        if let Some(tls) = current.downcast_ref::<rustls::Error>() {
            return Some(tls);
        }
        next = match current.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => current.source(),
        };
    }
    None
}

fn find_mismatch(error: &rustls::Error) -> Option<&ServerNameMismatch> {
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) => {
            other.0.downcast_ref::<ServerNameMismatch>()
        }
        _ => None,
    }
}
