//! `ferrymq.channel.v1.Channel`: senders bind here. Who they are is checked before anything else is answered.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ferrymq_authority::Identity;
use ferrymq_channel::{
    Close, CloseReason, PROTOCOL_VERSION, ReceiverConfig, ReceiverFrame, ReceiverInput,
    ReceiverMca, SenderFrame,
};
use ferrymq_objects::{Channel, ReceiverChannel};
use ferrymq_proto::channel_v1 as pb;
use ferrymq_transport::PeerInfo;
use ferrymq_types::{ChannelName, QueueManagerName, ReasonCode};
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{error, warn};

use crate::channels::{
    self, Assembler, ChannelInitiator, Conversation, PING_BYTES_MAX, close_to_wire,
    receiver_to_wire,
};
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

/// Who wants which channel, as a bind or a ping says.
struct Caller<'a> {
    channel: &'a ChannelName,
    queue_manager: &'a QueueManagerName,
    partner: Option<&'a QueueManagerName>,
}

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

    async fn ping(
        &self,
        request: Request<pb::PingRequest>,
    ) -> Result<Response<pb::PingResponse>, Status> {
        use pb::ping_response::Result as Answer;
        let peer = request.extensions().get::<PeerInfo>().cloned();
        let peer = peer.ok_or_else(|| Status::internal("the listener gave no peer"))?;
        let result = match ping(&self.node, &peer, request.into_inner()) {
            Ok(data) => Answer::Data(data),
            Err(close) => Answer::Close(close_to_wire(close)),
        };
        Ok(Response::new(pb::PingResponse {
            result: Some(result),
        }))
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
    let caller = Caller {
        channel: &bind.channel,
        queue_manager: &bind.queue_manager,
        partner: bind.partner.as_ref(),
    };
    let (initiator, definition) = admit(node, &caller, &peer)?;
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

/// Sends the data of a ping back, or says why a bind would be refused.
fn ping(node: &Arc<Node>, peer: &PeerInfo, request: pb::PingRequest) -> Result<Bytes, Close> {
    let bad = |what: &str| Close::new(CloseReason::ProtocolError, format!("{what} is not valid"));
    if request.version != PROTOCOL_VERSION {
        return Err(bad("the level of the protocol"));
    }
    if request.data.len() > PING_BYTES_MAX {
        return Err(bad("the length of the data"));
    }
    let channel = ChannelName::new(&request.channel).map_err(|_| bad("the channel's name"))?;
    let name = |text: &str| QueueManagerName::new(text).map_err(|_| bad("a queue manager's name"));
    let queue_manager = name(&request.queue_manager)?;
    let partner = match request.partner.as_str() {
        "" => None,
        partner => Some(name(partner)?),
    };
    let caller = Caller {
        channel: &channel,
        queue_manager: &queue_manager,
        partner: partner.as_ref(),
    };
    admit(node, &caller, peer)?;
    Ok(request.data)
}

/// Finds the queue manager and the channel that a bind is for, and checks that the caller may use it.
fn admit(
    node: &Arc<Node>,
    caller: &Caller<'_>,
    peer: &PeerInfo,
) -> Result<(Arc<ChannelInitiator>, ReceiverChannel), Close> {
    let refuse = |reason| Close::new(reason, ReasonCode::NOT_AUTHORIZED.to_string());
    let candidates = node.initiators_for(caller.partner);
    let found = candidates.into_iter().find_map(|initiator| {
        let channel = initiator
            .handle()
            .objects()
            .channels
            .get(caller.channel)
            .cloned()?;
        Some((initiator, channel))
    });
    let Some((initiator, channel)) = found else {
        warn!(
            id = "AMQ9519E", address = %peer.address, channel = %caller.channel,
            partner = %caller.queue_manager, got = %security::subject(peer),
            "a sender asked for a channel that is not defined here"
        );
        return Err(Close::new(CloseReason::ChannelUnknown, "channel not found"));
    };
    let qmgr = initiator.queue_manager().clone();
    let Channel::Receiver(definition) = channel else {
        warn!(
            id = "AMQ9547E", qmgr = %qmgr, address = %peer.address, channel = %caller.channel,
            partner = %caller.queue_manager, "a sender asked for a channel that is no receiver"
        );
        return Err(Close::new(CloseReason::ChannelWrongType, "not a receiver"));
    };
    let authentication = definition.ssl_client_authentication;
    if let Err(why) = security::check_channel_peer(&definition.base, authentication, peer) {
        error!(
            id = "AMQ9636E", qmgr = %qmgr, address = %peer.address, channel = %caller.channel,
            partner = %caller.queue_manager, wanted = %definition.base.ssl_peer_name,
            got = %security::subject(peer), "a sender was refused: {why}"
        );
        return Err(refuse(CloseReason::NotAuthorized));
    }
    let objects = initiator.handle().objects();
    let partner = Identity::QueueManager(caller.queue_manager.as_str());
    // Message channels put with the queue manager's own authority: the user is looked at by BLOCKUSER alone.
    security::admit_by_rules(&objects, caller.channel, peer, partner, "", false)
        .map_err(|security::Blocked| refuse(CloseReason::NotAuthorized))?;
    if initiator.is_stopped(caller.channel) {
        return Err(Close::new(
            CloseReason::ChannelStopped,
            "the channel is stopped",
        ));
    }
    Ok((initiator, definition))
}
