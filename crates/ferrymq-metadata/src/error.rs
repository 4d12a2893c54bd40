//! What can go wrong.

use std::io;

use ferrymq_objects::CommandError;
use ferrymq_store::StoreError;
use ferrymq_types::ReasonCode;

use crate::config::ConfigError;

/// The metadata cannot be opened. Nothing was changed but unfinished files removed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file cannot be read or written.
    #[error("{operation} {file}")]
    Io {
        /// What was tried, in the present tense.
        operation: &'static str,
        /// The file or directory.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The log or the row store does not open, or what is in them makes no sense.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data directory belongs to another node or another cluster (invariant R4).
    #[error(
        "{file} belongs to node {found_node} of cluster {found_cluster:?}, the configuration says node {node} of cluster {cluster:?}: \
         start it with its own configuration, or give this node an empty directory and a node id that was never used"
    )]
    ForeignDirectory {
        /// The identity file.
        file: String,
        /// Whose it is.
        found_node: u64,
        /// Which cluster's it is.
        found_cluster: String,
        /// What the configuration says.
        node: u64,
        /// What the configuration says.
        cluster: String,
    },
    /// Definitions or log entries are there, but not the file that says whose they are.
    #[error(
        "{file} is missing, but its log is not empty: restore the file, or empty the whole directory and start the node under an id \
         that was never used"
    )]
    IdentityMissing {
        /// The identity file.
        file: String,
    },
    /// Raft does not start.
    #[error("start Raft: {0}")]
    Raft(String),
}

/// The cluster cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InitializeError {
    /// The list of members makes no sense.
    #[error(transparent)]
    Members(#[from] ConfigError),
    /// A peer is part of a cluster and knows this node with another data directory: it was emptied or replaced (invariant R4).
    #[error(
        "node {peer} is part of this cluster and knows node {node} with another data directory: restore that directory, or remove node \
         {node} from the cluster and let it join under an id that was never used"
    )]
    DirectoryLost {
        /// This node.
        node: u64,
        /// Who says so.
        peer: u64,
    },
    /// A peer is part of a cluster already: this node has to join it.
    #[error("node {peer} is part of a cluster already: add this node there")]
    ClusterExists {
        /// Who says so.
        peer: u64,
    },
    /// Raft has stopped.
    #[error("Raft has stopped: {0}")]
    Stopped(String),
}

/// A command was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// It was applied in order and refused: nothing changed.
    #[error(transparent)]
    Refused(#[from] CommandError),
    /// No majority of the cluster can be reached, or it has no leader. The command was surely not taken.
    #[error("definitions cannot change: {0}")]
    NoQuorum(String),
    /// The command was taken, and it is not known whether it took or will take effect. Proposing it again under the same request id is
    /// safe.
    #[error("it is not known whether the definition change took effect: {0}")]
    InDoubt(String),
    /// The command is too large.
    #[error("the command has {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// The command makes no sense to this release, or its answer does not.
    #[error("the command cannot be used: {0}")]
    Format(String),
    /// Raft has stopped on this node: after a failed write, or at shutdown. The command was surely not taken.
    #[error("Raft has stopped on this node: {0}")]
    Stopped(String),
}

impl ProposeError {
    /// The reason code for programs: 9001 without a majority, 9002 in doubt, 9004 if too large, 9007 when this node stops, 2195 for what
    /// makes no sense; that of the refusal otherwise.
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        match self {
            Self::Refused(error) => error.reason(),
            Self::NoQuorum(_) => ReasonCode::NO_QUORUM,
            Self::InDoubt(_) => ReasonCode::IN_DOUBT,
            Self::TooLarge { .. } => ReasonCode::LIMIT_EXCEEDED,
            Self::Format(_) => ReasonCode::UNEXPECTED_ERROR,
            Self::Stopped(_) => ReasonCode::STOPPING,
        }
    }
}

/// The definitions did not come as far as was asked, within the time allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Time ran out: this node lags behind or is cut off.
    #[error("definitions are at index {applied}, waited for {wanted}")]
    Lagging {
        /// How far they are.
        applied: u64,
        /// How far they should be.
        wanted: u64,
    },
    /// No leader could prove that it is one. What this node has may still be read, but may be old.
    #[error("cannot prove that definitions are current: {0}")]
    NoQuorum(String),
    /// Raft has stopped on this node.
    #[error("Raft has stopped on this node: {0}")]
    Stopped(String),
}

impl ReadError {
    /// The reason code for programs: 9001, or 9007 when this node stops.
    #[must_use]
    pub const fn reason(&self) -> ReasonCode {
        match self {
            Self::Lagging { .. } | Self::NoQuorum(_) => ReasonCode::NO_QUORUM,
            Self::Stopped(_) => ReasonCode::STOPPING,
        }
    }
}

/// A change of members did not happen, or is not known to have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// Only the leader changes members; this is who leads, if known.
    #[error("node {} leads the cluster: change members there", .0.map_or("?".to_owned(), |id| id.to_string()))]
    NotLeader(Option<u64>),
    /// The list of members makes no sense.
    #[error(transparent)]
    Members(#[from] ConfigError),
    /// Raft refuses it, for instance because another change is under way.
    #[error("the change of members was refused: {0}")]
    Refused(String),
    /// Time ran out; look at the members before trying again.
    #[error("the change of members did not end within {0:?}")]
    InDoubt(std::time::Duration),
}

pub(crate) fn io_error(
    operation: &'static str,
    file: &std::path::Path,
    source: io::Error,
) -> OpenError {
    OpenError::Io {
        operation,
        file: file.display().to_string(),
        source,
    }
}
