//! What operators ask for: statistics, clearing and closing queues, dumps.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use ferrymq_types::{AccountReason, ObjectId, Position, QueueName, ReasonCode, Sequence};

use crate::engine::{Answer, Step};
use crate::limits::CHANGES_PER_WRITE_SET;
use crate::queue::State;
use crate::{DumpItem, Engine, Failure, QueueStatistics, Reply};

impl Engine {
    pub(crate) fn queue_statistics(&self) -> (Position, Reply) {
        let putters = self.putters();
        let mut position = Position::ZERO;
        let mut queues = BTreeMap::new();
        for (id, q) in self.queues.iter().filter(|(_, q)| q.definition.is_some()) {
            position = position.max(q.last_change);
            let channel = u32::from(q.sender.is_some());
            let waiting = u32::try_from(q.waiters.len()).unwrap_or(u32::MAX);
            queues.insert(
                q.name.clone(),
                QueueStatistics {
                    depth: q.depth(),
                    uncommitted: q.uncommitted,
                    input_handles: q.inputs().max(waiting).saturating_add(channel),
                    output_handles: putters
                        .get(id)
                        .copied()
                        .unwrap_or_default()
                        .saturating_add(q.outputs()),
                    oldest: q.oldest(),
                    last_get: q.last_get,
                    last_put: q.last_put,
                    trigger_used: q
                        .definition
                        .as_ref()
                        .is_some_and(|d| d.trigger && q.trigger_is_used(d)),
                },
            );
        }
        (position, Reply::Queues(queues))
    }

    fn local_of(&self, name: &QueueName) -> Result<ObjectId, Failure> {
        self.local(name).map_err(|reason| Failure::of(reason, name))
    }

    /// 2042 if somebody uses the queue: waits on it, sends from it, or holds a message of it.
    fn check_unused(&self, queue: ObjectId) -> Result<(), Failure> {
        let Some(q) = self.queues.get(&queue) else {
            return Ok(());
        };
        let open = q.inputs() > 0 || q.outputs() > 0;
        if q.is_held() || open || !q.waiters.is_empty() || q.sender.is_some() {
            return Err(Failure::of(ReasonCode::OBJECT_IN_USE, &q.name));
        }
        Ok(())
    }

    /// Takes all messages away, a bounded write set at a time.
    fn take_all_away(&mut self, step: &mut Step<'_>, queue: ObjectId, who: &str) -> u64 {
        let mut cleared: u64 = 0;
        loop {
            let Some(q) = self.queues.get(&queue) else {
                return cleared;
            };
            let some: Vec<(ObjectId, Sequence)> = q
                .entries(Unbounded)
                .take(CHANGES_PER_WRITE_SET)
                .map(|(sequence, _)| (queue, sequence))
                .collect();
            if some.is_empty() {
                return cleared;
            }
            cleared = cleared.saturating_add(some.len() as u64);
            let reason = AccountReason::Cleared;
            self.take_away(step, &some, &reason, who, Vec::new(), Vec::new());
        }
    }

    fn last_change(&self, queue: ObjectId) -> Position {
        self.queues
            .get(&queue)
            .map_or(Position::ZERO, |q| q.last_change)
    }

    pub(crate) fn clear(&mut self, step: &mut Step<'_>, queue: &QueueName, who: &str) -> Answer {
        let id = self.local_of(queue)?;
        self.check_unused(id)?;
        let cleared = self.take_all_away(step, id, who);
        Ok((self.last_change(id), Reply::Cleared(cleared)))
    }

    pub(crate) fn close_queue(
        &mut self,
        step: &mut Step<'_>,
        queue: &QueueName,
        purge: bool,
        who: &str,
    ) -> Answer {
        let id = self.local_of(queue)?;
        self.check_unused(id)?;
        if !purge && self.queues.get(&id).is_some_and(|q| q.depth() > 0) {
            return Err(Failure::of(ReasonCode::Q_NOT_EMPTY, queue));
        }
        if self.is_dynamic(id) {
            return Ok((self.delete_dynamic(step, id, who), Reply::Done));
        }
        self.take_all_away(step, id, who);
        self.set_closed(step, id, true);
        Ok((self.last_change(id), Reply::Done))
    }

    pub(crate) fn reopen_queue(&mut self, step: &mut Step<'_>, queue: &QueueName) -> Answer {
        let id = self.local_of(queue)?;
        self.set_closed(step, id, false);
        Ok((self.last_change(id), Reply::Done))
    }

    fn set_closed(&mut self, step: &mut Step<'_>, id: ObjectId, closed: bool) {
        let Some(q) = self.queues.get_mut(&id).filter(|q| q.closed != closed) else {
            return;
        };
        q.closed = closed;
        self.write_queue_row(step, id);
    }

    /// A page of all messages that are committed, also of queues that no definition knows.
    pub(crate) fn dump(
        &self,
        after: Option<(ObjectId, Sequence)>,
        limit: u32,
    ) -> (Position, Reply) {
        let mut position = Position::ZERO;
        let mut items = Vec::new();
        let first = after.map_or(ObjectId::ZERO, |(queue, _)| queue);
        'all: for (id, q) in self.queues.range(first..) {
            position = position.max(q.last_change);
            let from = match after {
                Some((queue, sequence)) if queue == *id => Excluded(sequence),
                Some(_) | None => Unbounded,
            };
            for (sequence, entry) in q.entries(from) {
                let held = match entry.state {
                    // Nobody has put it yet.
                    State::Uncommitted => continue,
                    State::Locked | State::Channel | State::Fetching | State::Browsed => true,
                    State::Available | State::Damaged | State::Poison => false,
                };
                if items.len() >= limit as usize {
                    break 'all;
                }
                items.push(DumpItem {
                    queue: (*id, q.name.clone()),
                    sequence,
                    held,
                    backout_count: entry.backout_count,
                    message: self.memory.get(sequence).cloned(),
                });
            }
        }
        (position, Reply::Dump(items))
    }
}
