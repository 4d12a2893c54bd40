//! Triggers: which message of a queue asks for an application, and the trigger messages that say so.
//!
//! A trigger message is made when all of this holds (IBM MQ, "Conditions for a trigger event"):
//!
//! 1. A message is put, or something else makes the conditions hold: see [`Cause`].
//! 2. Its priority is at least `TRIGMPRI`. Messages below do not count.
//! 3. `TRIGTYPE(FIRST)`: there was none before it, or the last trigger was `TRIGINT` ago. `EVERY`: always. `DEPTH`: with it there
//!    are `TRIGDPTH` or more. Committed and uncommitted messages both count.
//! 4. Not `EVERY`: nobody has the queue open for input, which is an input handle, a waiting get or a channel.
//! 5. `TRIGGER` is on, and `DEPTH` has not switched it off; the queue is not inhibited for get.
//! 6. The initiation queue is a local queue, not inhibited for put or get, and somebody has it open for input.
//! 7. The process is defined, or the queue is a transmission queue.
//!
//! A trigger message is non-persistent. One whose cause was put in a unit of work is seen when that ends, however it ends; with
//! `EVERY` only if it is committed. It triggers nothing itself. `DEPTH` switches the trigger off durably until the queue's definition
//! is altered.
//!
//! A transmission queue with `INITQ(SYSTEM.CHANNEL.INITQ)` has no trigger messages: its channel is started, see
//! [`Engine::trigger_channel`]. The channel initiator has that queue open as long as the queue manager runs.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use ferrymq_objects::{
    CHANNEL_INITIATION_QUEUE, Enabled, LocalQueue, Process, Queue, QueueManager, TriggerType, Usage,
};
use ferrymq_types::{
    ApplicationType, ChannelName, DeadLetterHeader, Message, MessageDescriptor, ObjectId,
    Persistence, Position, Priority, QueueName, ReasonCode, Sequence, Timestamp, TriggerMessage,
    UnitOfWorkId,
};

use crate::engine::Step;
use crate::memory::memory_bytes;
use crate::put::new_entry;
use crate::queue::{QueueState, State};
use crate::{Engine, Event};

/// What is kept of a trigger that is on.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    /// `TRIGMPRI`.
    minimum: Priority,
    /// Messages of at least that priority; counted only where it is not 0, where all messages are.
    above: u64,
    /// When it fired last in this run.
    last: Option<Timestamp>,
    /// It would have fired, had somebody had the initiation queue open.
    missed: bool,
}

impl Trigger {
    pub(crate) fn added(&mut self, priority: Priority) {
        if self.counts(priority) {
            self.above = self.above.saturating_add(1);
        }
    }

    pub(crate) fn removed(&mut self, priority: Priority) {
        if self.counts(priority) {
            self.above = self.above.saturating_sub(1);
        }
    }

    fn counts(&self, priority: Priority) -> bool {
        priority >= self.minimum
    }
}

/// A message that came to a queue with a trigger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) queue: ObjectId,
    pub(crate) sequence: Sequence,
    /// Messages that counted before it.
    pub(crate) before: u64,
    /// The unit of work that it was put in.
    pub(crate) unit: Option<UnitOfWorkId>,
}

/// What can make a trigger due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The last that read the queue went, or gave something back, and messages remain: `FIRST` and `DEPTH`.
    Closed,
    /// The initiation queue was opened by a wait, which ends with each message: what was missed meanwhile.
    Missed,
    /// The definition changed, or the initiation queue was opened, with messages there.
    Changed,
    /// A message came; so many counted before it.
    Arrival(u64),
}

/// Trigger messages that wait for the end of a unit of work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingTrigger {
    pub(crate) queue: ObjectId,
    pub(crate) sequence: Sequence,
    /// Whether it is seen even if the unit of work is backed out.
    pub(crate) if_backed_out: bool,
}

impl QueueState {
    /// Whether somebody has it open for input.
    pub(crate) fn is_open_for_input(&self) -> bool {
        self.inputs() > 0 || !self.waiters.is_empty() || self.sender.is_some()
    }

    /// Messages that count for the trigger: those that nobody can get do not.
    pub(crate) fn counted(&self) -> u64 {
        match &self.trigger {
            Some(trigger) if trigger.minimum > Priority::default() => trigger.above,
            Some(_) | None => self.depth().saturating_sub(self.stuck()),
        }
    }

    /// Whether messages of this priority count for the trigger.
    pub(crate) fn triggers_with(&self, priority: Priority) -> bool {
        self.trigger.as_ref().is_some_and(|t| t.counts(priority))
    }

    /// Whether the definition says that the trigger is on, and it was not used up since.
    fn trigger_is_on(&self) -> bool {
        self.definition.as_ref().is_some_and(|d| {
            d.trigger && d.trigger_type != TriggerType::None && !self.trigger_is_used(d)
        })
    }

    /// Whether `TRIGTYPE(DEPTH)` switched the trigger off that this definition switches on.
    pub(crate) fn trigger_is_used(&self, definition: &LocalQueue) -> bool {
        self.trigger_used == Some(definition.base.altered)
    }

    /// Keeps what the trigger needs, as the definition is now. Counts once.
    pub(crate) fn arm_trigger(&mut self) {
        let Some(minimum) = self
            .definition
            .as_ref()
            .filter(|_| self.trigger_is_on())
            .map(|d| d.trigger_message_priority)
        else {
            self.trigger = None;
            return;
        };
        let before = self.trigger.take();
        let above = if minimum > Priority::default() {
            self.entries(Bound::Unbounded)
                .filter(|(_, entry)| entry.priority >= minimum)
                .count() as u64
        } else {
            0
        };
        self.trigger = Some(Box::new(Trigger {
            minimum,
            above,
            last: before.as_ref().and_then(|t| t.last),
            missed: before.is_some_and(|t| t.missed),
        }));
    }
}

/// What of a definition counts for its trigger: a change makes it due.
pub(crate) fn criteria(d: &LocalQueue) -> impl PartialEq + use<> {
    (
        (d.trigger, d.trigger_type, d.trigger_depth),
        (d.trigger_message_priority, d.get),
        (d.initiation_queue.clone(), d.process_name.clone()),
    )
}

/// The queues of each initiation queue, without those whose triggers start channels.
pub(crate) fn initiated(qmgr: &QueueManager) -> BTreeMap<QueueName, Vec<ObjectId>> {
    let mut all: BTreeMap<QueueName, Vec<ObjectId>> = BTreeMap::new();
    for queue in qmgr.queues.values() {
        if let Queue::Local(q) = queue
            && let Some(initiation) = initiated_by(q)
        {
            all.entry(initiation.clone()).or_default().push(q.base.id);
        }
    }
    all
}

/// The initiation queue of a queue with a trigger that starts no channel.
fn initiated_by(queue: &LocalQueue) -> Option<&QueueName> {
    let initiation = queue.initiation_queue.as_ref();
    initiation.filter(|_| queue.trigger && !starts_channel(queue))
}

/// Whether triggers of the queue start its channel.
fn starts_channel(definition: &LocalQueue) -> bool {
    let initiation = definition.initiation_queue.as_ref();
    definition.usage == Usage::Transmission
        && initiation.is_some_and(|name| name.as_str() == CHANNEL_INITIATION_QUEUE)
}

impl Engine {
    /// A queue is new: if it has a trigger, its initiation queue is to be watched.
    pub(crate) fn note_initiation(&mut self, queue: &LocalQueue) {
        if let Some(initiation) = initiated_by(queue) {
            let queues = self.initiated.entry(initiation.clone()).or_default();
            queues.push(queue.base.id);
        }
    }

    /// Something may have made the trigger of a queue due: it is looked at before the step ends.
    pub(crate) fn check_trigger(&mut self, queue: ObjectId, cause: Cause) {
        if self.queues.get(&queue).is_some_and(|q| q.trigger.is_some()) {
            self.trigger_checks.insert((queue, cause));
        }
    }

    /// A queue was opened for input, by a handle or by a wait: if it is an initiation queue, what waits on its queues triggers.
    pub(crate) fn opened_for_input(&mut self, queue: ObjectId, cause: Cause) {
        if self.initiated.is_empty() {
            return;
        }
        let Some(q) = self.queues.get(&queue) else {
            return;
        };
        for queue in self.initiated.get(&q.name).cloned().unwrap_or_default() {
            self.check_trigger(queue, cause);
        }
    }

    /// The message that came last was put in this unit of work.
    pub(crate) fn arrived_in(&mut self, unit: UnitOfWorkId, sequence: Sequence) {
        if let Some(arrival) = self.arrivals.last_mut()
            && arrival.sequence == sequence
        {
            arrival.unit = Some(unit);
        }
    }

    /// Fires the triggers of messages that came.
    pub(crate) fn fire_arrivals(&mut self, step: &mut Step<'_>) {
        for arrival in std::mem::take(&mut self.arrivals) {
            // A unit of work of this step alone is over.
            let unit = arrival.unit.filter(|unit| self.units.contains_key(unit));
            self.trigger(step, arrival.queue, Cause::Arrival(arrival.before), unit);
        }
    }

    /// Fires the triggers that anything else made due: once for each queue.
    pub(crate) fn fire_checks(&mut self, step: &mut Step<'_>) {
        let mut fired = None;
        while let Some((queue, cause)) = self.trigger_checks.pop_first() {
            if fired != Some(queue) && self.trigger(step, queue, cause, None) {
                fired = Some(queue);
            }
        }
    }

    /// Fires the trigger of a queue, if all conditions hold. Says whether it did.
    fn trigger(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        cause: Cause,
        unit: Option<UnitOfWorkId>,
    ) -> bool {
        let qmgr = Arc::clone(&self.qmgr);
        let Some(q) = self.queues.get(&queue) else {
            return false;
        };
        let (Some(definition), Some(trigger)) = (&q.definition, &q.trigger) else {
            return false;
        };
        if starts_channel(definition) || q.closed || definition.get == Enabled::No {
            return false;
        }
        if !is_due(q, definition, trigger, cause, (step.now, &qmgr)) {
            return false;
        }
        let process = match &definition.process_name {
            Some(name) => qmgr.processes.get(name),
            None => None,
        };
        if process.is_none() && definition.usage == Usage::Normal {
            return false;
        }
        let Some(initiation) = self.initiation_queue(&qmgr, definition) else {
            if let Some(trigger) = self.queue(queue).and_then(|q| q.trigger.as_mut()) {
                trigger.missed = true;
            }
            return false;
        };
        let made = trigger_message(definition, process, initiation, &qmgr, step.now);
        let every = definition.trigger_type == TriggerType::Every;
        let after = self.fired(step, queue);
        self.put_trigger_message(step, (queue, initiation), made, (unit, !every), after);
        true
    }

    /// Notes that a trigger fired; `DEPTH` switches itself off. What the position is that its message shows.
    fn fired(&mut self, step: &mut Step<'_>, queue: ObjectId) -> Position {
        let Some(q) = self.queues.get_mut(&queue) else {
            return Position::ZERO;
        };
        if let Some(trigger) = &mut q.trigger {
            trigger.last = Some(step.now);
            trigger.missed = false;
        }
        let depth = q
            .definition
            .as_ref()
            .filter(|d| d.trigger_type == TriggerType::Depth);
        let Some(altered) = depth.map(|d| d.base.altered) else {
            return q.last_change;
        };
        q.trigger = None;
        q.trigger_used = Some(altered);
        self.write_queue_row(step, queue)
    }

    /// The initiation queue, if trigger messages can be put there now.
    fn initiation_queue<'a>(
        &self,
        qmgr: &'a QueueManager,
        definition: &LocalQueue,
    ) -> Option<&'a LocalQueue> {
        let local = usable_initiation_queue(qmgr, definition)?;
        self.queues
            .get(&local.base.id)
            .is_some_and(|q| !q.closed && q.is_open_for_input())
            .then_some(local)
    }

    /// Puts a trigger message on the initiation queue, else on the dead-letter queue; one that fits nowhere is reported.
    ///
    /// Source: IBM MQ, "Triggering and messages in units of work".
    fn put_trigger_message(
        &mut self,
        step: &mut Step<'_>,
        (queue, initiation): (ObjectId, &LocalQueue),
        mut message: Message,
        (unit, if_backed_out): (Option<UnitOfWorkId>, bool),
        after: Position,
    ) {
        let mut target = initiation.base.id;
        if let Err(reason) = self.check_trigger_room(initiation, &message) {
            if reason == ReasonCode::Q_FULL {
                self.report_full(step, initiation.base.id);
            }
            let me = self.qmgr.attributes.name.clone();
            message.header = DeadLetterHeader::wrap(
                &mut message.descriptor,
                &message.header,
                reason,
                initiation.base.name.as_str(),
                me.as_str(),
                me.as_str(),
                step.now,
            );
            let dead_letters = self
                .dead_letter_target(ObjectId::ZERO, message.data_length() as u64)
                .and_then(|q| self.check_trigger_room(&q, &message).map(|()| q.base.id));
            if let Some(q) = self.queues.get(&queue) {
                let event = Event::TriggerNotDelivered {
                    queue: q.name.clone(),
                    initiation_queue: initiation.base.name.clone(),
                    reason,
                    dead_lettered: dead_letters.is_ok(),
                };
                step.report(after, event);
            }
            match dead_letters {
                Ok(id) => target = id,
                Err(_) => return,
            }
        }
        message.descriptor.message_id = self.next_message_id();
        let arrivals = self.arrivals.len();
        match unit {
            Some(unit) => {
                let sequence = self.next_sequence();
                let mut entry = new_entry(&message, sequence, State::Uncommitted);
                entry.position = after;
                let bytes = memory_bytes(&message);
                self.insert(target, sequence, entry, Some(Arc::new(message)));
                let pending = PendingTrigger {
                    queue: target,
                    sequence,
                    if_backed_out,
                };
                self.add_trigger(unit, pending, bytes);
            }
            None => {
                self.put_made(step, target, message, after);
            }
        }
        // It triggers nothing itself: two initiation queues that name each other would never end.
        self.arrivals.truncate(arrivals);
    }

    fn check_trigger_room(&self, queue: &LocalQueue, message: &Message) -> Result<(), ReasonCode> {
        self.check_room(queue, message.data_length() as u64)?;
        self.check_memory(Persistence::NonPersistent, memory_bytes(message))
    }

    /// A transmission queue has a message that its channel can take and that no channel has taken: reports that the channel is
    /// to be started, if the conditions hold. With `TRIGTYPE(FIRST)` only if this is the `first` message, or the conditions
    /// came to hold with messages there, or `TRIGINT` has passed. Only messages that are committed count here, since a channel
    /// that starts for others finds nothing. `priority` is that of the message, if one came.
    pub(crate) fn trigger_channel(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        first: bool,
        priority: Option<Priority>,
    ) {
        let qmgr = Arc::clone(&self.qmgr);
        let Some(q) = self.queues.get(&queue) else {
            return;
        };
        let (Some(definition), Some(trigger)) = (&q.definition, &q.trigger) else {
            return;
        };
        let usable = starts_channel(definition)
            && definition.get == Enabled::Yes
            && q.sender.is_none()
            && usable_initiation_queue(&qmgr, definition).is_some();
        if !usable || priority.is_some_and(|p| !trigger.counts(p)) {
            return;
        }
        // Which of the messages are committed is not counted by priority: one too many starts nothing twice.
        let first = first || trigger.minimum > Priority::default();
        let messages = q.available_len();
        let due = match definition.trigger_type {
            TriggerType::First => {
                messages > 0 && (first || trigger.interval_is_over(step.now, &qmgr))
            }
            TriggerType::Every => messages > 0,
            TriggerType::Depth => {
                messages > 0 && q.counted() >= u64::from(definition.trigger_depth)
            }
            TriggerType::None => false,
        };
        if !due {
            return;
        }
        let event = Event::TransmissionQueueTriggered {
            queue: q.name.clone(),
            channel: ChannelName::new(&definition.trigger_data).ok(),
        };
        let after = self.fired(step, queue);
        step.report(after, event);
    }
}

impl Trigger {
    /// Whether `TRIGINT` has passed since it fired last; what never fired waits for its first message.
    fn interval_is_over(&self, now: Timestamp, qmgr: &QueueManager) -> bool {
        let interval = qmgr.attributes.trigger_interval;
        interval.is_zero() || self.last.is_some_and(|last| now.since(last) >= interval)
    }
}

/// Conditions 2 to 4.
fn is_due(
    q: &QueueState,
    definition: &LocalQueue,
    trigger: &Trigger,
    cause: Cause,
    (now, qmgr): (Timestamp, &QueueManager),
) -> bool {
    let read = definition.trigger_type != TriggerType::Every && q.is_open_for_input();
    if read || (cause == Cause::Missed && !trigger.missed) {
        return false;
    }
    let counted = q.counted();
    match definition.trigger_type {
        TriggerType::First => match cause {
            Cause::Arrival(before) => before == 0 || trigger.interval_is_over(now, qmgr),
            // What somebody has got is being read.
            Cause::Closed => counted > q.taken(),
            Cause::Missed | Cause::Changed => counted > 0,
        },
        TriggerType::Every => match cause {
            Cause::Arrival(_) => true,
            Cause::Closed => false,
            Cause::Missed | Cause::Changed => counted > 0,
        },
        TriggerType::Depth => {
            let counted = match cause {
                Cause::Arrival(before) => before.saturating_add(1),
                Cause::Closed | Cause::Missed | Cause::Changed => counted,
            };
            counted >= u64::from(definition.trigger_depth)
        }
        TriggerType::None => false,
    }
}

/// The initiation queue of a queue, if its definition allows that trigger messages are put and got.
fn usable_initiation_queue<'a>(
    qmgr: &'a QueueManager,
    definition: &LocalQueue,
) -> Option<&'a LocalQueue> {
    match qmgr.queues.get(definition.initiation_queue.as_ref()?)? {
        Queue::Local(local) => {
            let enabled = local.base.put == Enabled::Yes && local.get == Enabled::Yes;
            enabled.then_some(local)
        }
        Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_) => None,
    }
}

/// Source: IBM MQ, "MQTM - Trigger message", "MQMD for a trigger message".
fn trigger_message(
    definition: &LocalQueue,
    process: Option<&Process>,
    initiation: &LocalQueue,
    qmgr: &QueueManager,
    now: Timestamp,
) -> Message {
    let process_name = definition.process_name.as_ref();
    let structure = TriggerMessage {
        queue: definition.base.name.to_string(),
        process: process_name.map(ToString::to_string).unwrap_or_default(),
        trigger_data: definition.trigger_data.clone(),
        application_type: process.map_or(0, |p| p.application_type),
        application_id: process
            .map(|p| p.application_id.clone())
            .unwrap_or_default(),
        environment_data: process
            .map(|p| p.environment_data.clone())
            .unwrap_or_default(),
        user_data: process.map(|p| p.user_data.clone()).unwrap_or_default(),
    };
    let me = qmgr.attributes.name.as_str();
    Message {
        descriptor: MessageDescriptor {
            format: MessageDescriptor::FORMAT_TRIGGER.to_owned(),
            priority: initiation.base.default_priority,
            persistence: Persistence::NonPersistent,
            reply_to_queue_manager: me.to_owned(),
            put_application_type: ApplicationType::QUEUE_MANAGER,
            put_application_name: me.chars().take(28).collect(),
            put_time: now,
            ..MessageDescriptor::default()
        },
        header: Bytes::new(),
        body: structure.to_bytes(),
    }
}
