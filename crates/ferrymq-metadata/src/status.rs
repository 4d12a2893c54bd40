//! How a cluster and its nodes are.

use openraft::{Instant as _, RaftMetrics, ServerState};

use crate::config::Member;
use crate::handle::Inner;
use crate::types::TypeConfig;

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
    /// The last entry that it has applied, if it is this node or was asked.
    pub applied_index: Option<u64>,
    /// Whether it answered when it was last asked. This node asks regularly only while it leads.
    pub reachable: bool,
    /// Why it cannot be used, if so.
    pub problem: Option<String>,
}

/// How the cluster is by what this node knows without asking.
pub(crate) fn known(inner: &Inner, metrics: &RaftMetrics<TypeConfig>) -> ClusterStatus {
    let own = inner.config.node;
    let membership = &metrics.membership_config;
    let voters: Vec<u64> = membership.voter_ids().collect();
    let mut members: Vec<Member> = membership
        .nodes()
        .map(|(id, node)| Member {
            id: *id,
            name: node.name.clone(),
            address: node.address.clone(),
        })
        .collect();
    if members.is_empty() {
        members.clone_from(&inner.config.members);
    }
    let patience = inner.config.election_timeout.saturating_mul(2);
    let has_quorum = if metrics.current_leader == Some(own) {
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
        members: members
            .into_iter()
            .map(|member| {
                let voter = voters.contains(&member.id);
                member_status(inner, metrics, member, voter)
            })
            .collect(),
        stopped: metrics
            .running_state
            .as_ref()
            .err()
            .map(ToString::to_string),
    }
}

fn member_status(
    inner: &Inner,
    metrics: &RaftMetrics<TypeConfig>,
    member: Member,
    voter: bool,
) -> MemberStatus {
    let id = member.id;
    let is_this_node = id == inner.config.node;
    let replicated = metrics.replication.as_ref().and_then(|r| r.get(&id));
    let contact = inner.peers.contact(id);
    MemberStatus {
        voter,
        leader: metrics.current_leader == Some(id),
        matched_index: if is_this_node {
            metrics.last_log_index
        } else {
            replicated.and_then(|m| m.as_ref()).map(|m| m.index)
        },
        applied_index: metrics
            .last_applied
            .filter(|_| is_this_node)
            .map(|applied| applied.index),
        reachable: is_this_node || (contact.answered && contact.problem.is_none()),
        problem: contact.problem,
        member,
    }
}

/// How the cluster is, by asking every other node.
pub(crate) async fn asked(inner: &Inner) -> ClusterStatus {
    let before = known(inner, &inner.metrics());
    let own = before.node;
    let others = before.members.into_iter().map(|m| m.member);
    let answers = inner
        .probe_all(others.filter(|m| m.id != own).collect())
        .await;
    let mut status = known(inner, &inner.metrics());
    for (member, answer) in answers {
        let Some(found) = status.members.iter_mut().find(|m| m.member.id == member.id) else {
            continue;
        };
        found.reachable = answer.is_ok();
        match answer {
            Ok(answer) => {
                found.applied_index = answer.applied.map(|a| a.index);
                found.problem = inner.peers.contact(member.id).problem;
            }
            Err(problem) => found.problem = Some(problem),
        }
    }
    status
}
