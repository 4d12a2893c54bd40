use super::*;

/// Bytes written by hand: little-endian numbers and text as it stands.
macro_rules! bytes {
    ($($part:expr),+ $(,)?) => {{
        let mut all: Vec<u8> = Vec::new();
        $(all.extend_from_slice(&Part::of(&$part));)+
        all
    }};
}

trait Part {
    fn of(&self) -> Vec<u8>;
}

impl Part for i32 {
    fn of(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Part for &[u8] {
    fn of(&self) -> Vec<u8> {
        self.to_vec()
    }
}

const LITTLE: u32 = MessageDescriptor::ENCODING_LITTLE_ENDIAN;
const BIG: u32 = 273;

fn depth_high() -> PcfMessage {
    PcfMessage::event(PCF_COMMAND_PERFORMANCE_EVENT, 1, ReasonCode::new(2224))
        .text(PcfParameter::QUEUE_MANAGER_NAME, "QM1")
        .number(PcfParameter::HIGH_QUEUE_DEPTH, 80)
}

/// Type, StrucLength, Version, Command, MsgSeqNumber, Control, CompCode, Reason, ParameterCount; then MQCFST; then MQCFIN.
fn depth_high_bytes() -> Vec<u8> {
    bytes![
        7,
        36,
        1,
        45,
        1,
        1,
        1,
        2224,
        2, //
        4,
        24,
        2015,
        1208,
        3,
        &b"QM1\0"[..], //
        3,
        16,
        36,
        80
    ]
}

#[test]
fn an_event_is_a_header_of_36_bytes_and_its_parameters() {
    let bytes = depth_high().to_bytes();
    assert_eq!(bytes[..], depth_high_bytes()[..]);
    assert_eq!(bytes.len(), 36 + 24 + 16);
}

#[test]
fn every_structure_has_the_bytes_of_its_definition() {
    let cases: [(PcfValue, Vec<u8>); 8] = [
        (PcfValue::Integer(-2), bytes![3, 16, 20, -2]),
        (PcfValue::Integers(vec![1, -1]), bytes![5, 24, 20, 2, 1, -1]),
        (PcfValue::Integers(vec![]), bytes![5, 16, 20, 0]),
        (
            PcfValue::Text("ABCD".into()),
            bytes![4, 24, 20, 1208, 4, &b"ABCD"[..]],
        ),
        (
            PcfValue::Text("ABCDE".into()),
            bytes![4, 28, 20, 1208, 5, &b"ABCDE\0\0\0"[..]],
        ),
        (PcfValue::Text(String::new()), bytes![4, 20, 20, 1208, 0]),
        (
            PcfValue::Texts(vec!["AB".into(), "C".into()]),
            bytes![6, 28, 20, 1208, 2, 2, &b"ABC "[..]],
        ),
        (
            PcfValue::Bytes(Bytes::from_static(b"\x01\x02\x03")),
            bytes![9, 20, 20, 3, &b"\x01\x02\x03\0"[..]],
        ),
    ];
    for (value, expected) in cases {
        let mut message = PcfMessage::event(PCF_COMMAND_QUEUE_MANAGER_EVENT, 0, ReasonCode::NONE);
        message
            .parameters
            .push((PcfParameter::QUEUE_TYPE, value.clone()));
        let bytes = message.to_bytes();
        assert_eq!(bytes[36..], expected[..], "{value:?}");
        assert_eq!(PcfMessage::read(&bytes, LITTLE), Ok(message));
    }
}

#[test]
fn integers_of_the_other_order_are_read() {
    let mut swapped = Vec::new();
    for (i, four) in depth_high_bytes().chunks(4).enumerate() {
        // The text is the 15th group of four bytes.
        if i == 14 {
            swapped.extend_from_slice(four);
        } else {
            swapped.extend(four.iter().rev());
        }
    }
    assert_eq!(PcfMessage::read(&swapped, BIG), Ok(depth_high()));
    assert_eq!(PcfMessage::read(&swapped, LITTLE), Err(PcfError::Header));
}

#[test]
fn a_name_padded_with_blanks_is_read_without_them() {
    let bytes = bytes![
        7,
        36,
        2,
        44,
        1,
        1,
        1,
        2222,
        1, //
        4,
        28,
        2015,
        819,
        8,
        &b"QM1     "[..]
    ];
    let message = PcfMessage::read(&bytes, LITTLE).unwrap();
    assert_eq!(
        message.get(PcfParameter::QUEUE_MANAGER_NAME),
        Some(&PcfValue::Text("QM1".into()))
    );
}

#[test]
fn what_is_cut_anywhere_is_refused() {
    let bytes = depth_high_bytes();
    for end in 0..bytes.len() {
        assert!(PcfMessage::read(&bytes[..end], LITTLE).is_err(), "{end}");
    }
}

#[test]
fn bad_lengths_and_counts_are_refused_and_take_no_memory() {
    let header = |count: i32| bytes![7, 36, 1, 45, 1, 1, 1, 2224, count];
    let with = |parameter: Vec<u8>| [header(1), parameter].concat();
    let at = 36;
    for (bytes, expected) in [
        (header(i32::MAX), PcfError::Header),
        (bytes![7, 40, 1, 45, 1, 1, 1, 2224, 0], PcfError::Header),
        (bytes![7, 36, 9, 45, 1, 1, 1, 2224, 0], PcfError::Header),
        (with(bytes![99, 16, 1, 0]), PcfError::Type { at, found: 99 }),
        (with(bytes![3, 12, 1, 0]), PcfError::Structure { at }),
        (with(bytes![5, 16, 1, i32::MAX]), PcfError::Structure { at }),
        (
            with(bytes![6, 24, 1, 1208, i32::MAX, 0]),
            PcfError::Structure { at },
        ),
        (
            with(bytes![6, 24, 1, 1208, 65_536, 65_536]),
            PcfError::Structure { at },
        ),
        (
            with(bytes![4, 24, 1, 1208, 4, &b"\xff\xff\xff\xff"[..]]),
            PcfError::Structure { at },
        ),
        (
            with(bytes![3, 20, 1, 0]),
            PcfError::TooShort { at: at + 16 },
        ),
    ] {
        assert_eq!(PcfMessage::read(&bytes, LITTLE), Err(expected));
    }
}

#[test]
fn a_number_that_does_not_fit_is_the_highest() {
    let message = PcfMessage::event(PCF_COMMAND_PERFORMANCE_EVENT, 1, ReasonCode::NONE)
        .number(PcfParameter::ENQUEUE_COUNT, u64::MAX);
    assert_eq!(
        message.get(PcfParameter::ENQUEUE_COUNT),
        Some(&PcfValue::Integer(i32::MAX))
    );
}
