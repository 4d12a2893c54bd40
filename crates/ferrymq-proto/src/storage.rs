//! Write sets and rows as protobuf: the shape of what the journal and the store keep.
//!
//! The bytes of bodies are not part of the protobuf: they follow it in the record, so that they are copied once and their place
//! is known. Everything that is read is checked: a value outside its range is an error, never a default.

use bytes::Bytes;
use prost::Message as _;

use ferrymq_types::{
    AccountEntry, AccountReason, AttributeValue, BatchInDoubt, BodyId, Change, ChannelName,
    MessageRow, NameError, ObjectId, Position, QueueManagerName, QueueName, QueueRow, ReasonCode,
    ReceiverRow, SenderRow, Sequence, Timestamp, UnitOfWorkOutcome, UnitOfWorkRow, WriteSet,
};

use crate::message_row;
use crate::storage_v1 as pb;

/// Why stored bytes cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not protobuf of this shape.
    #[error("cannot be decoded")]
    Protobuf(#[from] prost::DecodeError),
    /// A field is absent that must be there.
    #[error("field {0} is missing")]
    Missing(&'static str),
    /// A field is outside its range.
    #[error("field {field} has the value {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
    },
    /// A name that no object can have.
    #[error("field {field} is not a name")]
    Name {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        source: NameError,
    },
    /// The bytes of the bodies are not as long as the batch says.
    #[error("bodies have {found} bytes, the batch names {expected}")]
    Bodies {
        /// Bytes that the batch names.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
}

/// A body beside its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBody {
    /// Its id.
    pub id: BodyId,
    /// Its bytes.
    pub bytes: Bytes,
    /// XXH3-64 of its bytes, as the caller computed it.
    pub checksum: u64,
}

/// A batch of write sets as protobuf, and the bodies that follow it, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedBatch {
    /// The protobuf.
    pub batch: Vec<u8>,
    /// The rows of its messages, each as [`StoredRow::to_stored`] makes it, in order.
    pub message_rows: Vec<Bytes>,
    /// The bodies.
    pub bodies: Vec<StoredBody>,
}

/// Encodes write sets. `checksum` is applied to each body.
#[must_use]
pub fn encode_write_sets<'a>(
    sets: impl IntoIterator<Item = &'a WriteSet>,
    checksum: impl Fn(&[u8]) -> u64,
) -> EncodedBatch {
    let (mut bodies, mut message_rows) = (Vec::new(), Vec::new());
    let mut batch = Vec::new();
    // One write set at a time, in the same room: a batch has thousands.
    let mut one = pb::WriteSet::default();
    for set in sets {
        one.position = set.position.get();
        one.changes.clear();
        one.changes
            .extend(set.changes.iter().map(|change| pb::Change {
                change: Some(encode_change(
                    change,
                    &checksum,
                    &mut bodies,
                    &mut message_rows,
                )),
            }));
        message_row::put_message(WRITE_SETS, &one, &mut batch);
    }
    EncodedBatch {
        batch,
        message_rows,
        bodies,
    }
}

/// `WriteSetBatch.write_sets`.
const WRITE_SETS: u64 = 1;

/// A body that a batch names: its bytes are behind the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedBody {
    /// Its id.
    pub id: BodyId,
    /// Its bytes, in number.
    pub length: u32,
    /// XXH3-64 of its bytes.
    pub checksum: u64,
}

/// The write sets of a batch, each [`Change::SetBody`] without its bytes, and the bodies in order: who needs their bytes reads
/// them where they are.
///
/// # Errors
/// [`FormatError`] if the bytes are not a batch that [`encode_write_sets`] made.
pub fn decode_write_sets(batch: &[u8]) -> Result<(Vec<WriteSet>, Vec<NamedBody>), FormatError> {
    let batch = pb::WriteSetBatch::decode(batch)?;
    let mut bodies = Vec::new();
    let mut sets = Vec::with_capacity(batch.write_sets.len());
    for set in batch.write_sets {
        let mut changes = Vec::with_capacity(set.changes.len());
        for change in set.changes {
            let change = change.change.ok_or(FormatError::Missing("change"))?;
            changes.push(decode_change(change, &mut bodies)?);
        }
        sets.push(WriteSet {
            position: Position::new(set.position),
            changes,
        });
    }
    Ok((sets, bodies))
}

fn encode_change(
    change: &Change,
    checksum: &impl Fn(&[u8]) -> u64,
    bodies: &mut Vec<StoredBody>,
    message_rows: &mut Vec<Bytes>,
) -> pb::change::Change {
    use pb::change::Change as To;
    match change {
        Change::SetMessage {
            queue,
            sequence,
            row,
        } => {
            let row = Bytes::from(row.to_stored());
            message_rows.push(row.clone());
            To::SetMessage(pb::SetMessage {
                queue: queue.get(),
                sequence: sequence.get(),
                row,
            })
        }
        Change::DeleteMessage { queue, sequence } => To::DeleteMessage(pb::DeleteMessage {
            queue: queue.get(),
            sequence: sequence.get(),
        }),
        Change::SetDeliveryCount {
            queue,
            sequence,
            count,
        } => To::SetDeliveryCount(pb::SetDeliveryCount {
            queue: queue.get(),
            sequence: sequence.get(),
            count: *count,
        }),
        Change::SetBody { id, body } => {
            let checksum = checksum(body);
            bodies.push(StoredBody {
                id: *id,
                bytes: body.clone(),
                checksum,
            });
            To::SetBody(pb::SetBody {
                id: id.get(),
                // Bodies are bounded by MESSAGE_LENGTH_MAX where messages come in; a longer one would be refused as a
                // write set that no segment holds, so the cut below never reaches a disk.
                length: u32::try_from(body.len()).unwrap_or(u32::MAX),
                checksum,
            })
        }
        Change::DeleteBody { id } => To::DeleteBody(pb::DeleteBody { id: id.get() }),
        Change::SetQueue { queue, row } => To::SetQueue(pb::SetQueue {
            queue: queue.get(),
            row: Some(row.into()),
        }),
        Change::DeleteQueue { queue } => To::DeleteQueue(pb::DeleteQueue { queue: queue.get() }),
        Change::SetCounters { sequence, body } => To::SetCounters(pb::Counters {
            sequence: sequence.get(),
            body: body.get(),
        }),
        Change::SetSender(row) => To::SetSender((&**row).into()),
        Change::SetReceiver(row) => To::SetReceiver((&**row).into()),
        Change::SetChannelStopped { channel, stopped } => {
            To::SetChannelStopped(pb::SetChannelStopped {
                channel: channel.as_str().to_owned(),
                stopped: *stopped,
            })
        }
        Change::DeleteChannel { channel } => To::DeleteChannel(pb::DeleteChannel {
            channel: channel.as_str().to_owned(),
        }),
        Change::SetUnitOfWork(row) => To::SetUnitOfWork(row.into()),
        Change::DeleteUnitOfWork { id } => To::DeleteUnitOfWork(pb::DeleteUnitOfWork {
            id: Bytes::copy_from_slice(id.as_bytes()),
        }),
        Change::SetAccount(row) => To::SetAccount((&**row).into()),
        Change::DeleteAccount { number } => {
            To::DeleteAccount(pb::DeleteAccount { number: *number })
        }
    }
}

fn decode_change(
    change: pb::change::Change,
    bodies: &mut Vec<NamedBody>,
) -> Result<Change, FormatError> {
    use pb::change::Change as From;
    Ok(match change {
        From::SetMessage(c) => Change::SetMessage {
            queue: ObjectId::new(c.queue),
            sequence: Sequence::new(c.sequence),
            row: match &*c.row {
                [] => return Err(FormatError::Missing("row")),
                row => Box::new(MessageRow::from_stored(row)?),
            },
        },
        From::DeleteMessage(c) => Change::DeleteMessage {
            queue: ObjectId::new(c.queue),
            sequence: Sequence::new(c.sequence),
        },
        From::SetDeliveryCount(c) => Change::SetDeliveryCount {
            queue: ObjectId::new(c.queue),
            sequence: Sequence::new(c.sequence),
            count: c.count,
        },
        From::SetBody(c) => {
            bodies.push(NamedBody {
                id: BodyId::new(c.id),
                length: c.length,
                checksum: c.checksum,
            });
            Change::SetBody {
                id: BodyId::new(c.id),
                body: Bytes::new(),
            }
        }
        From::DeleteBody(c) => Change::DeleteBody {
            id: BodyId::new(c.id),
        },
        From::SetQueue(c) => Change::SetQueue {
            queue: ObjectId::new(c.queue),
            row: c.row.ok_or(FormatError::Missing("row"))?.try_into()?,
        },
        From::DeleteQueue(c) => Change::DeleteQueue {
            queue: ObjectId::new(c.queue),
        },
        From::SetCounters(c) => Change::SetCounters {
            sequence: Sequence::new(c.sequence),
            body: BodyId::new(c.body),
        },
        From::SetSender(c) => Change::SetSender(Box::new(c.try_into()?)),
        From::SetReceiver(c) => Change::SetReceiver(Box::new(c.try_into()?)),
        From::SetChannelStopped(c) => Change::SetChannelStopped {
            channel: channel("channel", &c.channel)?,
            stopped: c.stopped,
        },
        From::DeleteChannel(c) => Change::DeleteChannel {
            channel: channel("channel", &c.channel)?,
        },
        From::SetUnitOfWork(c) => Change::SetUnitOfWork(c.try_into()?),
        From::DeleteUnitOfWork(c) => Change::DeleteUnitOfWork {
            id: id("id", &c.id)?,
        },
        From::SetAccount(c) => Change::SetAccount(Box::new(c.try_into()?)),
        From::DeleteAccount(c) => Change::DeleteAccount { number: c.number },
    })
}

/// A row that is stored under a key of its own.
pub trait StoredRow: Sized {
    /// Its bytes.
    fn to_stored(&self) -> Vec<u8>;

    /// From its bytes. Keeps nothing of `bytes` alive.
    ///
    /// # Errors
    /// [`FormatError`] if the bytes are not such a row.
    fn from_stored(bytes: &[u8]) -> Result<Self, FormatError>;
}

macro_rules! stored_row {
    ($($row:ty = $proto:ty;)*) => {
        $(impl StoredRow for $row {
            fn to_stored(&self) -> Vec<u8> {
                <$proto>::from(self).encode_to_vec()
            }
            fn from_stored(bytes: &[u8]) -> Result<Self, FormatError> {
                <$proto>::decode(bytes)?.try_into()
            }
        })*
    };
}

stored_row! {
    QueueRow = pb::QueueRow;
    SenderRow = pb::SenderRow;
    ReceiverRow = pb::ReceiverRow;
    UnitOfWorkRow = pb::UnitOfWorkRow;
    AccountEntry = pb::AccountRow;
}

/// A channel that an operator stopped, by name: a row of its own.
impl StoredRow for ChannelName {
    fn to_stored(&self) -> Vec<u8> {
        pb::StoppedChannelRow {
            channel: self.as_str().to_owned(),
        }
        .encode_to_vec()
    }
    fn from_stored(bytes: &[u8]) -> Result<Self, FormatError> {
        channel("channel", &pb::StoppedChannelRow::decode(bytes)?.channel)
    }
}

fn bytes_of<const N: usize>(id: &[u8; N]) -> Bytes {
    if *id == [0; N] {
        return Bytes::new();
    }
    Bytes::copy_from_slice(id)
}

/// All bytes of an id, or none for an id of zeros.
pub(crate) fn id<const N: usize, T: FromArray<N>>(
    field: &'static str,
    bytes: &[u8],
) -> Result<T, FormatError> {
    if bytes.is_empty() {
        return Ok(T::from_array([0; N]));
    }
    <[u8; N]>::try_from(bytes)
        .map(T::from_array)
        .map_err(|_| FormatError::Value {
            field,
            value: format!("of {} bytes", bytes.len()),
        })
}

/// An id of `N` bytes.
pub(crate) trait FromArray<const N: usize> {
    fn from_array(bytes: [u8; N]) -> Self;
}

macro_rules! from_array {
    ($($name:ident)*) => {
        $(impl FromArray<{ ferrymq_types::$name::LENGTH }> for ferrymq_types::$name {
            fn from_array(bytes: [u8; ferrymq_types::$name::LENGTH]) -> Self {
                Self::new(bytes)
            }
        })*
    };
}
from_array!(MessageId CorrelationId AccountingToken UnitOfWorkId QueueManagerId);

fn channel(field: &'static str, text: &str) -> Result<ChannelName, FormatError> {
    ChannelName::new(text).map_err(|source| FormatError::Name { field, source })
}

fn queue(field: &'static str, text: &str) -> Result<QueueName, FormatError> {
    QueueName::new(text).map_err(|source| FormatError::Name { field, source })
}

fn queue_manager(field: &'static str, text: &str) -> Result<QueueManagerName, FormatError> {
    QueueManagerName::new(text).map_err(|source| FormatError::Name { field, source })
}

pub(crate) fn value(field: &'static str, value: impl ToString) -> FormatError {
    FormatError::Value {
        field,
        value: value.to_string(),
    }
}

/// A keyword and its value as they are stored.
#[must_use]
pub fn attribute_to_stored(keyword: &str, value: &AttributeValue) -> pb::DefinitionAttribute {
    use pb::definition_attribute::Value;

    pb::DefinitionAttribute {
        keyword: keyword.to_owned(),
        value: Some(match value {
            AttributeValue::Number(n) => Value::Number(*n),
            AttributeValue::Text(t) => Value::Text(t.clone()),
            AttributeValue::Word(w) => Value::Word(w.clone()),
            AttributeValue::Flag(f) => Value::Flag(*f),
            AttributeValue::List(items) => Value::List(pb::DefinitionAttributeList {
                items: items.clone(),
            }),
        }),
    }
}

/// Reads what [`attribute_to_stored`] made.
///
/// # Errors
/// [`FormatError::Missing`] if it has no value that is known.
pub fn attribute_from_stored(
    attribute: pb::DefinitionAttribute,
) -> Result<(String, AttributeValue), FormatError> {
    use pb::definition_attribute::Value;

    let value = match attribute.value.ok_or(FormatError::Missing("value"))? {
        Value::Number(n) => AttributeValue::Number(n),
        Value::Text(t) => AttributeValue::Text(t),
        Value::Word(w) => AttributeValue::Word(w),
        Value::Flag(f) => AttributeValue::Flag(f),
        Value::List(list) => AttributeValue::List(list.items),
    };
    Ok((attribute.keyword, value))
}

impl From<&QueueRow> for pb::QueueRow {
    fn from(row: &QueueRow) -> Self {
        Self {
            name: row.name.as_str().to_owned(),
            closed: row.closed,
            trigger_used_ms: row.trigger_used.map(Timestamp::as_millis),
            definition: row
                .definition
                .iter()
                .flatten()
                .map(|(keyword, value)| attribute_to_stored(keyword, value))
                .collect(),
        }
    }
}

impl TryFrom<pb::QueueRow> for QueueRow {
    type Error = FormatError;
    fn try_from(row: pb::QueueRow) -> Result<Self, FormatError> {
        Ok(Self {
            name: queue("name", &row.name)?,
            closed: row.closed,
            trigger_used: row.trigger_used_ms.map(Timestamp::from_millis),
            definition: if row.definition.is_empty() {
                None
            } else {
                let read = row.definition.into_iter().map(attribute_from_stored);
                Some(read.collect::<Result<_, FormatError>>()?)
            },
        })
    }
}

impl From<&SenderRow> for pb::SenderRow {
    fn from(row: &SenderRow) -> Self {
        Self {
            channel: row.channel.as_str().to_owned(),
            transmission_queue: row.transmission_queue.get(),
            generation: row.generation,
            last_confirmed: row.last_confirmed,
            last_batch: bytes_of(row.last_batch.as_bytes()),
            in_doubt: row
                .in_doubt
                .iter()
                .map(|b| pb::BatchInDoubt {
                    id: bytes_of(b.id.as_bytes()),
                    first_number: b.first_number,
                    last_number: b.last_number,
                    messages: b.messages.iter().map(|s| s.get()).collect(),
                })
                .collect(),
            partner_name: row
                .partner
                .as_ref()
                .map(|(name, _)| name.as_str().to_owned()),
            partner_id: row.partner.as_ref().map(|(_, id)| bytes_of(id.as_bytes())),
            start: row.start,
            reset_to: row.reset_to,
        }
    }
}

impl TryFrom<pb::SenderRow> for SenderRow {
    type Error = FormatError;
    fn try_from(row: pb::SenderRow) -> Result<Self, FormatError> {
        let partner = match (row.partner_name, row.partner_id) {
            (Some(name), Some(bytes)) => Some((
                queue_manager("partner_name", &name)?,
                id("partner_id", &bytes)?,
            )),
            (None, None) => None,
            (Some(_), None) => return Err(FormatError::Missing("partner_id")),
            (None, Some(_)) => return Err(FormatError::Missing("partner_name")),
        };
        Ok(Self {
            channel: channel("channel", &row.channel)?,
            transmission_queue: ObjectId::new(row.transmission_queue),
            generation: row.generation,
            last_confirmed: row.last_confirmed,
            last_batch: id("last_batch", &row.last_batch)?,
            in_doubt: row
                .in_doubt
                .into_iter()
                .map(|b| {
                    Ok(BatchInDoubt {
                        id: id("in_doubt.id", &b.id)?,
                        first_number: b.first_number,
                        last_number: b.last_number,
                        messages: b.messages.into_iter().map(Sequence::new).collect(),
                    })
                })
                .collect::<Result<_, FormatError>>()?,
            partner,
            start: row.start,
            reset_to: row.reset_to,
        })
    }
}

impl From<&ReceiverRow> for pb::ReceiverRow {
    fn from(row: &ReceiverRow) -> Self {
        Self {
            channel: row.channel.as_str().to_owned(),
            sender: bytes_of(row.sender.as_bytes()),
            sender_name: row.sender_name.as_str().to_owned(),
            generation: row.generation,
            last_committed: row.last_committed,
            last_batch: bytes_of(row.last_batch.as_bytes()),
            reset_to: row.reset_to,
        }
    }
}

impl TryFrom<pb::ReceiverRow> for ReceiverRow {
    type Error = FormatError;
    fn try_from(row: pb::ReceiverRow) -> Result<Self, FormatError> {
        Ok(Self {
            channel: channel("channel", &row.channel)?,
            sender: id("sender", &row.sender)?,
            sender_name: queue_manager("sender_name", &row.sender_name)?,
            generation: row.generation,
            last_committed: row.last_committed,
            last_batch: id("last_batch", &row.last_batch)?,
            reset_to: row.reset_to,
        })
    }
}

impl From<&UnitOfWorkRow> for pb::UnitOfWorkRow {
    fn from(row: &UnitOfWorkRow) -> Self {
        Self {
            id: bytes_of(row.id.as_bytes()),
            outcome: match row.outcome {
                UnitOfWorkOutcome::Committed => pb::UnitOfWorkOutcome::Committed,
                UnitOfWorkOutcome::BackedOut => pb::UnitOfWorkOutcome::BackedOut,
            }
            .into(),
            time: row.time.as_millis(),
            message_id: row
                .message_id
                .map(|id| Bytes::copy_from_slice(id.as_bytes())),
        }
    }
}

impl TryFrom<pb::UnitOfWorkRow> for UnitOfWorkRow {
    type Error = FormatError;
    fn try_from(row: pb::UnitOfWorkRow) -> Result<Self, FormatError> {
        Ok(Self {
            id: id("id", &row.id)?,
            outcome: match pb::UnitOfWorkOutcome::try_from(row.outcome) {
                Ok(pb::UnitOfWorkOutcome::Committed) => UnitOfWorkOutcome::Committed,
                Ok(pb::UnitOfWorkOutcome::BackedOut) => UnitOfWorkOutcome::BackedOut,
                Ok(pb::UnitOfWorkOutcome::Unspecified) | Err(_) => {
                    return Err(value("outcome", row.outcome));
                }
            },
            time: Timestamp::from_millis(row.time),
            message_id: row
                .message_id
                .map(|bytes| id("message_id", &bytes))
                .transpose()?,
        })
    }
}

impl From<&AccountEntry> for pb::AccountRow {
    fn from(row: &AccountEntry) -> Self {
        use pb::StoredAccountReason as Reason;
        let (reason, code) = match row.reason {
            AccountReason::Expired => (Reason::Expired, ReasonCode::NONE),
            AccountReason::Cleared => (Reason::Cleared, ReasonCode::NONE),
            AccountReason::DeadLettered(code) => (Reason::DeadLettered, code),
            AccountReason::BackedOut => (Reason::BackedOut, ReasonCode::NONE),
            AccountReason::Discarded(code) => (Reason::Discarded, code),
        };
        Self {
            number: row.number,
            message_id: bytes_of(row.message_id.as_bytes()),
            from: row.from.as_str().to_owned(),
            to: row.to.clone(),
            reason: reason.into(),
            reason_code: code.get(),
            who: row.who.clone(),
            time: row.time.as_millis(),
        }
    }
}

impl TryFrom<pb::AccountRow> for AccountEntry {
    type Error = FormatError;
    fn try_from(row: pb::AccountRow) -> Result<Self, FormatError> {
        use pb::StoredAccountReason as Reason;
        let code = ReasonCode::new(row.reason_code);
        Ok(Self {
            number: row.number,
            message_id: id("message_id", &row.message_id)?,
            from: queue("from", &row.from)?,
            to: row.to,
            reason: match Reason::try_from(row.reason) {
                Ok(Reason::Expired) => AccountReason::Expired,
                Ok(Reason::Cleared) => AccountReason::Cleared,
                Ok(Reason::DeadLettered) => AccountReason::DeadLettered(code),
                Ok(Reason::BackedOut) => AccountReason::BackedOut,
                Ok(Reason::Discarded) => AccountReason::Discarded(code),
                Ok(Reason::Unspecified) | Err(_) => return Err(value("reason", row.reason)),
            },
            who: row.who,
            time: Timestamp::from_millis(row.time),
        })
    }
}

#[cfg(test)]
#[path = "tests/storage.rs"]
mod tests;
