//! Answers on their way to the client, in frames: as many as are there, up to a size. Data of large messages leaves in chunks
//! between other answers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use ferrymq_engine::{Failure, Got, Reply};
use ferrymq_proto::status::CallError;
use ferrymq_proto::v1::{self, get_response, session_answer};
use ferrymq_types::ReasonCode;
use futures::Stream;
use tonic::Status;

use super::{Session, weight};
use crate::answers::{Answered, CallTag, Kind};
use crate::conversion::Reading;
use crate::services::messaging::{put_response, unexpected};
use crate::services::{attributes, call_error};

/// Bytes of a frame that are enough: what is left goes into the next one.
const FRAME_BYTES: usize = 128 * 1024;

/// Data of a message above this leaves in chunks of this size, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;

/// Roughly what an answer takes beside data, in bytes.
const ANSWER_BYTES: usize = 128;

/// What was asked for, of a queue or of the queue manager.
fn inquired(reply: Reply, names: &[String]) -> Result<v1::InquireAnswer, Failure> {
    match reply {
        Reply::Inquired(queue) => attributes::of_queue(queue, names),
        Reply::InquiredQueueManager(of) => attributes::of_queue_manager(&of, names),
        _ => Err(unexpected()),
    }
}

/// The answers of a session, as a stream of frames.
pub(super) struct Responses {
    session: Arc<Session>,
    ready: VecDeque<Answered>,
    taken: Vec<Answered>,
    /// Data that leaves in chunks, in turn.
    chunks: VecDeque<Chunks>,
}

/// What is left of the data of a message.
struct Chunks {
    call_id: u64,
    delivery: u64,
    data: Bytes,
}

/// A frame that is being filled.
#[derive(Default)]
struct Frame {
    answers: Vec<v1::SessionAnswer>,
    bytes: usize,
    /// Message ids of brief puts with consecutive call ids, the first of them, and the next.
    puts: Option<(u64, u64, BytesMut)>,
}

impl Frame {
    fn push(&mut self, call_id: u64, answer: session_answer::Answer, bytes: usize) {
        self.end_puts();
        self.bytes = self
            .bytes
            .saturating_add(bytes)
            .saturating_add(ANSWER_BYTES);
        self.answers.push(v1::SessionAnswer {
            call_id,
            answer: Some(answer),
        });
    }

    fn push_put(&mut self, call_id: u64, message_id: &[u8; 24]) {
        self.bytes = self.bytes.saturating_add(message_id.len());
        if let Some((_, next, ids)) = &mut self.puts
            && *next == call_id
        {
            *next = call_id.saturating_add(1);
            ids.extend_from_slice(message_id);
            return;
        }
        self.end_puts();
        let ids = BytesMut::from(&message_id[..]);
        self.puts = Some((call_id, call_id.saturating_add(1), ids));
    }

    fn end_puts(&mut self) {
        if let Some((first, _, ids)) = self.puts.take() {
            let message_ids = ids.freeze();
            self.answers.push(v1::SessionAnswer {
                call_id: first,
                answer: Some(session_answer::Answer::Puts(v1::PutsAnswer { message_ids })),
            });
        }
    }
}

impl Responses {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            ready: VecDeque::new(),
            taken: Vec::new(),
            chunks: VecDeque::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.chunks.is_empty()
    }

    fn frame(&mut self) -> v1::SessionResponse {
        let mut frame = Frame::default();
        if let Some(mut chunks) = self.chunks.pop_front() {
            let data = chunks.data.split_to(chunks.data.len().min(CHUNK_BYTES));
            let bytes = data.len();
            let chunk = v1::ChunkAnswer {
                data,
                delivery: chunks.delivery,
            };
            frame.push(chunks.call_id, session_answer::Answer::Chunk(chunk), bytes);
            if !chunks.data.is_empty() {
                self.chunks.push_back(chunks);
            }
        }
        let mut answered = 0;
        let mut weights: usize = 0;
        while frame.bytes < FRAME_BYTES
            && let Some((tag, reply)) = self.ready.pop_front()
        {
            if self.answer(&mut frame, tag, reply) {
                weights = weights.saturating_add(weight(tag.kind) as usize);
                answered += 1;
            }
        }
        frame.end_puts();
        if answered > 0 {
            let mut calls = self.session.calls();
            calls.under_way = calls.under_way.saturating_sub(answered);
            drop(calls);
            self.session.permits.add_permits(weights);
        }
        v1::SessionResponse {
            answers: frame.answers,
        }
    }

    /// Puts an answer into a frame. Says whether its call is over.
    fn answer(&mut self, frame: &mut Frame, tag: CallTag, reply: Result<Reply, Failure>) -> bool {
        let call_id = tag.call_id;
        match (tag.kind, reply) {
            (Kind::Silent, _) => return true,
            (Kind::BriefPut, Ok(Reply::Put(done))) if done.warning == ReasonCode::NONE => {
                frame.push_put(call_id, done.message_id.as_bytes());
                return true;
            }
            (Kind::Consume, Ok(Reply::GotMany(got))) => {
                self.session.delivered(call_id, got.len());
                self.deliveries(frame, call_id, got);
                return false;
            }
            (Kind::Consume, reply) => {
                if !self.session.consumer_ended(call_id) {
                    return false;
                }
                let why = reply.err().unwrap_or_else(unexpected);
                self.refuse(frame, call_id, why);
                return true;
            }
            (Kind::Get(reading), reply) => {
                self.session.calls().gets.remove(&call_id);
                self.got(frame, call_id, reply, reading);
                return true;
            }
            (Kind::Browse(reading), reply) => {
                // A message that was looked at travels as one that was got.
                let reply = reply.map(|reply| match reply {
                    Reply::Browsed(browsed) => Reply::Got(Got {
                        message: browsed.message,
                        backout_count: browsed.backout_count,
                        sequence: browsed.cursor.sequence,
                        warning: ReasonCode::NONE,
                        examined: browsed.examined,
                        presentation: browsed.presentation,
                    }),
                    other => other,
                });
                self.got(frame, call_id, reply, reading);
                return true;
            }
            (Kind::Inquire, reply) => {
                let names = self.session.calls().inquiries.remove(&call_id);
                match reply.and_then(|reply| inquired(reply, &names.unwrap_or_default())) {
                    Ok(answer) => {
                        let bytes = answer.attributes.len().saturating_mul(ANSWER_BYTES);
                        frame.push(call_id, session_answer::Answer::Inquire(answer), bytes);
                    }
                    Err(why) => self.refuse(frame, call_id, why),
                }
            }
            (_, Err(why)) => self.refuse(frame, call_id, why),
            (Kind::Begin(id), Ok(_)) => {
                let unit_of_work_id = Bytes::copy_from_slice(id.as_bytes());
                let begin = v1::BeginAnswer { unit_of_work_id };
                frame.push(call_id, session_answer::Answer::Begin(begin), 0);
            }
            (Kind::Put | Kind::BriefPut, Ok(reply)) => match put_response(reply) {
                Ok(put) => frame.push(call_id, session_answer::Answer::Put(put), ANSWER_BYTES),
                Err(why) => self.refuse(frame, call_id, why),
            },
            (Kind::Done, Ok(Reply::Closed { warning })) => {
                let reason = warning.get();
                let done = v1::DoneAnswer { reason };
                frame.push(call_id, session_answer::Answer::Done(done), 0);
            }
            (Kind::Done, Ok(Reply::Done)) => {
                let done = v1::DoneAnswer { reason: 0 };
                frame.push(call_id, session_answer::Answer::Done(done), 0);
            }
            (Kind::Open, Ok(Reply::Opened(opened))) => {
                let open = v1::OpenAnswer {
                    handle: opened.handle.0,
                    resolved_queue: opened.resolved_queue,
                    resolved_queue_manager: opened.resolved_queue_manager,
                };
                frame.push(call_id, session_answer::Answer::Open(open), ANSWER_BYTES);
            }
            (Kind::Done | Kind::Open, Ok(_)) => self.refuse(frame, call_id, unexpected()),
        }
        true
    }

    fn refuse(&self, frame: &mut Frame, call_id: u64, why: Failure) {
        let name = self.session.caller.connection.queue_manager().name();
        let error = error(call_error(why, name));
        let bytes = error.message.len();
        frame.push(call_id, session_answer::Answer::Error(error), bytes);
    }

    fn got(
        &mut self,
        frame: &mut Frame,
        call_id: u64,
        reply: Result<Reply, Failure>,
        reading: Reading,
    ) {
        let mut response = match self.session.caller.got(reply, reading) {
            Ok(response) => response,
            Err(why) => return self.refuse(frame, call_id, why),
        };
        let mut bytes = 0;
        if let Some(get_response::Result::Message(message)) = &mut response.result {
            let properties = ferrymq_proto::properties_frame_bytes(message);
            bytes = message.data.len().saturating_add(properties);
            if let Some((length, data)) = large(message) {
                response.data_length = length;
                bytes = properties;
                self.chunks.push_back(Chunks {
                    call_id,
                    delivery: 0,
                    data,
                });
            }
        }
        frame.push(call_id, session_answer::Answer::Get(response), bytes);
    }

    fn deliveries(&mut self, frame: &mut Frame, call_id: u64, got: Vec<Got>) {
        let mut bytes: usize = 0;
        let mut deliveries = Vec::with_capacity(got.len());
        for got in got {
            let delivery = got.sequence.get();
            let examined = got.examined;
            let mut message = self.session.caller.message(&got);
            let mut data_length = 0;
            if let Some((length, data)) = large(&mut message) {
                data_length = length;
                self.chunks.push_back(Chunks {
                    call_id,
                    delivery,
                    data,
                });
            }
            bytes = bytes
                .saturating_add(message.data.len())
                .saturating_add(ferrymq_proto::properties_frame_bytes(&message))
                .saturating_add(ANSWER_BYTES);
            deliveries.push(v1::Delivery {
                delivery,
                message: Some(message),
                data_length,
                examined,
            });
        }
        let deliveries = v1::Deliveries { deliveries };
        frame.push(
            call_id,
            session_answer::Answer::Deliveries(deliveries),
            bytes,
        );
    }
}

/// Takes the data out of a message that is to leave in chunks.
fn large(message: &mut v1::Message) -> Option<(u32, Bytes)> {
    if message.data.len() <= CHUNK_BYTES {
        return None;
    }
    let length = u32::try_from(message.data.len()).ok()?;
    Some((length, std::mem::take(&mut message.data)))
}

fn error(e: CallError) -> v1::Error {
    v1::Error {
        completion_code: 2,
        reason: e.reason.get(),
        reason_name: e.reason.name().unwrap_or_default().to_owned(),
        object: e.object.unwrap_or_default(),
        queue_manager: e.queue_manager.unwrap_or_default(),
        message: e.text,
    }
}

impl Stream for Responses {
    type Item = Result<v1::SessionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.is_empty() {
                let this = &mut *self;
                this.session.answers.take(&mut this.taken, cx.waker());
                this.ready.extend(this.taken.drain(..));
            }
            if self.is_empty() {
                let over = self.session.read_to_end.load(Ordering::Acquire)
                    && self.session.calls().under_way == 0;
                return if over {
                    Poll::Ready(None)
                } else {
                    Poll::Pending
                };
            }
            let frame = self.frame();
            // What went to nobody is no frame.
            if !frame.answers.is_empty() {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }
}

impl Drop for Responses {
    fn drop(&mut self) {
        self.session.gone.cancel();
    }
}
