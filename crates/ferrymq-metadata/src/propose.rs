//! Commands on their way to the leader, and reads that must be current.

use std::time::Duration;

use bytes::Bytes;
use openraft::ReadPolicy;
use openraft::errors::{ClientWriteError, LinearizableReadError, RaftError};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use ferrymq_objects::{Applied, Command};
use ferrymq_proto::raft_v1 as wire;
use ferrymq_proto::storage_v1 as pb;
use ferrymq_types::ReasonCode;

use crate::codec;
use crate::config::COMMAND_BYTES_MAX;
use crate::error::{ProposeError, ReadError};
use crate::handle::Inner;
use crate::network::{is_lost, was_not_sent, was_refused};
use crate::types::{Proposal, with_cause};

/// How long to wait before asking again, when nobody says when it is worth it.
const PAUSE: Duration = Duration::from_millis(50);

/// A command that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The index in the log at which it was applied: who has applied it sees the change.
    pub index: u64,
    /// What it did.
    pub applied: Applied,
}

/// What became of a command on this node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Taken {
    Applied(pb::DefinitionOutcome),
    /// Surely not taken; perhaps by who leads.
    No {
        leader: Option<u64>,
        why: String,
    },
    /// It may or may not take effect.
    Unknown {
        leader: Option<u64>,
        why: String,
    },
    /// Raft has stopped here; surely not taken.
    Stopped(String),
}

/// Why this node cannot say what is current.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NotLeading {
    Other { leader: Option<u64>, why: String },
    Stopped(String),
}

impl Inner {
    /// Proves that this node leads, by hearing from a majority now, and returns the index that a current read waits for.
    ///
    /// A leader that was paused, or that lost its majority, fails here: so it takes no command that it may not be able to commit
    /// (invariants R3, R5).
    pub(crate) async fn read_index_here(&self, time: Duration) -> Result<u64, NotLeading> {
        let proof = self.raft.get_read_log_id(ReadPolicy::ReadIndex);
        let other = |leader, why: String| Err(NotLeading::Other { leader, why });
        match timeout(time, proof).await {
            Ok(Ok((read, _))) => Ok(read.index()),
            Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(to)))) => {
                // Between its election and its first proof the leader names nobody, or itself.
                let leader = to.leader_id.filter(|id| *id != self.config.node);
                other(leader, format!("node {} does not lead", self.config.node))
            }
            Ok(Err(RaftError::APIError(error @ LinearizableReadError::QuorumNotEnough(_)))) => {
                other(None, error.to_string())
            }
            Ok(Err(RaftError::Fatal(error))) => Err(NotLeading::Stopped(error.to_string())),
            Err(_) => other(None, "no majority answers".to_owned()),
        }
    }

    /// Proposes a command to this node's Raft.
    pub(crate) async fn propose_here(&self, proposal: Bytes, time: Duration) -> Taken {
        let deadline = Instant::now() + time;
        match self.read_index_here(time).await {
            Ok(_) => {}
            Err(NotLeading::Other { leader, why }) => return Taken::No { leader, why },
            Err(NotLeading::Stopped(why)) => return Taken::Stopped(why),
        }
        let unknown = |leader, why: String| Taken::Unknown { leader, why };
        match timeout_at(deadline, self.raft.client_write(Proposal(proposal))).await {
            Ok(Ok(written)) => match written.data.0 {
                Some(outcome) => Taken::Applied(outcome),
                None => unknown(
                    None,
                    "it was applied, but its answer is not remembered".to_owned(),
                ),
            },
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(to)))) => Taken::No {
                leader: to.leader_id.filter(|id| *id != self.config.node),
                why: format!("node {} does not lead", self.config.node),
            },
            Ok(Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(to)))) => {
                unknown(to.leader_id, "the leader was deposed".to_owned())
            }
            Ok(Err(RaftError::APIError(
                error @ (ClientWriteError::ChangeMembershipError(_)
                | ClientWriteError::PreconditionFailed(_)),
            ))) => Taken::No {
                leader: None,
                why: error.to_string(),
            },
            Ok(Err(RaftError::Fatal(error))) => unknown(None, error.to_string()),
            Err(_) => unknown(None, "no majority confirmed it in time".to_owned()),
        }
    }

    /// Proposes a command to the node that leads, by what this node knows.
    async fn propose_there(&self, leader: u64, proposal: Bytes, time: Duration) -> Taken {
        use wire::propose_response::Result as Answer;

        let no = |leader, why: String| Taken::No { leader, why };
        let Some(member) = self.member(leader) else {
            return no(None, format!("node {leader} is not known"));
        };
        let mut client = match timeout(time, self.peers.client(&member)).await {
            Ok(Ok(client)) => client,
            Ok(Err(why)) => return no(None, why),
            Err(_) => return no(None, format!("no connection to node {leader} in time")),
        };
        let mut request = tonic::Request::new(wire::ProposeRequest { proposal });
        request.set_timeout(time);
        let unknown = |why: String| Taken::Unknown { leader: None, why };
        let response = match timeout(time, client.propose(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(status)) => {
                let why = with_cause(&status);
                self.peers.note(leader, Some(&why));
                if is_lost(&status) {
                    self.peers.disconnect(leader);
                }
                return if was_not_sent(&status) || was_refused(&status) {
                    no(None, why)
                } else {
                    unknown(why)
                };
            }
            Err(_) => {
                self.peers.note(leader, Some("no answer in time"));
                return unknown(format!("node {leader} did not answer in time"));
            }
        };
        if let Err(why) = self.peers.check_answer(leader, response.metadata()) {
            return unknown(why);
        }
        let known = |redirect: &wire::Redirect| Some(redirect.leader).filter(|id| *id != 0);
        match response.into_inner().result {
            Some(Answer::Outcome(outcome)) => Taken::Applied(outcome),
            Some(Answer::Redirect(redirect)) => no(
                known(&redirect),
                format!("node {leader} does not lead, or reaches no majority"),
            ),
            Some(Answer::InDoubt(redirect)) => Taken::Unknown {
                leader: known(&redirect),
                why: format!("node {leader} was deposed, or lost its majority"),
            },
            None => unknown(format!("the answer of node {leader} makes no sense")),
        }
    }

    /// Proposes a command, wherever the leader is, until it is applied or time runs out.
    pub(crate) async fn propose(&self, command: &Command) -> Result<Committed, ProposeError> {
        let proposal = codec::encode_command(command);
        if proposal.len() > COMMAND_BYTES_MAX {
            return Err(ProposeError::TooLarge {
                bytes: proposal.len(),
                max: COMMAND_BYTES_MAX,
            });
        }
        codec::decode_command(&proposal).map_err(|e| ProposeError::Format(with_cause(&e)))?;
        let deadline = Instant::now() + self.config.propose_timeout;
        let mut in_doubt = None;
        let mut asked = None;
        loop {
            let metrics = self.metrics();
            if let Err(error) = &metrics.running_state {
                return Err(stopped_or(in_doubt, error.to_string()));
            }
            let target = asked.take().or(metrics.current_leader);
            let left = deadline.saturating_duration_since(Instant::now());
            let taken = match target {
                _ if left.is_zero() => Taken::No {
                    leader: None,
                    why: "no leader was found in time".to_owned(),
                },
                None => Taken::No {
                    leader: None,
                    why: "the cluster has no leader".to_owned(),
                },
                Some(id) if id == self.config.node => {
                    self.propose_here(proposal.clone(), left).await
                }
                Some(id) => self.propose_there(id, proposal.clone(), left).await,
            };
            let why = match taken {
                Taken::Applied(outcome) => return self.answer(command, &outcome, deadline).await,
                Taken::No { leader, why } => {
                    asked = leader;
                    why
                }
                Taken::Unknown { leader, why } => {
                    asked = leader;
                    in_doubt = Some(why.clone());
                    why
                }
                Taken::Stopped(why) => return Err(stopped_or(in_doubt, why)),
            };
            let now = Instant::now();
            if now >= deadline {
                return Err(match in_doubt {
                    Some(doubt) => ProposeError::InDoubt(doubt),
                    None => ProposeError::NoQuorum(why),
                });
            }
            // A redirect is followed after a pause too: two nodes that each believe in the other would spin.
            sleep(PAUSE.min(deadline.saturating_duration_since(now))).await;
        }
    }

    /// Reads the outcome, and waits a while for this node to have it too, so that the caller sees what it did.
    async fn answer(
        &self,
        command: &Command,
        outcome: &pb::DefinitionOutcome,
        deadline: Instant,
    ) -> Result<Committed, ProposeError> {
        let applied = codec::outcome_from_proto(command.request, outcome)
            .map_err(|e| ProposeError::Format(with_cause(&e)))?;
        // It is done, whether this node has it or not.
        drop(self.wait_applied(outcome.index, deadline).await);
        Ok(Committed {
            index: outcome.index,
            applied: applied?,
        })
    }

    /// The index that a current read waits for, from whoever leads.
    pub(crate) async fn read_index(&self, deadline: Instant) -> Result<u64, ReadError> {
        let mut asked = None;
        loop {
            let metrics = self.metrics();
            if let Err(error) = &metrics.running_state {
                return Err(ReadError::Stopped(error.to_string()));
            }
            let target = asked.take().or(metrics.current_leader);
            let left = deadline.saturating_duration_since(Instant::now());
            let why = match target {
                None => "the cluster has no leader".to_owned(),
                Some(id) if id == self.config.node => match self.read_index_here(left).await {
                    Ok(index) => return Ok(index),
                    Err(NotLeading::Stopped(why)) => return Err(ReadError::Stopped(why)),
                    Err(NotLeading::Other { leader, why }) => {
                        asked = leader;
                        why
                    }
                },
                Some(id) => match self.read_index_there(id, left).await {
                    Ok(Ok(index)) => return Ok(index),
                    Ok(Err(leader)) => {
                        asked = leader;
                        format!("node {id} does not lead, or reaches no majority")
                    }
                    Err(why) => why,
                },
            };
            let now = Instant::now();
            if now >= deadline {
                return Err(ReadError::NoQuorum(why));
            }
            sleep(PAUSE.min(deadline.saturating_duration_since(now))).await;
        }
    }

    /// `Ok(Err(leader))`: the node does not lead, that one may.
    async fn read_index_there(
        &self,
        leader: u64,
        time: Duration,
    ) -> Result<Result<u64, Option<u64>>, String> {
        use wire::read_index_response::Result as Answer;

        let member = self
            .member(leader)
            .ok_or_else(|| format!("node {leader} is not known"))?;
        let answered = timeout(time, async {
            let mut client = self.peers.client(&member).await?;
            let mut request = tonic::Request::new(wire::ReadIndexRequest {});
            request.set_timeout(time);
            client.read_index(request).await.map_err(|status| {
                if is_lost(&status) {
                    self.peers.disconnect(leader);
                }
                with_cause(&status)
            })
        });
        let response = answered
            .await
            .map_err(|_| format!("node {leader} did not answer in time"))??;
        self.peers.check_answer(leader, response.metadata())?;
        match response.into_inner().result {
            Some(Answer::Index(index)) => Ok(Ok(index)),
            Some(Answer::Redirect(to)) => Ok(Err(Some(to.leader).filter(|id| *id != 0))),
            None => Err(format!("the answer of node {leader} makes no sense")),
        }
    }
}

fn stopped_or(in_doubt: Option<String>, why: String) -> ProposeError {
    match in_doubt {
        Some(doubt) => ProposeError::InDoubt(doubt),
        None => ProposeError::Stopped(why),
    }
}

impl From<&ProposeError> for ReasonCode {
    fn from(error: &ProposeError) -> Self {
        error.reason()
    }
}
