//! What a selector sees of a message: its properties, the fields of its descriptor, and those that JMS names.

use std::borrow::Cow;

use ferrymq_types::{MessageDescriptor, Persistence, PropertyValue, Timestamp};

use crate::value::{Fields, Value};

/// A message without its data. `Root.MQMD.` before a field of the descriptor, by IBM's name; JMS header names as IBM MQ maps
/// them; any other name is a property.
///
/// Source: IBM MQ, "Message selector syntax", "Mapping JMS fields onto IBM MQ fields".
#[derive(Debug, Clone, Copy)]
pub struct MessageFields<'a> {
    /// The descriptor, with its properties.
    pub descriptor: &'a MessageDescriptor,
    /// `BackoutCount`.
    pub backout_count: u32,
    /// By which `Expiry` counts.
    pub now: Timestamp,
}

impl Fields for MessageFields<'_> {
    fn get(&self, name: &str) -> Option<Value<'_>> {
        if let Some(field) = name.strip_prefix("Root.MQMD.") {
            return self.field(field);
        }
        if name.starts_with("JMS") {
            return self.jms(name);
        }
        Some(match self.descriptor.properties.get(name)? {
            PropertyValue::Null => return None,
            PropertyValue::Boolean(value) => Value::Boolean(*value),
            PropertyValue::Bytes(value) => Value::Bytes(Cow::Borrowed(value)),
            PropertyValue::Int8(value) => Value::Integer(i64::from(*value)),
            PropertyValue::Int16(value) => Value::Integer(i64::from(*value)),
            PropertyValue::Int32(value) => Value::Integer(i64::from(*value)),
            PropertyValue::Int64(value) => Value::Integer(*value),
            PropertyValue::Float32(value) => Value::Float(f64::from(*value)),
            PropertyValue::Float64(value) => Value::Float(*value),
            PropertyValue::String(value) => Value::String(Cow::Borrowed(value)),
        })
    }
}

impl MessageFields<'_> {
    fn field(&self, name: &str) -> Option<Value<'_>> {
        let d = self.descriptor;
        let number = |n: u32| Some(Value::Integer(i64::from(n)));
        let text = |t| Some(Value::String(Cow::Borrowed(t)));
        let bytes = |b| Some(Value::Bytes(Cow::Borrowed(b)));
        match name {
            "Report" => number(d.report.bits()),
            "MsgType" => number(d.message_type.get()),
            "Expiry" => Some(Value::Integer(d.expires_at.map_or(-1, |at| {
                let tenths = at.since(self.now).as_millis().div_ceil(100);
                i64::try_from(tenths).unwrap_or(i64::MAX)
            }))),
            "Feedback" => number(d.feedback),
            "Encoding" => number(d.encoding),
            "CodedCharSetId" => number(d.coded_character_set_id),
            "Format" => text(d.format.as_str()),
            "Priority" => number(u32::from(d.priority.get())),
            "Persistence" => number(u32::from(self.is_persistent())),
            "MsgId" => bytes(&d.message_id.as_bytes()[..]),
            "CorrelId" => bytes(&d.correlation_id.as_bytes()[..]),
            "BackoutCount" => number(self.backout_count),
            "ReplyToQ" => text(d.reply_to_queue.as_str()),
            "ReplyToQMgr" => text(d.reply_to_queue_manager.as_str()),
            "UserIdentifier" => text(d.user_identifier.as_str()),
            "AccountingToken" => bytes(&d.accounting_token.as_bytes()[..]),
            "ApplIdentityData" => text(d.application_identity_data.as_str()),
            "ApplOriginData" => text(d.application_origin_data.as_str()),
            "PutApplType" => Some(Value::Integer(i64::from(d.put_application_type.get()))),
            "PutApplName" => text(d.put_application_name.as_str()),
            "PutDate" => Some(Value::String(d.put_time.date8().into())),
            "PutTime" => Some(Value::String(d.put_time.time8().into())),
            "GroupId" => bytes(&d.group_id.as_bytes()[..]),
            "MsgSeqNumber" => number(d.message_sequence_number),
            "Offset" => number(d.offset),
            "MsgFlags" => number(d.message_flags),
            "OriginalLength" => Some(Value::Integer(i64::from(d.original_length))),
            _ => None,
        }
    }

    fn jms(&self, name: &str) -> Option<Value<'_>> {
        let d = self.descriptor;
        let id = |bytes: &[u8; 24]| {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            let text = core::iter::once("ID:".to_owned()).chain(digits).collect();
            (bytes != &[0; 24]).then_some(Value::String(Cow::Owned(text)))
        };
        match name {
            "JMSPriority" => Some(Value::Integer(i64::from(d.priority.get()))),
            "JMSMessageID" => id(d.message_id.as_bytes()),
            "JMSCorrelationID" => id(d.correlation_id.as_bytes()),
            "JMSTimestamp" => {
                let millis = d.put_time.as_millis();
                Some(Value::Integer(i64::try_from(millis).unwrap_or(i64::MAX)))
            }
            "JMSDeliveryMode" => {
                let persistent = self.is_persistent();
                let mode = if persistent {
                    "PERSISTENT"
                } else {
                    "NON_PERSISTENT"
                };
                Some(Value::String(Cow::Borrowed(mode)))
            }
            "JMSRedelivered" => Some(Value::Boolean(self.backout_count > 0)),
            // `JMSType` is of a folder that is not carried.
            _ => None,
        }
    }

    fn is_persistent(&self) -> bool {
        match self.descriptor.persistence {
            Persistence::Persistent => true,
            Persistence::NonPersistent => false,
        }
    }
}
