//! The end that sends: one machine for one channel definition, for as long as its queue manager runs.
//!
//! Every try to run is a conversation: open the transmission queue, connect, bind, settle what was in doubt by what the
//! partner has, then batch after batch: get, send, make the batch and its numbers durable, ask for the confirmation, settle
//! (rules U4 to U6, invariants H2, H4). Fast messages go as they come, in no batch and without a number.
//!
//! One batch is in flight at a time.

mod batch;
mod bind;
mod ending;
mod io;
mod undeliverable;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ferrymq_engine::{Failure, Reply, Request, SenderState, Transmission};
use ferrymq_types::{QueueManagerId, QueueManagerName, ReasonCode, Timestamp, UnitOfWorkId};

use crate::generator::Generator;
use crate::{
    Answer, AskId, ChannelState, ChannelStatus, Close, Counters, Event, ReceiverFrame,
    SenderConfig, SenderFrame, Severity, StopStatus, silence_limit,
};

use batch::{Batch, Stage};
pub use io::{SenderEffect, SenderInput, SenderTimer};
use undeliverable::{Disposal, Slot};

/// How long an address has to connect and accept.
const ESTABLISH_MAX: Duration = Duration::from_secs(60);

/// Where the conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is none: `INACTIVE`, `RETRYING` or `STOPPED`.
    Resting,
    /// The queue manager was asked for the transmission queue.
    Opening,
    /// To the address with this index.
    Connecting(usize),
    /// The bind was sent to the address with this index.
    Binding(usize),
    /// What was in doubt is being settled.
    Settling,
    /// Messages go.
    Running,
    /// In good order: the queue manager was asked to close the transmission queue; `closed` once it did.
    Ending {
        /// Whether it did.
        closed: bool,
    },
}

/// What a request to the queue manager is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Open,
    SettleBind,
    Get,
    Prepare,
    SettleBatch,
    Dispose(Slot),
    CloseInOrder,
    /// After a conversation that failed; nothing waits for the answer.
    Close,
    /// Nothing waits for the answer; a failure is reported under this name.
    Unwaited(&'static str),
}

/// What both ends use.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Agreed {
    partner: QueueManagerName,
    partner_id: QueueManagerId,
    batch_size: u32,
    message_length_max: u32,
    heartbeat_interval: u32,
    fast: bool,
}

/// Whether the partner is known to have read a fast message: then the way works, and retries count anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FastProof {
    Nothing,
    Sent,
    HeartbeatSent,
}

/// A sending MCA.
#[derive(Debug)]
pub struct SenderMca {
    config: SenderConfig,
    next_config: Option<Box<SenderConfig>>,
    generator: Generator,
    phase: Phase,
    state: ChannelState,
    stop: Option<StopStatus>,
    /// A message came while the transmission queue was being closed: the end is a new beginning.
    triggered_while_ending: bool,
    /// Counts tries to run, so that late answers are known for what they are.
    conversation: u64,
    next_ask: u64,
    asks: BTreeMap<AskId, (u64, Purpose)>,
    /// The request that the main line of the conversation waits for.
    main: Option<AskId>,
    /// What the queue manager remembers of the channel.
    record: Option<SenderState>,
    agreed: Option<Agreed>,
    peer: String,
    address_errors: Vec<String>,
    /// The id that the next messages are locked under; the batch's, once it has a message.
    batch_id: UnitOfWorkId,
    batch: Option<Batch>,
    to_send: VecDeque<Transmission>,
    unsendable: Option<Disposal>,
    refused: Option<Disposal>,
    idle_since: Timestamp,
    last_sent: Timestamp,
    last_received: Timestamp,
    fast_proof: FastProof,
    timers: BTreeSet<SenderTimer>,
    short_retries_left: u32,
    long_retries_left: u32,
    started: Option<Timestamp>,
    last_message: Option<Timestamp>,
    last_error: String,
    counters: Counters,
}

type Effects = Vec<SenderEffect>;

impl SenderMca {
    /// A machine at rest, `INACTIVE`. `seed` is random and another one in each run of the queue manager.
    #[must_use]
    pub fn new(config: SenderConfig, seed: u128) -> Self {
        Self {
            generator: Generator::new(seed, &config.channel.base.name),
            next_config: None,
            phase: Phase::Resting,
            state: ChannelState::Inactive,
            stop: None,
            triggered_while_ending: false,
            conversation: 0,
            next_ask: 1,
            asks: BTreeMap::new(),
            main: None,
            record: None,
            agreed: None,
            peer: String::new(),
            address_errors: Vec::new(),
            batch_id: UnitOfWorkId::NONE,
            batch: None,
            to_send: VecDeque::new(),
            unsendable: None,
            refused: None,
            idle_since: Timestamp::ZERO,
            last_sent: Timestamp::ZERO,
            last_received: Timestamp::ZERO,
            fast_proof: FastProof::Nothing,
            timers: BTreeSet::new(),
            short_retries_left: config.channel.short_retry_count,
            long_retries_left: config.channel.long_retry_count,
            started: None,
            last_message: None,
            last_error: String::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// As [`SenderMca::new`], but `STOPPED`: an operator stopped it before the queue manager was started.
    #[must_use]
    pub fn new_stopped(config: SenderConfig, seed: u128) -> Self {
        Self {
            state: ChannelState::Stopped,
            ..Self::new(config, seed)
        }
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> ChannelState {
        self.state
    }

    /// The definition and the queue manager that it runs with.
    #[must_use]
    pub const fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Takes `input` in; appends what is to be done, in order.
    pub fn handle(&mut self, now: Timestamp, input: SenderInput, effects: &mut Effects) {
        match input {
            SenderInput::StartRequested => self.start_requested(effects),
            SenderInput::StopRequested { mode, status } => {
                self.stop_requested(now, mode, status, effects);
            }
            SenderInput::Triggered => {
                if self.state == ChannelState::Inactive {
                    self.begin(effects);
                } else if matches!(self.phase, Phase::Ending { .. }) {
                    self.triggered_while_ending = true;
                }
            }
            SenderInput::DefinitionChanged(config) => {
                // The dead-letter queue is the queue manager's, not the channel's: it counts at once.
                self.config.dead_letter.clone_from(&config.dead_letter);
                self.next_config = Some(config);
            }
            SenderInput::Connected { peer } => self.connected(now, peer, effects),
            SenderInput::ConnectFailed { text, refused } => {
                if let Phase::Connecting(index) = self.phase {
                    if refused {
                        let event = Event::NegotiationFailed { text: text.clone() };
                        self.report(event, effects);
                    }
                    self.address_failed(now, index, &text, effects);
                }
            }
            SenderInput::FrameReceived(frame) => {
                self.last_received = now;
                self.frame_received(now, frame, effects);
            }
            SenderInput::Disconnected { text } => self.disconnected(now, text, effects),
            SenderInput::Answered { ask, result } => self.answered(now, ask, result, effects),
            SenderInput::TimerFired(timer) => {
                if self.timers.remove(&timer) {
                    self.timer_fired(now, timer, effects);
                }
            }
        }
    }

    fn frame_received(&mut self, now: Timestamp, frame: ReceiverFrame, effects: &mut Effects) {
        match (self.phase, frame) {
            // Of a conversation that is over.
            (Phase::Resting | Phase::Opening | Phase::Connecting(_), _) => {}
            (_, ReceiverFrame::Heartbeat { answer: false }) => {
                self.send(now, SenderFrame::Heartbeat { answer: true }, effects);
            }
            (_, ReceiverFrame::Heartbeat { answer: true }) => {
                if self.fast_proof == FastProof::HeartbeatSent {
                    self.fast_proof = FastProof::Nothing;
                    self.reset_retries();
                }
            }
            (_, ReceiverFrame::Close(close)) => self.partner_closed(now, &close, effects),
            (Phase::Binding(index), ReceiverFrame::BindAccepted(accepted)) => {
                self.accepted(now, index, accepted, effects);
            }
            (Phase::Running, ReceiverFrame::BatchConfirmed(confirmed)) => {
                self.confirmed(now, confirmed, effects);
            }
            (Phase::Running, ReceiverFrame::MessageRefused(refused)) => {
                self.message_refused(now, refused, effects);
            }
            (
                Phase::Binding(_) | Phase::Settling | Phase::Ending { .. },
                ReceiverFrame::BatchConfirmed(_) | ReceiverFrame::MessageRefused(_),
            ) => self.protocol_error(now, "an answer came to nothing that was sent", effects),
            (
                Phase::Settling | Phase::Running | Phase::Ending { .. },
                ReceiverFrame::BindAccepted(_),
            ) => self.protocol_error(now, "a second answer to the bind", effects),
        }
    }

    fn answered(&mut self, now: Timestamp, ask: AskId, result: Answer, effects: &mut Effects) {
        let Some((conversation, purpose)) = self.asks.remove(&ask) else {
            return;
        };
        if self.main == Some(ask) {
            self.main = None;
        }
        match (purpose, &result) {
            (Purpose::Unwaited(what), Err(failure)) => {
                self.queue_manager_refused(what, failure.clone(), effects);
                return;
            }
            (Purpose::Close, Err(failure)) => {
                self.close_refused(failure, effects);
                return;
            }
            (Purpose::Unwaited(_) | Purpose::Close, Ok(_)) => return,
            (
                Purpose::Open
                | Purpose::SettleBind
                | Purpose::Get
                | Purpose::Prepare
                | Purpose::SettleBatch
                | Purpose::Dispose(_)
                | Purpose::CloseInOrder,
                _,
            ) => {}
        }
        if conversation != self.conversation || self.phase == Phase::Resting {
            if let (Purpose::Get, Ok(Reply::Transmissions(late))) = (purpose, result) {
                let lost = late.iter().filter(|t| t.fast).count();
                self.count_lost(lost, effects);
            }
            return;
        }
        match purpose {
            Purpose::Open => self.opened(now, result, effects),
            Purpose::SettleBind => self.bind_settled(now, result, effects),
            Purpose::Get => self.got(now, result, effects),
            Purpose::Prepare => self.prepared(now, result, effects),
            Purpose::SettleBatch => self.batch_settled(now, result, effects),
            Purpose::Dispose(slot) => self.disposal_answered(now, slot, result, effects),
            Purpose::CloseInOrder => {
                if let Err(failure) = result {
                    self.close_refused(&failure, effects);
                }
                self.phase = Phase::Ending { closed: true };
                self.proceed(now, effects);
            }
            Purpose::Close | Purpose::Unwaited(_) => {}
        }
    }

    fn timer_fired(&mut self, now: Timestamp, timer: SenderTimer, effects: &mut Effects) {
        match timer {
            SenderTimer::Retry => {
                if self.state == ChannelState::Retrying {
                    self.begin_try(effects);
                }
            }
            SenderTimer::Establish => {
                if let Phase::Connecting(index) | Phase::Binding(index) = self.phase {
                    let text = format!("no answer within {} seconds", ESTABLISH_MAX.as_secs());
                    effects.push(SenderEffect::Disconnect);
                    self.address_failed(now, index, &text, effects);
                }
            }
            SenderTimer::Heartbeat => self.heartbeat(now, effects),
            SenderTimer::Silence => self.silence(now, effects),
        }
    }

    /// Asks whether the partner is there when nothing went, or nothing came, for `HBINT`.
    fn heartbeat(&mut self, now: Timestamp, effects: &mut Effects) {
        let Some(agreed) = &self.agreed else { return };
        let interval = Duration::from_secs(agreed.heartbeat_interval.into());
        let mut quiet_since = self.last_sent.min(self.last_received);
        if now.since(quiet_since) >= interval {
            self.send(now, SenderFrame::Heartbeat { answer: false }, effects);
            if self.fast_proof == FastProof::Sent {
                self.fast_proof = FastProof::HeartbeatSent;
            }
            quiet_since = now;
        }
        let at = quiet_since.saturating_add(interval);
        self.set_timer(SenderTimer::Heartbeat, at, effects);
    }

    fn silence(&mut self, now: Timestamp, effects: &mut Effects) {
        let limit = self
            .agreed
            .as_ref()
            .and_then(|a| silence_limit(a.heartbeat_interval));
        let Some(limit) = limit else { return };
        let silent = now.since(self.last_received);
        if silent >= limit {
            let seconds = silent.as_secs();
            self.report(Event::PartnerSilent { seconds }, effects);
            self.fail(now, None, effects);
        } else {
            let at = self.last_received.saturating_add(limit);
            self.set_timer(SenderTimer::Silence, at, effects);
        }
    }

    fn send(&mut self, now: Timestamp, frame: SenderFrame, effects: &mut Effects) {
        self.last_sent = now;
        effects.push(SenderEffect::Send(frame));
    }

    fn ask(&mut self, purpose: Purpose, request: Request, effects: &mut Effects) -> AskId {
        let ask = AskId(self.next_ask);
        self.next_ask = self.next_ask.saturating_add(1);
        self.asks.insert(ask, (self.conversation, purpose));
        effects.push(SenderEffect::Ask { ask, request });
        ask
    }

    fn ask_main(&mut self, purpose: Purpose, request: Request, effects: &mut Effects) {
        self.main = Some(self.ask(purpose, request, effects));
    }

    /// A channel that has nothing open, or whose hold went to a newer instance, has nothing to close.
    fn close_refused(&mut self, failure: &Failure, effects: &mut Effects) {
        let nothing_held = [ReasonCode::HOBJ_ERROR, ReasonCode::CHANNEL_SUPERSEDED];
        if !nothing_held.contains(&failure.reason) {
            self.queue_manager_refused("close the transmission queue", failure.clone(), effects);
        }
    }

    fn queue_manager_refused(
        &mut self,
        what: &'static str,
        failure: Failure,
        effects: &mut Effects,
    ) {
        let event = Event::QueueManagerRefused {
            what,
            reason: failure.reason,
            object: failure.object,
        };
        self.report(event, effects);
    }

    fn protocol_error(&mut self, now: Timestamp, text: &str, effects: &mut Effects) {
        self.report(Event::InvalidData { text: text.into() }, effects);
        let close = Close::new(crate::CloseReason::ProtocolError, text);
        self.fail(now, Some(close), effects);
    }

    fn report(&mut self, event: Event, effects: &mut Effects) {
        if event.severity() != Severity::Information {
            self.last_error = format!("{}: {event}", event.id());
        }
        effects.push(SenderEffect::Report(event));
    }

    fn count_lost(&mut self, lost: usize, effects: &mut Effects) {
        if lost > 0 {
            let count = u64::try_from(lost).unwrap_or(u64::MAX);
            self.counters.fast_lost = self.counters.fast_lost.saturating_add(count);
            self.report(Event::FastLost { count }, effects);
        }
    }

    fn set_state(&mut self, state: ChannelState, effects: &mut Effects) {
        if self.state != state {
            self.state = state;
            effects.push(SenderEffect::StateChanged(state));
        }
    }

    fn set_timer(&mut self, timer: SenderTimer, at: Timestamp, effects: &mut Effects) {
        self.timers.insert(timer);
        effects.push(SenderEffect::SetTimer { timer, at });
    }

    fn cancel_timer(&mut self, timer: SenderTimer, effects: &mut Effects) {
        if self.timers.remove(&timer) {
            effects.push(SenderEffect::CancelTimer { timer });
        }
    }

    /// What displays show.
    #[must_use]
    pub fn status(&self) -> ChannelStatus {
        let channel = &self.config.channel;
        let agreed = self.agreed.as_ref();
        let record = self.record.as_ref().map(|r| &r.row);
        let doubt = record.and_then(|r| r.in_doubt.first());
        let batch = self.batch.as_ref();
        let address = match self.phase {
            Phase::Connecting(index) | Phase::Binding(index) => self.config.addresses.get(index),
            Phase::Resting
            | Phase::Opening
            | Phase::Settling
            | Phase::Running
            | Phase::Ending { .. } => None,
        };
        ChannelStatus {
            channel: channel.base.name.clone(),
            state: self.state,
            substate: self.substate(),
            stop_requested: self.stop.is_some(),
            connection_name: address
                .map_or_else(|| channel.connection_name.clone(), ToString::to_string),
            partner: agreed
                .map(|a| a.partner.clone())
                .or_else(|| record.and_then(|r| r.partner.as_ref().map(|(name, _)| name.clone()))),
            transmission_queue: Some(channel.transmission_queue.clone()),
            peer: self.peer.clone(),
            in_doubt: doubt.is_some() || batch.is_some_and(|b| b.stage != Stage::Open),
            current_batch: batch
                .map(|b| b.id)
                .or_else(|| doubt.map(|d| d.id))
                .unwrap_or_default(),
            current_messages: batch
                .map(Batch::numbers)
                .or_else(|| {
                    doubt.map(|d| {
                        d.last_number
                            .saturating_sub(d.first_number)
                            .saturating_add(1)
                    })
                })
                .unwrap_or_default(),
            current_number: batch
                .map(|b| b.last_number)
                .or_else(|| doubt.map(|d| d.last_number))
                .or_else(|| record.map(|r| r.last_confirmed))
                .unwrap_or_default(),
            last_batch: record.map(|r| r.last_batch).unwrap_or_default(),
            last_number: record.map(|r| r.last_confirmed).unwrap_or_default(),
            generation: record.map(|r| r.generation).unwrap_or_default(),
            started: self.started,
            last_message: self.last_message,
            short_retries_left: self.short_retries_left,
            long_retries_left: self.long_retries_left,
            batch_size: agreed.map_or(channel.batch_size, |a| a.batch_size),
            message_length_max: agreed
                .map_or(self.config.message_length_max(), |a| a.message_length_max),
            heartbeat_interval: agreed
                .map_or(channel.base.heartbeat_interval, |a| a.heartbeat_interval),
            fast: agreed.is_some_and(|a| a.fast),
            sequence_wrap: channel.sequence_wrap,
            last_error: self.last_error.clone(),
            counters: self.counters.clone(),
        }
    }

    /// `SUBSTATE`, in the words of IBM MQ.
    fn substate(&self) -> &'static str {
        match self.phase {
            Phase::Resting => "",
            Phase::Opening | Phase::Ending { .. } => "MQOPEN_CLOSE",
            Phase::Connecting(_) => "NETCONNECT",
            Phase::Binding(_) => "NEGOTIATING",
            Phase::Settling => "RESYNCING",
            Phase::Running => match self.batch.as_ref().map(|b| b.stage) {
                None | Some(Stage::Open) => "MQGET",
                Some(Stage::Preparing | Stage::Asked | Stage::Settling) => "END_OF_BATCH",
            },
        }
    }
}
