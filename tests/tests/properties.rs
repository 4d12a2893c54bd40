//! Message properties and MQRFH2 headers over sessions with a real node.

use ferrymq_client::{Client, ConsumeMode, wire};
use ferrymq_tests::cluster::{Nodes, PATIENCE};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::{MessageDescriptor, Properties, Property, PropertyValue, ReasonCode, rfh2};

/// A node with queues of every property control, and a client.
async fn node() -> (Nodes, Client) {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes.define(1, "DEFINE QLOCAL(A)").await;
    nodes
        .define(1, "DEFINE QLOCAL(FORCED) PROPCTL(FORCE)")
        .await;
    nodes
        .define(1, "DEFINE QALIAS(PLAIN) TARGET(A) PROPCTL(NONE)")
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    let client = Client::connect(&nodes.application(1)).await;
    (nodes, client.expect("connected"))
}

/// A header as a program makes it that has nothing but data, and the data behind it.
fn with_header(queue: &str) -> wire::PutRequest {
    let of = |name: &str, text: &str| Property {
        name: name.to_owned(),
        value: PropertyValue::String(text.to_owned()),
    };
    let properties = vec![of("colour", "red & blue"), of("jms.Dst", "queue:///A")];
    let mut descriptor = MessageDescriptor {
        format: "MQSTR".to_owned(),
        coded_character_set_id: 1208,
        properties: Properties::new(properties).expect("properties"),
        ..MessageDescriptor::default()
    };
    let header = rfh2::header_of(&mut descriptor).expect("a header");
    let mut put = put_to(queue, String::new());
    let message = put.message.as_mut().expect("a message");
    let wanted = message.descriptor.get_or_insert_default();
    wanted.format = descriptor.format;
    wanted.encoding = descriptor.encoding;
    wanted.coded_character_set_id = descriptor.coded_character_set_id;
    message.data = [&header[..], "sch\u{f6}n".as_bytes()].concat().into();
    put
}

fn names(message: &wire::Message) -> Vec<&str> {
    let descriptor = message.descriptor.as_ref().expect("a descriptor");
    descriptor
        .properties
        .iter()
        .map(|p| p.name.as_str())
        .collect()
}

fn format(message: &wire::Message) -> &str {
    &message.descriptor.as_ref().expect("a descriptor").format
}

/// What is behind the header, and the names in it.
fn unfolded(message: &wire::Message) -> (Vec<u8>, Vec<String>, MessageDescriptor) {
    let wire = message.descriptor.as_ref().expect("a descriptor");
    assert!(wire.properties.is_empty(), "{wire:?}");
    let mut descriptor = MessageDescriptor {
        format: wire.format.clone(),
        encoding: wire.encoding,
        coded_character_set_id: wire.coded_character_set_id,
        ..MessageDescriptor::default()
    };
    let mut data = message.data.clone();
    rfh2::fold(&mut descriptor, &mut data).expect("a header");
    let names = descriptor.properties.iter().map(|p| p.name.clone());
    (data.to_vec(), names.collect(), descriptor)
}

fn wanting(queue: &str, option: wire::PropertyOption) -> wire::GetRequest {
    wire::GetRequest {
        properties: option.into(),
        ..get_from(queue)
    }
}

#[tokio::test]
async fn a_header_that_is_put_gives_properties_and_a_getter_has_them_as_it_wants() {
    let (_nodes, client) = node().await;
    for (queue, option, place) in [
        ("A", wire::PropertyOption::Unspecified, "beside"),
        ("A", wire::PropertyOption::AsQueueDefinedInData, "header"),
        (
            "PLAIN",
            wire::PropertyOption::AsQueueDefinedInData,
            "dropped",
        ),
        ("PLAIN", wire::PropertyOption::Unspecified, "beside"),
        ("A", wire::PropertyOption::ForceHeader, "header"),
        ("A", wire::PropertyOption::Compatibility, "header"),
        ("A", wire::PropertyOption::None, "dropped"),
    ] {
        client.put(with_header("A")).await.expect("put");
        // What is selected by came in the header.
        let get = wire::GetRequest {
            selector: "colour LIKE 'red%'".into(),
            ..wanting(queue, option)
        };
        let got = client.get(get).await.expect("got").expect("there");
        match place {
            "beside" => assert_eq!(names(&got), ["colour", "jms.Dst"]),
            "dropped" => assert!(names(&got).is_empty()),
            _ => {
                let (data, names, _) = unfolded(&got);
                assert_eq!(data, "sch\u{f6}n".as_bytes());
                assert_eq!(names, ["colour", "jms.Dst"]);
                continue;
            }
        }
        assert_eq!(&got.data[..], "sch\u{f6}n".as_bytes(), "{queue} {option:?}");
        assert_eq!(format(&got), "MQSTR");
    }
}

#[tokio::test]
async fn a_forced_header_comes_with_a_browse_a_get_and_a_delivery_and_survives_a_kill() {
    let (mut nodes, client) = node().await;
    for _ in 0..3 {
        client.put(with_header("FORCED")).await.expect("put");
    }
    nodes.kill(1);
    nodes.start(1);
    nodes.wait_up(1).await;
    let client = Client::connect(&nodes.application(1)).await;
    let client = client.expect("connected");
    let browse = wire::BrowseRequest {
        queue: "FORCED".into(),
        ..wire::BrowseRequest::default()
    };
    let mut browsed = client.browse(browse).await.expect("browses");
    let first = browsed.next().await.expect("browsed").expect("there");
    let is_whole = |message: &wire::Message| {
        let (data, names, _) = unfolded(message);
        assert_eq!(data, "sch\u{f6}n".as_bytes());
        assert_eq!(names, ["colour", "jms.Dst"]);
    };
    is_whole(&first.message.expect("a message"));
    let in_descriptor = wanting("FORCED", wire::PropertyOption::InDescriptor);
    let got = client.get(in_descriptor).await.expect("got");
    assert_eq!(names(&got.expect("there")), ["colour", "jms.Dst"]);

    let session = client.session().await.expect("a session");
    let open = wire::OpenCall {
        queue: "FORCED".into(),
        input: wire::InputUse::Shared.into(),
        browse: true,
        ..wire::OpenCall::default()
    };
    let queue = session.open(open).await.expect("opened");
    let browsed = queue.browse(wire::BrowseStep::First, false).await;
    is_whole(&browsed.expect("browsed").expect("there"));
    // Text behind a header is converted before the header says how it is written.
    let get = wire::GetCall {
        get: Some(wire::GetRequest {
            convert: Some(wire::Conversion {
                coded_character_set_id: 819,
                encoding: 0,
            }),
            ..wire::GetRequest::default()
        }),
        ..wire::GetCall::default()
    };
    let got = queue.get(get).await.expect("got").expect("there");
    let (data, _, descriptor) = unfolded(&got.message);
    assert_eq!(data, b"sch\xf6n");
    assert_eq!(descriptor.coded_character_set_id, 819);
    let mut consumer = session
        .consume(get_from("FORCED"), ConsumeMode::NoSyncpoint, 10)
        .await
        .expect("consumes");
    let next = tokio::time::timeout(PATIENCE, consumer.next()).await;
    is_whole(&next.expect("in time").expect("delivered").message);
}

#[tokio::test]
async fn what_is_no_header_what_is_too_much_and_what_is_no_option_is_refused() {
    let (nodes, client) = node().await;
    let reason = |result: Result<_, ferrymq_client::ClientError>| {
        result
            .map(|_: wire::PutResponse| ())
            .expect_err("refused")
            .reason()
    };
    let mut put = with_header("A");
    let message = put.message.as_mut().expect("a message");
    message.data = message.data.slice(..20);
    assert_eq!(reason(client.put(put).await), ReasonCode::RFH_ERROR);
    let mut put = with_header("A");
    let message = put.message.as_mut().expect("a message");
    let mut data = message.data.to_vec();
    data[40] = b'!';
    message.data = data.into();
    assert_eq!(reason(client.put(put).await), ReasonCode::RFH_STRING_ERROR);
    let mut get = get_from("A");
    get.properties = 99;
    let refused = client.get(get).await.expect_err("refused");
    assert_eq!(refused.reason(), ReasonCode::OPTIONS_ERROR);

    nodes.define(1, "ALTER QMGR MAXPROPL(10)").await;
    let put = client.put(with_header("A")).await;
    assert_eq!(reason(put), ReasonCode::PROPERTIES_TOO_BIG);
    nodes.define(1, "ALTER QMGR MAXPROPL(NOLIMIT)").await;
    client.put(with_header("A")).await.expect("put");
    let shown = nodes
        .attribute(1, "DISPLAY QMGR MAXPROPL", "MAXPROPL")
        .await;
    assert_eq!(shown.as_deref(), Some("NOLIMIT"));
    let shown = nodes
        .attribute(1, "DISPLAY QALIAS(PLAIN) PROPCTL", "PROPCTL")
        .await;
    assert_eq!(shown.as_deref(), Some("NONE"));
}
