//! A message that this end cannot send, or that the partner refused: dead-letter it here, discard it, or back the batch out.

use ferrymq_engine::{Failure, Put, Reply, Request, Transmission};
use ferrymq_types::{Message, MessageId, QueueName, ReasonCode, Timestamp};

use super::batch::take_header_off;
use super::{Effects, Purpose, SenderMca};
use crate::generator::repeatable_id;
use crate::undelivered::{
    DeadLetterQueue, MessageKind, SenderDecision, SenderFailure, SenderPlace, is_queue_managers,
    sending,
};
use crate::{
    Answer, Close, CloseReason, DeadLetterLocation, Event, MessageRefused, SenderFrame,
    UndeliveredAction, Withdraw, report,
};

/// Two may be under way: one that cannot be sent, which holds up the main line, and one that was refused, which does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Unsendable,
    Refused,
}

/// The request that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    DeadLetter { report: bool },
    Report,
    ReportDeadLetter,
    Discard,
}

/// A message that is being disposed of.
#[derive(Debug)]
pub(super) struct Disposal {
    place: SenderPlace,
    step: Step,
    transmission: Transmission,
    /// Of a refused message.
    number: Option<u64>,
    kind: MessageKind,
    /// The message as it would have arrived; as it is on the transmission queue if its header is not valid.
    message: Message,
    reason: ReasonCode,
    report_reason: ReasonCode,
    discard_after_report: bool,
}

impl Disposal {
    pub(super) const fn is_fast(&self) -> bool {
        self.transmission.fast
    }

    fn message_id(&self) -> MessageId {
        self.message.descriptor.message_id
    }
}

impl SenderMca {
    /// The receiver consumed nothing and waits.
    pub(super) fn message_refused(
        &mut self,
        now: Timestamp,
        refused: MessageRefused,
        effects: &mut Effects,
    ) {
        let transmission = match &self.batch {
            Some(batch) if self.refused.is_none() => batch.sent.get(&refused.number).cloned(),
            Some(_) | None => None,
        };
        match transmission {
            Some(transmission) => self.dispose(
                now,
                SenderPlace::Refused,
                transmission,
                Some(refused.number),
                refused.reason,
                effects,
            ),
            None => self.protocol_error(now, "a message was refused that was not sent", effects),
        }
    }

    /// Begins to dispose of a message.
    pub(super) fn dispose(
        &mut self,
        now: Timestamp,
        place: SenderPlace,
        transmission: Transmission,
        number: Option<u64>,
        reason: ReasonCode,
        effects: &mut Effects,
    ) {
        let kind = if transmission.fast {
            MessageKind::NonPersistentFast
        } else {
            MessageKind::in_batch(transmission.message.descriptor.persistence)
        };
        let message = match take_header_off(&transmission.message, now) {
            Ok(outgoing) => outgoing.message,
            Err(_) => (*transmission.message).clone(),
        };
        let message_id = message.descriptor.message_id;
        let disposal = Disposal {
            place,
            step: Step::Discard,
            transmission,
            number,
            kind,
            message,
            reason,
            report_reason: ReasonCode::NONE,
            discard_after_report: false,
        };
        let slot = match place {
            SenderPlace::Refused => Slot::Refused,
            SenderPlace::BeforeSending | SenderPlace::Report => Slot::Unsendable,
        };
        match slot {
            Slot::Unsendable => {
                self.report(Event::CannotSend { message_id, reason }, effects);
                self.unsendable = Some(disposal);
            }
            Slot::Refused => self.refused = Some(disposal),
        }
        let queue = self.config.dead_letter.untried();
        self.decide(now, slot, place, queue, effects);
    }

    fn disposal(&mut self, slot: Slot) -> Option<&mut Disposal> {
        match slot {
            Slot::Unsendable => self.unsendable.as_mut(),
            Slot::Refused => self.refused.as_mut(),
        }
    }

    fn decide(
        &mut self,
        now: Timestamp,
        slot: Slot,
        place: SenderPlace,
        dead_letter_queue: DeadLetterQueue,
        effects: &mut Effects,
    ) {
        let use_dead_letter_queue = self.config.channel.use_dead_letter_queue;
        let Some(d) = self.disposal(slot) else { return };
        let message_id = d.message_id();
        let reason = match place {
            SenderPlace::BeforeSending | SenderPlace::Refused => d.reason,
            SenderPlace::Report => d.report_reason,
        };
        let decision = sending(&SenderFailure {
            place,
            kind: d.kind,
            use_dead_letter_queue,
            dead_letter_queue,
            report: d.message.descriptor.report,
        });
        match (place, decision) {
            (SenderPlace::Report, SenderDecision::DeadLetterHere { .. }) => {
                self.dead_letter_report(now, slot, effects);
            }
            (SenderPlace::Report, SenderDecision::Discard { .. }) => {
                self.report(Event::ReportDropped { message_id, reason }, effects);
                self.report_done(now, slot, effects);
            }
            // The message is on the dead-letter queue already: it cannot be taken back for its report.
            (SenderPlace::Report, SenderDecision::BackOutAndRetry) if !d.discard_after_report => {
                self.report(Event::ReportDropped { message_id, reason }, effects);
                self.report_done(now, slot, effects);
            }
            (_, SenderDecision::BackOutAndRetry) => {
                self.counters
                    .count_undelivered(UndeliveredAction::Stopped, reason);
                self.report(Event::NotConsumed { message_id, reason }, effects);
                let close = Close::new(CloseReason::BatchRefused, "the sender backs the batch out");
                self.fail(now, Some(close), effects);
            }
            (
                SenderPlace::BeforeSending | SenderPlace::Refused,
                SenderDecision::DeadLetterHere { report },
            ) => self.dead_letter(now, slot, report, effects),
            (
                SenderPlace::BeforeSending | SenderPlace::Refused,
                SenderDecision::Discard { report },
            ) => {
                d.discard_after_report = true;
                if report {
                    self.report_to_putter(now, slot, effects);
                } else {
                    self.discard(slot, effects);
                }
            }
        }
    }

    /// Moves the message to the dead-letter queue here; the queue manager still knows a fast one that it handed out last.
    fn dead_letter(&mut self, now: Timestamp, slot: Slot, report: bool, effects: &mut Effects) {
        let usable = self.config.dead_letter.queue().is_some();
        let channel = self.config.channel.base.name.clone();
        let Some(d) = self.disposal(slot) else { return };
        if !usable {
            let place = d.place;
            self.decide(now, slot, place, DeadLetterQueue::Blank, effects);
            return;
        }
        d.step = Step::DeadLetter { report };
        let request = Request::SenderDeadLetter {
            channel,
            sequence: d.transmission.sequence,
            reason: d.reason,
        };
        self.ask(Purpose::Dispose(slot), request, effects);
    }

    pub(super) fn disposal_answered(
        &mut self,
        now: Timestamp,
        slot: Slot,
        result: Answer,
        effects: &mut Effects,
    ) {
        let Some(d) = self.disposal(slot) else { return };
        let (step, place) = (d.step, d.place);
        match (step, result) {
            (Step::DeadLetter { report }, Ok(Reply::Done)) => {
                self.dead_lettered(now, slot, report, effects);
            }
            (Step::Report, Ok(Reply::Put(_))) => self.report_done(now, slot, effects),
            (Step::ReportDeadLetter, Ok(Reply::Put(_))) => {
                let event = Event::DeadLettered {
                    location: DeadLetterLocation::Local,
                    message_id: Some(d.message_id()),
                    reason: Some(d.report_reason),
                    count: 1,
                };
                self.report(event, effects);
                self.report_done(now, slot, effects);
            }
            (Step::Discard, Ok(Reply::Done)) => self.discarded(now, slot, effects),
            (
                Step::DeadLetter { .. } | Step::Report | Step::ReportDeadLetter | Step::Discard,
                Ok(_),
            ) => self.unexpected_answer(now, "dispose of a message", effects),
            (Step::Discard, Err(failure)) => {
                self.disposal_refused(now, "account for a message", failure, effects);
            }
            (Step::DeadLetter { .. } | Step::Report | Step::ReportDeadLetter, Err(failure))
                if is_queue_managers(failure.reason, DeadLetterQueue::Untried) =>
            {
                self.disposal_refused(now, "dispose of a message", failure, effects);
            }
            (Step::DeadLetter { .. }, Err(failure)) => {
                let queue = DeadLetterQueue::Failed(failure.reason);
                self.decide(now, slot, place, queue, effects);
            }
            (Step::Report, Err(failure)) => {
                self.report_failed(now, slot, failure.reason, effects);
            }
            (Step::ReportDeadLetter, Err(failure)) => {
                let queue = DeadLetterQueue::Failed(failure.reason);
                self.decide(now, slot, SenderPlace::Report, queue, effects);
            }
        }
    }

    /// The queue manager cannot: that says nothing about the message, which stays if it is still there.
    fn disposal_refused(
        &mut self,
        now: Timestamp,
        what: &'static str,
        failure: Failure,
        effects: &mut Effects,
    ) {
        self.queue_manager_refused(what, failure, effects);
        let close = Close::new(CloseReason::BatchRefused, "the sender backs the batch out");
        self.fail(now, Some(close), effects);
    }

    fn dead_lettered(&mut self, now: Timestamp, slot: Slot, report: bool, effects: &mut Effects) {
        let Some(d) = self.disposal(slot) else { return };
        let (message_id, reason) = (d.message_id(), d.reason);
        self.counters
            .count_undelivered(UndeliveredAction::DeadLettered, reason);
        let event = Event::DeadLettered {
            location: DeadLetterLocation::Local,
            message_id: Some(message_id),
            reason: Some(reason),
            count: 1,
        };
        self.report(event, effects);
        if report {
            self.report_to_putter(now, slot, effects);
        } else {
            self.disposed(now, slot, effects);
        }
    }

    /// Puts the exception report. It goes by a token of the message, so that a crash between it and the disposition cannot make
    /// two of it.
    fn report_to_putter(&mut self, now: Timestamp, slot: Slot, effects: &mut Effects) {
        let channel = self.config.channel.base.name.clone();
        let Some(d) = self.disposal(slot) else { return };
        let Some(message) = report::exception_report(&d.message, d.reason, &channel, now) else {
            self.report_done(now, slot, effects);
            return;
        };
        d.step = Step::Report;
        let to = &d.message.descriptor;
        let target = if to.reply_to_queue.trim_end_matches(' ').is_empty() {
            Err(ReasonCode::MISSING_REPLY_TO_Q)
        } else {
            report::destination(&to.reply_to_queue, &to.reply_to_queue_manager)
        };
        match target {
            Err(reason) => self.report_failed(now, slot, reason, effects),
            Ok(name) => {
                let put = report::pass_on(&message, name, None);
                self.put_report(slot, "report", put, effects);
            }
        }
    }

    fn dead_letter_report(&mut self, now: Timestamp, slot: Slot, effects: &mut Effects) {
        let queue: Option<QueueName> = self.config.dead_letter.queue().cloned();
        let channel = self.config.channel.base.name.clone();
        let here = self.config.queue_manager.clone();
        let Some(d) = self.disposal(slot) else { return };
        let Some(queue) = queue else {
            self.decide(
                now,
                slot,
                SenderPlace::Report,
                DeadLetterQueue::Blank,
                effects,
            );
            return;
        };
        let Some(message) = report::exception_report(&d.message, d.reason, &channel, now) else {
            self.report_done(now, slot, effects);
            return;
        };
        d.step = Step::ReportDeadLetter;
        let to = &d.message.descriptor;
        let manager = match to.reply_to_queue_manager.as_str() {
            "" => here.as_str(),
            text => text,
        };
        let put = report::dead_letter(
            &message,
            &queue,
            d.report_reason,
            &to.reply_to_queue,
            manager,
            &channel,
            now,
            None,
        );
        self.put_report(slot, "dead report", put, effects);
    }

    fn put_report(&mut self, slot: Slot, what: &str, mut put: Put, effects: &mut Effects) {
        let id = self.config.queue_manager_id;
        let channel = self.config.channel.base.name.clone();
        let Some(d) = self.disposal(slot) else { return };
        if !d.transmission.fast {
            put.token = Some(repeatable_id(&[
                what.as_bytes(),
                id.as_bytes(),
                channel.as_str().as_bytes(),
                &d.transmission.sequence.get().to_be_bytes(),
                d.message_id().as_bytes(),
            ]));
        }
        self.ask(Purpose::Dispose(slot), Request::Put(Box::new(put)), effects);
    }

    fn report_failed(
        &mut self,
        now: Timestamp,
        slot: Slot,
        reason: ReasonCode,
        effects: &mut Effects,
    ) {
        if let Some(d) = self.disposal(slot) {
            d.report_reason = reason;
        }
        let queue = self.config.dead_letter.untried();
        self.decide(now, slot, SenderPlace::Report, queue, effects);
    }

    fn report_done(&mut self, now: Timestamp, slot: Slot, effects: &mut Effects) {
        if self.disposal(slot).is_some_and(|d| d.discard_after_report) {
            self.discard(slot, effects);
        } else {
            self.disposed(now, slot, effects);
        }
    }

    fn discard(&mut self, slot: Slot, effects: &mut Effects) {
        let channel = self.config.channel.base.name.clone();
        let Some(d) = self.disposal(slot) else { return };
        d.step = Step::Discard;
        let request = Request::SenderDiscard {
            channel,
            sequence: d.transmission.sequence,
            reason: d.reason,
        };
        self.ask(Purpose::Dispose(slot), request, effects);
    }

    fn discarded(&mut self, now: Timestamp, slot: Slot, effects: &mut Effects) {
        let Some(d) = self.disposal(slot) else { return };
        let (message_id, reason) = (d.message_id(), d.reason);
        self.counters
            .count_undelivered(UndeliveredAction::Discarded, reason);
        self.report(Event::Discarded { message_id, reason }, effects);
        self.disposed(now, slot, effects);
    }

    /// It is gone from the transmission queue: the main line goes on, or the receiver forgets it and the batch goes on.
    fn disposed(&mut self, now: Timestamp, slot: Slot, effects: &mut Effects) {
        match slot {
            Slot::Unsendable => {
                self.unsendable = None;
                self.proceed(now, effects);
            }
            Slot::Refused => {
                let number = self.refused.take().and_then(|d| d.number);
                if let (Some(number), Some(batch)) = (number, &mut self.batch) {
                    batch.sent.remove(&number);
                    self.send(now, SenderFrame::Withdraw(Withdraw { number }), effects);
                }
            }
        }
    }
}
