//! Runs one sending channel: performs the effects of its machine, in their order, and adds nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ferrymq_authority::PeerPattern;
use ferrymq_channel::{
    Address, Answer, AskId, ChannelState, SenderEffect, SenderInput, SenderMca, SenderTimer,
};
use ferrymq_objects::ChannelBase;
use ferrymq_proto::channel_v1 as pb;
use ferrymq_proto::channel_v1::channel_client::ChannelClient;
use ferrymq_tls::{ServerRule, TlsReloader};
use ferrymq_transport::{ConnectError, Target};
use ferrymq_types::Timestamp;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tracing::error;

use crate::channels::{StatusCell, report, wire};
use crate::handle::{Asked, Connection};

/// How long connecting and the TLS handshake may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a frame may wait for the partner to read.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Frames between the machine and the wire.
const FRAMES_MAX: usize = 64;

/// Opens connections to partners.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    /// The node's certificate; without it channels reach loopback addresses only.
    pub(crate) tls: Option<Arc<TlsReloader>>,
}

/// A conversation's stream.
struct Link {
    send: mpsc::Sender<pb::RunRequest>,
    receive: Streaming<pb::RunResponse>,
    connection: ferrymq_transport::Connection,
}

impl Link {
    /// Subject of the partner's certificate; empty without TLS.
    fn peer(&self) -> String {
        let certificate = self.connection.server().certificate.as_ref();
        certificate
            .map(|c| c.subject.to_string())
            .unwrap_or_default()
    }
}

/// Why there is no conversation.
pub(super) struct DialError {
    pub(super) text: String,
    refused: bool,
}

impl DialError {
    fn refused(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            refused: true,
        }
    }

    fn from_connect(error: ConnectError) -> Self {
        let refused = match &error {
            ConnectError::PeerRefused { .. } | ConnectError::Tls { .. } => true,
            ConnectError::Unreachable { .. }
            | ConnectError::PlainText { .. }
            | ConnectError::Timeout { .. } => false,
        };
        Self {
            text: wire::with_causes(&error),
            refused,
        }
    }
}

impl Dialer {
    /// Connects, with TLS where the channel asks for it.
    pub(super) async fn connect(
        &self,
        address: &Address,
        channel: &ChannelBase,
    ) -> Result<ferrymq_transport::Connection, DialError> {
        let tls = self.client_tls(channel)?;
        let target = Target {
            host: address.host.clone(),
            port: address.port,
        };
        ferrymq_transport::connect(&[target], tls.as_ref(), CONNECT_TIMEOUT)
            .await
            .map_err(DialError::from_connect)
    }

    async fn dial(self, address: Address, channel: ChannelBase) -> Result<Link, DialError> {
        let connection = self.connect(&address, &channel).await?;
        let (send, frames) = mpsc::channel(FRAMES_MAX);
        let mut client = ChannelClient::new(connection.channel())
            .max_decoding_message_size(wire::FRAME_BYTES_MAX)
            .max_encoding_message_size(wire::FRAME_BYTES_MAX);
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, client.run(ReceiverStream::new(frames)))
            .await
            .map_err(|_| DialError {
                text: format!("{address}: no answer"),
                refused: false,
            })?
            .map_err(|status| match connection.failure() {
                // With TLS 1.3 the partner's refusal of our certificate comes with the first call.
                Some(error) => DialError::from_connect(error),
                None => DialError {
                    text: format!("{address}: {}", wire::explain(&status)),
                    refused: false,
                },
            })?;
        Ok(Link {
            send,
            receive: stream.into_inner(),
            connection,
        })
    }

    /// SSLCIPH asks for TLS; SSLPEER says who the server must be.
    fn client_tls(
        &self,
        channel: &ChannelBase,
    ) -> Result<Option<ferrymq_tls::ClientTls>, DialError> {
        let pattern = PeerPattern::parse_attribute(&channel.ssl_peer_name)
            .map_err(|error| DialError::refused(format!("SSLPEER cannot be read: {error}")))?;
        if channel.ssl_cipher.is_empty() {
            return match pattern {
                None => Ok(None),
                Some(_) => Err(DialError::refused(
                    "SSLPEER is set, but SSLCIPH asks for no TLS",
                )),
            };
        }
        let tls = self.tls.as_ref().ok_or_else(|| {
            DialError::refused("SSLCIPH asks for TLS, but [tls] is not configured on this node")
        })?;
        let rule = pattern.map_or(ServerRule::AnyTrusted, ServerRule::Name);
        let client = tls.current().client(rule);
        client
            .map(Some)
            .map_err(|error| DialError::refused(error.to_string()))
    }
}

/// One sending channel.
pub(crate) struct SenderTask {
    pub(crate) machine: SenderMca,
    pub(crate) connection: Connection,
    pub(crate) dialer: Dialer,
    /// From operators, triggers and definitions.
    pub(crate) inputs: mpsc::UnboundedReceiver<SenderInput>,
    pub(crate) status: StatusCell,
}

type Answering = BoxFuture<'static, (AskId, Option<Answer>)>;

/// What the machine waits for.
struct Running {
    task: SenderTask,
    timers: BTreeMap<SenderTimer, Timestamp>,
    answers: FuturesUnordered<Answering>,
    asked: BTreeMap<AskId, Asked>,
    dialing: Option<BoxFuture<'static, Result<Link, DialError>>>,
    link: Option<Link>,
    /// The channel initiator lets go of a task when the definition is gone or the node stops: it ends when it is at rest.
    released: bool,
}

impl SenderTask {
    /// Runs until its inputs end.
    pub(crate) async fn run(self) {
        let mut running = Running {
            task: self,
            timers: BTreeMap::new(),
            answers: FuturesUnordered::new(),
            asked: BTreeMap::new(),
            dialing: None,
            link: None,
            released: false,
        };
        while let Some(input) = running.next().await {
            let mut effects = Vec::new();
            let now = running.task.connection.queue_manager().clock().now();
            running.task.machine.handle(now, input, &mut effects);
            for effect in effects {
                // A send that failed shows as the connection's end.
                running.perform(effect, now).await;
            }
            running.task.status.set(running.task.machine.status());
        }
    }
}

impl Running {
    async fn next(&mut self) -> Option<SenderInput> {
        loop {
            if self.released && self.at_rest() {
                return None;
            }
            let clock = self.task.connection.queue_manager().clock();
            let timer = self
                .timers
                .iter()
                .min_by_key(|(_, at)| **at)
                .map(|(t, at)| (*t, *at));
            let at = timer.map(|(_, at)| clock.instant(at));
            let wakeup = async {
                match at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                input = self.task.inputs.recv(), if !self.released => match input {
                    Some(input) => return Some(input),
                    None => self.released = true,
                },
                Some((ask, answer)) = self.answers.next(), if !self.answers.is_empty() => {
                    if let Some(asked) = self.asked.remove(&ask) {
                        asked.answered();
                    }
                    if let Some(result) = answer {
                        return Some(SenderInput::Answered { ask, result });
                    }
                }
                dialed = maybe(&mut self.dialing) => {
                    self.dialing = None;
                    return Some(match dialed {
                        Ok(link) => {
                            let peer = link.peer();
                            self.link = Some(link);
                            SenderInput::Connected { peer }
                        }
                        Err(DialError { text, refused }) => {
                            SenderInput::ConnectFailed { text, refused }
                        }
                    });
                }
                frame = receive(&mut self.link) => {
                    return Some(match frame {
                        Ok(frame) => SenderInput::FrameReceived(frame),
                        Err(text) => {
                            self.link = None;
                            SenderInput::Disconnected { text }
                        }
                    });
                }
                () = wakeup => {
                    if let Some((timer, _)) = timer {
                        self.timers.remove(&timer);
                        return Some(SenderInput::TimerFired(timer));
                    }
                }
            }
        }
    }

    fn at_rest(&self) -> bool {
        match self.task.machine.state() {
            ChannelState::Inactive | ChannelState::Stopped | ChannelState::Retrying => true,
            ChannelState::Starting
            | ChannelState::Binding
            | ChannelState::Running
            | ChannelState::Paused
            | ChannelState::Stopping => false,
        }
    }

    async fn perform(&mut self, effect: SenderEffect, now: Timestamp) {
        match effect {
            SenderEffect::Connect { address } => {
                self.link = None;
                let channel = self.task.machine.config().channel.base.clone();
                self.dialing = Some(self.task.dialer.clone().dial(address, channel).boxed());
            }
            SenderEffect::Send(frame) => {
                ferrymq_store::crash_point("channel.before_send");
                for frame in wire::sender_to_wire(frame, now) {
                    let Some(link) = &self.link else { return };
                    // A failure, or a partner that does not read, shows as the end of the stream.
                    let sent = tokio::time::timeout(SEND_TIMEOUT, link.send.send(frame)).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        self.close_stream();
                    }
                }
                ferrymq_store::crash_point("channel.after_send");
            }
            SenderEffect::Disconnect => {
                self.dialing = None;
                self.link = None;
            }
            SenderEffect::Ask { ask, request } => match self.task.connection.start(request).await {
                Ok((asked, answer)) => {
                    self.asked.insert(ask, asked);
                    self.answers
                        .push(async move { (ask, answer.await.ok()) }.boxed());
                }
                Err(failure) => {
                    self.answers
                        .push(async move { (ask, Some(Err(failure))) }.boxed());
                }
            },
            // Dropping it cancels; an answer that is under way still comes.
            SenderEffect::Cancel { ask } => drop(self.asked.remove(&ask)),
            SenderEffect::SetTimer { timer, at } => {
                self.timers.insert(timer, at);
            }
            SenderEffect::CancelTimer { timer } => {
                self.timers.remove(&timer);
            }
            SenderEffect::StateChanged(_) => self.task.status.set(self.task.machine.status()),
            SenderEffect::Report(event) => {
                let status = self.task.machine.status();
                report(
                    self.task.connection.queue_manager().name(),
                    &status.channel,
                    &status.connection_name,
                    &event,
                );
            }
        }
    }

    /// Ends what goes out; the end of what comes in follows and is the machine's input.
    fn close_stream(&mut self) {
        if let Some(link) = &mut self.link {
            link.send = mpsc::channel(1).0;
        }
    }
}

async fn maybe<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// The next frame of the partner, or how the connection ended.
async fn receive(link: &mut Option<Link>) -> Result<ferrymq_channel::ReceiverFrame, String> {
    let Some(link) = link else {
        return std::future::pending().await;
    };
    match link.receive.next().await {
        Some(Ok(frame)) => wire::receiver_from_wire(frame).map_err(|error| {
            error!(
                id = "AMQ9207E",
                "a partner sent a frame that cannot be read: {error}"
            );
            error.to_string()
        }),
        Some(Err(status)) => Err(match link.connection.failure() {
            Some(error) => wire::with_causes(&error),
            None => wire::explain(&status),
        }),
        None => Err("the partner closed the connection".to_owned()),
    }
}
