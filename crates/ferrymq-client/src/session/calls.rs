//! Calls on their way to the queue manager: what is there travels in one frame; data of large messages in chunks between
//! other calls.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use ferrymq_proto::v1::session_call::Call;
use ferrymq_proto::v1::{ChunkCall, PutCall, SessionCall, SessionRequest};
use tokio::sync::Semaphore;
use tokio_stream::Stream;

use super::Line;
use crate::ClientError;

/// Calls that wait for their turn to be sent; more make the caller wait.
const CALLS_QUEUED_MAX: usize = 4096;

/// Bytes of data that are enough for a frame.
const FRAME_BYTES: usize = 128 * 1024;

/// Data above this travels in chunks of this size, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;

#[derive(Debug, Default)]
struct State {
    queued: VecDeque<SessionCall>,
    last_id: u64,
    waker: Option<Waker>,
    closed: bool,
}

/// Calls that wait to be sent.
#[derive(Debug)]
pub(super) struct Calls {
    state: Mutex<State>,
    room: Semaphore,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            room: Semaphore::new(CALLS_QUEUED_MAX),
        }
    }
}

impl Calls {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more call can be queued.
    pub(super) async fn room(&self) {
        // Never closed.
        if let Ok(permit) = self.room.acquire().await {
            permit.forget();
        }
    }

    /// Queues a call, for which there is room. `prepare` is given its id before it can be answered.
    pub(super) fn push(
        &self,
        call: Call,
        prepare: impl FnOnce(u64) -> Result<(), ClientError>,
    ) -> Result<u64, ClientError> {
        let mut state = self.state();
        state.last_id = state.last_id.saturating_add(1);
        let call_id = state.last_id;
        if let Err(error) = prepare(call_id) {
            drop(state);
            self.room.add_permits(1);
            return Err(error);
        }
        Self::queue(state, call_id, call);
        Ok(call_id)
    }

    /// Queues a call that belongs to another one and has no answer.
    pub(super) fn push_about(&self, call_id: u64, call: Call) {
        // It takes room like others, and does not wait for it: there are no more of these than of messages.
        if let Ok(permit) = self.room.try_acquire() {
            permit.forget();
        }
        Self::queue(self.state(), call_id, call);
    }

    fn queue(mut state: MutexGuard<'_, State>, call_id: u64, call: Call) {
        state.queued.push_back(SessionCall {
            call_id,
            call: Some(call),
        });
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// No more calls come.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }
}

/// The calls of a session as a stream of frames.
pub(super) struct Frames {
    line: Arc<Line>,
    uploads: VecDeque<Upload>,
}

/// What is left of the data of a message.
struct Upload {
    call_id: u64,
    data: Bytes,
}

impl Frames {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Self {
            line,
            uploads: VecDeque::new(),
        }
    }

    /// The next frame; empty if there is nothing to send.
    fn frame(&mut self, state: &mut State) -> Vec<SessionCall> {
        let mut frame = Vec::new();
        let mut bytes: usize = 0;
        if let Some(mut upload) = self.uploads.pop_front() {
            let data = upload.data.split_to(upload.data.len().min(CHUNK_BYTES));
            bytes = data.len();
            frame.push(SessionCall {
                call_id: upload.call_id,
                call: Some(Call::Chunk(ChunkCall { data })),
            });
            if !upload.data.is_empty() {
                self.uploads.push_back(upload);
            }
        }
        while bytes < FRAME_BYTES
            && let Some(mut call) = state.queued.pop_front()
        {
            match &mut call.call {
                Some(Call::Put(put)) => {
                    bytes = bytes.saturating_add(self.split(call.call_id, put));
                }
                // A unit of work ends when the data of its puts is there.
                Some(Call::Commit(_) | Call::Back(_)) if !self.uploads.is_empty() => {
                    state.queued.push_front(call);
                    break;
                }
                Some(_) | None => {}
            }
            frame.push(call);
        }
        frame
    }

    /// Takes the data out of a put that is to travel in chunks. Returns the bytes that stay.
    fn split(&mut self, call_id: u64, put: &mut PutCall) -> usize {
        let message = put.put.as_mut().and_then(|put| put.message.as_mut());
        let Some(message) = message else { return 0 };
        let length = message.data.len();
        let properties = ferrymq_proto::properties_frame_bytes(message);
        match u32::try_from(length) {
            Ok(data_length) if length > CHUNK_BYTES => {
                put.data_length = data_length;
                let data = std::mem::take(&mut message.data);
                self.uploads.push_back(Upload { call_id, data });
                properties
            }
            _ => length.saturating_add(properties),
        }
    }
}

impl Stream for Frames {
    type Item = SessionRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionRequest>> {
        let this = &mut *self;
        let line = this.line.clone();
        let mut state = line.calls.state();
        let before = state.queued.len();
        let calls = this.frame(&mut state);
        if calls.is_empty() {
            if state.closed {
                return Poll::Ready(None);
            }
            match &mut state.waker {
                Some(known) => known.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        let taken = before.saturating_sub(state.queued.len());
        drop(state);
        line.calls.room.add_permits(taken);
        Poll::Ready(Some(SessionRequest { calls }))
    }
}

#[cfg(test)]
mod tests {
    use ferrymq_proto::v1::{CommitCall, Message, PutRequest};

    use super::*;

    fn put(length: usize) -> Call {
        Call::Put(PutCall {
            put: Some(PutRequest {
                message: Some(Message {
                    data: vec![7; length].into(),
                    ..Message::default()
                }),
                ..PutRequest::default()
            }),
            ..PutCall::default()
        })
    }

    fn kinds(calls: &[SessionCall]) -> Vec<&'static str> {
        calls
            .iter()
            .map(|call| match &call.call {
                Some(Call::Put(put)) if put.data_length > 0 => "large put",
                Some(Call::Put(_)) => "put",
                Some(Call::Chunk(_)) => "chunk",
                Some(Call::Commit(_)) => "commit",
                _ => "other",
            })
            .collect()
    }

    #[test]
    fn large_data_travels_between_other_calls_and_before_the_end_of_its_unit_of_work() {
        let line = Arc::<Line>::default();
        let mut frames = Frames::new(line.clone());
        let ready = |_| Ok(());
        for call in [
            put(3 * CHUNK_BYTES),
            put(10),
            Call::Commit(CommitCall::default()),
        ] {
            line.calls.push(call, ready).unwrap();
        }
        let mut next = || kinds(&frames.frame(&mut line.calls.state()));
        assert_eq!(next(), ["large put", "put"]);
        line.calls.push(put(10), ready).unwrap();
        assert_eq!(next(), ["chunk"]);
        assert_eq!(next(), ["chunk"]);
        assert_eq!(next(), ["chunk"]);
        assert_eq!(next(), ["commit", "put"]);
        assert!(next().is_empty());
    }
}
