//! Programmable command formats: how event messages are written. A header, then parameters, each a structure with its length.
//!
//! Source: IBM MQ, "MQCFH - PCF header", "MQCFIN", "MQCFST", "MQCFIL", "MQCFSL", "MQCFBS", "Event message format".

use bytes::{BufMut, Bytes, BytesMut};

use crate::header::put_text;
use crate::{MessageDescriptor, ReasonCode};

/// Parameters that a message may have; more are refused when it is read.
pub const PCF_PARAMETERS_MAX: u32 = 1_000;

/// `MQCFT_EVENT`: the message reports an event.
pub const PCF_TYPE_EVENT: u32 = 7;
/// `MQCMD_Q_MGR_EVENT`.
pub const PCF_COMMAND_QUEUE_MANAGER_EVENT: u32 = 44;
/// `MQCMD_PERFM_EVENT`.
pub const PCF_COMMAND_PERFORMANCE_EVENT: u32 = 45;
/// `MQCMD_CHANNEL_EVENT`.
pub const PCF_COMMAND_CHANNEL_EVENT: u32 = 46;

const HEADER_LENGTH: u32 = 36;
const HEADER_VERSION: u32 = 1;
const TYPE_INTEGER: u32 = 3;
const TYPE_STRING: u32 = 4;
const TYPE_INTEGER_LIST: u32 = 5;
const TYPE_STRING_LIST: u32 = 6;
const TYPE_BYTE_STRING: u32 = 9;

/// Bytes of each structure in front of what varies.
const INTEGER_LENGTH: u32 = 16;
const STRING_FIXED: u32 = 20;
const LIST_FIXED: u32 = 16;
const STRING_LIST_FIXED: u32 = 24;
const BYTE_STRING_FIXED: u32 = 16;

/// What a parameter is about: an `MQIA_*`, `MQCA_*`, `MQIACF_*` or `MQCACF_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PcfParameter(u32);

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $word:literal;)+) => {
        impl PcfParameter {
            $($(#[$doc])* pub const $name: Self = Self($number);)+

            /// Its name in IBM MQ; `None` if it is not one of those that we write.
            #[must_use]
            pub fn word(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($word),)+
                    _ => None,
                }
            }
        }
    };
}

parameters! {
    /// `ApplType`.
    APPLICATION_TYPE = 1, "MQIA_APPL_TYPE";
    /// `QType`.
    QUEUE_TYPE = 20, "MQIA_Q_TYPE";
    /// `TimeSinceReset`, seconds.
    TIME_SINCE_RESET = 35, "MQIA_TIME_SINCE_RESET";
    /// `HighQDepth`, messages.
    HIGH_QUEUE_DEPTH = 36, "MQIA_HIGH_Q_DEPTH";
    /// `MsgEnqCount`, messages.
    ENQUEUE_COUNT = 37, "MQIA_MSG_ENQ_COUNT";
    /// `MsgDeqCount`, messages.
    DEQUEUE_COUNT = 38, "MQIA_MSG_DEQ_COUNT";
    /// `ReasonQualifier`.
    REASON_QUALIFIER = 1020, "MQIACF_REASON_QUALIFIER";
    /// `BaseObjectName`.
    BASE_OBJECT_NAME = 2002, "MQCA_BASE_OBJECT_NAME";
    /// `QMgrName`.
    QUEUE_MANAGER_NAME = 2015, "MQCA_Q_MGR_NAME";
    /// `QName`.
    QUEUE_NAME = 2016, "MQCA_Q_NAME";
    /// `XmitQName`.
    TRANSMISSION_QUEUE_NAME = 2024, "MQCA_XMIT_Q_NAME";
    /// `ObjectQMgrName`.
    OBJECT_QUEUE_MANAGER_NAME = 3023, "MQCACF_OBJECT_Q_MGR_NAME";
    /// `ApplName`.
    APPLICATION_NAME = 3024, "MQCACF_APPL_NAME";
}

impl PcfParameter {
    /// From its number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl core::fmt::Display for PcfParameter {
    /// Its name in IBM MQ, or its number.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.word() {
            Some(word) => f.write_str(word),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PcfValue {
    /// `MQCFIN`.
    Integer(i32),
    /// `MQCFIL`.
    Integers(Vec<i32>),
    /// `MQCFST`, without padding.
    Text(String),
    /// `MQCFSL`, without padding.
    Texts(Vec<String>),
    /// `MQCFBS`.
    Bytes(Bytes),
}

/// A message in programmable command format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcfMessage {
    /// `Type`: an `MQCFT_*`.
    pub message_type: u32,
    /// `Command`: an `MQCMD_*`.
    pub command: u32,
    /// `CompCode`: an `MQCC_*`.
    pub completion: u32,
    /// `Reason`: of an event message, the event.
    pub reason: ReasonCode,
    /// The parameters, in order.
    pub parameters: Vec<(PcfParameter, PcfValue)>,
}

/// Why bytes are no message in programmable command format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PcfError {
    /// The bytes end inside a structure.
    #[error("the message ends at byte {at}, inside a structure")]
    TooShort {
        /// Where it ends.
        at: usize,
    },
    /// The header is none of version 1 to 3.
    #[error("the header is not one that is known")]
    Header,
    /// A length, a count or text makes no sense.
    #[error("the structure at byte {at} is not valid")]
    Structure {
        /// Where it begins.
        at: usize,
    },
    /// A structure of another type than those that are known here.
    #[error("the structure at byte {at} is of type {found}, which is not known")]
    Type {
        /// Where it begins.
        at: usize,
        /// Its type.
        found: u32,
    },
}

impl PcfMessage {
    /// An event message without parameters.
    #[must_use]
    pub const fn event(command: u32, completion: u32, reason: ReasonCode) -> Self {
        Self {
            message_type: PCF_TYPE_EVENT,
            command,
            completion,
            reason,
            parameters: Vec::new(),
        }
    }

    /// With text more.
    #[must_use]
    pub fn text(mut self, parameter: PcfParameter, value: &str) -> Self {
        let value = PcfValue::Text(value.to_owned());
        self.parameters.push((parameter, value));
        self
    }

    /// With a number more; one that does not fit is given as the highest.
    #[must_use]
    pub fn number(mut self, parameter: PcfParameter, value: u64) -> Self {
        let value = PcfValue::Integer(i32::try_from(value).unwrap_or(i32::MAX));
        self.parameters.push((parameter, value));
        self
    }

    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, parameter: PcfParameter) -> Option<&PcfValue> {
        let mut all = self.parameters.iter();
        all.find(|(p, _)| *p == parameter).map(|(_, value)| value)
    }

    /// Its bytes: integers little-endian, text in UTF-8, each structure padded to a multiple of four bytes. Lists of texts have
    /// the length of the longest.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        let count = u32::try_from(self.parameters.len()).unwrap_or(u32::MAX);
        for number in [
            self.message_type,
            HEADER_LENGTH,
            HEADER_VERSION,
            self.command,
            1, // MsgSeqNumber
            1, // Control: MQCFC_LAST
            self.completion,
            self.reason.get(),
            count,
        ] {
            out.put_u32_le(number);
        }
        for (parameter, value) in &self.parameters {
            write_parameter(&mut out, parameter.get(), value);
        }
        out.freeze()
    }

    /// Reads a message. `encoding` is the descriptor's: it says in which order the bytes of integers are.
    ///
    /// # Errors
    /// [`PcfError`]: the bytes are no such message, or have structures that are not known here.
    pub fn read(data: &[u8], encoding: u32) -> Result<Self, PcfError> {
        let little = encoding & ENCODING_INTEGER_MASK
            == MessageDescriptor::ENCODING_LITTLE_ENDIAN & ENCODING_INTEGER_MASK;
        let mut r = Reader {
            data,
            at: 0,
            little,
        };
        let message_type = r.u32()?;
        if r.u32()? != HEADER_LENGTH || !(1..=3).contains(&r.u32()?) {
            return Err(PcfError::Header);
        }
        let command = r.u32()?;
        r.u32()?; // MsgSeqNumber
        r.u32()?; // Control
        let completion = r.u32()?;
        let reason = ReasonCode::new(r.u32()?);
        let count = r.u32()?;
        if count > PCF_PARAMETERS_MAX {
            return Err(PcfError::Header);
        }
        let mut parameters = Vec::new();
        for _ in 0..count {
            parameters.push(r.parameter()?);
        }
        Ok(Self {
            message_type,
            command,
            completion,
            reason,
            parameters,
        })
    }
}

/// `MQENC_INTEGER_MASK`.
const ENCODING_INTEGER_MASK: u32 = 0xf;

/// The next multiple of four.
const fn padded(length: u32) -> u32 {
    length.saturating_add(3) & !3
}

fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn write_parameter(out: &mut BytesMut, parameter: u32, value: &PcfValue) {
    let mut header = |kind: u32, length: u32| {
        out.put_u32_le(kind);
        out.put_u32_le(length);
        out.put_u32_le(parameter);
    };
    match value {
        PcfValue::Integer(n) => {
            header(TYPE_INTEGER, INTEGER_LENGTH);
            out.put_i32_le(*n);
        }
        PcfValue::Integers(list) => {
            let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
            header(
                TYPE_INTEGER_LIST,
                LIST_FIXED.saturating_add(count.saturating_mul(4)),
            );
            out.put_u32_le(count);
            for n in list {
                out.put_i32_le(*n);
            }
        }
        PcfValue::Text(text) => {
            let length = length_of(text.as_bytes());
            let room = padded(length);
            header(TYPE_STRING, STRING_FIXED.saturating_add(room));
            out.put_u32_le(MessageDescriptor::CCSID_UTF8);
            out.put_u32_le(length);
            out.put_slice(text.as_bytes());
            out.put_bytes(0, room.saturating_sub(length) as usize);
        }
        PcfValue::Texts(list) => {
            let lengths = list.iter().map(|t| length_of(t.as_bytes()));
            let each = lengths.max().unwrap_or(0);
            let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
            let length = count.saturating_mul(each);
            let room = padded(length);
            header(TYPE_STRING_LIST, STRING_LIST_FIXED.saturating_add(room));
            out.put_u32_le(MessageDescriptor::CCSID_UTF8);
            out.put_u32_le(count);
            out.put_u32_le(each);
            for text in list {
                put_text(out, text, each as usize);
            }
            out.put_bytes(0, room.saturating_sub(length) as usize);
        }
        PcfValue::Bytes(bytes) => {
            let length = length_of(bytes);
            let room = padded(length);
            header(TYPE_BYTE_STRING, BYTE_STRING_FIXED.saturating_add(room));
            out.put_u32_le(length);
            out.put_slice(bytes);
            out.put_bytes(0, room.saturating_sub(length) as usize);
        }
    }
}

/// Reads structures one after another, from bytes that may be anything.
struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    little: bool,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: u32) -> Result<&'a [u8], PcfError> {
        let end = self.at.saturating_add(length as usize);
        let found = self.data.get(self.at..end).ok_or(PcfError::TooShort {
            at: self.data.len(),
        })?;
        self.at = end;
        Ok(found)
    }

    fn u32(&mut self) -> Result<u32, PcfError> {
        let mut four = [0; 4];
        for (to, from) in four.iter_mut().zip(self.bytes(4)?) {
            *to = *from;
        }
        Ok(if self.little {
            u32::from_le_bytes(four)
        } else {
            u32::from_be_bytes(four)
        })
    }

    fn i32(&mut self) -> Result<i32, PcfError> {
        self.u32().map(u32::cast_signed)
    }

    fn text(&mut self, length: u32, begin: usize) -> Result<String, PcfError> {
        let bytes = self.bytes(length)?;
        let text = core::str::from_utf8(bytes).map_err(|_| PcfError::Structure { at: begin })?;
        Ok(text.trim_end_matches(['\0', ' ']).to_owned())
    }

    fn parameter(&mut self) -> Result<(PcfParameter, PcfValue), PcfError> {
        let begin = self.at;
        let kind = self.u32()?;
        let length = self.u32()?;
        let parameter = PcfParameter(self.u32()?);
        let wrong = PcfError::Structure { at: begin };
        let room = |fixed: u32| length.checked_sub(fixed).ok_or(wrong);
        let value = match kind {
            TYPE_INTEGER => {
                room(INTEGER_LENGTH)?;
                PcfValue::Integer(self.i32()?)
            }
            TYPE_INTEGER_LIST => {
                let count = self.u32()?;
                if room(LIST_FIXED)? / 4 < count {
                    return Err(wrong);
                }
                let mut list = Vec::new();
                for _ in 0..count {
                    list.push(self.i32()?);
                }
                PcfValue::Integers(list)
            }
            TYPE_STRING => {
                self.u32()?; // CodedCharSetId: what is not UTF-8 is refused below
                let text = self.u32()?;
                if room(STRING_FIXED)? < text {
                    return Err(wrong);
                }
                PcfValue::Text(self.text(text, begin)?)
            }
            TYPE_STRING_LIST => {
                self.u32()?;
                let count = self.u32()?;
                let each = self.u32()?;
                let all = count.checked_mul(each).ok_or(wrong)?;
                if room(STRING_LIST_FIXED)? < all || (each == 0 && count > PCF_PARAMETERS_MAX) {
                    return Err(wrong);
                }
                let mut list = Vec::new();
                for _ in 0..count {
                    list.push(self.text(each, begin)?);
                }
                PcfValue::Texts(list)
            }
            TYPE_BYTE_STRING => {
                let bytes = self.u32()?;
                if room(BYTE_STRING_FIXED)? < bytes {
                    return Err(wrong);
                }
                PcfValue::Bytes(Bytes::copy_from_slice(self.bytes(bytes)?))
            }
            found => return Err(PcfError::Type { at: begin, found }),
        };
        // The length says where the next structure begins, whatever this one holds.
        let end = begin.saturating_add(length as usize);
        if end < self.at || end > self.data.len() {
            return Err(PcfError::TooShort {
                at: self.data.len(),
            });
        }
        self.at = end;
        Ok((parameter, value))
    }
}

#[cfg(test)]
#[path = "pcf_tests.rs"]
mod tests;
