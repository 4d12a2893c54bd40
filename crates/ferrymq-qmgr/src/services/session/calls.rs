//! Calls as requests to the engine.

use ferrymq_engine::{Failure, Request};
use ferrymq_proto::v1::{self, session_call};
use ferrymq_types::{ReasonCode, UnitOfWorkId};

use super::{Session, failure};
use crate::answers::Kind;
use crate::ids;
use crate::services::messaging::unit_of_work_id;

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

impl Session {
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
                (kind, self.caller.put(put, syncpoint)?)
            }
            session_call::Call::Get(call) => {
                let get = call.get.ok_or_else(|| failure(ReasonCode::OPTIONS_ERROR))?;
                let syncpoint = unit_of_work_id(&call.syncpoint)?;
                let get = v1::GetRequest {
                    wait_ms: if call.wait_unlimited {
                        u32::MAX
                    } else {
                        get.wait_ms
                    },
                    ..get
                };
                let deadline = None;
                (Kind::Get, self.caller.get(&get, syncpoint, deadline)?)
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
            // These are no requests of their own.
            session_call::Call::Consume(_)
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
