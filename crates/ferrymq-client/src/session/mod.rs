//! A session: puts and gets in units of work, many under way at once.

mod answers;
mod calls;
mod consumer;
mod queue;
mod request_reply;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use ferrymq_proto::status::CallError;
use ferrymq_proto::v1::session_answer::Answer as Response;
use ferrymq_proto::v1::session_call::Call;
use ferrymq_proto::v1::{
    BackCall, BeginCall, CommitCall, Error, GetCall, GetRequest, Message, PutCall, PutRequest,
    PutResponse, get_response,
};
use ferrymq_types::{MessageId, ReasonCode, UnitOfWorkId};

use answers::Waiters;
use calls::Calls;

use crate::connect::Deadline;
use crate::{Client, ClientError};

pub use consumer::{ConsumeMode, Consumer, Delivered};
pub use queue::{GotMessage, Queue};
pub use request_reply::{Reply, ReplyQueue, Requester, reply_to};

/// A stream of calls on one connection. Each method sends at once and returns when the answer is there; the `send_`
/// methods return when the call is on its way, so that many can be under way. What is sent while the connection is busy
/// travels together.
///
/// A session that is dropped or lost backs out its open units of work.
pub struct Session {
    line: Arc<Line>,
    reader: Reader,
    deadline: Option<Deadline>,
}

/// Both directions of a session.
#[derive(Debug, Default)]
struct Line {
    calls: Calls,
    waiters: Waiters,
}

/// The task that hands out answers; it ends with the session.
struct Reader(JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.line.calls.close();
    }
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// An answer that is under way.
#[must_use = "a request whose answer nobody reads may have failed"]
pub struct Answer<T> {
    receiver: oneshot::Receiver<Result<Response, ClientError>>,
    read: fn(Response) -> Option<T>,
    deadline: Option<Deadline>,
}

impl<T> core::fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

impl<T> Answer<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// What the queue manager said, [`ClientError::Broken`] (2009), or [`ClientError::TimedOut`] at the client's
    /// deadline.
    pub async fn wait(self) -> Result<T, ClientError> {
        let Self {
            receiver,
            read,
            deadline,
        } = self;
        let answer = Deadline::apply_to_result(deadline, async {
            let gone = || Err(ClientError::Broken("the session has ended".to_owned()));
            receiver.await.unwrap_or_else(|_| gone())
        });
        match answer.await? {
            Response::Error(error) => Err(refused(error)),
            response => read(response).ok_or(ClientError::UnexpectedAnswer),
        }
    }
}

fn refused(error: Error) -> ClientError {
    let named = |name: String| (!name.is_empty()).then_some(name);
    ClientError::Refused(CallError {
        reason: ReasonCode::new(error.reason),
        object: named(error.object),
        queue_manager: named(error.queue_manager),
        text: error.message,
    })
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    /// [`ClientError::Refused`], such as 2035, or [`ClientError::Broken`].
    pub async fn session(&self) -> Result<Session, ClientError> {
        let line = Arc::<Line>::default();
        let mut messaging = self.messaging();
        let calls = calls::Frames::new(line.clone());
        let answers = self.answer(messaging.session(calls)).await?;
        let reader = Reader(tokio::spawn(answers::hand_out(answers, line.clone())));
        Ok(Session {
            line,
            reader,
            deadline: self.deadline(),
        })
    }
}

impl Session {
    /// Begins a unit of work: with the id that the caller chose and nobody used before, or with a generated one.
    ///
    /// # Errors
    /// 2025 if there are too many, or what ends the session.
    pub async fn begin(&self, id: Option<UnitOfWorkId>) -> Result<UnitOfWorkId, ClientError> {
        let unit_of_work_id = bytes_of(id);
        let begin = Call::Begin(BeginCall { unit_of_work_id });
        let read = |response| match response {
            Response::Begin(begun) => UnitOfWorkId::from_slice(&begun.unit_of_work_id),
            _ => None,
        };
        self.send(begin, read).await?.wait().await
    }

    /// Sends a put, in a unit of work if given.
    ///
    /// # Errors
    /// What ended the session. What the queue manager says comes with the answer.
    pub async fn send_put(
        &self,
        put: PutRequest,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<Answer<PutResponse>, ClientError> {
        let put = PutCall {
            put: Some(put),
            syncpoint: bytes_of(syncpoint),
            ..PutCall::default()
        };
        let read = |response| match response {
            Response::Put(put) => Some(put),
            _ => None,
        };
        self.send(Call::Put(put), read).await
    }

    /// As [`Session::send_put`], where only the message id matters: cheaper, since many answers travel as one.
    ///
    /// # Errors
    /// What ended the session. What the queue manager says comes with the answer.
    pub async fn send_put_brief(
        &self,
        put: PutRequest,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<Answer<MessageId>, ClientError> {
        let put = PutCall {
            put: Some(put),
            syncpoint: bytes_of(syncpoint),
            brief: true,
            ..PutCall::default()
        };
        let read = |response| match response {
            Response::Puts(puts) => MessageId::from_slice(&puts.message_ids),
            _ => None,
        };
        self.send(Call::Put(put), read).await
    }

    /// Puts a message, in a unit of work if given.
    ///
    /// # Errors
    /// As [`Client::put`]; 2024 if the unit of work is full, 2255 if it is not known.
    pub async fn put(
        &self,
        put: PutRequest,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<PutResponse, ClientError> {
        self.send_put(put, syncpoint).await?.wait().await
    }

    /// Sends a get, in a unit of work if given: then the message is locked until that ends.
    ///
    /// # Errors
    /// What ended the session. What the queue manager says comes with the answer.
    pub async fn send_get(
        &self,
        get: GetRequest,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<Answer<Option<Message>>, ClientError> {
        let get = GetCall {
            get: Some(get),
            syncpoint: bytes_of(syncpoint),
            ..GetCall::default()
        };
        let read = |response| match response {
            Response::Get(got) => match got.result? {
                get_response::Result::Message(message) => Some(Some(message)),
                get_response::Result::None(_) => Some(None),
            },
            _ => None,
        };
        self.send(Call::Get(get), read).await
    }

    /// Gets a message, in a unit of work if given; `None` if there is none within the wait (2033).
    ///
    /// # Errors
    /// As [`Client::get`]; 2024 if the unit of work is full, 2255 if it is not known.
    pub async fn get(
        &self,
        get: GetRequest,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<Option<Message>, ClientError> {
        self.send_get(get, syncpoint).await?.wait().await
    }

    /// Commits a unit of work. When the answer is there, it is durable.
    ///
    /// # Errors
    /// 2003 if it was backed out instead. After [`ClientError::Broken`] and [`ClientError::TimedOut`] ask
    /// [`Client::get_unit_of_work`] what became of it.
    pub async fn commit(&self, unit_of_work: UnitOfWorkId) -> Result<(), ClientError> {
        let unit_of_work_id = bytes_of(Some(unit_of_work));
        let commit = Call::Commit(CommitCall { unit_of_work_id });
        let read = |response| matches!(response, Response::Done(_)).then_some(());
        self.send(commit, read).await?.wait().await
    }

    /// Backs a unit of work out: its puts vanish, its gets return to their places with a backout count one higher.
    ///
    /// # Errors
    /// 2255 if it is not known, or what ends the session.
    pub async fn back(&self, unit_of_work: UnitOfWorkId) -> Result<(), ClientError> {
        let unit_of_work_id = bytes_of(Some(unit_of_work));
        let back = Call::Back(BackCall { unit_of_work_id });
        let read = |response| matches!(response, Response::Done(_)).then_some(());
        self.send(back, read).await?.wait().await
    }

    /// Begins a unit of work of this id without waiting for the answer: calls that belong to it may follow at once.
    ///
    /// # Errors
    /// What ended the session. What the queue manager says comes with the answer.
    pub async fn send_begin(&self, id: UnitOfWorkId) -> Result<Answer<()>, ClientError> {
        let unit_of_work_id = bytes_of(Some(id));
        let read = |response| matches!(response, Response::Begin(_)).then_some(());
        self.send(Call::Begin(BeginCall { unit_of_work_id }), read)
            .await
    }

    /// Commits without waiting for the answer.
    ///
    /// # Errors
    /// What ended the session. What the queue manager says comes with the answer.
    pub async fn send_commit(&self, unit_of_work: UnitOfWorkId) -> Result<Answer<()>, ClientError> {
        let unit_of_work_id = bytes_of(Some(unit_of_work));
        let read = |response| matches!(response, Response::Done(_)).then_some(());
        self.send(Call::Commit(CommitCall { unit_of_work_id }), read)
            .await
    }

    /// Ends the session and waits until the queue manager has ended it too. Open units of work are backed out.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] at the client's deadline.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.line.calls.close();
        let reader = &mut self.reader.0;
        Deadline::apply_to_result(self.deadline, async {
            // The reader ends with the stream; that it ended badly matters to nobody any more.
            drop(reader.await);
            Ok(())
        })
        .await
    }

    async fn send<T>(
        &self,
        call: Call,
        read: fn(Response) -> Option<T>,
    ) -> Result<Answer<T>, ClientError> {
        send(&self.line, self.deadline, call, read).await
    }
}

async fn send<T>(
    line: &Line,
    deadline: Option<Deadline>,
    call: Call,
    read: fn(Response) -> Option<T>,
) -> Result<Answer<T>, ClientError> {
    let room = Deadline::apply_to_result(deadline, async {
        line.calls.room().await;
        Ok(())
    });
    room.await?;
    let (sender, receiver) = oneshot::channel();
    // In one step, so that calls have rising ids in the order in which they are sent.
    line.calls.push(call, |call_id| {
        line.waiters.wait_for_answer(call_id, sender)
    })?;
    Ok(Answer {
        receiver,
        read,
        deadline,
    })
}

fn bytes_of(id: Option<UnitOfWorkId>) -> bytes::Bytes {
    id.map_or_else(bytes::Bytes::new, |id| {
        bytes::Bytes::copy_from_slice(id.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_on_a_session_keeps_what_the_queue_manager_said() {
        let error = refused(Error {
            completion_code: 2,
            reason: 2053,
            reason_name: "MQRC_Q_FULL".into(),
            object: "A".into(),
            queue_manager: String::new(),
            message: "the queue is full".into(),
        });
        assert_eq!(error.reason(), ReasonCode::Q_FULL);
        assert_eq!(error.object(), Some("A"));
        assert_eq!(error.with_causes(), "the queue is full");
    }
}
