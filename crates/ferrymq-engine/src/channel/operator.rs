//! What operators do to channels that cannot help themselves: RESET and RESOLVE.

use ferrymq_objects::Channel;
use ferrymq_types::{
    Change, ChannelName, Position, QueueManagerId, ReasonCode, Sequence, UnitOfWorkId,
};

use super::Sender;
use crate::engine::{Answer, Step};
use crate::trigger::Cause;
use crate::{Engine, Failure, Reply, SenderClaim};

/// `MQRCCF_CHL_STATUS_NOT_FOUND`.
const STATUS_NOT_FOUND: ReasonCode = ReasonCode::new(3065);
/// `MQRCCF_CHANNEL_INDOUBT`.
const IN_DOUBT: ReasonCode = ReasonCode::new(4025);
/// `MQRCCF_CHANNEL_IN_USE`.
const IN_USE: ReasonCode = ReasonCode::new(4031);

impl Engine {
    /// Source: IBM MQ, "RESET CHANNEL".
    pub(crate) fn reset_sender(
        &mut self,
        step: &mut Step<'_>,
        channel: ChannelName,
        number: u32,
    ) -> Answer {
        if !self.senders.contains_key(&channel) {
            let Some(Channel::Sender(definition)) = self.qmgr.channels.get(&channel) else {
                return Err(Failure::of(ReasonCode::UNKNOWN_OBJECT_NAME, &channel));
            };
            let queue = self.transmission_queue(&definition.transmission_queue)?;
            self.senders
                .insert(channel.clone(), Sender::new(channel.clone(), queue));
        }
        let Some(sender) = self.senders.get_mut(&channel) else {
            return Err(ReasonCode::UNEXPECTED_ERROR.into());
        };
        if sender.open.is_none() && !sender.row.in_doubt.is_empty() {
            return Err(Failure::of(IN_DOUBT, &channel));
        }
        sender.row.reset_to = Some(number);
        let position = if sender.open.is_some() {
            self.write_sender(step, &channel, Vec::new())
        } else {
            self.apply_sender_reset(step, &channel)
        };
        Ok((position, Reply::Done))
    }

    /// A reset that waits begins its generation, unless a batch of the old one is in doubt still (rule U6).
    pub(super) fn apply_sender_reset(
        &mut self,
        step: &mut Step<'_>,
        channel: &ChannelName,
    ) -> Position {
        let Some(sender) = self.senders.get_mut(channel) else {
            return Position::ZERO;
        };
        if !sender.row.in_doubt.is_empty() {
            return sender.position;
        }
        let Some(number) = sender.row.reset_to.take() else {
            return sender.position;
        };
        sender.row.generation = sender.row.generation.saturating_add(1);
        sender.row.start = u64::from(number).saturating_sub(1);
        sender.row.last_confirmed = sender.row.start;
        sender.row.last_batch = UnitOfWorkId::NONE;
        self.write_sender(step, channel, Vec::new())
    }

    /// Source: IBM MQ, "RESET CHANNEL": of a receiver, this end alone.
    pub(crate) fn reset_receiver(
        &mut self,
        step: &mut Step<'_>,
        channel: &ChannelName,
        number: u32,
    ) -> Answer {
        let mut changes = Vec::new();
        for receiver in self.receivers.values_mut() {
            if receiver.row.channel == *channel {
                receiver.row.reset_to = Some(number);
                changes.push(Change::SetReceiver(Box::new(receiver.row.clone())));
            }
        }
        if changes.is_empty() {
            return if number == 1 {
                Ok((Position::ZERO, Reply::Done))
            } else {
                Err(Failure::of(STATUS_NOT_FOUND, channel))
            };
        }
        let position = self.write(step, changes);
        for receiver in self.receivers.values_mut() {
            if receiver.row.channel == *channel {
                receiver.position = position;
            }
        }
        Ok((position, Reply::Done))
    }

    /// A sender binds in a generation that is known here: if an operator said that it goes on with the number that it has, and
    /// it has nothing in doubt, this end takes over its numbers. Else the reset stays, and the conversation must not go on.
    pub(super) fn apply_receiver_reset(
        &mut self,
        step: &mut Step<'_>,
        key: &(ChannelName, QueueManagerId),
        claim: SenderClaim,
    ) {
        let Some(receiver) = self.receivers.get_mut(key) else {
            return;
        };
        let fits = receiver.row.reset_to == Some(claim.next_shown)
            && claim.last_confirmed == claim.last_sent;
        if !fits {
            return;
        }
        receiver.row.reset_to = None;
        receiver.row.last_committed = claim.last_confirmed;
        receiver.row.last_batch = claim.last_batch;
        let change = Change::SetReceiver(Box::new(receiver.row.clone()));
        let position = self.write(step, vec![change]);
        if let Some(receiver) = self.receivers.get_mut(key) {
            receiver.position = position;
        }
    }

    /// Source: IBM MQ, "RESOLVE CHANNEL". A wrong choice shows at the next bind, where the numbers do not fit (rule U6).
    pub(crate) fn resolve_sender(
        &mut self,
        step: &mut Step<'_>,
        channel: &ChannelName,
        commit: bool,
    ) -> Answer {
        let Some(sender) = self.senders.get_mut(channel) else {
            return match self.qmgr.channels.get(channel) {
                Some(Channel::Sender(_)) => Ok((Position::ZERO, Reply::Done)),
                Some(Channel::Receiver(_) | Channel::ServerConnection(_)) | None => {
                    Err(Failure::of(ReasonCode::UNKNOWN_OBJECT_NAME, channel))
                }
            };
        };
        if sender.open.is_some() {
            return Err(Failure::of(IN_USE, channel));
        }
        let queue = sender.row.transmission_queue;
        let batches = std::mem::take(&mut sender.row.in_doubt);
        let Some(last) = batches.last() else {
            return Ok((sender.position, Reply::Done));
        };
        if commit {
            sender.row.last_confirmed = last.last_number;
            sender.row.last_batch = last.id;
        }
        let messages: Vec<Sequence> = batches.into_iter().flat_map(|b| b.messages).collect();
        let (gone, freed) = if commit {
            (messages, Vec::new())
        } else {
            (Vec::new(), messages)
        };
        let position = self.leave(step, channel, gone, freed, true);
        self.trigger_channel(step, queue, true, None);
        self.check_trigger(queue, Cause::Closed);
        Ok((position, Reply::Done))
    }
}
