//! How a cluster and its nodes are.

use std::collections::BTreeMap;

use openraft::Instant as _;
use openraft::ServerState;

use crate::config::Member;
use crate::handle::Inner;

/// What a node does in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It takes changes and sends them to the others.
    Leader,
    /// It votes, and follows a leader.
    Follower,
    /// It stands for election.
    Candidate,
    /// It follows, and does not vote.
    Learner,
    /// Raft has stopped on it.
    Stopped,
}

/// How the cluster is, as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The cluster's name.
    pub cluster: String,
    /// Who says all this.
    pub node: u64,
    /// What this node does.
    pub role: Role,
    /// Raft's term.
    pub term: u64,
    /// Who leads, as far as this node knows.
    pub leader: Option<u64>,
    /// Whether this node is part of a majority that has a leader: changes are possible.
    pub has_quorum: bool,
    /// The last entry in this node's log.
    pub last_index: Option<u64>,
    /// The last entry that this node knows to be committed.
    pub committed_index: Option<u64>,
    /// The last entry that this node has applied.
    pub applied_index: Option<u64>,
    /// The last entry in this node's snapshot.
    pub snapshot_index: Option<u64>,
    /// The last entry that this node's log no longer has.
    pub purged_index: Option<u64>,
    /// Every node, by number.
    pub members: Vec<MemberStatus>,
    /// Why Raft has stopped on this node, if it has.
    pub stopped: Option<String>,
}

/// How a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Who it is.
    pub member: Member,
    /// Whether it votes.
    pub voter: bool,
    /// Whether it leads, as far as the node that was asked knows.
    pub leader: bool,
    /// The last entry that it is known to have, if the node that was asked leads.
    pub matched_index: Option<u64>,
    /// The last entry that it has applied, if it could be asked.
    pub applied_index: Option<u64>,
    /// Whether it answered just now.
    pub reachable: bool,
    /// Why it cannot be used, if so.
    pub problem: Option<String>,
}

pub(crate) async fn status(inner: &Inner) -> ClusterStatus {
    let metrics = inner.metrics();
    let own = inner.config.node;
    let membership = &metrics.membership_config;
    let voters: Vec<u64> = membership.voter_ids().collect();
    let mut members: BTreeMap<u64, Member> = membership
        .nodes()
        .map(|(id, node)| {
            let member = Member {
                id: *id,
                name: node.name.clone(),
                address: node.address.clone(),
            };
            (*id, member)
        })
        .collect();
    if members.is_empty() {
        members = inner
            .config
            .members
            .iter()
            .map(|m| (m.id, m.clone()))
            .collect();
    }
    let others = members.values().filter(|m| m.id != own).cloned().collect();
    let answers: BTreeMap<u64, _> = inner
        .probe_all(others)
        .await
        .into_iter()
        .map(|(member, answer)| (member.id, answer))
        .collect();
    let leads = metrics.current_leader == Some(own);
    let replication = metrics.replication.as_ref();
    let members = members
        .into_values()
        .map(|member| {
            let id = member.id;
            let answer = answers.get(&id);
            let matched_index = if id == own {
                metrics.last_log_index
            } else {
                let matched = replication.and_then(|r| r.get(&id));
                matched.and_then(|m| m.as_ref()).map(|m| m.index)
            };
            MemberStatus {
                voter: voters.contains(&id),
                leader: metrics.current_leader == Some(id),
                matched_index,
                applied_index: if id == own {
                    metrics.last_applied.map(|a| a.index)
                } else {
                    answer
                        .and_then(|a| a.as_ref().ok()?.applied.as_ref())
                        .map(|a| a.index)
                },
                reachable: id == own || answer.is_some_and(Result::is_ok),
                problem: answer
                    .and_then(|a| a.as_ref().err().cloned())
                    .or_else(|| inner.peers.contact(id).problem),
                member,
            }
        })
        .collect();
    let patience = inner.config.election_timeout.saturating_mul(2);
    let has_quorum = if leads {
        let acknowledged = metrics.last_quorum_acked.as_ref();
        acknowledged.is_some_and(|at| at.elapsed() <= patience)
    } else {
        metrics.current_leader.is_some() && inner.peers.heard_leader_within(patience)
    };
    ClusterStatus {
        cluster: inner.config.cluster.clone(),
        node: own,
        role: match metrics.state {
            ServerState::Leader => Role::Leader,
            ServerState::Follower => Role::Follower,
            ServerState::Candidate => Role::Candidate,
            ServerState::Learner => Role::Learner,
            ServerState::Shutdown => Role::Stopped,
        },
        term: metrics.current_term,
        leader: metrics.current_leader,
        has_quorum,
        last_index: metrics.last_log_index,
        committed_index: metrics.local_committed.map(|c| c.index),
        applied_index: metrics.last_applied.map(|a| a.index),
        snapshot_index: metrics.snapshot.map(|s| s.index),
        purged_index: metrics.purged.map(|p| p.index),
        members,
        stopped: metrics.running_state.err().map(|e| e.to_string()),
    }
}
