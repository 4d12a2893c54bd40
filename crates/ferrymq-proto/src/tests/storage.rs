use ferrymq_types::{
    AccountingToken, ApplicationType, CorrelationId, MessageDescriptor, MessageId, MessageType,
    Persistence, Priority, Properties, Property, PropertyValue, QueueManagerId, ReportOptions,
    UnitOfWorkId,
};

use super::*;

fn message_row() -> MessageRow {
    MessageRow {
        descriptor: MessageDescriptor {
            report: ReportOptions::from_bits(0x0800_0000),
            expires_at: Some(Timestamp::from_millis(7)),
            feedback: 3,
            format: "MQSTR".into(),
            priority: Priority::MAX,
            persistence: Persistence::Persistent,
            message_id: MessageId::new([1; 24]),
            correlation_id: CorrelationId::new([2; 24]),
            reply_to_queue: "R".into(),
            reply_to_queue_manager: "QM2".into(),
            user_identifier: "ann".into(),
            put_application_name: "app".into(),
            put_time: Timestamp::from_millis(9),
            group_id: CorrelationId::new([3; 24]),
            message_sequence_number: 4,
            offset: 5,
            message_flags: 6,
            original_length: 70,
            accounting_token: AccountingToken::new([8; 32]),
            application_identity_data: "identity".into(),
            put_application_type: ApplicationType::UNIX,
            application_origin_data: "orig".into(),
            encoding: 273,
            coded_character_set_id: 500,
            message_type: MessageType::REQUEST,
            properties: Properties::new(vec![Property {
                name: "colour".into(),
                value: PropertyValue::String("red".into()),
            }])
            .unwrap(),
        },
        header: Bytes::from_static(b"head"),
        body: BodyId::new(11),
        body_length: 3,
    }
}

fn one_of_each() -> Vec<WriteSet> {
    let queue = ObjectId::new(1);
    let sequence = Sequence::new(2);
    let channel = ChannelName::new("A.TO.B").unwrap();
    let uow = UnitOfWorkId::new([8; 16]);
    vec![
        WriteSet {
            position: Position::new(5),
            changes: vec![
                Change::SetQueue {
                    queue,
                    row: QueueRow {
                        name: QueueName::new("Q").unwrap(),
                        closed: true,
                        trigger_used: Some(Timestamp::from_millis(77)),
                        definition: None,
                    },
                },
                Change::SetBody {
                    id: BodyId::new(11),
                    body: Bytes::from_static(b"abc"),
                },
                Change::SetMessage {
                    queue,
                    sequence,
                    row: Box::new(message_row()),
                },
                Change::SetDeliveryCount {
                    queue,
                    sequence,
                    count: 3,
                },
                Change::SetBody {
                    id: BodyId::new(12),
                    body: Bytes::new(),
                },
                Change::SetCounters {
                    sequence: Sequence::new(100),
                    body: BodyId::new(200),
                },
            ],
        },
        WriteSet {
            position: Position::new(6),
            changes: vec![
                Change::SetBody {
                    id: BodyId::new(13),
                    body: Bytes::from_static(b"defg"),
                },
                Change::DeleteMessage { queue, sequence },
                Change::DeleteBody {
                    id: BodyId::new(11),
                },
                Change::DeleteQueue { queue },
                Change::SetSender(Box::new(SenderRow {
                    channel: channel.clone(),
                    transmission_queue: queue,
                    generation: 2,
                    last_confirmed: 50,
                    last_batch: UnitOfWorkId::NONE,
                    in_doubt: vec![BatchInDoubt {
                        id: uow,
                        first_number: 51,
                        last_number: 53,
                        messages: vec![Sequence::new(4), Sequence::new(9)],
                    }],
                    partner: Some((
                        QueueManagerName::new("QM2").unwrap(),
                        QueueManagerId::new([4; 16]),
                    )),
                    start: 4,
                    reset_to: Some(5),
                })),
                Change::SetReceiver(Box::new(ReceiverRow {
                    channel: channel.clone(),
                    sender: QueueManagerId::new([5; 16]),
                    sender_name: QueueManagerName::new("QM3").unwrap(),
                    generation: 1,
                    last_committed: 7,
                    last_batch: uow,
                    reset_to: Some(9),
                })),
                Change::SetChannelStopped {
                    channel: channel.clone(),
                    stopped: true,
                },
                Change::DeleteChannel { channel },
                Change::SetUnitOfWork(UnitOfWorkRow {
                    id: uow,
                    outcome: UnitOfWorkOutcome::BackedOut,
                    time: Timestamp::from_millis(1),
                    message_id: Some(MessageId::NONE),
                }),
                Change::DeleteUnitOfWork { id: uow },
                Change::SetAccount(Box::new(AccountEntry {
                    number: 1,
                    message_id: MessageId::new([1; 24]),
                    from: QueueName::new("Q").unwrap(),
                    to: Some("DLQ@QM1".into()),
                    reason: AccountReason::DeadLettered(ReasonCode::new(2053)),
                    who: "A.TO.B".into(),
                    time: Timestamp::from_millis(2),
                })),
                Change::DeleteAccount { number: 1 },
            ],
        },
    ]
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|b| u64::from(*b)).sum()
}

#[test]
fn write_sets_come_back_as_they_were_and_name_their_bodies() {
    let sets = one_of_each();
    let encoded = encode_write_sets(&sets, sum);
    let (mut decoded, bodies) = decode_write_sets(&encoded.batch).unwrap();
    let named: Vec<NamedBody> = encoded
        .bodies
        .iter()
        .map(|body| NamedBody {
            id: body.id,
            length: u32::try_from(body.bytes.len()).unwrap(),
            checksum: body.checksum,
        })
        .collect();
    assert_eq!(bodies, named);
    assert_eq!(bodies[2].checksum, sum(b"defg"));
    // Their bytes are behind the batch.
    let mut stored = encoded.bodies.into_iter();
    for change in decoded.iter_mut().flat_map(|set| &mut set.changes) {
        if let Change::SetBody { body, .. } = change {
            assert!(body.is_empty());
            *body = stored.next().unwrap().bytes;
        }
    }
    assert_eq!(decoded, sets);
}

#[test]
fn the_row_of_a_message_is_what_protobuf_would_have_written() {
    let whole = message_row();
    let mut extreme = whole.clone();
    extreme.descriptor.expires_at = Some(Timestamp::from_millis(0));
    extreme.descriptor.original_length = -1;
    extreme.descriptor.put_application_type = ApplicationType::new(i32::MIN);
    extreme.descriptor.feedback = u32::MAX;
    extreme.descriptor.put_time = Timestamp::from_millis(u64::MAX);
    extreme.descriptor.format = "x".repeat(20_000);
    let empty = MessageRow {
        descriptor: MessageDescriptor::default(),
        header: Bytes::new(),
        body: BodyId::new(0),
        body_length: 0,
    };
    for row in [whole, extreme, empty] {
        let stored = row.to_stored();
        let decoded = pb::MessageRow::decode(&*stored).unwrap();
        assert_eq!(decoded.encode_to_vec(), stored);
        assert_eq!(MessageRow::from_stored(&stored), Ok(row));
    }
}

#[test]
fn a_row_of_before_there_were_properties_has_none() {
    let row = message_row();
    let mut stored = pb::MessageRow::decode(&*row.to_stored()).unwrap();
    stored.properties.clear();
    let read = MessageRow::from_stored(&stored.encode_to_vec()).unwrap();
    assert!(read.descriptor.properties.is_empty());
    assert_eq!((read.body, read.header), (row.body, row.header));
}

#[test]
fn values_outside_their_range_are_refused() {
    let row = pb::MessageRow::decode(&*message_row().to_stored()).unwrap();
    let descriptor = row.descriptor.unwrap();
    let check = |change: fn(&mut pb::StoredDescriptor), field: &str| {
        let mut bad = descriptor.clone();
        change(&mut bad);
        let row = pb::MessageRow {
            descriptor: Some(bad),
            ..pb::MessageRow::default()
        };
        let error = MessageRow::from_stored(&row.encode_to_vec()).unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    };
    check(|d| d.priority = 10, "priority");
    check(|d| d.persistence = 0, "persistence");
    check(|d| d.message_type = 9, "message_type");
    check(
        |d| d.message_id = Bytes::from_static(b"short"),
        "message_id",
    );
    assert_eq!(
        MessageRow::from_stored(&[]),
        Err(FormatError::Missing("descriptor"))
    );
    assert!(matches!(
        QueueRow::from_stored(&[]),
        Err(FormatError::Name { .. })
    ));
    assert!(matches!(
        QueueRow::from_stored(&[0xff]),
        Err(FormatError::Protobuf(_))
    ));
}

#[test]
fn the_row_of_a_queue_that_was_written_before_triggers_reads_as_one_whose_trigger_is_unused() {
    // Field 1, the name `Q`; field 2, closed.
    assert_eq!(
        QueueRow::from_stored(&[0x0a, 1, b'Q', 0x10, 1]),
        Ok(QueueRow {
            name: QueueName::new("Q").unwrap(),
            closed: true,
            trigger_used: None,
            definition: None,
        })
    );
}

#[test]
fn a_row_of_before_the_whole_context_was_kept_reads_without_it() {
    let mut row = pb::MessageRow::decode(&*message_row().to_stored()).unwrap();
    let d = row.descriptor.as_mut().unwrap();
    d.accounting_token.clear();
    d.application_identity_data.clear();
    d.put_application_type = 0;
    d.application_origin_data.clear();
    let older = row.encode_to_vec();
    let mut expected = message_row();
    expected.descriptor.accounting_token = AccountingToken::NONE;
    expected.descriptor.application_identity_data = String::new();
    expected.descriptor.put_application_type = ApplicationType::NO_CONTEXT;
    expected.descriptor.application_origin_data = String::new();
    assert_eq!(MessageRow::from_stored(&older), Ok(expected));
}

#[test]
fn rows_of_channels_from_before_resets_had_numbers_are_read() {
    let row = pb::SenderRow {
        channel: "A.B".into(),
        generation: 2,
        last_batch: Bytes::from_static(&[0; 16]),
        ..pb::SenderRow::default()
    };
    let row = SenderRow::try_from(row).unwrap();
    assert_eq!((row.start, row.reset_to), (0, None));
    let row = pb::ReceiverRow {
        channel: "A.B".into(),
        sender: Bytes::from_static(&[1; 16]),
        sender_name: "QM1".into(),
        last_batch: Bytes::from_static(&[0; 16]),
        ..pb::ReceiverRow::default()
    };
    assert_eq!(ReceiverRow::try_from(row).unwrap().reset_to, None);
}
