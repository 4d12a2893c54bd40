//! The end that receives: one machine for one incoming conversation.
//!
//! It binds, puts what comes in one message after another, commits a batch together with its last number in one write set, and
//! confirms it when that is durable. A batch that is not committed leaves nothing behind (rules U5, U6, invariants H1, H3).
//!
//! Puts are made in order and one at a time: if two were under way and the first had to be tried again, the second would
//! overtake it.

mod bind;
mod deliver;
mod io;

use std::collections::{BTreeSet, VecDeque};

use ferrymq_engine::Request;
use ferrymq_types::{QueueManagerId, QueueManagerName, Timestamp, UnitOfWorkId};

use crate::{
    AskId, BatchEnd, BatchMessage, ChannelState, ChannelStatus, Close, CloseReason, Counters,
    Event, FastMessage, ReceiverConfig, ReceiverFrame, SenderFrame, StopMode, StopStatus,
    silence_limit,
};

use deliver::{Current, Step};
pub use io::{ReceiverEffect, ReceiverInput, ReceiverTimer};

/// Frames that may wait here before [`ReceiverMca::wants_frames`] says no.
const PENDING_MAX: usize = 128;
/// Bytes that may wait here before [`ReceiverMca::wants_frames`] says no; one message may cross it.
const PENDING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a partner has to end a conversation that is being stopped here.
const DRAIN_MAX: core::time::Duration = core::time::Duration::from_secs(10);

/// Where the conversation is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// Nothing came yet.
    Unbound,
    /// The queue manager was asked for the channel's record.
    Binding(Box<crate::Bind>),
    /// Messages come.
    Running,
    /// Closed by this end in good order: fast messages that are under way are still taken, nothing else.
    Draining,
    /// Over.
    Closed,
}

/// What both ends use.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Agreed {
    partner: QueueManagerName,
    partner_id: QueueManagerId,
    generation: u64,
    batch_size: u32,
    message_length_max: u32,
    heartbeat_interval: u32,
    fast: bool,
}

/// The batch that comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    id: UnitOfWorkId,
    first_number: u64,
    messages: u32,
    /// Whether its end was received.
    ended: bool,
    /// Whether its unit of work is open in the queue manager.
    begun: bool,
    dead_lettered: u32,
}

/// What waits for its turn.
#[derive(Debug)]
enum Work {
    Message(Box<BatchMessage>),
    Fast(Box<FastMessage>),
    End(BatchEnd),
}

impl Work {
    fn bytes(&self) -> usize {
        match self {
            Self::Message(m) => m.message.data_length(),
            Self::Fast(m) => m.message.data_length(),
            Self::End(_) => 0,
        }
    }
}

/// What waits for its turn, counted.
#[derive(Debug, Default)]
struct Pending {
    work: VecDeque<Work>,
    bytes: usize,
    fast: usize,
    fast_bytes: usize,
}

impl Pending {
    fn push(&mut self, work: Work) {
        self.bytes = self.bytes.saturating_add(work.bytes());
        if matches!(work, Work::Fast(_)) {
            self.fast = self.fast.saturating_add(1);
            self.fast_bytes = self.fast_bytes.saturating_add(work.bytes());
        }
        self.work.push_back(work);
    }

    /// The next one; only fast messages while a refused message holds up its batch.
    fn pop(&mut self, fast_only: bool) -> Option<Work> {
        let work = if fast_only {
            let index = self.work.iter().position(|w| matches!(w, Work::Fast(_)))?;
            self.work.remove(index)?
        } else {
            self.work.pop_front()?
        };
        self.bytes = self.bytes.saturating_sub(work.bytes());
        if matches!(work, Work::Fast(_)) {
            self.fast = self.fast.saturating_sub(1);
            self.fast_bytes = self.fast_bytes.saturating_sub(work.bytes());
        }
        Some(work)
    }

    /// Drops what belongs to a batch.
    fn drop_batch(&mut self) {
        self.work.retain(|w| matches!(w, Work::Fast(_)));
        self.bytes = self.fast_bytes;
    }
}

/// A receiving MCA.
#[derive(Debug)]
pub struct ReceiverMca {
    config: ReceiverConfig,
    phase: Phase,
    state: ChannelState,
    stop: Option<StopStatus>,
    agreed: Option<Agreed>,
    /// The number of the last message that was taken in, in this conversation or before it.
    received: u64,
    last_committed: u64,
    last_batch: UnitOfWorkId,
    batch: Option<Batch>,
    pending: Pending,
    current: Option<Current>,
    /// The message that was refused and not withdrawn yet.
    refused: Option<u64>,
    next_ask: u64,
    waiting: Option<AskId>,
    timers: BTreeSet<ReceiverTimer>,
    /// Nothing comes in any more and nothing goes out.
    partner_gone: bool,
    last_received: Timestamp,
    started: Option<Timestamp>,
    last_message: Option<Timestamp>,
    last_error: String,
    counters: Counters,
}

type Effects = Vec<ReceiverEffect>;

impl ReceiverMca {
    /// A machine for one conversation, made when the partner's first frame is there and it is known that the partner may use
    /// the channel (certificate, `SSLPEER`, `CHLAUTH`) and that the channel is not stopped.
    #[must_use]
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            config,
            phase: Phase::Unbound,
            state: ChannelState::Inactive,
            stop: None,
            agreed: None,
            received: 0,
            last_committed: 0,
            last_batch: UnitOfWorkId::NONE,
            batch: None,
            pending: Pending::default(),
            current: None,
            refused: None,
            next_ask: 1,
            waiting: None,
            timers: BTreeSet::new(),
            partner_gone: false,
            last_received: Timestamp::ZERO,
            started: None,
            last_message: None,
            last_error: String::new(),
            counters: Counters::default(),
        }
    }

    /// Whether the next frame may be handed in. While it is `false` the caller leaves frames in the connection, whose flow
    /// control then slows the sender: this is what bounds the memory of a paused channel.
    #[must_use]
    pub fn wants_frames(&self) -> bool {
        let (count, bytes) = if self.refused.is_some() {
            // The withdrawal is behind the rest of the batch, and that is bounded by the batch's size.
            (self.pending.fast, self.pending.fast_bytes)
        } else {
            (self.pending.work.len(), self.pending.bytes)
        };
        count < PENDING_MAX && bytes < PENDING_BYTES_MAX
    }

    /// Whether the conversation is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> ChannelState {
        self.state
    }

    /// The definition and the queue manager that it was made with.
    #[must_use]
    pub const fn config(&self) -> &ReceiverConfig {
        &self.config
    }

    /// Takes `input` in; appends what is to be done, in order.
    pub fn handle(&mut self, now: Timestamp, input: ReceiverInput, effects: &mut Effects) {
        if self.phase == Phase::Closed {
            return; // Rule U5: everything is dropped until the sender binds again.
        }
        match input {
            ReceiverInput::FrameReceived(frame) => {
                self.last_received = now;
                self.frame_received(now, frame, effects);
            }
            ReceiverInput::Answered { ask, result } => {
                if self.waiting == Some(ask) {
                    self.waiting = None;
                    self.answered(now, result, effects);
                }
            }
            ReceiverInput::TimerFired(timer) => {
                if self.timers.remove(&timer) {
                    self.timer_fired(now, timer, effects);
                }
            }
            ReceiverInput::Disconnected { text } => {
                if self.phase != Phase::Draining {
                    self.report(Event::ConnectionClosed { text }, effects);
                }
                self.back_out(effects);
                self.phase = Phase::Draining;
                self.drain_ends(now, effects);
            }
            ReceiverInput::StopRequested { mode, status } => {
                self.stop_requested(now, mode, status, effects);
            }
        }
    }

    fn frame_received(&mut self, now: Timestamp, frame: SenderFrame, effects: &mut Effects) {
        match (&self.phase, frame) {
            (Phase::Closed, _) => {}
            (_, SenderFrame::Close(close)) => self.partner_closed(now, &close, effects),
            (_, SenderFrame::Heartbeat { answer: true }) => {}
            (_, SenderFrame::Heartbeat { answer: false }) => {
                effects.push(ReceiverEffect::Send(ReceiverFrame::Heartbeat {
                    answer: true,
                }))
            }
            (Phase::Unbound, SenderFrame::Bind(bind)) => self.bind_received(bind, effects),
            (Phase::Running, SenderFrame::Message(message)) => {
                self.message_received(now, message, effects);
            }
            (Phase::Running, SenderFrame::BatchEnd(end)) => {
                self.batch_end_received(now, end, effects);
            }
            (Phase::Running, SenderFrame::Withdraw(withdraw)) => {
                if self.refused == Some(withdraw.number) {
                    self.refused = None;
                    self.advance(now, effects);
                } else {
                    self.protocol_error("a message was withdrawn that was not refused", effects);
                }
            }
            (Phase::Running | Phase::Draining, SenderFrame::Fast(message)) => {
                self.fast_received(now, message, effects);
            }
            // The sender did not know yet; it will not be confirmed and sends it again.
            (
                Phase::Draining,
                SenderFrame::Message(_) | SenderFrame::BatchEnd(_) | SenderFrame::Withdraw(_),
            ) => {}
            (
                Phase::Unbound | Phase::Binding(_),
                SenderFrame::Message(_)
                | SenderFrame::BatchEnd(_)
                | SenderFrame::Withdraw(_)
                | SenderFrame::Fast(_),
            ) => self.protocol_error("a message came before the bind", effects),
            (Phase::Binding(_) | Phase::Running | Phase::Draining, SenderFrame::Bind(_)) => {
                self.protocol_error("a second bind", effects);
            }
        }
    }

    fn partner_closed(&mut self, now: Timestamp, close: &Close, effects: &mut Effects) {
        if self.phase == Phase::Draining {
            self.drain_ends(now, effects);
            return;
        }
        match close.reason {
            CloseReason::Normal => self.report(Event::Ended, effects),
            CloseReason::ChannelUnknown
            | CloseReason::ChannelWrongType
            | CloseReason::ChannelStopped
            | CloseReason::NotAuthorized
            | CloseReason::SequenceWrap
            | CloseReason::SequenceError
            | CloseReason::Superseded
            | CloseReason::QueueManagerStopping
            | CloseReason::BatchRefused
            | CloseReason::ProtocolError
            | CloseReason::WrongQueueManager => {
                let text = format!("{:?}: {}", close.reason, close.text);
                self.report(Event::PartnerClosed { text }, effects);
            }
        }
        if close.reason == CloseReason::Normal {
            // The sender finished what it had; so does this end.
            self.back_out(effects);
            self.phase = Phase::Draining;
            self.drain_ends(now, effects);
        } else {
            self.finish(effects);
        }
    }

    fn timer_fired(&mut self, now: Timestamp, timer: ReceiverTimer, effects: &mut Effects) {
        match timer {
            ReceiverTimer::MessageRetry => self.retry_message(now, effects),
            ReceiverTimer::Heartbeat => {
                if self.is_busy() {
                    let heartbeat = ReceiverFrame::Heartbeat { answer: true };
                    effects.push(ReceiverEffect::Send(heartbeat));
                }
                self.arm_heartbeat(now, effects);
            }
            ReceiverTimer::Silence => self.silence(now, effects),
            ReceiverTimer::Drain => self.finish(effects),
        }
    }

    /// Whether something is under way here, so that frames may lie unread. What waits behind a refused message waits for the
    /// partner.
    fn is_busy(&self) -> bool {
        self.current.is_some() || (self.refused.is_none() && !self.pending.work.is_empty())
    }

    fn silence(&mut self, now: Timestamp, effects: &mut Effects) {
        let Some(limit) = self
            .agreed
            .as_ref()
            .and_then(|a| silence_limit(a.heartbeat_interval))
        else {
            return;
        };
        let silent = now.since(self.last_received);
        if self.is_busy() {
            self.set_timer(ReceiverTimer::Silence, now.saturating_add(limit), effects);
        } else if silent >= limit {
            let seconds = silent.as_secs();
            self.report(Event::PartnerSilent { seconds }, effects);
            self.finish(effects);
        } else {
            let at = self.last_received.saturating_add(limit);
            self.set_timer(ReceiverTimer::Silence, at, effects);
        }
    }

    fn arm_heartbeat(&mut self, now: Timestamp, effects: &mut Effects) {
        let seconds = self.agreed.as_ref().map_or(0, |a| a.heartbeat_interval);
        if seconds > 0 {
            let at = now.saturating_add(core::time::Duration::from_secs(seconds.into()));
            self.set_timer(ReceiverTimer::Heartbeat, at, effects);
        }
    }

    fn stop_requested(
        &mut self,
        now: Timestamp,
        mode: StopMode,
        status: StopStatus,
        effects: &mut Effects,
    ) {
        self.report(Event::UserRequestedClosure, effects);
        self.stop = Some(status);
        let at_once = match mode {
            StopMode::Force | StopMode::Terminate => true,
            // Not bound yet: there is nothing to finish.
            StopMode::Quiesce => matches!(self.phase, Phase::Unbound | Phase::Binding(_)),
        };
        if at_once {
            self.send_stop_close(effects);
            self.finish(effects);
            return;
        }
        self.set_state(ChannelState::Stopping, effects);
        if self.is_waiting_for_message_retry() {
            // A stop interrupts the wait. A fast message cannot be sent again, so its way ends here, with account.
            self.cancel_timer(ReceiverTimer::MessageRetry, effects);
            if self.in_fast() {
                self.give_up_retries(now, effects);
            } else {
                self.back_out(effects);
                self.drain(now, effects);
            }
        }
        self.advance(now, effects);
    }

    /// Ends the conversation in good order: nothing of a batch is open here.
    fn drain(&mut self, now: Timestamp, effects: &mut Effects) {
        self.send_stop_close(effects);
        self.phase = Phase::Draining;
        self.set_timer(ReceiverTimer::Drain, now.saturating_add(DRAIN_MAX), effects);
    }

    fn send_stop_close(&mut self, effects: &mut Effects) {
        let close = match self.stop {
            Some(StopStatus::Stopped) => Close::new(
                CloseReason::ChannelStopped,
                "the channel is stopped at this end",
            ),
            Some(StopStatus::Inactive) | None => Close::new(
                CloseReason::QueueManagerStopping,
                "the channel was ended at this end",
            ),
        };
        effects.push(ReceiverEffect::Send(ReceiverFrame::Close(close)));
    }

    /// The partner is gone: the fast messages that came are finished, then it is over.
    fn drain_ends(&mut self, now: Timestamp, effects: &mut Effects) {
        self.partner_gone = true;
        if self.in_fast() || self.pending.fast > 0 {
            self.set_state(ChannelState::Stopping, effects);
            // What was at its turn may have been a message of the batch that is given up.
            self.advance(now, effects);
        } else {
            self.finish(effects);
        }
    }

    /// Backs out the batch and drops what is here of it. Fast messages are in none and go on.
    fn back_out(&mut self, effects: &mut Effects) {
        if self.current.is_some() && !self.in_fast() {
            self.current = None;
            self.waiting = None;
        }
        if let Some(batch) = self.batch.take()
            && batch.begun
        {
            // Nobody waits for the answer: the end of the connection backs it out as well.
            let ask = self.next_ask();
            let request = Request::BackOut { id: batch.id };
            effects.push(ReceiverEffect::Ask { ask, request });
        }
        self.refused = None;
        self.pending.drop_batch();
    }

    /// The conversation is over, whatever it was doing.
    fn finish(&mut self, effects: &mut Effects) {
        let lost = self
            .pending
            .fast
            .saturating_add(usize::from(self.in_fast()));
        self.back_out(effects);
        self.current = None;
        self.pending = Pending::default();
        if lost > 0 {
            let count = u64::try_from(lost).unwrap_or(u64::MAX);
            self.counters.fast_lost = self.counters.fast_lost.saturating_add(count);
            self.report(Event::FastLost { count }, effects);
        }
        for timer in core::mem::take(&mut self.timers) {
            effects.push(ReceiverEffect::CancelTimer { timer });
        }
        self.waiting = None;
        self.phase = Phase::Closed;
        effects.push(ReceiverEffect::Disconnect);
        let last = match self.stop {
            Some(StopStatus::Stopped) => ChannelState::Stopped,
            Some(StopStatus::Inactive) | None => ChannelState::Inactive,
        };
        self.set_state(last, effects);
    }

    /// Tells the partner why, and ends.
    fn close(&mut self, reason: CloseReason, text: impl Into<String>, effects: &mut Effects) {
        effects.push(ReceiverEffect::Send(ReceiverFrame::Close(Close::new(
            reason, text,
        ))));
        self.finish(effects);
    }

    fn protocol_error(&mut self, text: &str, effects: &mut Effects) {
        self.report(Event::InvalidData { text: text.into() }, effects);
        self.close(CloseReason::ProtocolError, text, effects);
    }

    fn next_ask(&mut self) -> AskId {
        let ask = AskId(self.next_ask);
        self.next_ask = self.next_ask.saturating_add(1);
        ask
    }

    fn ask(&mut self, request: Request, effects: &mut Effects) {
        let ask = self.next_ask();
        self.waiting = Some(ask);
        effects.push(ReceiverEffect::Ask { ask, request });
    }

    fn report(&mut self, event: Event, effects: &mut Effects) {
        if event.severity() != crate::Severity::Information {
            self.last_error = format!("{}: {event}", event.id());
        }
        effects.push(ReceiverEffect::Report(event));
    }

    fn set_state(&mut self, state: ChannelState, effects: &mut Effects) {
        if self.state != state {
            self.state = state;
            effects.push(ReceiverEffect::StateChanged(state));
        }
    }

    fn set_timer(&mut self, timer: ReceiverTimer, at: Timestamp, effects: &mut Effects) {
        self.timers.insert(timer);
        effects.push(ReceiverEffect::SetTimer { timer, at });
    }

    fn cancel_timer(&mut self, timer: ReceiverTimer, effects: &mut Effects) {
        if self.timers.remove(&timer) {
            effects.push(ReceiverEffect::CancelTimer { timer });
        }
    }

    /// What displays show.
    #[must_use]
    pub fn status(&self) -> ChannelStatus {
        let agreed = self.agreed.as_ref();
        ChannelStatus {
            channel: self.config.channel.base.name.clone(),
            state: self.state,
            substate: self.substate(),
            stop_requested: self.stop.is_some() && self.phase != Phase::Closed,
            connection_name: self.config.connection_name.clone(),
            partner: agreed.map(|a| a.partner.clone()),
            transmission_queue: None,
            peer: self.config.peer.clone(),
            in_doubt: false,
            current_batch: self.batch.map_or(UnitOfWorkId::NONE, |b| b.id),
            current_messages: self.batch.map_or(0, |b| b.messages.into()),
            current_number: self.received,
            last_batch: self.last_batch,
            last_number: self.last_committed,
            generation: agreed.map_or(0, |a| a.generation),
            started: self.started,
            last_message: self.last_message,
            short_retries_left: 0,
            long_retries_left: 0,
            batch_size: agreed.map_or(self.config.channel.batch_size, |a| a.batch_size),
            message_length_max: agreed
                .map_or(self.config.message_length_max(), |a| a.message_length_max),
            heartbeat_interval: agreed.map_or(self.config.channel.base.heartbeat_interval, |a| {
                a.heartbeat_interval
            }),
            fast: agreed.is_some_and(|a| a.fast),
            sequence_wrap: self.config.channel.sequence_wrap,
            last_error: self.last_error.clone(),
            counters: self.counters.clone(),
        }
    }

    /// `SUBSTATE`, in the words of IBM MQ.
    fn substate(&self) -> &'static str {
        match (&self.phase, &self.current) {
            (Phase::Unbound | Phase::Binding(_), _) => "NEGOTIATING",
            (Phase::Closed, _) => "",
            (Phase::Running | Phase::Draining, None) => "RECEIVE",
            (Phase::Running | Phase::Draining, Some(Current::Commit(_))) => "END_OF_BATCH",
            (Phase::Running | Phase::Draining, Some(Current::Deliver(d))) => match d.step {
                Step::RetryWait => "MESSAGE_RETRY",
                Step::Begin
                | Step::Put
                | Step::DeadLetter { .. }
                | Step::Report
                | Step::ReportDeadLetter
                | Step::Discard => "MQPUT",
            },
        }
    }
}
