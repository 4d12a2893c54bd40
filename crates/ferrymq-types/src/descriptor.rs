//! The message descriptor: what travels with every message.

use core::fmt;

use crate::{
    AccountingToken, CorrelationId, MessageId, PRIORITY_MAX, Properties, ReasonCode, Timestamp,
};

/// Whether a message survives a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Persistence {
    /// Delivered at most once; a restart or a failing fast channel may lose it. `MQPER_NOT_PERSISTENT`.
    #[default]
    NonPersistent,
    /// Neither lost nor repeated once its put was answered. `MQPER_PERSISTENT`.
    Persistent,
}

/// A message priority, 0 (lowest) to 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(u8);

impl Priority {
    /// The highest, 9.
    pub const MAX: Self = Self(PRIORITY_MAX);

    /// Checks the range; `None` above 9.
    #[must_use]
    pub fn new(value: u8) -> Option<Self> {
        (value <= PRIORITY_MAX).then_some(Self(value))
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What a message is for. `MsgType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageType(u32);

impl MessageType {
    /// `MQMT_REQUEST`.
    pub const REQUEST: Self = Self(1);
    /// `MQMT_REPLY`.
    pub const REPLY: Self = Self(2);
    /// `MQMT_REPORT`.
    pub const REPORT: Self = Self(4);
    /// `MQMT_DATAGRAM`, the default of a put.
    pub const DATAGRAM: Self = Self(8);

    /// Checks the range: 1 to 8 for the system, 65536 to 999999999 for applications. Otherwise `None`: 2029.
    #[must_use]
    pub fn new(value: u32) -> Option<Self> {
        matches!(value, 1 | 2 | 4 | 8 | 65_536..=999_999_999).then_some(Self(value))
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// What kind of application put a message. `PutApplType`, `MQAT_*`; any number may come, since applications have their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ApplicationType(i32);

impl ApplicationType {
    /// `MQAT_NO_CONTEXT`: the message was put without a context.
    pub const NO_CONTEXT: Self = Self(0);
    /// `MQAT_UNIX`: what the queue manager says of an application.
    pub const UNIX: Self = Self(6);
    /// `MQAT_QMGR`: the queue manager itself, or one of its channels.
    pub const QUEUE_MANAGER: Self = Self(7);

    /// From its number.
    #[must_use]
    pub const fn new(value: i32) -> Self {
        Self(value)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// Which report of a kind the putter asked for. `MQRO_*`, `MQRO_*_WITH_DATA`, `MQRO_*_WITH_FULL_DATA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestedReport {
    /// None.
    No,
    /// Without application data.
    WithoutData,
    /// With the first 100 bytes of application data.
    WithData,
    /// With all application data.
    WithFullData,
}

/// Report options. `Report`, `MQRO_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ReportOptions(u32);

impl ReportOptions {
    /// Where the three bits of each kind of report begin.
    const COA_SHIFT: u32 = 8;
    const COD_SHIFT: u32 = 11;
    const EXPIRATION_SHIFT: u32 = 21;
    const EXCEPTION_SHIFT: u32 = 24;
    const PASS_DISCARD_AND_EXPIRY: u32 = 0x4000;
    const DISCARD_MSG: u32 = 0x0800_0000;
    const PASS_CORREL_ID: u32 = 0x40;
    const PASS_MSG_ID: u32 = 0x80;

    /// No report, dead-letter when undeliverable: the default.
    pub const NONE: Self = Self(0);

    /// From the number of the descriptor.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The number of the descriptor.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// A kind of report: its bit alone, with the next one for some data, with two more for all data.
    const fn requested(self, shift: u32) -> RequestedReport {
        match self.0 >> shift & 7 {
            1 => RequestedReport::WithoutData,
            3 => RequestedReport::WithData,
            7 => RequestedReport::WithFullData,
            _ => RequestedReport::No,
        }
    }

    /// The exception report asked for. `MQRO_EXCEPTION*`.
    #[must_use]
    pub const fn exception(self) -> RequestedReport {
        self.requested(Self::EXCEPTION_SHIFT)
    }

    /// The report asked for when the message expires. `MQRO_EXPIRATION*`.
    #[must_use]
    pub const fn expiration(self) -> RequestedReport {
        self.requested(Self::EXPIRATION_SHIFT)
    }

    /// The confirmation of arrival asked for. `MQRO_COA*`.
    #[must_use]
    pub const fn confirm_on_arrival(self) -> RequestedReport {
        self.requested(Self::COA_SHIFT)
    }

    /// The confirmation of delivery asked for. `MQRO_COD*`.
    #[must_use]
    pub const fn confirm_on_delivery(self) -> RequestedReport {
        self.requested(Self::COD_SHIFT)
    }

    /// Whether every kind of report is asked for in a way that there is: else 2061.
    #[must_use]
    pub fn is_consistent(self) -> bool {
        let shifts = [
            Self::EXCEPTION_SHIFT,
            Self::EXPIRATION_SHIFT,
            Self::COA_SHIFT,
            Self::COD_SHIFT,
        ];
        shifts
            .into_iter()
            .all(|shift| matches!(self.0 >> shift & 7, 0 | 1 | 3 | 7))
    }

    /// `MQRO_PASS_DISCARD_AND_EXPIRY`: a report keeps the expiry and what is to become of it when it is undeliverable.
    #[must_use]
    pub const fn pass_discard_and_expiry(self) -> bool {
        self.0 & Self::PASS_DISCARD_AND_EXPIRY != 0
    }

    /// With `MQRO_PASS_DISCARD_AND_EXPIRY`.
    #[must_use]
    pub const fn with_pass_discard_and_expiry(self) -> Self {
        Self(self.0 | Self::PASS_DISCARD_AND_EXPIRY)
    }

    /// With `MQRO_PASS_MSG_ID` if `pass`.
    #[must_use]
    pub const fn with_pass_message_id(self, pass: bool) -> Self {
        Self(if pass {
            self.0 | Self::PASS_MSG_ID
        } else {
            self.0
        })
    }

    /// With `MQRO_PASS_CORREL_ID` if `pass`.
    #[must_use]
    pub const fn with_pass_correlation_id(self, pass: bool) -> Self {
        Self(if pass {
            self.0 | Self::PASS_CORREL_ID
        } else {
            self.0
        })
    }

    /// Only whether it is discarded when undeliverable.
    #[must_use]
    pub const fn discard_alone(self) -> Self {
        Self(self.0 & Self::DISCARD_MSG)
    }

    /// `MQRO_DISCARD_MSG`: an undeliverable message is discarded, not dead-lettered.
    #[must_use]
    pub const fn discard(self) -> bool {
        self.0 & Self::DISCARD_MSG != 0
    }

    /// `MQRO_PASS_MSG_ID`: a report keeps the message id.
    #[must_use]
    pub const fn pass_message_id(self) -> bool {
        self.0 & Self::PASS_MSG_ID != 0
    }

    /// `MQRO_PASS_CORREL_ID`: a report keeps the correlation id.
    #[must_use]
    pub const fn pass_correlation_id(self) -> bool {
        self.0 & Self::PASS_CORREL_ID != 0
    }
}

/// The message descriptor, resolved: what a queue keeps beside the data. `MQMD`.
///
/// Text fields hold no padding; their lengths in bytes are those of IBM MQ and are checked where a message comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDescriptor {
    /// `Report`.
    pub report: ReportOptions,
    /// `MsgType`.
    pub message_type: MessageType,
    /// When the message expires; `None` is never. `Expiry`, as a point in time, since due times are absolute here.
    pub expires_at: Option<Timestamp>,
    /// `Feedback`: reason code or `MQFB_*` of a report.
    pub feedback: u32,
    /// `Encoding` of numbers in what follows the descriptor.
    pub encoding: u32,
    /// `CodedCharSetId` of text in what follows the descriptor.
    pub coded_character_set_id: u32,
    /// `Format` of what follows the descriptor, at most 8 bytes.
    pub format: String,
    /// `Priority`.
    pub priority: Priority,
    /// `Persistence`.
    pub persistence: Persistence,
    /// `MsgId`.
    pub message_id: MessageId,
    /// `CorrelId`.
    pub correlation_id: CorrelationId,
    /// `ReplyToQ`; empty is none.
    pub reply_to_queue: String,
    /// `ReplyToQMgr`; empty is none.
    pub reply_to_queue_manager: String,
    /// `UserIdentifier`, at most 12 bytes. This and the two fields after it are the identity context; by default the queue
    /// manager sets it.
    pub user_identifier: String,
    /// `AccountingToken`.
    pub accounting_token: AccountingToken,
    /// `ApplIdentityData`, at most 32 bytes.
    pub application_identity_data: String,
    /// `PutApplType`: what kind of application put the message. This, `PutApplName`, `PutDate`, `PutTime` and
    /// `ApplOriginData` are the origin context; by default the queue manager sets it.
    pub put_application_type: ApplicationType,
    /// `PutApplName`, at most 28 bytes.
    pub put_application_name: String,
    /// `PutDate` and `PutTime`: when the message was first put; channels pass it on.
    pub put_time: Timestamp,
    /// `ApplOriginData`, at most 4 bytes.
    pub application_origin_data: String,
    /// `GroupId`, all zeros for none.
    pub group_id: CorrelationId,
    /// `MsgSeqNumber` in the group, from 1.
    pub message_sequence_number: u32,
    /// `Offset` of a segment, in bytes.
    pub offset: u32,
    /// `MsgFlags`.
    pub message_flags: u32,
    /// `OriginalLength` of a segmented message, in bytes; `-1` if not known.
    pub original_length: i32,
    /// Message properties: not of `MQMD`, and kept and moved where it is.
    pub properties: Properties,
}

impl MessageDescriptor {
    /// `MQMF_MSG_IN_GROUP`: the message is in a group.
    pub const FLAG_MSG_IN_GROUP: u32 = 8;
    /// `MQMF_LAST_MSG_IN_GROUP`: the message is in a group and the last one of it.
    pub const FLAG_LAST_MSG_IN_GROUP: u32 = 16;
    /// `MQMF_SEGMENTATION_ALLOWED`: asks for nothing here, since no message is ever cut.
    const SEGMENTATION_ALLOWED: u32 = 1;
    /// `MQMF_SEGMENT`, `MQMF_LAST_SEGMENT`.
    const SEGMENTS: u32 = 6;
    /// The flags of which each must be known: the upper ones may be ignored. `MQMF_REJECT_UNSUP_MASK`.
    const FLAGS_REJECTED: u32 = 0xfff;
    /// `MQFB_EXPIRATION`: the message expired.
    pub const FEEDBACK_EXPIRATION: u32 = 258;
    /// `MQFB_COA`: the message arrived on its queue.
    pub const FEEDBACK_COA: u32 = 259;
    /// `MQFB_COD`: the message was got.
    pub const FEEDBACK_COD: u32 = 260;
    /// `MQFMT_NONE`.
    pub const FORMAT_NONE: &'static str = "";
    /// `MQFMT_STRING`.
    pub const FORMAT_STRING: &'static str = "MQSTR";
    /// `MQFMT_DEAD_LETTER_HEADER`.
    pub const FORMAT_DEAD_LETTER_HEADER: &'static str = "MQDEAD";
    /// `MQFMT_XMIT_Q_HEADER`.
    pub const FORMAT_TRANSMISSION_HEADER: &'static str = "MQXMIT";
    /// `MQFMT_RF_HEADER_2`.
    pub const FORMAT_RFH2: &'static str = "MQHRF2";
    /// `MQFMT_TRIGGER`.
    pub const FORMAT_TRIGGER: &'static str = "MQTRIG";
    /// `MQFMT_EVENT`.
    pub const FORMAT_EVENT: &'static str = "MQEVENT";
    /// `MQENC_NATIVE` of the platforms that IBM calls reversed: little-endian integers and IEEE floats.
    pub const ENCODING_LITTLE_ENDIAN: u32 = 546;
    /// UTF-8.
    pub const CCSID_UTF8: u32 = 1208;

    /// Whether the message is in a group.
    #[must_use]
    pub const fn is_in_group(&self) -> bool {
        self.message_flags & (Self::FLAG_MSG_IN_GROUP | Self::FLAG_LAST_MSG_IN_GROUP) != 0
    }

    /// Takes away what only a message in a group has.
    pub const fn leave_group(&mut self) {
        self.group_id = CorrelationId::NONE;
        self.message_sequence_number = 1;
        self.offset = 0;
    }

    /// Whether the message ends its group.
    #[must_use]
    pub const fn is_last_in_group(&self) -> bool {
        self.message_flags & Self::FLAG_LAST_MSG_IN_GROUP != 0
    }
}

impl MessageDescriptor {
    /// Whether the flags are known and the message is no segment: messages are put and got whole.
    ///
    /// # Errors
    /// 2249 for a flag that must be known and is not, 2443 for a segment.
    pub fn check_segmentation(&self) -> Result<(), ReasonCode> {
        let known = Self::SEGMENTATION_ALLOWED
            | Self::SEGMENTS
            | Self::FLAG_MSG_IN_GROUP
            | Self::FLAG_LAST_MSG_IN_GROUP;
        if self.message_flags & Self::FLAGS_REJECTED & !known != 0 {
            return Err(ReasonCode::MSG_FLAGS_ERROR);
        }
        if self.message_flags & Self::SEGMENTS != 0 {
            return Err(ReasonCode::SEGMENTATION_NOT_ALLOWED);
        }
        Ok(())
    }
}

impl Default for MessageDescriptor {
    /// `MQMD_DEFAULT`, with what a queue manager would resolve left at its lowest value.
    fn default() -> Self {
        Self {
            report: ReportOptions::NONE,
            message_type: MessageType::DATAGRAM,
            expires_at: None,
            feedback: 0,
            encoding: Self::ENCODING_LITTLE_ENDIAN,
            coded_character_set_id: Self::CCSID_UTF8,
            format: String::new(),
            priority: Priority::default(),
            persistence: Persistence::default(),
            message_id: MessageId::NONE,
            correlation_id: CorrelationId::NONE,
            reply_to_queue: String::new(),
            reply_to_queue_manager: String::new(),
            user_identifier: String::new(),
            accounting_token: AccountingToken::NONE,
            application_identity_data: String::new(),
            put_application_type: ApplicationType::NO_CONTEXT,
            put_application_name: String::new(),
            put_time: Timestamp::ZERO,
            application_origin_data: String::new(),
            group_id: CorrelationId::NONE,
            message_sequence_number: 1,
            offset: 0,
            message_flags: 0,
            original_length: -1,
            properties: Properties::NONE,
        }
    }
}
