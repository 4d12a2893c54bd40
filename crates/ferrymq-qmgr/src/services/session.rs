//! A session: pipelined requests on one stream, each answered by its id, with units of work that end with the stream.

use std::sync::Arc;

use bytes::Bytes;
use ferrymq_engine::{Failure, Reply, Request as Ask};
use ferrymq_proto::status::CallError;
use ferrymq_proto::v1::{self, session_request, session_response};
use ferrymq_types::{ReasonCode, UnitOfWorkId};
use futures::{Stream, StreamExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::TaskTracker;
use tonic::{Status, Streaming};

use crate::ids;
use crate::services::call_error;
use crate::services::messaging::{Caller, put_response, unexpected, unit_of_work_id};

/// Requests of one session that are under way at once; beyond it the stream is not read (limit L3).
const PIPELINE_MAX: usize = 256;

/// Runs a session until its stream ends.
pub(crate) fn run(
    caller: Caller,
    requests: Streaming<v1::SessionRequest>,
    tasks: &TaskTracker,
) -> impl Stream<Item = Result<v1::SessionResponse, Status>> + Send + use<> {
    let (responses, receiver) = mpsc::channel(PIPELINE_MAX);
    tasks.spawn(read(Arc::new(caller), requests, responses));
    ReceiverStream::new(receiver)
}

async fn read(
    caller: Arc<Caller>,
    mut requests: Streaming<v1::SessionRequest>,
    responses: mpsc::Sender<Result<v1::SessionResponse, Status>>,
) {
    let permits = Arc::new(Semaphore::new(PIPELINE_MAX));
    loop {
        let permit = tokio::select! {
            permit = permits.clone().acquire_owned() => permit,
            () = responses.closed() => return,
        };
        let Ok(permit) = permit else { return };
        let next = tokio::select! {
            next = requests.next() => next,
            () = responses.closed() => return,
        };
        // An error is a broken stream: what is open is backed out when the last request lets go of the connection.
        let Some(Ok(mut request)) = next else { return };
        let id = request.request_id;
        let named = name_unit_of_work(&mut request);
        let kind = Kind::of(&request);
        // Requests reach the engine in the order of the stream; only the wait for the answer is apart.
        let started = match named.and_then(|()| engine_request(&caller, request)) {
            Ok(ask) => caller.connection.start(ask).await,
            Err(failure) => Err(failure),
        };
        let caller = caller.clone();
        let responses = responses.clone();
        tokio::spawn(async move {
            let reply = match started {
                Ok((asked, answer)) => {
                    tokio::select! {
                        reply = answer => {
                            asked.answered();
                            reply.unwrap_or_else(|_| Err(crate::handle::stopping()))
                        }
                        // The stream is gone: dropping `asked` cancels a waiting get.
                        () = responses.closed() => return,
                    }
                }
                Err(failure) => Err(failure),
            };
            let response = response(&caller, kind, reply);
            let response = response.unwrap_or_else(|failure| {
                session_response::Response::Error(error(call_error(
                    failure,
                    caller.connection.queue_manager().name(),
                )))
            });
            let response = v1::SessionResponse {
                request_id: id,
                response: Some(response),
            };
            // A failure means that the client is gone.
            drop(responses.send(Ok(response)).await);
            drop(permit);
        });
    }
}

/// What kind of response a request has.
#[derive(Clone, Copy)]
enum Kind {
    Begin(Option<UnitOfWorkId>),
    Put,
    Get,
    Commit,
    Back,
    Unknown,
}

impl Kind {
    fn of(request: &v1::SessionRequest) -> Self {
        match &request.request {
            Some(session_request::Request::Begin(b)) => {
                Self::Begin(unit_of_work_id(&b.unit_of_work_id).ok().flatten())
            }
            Some(session_request::Request::Put(_)) => Self::Put,
            Some(session_request::Request::Get(_)) => Self::Get,
            Some(session_request::Request::Commit(_)) => Self::Commit,
            Some(session_request::Request::Back(_)) => Self::Back,
            None => Self::Unknown,
        }
    }
}

fn engine_request(caller: &Caller, request: v1::SessionRequest) -> Result<Ask, Failure> {
    let bad = |reason| Failure {
        reason,
        object: None,
    };
    let needed = |id: &[u8]| {
        unit_of_work_id(id)?.ok_or(Failure {
            reason: ReasonCode::UOW_NOT_AVAILABLE,
            object: None,
        })
    };
    match request
        .request
        .ok_or_else(|| bad(ReasonCode::OPTIONS_ERROR))?
    {
        session_request::Request::Begin(begin) => Ok(Ask::Begin {
            id: needed(&begin.unit_of_work_id)?,
        }),
        session_request::Request::Put(put) => {
            let request = put.put.ok_or_else(|| bad(ReasonCode::MD_ERROR))?;
            caller.put(request, unit_of_work_id(&put.syncpoint)?)
        }
        session_request::Request::Get(get) => {
            let request = get.get.ok_or_else(|| bad(ReasonCode::OPTIONS_ERROR))?;
            caller.get(&request, unit_of_work_id(&get.syncpoint)?, None)
        }
        session_request::Request::Commit(commit) => Ok(Ask::Commit {
            id: needed(&commit.unit_of_work_id)?,
        }),
        session_request::Request::Back(back) => Ok(Ask::BackOut {
            id: needed(&back.unit_of_work_id)?,
        }),
    }
}

fn response(
    caller: &Caller,
    kind: Kind,
    reply: Result<Reply, Failure>,
) -> Result<session_response::Response, Failure> {
    Ok(match kind {
        Kind::Begin(id) => {
            reply?;
            let id = id.ok_or_else(unexpected)?;
            session_response::Response::Begin(v1::BeginResponse {
                unit_of_work_id: Bytes::copy_from_slice(id.as_bytes()),
            })
        }
        Kind::Put => session_response::Response::Put(put_response(reply?)?),
        Kind::Get => session_response::Response::Get(caller.got(reply)?),
        Kind::Commit => {
            reply?;
            session_response::Response::Commit(v1::CommitResponse {})
        }
        Kind::Back => {
            reply?;
            session_response::Response::Back(v1::BackResponse {})
        }
        Kind::Unknown => {
            reply?;
            return Err(unexpected());
        }
    })
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

/// Gives a begin without an id a random one, so that the response can name it.
fn name_unit_of_work(request: &mut v1::SessionRequest) -> Result<(), Failure> {
    if let Some(session_request::Request::Begin(begin)) = &mut request.request
        && begin.unit_of_work_id.is_empty()
    {
        begin.unit_of_work_id = Bytes::copy_from_slice(ids::random_unit_of_work()?.as_bytes());
    }
    Ok(())
}
