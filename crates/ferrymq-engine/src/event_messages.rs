//! Events as messages on the `SYSTEM.ADMIN.*.EVENT` queues, in programmable command format.
//!
//! An event message has the priority and persistence that its queue gives, and is outside any unit of work. If its queue is missing,
//! full or inhibited the event is dropped; the first of a row is reported, and how many there were when the queue takes one again.
//!
//! Source: IBM MQ, "Event message format", "Event message reference".

use std::sync::Arc;

use bytes::Bytes;
use ferrymq_objects::{
    Enabled, QUEUE_MANAGER_EVENT_QUEUE, Queue, QueueManager, QueueManagerEvents,
};
use ferrymq_types::{
    ApplicationType, CompletionCode, Message, MessageDescriptor, PCF_COMMAND_QUEUE_MANAGER_EVENT,
    PcfMessage, PcfParameter, Position, QueueManagerName, QueueName, ReasonCode,
};

use crate::engine::Step;
use crate::memory::memory_bytes;
use crate::put::Checked;
use crate::{
    Browse, BrowseStep, ConnectionId, Context, Effect, Engine, Event, Failure, Get, Object,
    ObjectName, Put, Request, RequestId, Source,
};

/// `MQRQ_Q_MGR_STOPPING`.
const QUALIFIER_STOPPING: u64 = 5;
/// `MQRC_Q_MGR_ACTIVE`, `MQRC_Q_MGR_NOT_ACTIVE`.
const Q_MGR_ACTIVE: ReasonCode = ReasonCode::new(2222);
const Q_MGR_NOT_ACTIVE: ReasonCode = ReasonCode::new(2223);

/// A call that named an object, should it fail.
#[derive(Debug)]
pub(crate) struct NamedCall {
    name: ObjectName,
    /// Whether it resolves the name: an open does, a call through a handle was resolved before.
    opens: bool,
}

/// Which switch an event of a failed call hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Inhibit,
    Local,
    Remote,
}

impl Class {
    /// Source: IBM MQ, "Inhibit events", "Local events", "Remote events".
    fn of(reason: ReasonCode) -> Option<Self> {
        match reason.get() {
            2016 | 2051 => Some(Self::Inhibit),
            2001 | 2082 | 2085 => Some(Self::Local),
            2057 | 2087 | 2091 | 2092 | 2184 | 2196..=2199 => Some(Self::Remote),
            _ => None,
        }
    }

    fn is_on(self, events: &QueueManagerEvents) -> bool {
        let switch = match self {
            Self::Inhibit => events.inhibit,
            Self::Local => events.local,
            Self::Remote => events.remote,
        };
        switch == Enabled::Yes
    }
}

impl Engine {
    /// What a request names, while failed calls are reported.
    pub(crate) fn named_call(
        &self,
        connection: ConnectionId,
        request: &Request,
    ) -> Option<NamedCall> {
        let events = &self.qmgr.attributes.events;
        let off = [events.inhibit, events.local, events.remote] == [Enabled::No; 3];
        if off {
            return None;
        }
        let (name, handle) = if let Request::Open { name, .. } = request {
            (Some(name.clone()), None)
        } else if let Request::Put(put) = request {
            match &put.object {
                Object::Named(name) => (Some(name.clone()), None),
                Object::Handle(handle) => (None, Some(*handle)),
            }
        } else if let Request::Get(Get { source, .. }) = request {
            match source {
                Source::Queue(name) => (Some(ObjectName::local(name.clone())), None),
                Source::Handle(handle) | Source::UnderCursor(handle) => (None, Some(*handle)),
            }
        } else if let Request::Browse(Browse { step, .. }) = request {
            match step {
                BrowseStep::First(name) | BrowseStep::After(name, _) => {
                    (Some(ObjectName::local(name.clone())), None)
                }
                BrowseStep::FirstOf(handle)
                | BrowseStep::Next(handle)
                | BrowseStep::UnderCursor(handle) => (None, Some(*handle)),
            }
        } else {
            (None, None)
        };
        let opens = handle.is_none();
        let opened = handle.and_then(|handle| self.handles.get(&(connection, handle)));
        let name = name.or_else(|| opened.map(|handle| handle.name().clone()))?;
        Some(NamedCall { name, opens })
    }

    /// Reports a call that failed, if it did and somebody wants to know. `from` is where its effects begin.
    pub(crate) fn report_failed_call(
        &mut self,
        step: &mut Step<'_>,
        (id, connection): (RequestId, ConnectionId),
        call: &NamedCall,
        from: usize,
    ) {
        let failed = step.effects.get(from..).unwrap_or_default().iter();
        let reason = failed.rev().find_map(|effect| match effect {
            Effect::Reply {
                id: answered,
                reply: Err(Failure { reason, .. }),
                ..
            } if *answered == id => Some(*reason),
            Effect::Reply { .. }
            | Effect::Write(_)
            | Effect::Fetch { .. }
            | Effect::ReadRows { .. }
            | Effect::ReadAhead { .. }
            | Effect::Spill { .. }
            | Effect::Forget { .. }
            | Effect::Report { .. } => None,
        });
        if let Some(reason) = reason {
            self.report_failure(step, connection, call, reason);
        }
    }

    /// Reports a get that waited and failed, if somebody wants to know.
    pub(crate) fn report_failed_wait(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        queue: QueueName,
        reason: ReasonCode,
    ) {
        let call = NamedCall {
            name: ObjectName::local(queue),
            opens: false,
        };
        self.report_failure(step, connection, &call, reason);
    }

    fn report_failure(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        call: &NamedCall,
        reason: ReasonCode,
    ) {
        let qmgr = Arc::clone(&self.qmgr);
        let Some(class) = Class::of(reason).filter(|c| c.is_on(&qmgr.attributes.events)) else {
            return;
        };
        if class != Class::Inhibit && !call.opens {
            return;
        }
        let me = qmgr.attributes.name.as_str();
        let (kind, application) = match self.applications.get(&connection) {
            Some(name) => (ApplicationType::UNIX, &**name),
            None => (ApplicationType::QUEUE_MANAGER, me),
        };
        let warning = CompletionCode::Warning.get();
        let command = PCF_COMMAND_QUEUE_MANAGER_EVENT;
        let mut message = PcfMessage::event(command, warning, reason)
            .text(PcfParameter::QUEUE_MANAGER_NAME, me)
            .text(PcfParameter::QUEUE_NAME, call.name.queue.as_str());
        if let Some((parameter, name)) = beside(&qmgr, &call.name, reason) {
            message = message.text(parameter, name.as_str());
            if matches!(reason.get(), 2001 | 2091 | 2198) {
                message = message.number(PcfParameter::QUEUE_TYPE, queue_type(&qmgr, &name));
            }
        }
        message = message
            .number(
                PcfParameter::APPLICATION_TYPE,
                u64::try_from(kind.get()).unwrap_or(0),
            )
            .text(PcfParameter::APPLICATION_NAME, application);
        if let Some(name) = &call.name.queue_manager {
            message = message.text(PcfParameter::OBJECT_QUEUE_MANAGER_NAME, name.as_str());
        }
        self.put_event(step, QUEUE_MANAGER_EVENT_QUEUE, &message, Position::ZERO);
    }

    /// The queue manager has started.
    pub(crate) fn report_started(&mut self, step: &mut Step<'_>) {
        self.report_start_stop(step, Q_MGR_ACTIVE, None);
    }

    /// The queue manager is about to stop. Kept only where the event queue has `DEFPSIST(YES)`.
    pub(crate) fn report_stopping(&mut self, step: &mut Step<'_>) {
        self.report_start_stop(step, Q_MGR_NOT_ACTIVE, Some(QUALIFIER_STOPPING));
    }

    fn report_start_stop(
        &mut self,
        step: &mut Step<'_>,
        reason: ReasonCode,
        qualifier: Option<u64>,
    ) {
        let attributes = &self.qmgr.attributes;
        if attributes.events.start_stop == Enabled::No {
            return;
        }
        let warning = CompletionCode::Warning.get();
        let mut message = PcfMessage::event(PCF_COMMAND_QUEUE_MANAGER_EVENT, warning, reason)
            .text(PcfParameter::QUEUE_MANAGER_NAME, attributes.name.as_str());
        if let Some(qualifier) = qualifier {
            message = message.number(PcfParameter::REASON_QUALIFIER, qualifier);
        }
        self.put_event(step, QUEUE_MANAGER_EVENT_QUEUE, &message, Position::ZERO);
    }

    /// Puts an event message, which shows what `after` made; drops it if its queue cannot take it.
    pub(crate) fn put_event(
        &mut self,
        step: &mut Step<'_>,
        queue: &'static str,
        event: &PcfMessage,
        after: Position,
    ) {
        let put = self.event_to(step, queue, event);
        let dropped = self.events_dropped.entry(queue).or_default();
        match put {
            Ok(checked) => {
                let before = std::mem::take(dropped);
                self.put_made(step, checked.queue, checked.message, after);
                if before > 0 {
                    let event = Event::EventsDropped {
                        queue,
                        dropped: before,
                    };
                    step.report(Position::ZERO, event);
                }
            }
            Err(reason) => {
                *dropped = dropped.saturating_add(1);
                if *dropped == 1 {
                    step.report(Position::ZERO, Event::EventDropped { queue, reason });
                }
            }
        }
    }

    fn event_to(
        &mut self,
        step: &mut Step<'_>,
        queue: &str,
        event: &PcfMessage,
    ) -> Result<Checked, ReasonCode> {
        let me = self.qmgr.attributes.name.clone();
        let message = Message {
            descriptor: MessageDescriptor {
                format: MessageDescriptor::FORMAT_EVENT.to_owned(),
                reply_to_queue_manager: me.to_string(),
                put_application_type: ApplicationType::QUEUE_MANAGER,
                put_application_name: me.as_str().chars().take(28).collect(),
                put_time: step.now,
                ..MessageDescriptor::default()
            },
            header: Bytes::new(),
            body: event.to_bytes(),
        };
        let name = ObjectName::parse(queue, "")?;
        let qmgr = Arc::clone(&self.qmgr);
        let route = Self::route(&qmgr, &name).map_err(|failure| failure.reason)?;
        // Priority and persistence are the queue's.
        let put = Put {
            priority: None,
            persistence: None,
            context: Context::SetAll,
            ..Put::passing_on(&message, name)
        };
        let checked = self
            .check_put(step, put, &route)
            .map_err(|failure| failure.reason)?;
        let message = &checked.message;
        self.check_memory(message.descriptor.persistence, memory_bytes(message))?;
        Ok(checked)
    }
}

/// What the event names beside the queue: the target of an alias, or the transmission queue.
fn beside(
    qmgr: &QueueManager,
    name: &ObjectName,
    reason: ReasonCode,
) -> Option<(PcfParameter, QueueName)> {
    let found = qmgr.queues.get(&name.queue);
    match reason.get() {
        2001 | 2082 => match found? {
            Queue::Alias(alias) => Some((PcfParameter::BASE_OBJECT_NAME, alias.target.clone()?)),
            Queue::Local(_) | Queue::Remote(_) | Queue::Model(_) => None,
        },
        2091 | 2092 | 2196 => {
            let transmission_queue = match found {
                Some(Queue::Remote(remote)) => remote.transmission_queue.clone().or_else(|| {
                    let to = remote.remote_queue_manager.as_ref();
                    to.map(QueueManagerName::as_queue_name)
                }),
                Some(Queue::Local(_) | Queue::Alias(_) | Queue::Model(_)) | None => {
                    let to = name.queue_manager.as_ref();
                    to.map(QueueManagerName::as_queue_name)
                }
            };
            Some((PcfParameter::TRANSMISSION_QUEUE_NAME, transmission_queue?))
        }
        2197..=2199 => Some((
            PcfParameter::TRANSMISSION_QUEUE_NAME,
            qmgr.attributes.default_transmission_queue.clone()?,
        )),
        _ => None,
    }
}

/// `QType` of a queue: an `MQQT_*`; 0 if there is none of the name.
fn queue_type(qmgr: &QueueManager, name: &QueueName) -> u64 {
    match qmgr.queues.get(name) {
        Some(Queue::Local(_)) => 1,
        Some(Queue::Model(_)) => 2,
        Some(Queue::Alias(_)) => 3,
        Some(Queue::Remote(_)) => 6,
        None => 0,
    }
}
