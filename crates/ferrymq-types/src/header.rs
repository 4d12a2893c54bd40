//! Headers that a queue manager puts in front of a message: on transmission queues and on dead-letter queues.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{
    AccountingToken, ApplicationType, CorrelationId, MessageDescriptor, MessageId, MessageType,
    Persistence, Priority, ReasonCode, ReportOptions, Timestamp,
};

/// Why bytes are not the header that their format says they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Fewer bytes than the header has.
    #[error("{length} bytes are too few for a header of {needed}")]
    TooShort {
        /// Bytes found.
        length: usize,
        /// Bytes that the header has.
        needed: usize,
    },
    /// The eye-catcher or the version is another.
    #[error("the header's eye-catcher or version is wrong")]
    NotThisHeader,
    /// A field holds something that it may not.
    #[error("field {0} of the header is not valid")]
    Field(&'static str),
}

/// Reads fields one after another, from bytes that may be anything.
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], HeaderError> {
        let (head, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(HeaderError::TooShort {
                length: self.rest.len(),
                needed: length,
            })?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, HeaderError> {
        let bytes = self.bytes(4)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    pub(crate) fn text(
        &mut self,
        length: usize,
        field: &'static str,
    ) -> Result<String, HeaderError> {
        let bytes = self.bytes(length)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let text = bytes.get(..end).and_then(|b| core::str::from_utf8(b).ok());
        Ok(text
            .ok_or(HeaderError::Field(field))?
            .trim_end_matches(' ')
            .to_owned())
    }
}

pub(crate) fn put_text(out: &mut BytesMut, text: &str, length: usize) {
    // Cut at a character's start, so that what is read back is text again.
    let mut end = text.len().min(length);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let text = text.get(..end).unwrap_or_default();
    out.put_slice(text.as_bytes());
    out.put_bytes(b' ', length.saturating_sub(text.len()));
}

/// The dead-letter header: why a message is on a dead-letter queue and where it was going. `MQDLH`, 172 bytes.
///
/// Integers are little-endian, which is what the descriptor's `encoding` says after [`DeadLetterHeader::wrap`].
///
/// Source: IBM MQ, "MQDLH - Dead-letter header".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterHeader {
    /// `Reason`: reason code or `MQFB_*`.
    pub reason: ReasonCode,
    /// `DestQName`: where the message was going, as known at the queue manager that put this header.
    pub destination_queue: String,
    /// `DestQMgrName`.
    pub destination_queue_manager: String,
    /// `Encoding` of what follows this header.
    pub encoding: u32,
    /// `CodedCharSetId` of what follows this header.
    pub coded_character_set_id: u32,
    /// `Format` of what follows this header.
    pub format: String,
    /// `PutApplType`: who put the message on the dead-letter queue.
    pub put_application_type: u32,
    /// `PutApplName`.
    pub put_application_name: String,
    /// `PutDate`, `YYYYMMDD` in UTC.
    pub put_date: String,
    /// `PutTime`, `HHMMSSTH` in UTC.
    pub put_time: String,
}

impl DeadLetterHeader {
    /// Bytes of the header.
    pub const LENGTH: usize = 172;
    /// `MQAT_QMGR`.
    pub const APPLICATION_TYPE_QUEUE_MANAGER: u32 = 7;

    /// Puts this header in front of `header`, and makes the descriptor describe it: the descriptor's format, encoding and
    /// character set move into the header; everything else stays.
    ///
    /// Source: IBM MQ, "Dead-letter queue processing".
    #[must_use]
    #[allow(clippy::too_many_arguments, reason = "the fields of one header")]
    pub fn wrap(
        descriptor: &mut MessageDescriptor,
        header: &Bytes,
        reason: ReasonCode,
        destination_queue: &str,
        destination_queue_manager: &str,
        put_application_name: &str,
        now: Timestamp,
    ) -> Bytes {
        let this = Self {
            reason,
            destination_queue: destination_queue.to_owned(),
            destination_queue_manager: destination_queue_manager.to_owned(),
            encoding: descriptor.encoding,
            coded_character_set_id: descriptor.coded_character_set_id,
            format: core::mem::take(&mut descriptor.format),
            put_application_type: Self::APPLICATION_TYPE_QUEUE_MANAGER,
            put_application_name: put_application_name.to_owned(),
            put_date: now.date8(),
            put_time: now.time8(),
        };
        descriptor.format = MessageDescriptor::FORMAT_DEAD_LETTER_HEADER.to_owned();
        descriptor.encoding = MessageDescriptor::ENCODING_LITTLE_ENDIAN;
        descriptor.coded_character_set_id = MessageDescriptor::CCSID_UTF8;
        let mut all = BytesMut::with_capacity(Self::LENGTH.saturating_add(header.len()));
        this.write(&mut all);
        all.extend_from_slice(header);
        all.freeze()
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_slice(b"DLH ");
        out.put_u32_le(1);
        out.put_u32_le(self.reason.get());
        put_text(out, &self.destination_queue, 48);
        put_text(out, &self.destination_queue_manager, 48);
        out.put_u32_le(self.encoding);
        out.put_u32_le(self.coded_character_set_id);
        put_text(out, &self.format, 8);
        out.put_u32_le(self.put_application_type);
        put_text(out, &self.put_application_name, 28);
        put_text(out, &self.put_date, 8);
        put_text(out, &self.put_time, 8);
    }

    /// Reads the header from the start of `data`.
    ///
    /// # Errors
    /// [`HeaderError`] if the bytes are no such header.
    pub fn read(data: &[u8]) -> Result<Self, HeaderError> {
        if data.len() < Self::LENGTH {
            return Err(HeaderError::TooShort {
                length: data.len(),
                needed: Self::LENGTH,
            });
        }
        let mut f = Fields { rest: data };
        if f.bytes(4)? != b"DLH " || f.u32()? != 1 {
            return Err(HeaderError::NotThisHeader);
        }
        Ok(Self {
            reason: ReasonCode::new(f.u32()?),
            destination_queue: f.text(48, "DestQName")?,
            destination_queue_manager: f.text(48, "DestQMgrName")?,
            encoding: f.u32()?,
            coded_character_set_id: f.u32()?,
            format: f.text(8, "Format")?,
            put_application_type: f.u32()?,
            put_application_name: f.text(28, "PutApplName")?,
            put_date: f.text(8, "PutDate")?,
            put_time: f.text(8, "PutTime")?,
        })
    }
}

/// The transmission-queue header: where a message on a transmission queue is going. `MQXQH`, 428 bytes: 104 of its own and a
/// version-1 descriptor, followed here by `MQMDE` (72 bytes) when a version-2 field is not at its default.
///
/// Source: IBM MQ, "MQXQH - Transmission-queue header", "MQMDE - Message descriptor extension".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransmissionHeader {
    /// `RemoteQName`.
    pub remote_queue: String,
    /// `RemoteQMgrName`.
    pub remote_queue_manager: String,
    /// `MsgDesc`: the descriptor that the message has again when it leaves the channel.
    pub descriptor: MessageDescriptor,
}

impl TransmissionHeader {
    /// Bytes of the header without the descriptor extension.
    pub const LENGTH: usize = 428;
    /// Bytes of the descriptor extension.
    const EXTENSION_LENGTH: usize = 72;
    /// Tenths of a second; what does not fit is unlimited.
    const EXPIRY_UNLIMITED: u32 = u32::MAX;

    /// The header's bytes. Expiry is written as what is left of it at `now`, in tenths of a second, rounded up.
    #[must_use]
    pub fn to_bytes(&self, now: Timestamp) -> Bytes {
        let d = &self.descriptor;
        let mut out = BytesMut::with_capacity(Self::LENGTH.saturating_add(Self::EXTENSION_LENGTH));
        out.put_slice(b"XQH ");
        out.put_u32_le(1);
        put_text(&mut out, &self.remote_queue, 48);
        put_text(&mut out, &self.remote_queue_manager, 48);
        let extended = Self::needs_extension(d);
        out.put_slice(b"MD  ");
        out.put_u32_le(1);
        out.put_u32_le(d.report.bits());
        out.put_u32_le(d.message_type.get());
        out.put_u32_le(d.expires_at.map_or(Self::EXPIRY_UNLIMITED, |at| {
            u32::try_from(at.since(now).as_millis().div_ceil(100)).unwrap_or(Self::EXPIRY_UNLIMITED)
        }));
        out.put_u32_le(d.feedback);
        if extended {
            out.put_u32_le(MessageDescriptor::ENCODING_LITTLE_ENDIAN);
            out.put_u32_le(MessageDescriptor::CCSID_UTF8);
            put_text(&mut out, "MQHMDE", 8);
        } else {
            out.put_u32_le(d.encoding);
            out.put_u32_le(d.coded_character_set_id);
            put_text(&mut out, &d.format, 8);
        }
        out.put_u32_le(u32::from(d.priority.get()));
        out.put_u32_le(u32::from(d.persistence == Persistence::Persistent));
        out.put_slice(d.message_id.as_bytes());
        out.put_slice(d.correlation_id.as_bytes());
        out.put_u32_le(0);
        put_text(&mut out, &d.reply_to_queue, 48);
        put_text(&mut out, &d.reply_to_queue_manager, 48);
        put_text(&mut out, &d.user_identifier, 12);
        out.put_slice(d.accounting_token.as_bytes());
        put_text(&mut out, &d.application_identity_data, 32);
        out.put_i32_le(d.put_application_type.get());
        put_text(&mut out, &d.put_application_name, 28);
        put_text(&mut out, &d.put_time.date8(), 8);
        put_text(&mut out, &d.put_time.time8(), 8);
        put_text(&mut out, &d.application_origin_data, 4);
        if extended {
            Self::write_extension(&mut out, d);
        }
        out.freeze()
    }

    fn needs_extension(d: &MessageDescriptor) -> bool {
        !d.group_id.is_none()
            || d.message_sequence_number != 1
            || d.offset != 0
            || d.message_flags != 0
            || d.original_length != -1
    }

    fn write_extension(out: &mut BytesMut, d: &MessageDescriptor) {
        out.put_slice(b"MDE ");
        out.put_u32_le(2);
        out.put_u32_le(72);
        out.put_u32_le(d.encoding);
        out.put_u32_le(d.coded_character_set_id);
        put_text(out, &d.format, 8);
        out.put_u32_le(0);
        out.put_slice(d.group_id.as_bytes());
        out.put_u32_le(d.message_sequence_number);
        out.put_u32_le(d.offset);
        out.put_u32_le(d.message_flags);
        out.put_i32_le(d.original_length);
    }

    /// Reads the header from the start of `data`, and how many bytes it takes. Remaining expiry counts from `now`.
    ///
    /// # Errors
    /// [`HeaderError`] if the bytes are no such header: the sender dead-letters the message with `MQFB_XMIT_Q_MSG_ERROR` 271.
    pub fn read(data: &[u8], now: Timestamp) -> Result<(Self, usize), HeaderError> {
        if data.len() < Self::LENGTH {
            return Err(HeaderError::TooShort {
                length: data.len(),
                needed: Self::LENGTH,
            });
        }
        let mut f = Fields { rest: data };
        if f.bytes(4)? != b"XQH " || f.u32()? != 1 {
            return Err(HeaderError::NotThisHeader);
        }
        let remote_queue = f.text(48, "RemoteQName")?;
        let remote_queue_manager = f.text(48, "RemoteQMgrName")?;
        if f.bytes(4)? != b"MD  " || f.u32()? != 1 {
            return Err(HeaderError::Field("MsgDesc"));
        }
        let report = ReportOptions::from_bits(f.u32()?);
        let message_type = MessageType::new(f.u32()?).ok_or(HeaderError::Field("MsgType"))?;
        let expiry = f.u32()?;
        let mut d = MessageDescriptor {
            report,
            message_type,
            expires_at: (expiry != Self::EXPIRY_UNLIMITED).then(|| {
                now.saturating_add(core::time::Duration::from_millis(
                    u64::from(expiry).saturating_mul(100),
                ))
            }),
            feedback: f.u32()?,
            encoding: f.u32()?,
            coded_character_set_id: f.u32()?,
            format: f.text(8, "Format")?,
            ..MessageDescriptor::default()
        };
        d.priority = u8::try_from(f.u32()?)
            .ok()
            .and_then(Priority::new)
            .ok_or(HeaderError::Field("Priority"))?;
        d.persistence = match f.u32()? {
            0 => Persistence::NonPersistent,
            1 => Persistence::Persistent,
            _ => return Err(HeaderError::Field("Persistence")),
        };
        d.message_id = MessageId::from_slice(f.bytes(24)?).ok_or(HeaderError::Field("MsgId"))?;
        d.correlation_id =
            CorrelationId::from_slice(f.bytes(24)?).ok_or(HeaderError::Field("CorrelId"))?;
        f.u32()?; // BackoutCount: not carried
        d.reply_to_queue = f.text(48, "ReplyToQ")?;
        d.reply_to_queue_manager = f.text(48, "ReplyToQMgr")?;
        d.user_identifier = f.text(12, "UserIdentifier")?;
        d.accounting_token = AccountingToken::from_slice(f.bytes(32)?)
            .ok_or(HeaderError::Field("AccountingToken"))?;
        d.application_identity_data = f.text(32, "ApplIdentityData")?;
        d.put_application_type = ApplicationType::new(f.u32()?.cast_signed());
        d.put_application_name = f.text(28, "PutApplName")?;
        let (date, time) = (f.text(8, "PutDate")?, f.text(8, "PutTime")?);
        d.put_time = parse_put_time(&date, &time).ok_or(HeaderError::Field("PutDate"))?;
        d.application_origin_data = f.text(4, "ApplOriginData")?;
        let mut length = Self::LENGTH;
        if d.format == "MQHMDE" {
            Self::read_extension(&mut f, &mut d)?;
            length = length.saturating_add(Self::EXTENSION_LENGTH);
        }
        Ok((
            Self {
                remote_queue,
                remote_queue_manager,
                descriptor: d,
            },
            length,
        ))
    }

    fn read_extension(f: &mut Fields<'_>, d: &mut MessageDescriptor) -> Result<(), HeaderError> {
        if f.bytes(4)? != b"MDE " || f.u32()? != 2 || f.u32()? != 72 {
            return Err(HeaderError::Field("MQMDE"));
        }
        d.encoding = f.u32()?;
        d.coded_character_set_id = f.u32()?;
        d.format = f.text(8, "Format")?;
        f.u32()?; // Flags
        d.group_id =
            CorrelationId::from_slice(f.bytes(24)?).ok_or(HeaderError::Field("GroupId"))?;
        d.message_sequence_number = f.u32()?;
        d.offset = f.u32()?;
        d.message_flags = f.u32()?;
        d.original_length = f.u32()?.cast_signed();
        Ok(())
    }
}

/// A `PutDate` and `PutTime` as a point in time; `None` if they are no date and time.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the fields are checked to be small: at most four digits"
)]
fn parse_put_time(date: &str, time: &str) -> Option<Timestamp> {
    let number = |text: &str, range: core::ops::Range<usize>| -> Option<u64> {
        let digits = text.get(range)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    if date.len() != 8 || time.len() != 8 {
        return None;
    }
    let (y, m, d) = (
        number(date, 0..4)?,
        number(date, 4..6)?,
        number(date, 6..8)?,
    );
    let (h, mi, s, th) = (
        number(time, 0..2)?,
        number(time, 2..4)?,
        number(time, 4..6)?,
        number(time, 6..8)?,
    );
    if !(1970..=9999).contains(&y) || !(1..=12).contains(&m) || !(1..=31).contains(&d) {
        return None;
    }
    if h > 23 || mi > 59 || s > 59 {
        return None;
    }
    // Days of the civil date, the inverse of `Timestamp::civil`.
    let year = if m <= 2 { y.checked_sub(1)? } else { y };
    let (era, yoe) = (year / 400, year % 400);
    let mp = if m > 2 {
        m.checked_sub(3)?
    } else {
        m.checked_add(9)?
    };
    let doy = mp.checked_mul(153)?.checked_add(2)? / 5 + d.checked_sub(1)?;
    let doe = yoe
        .checked_mul(365)?
        .checked_add(yoe / 4)?
        .checked_sub(yoe / 100)?
        .checked_add(doy)?;
    let days = era
        .checked_mul(146_097)?
        .checked_add(doe)?
        .checked_sub(719_468)?;
    let seconds = days
        .checked_mul(86_400)?
        .checked_add(h * 3600 + mi * 60 + s)?;
    Some(Timestamp::from_millis(
        seconds.checked_mul(1000)?.checked_add(th * 10)?,
    ))
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "small numbers of tests")]
mod tests {
    use super::*;

    fn descriptor() -> MessageDescriptor {
        MessageDescriptor {
            format: "MQSTR".into(),
            priority: Priority::new(4).unwrap(),
            persistence: Persistence::Persistent,
            message_id: MessageId::new([1; 24]),
            correlation_id: CorrelationId::new([2; 24]),
            reply_to_queue: "REPLY".into(),
            reply_to_queue_manager: "QM1".into(),
            user_identifier: "app".into(),
            accounting_token: AccountingToken::new([7; 32]),
            application_identity_data: "who".into(),
            put_application_type: ApplicationType::new(-1),
            put_application_name: "ferrymq put".into(),
            application_origin_data: "from".into(),
            put_time: Timestamp::from_millis(1_796_083_212_340),
            report: ReportOptions::from_bits(0x0700_0000),
            expires_at: Some(Timestamp::from_millis(1_796_083_300_000)),
            ..MessageDescriptor::default()
        }
    }

    #[test]
    fn transmission_header_keeps_the_descriptor() {
        let now = Timestamp::from_millis(1_796_083_250_000);
        let plain = descriptor();
        let grouped = MessageDescriptor {
            group_id: CorrelationId::new([9; 24]),
            message_sequence_number: 3,
            offset: 5,
            message_flags: 8,
            original_length: 77,
            ..descriptor()
        };
        for (d, length) in [(plain, 428), (grouped, 500)] {
            let header = TransmissionHeader {
                remote_queue: "ORDERS".into(),
                remote_queue_manager: "QM2".into(),
                descriptor: d,
            };
            let mut bytes = header.to_bytes(now).to_vec();
            assert_eq!(bytes.len(), length);
            bytes.extend_from_slice(b"body");
            assert_eq!(TransmissionHeader::read(&bytes, now), Ok((header, length)));
        }
    }

    #[test]
    fn dead_letter_header_wraps_and_is_read_back() {
        let mut d = descriptor();
        let bytes = DeadLetterHeader::wrap(
            &mut d,
            &Bytes::new(),
            ReasonCode::UNKNOWN_OBJECT_NAME,
            "NOWHERE",
            "QM2",
            "receiver QM1.TO.QM2",
            Timestamp::from_millis(951_782_399_991),
        );
        assert_eq!(bytes.len(), DeadLetterHeader::LENGTH);
        assert_eq!(d.format, "MQDEAD");
        let header = DeadLetterHeader::read(&bytes).unwrap();
        assert_eq!(header.reason, ReasonCode::UNKNOWN_OBJECT_NAME);
        assert_eq!(header.destination_queue, "NOWHERE");
        assert_eq!(header.format, "MQSTR");
        assert_eq!(
            (header.put_date.as_str(), header.put_time.as_str()),
            ("20000228", "23595999")
        );
    }

    #[test]
    fn bytes_that_are_no_header_are_refused() {
        let now = Timestamp::ZERO;
        let good = TransmissionHeader {
            remote_queue: "Q".into(),
            remote_queue_manager: "QM2".into(),
            descriptor: descriptor(),
        }
        .to_bytes(now);
        for length in 0..TransmissionHeader::LENGTH {
            assert!(TransmissionHeader::read(&good[..length], now).is_err());
        }
        // Any single byte changed is either read as another value or refused, never a panic.
        for i in 0..good.len() {
            let mut bad = good.to_vec();
            bad[i] ^= 0xff;
            let _read = TransmissionHeader::read(&bad, now);
            let _read = DeadLetterHeader::read(&bad);
        }
        assert_eq!(
            DeadLetterHeader::read(&good),
            Err(HeaderError::NotThisHeader)
        );
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let mut out = BytesMut::new();
        put_text(&mut out, "aé", 2);
        assert_eq!(&out[..], b"a ");
    }
}
