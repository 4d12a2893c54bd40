use proptest::prelude::*;

use super::*;
use crate::PropertyValue as V;

fn property(name: &str, value: V) -> Property {
    Property {
        name: name.to_owned(),
        value,
    }
}

fn string(text: &str) -> V {
    V::String(text.to_owned())
}

fn of(properties: Vec<Property>) -> Properties {
    Properties::new(properties).expect("properties")
}

/// A message as others write it: big-endian, folder texts in a character set of choice, padded with blanks.
fn foreign(folders: &[&str], ccsid: u32, encoding: u32) -> (MessageDescriptor, Bytes) {
    let big = encoding & INTEGER_MASK == INTEGER_NORMAL;
    let number = |n: u32| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let mut names = Vec::new();
    for folder in folders {
        let mut text: Vec<u8> = if ccsid == 1208 {
            folder.as_bytes().to_vec()
        } else {
            let units = folder.encode_utf16();
            units
                .flat_map(|u| {
                    if big {
                        u.to_be_bytes()
                    } else {
                        u.to_le_bytes()
                    }
                })
                .collect()
        };
        while !text.len().is_multiple_of(4) {
            let blank = if big { &[0, b' '][..] } else { &[b' ', 0][..] };
            text.extend_from_slice(if ccsid == 1208 { b" " } else { blank });
        }
        names.extend(number(u32::try_from(text.len()).expect("short")));
        names.extend(text);
    }
    let mut data = b"RFH ".to_vec();
    let length = u32::try_from(names.len().saturating_add(FIXED_LENGTH)).expect("short");
    for n in [2, length, 273, 819] {
        data.extend(number(n));
    }
    data.extend(b"MQSTR   ");
    data.extend([number(0), number(ccsid)].concat());
    data.extend(names);
    data.extend(b"the data");
    let descriptor = MessageDescriptor {
        encoding,
        coded_character_set_id: 500,
        format: MessageDescriptor::FORMAT_RFH2.to_owned(),
        ..MessageDescriptor::default()
    };
    (descriptor, data.into())
}

fn folded(folders: &[&str]) -> Result<(MessageDescriptor, Bytes), ReasonCode> {
    let (mut descriptor, mut data) = foreign(folders, 1208, 273);
    fold(&mut descriptor, &mut data)?;
    Ok((descriptor, data))
}

const JMS: [&str; 3] = [
    "<mcd><Msd>jms_text</Msd></mcd>",
    "<jms><Dst>queue:///ORDERS</Dst><Tms dt='i8'>1700000000000</Tms></jms>",
    "<usr><colour>red &amp; &#x62;lue</colour><count dt=\"i4\">-7</count><on dt='boolean'>1</on></usr>",
];

#[test]
fn a_header_of_jms_becomes_properties_and_what_it_said_of_the_data_counts() {
    for (ccsid, encoding) in [
        (1208, 273),
        (1208, 546),
        (1200, 273),
        (1200, 546),
        (17_584, 273),
    ] {
        let (mut descriptor, mut data) = foreign(&JMS, ccsid, encoding);
        fold(&mut descriptor, &mut data).expect("it is well-formed");
        let expected = of(vec![
            property("mcd.Msd", string("jms_text")),
            property("jms.Dst", string("queue:///ORDERS")),
            property("jms.Tms", V::Int64(1_700_000_000_000)),
            property("colour", string("red & blue")),
            property("count", V::Int32(-7)),
            property("on", V::Boolean(true)),
        ]);
        assert_eq!(descriptor.properties, expected, "{ccsid} {encoding}");
        assert_eq!(
            (
                descriptor.format.as_str(),
                descriptor.encoding,
                descriptor.coded_character_set_id
            ),
            ("MQSTR", 273, 819)
        );
        assert_eq!(&data[..], b"the data");
    }
}

#[test]
fn a_message_of_another_format_is_left_alone() {
    let mut descriptor = MessageDescriptor::default();
    let (_, mut data) = foreign(&JMS, 1208, 273);
    let before = (descriptor.clone(), data.clone());
    fold(&mut descriptor, &mut data).expect("nothing to do");
    assert_eq!((descriptor, data), before);
}

#[test]
fn every_type_of_a_value_is_read() {
    for (text, value) in [
        ("<a>x</a>", string("x")),
        ("<a dt='string'> x </a>", string(" x ")),
        ("<a/>", string("")),
        ("<a dt='unknown'>x</a>", string("x")),
        ("<a dt='boolean'>0</a>", V::Boolean(false)),
        ("<a dt='boolean'>TRUE</a>", V::Boolean(true)),
        ("<a dt='bin.hex'>0aFF</a>", V::Bytes(vec![10, 255].into())),
        ("<a dt='i1'>-128</a>", V::Int8(-128)),
        ("<a dt='i2'>5</a>", V::Int16(5)),
        ("<a dt='i4'>5</a>", V::Int32(5)),
        ("<a dt='i8'>5</a>", V::Int64(5)),
        ("<a dt='int'>5</a>", V::Int64(5)),
        ("<a dt='r4'>1.5</a>", V::Float32(1.5)),
        ("<a dt='r8'>-1E3</a>", V::Float64(-1000.0)),
        ("<a xsi:nil='true'></a>", V::Null),
        ("<a xsi:nil=\"true\"/>", V::Null),
    ] {
        let (descriptor, _) = folded(&[&format!("<usr>{text}</usr>")]).expect("well-formed");
        let expected = of(vec![property("a", value)]);
        assert_eq!(descriptor.properties, expected, "{text}");
    }
}

#[test]
fn groups_and_folders_that_say_so_are_parts_of_names() {
    let folders = [
        "<usr><order><item>1</item></order></usr><ord content='properties'><x>2</x></ord>",
        "<usr></usr><usr/>",
    ];
    let (descriptor, data) = folded(&folders).expect("well-formed");
    let expected = of(vec![
        property("order.item", string("1")),
        property("ord.x", string("2")),
    ]);
    assert_eq!(descriptor.properties, expected);
    assert_eq!(&data[..], b"the data");
}

#[test]
fn what_cannot_be_properties_stays_in_a_header() {
    for other in [
        "<app><x>1</x></app>",
        "<usr><JMSFoo>1</JMSFoo></usr>",
        "<usr><a>1</a><a>2</a></usr>",
        "<usr><a dt='i1'>300</a></usr>",
        "<usr>text</usr>",
    ] {
        let (mut descriptor, data) = folded(&[other, "<usr><b>1</b></usr>"]).expect("well-formed");
        let expected = of(vec![property("b", string("1"))]);
        assert_eq!(descriptor.properties, expected, "{other}");
        assert_eq!(descriptor.format, MessageDescriptor::FORMAT_RFH2);
        let header = read_header(&data, descriptor.encoding).expect("a header");
        assert_eq!(header.folders[0].trim_end(), other);
        assert_eq!(header.next.format, "MQSTR");
        assert_eq!(
            (header.next.encoding, header.next.coded_character_set_id),
            (273, 819)
        );
        assert_eq!(&data[header.length..], b"the data");
        // Once more there is nothing to take out.
        let before = data.clone();
        let mut data = data;
        fold(&mut descriptor, &mut data).expect("well-formed");
        assert_eq!(data, before);
    }
}

#[test]
fn properties_beside_the_data_count_before_those_of_a_header() {
    let (mut descriptor, mut data) = foreign(&["<usr><a>1</a><b>2</b></usr>"], 1208, 273);
    descriptor.properties = of(vec![property("a", string("mine"))]);
    fold(&mut descriptor, &mut data).expect("well-formed");
    let expected = of(vec![
        property("a", string("mine")),
        property("b", string("2")),
    ]);
    assert_eq!(descriptor.properties, expected);
}

#[test]
fn headers_that_follow_one_another_are_all_read() {
    let (mut descriptor, mut data) = foreign(&["<usr><a>1</a></usr>"], 1208, 546);
    // Its own header in front, which keeps a folder.
    let mut front = write_header(
        &["<app/>".to_owned(), "<usr><b>2</b></usr>".to_owned()],
        0,
        &Written::of(&descriptor),
    );
    front.put_slice(&data);
    data = front.freeze();
    fold(&mut descriptor, &mut data).expect("well-formed");
    let expected = of(vec![property("a", string("1")), property("b", string("2"))]);
    assert_eq!(descriptor.properties, expected);
    let header = read_header(&data, descriptor.encoding).expect("a header");
    assert_eq!(header.folders, ["<app/>  "]);
    assert_eq!(&data[header.length..], b"the data");
}

#[test]
fn malformed_headers_are_refused() {
    let (descriptor, data) = foreign(&JMS, 1208, 273);
    let check = |change: &dyn Fn(&mut MessageDescriptor, &mut Vec<u8>), reason| {
        let (mut descriptor, mut bytes) = (descriptor.clone(), data.to_vec());
        change(&mut descriptor, &mut bytes);
        let mut bytes = bytes.into();
        assert_eq!(fold(&mut descriptor, &mut bytes), Err(reason));
    };
    let error = ReasonCode::RFH_ERROR;
    check(&|_, b| b.truncate(35), error);
    check(&|_, b| b.truncate(40), error);
    check(&|_, b| b.clear(), error);
    check(&|_, b| b[0] = b'X', error);
    check(&|_, b| b[7] = 1, error);
    check(&|_, b| b[8..12].copy_from_slice(&[0, 0, 0, 35]), error);
    check(&|_, b| b[8..12].copy_from_slice(&[255; 4]), error);
    check(&|_, b| b[36..40].copy_from_slice(&[255; 4]), error);
    check(&|_, b| b[32..36].copy_from_slice(&[0, 0, 3, 51]), error);
    check(&|d, _| d.encoding = 0, error);
    check(&|d, _| d.encoding = 546, error);
    for text in [
        "<",
        "<usr",
        "<usr>",
        "<usr></mcd>",
        "<usr><a></usr>",
        "<usr><a>1</a>text</usr>",
        "<usr><a>&bogus;</a></usr>",
        "<usr><a>&</a></usr>",
        "<usr><a>&#xD800;</a></usr>",
        "<usr><a dt=i4>1</a></usr>",
        "<usr><a dt='i4>1</a></usr>",
        "</usr>",
        "text",
        "<usr/>x",
        "<!-- no --><usr/>",
        &"<a>".repeat(RFH2_DEPTH_MAX + 1),
    ] {
        let refused = folded(&[text]).err();
        assert_eq!(refused, Some(ReasonCode::RFH_STRING_ERROR), "{text}");
    }
}

#[test]
fn headers_are_bounded_in_number_length_and_properties() {
    let next = |n: usize| {
        let (mut descriptor, mut data) = foreign(&[], 1208, 546);
        for _ in 1..n {
            let mut front = write_header(&[], 0, &Written::of(&descriptor));
            front.put_slice(&data);
            data = front.freeze();
        }
        fold(&mut descriptor, &mut data)
    };
    assert_eq!(next(RFH2_HEADERS_MAX), Ok(()));
    assert_eq!(next(RFH2_HEADERS_MAX + 1), Err(ReasonCode::RFH_ERROR));
    let long = format!("<app>{}</app>", "x".repeat(RFH2_LENGTH_MAX));
    assert_eq!(folded(&[&long]).err(), Some(ReasonCode::RFH_ERROR));
    let many: String = (0..=crate::PROPERTIES_MAX)
        .map(|i| format!("<p{i}/>"))
        .collect();
    let many = format!("<usr>{many}</usr>");
    assert_eq!(folded(&[&many]).err(), Some(ReasonCode::PROPERTIES_TOO_BIG));
}

#[test]
fn a_header_is_made_of_properties_and_says_how_the_data_is_written() {
    let mut descriptor = MessageDescriptor {
        format: "MQSTR".to_owned(),
        coded_character_set_id: 819,
        properties: of(vec![
            property("jms.Dst", string("q")),
            property("com.example.x", V::Int8(1)),
            property("none", V::Null),
        ]),
        ..MessageDescriptor::default()
    };
    let length = header_length(&descriptor.properties);
    let header = header_of(&mut descriptor).expect("a header");
    assert_eq!(header.len(), length);
    assert_eq!(descriptor.format, "MQHRF2");
    assert!(descriptor.properties.is_empty());
    let read = read_header(&header, descriptor.encoding).expect("a header");
    assert_eq!(
        read.folders
            .iter()
            .map(|t| t.trim_end())
            .collect::<Vec<_>>(),
        [
            "<usr><com><example><x dt='i1'>1</x></example></com><none xsi:nil='true'></none></usr>",
            "<jms><Dst>q</Dst></jms>",
        ]
    );
    assert_eq!(
        (read.next.format.as_str(), read.next.coded_character_set_id),
        ("MQSTR", 819)
    );
    assert_eq!(header_of(&mut MessageDescriptor::default()), None);
    assert_eq!(header_length(&Properties::NONE), 0);
}

fn any_value() -> impl Strategy<Value = V> {
    prop_oneof![
        Just(V::Null),
        any::<bool>().prop_map(V::Boolean),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|b| V::Bytes(b.into())),
        any::<i8>().prop_map(V::Int8),
        any::<i16>().prop_map(V::Int16),
        any::<i32>().prop_map(V::Int32),
        any::<i64>().prop_map(V::Int64),
        any::<f32>()
            .prop_filter("one NaN", |f| !f.is_nan())
            .prop_map(V::Float32),
        any::<f64>()
            .prop_filter("one NaN", |f| !f.is_nan())
            .prop_map(V::Float64),
        ".{0,30}".prop_map(V::String),
        "[\\x00-\\x20<>&;'\"a]{0,20}".prop_map(V::String),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        named in prop::collection::btree_map(
            "((jms|mcd|mqext|mqps)\\.)?[a-h]{1,3}x(\\.[a-zA-Z_$][a-zA-Z0-9]{0,4}){0,3}", any_value(), 0..12),
        data in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let properties = of(named.into_iter().map(|(name, value)| Property { name, value }).collect());
        let original = MessageDescriptor {
            encoding: 273,
            coded_character_set_id: 37,
            format: "MQSTR".to_owned(),
            properties,
            ..MessageDescriptor::default()
        };
        let mut descriptor = original.clone();
        let header = header_of(&mut descriptor).unwrap_or_default();
        let mut whole = Bytes::from([&header[..], &data[..]].concat());
        fold(&mut descriptor, &mut whole).expect("it is well-formed");
        prop_assert_eq!(&whole[..], &data[..]);
        prop_assert_eq!(descriptor, original);
    }

    #[test]
    fn any_bytes_are_folded_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        encoding in prop_oneof![Just(273), Just(546), any::<u32>()],
        ccsid in prop_oneof![Just(1208_u32), Just(1200)],
        text in "(<|</|>|/>|usr|mcd|a|b| |dt='i4'|&lt;|&|=|'|[0-9]|\\PC){0,40}",
        flip in any::<(prop::sample::Index, u8)>(),
    ) {
        let mut descriptor = MessageDescriptor {
            encoding,
            format: MessageDescriptor::FORMAT_RFH2.to_owned(),
            ..MessageDescriptor::default()
        };
        // Either way, without a panic.
        let mut anything = bytes.into();
        if fold(&mut descriptor, &mut anything).is_err() {
            prop_assert!(descriptor.properties.is_empty());
        }
        let (mut descriptor, data) = foreign(&[&text], ccsid, 273);
        let mut data = data.to_vec();
        let at = flip.0.index(data.len());
        data[at] ^= flip.1;
        if fold(&mut descriptor, &mut data.clone().into()).is_ok() {
            // What is kept of a text that was good is good.
            let mut rest = data.into();
            let (mut descriptor, _) = foreign(&[], ccsid, 273);
            fold(&mut descriptor, &mut rest).expect("it was good");
            let kept = rest.clone();
            fold(&mut descriptor, &mut rest).expect("what is kept is good");
            prop_assert_eq!(rest, kept);
        }
    }
}
