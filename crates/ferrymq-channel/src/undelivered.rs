//! What becomes of a message that a channel cannot deliver.
//!
//! The receiving end asks [`receiving`] after each failed put, the sending end [`sending`] when it cannot send a message, or
//! when the receiver refused it. Both are total: every combination has one answer, and the tests are the tables.
//!
//! Source: IBM MQ, "What happens when a message cannot be delivered?", "Use Dead-Letter Queue", "Report (MQLONG)",
//! "Safety of messages".

use ferrymq_objects::UseDlq;
use ferrymq_types::{Persistence, ReasonCode, ReportOptions, RequestedReport};

/// What a message is to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// Persistent: always in a batch.
    Persistent,
    /// Non-persistent in a batch: `NPMSPEED(NORMAL)` at one of the ends.
    NonPersistentNormal,
    /// Non-persistent outside batches: `NPMSPEED(FAST)` at both ends.
    NonPersistentFast,
}

impl MessageKind {
    /// Of a message in a batch.
    #[must_use]
    pub const fn in_batch(persistence: Persistence) -> Self {
        match persistence {
            Persistence::Persistent => Self::Persistent,
            Persistence::NonPersistent => Self::NonPersistentNormal,
        }
    }
}

/// What is known of the dead-letter queue for this message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadLetterQueue {
    /// `DEADQ` names a queue, and it was not tried yet.
    Untried,
    /// `DEADQ` is blank.
    Blank,
    /// It cannot take the message, for this reason: missing, full, inhibited, too small, not authorised, not local, damaged.
    Failed(ReasonCode),
}

/// What failed at the receiving end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReceiverPlace {
    /// The put of the message where it is going.
    Destination,
    /// The put of the exception report about it.
    Report,
}

/// A put at the receiving end that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverFailure {
    /// What failed.
    pub place: ReceiverPlace,
    /// Why the put where it is going failed (of the message, or of the report).
    pub reason: ReasonCode,
    /// What the message is.
    pub kind: MessageKind,
    /// Tries that `MRRTY` still allows for this message.
    pub retries_left: u32,
    /// `USEDLQ` of the receiving channel.
    pub use_dead_letter_queue: UseDlq,
    /// The dead-letter queue of the receiving queue manager.
    pub dead_letter_queue: DeadLetterQueue,
    /// What the putter asked for.
    pub report: ReportOptions,
}

/// What a receiver does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverDecision {
    /// Wait `MRTMR` and try the same put again.
    RetryLater,
    /// Try the dead-letter queue. If it takes the message, `report` says whether an exception report follows.
    DeadLetter {
        /// Whether an exception report is put.
        report: bool,
    },
    /// Discard it, with account; an exception report goes first if `report` says so.
    Discard {
        /// Whether an exception report is put.
        report: bool,
    },
    /// Nothing is consumed. Of a message: the sender decides (table C). Of a report: the batch is backed out.
    NotConsumed,
}

/// The decision of the receiving end: message retry, then tables A and B.
#[must_use]
pub fn receiving(failure: &ReceiverFailure) -> ReceiverDecision {
    match failure.place {
        ReceiverPlace::Destination => destination_failed(failure),
        ReceiverPlace::Report => report_failed(failure.kind, failure.dead_letter_queue),
    }
}

fn destination_failed(failure: &ReceiverFailure) -> ReceiverDecision {
    if is_retried(failure.reason) && failure.retries_left > 0 {
        return ReceiverDecision::RetryLater;
    }
    let report = wants_report(failure.report);
    if failure.report.discard() {
        return ReceiverDecision::Discard { report };
    }
    match (
        failure.use_dead_letter_queue,
        failure.dead_letter_queue,
        failure.kind,
    ) {
        (UseDlq::Yes, DeadLetterQueue::Untried, _) => ReceiverDecision::DeadLetter { report },
        (_, _, MessageKind::NonPersistentFast) => ReceiverDecision::Discard { report },
        (UseDlq::No, _, MessageKind::Persistent | MessageKind::NonPersistentNormal)
        | (
            UseDlq::Yes,
            DeadLetterQueue::Blank | DeadLetterQueue::Failed(_),
            MessageKind::Persistent | MessageKind::NonPersistentNormal,
        ) => ReceiverDecision::NotConsumed,
    }
}

/// A report that cannot be put is dead-lettered like any message, whatever `USEDLQ` says; the last row of table B.
const fn report_failed(kind: MessageKind, queue: DeadLetterQueue) -> ReceiverDecision {
    match (queue, kind) {
        (DeadLetterQueue::Untried, _) => ReceiverDecision::DeadLetter { report: false },
        (DeadLetterQueue::Blank | DeadLetterQueue::Failed(_), MessageKind::Persistent) => {
            ReceiverDecision::NotConsumed
        }
        (
            DeadLetterQueue::Blank | DeadLetterQueue::Failed(_),
            MessageKind::NonPersistentNormal | MessageKind::NonPersistentFast,
        ) => ReceiverDecision::Discard { report: false },
    }
}

/// Whether a receiver tries the put again: 2051, 2053 and 2192, no other.
///
/// Source: IBM MQ, "Message retry count".
#[must_use]
pub fn is_retried(reason: ReasonCode) -> bool {
    [
        ReasonCode::PUT_INHIBITED,
        ReasonCode::Q_FULL,
        ReasonCode::STORAGE_MEDIUM_FULL,
    ]
    .contains(&reason)
}

/// Whether a failure says nothing about the message: the queue manager stops, is out of room altogether, or the unit of work
/// or the bind is gone. The conversation ends then, nothing is dead-lettered for it, and the sender comes back later.
#[must_use]
pub fn is_queue_managers(reason: ReasonCode, dead_letter_queue: DeadLetterQueue) -> bool {
    const OF_THE_QUEUE_MANAGER: [ReasonCode; 15] = [
        ReasonCode::BACKED_OUT,
        ReasonCode::CONNECTION_BROKEN,
        ReasonCode::SYNCPOINT_LIMIT_REACHED,
        ReasonCode::STORAGE_NOT_AVAILABLE,
        ReasonCode::SYNCPOINT_NOT_AVAILABLE,
        ReasonCode::RESOURCE_PROBLEM,
        ReasonCode::Q_MGR_QUIESCING,
        ReasonCode::Q_MGR_STOPPING,
        ReasonCode::UOW_NOT_AVAILABLE,
        ReasonCode::Q_MGR_NOT_AVAILABLE,
        ReasonCode::IN_DOUBT,
        ReasonCode::CORRUPT_STORE,
        ReasonCode::CHANNEL_SEQUENCE_ERROR,
        ReasonCode::CHANNEL_SUPERSEDED,
        ReasonCode::STOPPING,
    ];
    let no_space = ReasonCode::STORAGE_MEDIUM_FULL;
    OF_THE_QUEUE_MANAGER.contains(&reason)
        || (reason == no_space && dead_letter_queue == DeadLetterQueue::Failed(no_space))
}

/// Where the sending end learned that a message cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SenderPlace {
    /// Before it was sent: too long for the channel (2218), or without a valid transmission header (271).
    BeforeSending,
    /// The receiver refused it and consumed nothing: table C.
    Refused,
    /// The put of the exception report about it failed.
    Report,
}

/// A message that the sending end cannot deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderFailure {
    /// Where.
    pub place: SenderPlace,
    /// What the message is.
    pub kind: MessageKind,
    /// `USEDLQ` of the sending channel.
    pub use_dead_letter_queue: UseDlq,
    /// The dead-letter queue of the sending queue manager.
    pub dead_letter_queue: DeadLetterQueue,
    /// What the putter asked for.
    pub report: ReportOptions,
}

/// What a sender does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderDecision {
    /// Try the dead-letter queue here. If it takes the message, `report` says whether an exception report follows.
    DeadLetterHere {
        /// Whether an exception report is put.
        report: bool,
    },
    /// The current batch is backed out, every message stays on the transmission queue, the channel goes to `RETRYING`.
    BackOutAndRetry,
    /// Discard it, with account; an exception report goes first if `report` says so.
    Discard {
        /// Whether an exception report is put.
        report: bool,
    },
}

/// The decision of the sending end. `MQRO_DISCARD_MSG` of a refused message plays no part: its receiver would have discarded it.
#[must_use]
pub fn sending(failure: &SenderFailure) -> SenderDecision {
    let report = wants_report(failure.report);
    match failure.place {
        SenderPlace::Report => match report_failed(failure.kind, failure.dead_letter_queue) {
            ReceiverDecision::DeadLetter { report } => SenderDecision::DeadLetterHere { report },
            ReceiverDecision::Discard { report } => SenderDecision::Discard { report },
            ReceiverDecision::NotConsumed | ReceiverDecision::RetryLater => {
                SenderDecision::BackOutAndRetry
            }
        },
        SenderPlace::BeforeSending if failure.report.discard() => {
            SenderDecision::Discard { report }
        }
        SenderPlace::BeforeSending | SenderPlace::Refused => match (
            failure.use_dead_letter_queue,
            failure.dead_letter_queue,
            failure.kind,
        ) {
            (UseDlq::Yes, DeadLetterQueue::Untried, _) => SenderDecision::DeadLetterHere { report },
            (_, _, MessageKind::NonPersistentFast) => SenderDecision::Discard { report },
            (UseDlq::No, _, MessageKind::Persistent | MessageKind::NonPersistentNormal)
            | (
                UseDlq::Yes,
                DeadLetterQueue::Blank | DeadLetterQueue::Failed(_),
                MessageKind::Persistent | MessageKind::NonPersistentNormal,
            ) => SenderDecision::BackOutAndRetry,
        },
    }
}

/// Whether any exception report is asked for.
#[must_use]
pub const fn wants_report(options: ReportOptions) -> bool {
    match options.exception() {
        RequestedReport::No => false,
        RequestedReport::WithoutData
        | RequestedReport::WithData
        | RequestedReport::WithFullData => true,
    }
}
