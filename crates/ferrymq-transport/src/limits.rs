//! Every limit of a connection, with its default.

use std::time::Duration;

use tonic::transport::Server;

/// Open connections of one listener, handshakes included.
pub const CONNECTIONS_MAX: usize = 10_000;

/// TLS handshakes under way at once. One more ends the oldest: a peer that is silent is always older than one that is at work, so silent
/// peers cannot keep others out.
pub const HANDSHAKES_MAX: usize = 512;

/// How long a TLS handshake may take, from accept to its end.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// How long a peer may take to send the connection preface of HTTP/2 after the handshake.
pub const PREFACE_DEADLINE: Duration = Duration::from_secs(10);

/// How long the accept loop rests after an error of accept, such as too many open files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Calls and streams at once on one connection.
pub const CONCURRENT_STREAMS_MAX: u32 = 1024;

/// Streams that a peer opened and reset before the server saw them, before the connection is closed (rapid reset).
pub const PENDING_ACCEPT_RESET_STREAMS_MAX: usize = 20;

/// Streams that the server reset because of the peer's errors, before the connection is closed.
pub const LOCAL_ERROR_RESET_STREAMS_MAX: usize = 64;

/// Headers of one call, in bytes after decompression.
pub const HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;

/// What a peer may send ahead on one stream, in bytes. A frame of a channel fits.
pub const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;

/// What a peer may send ahead on one connection, in bytes.
pub const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// A server asks a silent peer for a sign of life this often.
pub const SERVER_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// A client asks a silent server for a sign of life this often.
pub const CLIENT_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// How long a sign of life may take before the connection is given up.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long calls may go on after a listener was told to stop.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Connections that the kernel holds for the accept loop.
pub(crate) const BACKLOG: u32 = 1024;

/// The length of the connection preface of HTTP/2 (RFC 9113, section 3.4).
pub(crate) const PREFACE_BYTES: usize = 24;

/// The limits of a listener. [`Default`] takes the constants of this crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// [`HANDSHAKES_MAX`].
    pub handshakes_max: usize,
    /// [`HANDSHAKE_DEADLINE`].
    pub handshake_deadline: Duration,
    /// [`PREFACE_DEADLINE`].
    pub preface_deadline: Duration,
    /// [`CONCURRENT_STREAMS_MAX`].
    pub concurrent_streams_max: u32,
    /// [`HEADER_LIST_BYTES_MAX`].
    pub header_list_bytes_max: u32,
    /// [`STREAM_WINDOW_BYTES`].
    pub stream_window_bytes: u32,
    /// [`CONNECTION_WINDOW_BYTES`].
    pub connection_window_bytes: u32,
    /// [`SERVER_KEEPALIVE_INTERVAL`].
    pub keepalive_interval: Duration,
    /// [`KEEPALIVE_TIMEOUT`].
    pub keepalive_timeout: Duration,
    /// [`SHUTDOWN_GRACE`].
    pub shutdown_grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            handshakes_max: HANDSHAKES_MAX,
            handshake_deadline: HANDSHAKE_DEADLINE,
            preface_deadline: PREFACE_DEADLINE,
            concurrent_streams_max: CONCURRENT_STREAMS_MAX,
            header_list_bytes_max: HEADER_LIST_BYTES_MAX,
            stream_window_bytes: STREAM_WINDOW_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            keepalive_interval: SERVER_KEEPALIVE_INTERVAL,
            keepalive_timeout: KEEPALIVE_TIMEOUT,
            shutdown_grace: SHUTDOWN_GRACE,
        }
    }
}

/// A tonic server with every limit set that tonic leaves open. TCP options are the listener's, as tonic ignores its own for connections
/// that it did not accept itself.
#[must_use]
pub fn server_builder(limits: &ServerLimits) -> Server {
    Server::builder()
        .max_concurrent_streams(limits.concurrent_streams_max)
        .http2_max_pending_accept_reset_streams(Some(PENDING_ACCEPT_RESET_STREAMS_MAX))
        .http2_max_local_error_reset_streams(Some(LOCAL_ERROR_RESET_STREAMS_MAX))
        .http2_max_header_list_size(limits.header_list_bytes_max)
        .initial_stream_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        .http2_adaptive_window(Some(false))
        .http2_keepalive_interval(Some(limits.keepalive_interval))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
        .accept_http1(false)
}
