//! A session: puts and gets in units of work, many under way at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use ferrymq_proto::status::CallError;
use ferrymq_proto::v1::session_request::Request;
use ferrymq_proto::v1::session_response::Response;
use ferrymq_proto::v1::{
    BackRequest, BeginRequest, CommitRequest, Error, GetRequest, Message, PutRequest, PutResponse,
    SessionGetRequest, SessionPutRequest, SessionRequest, SessionResponse, get_response,
};
use ferrymq_types::{ReasonCode, UnitOfWorkId};

use crate::connect::Deadline;
use crate::{Client, ClientError};

/// Requests that wait for their turn to be sent; more make the caller wait.
const REQUESTS_QUEUED_MAX: usize = 64;

type Waiting = oneshot::Sender<Result<Response, ClientError>>;

/// Who waits for which answer.
enum State {
    Open(BTreeMap<u64, Waiting>),
    Closed(ClientError),
}

/// A stream of requests on one connection. Each method sends at once and returns when the answer is there; the `send_`
/// methods return when the request is on its way, so that many can be under way.
///
/// A session that is dropped or lost backs out its open units of work.
pub struct Session {
    requests: mpsc::Sender<SessionRequest>,
    state: Arc<Mutex<State>>,
    next_id: AtomicU64,
    reader: Reader,
    deadline: Option<Deadline>,
}

/// The task that hands out answers; it ends with the session.
struct Reader(JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
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
        let (requests, receiver) = mpsc::channel(REQUESTS_QUEUED_MAX);
        let mut messaging = self.messaging();
        let answers = self
            .answer(messaging.session(ReceiverStream::new(receiver)))
            .await?;
        let state = Arc::new(Mutex::new(State::Open(BTreeMap::new())));
        let reader = Reader(tokio::spawn(hand_out(answers, Arc::clone(&state))));
        Ok(Session {
            requests,
            state,
            next_id: AtomicU64::new(1),
            reader,
            deadline: self.deadline(),
        })
    }
}

/// Gives each answer to the one who waits for it, until the stream ends.
async fn hand_out(mut answers: Streaming<SessionResponse>, state: Arc<Mutex<State>>) {
    let end = loop {
        match answers.message().await {
            Ok(Some(answer)) => {
                let waiting = match &mut *lock(&state) {
                    State::Open(waiting) => waiting.remove(&answer.request_id),
                    State::Closed(_) => return,
                };
                let Some(waiting) = waiting else {
                    break ClientError::UnexpectedAnswer;
                };
                let answer = answer.response.ok_or(ClientError::UnexpectedAnswer);
                // Whoever waited may have given up.
                drop(waiting.send(answer));
            }
            Ok(None) => {
                break ClientError::Broken("the queue manager ended the session".to_owned());
            }
            Err(status) => break ClientError::from_status(&status, None),
        }
    };
    let before = core::mem::replace(&mut *lock(&state), State::Closed(end.clone()));
    if let State::Open(waiting) = before {
        for waiting in waiting.into_values() {
            drop(waiting.send(Err(end.clone())));
        }
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Begins a unit of work: with the id that the caller chose and nobody used before, or with a generated one.
    ///
    /// # Errors
    /// 2025 if there are too many, or what ends the session.
    pub async fn begin(&self, id: Option<UnitOfWorkId>) -> Result<UnitOfWorkId, ClientError> {
        let unit_of_work_id = bytes_of(id);
        let begin = Request::Begin(BeginRequest { unit_of_work_id });
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
        let put = SessionPutRequest {
            put: Some(put),
            syncpoint: bytes_of(syncpoint),
        };
        let read = |response| match response {
            Response::Put(put) => Some(put),
            _ => None,
        };
        self.send(Request::Put(put), read).await
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
        let get = SessionGetRequest {
            get: Some(get),
            syncpoint: bytes_of(syncpoint),
        };
        let read = |response| match response {
            Response::Get(got) => match got.result? {
                get_response::Result::Message(message) => Some(Some(message)),
                get_response::Result::None(_) => Some(None),
            },
            _ => None,
        };
        self.send(Request::Get(get), read).await
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
        let commit = Request::Commit(CommitRequest { unit_of_work_id });
        let read = |response| matches!(response, Response::Commit(_)).then_some(());
        self.send(commit, read).await?.wait().await
    }

    /// Backs a unit of work out: its puts vanish, its gets return to their places with a backout count one higher.
    ///
    /// # Errors
    /// 2255 if it is not known, or what ends the session.
    pub async fn back(&self, unit_of_work: UnitOfWorkId) -> Result<(), ClientError> {
        let unit_of_work_id = bytes_of(Some(unit_of_work));
        let back = Request::Back(BackRequest { unit_of_work_id });
        let read = |response| matches!(response, Response::Back(_)).then_some(());
        self.send(back, read).await?.wait().await
    }

    /// Ends the session and waits until the queue manager has ended it too. Open units of work are backed out.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] at the client's deadline.
    pub async fn close(self) -> Result<(), ClientError> {
        let Self {
            requests,
            mut reader,
            deadline,
            ..
        } = self;
        drop(requests);
        Deadline::apply_to_result(deadline, async {
            // The reader ends with the stream; that it ended badly matters to nobody any more.
            drop((&mut reader.0).await);
            Ok(())
        })
        .await
    }

    async fn send<T>(
        &self,
        request: Request,
        read: fn(Response) -> Option<T>,
    ) -> Result<Answer<T>, ClientError> {
        let request_id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        match &mut *lock(&self.state) {
            State::Open(waiting) => waiting.insert(request_id, sender),
            State::Closed(error) => return Err(error.clone()),
        };
        let request = SessionRequest {
            request_id,
            request: Some(request),
        };
        Deadline::apply_to_result(self.deadline, async {
            // If the stream is gone, the reader says why through the receiver.
            drop(self.requests.send(request).await);
            Ok(())
        })
        .await?;
        Ok(Answer {
            receiver,
            read,
            deadline: self.deadline,
        })
    }
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
