//! The part of the configuration that must agree on every node.

use std::time::Duration;

use serde::Deserialize;

use super::Interval;

/// `[cluster]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterConfig {
    /// The cluster's name: nodes of another cluster are refused.
    pub name: String,
    /// Every node. Empty: this node is alone.
    pub peers: Vec<PeerConfig>,
    /// How long a follower waits for its leader before it stands for election. Default `1s`.
    pub election_timeout: Interval,
    /// How often a leader shows that it is there. Default `150ms`.
    pub heartbeat: Interval,
    /// A snapshot is made each time so many commands were applied. Default 100000.
    pub snapshot_every: u64,
}

/// One node as the others see it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerConfig {
    /// Its number, never used again in this cluster.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// `host:port` of its peer listener.
    pub peer: String,
    /// `SSLPEER` pattern that its certificate must match; empty: any certificate of the cluster's authority.
    #[serde(default)]
    pub ssl_peer: String,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            name: "ferrymq".into(),
            peers: Vec::new(),
            election_timeout: Interval(Duration::from_secs(1)),
            heartbeat: Interval(Duration::from_millis(150)),
            snapshot_every: 100_000,
        }
    }
}

impl ClusterConfig {
    /// What is wrong with it, naming the keys.
    pub(super) fn validate(&self) -> Result<(), String> {
        for (index, peer) in self.peers.iter().enumerate() {
            let mut others = self.peers.iter().skip(index.saturating_add(1));
            if let Some(other) =
                others.find(|o| o.id == peer.id || o.name == peer.name || o.peer == peer.peer)
            {
                return Err(format!(
                    "cluster.peers: nodes {:?} and {:?} have the same id, name or address; each must be its own",
                    peer.name, other.name
                ));
            }
            ferrymq_authority::PeerPattern::parse_attribute(&peer.ssl_peer).map_err(|error| {
                format!("cluster.peers: ssl_peer of node {:?}: {error}", peer.name)
            })?;
        }
        if self.election_timeout.0 < self.heartbeat.0.saturating_mul(3) {
            return Err(format!(
                "cluster.election_timeout ({:?}) must be at least three times cluster.heartbeat ({:?})",
                self.election_timeout.0, self.heartbeat.0
            ));
        }
        if self.snapshot_every == 0 {
            return Err("cluster.snapshot_every must be at least 1".into());
        }
        Ok(())
    }
}
