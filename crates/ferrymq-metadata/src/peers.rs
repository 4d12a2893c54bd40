//! The other nodes: gRPC channels to them, who they are, and when they were last heard of.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use ferrymq_proto::raft_v1::raft_service_client::RaftServiceClient;

use crate::config::{Member, PEER_MESSAGE_BYTES_MAX, PeerNetwork};
use crate::identity::{Identity, Instance};
use crate::types::{LogId, with_cause};

pub(crate) const CLUSTER: &str = "ferrymq-cluster";
pub(crate) const NODE: &str = "ferrymq-node";
pub(crate) const INSTANCE: &str = "ferrymq-instance";
pub(crate) const TARGET: &str = "ferrymq-target";
pub(crate) const TARGET_INSTANCE: &str = "ferrymq-target-instance";

pub(crate) type PeerClient = RaftServiceClient<InterceptedService<Channel, Introduce>>;

/// Says in each call who calls whom.
#[derive(Debug, Clone)]
pub(crate) struct Introduce {
    cluster: AsciiMetadataValue,
    node: AsciiMetadataValue,
    instance: AsciiMetadataValue,
    target: AsciiMetadataValue,
    target_instance: Option<AsciiMetadataValue>,
}

impl Interceptor for Introduce {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert(CLUSTER, self.cluster.clone());
        metadata.insert(NODE, self.node.clone());
        metadata.insert(INSTANCE, self.instance.clone());
        metadata.insert(TARGET, self.target.clone());
        if let Some(instance) = &self.target_instance {
            metadata.insert(TARGET_INSTANCE, instance.clone());
        }
        Ok(request)
    }
}

/// Who a call or an answer comes from, by its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Introduced {
    pub(crate) node: u64,
    pub(crate) instance: Instance,
}

impl Introduced {
    /// Reads the introduction. `None`: there is none, or another cluster's.
    pub(crate) fn read(metadata: &MetadataMap, cluster: &str) -> Option<Self> {
        let text = |key| metadata.get(key)?.to_str().ok();
        if text(CLUSTER)? != cluster {
            return None;
        }
        let mut instance = Instance::default();
        hex::decode_to_slice(text(INSTANCE)?, &mut instance).ok()?;
        Some(Self {
            node: text(NODE)?.parse().ok()?,
            instance,
        })
    }
}

/// What is known of a node's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contact {
    /// Whether a call to it ever succeeded.
    pub(crate) answered: bool,
    /// Why the last call failed; `None` after one that succeeded.
    pub(crate) problem: Option<String>,
    /// The highest entry that it confirmed to this run of this node.
    matched: Option<LogId>,
    /// It lacks what it had confirmed; the problem says so until it has it again.
    lost: bool,
}

/// A connection to a node: open, or being opened by a task of its own, so that callers with little time do not start it again and again.
#[derive(Debug, Clone)]
struct Connection {
    member: Member,
    opened: watch::Receiver<Option<Result<Channel, String>>>,
}

/// The other nodes.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) identity: Identity,
    network: Arc<dyn PeerNetwork>,
    connections: Mutex<BTreeMap<u64, Connection>>,
    contacts: Mutex<BTreeMap<u64, Contact>>,
    /// When a leader last sent something.
    heard_leader: Mutex<Option<Instant>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peers {
    pub(crate) fn new(identity: Identity, network: Arc<dyn PeerNetwork>) -> Self {
        Self {
            identity,
            network,
            connections: Mutex::new(BTreeMap::new()),
            contacts: Mutex::new(BTreeMap::new()),
            heard_leader: Mutex::new(None),
        }
    }

    pub(crate) fn network(&self) -> &dyn PeerNetwork {
        self.network.as_ref()
    }

    fn header(text: String) -> Result<AsciiMetadataValue, String> {
        text.parse()
            .map_err(|_| "an identity does not fit into a header".to_owned())
    }

    /// Uses the connection to `member`, or starts to open one. Opening ends by itself.
    fn connection(&self, member: &Member) -> Connection {
        let mut connections = lock(&self.connections);
        if let Some(found) = connections.get(&member.id) {
            let failed = matches!(*found.opened.borrow(), Some(Err(_)));
            let given_up = found.opened.has_changed().is_err() && found.opened.borrow().is_none();
            if found.member == *member && !failed && !given_up {
                return found.clone();
            }
        }
        let (open, opened) = watch::channel(None);
        let connecting = self.network.connect(member);
        tokio::spawn(async move {
            let result = connecting.await.map_err(|e| with_cause(e.as_ref()));
            // Nobody may be waiting any more.
            open.send_replace(Some(result));
        });
        let connection = Connection {
            member: member.clone(),
            opened,
        };
        connections.insert(member.id, connection.clone());
        connection
    }

    /// Gives a connection up, so that the next call opens another.
    pub(crate) fn disconnect(&self, node: u64) {
        lock(&self.connections).remove(&node);
    }

    /// A client of a node. All clients of one node share a connection.
    pub(crate) async fn client(&self, member: &Member) -> Result<PeerClient, String> {
        let mut connection = self.connection(member);
        let opened = connection.opened.wait_for(Option::is_some).await;
        let channel = match opened.as_deref() {
            Ok(Some(Ok(channel))) => channel.clone(),
            Ok(Some(Err(problem))) => return Err(problem.clone()),
            Ok(None) | Err(_) => return Err("no connection was opened".to_owned()),
        };
        let introduce = Introduce {
            cluster: Self::header(self.identity.cluster.clone())?,
            node: self.identity.node.into(),
            instance: Self::header(hex::encode(self.identity.instance))?,
            target: member.id.into(),
            target_instance: self
                .identity
                .known(member.id)
                .map(|instance| Self::header(hex::encode(instance)))
                .transpose()?,
        };
        Ok(RaftServiceClient::with_interceptor(channel, introduce)
            .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
            .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX))
    }

    /// Checks that an answer comes from the node that was asked (invariant R4).
    pub(crate) fn check_answer(&self, node: u64, metadata: &MetadataMap) -> Result<(), String> {
        let problem = match Introduced::read(metadata, &self.identity.cluster) {
            Some(who) if who.node == node => self
                .identity
                .recognise(node, who.instance)
                .map_err(|e| e.to_string()),
            Some(who) => Err(format!("node {} answers in place of node {node}", who.node)),
            None => Err(format!(
                "what answers in place of node {node} is not of this cluster"
            )),
        };
        self.note(node, problem.as_ref().err().map(String::as_str));
        problem
    }

    /// Notes how a call to a node ended, and tells the operator when that changes.
    pub(crate) fn note(&self, node: u64, problem: Option<&str>) {
        let mut contacts = lock(&self.contacts);
        let contact = contacts.entry(node).or_default();
        match problem {
            None => {
                contact.answered = true;
                if !contact.lost && contact.problem.take().is_some() {
                    tracing::info!(node, "node can be reached again");
                }
            }
            Some(problem) => {
                if contact.problem.as_deref() != Some(problem) {
                    tracing::info!(node, problem, "node cannot be used");
                    contact.problem = Some(problem.to_owned());
                }
            }
        }
    }

    /// Notes an entry that a node confirmed.
    pub(crate) fn note_matched(&self, node: u64, matched: Option<LogId>) {
        let mut contacts = lock(&self.contacts);
        let contact = contacts.entry(node).or_default();
        contact.lost &= matched < contact.matched;
        contact.matched = contact.matched.max(matched);
    }

    /// Whether a node says that it lacks an entry which it confirmed before: it has lost what it had stored, or was started on an older
    /// copy of its data.
    pub(crate) fn has_lost(&self, node: u64, missing: &LogId) -> bool {
        let mut contacts = lock(&self.contacts);
        let Some(contact) = contacts.get_mut(&node) else {
            return false;
        };
        let lost = contact.matched.is_some_and(|matched| matched >= *missing);
        contact.lost |= lost;
        lost
    }

    pub(crate) fn contact(&self, node: u64) -> Contact {
        lock(&self.contacts).get(&node).cloned().unwrap_or_default()
    }

    pub(crate) fn heard_leader(&self) {
        *lock(&self.heard_leader) = Some(Instant::now());
    }

    /// Whether a leader sent something within this time.
    pub(crate) fn heard_leader_within(&self, time: Duration) -> bool {
        lock(&self.heard_leader).is_some_and(|at| at.elapsed() <= time)
    }
}
