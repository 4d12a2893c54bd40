//! How a conversation begins at the sending end: the transmission queue, the addresses, the bind, and what was in doubt.

use ferrymq_engine::{Reply, Request};
use ferrymq_objects::MessageSpeed;
use ferrymq_types::{ReasonCode, Timestamp};

use super::{
    Agreed, ESTABLISH_MAX, Effects, FastProof, Phase, Purpose, SenderEffect, SenderMca, SenderTimer,
};
use crate::{
    Answer, Bind, BindAccepted, ChannelState, Close, CloseReason, Event, PROTOCOL_VERSION,
    SenderFrame, StopStatus, silence_limit,
};

impl SenderMca {
    pub(super) fn start_requested(&mut self, effects: &mut Effects) {
        match self.state {
            ChannelState::Stopped => {
                self.mark_stopped(false, effects);
                self.begin(effects);
            }
            ChannelState::Inactive => self.begin(effects),
            ChannelState::Retrying => {
                self.cancel_timer(SenderTimer::Retry, effects);
                self.begin(effects);
            }
            ChannelState::Starting
            | ChannelState::Binding
            | ChannelState::Running
            | ChannelState::Paused
            | ChannelState::Stopping => self.report(Event::InUse, effects),
        }
    }

    /// A start: retries count anew.
    pub(super) fn begin(&mut self, effects: &mut Effects) {
        self.stop = None;
        self.last_error.clear();
        self.begin_try(effects);
        self.reset_retries();
    }

    /// One try: all addresses once.
    pub(super) fn begin_try(&mut self, effects: &mut Effects) {
        if let Some(config) = self.next_config.take() {
            self.config = *config;
        }
        self.conversation = self.conversation.saturating_add(1);
        let oldest = self.conversation.saturating_sub(1);
        self.asks
            .retain(|_, (conversation, _)| *conversation >= oldest);
        self.address_errors.clear();
        self.phase = Phase::Opening;
        self.report(Event::Starting, effects);
        self.set_state(ChannelState::Starting, effects);
        let request = Request::OpenSender {
            channel: self.config.channel.base.name.clone(),
            transmission_queue: self.config.channel.transmission_queue.clone(),
        };
        self.ask_main(Purpose::Open, request, effects);
    }

    pub(super) fn opened(&mut self, now: Timestamp, result: Answer, effects: &mut Effects) {
        match result {
            Ok(Reply::Sender(state)) => {
                self.record = Some(state);
                self.connect(now, 0, effects);
            }
            Ok(_) => self.unexpected_answer(now, "open the transmission queue", effects),
            Err(failure) => {
                self.queue_manager_refused("open the transmission queue", failure, effects);
                self.phase = Phase::Resting; // There is nothing to close.
                self.fail(now, None, effects);
            }
        }
    }

    /// Tries the address with this index; after the last one the try is over.
    fn connect(&mut self, now: Timestamp, index: usize, effects: &mut Effects) {
        match self.config.addresses.get(index).cloned() {
            Some(address) => {
                self.phase = Phase::Connecting(index);
                self.set_state(ChannelState::Binding, effects);
                effects.push(SenderEffect::Connect { address });
                let at = now.saturating_add(ESTABLISH_MAX);
                self.set_timer(SenderTimer::Establish, at, effects);
            }
            None => {
                let text = self.address_errors.join("; ");
                self.report(Event::HostNotAvailable { text }, effects);
                self.fail(now, None, effects);
            }
        }
    }

    /// This address does not take the channel: the next one, in the order of `CONNAME`.
    pub(super) fn address_failed(
        &mut self,
        now: Timestamp,
        index: usize,
        text: &str,
        effects: &mut Effects,
    ) {
        if let Some(address) = self.config.addresses.get(index) {
            self.address_errors.push(format!("{address}: {text}"));
        }
        self.cancel_timer(SenderTimer::Establish, effects);
        self.agreed = None;
        self.connect(now, index.saturating_add(1), effects);
    }

    pub(super) fn connected(&mut self, now: Timestamp, peer: String, effects: &mut Effects) {
        let (Phase::Connecting(index), Some(record)) = (self.phase, &self.record) else {
            return;
        };
        let channel = &self.config.channel;
        let bind = Bind {
            version: PROTOCOL_VERSION,
            channel: channel.base.name.clone(),
            queue_manager: self.config.queue_manager.clone(),
            queue_manager_id: self.config.queue_manager_id,
            partner: self.config.partner.clone(),
            generation: record.row.generation,
            last_confirmed: record.row.last_confirmed,
            last_sent: record.last_sent,
            start: record.row.start,
            last_batch: record.row.last_batch,
            batch_size: channel.batch_size,
            message_length_max: self.config.message_length_max(),
            sequence_wrap: channel.sequence_wrap,
            heartbeat_interval: channel.base.heartbeat_interval,
            fast: channel.non_persistent_message_speed == MessageSpeed::Fast,
        };
        self.peer = peer;
        self.phase = Phase::Binding(index);
        self.last_received = now;
        self.send(now, SenderFrame::Bind(bind), effects);
    }

    pub(super) fn accepted(
        &mut self,
        now: Timestamp,
        index: usize,
        accepted: BindAccepted,
        effects: &mut Effects,
    ) {
        let Some(record) = self.record.clone() else {
            return;
        };
        if let Some(wanted) = &self.config.partner
            && *wanted != accepted.queue_manager
        {
            let text = format!("{} answered, {wanted} is wanted", accepted.queue_manager);
            self.report(Event::WrongQueueManager { text: text.clone() }, effects);
            let close = Close::new(CloseReason::WrongQueueManager, "another one is wanted");
            self.send(now, SenderFrame::Close(close), effects);
            effects.push(SenderEffect::Disconnect);
            self.address_failed(now, index, &text, effects);
            return;
        }
        if let Err(text) = self.check_agreed(&accepted) {
            self.protocol_error(now, text, effects);
            return;
        }
        let (confirmed, sent) = (record.row.last_confirmed, record.last_sent);
        if !(confirmed..=sent).contains(&accepted.last_committed) {
            // Rule U6, invariant H4: one end has lost data. Nothing is settled and nothing sent until somebody has looked.
            let event = Event::SequenceError {
                here: if accepted.last_committed < confirmed {
                    confirmed
                } else {
                    sent
                },
                there: accepted.last_committed,
                text: if accepted.last_committed < confirmed {
                    "the receiver has lost messages that it had confirmed".into()
                } else {
                    "the sender has lost its record of messages that were confirmed".into()
                },
            };
            self.report(event, effects);
            let close = Close::new(
                CloseReason::SequenceError,
                "the numbers do not fit together",
            );
            self.stop_for_good(now, Some(close), effects);
            return;
        }
        self.cancel_timer(SenderTimer::Establish, effects);
        let partner = (accepted.queue_manager.clone(), accepted.queue_manager_id);
        self.agreed = Some(Agreed {
            partner: accepted.queue_manager,
            partner_id: accepted.queue_manager_id,
            batch_size: accepted.batch_size,
            message_length_max: accepted.message_length_max,
            heartbeat_interval: accepted.heartbeat_interval,
            fast: accepted.fast,
        });
        self.phase = Phase::Settling;
        let request = Request::SettleSender {
            channel: self.config.channel.base.name.clone(),
            generation: record.row.generation,
            last_committed: accepted.last_committed,
            last_batch: accepted.last_batch,
            partner,
            release: true,
        };
        self.ask_main(Purpose::SettleBind, request, effects);
    }

    /// Whether the partner agreed to something that was proposed.
    fn check_agreed(&self, accepted: &BindAccepted) -> Result<(), &'static str> {
        let channel = &self.config.channel;
        let fast = channel.non_persistent_message_speed == MessageSpeed::Fast;
        let fits = (1..=channel.batch_size.max(1)).contains(&accepted.batch_size)
            && (1..=self.config.message_length_max()).contains(&accepted.message_length_max)
            && accepted.heartbeat_interval >= channel.base.heartbeat_interval
            && (fast || !accepted.fast);
        if fits {
            Ok(())
        } else {
            Err("the partner agreed to something that was not proposed")
        }
    }

    pub(super) fn bind_settled(&mut self, now: Timestamp, result: Answer, effects: &mut Effects) {
        let state = match result {
            Ok(Reply::Sender(state)) => state,
            Ok(_) => {
                self.unexpected_answer(now, "settle what is in doubt", effects);
                return;
            }
            Err(failure) => {
                if failure.reason == ReasonCode::CHANNEL_SEQUENCE_ERROR {
                    self.sequence_error("the partner's number is none that settles", effects);
                }
                self.queue_manager_refused("settle what is in doubt", failure, effects);
                let text = "the numbers do not fit together";
                let close = Close::new(CloseReason::SequenceError, text);
                self.fail(now, Some(close), effects);
                return;
            }
        };
        self.record = Some(state);
        self.phase = Phase::Running;
        self.started = Some(now);
        self.idle_since = now;
        self.fast_proof = FastProof::Nothing;
        self.batch_id = self.generator.next_id();
        self.set_state(ChannelState::Running, effects);
        let seconds = self.agreed.as_ref().map_or(0, |a| a.heartbeat_interval);
        if let Some(limit) = silence_limit(seconds) {
            let interval = core::time::Duration::from_secs(seconds.into());
            self.set_timer(
                SenderTimer::Heartbeat,
                now.saturating_add(interval),
                effects,
            );
            self.set_timer(SenderTimer::Silence, now.saturating_add(limit), effects);
        }
        self.proceed(now, effects);
    }

    pub(super) fn sequence_error(&mut self, text: &str, effects: &mut Effects) {
        let (here, sent) = self
            .record
            .as_ref()
            .map_or((0, 0), |r| (r.row.last_confirmed, r.last_sent));
        let event = Event::SequenceError {
            here,
            there: sent,
            text: text.into(),
        };
        self.report(event, effects);
    }

    /// The partner ended the conversation.
    pub(super) fn partner_closed(&mut self, now: Timestamp, close: &Close, effects: &mut Effects) {
        if matches!(self.phase, Phase::Ending { .. }) {
            self.ended(effects);
            return;
        }
        let text = if close.text.is_empty() {
            format!("{:?}", close.reason)
        } else {
            close.text.clone()
        };
        let event = match close.reason {
            CloseReason::ChannelUnknown => Event::NotDefinedRemotely,
            CloseReason::ChannelWrongType => Event::WrongRemoteType,
            CloseReason::ChannelStopped | CloseReason::QueueManagerStopping => {
                Event::RemoteNotAvailable { text: text.clone() }
            }
            CloseReason::NotAuthorized => Event::PartnerDidNotAuthorise,
            CloseReason::SequenceWrap => Event::NegotiationFailed { text: text.clone() },
            CloseReason::SequenceError => {
                self.sequence_error(&text, effects);
                Event::PartnerClosed { text: text.clone() }
            }
            CloseReason::BatchRefused => Event::BatchNotAccepted { text: text.clone() },
            CloseReason::WrongQueueManager => Event::WrongQueueManager { text: text.clone() },
            CloseReason::Normal | CloseReason::Superseded | CloseReason::ProtocolError => {
                Event::PartnerClosed { text: text.clone() }
            }
        };
        self.report(event, effects);
        match (self.phase, close.reason) {
            // Rule U6: the receiver compared the numbers at the bind, and one end has lost data.
            (Phase::Binding(_), CloseReason::SequenceError) => {
                self.stop_for_good(now, None, effects);
            }
            (Phase::Binding(index), _) => {
                effects.push(SenderEffect::Disconnect);
                self.address_failed(now, index, &text, effects);
            }
            (
                Phase::Resting
                | Phase::Opening
                | Phase::Connecting(_)
                | Phase::Settling
                | Phase::Running
                | Phase::Ending { .. },
                _,
            ) => self.fail(now, None, effects),
        }
    }

    pub(super) fn disconnected(&mut self, now: Timestamp, text: String, effects: &mut Effects) {
        match self.phase {
            Phase::Resting | Phase::Opening => {}
            Phase::Connecting(index) | Phase::Binding(index) => {
                self.address_failed(now, index, &text, effects);
            }
            Phase::Settling | Phase::Running => {
                self.report(Event::ConnectionClosed { text }, effects);
                self.fail(now, None, effects);
            }
            Phase::Ending { .. } => self.ended(effects),
        }
    }

    pub(super) fn unexpected_answer(
        &mut self,
        now: Timestamp,
        what: &'static str,
        effects: &mut Effects,
    ) {
        let failure = ferrymq_engine::Failure {
            reason: ReasonCode::UNEXPECTED_ERROR,
            object: None,
        };
        self.queue_manager_refused(what, failure, effects);
        self.fail(now, None, effects);
    }

    /// `STOPPED` because the machine itself says so: an operator must look.
    pub(super) fn stop_for_good(
        &mut self,
        now: Timestamp,
        close: Option<Close>,
        effects: &mut Effects,
    ) {
        if self.stop != Some(StopStatus::Stopped) {
            self.stop = Some(StopStatus::Stopped);
            self.mark_stopped(true, effects);
        }
        self.fail(now, close, effects);
    }
}
