//! Coded character sets by their CCSID.

use std::borrow::Cow;

use encoding_rs::{CoderResult, DecoderResult, Encoding};

use super::ebcdic::CodePage;

/// The order of the bytes of an integer, as `Encoding` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// `MQENC_INTEGER_NORMAL`.
    BigEndian,
    /// `MQENC_INTEGER_REVERSED`.
    LittleEndian,
}

impl ByteOrder {
    /// From `Encoding`; `None` if it says no order that there is.
    pub(super) const fn of(encoding: u32) -> Option<Self> {
        match encoding & 0xf {
            1 => Some(Self::BigEndian),
            2 => Some(Self::LittleEndian),
            _ => None,
        }
    }
}

/// A coded character set.
#[derive(Clone, Copy)]
pub(super) enum CharacterSet {
    Utf8,
    /// UTF-16 and UCS-2.
    Utf16(ByteOrder),
    Ascii,
    /// ISO 8859-1, control characters included: what the web calls so is windows-1252.
    Latin1,
    /// Of the web.
    Web(&'static Encoding),
    /// Of DOS.
    Dos(&'static (dyn yore::CodePage + Send + Sync)),
    Ebcdic(CodePage),
}

/// Whether a CCSID is UTF-16 or UCS-2: then `Encoding` counts.
pub(super) const fn is_wide(ccsid: u32) -> bool {
    matches!(ccsid, 1200 | 13_488 | 17_584)
}

impl CharacterSet {
    /// `None` for a CCSID that is not known here. `order` counts for UTF-16 alone.
    pub(super) fn of(ccsid: u32, order: ByteOrder) -> Option<Self> {
        use yore::code_pages as dos;
        Some(match ccsid {
            1208 => Self::Utf8,
            _ if is_wide(ccsid) => Self::Utf16(order),
            367 => Self::Ascii,
            819 => Self::Latin1,
            437 => Self::Dos(&dos::CP437),
            737 => Self::Dos(&dos::CP737),
            850 => Self::Dos(&dos::CP850),
            852 => Self::Dos(&dos::CP852),
            855 => Self::Dos(&dos::CP855),
            857 => Self::Dos(&dos::CP857),
            860 => Self::Dos(&dos::CP860),
            861 => Self::Dos(&dos::CP861),
            862 => Self::Dos(&dos::CP862),
            863 => Self::Dos(&dos::CP863),
            865 => Self::Dos(&dos::CP865),
            866 => Self::Dos(&dos::CP866),
            869 => Self::Dos(&dos::CP869),
            _ => match web(ccsid) {
                Some(encoding) => Self::Web(encoding),
                None => Self::Ebcdic(CodePage::of(ccsid)?),
            },
        })
    }

    /// Whether each character is one byte, as in fields of a header.
    pub(super) fn has_blanks_of_one_byte(self) -> bool {
        match self {
            Self::Utf8 | Self::Ascii | Self::Latin1 | Self::Web(_) | Self::Dos(_) => true,
            Self::Ebcdic(_) => true,
            Self::Utf16(_) => false,
        }
    }

    /// The text; `None` if the bytes are none of this set.
    pub(super) fn decode<'a>(self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        match self {
            Self::Utf8 => core::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Ascii => core::str::from_utf8(bytes)
                .ok()
                .filter(|text| text.is_ascii())
                .map(Cow::Borrowed),
            Self::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
            Self::Utf16(order) => decode_wide(bytes, order).map(Cow::Owned),
            Self::Web(encoding) => decode_web(bytes, encoding).map(Cow::Owned),
            Self::Dos(page) => page.decode(bytes).ok(),
            Self::Ebcdic(page) => Some(Cow::Owned(page.decode(bytes))),
        }
    }

    /// The bytes; `None` if a character is not in this set.
    pub(super) fn encode<'a>(self, text: &'a str) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Utf8 => Some(Cow::Borrowed(text.as_bytes())),
            Self::Ascii => text.is_ascii().then_some(Cow::Borrowed(text.as_bytes())),
            Self::Latin1 => text.chars().map(|c| u8::try_from(c).ok()).collect(),
            Self::Utf16(order) => {
                let bytes = |unit: u16| match order {
                    ByteOrder::BigEndian => unit.to_be_bytes(),
                    ByteOrder::LittleEndian => unit.to_le_bytes(),
                };
                Some(text.encode_utf16().flat_map(bytes).collect())
            }
            Self::Web(encoding) => encode_web(text, encoding).map(Cow::Owned),
            Self::Dos(page) => page.encode(text).ok(),
            Self::Ebcdic(page) => page.encode(text).map(Cow::Owned),
        }
    }
}

fn decode_wide(bytes: &[u8], order: ByteOrder) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units = bytes.chunks_exact(2).map(|pair| {
        let pair = [pair.first().copied(), pair.last().copied()].map(Option::unwrap_or_default);
        match order {
            ByteOrder::BigEndian => u16::from_be_bytes(pair),
            ByteOrder::LittleEndian => u16::from_le_bytes(pair),
        }
    });
    char::decode_utf16(units).collect::<Result<_, _>>().ok()
}

fn decode_web(bytes: &[u8], encoding: &'static Encoding) -> Option<String> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let length = decoder.max_utf8_buffer_length_without_replacement(bytes.len())?;
    let mut text = String::with_capacity(length);
    match decoder.decode_to_string_without_replacement(bytes, &mut text, true) {
        (DecoderResult::InputEmpty, _) => Some(text),
        (DecoderResult::OutputFull | DecoderResult::Malformed(..), _) => None,
    }
}

fn encode_web(text: &str, encoding: &'static Encoding) -> Option<Vec<u8>> {
    let mut encoder = encoding.new_encoder();
    let length = encoder.max_buffer_length_from_utf8_if_no_unmappables(text.len())?;
    let mut bytes = Vec::with_capacity(length);
    // A character that is not in the set would be written as a numeric reference of HTML.
    match encoder.encode_from_utf8_to_vec(text, &mut bytes, true) {
        (CoderResult::InputEmpty, _, false) => Some(bytes),
        (CoderResult::InputEmpty | CoderResult::OutputFull, _, _) => None,
    }
}

/// Windows, ISO and double-byte sets.
fn web(ccsid: u32) -> Option<&'static Encoding> {
    Some(match ccsid {
        874 => encoding_rs::WINDOWS_874,
        1250 | 5346 => encoding_rs::WINDOWS_1250,
        1251 | 5347 => encoding_rs::WINDOWS_1251,
        1252 | 5348 => encoding_rs::WINDOWS_1252,
        1253 | 5349 => encoding_rs::WINDOWS_1253,
        1254 | 5350 => encoding_rs::WINDOWS_1254,
        1255 | 5351 => encoding_rs::WINDOWS_1255,
        1256 | 5352 => encoding_rs::WINDOWS_1256,
        1257 | 5353 => encoding_rs::WINDOWS_1257,
        1258 | 5354 => encoding_rs::WINDOWS_1258,
        912 => encoding_rs::ISO_8859_2,
        913 => encoding_rs::ISO_8859_3,
        914 => encoding_rs::ISO_8859_4,
        915 => encoding_rs::ISO_8859_5,
        1089 => encoding_rs::ISO_8859_6,
        813 => encoding_rs::ISO_8859_7,
        916 => encoding_rs::ISO_8859_8,
        921 => encoding_rs::ISO_8859_13,
        923 => encoding_rs::ISO_8859_15,
        878 => encoding_rs::KOI8_R,
        1168 => encoding_rs::KOI8_U,
        932 | 943 => encoding_rs::SHIFT_JIS,
        954 => encoding_rs::EUC_JP,
        970 | 1363 => encoding_rs::EUC_KR,
        1386 => encoding_rs::GBK,
        1392 | 5488 => encoding_rs::GB18030,
        950 => encoding_rs::BIG5,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ccsid: u32) -> CharacterSet {
        CharacterSet::of(ccsid, ByteOrder::BigEndian).unwrap()
    }

    #[test]
    fn text_goes_into_a_set_and_comes_back() {
        // A text of each script, the sets that have it, and its bytes in the first.
        let table: [(&str, &[u32], &[u8]); 9] = [
            ("plain", &[367, 819, 437, 1252, 1208, 932, 950], b"plain"),
            (
                "Zürich ñ",
                &[819, 1252, 850, 437, 1208, 37, 500, 1047, 1140],
                b"Z\xfcrich \xf1",
            ),
            ("\u{20ac} 5", &[1252, 923, 1140, 1208, 1200], b"\x80 5"),
            ("\u{e9}", &[437, 850], b"\x82"),
            (
                "Привет",
                &[1251, 866, 915, 878],
                b"\xcf\xf0\xe8\xe2\xe5\xf2",
            ),
            ("日本", &[932, 943, 954, 1386, 950], b"\x93\xfa\x96\x7b"),
            ("ABC", &[37, 273, 500, 1047], b"\xc1\xc2\xc3"),
            ("A\u{1f600}", &[1200], b"\0A\xd8\x3d\xde\0"),
            ("A\u{1f600}", &[1208, 1392], "A\u{1f600}".as_bytes()),
        ];
        for (text, sets, first) in table {
            assert_eq!(set(sets[0]).encode(text).as_deref(), Some(first), "{text}");
            for ccsid in sets {
                let bytes = set(*ccsid).encode(text).unwrap().into_owned();
                assert_eq!(set(*ccsid).decode(&bytes).as_deref(), Some(text), "{ccsid}");
            }
        }
    }

    #[test]
    fn what_a_set_has_no_character_for_is_refused_and_not_replaced() {
        for ccsid in [367, 819, 437, 850, 1252, 37, 500, 932] {
            assert!(set(ccsid).encode("a\u{1f600}").is_none(), "{ccsid}");
        }
        assert!(set(819).encode("\u{20ac}").is_none());
    }

    #[test]
    fn bytes_that_are_no_text_of_a_set_are_refused() {
        let table: [(u32, &[u8]); 6] = [
            (1208, b"\xff"),
            (367, b"\x80"),
            (1200, b"\0A\0"),
            (1200, b"\xd8\0"),
            (932, b"\x81"),
            (1363, b"\xff"),
        ];
        for (ccsid, bytes) in table {
            assert!(set(ccsid).decode(bytes).is_none(), "{ccsid}");
        }
    }

    #[test]
    fn a_ccsid_that_is_not_known_is_no_set() {
        for ccsid in [0, 1, 920, 65_535, u32::MAX] {
            assert!(CharacterSet::of(ccsid, ByteOrder::LittleEndian).is_none());
        }
        assert_eq!(ByteOrder::of(273), Some(ByteOrder::BigEndian));
        assert_eq!(ByteOrder::of(546), Some(ByteOrder::LittleEndian));
        assert_eq!(ByteOrder::of(0), None);
    }
}
