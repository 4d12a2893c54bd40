//! The receiving end: commits batches in order, for the newest bind only (rule U5).

use ferrymq_types::{
    AccountReason, Change, ChannelName, MessageId, Position, QueueManagerId, QueueManagerName,
    QueueName, ReasonCode, ReceiverRow, UnitOfWorkId,
};

use crate::account::Note;
use crate::engine::{Answer, Step};
use crate::messages::ROW_BYTES;
use crate::unit_of_work::CommitRecord;
use crate::{ConnectionId, Engine, Failure, ReceiverState, Reply, SenderClaim};

/// A receiving channel, for one sending queue manager.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) row: ReceiverRow,
    /// The write set that the row depends on.
    pub(crate) position: Position,
    /// The connection of the newest bind.
    pub(crate) bound: Option<ConnectionId>,
}

/// A message that a receiver discards.
#[derive(Debug)]
pub(crate) struct Discard {
    pub(crate) message_id: MessageId,
    pub(crate) queue: QueueName,
    pub(crate) reason: AccountReason,
    pub(crate) syncpoint: Option<UnitOfWorkId>,
}

impl Engine {
    pub(crate) fn open_receiver(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        key: (ChannelName, QueueManagerId),
        sender_name: QueueManagerName,
        generation: u64,
        claim: SenderClaim,
    ) -> Answer {
        let known = self.receivers.get(&key);
        if known.is_some_and(|r| generation < r.row.generation) {
            return Err(Failure::of(ReasonCode::CHANNEL_SEQUENCE_ERROR, &key.0));
        }
        // Also its own earlier bind: nothing of that may be committed after this one has answered.
        if let Some(older) = known.and_then(|r| r.bound) {
            self.back_out_all(step, older);
            if older != connection {
                self.superseded.insert(older);
            }
        }
        let same = self
            .receivers
            .get(&key)
            .is_some_and(|r| r.row.generation == generation);
        if !same {
            // A generation that was seen is remembered, so that an older one is refused from now on (rule U6).
            let row = ReceiverRow {
                channel: key.0.clone(),
                sender: key.1,
                sender_name,
                generation,
                last_committed: claim.start,
                last_batch: UnitOfWorkId::NONE,
                reset_to: None,
            };
            let change = Change::SetReceiver(Box::new(row.clone()));
            let position = self.write(step, vec![change]);
            self.receivers.insert(
                key.clone(),
                Receiver {
                    row,
                    position,
                    bound: None,
                },
            );
        } else {
            self.apply_receiver_reset(step, &key, claim);
        }
        let Some(receiver) = self.receivers.get_mut(&key) else {
            return Err(ReasonCode::UNEXPECTED_ERROR.into());
        };
        receiver.bound = Some(connection);
        let state = ReceiverState {
            row: receiver.row.clone(),
        };
        Ok((receiver.position, Reply::Receiver(state)))
    }

    pub(crate) fn commit_received(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        key: (ChannelName, QueueManagerId),
        batch: UnitOfWorkId,
        (first_number, last_number): (u64, u64),
    ) -> Answer {
        let owned = self.own_unit(connection, batch);
        let refusal = match self.receivers.get(&key) {
            Some(r) if r.bound == Some(connection) => {
                let row = &r.row;
                // The same batch once more is acknowledged, not applied again (invariant I3).
                let again = last_number == row.last_committed && batch == row.last_batch;
                if again && last_number > 0 {
                    let position = r.position;
                    if owned.is_ok() {
                        self.back_out_unit(step, batch);
                    }
                    return Ok((position, Reply::Done));
                }
                let next = row.last_committed.saturating_add(1);
                (first_number != next || last_number < first_number)
                    .then_some(ReasonCode::CHANNEL_SEQUENCE_ERROR)
            }
            Some(_) | None => Some(ReasonCode::CHANNEL_SUPERSEDED),
        };
        if let Some(reason) = refusal {
            if owned.is_ok() {
                self.back_out_unit(step, batch);
            }
            return Err(Failure::of(reason, &key.0));
        }
        owned?;
        let Some(receiver) = self.receivers.get_mut(&key) else {
            return Err(ReasonCode::UNEXPECTED_ERROR.into());
        };
        receiver.row.last_committed = last_number;
        receiver.row.last_batch = batch;
        let change = Change::SetReceiver(Box::new(receiver.row.clone()));
        let position = self.commit_unit(step, batch, CommitRecord::Channel(change));
        if let Some(receiver) = self.receivers.get_mut(&key) {
            receiver.position = position;
        }
        Ok((position, Reply::Done))
    }

    pub(crate) fn receiver_discard(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        channel: &ChannelName,
        discard: Discard,
    ) -> Answer {
        let note = Note {
            message_id: discard.message_id,
            from: discard.queue,
            to: None,
            reason: discard.reason,
            who: format!("channel {channel}"),
            durable: discard.syncpoint.is_some(),
        };
        match discard.syncpoint {
            Some(id) => {
                self.own_unit(connection, id)?;
                self.check_unit_room(id, 0, ROW_BYTES)?;
                if let Some(unit) = self.units.get_mut(&id) {
                    unit.note(note);
                }
            }
            None => {
                let entries = self.account_entries(step.now, vec![note], &mut Vec::new());
                self.account_written(step, entries, Position::ZERO);
            }
        }
        Ok((Position::ZERO, Reply::Done))
    }
}
