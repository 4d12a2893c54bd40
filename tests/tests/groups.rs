//! Message groups over sessions with a real node.

use std::time::Duration;

use ferrymq_client::{Client, Queue, wire};
use ferrymq_tests::cluster::Nodes;
use ferrymq_tests::traffic::get_from;
use ferrymq_types::{MessageDescriptor, ReasonCode, UnitOfWorkId};

const MEMBERS: usize = 5;

/// A node with queue A, and a client.
async fn node() -> (Nodes, Client) {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes.define(1, "DEFINE QLOCAL(A) DEFPSIST(YES)").await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    let client = Client::connect(&nodes.application(1))
        .await
        .expect("connected");
    (nodes, client)
}

fn open(input: bool) -> wire::OpenCall {
    wire::OpenCall {
        queue: "A".into(),
        input: if input {
            wire::InputUse::Shared.into()
        } else {
            wire::InputUse::Unspecified.into()
        },
        browse: input,
        output: !input,
        ..wire::OpenCall::default()
    }
}

/// A message of a group; the last one ends it.
fn member(text: &str, last: bool) -> wire::Message {
    let message_flags = if last {
        MessageDescriptor::FLAG_LAST_MSG_IN_GROUP
    } else {
        MessageDescriptor::FLAG_MSG_IN_GROUP
    };
    wire::Message {
        descriptor: Some(wire::MessageDescriptor {
            message_flags,
            ..wire::MessageDescriptor::default()
        }),
        data: text.to_owned().into(),
    }
}

/// The next message in logical order, as soon as its group is complete.
fn in_order(wait: Duration, unit: Option<UnitOfWorkId>) -> wire::GetCall {
    wire::GetCall {
        get: Some(wire::GetRequest {
            wait_ms: u32::try_from(wait.as_millis()).expect("a short time"),
            all_messages_available: true,
            ..wire::GetRequest::default()
        }),
        syncpoint: unit.map_or_else(Default::default, |unit| unit.as_bytes().to_vec().into()),
        logical_order: true,
        ..wire::GetCall::default()
    }
}

/// A group as one getter has it, from its first message to its last.
async fn whole_group(queue: &Queue<'_>, unit: Option<UnitOfWorkId>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let got = queue.get(in_order(Duration::from_secs(20), unit)).await;
        let message = got.expect("got").expect("a message in time").message;
        let descriptor = message.descriptor.expect("a descriptor");
        all.push(String::from_utf8_lossy(&message.data).into_owned());
        assert_eq!(descriptor.message_sequence_number as usize, all.len());
        if descriptor.message_flags & MessageDescriptor::FLAG_LAST_MSG_IN_GROUP != 0 {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_getters_have_a_group_each_of_those_that_a_unit_of_work_puts() {
    let (_nodes, client) = node().await;
    let (putter, getters) = (client.session().await.expect("a session"), [0, 1]);
    let waiting = getters.map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            let session = client.session().await.expect("a session");
            let queue = session.open(open(true)).await.expect("open");
            let unit = session.begin(None).await.expect("begun");
            let first = whole_group(&queue, Some(unit)).await;
            // It comes again, from its first message on, to whoever is there.
            session.back(unit).await.expect("backed out");
            let unit = session.begin(None).await.expect("begun");
            let second = whole_group(&queue, Some(unit)).await;
            session.commit(unit).await.expect("committed");
            (first, second)
        })
    });
    let queue = putter.open(open(false)).await.expect("open");
    let unit = putter.begin(None).await.expect("begun");
    let mut ids = std::collections::BTreeSet::new();
    for group in ["x", "y"] {
        for n in 1..=MEMBERS {
            let message = member(&format!("{group}{n}"), n == MEMBERS);
            let put = queue.put_in_order(message, Some(unit)).await.expect("put");
            assert_eq!(put.message_sequence_number as usize, n);
            ids.insert(put.group_id);
        }
    }
    assert_eq!(ids.len(), 2, "each group has one id");
    putter.commit(unit).await.expect("committed");
    let mut committed = Vec::new();
    for getter in waiting {
        let (first, second) = getter.await.expect("no panic");
        for got in [&first, &second] {
            let group = &got[0][..1];
            let expected: Vec<String> = (1..=MEMBERS).map(|n| format!("{group}{n}")).collect();
            assert_eq!(*got, expected);
        }
        committed.push(second);
    }
    assert_ne!(committed[0], committed[1], "no group is had twice");
    let empty = client.get(get_from("A")).await.expect("asked");
    assert!(empty.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_over_a_session_are_browsed_in_order_matched_and_said_to_be_incomplete() {
    let (mut nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    let output = session.open(open(false)).await.expect("open");
    let other = session.open(open(false)).await.expect("open");
    let mut first = Vec::new();
    for (text, last) in [("1", false), ("2", false), ("3", true)] {
        first.push(output.put_in_order(member(text, last), None).await);
        if text < "3" {
            let put = other.put_in_order(member(&format!("o{text}"), false), None);
            put.await.expect("put");
        }
    }
    let alone = output.put_in_order(
        wire::Message {
            data: "alone".into(),
            ..wire::Message::default()
        },
        None,
    );
    let alone = alone.await.expect("put");
    assert_eq!(
        (alone.group_id.len(), alone.message_sequence_number),
        (0, 0)
    );
    let broken = other.put_in_order(
        wire::Message {
            data: "x".into(),
            ..wire::Message::default()
        },
        None,
    );
    assert_eq!(
        broken.await.expect_err("in no group").reason(),
        ReasonCode::INCOMPLETE_GROUP
    );
    assert_eq!(
        other.close().await.expect("closed"),
        ReasonCode::INCOMPLETE_GROUP
    );
    assert_eq!(output.close().await.expect("closed"), ReasonCode::NONE);
    drop(session);
    // What the groups are is known again after a restart.
    nodes.kill(1);
    nodes.start(1);
    nodes.wait_up(1).await;
    let client = Client::connect(&nodes.application(1))
        .await
        .expect("connected");
    let session = client.session().await.expect("a session");
    let input = session.open(open(true)).await.expect("open");
    let mut browsed = Vec::new();
    let mut step = wire::BrowseStep::First;
    loop {
        let browse = wire::BrowseCall {
            step: step.into(),
            logical_order: true,
            all_messages_available: true,
            ..wire::BrowseCall::default()
        };
        let Some(message) = input.browse_with(browse).await.expect("browsed") else {
            break;
        };
        browsed.push(String::from_utf8_lossy(&message.data).into_owned());
        step = wire::BrowseStep::Next;
    }
    assert_eq!(browsed, ["1", "2", "3", "alone"]);
    let physical = input.browse(wire::BrowseStep::Next, false).await;
    assert_eq!(
        physical.expect_err("another order").reason(),
        ReasonCode::INCONSISTENT_BROWSE
    );
    let id = first[0].as_ref().expect("put").group_id.clone();
    let second = wire::GetRequest {
        group_id: id,
        message_sequence_number: 2,
        ..get_from("A")
    };
    let got = client
        .get(second.clone())
        .await
        .expect("got")
        .expect("there");
    assert_eq!(got.data, "2");
    assert!(client.get(second).await.expect("asked").is_none());
}
