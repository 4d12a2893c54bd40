//! The cluster's definitions, the same on every node: openraft over a record log, rows and gRPC, applying the replicated machine of
//! `ferrymq-objects`.
//!
//! Start at [`Metadata`]. A change needs a majority; reading what this node has does not, and messaging needs neither.
//!
//! **Invariant:** only this crate knows openraft, and none of its types is public.

mod codec;
mod config;
pub mod conformance;
mod error;
mod files;
mod handle;
mod identity;
mod log;
mod network;
mod peers;
mod propose;
mod service;
mod state;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod types;

pub use config::{
    BoxError, COMMAND_BYTES_MAX, ConfigError, Connecting, ENTRIES_KEPT_BEHIND_SNAPSHOT,
    MEMBERS_MAX, Member, MetadataConfig, NAME_BYTES_MAX, PEER_MESSAGE_BYTES_MAX, PeerNetwork,
    REPLICATED_ENTRIES_MAX, SNAPSHOT_BYTES_MAX, SNAPSHOT_CHUNK_BYTES,
};
pub use error::{InitializeError, MembershipError, OpenError, ProposeError, ReadError};
pub use handle::Metadata;
pub use propose::Committed;
pub use service::{PeerServer, PeerService};
pub use state::AppliedDefinitions;
pub use status::{ClusterStatus, MemberStatus, Role};
pub use store::{StateBatch, StateStore, VisitRow};

/// The crash points of this crate, for `ferrymq_store::register_crash_points`.
pub const CRASH_POINTS: &[&str] = &[
    "raft.before_append",
    "raft.after_append",
    "raft.before_sync",
    "raft.after_sync",
    "raft.before_vote",
    "raft.before_apply",
    "raft.after_apply",
    "raft.before_snapshot_write",
    "raft.after_snapshot_write",
    "raft.before_install",
    "raft.during_install",
    "raft.after_install",
    "raft.before_purge",
    "raft.after_purge",
];
