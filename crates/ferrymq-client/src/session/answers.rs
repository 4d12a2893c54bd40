//! Answers of the queue manager, handed to those who wait for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio::sync::{mpsc, oneshot};
use tonic::Streaming;

use ferrymq_proto::v1::session_answer::Answer as Response;
use ferrymq_proto::v1::{
    ChunkAnswer, Deliveries, Delivery, GetResponse, PutsAnswer, SessionAnswer, SessionResponse,
    get_response,
};
use ferrymq_types::MessageId;

use super::{Line, refused};
use crate::ClientError;

/// What a consumer is sent.
pub(super) type Delivered = Result<Delivery, ClientError>;

/// Who waits for an answer.
#[derive(Debug)]
enum Waiter {
    Once(oneshot::Sender<Result<Response, ClientError>>),
    /// Bounded by the consumer's credit.
    Consumer(mpsc::UnboundedSender<Delivered>),
}

/// Data that arrives in chunks.
#[derive(Debug)]
struct Download {
    whole: Whole,
    length: usize,
    data: BytesMut,
}

#[derive(Debug)]
enum Whole {
    Get(GetResponse),
    Delivery(Delivery),
}

#[derive(Debug)]
enum State {
    Open(BTreeMap<u64, Waiter>),
    Closed(ClientError),
}

/// Who waits for which answer.
#[derive(Debug)]
pub(super) struct Waiters {
    state: Mutex<State>,
}

impl Default for Waiters {
    fn default() -> Self {
        Self {
            state: Mutex::new(State::Open(BTreeMap::new())),
        }
    }
}

impl Waiters {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait_for_answer(
        &self,
        call_id: u64,
        sender: oneshot::Sender<Result<Response, ClientError>>,
    ) -> Result<(), ClientError> {
        self.insert(call_id, Waiter::Once(sender))
    }

    pub(super) fn consume(
        &self,
        call_id: u64,
        sender: mpsc::UnboundedSender<Delivered>,
    ) -> Result<(), ClientError> {
        self.insert(call_id, Waiter::Consumer(sender))
    }

    fn insert(&self, call_id: u64, waiter: Waiter) -> Result<(), ClientError> {
        match &mut *self.state() {
            State::Open(waiting) => {
                waiting.insert(call_id, waiter);
                Ok(())
            }
            State::Closed(error) => Err(error.clone()),
        }
    }

    fn close(&self, end: &ClientError) {
        let before = core::mem::replace(&mut *self.state(), State::Closed(end.clone()));
        if let State::Open(waiting) = before {
            for waiter in waiting.into_values() {
                // Whoever waited may have given up.
                match waiter {
                    Waiter::Once(sender) => drop(sender.send(Err(end.clone()))),
                    Waiter::Consumer(sender) => drop(sender.send(Err(end.clone()))),
                }
            }
        }
    }
}

/// Gives each answer to the one who waits for it, until the stream ends.
pub(super) async fn hand_out(mut answers: Streaming<SessionResponse>, line: Arc<Line>) {
    let mut downloads = BTreeMap::new();
    let end = loop {
        match answers.message().await {
            Ok(Some(frame)) => {
                if let Err(error) = hand_out_frame(frame, &line.waiters, &mut downloads) {
                    break error;
                }
            }
            Ok(None) => {
                break ClientError::Broken("the queue manager ended the session".to_owned());
            }
            Err(status) => break ClientError::from_status(&status, None),
        }
    };
    line.waiters.close(&end);
    line.calls.close();
}

type Downloads = BTreeMap<(u64, u64), Download>;

fn hand_out_frame(
    frame: SessionResponse,
    waiters: &Waiters,
    downloads: &mut Downloads,
) -> Result<(), ClientError> {
    let mut state = waiters.state();
    let waiting = match &mut *state {
        State::Open(waiting) => waiting,
        State::Closed(error) => return Err(error.clone()),
    };
    for SessionAnswer { call_id, answer } in frame.answers {
        let answer = answer.ok_or(ClientError::UnexpectedAnswer)?;
        match answer {
            Response::Puts(puts) => hand_out_puts(call_id, &puts, waiting)?,
            Response::Deliveries(deliveries) => {
                deliver(call_id, deliveries, waiting, downloads)?;
            }
            Response::Chunk(chunk) => gather(call_id, &chunk, waiting, downloads)?,
            Response::Get(mut get) if get.data_length > 0 => {
                let length = core::mem::take(&mut get.data_length);
                begin(downloads, (call_id, 0), length, Whole::Get(get));
            }
            answer => answered(call_id, answer, waiting)?,
        }
    }
    Ok(())
}

fn begin(downloads: &mut Downloads, key: (u64, u64), length: u32, whole: Whole) {
    let length = length as usize;
    let download = Download {
        whole,
        length,
        data: BytesMut::with_capacity(length),
    };
    downloads.insert(key, download);
}

fn answered(
    call_id: u64,
    answer: Response,
    waiting: &mut BTreeMap<u64, Waiter>,
) -> Result<(), ClientError> {
    match waiting.remove(&call_id) {
        // Whoever waited may have given up.
        Some(Waiter::Once(sender)) => drop(sender.send(Ok(answer))),
        Some(Waiter::Consumer(sender)) => {
            let Response::Error(error) = answer else {
                return Err(ClientError::UnexpectedAnswer);
            };
            drop(sender.send(Err(refused(error))));
        }
        None => return Err(ClientError::UnexpectedAnswer),
    }
    Ok(())
}

/// Answers of puts with consecutive ids.
fn hand_out_puts(
    first: u64,
    puts: &PutsAnswer,
    waiting: &mut BTreeMap<u64, Waiter>,
) -> Result<(), ClientError> {
    let ids = puts.message_ids.chunks(MessageId::LENGTH);
    for (call_id, id) in (first..).zip(ids) {
        let one = PutsAnswer {
            message_ids: puts.message_ids.slice_ref(id),
        };
        answered(call_id, Response::Puts(one), waiting)?;
    }
    Ok(())
}

fn deliver(
    call_id: u64,
    deliveries: Deliveries,
    waiting: &BTreeMap<u64, Waiter>,
    downloads: &mut Downloads,
) -> Result<(), ClientError> {
    let Some(Waiter::Consumer(sender)) = waiting.get(&call_id) else {
        return Err(ClientError::UnexpectedAnswer);
    };
    for mut delivery in deliveries.deliveries {
        if delivery.data_length == 0 {
            // Whoever consumed may have given up: what is not settled is backed out with the session.
            drop(sender.send(Ok(delivery)));
            continue;
        }
        let length = core::mem::take(&mut delivery.data_length);
        let key = (call_id, delivery.delivery);
        begin(downloads, key, length, Whole::Delivery(delivery));
    }
    Ok(())
}

/// The next part of a message's data.
fn gather(
    call_id: u64,
    chunk: &ChunkAnswer,
    waiting: &mut BTreeMap<u64, Waiter>,
    downloads: &mut Downloads,
) -> Result<(), ClientError> {
    let key = (call_id, chunk.delivery);
    let download = downloads
        .get_mut(&key)
        .ok_or(ClientError::UnexpectedAnswer)?;
    download.data.extend_from_slice(&chunk.data);
    if download.data.len() < download.length {
        return Ok(());
    }
    let download = downloads.remove(&key);
    let Download { whole, data, .. } = download.ok_or(ClientError::UnexpectedAnswer)?;
    let data = data.freeze();
    match whole {
        Whole::Get(mut get) => {
            if let Some(get_response::Result::Message(message)) = &mut get.result {
                message.data = data;
            }
            answered(call_id, Response::Get(get), waiting)
        }
        Whole::Delivery(mut delivery) => {
            if let Some(message) = &mut delivery.message {
                message.data = data;
            }
            let Some(Waiter::Consumer(sender)) = waiting.get(&call_id) else {
                return Err(ClientError::UnexpectedAnswer);
            };
            // As in `deliver`.
            drop(sender.send(Ok(delivery)));
            Ok(())
        }
    }
}
