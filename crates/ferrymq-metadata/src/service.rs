//! The answering half of what nodes say to each other.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use openraft::raft::{AppendEntriesRequest, StreamAppendError, StreamAppendResult};
use openraft::storage::{Snapshot, SnapshotMeta};
use openraft::vote::RaftLeaderId as _;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Response, Status, Streaming};

use ferrymq_proto::raft_v1 as wire;
use ferrymq_proto::raft_v1::raft_service_server::{RaftService, RaftServiceServer};
use ferrymq_proto::storage::FormatError;
use ferrymq_proto::storage_v1 as pb;

use crate::codec;
use crate::config::{COMMAND_BYTES_MAX, PEER_MESSAGE_BYTES_MAX, SNAPSHOT_BYTES_MAX};
use crate::handle::Inner;
use crate::identity::IdentityProblem;
use crate::peers::{CLUSTER, INSTANCE, Introduced, NODE, TARGET, TARGET_INSTANCE};
use crate::propose::{NotLeading, Taken};
use crate::types::{
    Entry, LogId, TypeConfig, Vote, entry_from_proto, log_id_from_proto, log_id_to_proto,
    stored_membership_from_proto, stored_membership_to_proto, vote_from_proto, vote_to_proto,
    with_cause,
};

/// What other nodes call. Mounted on the peer listener.
#[derive(Debug)]
pub struct PeerService {
    inner: Arc<Inner>,
}

/// The service as a server that a tonic router takes.
pub type PeerServer = RaftServiceServer<PeerService>;

pub(crate) fn server(inner: Arc<Inner>) -> PeerServer {
    RaftServiceServer::new(PeerService { inner })
        .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
        .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
}

fn malformed(error: &FormatError) -> Status {
    Status::invalid_argument(with_cause(error))
}

fn missing(field: &'static str) -> FormatError {
    FormatError::Missing(field)
}

fn vote(vote: Option<pb::RaftVote>) -> Result<Vote, FormatError> {
    vote.as_ref().map(vote_from_proto).ok_or(missing("vote"))
}

fn log_id(id: Option<pb::RaftLogId>) -> Option<LogId> {
    id.as_ref().map(log_id_from_proto)
}

/// Reads entries, and checks what Raft takes for granted: they follow each other, and none is of a later term than the leader's.
pub(crate) fn append_from_proto(
    request: wire::StreamAppendRequest,
) -> Result<AppendEntriesRequest<TypeConfig>, FormatError> {
    let vote = vote(request.vote)?;
    let previous = log_id(request.previous);
    let entries = request
        .entries
        .into_iter()
        .map(entry_from_proto)
        .collect::<Result<Vec<Entry>, _>>()?;
    let mut before = previous;
    for entry in &entries {
        let expected = before.map_or(Some(0), |id| id.index.checked_add(1));
        let term = before.map_or(0, |id| id.leader_id.term);
        if Some(entry.log_id.index) != expected
            || entry.log_id.leader_id.term < term
            || entry.log_id.leader_id.term > vote.leader_id.term()
        {
            return Err(FormatError::Value {
                field: "entries",
                value: format!("{} out of order", entry.log_id),
            });
        }
        before = Some(entry.log_id);
    }
    Ok(AppendEntriesRequest {
        vote,
        prev_log_id: previous,
        entries,
        leader_commit: log_id(request.leader_commit),
    })
}

fn append_to_proto(result: StreamAppendResult<TypeConfig>) -> wire::StreamAppendResponse {
    use wire::stream_append_response::Result as Answer;

    let result = match result {
        Ok(matched) => Answer::Matched(wire::Matched {
            log_id: matched.as_ref().map(log_id_to_proto),
        }),
        Err(StreamAppendError::Conflict(at)) => Answer::Conflict(log_id_to_proto(&at)),
        Err(StreamAppendError::HigherVote(vote)) => Answer::HigherVote(vote_to_proto(&vote)),
    };
    wire::StreamAppendResponse {
        result: Some(result),
    }
}

fn vote_request(
    request: wire::VoteRequest,
) -> Result<openraft::raft::VoteRequest<TypeConfig>, Status> {
    Ok(openraft::raft::VoteRequest {
        vote: vote(request.vote).map_err(|e| malformed(&e))?,
        last_log_id: log_id(request.last),
        leadership_transfer: request.leadership_transfer,
    })
}

fn vote_response(response: &openraft::raft::VoteResponse<TypeConfig>) -> wire::VoteResponse {
    wire::VoteResponse {
        vote: Some(vote_to_proto(&response.vote)),
        granted: response.vote_granted,
        last: response.last_log_id.as_ref().map(log_id_to_proto),
    }
}

/// Raft has stopped on this node.
fn stopped(error: impl ToString) -> Status {
    Status::unavailable(format!("Raft has stopped: {}", error.to_string()))
}

impl PeerService {
    /// Whether the caller is who it says, and means this node.
    fn admit<T>(&self, request: &Request<T>) -> Result<Introduced, Status> {
        let identity = &self.inner.peers.identity;
        let refuse = |reason: &str, who: Option<Introduced>| {
            let node = who.map(|w| w.node);
            tracing::warn!(node, reason, "refused a call from another node");
            Status::permission_denied("not authorised")
        };
        let Some(who) = Introduced::read(request.metadata(), &identity.cluster) else {
            return Err(refuse("it is not of this cluster", None));
        };
        let Some(member) = self
            .inner
            .member(who.node)
            .filter(|m| m.id != identity.node)
        else {
            return Err(refuse(
                "no other node of this cluster has its number",
                Some(who),
            ));
        };
        self.inner
            .peers
            .network()
            .admit(&member, request.extensions())
            .map_err(|reason| refuse(&reason, Some(who)))?;
        let target = request
            .metadata()
            .get(TARGET)
            .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if target != Some(identity.node) {
            return Err(Status::failed_precondition(format!(
                "this is node {}",
                identity.node
            )));
        }
        let meant = request.metadata().get(TARGET_INSTANCE);
        if meant.is_some_and(|m| m.as_bytes() != hex::encode(identity.instance).as_bytes()) {
            // This directory was emptied or replaced: what its node confirmed or voted before is forgotten (invariant R4).
            let problem = IdentityProblem::Replaced {
                node: identity.node,
            };
            tracing::error!(caller = who.node, %problem, "another node knows this one differently");
            return Err(Status::failed_precondition(problem.to_string()));
        }
        identity
            .recognise(who.node, who.instance)
            .map_err(|problem| {
                tracing::error!(node = who.node, %problem, "refused a call from another node");
                Status::failed_precondition(problem.to_string())
            })?;
        Ok(who)
    }

    /// An answer that says who gives it.
    fn introduced<T>(&self, message: T) -> Result<Response<T>, Status> {
        let identity = &self.inner.peers.identity;
        let text = |text: String| {
            text.parse::<AsciiMetadataValue>()
                .map_err(|_| Status::internal("an identity does not fit into a header"))
        };
        let mut response = Response::new(message);
        let metadata = response.metadata_mut();
        metadata.insert(CLUSTER, text(identity.cluster.clone())?);
        metadata.insert(NODE, identity.node.into());
        metadata.insert(INSTANCE, text(hex::encode(identity.instance))?);
        Ok(response)
    }

    /// Receives a snapshot into a file and checks it.
    async fn receive(
        &self,
        description: &wire::SnapshotDescription,
        mut parts: Streaming<wire::InstallSnapshotRequest>,
    ) -> Result<ReceivedSnapshot, Status> {
        let unavailable = |e: std::io::Error| Status::unavailable(with_cause(&e));
        if description.length > SNAPSHOT_BYTES_MAX {
            return Err(Status::resource_exhausted(format!(
                "a snapshot of more than {SNAPSHOT_BYTES_MAX} bytes"
            )));
        }
        let membership = description.membership.clone().unwrap_or_default();
        let meta = SnapshotMeta {
            last_log_id: log_id(description.last),
            last_membership: stored_membership_from_proto(membership).map_err(|e| malformed(&e))?,
        };
        let mut file = self.inner.snapshots.create().map_err(unavailable)?;
        let mut received = 0_u64;
        while let Some(request) = parts.message().await? {
            let Some(wire::install_snapshot_request::Part::Chunk(chunk)) = request.part else {
                return Err(malformed(&missing("chunk")));
            };
            received = received.saturating_add(chunk.len() as u64);
            if received > description.length {
                return Err(Status::invalid_argument("more bytes than announced"));
            }
            file = tokio::task::spawn_blocking(move || file.write(&chunk).map(|()| file))
                .await
                .map_err(stopped)?
                .map_err(unavailable)?;
        }
        if received != description.length {
            return Err(Status::invalid_argument("fewer bytes than announced"));
        }
        let snapshots = Arc::clone(&self.inner.snapshots);
        let expected = meta.clone();
        tokio::task::spawn_blocking(move || {
            snapshots
                .check(&file, expected.last_log_id, &expected.last_membership)
                .map(|()| Snapshot {
                    meta,
                    snapshot: file,
                })
        })
        .await
        .map_err(stopped)?
        .map_err(|e| Status::invalid_argument(with_cause(&e)))
    }
}

/// Entries, if they can be read.
fn readable(
    inner: &Inner,
    request: Result<wire::StreamAppendRequest, Status>,
) -> Option<AppendEntriesRequest<TypeConfig>> {
    let request = match request {
        Ok(request) => request,
        Err(status) => {
            tracing::debug!(%status, "a stream of entries has ended");
            return None;
        }
    };
    match append_from_proto(request) {
        Ok(request) => {
            inner.peers.heard_leader();
            Some(request)
        }
        Err(error) => {
            let error = with_cause(&error);
            tracing::error!(error, "a leader sent entries that make no sense");
            None
        }
    }
}

type ReceivedSnapshot =
    openraft::type_config::alias::SnapshotOf<TypeConfig, crate::state::SnapshotFile>;

fn redirect(leader: Option<u64>) -> wire::Redirect {
    wire::Redirect {
        leader: leader.unwrap_or(0),
    }
}

#[tonic::async_trait]
impl RaftService for PeerService {
    type StreamAppendStream =
        Pin<Box<dyn Stream<Item = Result<wire::StreamAppendResponse, Status>> + Send>>;

    async fn stream_append(
        &self,
        request: Request<Streaming<wire::StreamAppendRequest>>,
    ) -> Result<Response<Self::StreamAppendStream>, Status> {
        self.admit(&request)?;
        let inner = Arc::clone(&self.inner);
        // What cannot be read ends the stream: the leader sends it again, or tells its operator.
        let requests = request
            .into_inner()
            .scan(inner, |inner, request| ready(readable(inner, request)));
        let results = self
            .inner
            .raft
            .stream_append(requests)
            .map(|result| result.map(append_to_proto).map_err(stopped))
            .take_until(self.inner.stopping.clone().cancelled_owned());
        self.introduced(Box::pin(results))
    }

    async fn vote(
        &self,
        request: Request<wire::VoteRequest>,
    ) -> Result<Response<wire::VoteResponse>, Status> {
        self.admit(&request)?;
        let request = vote_request(request.into_inner())?;
        let response = self.inner.raft.vote(request).await.map_err(stopped)?;
        self.introduced(vote_response(&response))
    }

    async fn pre_vote(
        &self,
        request: Request<wire::PreVoteRequest>,
    ) -> Result<Response<wire::PreVoteResponse>, Status> {
        self.admit(&request)?;
        let request = request
            .into_inner()
            .request
            .ok_or_else(|| malformed(&missing("request")))?;
        let request = vote_request(request)?;
        let response = self.inner.raft.pre_vote(request).await.map_err(stopped)?;
        self.introduced(wire::PreVoteResponse {
            response: Some(vote_response(&response)),
        })
    }

    async fn transfer_leader(
        &self,
        request: Request<wire::TransferLeaderRequest>,
    ) -> Result<Response<wire::TransferLeaderResponse>, Status> {
        use openraft::raft::TransferLeaderError;
        use wire::transfer_leader_response::Refused;

        self.admit(&request)?;
        let request = request.into_inner();
        let request = openraft::raft::TransferLeaderRequest::new(
            vote(request.from).map_err(|e| malformed(&e))?,
            request.to,
            log_id(request.last),
        );
        let answer = self
            .inner
            .raft
            .handle_transfer_leader(request)
            .await
            .map_err(stopped)?;
        self.introduced(wire::TransferLeaderResponse {
            refused: answer.err().map(|refused| match refused {
                TransferLeaderError::VoteChanged { expected, actual } => {
                    Refused::VoteChanged(wire::VoteChanged {
                        expected: Some(vote_to_proto(&expected)),
                        actual: Some(vote_to_proto(&actual)),
                    })
                }
                TransferLeaderError::LogNotFlushed { expected, actual } => {
                    Refused::LogNotFlushed(wire::LogNotFlushed {
                        expected: expected.as_ref().map(log_id_to_proto),
                        actual: actual.as_ref().map(log_id_to_proto),
                    })
                }
            }),
        })
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<wire::InstallSnapshotRequest>>,
    ) -> Result<Response<wire::InstallSnapshotResponse>, Status> {
        self.admit(&request)?;
        let Ok(_permit) = self.inner.snapshots_received.try_acquire() else {
            return Err(Status::resource_exhausted(
                "another snapshot is being received",
            ));
        };
        let mut parts = request.into_inner();
        let description = match parts.message().await?.and_then(|first| first.part) {
            Some(wire::install_snapshot_request::Part::Description(description)) => description,
            Some(wire::install_snapshot_request::Part::Chunk(_)) | None => {
                return Err(malformed(&missing("description")));
            }
        };
        let vote = vote(description.vote).map_err(|e| malformed(&e))?;
        let stopping = self.inner.stopping.cancelled();
        let snapshot = tokio::select! {
            received = self.receive(&description, parts) => received?,
            () = stopping => return Err(stopped("shutdown")),
        };
        // Raft takes this for granted.
        let last = snapshot.meta.last_log_id;
        let committed = self.inner.metrics().local_committed;
        let inconsistent = last.is_none_or(|id| id.leader_id.term > vote.leader_id.term())
            || (last > committed && last.map(|id| id.index) <= committed.map(|id| id.index));
        if inconsistent {
            tracing::error!(?last, ?committed, %vote, "a leader sent a snapshot that contradicts the log");
            return Err(Status::invalid_argument("the snapshot contradicts the log"));
        }
        let response = self
            .inner
            .raft
            .install_full_snapshot(vote, snapshot)
            .await
            .map_err(stopped)?;
        self.introduced(wire::InstallSnapshotResponse {
            vote: Some(vote_to_proto(&response.vote)),
        })
    }

    async fn propose(
        &self,
        request: Request<wire::ProposeRequest>,
    ) -> Result<Response<wire::ProposeResponse>, Status> {
        use wire::propose_response::Result as Answer;

        self.admit(&request)?;
        let proposal = request.into_inner().proposal;
        if proposal.len() > COMMAND_BYTES_MAX {
            return Err(Status::invalid_argument("the command is too large"));
        }
        codec::decode_command(&proposal).map_err(|e| malformed(&e))?;
        let time = self.inner.config.propose_timeout;
        let result = match self.inner.propose_here(proposal, time).await {
            Taken::Applied(outcome) => Answer::Outcome(outcome),
            Taken::No { leader, .. } => Answer::Redirect(redirect(leader)),
            Taken::Unknown { leader, .. } => Answer::InDoubt(redirect(leader)),
            Taken::Stopped(why) => return Err(stopped(why)),
        };
        self.introduced(wire::ProposeResponse {
            result: Some(result),
        })
    }

    async fn read_index(
        &self,
        request: Request<wire::ReadIndexRequest>,
    ) -> Result<Response<wire::ReadIndexResponse>, Status> {
        use wire::read_index_response::Result as Answer;

        self.admit(&request)?;
        let time = self.inner.config.propose_timeout;
        let result = match self.inner.read_index_here(time).await {
            Ok(index) => Answer::Index(index),
            Err(NotLeading::Stopped(why)) => return Err(stopped(why)),
            Err(NotLeading::Other { leader, .. }) => Answer::Redirect(redirect(leader)),
        };
        self.introduced(wire::ReadIndexResponse {
            result: Some(result),
        })
    }

    async fn get_status(
        &self,
        request: Request<wire::GetStatusRequest>,
    ) -> Result<Response<wire::GetStatusResponse>, Status> {
        // Who asks may have lost its data directory: it is told so, not refused.
        let identity = &self.inner.peers.identity;
        let known = Introduced::read(request.metadata(), &identity.cluster)
            .and_then(|who| identity.known(who.node));
        if let Err(refused) = self.admit(&request)
            && !(refused.code() == tonic::Code::FailedPrecondition && known.is_some())
        {
            return Err(refused);
        }
        let metrics = self.inner.metrics();
        self.introduced(wire::GetStatusResponse {
            node_id: identity.node,
            initialized: metrics.membership_config.voter_ids().next().is_some(),
            term: metrics.current_term,
            leader: metrics.current_leader.unwrap_or(0),
            last_index: metrics.last_log_index,
            applied: metrics.last_applied.as_ref().map(log_id_to_proto),
            membership: Some(stored_membership_to_proto(&metrics.membership_config)),
            known_instance: known.map(|i| i.to_vec().into()).unwrap_or_default(),
        })
    }
}
