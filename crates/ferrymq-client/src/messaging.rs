//! Calls that stand alone: put, get, browse, and what became of a unit of work.

use ferrymq_proto::v1::{
    BrowseRequest, BrowseResponse, GetRequest, GetUnitOfWorkRequest, GetUnitOfWorkResponse,
    Message, PutRequest, PutResponse, get_response,
};

use crate::{Client, ClientError, Responses};

impl Client {
    /// Puts one message outside a unit of work. The answer comes when a persistent message is durable.
    ///
    /// With a `unit_of_work_id` the put can be repeated after a lost answer: it takes effect once.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the queue manager's reason, such as 2053 for a full queue.
    /// After [`ClientError::Broken`] and [`ClientError::TimedOut`] the message may be on the queue.
    pub async fn put(&self, put: PutRequest) -> Result<PutResponse, ClientError> {
        let request = self.request(put);
        let mut messaging = self.messaging();
        Box::pin(self.answer(messaging.put(request))).await
    }

    /// Gets one message outside a unit of work; `None` if there is none within the wait (2033).
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the queue manager's reason, such as 2016 for GET(DISABLED).
    /// After [`ClientError::Broken`] and [`ClientError::TimedOut`] a message may be gone: use a [`crate::Session`] and
    /// a unit of work where that matters.
    pub async fn get(&self, get: GetRequest) -> Result<Option<Message>, ClientError> {
        let request = self.request(get);
        let mut messaging = self.messaging();
        match self.answer(messaging.get(request)).await?.result {
            Some(get_response::Result::Message(message)) => Ok(Some(message)),
            Some(get_response::Result::None(_)) => Ok(None),
            None => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// The messages of a queue in the order of delivery. None is removed.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the queue manager's reason.
    pub async fn browse(
        &self,
        browse: BrowseRequest,
    ) -> Result<Responses<BrowseResponse>, ClientError> {
        let mut messaging = self.messaging();
        let stream = self.answer(messaging.browse(browse)).await?;
        Ok(Responses::new(stream, self.deadline()))
    }

    /// How a unit of work ended. Outcomes are kept for at least ten minutes, also over a restart.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the queue manager's reason.
    pub async fn get_unit_of_work(
        &self,
        of: GetUnitOfWorkRequest,
    ) -> Result<GetUnitOfWorkResponse, ClientError> {
        let request = self.request(of);
        let mut messaging = self.messaging();
        self.answer(messaging.get_unit_of_work(request)).await
    }
}
