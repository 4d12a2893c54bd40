//! Exception reports and dead letters, field by field.

use bytes::Bytes;
use ferrymq_types::{
    ApplicationType, CorrelationId, DeadLetterHeader, MessageDescriptor, MessageId, MessageType,
    Persistence, ReportOptions,
};

use super::{
    DISCARD, EXCEPTION, EXCEPTION_WITH_DATA, EXCEPTION_WITH_FULL_DATA, Kind, PERSISTENT, START,
    batch_id, channel_name, message, object_name, queue, reason,
};
use ferrymq_engine::{ObjectName, account_name};

use crate::report::{dead_letter, destination, exception_report};

const PASS_CORREL_ID: u32 = 0x40;
const PASS_MSG_ID: u32 = 0x80;
const PASS_DISCARD_AND_EXPIRY: u32 = 0x4000;

fn report_of(body: &str, options: u32) -> Option<ferrymq_types::Message> {
    let kind = Kind {
        report: options,
        ..PERSISTENT
    };
    exception_report(&message(body, kind), reason(2053), &channel_name(), START)
}

#[test]
fn none_is_made_unless_asked_for() {
    assert_eq!(report_of("a", 0), None);
    assert_eq!(report_of("a", DISCARD), None);
}

#[test]
fn it_says_what_about_which_message_and_for_whom() {
    let report = report_of("abc", EXCEPTION).unwrap();
    let original = message("abc", PERSISTENT).descriptor;
    let expected = MessageDescriptor {
        message_type: MessageType::REPORT,
        feedback: 2053,
        persistence: Persistence::Persistent,
        message_id: MessageId::NONE,
        correlation_id: CorrelationId::new(*original.message_id.as_bytes()),
        user_identifier: "app".into(),
        put_application_type: ApplicationType::QUEUE_MANAGER,
        put_application_name: "QM1.TO.QM2".into(),
        put_time: START,
        ..MessageDescriptor::default()
    };
    assert_eq!(report.descriptor, expected);
    assert_eq!(report.data_length(), 0);
}

#[test]
fn it_holds_no_data_the_first_hundred_bytes_or_all() {
    let long = "x".repeat(250);
    let length = |body: &str, options| report_of(body, options).unwrap().body.len();
    assert_eq!(length(&long, EXCEPTION), 0);
    assert_eq!(length(&long, EXCEPTION_WITH_DATA), 100);
    assert_eq!(length("short", EXCEPTION_WITH_DATA), 5);
    assert_eq!(length(&long, EXCEPTION_WITH_FULL_DATA), 250);
    let format = report_of("short", EXCEPTION_WITH_DATA)
        .unwrap()
        .descriptor
        .format;
    assert_eq!(format, MessageDescriptor::FORMAT_STRING);
}

#[test]
fn the_first_hundred_bytes_begin_with_the_headers() {
    let kind = Kind {
        report: EXCEPTION_WITH_DATA,
        ..PERSISTENT
    };
    let mut original = message("body", kind);
    original.header = Bytes::from(vec![1; 98]);
    let report = exception_report(&original, reason(2053), &channel_name(), START).unwrap();
    assert_eq!(report.body.len(), 100);
    assert_eq!(&report.body[97..], b"\x01bo");
    assert!(report.header.is_empty());
}

#[test]
fn ids_pass_if_asked() {
    let original = message("abc", PERSISTENT).descriptor;
    let report = report_of("abc", EXCEPTION | PASS_MSG_ID | PASS_CORREL_ID).unwrap();
    assert_eq!(report.descriptor.message_id, original.message_id);
    assert_eq!(report.descriptor.correlation_id, original.correlation_id);
}

#[test]
fn discard_and_expiry_pass_if_asked() {
    let mut original = message("abc", PERSISTENT);
    original.descriptor.expires_at = Some(START);
    let options = |bits| {
        let mut original = original.clone();
        original.descriptor.report = ReportOptions::from_bits(bits);
        let report = exception_report(&original, reason(2053), &channel_name(), START).unwrap();
        (
            report.descriptor.report.bits(),
            report.descriptor.expires_at,
        )
    };
    assert_eq!(options(EXCEPTION | DISCARD), (0, None));
    let passing = EXCEPTION | DISCARD | PASS_DISCARD_AND_EXPIRY;
    assert_eq!(options(passing), (DISCARD, Some(START)));
}

#[test]
fn d1_a_dead_letter_says_where_from_why_and_is_the_message_behind_its_header() {
    let original = message("abc", PERSISTENT);
    let put = dead_letter(
        &original,
        &queue("DLQ"),
        reason(2085),
        "ORDERS",
        "QM2",
        &channel_name(),
        START,
        Some(batch_id(1)),
    );
    assert_eq!(
        (&object_name(&put).queue, put.syncpoint),
        (&queue("DLQ"), Some(batch_id(1)))
    );
    assert_eq!(put.body, original.body);
    assert_eq!(
        put.descriptor.format,
        MessageDescriptor::FORMAT_DEAD_LETTER_HEADER
    );
    let header = DeadLetterHeader::read(&put.header).unwrap();
    assert_eq!(header.reason, reason(2085));
    assert_eq!(header.destination_queue, "ORDERS");
    assert_eq!(header.destination_queue_manager, "QM2");
    assert_eq!(header.format, MessageDescriptor::FORMAT_STRING);
    assert_eq!(header.put_application_name, "QM1.TO.QM2");
    let restored = MessageDescriptor {
        format: header.format,
        encoding: header.encoding,
        coded_character_set_id: header.coded_character_set_id,
        ..put.descriptor
    };
    assert_eq!(restored, original.descriptor);
}

#[test]
fn destinations_are_checked_names() {
    assert_eq!(destination("Q", ""), Ok(ObjectName::local(queue("Q"))));
    assert_eq!(destination("Q", "  "), destination("Q", ""));
    assert_eq!(destination("", "QM2"), Err(reason(2085)));
    assert_eq!(destination("A B", "QM2"), Err(reason(2085)));
    assert_eq!(destination("Q", "Q M"), Err(reason(2087)));
}

#[test]
fn account_names_are_names_whatever_came() {
    for (text, name) in [("Q.1", "Q.1"), ("", "_"), ("é b", "__b"), ("  ", "_")] {
        assert_eq!(account_name(text), queue(name));
    }
    assert_eq!(account_name(&"x".repeat(90)).as_str().len(), 48);
}
