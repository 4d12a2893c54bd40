//! Messages that a sending channel cannot deliver: to the dead-letter queue here, or discarded with an account entry.

use std::sync::Arc;

use bytes::Bytes;
use ferrymq_types::{
    AccountReason, ChannelName, DeadLetterHeader, Message, MessageDescriptor, MessageRow, ObjectId,
    Position, ReasonCode, Sequence, TransmissionHeader,
};

use crate::account::Note;
use crate::engine::{Answer, Step};
use crate::memory::memory_bytes;
use crate::messages::row_of;
use crate::moves::{Moved, Plan};
use crate::pending::{Pending, PendingDeadLetter};
use crate::queue::State;
use crate::{ConnectionId, Engine, Failure, Reply, RequestId};

/// A message without its transmission header and with a dead-letter header.
struct Rewrapped {
    descriptor: MessageDescriptor,
    header: Bytes,
    new_body: Option<Bytes>,
}

/// Takes the transmission header off and puts a dead-letter header on. A message whose transmission header cannot be read
/// keeps all its bytes.
///
/// Source: IBM MQ, "Dead-letter queue processing".
fn rewrap(
    message: &Message,
    reason: ReasonCode,
    queue_manager: &str,
    channel: &ChannelName,
    step: &Step<'_>,
) -> Rewrapped {
    let whole;
    let (bytes, in_body) = if message.header.is_empty() {
        (&message.body[..], true)
    } else if message.header.len() >= TransmissionHeader::LENGTH {
        (&message.header[..], false)
    } else {
        whole = message.data();
        (&whole[..], true)
    };
    let read = TransmissionHeader::read(bytes, step.now);
    let (mut descriptor, header, new_body, queue, destination) = match read {
        Ok((header, length)) if in_body => {
            let data = message.data();
            let body = data.slice(length.min(data.len())..);
            (
                header.descriptor,
                Bytes::new(),
                Some(body),
                header.remote_queue,
                header.remote_queue_manager,
            )
        }
        Ok((header, length)) => (
            header.descriptor,
            message.header.slice(length.min(message.header.len())..),
            None,
            header.remote_queue,
            header.remote_queue_manager,
        ),
        Err(_) => (
            message.descriptor.clone(),
            message.header.clone(),
            None,
            String::new(),
            queue_manager.to_owned(),
        ),
    };
    // The queue keeps the message as what it was on the transmission queue.
    descriptor.persistence = message.descriptor.persistence;
    descriptor.properties = message.descriptor.properties.clone();
    descriptor.expires_at = message.descriptor.expires_at;
    let header = DeadLetterHeader::wrap(
        &mut descriptor,
        &header,
        reason,
        &queue,
        &destination,
        &format!("sender {channel}"),
        step.now,
    );
    Rewrapped {
        descriptor,
        header,
        new_body,
    }
}

impl Engine {
    /// Whether a channel may take this message off its transmission queue: it holds it, or nobody does.
    fn held_by_sender(
        &mut self,
        connection: ConnectionId,
        channel: &ChannelName,
        sequence: Sequence,
    ) -> Result<ObjectId, Failure> {
        let queue = self.own_sender(connection, channel)?.row.transmission_queue;
        let entry = self
            .entry(queue, sequence)
            .ok_or_else(|| Failure::of(ReasonCode::NO_MSG_AVAILABLE, channel))?;
        match entry.state {
            State::Available | State::Channel | State::Damaged => Ok(queue),
            State::Uncommitted
            | State::Locked
            | State::Fetching
            | State::Browsed
            | State::Poison => Err(Failure::of(ReasonCode::OBJECT_IN_USE, channel)),
        }
    }

    /// A fast message that was handed out a moment ago.
    fn take_fast(&mut self, channel: &ChannelName, sequence: Sequence) -> Option<Arc<Message>> {
        let open = self.senders.get_mut(channel)?.open.as_mut()?;
        for answer in &mut open.fast {
            if let Some(index) = answer.iter().position(|(s, _)| *s == sequence) {
                return Some(answer.swap_remove(index).1);
            }
        }
        None
    }

    /// The batch that holds a message goes on without it; says whether the row changed.
    fn leave_batch(&mut self, channel: &ChannelName, sequence: Sequence) -> bool {
        let Some(sender) = self.senders.get_mut(channel) else {
            return false;
        };
        if let Some(open) = sender.open.as_mut() {
            for messages in open.batches.values_mut() {
                messages.retain(|s| *s != sequence);
            }
        }
        let mut changed = false;
        for batch in &mut sender.row.in_doubt {
            let before = batch.messages.len();
            batch.messages.retain(|s| *s != sequence);
            changed |= batch.messages.len() != before;
        }
        changed
    }

    pub(crate) fn sender_dead_letter(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        connection: ConnectionId,
        channel: ChannelName,
        sequence: Sequence,
        reason: ReasonCode,
    ) {
        let answer = match self.held_by_sender(connection, &channel, sequence) {
            Err(failure) => match self.take_fast(&channel, sequence) {
                Some(message) => self.dead_letter_fast(step, &channel, sequence, message, reason),
                None => Err(failure),
            },
            Ok(queue) => {
                let entry = self.entry(queue, sequence);
                let message = self.memory.get(sequence).cloned();
                match entry.and_then(|e| Some((message?, e.body))) {
                    None => {
                        self.fetch(step, id, queue, sequence);
                        return self.wait(
                            id,
                            Pending::DeadLetter(PendingDeadLetter {
                                connection,
                                channel,
                                sequence,
                                reason,
                            }),
                        );
                    }
                    Some((message, body)) => {
                        let row = row_of(&message, body);
                        self.dead_letter(step, &channel, (queue, sequence), &row, &message, reason)
                    }
                }
            }
        };
        self.answer(step, id, answer);
    }

    fn answer(&self, step: &mut Step<'_>, id: RequestId, answer: Answer) {
        match answer {
            Ok((after, reply)) => step.reply(id, after, Ok(reply)),
            Err(failure) => step.reply(id, Position::ZERO, Err(failure)),
        }
    }

    pub(crate) fn dead_letter_fetched(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        p: PendingDeadLetter,
        read: Option<(Box<MessageRow>, Arc<Message>)>,
    ) {
        // The message may have been settled, or the channel lost, while it was read.
        let answer = self
            .held_by_sender(p.connection, &p.channel, p.sequence)
            .and_then(|queue| match read {
                Some((row, message)) => {
                    self.recall(p.sequence, &message);
                    let place = (queue, p.sequence);
                    self.dead_letter(step, &p.channel, place, &row, &message, p.reason)
                }
                None => Err(Failure::of(ReasonCode::OBJECT_DAMAGED, &p.channel)),
            });
        self.answer(step, id, answer);
    }

    fn dead_letter(
        &mut self,
        step: &mut Step<'_>,
        channel: &ChannelName,
        (queue, sequence): (ObjectId, Sequence),
        row: &MessageRow,
        message: &Message,
        reason: ReasonCode,
    ) -> Answer {
        let me = self.qmgr.attributes.name.to_string();
        let new = rewrap(message, reason, &me, channel, step);
        let body = new.new_body.as_ref().unwrap_or(&message.body).len() as u64;
        let target = self
            .dead_letter_target(queue, body.saturating_add(new.header.len() as u64))
            .map_err(|reason| self.dead_letter_failure(reason))?;
        let mut plan = Plan::default();
        if self.leave_batch(channel, sequence)
            && let Some(sender) = self.senders.get(channel)
        {
            let row = Box::new(sender.row.clone());
            plan.changes.push(ferrymq_types::Change::SetSender(row));
        }
        let row_changed = !plan.changes.is_empty();
        let moved = Moved {
            descriptor: new.descriptor,
            header: new.header,
            new_body: new.new_body,
            reason: AccountReason::DeadLettered(reason),
            who: format!("channel {channel}"),
        };
        self.plan_move(queue, sequence, row, &target, moved, &mut plan);
        let position = self.carry_out(step, plan);
        if row_changed && let Some(sender) = self.senders.get_mut(channel) {
            sender.position = sender.position.max(position);
        }
        Ok((position, Reply::Done))
    }

    fn dead_letter_failure(&self, reason: ReasonCode) -> Failure {
        Failure {
            reason,
            object: self
                .qmgr
                .attributes
                .dead_letter_queue_name
                .as_ref()
                .map(ToString::to_string),
        }
    }

    fn dead_letter_fast(
        &mut self,
        step: &mut Step<'_>,
        channel: &ChannelName,
        sequence: Sequence,
        message: Arc<Message>,
        reason: ReasonCode,
    ) -> Answer {
        let queue = self
            .senders
            .get(channel)
            .map(|s| s.row.transmission_queue)
            .unwrap_or_default();
        let from = self.queues.get(&queue).map(|q| q.name.clone());
        let me = self.qmgr.attributes.name.to_string();
        let new = rewrap(&message, reason, &me, channel, step);
        let rewrapped = Message {
            descriptor: new.descriptor,
            header: new.header,
            body: new.new_body.unwrap_or_else(|| message.body.clone()),
        };
        let persistence = rewrapped.descriptor.persistence;
        let target = self
            .dead_letter_target(queue, rewrapped.data_length() as u64)
            .and_then(|target| {
                self.check_memory(persistence, memory_bytes(&rewrapped))
                    .map(|()| target)
            });
        let (Ok(target), Some(from)) = (&target, from) else {
            let failure = target.err().unwrap_or(ReasonCode::Q_DELETED);
            // It can still be discarded, with its account entry.
            if let Some(answer) = self
                .senders
                .get_mut(channel)
                .and_then(|s| s.open.as_mut())
                .and_then(|open| open.fast.back_mut())
            {
                answer.push((sequence, message));
            }
            return Err(self.dead_letter_failure(failure));
        };
        let note = Note {
            message_id: rewrapped.descriptor.message_id,
            from,
            to: Some(target.base.name.to_string()),
            reason: AccountReason::DeadLettered(reason),
            who: format!("channel {channel}"),
            durable: false,
        };
        let position = self.put_made(step, target.base.id, rewrapped, Position::ZERO);
        let entries = self.account_entries(step.now, vec![note], &mut Vec::new());
        self.account_written(step, entries, position);
        Ok((position, Reply::Done))
    }

    pub(crate) fn sender_discard(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        channel: &ChannelName,
        sequence: Sequence,
        reason: ReasonCode,
    ) -> Answer {
        let who = format!("channel {channel}");
        let reason = AccountReason::Discarded(reason);
        let queue = match self.held_by_sender(connection, channel, sequence) {
            Ok(queue) => queue,
            Err(failure) => {
                let Some(message) = self.take_fast(channel, sequence) else {
                    return Err(failure);
                };
                let queue = self.own_sender(connection, channel)?.row.transmission_queue;
                let from = self
                    .queues
                    .get(&queue)
                    .map(|q| q.name.clone())
                    .ok_or(ReasonCode::Q_DELETED)?;
                let note = Note {
                    message_id: message.descriptor.message_id,
                    from,
                    to: None,
                    reason,
                    who,
                    durable: false,
                };
                let entries = self.account_entries(step.now, vec![note], &mut Vec::new());
                self.account_written(step, entries, Position::ZERO);
                return Ok((Position::ZERO, Reply::Done));
            }
        };
        let mut changes = Vec::new();
        if self.leave_batch(channel, sequence)
            && let Some(sender) = self.senders.get(channel)
        {
            let row = Box::new(sender.row.clone());
            changes.push(ferrymq_types::Change::SetSender(row));
        }
        let row_changed = !changes.is_empty();
        let moved = [(queue, sequence)];
        let position = self.take_away(step, &moved, &reason, &who, changes, Vec::new());
        if row_changed && let Some(sender) = self.senders.get_mut(channel) {
            sender.position = sender.position.max(position);
        }
        Ok((position, Reply::Done))
    }
}
