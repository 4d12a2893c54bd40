//! Frames between the machines and the wire. Long messages travel in chunks, so that they never block a heartbeat and no
//! frame exceeds the size that the transport takes.

use bytes::{Bytes, BytesMut};
use ferrymq_channel::{
    BatchConfirmed, BatchEnd, BatchMessage, Bind, BindAccepted, Close, CloseReason, FastMessage,
    MessageRefused, ReceiverFrame, SenderFrame, Withdraw,
};
use ferrymq_proto::channel_v1 as pb;
use ferrymq_proto::{convert, v1};
use ferrymq_types::{
    ChannelName, MESSAGE_LENGTH_MAX, Message, QueueManagerId, QueueManagerName, ReasonCode,
    Timestamp, UnitOfWorkId,
};

/// Data bytes of one frame.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Largest gRPC message of a channel's stream: a chunk, a descriptor, and room for what later versions add.
pub(crate) const FRAME_BYTES_MAX: usize = 1024 * 1024;

/// An error and its causes in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Why a stream ended, for the operator.
pub(crate) fn explain(status: &tonic::Status) -> String {
    match std::error::Error::source(status) {
        Some(cause) => with_causes(cause),
        None => format!("{}: {}", status.code(), status.message()),
    }
}

/// Why a frame cannot be understood. The conversation ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame without content, or of a kind that is not known")]
    Empty,
    #[error("field {0} is not valid")]
    Field(&'static str),
    #[error("the message's descriptor is not valid: {0}")]
    Descriptor(ReasonCode),
    #[error("chunks do not fit the message that they belong to")]
    Chunks,
}

fn unit_of_work(bytes: &[u8]) -> Result<UnitOfWorkId, FrameError> {
    convert::id(bytes, UnitOfWorkId::LENGTH, UnitOfWorkId::from_slice)
        .map_err(|_| FrameError::Field("batch"))
        .map(Option::unwrap_or_default)
}

fn queue_manager_id(bytes: &[u8]) -> Result<QueueManagerId, FrameError> {
    convert::id(bytes, QueueManagerId::LENGTH, QueueManagerId::from_slice)
        .ok()
        .flatten()
        .ok_or(FrameError::Field("queue_manager_id"))
}

fn queue_manager(name: &str) -> Result<QueueManagerName, FrameError> {
    QueueManagerName::new(name).map_err(|_| FrameError::Field("queue_manager"))
}

fn id(id: UnitOfWorkId) -> Bytes {
    if id.is_none() {
        Bytes::new()
    } else {
        Bytes::copy_from_slice(id.as_bytes())
    }
}

/// The frames of the wire for one frame of a sender.
pub(crate) fn sender_to_wire(frame: SenderFrame, now: Timestamp) -> Vec<pb::RunRequest> {
    use pb::run_request::Frame;
    let whole = |frame| vec![pb::RunRequest { frame: Some(frame) }];
    match frame {
        SenderFrame::Bind(b) => whole(Frame::Bind(pb::Bind {
            version: b.version,
            channel: b.channel.to_string(),
            queue_manager: b.queue_manager.to_string(),
            queue_manager_id: Bytes::copy_from_slice(b.queue_manager_id.as_bytes()),
            partner: b.partner.map(|p| p.to_string()).unwrap_or_default(),
            generation: b.generation,
            last_confirmed: b.last_confirmed,
            last_sent: b.last_sent,
            start: b.start,
            last_batch: id(b.last_batch),
            batch_size: b.batch_size,
            message_length_max: b.message_length_max,
            sequence_wrap: b.sequence_wrap,
            heartbeat_interval: b.heartbeat_interval,
            fast: b.fast,
        })),
        SenderFrame::Message(m) => {
            let (message, following, chunks) = cut(&m.message, now);
            let mut frames = whole(Frame::Message(pb::BatchMessage {
                number: m.number,
                remote_queue: m.remote_queue,
                remote_queue_manager: m.remote_queue_manager,
                message: Some(message),
                following,
                batch: id(m.batch),
            }));
            frames.extend(chunks);
            frames
        }
        SenderFrame::Fast(m) => {
            let (message, following, chunks) = cut(&m.message, now);
            let mut frames = whole(Frame::Fast(pb::FastMessage {
                remote_queue: m.remote_queue,
                remote_queue_manager: m.remote_queue_manager,
                message: Some(message),
                following,
            }));
            frames.extend(chunks);
            frames
        }
        SenderFrame::BatchEnd(e) => whole(Frame::BatchEnd(pb::BatchEnd {
            batch: id(e.batch),
            first_number: e.first_number,
            last_number: e.last_number,
        })),
        SenderFrame::Withdraw(w) => whole(Frame::Withdraw(pb::Withdraw { number: w.number })),
        SenderFrame::Heartbeat { answer } => whole(Frame::Heartbeat(pb::Heartbeat { answer })),
        SenderFrame::Close(c) => whole(Frame::Close(close_to_wire(c))),
    }
}

/// A message's first frame, the bytes that follow it, and the frames that carry them.
fn cut(message: &Message, now: Timestamp) -> (v1::Message, u32, Vec<pb::RunRequest>) {
    let mut data = message.data();
    let rest = data.split_off(data.len().min(CHUNK_BYTES));
    let following = u32::try_from(rest.len()).unwrap_or(u32::MAX);
    let chunks = (0..rest.len())
        .step_by(CHUNK_BYTES)
        .map(|start| {
            let end = rest.len().min(start.saturating_add(CHUNK_BYTES));
            let chunk = pb::Chunk {
                data: rest.slice(start..end),
            };
            pb::RunRequest {
                frame: Some(pb::run_request::Frame::Chunk(chunk)),
            }
        })
        .collect();
    let descriptor = Some(convert::descriptor_to_wire(&message.descriptor, 0, now));
    (v1::Message { descriptor, data }, following, chunks)
}

/// Puts a sender's frames together again, in the receiver. Holds at most one message.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    head: pb::run_request::Frame,
    data: BytesMut,
    following: usize,
}

impl Assembler {
    /// Takes a frame of the wire; gives a frame of the sender when it is whole.
    pub(crate) fn take(
        &mut self,
        frame: pb::RunRequest,
        now: Timestamp,
    ) -> Result<Option<SenderFrame>, FrameError> {
        use pb::run_request::Frame;
        let frame = frame.frame.ok_or(FrameError::Empty)?;
        if let Frame::Chunk(chunk) = frame {
            return self.chunk(&chunk.data, now);
        }
        if self.pending.is_some() {
            return Err(FrameError::Chunks);
        }
        let (message, following) = match &frame {
            Frame::Message(m) => (&m.message, m.following),
            Frame::Fast(m) => (&m.message, m.following),
            Frame::Bind(_)
            | Frame::BatchEnd(_)
            | Frame::Heartbeat(_)
            | Frame::Close(_)
            | Frame::Withdraw(_)
            | Frame::Chunk(_) => return whole(frame, None, now).map(Some),
        };
        if following == 0 {
            return whole(frame, None, now).map(Some);
        }
        let first = message.as_ref().map(|m| m.data.clone()).unwrap_or_default();
        let following = following as usize;
        let length = first
            .len()
            .checked_add(following)
            .ok_or(FrameError::Chunks)?;
        // A message on the wire carries no transmission header; dead-letter headers of earlier hops count as data.
        if length > MESSAGE_LENGTH_MAX as usize {
            return Err(FrameError::Chunks);
        }
        // Memory grows with what has come, not with what was announced.
        let data = BytesMut::from(first);
        self.pending = Some(Pending {
            head: frame,
            data,
            following,
        });
        Ok(None)
    }

    fn chunk(&mut self, data: &[u8], now: Timestamp) -> Result<Option<SenderFrame>, FrameError> {
        let pending = self.pending.as_mut().ok_or(FrameError::Chunks)?;
        pending.following = match pending.following.checked_sub(data.len()) {
            Some(left) if !data.is_empty() => left,
            _ => return Err(FrameError::Chunks),
        };
        pending.data.extend_from_slice(data);
        if pending.following > 0 {
            return Ok(None);
        }
        let Some(Pending { head, data, .. }) = self.pending.take() else {
            return Ok(None);
        };
        whole(head, Some(data.freeze()), now).map(Some)
    }
}

fn message(
    message: Option<v1::Message>,
    data: Option<Bytes>,
    now: Timestamp,
) -> Result<Message, FrameError> {
    let message = message.ok_or(FrameError::Field("message"))?;
    let descriptor = convert::channel_descriptor(message.descriptor.unwrap_or_default(), now)
        .map_err(FrameError::Descriptor)?;
    Ok(Message {
        descriptor,
        header: Bytes::new(),
        body: data.unwrap_or(message.data),
    })
}

fn whole(
    frame: pb::run_request::Frame,
    data: Option<Bytes>,
    now: Timestamp,
) -> Result<SenderFrame, FrameError> {
    use pb::run_request::Frame;
    Ok(match frame {
        Frame::Bind(b) => SenderFrame::Bind(Bind {
            version: b.version,
            channel: ChannelName::new(&b.channel).map_err(|_| FrameError::Field("channel"))?,
            queue_manager: queue_manager(&b.queue_manager)?,
            queue_manager_id: queue_manager_id(&b.queue_manager_id)?,
            partner: match b.partner.as_str() {
                "" => None,
                name => Some(queue_manager(name)?),
            },
            generation: b.generation,
            last_confirmed: b.last_confirmed,
            last_sent: b.last_sent,
            start: b.start,
            last_batch: unit_of_work(&b.last_batch)?,
            batch_size: b.batch_size,
            message_length_max: b.message_length_max,
            sequence_wrap: b.sequence_wrap,
            heartbeat_interval: b.heartbeat_interval,
            fast: b.fast,
        }),
        Frame::Message(m) => SenderFrame::Message(Box::new(BatchMessage {
            batch: unit_of_work(&m.batch)?,
            number: m.number,
            remote_queue: m.remote_queue,
            remote_queue_manager: m.remote_queue_manager,
            message: message(m.message, data, now)?,
        })),
        Frame::Fast(m) => SenderFrame::Fast(Box::new(FastMessage {
            remote_queue: m.remote_queue,
            remote_queue_manager: m.remote_queue_manager,
            message: message(m.message, data, now)?,
        })),
        Frame::BatchEnd(e) => SenderFrame::BatchEnd(BatchEnd {
            batch: unit_of_work(&e.batch)?,
            first_number: e.first_number,
            last_number: e.last_number,
        }),
        Frame::Withdraw(w) => SenderFrame::Withdraw(Withdraw { number: w.number }),
        Frame::Heartbeat(h) => SenderFrame::Heartbeat { answer: h.answer },
        Frame::Close(c) => SenderFrame::Close(close_from_wire(c)?),
        Frame::Chunk(_) => return Err(FrameError::Chunks),
    })
}

/// The frame of the wire for a frame of a receiver.
pub(crate) fn receiver_to_wire(frame: ReceiverFrame) -> pb::RunResponse {
    use pb::run_response::Frame;
    let frame = match frame {
        ReceiverFrame::BindAccepted(b) => Frame::BindAccepted(pb::BindAccepted {
            queue_manager: b.queue_manager.to_string(),
            queue_manager_id: Bytes::copy_from_slice(b.queue_manager_id.as_bytes()),
            last_committed: b.last_committed,
            last_batch: id(b.last_batch),
            batch_size: b.batch_size,
            message_length_max: b.message_length_max,
            heartbeat_interval: b.heartbeat_interval,
            fast: b.fast,
        }),
        ReceiverFrame::BatchConfirmed(c) => Frame::BatchConfirmed(pb::BatchConfirmed {
            batch: id(c.batch),
            last_number: c.last_number,
            dead_lettered: c.dead_lettered,
        }),
        ReceiverFrame::MessageRefused(r) => Frame::MessageRefused(pb::MessageRefused {
            number: r.number,
            reason: r.reason.get(),
        }),
        ReceiverFrame::Heartbeat { answer } => Frame::Heartbeat(pb::Heartbeat { answer }),
        ReceiverFrame::Close(c) => Frame::Close(close_to_wire(c)),
    };
    pb::RunResponse { frame: Some(frame) }
}

/// A receiver's frame from the wire.
pub(crate) fn receiver_from_wire(frame: pb::RunResponse) -> Result<ReceiverFrame, FrameError> {
    use pb::run_response::Frame;
    Ok(match frame.frame.ok_or(FrameError::Empty)? {
        Frame::BindAccepted(b) => ReceiverFrame::BindAccepted(BindAccepted {
            queue_manager: queue_manager(&b.queue_manager)?,
            queue_manager_id: queue_manager_id(&b.queue_manager_id)?,
            last_committed: b.last_committed,
            last_batch: unit_of_work(&b.last_batch)?,
            batch_size: b.batch_size,
            message_length_max: b.message_length_max,
            heartbeat_interval: b.heartbeat_interval,
            fast: b.fast,
        }),
        Frame::BatchConfirmed(c) => ReceiverFrame::BatchConfirmed(BatchConfirmed {
            batch: unit_of_work(&c.batch)?,
            last_number: c.last_number,
            dead_lettered: c.dead_lettered,
        }),
        Frame::MessageRefused(r) => ReceiverFrame::MessageRefused(MessageRefused {
            number: r.number,
            reason: ReasonCode::new(r.reason),
        }),
        Frame::Heartbeat(h) => ReceiverFrame::Heartbeat { answer: h.answer },
        Frame::Close(c) => ReceiverFrame::Close(close_from_wire(c)?),
    })
}

/// The two enumerations beside each other, so that none can be forgotten on either side.
const CLOSE_REASONS: [(CloseReason, pb::CloseReason); 12] = [
    (CloseReason::Normal, pb::CloseReason::Normal),
    (CloseReason::ChannelUnknown, pb::CloseReason::ChannelUnknown),
    (
        CloseReason::ChannelWrongType,
        pb::CloseReason::ChannelWrongType,
    ),
    (CloseReason::ChannelStopped, pb::CloseReason::ChannelStopped),
    (CloseReason::NotAuthorized, pb::CloseReason::NotAuthorized),
    (CloseReason::SequenceWrap, pb::CloseReason::SequenceWrap),
    (CloseReason::SequenceError, pb::CloseReason::SequenceError),
    (CloseReason::Superseded, pb::CloseReason::Superseded),
    (
        CloseReason::QueueManagerStopping,
        pb::CloseReason::QueueManagerStopping,
    ),
    (CloseReason::BatchRefused, pb::CloseReason::BatchRefused),
    (CloseReason::ProtocolError, pb::CloseReason::ProtocolError),
    (
        CloseReason::WrongQueueManager,
        pb::CloseReason::WrongQueueManager,
    ),
];

pub(crate) fn close_to_wire(close: Close) -> pb::Close {
    let reason = CLOSE_REASONS
        .iter()
        .find(|(ours, _)| *ours == close.reason)
        .map_or(pb::CloseReason::Unspecified, |(_, wire)| *wire);
    pb::Close {
        reason: reason.into(),
        text: close.text,
    }
}

pub(crate) fn close_from_wire(close: pb::Close) -> Result<Close, FrameError> {
    let reason = CLOSE_REASONS
        .iter()
        .find(|(_, wire)| i32::from(*wire) == close.reason)
        .map(|(ours, _)| *ours)
        .ok_or(FrameError::Field("reason"))?;
    Ok(Close {
        reason,
        text: close.text,
    })
}

#[cfg(test)]
mod tests {
    use ferrymq_types::{MessageDescriptor, Persistence};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(5_000);

    fn batch_message(length: usize) -> SenderFrame {
        SenderFrame::Message(Box::new(BatchMessage {
            batch: UnitOfWorkId::new([7; 16]),
            number: 9,
            remote_queue: "Q".into(),
            remote_queue_manager: "QM2".into(),
            message: Message {
                descriptor: MessageDescriptor {
                    persistence: Persistence::Persistent,
                    ..MessageDescriptor::default()
                },
                header: Bytes::new(),
                body: (0..length)
                    .map(|i| u8::try_from(i % 251).unwrap())
                    .collect(),
            },
        }))
    }

    #[test]
    fn messages_of_any_length_cross_the_wire_whole() {
        for length in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 17] {
            let frame = batch_message(length);
            let mut assembler = Assembler::default();
            let mut got = None;
            let frames = sender_to_wire(frame.clone(), NOW);
            let last = frames.len() - 1;
            for (i, wire) in frames.into_iter().enumerate() {
                got = assembler.take(wire, NOW).unwrap();
                assert_eq!(got.is_some(), i == last);
            }
            assert_eq!(got, Some(frame), "{length}");
        }
    }

    #[test]
    fn sec_w1_announced_lengths_that_lie_are_refused() {
        let chunk = |n: usize| pb::RunRequest {
            frame: Some(pb::run_request::Frame::Chunk(pb::Chunk {
                data: vec![0; n].into(),
            })),
        };
        let head = sender_to_wire(batch_message(CHUNK_BYTES + 10), NOW).swap_remove(0);
        let mut assembler = Assembler::default();
        assert_eq!(assembler.take(chunk(1), NOW), Err(FrameError::Chunks));
        assert_eq!(assembler.take(head.clone(), NOW), Ok(None));
        assert_eq!(
            assembler.take(head.clone(), NOW),
            Err(FrameError::Chunks),
            "no chunk came"
        );
        assert_eq!(
            assembler.take(chunk(11), NOW),
            Err(FrameError::Chunks),
            "one byte too many"
        );
        let mut endless = head;
        if let Some(pb::run_request::Frame::Message(m)) = &mut endless.frame {
            m.following = u32::MAX;
        }
        assert_eq!(
            Assembler::default().take(endless, NOW),
            Err(FrameError::Chunks)
        );
        assert_eq!(
            Assembler::default().take(pb::RunRequest { frame: None }, NOW),
            Err(FrameError::Empty)
        );
    }

    #[test]
    fn every_close_reason_crosses_the_wire() {
        for (reason, _) in CLOSE_REASONS {
            let close = Close::new(reason, "x");
            assert_eq!(close_from_wire(close_to_wire(close.clone())), Ok(close));
        }
        assert!(
            close_from_wire(pb::Close {
                reason: 0,
                text: String::new()
            })
            .is_err()
        );
        assert!(
            close_from_wire(pb::Close {
                reason: 99,
                text: String::new()
            })
            .is_err()
        );
    }
}
