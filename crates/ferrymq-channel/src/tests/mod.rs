//! Both machines in one place, with small queue managers that answer them, a clock that tests move, and frames that can be lost.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    reason = "tests count small numbers and look at one variant"
)]

mod batch;
mod bind;
mod effects;
mod fake;
mod fast;
mod pair;
mod random;
mod refused;
mod report;
mod retry;
mod status;
mod stop;
mod undelivered;
mod with_engine;

use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use ferrymq_engine::{Object, ObjectName, Put};
use ferrymq_objects::{ChannelBase, MessageSpeed, ReceiverChannel, SenderChannel, UseDlq};
use ferrymq_types::{
    ChannelName, CorrelationId, Message, MessageDescriptor, MessageId, ObjectId, Persistence,
    QueueManagerId, QueueManagerName, QueueName, ReasonCode, ReportOptions, Timestamp,
    TransmissionHeader, UnitOfWorkId,
};

use crate::{Address, DeadLetterSetting, ReceiverConfig, SenderConfig, parse_connection_name};

pub(super) const START: Timestamp = Timestamp::from_millis(1_000_000_000);
pub(super) const SEED: u128 = 0x5eed;

pub(super) fn channel_name() -> ChannelName {
    ChannelName::new("QM1.TO.QM2").unwrap()
}

pub(super) fn qmgr(name: &str) -> QueueManagerName {
    QueueManagerName::new(name).unwrap()
}

pub(super) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(super) fn object_name(put: &Put) -> &ObjectName {
    match &put.object {
        Object::Named(name) => name,
        Object::Handle(_) => panic!("a channel opens nothing: {put:?}"),
    }
}

pub(super) fn after(start: Timestamp, ms: u64) -> Timestamp {
    start.saturating_add(Duration::from_millis(ms))
}

fn base(heartbeat_interval: u32) -> ChannelBase {
    ChannelBase {
        id: ObjectId::new(1),
        name: channel_name(),
        description: String::new(),
        ssl_cipher: String::new(),
        ssl_peer_name: String::new(),
        max_message_length: 1000,
        heartbeat_interval,
        altered: Timestamp::ZERO,
    }
}

/// A sender to `qm2(1414)` with batches of at most 3, `DEADQ(DLQ)`, two short retries a minute apart and one long one, and
/// without heartbeats.
pub(super) fn sender_config() -> SenderConfig {
    let channel = SenderChannel {
        base: base(0),
        connection_name: "qm2".into(),
        transmission_queue: queue("QM2"),
        batch_size: 3,
        batch_interval: Duration::ZERO,
        batch_data_limit: 5000,
        disconnect_interval: Duration::from_secs(6000),
        short_retry_count: 2,
        short_retry_interval: Duration::from_secs(60),
        long_retry_count: 1,
        long_retry_interval: Duration::from_secs(1200),
        non_persistent_message_speed: MessageSpeed::Fast,
        use_dead_letter_queue: UseDlq::Yes,
        sequence_wrap: 999_999_999,
    };
    SenderConfig {
        addresses: parse_connection_name(&channel.connection_name).unwrap(),
        channel,
        queue_manager: qmgr("QM1"),
        queue_manager_id: QueueManagerId::new([1; 16]),
        partner: None,
        dead_letter: DeadLetterSetting::Queue(queue("DLQ")),
        max_message_length: 4_194_304,
    }
}

/// The other end: `DEADQ(DLQ)`, two message retries a second apart.
pub(super) fn receiver_config() -> ReceiverConfig {
    ReceiverConfig {
        channel: ReceiverChannel {
            base: base(0),
            batch_size: 50,
            message_retry_count: 2,
            message_retry_interval: Duration::from_secs(1),
            non_persistent_message_speed: MessageSpeed::Fast,
            use_dead_letter_queue: UseDlq::Yes,
            sequence_wrap: 999_999_999,
            ssl_client_authentication: ferrymq_objects::SslClientAuthentication::Required,
        },
        queue_manager: qmgr("QM2"),
        queue_manager_id: QueueManagerId::new([2; 16]),
        dead_letter: DeadLetterSetting::Queue(queue("DLQ")),
        max_message_length: 4_194_304,
        max_uncommitted_messages: 10_000,
        connection_name: "10.0.0.1".into(),
        peer: "CN=QM1".into(),
    }
}

/// What a test message is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) persistence: Persistence,
    pub(super) report: u32,
}

pub(super) const PERSISTENT: Kind = Kind {
    persistence: Persistence::Persistent,
    report: 0,
};
pub(super) const NON_PERSISTENT: Kind = Kind {
    persistence: Persistence::NonPersistent,
    report: 0,
};
pub(super) const EXCEPTION: u32 = 0x0100_0000;
pub(super) const EXCEPTION_WITH_DATA: u32 = 0x0300_0000;
pub(super) const EXCEPTION_WITH_FULL_DATA: u32 = 0x0700_0000;
pub(super) const DISCARD: u32 = 0x0800_0000;

/// The message `body` for `to`, as an application put it.
pub(super) fn message(body: &str, kind: Kind) -> Message {
    let mut id = [0; 24];
    for (to, from) in id.iter_mut().zip(body.bytes()) {
        *to = from;
    }
    Message {
        descriptor: MessageDescriptor {
            report: ReportOptions::from_bits(kind.report),
            persistence: kind.persistence,
            message_id: MessageId::new(id),
            correlation_id: CorrelationId::new([7; 24]),
            format: MessageDescriptor::FORMAT_STRING.into(),
            reply_to_queue: "REPLY".into(),
            reply_to_queue_manager: "QM1".into(),
            user_identifier: "app".into(),
            put_time: START,
            ..MessageDescriptor::default()
        },
        header: Bytes::new(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

/// The same on a transmission queue.
pub(super) fn transmission(body: &str, to: &str, kind: Kind) -> Arc<Message> {
    let inner = message(body, kind);
    let header = TransmissionHeader {
        remote_queue: to.into(),
        remote_queue_manager: "QM2".into(),
        descriptor: inner.descriptor.clone(),
    };
    Arc::new(Message {
        descriptor: MessageDescriptor {
            format: MessageDescriptor::FORMAT_TRANSMISSION_HEADER.into(),
            ..inner.descriptor
        },
        header: header.to_bytes(START),
        body: inner.body,
    })
}

pub(super) fn reason(code: u32) -> ReasonCode {
    ReasonCode::new(code)
}

pub(super) fn batch_id(n: u8) -> UnitOfWorkId {
    UnitOfWorkId::new([n; 16])
}

pub(super) fn addresses(text: &str) -> Vec<Address> {
    parse_connection_name(text).unwrap()
}
