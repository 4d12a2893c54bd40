//! Conversion of character data for whoever gets it, on its way out: what is stored stays as it was put.
//!
//! `MQSTR` is converted, alone or behind a dead-letter header. What cannot be converted whole is given as it is, with a
//! warning: a character that the wanted set does not have is never replaced, since nobody could tell later.
//!
//! Source: IBM MQ, "Data conversion", "MQGMO_CONVERT", "Conversion processing".

mod charset;
mod ebcdic;

use bytes::Bytes;
use ferrymq_proto::v1;
use ferrymq_types::{DeadLetterHeader, MessageDescriptor, ReasonCode};

use charset::{ByteOrder, CharacterSet, is_wide};

/// Longest data that is converted, in bytes; longer data is given as it is, with warning 2119. A conversion takes up to six
/// times the data in memory while it lasts, and a session does one at a time.
pub(crate) const CONVERSION_LENGTH_MAX: usize = 16 * 1024 * 1024;

/// How a caller wants the data of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    /// The wanted representation, if it is to be converted.
    pub(crate) target: Option<Representation>,
    /// Bytes that the caller takes.
    pub(crate) length_max: Option<u32>,
    /// Whether longer data is cut.
    pub(crate) accept_truncated: bool,
}

/// How text and numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Representation {
    /// `CodedCharSetId`.
    coded_character_set_id: u32,
    /// `Encoding`.
    encoding: u32,
}

/// A representation whose parts are known.
#[derive(Clone, Copy)]
struct Known {
    set: CharacterSet,
    order: ByteOrder,
}

impl Representation {
    /// What a caller asked for; zeros are the queue manager's own.
    pub(crate) fn wanted(of: Option<v1::Conversion>) -> Option<Self> {
        let own = MessageDescriptor::default();
        of.map(|of| Self {
            coded_character_set_id: match of.coded_character_set_id {
                0 => own.coded_character_set_id,
                ccsid => ccsid,
            },
            encoding: match of.encoding {
                0 => own.encoding,
                encoding => encoding,
            },
        })
    }

    /// `numbers`: whether the order of the bytes of integers counts.
    fn known(
        self,
        numbers: bool,
        ccsid: ReasonCode,
        order: ReasonCode,
    ) -> Result<Known, ReasonCode> {
        let counts = numbers || is_wide(self.coded_character_set_id);
        let order = match ByteOrder::of(self.encoding) {
            Some(order) => order,
            None if counts => return Err(order),
            None => ByteOrder::LittleEndian,
        };
        let set = CharacterSet::of(self.coded_character_set_id, order).ok_or(ccsid)?;
        Ok(Known { set, order })
    }

    fn as_source(self, numbers: bool) -> Result<Known, ReasonCode> {
        let (ccsid, order) = (
            ReasonCode::SOURCE_CCSID_ERROR,
            ReasonCode::SOURCE_INTEGER_ENC_ERROR,
        );
        self.known(numbers, ccsid, order)
    }

    fn as_target(self, numbers: bool) -> Result<Known, ReasonCode> {
        let (ccsid, order) = (
            ReasonCode::TARGET_CCSID_ERROR,
            ReasonCode::TARGET_INTEGER_ENC_ERROR,
        );
        self.known(numbers, ccsid, order)
    }
}

impl Reading {
    /// Converts the data, as asked. Returns a warning, or [`ReasonCode::NONE`].
    pub(crate) fn convert(&self, message: &mut v1::Message) -> ReasonCode {
        let mut warning = ReasonCode::NONE;
        if let (Some(target), Some(descriptor)) = (self.target, &mut message.descriptor) {
            match self.converted(target, descriptor, &message.data) {
                Ok(Some(data)) => {
                    message.data = data;
                    descriptor.coded_character_set_id = target.coded_character_set_id;
                    descriptor.encoding = target.encoding;
                }
                Ok(None) => {}
                Err(reason) => warning = reason,
            }
        }
        warning
    }

    /// Cuts the data to length, as asked. Returns a warning, `so_far` if there is one.
    pub(crate) fn cut(&self, message: &mut v1::Message, so_far: ReasonCode) -> ReasonCode {
        let mut warning = so_far;
        if let Some(length) = self.length_max.map(|n| n as usize)
            && self.accept_truncated
            && message.data.len() > length
        {
            message.data.truncate(length);
            if warning == ReasonCode::NONE {
                warning = ReasonCode::TRUNCATED_MSG_ACCEPTED;
            }
        }
        warning
    }

    /// `None` if there is nothing to convert.
    fn converted(
        &self,
        target: Representation,
        descriptor: &v1::MessageDescriptor,
        data: &Bytes,
    ) -> Result<Option<Bytes>, ReasonCode> {
        let source = Representation {
            coded_character_set_id: descriptor.coded_character_set_id,
            encoding: descriptor.encoding,
        };
        if source == target || data.is_empty() {
            return Ok(None);
        }
        if data.len() > CONVERSION_LENGTH_MAX {
            return Err(ReasonCode::NOT_CONVERTED);
        }
        let converted = match descriptor.format.as_str() {
            MessageDescriptor::FORMAT_STRING => text(data, source, target)?,
            MessageDescriptor::FORMAT_DEAD_LETTER_HEADER => dead_letter(data, source, target)?,
            _ => return Err(ReasonCode::FORMAT_ERROR),
        };
        let fits = self
            .length_max
            .is_none_or(|length| converted.len() <= length as usize);
        if !fits && !self.accept_truncated {
            return Err(ReasonCode::CONVERTED_MSG_TOO_BIG);
        }
        Ok(Some(converted.into()))
    }
}

fn text(
    data: &[u8],
    source: Representation,
    target: Representation,
) -> Result<Vec<u8>, ReasonCode> {
    let (from, to) = (source.as_source(false)?, target.as_target(false)?);
    let text = from.set.decode(data).ok_or(ReasonCode::NOT_CONVERTED)?;
    let bytes = to.set.encode(&text).ok_or(ReasonCode::NOT_CONVERTED)?;
    Ok(bytes.into_owned())
}

/// What a field of a dead-letter header holds.
enum Field {
    Number,
    /// So many bytes of text, filled up with blanks.
    Text(usize),
    /// The three that describe what follows; they name the target when it was converted.
    Encoding,
    CodedCharacterSet,
    Format,
}

/// The layout of `MQDLH`.
const DEAD_LETTER_FIELDS: [Field; 12] = [
    Field::Text(4),
    Field::Number,
    Field::Number,
    Field::Text(48),
    Field::Text(48),
    Field::Encoding,
    Field::CodedCharacterSet,
    Field::Format,
    Field::Number,
    Field::Text(28),
    Field::Text(8),
    Field::Text(8),
];

/// Converts a dead-letter header and the text behind it. Other data behind it has no converter here: 2110.
fn dead_letter(
    data: &[u8],
    source: Representation,
    target: Representation,
) -> Result<Vec<u8>, ReasonCode> {
    let (from, to) = (source.as_source(true)?, target.as_target(true)?);
    if !from.set.has_blanks_of_one_byte() {
        return Err(ReasonCode::SOURCE_CCSID_ERROR);
    }
    if !to.set.has_blanks_of_one_byte() {
        return Err(ReasonCode::TARGET_CCSID_ERROR);
    }
    let (header, rest) = data
        .split_at_checked(DeadLetterHeader::LENGTH)
        .ok_or(ReasonCode::FORMAT_ERROR)?;
    let mut out = Vec::with_capacity(data.len());
    let mut fields = header;
    let mut behind = Representation {
        coded_character_set_id: 0,
        encoding: 0,
    };
    let mut format = String::new();
    let mut first = true;
    for field in DEAD_LETTER_FIELDS {
        match field {
            Field::Number => to.number(from.take_number(&mut fields)?, &mut out),
            Field::Encoding => {
                behind.encoding = from.take_number(&mut fields)?;
                to.number(target.encoding, &mut out);
            }
            Field::CodedCharacterSet => {
                behind.coded_character_set_id = from.take_number(&mut fields)?;
                to.number(target.coded_character_set_id, &mut out);
            }
            Field::Format => {
                format = from.take_text(&mut fields, 8)?;
                to.text(&format, 8, &mut out)?;
            }
            Field::Text(length) => {
                let text = from.take_text(&mut fields, length)?;
                if first && text != "DLH" {
                    return Err(ReasonCode::FORMAT_ERROR);
                }
                first = false;
                to.text(&text, length, &mut out)?;
            }
        }
    }
    if rest.is_empty() {
        return Ok(out);
    }
    if format != MessageDescriptor::FORMAT_STRING {
        return Err(ReasonCode::FORMAT_ERROR);
    }
    if behind.coded_character_set_id == target.coded_character_set_id
        && (behind.encoding == target.encoding || !is_wide(behind.coded_character_set_id))
    {
        out.extend_from_slice(rest);
    } else {
        out.extend(text(rest, behind, target)?);
    }
    Ok(out)
}

impl Known {
    fn take_number(self, fields: &mut &[u8]) -> Result<u32, ReasonCode> {
        let (number, rest) = fields
            .split_first_chunk::<4>()
            .ok_or(ReasonCode::FORMAT_ERROR)?;
        *fields = rest;
        Ok(match self.order {
            ByteOrder::BigEndian => u32::from_be_bytes(*number),
            ByteOrder::LittleEndian => u32::from_le_bytes(*number),
        })
    }

    fn take_text(self, fields: &mut &[u8], length: usize) -> Result<String, ReasonCode> {
        let (text, rest) = fields
            .split_at_checked(length)
            .ok_or(ReasonCode::FORMAT_ERROR)?;
        *fields = rest;
        let text = self.set.decode(text).ok_or(ReasonCode::NOT_CONVERTED)?;
        Ok(text.trim_end_matches([' ', '\0']).to_owned())
    }

    fn number(self, number: u32, out: &mut Vec<u8>) {
        out.extend(match self.order {
            ByteOrder::BigEndian => number.to_be_bytes(),
            ByteOrder::LittleEndian => number.to_le_bytes(),
        });
    }

    fn text(self, text: &str, length: usize, out: &mut Vec<u8>) -> Result<(), ReasonCode> {
        let bytes = self.set.encode(text).ok_or(ReasonCode::NOT_CONVERTED)?;
        let padding = length
            .checked_sub(bytes.len())
            .ok_or(ReasonCode::NOT_CONVERTED)?;
        let blank = self.set.encode(" ").ok_or(ReasonCode::NOT_CONVERTED)?;
        out.extend_from_slice(&bytes);
        out.extend(blank.iter().cycle().take(padding));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
