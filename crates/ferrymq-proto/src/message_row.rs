//! The row of a message. It is written and read more often than all other rows together, so it is encoded straight from what the
//! engine has; what protobuf decodes of it is in `write_set.proto`.

use bytes::Bytes;
use prost::Message as _;

use ferrymq_types::{
    ApplicationType, BodyId, MessageDescriptor, MessageRow, MessageType, Persistence, Priority,
    Properties, ReportOptions, Timestamp,
};

use crate::storage::{FormatError, StoredRow, id, value};
use crate::storage_v1 as pb;
use crate::{properties_from_stored, properties_to_stored};

/// Bytes of a row without long names and properties.
const ROW_BYTES: usize = 256;

/// Wire types of protobuf.
const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

impl StoredRow for MessageRow {
    fn to_stored(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ROW_BYTES);
        descriptor(&self.descriptor, &mut out);
        // In front of the descriptor come its number and length, which is known now.
        let length = out.len();
        put_key(1, LENGTH_DELIMITED, &mut out);
        put_varint(length as u64, &mut out);
        out.rotate_left(length);
        put_bytes(2, &self.header, &mut out);
        put_number(3, self.body.get(), &mut out);
        put_number(4, u64::from(self.body_length), &mut out);
        for property in properties_to_stored(&self.descriptor.properties) {
            put_message(5, &property, &mut out);
        }
        // It is kept as it is.
        out.shrink_to_fit();
        out
    }

    fn from_stored(bytes: &[u8]) -> Result<Self, FormatError> {
        pb::MessageRow::decode(bytes)?.try_into()
    }
}

/// `StoredDescriptor`.
fn descriptor(d: &MessageDescriptor, out: &mut Vec<u8>) {
    put_number(1, u64::from(d.report.bits()), out);
    put_number(2, u64::from(d.message_type.get()), out);
    if let Some(expires_at) = d.expires_at {
        put_key(3, VARINT, out);
        put_varint(expires_at.as_millis(), out);
    }
    put_number(4, u64::from(d.feedback), out);
    put_number(5, u64::from(d.encoding), out);
    put_number(6, u64::from(d.coded_character_set_id), out);
    put_bytes(7, d.format.as_bytes(), out);
    put_number(8, u64::from(d.priority.get()), out);
    let persistence = match d.persistence {
        Persistence::NonPersistent => 1,
        Persistence::Persistent => 2,
    };
    put_number(9, persistence, out);
    put_id(10, d.message_id.as_bytes(), out);
    put_id(11, d.correlation_id.as_bytes(), out);
    put_bytes(12, d.reply_to_queue.as_bytes(), out);
    put_bytes(13, d.reply_to_queue_manager.as_bytes(), out);
    put_bytes(14, d.user_identifier.as_bytes(), out);
    put_bytes(15, d.put_application_name.as_bytes(), out);
    put_number(16, d.put_time.as_millis(), out);
    put_id(17, d.group_id.as_bytes(), out);
    put_number(18, u64::from(d.message_sequence_number), out);
    put_number(19, u64::from(d.offset), out);
    put_number(20, u64::from(d.message_flags), out);
    put_signed(21, d.original_length, out);
    put_id(22, d.accounting_token.as_bytes(), out);
    put_bytes(23, d.application_identity_data.as_bytes(), out);
    put_signed(24, d.put_application_type.get(), out);
    put_bytes(25, d.application_origin_data.as_bytes(), out);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn put_key(field: u64, wire_type: u64, out: &mut Vec<u8>) {
    put_varint(field << 3 | wire_type, out);
}

/// A `uint32`, `uint64` or an enumeration; 0 is not written.
fn put_number(field: u64, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        put_key(field, VARINT, out);
        put_varint(value, out);
    }
}

/// A `sint32`; 0 is not written.
fn put_signed(field: u64, value: i32, out: &mut Vec<u8>) {
    let zigzag = (value << 1) ^ (value >> 31);
    put_number(field, u64::from(zigzag.cast_unsigned()), out);
}

/// A `string` or `bytes`; an empty one is not written.
fn put_bytes(field: u64, bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.is_empty() {
        put_key(field, LENGTH_DELIMITED, out);
        put_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }
}

/// An id; one of zeros is not written.
fn put_id(field: u64, id: &[u8], out: &mut Vec<u8>) {
    if id.iter().any(|byte| *byte != 0) {
        put_bytes(field, id, out);
    }
}

/// A message in a message.
pub(crate) fn put_message(field: u64, message: &impl prost::Message, out: &mut Vec<u8>) {
    put_key(field, LENGTH_DELIMITED, out);
    put_varint(message.encoded_len() as u64, out);
    message.encode(out).expect("a Vec grows as needed");
}

impl TryFrom<pb::MessageRow> for MessageRow {
    type Error = FormatError;
    fn try_from(row: pb::MessageRow) -> Result<Self, FormatError> {
        let stored = row.descriptor.ok_or(FormatError::Missing("descriptor"))?;
        let mut descriptor = MessageDescriptor::try_from(stored)?;
        descriptor.properties =
            properties_from_stored(row.properties).map_err(|reason| value("properties", reason))?;
        Ok(Self {
            descriptor,
            // A copy: a slice would keep the whole record in memory.
            header: Bytes::copy_from_slice(&row.header),
            body: BodyId::new(row.body),
            body_length: row.body_length,
        })
    }
}

impl TryFrom<pb::StoredDescriptor> for MessageDescriptor {
    type Error = FormatError;
    fn try_from(d: pb::StoredDescriptor) -> Result<Self, FormatError> {
        let persistence = match pb::StoredPersistence::try_from(d.persistence) {
            Ok(pb::StoredPersistence::NonPersistent) => Persistence::NonPersistent,
            Ok(pb::StoredPersistence::Persistent) => Persistence::Persistent,
            Ok(pb::StoredPersistence::Unspecified) | Err(_) => {
                return Err(value("persistence", d.persistence));
            }
        };
        Ok(Self {
            report: ReportOptions::from_bits(d.report),
            message_type: MessageType::new(d.message_type)
                .ok_or_else(|| value("message_type", d.message_type))?,
            expires_at: d.expires_at.map(Timestamp::from_millis),
            feedback: d.feedback,
            encoding: d.encoding,
            coded_character_set_id: d.coded_character_set_id,
            format: d.format,
            priority: u8::try_from(d.priority)
                .ok()
                .and_then(Priority::new)
                .ok_or_else(|| value("priority", d.priority))?,
            persistence,
            message_id: id("message_id", &d.message_id)?,
            correlation_id: id("correlation_id", &d.correlation_id)?,
            reply_to_queue: d.reply_to_queue,
            reply_to_queue_manager: d.reply_to_queue_manager,
            user_identifier: d.user_identifier,
            put_application_name: d.put_application_name,
            put_time: Timestamp::from_millis(d.put_time),
            group_id: id("group_id", &d.group_id)?,
            message_sequence_number: d.message_sequence_number,
            offset: d.offset,
            message_flags: d.message_flags,
            original_length: d.original_length,
            accounting_token: id("accounting_token", &d.accounting_token)?,
            application_identity_data: d.application_identity_data,
            put_application_type: ApplicationType::new(d.put_application_type),
            application_origin_data: d.application_origin_data,
            // They are beside the descriptor in the row.
            properties: Properties::NONE,
        })
    }
}
