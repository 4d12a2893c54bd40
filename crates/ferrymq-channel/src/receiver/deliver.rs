//! One message after another: put, try again, dead-letter, report, discard or refuse; and the commit of a batch.

use core::time::Duration;

use ferrymq_engine::{Failure, ObjectName, Reply, Request};
use ferrymq_types::{
    AccountReason, Message, Persistence, QueueManagerName, ReasonCode, Timestamp, UnitOfWorkId,
};

use super::{Batch, Effects, Phase, ReceiverEffect, ReceiverMca, ReceiverTimer, Work};
use crate::undelivered::{
    DeadLetterQueue, MessageKind, ReceiverDecision, ReceiverFailure, ReceiverPlace,
    is_queue_managers, receiving,
};
use crate::{
    Answer, BatchConfirmed, BatchEnd, BatchMessage, ChannelState, CloseReason, DeadLetterLocation,
    Event, FastMessage, MessageRefused, ReceiverFrame, UndeliveredAction, report,
};

/// What the receiver is at.
#[derive(Debug)]
pub(super) enum Current {
    /// A message.
    Deliver(Box<Delivery>),
    /// The commit of a batch; all its messages are put.
    Commit(BatchEnd),
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) step: Step,
    /// `None` for a fast message.
    number: Option<u64>,
    kind: MessageKind,
    remote_queue: String,
    remote_queue_manager: String,
    message: Message,
    retries_left: u32,
    /// Why the put where it is going failed.
    reason: ReasonCode,
    /// Why the put of its exception report failed.
    report_reason: ReasonCode,
    /// Whether it is discarded once its exception report is put; else it is dead-lettered already.
    discard_after_report: bool,
}

/// The request that is under way, or the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Begin,
    Put,
    RetryWait,
    DeadLetter { report: bool },
    Report,
    ReportDeadLetter,
    Discard,
}

impl ReceiverMca {
    /// Whether a fast message is at its turn.
    pub(super) fn in_fast(&self) -> bool {
        matches!(&self.current, Some(Current::Deliver(d)) if d.number.is_none())
    }

    pub(super) fn is_waiting_for_message_retry(&self) -> bool {
        matches!(&self.current, Some(Current::Deliver(d)) if d.step == Step::RetryWait)
    }

    pub(super) fn message_received(
        &mut self,
        now: Timestamp,
        message: Box<BatchMessage>,
        effects: &mut Effects,
    ) {
        if let Err(text) = self.check_message(&message) {
            self.protocol_error(text, effects);
            return;
        }
        self.received = message.number;
        match &mut self.batch {
            Some(batch) => batch.messages = batch.messages.saturating_add(1),
            None => {
                self.batch = Some(Batch {
                    id: message.batch,
                    first_number: message.number,
                    messages: 1,
                    ended: false,
                    begun: false,
                    dead_lettered: 0,
                });
            }
        }
        self.count_received(now, &message.message);
        self.pending.push(Work::Message(message));
        self.advance(now, effects);
    }

    fn check_message(&self, message: &BatchMessage) -> Result<(), &'static str> {
        let Some(agreed) = &self.agreed else {
            return Err("a message came before the bind");
        };
        if Some(message.number) != self.received.checked_add(1) {
            return Err("the number of a message is not the one after the last");
        }
        if message.batch.is_none() {
            return Err("a message of a batch without its id");
        }
        if message.message.data_length()
            > usize::try_from(agreed.message_length_max).unwrap_or(usize::MAX)
        {
            return Err("a message is longer than was agreed");
        }
        match &self.batch {
            None => Ok(()),
            Some(batch) if batch.ended => Err("a message came before the last batch was confirmed"),
            Some(batch) if batch.id != message.batch => Err("a batch began before the last ended"),
            Some(batch) if batch.messages >= agreed.batch_size => {
                Err("a batch has more messages than was agreed")
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn fast_received(
        &mut self,
        now: Timestamp,
        message: Box<FastMessage>,
        effects: &mut Effects,
    ) {
        let Some(agreed) = &self.agreed else {
            self.protocol_error("a message came before the bind", effects);
            return;
        };
        let length_max = usize::try_from(agreed.message_length_max).unwrap_or(usize::MAX);
        if !agreed.fast {
            self.protocol_error("a fast message came on a channel of normal speed", effects);
        } else if message.message.descriptor.persistence == Persistence::Persistent {
            self.protocol_error("a persistent message came as a fast one", effects);
        } else if message.message.data_length() > length_max {
            self.protocol_error("a message is longer than was agreed", effects);
        } else {
            self.counters.fast_messages = self.counters.fast_messages.saturating_add(1);
            self.count_received(now, &message.message);
            self.pending.push(Work::Fast(message));
            self.advance(now, effects);
        }
    }

    fn count_received(&mut self, now: Timestamp, message: &Message) {
        let bytes = u64::try_from(message.data_length()).unwrap_or(u64::MAX);
        self.counters.messages = self.counters.messages.saturating_add(1);
        self.counters.bytes_received = self.counters.bytes_received.saturating_add(bytes);
        self.last_message = Some(now);
    }

    pub(super) fn batch_end_received(
        &mut self,
        now: Timestamp,
        end: BatchEnd,
        effects: &mut Effects,
    ) {
        let received = self.received;
        match &mut self.batch {
            Some(batch)
                if !batch.ended
                    && batch.id == end.batch
                    && batch.first_number == end.first_number
                    && received == end.last_number =>
            {
                batch.ended = true;
                self.pending.push(Work::End(end));
                self.advance(now, effects);
            }
            Some(_) | None => {
                self.protocol_error("the end of a batch does not fit the batch", effects);
            }
        }
    }

    /// Takes up what waits, if nothing is under way.
    pub(super) fn advance(&mut self, now: Timestamp, effects: &mut Effects) {
        if self.current.is_some() || self.phase == Phase::Closed {
            return;
        }
        match self.pending.pop(self.refused.is_some()) {
            None => self.idle(now, effects),
            Some(Work::End(end)) => self.commit(end, effects),
            Some(Work::Message(m)) => {
                let m = *m;
                let kind = MessageKind::in_batch(m.message.descriptor.persistence);
                let to = (m.remote_queue, m.remote_queue_manager);
                self.take_up(now, Some(m.number), kind, to, m.message, effects);
            }
            Some(Work::Fast(m)) => {
                let m = *m;
                let kind = MessageKind::NonPersistentFast;
                let to = (m.remote_queue, m.remote_queue_manager);
                self.take_up(now, None, kind, to, m.message, effects);
            }
        }
    }

    /// Nothing waits: an end that was asked for comes now, if no batch is open.
    fn idle(&mut self, now: Timestamp, effects: &mut Effects) {
        match self.phase {
            Phase::Running if self.stop.is_some() && self.batch.is_none() => {
                self.drain(now, effects);
            }
            Phase::Draining if self.partner_gone => self.finish(effects),
            Phase::Unbound
            | Phase::Binding(_)
            | Phase::Running
            | Phase::Draining
            | Phase::Closed => {}
        }
    }

    fn take_up(
        &mut self,
        now: Timestamp,
        number: Option<u64>,
        kind: MessageKind,
        (remote_queue, remote_queue_manager): (String, String),
        message: Message,
        effects: &mut Effects,
    ) {
        let begin = self.batch.filter(|b| !b.begun && number.is_some());
        let delivery = Delivery {
            step: if begin.is_some() {
                Step::Begin
            } else {
                Step::Put
            },
            number,
            kind,
            remote_queue,
            remote_queue_manager,
            message,
            // A conversation that ends does not wait.
            retries_left: if self.phase == Phase::Draining {
                0
            } else {
                self.config.channel.message_retry_count
            },
            reason: ReasonCode::NONE,
            report_reason: ReasonCode::NONE,
            discard_after_report: false,
        };
        self.current = Some(Current::Deliver(Box::new(delivery)));
        match begin {
            Some(batch) => self.ask(Request::Begin { id: batch.id }, effects),
            None => self.put(now, effects),
        }
    }

    fn delivery(&mut self) -> Option<&mut Delivery> {
        match &mut self.current {
            Some(Current::Deliver(delivery)) => Some(delivery),
            Some(Current::Commit(_)) | None => None,
        }
    }

    /// The unit of work of the message at its turn: its batch; none for a fast one.
    fn syncpoint(&self) -> Option<UnitOfWorkId> {
        if self.in_fast() {
            return None;
        }
        self.batch.map(|b| b.id)
    }

    fn put(&mut self, now: Timestamp, effects: &mut Effects) {
        let syncpoint = self.syncpoint();
        let Some(d) = self.delivery() else { return };
        d.step = Step::Put;
        match report::destination(&d.remote_queue, &d.remote_queue_manager) {
            Err(reason) => self.put_failed(now, reason, effects),
            Ok(name) => {
                let put = report::pass_on(&d.message, name, syncpoint);
                self.ask(Request::Put(Box::new(put)), effects);
            }
        }
    }

    /// The time for the next try has come.
    pub(super) fn retry_message(&mut self, now: Timestamp, effects: &mut Effects) {
        if self.is_waiting_for_message_retry() {
            self.put(now, effects);
        }
    }

    /// A stop interrupts the wait for the next try: one more, and then what must become of it.
    pub(super) fn give_up_retries(&mut self, now: Timestamp, effects: &mut Effects) {
        if let Some(d) = self.delivery() {
            d.retries_left = 0;
        }
        self.retry_message(now, effects);
    }

    /// The queue manager answered the request that is under way.
    pub(super) fn answered(&mut self, now: Timestamp, result: Answer, effects: &mut Effects) {
        if let Phase::Binding(bind) = &self.phase {
            let bind = bind.clone();
            self.opened(now, &bind, result, effects);
            return;
        }
        let step = match &self.current {
            Some(Current::Deliver(d)) => d.step,
            Some(Current::Commit(end)) => {
                let end = *end;
                self.commit_answered(now, end, result, effects);
                return;
            }
            None => return,
        };
        match (step, result) {
            (Step::Begin, Ok(Reply::Done)) => {
                if let Some(batch) = &mut self.batch {
                    batch.begun = true;
                }
                self.put(now, effects);
            }
            (Step::Begin, Err(failure)) => {
                self.queue_manager_refused("begin a unit of work", failure, effects);
            }
            (Step::Put, Ok(Reply::Put(_))) => self.settled(now, effects),
            (Step::Put, Err(failure)) => self.put_failed(now, failure.reason, effects),
            (Step::DeadLetter { report }, Ok(Reply::Put(_))) => {
                self.dead_lettered(now, report, effects);
            }
            (Step::DeadLetter { .. }, Err(failure)) => {
                let queue = DeadLetterQueue::Failed(failure.reason);
                self.decide(now, ReceiverPlace::Destination, queue, effects);
            }
            (Step::Report, Ok(Reply::Put(_))) => self.report_done(now, effects),
            (Step::Report, Err(failure)) => self.report_failed(now, failure.reason, effects),
            (Step::ReportDeadLetter, Ok(Reply::Put(_))) => {
                self.report_dead_lettered(now, effects);
            }
            (Step::ReportDeadLetter, Err(failure)) => {
                let queue = DeadLetterQueue::Failed(failure.reason);
                self.decide(now, ReceiverPlace::Report, queue, effects);
            }
            (Step::Discard, Ok(Reply::Done)) => self.discarded(now, effects),
            (Step::Discard, Err(failure)) => {
                self.queue_manager_refused("account for a message", failure, effects);
            }
            (Step::RetryWait, _) => {}
            (
                Step::Begin
                | Step::Put
                | Step::DeadLetter { .. }
                | Step::Report
                | Step::ReportDeadLetter
                | Step::Discard,
                Ok(_),
            ) => self.unexpected_answer("deliver a message", effects),
        }
    }

    /// The message at its turn is where it must be.
    fn settled(&mut self, now: Timestamp, effects: &mut Effects) {
        self.resume(effects);
        self.current = None;
        self.advance(now, effects);
    }

    /// Ends `PAUSED`.
    fn resume(&mut self, effects: &mut Effects) {
        if self.state == ChannelState::Paused {
            let state = if self.stop.is_some() {
                ChannelState::Stopping
            } else {
                ChannelState::Running
            };
            self.set_state(state, effects);
        }
    }

    fn put_failed(&mut self, now: Timestamp, reason: ReasonCode, effects: &mut Effects) {
        if let Some(d) = self.delivery() {
            d.reason = reason;
        }
        let queue = self.config.dead_letter.untried();
        self.decide(now, ReceiverPlace::Destination, queue, effects);
    }

    fn report_failed(&mut self, now: Timestamp, reason: ReasonCode, effects: &mut Effects) {
        if let Some(d) = self.delivery() {
            d.report_reason = reason;
        }
        let queue = self.config.dead_letter.untried();
        self.decide(now, ReceiverPlace::Report, queue, effects);
    }

    /// A put failed: what now.
    fn decide(
        &mut self,
        now: Timestamp,
        place: ReceiverPlace,
        dead_letter_queue: DeadLetterQueue,
        effects: &mut Effects,
    ) {
        let use_dead_letter_queue = self.config.channel.use_dead_letter_queue;
        let Some(d) = self.delivery() else { return };
        let reason = match place {
            ReceiverPlace::Destination => d.reason,
            ReceiverPlace::Report => d.report_reason,
        };
        let failure = ReceiverFailure {
            place,
            reason,
            kind: d.kind,
            retries_left: d.retries_left,
            use_dead_letter_queue,
            dead_letter_queue,
            report: d.message.descriptor.report,
        };
        if let Some(reason) = queue_managers_reason(&failure) {
            let object = Some(d.remote_queue.clone());
            let failure = Failure { reason, object };
            self.queue_manager_refused("put a message", failure, effects);
            return;
        }
        let decision = receiving(&failure);
        match (place, decision) {
            (_, ReceiverDecision::RetryLater) => self.pause(now, effects),
            (ReceiverPlace::Destination, ReceiverDecision::DeadLetter { report }) => {
                self.resume(effects);
                self.dead_letter(now, report, effects);
            }
            (ReceiverPlace::Destination, ReceiverDecision::Discard { report }) => {
                self.resume(effects);
                if let Some(d) = self.delivery() {
                    d.discard_after_report = true;
                }
                if report {
                    self.report_to_putter(now, effects);
                } else {
                    self.discard(effects);
                }
            }
            (ReceiverPlace::Destination, ReceiverDecision::NotConsumed) => {
                self.resume(effects);
                self.refuse(now, effects);
            }
            (ReceiverPlace::Report, ReceiverDecision::DeadLetter { .. }) => {
                self.dead_letter_report(now, effects);
            }
            (ReceiverPlace::Report, ReceiverDecision::Discard { .. }) => {
                let message_id = d_message_id(self);
                self.report(Event::ReportDropped { message_id, reason }, effects);
                self.report_done(now, effects);
            }
            (ReceiverPlace::Report, ReceiverDecision::NotConsumed) => {
                let message_id = d_message_id(self);
                self.counters
                    .count_undelivered(UndeliveredAction::Stopped, reason);
                self.report(Event::NotConsumed { message_id, reason }, effects);
                let text = "an exception report about a message cannot be put";
                self.close(CloseReason::BatchRefused, text, effects);
            }
        }
    }

    /// Waits for the next try; everything behind waits too.
    fn pause(&mut self, now: Timestamp, effects: &mut Effects) {
        let full = self.config.channel.message_retry_count;
        let interval: Duration = self.config.channel.message_retry_interval;
        let Some(d) = self.delivery() else { return };
        let first = d.retries_left == full;
        d.retries_left = d.retries_left.saturating_sub(1);
        d.step = Step::RetryWait;
        let (message_id, reason) = (d.message.descriptor.message_id, d.reason);
        self.counters
            .count_undelivered(UndeliveredAction::Retried, reason);
        if first {
            self.report(Event::MessageRetry { message_id, reason }, effects);
        }
        self.set_state(ChannelState::Paused, effects);
        let at = now.saturating_add(interval);
        self.set_timer(ReceiverTimer::MessageRetry, at, effects);
    }

    fn dead_letter(&mut self, now: Timestamp, report: bool, effects: &mut Effects) {
        let syncpoint = self.syncpoint();
        let queue = self.config.dead_letter.queue().cloned();
        let here = self.config.queue_manager.clone();
        let channel = self.config.channel.base.name.clone();
        let (Some(queue), Some(d)) = (queue, self.delivery()) else {
            self.decide(
                now,
                ReceiverPlace::Destination,
                DeadLetterQueue::Blank,
                effects,
            );
            return;
        };
        d.step = Step::DeadLetter { report };
        let put = report::dead_letter(
            &d.message,
            &queue,
            d.reason,
            &d.remote_queue,
            or_name(&d.remote_queue_manager, &here),
            &channel,
            now,
            syncpoint,
        );
        self.ask(Request::Put(Box::new(put)), effects);
    }

    fn dead_lettered(&mut self, now: Timestamp, report: bool, effects: &mut Effects) {
        let Some(d) = self.delivery() else { return };
        let (message_id, reason, fast) = (
            d.message.descriptor.message_id,
            d.reason,
            d.number.is_none(),
        );
        if let (false, Some(batch)) = (fast, &mut self.batch) {
            batch.dead_lettered = batch.dead_lettered.saturating_add(1);
        }
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
            self.report_to_putter(now, effects);
        } else {
            self.settled(now, effects);
        }
    }

    /// Puts the exception report, in the unit of work of the disposition.
    fn report_to_putter(&mut self, now: Timestamp, effects: &mut Effects) {
        let syncpoint = self.syncpoint();
        let channel = self.config.channel.base.name.clone();
        let partner = self.agreed.as_ref().map(|a| a.partner.clone());
        let Some(d) = self.delivery() else { return };
        let Some(message) = report::exception_report(&d.message, d.reason, &channel, now) else {
            self.report_done(now, effects);
            return;
        };
        d.step = Step::Report;
        match reply_to(&d.message, partner.as_ref()) {
            Err(reason) => self.report_failed(now, reason, effects),
            Ok(name) => {
                let put = report::pass_on(&message, name, syncpoint);
                self.ask(Request::Put(Box::new(put)), effects);
            }
        }
    }

    fn dead_letter_report(&mut self, now: Timestamp, effects: &mut Effects) {
        let syncpoint = self.syncpoint();
        let queue = self.config.dead_letter.queue().cloned();
        let here = self.config.queue_manager.clone();
        let channel = self.config.channel.base.name.clone();
        let (Some(queue), Some(d)) = (queue, self.delivery()) else {
            self.decide(now, ReceiverPlace::Report, DeadLetterQueue::Blank, effects);
            return;
        };
        let Some(message) = report::exception_report(&d.message, d.reason, &channel, now) else {
            self.report_done(now, effects);
            return;
        };
        d.step = Step::ReportDeadLetter;
        let to = &d.message.descriptor;
        let put = report::dead_letter(
            &message,
            &queue,
            d.report_reason,
            &to.reply_to_queue,
            or_name(&to.reply_to_queue_manager, &here),
            &channel,
            now,
            syncpoint,
        );
        self.ask(Request::Put(Box::new(put)), effects);
    }

    fn report_dead_lettered(&mut self, now: Timestamp, effects: &mut Effects) {
        let Some(d) = self.delivery() else { return };
        let event = Event::DeadLettered {
            location: DeadLetterLocation::Local,
            message_id: Some(d.message.descriptor.message_id),
            reason: Some(d.report_reason),
            count: 1,
        };
        self.report(event, effects);
        self.report_done(now, effects);
    }

    /// The report is put, or cannot be: the message goes on as was decided.
    fn report_done(&mut self, now: Timestamp, effects: &mut Effects) {
        if self.delivery().is_some_and(|d| d.discard_after_report) {
            self.discard(effects);
        } else {
            self.settled(now, effects);
        }
    }

    fn discard(&mut self, effects: &mut Effects) {
        let syncpoint = self.syncpoint();
        let channel = self.config.channel.base.name.clone();
        let Some(d) = self.delivery() else { return };
        d.step = Step::Discard;
        let request = Request::ReceiverDiscard {
            channel,
            message_id: d.message.descriptor.message_id,
            queue: ferrymq_engine::account_name(&d.remote_queue),
            reason: AccountReason::Discarded(d.reason),
            syncpoint,
        };
        self.ask(request, effects);
    }

    fn discarded(&mut self, now: Timestamp, effects: &mut Effects) {
        let Some(d) = self.delivery() else { return };
        let (message_id, reason) = (d.message.descriptor.message_id, d.reason);
        self.counters
            .count_undelivered(UndeliveredAction::Discarded, reason);
        self.report(Event::Discarded { message_id, reason }, effects);
        self.settled(now, effects);
    }

    /// Nothing was consumed: the sender decides, and nothing later of this batch is looked at before it has.
    fn refuse(&mut self, now: Timestamp, effects: &mut Effects) {
        let Some(d) = self.delivery() else { return };
        let (message_id, reason) = (d.message.descriptor.message_id, d.reason);
        let Some(number) = d.number else { return };
        self.counters
            .count_undelivered(UndeliveredAction::Stopped, reason);
        self.report(Event::NotConsumed { message_id, reason }, effects);
        effects.push(ReceiverEffect::Send(ReceiverFrame::MessageRefused(
            MessageRefused { number, reason },
        )));
        self.refused = Some(number);
        self.current = None;
        self.advance(now, effects);
    }

    /// Commits the batch and its last number in one write set.
    fn commit(&mut self, end: BatchEnd, effects: &mut Effects) {
        let Some(agreed) = &self.agreed else { return };
        let sender = agreed.partner_id;
        // From here on its fate is the queue manager's to tell.
        if let Some(batch) = &mut self.batch {
            batch.begun = false;
        }
        self.current = Some(Current::Commit(end));
        self.ask(
            Request::CommitReceived {
                channel: self.config.channel.base.name.clone(),
                sender,
                batch: end.batch,
                first_number: end.first_number,
                last_number: end.last_number,
            },
            effects,
        );
    }

    fn commit_answered(
        &mut self,
        now: Timestamp,
        end: BatchEnd,
        result: Answer,
        effects: &mut Effects,
    ) {
        match result {
            Ok(Reply::Done) => {
                let dead_lettered = self.batch.take().map_or(0, |b| b.dead_lettered);
                self.last_committed = end.last_number;
                self.last_batch = end.batch;
                self.counters.batches = self.counters.batches.saturating_add(1);
                let confirmed = BatchConfirmed {
                    batch: end.batch,
                    last_number: end.last_number,
                    dead_lettered,
                };
                effects.push(ReceiverEffect::Send(ReceiverFrame::BatchConfirmed(
                    confirmed,
                )));
                self.settled(now, effects);
            }
            Ok(_) => self.unexpected_answer("commit a batch", effects),
            Err(failure) => self.queue_manager_refused("commit a batch", failure, effects),
        }
    }

    /// The queue manager did not do what was asked, for a reason that is not the message's: the conversation ends.
    pub(super) fn queue_manager_refused(
        &mut self,
        what: &'static str,
        failure: Failure,
        effects: &mut Effects,
    ) {
        const STOPS: [ReasonCode; 4] = [
            ReasonCode::Q_MGR_QUIESCING,
            ReasonCode::Q_MGR_STOPPING,
            ReasonCode::STOPPING,
            ReasonCode::CONNECTION_BROKEN,
        ];
        let reason = failure.reason;
        let binding = matches!(self.phase, Phase::Binding(_));
        let (close, text) = if reason == ReasonCode::CHANNEL_SUPERSEDED {
            (CloseReason::Superseded, "a newer conversation has begun")
        } else if reason == ReasonCode::CHANNEL_SEQUENCE_ERROR {
            (CloseReason::SequenceError, "the batch is not the next one")
        } else if binding || STOPS.contains(&reason) {
            (
                CloseReason::QueueManagerStopping,
                "the queue manager takes no messages",
            )
        } else {
            (
                CloseReason::BatchRefused,
                "the queue manager cannot take the batch",
            )
        };
        let event = Event::QueueManagerRefused {
            what,
            reason,
            object: failure.object,
        };
        self.report(event, effects);
        if close == CloseReason::SequenceError {
            let event = Event::SequenceError {
                here: self.last_committed,
                there: self.received,
                text: text.into(),
            };
            self.report(event, effects);
        }
        self.close(close, text, effects);
    }

    pub(super) fn unexpected_answer(&mut self, what: &'static str, effects: &mut Effects) {
        let failure = Failure {
            reason: ReasonCode::UNEXPECTED_ERROR,
            object: None,
        };
        self.queue_manager_refused(what, failure, effects);
    }
}

/// The reason why it is not the message's fault, if it is not. A fast message never waits for room: it is lost first.
fn queue_managers_reason(failure: &ReceiverFailure) -> Option<ReasonCode> {
    let queue = if failure.kind == MessageKind::NonPersistentFast {
        DeadLetterQueue::Blank
    } else {
        failure.dead_letter_queue
    };
    if is_queue_managers(failure.reason, queue) {
        return Some(failure.reason);
    }
    match failure.dead_letter_queue {
        DeadLetterQueue::Failed(reason) => {
            is_queue_managers(reason, DeadLetterQueue::Untried).then_some(reason)
        }
        DeadLetterQueue::Untried | DeadLetterQueue::Blank => None,
    }
}

/// Where the exception report goes. A blank queue manager is the putter's, and the message came from there.
fn reply_to(
    message: &Message,
    partner: Option<&QueueManagerName>,
) -> Result<ObjectName, ReasonCode> {
    let d = &message.descriptor;
    if d.reply_to_queue.trim_end_matches(' ').is_empty() {
        return Err(ReasonCode::MISSING_REPLY_TO_Q);
    }
    let mut name = report::destination(&d.reply_to_queue, &d.reply_to_queue_manager)?;
    name.queue_manager = name.queue_manager.or_else(|| partner.cloned());
    Ok(name)
}

fn or_name<'a>(text: &'a str, name: &'a QueueManagerName) -> &'a str {
    if text.is_empty() { name.as_str() } else { text }
}

fn d_message_id(mca: &mut ReceiverMca) -> ferrymq_types::MessageId {
    mca.delivery().map_or(ferrymq_types::MessageId::NONE, |d| {
        d.message.descriptor.message_id
    })
}
