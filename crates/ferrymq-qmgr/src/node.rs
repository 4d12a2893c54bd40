//! A node: its metadata, its queue managers, its listeners.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use ferrymq_authority::PeerPattern;
use ferrymq_engine::Request;
use ferrymq_metadata::{AppliedDefinitions, Metadata, ProposeError};
use ferrymq_objects::{Action, Command, CommandError};
use ferrymq_proto::status::CallError;
use ferrymq_tls::TlsReloader;
use ferrymq_types::{QueueManagerId, QueueManagerName, ReasonCode};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::channels::{ChannelInitiator, Dialer};
use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::handle::QueueManagerHandle;
use crate::metadata_store::CopyDefinitions;
use crate::queue_manager::Started;
use crate::run::RunError;
use crate::{events, ids, queue_manager};

/// How long a definition may take from the leader to the queue manager that it concerns.
pub(crate) const APPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A queue manager that runs here.
#[derive(Debug, Clone)]
pub(crate) struct LocalQueueManager {
    pub(crate) handle: QueueManagerHandle,
    pub(crate) channels: Arc<ChannelInitiator>,
}

/// A running node.
pub(crate) struct Node {
    config: NodeConfig,
    clock: Clock,
    metadata: Metadata,
    copy: CopyDefinitions,
    network: Arc<crate::network::Network>,
    tls: Option<Arc<TlsReloader>>,
    administrators: Vec<PeerPattern>,
    local: RwLock<BTreeMap<QueueManagerName, LocalQueueManager>>,
    /// The index of the last command that every local queue manager has.
    served: watch::Sender<u64>,
    tasks: TaskTracker,
    /// Cancelled when the node is to end.
    shutdown: CancellationToken,
    /// Why it ends, if nobody asked.
    failure: OnceLock<String>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.config.node.name)
            .finish_non_exhaustive()
    }
}

impl Node {
    pub(crate) fn new(
        config: NodeConfig,
        clock: Clock,
        (metadata, copy): (Metadata, CopyDefinitions),
        network: Arc<crate::network::Network>,
        tls: Option<Arc<TlsReloader>>,
        administrators: Vec<PeerPattern>,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            config,
            clock,
            metadata,
            copy,
            network,
            tls,
            administrators,
            local: RwLock::default(),
            served: watch::Sender::new(0),
            tasks: TaskTracker::new(),
            shutdown,
            failure: OnceLock::new(),
        })
    }

    pub(crate) fn config(&self) -> &NodeConfig {
        &self.config
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// How the definitions are copied.
    pub(crate) fn copy_definitions(&self) -> &CopyDefinitions {
        &self.copy
    }

    pub(crate) fn network(&self) -> &Arc<crate::network::Network> {
        &self.network
    }

    pub(crate) fn administrators(&self) -> &[PeerPattern] {
        &self.administrators
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Resolves when the node is to end.
    pub(crate) async fn cancelled(&self) {
        self.shutdown.cancelled().await;
    }

    /// Why the node ends, if nobody asked.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    /// The queue managers that run here.
    pub(crate) fn all_local(&self) -> Vec<LocalQueueManager> {
        let local = self
            .local
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        local.values().cloned().collect()
    }

    /// A queue manager that runs here.
    pub(crate) fn local(&self, name: &QueueManagerName) -> Option<LocalQueueManager> {
        let local = self
            .local
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        local.get(name).cloned()
    }

    /// The queue manager that a caller means: by name, or the only one.
    pub(crate) fn queue_manager(&self, name: &str) -> Result<QueueManagerHandle, CallError> {
        let unknown = || CallError::new(ReasonCode::Q_MGR_NAME_ERROR, None, None);
        if name.is_empty() {
            let mut all = self.all_local().into_iter();
            return match (all.next(), all.next()) {
                (Some(only), None) => Ok(only.handle),
                (None, _) => Err(CallError::new(ReasonCode::Q_MGR_NOT_AVAILABLE, None, None)),
                (Some(_), Some(_)) => Err(unknown()),
            };
        }
        let name = QueueManagerName::new(name).map_err(|_| unknown())?;
        self.local(&name)
            .map(|local| local.handle)
            .ok_or_else(unknown)
    }

    /// Queue managers that a sender may mean.
    pub(crate) fn initiators_for(
        &self,
        partner: Option<&QueueManagerName>,
    ) -> Vec<Arc<ChannelInitiator>> {
        self.all_local()
            .into_iter()
            .filter(|local| partner.is_none_or(|p| p == local.handle.name()))
            .map(|local| local.channels)
            .collect()
    }

    /// Makes the queue managers of the configuration that do not exist yet, and starts those of this node.
    pub(crate) async fn start_queue_managers(self: &Arc<Self>) -> Result<(), RunError> {
        let names = self.config.queue_managers().map_err(RunError::Config)?;
        for name in names {
            let definitions = self.metadata.definitions();
            if !definitions.queue_managers.contains_key(&name) {
                self.create(&name).await?;
            }
            let definitions = self.metadata.definitions();
            let objects = definitions
                .queue_managers
                .get(&name)
                .cloned()
                .ok_or_else(|| {
                    RunError::Config(format!("queue manager {name} was created and is not here"))
                })?;
            if objects.node != self.config.node.id {
                return Err(RunError::Config(format!(
                    "node.qmgrs names {name}, but node {} hosts it; remove it from one of the two",
                    objects.node
                )));
            }
            self.start_one(objects).await?;
        }
        self.follow_definitions();
        Ok(())
    }

    /// Proposes a queue manager until it is there: at the first start of a cluster there may be no majority for a while.
    async fn create(&self, name: &QueueManagerName) -> Result<(), RunError> {
        let random = |_| RunError::Config("the operating system gives no random bytes".into());
        let command = Command {
            version: Command::VERSION,
            queue_manager: name.clone(),
            time: self.clock.now(),
            request: ids::random().map_err(random)?,
            action: Action::CreateQueueManager {
                id: QueueManagerId::new(ids::random().map_err(random)?),
                node: self.config.node.id,
            },
        };
        loop {
            match self.metadata.propose(&command).await {
                Ok(_) => return Ok(()),
                Err(ProposeError::Refused(CommandError::QueueManagerExists { .. })) => {
                    // Another node made it: this node has to see it before it knows whose it is.
                    return self.wait_for_queue_manager(name).await;
                }
                Err(error) if is_transient(&error) => {
                    info!(id = "FMQ9040I", qmgr = %name, "the queue manager waits for the cluster: {error}");
                }
                Err(error) => return Err(RunError::Metadata(error.to_string())),
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return Err(RunError::Cancelled),
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
        }
    }

    async fn wait_for_queue_manager(&self, name: &QueueManagerName) -> Result<(), RunError> {
        let mut definitions = self.metadata.watch();
        loop {
            if definitions
                .borrow_and_update()
                .definitions
                .queue_managers
                .contains_key(name)
            {
                return Ok(());
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return Err(RunError::Cancelled),
                changed = definitions.changed() => {
                    changed.map_err(|_| RunError::Metadata("Raft has stopped".into()))?;
                }
            }
        }
    }

    async fn start_one(
        self: &Arc<Self>,
        objects: Arc<ferrymq_objects::QueueManager>,
    ) -> Result<(), RunError> {
        let (events, received) = queue_manager::events();
        let (config, clock) = (self.config.clone(), self.clock);
        let runtime = tokio::runtime::Handle::current();
        let name = objects.attributes.name.clone();
        // Opening reads the whole journal: not on a thread of the runtime.
        let started = tokio::task::spawn_blocking(move || {
            let data_dir = &config.node.data_dir;
            queue_manager::start(objects, data_dir, &config.storage, clock, events, runtime)
        })
        .await
        .map_err(|error| RunError::Metadata(error.to_string()))?
        .map_err(RunError::QueueManager)?;
        let Started {
            handle,
            end,
            closed,
        } = started;
        for queue in closed {
            // Its deletion was begun and its definition is still there: it was refused, or is not decided. If it is deleted
            // after all, what it holds by then is kept and reported.
            let reopen = Request::ReopenQueue {
                queue: queue.clone(),
            };
            match handle.connect().ask(reopen).await {
                Ok(_) => {
                    info!(id = "FMQ9045I", qmgr = %name, queue = %queue, "a deletion that was interrupted left the queue in service")
                }
                Err(failure) => {
                    warn!(id = "FMQ9046W", qmgr = %name, queue = %queue, "the queue stays closed: {}", failure.reason)
                }
            }
        }
        let (triggers, triggered) = tokio::sync::mpsc::unbounded_channel();
        self.tasks
            .spawn(events::run(name.clone(), received, triggers));
        let dialer = Dialer {
            tls: self.tls.clone(),
        };
        let channels = ChannelInitiator::start(handle.clone(), dialer, self.tasks.clone())
            .await
            .map_err(|failure| RunError::Metadata(failure.reason.to_string()))?;
        self.tasks.spawn(channels.clone().follow(triggered));
        let node = self.clone();
        self.tasks.spawn(async move {
            // No result means that the thread panicked: the process aborts then, unless it was built to unwind.
            if let Err(cause) = end
                .await
                .unwrap_or_else(|_| Err("its thread has ended".into()))
            {
                // The failure of one queue manager ends the node: recovery at the next start decides what is in doubt.
                if node.failure.set(cause).is_err() {
                    warn!("another queue manager failed before");
                }
                node.shutdown.cancel();
            }
        });
        let mut local = self
            .local
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        local.insert(name, LocalQueueManager { handle, channels });
        Ok(())
    }

    /// Gives every local queue manager the definitions as they are applied.
    fn follow_definitions(self: &Arc<Self>) {
        let node = self.clone();
        let mut definitions = self.metadata.watch();
        self.tasks.spawn(async move {
            loop {
                let current = definitions.borrow_and_update().clone();
                node.serve_definitions(&current).await;
                tokio::select! {
                    () = node.shutdown.cancelled() => return,
                    changed = definitions.changed() => if changed.is_err() { return },
                }
            }
        });
    }

    async fn serve_definitions(&self, applied: &AppliedDefinitions) {
        for local in self.all_local() {
            let Some(objects) = applied.definitions.queue_managers.get(local.handle.name()) else {
                continue;
            };
            if Arc::ptr_eq(objects, &local.handle.objects()) {
                continue;
            }
            if let Err(failure) = local.handle.set_objects(objects.clone()).await {
                error!(
                    id = "FMQ9041E", qmgr = %local.handle.name(),
                    "new definitions did not reach the queue manager: {}", failure.reason
                );
                return;
            }
            local.channels.definitions_changed(objects);
        }
        self.served.send_replace(applied.index);
    }

    /// Waits until every local queue manager has the command at `index`.
    pub(crate) async fn wait_served(&self, index: u64) -> bool {
        let mut served = self.served.subscribe();
        let wait = served.wait_for(|at| *at >= index);
        matches!(tokio::time::timeout(APPLY_TIMEOUT, wait).await, Ok(Ok(_)))
    }

    /// Lets queue managers quiesce, before what serves clients ends.
    pub(crate) fn quiesce(&self) {
        for local in self.all_local() {
            local.handle.quiesce();
        }
    }

    /// Stops channels, then queue managers, then Raft, each in good order.
    pub(crate) async fn stop(&self) {
        let locals = self.all_local();
        for local in &locals {
            local.channels.quiesce();
        }
        self.tasks.close();
        // Channels finish their batch; whoever does not answer in time is backed out by recovery or at the next bind.
        let quiesced = tokio::time::timeout(Duration::from_secs(5), self.wait_channels(&locals));
        if quiesced.await.is_err() {
            info!(
                id = "FMQ9042I",
                "some channels did not end in time; their batches are settled at the next start"
            );
        }
        for local in &locals {
            local.handle.stop();
        }
        for local in &locals {
            local.handle.stopped().await;
        }
        self.metadata.shutdown().await;
    }

    async fn wait_channels(&self, locals: &[LocalQueueManager]) {
        while locals.iter().any(|local| local.channels.any_active()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Whether proposing again may help.
fn is_transient(error: &ProposeError) -> bool {
    match error {
        ProposeError::NoQuorum(_) | ProposeError::InDoubt(_) => true,
        ProposeError::Refused(_)
        | ProposeError::TooLarge { .. }
        | ProposeError::Format(_)
        | ProposeError::Stopped(_) => false,
    }
}
