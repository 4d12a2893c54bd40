//! Calls as requests to the engine.

use ferrymq_engine::{
    Browse, BrowseStep, CloseOption, ContextUse, Failure, HandleId, InputUse, OpenOptions, Request,
    Source,
};
use ferrymq_proto::v1::{self, session_call};
use ferrymq_types::{ReasonCode, UnitOfWorkId};

use super::{FOR_EVER, Session, failure};
use crate::answers::Kind;
use crate::conversion::{Reading, Representation};
use crate::ids;
use crate::services::messaging::{
    matching, object_name, queue_name, reading, selector, unit_of_work_id,
};
use crate::services::properties::property_option;

/// A call that is ready for the engine.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) call_id: u64,
    pub(super) kind: Kind,
    pub(super) request: Request,
}

/// An id that must be there.
fn needed(id: &[u8]) -> Result<UnitOfWorkId, Failure> {
    unit_of_work_id(id)?.ok_or_else(|| failure(ReasonCode::UOW_NOT_AVAILABLE))
}

fn handle(number: u64) -> Option<HandleId> {
    (number != 0).then_some(HandleId(number))
}

pub(super) fn needed_handle(number: u64) -> Result<HandleId, Failure> {
    handle(number).ok_or_else(|| failure(ReasonCode::HOBJ_ERROR))
}

fn open(call: &v1::OpenCall, sets_context: bool) -> Result<Request, Failure> {
    if (call.set_identity_context || call.set_all_context) && !sets_context {
        return Err(failure(ReasonCode::NOT_AUTHORIZED));
    }
    let name = object_name(&call.queue, &call.object_queue_manager)?;
    let input = match v1::InputUse::try_from(call.input) {
        Ok(v1::InputUse::Unspecified) => None,
        Ok(v1::InputUse::AsQueueDefined) => Some(InputUse::AsQueueDefined),
        Ok(v1::InputUse::Shared) => Some(InputUse::Shared),
        Ok(v1::InputUse::Exclusive) => Some(InputUse::Exclusive),
        Err(_) => return Err(failure(ReasonCode::OPTIONS_ERROR)),
    };
    Ok(Request::Open {
        name,
        options: OpenOptions {
            input,
            browse: call.browse,
            output: call.output,
            inquire: call.inquire,
            context: ContextUse {
                save_all: call.save_all_context,
                pass_identity: call.pass_identity_context,
                pass_all: call.pass_all_context,
                set_identity: call.set_identity_context,
                set_all: call.set_all_context,
            },
            fail_if_quiescing: call.fail_if_quiescing,
            set: call.set,
        },
        dynamic_name: Some(call.dynamic_queue.clone()),
        selector: selector(&call.selector)?,
    })
}

fn browse(call: &v1::BrowseCall) -> Result<Request, Failure> {
    let handle = needed_handle(call.handle)?;
    let step = match v1::BrowseStep::try_from(call.step) {
        Ok(v1::BrowseStep::First) => BrowseStep::FirstOf(handle),
        Ok(v1::BrowseStep::Next) => BrowseStep::Next(handle),
        Ok(v1::BrowseStep::UnderCursor) => BrowseStep::UnderCursor(handle),
        Ok(v1::BrowseStep::Unspecified) | Err(_) => {
            return Err(failure(ReasonCode::OPTIONS_ERROR));
        }
    };
    Ok(Request::Browse(Browse {
        matching: matching(
            &call.message_id,
            &call.correlation_id,
            &call.group_id,
            call.message_sequence_number,
        )
        .map_err(failure)?,
        // It is the handle's.
        selector: None,
        step,
        logical_order: call.logical_order,
        all_messages_available: call.all_messages_available,
        lock: call.lock,
        fail_if_quiescing: call.fail_if_quiescing,
        properties: property_option(call.properties).map_err(failure)?,
    }))
}

impl Session {
    fn get(&self, call: v1::GetCall) -> Result<(Kind, Request), Failure> {
        let options_error = || failure(ReasonCode::OPTIONS_ERROR);
        let get = call.get.ok_or_else(options_error)?;
        let syncpoint = unit_of_work_id(&call.syncpoint)?;
        let source = match (handle(call.handle), call.under_cursor) {
            (None, false) => Source::Queue(queue_name(&get.queue)?),
            (None, true) => return Err(options_error()),
            (Some(handle), false) => Source::Handle(handle),
            (Some(handle), true) => Source::UnderCursor(handle),
        };
        let mut request = self.caller.get(&get, source, syncpoint, None)?;
        request.accept_truncated = call.accept_truncated;
        request.syncpoint_if_persistent = call.syncpoint_if_persistent;
        request.logical_order = call.logical_order;
        if call.wait_unlimited {
            request.wait_until = Some(FOR_EVER);
        }
        let reading = Reading {
            accept_truncated: call.accept_truncated,
            ..reading(&get)
        };
        Ok((Kind::Get(reading), Request::Get(request)))
    }

    /// The request of a call.
    pub(super) fn request(&self, call_id: u64, call: session_call::Call) -> Result<Asked, Failure> {
        let (kind, request) = match call {
            session_call::Call::Begin(begin) => {
                // Named here if the client did not, so that the answer can name it.
                let id = match unit_of_work_id(&begin.unit_of_work_id)? {
                    Some(id) => id,
                    None => ids::random_unit_of_work()?,
                };
                (Kind::Begin(id), Request::Begin { id })
            }
            session_call::Call::Put(call) => {
                let put = call.put.ok_or_else(|| failure(ReasonCode::MD_ERROR))?;
                let kind = if call.brief {
                    Kind::BriefPut
                } else {
                    Kind::Put
                };
                let syncpoint = unit_of_work_id(&call.syncpoint)?;
                let handle = handle(call.handle);
                let request = self
                    .caller
                    .put(put, handle, syncpoint, call.logical_order)?;
                (kind, request)
            }
            session_call::Call::Get(call) => self.get(call)?,
            session_call::Call::Open(call) => {
                (Kind::Open, open(&call, self.caller.client.sets_context)?)
            }
            session_call::Call::Close(call) => {
                let handle = needed_handle(call.handle)?;
                let option = match v1::CloseOption::try_from(call.option) {
                    Ok(v1::CloseOption::Unspecified) => CloseOption::None,
                    Ok(v1::CloseOption::Delete) => CloseOption::Delete,
                    Ok(v1::CloseOption::DeletePurge) => CloseOption::DeletePurge,
                    Err(_) => return Err(failure(ReasonCode::OPTIONS_ERROR)),
                };
                (Kind::Done, Request::Close { handle, option })
            }
            session_call::Call::Unlock(call) => {
                let handle = needed_handle(call.handle)?;
                (Kind::Done, Request::Unlock { handle })
            }
            session_call::Call::Browse(call) => {
                let reading = Reading {
                    target: Representation::wanted(call.convert),
                    ..Reading::default()
                };
                (Kind::Browse(reading), browse(&call)?)
            }
            session_call::Call::Commit(commit) => {
                let id = needed(&commit.unit_of_work_id)?;
                (Kind::Done, Request::Commit { id })
            }
            session_call::Call::Back(back) => {
                let id = needed(&back.unit_of_work_id)?;
                (Kind::Done, Request::BackOut { id })
            }
            session_call::Call::Settle(settle) => (Kind::Done, self.settle(&settle)?),
            session_call::Call::Inquire(call) => {
                let handle = handle(call.handle);
                self.calls().inquiries.insert(call_id, call.names);
                (Kind::Inquire, Request::Inquire { handle })
            }
            // These are no requests of their own.
            session_call::Call::Set(_)
            | session_call::Call::Consume(_)
            | session_call::Call::Credit(_)
            | session_call::Call::Cancel(_)
            | session_call::Call::Chunk(_) => {
                return Err(failure(ReasonCode::OPTIONS_ERROR));
            }
        };
        Ok(Asked {
            call_id,
            kind,
            request,
        })
    }
}
