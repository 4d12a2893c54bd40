//! Descriptors and messages between the wire and `ferrymq-types`.

use std::time::Duration;

use ferrymq_types::{
    AccountingToken, ApplicationType, CorrelationId, MessageDescriptor, MessageId, MessageType,
    Persistence, Priority, ReasonCode, ReportOptions, Timestamp,
};

use crate::{properties_from_wire, properties_to_wire, v1};

/// A descriptor as a caller sent it: what it left to the queue is `None`.
#[derive(Debug, Clone)]
pub struct PutDescriptor {
    /// The descriptor; its priority and persistence count only where the fields below are `None` after resolution.
    pub descriptor: MessageDescriptor,
    /// `Priority`, if given.
    pub priority: Option<Priority>,
    /// `Persistence`, if given.
    pub persistence: Option<Persistence>,
    /// The priority was above `MAXPRTY`, and is that now: warning 2049.
    pub priority_exceeds_maximum: bool,
}

/// Which fields of the context are the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextFields {
    /// None: they are left empty.
    None,
    /// Those of the identity.
    Identity,
    /// Those of identity and origin.
    All,
}

impl ContextFields {
    /// Takes them out of the wire's descriptor.
    fn take(self, d: &mut v1::MessageDescriptor) -> Result<MessageDescriptor, ReasonCode> {
        let mut of = MessageDescriptor::default();
        match self {
            Self::None => return Ok(of),
            Self::Identity | Self::All => {
                of.user_identifier = text(core::mem::take(&mut d.user_identifier), 12)?;
                of.accounting_token = id(
                    &d.accounting_token,
                    AccountingToken::LENGTH,
                    AccountingToken::from_slice,
                )?
                .unwrap_or_default();
                of.application_identity_data =
                    text(core::mem::take(&mut d.application_identity_data), 32)?;
            }
        }
        if self == Self::All {
            of.put_application_type = ApplicationType::new(d.put_application_type);
            of.put_application_name = text(core::mem::take(&mut d.put_application_name), 28)?;
            of.put_time = Timestamp::from_millis(d.put_time_ms);
            of.application_origin_data = text(core::mem::take(&mut d.application_origin_data), 4)?;
        }
        Ok(of)
    }
}

/// An id of `N` bytes from the wire: empty is none.
///
/// # Errors
/// 2026 if it has another length.
pub fn id<T>(
    bytes: &[u8],
    length: usize,
    make: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<Option<T>, ReasonCode> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() != length {
        return Err(ReasonCode::MD_ERROR);
    }
    make(bytes).map(Some).ok_or(ReasonCode::MD_ERROR)
}

fn text(value: String, length_max: usize) -> Result<String, ReasonCode> {
    if value.len() > length_max || value.chars().any(char::is_control) {
        return Err(ReasonCode::MD_ERROR);
    }
    Ok(value)
}

/// Reads a descriptor from the wire; of its context what is the caller's.
///
/// # Errors
/// 2013, 2026, 2029, 2047, 2050 or 2252 for a field that is out of range; 2442, 2473 or 2478 for properties.
pub fn put_descriptor(
    mut d: v1::MessageDescriptor,
    context: ContextFields,
    now: Timestamp,
) -> Result<PutDescriptor, ReasonCode> {
    let defaults = context.take(&mut d)?;
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    let expires_at = match d.expiry {
        None => None,
        Some(0 | 1_000_000_000..) => return Err(ReasonCode::EXPIRY_ERROR),
        Some(tenths) => {
            Some(now.saturating_add(Duration::from_millis(u64::from(tenths).saturating_mul(100))))
        }
    };
    let persistence = match v1::Persistence::try_from(d.persistence) {
        Ok(v1::Persistence::Unspecified) => None,
        Ok(v1::Persistence::NonPersistent) => Some(Persistence::NonPersistent),
        Ok(v1::Persistence::Persistent) => Some(Persistence::Persistent),
        Err(_) => return Err(ReasonCode::PERSISTENCE_ERROR),
    };
    let priority_of = |p: u32| u8::try_from(p).ok().and_then(Priority::new);
    let priority = d.priority.map(|p| priority_of(p).unwrap_or(Priority::MAX));
    let priority_exceeds_maximum = d.priority.is_some_and(|p| priority_of(p).is_none());
    let descriptor = MessageDescriptor {
        report: ReportOptions::from_bits(d.report),
        message_type: MessageType::new(or(d.message_type, MessageType::DATAGRAM.get()))
            .ok_or(ReasonCode::MSG_TYPE_ERROR)?,
        expires_at,
        feedback: d.feedback,
        encoding: or(d.encoding, defaults.encoding),
        coded_character_set_id: or(d.coded_character_set_id, defaults.coded_character_set_id),
        format: text(d.format, 8)?,
        message_id: id(&d.message_id, MessageId::LENGTH, MessageId::from_slice)?
            .unwrap_or_default(),
        correlation_id: id(
            &d.correlation_id,
            CorrelationId::LENGTH,
            CorrelationId::from_slice,
        )?
        .unwrap_or_default(),
        reply_to_queue: text(d.reply_to_queue, 48)?,
        reply_to_queue_manager: text(d.reply_to_queue_manager, 48)?,
        group_id: id(
            &d.group_id,
            CorrelationId::LENGTH,
            CorrelationId::from_slice,
        )?
        .unwrap_or_default(),
        message_sequence_number: or(d.message_sequence_number, 1),
        offset: d.offset,
        message_flags: d.message_flags,
        original_length: match d.original_length {
            None => -1,
            Some(length) => i32::try_from(length).map_err(|_| ReasonCode::ORIGINAL_LENGTH_ERROR)?,
        },
        properties: properties_from_wire(d.properties)?,
        ..defaults
    };
    Ok(PutDescriptor {
        descriptor,
        priority,
        persistence,
        priority_exceeds_maximum,
    })
}

/// Reads a descriptor that a channel passes on: everything in it counts.
///
/// # Errors
/// As [`put_descriptor`].
pub fn channel_descriptor(
    d: v1::MessageDescriptor,
    now: Timestamp,
) -> Result<MessageDescriptor, ReasonCode> {
    if d.priority
        .is_some_and(|p| p > u32::from(Priority::MAX.get()))
    {
        return Err(ReasonCode::PRIORITY_ERROR);
    }
    let PutDescriptor {
        descriptor,
        priority,
        persistence,
        ..
    } = put_descriptor(d, ContextFields::All, now)?;
    Ok(MessageDescriptor {
        priority: priority.ok_or(ReasonCode::PRIORITY_ERROR)?,
        persistence: persistence.ok_or(ReasonCode::PERSISTENCE_ERROR)?,
        ..descriptor
    })
}

/// Writes a descriptor. Expiry is what is left of it at `now`, never 0.
#[must_use]
pub fn descriptor_to_wire(
    d: &MessageDescriptor,
    backout_count: u32,
    now: Timestamp,
) -> v1::MessageDescriptor {
    let bytes = |id: &[u8]| match id.iter().all(|b| *b == 0) {
        true => bytes::Bytes::new(),
        false => bytes::Bytes::copy_from_slice(id),
    };
    v1::MessageDescriptor {
        report: d.report.bits(),
        message_type: d.message_type.get(),
        expiry: d.expires_at.map(|at| {
            u32::try_from(at.since(now).as_millis().div_ceil(100))
                .unwrap_or(u32::MAX)
                .max(1)
        }),
        feedback: d.feedback,
        encoding: d.encoding,
        coded_character_set_id: d.coded_character_set_id,
        format: d.format.clone(),
        priority: Some(u32::from(d.priority.get())),
        persistence: match d.persistence {
            Persistence::NonPersistent => v1::Persistence::NonPersistent,
            Persistence::Persistent => v1::Persistence::Persistent,
        }
        .into(),
        message_id: bytes(d.message_id.as_bytes()),
        correlation_id: bytes(d.correlation_id.as_bytes()),
        backout_count,
        reply_to_queue: d.reply_to_queue.clone(),
        reply_to_queue_manager: d.reply_to_queue_manager.clone(),
        user_identifier: d.user_identifier.clone(),
        put_application_name: d.put_application_name.clone(),
        put_time_ms: d.put_time.as_millis(),
        group_id: bytes(d.group_id.as_bytes()),
        message_sequence_number: d.message_sequence_number,
        offset: d.offset,
        message_flags: d.message_flags,
        original_length: u32::try_from(d.original_length).ok(),
        accounting_token: bytes(d.accounting_token.as_bytes()),
        application_identity_data: d.application_identity_data.clone(),
        put_application_type: d.put_application_type.get(),
        application_origin_data: d.application_origin_data.clone(),
        properties: properties_to_wire(&d.properties),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_c6_a_descriptor_survives_a_channel() {
        let now = Timestamp::from_millis(1_000_000);
        let descriptor = MessageDescriptor {
            properties: ferrymq_types::Properties::new(vec![ferrymq_types::Property {
                name: "colour".into(),
                value: ferrymq_types::PropertyValue::Boolean(true),
            }])
            .unwrap(),
            report: ReportOptions::from_bits(0x0700_0000),
            message_type: MessageType::REQUEST,
            expires_at: Some(Timestamp::from_millis(1_060_000)),
            feedback: 7,
            format: "MQSTR".into(),
            priority: Priority::MAX,
            persistence: Persistence::Persistent,
            message_id: MessageId::new([1; 24]),
            correlation_id: CorrelationId::new([2; 24]),
            reply_to_queue: "R".into(),
            reply_to_queue_manager: "QM1".into(),
            user_identifier: "app".into(),
            put_application_name: "x".into(),
            put_time: Timestamp::from_millis(77),
            group_id: CorrelationId::new([3; 24]),
            message_sequence_number: 2,
            offset: 1,
            message_flags: 8,
            original_length: 70,
            accounting_token: AccountingToken::new([4; 32]),
            application_identity_data: "identity".into(),
            put_application_type: ApplicationType::new(-1),
            application_origin_data: "orig".into(),
            encoding: 273,
            coded_character_set_id: 500,
        };
        let wire = descriptor_to_wire(&descriptor, 3, now);
        assert_eq!(channel_descriptor(wire, now), Ok(descriptor));
    }

    #[test]
    fn inv_sec_p15_a_putter_cannot_set_its_origin() {
        let wire = v1::MessageDescriptor {
            user_identifier: "root".into(),
            put_application_name: "forged".into(),
            put_time_ms: 1,
            accounting_token: bytes::Bytes::from_static(&[1; 32]),
            application_identity_data: "forged".into(),
            put_application_type: 7,
            application_origin_data: "fals".into(),
            ..v1::MessageDescriptor::default()
        };
        let d = put_descriptor(wire, ContextFields::None, Timestamp::ZERO)
            .unwrap()
            .descriptor;
        assert_eq!(d, MessageDescriptor::default());
    }

    #[test]
    fn fields_out_of_range_are_refused_with_their_reason() {
        let check = |d: v1::MessageDescriptor, reason| {
            assert_eq!(
                put_descriptor(d, ContextFields::None, Timestamp::ZERO).unwrap_err(),
                reason
            );
        };
        let d = v1::MessageDescriptor::default;
        check(
            v1::MessageDescriptor {
                expiry: Some(0),
                ..d()
            },
            ReasonCode::EXPIRY_ERROR,
        );
        check(
            v1::MessageDescriptor {
                persistence: 9,
                ..d()
            },
            ReasonCode::PERSISTENCE_ERROR,
        );
        check(
            v1::MessageDescriptor {
                message_type: 3,
                ..d()
            },
            ReasonCode::MSG_TYPE_ERROR,
        );
        check(
            v1::MessageDescriptor {
                format: "ninechars".into(),
                ..d()
            },
            ReasonCode::MD_ERROR,
        );
        check(
            v1::MessageDescriptor {
                original_length: Some(1 << 31),
                ..d()
            },
            ReasonCode::ORIGINAL_LENGTH_ERROR,
        );
        let short = bytes::Bytes::from_static(b"short");
        check(
            v1::MessageDescriptor {
                message_id: short,
                ..d()
            },
            ReasonCode::MD_ERROR,
        );
    }

    #[test]
    fn a_priority_above_the_highest_is_the_highest_with_a_warning_but_not_from_a_channel() {
        let wire = v1::MessageDescriptor {
            priority: Some(10),
            persistence: v1::Persistence::Persistent.into(),
            ..v1::MessageDescriptor::default()
        };
        let put = put_descriptor(wire.clone(), ContextFields::None, Timestamp::ZERO).unwrap();
        assert_eq!(
            (put.priority, put.priority_exceeds_maximum),
            (Some(Priority::MAX), true)
        );
        assert_eq!(
            channel_descriptor(wire, Timestamp::ZERO),
            Err(ReasonCode::PRIORITY_ERROR)
        );
    }
}
