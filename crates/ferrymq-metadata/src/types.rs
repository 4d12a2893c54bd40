//! The types that Raft is set up with, and their shape in protobuf.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use bytes::Bytes;
use openraft::impls::leader_id_std;
use openraft::type_config::alias::{EntryOf, LogIdOf, StoredMembershipOf, VoteOf};
use openraft::vote::RaftLeaderId;
use openraft::{EntryPayload, Membership};

use ferrymq_proto::storage::FormatError;
use ferrymq_proto::storage_v1 as pb;

/// An encoded `DefinitionProposal`. It travels and is stored as it was made, and is read when it is applied.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proposal(pub(crate) Bytes);

impl fmt::Debug for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proposal({} bytes)", self.0.len())
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proposal of {} bytes", self.0.len())
    }
}

/// What became of an entry. Entries that are no commands have no outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reply(pub(crate) Option<pb::DefinitionOutcome>);

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(outcome) => write!(f, "applied at {}", outcome.index),
            None => f.write_str("no command"),
        }
    }
}

/// What the membership says of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PeerNode {
    pub(crate) name: String,
    pub(crate) address: String,
}

impl fmt::Display for PeerNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.address)
    }
}

openraft::declare_raft_types!(
    /// Raft as the metadata uses it. Leaders are one per term, as in the Raft paper, so a place in the log is (term, index).
    pub(crate) TypeConfig:
        D = Proposal,
        R = Reply,
        NodeId = u64,
        Node = PeerNode,
        Term = u64,
        LeaderId = leader_id_std::LeaderId<u64, u64>,
);

pub(crate) type LogId = LogIdOf<TypeConfig>;
pub(crate) type Vote = VoteOf<TypeConfig>;
pub(crate) type Entry = EntryOf<TypeConfig>;
pub(crate) type StoredMembership = StoredMembershipOf<TypeConfig>;
type Members = Membership<u64, PeerNode>;

/// Stored bytes make no sense.
pub(crate) fn malformed(what: &str, error: FormatError) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{what}: {}", with_cause(&error)),
    )
}

/// An error and its causes in one line.
pub(crate) fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(c) = cause {
        let more = c.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = c.source();
    }
    text
}

pub(crate) fn log_id_to_proto(id: &LogId) -> pb::RaftLogId {
    pb::RaftLogId {
        term: id.leader_id.term,
        index: id.index,
    }
}

pub(crate) fn log_id_from_proto(id: &pb::RaftLogId) -> LogId {
    LogId::new_term_index(id.term, id.index)
}

pub(crate) fn vote_to_proto(vote: &Vote) -> pb::RaftVote {
    pb::RaftVote {
        term: vote.leader_id.term(),
        node_id: *vote.leader_id.node_id(),
        committed: vote.committed,
    }
}

pub(crate) fn vote_from_proto(vote: &pb::RaftVote) -> Vote {
    Vote {
        leader_id: leader_id_std::LeaderId::new(vote.term, vote.node_id),
        committed: vote.committed,
    }
}

pub(crate) fn membership_to_proto(membership: &Members) -> pb::RaftMembership {
    pb::RaftMembership {
        voters: membership
            .get_joint_config()
            .iter()
            .map(|set| pb::RaftNodeSet {
                ids: set.iter().copied().collect(),
            })
            .collect(),
        nodes: membership
            .nodes()
            .map(|(id, node)| pb::RaftNode {
                id: *id,
                name: node.name.clone(),
                address: node.address.clone(),
            })
            .collect(),
    }
}

pub(crate) fn membership_from_proto(
    membership: pb::RaftMembership,
) -> Result<Members, FormatError> {
    let voters: Vec<BTreeSet<u64>> = membership
        .voters
        .into_iter()
        .map(|set| set.ids.into_iter().collect())
        .collect();
    let nodes: BTreeMap<u64, PeerNode> = membership
        .nodes
        .into_iter()
        .map(|node| {
            let peer = PeerNode {
                name: node.name,
                address: node.address,
            };
            (node.id, peer)
        })
        .collect();
    Members::new(voters, nodes).map_err(|e| FormatError::Value {
        field: "membership",
        value: e.to_string(),
    })
}

pub(crate) fn stored_membership_to_proto(stored: &StoredMembership) -> pb::RaftStoredMembership {
    pb::RaftStoredMembership {
        log_id: stored.log_id().as_ref().map(log_id_to_proto),
        membership: Some(membership_to_proto(stored.membership())),
    }
}

pub(crate) fn stored_membership_from_proto(
    stored: pb::RaftStoredMembership,
) -> Result<StoredMembership, FormatError> {
    Ok(StoredMembership::new(
        stored.log_id.as_ref().map(log_id_from_proto),
        membership_from_proto(stored.membership.unwrap_or_default())?,
    ))
}

pub(crate) fn entry_to_proto(entry: &Entry) -> pb::RaftEntry {
    let payload = match &entry.payload {
        EntryPayload::Blank => pb::raft_entry::Payload::Blank(pb::RaftBlank {}),
        EntryPayload::Normal(proposal) => pb::raft_entry::Payload::Proposal(proposal.0.clone()),
        EntryPayload::Membership(members) => {
            pb::raft_entry::Payload::Membership(membership_to_proto(members))
        }
    };
    pb::RaftEntry {
        log_id: Some(log_id_to_proto(&entry.log_id)),
        payload: Some(payload),
    }
}

pub(crate) fn entry_from_proto(entry: pb::RaftEntry) -> Result<Entry, FormatError> {
    let log_id = entry.log_id.ok_or(FormatError::Missing("log_id"))?;
    let payload = match entry.payload.ok_or(FormatError::Missing("payload"))? {
        pb::raft_entry::Payload::Blank(_) => EntryPayload::Blank,
        // Copied: the bytes may be a part of a whole receive buffer or record, and an entry lives long.
        pb::raft_entry::Payload::Proposal(bytes) => {
            EntryPayload::Normal(Proposal(Bytes::copy_from_slice(&bytes)))
        }
        pb::raft_entry::Payload::Membership(members) => {
            EntryPayload::Membership(membership_from_proto(members)?)
        }
    };
    Ok(Entry {
        log_id: log_id_from_proto(&log_id),
        payload,
    })
}
