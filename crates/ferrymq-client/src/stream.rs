//! Answers that come one after another.

use tonic::Streaming;

use crate::ClientError;
use crate::connect::Deadline;

/// Answers of one call, one after another, until there are no more.
#[derive(Debug)]
pub struct Responses<T> {
    stream: Streaming<T>,
    deadline: Option<Deadline>,
}

impl<T> Responses<T> {
    pub(crate) fn new(stream: Streaming<T>, deadline: Option<Deadline>) -> Self {
        Self { stream, deadline }
    }

    /// The next answer; `None` after the last.
    ///
    /// # Errors
    /// What the queue manager said, [`ClientError::Broken`] (2009), or [`ClientError::TimedOut`] when the client's
    /// deadline is reached.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        Deadline::apply(self.deadline, self.stream.message()).await
    }
}
