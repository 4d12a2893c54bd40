//! Messages that arrive in chunks: each is gathered in one piece, while other calls go on.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use ferrymq_engine::Failure;
use ferrymq_proto::v1::{self, session_call};
use ferrymq_types::ReasonCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure;
use crate::services::messaging::Caller;

/// Messages of one session that arrive in chunks at once.
const UPLOADS_MAX: usize = 64;

/// Kibibytes of all messages of the node that arrive in chunks at once: 1 GiB. Beyond: 2071.
const UPLOAD_KIB_MAX: usize = 1024 * 1024;

static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(UPLOAD_KIB_MAX)));

/// A message that arrives.
#[derive(Debug)]
enum Upload {
    Gathering {
        put: Box<v1::PutCall>,
        data: BytesMut,
        _room: OwnedSemaphorePermit,
    },
    /// It was refused; the rest of it is passed over.
    Refused { bytes_left: usize },
}

/// The messages of a session that arrive in chunks.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    uploads: BTreeMap<u64, Upload>,
}

/// A call that is complete; none while a message is not.
type Complete = Result<Option<session_call::Call>, Failure>;

impl Uploads {
    /// A put whose data follows.
    pub(super) fn begin(&mut self, call_id: u64, put: v1::PutCall, caller: &Caller) -> Complete {
        let length = put.data_length as usize;
        let objects = caller.connection.queue_manager().objects();
        let room = || {
            let kib = u32::try_from(length.div_ceil(1024)).ok()?;
            ROOM.clone().try_acquire_many_owned(kib).ok()
        };
        let inline = put
            .put
            .as_ref()
            .and_then(|put| put.message.as_ref())
            .is_some_and(|message| !message.data.is_empty());
        let known = self.uploads.contains_key(&call_id);
        let refusal = if inline || known {
            Some(ReasonCode::OPTIONS_ERROR)
        } else if put.data_length > objects.attributes.max_message_length {
            Some(ReasonCode::MSG_TOO_BIG_FOR_Q_MGR)
        } else if self.uploads.len() >= UPLOADS_MAX {
            Some(ReasonCode::STORAGE_NOT_AVAILABLE)
        } else {
            None
        };
        let (upload, answer) = match (refusal, room()) {
            (None, Some(room)) => (
                Upload::Gathering {
                    put: Box::new(put),
                    // Pages are the kernel's until chunks fill them.
                    data: BytesMut::with_capacity(length),
                    _room: room,
                },
                Ok(None),
            ),
            (reason, _) => (
                Upload::Refused { bytes_left: length },
                Err(failure(reason.unwrap_or(ReasonCode::STORAGE_NOT_AVAILABLE))),
            ),
        };
        // What is refused is remembered, so that its chunks are not taken for another's.
        if !known && (answer.is_ok() || self.uploads.len() < UPLOADS_MAX * 2) {
            self.uploads.insert(call_id, upload);
        }
        answer
    }

    /// The next part of a message.
    pub(super) fn chunk(&mut self, call_id: u64, part: Bytes) -> Complete {
        match self.uploads.get_mut(&call_id) {
            Some(Upload::Gathering { put, data, .. }) => {
                let length = put.data_length as usize;
                if data.len().saturating_add(part.len()) > length {
                    self.uploads.remove(&call_id);
                    return Err(failure(ReasonCode::DATA_LENGTH_ERROR));
                }
                data.extend_from_slice(&part);
                if data.len() < length {
                    return Ok(None);
                }
            }
            Some(Upload::Refused { bytes_left }) => {
                *bytes_left = bytes_left.saturating_sub(part.len());
                if *bytes_left == 0 {
                    self.uploads.remove(&call_id);
                }
                return Ok(None);
            }
            // Its put was refused, and too many others too.
            None => return Ok(None),
        }
        let Some(Upload::Gathering { mut put, data, .. }) = self.uploads.remove(&call_id) else {
            return Ok(None);
        };
        if let Some(message) = put.put.as_mut().and_then(|put| put.message.as_mut()) {
            message.data = data.freeze();
        }
        Ok(Some(session_call::Call::Put(*put)))
    }
}
