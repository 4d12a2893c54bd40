//! Options of puts and gets against a real node: contexts, new ids, and a queue manager that quiesces.

use std::time::Duration;

use ferrymq_client::{Client, Queue, Session, wire};
use ferrymq_tests::cluster::Nodes;
use ferrymq_types::ReasonCode;

async fn node() -> Nodes {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes.define(1, "DEFINE QLOCAL(A)").await;
    nodes.define(1, "DEFINE QLOCAL(B)").await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    nodes
}

async fn connect(nodes: &Nodes) -> Session {
    let client = Client::connect(&nodes.application(1)).await;
    let session = client.expect("connected").session().await;
    session.expect("a session")
}

async fn open<'a>(session: &'a Session, queue: &str, open: wire::OpenCall) -> Queue<'a> {
    let open = wire::OpenCall {
        queue: queue.into(),
        ..open
    };
    session.open(open).await.expect("open")
}

fn for_input() -> wire::OpenCall {
    wire::OpenCall {
        input: wire::InputUse::Shared.into(),
        save_all_context: true,
        ..wire::OpenCall::default()
    }
}

fn for_output() -> wire::OpenCall {
    wire::OpenCall {
        output: true,
        ..wire::OpenCall::default()
    }
}

fn put(descriptor: wire::MessageDescriptor, request: wire::PutRequest) -> wire::PutCall {
    wire::PutCall {
        put: Some(wire::PutRequest {
            message: Some(wire::Message {
                descriptor: Some(descriptor),
                data: "x".into(),
            }),
            ..request
        }),
        ..wire::PutCall::default()
    }
}

async fn get(queue: &Queue<'_>) -> wire::MessageDescriptor {
    let got = queue.get(wire::GetCall::default()).await.expect("got");
    let message = got.expect("a message").message;
    message.descriptor.expect("a descriptor")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_is_set_by_the_queue_manager_or_passed_on_and_never_forged() {
    let nodes = node().await;
    let session = connect(&nodes).await;
    let forged = || wire::MessageDescriptor {
        user_identifier: "root".into(),
        accounting_token: vec![1; 32].into(),
        application_identity_data: "forged".into(),
        put_application_type: 7,
        application_origin_data: "fals".into(),
        put_time_ms: 1,
        priority: Some(12),
        message_id: vec![7; 24].into(),
        ..wire::MessageDescriptor::default()
    };
    let to_a = open(&session, "A", for_output()).await;
    let done = to_a
        .put_as(put(
            forged(),
            wire::PutRequest {
                new_message_id: true,
                new_correlation_id: true,
                ..wire::PutRequest::default()
            },
        ))
        .await
        .expect("put");
    assert_eq!(done.reason, ReasonCode::PRIORITY_EXCEEDS_MAXIMUM.get());
    assert_ne!(done.message_id, vec![7; 24]);
    assert_eq!(done.correlation_id.len(), 24);
    let from_a = open(&session, "A", for_input()).await;
    let first = get(&from_a).await;
    assert_ne!(first.user_identifier, "root");
    assert_eq!(
        (first.priority, first.put_application_type),
        (Some(9), 6),
        "an application's"
    );
    assert_eq!(first.correlation_id, done.correlation_id);
    assert!(first.accounting_token.is_empty() && first.application_identity_data.is_empty());

    // Passed on with its origin, which is the time of the first put.
    let passes = wire::OpenCall {
        pass_all_context: true,
        ..for_output()
    };
    let to_b = open(&session, "B", passes).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    to_b.put_as(put(
        forged(),
        wire::PutRequest {
            context: wire::ContextOption::PassAll.into(),
            context_handle: from_a.handle(),
            ..wire::PutRequest::default()
        },
    ))
    .await
    .expect("passed on");
    let from_b = open(&session, "B", for_input()).await;
    let second = get(&from_b).await;
    assert_eq!(second.put_time_ms, first.put_time_ms);
    assert_eq!(second.user_identifier, first.user_identifier);

    // An application sets none.
    for context in [
        wire::ContextOption::SetIdentity,
        wire::ContextOption::SetAll,
    ] {
        let request = wire::PutRequest {
            context: context.into(),
            ..wire::PutRequest::default()
        };
        let refused = to_a
            .put_as(put(forged(), request))
            .await
            .expect_err("refused");
        assert_eq!(refused.reason(), ReasonCode::NOT_AUTHORIZED);
    }
    let sets = wire::OpenCall {
        queue: "A".into(),
        set_all_context: true,
        ..for_output()
    };
    let refused = session.open(sets).await.expect_err("refused");
    assert_eq!(refused.reason(), ReasonCode::NOT_AUTHORIZED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_is_converted_for_whoever_asks_and_consumed_all_the_same_if_it_cannot_be() {
    let nodes = node().await;
    let session = connect(&nodes).await;
    let to_a = open(&session, "A", for_output()).await;
    let text = |data: &'static [u8], ccsid| {
        let descriptor = wire::MessageDescriptor {
            format: "MQSTR".into(),
            coded_character_set_id: ccsid,
            encoding: 273,
            ..wire::MessageDescriptor::default()
        };
        let mut call = put(descriptor, wire::PutRequest::default());
        if let Some(message) = call.put.as_mut().and_then(|put| put.message.as_mut()) {
            message.data = bytes::Bytes::from_static(data);
        }
        call
    };
    // "Hello" in EBCDIC twice, and bytes that are none of UTF-8.
    let hello = b"\xc8\x85\x93\x93\x96";
    for call in [text(hello, 37), text(hello, 37), text(b"\xff", 1208)] {
        to_a.put_as(call).await.expect("put");
    }
    let from_a = open(&session, "A", for_input()).await;
    let wanted = |convert| wire::GetCall {
        get: Some(wire::GetRequest {
            convert,
            ..wire::GetRequest::default()
        }),
        ..wire::GetCall::default()
    };
    let as_put = from_a.get(wanted(None)).await.expect("got").expect("one");
    assert_eq!(&as_put.message.data[..], hello);
    let utf8 = wire::Conversion::default();
    let converted = from_a.get(wanted(Some(utf8))).await.expect("got");
    let converted = converted.expect("one");
    assert_eq!(&converted.message.data[..], b"Hello");
    assert_eq!(converted.warning, ReasonCode::NONE);
    let d = converted.message.descriptor.expect("a descriptor");
    assert_eq!((d.coded_character_set_id, d.encoding), (1208, 546));
    let latin = wire::Conversion {
        coded_character_set_id: 819,
        encoding: 0,
    };
    let refused = from_a.get(wanted(Some(latin))).await.expect("got");
    let refused = refused.expect("one");
    assert_eq!(refused.warning, ReasonCode::NOT_CONVERTED);
    assert_eq!(&refused.message.data[..], b"\xff");
    let none = from_a.get(wanted(None)).await.expect("asked");
    assert!(none.is_none(), "all three are consumed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_ends_wakes_who_waits_and_asked_for_it() {
    let mut nodes = node().await;
    let session = connect(&nodes).await;
    let from_a = open(&session, "A", for_input()).await;
    let waits = from_a.get(wire::GetCall {
        get: Some(wire::GetRequest {
            fail_if_quiescing: true,
            ..wire::GetRequest::default()
        }),
        wait_unlimited: true,
        ..wire::GetCall::default()
    });
    let ends = async {
        // It waits by now, or is refused when it comes: both are right.
        tokio::time::sleep(Duration::from_millis(200)).await;
        nodes.terminate(1);
    };
    let (told, ()) = tokio::join!(waits, ends);
    let failure = told.expect_err("refused");
    assert_eq!(failure.reason(), ReasonCode::Q_MGR_QUIESCING);
}
