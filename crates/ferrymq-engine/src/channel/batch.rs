//! Batches of a sending channel: prepared before their confirmation is asked for, settled by what the partner committed
//! (rules U4 to U6).

use ferrymq_types::{
    BatchInDoubt, ChannelName, Position, QueueManagerId, QueueManagerName, ReasonCode, Sequence,
    UnitOfWorkId,
};

use crate::engine::{Answer, Step};
use crate::performance::Watched;
use crate::{ConnectionId, Engine, Failure, Reply};

/// What the partner says that it has.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub(crate) generation: u64,
    pub(crate) last_committed: u64,
    pub(crate) last_batch: UnitOfWorkId,
    pub(crate) partner: (QueueManagerName, QueueManagerId),
    pub(crate) release: bool,
}

impl Engine {
    pub(crate) fn prepare_batch(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        channel: &ChannelName,
        batch: UnitOfWorkId,
        (first_number, last_number): (u64, u64),
    ) -> Answer {
        let sender = self.own_sender(connection, channel)?;
        let next = sender.last_sent().saturating_add(1);
        let Some(open) = sender.open.as_mut() else {
            return Err(Failure::of(ReasonCode::HOBJ_ERROR, channel));
        };
        let Some(messages) = open.batches.get(&batch) else {
            return Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &batch));
        };
        let numbers = last_number
            .checked_sub(first_number)
            .map(|n| n.saturating_add(1));
        if first_number != next || numbers.is_none_or(|n| n < messages.len() as u64) {
            return Err(Failure::of(ReasonCode::CHANNEL_SEQUENCE_ERROR, channel));
        }
        let messages = open.batches.remove(&batch).unwrap_or_default();
        sender.row.in_doubt.push(BatchInDoubt {
            id: batch,
            first_number,
            last_number,
            messages,
        });
        let position = self.write_sender(step, channel, Vec::new());
        Ok((position, Reply::Done))
    }

    /// Whether what the partner says fits what was sent and what it confirmed before; then how many batches it settles.
    fn check_settlement(
        &mut self,
        connection: ConnectionId,
        channel: &ChannelName,
        s: &Settlement,
    ) -> Result<usize, Failure> {
        let sender = self.own_sender(connection, channel)?;
        let row = &sender.row;
        let refused = || Failure::of(ReasonCode::CHANNEL_SEQUENCE_ERROR, channel);
        let other_partner = row
            .partner
            .as_ref()
            .is_some_and(|(_, id)| *id != s.partner.1);
        if s.generation != row.generation || (other_partner && row.last_confirmed > row.start) {
            return Err(refused());
        }
        if s.last_committed == row.last_confirmed {
            // The number alone could be another's: the id of its batch must be the same too (invariant H4).
            let same = s.last_committed == row.start || s.last_batch == row.last_batch;
            return if same { Ok(0) } else { Err(refused()) };
        }
        row.in_doubt
            .iter()
            .position(|batch| batch.last_number == s.last_committed && batch.id == s.last_batch)
            .map(|index| index.saturating_add(1))
            .ok_or_else(refused)
    }

    pub(crate) fn settle_sender(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        channel: &ChannelName,
        s: Settlement,
    ) -> Answer {
        let settled = self.check_settlement(connection, channel, &s)?;
        let sender = self.own_sender(connection, channel)?;
        let before = sender.row.clone();
        let gone: Vec<Sequence> = sender
            .row
            .in_doubt
            .drain(..settled)
            .flat_map(|batch| batch.messages)
            .collect();
        sender.row.last_confirmed = s.last_committed;
        if settled > 0 {
            sender.row.last_batch = s.last_batch;
        }
        // A partner that has nothing yet may still be another at the next bind.
        if s.last_committed > sender.row.start {
            sender.row.partner = Some(s.partner);
        }
        let mut freed = Vec::new();
        if s.release {
            freed.extend(sender.row.in_doubt.drain(..).flat_map(|b| b.messages));
            if let Some(open) = sender.open.as_mut() {
                let unprepared = std::mem::take(&mut open.batches);
                freed.extend(unprepared.into_values().flatten());
            }
        }
        let changed = sender.row != before;
        self.leave(step, channel, gone, freed, changed);
        let sender = self.own_sender(connection, channel)?;
        Ok(sender.state())
    }

    /// Messages of batches that are settled leave the transmission queue in one write set with the sender's row, if that
    /// `changed`; others are available on it again.
    pub(super) fn leave(
        &mut self,
        step: &mut Step<'_>,
        channel: &ChannelName,
        gone: Vec<Sequence>,
        freed: Vec<Sequence>,
        changed: bool,
    ) -> Position {
        let Some(queue) = self.senders.get(channel).map(|s| s.row.transmission_queue) else {
            return Position::ZERO;
        };
        let mut changes = Vec::new();
        for sequence in &gone {
            if let Some(entry) = self.entry(queue, *sequence) {
                Self::changes_of_removal(queue, *sequence, &entry, &mut changes);
            }
        }
        let position = if changed {
            self.write_sender(step, channel, changes)
        } else {
            Position::ZERO
        };
        for sequence in gone {
            self.remove(queue, sequence);
            self.watch(queue, Watched::Left);
        }
        if let Some(q) = self.queue(queue) {
            q.changed(position);
        }
        for sequence in freed {
            self.show_again(queue, sequence, position);
        }
        position
    }
}
