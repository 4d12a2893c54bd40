//! How a conversation ends at the sending end, and what comes next: nothing, another try, or an operator.

use ferrymq_engine::Request;
use ferrymq_types::Timestamp;

use super::{Effects, FastProof, Phase, Purpose, SenderEffect, SenderMca, SenderTimer};
use crate::{ChannelState, Close, CloseReason, Event, SenderFrame, StopMode, StopStatus};

impl SenderMca {
    pub(super) fn stop_requested(
        &mut self,
        now: Timestamp,
        mode: StopMode,
        status: StopStatus,
        effects: &mut Effects,
    ) {
        if self.state == ChannelState::Stopped {
            return; // Only a start takes it out of that.
        }
        self.report(Event::UserRequestedClosure, effects);
        if status == StopStatus::Stopped && self.stop != Some(StopStatus::Stopped) {
            // Before anything else, so that a restart finds it.
            self.mark_stopped(true, effects);
        }
        if self.stop != Some(StopStatus::Stopped) {
            self.stop = Some(status);
        }
        match (self.phase, mode) {
            (Phase::Resting, _) => {
                self.cancel_timer(SenderTimer::Retry, effects);
                self.rest(effects);
            }
            (
                Phase::Opening | Phase::Connecting(_) | Phase::Binding(_) | Phase::Settling,
                StopMode::Quiesce | StopMode::Force | StopMode::Terminate,
            )
            | (Phase::Running | Phase::Ending { .. }, StopMode::Force | StopMode::Terminate) => {
                let close = Close::new(CloseReason::Normal, "the channel is stopped");
                self.fail(now, Some(close), effects);
            }
            (Phase::Running, StopMode::Quiesce) => {
                self.set_state(ChannelState::Stopping, effects);
                let waits_for_work = self.batch.is_none()
                    && self.to_send.is_empty()
                    && self.unsendable.is_none()
                    && self.main.is_some();
                if waits_for_work {
                    self.end(effects);
                } else {
                    self.proceed(now, effects);
                }
            }
            (Phase::Ending { .. }, StopMode::Quiesce) => {}
        }
    }

    /// Begins to end in good order. No batch is open; a get may be waiting. What it takes before it is cancelled comes with its
    /// answer, and the answer to the close comes after it.
    pub(super) fn end(&mut self, effects: &mut Effects) {
        self.set_state(ChannelState::Stopping, effects);
        if let Some(ask) = self.main.take() {
            effects.push(SenderEffect::Cancel { ask });
        }
        self.phase = Phase::Ending { closed: false };
        let request = Request::CloseSender {
            channel: self.config.channel.base.name.clone(),
        };
        self.ask(Purpose::CloseInOrder, request, effects);
    }

    /// The transmission queue is closed and what was taken from it is sent.
    pub(super) fn end_now(&mut self, now: Timestamp, effects: &mut Effects) {
        let close = Close::new(CloseReason::Normal, "");
        self.send(now, SenderFrame::Close(close), effects);
        self.ended(effects);
    }

    /// It ended in good order.
    pub(super) fn ended(&mut self, effects: &mut Effects) {
        effects.push(SenderEffect::Disconnect);
        self.forget(effects);
        self.report(Event::Ended, effects);
        let triggered = core::mem::take(&mut self.triggered_while_ending);
        self.rest(effects);
        // A message that came while the transmission queue was being closed is not left there.
        if triggered && self.state == ChannelState::Inactive {
            self.begin(effects);
        }
    }

    /// It ended otherwise: what was taken and not made durable goes back, what is in doubt stays so until the next bind, and
    /// another try follows unless a stop was asked for.
    pub(super) fn fail(&mut self, now: Timestamp, close: Option<Close>, effects: &mut Effects) {
        match (self.phase, close) {
            (Phase::Resting | Phase::Opening, _) => {}
            (Phase::Connecting(_), _) => effects.push(SenderEffect::Disconnect),
            (
                Phase::Binding(_) | Phase::Settling | Phase::Running | Phase::Ending { .. },
                close,
            ) => {
                if let Some(close) = close {
                    self.send(now, SenderFrame::Close(close), effects);
                }
                effects.push(SenderEffect::Disconnect);
            }
        }
        if let Some(ask) = self.main {
            // Only a get waits; the others end by themselves.
            if let Some((_, Purpose::Get)) = self.asks.get(&ask) {
                effects.push(SenderEffect::Cancel { ask });
            }
        }
        if !matches!(self.phase, Phase::Resting | Phase::Ending { .. }) {
            let request = Request::CloseSender {
                channel: self.config.channel.base.name.clone(),
            };
            self.ask(Purpose::Close, request, effects);
        }
        self.forget(effects);
        self.triggered_while_ending = false;
        if self.stop.is_some() {
            self.rest(effects);
        } else {
            self.retry_later(now, effects);
        }
    }

    /// Drops what belongs to the conversation.
    fn forget(&mut self, effects: &mut Effects) {
        let lost = self.to_send.iter().filter(|t| t.fast).count();
        let lost = lost.saturating_add(usize::from(
            self.unsendable.as_ref().is_some_and(|d| d.is_fast()),
        ));
        for timer in core::mem::take(&mut self.timers) {
            effects.push(SenderEffect::CancelTimer { timer });
        }
        self.to_send.clear();
        self.unsendable = None;
        self.refused = None;
        self.main = None;
        self.keep_doubt();
        self.batch = None;
        self.agreed = None;
        self.peer.clear();
        self.fast_proof = FastProof::Nothing;
        self.phase = Phase::Resting;
        self.count_lost(lost, effects);
    }

    /// At rest, as the stop that was asked for says; `INACTIVE` if none was.
    fn rest(&mut self, effects: &mut Effects) {
        let state = match self.stop.take() {
            Some(StopStatus::Stopped) => ChannelState::Stopped,
            Some(StopStatus::Inactive) | None => ChannelState::Inactive,
        };
        self.set_state(state, effects);
    }

    /// `RETRYING`: short retries first, then long ones; `STOPPED` when they are used up.
    ///
    /// Source: IBM MQ, "Short retry count", "Long retry count".
    fn retry_later(&mut self, now: Timestamp, effects: &mut Effects) {
        let channel = &self.config.channel;
        let interval = if let Some(left) = self.short_retries_left.checked_sub(1) {
            self.short_retries_left = left;
            channel.short_retry_interval
        } else if let Some(left) = self.long_retries_left.checked_sub(1) {
            self.long_retries_left = left;
            channel.long_retry_interval
        } else {
            self.report(Event::RetriesUsedUp, effects);
            self.mark_stopped(true, effects);
            self.stop = Some(StopStatus::Stopped);
            self.rest(effects);
            return;
        };
        self.counters.retries = self.counters.retries.saturating_add(1);
        let event = Event::Retrying {
            short_left: self.short_retries_left,
            long_left: self.long_retries_left,
        };
        self.report(event, effects);
        self.set_state(ChannelState::Retrying, effects);
        self.set_timer(SenderTimer::Retry, now.saturating_add(interval), effects);
    }

    /// A message was transferred, or the channel was started.
    pub(super) fn reset_retries(&mut self) {
        self.short_retries_left = self.config.channel.short_retry_count;
        self.long_retries_left = self.config.channel.long_retry_count;
    }

    pub(super) fn mark_stopped(&mut self, stopped: bool, effects: &mut Effects) {
        let request = Request::SetChannelStopped {
            channel: self.config.channel.base.name.clone(),
            stopped,
        };
        let purpose = Purpose::Unwaited("remember whether the channel is stopped");
        self.ask(purpose, request, effects);
    }
}
