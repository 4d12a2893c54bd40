//! Account entries: every removal of a message that is no committed get leaves one (invariants V2, C1).

use core::fmt;

use crate::{MessageId, QueueName, ReasonCode, Timestamp};

/// Why a message left a queue by another way than a committed get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccountReason {
    /// Its expiry passed.
    Expired,
    /// The queue was cleared, or deleted with its messages.
    Cleared,
    /// It was moved to a dead-letter queue, for this reason code.
    DeadLettered(ReasonCode),
    /// It was moved to a backout queue because its backout count reached the threshold.
    BackedOut,
    /// A channel discarded it, for this reason code.
    Discarded(ReasonCode),
}

impl fmt::Display for AccountReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("expired"),
            Self::Cleared => f.write_str("cleared"),
            Self::DeadLettered(_) => f.write_str("dead_lettered"),
            Self::BackedOut => f.write_str("backed_out"),
            Self::Discarded(_) => f.write_str("discarded"),
        }
    }
}

/// The durable record that a message left a queue by another way than a committed get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountEntry {
    /// Its place in the account of its queue manager, from 1.
    pub number: u64,
    /// The message.
    pub message_id: MessageId,
    /// The queue that it left; a receiver that discards a message names the queue that it was for.
    pub from: QueueName,
    /// Where it went, as `QUEUE` or `QUEUE@QMGR`; `None` is nowhere.
    pub to: Option<String>,
    /// Why.
    pub reason: AccountReason,
    /// Who did it: a user, a channel, or the queue manager.
    pub who: String,
    /// When.
    pub time: Timestamp,
}
