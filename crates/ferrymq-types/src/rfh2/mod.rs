//! The rules and formatting header, version 2: properties of a message in front of its data, for who knows no other way.
//!
//! [`fold`] takes properties out of such headers when a message is put, [`header_of`] makes a header of them when one is got.
//! Folders that are no properties stay, in a header with nothing else in it.
//!
//! Source: IBM MQ, "MQRFH2 - Rules and formatting header 2", "Properties and message length".

mod folder;

use bytes::{BufMut, Bytes, BytesMut};

use crate::header::{HeaderError, put_text};
use crate::{MessageDescriptor, Properties, Property, ReasonCode};

/// Headers that follow one another in front of one message. Beyond: 2334. A limit of our own.
pub const RFH2_HEADERS_MAX: usize = 16;

/// Bytes of all of them: 1 MiB. Beyond: 2334. A limit of our own; what is in them as properties is limited further.
pub const RFH2_LENGTH_MAX: usize = 1024 * 1024;

/// Folders in a folder. Beyond: 2335. A limit of our own.
pub const RFH2_DEPTH_MAX: usize = 64;

/// The fixed part.
const FIXED_LENGTH: usize = 36;
const EYE_CATCHER: &[u8; 4] = b"RFH ";
const VERSION: u32 = 2;
/// Folder texts are padded to a multiple of this.
const ALIGNMENT: usize = 4;
/// `NameValueCCSID`s of UTF-16 and its subset.
const UTF16: [u32; 3] = [1200, 13_488, 17_584];
/// What the numbers of `Encoding` that are about integers are made of, and two of them.
const INTEGER_MASK: u32 = 0xf;
const INTEGER_NORMAL: u32 = 1;
const INTEGER_REVERSED: u32 = 2;

/// How what follows is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    encoding: u32,
    coded_character_set_id: u32,
    format: String,
}

impl Written {
    fn of(descriptor: &MessageDescriptor) -> Self {
        Self {
            encoding: descriptor.encoding,
            coded_character_set_id: descriptor.coded_character_set_id,
            format: descriptor.format.clone(),
        }
    }

    fn describe(self, descriptor: &mut MessageDescriptor) {
        descriptor.encoding = self.encoding;
        descriptor.coded_character_set_id = self.coded_character_set_id;
        descriptor.format = self.format;
    }
}

/// Reads numbers in either order of bytes, from bytes that may be anything.
struct Reader<'a> {
    rest: &'a [u8],
    reversed: bool,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], HeaderError> {
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

    fn u32(&mut self) -> Result<u32, HeaderError> {
        let bytes = self.bytes(4)?;
        let add = |n: u32, b: &u8| n << 8 | u32::from(*b);
        Ok(if self.reversed {
            bytes.iter().rev().fold(0, add)
        } else {
            bytes.iter().fold(0, add)
        })
    }
}

/// One header.
struct Header {
    /// Folder texts, as text.
    folders: Vec<String>,
    flags: u32,
    /// How what follows it is written.
    next: Written,
    /// Its bytes.
    length: usize,
}

fn read_header(data: &[u8], encoding: u32) -> Result<Header, HeaderError> {
    let reversed = match encoding & INTEGER_MASK {
        INTEGER_NORMAL => false,
        INTEGER_REVERSED => true,
        _ => return Err(HeaderError::Field("Encoding")),
    };
    let mut fields = Reader {
        rest: data,
        reversed,
    };
    if fields.bytes(4)? != EYE_CATCHER || fields.u32()? != VERSION {
        return Err(HeaderError::NotThisHeader);
    }
    let length = fields.u32()? as usize;
    let of_names = length
        .checked_sub(FIXED_LENGTH)
        .ok_or(HeaderError::Field("StrucLength"))?;
    let next_encoding = fields.u32()?;
    let coded_character_set_id = fields.u32()?;
    let format = fields.bytes(8)?;
    let format = core::str::from_utf8(format).map_err(|_| HeaderError::Field("Format"))?;
    let format = format.trim_end_matches(['\0', ' ']).to_owned();
    let flags = fields.u32()?;
    let names_ccsid = fields.u32()?;
    let mut names = Reader {
        rest: fields.bytes(of_names)?,
        reversed,
    };
    let mut folders = Vec::new();
    while !names.rest.is_empty() {
        let length = names.u32()? as usize;
        folders.push(text_of(names.bytes(length)?, names_ccsid, reversed)?);
    }
    Ok(Header {
        folders,
        flags,
        next: Written {
            encoding: next_encoding,
            coded_character_set_id,
            format,
        },
        length,
    })
}

/// A folder text as text.
fn text_of(bytes: &[u8], ccsid: u32, reversed: bool) -> Result<String, HeaderError> {
    let wrong = HeaderError::Field("NameValueData");
    if ccsid == MessageDescriptor::CCSID_UTF8 {
        return core::str::from_utf8(bytes)
            .map(str::to_owned)
            .map_err(|_| wrong);
    }
    if !UTF16.contains(&ccsid) {
        return Err(HeaderError::Field("NameValueCCSID"));
    }
    let (pairs, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(wrong);
    }
    let units = pairs.iter().map(|pair| {
        if reversed {
            u16::from_le_bytes(*pair)
        } else {
            u16::from_be_bytes(*pair)
        }
    });
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .map_err(|_| wrong)
}

/// Writes a header: numbers little-endian, folder texts in UTF-8.
fn write_header(folders: &[String], flags: u32, next: &Written) -> BytesMut {
    let padded = |text: &String| text.len().next_multiple_of(ALIGNMENT);
    let names = folders
        .iter()
        .map(|text| padded(text).saturating_add(4))
        .fold(0_usize, usize::saturating_add);
    let length = FIXED_LENGTH.saturating_add(names);
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut out = BytesMut::with_capacity(length);
    out.put_slice(EYE_CATCHER);
    out.put_u32_le(VERSION);
    out.put_u32_le(number(length));
    out.put_u32_le(next.encoding);
    out.put_u32_le(next.coded_character_set_id);
    put_text(&mut out, &next.format, 8);
    out.put_u32_le(flags);
    out.put_u32_le(MessageDescriptor::CCSID_UTF8);
    for text in folders {
        out.put_u32_le(number(padded(text)));
        put_text(&mut out, text, padded(text));
    }
    out
}

/// What describes data that begins with a header that [`write_header`] made.
fn written_header() -> Written {
    Written {
        encoding: MessageDescriptor::ENCODING_LITTLE_ENDIAN,
        coded_character_set_id: MessageDescriptor::CCSID_UTF8,
        format: MessageDescriptor::FORMAT_RFH2.to_owned(),
    }
}

/// Takes the properties out of the headers that the data of a message begins with, to those that the descriptor has; of two of
/// one name the descriptor's counts. Format, encoding and character set are those of what remains. Does nothing if the format is
/// not `MQHRF2`.
///
/// Properties are what is in the folders `usr`, `jms`, `mcd`, `mqext` and `mqps`, and in those that say `content='properties'`.
/// A folder of which that is not possible, since a name is not allowed or is there twice, or a value is none of its type, stays.
///
/// # Errors
/// 2334 if a header is malformed or there are too many, 2335 if a folder is malformed, 2478 if properties are too many.
pub fn fold(descriptor: &mut MessageDescriptor, data: &mut Bytes) -> Result<(), ReasonCode> {
    if descriptor.format != MessageDescriptor::FORMAT_RFH2 {
        return Ok(());
    }
    let mut properties: folder::Found = descriptor
        .properties
        .iter()
        .map(|property| (property.name.clone(), property.value.clone()))
        .collect();
    let mut written = Written::of(descriptor);
    let mut at = 0_usize;
    let mut kept = Vec::new();
    for number in 0_usize.. {
        if written.format != MessageDescriptor::FORMAT_RFH2 {
            break;
        }
        let rest = data.get(at..).unwrap_or_default();
        let header = read_header(rest, written.encoding).map_err(|_| ReasonCode::RFH_ERROR)?;
        at = at.saturating_add(header.length);
        if number >= RFH2_HEADERS_MAX || at > RFH2_LENGTH_MAX {
            return Err(ReasonCode::RFH_ERROR);
        }
        let mut others = Vec::new();
        for text in &header.folders {
            for folder in folder::read(text)? {
                match folder.properties {
                    Some(found) => {
                        for (name, value) in found {
                            properties.entry(name).or_insert(value);
                        }
                    }
                    None => others.push(folder.text.to_owned()),
                }
            }
            if properties.len() > crate::PROPERTIES_MAX {
                return Err(ReasonCode::PROPERTIES_TOO_BIG);
            }
        }
        if !others.is_empty() || header.flags != 0 {
            kept.push((others, header.flags));
        }
        written = header.next;
    }
    let properties = properties
        .into_iter()
        .map(|(name, value)| Property { name, value });
    let properties = Properties::new(properties.collect())?;
    // What is kept goes back in front, the last first.
    let mut rest = data.slice(at.min(data.len())..);
    for (others, flags) in kept.into_iter().rev() {
        let mut header = write_header(&others, flags, &written);
        header.put_slice(&rest);
        rest = header.freeze();
        written = written_header();
    }
    *data = rest;
    descriptor.properties = properties;
    written.describe(descriptor);
    Ok(())
}

/// A header with all properties of a message, to be put in front of its data; `None` if it has none. The descriptor describes
/// what begins with it then, and has no properties.
#[must_use]
pub fn header_of(descriptor: &mut MessageDescriptor) -> Option<Bytes> {
    let folders = folder::write(&descriptor.properties);
    if folders.is_empty() {
        return None;
    }
    let header = write_header(&folders, 0, &Written::of(descriptor));
    descriptor.properties = Properties::NONE;
    written_header().describe(descriptor);
    Some(header.freeze())
}

/// Bytes of the header that [`header_of`] makes; 0 if it makes none.
#[must_use]
pub fn header_length(properties: &Properties) -> usize {
    let folders = folder::write(properties);
    if folders.is_empty() {
        return 0;
    }
    let next = Written {
        encoding: 0,
        coded_character_set_id: 0,
        format: String::new(),
    };
    write_header(&folders, 0, &next).len()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
