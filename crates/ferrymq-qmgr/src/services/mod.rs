//! gRPC services: they turn calls into engine requests, and answers into responses. They decide nothing.

pub(crate) mod admin;
mod attributes;
pub(crate) mod channel;
pub(crate) mod messaging;
mod properties;
mod session;

use ferrymq_engine::Failure;
use ferrymq_proto::status::CallError;
use ferrymq_types::QueueManagerName;
use tonic::Status;

/// A failure of the engine, as a caller sees it.
pub(crate) fn call_error(failure: Failure, queue_manager: &QueueManagerName) -> CallError {
    CallError::new(
        failure.reason,
        failure.object,
        Some(queue_manager.to_string()),
    )
}

/// A failure of the engine as a status.
pub(crate) fn status(failure: Failure, queue_manager: &QueueManagerName) -> Box<Status> {
    Box::new(call_error(failure, queue_manager).to_status())
}
