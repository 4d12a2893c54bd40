//! Definitions that change under the engine.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferrymq_objects::{LocalQueue, Queue, QueueManager};
use ferrymq_types::{Change, ChannelName, ObjectId, Position, QueueName, ReasonCode, Timestamp};

use crate::engine::Step;
use crate::pending::Pending;
use crate::queue::QueueState;
use crate::trigger::{Cause, criteria, initiated};
use crate::{Engine, Event, Failure, RequestId};

impl Engine {
    pub(crate) fn definitions_changed(&mut self, step: &mut Step<'_>, qmgr: Arc<QueueManager>) {
        let all = self.all_definitions(&qmgr);
        let before = std::mem::replace(&mut self.qmgr, all);
        let could_trigger = self.adopt_definitions(step.now);
        self.drop_queues(step);
        self.drop_channels(step, &before);
        self.end_inhibited_gets(step);
        self.end_inhibited_senders(step);
        for queue in could_trigger {
            self.trigger_channel(step, queue, true, None);
            self.check_trigger(queue, Cause::Changed);
        }
        if self.poison_retry.is_some() {
            self.retry_poison(step);
        }
    }

    /// Gives every local queue its definition, and keeps the orders that depend on one. Returns the queues whose trigger may
    /// have become due by the change.
    pub(crate) fn adopt_definitions(&mut self, now: Timestamp) -> Vec<ObjectId> {
        let qmgr = Arc::clone(&self.qmgr);
        self.initiated = initiated(&qmgr);
        self.off_queues = off_queues(&qmgr);
        let mut could_trigger = Vec::new();
        for queue in qmgr.queues.values() {
            if let Queue::Local(definition) = queue
                && self.adopt(definition, now)
            {
                could_trigger.push(definition.base.id);
            }
        }
        could_trigger
    }

    /// Gives a local queue its definition, and keeps the orders that depend on it. Says whether its trigger may have become
    /// due by the change.
    pub(crate) fn adopt(&mut self, definition: &LocalQueue, now: Timestamp) -> bool {
        let (id, name) = (definition.base.id, &definition.base.name);
        let state = self
            .queues
            .entry(id)
            .or_insert_with(|| QueueState::new(id, name.clone()));
        let keeps_expired = self.off_queues.contains(name);
        let reorder = state
            .definition
            .as_ref()
            .is_none_or(|d| d.delivery_sequence != definition.delivery_sequence);
        let mut could_trigger = false;
        if state.definition.as_deref() != Some(definition) {
            let was_used = state
                .definition
                .as_deref()
                .is_some_and(|d| state.trigger_is_used(d));
            let before = state.definition.as_deref().map(criteria);
            could_trigger = was_used || before != Some(criteria(definition));
            state.name = name.clone();
            state.definition = Some(Box::new(definition.clone()));
            state.arm_trigger();
        }
        state.arm_performance(&self.qmgr, now);
        if reorder {
            state.reorder();
        }
        if state.keeps_expired != keeps_expired {
            state.keeps_expired = keeps_expired;
            for (at, sequence) in state.expiring() {
                if keeps_expired {
                    self.expiry.remove((at, id, sequence));
                } else {
                    self.expiry.insert((at, id, sequence), ());
                }
            }
        }
        if reorder {
            self.restart_walks(id);
        }
        could_trigger
    }

    /// Queues whose definitions are gone. One that was closed and is empty goes; anything else is kept and reported, never
    /// dropped (rule U15).
    pub(crate) fn drop_queues(&mut self, step: &mut Step<'_>) {
        let qmgr = Arc::clone(&self.qmgr);
        let gone: Vec<ObjectId> = self
            .queues
            .values()
            .filter(|q| match qmgr.queues.get(&q.name) {
                Some(Queue::Local(local)) => local.base.id != q.id,
                Some(Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_)) | None => true,
            })
            .map(|q| q.id)
            .collect();
        for id in gone {
            self.drop_queue(step, id);
        }
    }

    fn drop_queue(&mut self, step: &mut Step<'_>, id: ObjectId) {
        let Some(q) = self.queues.get_mut(&id) else {
            return;
        };
        let was_defined = q.definition.take().is_some();
        let empty = q.depth() == 0;
        let (name, messages) = (q.name.clone(), q.depth());
        if empty && (q.closed || !q.row_written) {
            let row_written = q.row_written;
            self.end_gets_of(step, id);
            self.queues.remove(&id);
            if row_written {
                self.write(step, vec![Change::DeleteQueue { queue: id }]);
            }
            return;
        }
        // Not served any more: nothing of it expires, and who waits on it learns that it is gone.
        q.keeps_expired = true;
        for (at, sequence) in q.expiring() {
            self.expiry.remove((at, id, sequence));
        }
        if was_defined {
            self.end_gets_of(step, id);
            self.report_unknown(step, id, name, messages);
        }
    }

    pub(crate) fn report_unknown(
        &self,
        step: &mut Step<'_>,
        queue: ObjectId,
        name: QueueName,
        messages: u64,
    ) {
        let after = self
            .queues
            .get(&queue)
            .map_or(Position::ZERO, |q| q.last_change);
        step.report(
            after,
            Event::UnknownQueue {
                queue,
                name,
                messages,
            },
        );
    }

    pub(crate) fn end_gets_of(&mut self, step: &mut Step<'_>, queue: ObjectId) {
        self.end_gets(step, |p| {
            (p.queue == queue).then(|| ReasonCode::Q_DELETED.into())
        });
    }

    /// Gets that wait on a queue that may no longer be got from: `GET(DISABLED)` ends them with 2016.
    pub(crate) fn end_inhibited_gets(&mut self, step: &mut Step<'_>) {
        let qmgr_queue =
            |engine: &Self, p: &crate::get::PendingGet| match engine.input_queue(&p.name) {
                Ok(id) if id == p.queue => None,
                Ok(_) => Some(Failure::of(ReasonCode::Q_DELETED, &p.name)),
                Err(failure) if failure.reason == ReasonCode::UNKNOWN_OBJECT_NAME => {
                    Some(Failure::of(ReasonCode::Q_DELETED, &p.name))
                }
                Err(failure) => Some(failure),
            };
        let over: Vec<(RequestId, Failure)> = self
            .pending
            .iter()
            .filter_map(|(id, pending)| match pending {
                Pending::Get(p) if p.fetch.is_none() => Some((*id, qmgr_queue(self, p)?)),
                Pending::Get(_)
                | Pending::Browse(_)
                | Pending::SenderGet(_)
                | Pending::DeadLetter(_) => None,
            })
            .collect();
        for (id, failure) in &over {
            if let Some(Pending::Get(p)) = self.pending.get(id) {
                let (connection, name) = (p.connection, p.name.clone());
                self.report_failed_wait(step, connection, name, failure.reason);
            }
        }
        self.fail_gets(step, over);
    }

    pub(crate) fn end_gets(
        &mut self,
        step: &mut Step<'_>,
        failure: impl Fn(&crate::get::PendingGet) -> Option<Failure>,
    ) {
        let over: Vec<(RequestId, Failure)> = self
            .pending
            .iter()
            .filter_map(|(id, pending)| match pending {
                Pending::Get(p) if p.fetch.is_none() => Some((*id, failure(p)?)),
                Pending::Get(_)
                | Pending::Browse(_)
                | Pending::SenderGet(_)
                | Pending::DeadLetter(_) => None,
            })
            .collect();
        self.fail_gets(step, over);
    }

    fn fail_gets(&mut self, step: &mut Step<'_>, over: Vec<(RequestId, Failure)>) {
        for (id, failure) in over {
            self.resume(id);
            step.reply(id, Position::ZERO, Err(failure));
        }
    }

    /// Channels whose definitions are gone, or are others under the old names: what is remembered of them goes too. A sender
    /// with a batch in doubt keeps its messages locked until it is settled.
    fn drop_channels(&mut self, step: &mut Step<'_>, before: &QueueManager) {
        let mut gone: BTreeSet<ChannelName> = BTreeSet::new();
        for (name, channel) in &before.channels {
            let same = self
                .qmgr
                .channels
                .get(name)
                .is_some_and(|now| now.base().id == channel.base().id);
            if !same {
                gone.insert(name.clone());
            }
        }
        for channel in gone {
            let in_doubt = self
                .senders
                .get(&channel)
                .is_some_and(|s| !s.row.in_doubt.is_empty());
            if in_doubt {
                continue;
            }
            self.let_go(&channel);
            let known = self.senders.remove(&channel).is_some();
            let receivers = self.receivers.len();
            self.receivers.retain(|(name, _), _| *name != channel);
            let stopped = self.stopped.remove(&channel).is_some();
            if known || stopped || self.receivers.len() != receivers {
                self.write(step, vec![Change::DeleteChannel { channel }]);
            }
        }
    }
}

/// Queues that messages are moved to when they cannot be delivered: they do not expire there (invariant D7). Those of models
/// too, whose queues come later.
fn off_queues(qmgr: &QueueManager) -> BTreeSet<QueueName> {
    let backout_queue = |queue: &Queue| match queue {
        Queue::Local(local) => local.backout_requeue_name.clone(),
        Queue::Model(model) => model.template.backout_requeue_name.clone(),
        Queue::Remote(_) | Queue::Alias(_) => None,
    };
    let mut names: BTreeSet<QueueName> = qmgr.queues.values().filter_map(backout_queue).collect();
    let targets: Vec<QueueName> = names
        .iter()
        .filter_map(|name| match qmgr.queues.get(name) {
            Some(Queue::Alias(alias)) => alias.target.clone(),
            Some(Queue::Local(_) | Queue::Remote(_) | Queue::Model(_)) | None => None,
        })
        .collect();
    names.extend(targets);
    names.extend(qmgr.attributes.dead_letter_queue_name.clone());
    names
}
