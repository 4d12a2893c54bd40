//! The calling half of what nodes say to each other.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{
    NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable,
};
use openraft::network::{
    Backoff, NetBackoff, NetSnapshot, NetStreamAppend, NetTransferLeader, NetVote, RPCOption,
    RaftNetworkFactory,
};
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendError, StreamAppendResult,
    TransferLeaderError, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;
use openraft::{OptionalSend, RPCTypes};
use tokio::io::AsyncReadExt as _;
use tonic::metadata::MetadataMap;
use tonic::{Code, Response, Status};

use ferrymq_proto::raft_v1 as wire;
use ferrymq_proto::storage_v1 as pb;

use crate::config::{Member, SNAPSHOT_CHUNK_BYTES};
use crate::peers::{PeerClient, Peers};
use crate::state::SnapshotFile;
use crate::types::{
    PeerNode, TypeConfig, Vote, entry_to_proto, log_id_from_proto, log_id_to_proto,
    stored_membership_to_proto, vote_from_proto, vote_to_proto, with_cause,
};

type RpcError = RPCError<TypeConfig>;

/// How long a snapshot waits for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// Makes connections to nodes.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    peers: Arc<Peers>,
}

impl Network {
    pub(crate) fn new(peers: Arc<Peers>) -> Self {
        Self { peers }
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Connection;

    async fn new_client(&mut self, target: u64, node: &PeerNode) -> Connection {
        Connection {
            peers: Arc::clone(&self.peers),
            member: Member {
                id: target,
                name: node.name.clone(),
                address: node.address.clone(),
            },
        }
    }
}

/// A connection to one node.
#[derive(Debug)]
pub(crate) struct Connection {
    peers: Arc<Peers>,
    member: Member,
}

fn unreachable(problem: impl ToString) -> RpcError {
    RPCError::Unreachable(Unreachable::from_string(problem))
}

fn broken(problem: impl ToString) -> RpcError {
    RPCError::Network(NetworkError::from_string(problem))
}

/// Whether a call failed before it was sent: the node was not reached at all.
pub(crate) fn was_not_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether the connection is the problem, not what was said over it: the other node's own words have no cause.
pub(crate) fn is_lost(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
}

/// Whether the other node refused the call as a matter of principle: who calls, or what.
pub(crate) fn was_refused(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::FailedPrecondition
            | Code::PermissionDenied
            | Code::InvalidArgument
            | Code::Unimplemented
    )
}

impl Connection {
    /// A client, if there is a connection in time.
    async fn client(&self, time: Duration) -> Result<PeerClient, RpcError> {
        let client = match tokio::time::timeout(time, self.peers.client(&self.member)).await {
            Ok(client) => client,
            Err(_) => Err("no connection in time".to_owned()),
        };
        client.map_err(|problem| {
            self.peers.note(self.member.id, Some(&problem));
            unreachable(problem)
        })
    }

    fn failed(&self, status: &Status) -> RpcError {
        let problem = with_cause(status);
        self.peers.note(self.member.id, Some(&problem));
        if is_lost(status) {
            self.peers.disconnect(self.member.id);
        }
        if was_not_sent(status) || was_refused(status) {
            unreachable(problem)
        } else {
            broken(problem)
        }
    }

    fn timed_out(&self, action: RPCTypes, timeout: Duration) -> RpcError {
        self.peers.note(self.member.id, Some("no answer in time"));
        RPCError::Timeout(Timeout {
            action,
            id: self.peers.identity.node,
            target: self.member.id,
            timeout,
        })
    }

    fn check(&self, metadata: &MetadataMap) -> Result<(), RpcError> {
        self.peers
            .check_answer(self.member.id, metadata)
            .map_err(unreachable)
    }

    /// Waits for an answer, in time and from the right node.
    async fn answer<T>(
        &self,
        action: RPCTypes,
        timeout: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, RpcError> {
        match tokio::time::timeout(timeout, call).await {
            Ok(Ok(response)) => {
                self.check(response.metadata())?;
                Ok(response.into_inner())
            }
            Ok(Err(status)) => Err(self.failed(&status)),
            Err(_) => Err(self.timed_out(action, timeout)),
        }
    }

    fn missing(&self, what: &str) -> RpcError {
        broken(format!(
            "the answer of node {} has no {what}",
            self.member.id
        ))
    }

    fn vote_response(
        &self,
        response: wire::VoteResponse,
    ) -> Result<VoteResponse<TypeConfig>, RpcError> {
        let vote = response.vote.ok_or_else(|| self.missing("vote"))?;
        Ok(VoteResponse {
            vote: vote_from_proto(&vote),
            vote_granted: response.granted,
            last_log_id: response.last.as_ref().map(log_id_from_proto),
        })
    }

    /// Reads an answer to entries. An answer that takes back what was confirmed is not passed on (invariant R4).
    fn appended(
        &self,
        response: wire::StreamAppendResponse,
    ) -> Result<StreamAppendResult<TypeConfig>, RpcError> {
        use wire::stream_append_response::Result as Answer;

        match response.result.ok_or_else(|| self.missing("result"))? {
            Answer::Matched(matched) => {
                let matched = matched.log_id.as_ref().map(log_id_from_proto);
                self.peers.note_matched(self.member.id, matched);
                Ok(Ok(matched))
            }
            Answer::Conflict(at) => {
                let at = log_id_from_proto(&at);
                if self.peers.has_lost(self.member.id, &at) {
                    let problem = format!(
                        "node {} lacks entry {at}, which it had confirmed: its data is damaged or an older copy; remove it from the \
                         cluster and let the machine join with an empty directory under a node id that was never used",
                        self.member.id
                    );
                    self.peers.note(self.member.id, Some(&problem));
                    return Err(unreachable(problem));
                }
                Ok(Err(StreamAppendError::Conflict(at)))
            }
            Answer::HigherVote(vote) => {
                Ok(Err(StreamAppendError::HigherVote(vote_from_proto(&vote))))
            }
        }
    }

    async fn send_snapshot(
        &self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, SnapshotFile>,
    ) -> Result<SnapshotResponse<TypeConfig>, RpcError> {
        let (file, length) = snapshot.snapshot.reader().map_err(broken)?;
        let description = wire::SnapshotDescription {
            vote: Some(vote_to_proto(&vote)),
            last: snapshot.meta.last_log_id.as_ref().map(log_id_to_proto),
            membership: Some(stored_membership_to_proto(&snapshot.meta.last_membership)),
            length,
        };
        let first = wire::InstallSnapshotRequest {
            part: Some(wire::install_snapshot_request::Part::Description(
                description,
            )),
        };
        // A read error ends the stream early; the receiver sees that bytes are missing and refuses.
        let chunks = stream::unfold(tokio::fs::File::from_std(file), |mut file| async move {
            let mut chunk = vec![0; SNAPSHOT_CHUNK_BYTES];
            let mut filled = 0;
            while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match file.read(rest).await {
                    Ok(0) => break,
                    Ok(n) => filled = filled.saturating_add(n),
                    Err(error) => {
                        tracing::error!(%error, "cannot read the snapshot");
                        return None;
                    }
                }
            }
            chunk.truncate(filled);
            let part = wire::install_snapshot_request::Part::Chunk(Bytes::from(chunk));
            (filled > 0).then_some((wire::InstallSnapshotRequest { part: Some(part) }, file))
        });
        let parts = stream::iter([first]).chain(chunks);
        let response = self
            .client(CONNECT_PATIENCE)
            .await?
            .install_snapshot(parts)
            .await
            .map_err(|status| self.failed(&status))?;
        self.check(response.metadata())?;
        let vote = response
            .into_inner()
            .vote
            .ok_or_else(|| self.missing("vote"))?;
        Ok(SnapshotResponse::new(vote_from_proto(&vote)))
    }
}

pub(crate) fn append_to_proto(
    request: &AppendEntriesRequest<TypeConfig>,
) -> wire::StreamAppendRequest {
    wire::StreamAppendRequest {
        vote: Some(vote_to_proto(&request.vote)),
        previous: request.prev_log_id.as_ref().map(log_id_to_proto),
        entries: request.entries.iter().map(entry_to_proto).collect(),
        leader_commit: request.leader_commit.as_ref().map(log_id_to_proto),
    }
}

impl NetStreamAppend<TypeConfig> for Connection {
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<
        's,
        Result<BoxStream<'s, Result<StreamAppendResult<TypeConfig>, RpcError>>, RpcError>,
    >
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        let this = &*self;
        async move {
            let patience = option.soft_ttl();
            let sent = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&sent);
            let requests = input.map(move |request| {
                counted.fetch_add(1, Ordering::Relaxed);
                append_to_proto(&request)
            });
            let mut client = this.client(patience).await?;
            let call = client.stream_append(requests);
            let answers = this.answer(RPCTypes::AppendEntries, patience, call).await?;
            let answers = stream::unfold(Some((answers, 0_u64)), move |state| {
                let sent = Arc::clone(&sent);
                async move {
                    let (mut answers, received) = state?;
                    loop {
                        let waiting = sent.load(Ordering::Relaxed) > received;
                        match tokio::time::timeout(patience, answers.next()).await {
                            Ok(Some(Ok(answer))) => {
                                let result = this.appended(answer);
                                let goes_on = matches!(result, Ok(Ok(_)));
                                if result.is_ok() {
                                    this.peers.note(this.member.id, None);
                                }
                                let next = (answers, received.saturating_add(1));
                                return Some((result, goes_on.then_some(next)));
                            }
                            Ok(Some(Err(status))) => {
                                return Some((Err(this.failed(&status)), None));
                            }
                            Ok(None) => return None,
                            // Something was under way all the time, and no answer came.
                            Err(_) if waiting => {
                                let error = this.timed_out(RPCTypes::AppendEntries, patience);
                                return Some((Err(error), None));
                            }
                            Err(_) => {}
                        }
                    }
                }
            });
            Ok(answers.boxed() as BoxStream<'s, _>)
        }
        .boxed()
    }
}

impl NetVote<TypeConfig> for Connection {
    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RpcError> {
        let mut client = self.client(option.soft_ttl()).await?;
        let call = client.vote(vote_request(&rpc));
        let response = self.answer(RPCTypes::Vote, option.soft_ttl(), call).await?;
        self.vote_response(response)
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RpcError> {
        let mut client = self.client(option.soft_ttl()).await?;
        let call = client.pre_vote(wire::PreVoteRequest {
            request: Some(vote_request(&rpc)),
        });
        let response = self.answer(RPCTypes::Vote, option.soft_ttl(), call).await?;
        self.vote_response(response.response.ok_or_else(|| self.missing("response"))?)
    }
}

fn vote_request(rpc: &VoteRequest<TypeConfig>) -> wire::VoteRequest {
    wire::VoteRequest {
        vote: Some(vote_to_proto(&rpc.vote)),
        last: rpc.last_log_id.as_ref().map(log_id_to_proto),
        leadership_transfer: rpc.leadership_transfer,
    }
}

impl NetSnapshot<TypeConfig> for Connection {
    type SnapshotData = SnapshotFile;

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, SnapshotFile>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let timeout = option.soft_ttl();
        let sending = tokio::time::timeout(timeout, self.send_snapshot(vote, snapshot));
        tokio::select! {
            closed = cancel => Err(StreamingError::Closed(closed)),
            sent = sending => match sent {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(RPCError::Unreachable(e))) => Err(StreamingError::Unreachable(e)),
                Ok(Err(RPCError::Timeout(e))) => Err(StreamingError::Timeout(e)),
                Ok(Err(RPCError::Network(e))) => Err(StreamingError::Network(e)),
                Ok(Err(RPCError::RemoteError(e))) => Err(StreamingError::Network(NetworkError::from_string(e))),
                Err(_) => match self.timed_out(RPCTypes::InstallSnapshot, timeout) {
                    RPCError::Timeout(e) => Err(StreamingError::Timeout(e)),
                    e => Err(StreamingError::Network(NetworkError::from_string(e))),
                },
            },
        }
    }
}

impl NetTransferLeader<TypeConfig> for Connection {
    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RpcError> {
        use wire::transfer_leader_response::Refused;

        let mut client = self.client(option.soft_ttl()).await?;
        let call = client.transfer_leader(wire::TransferLeaderRequest {
            from: Some(vote_to_proto(request.from_leader())),
            to: *request.to_node_id(),
            last: request.last_log_id().map(log_id_to_proto),
        });
        let response = self
            .answer(RPCTypes::TransferLeader, option.soft_ttl(), call)
            .await?;
        let vote = |vote: Option<pb::RaftVote>| {
            vote.as_ref()
                .map(vote_from_proto)
                .ok_or_else(|| self.missing("vote"))
        };
        Ok(match response.refused {
            None => Ok(()),
            Some(Refused::VoteChanged(changed)) => Err(TransferLeaderError::VoteChanged {
                expected: vote(changed.expected)?,
                actual: vote(changed.actual)?,
            }),
            Some(Refused::LogNotFlushed(behind)) => Err(TransferLeaderError::LogNotFlushed {
                expected: behind.expected.as_ref().map(log_id_from_proto),
                actual: behind.actual.as_ref().map(log_id_from_proto),
            }),
        })
    }
}

impl NetBackoff<TypeConfig> for Connection {
    fn backoff(&self) -> Option<Backoff> {
        None
    }
}
