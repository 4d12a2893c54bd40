//! Performance events of queues: how deep they are, and how soon they are served.
//!
//! Only queues that may report something have a [`Performance`]: those of a queue manager with `PERFMEV(ENABLED)` that enable one of
//! their events. The others cost a look at an `Option`.
//!
//! An event that was reported is off until its counterpart comes: depth high arms depth low and queue full, depth low arms depth
//! high and queue full, queue full arms depth low; service interval high and ok arm each other. What is armed is in memory; a start,
//! and a change of the attributes, arm what the definition enables.
//!
//! Source: IBM MQ, "Enabling queue depth events", "Rules for queue service interval events".

use core::time::Duration;

use ferrymq_objects::{
    Enabled, LocalQueue, PERFORMANCE_EVENT_QUEUE, QueueEvents, QueueManager, ServiceIntervalEvent,
};
use ferrymq_types::{
    CompletionCode, ObjectId, PCF_COMMAND_PERFORMANCE_EVENT, PcfMessage, PcfParameter, ReasonCode,
    Timestamp,
};

use crate::Engine;
use crate::engine::Step;
use crate::queue::QueueState;

/// What is kept of a queue whose performance is watched.
#[derive(Debug)]
pub(crate) struct Performance {
    /// What it was made for.
    events: QueueEvents,
    max_depth: u32,
    high_armed: bool,
    low_armed: bool,
    full_armed: bool,
    /// The service interval event that comes next.
    service: ServiceIntervalEvent,
    /// Since when the queue waits to be served; `None` while it is empty.
    waits_since: Option<Timestamp>,
    /// Since the last event that told these numbers.
    reset: Timestamp,
    highest: u64,
    enqueued: u64,
    dequeued: u64,
}

/// Something happened to a queue that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    /// A message came, to an empty queue or not.
    Put {
        /// How deep the queue was before.
        before: u64,
    },
    /// A message was taken by a get; under syncpoint it has not left yet.
    Got,
    /// A message that was got has left.
    Left,
    /// A put found the queue full.
    Full,
}

impl Performance {
    fn new(definition: &LocalQueue, depth: u64, now: Timestamp) -> Self {
        let events = definition.events;
        Self {
            events,
            max_depth: definition.max_depth,
            high_armed: events.depth_high == Enabled::Yes,
            low_armed: events.depth_low == Enabled::Yes,
            full_armed: events.queue_full == Enabled::Yes,
            service: events.service_interval_event,
            waits_since: (depth > 0).then_some(now),
            reset: now,
            highest: depth,
            enqueued: 0,
            dequeued: 0,
        }
    }

    /// `QDEPTHHI` or `QDEPTHLO` compared with a depth, without rounding.
    fn compare(&self, depth: u64, percent: u32) -> core::cmp::Ordering {
        let limit = u64::from(percent).saturating_mul(u64::from(self.max_depth));
        depth.saturating_mul(100).cmp(&limit)
    }

    /// The event that a change of depth brings.
    fn depth_event(&mut self, watched: Watched, depth: u64) -> Option<ReasonCode> {
        match watched {
            Watched::Put { .. } => {
                self.enqueued = self.enqueued.saturating_add(1);
                self.highest = self.highest.max(depth);
                let high = self.compare(depth, self.events.depth_high_percent).is_ge();
                if !high || !self.high_armed {
                    return None;
                }
                self.high_armed = false;
                self.low_armed = true;
                self.full_armed = true;
                Some(Q_DEPTH_HIGH)
            }
            Watched::Left => {
                self.dequeued = self.dequeued.saturating_add(1);
                let low = self.compare(depth, self.events.depth_low_percent).is_le();
                if !low || !self.low_armed {
                    return None;
                }
                self.low_armed = false;
                self.high_armed = true;
                self.full_armed = true;
                Some(Q_DEPTH_LOW)
            }
            Watched::Full => {
                if !self.full_armed {
                    return None;
                }
                self.full_armed = false;
                self.low_armed = true;
                Some(ReasonCode::Q_FULL)
            }
            Watched::Got => None,
        }
    }

    /// The event that a put or a get brings by how long the queue has waited. `remain` says whether messages remain to be got.
    fn service_event(
        &mut self,
        watched: Watched,
        remain: bool,
        now: Timestamp,
    ) -> Option<ReasonCode> {
        let waited = self.waits_since.map(|since| now.since(since));
        let interval = self.events.service_interval;
        let is_over = |waited: Duration| waited > interval;
        match watched {
            Watched::Put { before: 0 } => {
                self.waits_since = Some(now);
                None
            }
            Watched::Put { .. } => {
                let high =
                    self.service == ServiceIntervalEvent::High && waited.is_some_and(is_over);
                high.then(|| self.service_high())
            }
            Watched::Got => {
                self.waits_since = remain.then_some(now);
                match (self.service, waited?) {
                    (ServiceIntervalEvent::High, waited) if is_over(waited) => {
                        Some(self.service_high())
                    }
                    (ServiceIntervalEvent::Ok, waited) if !is_over(waited) => {
                        self.service = ServiceIntervalEvent::High;
                        Some(Q_SERVICE_INTERVAL_OK)
                    }
                    (
                        ServiceIntervalEvent::High
                        | ServiceIntervalEvent::Ok
                        | ServiceIntervalEvent::None,
                        _,
                    ) => None,
                }
            }
            Watched::Left | Watched::Full => None,
        }
    }

    fn service_high(&mut self) -> ReasonCode {
        self.service = ServiceIntervalEvent::Ok;
        Q_SERVICE_INTERVAL_HIGH
    }

    /// The event as a message; the numbers begin anew.
    fn message(
        &mut self,
        reason: ReasonCode,
        (qmgr, queue): (&str, &str),
        depth: u64,
        now: Timestamp,
    ) -> PcfMessage {
        let completion = if reason == Q_SERVICE_INTERVAL_OK {
            CompletionCode::Ok
        } else {
            CompletionCode::Warning
        };
        let message = PcfMessage::event(PCF_COMMAND_PERFORMANCE_EVENT, completion.get(), reason)
            .text(PcfParameter::QUEUE_MANAGER_NAME, qmgr)
            .text(PcfParameter::BASE_OBJECT_NAME, queue)
            .number(
                PcfParameter::TIME_SINCE_RESET,
                now.since(self.reset).as_secs(),
            )
            .number(PcfParameter::HIGH_QUEUE_DEPTH, self.highest)
            .number(PcfParameter::ENQUEUE_COUNT, self.enqueued)
            .number(PcfParameter::DEQUEUE_COUNT, self.dequeued);
        self.reset = now;
        self.highest = depth;
        self.enqueued = 0;
        self.dequeued = 0;
        message
    }
}

const Q_DEPTH_HIGH: ReasonCode = ReasonCode::new(2224);
const Q_DEPTH_LOW: ReasonCode = ReasonCode::new(2225);
const Q_SERVICE_INTERVAL_HIGH: ReasonCode = ReasonCode::new(2226);
const Q_SERVICE_INTERVAL_OK: ReasonCode = ReasonCode::new(2227);

/// Whether a queue can report anything.
fn is_watched(qmgr: &QueueManager, definition: &LocalQueue) -> bool {
    let events = &definition.events;
    let depth = [events.depth_high, events.depth_low, events.queue_full];
    qmgr.attributes.events.performance == Enabled::Yes
        && (depth.contains(&Enabled::Yes)
            || events.service_interval_event != ServiceIntervalEvent::None)
}

impl QueueState {
    /// Watches the queue, or no longer, as the definitions are now. What was armed and counted stays where nothing of it changed.
    pub(crate) fn arm_performance(&mut self, qmgr: &QueueManager, now: Timestamp) {
        let depth = self.depth();
        let Some(definition) = self.definition.as_ref().filter(|d| is_watched(qmgr, d)) else {
            self.performance = None;
            return;
        };
        let (events, max_depth) = (definition.events, definition.max_depth);
        let same = self
            .performance
            .as_ref()
            .is_some_and(|p| p.events == events && p.max_depth == max_depth);
        if !same {
            self.performance = Some(Box::new(Performance::new(definition, depth, now)));
        }
    }
}

impl Engine {
    /// Notes what happened to a queue, if it is watched.
    pub(crate) fn watch(&mut self, queue: ObjectId, watched: Watched) {
        if self.qmgr.attributes.events.performance == Enabled::No {
            return;
        }
        let is_watched = |q: &QueueState| q.performance.is_some();
        if self.queues.get(&queue).is_some_and(is_watched) {
            self.watched.push((queue, watched));
        }
    }

    /// Reports what follows from what happened to queues that are watched.
    pub(crate) fn report_performance(&mut self, step: &mut Step<'_>) {
        let qmgr = self.qmgr.attributes.name.clone();
        for (queue, watched) in std::mem::take(&mut self.watched) {
            let Some(q) = self.queues.get_mut(&queue) else {
                continue;
            };
            let depth = q.depth();
            let remain = depth > q.taken().saturating_add(q.stuck());
            let (name, after) = (q.name.clone(), q.last_change);
            let Some(performance) = &mut q.performance else {
                continue;
            };
            let reasons = [
                performance.depth_event(watched, depth),
                performance.service_event(watched, remain, step.now),
            ];
            let messages: Vec<PcfMessage> = reasons
                .into_iter()
                .flatten()
                .map(|reason| {
                    let names = (qmgr.as_str(), name.as_str());
                    performance.message(reason, names, depth, step.now)
                })
                .collect();
            for message in messages {
                self.put_event(step, PERFORMANCE_EVENT_QUEUE, &message, after);
            }
        }
    }
}
