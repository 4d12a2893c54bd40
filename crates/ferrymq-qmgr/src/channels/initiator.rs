//! The channel initiator of a queue manager: which channels there are, which run, and who may start and stop them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferrymq_channel::{
    ChannelState, ChannelStatus, ReceiverInput, SenderConfig, SenderInput, SenderMca, StopMode,
    StopStatus,
};
use ferrymq_engine::{Failure, Reply, Request};
use ferrymq_objects::{Channel, QueueManager, SenderChannel};
use ferrymq_types::{ChannelName, QueueManagerName, ReasonCode};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::channels::ping::PingFailure;
use crate::channels::sender_task::SenderTask;
use crate::channels::{Dialer, StatusCell, ping};
use crate::events::Triggered;
use crate::handle::{Connection, QueueManagerHandle};
use crate::ids;

/// Why a channel command is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelCommandError {
    #[error("channel {0} not found")]
    NotFound(ChannelName),
    #[error("channel {0} is ending")]
    InUse(ChannelName),
    #[error("channel {0} is of another type")]
    WrongType(ChannelName),
    #[error("{0}")]
    Ping(PingFailure),
    #[error("the queue manager refused: {}", .0.reason)]
    Engine(Failure),
}

impl ChannelCommandError {
    /// `MQRCCF_*` or `MQRC_*`.
    pub(crate) fn reason(&self) -> ReasonCode {
        match self {
            Self::NotFound(_) => ReasonCode::new(4032),
            Self::InUse(_) => ReasonCode::new(4031),
            Self::WrongType(_) => ReasonCode::new(4034),
            Self::Ping(failure) => failure.reason,
            Self::Engine(failure) => failure.reason,
        }
    }
}

/// A sending channel's task, as the initiator sees it.
#[derive(Debug)]
struct Sender {
    inputs: mpsc::UnboundedSender<SenderInput>,
    status: StatusCell,
    task: JoinHandle<()>,
}

/// A conversation with a sender elsewhere.
#[derive(Debug)]
struct Receiver {
    channel: ChannelName,
    inputs: mpsc::UnboundedSender<ReceiverInput>,
    status: StatusCell,
}

#[derive(Debug, Default)]
struct State {
    senders: BTreeMap<ChannelName, Sender>,
    /// Tasks of senders that are asked to end.
    ending: Vec<JoinHandle<()>>,
    /// By a number of their own, since a channel may have several for a moment: an old one and its successor.
    receivers: BTreeMap<u64, Receiver>,
    next_receiver: u64,
    /// Stopped by an operator.
    stopped: std::collections::BTreeSet<ChannelName>,
}

/// The channel initiator of one queue manager.
#[derive(Debug)]
pub(crate) struct ChannelInitiator {
    handle: QueueManagerHandle,
    /// Its own requests to the engine.
    connection: Connection,
    dialer: Dialer,
    tasks: TaskTracker,
    state: Mutex<State>,
}

/// Takes the conversation out of the displays when it ends.
#[derive(Debug)]
pub(crate) struct Registration {
    initiator: Arc<ChannelInitiator>,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.initiator.state().receivers.remove(&self.number);
    }
}

impl ChannelInitiator {
    /// Reads which channels are stopped, and starts those that have batches in doubt.
    pub(crate) async fn start(
        handle: QueueManagerHandle,
        dialer: Dialer,
        tasks: TaskTracker,
    ) -> Result<Arc<Self>, Failure> {
        let connection = handle.connect();
        let Reply::Channels {
            senders, stopped, ..
        } = connection.ask(Request::ChannelRows).await?
        else {
            return Err(Failure {
                reason: ReasonCode::UNEXPECTED_ERROR,
                object: None,
            });
        };
        let state = State {
            stopped: stopped.into_iter().collect(),
            ..State::default()
        };
        let objects = handle.objects();
        let this = Arc::new(Self {
            handle,
            connection,
            dialer,
            tasks,
            state: Mutex::new(state),
        });
        this.definitions_changed(&objects);
        for row in senders.into_iter().filter(|row| !row.in_doubt.is_empty()) {
            this.trigger_channel(&row.channel);
        }
        Ok(this)
    }

    /// Follows triggers until the engine has stopped.
    pub(crate) async fn follow(self: Arc<Self>, mut triggers: mpsc::UnboundedReceiver<Triggered>) {
        while let Some(Triggered { queue, channel }) = triggers.recv().await {
            let channel = channel.or_else(|| {
                // TRIGDATA is blank: the first channel with that transmission queue.
                self.handle
                    .objects()
                    .channels
                    .values()
                    .find_map(|c| match c {
                        Channel::Sender(s) if s.transmission_queue == queue => {
                            Some(s.base.name.clone())
                        }
                        Channel::Sender(_)
                        | Channel::Receiver(_)
                        | Channel::ServerConnection(_) => None,
                    })
            });
            if let Some(channel) = channel {
                self.trigger_channel(&channel);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trigger_channel(&self, channel: &ChannelName) {
        let state = self.state();
        if state.stopped.contains(channel) {
            return;
        }
        if let Some(sender) = state.senders.get(channel) {
            // A failure means that the task has ended: the node stops.
            drop(sender.inputs.send(SenderInput::Triggered));
        }
    }

    /// Makes a task for each new sending channel, tells the others what changed, ends those that are gone.
    pub(crate) fn definitions_changed(self: &Arc<Self>, objects: &Arc<QueueManager>) {
        let mut state = self.state();
        state.senders.retain(|name, sender| {
            let kept = matches!(objects.channels.get(name), Some(Channel::Sender(_)));
            if !kept {
                let mode = StopMode::Force;
                let status = StopStatus::Inactive;
                drop(
                    sender
                        .inputs
                        .send(SenderInput::StopRequested { mode, status }),
                );
            }
            kept
        });
        for (name, channel) in &objects.channels {
            let Channel::Sender(definition) = channel else {
                continue;
            };
            if definition.connection_name.is_empty() {
                // A template, such as SYSTEM.DEF.SENDER: there is nowhere to connect to.
                continue;
            }
            let config = match SenderConfig::new(definition.clone(), objects) {
                Ok(config) => config,
                Err(error) => {
                    error!(id = "AMQ9999E", qmgr = %self.handle.name(), channel = %name, "{error}");
                    continue;
                }
            };
            if let Some(sender) = state.senders.get(name) {
                drop(
                    sender
                        .inputs
                        .send(SenderInput::DefinitionChanged(Box::new(config))),
                );
                continue;
            }
            match self.spawn_sender(config, state.stopped.contains(name)) {
                Ok(sender) => {
                    state.senders.insert(name.clone(), sender);
                }
                Err(failure) => error!(
                    id = "AMQ9999E", qmgr = %self.handle.name(), channel = %name,
                    "the channel cannot be started: {}", failure.reason
                ),
            }
        }
    }

    fn spawn_sender(&self, config: SenderConfig, stopped: bool) -> Result<Sender, Failure> {
        let seed = ids::seed()?;
        let machine = if stopped {
            SenderMca::new_stopped(config, seed)
        } else {
            SenderMca::new(config, seed)
        };
        let status = StatusCell::new(machine.status());
        let (inputs, receiver) = mpsc::unbounded_channel();
        let task = SenderTask {
            machine,
            connection: self.handle.connect(),
            dialer: self.dialer.clone(),
            inputs: receiver,
            status: status.clone(),
        };
        let task = self.tasks.spawn(task.run());
        Ok(Sender {
            inputs,
            status,
            task,
        })
    }

    /// `START CHANNEL`.
    pub(crate) async fn start_channel(
        &self,
        name: &ChannelName,
    ) -> Result<(), ChannelCommandError> {
        if !self.handle.objects().channels.contains_key(name) {
            return Err(ChannelCommandError::NotFound(name.clone()));
        }
        let stopping = |state: &State| {
            let sender = state.senders.get(name);
            sender.is_some_and(|s| s.status.get().state == ChannelState::Stopping)
        };
        if stopping(&self.state()) {
            return Err(ChannelCommandError::InUse(name.clone()));
        }
        self.set_stopped(name, false).await?;
        if let Some(sender) = self.state().senders.get(name) {
            drop(sender.inputs.send(SenderInput::StartRequested));
        }
        Ok(())
    }

    /// `STOP CHANNEL`.
    pub(crate) async fn stop_channel(
        &self,
        name: &ChannelName,
        mode: StopMode,
        status: StopStatus,
    ) -> Result<(), ChannelCommandError> {
        if !self.handle.objects().channels.contains_key(name) {
            return Err(ChannelCommandError::NotFound(name.clone()));
        }
        if status == StopStatus::Stopped {
            self.set_stopped(name, true).await?;
        }
        let state = self.state();
        if let Some(sender) = state.senders.get(name) {
            drop(
                sender
                    .inputs
                    .send(SenderInput::StopRequested { mode, status }),
            );
        }
        for receiver in state.receivers.values().filter(|r| r.channel == *name) {
            drop(
                receiver
                    .inputs
                    .send(ReceiverInput::StopRequested { mode, status }),
            );
        }
        Ok(())
    }

    /// `RESET CHANNEL`: of a sender both ends at the next start, of a receiver this one.
    pub(crate) async fn reset_channel(
        &self,
        name: &ChannelName,
        number: u32,
    ) -> Result<(), ChannelCommandError> {
        let channel = name.clone();
        let request = match self.handle.objects().channels.get(name) {
            Some(Channel::Sender(_)) => Request::ResetSender { channel, number },
            Some(Channel::Receiver(_)) => Request::ResetReceiver { channel, number },
            Some(Channel::ServerConnection(_)) => {
                return Err(ChannelCommandError::WrongType(channel));
            }
            None => return Err(ChannelCommandError::NotFound(channel)),
        };
        self.ask(request).await
    }

    /// `RESOLVE CHANNEL`, of a sender.
    pub(crate) async fn resolve_channel(
        &self,
        name: &ChannelName,
        commit: bool,
    ) -> Result<(), ChannelCommandError> {
        self.sender_definition(name)?;
        let channel = name.clone();
        self.ask(Request::ResolveSender { channel, commit }).await
    }

    /// `PING CHANNEL`: test data to the partner and back, while the channel does not run.
    pub(crate) async fn ping_channel(
        &self,
        name: &ChannelName,
        data_length: u32,
    ) -> Result<(), ChannelCommandError> {
        let definition = self.sender_definition(name)?;
        if self.is_active(name) {
            return Err(ChannelCommandError::InUse(name.clone()));
        }
        let data: Vec<u8> = (0..=u8::MAX).cycle().take(data_length as usize).collect();
        ping::ping(
            &self.dialer,
            definition,
            &self.handle.objects(),
            data.into(),
        )
        .await
        .map_err(ChannelCommandError::Ping)
    }

    fn sender_definition(&self, name: &ChannelName) -> Result<SenderChannel, ChannelCommandError> {
        match self.handle.objects().channels.get(name) {
            Some(Channel::Sender(definition)) => Ok(definition.clone()),
            Some(Channel::Receiver(_) | Channel::ServerConnection(_)) => {
                Err(ChannelCommandError::WrongType(name.clone()))
            }
            None => Err(ChannelCommandError::NotFound(name.clone())),
        }
    }

    async fn ask(&self, request: Request) -> Result<(), ChannelCommandError> {
        let answer = self.connection.ask(request).await;
        answer.map(drop).map_err(ChannelCommandError::Engine)
    }

    async fn set_stopped(
        &self,
        channel: &ChannelName,
        stopped: bool,
    ) -> Result<(), ChannelCommandError> {
        let request = Request::SetChannelStopped {
            channel: channel.clone(),
            stopped,
        };
        self.ask(request).await?;
        let mut state = self.state();
        if stopped {
            state.stopped.insert(channel.clone());
        } else {
            state.stopped.remove(channel);
        }
        Ok(())
    }

    /// Whether an operator stopped it.
    pub(crate) fn is_stopped(&self, channel: &ChannelName) -> bool {
        self.state().stopped.contains(channel)
    }

    /// Whether it runs, so that it cannot be deleted.
    pub(crate) fn is_active(&self, channel: &ChannelName) -> bool {
        let state = self.state();
        let idle = |status: ChannelStatus| {
            matches!(status.state, ChannelState::Inactive | ChannelState::Stopped)
        };
        state
            .senders
            .get(channel)
            .is_some_and(|s| !idle(s.status.get()))
            || state.receivers.values().any(|r| r.channel == *channel)
    }

    /// Whether any channel runs.
    pub(crate) fn any_active(&self) -> bool {
        let state = self.state();
        !state.receivers.is_empty() || state.ending.iter().any(|task| !task.is_finished())
    }

    /// Adds a conversation to the displays, until the registration is dropped.
    pub(crate) fn register(
        self: &Arc<Self>,
        channel: ChannelName,
        inputs: mpsc::UnboundedSender<ReceiverInput>,
        status: ChannelStatus,
    ) -> (Registration, StatusCell) {
        let cell = StatusCell::new(status);
        let mut state = self.state();
        let number = state.next_receiver;
        state.next_receiver = number.saturating_add(1);
        state.receivers.insert(
            number,
            Receiver {
                channel,
                inputs,
                status: cell.clone(),
            },
        );
        drop(state);
        (
            Registration {
                initiator: self.clone(),
                number,
            },
            cell,
        )
    }

    /// The status of every channel that has one.
    pub(crate) fn statuses(&self) -> Vec<ChannelStatus> {
        let state = self.state();
        let senders = state.senders.values().map(|s| s.status.get());
        let receivers = state.receivers.values().map(|r| r.status.get());
        let mut all: Vec<_> = senders
            .filter(|s| s.state != ChannelState::Inactive)
            .chain(receivers)
            .collect();
        all.sort_by(|a, b| a.channel.cmp(&b.channel));
        all
    }

    /// Ends all channels in good order: the current batches are finished.
    pub(crate) fn quiesce(&self) {
        let mut state = self.state();
        let (mode, status) = (StopMode::Quiesce, StopStatus::Inactive);
        for sender in state.senders.values() {
            drop(
                sender
                    .inputs
                    .send(SenderInput::StopRequested { mode, status }),
            );
        }
        for receiver in state.receivers.values() {
            drop(
                receiver
                    .inputs
                    .send(ReceiverInput::StopRequested { mode, status }),
            );
        }
        // Without their inputs the tasks end when the machines are at rest.
        let senders = std::mem::take(&mut state.senders);
        state
            .ending
            .extend(senders.into_values().map(|sender| sender.task));
    }

    /// The queue manager's handle.
    pub(crate) fn handle(&self) -> &QueueManagerHandle {
        &self.handle
    }

    /// The queue manager.
    pub(crate) fn queue_manager(&self) -> &QueueManagerName {
        self.handle.name()
    }
}
