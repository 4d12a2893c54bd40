//! An open queue: a handle of a session.

use ferrymq_proto::v1::session_answer::Answer as Response;
use ferrymq_proto::v1::session_call::Call;
use ferrymq_proto::v1::{
    BrowseCall, BrowseStep, CloseCall, GetCall, Message, OpenCall, PutCall, PutRequest,
    PutResponse, UnlockCall, get_response,
};
use ferrymq_types::{ReasonCode, UnitOfWorkId};

use super::{Session, bytes_of};
use crate::ClientError;

/// An open queue. It is closed with its session, or by [`Queue::close`].
#[derive(Debug)]
pub struct Queue<'a> {
    session: &'a Session,
    handle: u64,
    /// `ResolvedQName`.
    pub resolved_queue: String,
    /// `ResolvedQMgrName`.
    pub resolved_queue_manager: String,
}

/// A message that was got, and what there was to say about it.
#[derive(Debug, Clone)]
pub struct GotMessage {
    /// The message.
    pub message: Message,
    /// [`ReasonCode::NONE`], or a warning: 2079 if its data was cut.
    pub warning: ReasonCode,
}

fn got(response: Response) -> Option<Option<GotMessage>> {
    let Response::Get(got) = response else {
        return None;
    };
    let warning = ReasonCode::new(got.reason);
    match got.result? {
        get_response::Result::Message(message) => Some(Some(GotMessage { message, warning })),
        get_response::Result::None(_) => Some(None),
    }
}

impl Session {
    /// Opens a queue.
    ///
    /// # Errors
    /// What the queue manager says, such as 2085 for an unknown name, 2042 for a queue that another has for itself, 2046 if
    /// nothing is asked of it; what ends the session.
    pub async fn open(&self, open: OpenCall) -> Result<Queue<'_>, ClientError> {
        let read = |response| match response {
            Response::Open(open) => Some(open),
            _ => None,
        };
        let opened = self.send(Call::Open(open), read).await?.wait().await?;
        Ok(Queue {
            session: self,
            handle: opened.handle,
            resolved_queue: opened.resolved_queue,
            resolved_queue_manager: opened.resolved_queue_manager,
        })
    }
}

impl Queue<'_> {
    /// Puts a message, in a unit of work if given.
    ///
    /// # Errors
    /// As [`crate::Client::put`]; 2039 if the queue is not open for output.
    pub async fn put(
        &self,
        message: Message,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<PutResponse, ClientError> {
        let put = PutCall {
            put: Some(PutRequest {
                message: Some(message),
                ..PutRequest::default()
            }),
            syncpoint: bytes_of(syncpoint),
            handle: self.handle,
            ..PutCall::default()
        };
        let read = |response| match response {
            Response::Put(put) => Some(put),
            _ => None,
        };
        self.session.send(Call::Put(put), read).await?.wait().await
    }

    /// Gets a message; `None` if there is none within the wait (2033). The queue in `get` does not count, nor does the handle.
    ///
    /// # Errors
    /// As [`crate::Client::get`]; 2037 if the queue is not open for input; 2034 if the message under the cursor is gone.
    pub async fn get(&self, get: GetCall) -> Result<Option<GotMessage>, ClientError> {
        let get = GetCall {
            get: Some(get.get.unwrap_or_default()),
            handle: self.handle,
            ..get
        };
        self.session.send(Call::Get(get), got).await?.wait().await
    }

    /// Looks at a message, where the cursor then stands; `None` if there is none. With `lock` nobody else has it until the
    /// cursor moves, the queue is closed, or it is got.
    ///
    /// # Errors
    /// 2036 if the queue is not open for browsing; 2034 if the message under the cursor is gone.
    pub async fn browse(
        &self,
        step: BrowseStep,
        lock: bool,
    ) -> Result<Option<Message>, ClientError> {
        let browse = BrowseCall {
            handle: self.handle,
            step: step.into(),
            lock,
            ..BrowseCall::default()
        };
        let browsed = self.session.send(Call::Browse(browse), got).await?;
        Ok(browsed.wait().await?.map(|got| got.message))
    }

    /// Frees the message that a browse has locked.
    ///
    /// # Errors
    /// 2209 if there is none.
    pub async fn unlock(&self) -> Result<(), ClientError> {
        let unlock = UnlockCall {
            handle: self.handle,
        };
        let read = |response| matches!(response, Response::Done(_)).then_some(());
        let unlocked = self.session.send(Call::Unlock(unlock), read).await?;
        unlocked.wait().await
    }

    /// Closes the queue.
    ///
    /// # Errors
    /// What ends the session.
    pub async fn close(self) -> Result<(), ClientError> {
        let close = CloseCall {
            handle: self.handle,
        };
        let read = |response| matches!(response, Response::Done(_)).then_some(());
        let closed = self.session.send(Call::Close(close), read).await?;
        closed.wait().await
    }
}
