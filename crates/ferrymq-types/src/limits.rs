//! Limits that every part agrees on. Each is explicit; what exceeds one is refused with the reason code that is named.

/// Longest message that a queue manager can be configured to take, in bytes (100 MiB). Beyond: 2031.
///
/// Source: IBM MQ, `MAXMSGL` range.
pub const MESSAGE_LENGTH_MAX: u32 = 104_857_600;

/// Default of `MAXMSGL` on queues, channels and queue managers, in bytes.
pub const MESSAGE_LENGTH_DEFAULT: u32 = 4_194_304;

/// Default of `MAXDEPTH`, in messages. Beyond: 2053.
pub const QUEUE_DEPTH_DEFAULT: u32 = 5_000;

/// Highest value of the attributes that IBM MQ bounds by nine nines.
pub const ATTRIBUTE_MAX: u32 = 999_999_999;

/// Highest message priority. `MAXPRTY`, fixed.
pub const PRIORITY_MAX: u8 = 9;

/// Highest `MsgSeqNumber` of a message in a group. Beyond: 2250.
pub const MESSAGE_SEQUENCE_NUMBER_MAX: u32 = ATTRIBUTE_MAX;

/// Default of `MAXUMSGS`, in messages of one unit of work. Beyond: 2024.
pub const UNIT_OF_WORK_MESSAGES_DEFAULT: u32 = 10_000;

/// Bytes that the open units of work of one queue manager may hold together. Beyond: 2024 (rule U20).
pub const UNIT_OF_WORK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Longest value of an MQSC `DESCR`, in characters.
pub const DESCRIPTION_LENGTH_MAX: usize = 64;
