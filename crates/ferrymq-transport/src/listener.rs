//! Listeners: accept, shake hands within a deadline, count, and hand over to tonic.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ferrymq_tls::{PeerCertificate, TlsReloader};
use rustls::server::Acceptor;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::LazyConfigAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Router;

use crate::error::{ListenError, TlsFault, find_tls};
use crate::limits::{ACCEPT_PAUSE, BACKLOG, ServerLimits};
use crate::peer::{PeerInfo, PeerIo, Stream};

/// Connections that are ready and wait for the server to take them.
const READY_MAX: usize = 64;

/// Refusals are logged one by one up to so many in a [`LOG_PERIOD`], then counted.
const LOG_LINES_MAX: u64 = 10;
const LOG_PERIOD: Duration = Duration::from_secs(10);

/// How a listener protects its connections.
#[derive(Debug, Clone)]
pub enum ListenerSecurity {
    /// TLS, by the files as last loaded.
    Tls(Arc<TlsReloader>),
    /// None: for loopback addresses only.
    PlainLoopback,
}

/// What a listener has seen since its start. Counters only grow.
#[derive(Debug, Default)]
pub struct ListenerStats {
    accepted: AtomicU64,
    established: AtomicU64,
    refused_over_limit: AtomicU64,
    handshakes_failed: AtomicU64,
    accept_errors: AtomicU64,
}

impl ListenerStats {
    /// Connections that the kernel handed over.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Connections that the server got, after their handshake.
    #[must_use]
    pub fn established(&self) -> u64 {
        self.established.load(Ordering::Relaxed)
    }

    /// Connections closed because there were too many.
    #[must_use]
    pub fn refused_over_limit(&self) -> u64 {
        self.refused_over_limit.load(Ordering::Relaxed)
    }

    /// Connections whose handshake failed or took too long.
    #[must_use]
    pub fn handshakes_failed(&self) -> u64 {
        self.handshakes_failed.load(Ordering::Relaxed)
    }

    /// Errors of accept itself, such as too many open files.
    #[must_use]
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Ordering::Relaxed)
    }
}

/// A connection that was refused before any call: for an event message (`MQRC_CHANNEL_SSL_ERROR`) and for the operator.
#[derive(Debug)]
pub struct Refusal {
    /// Who tried.
    pub address: SocketAddr,
    /// Why not.
    pub cause: RefusalCause,
}

/// Why a connection was refused.
#[derive(Debug, thiserror::Error)]
pub enum RefusalCause {
    /// As many connections as are allowed are open.
    #[error("too many connections")]
    TooManyConnections,
    /// The handshake took too long.
    #[error("the handshake was not finished within {0:?}")]
    HandshakeTimeout(Duration),
    /// It gave way to newer ones.
    #[error("too many handshakes at once, and this was the oldest")]
    TooManyHandshakes,
    /// The handshake failed.
    #[error("the handshake failed: {0}")]
    Tls(TlsFault),
    /// The socket failed.
    #[error("the connection failed: {0}")]
    Io(io::Error),
    /// A certificate that TLS accepts and that cannot be read for its name.
    #[error("the certificate cannot be read: {0}")]
    Certificate(ferrymq_tls::CertificateError),
}

/// A bound socket that does not accept yet.
pub struct Listener {
    socket: TcpListener,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    security: ListenerSecurity,
    limits: ServerLimits,
    places: Arc<Semaphore>,
    stats: Arc<ListenerStats>,
    refusals: Option<mpsc::Sender<Refusal>>,
    /// Cancelled when all connections must end.
    cut: CancellationToken,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local_addr", &self.local_addr)
            .field("security", &self.shared.security)
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// Binds an address; port 0 takes a free one.
    ///
    /// # Errors
    /// [`ListenError::PlainText`] for an address without TLS that other machines reach, [`ListenError::Bind`].
    pub fn bind(
        address: SocketAddr,
        security: ListenerSecurity,
        limits: ServerLimits,
    ) -> Result<Self, ListenError> {
        match &security {
            ListenerSecurity::PlainLoopback if !address.ip().to_canonical().is_loopback() => {
                return Err(ListenError::PlainText(address));
            }
            ListenerSecurity::PlainLoopback | ListenerSecurity::Tls(_) => {}
        }
        let socket = listen(address).map_err(|source| ListenError::Bind { address, source })?;
        let local_addr = socket
            .local_addr()
            .map_err(|source| ListenError::Bind { address, source })?;
        Ok(Self {
            socket,
            local_addr,
            shared: Arc::new(Shared {
                security,
                places: Arc::new(Semaphore::new(
                    limits.connections_max.min(Semaphore::MAX_PERMITS),
                )),
                limits,
                stats: Arc::default(),
                refusals: None,
                cut: CancellationToken::new(),
            }),
        })
    }

    /// Reports every refused connection to `refusals` as long as there is room in it; the counters miss none.
    #[must_use]
    pub fn with_refusals(mut self, refusals: mpsc::Sender<Refusal>) -> Self {
        let shared = Arc::get_mut(&mut self.shared)
            .expect("no other owner exists before the listener is started");
        shared.refusals = Some(refusals);
        self
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> Arc<ListenerStats> {
        Arc::clone(&self.shared.stats)
    }

    /// Serves `router` (made by [`server_builder`](crate::server_builder)) until `shutdown` is cancelled; then refuses new connections, asks the
    /// peers to finish, and ends what is still open after the grace period. Long streams should watch the same token and end by themselves.
    ///
    /// Dropping the future ends accepting and every open connection at once.
    ///
    /// # Errors
    /// What tonic reports.
    pub async fn serve(
        self,
        router: Router,
        shutdown: CancellationToken,
    ) -> Result<(), tonic::transport::Error> {
        let Self { socket, shared, .. } = self;
        let (ready, incoming) = mpsc::channel(READY_MAX);
        let cut = shared.cut.clone();
        let _cut_at_the_end = cut.clone().drop_guard();
        let grace = shared.limits.shutdown_grace;
        // Also when tonic ends early, accepting ends with it.
        let stop = shutdown.child_token();
        let accept = accept_loop(socket, shared, ready, stop.clone());
        let serve = async {
            let served = router
                .serve_with_incoming_shutdown(
                    ReceiverStream::new(incoming),
                    stop.clone().cancelled_owned(),
                )
                .await;
            stop.cancel();
            served
        };
        let mut both = Box::pin(async { tokio::join!(accept, serve).1 });
        let end_of_grace = async {
            shutdown.cancelled().await;
            sleep(grace).await;
        };
        tokio::select! {
            served = &mut both => served,
            () = end_of_grace => {
                cut.cancel();
                both.await
            }
        }
    }

    /// As [`serve`](Self::serve), in a task of its own.
    #[must_use]
    pub fn start(self, router: Router) -> ListenerHandle {
        let shutdown = CancellationToken::new();
        let local_addr = self.local_addr;
        let stats = self.stats();
        let cut = self.shared.cut.clone();
        let task = tokio::spawn(self.serve(router, shutdown.clone()));
        ListenerHandle {
            local_addr,
            stats,
            shutdown,
            cut,
            task: Some(task),
        }
    }
}

/// A listener at work. Dropping it ends the listener and its connections.
#[derive(Debug)]
pub struct ListenerHandle {
    local_addr: SocketAddr,
    stats: Arc<ListenerStats>,
    shutdown: CancellationToken,
    cut: CancellationToken,
    task: Option<JoinHandle<Result<(), tonic::transport::Error>>>,
}

/// How the task of a listener ended, if not well.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// tonic reported an error.
    #[error("serve")]
    Serve(#[from] tonic::transport::Error),
    /// The task panicked or was aborted.
    #[error("listener task")]
    Task(#[from] JoinError),
}

impl ListenerHandle {
    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> &ListenerStats {
        &self.stats
    }

    /// Cancelled when the listener is told to stop: streams watch it and end.
    #[must_use]
    pub fn shutdown_token(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Refuses new connections, lets open calls finish within the grace period, and waits for the end.
    ///
    /// # Errors
    /// [`StopError`] if the listener ended badly.
    pub async fn stop(mut self) -> Result<(), StopError> {
        self.shutdown.cancel();
        match self.task.take() {
            Some(task) => Ok(task.await??),
            None => Ok(()),
        }
    }
}

impl Drop for ListenerHandle {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(task) = &self.task {
            // Not stopped in good order: nothing may go on without its handle.
            task.abort();
            self.cut.cancel();
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts until told to stop. No error of accept or of a handshake ends it.
async fn accept_loop(
    socket: TcpListener,
    shared: Arc<Shared>,
    ready: mpsc::Sender<io::Result<PeerIo>>,
    stop: CancellationToken,
) {
    let mut log = RefusalLog::default();
    let mut handshakes: JoinSet<Result<(), Refusal>> = JoinSet::new();
    let mut order: VecDeque<(SocketAddr, AbortHandle)> = VecDeque::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            Some(ended) = handshakes.join_next(), if !handshakes.is_empty() => {
                match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(refusal)) => log.refused(&shared, refusal),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::error!(%error, "handshake task"),
                }
            }
            accepted = socket.accept() => {
                match accepted {
                    Ok((tcp, address)) => {
                        shared.stats.accepted.fetch_add(1, Ordering::Relaxed);
                        let Ok(place) = Arc::clone(&shared.places).try_acquire_owned() else {
                            drop(tcp);
                            log.refused(&shared, Refusal {
                                address,
                                cause: RefusalCause::TooManyConnections,
                            });
                            continue;
                        };
                        order.retain(|(_, handshake)| !handshake.is_finished());
                        if order.len() >= shared.limits.handshakes_max
                            && let Some((address, oldest)) = order.pop_front()
                        {
                            oldest.abort();
                            log.refused(&shared, Refusal {
                                address,
                                cause: RefusalCause::TooManyHandshakes,
                            });
                        }
                        let handshake = establish(tcp, address, Arc::clone(&shared), place, ready.clone());
                        order.push_back((address, handshakes.spawn(handshake)));
                    }
                    Err(error) => {
                        shared.stats.accept_errors.fetch_add(1, Ordering::Relaxed);
                        log.accept_failed(&error);
                        tokio::select! {
                            () = stop.cancelled() => return,
                            () = sleep(ACCEPT_PAUSE) => {}
                        }
                    }
                }
            }
        }
    }
}

/// From an accepted socket to a connection that tonic serves.
async fn establish(
    tcp: TcpStream,
    address: SocketAddr,
    shared: Arc<Shared>,
    place: OwnedSemaphorePermit,
    ready: mpsc::Sender<io::Result<PeerIo>>,
) -> Result<(), Refusal> {
    let refused = |cause| Refusal { address, cause };
    let deadline = shared.limits.handshake_deadline;
    let (stream, info) =
        match timeout_at(Instant::now() + deadline, handshake(tcp, address, &shared)).await {
            Ok(shaken) => shaken.map_err(refused)?,
            Err(_) => return Err(refused(RefusalCause::HandshakeTimeout(deadline))),
        };
    let preface_deadline = Instant::now() + shared.limits.preface_deadline;
    let io = PeerIo::new(stream, info, preface_deadline, place);
    // The receiver is gone only when the listener stops, and then this connection is too late.
    if ready.send(Ok(io)).await.is_ok() {
        shared.stats.established.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

async fn handshake(
    tcp: TcpStream,
    address: SocketAddr,
    shared: &Shared,
) -> Result<(Stream, PeerInfo), RefusalCause> {
    tcp.set_nodelay(true).map_err(RefusalCause::Io)?;
    let mut info = PeerInfo {
        address,
        certificate: None,
        chain: Arc::new([]),
        tls: false,
        cipher_suite: None,
        sni: None,
        cut: shared.cut.child_token(),
    };
    let reloader = match &shared.security {
        ListenerSecurity::PlainLoopback => return Ok((Stream::Plain(tcp), info)),
        ListenerSecurity::Tls(reloader) => reloader,
    };
    let start = LazyConfigAcceptor::new(Acceptor::default(), tcp)
        .await
        .map_err(tls_cause)?;
    info.sni = start.client_hello().server_name().map(Arc::from);
    let stream = start
        .into_stream(reloader.current().server_config())
        .await
        .map_err(tls_cause)?;
    let session = stream.get_ref().1;
    if session.alpn_protocol() != Some(b"h2") {
        return Err(RefusalCause::Tls(TlsFault::NoHttp2));
    }
    if let Some(chain) = session.peer_certificates()
        && let Some(leaf) = chain.first()
    {
        let certificate = PeerCertificate::from_der(leaf).map_err(RefusalCause::Certificate)?;
        info.certificate = Some(Arc::new(certificate));
        info.chain = chain.iter().map(|der| der.clone().into_owned()).collect();
    }
    info.tls = true;
    info.cipher_suite = session
        .negotiated_cipher_suite()
        .and_then(|suite| suite.suite().as_str());
    Ok((Stream::Tls(Box::new(stream)), info))
}

fn tls_cause(error: io::Error) -> RefusalCause {
    if let Some(tls) = find_tls(&error) {
        return RefusalCause::Tls(TlsFault::Protocol(tls.clone()));
    }
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return RefusalCause::Tls(TlsFault::Closed);
    }
    RefusalCause::Io(error)
}

/// Counts and reports refusals, and keeps a flood of them from flooding the log.
#[derive(Default)]
struct RefusalLog {
    period: Option<Instant>,
    lines: u64,
}

impl RefusalLog {
    fn refused(&mut self, shared: &Shared, refusal: Refusal) {
        let counter = match &refusal.cause {
            RefusalCause::TooManyConnections => &shared.stats.refused_over_limit,
            RefusalCause::HandshakeTimeout(_)
            | RefusalCause::TooManyHandshakes
            | RefusalCause::Tls(_)
            | RefusalCause::Io(_)
            | RefusalCause::Certificate(_) => &shared.stats.handshakes_failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if self.may_log() {
            tracing::warn!(
                address = %refusal.address,
                cause = %refusal.cause,
                "connection refused"
            );
        }
        if let Some(refusals) = &shared.refusals
            && let Err(error) = refusals.try_send(refusal)
        {
            tracing::debug!(%error, "report a refused connection");
        }
    }

    fn accept_failed(&mut self, error: &io::Error) {
        if self.may_log() {
            tracing::error!(%error, "accept a connection");
        }
    }

    fn may_log(&mut self) -> bool {
        let now = Instant::now();
        if self
            .period
            .is_none_or(|start| now.duration_since(start) >= LOG_PERIOD)
        {
            let hidden = self.lines.saturating_sub(LOG_LINES_MAX);
            if hidden > 0 {
                tracing::warn!(hidden, "more connections were refused than were logged");
            }
            self.period = Some(now);
            self.lines = 0;
        }
        self.lines = self.lines.saturating_add(1);
        self.lines <= LOG_LINES_MAX
    }
}
