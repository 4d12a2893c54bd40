//! Whose a data directory is, and which data directories the other nodes have (invariant R4).
//!
//! The first start of a node writes a file with the cluster's name, the node's number and 16 random bytes, its *instance*. Every call
//! between nodes carries them. A node remembers the instance of each other node as first seen, durably, and from then on speaks with no
//! other: a node whose directory was emptied has a new instance and can neither vote nor confirm entries under its old number.

use std::collections::BTreeMap;
use std::fs;
use std::io;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use prost::Message as _;

use ferrymq_proto::storage_v1 as pb;

use crate::config::MetadataConfig;
use crate::error::{OpenError, io_error};
use crate::files;

const VERSION: u32 = 1;
const FILE: &str = "node.id";

/// What a data directory is known by.
pub(crate) type Instance = [u8; 16];

/// This node's identity and what it knows of the others'.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) cluster: String,
    pub(crate) node: u64,
    pub(crate) instance: Instance,
    file: PathBuf,
    peers: Mutex<BTreeMap<u64, Instance>>,
}

impl Identity {
    /// Reads the identity, or makes one if there is none and `pristine` says that there is no data either.
    pub(crate) fn open(config: &MetadataConfig, pristine: bool) -> Result<Self, OpenError> {
        let file = config.directory.join(FILE);
        match fs::read(&file) {
            Ok(bytes) => Self::read(config, file, &bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound && pristine => Self::create(config, file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(OpenError::IdentityMissing {
                file: file.display().to_string(),
            }),
            Err(e) => Err(io_error("read", &file, e)),
        }
    }

    fn create(config: &MetadataConfig, file: PathBuf) -> Result<Self, OpenError> {
        let mut instance = [0; 16];
        getrandom::fill(&mut instance)
            .map_err(|e| io_error("make the identity", &file, io::Error::other(e)))?;
        let identity = Self {
            cluster: config.cluster.clone(),
            node: config.node,
            instance,
            file,
            peers: Mutex::new(BTreeMap::new()),
        };
        identity
            .save(&BTreeMap::new())
            .map_err(|e| io_error("write", &identity.file, e))?;
        Ok(identity)
    }

    fn read(config: &MetadataConfig, file: PathBuf, bytes: &[u8]) -> Result<Self, OpenError> {
        let damaged = |what: &str| {
            let error = io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
            io_error("read", &file, error)
        };
        let stored = files::unseal(bytes)
            .and_then(|bytes| pb::NodeIdentity::decode(bytes).ok())
            .ok_or_else(|| damaged("it is damaged: restore it from a backup"))?;
        if stored.version != VERSION {
            return Err(damaged("it was written by a newer release: use that one"));
        }
        if stored.cluster != config.cluster || stored.node_id != config.node {
            return Err(OpenError::ForeignDirectory {
                file: file.display().to_string(),
                found_node: stored.node_id,
                found_cluster: stored.cluster,
                node: config.node,
                cluster: config.cluster.clone(),
            });
        }
        let instance = |bytes: &Bytes| {
            Instance::try_from(bytes.as_ref())
                .map_err(|_| damaged("it is damaged: restore it from a backup"))
        };
        let peers = stored
            .peers
            .iter()
            .map(|peer| Ok((peer.node_id, instance(&peer.instance)?)))
            .collect::<Result<_, OpenError>>()?;
        let own = instance(&stored.instance)?;
        Ok(Self {
            cluster: stored.cluster,
            node: stored.node_id,
            instance: own,
            file,
            peers: Mutex::new(peers),
        })
    }

    fn save(&self, peers: &BTreeMap<u64, Instance>) -> io::Result<()> {
        let stored = pb::NodeIdentity {
            version: VERSION,
            cluster: self.cluster.clone(),
            node_id: self.node,
            instance: Bytes::copy_from_slice(&self.instance),
            peers: peers
                .iter()
                .map(|(id, instance)| pb::KnownInstance {
                    node_id: *id,
                    instance: Bytes::copy_from_slice(instance),
                })
                .collect(),
        };
        files::replace(&self.file, &files::seal(&stored.encode_to_vec()))
    }

    /// The instance that `node` is known by.
    pub(crate) fn known(&self, node: u64) -> Option<Instance> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.get(&node).copied()
    }

    /// Checks that `node` is who it was before; a node that is met for the first time is remembered, durably.
    pub(crate) fn recognise(&self, node: u64, instance: Instance) -> Result<(), IdentityProblem> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        match peers.get(&node) {
            Some(known) if *known == instance => Ok(()),
            Some(_) => Err(IdentityProblem::Replaced { node }),
            None => {
                let mut more = peers.clone();
                more.insert(node, instance);
                self.save(&more).map_err(|e| IdentityProblem::Unsaved {
                    file: self.file.display().to_string(),
                    error: e.to_string(),
                })?;
                *peers = more;
                Ok(())
            }
        }
    }

    /// The file.
    #[cfg(test)]
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

/// Why another node is not spoken with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdentityProblem {
    #[error(
        "node {node} has another data directory than before: restore that directory, or remove node {node} and let the machine join under \
         a node id that was never used"
    )]
    Replaced { node: u64 },
    #[error("cannot remember who the other node is: write {file}: {error}")]
    Unsaved { file: String, error: String },
}
