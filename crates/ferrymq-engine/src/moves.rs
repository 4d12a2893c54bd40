//! Moves from one queue to another in one write set (invariant C5): poison messages to a backout queue, and to the
//! dead-letter queue what cannot be delivered.

use std::sync::Arc;

use bytes::Bytes;
use ferrymq_objects::{DefinitionType, Enabled, LocalQueue, Queue, Target};
use ferrymq_types::{
    AccountReason, Change, DeadLetterHeader, Message, MessageDescriptor, MessageRow, ObjectId,
    Position, ReasonCode, Sequence,
};

use crate::account::Note;
use crate::engine::Step;
use crate::limits::{BACKOUT_THRESHOLD_REACHED, POISON_RETRY_INTERVAL};
use crate::messages::{Removed, entry_of, length_of};
use crate::queue::{Entry, State};
use crate::resting::usual_body;
use crate::{Engine, Event};

/// Moves that become one write set.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    notes: Vec<Note>,
    touched: Vec<ObjectId>,
    arrived: Vec<(ObjectId, Sequence)>,
    /// Poison messages that no queue takes.
    stuck: Vec<(ObjectId, Sequence, ReasonCode)>,
}

/// What a message looks like on the queue that it is moved to.
pub(crate) struct Moved {
    pub(crate) descriptor: MessageDescriptor,
    pub(crate) header: Bytes,
    /// A body other than the stored one, where a header was part of it.
    pub(crate) new_body: Option<Bytes>,
    pub(crate) reason: AccountReason,
    pub(crate) who: String,
}

impl Engine {
    /// `BOTHRESH` of a queue, if it counts there: not on the dead-letter queue, from which nothing is dead-lettered again.
    pub(crate) fn threshold(&self, queue: ObjectId) -> Option<u32> {
        let q = self.queues.get(&queue)?;
        let definition = q.definition.as_ref()?;
        if self.qmgr.attributes.dead_letter_queue_name.as_ref() == Some(&q.name) {
            return None;
        }
        (definition.backout_threshold > 0).then_some(definition.backout_threshold)
    }

    /// Whether a message was backed out so often that its queue gives it up.
    pub(crate) fn is_poison(&self, queue: ObjectId, sequence: Sequence) -> bool {
        self.entry(queue, sequence)
            .is_some_and(|entry| self.is_poisoned(queue, &entry))
    }

    /// As [`Engine::is_poison`], of a message that is at hand.
    pub(crate) fn is_poisoned(&self, queue: ObjectId, entry: &Entry) -> bool {
        entry.backout_count > 0
            && self
                .threshold(queue)
                .is_some_and(|threshold| entry.backout_count >= threshold)
    }

    /// The backout queue, if it can take a message from `from`.
    fn backout_target(&self, from: ObjectId, length: u64) -> Result<LocalQueue, ReasonCode> {
        let name = self
            .queues
            .get(&from)
            .and_then(|q| q.definition.as_ref())
            .and_then(|d| d.backout_requeue_name.as_ref())
            .ok_or(BACKOUT_THRESHOLD_REACHED)?;
        let resolution = self.qmgr.resolve_for_output(name, None)?;
        if resolution.path.iter().any(|q| q.base().put == Enabled::No) {
            return Err(ReasonCode::PUT_INHIBITED);
        }
        match resolution.target {
            Target::Local(local) => {
                self.check_target(from, local, length)?;
                Ok(local.clone())
            }
            Target::Remote { .. } => Err(ReasonCode::OBJECT_TYPE_ERROR),
        }
    }

    /// The dead-letter queue, if it can take a message of this many bytes, header included, from `from`.
    pub(crate) fn dead_letter_target(
        &self,
        from: ObjectId,
        length: u64,
    ) -> Result<LocalQueue, ReasonCode> {
        let name = self
            .qmgr
            .attributes
            .dead_letter_queue_name
            .as_ref()
            .ok_or(ReasonCode::UNKNOWN_OBJECT_NAME)?;
        let local = match self.qmgr.queues.get(name) {
            Some(Queue::Local(local)) => local,
            Some(Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_)) => {
                return Err(ReasonCode::OBJECT_TYPE_ERROR);
            }
            None => return Err(ReasonCode::UNKNOWN_OBJECT_NAME),
        };
        if local.base.put == Enabled::No {
            return Err(ReasonCode::PUT_INHIBITED);
        }
        self.check_target(from, local, length)?;
        Ok(local.clone())
    }

    /// No queue leads into itself (invariant D5), none that ends with a handle is to keep what could not be delivered, and what
    /// is moved must fit.
    fn check_target(
        &self,
        from: ObjectId,
        target: &LocalQueue,
        length: u64,
    ) -> Result<(), ReasonCode> {
        if target.base.id == from {
            return Err(ReasonCode::OBJECT_IN_USE);
        }
        if target.definition_type == DefinitionType::TemporaryDynamic {
            return Err(ReasonCode::PERSISTENT_NOT_ALLOWED);
        }
        self.check_room(target, length)
    }

    /// Plans the move of a poison message: to the backout queue, else to the dead-letter queue. If neither takes it, it stays
    /// and is passed over (invariants B2 to B5). Says whether it is moved.
    pub(crate) fn plan_poison(
        &mut self,
        step: &Step<'_>,
        queue: ObjectId,
        sequence: Sequence,
        mut row: Box<MessageRow>,
        plan: &mut Plan,
    ) -> bool {
        let length = u64::from(length_of(&row));
        let who = format!("queue manager {}", self.qmgr.attributes.name);
        let refusal = match self.backout_target(queue, length) {
            Ok(target) => {
                let moved = Moved {
                    descriptor: row.descriptor.clone(),
                    header: row.header.clone(),
                    new_body: None,
                    reason: AccountReason::BackedOut,
                    who,
                };
                self.plan_move(queue, sequence, &row, &target, moved, plan);
                return true;
            }
            Err(reason) => reason,
        };
        let with_header = length.saturating_add(DeadLetterHeader::LENGTH as u64);
        match self.dead_letter_target(queue, with_header) {
            Ok(target) => {
                let name = self
                    .queues
                    .get(&queue)
                    .map(|q| q.name.to_string())
                    .unwrap_or_default();
                let mut descriptor = row.descriptor.clone();
                let header = DeadLetterHeader::wrap(
                    &mut descriptor,
                    &row.header,
                    refusal,
                    &name,
                    self.qmgr.attributes.name.as_str(),
                    "backout",
                    step.now,
                );
                let moved = Moved {
                    descriptor,
                    header,
                    new_body: None,
                    reason: AccountReason::DeadLettered(refusal),
                    who,
                };
                self.plan_move(queue, sequence, &row, &target, moved, plan);
                true
            }
            Err(reason) => {
                if let Some(entry) = self.entry(queue, sequence) {
                    row.body = entry.body;
                }
                self.hide(queue, sequence, State::Poison);
                if let Some(q) = self.queue(queue) {
                    q.poison.insert(sequence, row);
                }
                plan.stuck.push((queue, sequence, reason));
                false
            }
        }
    }

    /// Plans a move: the message leaves one queue and arrives on another, at its end, with the same body (rule U8).
    pub(crate) fn plan_move(
        &mut self,
        from: ObjectId,
        sequence: Sequence,
        row: &MessageRow,
        target: &LocalQueue,
        moved: Moved,
        plan: &mut Plan,
    ) {
        let to = target.base.id;
        let Some(from_name) = self.queues.get(&from).map(|q| q.name.clone()) else {
            return;
        };
        let Some(Removed {
            entry: old,
            message: old_message,
        }) = self.remove(from, sequence)
        else {
            return;
        };
        let persistent = old.is_persistent();
        let new_sequence = self.next_sequence();
        if persistent {
            plan.changes.push(Change::DeleteMessage {
                queue: from,
                sequence,
            });
        }
        let body = if persistent && moved.new_body.is_some() {
            plan.changes.push(Change::DeleteBody { id: old.body });
            usual_body(new_sequence, old.persistence)
        } else {
            old.body
        };
        let body_length = moved.new_body.as_ref().map_or(row.body_length, |b| {
            u32::try_from(b.len()).unwrap_or(u32::MAX)
        });
        let message = old_message.map(|message| {
            Arc::new(Message {
                descriptor: moved.descriptor.clone(),
                header: moved.header.clone(),
                body: moved
                    .new_body
                    .clone()
                    .unwrap_or_else(|| message.body.clone()),
            })
        });
        let new_row = MessageRow {
            descriptor: moved.descriptor,
            header: moved.header,
            body,
            body_length,
        };
        let entry = entry_of(
            &new_row.descriptor,
            body,
            length_of(&new_row),
            State::Fetching,
        );
        plan.notes.push(Note {
            message_id: entry.message_id,
            from: from_name,
            to: Some(target.base.name.to_string()),
            reason: moved.reason,
            who: moved.who,
            durable: persistent,
        });
        if persistent {
            self.changes_of_put(to, new_sequence, new_row, moved.new_body, &mut plan.changes);
        }
        plan.touched.push(from);
        self.insert(to, new_sequence, entry, message);
        plan.arrived.push((to, new_sequence));
    }

    /// Writes a plan, then shows what it moved.
    pub(crate) fn carry_out(&mut self, step: &mut Step<'_>, mut plan: Plan) -> Position {
        let entries = self.account_entries(step.now, plan.notes, &mut plan.changes);
        let position = self.write_any(step, plan.changes);
        for queue in plan.touched {
            if let Some(q) = self.queue(queue) {
                q.changed(position);
            }
        }
        for (queue, sequence) in plan.arrived {
            if let Some(q) = self.queue(queue) {
                q.last_put = Some(step.now);
            }
            self.show(queue, sequence, position);
        }
        self.account_written(step, entries, position);
        for (queue, sequence, reason) in plan.stuck {
            let due = step.now.saturating_add(POISON_RETRY_INTERVAL);
            self.poison_retry = Some(self.poison_retry.map_or(due, |at| at.min(due)));
            let Some(q) = self.queues.get(&queue) else {
                continue;
            };
            if let Some(entry) = q.entry(sequence) {
                let event = Event::PoisonHeld {
                    queue: q.name.clone(),
                    sequence,
                    message_id: entry.message_id,
                    reason,
                };
                step.report(entry.position.max(position), event);
            }
        }
        position
    }

    /// Moves a poison message that a get came upon.
    pub(crate) fn move_poison(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        sequence: Sequence,
        row: Box<MessageRow>,
    ) {
        let mut plan = Plan::default();
        self.plan_poison(step, queue, sequence, row, &mut plan);
        self.carry_out(step, plan);
    }

    /// Tries again to move what no queue took, and frees what is poison no more.
    pub(crate) fn retry_poison(&mut self, step: &mut Step<'_>) {
        self.poison_retry = None;
        let held: Vec<(ObjectId, Sequence)> = self
            .queues
            .iter()
            .flat_map(|(id, q)| q.poison.keys().map(|sequence| (*id, *sequence)))
            .collect();
        for (queue, sequence) in held {
            let Some(row) = self.queue(queue).and_then(|q| q.poison.remove(&sequence)) else {
                continue;
            };
            if self.is_poison(queue, sequence) {
                self.move_poison(step, queue, sequence, row);
            } else {
                self.show(queue, sequence, Position::ZERO);
            }
        }
    }
}
