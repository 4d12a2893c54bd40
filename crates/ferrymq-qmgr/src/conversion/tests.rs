//! Format × sets × length → what the getter has, and the warning.

use ferrymq_types::Timestamp;

use super::*;

const LITTLE: u32 = 546;
const BIG: u32 = 273;

fn message(format: &str, ccsid: u32, encoding: u32, data: &[u8]) -> v1::Message {
    v1::Message {
        descriptor: Some(v1::MessageDescriptor {
            format: format.into(),
            coded_character_set_id: ccsid,
            encoding,
            ..v1::MessageDescriptor::default()
        }),
        data: Bytes::copy_from_slice(data),
    }
}

fn reading(ccsid: u32, encoding: u32) -> Reading {
    Reading {
        target: Representation::wanted(Some(v1::Conversion {
            coded_character_set_id: ccsid,
            encoding,
        })),
        ..Reading::default()
    }
}

impl Reading {
    fn apply(&self, message: &mut v1::Message) -> ReasonCode {
        let warning = self.convert(message);
        self.cut(message, warning)
    }
}

#[test]
fn text_is_converted_or_given_as_it_is_with_the_reason() {
    let wide: &[u8] = b"\0A\0\xe9";
    // Format, its CCSID and encoding, its data; wanted CCSID and encoding; data and warning.
    type Case<'a> = (&'a str, u32, u32, &'a [u8], u32, u32, &'a [u8], u32);
    let table: [Case<'_>; 18] = [
        ("MQSTR", 819, LITTLE, b"caf\xe9", 0, 0, "café".as_bytes(), 0),
        (
            "MQSTR",
            500,
            BIG,
            b"\xc1\xc2\x51",
            1208,
            LITTLE,
            "ABé".as_bytes(),
            0,
        ),
        ("MQSTR", 1208, LITTLE, "Aé".as_bytes(), 1200, BIG, wide, 0),
        ("MQSTR", 1200, BIG, wide, 1200, LITTLE, b"A\0\xe9\0", 0),
        ("MQSTR", 1200, BIG, wide, 437, LITTLE, b"A\x82", 0),
        // The same already, or nothing there.
        ("MQSTR", 1208, LITTLE, b"\xff", 0, 0, b"\xff", 0),
        ("", 1208, LITTLE, b"\xff", 0, 0, b"\xff", 0),
        ("", 37, BIG, b"", 0, 0, b"", 0),
        // Another format.
        ("", 37, BIG, b"\xc1", 0, 0, b"\xc1", 2110),
        ("MQTRIG", 37, BIG, b"\xc1", 0, 0, b"\xc1", 2110),
        // Not known.
        ("MQSTR", 4711, LITTLE, b"a", 0, 0, b"a", 2111),
        ("MQSTR", 1200, 0x110, b"\0A", 0, 0, b"\0A", 2112),
        ("MQSTR", 819, LITTLE, b"a", 4711, 0, b"a", 2115),
        ("MQSTR", 819, LITTLE, b"a", 1200, 0x110, b"a", 2116),
        // The order of bytes does not count for these.
        ("MQSTR", 819, 0, b"\xe9", 1208, 0x110, "é".as_bytes(), 0),
        // No text, no character.
        ("MQSTR", 1208, LITTLE, b"\xff", 819, 0, b"\xff", 2119),
        (
            "MQSTR",
            1208,
            LITTLE,
            "€".as_bytes(),
            819,
            0,
            "€".as_bytes(),
            2119,
        ),
        ("MQSTR", 1200, BIG, b"\0A\0", 0, 0, b"\0A\0", 2119),
    ];
    for (format, ccsid, encoding, data, to, to_encoding, expected, reason) in table {
        let mut m = message(format, ccsid, encoding, data);
        let what = format!("{format} {ccsid} {encoding:x} {data:?} to {to} {to_encoding:x}");
        let wanted = reading(to, to_encoding);
        assert_eq!(wanted.apply(&mut m).get(), reason, "{what}");
        assert_eq!(m.data, expected, "{what}");
        let d = m.descriptor.unwrap();
        let told = (d.coded_character_set_id, d.encoding);
        let was_converted = reason == 0 && !data.is_empty();
        let target = wanted.target.unwrap();
        let expected = if was_converted {
            (target.coded_character_set_id, target.encoding)
        } else {
            (ccsid, encoding)
        };
        assert_eq!(told, expected, "{what}");
    }
}

#[test]
fn a_conversion_that_is_longer_than_the_buffer_is_not_done_or_cut() {
    // Two bytes that become four.
    let data: &[u8] = b"\xe9\xe8";
    let of = |length_max, accept_truncated| {
        let mut m = message("MQSTR", 819, LITTLE, data);
        let reading = Reading {
            length_max,
            accept_truncated,
            ..reading(0, 0)
        };
        let reason = reading.apply(&mut m).get();
        (m.data.to_vec(), reason)
    };
    let whole = "éè".as_bytes().to_vec();
    assert_eq!(of(None, false), (whole.clone(), 0));
    assert_eq!(of(Some(4), false), (whole.clone(), 0));
    assert_eq!(of(Some(3), false), (data.to_vec(), 2120));
    assert_eq!(of(Some(3), true), (whole[..3].to_vec(), 2079));
}

#[test]
fn data_beyond_the_limit_is_not_converted() {
    let mut m = message("MQSTR", 819, LITTLE, &vec![b'a'; CONVERSION_LENGTH_MAX + 1]);
    assert_eq!(reading(500, BIG).apply(&mut m), ReasonCode::NOT_CONVERTED);
    let mut m = message("MQSTR", 819, LITTLE, &vec![b'a'; CONVERSION_LENGTH_MAX]);
    assert_eq!(reading(500, BIG).apply(&mut m), ReasonCode::NONE);
    assert!(m.data.iter().all(|b| *b == 0x81));
}

/// A message with a dead-letter header as a queue manager makes it.
fn dead(format: &str, ccsid: u32, encoding: u32, body: &[u8]) -> v1::Message {
    let mut d = MessageDescriptor {
        format: format.into(),
        coded_character_set_id: ccsid,
        encoding,
        ..MessageDescriptor::default()
    };
    let now = Timestamp::from_millis(951_782_399_991);
    let none = Bytes::new();
    let header =
        DeadLetterHeader::wrap(&mut d, &none, ReasonCode::Q_FULL, "ORDERS", "QM2", "é", now);
    let data = [&header[..], body].concat();
    message(&d.format, d.coded_character_set_id, d.encoding, &data)
}

#[test]
fn text_behind_a_dead_letter_header_is_converted_with_it() {
    let mut m = dead("MQSTR", 1208, LITTLE, "café".as_bytes());
    let original = DeadLetterHeader::read(&m.data).unwrap();
    assert_eq!(reading(500, BIG).apply(&mut m), ReasonCode::NONE);
    let (header, body) = m.data.split_at(DeadLetterHeader::LENGTH);
    assert_eq!(&header[..4], b"\xc4\xd3\xc8\x40", "DLH in EBCDIC");
    assert_eq!(&header[4..12], [0, 0, 0, 1, 0, 0, 8, 5], "version and 2053");
    assert_eq!(body, b"\x83\x81\x86\x51");
    // And back: what it says is the same, but for how the text is written.
    assert_eq!(reading(0, 0).apply(&mut m), ReasonCode::NONE);
    let back = DeadLetterHeader::read(&m.data).unwrap();
    assert_eq!(back, original);
    assert_eq!(&m.data[DeadLetterHeader::LENGTH..], "café".as_bytes());
}

#[test]
fn a_dead_letter_header_is_converted_alone_or_not_at_all() {
    // What is behind it has no converter, or cannot be converted; the set is none for a header; it is no header.
    let cases = [
        (dead("", 1208, LITTLE, b"x"), 500, 2110),
        (dead("MQSTR", 1208, LITTLE, "€".as_bytes()), 500, 2119),
        (dead("MQSTR", 4711, LITTLE, b"x"), 500, 2111),
        (dead("MQSTR", 1208, LITTLE, b"x"), 1200, 2115),
        (message("MQDEAD", 1208, LITTLE, b"DLH"), 500, 2110),
        (message("MQDEAD", 1208, LITTLE, &[b'x'; 200]), 500, 2110),
    ];
    for (mut m, ccsid, reason) in cases {
        let before = m.clone();
        assert_eq!(reading(ccsid, BIG).apply(&mut m).get(), reason);
        assert_eq!(m, before);
    }
    let mut alone = dead("", 1208, LITTLE, b"");
    assert_eq!(reading(500, BIG).apply(&mut alone), ReasonCode::NONE);
    assert_eq!(alone.data.len(), DeadLetterHeader::LENGTH);
}
