//! A message for a person or a program to read: as JSON, in a line, in hexadecimal.

use std::collections::BTreeMap;

use bytes::Bytes;
use ferrymq_client::wire;
use ferrymq_types::{
    AccountingToken, CorrelationId, DeadLetterHeader, MessageDescriptor, MessageId, Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::structure;

/// Characters of a body that a list shows.
const PREVIEW_CHARACTERS: usize = 60;

/// A message as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct MessageDocument<'a> {
    message_id: String,
    correl_id: String,
    queue: &'a str,
    qmgr: Option<&'a str>,
    put_time: String,
    put_appl: &'a str,
    user: &'a str,
    accounting_token: String,
    appl_identity_data: &'a str,
    put_appl_type: i32,
    appl_origin_data: &'a str,
    #[serde(rename = "type")]
    message_type: String,
    report: u32,
    feedback: u32,
    ccsid: u32,
    format: &'a str,
    persistence: &'static str,
    priority: u32,
    expiry_ms: Option<u64>,
    backout_count: u32,
    reply_to: Option<ReplyTo<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<Group>,
    size: usize,
    encoding: &'static str,
    body: Body<'a>,
    truncated: bool,
    properties: Properties<'a>,
    dead_letter: Option<DeadLetter>,
    trace: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
}

/// Where a message is in a group, or a segment in a message; only of those that are one.
#[derive(Debug, Serialize)]
struct Group {
    id: String,
    sequence: u32,
    offset: u32,
    flags: u32,
    original_length: Option<u32>,
}

impl Group {
    fn of(d: &wire::MessageDescriptor) -> Option<Self> {
        let none = d.group_id.is_empty()
            && d.message_sequence_number <= 1
            && d.offset == 0
            && d.message_flags == 0
            && d.original_length.is_none();
        (!none).then(|| Self {
            id: group_id(d),
            sequence: d.message_sequence_number,
            offset: d.offset,
            flags: d.message_flags,
            original_length: d.original_length,
        })
    }
}

#[derive(Debug, Serialize)]
struct ReplyTo<'a> {
    queue: &'a str,
    qmgr: &'a str,
}

/// Message properties by name: numbers, booleans, strings, null; byte strings in hex digits.
type Properties<'a> = BTreeMap<&'a str, serde_json::Value>;

fn hexadecimal_digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn properties(descriptor: &wire::MessageDescriptor) -> Properties<'_> {
    use wire::property::Value as V;
    let named = descriptor.properties.iter().map(|property| {
        let value = match &property.value {
            None => serde_json::Value::Null,
            Some(V::Boolean(value)) => (*value).into(),
            Some(V::Bytes(value)) => hexadecimal_digits(value).into(),
            Some(V::Int8(value) | V::Int16(value) | V::Int32(value)) => (*value).into(),
            Some(V::Int64(value)) => (*value).into(),
            Some(V::Float32(value)) => (*value).into(),
            Some(V::Float64(value)) => (*value).into(),
            Some(V::String(value)) => value.as_str().into(),
        };
        (property.name.as_str(), value)
    });
    named.collect()
}

/// What the dead-letter header says. What such a header has no field for is null.
#[derive(Debug, Serialize)]
struct DeadLetter {
    reason: Option<&'static str>,
    mqrc: u32,
    origin_queue: String,
    origin_qmgr: String,
    channel: Option<String>,
    time: Option<String>,
    attempts: Option<u32>,
    cause: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Json(&'a RawValue),
    Structure(serde_json::Value),
    Text(&'a str),
    Base64(String),
}

/// How much of the data is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoding {
    /// A dead-letter header is taken off and JSON is shown as JSON.
    Readable,
    /// The body says every byte: text if it is UTF-8, else base64.
    Exact,
}

/// Where a message was found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    pub(crate) queue: &'a str,
    pub(crate) queue_manager: Option<&'a str>,
    pub(crate) position: Option<u64>,
    pub(crate) held: Option<bool>,
}

impl<'a> MessageDocument<'a> {
    pub(crate) fn new(
        place: Place<'a>,
        descriptor: &'a wire::MessageDescriptor,
        data: &'a Bytes,
        decoding: Decoding,
    ) -> Self {
        let header = dead_letter_header(&descriptor.format, data);
        let payload = match (&header, decoding) {
            (Some(_), Decoding::Readable) => data.get(DeadLetterHeader::LENGTH..).unwrap_or(data),
            (Some(_) | None, _) => data,
        };
        let (encoding, body) = match structure::json(descriptor, data) {
            Some(said) if decoding == Decoding::Readable => ("json", Body::Structure(said)),
            Some(_) | None => body(payload, decoding),
        };
        let reply_to = (!descriptor.reply_to_queue.is_empty()).then(|| ReplyTo {
            queue: &descriptor.reply_to_queue,
            qmgr: &descriptor.reply_to_queue_manager,
        });
        Self {
            message_id: message_id(descriptor),
            correl_id: correlation_id(descriptor),
            queue: place.queue,
            qmgr: place.queue_manager,
            put_time: put_time(descriptor),
            put_appl: &descriptor.put_application_name,
            user: &descriptor.user_identifier,
            accounting_token: accounting_token(descriptor),
            appl_identity_data: &descriptor.application_identity_data,
            put_appl_type: descriptor.put_application_type,
            appl_origin_data: &descriptor.application_origin_data,
            message_type: message_type(descriptor.message_type),
            report: descriptor.report,
            feedback: descriptor.feedback,
            ccsid: descriptor.coded_character_set_id,
            format: &descriptor.format,
            persistence: persistence(descriptor),
            priority: descriptor.priority.unwrap_or(0),
            expiry_ms: descriptor
                .expiry
                .map(|tenths| u64::from(tenths).saturating_mul(100)),
            backout_count: descriptor.backout_count,
            reply_to,
            group: Group::of(descriptor),
            size: data.len(),
            encoding,
            body,
            truncated: false,
            properties: properties(descriptor),
            dead_letter: header.map(dead_letter),
            trace: None,
            position: place.position,
            held: place.held,
        }
    }
}

fn dead_letter_header(format: &str, data: &[u8]) -> Option<DeadLetterHeader> {
    (format == MessageDescriptor::FORMAT_DEAD_LETTER_HEADER)
        .then(|| DeadLetterHeader::read(data).ok())
        .flatten()
}

fn dead_letter(header: DeadLetterHeader) -> DeadLetter {
    DeadLetter {
        reason: header.reason.name(),
        mqrc: header.reason.get(),
        time: header_time(&header.put_date, &header.put_time),
        origin_queue: header.destination_queue,
        origin_qmgr: header.destination_queue_manager,
        channel: None,
        attempts: None,
        cause: None,
    }
}

/// `YYYYMMDD` and `HHMMSSTH` as RFC 3339; `None` if they are something else.
fn header_time(date: &str, time: &str) -> Option<String> {
    let is_number = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(date) || !is_number(time) {
        return None;
    }
    Some(format!(
        "{}-{}-{}T{}:{}:{}.{}0Z",
        date.get(..4)?,
        date.get(4..6)?,
        date.get(6..)?,
        time.get(..2)?,
        time.get(2..4)?,
        time.get(4..6)?,
        time.get(6..)?
    ))
}

fn body(data: &[u8], decoding: Decoding) -> (&'static str, Body<'_>) {
    let Ok(text) = core::str::from_utf8(data) else {
        return ("base64", Body::Base64(base64(data)));
    };
    // Printed as it is, JSON must not break the line that it is printed on.
    let may_be_json = decoding == Decoding::Readable
        && text.starts_with(['{', '['])
        && !text.contains(['\n', '\r']);
    match serde_json::from_str::<&RawValue>(text) {
        Ok(json) if may_be_json && json.get().len() == text.len() => ("json", Body::Json(json)),
        Ok(_) | Err(_) => ("text", Body::Text(text)),
    }
}

/// Base64 with padding. Source: RFC 4648, section 4.
fn base64(data: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(data.len().div_ceil(3).saturating_mul(4));
    for chunk in data.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4usize {
            if digit > chunk.len() {
                text.push('=');
                continue;
            }
            let index = group >> (18 - 6 * digit) & 0x3f;
            let letter = usize::try_from(index).ok().and_then(|i| ALPHABET.get(i));
            text.push(char::from(*letter.unwrap_or(&b'=')));
        }
    }
    text
}

pub(crate) fn message_id(descriptor: &wire::MessageDescriptor) -> String {
    message_id_of(&descriptor.message_id)
}

/// A message id as it travels, in hexadecimal digits.
pub(crate) fn message_id_of(bytes: &[u8]) -> String {
    MessageId::from_slice(bytes).unwrap_or_default().to_string()
}

pub(crate) fn correlation_id(descriptor: &wire::MessageDescriptor) -> String {
    CorrelationId::from_slice(&descriptor.correlation_id)
        .unwrap_or_default()
        .to_string()
}

fn group_id(descriptor: &wire::MessageDescriptor) -> String {
    CorrelationId::from_slice(&descriptor.group_id)
        .unwrap_or_default()
        .to_string()
}

fn accounting_token(descriptor: &wire::MessageDescriptor) -> String {
    AccountingToken::from_slice(&descriptor.accounting_token)
        .unwrap_or_default()
        .to_string()
}

fn put_time(descriptor: &wire::MessageDescriptor) -> String {
    Timestamp::from_millis(descriptor.put_time_ms).to_string()
}

fn persistence(descriptor: &wire::MessageDescriptor) -> &'static str {
    match descriptor.persistence() {
        wire::Persistence::Persistent => "persistent",
        wire::Persistence::NonPersistent | wire::Persistence::Unspecified => "non_persistent",
    }
}

fn message_type(number: u32) -> String {
    match number {
        1 => "request".to_owned(),
        2 => "reply".to_owned(),
        4 => "report".to_owned(),
        8 => "datagram".to_owned(),
        other => other.to_string(),
    }
}

/// Headings of [`row`].
pub(crate) const ROW_HEADING: &[&str] = &[
    "POSITION",
    "MESSAGE ID",
    "PUT TIME",
    "PERSISTENCE",
    "PRIORITY",
    "SIZE",
    "DATA",
];

/// A message as a row of a list.
pub(crate) fn row(position: u64, d: &wire::MessageDescriptor, data: &Bytes) -> Vec<String> {
    let start = data
        .get(..data.len().min(PREVIEW_CHARACTERS * 4))
        .unwrap_or_default();
    let printable = |c: char| if c.is_control() { '.' } else { c };
    let text: String = match structure::line(d, data) {
        Some(said) => said.chars().map(printable).collect(),
        None => String::from_utf8_lossy(start)
            .chars()
            .take(PREVIEW_CHARACTERS)
            .map(printable)
            .collect(),
    };
    vec![
        position.to_string(),
        message_id(d),
        put_time(d),
        persistence(d).to_owned(),
        d.priority.unwrap_or(0).to_string(),
        data.len().to_string(),
        text,
    ]
}

/// Descriptor and data in the layout of IBM's `amqsbcg`.
pub(crate) fn hexadecimal(number: u64, d: &wire::MessageDescriptor, data: &Bytes) -> Vec<String> {
    let put = Timestamp::from_millis(d.put_time_ms);
    let expiry = d
        .expiry
        .map_or_else(|| "-1".to_owned(), |tenths| tenths.to_string());
    let persistence = u8::from(d.persistence() == wire::Persistence::Persistent);
    let original_length = d
        .original_length
        .map_or_else(|| "-1".to_owned(), |length| length.to_string());
    let clean = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_control() { '.' } else { c })
            .collect()
    };
    let mut lines = vec![
        format!(" Message number {number}"),
        " ****Message descriptor****".to_owned(),
        String::new(),
        "  StrucId  : 'MD  '  Version : 2".to_owned(),
        format!("  Report   : {}  MsgType : {}", d.report, d.message_type),
        format!("  Expiry   : {expiry}  Feedback : {}", d.feedback),
        format!(
            "  Encoding : {}  CodedCharSetId : {}",
            d.encoding, d.coded_character_set_id
        ),
        format!("  Format : '{:<8}'", clean(&d.format)),
        format!(
            "  Priority : {}  Persistence : {persistence}",
            d.priority.unwrap_or(0)
        ),
        format!("  MsgId : X'{}'", message_id(d).to_uppercase()),
        format!("  CorrelId : X'{}'", correlation_id(d).to_uppercase()),
        format!("  BackoutCount : {}", d.backout_count),
        format!("  ReplyToQ       : '{:<48}'", clean(&d.reply_to_queue)),
        format!(
            "  ReplyToQMgr    : '{:<48}'",
            clean(&d.reply_to_queue_manager)
        ),
        "  ** Identity Context".to_owned(),
        format!("  UserIdentifier : '{:<12}'", clean(&d.user_identifier)),
        format!(
            "  AccountingToken : X'{}'",
            accounting_token(d).to_uppercase()
        ),
        format!(
            "  ApplIdentityData : '{:<32}'",
            clean(&d.application_identity_data)
        ),
        "  ** Origin Context".to_owned(),
        format!("  PutApplType    : '{}'", d.put_application_type),
        format!(
            "  PutApplName    : '{:<28}'",
            clean(&d.put_application_name)
        ),
        format!(
            "  PutDate  : '{}'    PutTime  : '{}'",
            put.date8(),
            put.time8()
        ),
        format!(
            "  ApplOriginData : '{:<4}'",
            clean(&d.application_origin_data)
        ),
        String::new(),
        format!("  GroupId : X'{}'", group_id(d).to_uppercase()),
        format!("  MsgSeqNumber   : '{}'", d.message_sequence_number),
        format!("  Offset         : '{}'", d.offset),
        format!("  MsgFlags       : '{}'", d.message_flags),
        format!("  OriginalLength : '{original_length}'"),
        String::new(),
    ];
    if !d.properties.is_empty() {
        lines.push(" ****Message properties****".to_owned());
        lines.push(String::new());
        // As JSON: what no terminal should see is escaped.
        let named = properties(d);
        lines.extend(
            named
                .iter()
                .map(|(name, value)| format!("  {name} : {value}")),
        );
        lines.push(String::new());
    }
    lines.extend([
        " ****   Message      ****".to_owned(),
        String::new(),
        format!(" length - {} of {} bytes", data.len(), data.len()),
        String::new(),
    ]);
    lines.extend(hexadecimal_lines(data));
    lines.push(String::new());
    lines
}

/// Sixteen bytes a line: offset, pairs of bytes, characters.
fn hexadecimal_lines(data: &[u8]) -> impl Iterator<Item = String> {
    data.chunks(16).enumerate().map(|(index, chunk)| {
        let pair = |pair: &[u8]| pair.iter().map(|b| format!("{b:02X}")).collect::<String>();
        let pairs: Vec<String> = chunk.chunks(2).map(pair).collect();
        let character = |b: &u8| {
            if (0x20..0x7f).contains(b) {
                char::from(*b)
            } else {
                '.'
            }
        };
        let text: String = chunk.iter().map(character).collect();
        let offset = index.saturating_mul(16);
        format!("{offset:08X}:  {:<39} '{text:<16}'", pairs.join(" "))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use ferrymq_types::ReasonCode;
    use serde_json::Value;

    use super::*;

    /// Every key that the schema requires is there, and no key is there that the schema does not know.
    pub(crate) fn check_keys(schema: &Value, document: &Value) {
        let keys = document.as_object().unwrap();
        for key in schema["required"].as_array().unwrap() {
            assert!(keys.contains_key(key.as_str().unwrap()), "{key} is missing");
        }
        for key in keys.keys() {
            assert!(
                schema["properties"].get(key).is_some(),
                "{key} is not in the schema"
            );
        }
    }

    fn descriptor() -> wire::MessageDescriptor {
        let mut descriptor = wire::MessageDescriptor {
            message_type: 8,
            expiry: Some(6000),
            format: "MQSTR".into(),
            priority: Some(4),
            message_id: Bytes::from_static(&[0xab; 24]),
            put_time_ms: 951_782_399_999,
            ..wire::MessageDescriptor::default()
        };
        descriptor.set_persistence(wire::Persistence::Persistent);
        descriptor
    }

    fn document(descriptor: &wire::MessageDescriptor, data: &Bytes, decoding: Decoding) -> Value {
        let place = Place {
            queue: "A",
            position: Some(7),
            ..Place::default()
        };
        serde_json::to_value(MessageDocument::new(place, descriptor, data, decoding)).unwrap()
    }

    #[test]
    fn a_message_in_json_has_the_keys_of_its_schema() {
        let json = document(
            &descriptor(),
            &Bytes::from_static(b"hi"),
            Decoding::Readable,
        );
        assert_eq!(json["message_id"], "ab".repeat(24));
        assert_eq!(json["correl_id"], "00".repeat(24));
        assert_eq!(json["put_time"], "2000-02-28T23:59:59.999Z");
        assert_eq!(json["type"], "datagram");
        assert_eq!(json["persistence"], "persistent");
        assert_eq!(json["expiry_ms"], 600_000);
        assert_eq!(json["reply_to"], Value::Null);
        assert_eq!(json["accounting_token"], "00".repeat(32));
        assert_eq!(json.get("group"), None);
        assert_eq!(json["size"], 2);
        assert_eq!(
            (&json["encoding"], &json["body"]),
            (&"text".into(), &"hi".into())
        );
        assert_eq!(json["position"], 7);
        let schema = include_str!("../../../docs/schema/message.schema.json");
        check_keys(&serde_json::from_str(schema).unwrap(), &json);
    }

    #[test]
    fn a_body_is_json_text_or_base64() {
        let check = |data: &'static [u8], decoding, encoding: &str, body: &str| {
            let bytes = Bytes::from_static(data);
            let place = Place::default();
            let d = descriptor();
            let line =
                serde_json::to_string(&MessageDocument::new(place, &d, &bytes, decoding)).unwrap();
            let expected = format!(r#""encoding":"{encoding}","body":{body},"#);
            assert!(line.contains(&expected), "{line} has no {expected}");
        };
        check(
            br#"{"b": 1, "a":1e0}"#,
            Decoding::Readable,
            "json",
            r#"{"b": 1, "a":1e0}"#,
        );
        check(br#"{"b": 1}"#, Decoding::Exact, "text", r#""{\"b\": 1}""#);
        check(b"42", Decoding::Readable, "text", r#""42""#);
        check(b"{\n}", Decoding::Readable, "text", r#""{\n}""#);
        check(b"{} ", Decoding::Readable, "text", r#""{} ""#);
        check(b"", Decoding::Readable, "text", r#""""#);
        check(b"\xff\x00", Decoding::Exact, "base64", r#""/wA=""#);
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        for (data, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(data.as_bytes()), text);
        }
    }

    #[test]
    fn a_dead_letter_header_is_decoded_and_taken_off() {
        let mut descriptor = MessageDescriptor::default();
        let header = DeadLetterHeader::wrap(
            &mut descriptor,
            &Bytes::new(),
            ReasonCode::Q_FULL,
            "ORDERS",
            "QM2",
            "ferrymq",
            Timestamp::from_millis(951_782_399_991),
        );
        let data = Bytes::from([&header[..], b"body"].concat());
        let d = wire::MessageDescriptor {
            format: descriptor.format,
            ..Default::default()
        };
        let json = document(&d, &data, Decoding::Readable);
        assert_eq!(json["body"], "body");
        assert_eq!(json["size"], 176);
        let dead = &json["dead_letter"];
        assert_eq!(dead["mqrc"], 2053);
        assert_eq!(dead["reason"], "MQRC_Q_FULL");
        assert_eq!(
            (&dead["origin_queue"], &dead["origin_qmgr"]),
            (&"ORDERS".into(), &"QM2".into())
        );
        assert_eq!(dead["time"], "2000-02-28T23:59:59.990Z");
        let exact = document(&d, &data, Decoding::Exact);
        assert_ne!(exact["body"], "body");
        assert_eq!(exact["dead_letter"], *dead);
    }

    #[test]
    fn a_header_that_is_none_stays_in_the_body() {
        let d = wire::MessageDescriptor {
            format: "MQDEAD".into(),
            ..Default::default()
        };
        let json = document(&d, &Bytes::from_static(b"DLH"), Decoding::Readable);
        assert_eq!(
            (&json["body"], &json["dead_letter"]),
            (&"DLH".into(), &Value::Null)
        );
    }

    #[test]
    fn a_hexadecimal_line_has_offset_pairs_and_characters() {
        let lines: Vec<String> = hexadecimal_lines(b"hello world, it is me\x00").collect();
        assert_eq!(
            lines[0],
            "00000000:  6865 6C6C 6F20 776F 726C 642C 2069 7420 'hello world, it '"
        );
        assert_eq!(
            lines[1],
            "00000010:  6973 206D 6500                          'is me.          '"
        );
    }
}
