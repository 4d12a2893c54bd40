//! The part of the configuration that belongs to one machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ferrymq_journal::SEGMENTS_MAX;
use ferrymq_types::QueueManagerName;
use serde::Deserialize;

use crate::queue_manager::WRITE_SETS_IN_JOURNAL;

use super::{ByteSize, ClusterConfig, ConfigError, parse, read};

/// A node's whole configuration.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// `[node]`.
    pub node: NodeSection,
    /// `[listen]`.
    pub listen: ListenConfig,
    /// `[tls]`; `None`: plain text, on loopback addresses only.
    pub tls: Option<TlsConfig>,
    /// `[auth]`.
    pub auth: AuthConfig,
    /// `[cluster]`, of this file or of the one that it includes.
    pub cluster: ClusterConfig,
    /// `[storage]`.
    pub storage: StorageConfig,
    /// `[log]`.
    pub log: LogConfig,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeFile {
    include: Option<PathBuf>,
    node: NodeSection,
    #[serde(default)]
    listen: ListenConfig,
    tls: Option<TlsConfig>,
    #[serde(default)]
    auth: AuthConfig,
    cluster: Option<ClusterConfig>,
    #[serde(default)]
    storage: StorageConfig,
    #[serde(default)]
    log: LogConfig,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterFile {
    cluster: ClusterConfig,
}

/// `[node]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSection {
    /// The node's name.
    pub name: String,
    /// Its number in the cluster. Default 1.
    #[serde(default = "one")]
    pub id: u64,
    /// Where it keeps everything. Default `/var/lib/ferrymq`. A relative path counts from the file.
    #[serde(default = "data_dir")]
    pub data_dir: PathBuf,
    /// The queue managers that it runs; created at the first start.
    pub qmgrs: Vec<String>,
}

fn one() -> u64 {
    1
}

fn data_dir() -> PathBuf {
    "/var/lib/ferrymq".into()
}

/// `[listen]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// Clients and channels. Default `127.0.0.1:1414`.
    pub mq: SocketAddr,
    /// Raft, between nodes; mutual TLS always. Default `127.0.0.1:9414`. Not opened by a node that is alone.
    pub peer: SocketAddr,
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            mq: SocketAddr::from(([127, 0, 0, 1], 1414)),
            peer: SocketAddr::from(([127, 0, 0, 1], 9414)),
        }
    }
}

/// `[tls]`. Relative paths count from the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificate chain, PEM.
    pub cert: PathBuf,
    /// Private key, PEM, mode 0600.
    pub key: PathBuf,
    /// Certificates of the authorities that are trusted, PEM.
    pub ca: PathBuf,
    /// Revocation lists, PEM.
    #[serde(default)]
    pub crl: Vec<PathBuf>,
}

/// `[auth]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// Who may administer over TLS: `SSLPEER` patterns. Empty: nobody. On a plain-text loopback listener everybody may.
    pub admin_peers: Vec<String>,
}

/// `[storage]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StorageConfig {
    /// Longest message, in bytes; at most 100 MiB. Default `4MiB`.
    pub max_message: ByteSize,
    /// Memory for non-persistent messages of a queue manager; beyond it they are written aside. Default `256MiB`.
    pub non_persistent_memory: ByteSize,
    /// Disk for non-persistent messages that do not fit in memory; 0 is none: then puts beyond are refused with 2071. What is
    /// there is gone after a restart. Default `8GiB`.
    pub spill: ByteSize,
    /// Size of one journal segment. Default `64MiB`.
    pub segment: ByteSize,
    /// Size of a queue manager's journal. A message, or the messages of a unit of work, take at most a quarter of it. Default
    /// `512MiB`.
    pub journal: ByteSize,
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self {
            max_message: ByteSize(4 << 20),
            non_persistent_memory: ByteSize(256 << 20),
            spill: ByteSize(8 << 30),
            segment: ByteSize(64 << 20),
            journal: ByteSize(512 << 20),
        }
    }
}

/// `[log]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// `text` or `json`. Default: `text` on a terminal, else `json`.
    pub format: Option<LogFormat>,
    /// `error`, `warn`, `info`, `debug` or `trace`. Default `info`.
    pub level: Option<String>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines, one object a line.
    Json,
}

impl NodeConfig {
    /// Reads a node file and the cluster file that it includes.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, line, column and key.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let file: NodeFile = parse(path, &read(path)?)?;
        let base = path.parent().unwrap_or(Path::new("."));
        let cluster = match (file.cluster, file.include) {
            (Some(_), Some(include)) => {
                return Err(ConfigError::Invalid {
                    path: path.to_owned(),
                    text: format!(
                        "[cluster] is given here and in the included {}; keep one",
                        include.display()
                    ),
                });
            }
            (Some(cluster), None) => cluster,
            (None, None) => ClusterConfig::default(),
            (None, Some(include)) => {
                let include = base.join(include);
                parse::<ClusterFile>(&include, &read(&include)?)?.cluster
            }
        };
        let mut config = Self {
            node: file.node,
            listen: file.listen,
            tls: file.tls,
            auth: file.auth,
            cluster,
            storage: file.storage,
            log: file.log,
        };
        config.node.data_dir = base.join(&config.node.data_dir);
        if let Some(tls) = &mut config.tls {
            for file in [&mut tls.cert, &mut tls.key, &mut tls.ca]
                .into_iter()
                .chain(&mut tls.crl)
            {
                *file = base.join(&*file);
            }
        }
        config.validate().map_err(|text| ConfigError::Invalid {
            path: path.to_owned(),
            text,
        })?;
        Ok(config)
    }

    /// The queue managers of this node.
    ///
    /// # Errors
    /// What is wrong with a name.
    pub fn queue_managers(&self) -> Result<Vec<QueueManagerName>, String> {
        self.node
            .qmgrs
            .iter()
            .map(|name| {
                QueueManagerName::new(name)
                    .map_err(|error| format!("node.qmgrs: {name:?}: {error}"))
            })
            .collect()
    }

    /// Whether this node is the only one.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.cluster.peers.len() < 2
    }

    fn validate(&self) -> Result<(), String> {
        self.cluster.validate()?;
        if self.queue_managers()?.is_empty() {
            return Err(
                "node.qmgrs names no queue manager; name at least one, such as [\"QM1\"]".into(),
            );
        }
        if !self.cluster.peers.is_empty()
            && !self.cluster.peers.iter().any(|p| p.id == self.node.id)
        {
            return Err(format!(
                "node.id is {}, but cluster.peers has no node with that id",
                self.node.id
            ));
        }
        if !self.is_alone() && self.tls.is_none() {
            return Err("[tls] is missing: nodes of a cluster talk over mutual TLS only".into());
        }
        if self.tls.is_none() && !self.listen.mq.ip().is_loopback() {
            return Err(format!(
                "listen.mq is {}, which is no loopback address, and [tls] is missing: plain text is for loopback only",
                self.listen.mq
            ));
        }
        for pattern in &self.auth.admin_peers {
            ferrymq_authority::PeerPattern::parse(pattern)
                .map_err(|error| format!("auth.admin_peers: {pattern:?}: {error}"))?;
        }
        let storage = &self.storage;
        if storage.max_message.0 > u64::from(ferrymq_types::MESSAGE_LENGTH_MAX) {
            return Err("storage.max_message is above 100MiB".into());
        }
        // A message has up to 1 MiB of properties and descriptor beside its data.
        let largest = storage.max_message.0.saturating_add(1 << 20);
        if storage.journal.0 / WRITE_SETS_IN_JOURNAL < largest {
            return Err(
                "storage.journal must be at least four times storage.max_message, and 4MiB more: a unit of work takes at most a quarter of it"
                    .into(),
            );
        }
        if storage.journal.0 < storage.segment.0.saturating_mul(4) {
            return Err("storage.journal must be at least four times storage.segment".into());
        }
        if storage.journal.0 / storage.segment.0.max(1) > u64::from(SEGMENTS_MAX) {
            return Err(format!(
                "storage.journal must be at most {SEGMENTS_MAX} times storage.segment: use larger segments"
            ));
        }
        Ok(())
    }
}
