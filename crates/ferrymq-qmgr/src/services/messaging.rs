//! `ferrymq.v1.Messaging`: put, get, browse, sessions.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ferrymq_engine::{
    Browse, BrowseStep, Browsed, Context, Failure, Get, Got, HandleId, MatchIds, Object,
    ObjectName, Put, PutDone, PutOptions, Reply, Request as Ask, Source,
};
use ferrymq_proto::{convert, v1};
use ferrymq_selector::Selector;
use ferrymq_transport::PeerInfo;
use ferrymq_types::{
    ApplicationType, CorrelationId, MessageId, QueueName, ReasonCode, Timestamp, UnitOfWorkId,
    UnitOfWorkOutcome, rfh2,
};
use futures::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::conversion::{Reading, Representation};
use crate::handle::{Connection, QueueManagerHandle};
use crate::node::Node;
use crate::security::{self, Client};
use crate::services::properties::{present, property_option};
use crate::services::{session, status};

/// A get that no client limits waits no longer than this: half a day.
const WAIT_MAX: Duration = Duration::from_secs(12 * 3600);

/// The service of one listener.
#[derive(Debug, Clone)]
pub(crate) struct MessagingService {
    node: Arc<Node>,
}

impl MessagingService {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    /// The queue manager that the caller means, and who the caller is.
    fn open<T>(
        &self,
        request: &Request<T>,
        queue_manager: &str,
    ) -> Result<(QueueManagerHandle, Client), Status> {
        let handle = self
            .node
            .queue_manager(queue_manager)
            .map_err(|e| e.to_status())?;
        let peer = request.extensions().get::<PeerInfo>();
        let administrators = self.node.administrators();
        let client = security::authorize_client(&handle, peer, administrators, request.metadata())
            .map_err(|e| e.to_status())?;
        Ok((handle, client))
    }
}

/// What a connection to a queue manager is asked on behalf of a client.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) connection: Connection,
    pub(crate) client: Client,
}

impl Caller {
    fn now(&self) -> Timestamp {
        self.connection.queue_manager().clock().now()
    }

    /// The engine's request for a put; through a handle the names do not count.
    pub(crate) fn put(
        &self,
        request: v1::PutRequest,
        handle: Option<HandleId>,
        syncpoint: Option<UnitOfWorkId>,
        logical_order: bool,
    ) -> Result<Ask, Failure> {
        let object = match handle {
            Some(handle) => Object::Handle(handle),
            None => Object::Named(object_name(&request.queue, &request.object_queue_manager)?),
        };
        let named = match &object {
            Object::Handle(_) => None,
            Object::Named(name) => Some(&name.queue),
        };
        let mut message = request
            .message
            .ok_or_else(|| failed(ReasonCode::MD_ERROR, named))?;
        let context = self
            .context(request.context, request.context_handle)
            .map_err(|reason| failed(reason, named))?;
        let fields = match context {
            Context::Default | Context::None | Context::PassIdentity(_) | Context::PassAll(_) => {
                convert::ContextFields::None
            }
            Context::SetIdentity => convert::ContextFields::Identity,
            Context::SetAll => convert::ContextFields::All,
        };
        let parsed =
            convert::put_descriptor(message.descriptor.unwrap_or_default(), fields, self.now())
                .map_err(|reason| failed(reason, named))?;
        let mut descriptor = parsed.descriptor;
        rfh2::fold(&mut descriptor, &mut message.data).map_err(|reason| failed(reason, named))?;
        if fields == convert::ContextFields::None {
            descriptor.user_identifier.clone_from(&self.client.user);
        }
        if fields != convert::ContextFields::All {
            descriptor
                .put_application_name
                .clone_from(&self.client.application);
            descriptor.put_application_type = ApplicationType::UNIX;
        }
        if request.new_message_id {
            descriptor.message_id = MessageId::NONE;
        }
        let token = unit_of_work_id(&request.unit_of_work_id)?;
        Ok(Ask::Put(Box::new(Put {
            object,
            descriptor,
            priority: parsed.priority,
            persistence: parsed.persistence,
            header: Bytes::new(),
            body: message.data,
            context,
            options: PutOptions {
                new_correlation_id: request.new_correlation_id,
                fail_if_quiescing: request.fail_if_quiescing,
                priority_exceeds_maximum: parsed.priority_exceeds_maximum,
            },
            syncpoint,
            logical_order,
            token,
        })))
    }

    /// The context option of a put: 2046 if it is none, 2035 if the caller may not set a context.
    fn context(&self, option: i32, handle: u64) -> Result<Context, ReasonCode> {
        use v1::ContextOption as Wanted;
        let wanted = Wanted::try_from(option).map_err(|_| ReasonCode::OPTIONS_ERROR)?;
        let passed = HandleId(handle);
        let context = match wanted {
            Wanted::Unspecified => Context::Default,
            Wanted::None => Context::None,
            Wanted::PassIdentity => Context::PassIdentity(passed),
            Wanted::PassAll => Context::PassAll(passed),
            Wanted::SetIdentity => Context::SetIdentity,
            Wanted::SetAll => Context::SetAll,
        };
        match context {
            Context::SetIdentity | Context::SetAll if !self.client.sets_context => {
                Err(ReasonCode::NOT_AUTHORIZED)
            }
            Context::Default
            | Context::None
            | Context::PassIdentity(_)
            | Context::PassAll(_)
            | Context::SetIdentity
            | Context::SetAll => Ok(context),
        }
    }

    /// The engine's get from a source. `deadline` is the call's, if it has one.
    pub(crate) fn get(
        &self,
        request: &v1::GetRequest,
        source: Source,
        syncpoint: Option<UnitOfWorkId>,
        deadline: Option<Duration>,
    ) -> Result<Get, Failure> {
        let named = match &source {
            Source::Queue(name) => Some(name),
            Source::Handle(_) | Source::UnderCursor(_) => None,
        };
        let matching = matching(
            &request.message_id,
            &request.correlation_id,
            &request.group_id,
            request.message_sequence_number,
        )
        .map_err(|reason| failed(reason, named))?;
        let wait = Duration::from_millis(u64::from(request.wait_ms))
            .min(deadline.unwrap_or(WAIT_MAX))
            .min(WAIT_MAX);
        Ok(Get {
            matching,
            selector: selector(&request.selector)?,
            all_messages_available: request.all_messages_available,
            wait_until: (!wait.is_zero()).then(|| self.now().saturating_add(wait)),
            length_max: (request.length_max != 0).then_some(request.length_max),
            fail_if_quiescing: request.fail_if_quiescing,
            syncpoint,
            properties: property_option(request.properties)
                .map_err(|reason| failed(reason, named))?,
            ..Get::of(source)
        })
    }

    /// The response to a get.
    pub(crate) fn got(
        &self,
        reply: Result<Reply, Failure>,
        reading: Reading,
    ) -> Result<v1::GetResponse, Failure> {
        let (result, warning, examined) = match reply {
            Ok(Reply::Got(got)) => {
                let mut message = self.with_properties_beside(&got);
                let warning = reading.convert(&mut message);
                let properties = &got.message.descriptor.properties;
                present(&mut message, got.presentation, properties);
                let warning = reading.cut(&mut message, warning);
                let warning = if warning == ReasonCode::NONE {
                    got.warning
                } else {
                    warning
                };
                let message = v1::get_response::Result::Message(message);
                (message, warning, got.examined)
            }
            Ok(Reply::NothingSelected { examined }) => (
                v1::get_response::Result::None(v1::NoMessage {}),
                ReasonCode::NONE,
                examined,
            ),
            Ok(_) => return Err(unexpected()),
            Err(Failure {
                reason: ReasonCode::NO_MSG_AVAILABLE,
                ..
            }) => (
                v1::get_response::Result::None(v1::NoMessage {}),
                ReasonCode::NONE,
                0,
            ),
            Err(failure) => return Err(failure),
        };
        Ok(v1::GetResponse {
            result: Some(result),
            data_length: 0,
            reason: warning.get(),
            examined,
        })
    }

    /// A message that was got.
    pub(crate) fn message(&self, got: &Got) -> v1::Message {
        let mut message = self.with_properties_beside(got);
        let properties = &got.message.descriptor.properties;
        present(&mut message, got.presentation, properties);
        message
    }

    fn with_properties_beside(&self, got: &Got) -> v1::Message {
        let descriptor =
            convert::descriptor_to_wire(&got.message.descriptor, got.backout_count, self.now());
        v1::Message {
            descriptor: Some(descriptor),
            data: got.message.data(),
        }
    }
}

/// A selector from the wire; empty is none. What is wrong with one is told as the object concerned.
pub(crate) fn selector(text: &str) -> Result<Option<Arc<Selector>>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    match Selector::parse(text) {
        Ok(selector) => Ok(Some(Arc::new(selector))),
        Err(error) => Err(Failure {
            reason: error.reason(),
            object: Some(format!("selector {error}")),
        }),
    }
}

/// How the caller of a get wants the data.
pub(crate) fn reading(request: &v1::GetRequest) -> Reading {
    Reading {
        target: Representation::wanted(request.convert),
        length_max: (request.length_max != 0).then_some(request.length_max),
        accept_truncated: false,
    }
}

/// The response to a put.
pub(crate) fn put_response(reply: Reply) -> Result<v1::PutResponse, Failure> {
    let Reply::Put(PutDone {
        message_id,
        correlation_id,
        group_id,
        message_sequence_number,
        warning,
        resolved_queue,
        resolved_queue_manager,
    }) = reply
    else {
        return Err(unexpected());
    };
    Ok(v1::PutResponse {
        message_id: Bytes::copy_from_slice(message_id.as_bytes()),
        correlation_id: Bytes::copy_from_slice(correlation_id.as_bytes()),
        resolved_queue,
        resolved_queue_manager,
        reason: warning.get(),
        group_id: if group_id.is_none() {
            Bytes::new()
        } else {
            Bytes::copy_from_slice(group_id.as_bytes())
        },
        message_sequence_number: if group_id.is_none() {
            0
        } else {
            message_sequence_number
        },
    })
}

/// The engine answered with another kind of reply than the request has: a fault of ours, told and not hidden.
pub(crate) fn unexpected() -> Failure {
    Failure {
        reason: ReasonCode::UNEXPECTED_ERROR,
        object: None,
    }
}

fn failed(reason: ReasonCode, queue: Option<&QueueName>) -> Failure {
    Failure {
        reason,
        object: queue.map(QueueName::to_string),
    }
}

/// The names of a queue as they came.
pub(crate) fn object_name(queue: &str, queue_manager: &str) -> Result<ObjectName, Failure> {
    ObjectName::parse(queue, queue_manager).map_err(|reason| {
        let queue = QueueName::new(queue).ok();
        failed(reason, queue.as_ref())
    })
}

pub(crate) fn queue_name(text: &str) -> Result<QueueName, Failure> {
    // A name that no queue can have is a queue that does not exist; what was sent is not repeated unless it is a name.
    QueueName::new(text).map_err(|_| Failure {
        reason: ReasonCode::UNKNOWN_OBJECT_NAME,
        object: None,
    })
}

/// A unit-of-work id of the wire: empty is none.
pub(crate) fn unit_of_work_id(bytes: &[u8]) -> Result<Option<UnitOfWorkId>, Failure> {
    let id = convert::id(bytes, UnitOfWorkId::LENGTH, UnitOfWorkId::from_slice).map_err(|_| {
        Failure {
            reason: ReasonCode::UOW_NOT_AVAILABLE,
            object: None,
        }
    })?;
    Ok(id.filter(|id| !id.is_none()))
}

/// Match options: an id that is empty or all zeros matches any, as the number 0 does.
pub(crate) fn matching(
    message_id: &[u8],
    correlation_id: &[u8],
    group_id: &[u8],
    message_sequence_number: u32,
) -> Result<MatchIds, ReasonCode> {
    let message_id = convert::id(message_id, MessageId::LENGTH, MessageId::from_slice)?;
    let other = |id: &[u8]| convert::id(id, CorrelationId::LENGTH, CorrelationId::from_slice);
    Ok(MatchIds {
        message_id: message_id.filter(|id| !id.is_none()),
        correlation_id: other(correlation_id)?.filter(|id| !id.is_none()),
        group_id: other(group_id)?.filter(|id| !id.is_none()),
        message_sequence_number: (message_sequence_number != 0).then_some(message_sequence_number),
    })
}

/// The deadline that the client set, as `grpc-timeout`.
fn deadline(metadata: &tonic::metadata::MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let n: u64 = digits.parse().ok()?;
    let timeout = match unit {
        "H" => Duration::from_secs(n.checked_mul(3600)?),
        "M" => Duration::from_secs(n.checked_mul(60)?),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    };
    // Leave time for the answer.
    Some(timeout.saturating_sub((timeout / 10).min(Duration::from_millis(200))))
}

type BrowseStream = Pin<Box<dyn Stream<Item = Result<v1::BrowseResponse, Status>> + Send>>;
type SessionStream = Pin<Box<dyn Stream<Item = Result<v1::SessionResponse, Status>> + Send>>;

#[tonic::async_trait]
impl v1::messaging_server::Messaging for MessagingService {
    type BrowseStream = BrowseStream;
    type SessionStream = SessionStream;

    async fn put(
        &self,
        request: Request<v1::PutRequest>,
    ) -> Result<Response<v1::PutResponse>, Status> {
        let (handle, client) = self.open(&request, &request.get_ref().queue_manager)?;
        let caller = Caller {
            connection: handle.connect(),
            client,
        };
        caller.connection.introduce_once(&caller.client.application);
        let fail = |failure| *status(failure, handle.name());
        let ask = caller
            .put(request.into_inner(), None, None, false)
            .map_err(fail)?;
        let reply = caller.connection.ask(ask).await.map_err(fail)?;
        Ok(Response::new(put_response(reply).map_err(fail)?))
    }

    async fn get(
        &self,
        request: Request<v1::GetRequest>,
    ) -> Result<Response<v1::GetResponse>, Status> {
        let (handle, client) = self.open(&request, &request.get_ref().queue_manager)?;
        let caller = Caller {
            connection: handle.connect(),
            client,
        };
        caller.connection.introduce_once(&caller.client.application);
        let fail = |failure| *status(failure, handle.name());
        let deadline = deadline(request.metadata());
        let source = Source::Queue(queue_name(&request.get_ref().queue).map_err(fail)?);
        let reading = reading(request.get_ref());
        let get = caller
            .get(request.get_ref(), source, None, deadline)
            .map_err(fail)?;
        let reply = caller.connection.ask(Ask::Get(get)).await;
        Ok(Response::new(caller.got(reply, reading).map_err(fail)?))
    }

    async fn browse(
        &self,
        request: Request<v1::BrowseRequest>,
    ) -> Result<Response<Self::BrowseStream>, Status> {
        let (handle, client) = self.open(&request, &request.get_ref().queue_manager)?;
        let request = request.into_inner();
        let fail = |failure| *status(failure, handle.name());
        let queue = queue_name(&request.queue).map_err(fail)?;
        let matching = matching(
            &request.message_id,
            &request.correlation_id,
            &request.group_id,
            request.message_sequence_number,
        )
        .map_err(|reason| fail(failed(reason, Some(&queue))))?;
        let connection = handle.connect();
        connection.introduce_once(&client.application);
        let state = BrowseState {
            connection,
            queue: queue.clone(),
            step: Browse {
                matching,
                selector: selector(&request.selector).map_err(fail)?,
                all_messages_available: request.all_messages_available,
                properties: property_option(request.properties)
                    .map_err(|reason| fail(failed(reason, Some(&queue))))?,
                ..Browse::of(BrowseStep::First(queue))
            },
            left: if request.limit == 0 {
                u32::MAX
            } else {
                request.limit
            },
        };
        let stream = futures::stream::try_unfold(state, BrowseState::next);
        Ok(Response::new(Box::pin(stream)))
    }

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let queue_manager = request
            .metadata()
            .get("ferrymq-queue-manager")
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let (handle, client) = self.open(&request, &queue_manager)?;
        let caller = Caller {
            connection: handle.connect(),
            client,
        };
        caller.connection.introduce(&caller.client.application);
        let stream = session::run(self.node.clone(), caller, request.into_inner());
        Ok(Response::new(Box::pin(stream)))
    }

    async fn get_unit_of_work(
        &self,
        request: Request<v1::GetUnitOfWorkRequest>,
    ) -> Result<Response<v1::GetUnitOfWorkResponse>, Status> {
        let (handle, _client) = self.open(&request, &request.get_ref().queue_manager)?;
        let fail = |failure| *status(failure, handle.name());
        let none = Failure {
            reason: ReasonCode::UOW_NOT_AVAILABLE,
            object: None,
        };
        let id = unit_of_work_id(&request.get_ref().unit_of_work_id)
            .and_then(|id| id.ok_or(none))
            .map_err(fail)?;
        let reply = handle
            .connect()
            .ask(Ask::GetUnitOfWork { id })
            .await
            .map_err(fail)?;
        let Reply::UnitOfWork(row) = reply else {
            return Err(fail(unexpected()));
        };
        let state = match row.as_ref().map(|row| row.outcome) {
            Some(UnitOfWorkOutcome::Committed) => v1::UnitOfWorkState::Committed,
            Some(UnitOfWorkOutcome::BackedOut) => v1::UnitOfWorkState::BackedOut,
            None => v1::UnitOfWorkState::Unknown,
        };
        let message_id = row
            .and_then(|row| row.message_id)
            .map(|id| Bytes::copy_from_slice(id.as_bytes()))
            .unwrap_or_default();
        Ok(Response::new(v1::GetUnitOfWorkResponse {
            state: state.into(),
            message_id,
        }))
    }
}

struct BrowseState {
    connection: Connection,
    queue: QueueName,
    step: Browse,
    left: u32,
}

impl BrowseState {
    async fn next(mut self) -> Result<Option<(v1::BrowseResponse, Self)>, Status> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let handle = self.connection.queue_manager();
        match self.connection.ask(Ask::Browse(self.step.clone())).await {
            Ok(Reply::Browsed(Browsed {
                message,
                backout_count,
                cursor,
                examined,
                presentation,
            })) => {
                let now = handle.clock().now();
                let descriptor =
                    convert::descriptor_to_wire(&message.descriptor, backout_count, now);
                let mut shown = v1::Message {
                    descriptor: Some(descriptor),
                    data: message.data(),
                };
                present(&mut shown, presentation, &message.descriptor.properties);
                let response = v1::BrowseResponse {
                    message: Some(shown),
                    position: cursor.sequence.get(),
                    examined,
                };
                self.step.step = BrowseStep::After(self.queue.clone(), cursor);
                Ok(Some((response, self)))
            }
            Ok(Reply::NothingSelected { .. }) => Ok(None),
            Ok(_) => Err(*status(unexpected(), handle.name())),
            Err(Failure {
                reason: ReasonCode::NO_MSG_AVAILABLE,
                ..
            }) => Ok(None),
            Err(failure) => Err(*status(failure, handle.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_of_any_unit_caps_the_wait() {
        let check = |text: &'static str, expected: Option<u64>| {
            let mut metadata = tonic::metadata::MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            assert_eq!(
                deadline(&metadata).map(|d| d.as_millis()),
                expected.map(u128::from),
                "{text}"
            );
        };
        check("1S", Some(900));
        check("60S", Some(59_800));
        check("500m", Some(450));
        check("x", None);
        check("99999999999999999999S", None);
        check("9999999999999999999H", None);
    }
}
