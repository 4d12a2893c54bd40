//! The handle of a node's metadata.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use openraft::async_runtime::watch::WatchReceiver as _;
use openraft::errors::{ClientWriteError, InitializeError as RaftInitializeError, RaftError};
use openraft::{ChangeMembers, Config, Raft, RaftMetrics, SnapshotPolicy};
use tokio::sync::{Mutex, Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use ferrymq_objects::{Command, Definitions};
use ferrymq_proto::raft_v1 as wire;
use ferrymq_store::RecordLog;

use crate::config::{
    MEMBERS_MAX, Member, MetadataConfig, PeerNetwork, RAFT_QUEUE_MAX, REPLICATED_ENTRIES_MAX,
    check_members,
};
use crate::error::{
    InitializeError, MembershipError, OpenError, ProposeError, ReadError, io_error,
};
use crate::files;
use crate::identity::Identity;
use crate::log::{LogThread, ReadLog};
use crate::network::{Network, is_lost};
use crate::peers::Peers;
use crate::propose::Committed;
use crate::service::{self, PeerServer};
use crate::state::{AppliedDefinitions, SnapshotDirectory, StateMachine};
use crate::status::{self, ClusterStatus};
use crate::store::StateStore;
use crate::types::{PeerNode, TypeConfig, with_cause};

/// Snapshots that are received at once.
const SNAPSHOTS_RECEIVED_MAX: usize = 1;
/// How long the sending of a snapshot may take.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(300);
/// How long another node may take to say how it is.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the tasks of Raft may take to let go of the row store after its stop.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Nodes that are asked at once.
const PROBED_AT_ONCE: usize = 32;

/// A node's part in the cluster's metadata: the definitions as this node has them, and the way to change them.
///
/// Cheap to clone; all clones are one. The runtime mounts [`Metadata::service`] on the peer listener, calls [`Metadata::bootstrap`] once
/// that listens, and [`Metadata::shutdown`] at the end.
#[derive(Debug, Clone)]
pub struct Metadata {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: MetadataConfig,
    pub(crate) raft: Raft<TypeConfig, StateMachine>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) snapshots: Arc<SnapshotDirectory>,
    pub(crate) snapshots_received: Semaphore,
    pub(crate) stopping: CancellationToken,
    applied: watch::Receiver<AppliedDefinitions>,
    log: Mutex<LogThread>,
    closed: Mutex<Option<oneshot::Receiver<Infallible>>>,
    crowding: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("node", &self.config.node)
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn metrics(&self) -> RaftMetrics<TypeConfig> {
        // Cloned at once: a guard that is held blocks Raft.
        self.raft.metrics().borrow_watched().clone()
    }

    /// What the membership says of a node; before there is one, the configuration.
    pub(crate) fn member(&self, id: u64) -> Option<Member> {
        let metrics = self.metrics();
        let replicated = metrics.membership_config.get_node(&id).map(|node| Member {
            id,
            name: node.name.clone(),
            address: node.address.clone(),
        });
        replicated.or_else(|| self.config.members.iter().find(|m| m.id == id).cloned())
    }

    pub(crate) async fn wait_applied(
        &self,
        index: u64,
        deadline: Instant,
    ) -> Result<Arc<Definitions>, ReadError> {
        let mut applied = self.applied.clone();
        let reached = timeout_at(deadline, applied.wait_for(|a| a.index >= index)).await;
        match reached {
            Ok(Ok(found)) => Ok(Arc::clone(&found.definitions)),
            Ok(Err(_)) => Err(ReadError::Stopped("its state machine has ended".to_owned())),
            Err(_) => Err(ReadError::Lagging {
                applied: self.applied.borrow().index,
                wanted: index,
            }),
        }
    }

    /// Asks a node how it is.
    pub(crate) async fn probe(&self, member: &Member) -> Result<wire::GetStatusResponse, String> {
        let answered = timeout(PROBE_TIMEOUT, async {
            let mut client = self.peers.client(member).await?;
            let call = client.get_status(wire::GetStatusRequest {});
            call.await.map_err(|status| {
                if is_lost(&status) {
                    self.peers.disconnect(member.id);
                }
                with_cause(&status)
            })
        });
        let response = answered
            .await
            .map_err(|_| "no answer in time".to_owned())
            .flatten()
            .inspect_err(|problem| self.peers.note(member.id, Some(problem)))?;
        self.peers.check_answer(member.id, response.metadata())?;
        Ok(response.into_inner())
    }

    /// Asks nodes how they are, and pairs each with its answer.
    pub(crate) async fn probe_all(
        &self,
        members: Vec<Member>,
    ) -> Vec<(Member, Result<wire::GetStatusResponse, String>)> {
        stream::iter(members)
            .map(|member| async move {
                let answer = self.probe(&member).await;
                (member, answer)
            })
            .buffer_unordered(PROBED_AT_ONCE)
            .collect()
            .await
    }
}

fn raft_config(config: &MetadataConfig) -> Result<Config, OpenError> {
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let election = millis(config.election_timeout);
    Config {
        cluster_name: config.cluster.clone(),
        election_timeout_min: election,
        election_timeout_max: election.saturating_mul(2),
        heartbeat_interval: millis(config.heartbeat),
        install_snapshot_timeout: millis(SNAPSHOT_TIMEOUT),
        max_payload_entries: REPLICATED_ENTRIES_MAX,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(config.snapshot_every),
        max_in_snapshot_log_to_keep: config.entries_kept,
        replication_lag_threshold: config
            .snapshot_every
            .saturating_add(config.entries_kept)
            .saturating_add(1),
        api_channel_size: Some(RAFT_QUEUE_MAX),
        notification_channel_size: Some(RAFT_QUEUE_MAX),
        state_machine_channel_size: Some(RAFT_QUEUE_MAX),
        // A node that was cut off does not depose a good leader when it comes back.
        enable_pre_vote: Some(true),
        // A restarted leader leads only after an election (invariant R5).
        enable_leader_restore: Some(false),
        ..Config::default()
    }
    .validate()
    .map_err(|e| OpenError::Raft(e.to_string()))
}

impl Metadata {
    /// Opens a node's metadata: reads log and rows, starts Raft. `log` and `state` are this node's own, opened and not started; `network`
    /// is how other nodes are reached.
    ///
    /// A node that is alone makes its cluster here. Any other waits for [`Metadata::bootstrap`], [`Metadata::initialize`], or a leader that
    /// calls.
    ///
    /// # Errors
    /// [`OpenError`]: nothing was started.
    pub async fn open<L: RecordLog>(
        config: MetadataConfig,
        log: L,
        state: Arc<dyn StateStore>,
        network: Arc<dyn PeerNetwork>,
    ) -> Result<Self, OpenError> {
        config.validate()?;
        let raft_config = Arc::new(raft_config(&config)?);
        let opening = config.clone();
        let opened = tokio::task::spawn_blocking(move || Opened::open(&opening, log, state)).await;
        let opened = opened.map_err(|e| OpenError::Raft(e.to_string()))??;
        let peers = Arc::new(Peers::new(opened.identity, network));
        let mut storage = opened.storage;
        let closed = storage.machine.closed();
        let applied = storage.machine.watch();
        let crowding = storage.thread.crowding();
        let mut thread = storage.thread;
        let raft = Raft::new(
            config.node,
            raft_config,
            Network::new(Arc::clone(&peers)),
            storage.log,
            storage.machine,
        )
        .await;
        let raft = match raft {
            Ok(raft) => raft,
            Err(error) => {
                thread.stop().await;
                return Err(OpenError::Raft(error.to_string()));
            }
        };
        let alone = config.is_alone();
        let metadata = Self {
            inner: Arc::new(Inner {
                config,
                raft,
                peers,
                snapshots: storage.snapshots,
                snapshots_received: Semaphore::new(SNAPSHOTS_RECEIVED_MAX),
                stopping: CancellationToken::new(),
                applied,
                log: Mutex::new(thread),
                closed: Mutex::new(closed),
                crowding: Mutex::new(None),
            }),
        };
        metadata.relieve_when_crowded(crowding).await;
        if alone && let Err(error) = metadata.make_cluster(&metadata.inner.config.members).await {
            metadata.shutdown().await;
            return Err(OpenError::Raft(error.to_string()));
        }
        Ok(metadata)
    }

    /// Has a snapshot made whenever the log is crowded with entries.
    async fn relieve_when_crowded(&self, mut crowding: watch::Receiver<u64>) {
        let raft = self.inner.raft.clone();
        let task = tokio::spawn(async move {
            while crowding.changed().await.is_ok() {
                if let Err(error) = raft.trigger().snapshot().await {
                    tracing::info!(%error, "no snapshot: Raft has stopped");
                    break;
                }
            }
        });
        *self.inner.crowding.lock().await = Some(task);
    }

    /// The gRPC service that other nodes call, for the peer listener.
    #[must_use]
    pub fn service(&self) -> PeerServer {
        service::server(Arc::clone(&self.inner))
    }

    /// What is to be done at a start once the peer listener listens: makes the cluster if the configuration says that this node does so
    /// and it is part of none. Returns whether it made one.
    ///
    /// A node that is part of no cluster also asks its peers whether they know it with another data directory.
    ///
    /// # Errors
    /// [`InitializeError::DirectoryLost`]: they do (invariant R4). [`InitializeError::ClusterExists`]: bootstrap was asked for, but there
    /// is a cluster.
    pub async fn bootstrap(&self) -> Result<bool, InitializeError> {
        if self.is_initialized().await? {
            return Ok(false);
        }
        let others = self.ask_others(&self.inner.config.members).await?;
        match others {
            Some(peer) if self.inner.config.bootstrap => {
                Err(InitializeError::ClusterExists { peer })
            }
            None if self.inner.config.bootstrap => {
                self.make_cluster(&self.inner.config.members).await?;
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Makes a cluster of these members, this node among them, all of them voters. On a node that is part of a cluster it does nothing.
    /// Several nodes may do so if they name the same members.
    ///
    /// # Errors
    /// [`InitializeError`]: the cluster was not made.
    pub async fn initialize(&self, members: &[Member]) -> Result<(), InitializeError> {
        if self.is_initialized().await? {
            return Ok(());
        }
        if let Some(peer) = self.ask_others(members).await? {
            return Err(InitializeError::ClusterExists { peer });
        }
        self.make_cluster(members).await
    }

    async fn is_initialized(&self) -> Result<bool, InitializeError> {
        let initialized = self.inner.raft.is_initialized().await;
        initialized.map_err(|e| InitializeError::Stopped(e.to_string()))
    }

    /// Asks other nodes whether there is a cluster. Returns one that says so.
    async fn ask_others(&self, members: &[Member]) -> Result<Option<u64>, InitializeError> {
        let identity = &self.inner.peers.identity;
        let others = members.iter().filter(|m| m.id != identity.node);
        let mut exists = None;
        for (member, answer) in self.inner.probe_all(others.cloned().collect()).await {
            // Who does not answer is no hindrance: a second cluster cannot come to be, since its members would not elect this node.
            let Ok(answer) = answer else { continue };
            let known = answer.known_instance;
            if !known.is_empty() && known.as_ref() != identity.instance.as_slice() {
                return Err(InitializeError::DirectoryLost {
                    node: identity.node,
                    peer: member.id,
                });
            }
            if answer.initialized {
                exists = Some(member.id);
            }
        }
        Ok(exists)
    }

    async fn make_cluster(&self, members: &[Member]) -> Result<(), InitializeError> {
        check_members(members, self.inner.config.is_alone())?;
        let nodes: BTreeMap<u64, PeerNode> = members.iter().map(raft_node).collect();
        match self.inner.raft.initialize(nodes).await {
            Ok(()) | Err(RaftError::APIError(RaftInitializeError::NotAllowed(_))) => Ok(()),
            Err(RaftError::APIError(error @ RaftInitializeError::NotInMembers(_))) => Err(
                InitializeError::Members(crate::config::ConfigError(error.to_string())),
            ),
            Err(RaftError::Fatal(error)) => Err(InitializeError::Stopped(error.to_string())),
        }
    }

    /// Proposes a command and waits until it is applied, on the cluster and, for as long as the time allows, on this node.
    ///
    /// Any node may be asked: it passes the command on to the leader, and asks again through elections and lost connections, for at most
    /// `propose_timeout`. The command's request id makes that safe: it takes effect once.
    ///
    /// # Errors
    /// [`ProposeError::Refused`] with the reason of the refusal, [`ProposeError::NoQuorum`] (9001), [`ProposeError::InDoubt`] (9002),
    /// [`ProposeError::TooLarge`] (9004), [`ProposeError::Stopped`] (9007).
    pub async fn propose(&self, command: &Command) -> Result<Committed, ProposeError> {
        self.inner.propose(command).await
    }

    /// The definitions as this node has them. They may be old: a node that is cut off goes on with what it has. See
    /// [`Metadata::current`].
    #[must_use]
    pub fn definitions(&self) -> Arc<Definitions> {
        Arc::clone(&self.inner.applied.borrow().definitions)
    }

    /// Follows the definitions as this node applies them. What is shown is durable on this node.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<AppliedDefinitions> {
        self.inner.applied.clone()
    }

    /// Waits until this node has applied the log up to `index`, and returns the definitions that it has then.
    ///
    /// # Errors
    /// [`ReadError::Lagging`] if it takes longer than `time`; [`ReadError::Stopped`].
    pub async fn wait_applied(
        &self,
        index: u64,
        time: Duration,
    ) -> Result<Arc<Definitions>, ReadError> {
        self.inner.wait_applied(index, Instant::now() + time).await
    }

    /// The definitions with every change that was acknowledged before this call (invariant R1): asks the leader how far that is and waits
    /// for it, for at most `propose_timeout`.
    ///
    /// # Errors
    /// [`ReadError`], 9001 without a majority.
    pub async fn current(&self) -> Result<Arc<Definitions>, ReadError> {
        let deadline = Instant::now() + self.inner.config.propose_timeout;
        let index = self.inner.read_index(deadline).await?;
        self.inner.wait_applied(index, deadline).await
    }

    /// How the cluster and its nodes are, by what this node knows. Asks nobody.
    #[must_use]
    pub fn status(&self) -> ClusterStatus {
        status::known(&self.inner, &self.inner.metrics())
    }

    /// How the cluster and its nodes are. Asks the other nodes, for at most a second.
    pub async fn members(&self) -> ClusterStatus {
        status::asked(&self.inner).await
    }

    /// Waits until the status is as wanted. It is looked at whenever Raft's changes.
    ///
    /// # Errors
    /// The status after `time`, or when Raft has ended.
    pub async fn wait_status(
        &self,
        time: Duration,
        is_wanted: impl Fn(&ClusterStatus) -> bool + Send,
    ) -> Result<ClusterStatus, Box<ClusterStatus>> {
        let deadline = Instant::now() + time;
        let mut metrics = self.inner.raft.metrics();
        loop {
            let status = status::known(&self.inner, &metrics.borrow_watched().clone());
            if is_wanted(&status) {
                return Ok(status);
            }
            if !matches!(timeout_at(deadline, metrics.changed()).await, Ok(Ok(()))) {
                return Err(Box::new(status));
            }
        }
    }

    /// Adds a node as a learner: it follows, but does not vote. Only on the leader. Returns once the membership is committed; the node
    /// catches up by itself.
    ///
    /// # Errors
    /// [`MembershipError`].
    pub async fn add_learner(&self, member: &Member) -> Result<(), MembershipError> {
        let members: usize = self.inner.metrics().membership_config.nodes().count();
        if members >= MEMBERS_MAX {
            return Err(MembershipError::Members(crate::config::ConfigError(
                format!("a cluster has at most {MEMBERS_MAX} nodes"),
            )));
        }
        check_members(std::slice::from_ref(member), false)?;
        let (id, node) = raft_node(member);
        self.in_time(self.inner.raft.add_learner(id, node, false))
            .await
    }

    /// Makes exactly these nodes the voters; each must be a member. A voter that is not named becomes a learner. Only on the leader.
    ///
    /// # Errors
    /// [`MembershipError`].
    pub async fn set_voters(
        &self,
        voters: impl IntoIterator<Item = u64> + Send,
    ) -> Result<(), MembershipError> {
        let voters = voters.into_iter().collect();
        let change = ChangeMembers::ReplaceAllVoters(voters);
        self.in_time(self.inner.raft.change_membership(change, true))
            .await
    }

    /// Removes a learner. Its number must never be used again. Only on the leader.
    ///
    /// # Errors
    /// [`MembershipError`].
    pub async fn remove_learner(&self, node: u64) -> Result<(), MembershipError> {
        let change = ChangeMembers::RemoveNodes([node].into());
        self.in_time(self.inner.raft.change_membership(change, true))
            .await
    }

    async fn in_time<T>(
        &self,
        change: impl Future<Output = Result<T, RaftError<TypeConfig, ClientWriteError<TypeConfig>>>>,
    ) -> Result<(), MembershipError> {
        let time = self.inner.config.propose_timeout;
        match timeout(time, change).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(to)))) => {
                Err(MembershipError::NotLeader(to.leader_id))
            }
            Ok(Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)))) | Err(_) => {
                Err(MembershipError::InDoubt(time))
            }
            Ok(Err(error)) => Err(MembershipError::Refused(error.to_string())),
        }
    }

    /// Hands leadership to another voter. Only on the leader; returns before it has happened, and it may not happen: if the other node lags
    /// or cannot be reached, this one is soon elected again.
    ///
    /// # Errors
    /// [`MembershipError::NotLeader`]; [`MembershipError::Refused`] if Raft has stopped.
    pub async fn transfer_leader(&self, to: u64) -> Result<(), MembershipError> {
        let leader = self.inner.metrics().current_leader;
        if leader != Some(self.inner.config.node) {
            return Err(MembershipError::NotLeader(leader));
        }
        let asked = self.inner.raft.trigger().transfer_leader(to).await;
        asked.map_err(|e| MembershipError::Refused(e.to_string()))
    }

    /// Has a snapshot made, and the log purged of what it covers. Returns before it has happened.
    ///
    /// # Errors
    /// [`MembershipError::Refused`] if Raft has stopped.
    pub async fn snapshot(&self) -> Result<(), MembershipError> {
        let asked = self.inner.raft.trigger().snapshot().await;
        asked.map_err(|e| MembershipError::Refused(e.to_string()))
    }

    /// Waits until Raft has stopped on this node and says why: after a failed write nothing else helps than to restart the node.
    pub async fn stopped(&self) -> String {
        let mut metrics = self.inner.raft.metrics();
        loop {
            let state = metrics.borrow_watched().running_state.clone();
            if let Err(error) = state {
                return error.to_string();
            }
            if metrics.changed().await.is_err() {
                return "Raft has ended".to_owned();
            }
        }
    }

    /// Stops Raft on this node, and ends the thread of its log. Afterwards log and rows may be opened anew.
    pub async fn shutdown(&self) {
        self.inner.stopping.cancel();
        if let Err(error) = self.inner.raft.shutdown().await {
            tracing::error!(%error, "Raft did not stop as it should");
        }
        self.inner.log.lock().await.stop().await;
        if let Some(task) = self.inner.crowding.lock().await.take() {
            task.abort();
        }
        if let Some(closed) = self.inner.closed.lock().await.take()
            && timeout(CLOSE_TIMEOUT, closed).await.is_err()
        {
            tracing::error!("the rows of definitions are still in use after the stop of Raft");
        }
    }
}

fn raft_node(member: &Member) -> (u64, PeerNode) {
    let node = PeerNode {
        name: member.name.clone(),
        address: member.address.clone(),
    };
    (member.id, node)
}

/// What was read before Raft starts.
struct Opened {
    identity: Identity,
    storage: OpenedStorage,
}

/// Log and state machine.
pub(crate) struct OpenedStorage {
    pub(crate) log: crate::log::LogStorage,
    pub(crate) thread: LogThread,
    pub(crate) machine: StateMachine,
    pub(crate) snapshots: Arc<SnapshotDirectory>,
}

/// Log and state machine, read and not started.
struct ReadStorage<L> {
    log: ReadLog<L>,
    machine: StateMachine,
    snapshots: Arc<SnapshotDirectory>,
}

impl<L: RecordLog> ReadStorage<L> {
    fn read(
        directory: &Path,
        cluster: &str,
        log: L,
        state: Arc<dyn StateStore>,
    ) -> Result<Self, OpenError> {
        files::make_directory(directory).map_err(|e| io_error("make", directory, e))?;
        let snapshots = SnapshotDirectory::open(directory, cluster)
            .map_err(|e| io_error("read", directory, e))?;
        let snapshots = Arc::new(snapshots);
        Ok(Self {
            log: ReadLog::read(log)?,
            machine: StateMachine::open(state, Arc::clone(&snapshots))?,
            snapshots,
        })
    }

    fn is_pristine(&self) -> bool {
        self.log.is_pristine() && self.machine.is_pristine()
    }

    fn start(self) -> Result<OpenedStorage, OpenError> {
        let (log, thread) = self.log.start()?;
        Ok(OpenedStorage {
            log,
            thread,
            machine: self.machine,
            snapshots: self.snapshots,
        })
    }
}

/// Opens log and state machine alone.
pub(crate) fn open_storage<L: RecordLog>(
    directory: &Path,
    cluster: &str,
    log: L,
    state: Arc<dyn StateStore>,
) -> Result<OpenedStorage, OpenError> {
    ReadStorage::read(directory, cluster, log, state)?.start()
}

impl Opened {
    fn open<L: RecordLog>(
        config: &MetadataConfig,
        log: L,
        state: Arc<dyn StateStore>,
    ) -> Result<Self, OpenError> {
        let read = ReadStorage::read(&config.directory, &config.cluster, log, state)?;
        let identity = Identity::open(config, read.is_pristine())?;
        let storage = read.start()?;
        Ok(Self { identity, storage })
    }
}
