//! Runs MQSC commands: parses, asks whoever has to do it, and makes the report that `runmqsc` would print.

mod channel_rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use ferrymq_authority::PeerPattern;
use ferrymq_channel as mca;
use ferrymq_engine::{Failure, QueueStatistics, Reply, Request};
use ferrymq_metadata::ProposeError;
use ferrymq_mqsc::{
    Answer, ChannelState, ChannelStatus, Display, QueueStatus, RuntimeStatus, Statement,
};
use ferrymq_objects::{
    Action, Applied, AttributeValue, Attributes, Channel, Command, CommandError, DeleteKind,
    LocalQueue, MessageSpeed, ObjectKind, OperatorMessage, QueueManager,
};
use ferrymq_types::{ChannelName, ObjectId, QueueManagerName, QueueName, ReasonCode, Timestamp};
use tracing::info;

use crate::channels::ChannelCommandError;
use crate::ids;
use crate::node::{LocalQueueManager, Node};
use crate::run::RunError;

/// Runs one command on a queue manager of this node. `who` is for the account and the log.
pub(crate) async fn run(
    node: &Arc<Node>,
    local: &LocalQueueManager,
    command: &str,
    who: &str,
) -> Answer {
    let answer = match ferrymq_mqsc::parse(command) {
        Ok(statement) => Executor { node, local, who }.execute(statement).await,
        Err(error) => Answer::syntax(command, &error),
    };
    let result = if answer.is_done() { "done" } else { "refused" };
    // The command's text is somebody else's: the log escapes it.
    info!(id = "FMQ9050I", qmgr = %local.handle.name(), who, result, "MQSC: {command}");
    answer
}

/// Runs a script on a queue manager that has only its system objects yet.
pub(crate) async fn run_once(node: &Arc<Node>, script: &str) -> Result<(), RunError> {
    for local in node.all_local() {
        let is_new = local
            .handle
            .objects()
            .queues
            .keys()
            .all(|name| name.as_str().starts_with("SYSTEM."));
        for command in script.lines().filter(|_| is_new) {
            let answer = run(node, &local, command, "start").await;
            if !answer.is_done() {
                return Err(RunError::Config(answer.lines.join(" ")));
            }
        }
    }
    Ok(())
}

/// Alters an object of a queue manager of this node on behalf of a program: proposed, applied everywhere, and done when the
/// queue manager has it.
pub(crate) async fn alter(
    node: &Node,
    queue_manager: &QueueManagerName,
    action: Action,
) -> Result<(), ReasonCode> {
    let command = Command {
        version: Command::VERSION,
        queue_manager: queue_manager.clone(),
        time: node.clock().now(),
        request: ids::random().map_err(|failure| failure.reason)?,
        action,
    };
    let committed = node.metadata().propose(&command).await;
    let committed = committed.map_err(|error| error.reason())?;
    if node.wait_served(committed.index).await {
        Ok(())
    } else {
        Err(ReasonCode::IN_DOUBT)
    }
}

struct Executor<'a> {
    node: &'a Arc<Node>,
    local: &'a LocalQueueManager,
    who: &'a str,
}

impl Executor<'_> {
    fn name(&self) -> &QueueManagerName {
        self.local.handle.name()
    }

    fn objects(&self) -> Arc<QueueManager> {
        self.local.handle.objects()
    }

    async fn ask(&self, request: Request) -> Result<Reply, Failure> {
        self.local.handle.connect().ask(request).await
    }

    async fn execute(&self, statement: Statement) -> Answer {
        let action = statement.action();
        match statement {
            Statement::SetChannelRule {
                profile,
                rule_type,
                attributes,
                ..
            } => {
                if let Err(answer) = channel_rules::check_rule(&profile, rule_type, &attributes) {
                    return *answer;
                }
                self.change(action, &Attributes::new()).await
            }
            Statement::CheckChannel { channel, check } => {
                channel_rules::check_channel(&self.objects(), &channel, &check)
            }
            Statement::RefreshSecurity => Answer::security_refreshed(),
            Statement::Define { attributes, .. }
            | Statement::Alter { attributes, .. }
            | Statement::AlterQueueManager { attributes, .. } => {
                self.change(action, &attributes).await
            }
            Statement::Delete {
                kind,
                name,
                purge,
                ignore_state,
            } => {
                let answer = self.delete(kind, &name, purge).await;
                let missing = [2085, 4032].contains(&answer.reason.get());
                if missing && ignore_state {
                    Answer::nothing_to_delete(kind.class())
                } else {
                    answer
                }
            }
            Statement::Display(display) => match self.display(&display).await {
                Ok(answer) => answer,
                Err(failure) => Answer::failed(failure.reason, self.name().as_str()),
            },
            Statement::StartChannel { name, .. } => {
                let result = self.local.channels.start_channel(&name).await;
                channel_answer(&name, result, Answer::channel_start_accepted())
            }
            Statement::StopChannel {
                name,
                mode,
                status,
                connection_name,
                queue_manager,
                ..
            } => {
                if connection_name.is_some() || queue_manager.is_some() {
                    return Answer::not_supported("STOP CHANNEL with CONNAME or QMNAME");
                }
                let mode = match mode {
                    ferrymq_mqsc::StopMode::Quiesce => mca::StopMode::Quiesce,
                    ferrymq_mqsc::StopMode::Force => mca::StopMode::Force,
                    ferrymq_mqsc::StopMode::Terminate => mca::StopMode::Terminate,
                };
                let status = match status {
                    ferrymq_mqsc::StopStatus::Stopped => mca::StopStatus::Stopped,
                    ferrymq_mqsc::StopStatus::Inactive => mca::StopStatus::Inactive,
                };
                let result = self.local.channels.stop_channel(&name, mode, status).await;
                channel_answer(&name, result, Answer::channel_stop_accepted())
            }
            Statement::ResetChannel { name, number } => {
                let result = self.local.channels.reset_channel(&name, number).await;
                channel_answer(&name, result, Answer::channel_reset())
            }
            Statement::ResolveChannel { name, action } => {
                let commit = match action {
                    ferrymq_mqsc::ResolveAction::Commit => true,
                    ferrymq_mqsc::ResolveAction::Backout => false,
                };
                let result = self.local.channels.resolve_channel(&name, commit).await;
                channel_answer(&name, result, Answer::channel_resolved())
            }
            Statement::PingChannel { name, data_length } => {
                let result = self.local.channels.ping_channel(&name, data_length).await;
                channel_answer(&name, result, Answer::channel_pinged())
            }
            Statement::ClearQueue { name } => {
                let request = Request::Clear {
                    queue: name.clone(),
                    who: self.who.to_owned(),
                };
                match self.ask(request).await {
                    Ok(_) => Answer::queue_cleared(),
                    Err(failure) => Answer::failed(failure.reason, name.as_str()),
                }
            }
            Statement::PingQueueManager => Answer::queue_manager_pinged(),
            // A script ends here; there is nothing to answer.
            Statement::End => Answer {
                lines: Vec::new(),
                reason: ReasonCode::NONE,
                syntax_error: false,
                objects: Vec::new(),
            },
            Statement::NotSupported { what } => Answer::not_supported(&what),
        }
    }

    async fn display(&self, display: &Display) -> Result<Answer, Failure> {
        let status = self.status().await?;
        let objects = self.all_objects().await?;
        let found = ferrymq_mqsc::display(display, &objects, &status);
        Ok(Answer::displayed(display, found))
    }

    /// A change of the definitions: proposed, applied everywhere, and answered when this queue manager has it.
    async fn change(&self, action: Option<Action>, attributes: &Attributes) -> Answer {
        if let Err(answer) = check_peer_name(attributes) {
            return *answer;
        }
        let Some(action) = action else {
            return Answer::failed(ReasonCode::UNEXPECTED_ERROR, self.name().as_str());
        };
        if let Some(answer) = self.change_dynamic(&action).await {
            return answer;
        }
        match self.propose(action).await {
            Ok(applied) => Answer::applied(&applied),
            Err(answer) => *answer,
        }
    }

    async fn propose(&self, action: Action) -> Result<Applied, Box<Answer>> {
        let failed = |reason| Box::new(Answer::failed(reason, self.name().as_str()));
        let request = ids::random().map_err(|failure| failed(failure.reason))?;
        let command = Command {
            version: Command::VERSION,
            queue_manager: self.name().clone(),
            time: self.node.clock().now(),
            request,
            action,
        };
        let committed =
            self.node
                .metadata()
                .propose(&command)
                .await
                .map_err(|error| match &error {
                    ProposeError::Refused(refused) => Box::new(Answer::refused(refused)),
                    ProposeError::NoQuorum(_)
                    | ProposeError::InDoubt(_)
                    | ProposeError::TooLarge { .. }
                    | ProposeError::Format(_)
                    | ProposeError::Stopped(_) => {
                        let text = format!("{}: {error}.", error.reason());
                        let message = OperatorMessage {
                            id: "AMQ8101S",
                            text,
                        };
                        Box::new(Answer::message(&message, error.reason()))
                    }
                })?;
        if !self.node.wait_served(committed.index).await {
            // It changed, but this queue manager does not have it in time: display before you go on.
            return Err(failed(ReasonCode::IN_DOUBT));
        }
        Ok(committed.applied)
    }

    /// `DELETE`: a local queue is closed in its engine first (rule U15).
    async fn delete(&self, kind: DeleteKind, name: &str, purge: bool) -> Answer {
        let queue = match kind {
            DeleteKind::Kind(ObjectKind::LocalQueue) => QueueName::new(name).ok(),
            DeleteKind::Channel => {
                let active =
                    ChannelName::new(name).is_ok_and(|name| self.local.channels.is_active(&name));
                if active {
                    return Answer::failed(ReasonCode::new(4031), name);
                }
                match self.is_in_doubt(name).await {
                    Ok(false) => {}
                    Ok(true) => return Answer::failed(ReasonCode::new(4025), name),
                    Err(failure) => return Answer::failed(failure.reason, name),
                }
                None
            }
            DeleteKind::Kind(
                ObjectKind::RemoteQueue
                | ObjectKind::AliasQueue
                | ObjectKind::ModelQueue
                | ObjectKind::SenderChannel
                | ObjectKind::ReceiverChannel
                | ObjectKind::ServerConnectionChannel
                | ObjectKind::Process,
            ) => None,
        };
        let closed = queue.filter(|queue| {
            matches!(
                self.objects().queues.get(queue),
                Some(ferrymq_objects::Queue::Local(_))
            )
        });
        if closed.is_none()
            && kind == DeleteKind::Kind(ObjectKind::LocalQueue)
            && let Some(answer) = self.delete_dynamic(name, purge).await
        {
            return answer;
        }
        if let Some(queue) = &closed {
            let request = Request::CloseQueue {
                queue: queue.clone(),
                purge,
                who: self.who.to_owned(),
            };
            if let Err(failure) = self.ask(request).await {
                return Answer::failed(failure.reason, queue.as_str());
            }
        }
        match self
            .propose(Action::Delete {
                kind,
                name: name.to_owned(),
            })
            .await
        {
            Ok(applied) => Answer::applied(&applied),
            Err(answer) => {
                // In doubt, the queue stays closed: its definition may be gone.
                if let Some(queue) = closed.filter(|_| answer.reason != ReasonCode::IN_DOUBT) {
                    let reopen = Request::ReopenQueue {
                        queue: queue.clone(),
                    };
                    if let Err(failure) = self.ask(reopen).await {
                        return Answer::failed(failure.reason, queue.as_str());
                    }
                }
                *answer
            }
        }
    }

    /// Whether a sender of this name has batches in doubt: it must be resolved before it is deleted.
    async fn is_in_doubt(&self, name: &str) -> Result<bool, Failure> {
        match self.ask(Request::ChannelRows).await? {
            Reply::Channels { senders, .. } => Ok(senders
                .iter()
                .any(|row| row.channel.as_str() == name && !row.in_doubt.is_empty())),
            _ => Err(ReasonCode::UNEXPECTED_ERROR.into()),
        }
    }

    /// The definitions of the dynamic queues, which are this queue manager's alone.
    async fn dynamic_queues(&self) -> Result<BTreeMap<QueueName, LocalQueue>, Failure> {
        match self.ask(Request::DynamicQueues).await? {
            Reply::DynamicQueues(queues) => Ok(queues),
            _ => Err(Failure {
                reason: ReasonCode::UNEXPECTED_ERROR,
                object: None,
            }),
        }
    }

    /// Whether a dynamic queue has the name; a name that none can have has none.
    async fn is_dynamic(&self, name: &str) -> Result<Option<QueueName>, Box<Answer>> {
        let Ok(name) = QueueName::new(name) else {
            return Ok(None);
        };
        match self.dynamic_queues().await {
            Ok(queues) => Ok(queues.contains_key(&name).then_some(name)),
            Err(failure) => Err(Box::new(Answer::failed(failure.reason, name.as_str()))),
        }
    }

    /// `DELETE QLOCAL` of a dynamic queue, if it is one: nobody else knows it.
    async fn delete_dynamic(&self, name: &str, purge: bool) -> Option<Answer> {
        let queue = match self.is_dynamic(name).await {
            Ok(found) => found?,
            Err(answer) => return Some(*answer),
        };
        let request = Request::CloseQueue {
            queue: queue.clone(),
            purge,
            who: self.who.to_owned(),
        };
        Some(match self.ask(request).await {
            Ok(_) => Answer::applied(&Applied::Deleted {
                kind: ObjectKind::LocalQueue,
                name: name.to_owned(),
                id: ObjectId::ZERO,
            }),
            Err(failure) => Answer::failed(failure.reason, name),
        })
    }

    /// What of a `DEFINE` or an `ALTER` is about a dynamic queue: `DEFINE` finds its name taken, unless it would find that all
    /// the same; `ALTER QLOCAL` changes it here. `None` where the definitions are to be changed.
    async fn change_dynamic(&self, action: &Action) -> Option<Answer> {
        let (kind, name, altered) = match action {
            Action::Define { kind, name, .. } => (*kind, name, None),
            Action::Alter {
                kind,
                name,
                attributes,
            } => (*kind, name, Some(attributes)),
            Action::CreateQueueManager { .. }
            | Action::AlterQueueManager { .. }
            | Action::SetChannelRule { .. }
            | Action::Delete { .. } => return None,
        };
        if !kind.is_queue() {
            return None;
        }
        let queue = match self.is_dynamic(name).await {
            Ok(found) => found?,
            Err(answer) => return Some(*answer),
        };
        let Some(attributes) = altered else {
            let name = name.clone();
            return Some(Answer::refused(&CommandError::Exists { kind, name }));
        };
        if kind != ObjectKind::LocalQueue {
            return Some(Answer::refused(&CommandError::WrongType {
                name: name.clone(),
                found: ObjectKind::LocalQueue,
            }));
        }
        let request = Request::AlterQueue {
            queue,
            attributes: attributes.clone(),
        };
        Some(match self.ask(request).await {
            Ok(_) => Answer::applied(&Applied::Altered {
                kind,
                name: name.clone(),
                id: ObjectId::ZERO,
            }),
            Err(failure) => Answer::failed(failure.reason, name),
        })
    }

    /// The definitions of commands, and of dynamic queues whose names they leave.
    async fn all_objects(&self) -> Result<Arc<QueueManager>, Failure> {
        let mut objects = self.objects();
        for (name, queue) in self.dynamic_queues().await? {
            if !objects.queues.contains_key(&name) {
                let queue = ferrymq_objects::Queue::Local(queue);
                Arc::make_mut(&mut objects).queues.insert(name, queue);
            }
        }
        Ok(objects)
    }

    /// What DISPLAY needs to know of the running queue manager.
    async fn status(&self) -> Result<RuntimeStatus, Failure> {
        let now = self.node.clock().now();
        let unexpected = || Failure {
            reason: ReasonCode::UNEXPECTED_ERROR,
            object: None,
        };
        let Reply::Queues(queues) = self.ask(Request::QueueStatistics).await? else {
            return Err(unexpected());
        };
        let Reply::Channels {
            senders,
            receivers,
            stopped,
        } = self.ask(Request::ChannelRows).await?
        else {
            return Err(unexpected());
        };
        let mut channels: Vec<ChannelStatus> = self
            .local
            .channels
            .statuses()
            .into_iter()
            .map(channel_status)
            .collect();
        let objects = self.objects();
        // Channels that run nowhere at this moment, as they are stored.
        let idle = |channels: &[ChannelStatus], name: &ChannelName| {
            channels.iter().all(|c| c.name != *name)
        };
        for row in &senders {
            let Some(definition) = objects.channels.get(&row.channel) else {
                continue;
            };
            let wrap = sequence_wrap(definition);
            match channels.iter_mut().find(|c| c.name == row.channel) {
                // What an MCA at rest knows may be older than what an operator resolved or reset since.
                Some(status) if !status.mca_running => saved_sender(row, wrap, status),
                Some(_) => {}
                None => {
                    let state = saved_state(stopped.contains(&row.channel));
                    let kind = ObjectKind::SenderChannel;
                    let mut status = ChannelStatus::new(row.channel.clone(), kind, state);
                    saved_sender(row, wrap, &mut status);
                    channels.push(status);
                }
            }
        }
        let running = channels.len();
        for row in &receivers {
            let runs = channels.iter().take(running).any(|c| c.name == row.channel);
            if let (false, Some(definition)) = (runs, objects.channels.get(&row.channel)) {
                let wrap = sequence_wrap(definition);
                channels.push(saved_receiver(row, wrap, stopped.contains(&row.channel)));
            }
        }
        for name in &stopped {
            if let (true, Some(channel)) = (idle(&channels, name), objects.channels.get(name)) {
                let kind = channel.kind();
                channels.push(ChannelStatus::new(
                    name.clone(),
                    kind,
                    ChannelState::Stopped,
                ));
            }
        }
        let queues = queues
            .into_iter()
            .map(|(name, q)| (name, queue_status(&q, now)))
            .collect();
        Ok(RuntimeStatus { queues, channels })
    }
}

/// SSLPEER is checked when it is defined, not when somebody calls.
fn check_peer_name(attributes: &Attributes) -> Result<(), Box<Answer>> {
    let Some(AttributeValue::Text(pattern)) = attributes.get("SSLPEER") else {
        return Ok(());
    };
    PeerPattern::parse_attribute(pattern)
        .map(|_| ())
        .map_err(|error| {
            let text = format!("SSLPEER is not valid: {error}.");
            let message = OperatorMessage {
                id: "AMQ8692E",
                text,
            };
            Box::new(Answer::message(&message, error.reason()))
        })
}

fn channel_answer(
    name: &ChannelName,
    result: Result<(), ChannelCommandError>,
    done: Answer,
) -> Answer {
    match result {
        Ok(()) => done,
        Err(ChannelCommandError::Ping(failure)) => {
            let message = OperatorMessage {
                id: failure.id,
                text: format!("Channel '{name}': {failure}."),
            };
            Answer::message(&message, failure.reason)
        }
        Err(error) => Answer::failed(error.reason(), name.as_str()),
    }
}

fn queue_status(q: &QueueStatistics, now: Timestamp) -> QueueStatus {
    QueueStatus {
        current_depth: q.depth,
        uncommitted: q.uncommitted,
        input_handles: u64::from(q.input_handles),
        output_handles: u64::from(q.output_handles),
        oldest_message_age_seconds: q.oldest.map(|oldest| now.since(oldest).as_secs()),
        last_get: q.last_get,
        last_put: q.last_put,
        trigger_used: q.trigger_used,
    }
}

fn channel_state(state: mca::ChannelState) -> ChannelState {
    match state {
        mca::ChannelState::Inactive => ChannelState::Inactive,
        mca::ChannelState::Starting => ChannelState::Starting,
        mca::ChannelState::Binding => ChannelState::Binding,
        mca::ChannelState::Running => ChannelState::Running,
        mca::ChannelState::Paused => ChannelState::Paused,
        mca::ChannelState::Stopping => ChannelState::Stopping,
        mca::ChannelState::Retrying => ChannelState::Retrying,
        mca::ChannelState::Stopped => ChannelState::Stopped,
    }
}

/// An MCA's status as DISPLAY CHSTATUS shows it.
fn channel_status(s: mca::ChannelStatus) -> ChannelStatus {
    let sender = s.transmission_queue.is_some();
    let kind = if sender {
        ObjectKind::SenderChannel
    } else {
        ObjectKind::ReceiverChannel
    };
    let state = channel_state(s.state);
    let running = !matches!(
        state,
        ChannelState::Inactive | ChannelState::Stopped | ChannelState::Retrying
    );
    let shown = |number| mca::shown_number(number, s.sequence_wrap);
    ChannelStatus {
        connection_name: s.connection_name,
        remote_queue_manager: s.partner,
        transmission_queue: s.transmission_queue,
        in_doubt: s.in_doubt,
        current_luwid: s.current_batch,
        current_messages: s.current_messages,
        current_sequence: shown(s.current_number),
        last_luwid: s.last_batch,
        last_sequence: shown(s.last_number),
        messages: s.counters.messages,
        batches: s.counters.batches,
        bytes_sent: s.counters.bytes_sent,
        bytes_received: s.counters.bytes_received,
        short_retries_left: sender.then_some(u64::from(s.short_retries_left)),
        long_retries_left: sender.then_some(u64::from(s.long_retries_left)),
        started: s.started,
        last_message: s.last_message,
        batch_size: Some(s.batch_size),
        heartbeat_interval: Some(s.heartbeat_interval),
        max_message_length: Some(s.message_length_max),
        non_persistent_message_speed: Some(if s.fast {
            MessageSpeed::Fast
        } else {
            MessageSpeed::Normal
        }),
        ssl_peer: s.peer,
        substate: s.substate.to_owned(),
        stop_requested: s.stop_requested,
        mca_running: running,
        ..ChannelStatus::new(s.channel, kind, state)
    }
}

fn saved_state(stopped: bool) -> ChannelState {
    if stopped {
        ChannelState::Stopped
    } else {
        ChannelState::Inactive
    }
}

fn sequence_wrap(channel: &Channel) -> u32 {
    match channel {
        Channel::Sender(c) => c.sequence_wrap,
        Channel::Receiver(c) => c.sequence_wrap,
        Channel::ServerConnection(_) => 0,
    }
}

/// What is stored of a sender: all batches in doubt together, under the id of the oldest.
fn saved_sender(row: &ferrymq_types::SenderRow, wrap: u32, status: &mut ChannelStatus) {
    let shown = |number| mca::shown_number(number, wrap);
    let oldest = row.in_doubt.first();
    let last = row.in_doubt.last();
    status.remote_queue_manager = row.partner.as_ref().map(|(name, _)| name.clone());
    status.in_doubt = oldest.is_some();
    status.current_luwid = oldest.map(|b| b.id).unwrap_or_default();
    status.current_messages = row.in_doubt.iter().map(|b| b.messages.len() as u64).sum();
    status.current_sequence = shown(last.map_or(row.last_confirmed, |b| b.last_number));
    status.last_luwid = row.last_batch;
    status.last_sequence = shown(row.last_confirmed);
}

fn saved_receiver(row: &ferrymq_types::ReceiverRow, wrap: u32, stopped: bool) -> ChannelStatus {
    let last = mca::shown_number(row.last_committed, wrap);
    ChannelStatus {
        remote_queue_manager: Some(row.sender_name.clone()),
        last_luwid: row.last_batch,
        last_sequence: last,
        current_sequence: last,
        ..ChannelStatus::new(
            row.channel.clone(),
            ObjectKind::ReceiverChannel,
            saved_state(stopped),
        )
    }
}
