//! The main line of a running sender: get, send, prepare, ask for the confirmation, settle.

use core::time::Duration;
use std::collections::BTreeMap;

use ferrymq_engine::{Reply, Request, Transmission};
use ferrymq_types::{
    BatchInDoubt, Message, MessageDescriptor, Persistence, ReasonCode, Timestamp,
    TransmissionHeader, UnitOfWorkId,
};

use super::{Effects, FastProof, Phase, Purpose, SenderMca};
use crate::undelivered::SenderPlace;
use crate::{
    Answer, BatchConfirmed, BatchEnd, BatchMessage, Close, CloseReason, DeadLetterLocation, Event,
    FastMessage, SenderFrame,
};

/// Bytes that one get asks for at most: what it brings is in memory at once.
const GET_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How long a get inside a batch waits at most, so that a stop is not held up by a long `BATCHINT`. Such a get is never
/// cancelled: what it locks belongs to the batch, and must have been seen before the batch is prepared.
const GET_WAIT_MAX: Duration = Duration::from_secs(1);

/// How far a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Messages join it.
    Open,
    /// Its messages and numbers are being made durable (rule U4).
    Preparing,
    /// Its confirmation was asked for.
    Asked,
    /// It was confirmed and is being settled.
    Settling,
}

/// The batch in flight.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) id: UnitOfWorkId,
    pub(super) first_number: u64,
    pub(super) last_number: u64,
    pub(super) stage: Stage,
    bytes: u64,
    started: Timestamp,
    /// Nothing more came within `BATCHINT`.
    over: bool,
    /// Its messages by number; a refused one leaves when it is settled here.
    pub(super) sent: BTreeMap<u64, Transmission>,
    /// Messages of it that the partner put on its dead-letter queue.
    dead_lettered: u32,
}

impl Batch {
    /// `CURMSGS`: numbers in it, those of withdrawn messages too.
    pub(super) fn numbers(&self) -> u64 {
        self.last_number
            .saturating_sub(self.first_number)
            .saturating_add(1)
    }
}

/// A message without its transmission header, and where it goes.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) remote_queue: String,
    pub(super) remote_queue_manager: String,
    pub(super) message: Message,
}

/// Takes the transmission header off. Persistence and expiry are those of the message on the transmission queue: they are what
/// the queue manager went by.
///
/// # Errors
/// 271 if there is no valid header.
pub(super) fn take_header_off(message: &Message, now: Timestamp) -> Result<Outgoing, ReasonCode> {
    let bad = ReasonCode::FEEDBACK_XMIT_Q_MSG_ERROR;
    if message.descriptor.format != MessageDescriptor::FORMAT_TRANSMISSION_HEADER {
        return Err(bad);
    }
    let in_body = message.header.is_empty();
    let bytes = if in_body {
        &message.body
    } else {
        &message.header
    };
    let (header, length) = TransmissionHeader::read(bytes, now).map_err(|_| bad)?;
    if length > bytes.len() {
        return Err(bad);
    }
    let rest = bytes.slice(length..);
    let mut descriptor = header.descriptor;
    descriptor.persistence = message.descriptor.persistence;
    // The header in front has no place for them.
    descriptor.properties = message.descriptor.properties.clone();
    descriptor.expires_at = message.descriptor.expires_at.or(descriptor.expires_at);
    let (header_left, body) = if in_body {
        (bytes::Bytes::new(), rest)
    } else {
        (rest, message.body.clone())
    };
    Ok(Outgoing {
        remote_queue: header.remote_queue,
        remote_queue_manager: header.remote_queue_manager,
        message: Message {
            descriptor,
            header: header_left,
            body,
        },
    })
}

impl SenderMca {
    /// Goes on with the main line as far as it can without an answer.
    pub(super) fn proceed(&mut self, now: Timestamp, effects: &mut Effects) {
        while matches!(self.phase, Phase::Running | Phase::Ending { .. })
            && self.unsendable.is_none()
            && let Some(transmission) = self.to_send.pop_front()
        {
            self.send_message(now, transmission, effects);
        }
        if self.unsendable.is_some() {
            return;
        }
        match self.phase {
            Phase::Running if self.main.is_none() => self.next_step(now, effects),
            Phase::Ending { closed: true } => self.end_now(now, effects),
            Phase::Running
            | Phase::Ending { closed: false }
            | Phase::Resting
            | Phase::Opening
            | Phase::Connecting(_)
            | Phase::Binding(_)
            | Phase::Settling => {}
        }
    }

    fn next_step(&mut self, now: Timestamp, effects: &mut Effects) {
        let stopping = self.stop.is_some();
        let size = u64::from(self.agreed.as_ref().map_or(1, |a| a.batch_size));
        let limit = self.batch_bytes_max();
        match &self.batch {
            Some(batch) if batch.stage == Stage::Open => {
                let full = batch.numbers() >= size || batch.bytes >= limit;
                if full || batch.over || stopping {
                    self.prepare(effects);
                    return;
                }
                let left = size.saturating_sub(batch.numbers());
                let bytes = limit.saturating_sub(batch.bytes);
                let until = self.batch_deadline(now);
                self.get(left, bytes, until, effects);
            }
            Some(_) => {}
            None if stopping => self.end(effects),
            None => {
                let until = Some(self.disconnect_deadline());
                self.get(size, limit, until, effects);
            }
        }
    }

    /// `BATCHLIM` in bytes.
    fn batch_bytes_max(&self) -> u64 {
        match self.config.channel.batch_data_limit {
            0 => u64::MAX,
            kilobytes => u64::from(kilobytes).saturating_mul(1024),
        }
    }

    /// Until when a get inside the batch waits; `None` is not at all.
    fn batch_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let started = self.batch.as_ref()?.started;
        let deadline = started.saturating_add(self.config.channel.batch_interval);
        (deadline > now).then(|| deadline.min(now.saturating_add(GET_WAIT_MAX)))
    }

    /// When `DISCINT` is over; 0 is never.
    fn disconnect_deadline(&self) -> Timestamp {
        let interval = self.config.channel.disconnect_interval;
        if interval.is_zero() {
            Timestamp::from_millis(u64::MAX)
        } else {
            self.idle_since.saturating_add(interval)
        }
    }

    fn get(
        &mut self,
        messages: u64,
        bytes: u64,
        wait_until: Option<Timestamp>,
        effects: &mut Effects,
    ) {
        let request = Request::SenderGet {
            channel: self.config.channel.base.name.clone(),
            batch: self.batch_id,
            messages_max: u32::try_from(messages).unwrap_or(u32::MAX).max(1),
            bytes_max: bytes.clamp(1, GET_BYTES_MAX),
            fast: self.agreed.as_ref().is_some_and(|a| a.fast),
            wait_until,
        };
        self.ask_main(Purpose::Get, request, effects);
    }

    pub(super) fn got(&mut self, now: Timestamp, result: Answer, effects: &mut Effects) {
        match result {
            Ok(Reply::Transmissions(list)) => {
                let ending = matches!(self.phase, Phase::Ending { .. });
                // While it ends, what was locked is released again by the close; fast ones are gone from the queue already.
                self.to_send
                    .extend(list.into_iter().filter(|t| t.fast || !ending));
                self.proceed(now, effects);
            }
            Ok(_) => self.unexpected_answer(now, "get messages", effects),
            Err(_) if matches!(self.phase, Phase::Ending { .. }) => {}
            Err(failure) if failure.reason == ReasonCode::NO_MSG_AVAILABLE => {
                self.nothing_came(now, effects);
            }
            Err(failure) => {
                if failure.reason == ReasonCode::GET_INHIBITED {
                    self.report(Event::TransmissionQueueInhibited, effects);
                } else {
                    self.queue_manager_refused("get messages", failure, effects);
                }
                let close = Close::new(
                    CloseReason::Normal,
                    "the transmission queue is not readable",
                );
                self.fail(now, Some(close), effects);
            }
        }
    }

    fn nothing_came(&mut self, now: Timestamp, effects: &mut Effects) {
        let batch_over = self.batch_deadline(now).is_none();
        let disconnect = now >= self.disconnect_deadline();
        match &mut self.batch {
            Some(batch) => batch.over = batch_over,
            None if disconnect && self.stop.is_none() => {
                self.report(Event::DisconnectIntervalExpired, effects);
                self.end(effects);
                return;
            }
            None => {}
        }
        self.proceed(now, effects);
    }

    fn send_message(&mut self, now: Timestamp, transmission: Transmission, effects: &mut Effects) {
        let length_max = self.agreed.as_ref().map_or(0, |a| a.message_length_max);
        let outgoing = match take_header_off(&transmission.message, now) {
            Ok(outgoing) => outgoing,
            Err(reason) => {
                let place = SenderPlace::BeforeSending;
                self.dispose(now, place, transmission, None, reason, effects);
                return;
            }
        };
        let length = u64::try_from(outgoing.message.data_length()).unwrap_or(u64::MAX);
        if length > u64::from(length_max) {
            let reason = ReasonCode::MSG_TOO_BIG_FOR_CHANNEL;
            let place = SenderPlace::BeforeSending;
            self.dispose(now, place, transmission, None, reason, effects);
            return;
        }
        self.counters.bytes_sent = self.counters.bytes_sent.saturating_add(length);
        self.last_message = Some(now);
        let frame = if transmission.fast {
            self.count_fast(now);
            SenderFrame::Fast(Box::new(FastMessage {
                remote_queue: outgoing.remote_queue,
                remote_queue_manager: outgoing.remote_queue_manager,
                message: Message {
                    descriptor: MessageDescriptor {
                        persistence: Persistence::NonPersistent,
                        ..outgoing.message.descriptor
                    },
                    ..outgoing.message
                },
            }))
        } else {
            let number = self.join_batch(now, length, transmission);
            SenderFrame::Message(Box::new(BatchMessage {
                batch: self.batch_id,
                number,
                remote_queue: outgoing.remote_queue,
                remote_queue_manager: outgoing.remote_queue_manager,
                message: outgoing.message,
            }))
        };
        self.send(now, frame, effects);
    }

    fn count_fast(&mut self, now: Timestamp) {
        self.counters.messages = self.counters.messages.saturating_add(1);
        self.counters.fast_messages = self.counters.fast_messages.saturating_add(1);
        self.fast_proof = FastProof::Sent;
        if self.batch.is_none() {
            self.idle_since = now;
        }
    }

    /// Gives the message its number and a place in the batch, which begins with it if there is none.
    fn join_batch(&mut self, now: Timestamp, length: u64, transmission: Transmission) -> u64 {
        let next = self
            .record
            .as_ref()
            .map_or(0, |r| r.row.last_confirmed)
            .saturating_add(1);
        let batch = self.batch.get_or_insert_with(|| Batch {
            id: self.batch_id,
            first_number: next,
            last_number: next.saturating_sub(1),
            stage: Stage::Open,
            bytes: 0,
            started: now,
            over: false,
            sent: BTreeMap::new(),
            dead_lettered: 0,
        });
        batch.last_number = batch.last_number.saturating_add(1);
        batch.bytes = batch.bytes.saturating_add(length);
        batch.sent.insert(batch.last_number, transmission);
        batch.last_number
    }

    /// The batch is complete: which messages it holds under which numbers becomes durable before its confirmation is asked for.
    fn prepare(&mut self, effects: &mut Effects) {
        let Some(batch) = &mut self.batch else { return };
        batch.stage = Stage::Preparing;
        let request = Request::PrepareBatch {
            channel: self.config.channel.base.name.clone(),
            batch: batch.id,
            first_number: batch.first_number,
            last_number: batch.last_number,
        };
        self.ask_main(Purpose::Prepare, request, effects);
    }

    pub(super) fn prepared(&mut self, now: Timestamp, result: Answer, effects: &mut Effects) {
        match (result, &mut self.batch) {
            (Ok(Reply::Done), Some(batch)) => {
                batch.stage = Stage::Asked;
                let end = BatchEnd {
                    batch: batch.id,
                    first_number: batch.first_number,
                    last_number: batch.last_number,
                };
                self.send(now, SenderFrame::BatchEnd(end), effects);
            }
            (Err(failure), _) => {
                self.queue_manager_refused("make the batch durable", failure, effects);
                let close = Close::new(CloseReason::BatchRefused, "the sender backs the batch out");
                self.fail(now, Some(close), effects);
            }
            (Ok(_), _) => self.unexpected_answer(now, "make the batch durable", effects),
        }
    }

    pub(super) fn confirmed(
        &mut self,
        now: Timestamp,
        confirmed: BatchConfirmed,
        effects: &mut Effects,
    ) {
        let (Some(batch), Some(record), Some(agreed)) =
            (&mut self.batch, &self.record, &self.agreed)
        else {
            self.protocol_error(now, "a batch was confirmed that was not sent", effects);
            return;
        };
        let fits = batch.stage == Stage::Asked
            && self.refused.is_none()
            && batch.id == confirmed.batch
            && batch.last_number == confirmed.last_number;
        if !fits {
            self.protocol_error(now, "a batch was confirmed that was not sent", effects);
            return;
        }
        batch.stage = Stage::Settling;
        batch.dead_lettered = confirmed.dead_lettered;
        let request = Request::SettleSender {
            channel: self.config.channel.base.name.clone(),
            generation: record.row.generation,
            last_committed: confirmed.last_number,
            last_batch: confirmed.batch,
            partner: (agreed.partner.clone(), agreed.partner_id),
            release: false,
        };
        self.ask_main(Purpose::SettleBatch, request, effects);
    }

    pub(super) fn batch_settled(&mut self, now: Timestamp, result: Answer, effects: &mut Effects) {
        match result {
            Ok(Reply::Sender(state)) => {
                self.record = Some(state);
                if let Some(batch) = self.batch.take() {
                    self.batch_done(&batch, effects);
                }
                self.reset_retries();
                self.batch_id = self.generator.next_id();
                self.idle_since = now;
                self.proceed(now, effects);
            }
            Ok(_) => self.unexpected_answer(now, "settle a batch", effects),
            Err(failure) => {
                if failure.reason == ReasonCode::CHANNEL_SEQUENCE_ERROR {
                    self.sequence_error("the confirmed number is none that settles", effects);
                }
                self.queue_manager_refused("settle a batch", failure, effects);
                let text = "the numbers do not fit together";
                let close = Close::new(CloseReason::SequenceError, text);
                self.fail(now, Some(close), effects);
            }
        }
    }

    fn batch_done(&mut self, batch: &Batch, effects: &mut Effects) {
        let messages = u64::try_from(batch.sent.len()).unwrap_or(u64::MAX);
        self.counters.messages = self.counters.messages.saturating_add(messages);
        self.counters.batches = self.counters.batches.saturating_add(1);
        if batch.dead_lettered > 0 {
            let event = Event::DeadLettered {
                location: DeadLetterLocation::Remote,
                message_id: None,
                reason: None,
                count: batch.dead_lettered,
            };
            self.report(event, effects);
        }
    }

    /// Remembers, for displays, that a batch stays in doubt until the next bind.
    pub(super) fn keep_doubt(&mut self) {
        let (Some(batch), Some(record)) = (&self.batch, &mut self.record) else {
            return;
        };
        if batch.stage != Stage::Open {
            record.last_sent = batch.last_number;
            record.row.in_doubt = vec![BatchInDoubt {
                id: batch.id,
                first_number: batch.first_number,
                last_number: batch.last_number,
                messages: batch.sent.values().map(|t| t.sequence).collect(),
            }];
        }
    }
}
