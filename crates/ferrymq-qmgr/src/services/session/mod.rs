//! A session: a connection of an application. Calls arrive in frames, as many as were ready; each frame is handed to the
//! engine at once, and answers leave in frames as they become ready. Units of work end with the session.

mod calls;
mod consumers;
mod responses;
mod uploads;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ferrymq_engine::{Failure, Reply, Request, RequestId};
use ferrymq_objects::Action;
use ferrymq_proto::v1::{self, session_call};
use ferrymq_types::{ReasonCode, Timestamp};
use futures::{Stream, StreamExt as _};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::answers::{Answers, CallTag, Kind};
use crate::commands;
use crate::handle::{AnswerTo, Asking};
use crate::node::Node;
use crate::services::attributes;
use crate::services::messaging::{Caller, unexpected};
use calls::Asked;
use consumers::Consumer;
use responses::Responses;
use uploads::Uploads;

/// Calls of one session that are under way at once; beyond it the stream is not read (limit L3).
const CALLS_MAX: usize = 4096;

/// What a get counts for among [`CALLS_MAX`]: its answer holds a message.
const GET_WEIGHT: u32 = 16;

/// Calls that are handed to the engine together.
const HANDED_OVER_MAX: usize = 1024;

/// Until when a get waits that waits until it is cancelled.
const FOR_EVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// What both directions of a session know.
#[derive(Debug)]
struct Session {
    node: Arc<Node>,
    caller: Caller,
    answers: Arc<Answers>,
    permits: Semaphore,
    calls: Mutex<Calls>,
    /// No more calls will come.
    read_to_end: AtomicBool,
    /// The client reads no answers any more.
    gone: CancellationToken,
}

/// Calls that are under way.
#[derive(Debug, Default)]
struct Calls {
    /// Not answered yet.
    under_way: usize,
    /// Gets that may wait.
    gets: BTreeMap<u64, RequestId>,
    consumers: BTreeMap<u64, Consumer>,
    /// What inquiries that are under way want, by name.
    inquiries: BTreeMap<u64, Vec<String>>,
}

/// What a call counts for while it is under way.
const fn weight(kind: Kind) -> u32 {
    match kind {
        Kind::Get(_) | Kind::Browse(_) => GET_WEIGHT,
        Kind::Begin(_)
        | Kind::Put
        | Kind::BriefPut
        | Kind::Open
        | Kind::Inquire
        | Kind::Done
        | Kind::Consume => 1,
        Kind::Silent => 0,
    }
}

fn failure(reason: ReasonCode) -> Failure {
    Failure {
        reason,
        object: None,
    }
}

/// Runs a session until its stream ends.
pub(crate) fn run(
    node: Arc<Node>,
    caller: Caller,
    requests: Streaming<v1::SessionRequest>,
) -> impl Stream<Item = Result<v1::SessionResponse, Status>> + Send + use<> {
    let tasks = node.tasks().clone();
    let session = Arc::new(Session {
        node,
        caller,
        answers: Arc::default(),
        permits: Semaphore::new(CALLS_MAX),
        calls: Mutex::default(),
        read_to_end: AtomicBool::new(false),
        gone: CancellationToken::new(),
    });
    tasks.spawn(read(session.clone(), requests));
    Responses::new(session)
}

async fn read(session: Arc<Session>, requests: Streaming<v1::SessionRequest>) {
    let gone = session.gone.clone();
    tokio::select! {
        () = read_calls(&session, requests) => session.end_of_calls(),
        () = gone.cancelled() => {}
    }
}

/// Reads calls until the stream ends, or breaks: what is open is backed out when both directions have let go of the session.
async fn read_calls(session: &Session, mut requests: Streaming<v1::SessionRequest>) {
    let mut uploads = Uploads::default();
    while let Some(Ok(request)) = requests.next().await {
        let mut calls = request.calls.into_iter();
        loop {
            let some: Vec<v1::SessionCall> = calls.by_ref().take(HANDED_OVER_MAX).collect();
            if some.is_empty() {
                break;
            }
            if session.hand_over(some, &mut uploads).await.is_err() {
                return;
            }
        }
    }
}

impl Session {
    fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands calls to the engine, in their order.
    ///
    /// # Errors
    /// The queue manager stops.
    async fn hand_over(
        &self,
        calls: Vec<v1::SessionCall>,
        uploads: &mut Uploads,
    ) -> Result<(), Failure> {
        let mut asked = Vec::with_capacity(calls.len());
        let mut credits = Vec::new();
        let mut refused = Vec::new();
        for call in calls {
            let call_id = call.call_id;
            let Some(call) = call.call else {
                refused.push((call_id, failure(ReasonCode::OPTIONS_ERROR)));
                continue;
            };
            let upload = match call {
                session_call::Call::Put(put) if put.data_length > 0 => {
                    uploads.begin(call_id, put, &self.caller)
                }
                session_call::Call::Chunk(chunk) => uploads.chunk(call_id, chunk.data),
                session_call::Call::Credit(credit) => {
                    credits.push((credit.consumer, credit.credit));
                    continue;
                }
                session_call::Call::Cancel(cancel) => {
                    // What was asked before may be what is cancelled.
                    self.ask(&mut asked, &mut credits).await?;
                    self.cancel(cancel.call_id);
                    continue;
                }
                session_call::Call::Consume(consume) => {
                    self.ask(&mut asked, &mut credits).await?;
                    if let Err(why) = self.consume(call_id, &consume).await {
                        refused.push((call_id, why));
                    }
                    continue;
                }
                session_call::Call::Set(set) => {
                    self.ask(&mut asked, &mut credits).await?;
                    let answer = self.set(&set).await.map(|()| Reply::Done);
                    self.answer(call_id, answer).await;
                    continue;
                }
                session_call::Call::Settle(settle) => {
                    credits.push((settle.consumer, settle.credit));
                    Ok(Some(session_call::Call::Settle(settle)))
                }
                other => Ok(Some(other)),
            };
            let request = match upload {
                Ok(None) => continue,
                Ok(Some(call)) => self.request(call_id, call),
                Err(why) => Err(why),
            };
            match request {
                Ok(request) => asked.push(request),
                Err(why) => refused.push((call_id, why)),
            }
        }
        self.ask(&mut asked, &mut credits).await?;
        self.refuse(refused).await;
        Ok(())
    }

    /// Asks the engine, once there is room for so many answers. Then consumers have their credit: what was settled before is no
    /// longer locked when the next messages are.
    async fn ask(
        &self,
        asked: &mut Vec<Asked>,
        credits: &mut Vec<(u64, u32)>,
    ) -> Result<(), Failure> {
        let mut left = std::mem::take(asked).into_iter().peekable();
        while left.peek().is_some() {
            let mut requests = Vec::with_capacity(left.len());
            let mut weights: u32 = 0;
            let mut puts = false;
            while let Some(next) = left.next_if(|next| {
                weights == 0
                    || weights.saturating_add(weight(next.kind))
                        <= u32::try_from(CALLS_MAX).unwrap_or(u32::MAX)
            }) {
                weights = weights.saturating_add(weight(next.kind));
                puts |= matches!(next.kind, Kind::Put | Kind::BriefPut);
                requests.push(next);
            }
            let permits = self.permits.acquire_many(weights).await;
            permits.map_err(|_| crate::handle::stopping())?.forget();
            let count = u32::try_from(requests.len()).unwrap_or(u32::MAX);
            let connection = &self.caller.connection;
            let permit = connection.ready_for(count, puts).await?;
            let first = connection.request_ids(u64::from(count));
            let asking = self.under_way(first, requests);
            connection.send(asking, Some(permit))?;
        }
        for (consumer, credit) in credits.drain(..) {
            self.add_credit(consumer, credit);
        }
        Ok(())
    }

    fn under_way(&self, first: RequestId, asked: Vec<Asked>) -> Vec<Asking> {
        let mut calls = self.calls();
        calls.under_way = calls.under_way.saturating_add(asked.len());
        let ids = (first.0..).map(RequestId);
        ids.zip(asked)
            .map(|(id, asked)| {
                if matches!(asked.kind, Kind::Get(_)) {
                    calls.gets.insert(asked.call_id, id);
                }
                let tag = CallTag {
                    call_id: asked.call_id,
                    kind: asked.kind,
                };
                Asking {
                    id,
                    request: asked.request,
                    answer: AnswerTo::Session(self.answers.clone(), tag),
                }
            })
            .collect()
    }

    /// Answers calls that cannot be asked.
    async fn refuse(&self, refused: Vec<(u64, Failure)>) {
        for (call_id, why) in refused {
            self.answer(call_id, Err(why)).await;
        }
    }

    /// Answers a call that the engine is not asked, or no more.
    async fn answer(&self, call_id: u64, answer: Result<Reply, Failure>) {
        let tag = CallTag {
            call_id,
            kind: Kind::Done,
        };
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
        {
            let mut calls = self.calls();
            calls.under_way = calls.under_way.saturating_add(1);
        }
        if self.answers.push(tag, answer) {
            self.answers.wake();
        }
    }

    /// `MQSET`: the engine checks it and changes a dynamic queue; a queue that a command defined is altered by one.
    async fn set(&self, call: &v1::SetCall) -> Result<(), Failure> {
        let handle = calls::needed_handle(call.handle)?;
        let attributes = attributes::to_set(&call.attributes)?;
        let request = Request::Set { handle, attributes };
        let connection = &self.caller.connection;
        match connection.ask(request).await? {
            Reply::Done => Ok(()),
            Reply::Alter {
                kind,
                name,
                attributes,
            } => {
                let name = name.to_string();
                let action = Action::Alter {
                    kind,
                    name: name.clone(),
                    attributes,
                };
                let queue_manager = connection.queue_manager().name();
                let altered = commands::alter(&self.node, queue_manager, action).await;
                altered.map_err(|reason| Failure {
                    reason,
                    object: Some(name),
                })
            }
            _ => Err(unexpected()),
        }
    }

    /// A get that waits, or a consumer, ends.
    fn cancel(&self, call_id: u64) {
        let mut calls = self.calls();
        if let Some(id) = calls.gets.get(&call_id) {
            self.caller.connection.cancel(*id);
        }
        self.end_consumer(&mut calls, call_id);
    }

    /// No more calls come: what waits for a message waits for nobody.
    fn end_of_calls(&self) {
        let mut calls = self.calls();
        for id in calls.gets.values() {
            self.caller.connection.cancel(*id);
        }
        let consumers: Vec<u64> = calls.consumers.keys().copied().collect();
        for consumer in consumers {
            self.end_consumer(&mut calls, consumer);
        }
        drop(calls);
        self.read_to_end.store(true, Ordering::Release);
        self.answers.wake();
    }
}

impl Drop for Session {
    /// The answers of what still waits have nowhere to go; the rest is ended by the connection, which goes next.
    fn drop(&mut self) {
        let calls = self.calls.get_mut().unwrap_or_else(PoisonError::into_inner);
        for id in calls.gets.values() {
            self.caller.connection.cancel(*id);
        }
        for consumer in calls.consumers.values() {
            if let Some(id) = consumer.asking {
                self.caller.connection.cancel(id);
            }
        }
    }
}
