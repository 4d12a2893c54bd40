//! An open queue: a handle of a session.

use ferrymq_proto::v1::session_answer::Answer as Response;
use ferrymq_proto::v1::session_call::Call;
use ferrymq_proto::v1::{
    Attribute, BrowseCall, BrowseStep, CloseCall, CloseOption, GetCall, GetRequest, InquireAnswer,
    InquireCall, Message, OpenCall, PutCall, PutRequest, PutResponse, SetCall, UnlockCall,
    get_response,
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
    /// Messages that the selector judged up to this one; 0 without a selector.
    pub examined: u64,
}

/// A message if there was one, and how many messages the selector judged.
fn counted(response: Response) -> Option<(Option<GotMessage>, u64)> {
    let Response::Get(got) = response else {
        return None;
    };
    let warning = ReasonCode::new(got.reason);
    let examined = got.examined;
    match got.result? {
        get_response::Result::Message(message) => {
            let got = GotMessage {
                message,
                warning,
                examined,
            };
            Some((Some(got), examined))
        }
        get_response::Result::None(_) => Some((None, examined)),
    }
}

fn got(response: Response) -> Option<Option<GotMessage>> {
    counted(response).map(|(got, _)| got)
}

impl Session {
    /// As [`Session::get`], and says how many messages the selector judged, also if none satisfies it; 0 without one.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub async fn get_counted(
        &self,
        get: GetRequest,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<(Option<GotMessage>, u64), ClientError> {
        let get = GetCall {
            get: Some(get),
            syncpoint: bytes_of(syncpoint),
            ..GetCall::default()
        };
        self.send(Call::Get(get), counted).await?.wait().await
    }

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

impl Session {
    /// Asks for attributes of the queue manager. `MQINQ`.
    ///
    /// # Errors
    /// 2067 for a name that there is not; what ends the session.
    pub async fn inquire(&self, names: &[&str]) -> Result<InquireAnswer, ClientError> {
        self.ask_attributes(0, names).await
    }

    async fn ask_attributes(
        &self,
        handle: u64,
        names: &[&str],
    ) -> Result<InquireAnswer, ClientError> {
        let inquire = InquireCall {
            handle,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let read = |response| match response {
            Response::Inquire(answer) => Some(answer),
            _ => None,
        };
        self.send(Call::Inquire(inquire), read).await?.wait().await
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
        self.put_message(message, syncpoint, false).await
    }

    /// Puts a message of a group in logical order: `message_flags` say whether it is in a group (`MQMF_MSG_IN_GROUP`, 8) and
    /// whether it ends one (`MQMF_LAST_MSG_IN_GROUP`, 16); the queue says which group and which number.
    ///
    /// # Errors
    /// As [`Queue::put`]; 2241 for a message in no group while one is under way; 2185 and 2245 if it goes on with another
    /// persistence, or in another way in or out of a unit of work, than it began.
    pub async fn put_in_order(
        &self,
        message: Message,
        syncpoint: Option<UnitOfWorkId>,
    ) -> Result<PutResponse, ClientError> {
        self.put_message(message, syncpoint, true).await
    }

    async fn put_message(
        &self,
        message: Message,
        syncpoint: Option<UnitOfWorkId>,
        logical_order: bool,
    ) -> Result<PutResponse, ClientError> {
        self.put_as(PutCall {
            put: Some(PutRequest {
                message: Some(message),
                ..PutRequest::default()
            }),
            syncpoint: bytes_of(syncpoint),
            logical_order,
            ..PutCall::default()
        })
        .await
    }

    /// By which the queue is named in [`PutRequest::context_handle`].
    #[must_use]
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Puts a message with any option: who sets its context, new ids, failure while the queue manager quiesces. The names in
    /// the call do not count, nor does the handle.
    ///
    /// # Errors
    /// As [`Queue::put`]; 2093 to 2098 for a context that cannot be passed or set.
    pub async fn put_as(&self, put: PutCall) -> Result<PutResponse, ClientError> {
        let put = PutCall {
            handle: self.handle,
            brief: false,
            ..put
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

    /// As [`Queue::get`], and says how many messages the selector of the handle judged, also if none satisfies it; 0 without one.
    ///
    /// # Errors
    /// As [`Queue::get`].
    pub async fn get_counted(
        &self,
        get: GetCall,
    ) -> Result<(Option<GotMessage>, u64), ClientError> {
        let get = GetCall {
            get: Some(get.get.unwrap_or_default()),
            handle: self.handle,
            ..get
        };
        let answer = self.session.send(Call::Get(get), counted).await?;
        answer.wait().await
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
            step: step.into(),
            lock,
            ..BrowseCall::default()
        };
        self.browse_with(browse).await
    }

    /// As [`Queue::browse`], with all options of the call. The handle in `browse` does not count.
    ///
    /// # Errors
    /// As [`Queue::browse`]; 2259 if the order changes on the way; 2247 if a message other than the next one of its group is
    /// asked for.
    pub async fn browse_with(&self, browse: BrowseCall) -> Result<Option<Message>, ClientError> {
        let browse = BrowseCall {
            handle: self.handle,
            ..browse
        };
        let browsed = self.session.send(Call::Browse(browse), got).await?;
        Ok(browsed.wait().await?.map(|got| got.message))
    }

    /// Asks for attributes by the names that programs know; with none, for all. `MQINQ`.
    ///
    /// # Errors
    /// 2038 if the queue is not open for inquire; 2067 for a name that there is not.
    pub async fn inquire(&self, names: &[&str]) -> Result<InquireAnswer, ClientError> {
        self.session.ask_attributes(self.handle, names).await
    }

    /// Sets attributes. `MQSET`. Of a queue that a command defined that is a change of its definition.
    ///
    /// # Errors
    /// 2040 if the queue is not open for set; 2067 for an attribute that cannot be set, 2068 for one that the queue has not, a
    /// reason of its own for each value that is not allowed; 9002 and others if the definitions cannot be changed now.
    pub async fn set(&self, attributes: Vec<Attribute>) -> Result<(), ClientError> {
        let set = SetCall {
            handle: self.handle,
            attributes,
        };
        let read = |response| matches!(response, Response::Done(_)).then_some(());
        self.session.send(Call::Set(set), read).await?.wait().await
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

    /// Closes the queue. Returns [`ReasonCode::NONE`], or the warning 2241 if it leaves a group incomplete.
    ///
    /// # Errors
    /// What ends the session.
    pub async fn close(self) -> Result<ReasonCode, ClientError> {
        self.close_with(CloseOption::Unspecified).await
    }

    /// Closes the queue, and says what becomes of it if it is a dynamic one. Returns as [`Queue::close`].
    ///
    /// # Errors
    /// 2045 if the option does not go with the queue, 2055 if messages are in its way: the queue is open then until the session
    /// ends; what ends the session.
    pub async fn close_with(self, option: CloseOption) -> Result<ReasonCode, ClientError> {
        let close = CloseCall {
            handle: self.handle,
            option: option.into(),
        };
        let read = |response| match response {
            Response::Done(done) => Some(ReasonCode::new(done.reason)),
            _ => None,
        };
        let closed = self.session.send(Call::Close(close), read).await?;
        closed.wait().await
    }
}
