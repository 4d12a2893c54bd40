//! What channels do with queues, and what is remembered of them.

mod batch;
mod operator;
mod receiver;
mod sender;
mod undeliverable;

use ferrymq_types::{Change, ChannelName, Position};

pub(crate) use batch::Settlement;
pub(crate) use receiver::{Discard, Receiver};
pub(crate) use sender::{Sender, SenderGet};

use crate::engine::{Step, Woken};
use crate::{ConnectionId, Engine, Reply};

/// Whether an operator stopped a channel, and the write set that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopped {
    pub(crate) stopped: bool,
    pub(crate) position: Position,
}

impl Engine {
    pub(crate) fn set_channel_stopped(
        &mut self,
        step: &mut Step<'_>,
        channel: ChannelName,
        stopped: bool,
    ) -> (Position, Reply) {
        let known = self.stopped.get(&channel).copied().unwrap_or(Stopped {
            stopped: false,
            position: Position::ZERO,
        });
        if known.stopped == stopped {
            return (known.position, Reply::Done);
        }
        let change = Change::SetChannelStopped {
            channel: channel.clone(),
            stopped,
        };
        let position = self.write(step, vec![change]);
        self.stopped.insert(channel, Stopped { stopped, position });
        (position, Reply::Done)
    }

    pub(crate) fn channel_rows(&self) -> (Position, Reply) {
        let positions = self
            .senders
            .values()
            .map(|s| s.position)
            .chain(self.receivers.values().map(|r| r.position))
            .chain(self.stopped.values().map(|s| s.position));
        let position = positions.max().unwrap_or(Position::ZERO);
        let reply = Reply::Channels {
            senders: self.senders.values().map(|s| s.row.clone()).collect(),
            receivers: self.receivers.values().map(|r| r.row.clone()).collect(),
            stopped: self
                .stopped
                .iter()
                .filter(|(_, s)| s.stopped)
                .map(|(channel, _)| channel.clone())
                .collect(),
        };
        (position, reply)
    }

    /// A connection is gone: the channels that it had open are closed.
    pub(crate) fn disconnect_channels(&mut self, connection: ConnectionId) {
        let open: Vec<ChannelName> = self
            .senders
            .iter()
            .filter(|(_, s)| s.connection() == Some(connection))
            .map(|(channel, _)| channel.clone())
            .collect();
        for channel in open {
            self.let_go(&channel);
        }
        self.superseded.remove(&connection);
        for receiver in self.receivers.values_mut() {
            if receiver.bound == Some(connection) {
                receiver.bound = None;
            }
        }
    }

    /// A message became available: the channel that waits for it gets it, or the channel's trigger is due.
    pub(crate) fn serve_channel(&mut self, step: &mut Step<'_>, woken: Woken) {
        let Some(q) = self.queues.get(&woken.queue) else {
            return;
        };
        match q.sender.clone() {
            Some(channel) => self.serve_sender(step, &channel),
            None if woken.triggers => {
                self.trigger_channel(step, woken.queue, woken.first, Some(woken.priority));
            }
            None => {}
        }
    }
}
