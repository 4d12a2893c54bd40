//! What the metadata of a node is opened with.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use tonic::Extensions;
use tonic::transport::Channel;

/// Longest encoded command, in bytes.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// Longest gRPC message between nodes, in bytes: more than [`REPLICATED_ENTRIES_MAX`] commands of the largest size.
pub const PEER_MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Entries in one message between nodes.
pub const REPLICATED_ENTRIES_MAX: u64 = 64;
/// A snapshot travels in chunks of so many bytes.
pub const SNAPSHOT_CHUNK_BYTES: usize = 256 * 1024;
/// Largest snapshot that is accepted, in bytes.
pub const SNAPSHOT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Entries that are kept behind a snapshot, so that a node that lags a little needs no snapshot.
pub const ENTRIES_KEPT_BEHIND_SNAPSHOT: u64 = 1000;
/// Requests that wait for Raft; beyond it callers wait.
pub(crate) const RAFT_QUEUE_MAX: u64 = 1024;
/// Writes that wait for the thread of the log.
pub(crate) const LOG_QUEUE_MAX: usize = 1024;
/// Entries applied in one step, and in one write to the row store.
pub(crate) const APPLIED_AT_ONCE_MAX: usize = 256;
/// Nodes in one cluster's membership.
pub const MEMBERS_MAX: usize = 1024;
/// Longest cluster name, node name and address, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// A node of the cluster as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its number, at least 1; never used again in this cluster.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// `host:port` of its peer listener. May be empty if the node is alone.
    pub address: String,
}

/// What the metadata of a node is opened with.
#[derive(Debug, Clone)]
pub struct MetadataConfig {
    /// The cluster's name: nodes of another cluster are refused.
    pub cluster: String,
    /// This node's number.
    pub node: u64,
    /// Every node of the cluster as configured, this one among them. What counts later is the replicated membership; this list says
    /// whom to ask before a cluster is made, and who the members of a new cluster are.
    pub members: Vec<Member>,
    /// Whether this node makes the cluster if it is part of none. Default false. A node that is alone does so anyhow.
    pub bootstrap: bool,
    /// Where the node's identity and its snapshots are. Made if it does not exist.
    pub directory: PathBuf,
    /// How long a follower waits for its leader before it stands for election; up to twice as long. Default 1 s.
    pub election_timeout: Duration,
    /// How often a leader shows that it is there. Default 150 ms.
    pub heartbeat: Duration,
    /// A snapshot is made each time so many commands were applied. Default 100000.
    pub snapshot_every: u64,
    /// How many entries behind a snapshot stay in the log. Default [`ENTRIES_KEPT_BEHIND_SNAPSHOT`].
    pub entries_kept: u64,
    /// How long a proposal may take, elections and repetitions included. Default 5 s.
    pub propose_timeout: Duration,
}

impl MetadataConfig {
    /// A node that is alone: it needs no listener, and makes its cluster by itself.
    #[must_use]
    pub fn single(cluster: impl Into<String>, name: impl Into<String>, directory: PathBuf) -> Self {
        let member = Member {
            id: 1,
            name: name.into(),
            address: String::new(),
        };
        Self::new(cluster, 1, vec![member], directory)
    }

    /// A node of a cluster, everything else as by default.
    #[must_use]
    pub fn new(
        cluster: impl Into<String>,
        node: u64,
        members: Vec<Member>,
        directory: PathBuf,
    ) -> Self {
        Self {
            cluster: cluster.into(),
            node,
            members,
            bootstrap: false,
            directory,
            election_timeout: Duration::from_secs(1),
            heartbeat: Duration::from_millis(150),
            snapshot_every: 100_000,
            entries_kept: ENTRIES_KEPT_BEHIND_SNAPSHOT,
            propose_timeout: Duration::from_secs(5),
        }
    }

    /// Whether the configuration names this node only.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        matches!(self.members.as_slice(), [only] if only.id == self.node)
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let refuse = |what: String| Err(ConfigError(what));
        if !is_header_text(&self.cluster) {
            return refuse(format!(
                "cluster.name must be 1 to {NAME_BYTES_MAX} printable ASCII characters"
            ));
        }
        if self.members.len() > MEMBERS_MAX {
            return refuse(format!("cluster.peers has more than {MEMBERS_MAX} nodes"));
        }
        check_members(&self.members, self.is_alone())?;
        if !self.members.iter().any(|m| m.id == self.node) {
            return refuse(format!("node {} is not among cluster.peers", self.node));
        }
        if self.heartbeat.is_zero() || self.election_timeout < self.heartbeat.saturating_mul(3) {
            return refuse(format!(
                "cluster.election_timeout ({:?}) must be at least three times cluster.heartbeat ({:?})",
                self.election_timeout, self.heartbeat
            ));
        }
        if self.snapshot_every == 0 {
            return refuse("cluster.snapshot_every must be at least 1".to_owned());
        }
        Ok(())
    }
}

/// Whether it can stand in the metadata of a gRPC call.
fn is_header_text(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| (0x20..0x7f).contains(&b))
}

pub(crate) fn check_members(members: &[Member], alone: bool) -> Result<(), ConfigError> {
    for (index, member) in members.iter().enumerate() {
        let refuse = |what: &str| Err(ConfigError(format!("node {} {what}", member.id)));
        if member.id == 0 {
            return refuse("needs a number from 1 on");
        }
        if member.name.is_empty() || member.name.len() > NAME_BYTES_MAX {
            return refuse("needs a name of at most 255 bytes");
        }
        if member.address.len() > NAME_BYTES_MAX || (member.address.is_empty() && !alone) {
            return refuse("needs the address of its peer listener");
        }
        let same = |other: &&Member| other.id == member.id || other.name == member.name;
        if let Some(other) = members.iter().skip(index.saturating_add(1)).find(same) {
            return refuse(&format!("and node {} have the same id or name", other.id));
        }
    }
    Ok(())
}

/// The configuration contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// Any error, for those who implement [`PeerNetwork`].
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A connection that is being opened.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Channel, BoxError>> + Send>>;

/// How nodes reach and recognise each other. The runtime implements it over its TLS set-up.
pub trait PeerNetwork: fmt::Debug + Send + Sync + 'static {
    /// Opens a connection to the peer listener of `member`, within a time of its own. The peer's certificate must be one that may speak
    /// for `member`. When the connection is lost, its calls fail, and another one is asked for.
    fn connect(&self, member: &Member) -> Connecting;

    /// Whether who sent a request may speak for `member`. `extensions` are the request's: the acceptor put there what it knows about the
    /// connection.
    ///
    /// # Errors
    /// Why not, for the operator's log; the caller is told only that it is not authorised.
    fn admit(&self, member: &Member, extensions: &Extensions) -> Result<(), String>;
}
