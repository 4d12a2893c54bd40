//! Consuming: the queue manager pushes messages as they come, as many as there is credit for.

use std::sync::Arc;

use tokio::sync::mpsc;

use ferrymq_proto::v1::session_answer::Answer as Response;
use ferrymq_proto::v1::session_call::Call;
use ferrymq_proto::v1::{
    CancelCall, ConsumeCall, CreditCall, GetRequest, Message, SettleCall, Settlement,
};
use ferrymq_types::{ReasonCode, UnitOfWorkId};

use super::answers::Delivered as Sent;
use super::{Answer, Line, Session, bytes_of, send};
use crate::ClientError;
use crate::connect::Deadline;

/// How messages that are pushed are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeMode {
    /// Each is removed before it is sent: at most once.
    NoSyncpoint,
    /// Each is locked until it is settled, by itself, with others, or in a unit of work.
    Settle,
}

/// A message that was pushed.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// By which it is settled.
    pub delivery: u64,
    /// The message.
    pub message: Message,
    /// Messages that the selector judged up to this one, since the batch of deliveries before; 0 without a selector.
    pub examined: u64,
}

/// Messages of a queue as they come. What it holds and has not settled is backed out when it is dropped.
#[derive(Debug)]
pub struct Consumer {
    line: Arc<Line>,
    call_id: u64,
    mode: ConsumeMode,
    deliveries: mpsc::UnboundedReceiver<Sent>,
    deadline: Option<Deadline>,
    /// Messages that may be under way or unsettled at once.
    window: u32,
    /// Messages that were taken and for which no credit was given yet.
    credit_due: u32,
    /// The queue manager said that no more comes.
    ended: bool,
    cancelled: bool,
}

impl Session {
    /// Starts to consume messages of a queue: at most `window` are under way or unsettled at once. `wait_ms` of `get` does not
    /// count.
    ///
    /// # Errors
    /// What ended the session. What the queue manager says, such as 2085, comes instead of the first message.
    pub async fn consume(
        &self,
        get: GetRequest,
        mode: ConsumeMode,
        window: u32,
    ) -> Result<Consumer, ClientError> {
        let wire_mode = match mode {
            ConsumeMode::NoSyncpoint => ferrymq_proto::v1::ConsumeMode::NoSyncpoint,
            ConsumeMode::Settle => ferrymq_proto::v1::ConsumeMode::Settle,
        };
        let consume = ConsumeCall {
            get: Some(get),
            mode: wire_mode.into(),
            credit: window,
        };
        let (sender, deliveries) = mpsc::unbounded_channel();
        let calls = &self.line.calls;
        let room = Deadline::apply_to_result(self.deadline, async {
            calls.room().await;
            Ok(())
        });
        room.await?;
        let call_id = calls.push(Call::Consume(consume), |call_id| {
            self.line.waiters.consume(call_id, sender)
        })?;
        Ok(Consumer {
            line: self.line.clone(),
            call_id,
            mode,
            deliveries,
            deadline: self.deadline,
            window,
            credit_due: 0,
            ended: false,
            cancelled: false,
        })
    }
}

impl Consumer {
    /// The next message, as soon as there is one.
    ///
    /// # Errors
    /// What the queue manager said, such as 2016 when the queue is inhibited; nothing comes after that, but what was
    /// delivered can be settled. [`ClientError::TimedOut`] at the client's deadline.
    pub async fn next(&mut self) -> Result<Delivered, ClientError> {
        let deliveries = &mut self.deliveries;
        let next = Deadline::apply_to_result(self.deadline, async {
            let gone = || Err(ClientError::Broken("the session has ended".to_owned()));
            deliveries.recv().await.unwrap_or_else(gone)
        });
        let next = next.await;
        self.take(next)
    }

    /// The next message that is here already; `None` if none is.
    ///
    /// # Errors
    /// As [`Consumer::next`].
    pub fn try_next(&mut self) -> Result<Option<Delivered>, ClientError> {
        match self.deliveries.try_recv() {
            Ok(next) => self.take(next).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn take(&mut self, next: Sent) -> Result<Delivered, ClientError> {
        let delivery = match next {
            Ok(delivery) => delivery,
            Err(error) => {
                self.ended |= !matches!(error, ClientError::TimedOut(_));
                return Err(error);
            }
        };
        if self.mode == ConsumeMode::NoSyncpoint {
            self.give_credit(1);
        }
        Ok(Delivered {
            delivery: delivery.delivery,
            examined: delivery.examined,
            message: delivery.message.ok_or(ClientError::UnexpectedAnswer)?,
        })
    }

    /// Gives credit for messages that were taken, half a window at a time.
    fn give_credit(&mut self, messages: u32) {
        self.credit_due = self.credit_due.saturating_add(messages);
        if self.credit_due >= self.window.div_ceil(2) {
            let credit = CreditCall {
                consumer: self.call_id,
                credit: core::mem::take(&mut self.credit_due),
            };
            self.line
                .calls
                .push_about(self.call_id, Call::Credit(credit));
        }
    }

    /// Makes messages final, in one unit of work. With an `id` its outcome can be asked for by [`crate::Client::get_unit_of_work`].
    ///
    /// # Errors
    /// What ended the session. What the queue manager says, such as 2034 for a message that is not held, comes with the answer.
    pub async fn send_commit(
        &self,
        deliveries: Vec<u64>,
        id: Option<UnitOfWorkId>,
    ) -> Result<Answer<()>, ClientError> {
        self.settle(deliveries, Settlement::Commit, id).await
    }

    /// Gives messages back to their places with a backout count one higher.
    ///
    /// # Errors
    /// As [`Consumer::send_commit`].
    pub async fn send_back_out(
        &self,
        deliveries: Vec<u64>,
        id: Option<UnitOfWorkId>,
    ) -> Result<Answer<()>, ClientError> {
        self.settle(deliveries, Settlement::BackOut, id).await
    }

    /// Lets messages belong to an open unit of work of the session.
    ///
    /// # Errors
    /// As [`Consumer::send_commit`]; 2255 if the unit of work is not open, 2024 if it is full.
    pub async fn send_join(
        &self,
        deliveries: Vec<u64>,
        unit_of_work: UnitOfWorkId,
    ) -> Result<Answer<()>, ClientError> {
        self.settle(deliveries, Settlement::Join, Some(unit_of_work))
            .await
    }

    async fn settle(
        &self,
        deliveries: Vec<u64>,
        settlement: Settlement,
        id: Option<UnitOfWorkId>,
    ) -> Result<Answer<()>, ClientError> {
        let credit = u32::try_from(deliveries.len()).unwrap_or(u32::MAX);
        let settle = SettleCall {
            consumer: self.call_id,
            deliveries,
            settlement: settlement.into(),
            unit_of_work_id: bytes_of(id),
            credit,
        };
        let read = |response| matches!(response, Response::Done(_)).then_some(());
        send(&self.line, self.deadline, Call::Settle(settle), read).await
    }

    /// Ends it: what it holds and has not settled is backed out. Returns the messages that were on their way.
    ///
    /// # Errors
    /// What ended the session.
    pub async fn stop(mut self) -> Result<Vec<Delivered>, ClientError> {
        self.cancel();
        let mut rest = Vec::new();
        while !self.ended {
            match self.next().await {
                Ok(delivered) => rest.push(delivered),
                Err(error) if error.reason() == ReasonCode::NO_MSG_AVAILABLE => return Ok(rest),
                Err(error) => return Err(error),
            }
        }
        Ok(rest)
    }

    fn cancel(&mut self) {
        if !core::mem::replace(&mut self.cancelled, true) {
            let cancel = CancelCall {
                call_id: self.call_id,
            };
            self.line
                .calls
                .push_about(self.call_id, Call::Cancel(cancel));
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.cancel();
    }
}
