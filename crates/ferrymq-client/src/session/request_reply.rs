//! Request and reply: a message that asks, and the one that answers it, found by its correlation id.
//!
//! Source: IBM MQ, "Report options and message flags" (`MQRO_PASS_MSG_ID`, `MQRO_PASS_CORREL_ID`,
//! `MQRO_PASS_DISCARD_AND_EXPIRY`) and "Request/reply messages".

use std::time::Duration;

use bytes::Bytes;
use ferrymq_proto::v1::attribute::Value;
use ferrymq_proto::v1::{
    CloseOption, Conversion, GetCall, GetRequest, InputUse, Message, MessageDescriptor, OpenCall,
    Persistence, PutRequest, PutResponse,
};
use ferrymq_types::{MessageType, ReasonCode, ReportOptions};

use super::{Queue, Session};
use crate::ClientError;

/// `MQQDT_PERMANENT_DYNAMIC`.
const PERMANENT_DYNAMIC: i64 = 2;
/// `MQQDT_TEMPORARY_DYNAMIC`: such a queue takes no persistent messages.
const TEMPORARY_DYNAMIC: i64 = 3;

/// Highest expiry, in tenths of a second.
const EXPIRY_TENTHS_MAX: u32 = 999_999_999;

/// Where replies come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyQueue {
    /// A dynamic queue that is made from this model, and is gone with its [`Requester`].
    Model {
        /// `ObjectName`: the model queue.
        model: String,
        /// `DynamicQName`: a name, or the beginning of one and an asterisk; empty is `AMQ.*`.
        name: String,
    },
    /// A queue that others may use too: each takes only the replies to what it has asked.
    Named(String),
}

/// Asks, and waits for replies. See [`Session::requester`].
#[derive(Debug)]
pub struct Requester<'a> {
    session: &'a Session,
    replies: Queue<'a>,
    /// `DefinitionType` of the queue for replies.
    definition_type: i64,
    /// How replies are converted; `None` is not at all, which is the default.
    pub convert: Option<Conversion>,
}

/// A reply, and what was answered to the request that it belongs to.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What the put of the request was answered.
    pub request: PutResponse,
    /// `None` if none came within the wait.
    pub message: Option<Message>,
}

impl Session {
    /// Opens the queue for replies.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub async fn requester(&self, reply_queue: ReplyQueue) -> Result<Requester<'_>, ClientError> {
        let open = match reply_queue {
            ReplyQueue::Model { model, name } => OpenCall {
                queue: model,
                dynamic_queue: name,
                input: InputUse::AsQueueDefined.into(),
                inquire: true,
                ..OpenCall::default()
            },
            ReplyQueue::Named(queue) => OpenCall {
                queue,
                input: InputUse::Shared.into(),
                inquire: true,
                ..OpenCall::default()
            },
        };
        let replies = self.open(open).await?;
        let asked = replies.inquire(&["DefinitionType"]).await?;
        let value = asked.attributes.into_iter().next().and_then(|a| a.value);
        let definition_type = match value {
            Some(Value::Integer(definition_type)) => definition_type,
            // An alias has no such attribute: it is not dynamic itself.
            Some(Value::Text(_)) | None => 0,
        };
        Ok(Requester {
            session: self,
            replies,
            definition_type,
            convert: None,
        })
    }
}

impl Requester<'_> {
    /// `ReplyToQ` of what is asked.
    #[must_use]
    pub fn reply_queue(&self) -> &str {
        &self.replies.resolved_queue
    }

    /// Puts a request, at once and in no unit of work, and waits for its reply: the next message whose `CorrelId` is the `MsgId`
    /// of the request or, if its report options have `MQRO_PASS_CORREL_ID`, its `CorrelId`, which is generated then if there is
    /// none.
    ///
    /// What the descriptor leaves open is filled in: with no expiry, request and reply expire when nobody waits for them any
    /// more; with no persistence, and a temporary dynamic queue for replies, the request is not persistent, since its reply
    /// cannot be.
    ///
    /// # Errors
    /// As [`Session::put`] and [`Queue::get`].
    pub async fn request(&self, put: PutRequest, wait: Duration) -> Result<Reply, ClientError> {
        let put = self.filled_in(put, wait);
        let passes_correlation_id = passes_correlation_id(&put);
        let asked = self.session.put(put, None).await?;
        let correlation_id = if passes_correlation_id {
            asked.correlation_id.clone()
        } else {
            asked.message_id.clone()
        };
        let get = GetCall {
            get: Some(GetRequest {
                wait_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
                correlation_id,
                convert: self.convert,
                ..GetRequest::default()
            }),
            ..GetCall::default()
        };
        let got = self.replies.get(get).await?;
        Ok(Reply {
            request: asked,
            message: got.map(|got| got.message),
        })
    }

    fn filled_in(&self, mut put: PutRequest, wait: Duration) -> PutRequest {
        let descriptor = put
            .message
            .get_or_insert_default()
            .descriptor
            .get_or_insert_default();
        descriptor.message_type = MessageType::REQUEST.get();
        descriptor
            .reply_to_queue
            .clone_from(&self.replies.resolved_queue);
        descriptor
            .reply_to_queue_manager
            .clone_from(&self.replies.resolved_queue_manager);
        if descriptor.expiry.is_none() {
            descriptor.expiry = expiry_of(wait);
            descriptor.report |= ReportOptions::NONE.with_pass_discard_and_expiry().bits();
        }
        if self.definition_type == TEMPORARY_DYNAMIC
            && descriptor.persistence() == Persistence::Unspecified
        {
            descriptor.set_persistence(Persistence::NonPersistent);
        }
        let lacks_correlation_id = descriptor.correlation_id.iter().all(|byte| *byte == 0);
        if lacks_correlation_id && passes_correlation_id(&put) {
            put.new_correlation_id = true;
        }
        put
    }

    /// Closes the queue for replies; a dynamic one is gone then, with replies that came too late.
    ///
    /// # Errors
    /// What ends the session.
    pub async fn close(self) -> Result<ReasonCode, ClientError> {
        let option = if self.definition_type == PERMANENT_DYNAMIC {
            CloseOption::DeletePurge
        } else {
            CloseOption::Unspecified
        };
        self.replies.close_with(option).await
    }
}

fn passes_correlation_id(put: &PutRequest) -> bool {
    let descriptor = put.message.as_ref().and_then(|m| m.descriptor.as_ref());
    descriptor.is_some_and(|d| ReportOptions::from_bits(d.report).pass_correlation_id())
}

/// A wait as an expiry, in tenths of a second, rounded up: at least one, and none if it is longer than an expiry can be.
fn expiry_of(wait: Duration) -> Option<u32> {
    let tenths = u32::try_from(wait.as_millis().div_ceil(100)).ok()?;
    (tenths <= EXPIRY_TENTHS_MAX).then_some(tenths.max(1))
}

/// The put of a reply to a request, as the request wants it: to its reply queue, with its priority and persistence; `CorrelId` is
/// the request's `MsgId`, or its `CorrelId` with `MQRO_PASS_CORREL_ID`; `MsgId` is new, or the request's with
/// `MQRO_PASS_MSG_ID`; with `MQRO_PASS_DISCARD_AND_EXPIRY` it expires when the request would, and is discarded as that.
///
/// How the data is written (format, encoding, character set) is `data`'s descriptor's to say, of which only that counts and the
/// properties. `None` if the request names no queue for replies.
#[must_use]
pub fn reply_to(request: &MessageDescriptor, data: Message) -> Option<PutRequest> {
    if request.reply_to_queue.is_empty() {
        return None;
    }
    let report = ReportOptions::from_bits(request.report);
    let written = data.descriptor.unwrap_or_default();
    let passes_expiry = report.pass_discard_and_expiry();
    let descriptor = MessageDescriptor {
        message_type: MessageType::REPLY.get(),
        report: if passes_expiry {
            report.discard_alone().bits()
        } else {
            0
        },
        expiry: request.expiry.filter(|_| passes_expiry),
        encoding: written.encoding,
        coded_character_set_id: written.coded_character_set_id,
        format: written.format,
        properties: written.properties,
        priority: request.priority,
        persistence: request.persistence,
        message_id: if report.pass_message_id() {
            request.message_id.clone()
        } else {
            Bytes::new()
        },
        correlation_id: if report.pass_correlation_id() {
            request.correlation_id.clone()
        } else {
            request.message_id.clone()
        },
        ..MessageDescriptor::default()
    };
    Some(PutRequest {
        queue: request.reply_to_queue.clone(),
        object_queue_manager: request.reply_to_queue_manager.clone(),
        message: Some(Message {
            descriptor: Some(descriptor),
            data: data.data,
        }),
        ..PutRequest::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS_CORREL_ID: u32 = 0x40;
    const PASS_MSG_ID: u32 = 0x80;
    const PASS_DISCARD_AND_EXPIRY: u32 = 0x4000;
    const DISCARD_MSG: u32 = 0x0800_0000;
    const COA: u32 = 0x100;

    fn request(report: u32) -> MessageDescriptor {
        MessageDescriptor {
            report,
            expiry: Some(70),
            priority: Some(7),
            persistence: Persistence::Persistent.into(),
            message_id: Bytes::from_static(&[1; 24]),
            correlation_id: Bytes::from_static(&[2; 24]),
            reply_to_queue: "REPLY".into(),
            reply_to_queue_manager: "QM2".into(),
            ..MessageDescriptor::default()
        }
    }

    #[test]
    fn ids_expiry_and_discard_of_a_reply_are_as_the_report_options_of_the_request_say() {
        let new = &[][..];
        for (report, message_id, correlation_id, expiry, reports) in [
            (0, new, &[1; 24][..], None, 0),
            (PASS_MSG_ID, &[1; 24][..], &[1; 24][..], None, 0),
            (PASS_CORREL_ID, new, &[2; 24][..], None, 0),
            (
                PASS_MSG_ID | PASS_CORREL_ID,
                &[1; 24][..],
                &[2; 24][..],
                None,
                0,
            ),
            (PASS_DISCARD_AND_EXPIRY, new, &[1; 24][..], Some(70), 0),
            (DISCARD_MSG | COA, new, &[1; 24][..], None, 0),
            (
                PASS_DISCARD_AND_EXPIRY | DISCARD_MSG | COA,
                new,
                &[1; 24][..],
                Some(70),
                DISCARD_MSG,
            ),
        ] {
            let put = reply_to(&request(report), Message::default()).expect("a reply queue");
            let reply = put
                .message
                .and_then(|m| m.descriptor)
                .expect("a descriptor");
            assert_eq!(
                (
                    &reply.message_id[..],
                    &reply.correlation_id[..],
                    reply.expiry,
                    reply.report
                ),
                (message_id, correlation_id, expiry, reports),
                "{report:#x}"
            );
        }
    }

    #[test]
    fn a_reply_goes_where_the_request_says_and_is_as_important() {
        let written = MessageDescriptor {
            format: "MQSTR".into(),
            coded_character_set_id: 819,
            priority: Some(1),
            ..MessageDescriptor::default()
        };
        let data = Message {
            descriptor: Some(written),
            data: Bytes::from_static(b"answer"),
        };
        let put = reply_to(&request(0), data).expect("a reply queue");
        assert_eq!(
            (put.queue.as_str(), put.object_queue_manager.as_str()),
            ("REPLY", "QM2")
        );
        let message = put.message.expect("a message");
        assert_eq!(&message.data[..], b"answer");
        let reply = message.descriptor.expect("a descriptor");
        assert_eq!(reply.message_type, MessageType::REPLY.get());
        assert_eq!(reply.priority, Some(7));
        assert_eq!(reply.persistence(), Persistence::Persistent);
        assert_eq!(
            (reply.format.as_str(), reply.coded_character_set_id),
            ("MQSTR", 819)
        );
    }

    #[test]
    fn a_message_that_names_no_queue_for_replies_has_none() {
        assert_eq!(
            reply_to(&MessageDescriptor::default(), Message::default()),
            None
        );
    }

    #[test]
    fn a_wait_is_an_expiry_of_at_least_a_tenth() {
        for (wait_ms, expiry) in [
            (0, Some(1)),
            (100, Some(1)),
            (101, Some(2)),
            (u64::MAX, None),
        ] {
            assert_eq!(
                expiry_of(Duration::from_millis(wait_ms)),
                expiry,
                "{wait_ms}"
            );
        }
    }
}
