//! The trigger message: what a trigger monitor gets from an initiation queue.

use bytes::{BufMut, Bytes, BytesMut};

use crate::header::{Fields, HeaderError, put_text};

/// What a trigger message says: which queue wants to be served, and by which application. `MQTM`, 684 bytes.
///
/// Integers are little-endian, which is what the descriptor's `encoding` says. Text fields hold no padding.
///
/// Source: IBM MQ, "MQTM - Trigger message".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerMessage {
    /// `QName`: the queue whose trigger fired, at most 48 bytes.
    pub queue: String,
    /// `ProcessName`: `PROCESS` of the queue, at most 48 bytes; empty on a transmission queue that has none.
    pub process: String,
    /// `TriggerData`: `TRIGDATA` of the queue, at most 64 bytes.
    pub trigger_data: String,
    /// `ApplType`: `APPLTYPE` of the process, an `MQAT_*`.
    pub application_type: u32,
    /// `ApplId`: `APPLICID` of the process, at most 256 bytes.
    pub application_id: String,
    /// `EnvData`: `ENVRDATA` of the process, at most 128 bytes.
    pub environment_data: String,
    /// `UserData`: `USERDATA` of the process, at most 128 bytes.
    pub user_data: String,
}

impl TriggerMessage {
    /// Bytes of the structure.
    pub const LENGTH: usize = 684;

    /// Its bytes. Text that is too long for its field is cut.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(Self::LENGTH);
        out.put_slice(b"TM  ");
        out.put_u32_le(1);
        put_text(&mut out, &self.queue, 48);
        put_text(&mut out, &self.process, 48);
        put_text(&mut out, &self.trigger_data, 64);
        out.put_u32_le(self.application_type);
        put_text(&mut out, &self.application_id, 256);
        put_text(&mut out, &self.environment_data, 128);
        put_text(&mut out, &self.user_data, 128);
        out.freeze()
    }

    /// Reads the structure from the start of `data`.
    ///
    /// # Errors
    /// [`HeaderError`] if the bytes are no trigger message.
    pub fn read(data: &[u8]) -> Result<Self, HeaderError> {
        if data.len() < Self::LENGTH {
            return Err(HeaderError::TooShort {
                length: data.len(),
                needed: Self::LENGTH,
            });
        }
        let mut f = Fields { rest: data };
        if f.bytes(4)? != b"TM  " || f.u32()? != 1 {
            return Err(HeaderError::NotThisHeader);
        }
        Ok(Self {
            queue: f.text(48, "QName")?,
            process: f.text(48, "ProcessName")?,
            trigger_data: f.text(64, "TriggerData")?,
            application_type: f.u32()?,
            application_id: f.text(256, "ApplId")?,
            environment_data: f.text(128, "EnvData")?,
            user_data: f.text(128, "UserData")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> TriggerMessage {
        TriggerMessage {
            queue: "ORDERS".into(),
            process: "ORDERS.PROCESS".into(),
            trigger_data: "urgent".into(),
            application_type: 6,
            application_id: "/usr/bin/orders".into(),
            environment_data: "LANG=de".into(),
            user_data: "-v".into(),
        }
    }

    #[test]
    fn every_field_is_where_ibm_mq_has_it() {
        let bytes = message().to_bytes();
        assert_eq!(bytes.len(), 684);
        for (offset, expected) in [
            (0, &b"TM  \x01\0\0\0ORDERS    "[..]),
            (56, b"ORDERS.PROCESS "),
            (104, b"urgent  "),
            (168, b"\x06\0\0\0/usr/bin/orders  "),
            (428, b"LANG=de  "),
            (556, b"-v  "),
        ] {
            let end = offset + expected.len();
            assert_eq!(&bytes[offset..end], expected, "at {offset}");
        }
        assert!(bytes[558..].iter().all(|b| *b == b' '));
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = message().to_bytes();
        assert_eq!(TriggerMessage::read(&bytes), Ok(message()));
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = message().to_bytes();
        assert_eq!(
            TriggerMessage::read(&bytes[..683]),
            Err(HeaderError::TooShort {
                length: 683,
                needed: 684
            })
        );
        let mut other = bytes.to_vec();
        other[4] = 2;
        assert_eq!(
            TriggerMessage::read(&other),
            Err(HeaderError::NotThisHeader)
        );
        let mut text = bytes.to_vec();
        text[104] = 0xff;
        assert_eq!(
            TriggerMessage::read(&text),
            Err(HeaderError::Field("TriggerData"))
        );
    }
}
