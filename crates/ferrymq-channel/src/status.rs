//! What `DISPLAY CHSTATUS` and the metrics show of an MCA.

use std::collections::BTreeMap;

use ferrymq_types::{
    ChannelName, QueueManagerName, QueueName, ReasonCode, Timestamp, UnitOfWorkId,
};

use crate::ChannelState;

/// What became of a message that could not be delivered. The label `action` of the metric of undelivered messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UndeliveredAction {
    /// It went to a dead-letter queue.
    DeadLettered,
    /// It is tried again.
    Retried,
    /// It was discarded, with account.
    Discarded,
    /// Nothing was consumed: it stays on the transmission queue and the channel ends.
    Stopped,
}

impl UndeliveredAction {
    /// The value of the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeadLettered => "dlq",
            Self::Retried => "retry",
            Self::Discarded => "discarded",
            Self::Stopped => "stopped",
        }
    }
}

/// Totals since the MCA was made; they only rise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// `MSGS`: messages transferred, fast ones included. At a sender those of a batch count when it is confirmed.
    pub messages: u64,
    /// Fast messages among them.
    pub fast_messages: u64,
    /// `BATCHES`.
    pub batches: u64,
    /// `BYTSSENT`: data bytes of messages sent.
    pub bytes_sent: u64,
    /// `BYTSRCVD`: data bytes of messages received.
    pub bytes_received: u64,
    /// Times that the channel went to `RETRYING`.
    pub retries: u64,
    /// Fast messages that were lost with a conversation (invariant N2).
    pub fast_lost: u64,
    /// Messages that could not be delivered, by what became of them and why.
    pub undelivered: BTreeMap<(UndeliveredAction, ReasonCode), u64>,
}

impl Counters {
    pub(crate) fn count_undelivered(&mut self, action: UndeliveredAction, reason: ReasonCode) {
        let count = self.undelivered.entry((action, reason)).or_default();
        *count = count.saturating_add(1);
    }
}

/// One MCA at one moment.
///
/// Source: IBM MQ, `DISPLAY CHSTATUS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStatus {
    /// The channel.
    pub channel: ChannelName,
    /// `STATUS`.
    pub state: ChannelState,
    /// `SUBSTATE`: what it does at this moment, in IBM's words.
    pub substate: &'static str,
    /// `STOPREQ`: a stop is asked for and not done.
    pub stop_requested: bool,
    /// `CONNAME` in use.
    pub connection_name: String,
    /// `RQMNAME`, once known.
    pub partner: Option<QueueManagerName>,
    /// `XMITQ`, of a sender.
    pub transmission_queue: Option<QueueName>,
    /// `SSLPEER`: the subject of the partner's certificate; empty without TLS.
    pub peer: String,
    /// `INDOUBT`: a confirmation was asked for and has not come.
    pub in_doubt: bool,
    /// `CURLUWID`.
    pub current_batch: UnitOfWorkId,
    /// `CURMSGS`: messages of the current batch sent or received.
    pub current_messages: u64,
    /// `CURSEQNO`: the last number sent or received; never wraps, displays shape it by `SEQWRAP`.
    pub current_number: u64,
    /// `LSTLUWID`.
    pub last_batch: UnitOfWorkId,
    /// `LSTSEQNO`, never wraps.
    pub last_number: u64,
    /// The generation that the numbers belong to; 0 before it is known.
    pub generation: u64,
    /// `CHSTADA`, `CHSTATI`.
    pub started: Option<Timestamp>,
    /// `LSTMSGDA`, `LSTMSGTI`.
    pub last_message: Option<Timestamp>,
    /// `SHORTRTS`: short retries left.
    pub short_retries_left: u32,
    /// `LONGRTS`: long retries left.
    pub long_retries_left: u32,
    /// `BATCHSZ` in use.
    pub batch_size: u32,
    /// `MAXMSGL` in use, bytes.
    pub message_length_max: u32,
    /// `HBINT` in use, seconds.
    pub heartbeat_interval: u32,
    /// `NPMSPEED(FAST)` in use.
    pub fast: bool,
    /// `SEQWRAP`, for showing numbers.
    pub sequence_wrap: u32,
    /// The last error, in words; empty if there was none since the start.
    pub last_error: String,
    /// Totals.
    pub counters: Counters,
}

/// A number that never wraps, as `SEQWRAP` shows it: 1 to `sequence_wrap`, 0 for none.
#[must_use]
pub const fn shown_number(number: u64, sequence_wrap: u32) -> u64 {
    let wrap = sequence_wrap as u64;
    match (number.checked_sub(1), wrap) {
        (None, _) => 0,
        (Some(_), 0) => number,
        #[allow(
            clippy::arithmetic_side_effects,
            reason = "wrap is above 0, and the remainder below it"
        )]
        (Some(before), _) => before % wrap + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u6_seqwrap_only_shapes_what_is_shown() {
        for (number, wrap, shown) in [
            (0, 100, 0),
            (1, 100, 1),
            (100, 100, 100),
            (101, 100, 1),
            (u64::MAX, 1, 1),
            (7, 0, 7),
        ] {
            assert_eq!(shown_number(number, wrap), shown, "{number} {wrap}");
        }
    }
}
