//! Consumers: messages are pushed as they come, as long as the client has given credit.

use std::sync::Arc;

use ferrymq_engine::{
    CloseOption, Failure, Get, HandleId, InputUse, Many, ObjectName, OpenOptions, Reply, Request,
    RequestId, Settlement, Source,
};
use ferrymq_proto::v1;
use ferrymq_selector::Selector;
use ferrymq_types::{QueueName, ReasonCode, Sequence, UnitOfWorkId};

use super::{Calls, FOR_EVER, Session, failure};
use crate::answers::{CallTag, Kind};
use crate::handle::{AnswerTo, Asking};
use crate::ids;
use crate::services::messaging::{queue_name, unit_of_work_id};

/// Consumers of one session. Beyond: 9004.
const CONSUMERS_MAX: usize = 256;

/// Messages that a consumer may hold without having settled them, whatever its credit.
const CREDIT_MAX: u32 = 10_000;

/// Messages that are asked for at once.
const MESSAGES_AT_ONCE_MAX: u32 = 256;

/// Bytes of messages that are asked for at once: what a client that stops reading makes us hold.
const BYTES_AT_ONCE_MAX: u64 = 1024 * 1024;

/// A consumer.
#[derive(Debug)]
pub(super) struct Consumer {
    get: Get,
    /// Open as long as the consumer is there, whether it asks or waits for credit: that the queue is read counts for triggers.
    handle: HandleId,
    /// The unit of work that has locked what is not settled; `None`: messages are removed before they are sent.
    unit: Option<UnitOfWorkId>,
    credit: u32,
    credit_max: u32,
    /// The request that waits for messages.
    pub(super) asking: Option<RequestId>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// Cancelled: when nothing is being asked any more it is gone.
    Ending,
    /// The queue manager ended it; what is unsettled can be settled.
    Ended,
}

impl Session {
    /// Starts a consumer.
    pub(super) async fn consume(
        &self,
        call_id: u64,
        call: &v1::ConsumeCall,
    ) -> Result<(), Failure> {
        let options_error = || failure(ReasonCode::OPTIONS_ERROR);
        let get = call.get.as_ref().ok_or_else(options_error)?;
        let unit = match call.mode() {
            v1::ConsumeMode::Unspecified => return Err(options_error()),
            v1::ConsumeMode::NoSyncpoint => None,
            v1::ConsumeMode::Settle => Some(ids::random_unit_of_work()?),
        };
        // A delivery has no place for a warning, so that what is not converted could not be told.
        if call.credit == 0 || get.convert.is_some() {
            return Err(options_error());
        }
        let queue = queue_name(&get.queue)?;
        let source = Source::Queue(queue.clone());
        let mut get = self.caller.get(get, source, unit, None)?;
        let selector = get.selector.take();
        let handle = self.open_for_consumer(queue, selector).await?;
        let objects = self.caller.connection.queue_manager().objects();
        let credit_max = CREDIT_MAX.min(objects.attributes.max_uncommitted_messages);
        let consumer = Consumer {
            handle,
            get: Get {
                source: Source::Handle(handle),
                wait_until: Some(FOR_EVER),
                ..get
            },
            unit,
            credit: call.credit.min(credit_max),
            credit_max,
            asking: None,
            state: State::Running,
        };
        let permit = self.permits.acquire().await;
        permit.map_err(|_| crate::handle::stopping())?.forget();
        let mut calls = self.calls();
        let refusal = if calls.consumers.contains_key(&call_id) {
            Some(ReasonCode::OPTIONS_ERROR)
        } else if calls.consumers.len() >= CONSUMERS_MAX {
            Some(ReasonCode::LIMIT_EXCEEDED)
        } else {
            None
        };
        if let Some(reason) = refusal {
            self.close_silently(&mut calls, call_id, handle);
            drop(calls);
            self.permits.add_permits(1);
            return Err(failure(reason));
        }
        calls.under_way = calls.under_way.saturating_add(1);
        if let Some(id) = unit {
            let begin = Request::Begin { id };
            self.ask_silently(&mut calls, call_id, Kind::Silent, begin)?;
        }
        let consumer = calls.consumers.entry(call_id).or_insert(consumer);
        consumer.asking = self.ask_for_more(call_id, consumer)?;
        Ok(())
    }

    /// Asks for the next messages, if there is credit and nothing is asked.
    fn ask_for_more(
        &self,
        call_id: u64,
        consumer: &Consumer,
    ) -> Result<Option<RequestId>, Failure> {
        if consumer.asking.is_some() || consumer.credit == 0 || consumer.state != State::Running {
            return Ok(consumer.asking);
        }
        let many = Many {
            messages_max: consumer.credit.min(MESSAGES_AT_ONCE_MAX),
            bytes_max: BYTES_AT_ONCE_MAX,
        };
        let get = Get {
            many: Some(many),
            ..consumer.get.clone()
        };
        self.send_one(call_id, Kind::Consume, Request::Get(get))
            .map(Some)
    }

    fn send_one(&self, call_id: u64, kind: Kind, request: Request) -> Result<RequestId, Failure> {
        let connection = &self.caller.connection;
        let id = connection.request_ids(1);
        let tag = CallTag { call_id, kind };
        let asking = Asking {
            id,
            request,
            answer: AnswerTo::Session(self.answers.clone(), tag),
        };
        connection.send(vec![asking], None)?;
        Ok(id)
    }

    /// Asks something whose answer goes to nobody.
    fn ask_silently(
        &self,
        calls: &mut Calls,
        call_id: u64,
        kind: Kind,
        request: Request,
    ) -> Result<(), Failure> {
        self.send_one(call_id, kind, request)?;
        calls.under_way = calls.under_way.saturating_add(1);
        Ok(())
    }

    /// Lets a consumer have more messages.
    pub(super) fn add_credit(&self, call_id: u64, credit: u32) {
        let mut calls = self.calls();
        if let Some(consumer) = calls.consumers.get_mut(&call_id) {
            consumer.credit = consumer
                .credit
                .saturating_add(credit)
                .min(consumer.credit_max);
            // A failure means that the queue manager stops: then the session ends.
            consumer.asking = self.ask_for_more(call_id, consumer).unwrap_or(None);
        }
    }

    /// Messages leave for a consumer: more are asked for.
    pub(super) fn delivered(&self, call_id: u64, count: usize) {
        let mut calls = self.calls();
        let Some(consumer) = calls.consumers.get_mut(&call_id) else {
            return;
        };
        consumer.asking = None;
        if consumer.state == State::Ending {
            // What was asked brought messages, since the cancellation came too late for it, and so did not end it.
            return self.tell_end(call_id);
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        consumer.credit = consumer.credit.saturating_sub(count);
        // A failure means that the queue manager stops: then the session ends.
        consumer.asking = self.ask_for_more(call_id, consumer).unwrap_or(None);
    }

    /// A consumer gets no more. Says whether that is to be told now.
    pub(super) fn consumer_ended(&self, call_id: u64) -> bool {
        let mut calls = self.calls();
        let Some(consumer) = calls.consumers.get_mut(&call_id) else {
            return false;
        };
        consumer.asking = None;
        match consumer.state {
            State::Running => consumer.state = State::Ended,
            State::Ended => {}
            State::Ending => self.drop_consumer(&mut calls, call_id),
        }
        true
    }

    /// Ends a consumer: what it has not settled is backed out.
    pub(super) fn end_consumer(&self, calls: &mut Calls, call_id: u64) {
        let Some(consumer) = calls.consumers.get_mut(&call_id) else {
            return;
        };
        let was = std::mem::replace(&mut consumer.state, State::Ending);
        match (was, consumer.asking) {
            (State::Ending, _) => {}
            // The answer to what is asked ends it.
            (State::Running, Some(id)) => self.caller.connection.cancel(id),
            (State::Running, None) => self.tell_end(call_id),
            // Its end was told before.
            (State::Ended, _) => self.drop_consumer(calls, call_id),
        }
    }

    /// Nothing is asked whose answer could end a consumer: it is told its end so.
    fn tell_end(&self, call_id: u64) {
        let tag = CallTag {
            call_id,
            kind: Kind::Consume,
        };
        let none = failure(ReasonCode::NO_MSG_AVAILABLE);
        self.answers.push(tag, Err(none));
        self.answers.wake();
    }

    fn drop_consumer(&self, calls: &mut Calls, call_id: u64) {
        let Some(consumer) = calls.consumers.remove(&call_id) else {
            return;
        };
        if let Some(unit) = consumer.unit {
            let back = Request::BackOut { id: unit };
            // A failure means that the queue manager stops: its units of work are gone with it.
            drop(self.ask_silently(calls, call_id, Kind::Silent, back));
        }
        self.close_silently(calls, call_id, consumer.handle);
    }

    async fn open_for_consumer(
        &self,
        queue: QueueName,
        selector: Option<Arc<Selector>>,
    ) -> Result<HandleId, Failure> {
        let open = Request::Open {
            selector,
            name: ObjectName::local(queue),
            options: OpenOptions {
                input: Some(InputUse::AsQueueDefined),
                ..OpenOptions::default()
            },
            dynamic_name: None,
        };
        match self.caller.connection.ask(open).await? {
            Reply::Opened(opened) => Ok(opened.handle),
            _ => Err(failure(ReasonCode::UNEXPECTED_ERROR)),
        }
    }

    fn close_silently(&self, calls: &mut Calls, call_id: u64, handle: HandleId) {
        let option = CloseOption::None;
        let close = Request::Close { handle, option };
        // A failure means that the queue manager stops: its handles are gone with it.
        drop(self.ask_silently(calls, call_id, Kind::Silent, close));
    }

    /// The request of a settlement.
    pub(super) fn settle(&self, call: &v1::SettleCall) -> Result<Request, Failure> {
        let id = unit_of_work_id(&call.unit_of_work_id)?;
        let settlement = match call.settlement() {
            v1::Settlement::Unspecified => return Err(failure(ReasonCode::OPTIONS_ERROR)),
            v1::Settlement::Commit => Settlement::Commit(id),
            v1::Settlement::BackOut => Settlement::BackOut(id),
            v1::Settlement::Join => {
                Settlement::Join(id.ok_or_else(|| failure(ReasonCode::UOW_NOT_AVAILABLE))?)
            }
        };
        let calls = self.calls();
        let consumer = calls.consumers.get(&call.consumer);
        let consumer = consumer.ok_or_else(|| failure(ReasonCode::HOBJ_ERROR))?;
        let of = consumer
            .unit
            .ok_or_else(|| failure(ReasonCode::OPTIONS_ERROR))?;
        let messages = call.deliveries.iter().copied().map(Sequence::new).collect();
        Ok(Request::Settle {
            of,
            messages,
            settlement,
        })
    }
}
