//! How a conversation begins at the receiving end: the checks, the record, the answer.

use ferrymq_engine::{Reply, Request, SenderClaim};
use ferrymq_objects::MessageSpeed;
use ferrymq_types::{ReasonCode, Timestamp};

use super::{Agreed, Effects, Phase, ReceiverEffect, ReceiverMca, ReceiverTimer};
use crate::{
    Answer, Bind, BindAccepted, ChannelState, CloseReason, Event, PROTOCOL_VERSION, ReceiverFrame,
    shown_number, silence_limit,
};

/// The number of the message that a sender goes on with, as `SEQWRAP` shows it.
fn next_shown(bind: &Bind) -> u32 {
    let next = bind.last_confirmed.saturating_add(1);
    u32::try_from(shown_number(next, bind.sequence_wrap)).unwrap_or(u32::MAX)
}

impl ReceiverMca {
    pub(super) fn bind_received(&mut self, bind: Bind, effects: &mut Effects) {
        self.set_state(ChannelState::Binding, effects);
        if let Err((reason, text)) = self.check_bind(&bind) {
            self.report(Event::NegotiationFailed { text: text.clone() }, effects);
            self.close(reason, text, effects);
            return;
        }
        self.ask(
            Request::OpenReceiver {
                channel: bind.channel.clone(),
                sender: bind.queue_manager_id,
                sender_name: bind.queue_manager.clone(),
                generation: bind.generation,
                claim: SenderClaim {
                    start: bind.start,
                    last_confirmed: bind.last_confirmed,
                    last_sent: bind.last_sent,
                    last_batch: bind.last_batch,
                    next_shown: next_shown(&bind),
                },
            },
            effects,
        );
        self.phase = Phase::Binding(Box::new(bind));
    }

    /// Whether this end can speak as proposed.
    fn check_bind(&self, bind: &Bind) -> Result<(), (CloseReason, String)> {
        if bind.version != PROTOCOL_VERSION {
            let text = format!(
                "level {} of the protocol is wanted, {PROTOCOL_VERSION} is spoken here",
                bind.version
            );
            return Err((CloseReason::ProtocolError, text));
        }
        if bind.channel != self.config.channel.base.name {
            return Err((CloseReason::ChannelUnknown, "no such channel".into()));
        }
        if let Some(wanted) = &bind.partner
            && *wanted != self.config.queue_manager
        {
            let text = format!("this is queue manager {}", self.config.queue_manager);
            return Err((CloseReason::WrongQueueManager, text));
        }
        if bind.sequence_wrap != self.config.channel.sequence_wrap {
            let text = format!(
                "SEQWRAP is {} at the sender and {} at the receiver",
                bind.sequence_wrap, self.config.channel.sequence_wrap
            );
            return Err((CloseReason::SequenceWrap, text));
        }
        let sensible = bind.generation > 0
            && bind.batch_size > 0
            && bind.message_length_max > 0
            && bind.start <= bind.last_confirmed
            && bind.last_confirmed <= bind.last_sent;
        if !sensible {
            let text = "the bind holds a value that it may not".into();
            return Err((CloseReason::ProtocolError, text));
        }
        Ok(())
    }

    /// The queue manager said what it has of the channel.
    pub(super) fn opened(
        &mut self,
        now: Timestamp,
        bind: &Bind,
        result: Answer,
        effects: &mut Effects,
    ) {
        let row = match result {
            Ok(Reply::Receiver(state)) => state.row,
            Ok(_) => {
                self.unexpected_answer("open the channel", effects);
                return;
            }
            Err(failure) if failure.reason == ReasonCode::CHANNEL_SEQUENCE_ERROR => {
                let event = Event::SequenceError {
                    here: 0,
                    there: bind.last_confirmed,
                    text: format!(
                        "the partner binds with generation {}, an older one than was seen here",
                        bind.generation
                    ),
                };
                self.report(event, effects);
                let text = "a newer generation of the channel was seen here";
                self.close(CloseReason::SequenceError, text, effects);
                return;
            }
            Err(failure) => {
                self.queue_manager_refused("open the channel", failure, effects);
                return;
            }
        };
        if let Some(expected) = row.reset_to {
            let text = if bind.last_sent > bind.last_confirmed {
                "RESET CHANNEL was said here, but the partner is in doubt and must be resolved first"
            } else {
                "the partner does not go on with the number that RESET CHANNEL said here"
            };
            let event = Event::SequenceError {
                here: u64::from(expected),
                there: u64::from(next_shown(bind)),
                text: text.into(),
            };
            self.report(event, effects);
            self.close(CloseReason::SequenceError, text, effects);
            return;
        }
        // Rule U6, invariant H4: both ends count the same messages, or somebody has lost data.
        let text = if bind.last_confirmed > row.last_committed {
            "the receiver has lost messages that it had confirmed"
        } else if row.last_committed > bind.last_sent {
            "the sender has lost its record of messages that were confirmed"
        } else {
            self.accept(now, bind, row.last_committed, row.last_batch, effects);
            return;
        };
        let event = Event::SequenceError {
            here: row.last_committed,
            there: if bind.last_confirmed > row.last_committed {
                bind.last_confirmed
            } else {
                bind.last_sent
            },
            text: text.into(),
        };
        self.report(event, effects);
        self.close(CloseReason::SequenceError, text, effects);
    }

    fn accept(
        &mut self,
        now: Timestamp,
        bind: &Bind,
        last_committed: u64,
        last_batch: ferrymq_types::UnitOfWorkId,
        effects: &mut Effects,
    ) {
        let channel = &self.config.channel;
        let fast = bind.fast && channel.non_persistent_message_speed == MessageSpeed::Fast;
        let batch_size = bind
            .batch_size
            .min(channel.batch_size)
            .min(self.config.max_uncommitted_messages)
            .max(1);
        let message_length_max = bind
            .message_length_max
            .min(self.config.message_length_max());
        let heartbeat_interval = bind.heartbeat_interval.max(channel.base.heartbeat_interval);
        self.received = last_committed;
        self.last_committed = last_committed;
        self.last_batch = last_batch;
        self.started = Some(now);
        self.agreed = Some(Agreed {
            partner: bind.queue_manager.clone(),
            partner_id: bind.queue_manager_id,
            generation: bind.generation,
            batch_size,
            message_length_max,
            heartbeat_interval,
            fast,
        });
        self.phase = Phase::Running;
        self.report(Event::Starting, effects);
        effects.push(ReceiverEffect::Send(ReceiverFrame::BindAccepted(
            BindAccepted {
                queue_manager: self.config.queue_manager.clone(),
                queue_manager_id: self.config.queue_manager_id,
                last_committed,
                last_batch,
                batch_size,
                message_length_max,
                heartbeat_interval,
                fast,
            },
        )));
        self.set_state(ChannelState::Running, effects);
        self.arm_heartbeat(now, effects);
        if let Some(limit) = silence_limit(heartbeat_interval) {
            let at = now.saturating_add(limit);
            self.set_timer(ReceiverTimer::Silence, at, effects);
        }
    }
}
