//! `ferrymq.channel.v1.Channel`: senders bind here. Who they are is checked before anything else is answered.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ferrymq_channel::{
    Bind, Close, CloseReason, ReceiverConfig, ReceiverFrame, ReceiverInput, ReceiverMca,
    SenderFrame,
};
use ferrymq_objects::{Channel, ReceiverChannel};
use ferrymq_proto::channel_v1 as pb;
use ferrymq_transport::PeerInfo;
use ferrymq_types::ReasonCode;
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{error, warn};

use crate::channels::{self, Assembler, ChannelInitiator, Conversation, receiver_to_wire};
use crate::node::Node;
use crate::security;

/// How long a caller may take to send its bind.
const BIND_TIMEOUT: Duration = Duration::from_secs(10);

/// Frames that wait for the sender to read.
const FRAMES_MAX: usize = 64;

/// The service.
#[derive(Debug, Clone)]
pub(crate) struct ChannelService {
    node: Arc<Node>,
}

impl ChannelService {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }
}

type RunStream = Pin<Box<dyn Stream<Item = Result<pb::RunResponse, Status>> + Send>>;
type Responses = mpsc::Sender<Result<pb::RunResponse, Status>>;

#[tonic::async_trait]
impl pb::channel_server::Channel for ChannelService {
    type RunStream = RunStream;

    async fn run(
        &self,
        request: Request<Streaming<pb::RunRequest>>,
    ) -> Result<Response<Self::RunStream>, Status> {
        let peer = request.extensions().get::<PeerInfo>().cloned();
        let peer = peer.ok_or_else(|| Status::internal("the listener gave no peer"))?;
        let (responses, receiver) = mpsc::channel(FRAMES_MAX);
        let node = self.node.clone();
        let frames = request.into_inner();
        self.node.tasks().spawn(async move {
            if let Err(close) = converse(&node, peer, frames, &responses).await {
                let frame = receiver_to_wire(ReceiverFrame::Close(close));
                // A failure means that the caller is gone.
                drop(responses.send(Ok(frame)).await);
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

/// Runs a conversation, or says why there is none.
async fn converse(
    node: &Arc<Node>,
    peer: PeerInfo,
    mut frames: Streaming<pb::RunRequest>,
    responses: &Responses,
) -> Result<(), Close> {
    let mut assembler = Assembler::default();
    let protocol = |text: String| Close::new(CloseReason::ProtocolError, text);
    let first = tokio::time::timeout(BIND_TIMEOUT, frames.next())
        .await
        .map_err(|_| protocol("no bind came".to_owned()))?;
    let Some(Ok(first)) = first else {
        return Ok(());
    };
    let frame = assembler
        .take(first, node.clock().now())
        .map_err(|error| protocol(error.to_string()))?;
    let Some(SenderFrame::Bind(bind)) = frame else {
        return Err(protocol("the first frame must be a bind".to_owned()));
    };
    let (initiator, definition) = admit(node, &bind, &peer)?;
    let handle = initiator.handle();
    let config = ReceiverConfig::new(
        definition,
        &handle.objects(),
        peer.address.to_string(),
        peer.certificate
            .as_ref()
            .map(|c| c.subject.to_string())
            .unwrap_or_default(),
    );
    let machine = ReceiverMca::new(config);
    let (inputs, receiver) = mpsc::unbounded_channel();
    let (registration, status) = initiator.register(bind.channel.clone(), inputs, machine.status());
    let conversation = Conversation {
        machine,
        connection: handle.connect(),
        frames,
        assembler,
        responses: responses.clone(),
        inputs: receiver,
        status,
    };
    let first = ReceiverInput::FrameReceived(SenderFrame::Bind(bind));
    channels::run_receiver(conversation, first).await;
    drop(registration);
    Ok(())
}

/// Finds the queue manager and the channel that a bind is for, and checks that the caller may use it.
fn admit(
    node: &Arc<Node>,
    bind: &Bind,
    peer: &PeerInfo,
) -> Result<(Arc<ChannelInitiator>, ReceiverChannel), Close> {
    let refuse = |reason| Close::new(reason, ReasonCode::NOT_AUTHORIZED.to_string());
    let candidates = node.initiators_for(bind.partner.as_ref());
    let found = candidates.into_iter().find_map(|initiator| {
        let channel = initiator
            .handle()
            .objects()
            .channels
            .get(&bind.channel)
            .cloned()?;
        Some((initiator, channel))
    });
    let Some((initiator, channel)) = found else {
        warn!(
            id = "AMQ9519E", address = %peer.address, channel = %bind.channel,
            partner = %bind.queue_manager, got = %security::subject(peer),
            "a sender asked for a channel that is not defined here"
        );
        return Err(Close::new(CloseReason::ChannelUnknown, "channel not found"));
    };
    let qmgr = initiator.queue_manager().clone();
    let Channel::Receiver(definition) = channel else {
        warn!(
            id = "AMQ9547E", qmgr = %qmgr, address = %peer.address, channel = %bind.channel,
            partner = %bind.queue_manager, "a sender asked for a channel that is no receiver"
        );
        return Err(Close::new(CloseReason::ChannelWrongType, "not a receiver"));
    };
    let authentication = definition.ssl_client_authentication;
    if let Err(why) = security::check_channel_peer(&definition.base, authentication, peer) {
        error!(
            id = "AMQ9636E", qmgr = %qmgr, address = %peer.address, channel = %bind.channel,
            partner = %bind.queue_manager, wanted = %definition.base.ssl_peer_name,
            got = %security::subject(peer), "a sender was refused: {why}"
        );
        return Err(refuse(CloseReason::NotAuthorized));
    }
    if initiator.is_stopped(&bind.channel) {
        return Err(Close::new(
            CloseReason::ChannelStopped,
            "the channel is stopped",
        ));
    }
    Ok((initiator, definition))
}
