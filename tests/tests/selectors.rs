//! Message properties and selectors over sessions with a real node.

use ferrymq_client::{Client, ClientError, ConsumeMode, wire};
use ferrymq_tests::cluster::{Nodes, PATIENCE};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::ReasonCode;

/// A node with queue A, and a client.
async fn node() -> (Nodes, Client) {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes
        .define(1, "DEFINE QLOCAL(A) DEFPSIST(YES) MAXDEPTH(100000)")
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    let client = Client::connect(&nodes.application(1))
        .await
        .expect("connected");
    (nodes, client)
}

fn property(name: &str, value: wire::property::Value) -> wire::Property {
    wire::Property {
        name: name.to_owned(),
        value: Some(value),
    }
}

/// A message whose number is its data and its property `number`.
fn numbered(number: i32) -> wire::PutRequest {
    let mut put = put_to("A", number.to_string());
    let message = put.message.get_or_insert_default();
    let descriptor = message.descriptor.get_or_insert_default();
    descriptor.properties = vec![
        property("colour", wire::property::Value::String("red".to_owned())),
        property("number", wire::property::Value::Int32(number)),
    ];
    put
}

fn selected(selector: impl Into<String>) -> wire::GetRequest {
    wire::GetRequest {
        selector: selector.into(),
        ..get_from("A")
    }
}

fn reason<T: std::fmt::Debug>(result: Result<T, ClientError>) -> (ReasonCode, String) {
    let error = result.expect_err("it is refused");
    (error.reason(), error.to_string())
}

fn text(message: &wire::Message) -> String {
    String::from_utf8_lossy(&message.data).into_owned()
}

#[tokio::test]
async fn properties_come_back_as_put_and_select() {
    let (_nodes, client) = node().await;
    for number in 0..100 {
        client.put(numbered(number)).await.expect("put");
    }
    let session = client.session().await.expect("session");
    let queue = session
        .open(wire::OpenCall {
            queue: "A".into(),
            input: wire::InputUse::Shared.into(),
            browse: true,
            selector: "number > 40 AND colour LIKE 'r%'".into(),
            ..wire::OpenCall::default()
        })
        .await
        .expect("opened");
    let browsed = queue.browse(wire::BrowseStep::First, false).await;
    assert_eq!(text(&browsed.expect("browsed").expect("there")), "41");
    let got = queue.get(wire::GetCall::default()).await;
    let got = got.expect("got").expect("there");
    assert_eq!((text(&got.message).as_str(), got.examined), ("41", 42));
    let descriptor = got.message.descriptor.expect("described");
    assert_eq!(
        descriptor.properties,
        numbered(41).message.unwrap().descriptor.unwrap().properties
    );
    let rest = client.get(get_from("A")).await.expect("got");
    assert_eq!(text(&rest.expect("there")), "0");
}

#[tokio::test]
async fn a_consumer_with_a_selector_is_pushed_what_matches_in_order() {
    let (_nodes, client) = node().await;
    let session = client.session().await.expect("session");
    for number in 0..500 {
        client.put(numbered(number)).await.expect("put");
    }
    let mut consumer = session
        .consume(
            selected("number / 10 * 10 = number"),
            ConsumeMode::NoSyncpoint,
            100,
        )
        .await
        .expect("consumes");
    for number in (0..500).step_by(10) {
        let next = tokio::time::timeout(PATIENCE, consumer.next()).await;
        let delivered = next.expect("in time").expect("delivered");
        assert_eq!(text(&delivered.message), number.to_string());
    }
    // It waits at the end, and judges what arrives.
    for number in [501, 502, 510] {
        client.put(numbered(number)).await.expect("put");
    }
    let next = tokio::time::timeout(PATIENCE, consumer.next()).await;
    let delivered = next.expect("in time").expect("delivered");
    assert_eq!(text(&delivered.message), "510");
}

#[tokio::test]
async fn bad_selectors_and_properties_are_refused_with_their_codes() {
    let (_nodes, client) = node().await;
    let session = client.session().await.expect("session");
    for (selector, code, said) in [
        ("number >", 2459, "character 9"),
        ("1 = 2", 2504, "never TRUE"),
        (&"(".repeat(100 * 1024), 2519, "10240 bytes"),
        (&"(".repeat(10_000), 2459, "deeper"),
    ] {
        let (reason, text) = reason(client.get(selected(selector)).await);
        assert_eq!(reason.get(), code, "{text}");
        assert!(text.contains(said), "{text}");
        let open = session.open(wire::OpenCall {
            queue: "A".into(),
            browse: true,
            selector: selector.to_owned(),
            ..wire::OpenCall::default()
        });
        assert_eq!(self::reason(open.await.map(|_| ())).0.get(), code);
    }
    let open = session.open(wire::OpenCall {
        queue: "A".into(),
        output: true,
        selector: "TRUE".into(),
        ..wire::OpenCall::default()
    });
    assert_eq!(reason(open.await.map(|_| ())).0.get(), 2516);
    let with = |properties| {
        let mut put = numbered(1);
        let message = put.message.get_or_insert_default();
        message.descriptor.get_or_insert_default().properties = properties;
        put
    };
    use wire::property::Value;
    let long = Value::String("x".repeat(70_000));
    for (properties, code) in [
        (vec![property("JMSPriority", Value::Int32(1))], 2442),
        (vec![property("not allowed", Value::Int32(1))], 2442),
        (vec![property("a", Value::Int8(300))], 2473),
        (vec![property("a", long)], 2478),
    ] {
        let (reason, text) = reason(client.put(with(properties)).await);
        assert_eq!(reason.get(), code, "{text}");
    }
    // The session and the queue are none the worse.
    client.put(numbered(1)).await.expect("put");
    let got = client.get(selected("number = 1")).await.expect("got");
    assert_eq!(text(&got.expect("there")), "1");
}

#[tokio::test]
async fn what_a_selector_judged_is_told_with_a_message_without_one_and_with_deliveries() {
    let (_nodes, client) = node().await;
    let session = client.session().await.expect("session");
    for number in 0..300 {
        client.put(numbered(number)).await.expect("put");
    }
    let counted = session.get_counted(selected("number = 400"), None).await;
    let (got, examined) = counted.expect("answered");
    assert_eq!((got.map(|_| ()), examined), (None, 300));
    let open = wire::OpenCall {
        queue: "A".into(),
        input: wire::InputUse::Shared.into(),
        selector: "number >= 99".into(),
        ..wire::OpenCall::default()
    };
    let queue = session.open(open).await.expect("opened");
    let counted = queue.get_counted(wire::GetCall::default()).await;
    let (got, examined) = counted.expect("answered");
    assert_eq!(text(&got.expect("there").message), "99");
    assert_eq!(examined, 100);
    let counted = session.get_counted(get_from("A"), None).await;
    assert_eq!(counted.expect("answered").1, 0, "there is no selector");

    // A consumer judges each message once, however small its batches are.
    let every = "number / 3 * 3 = number";
    let consumes = session.consume(selected(every), ConsumeMode::NoSyncpoint, 1);
    let mut consumer = consumes.await.expect("consumes");
    let mut judged = 0;
    for number in (3..300).step_by(3).filter(|n| *n != 99) {
        let next = tokio::time::timeout(PATIENCE, consumer.next()).await;
        let delivered = next.expect("in time").expect("delivered");
        assert_eq!(text(&delivered.message), number.to_string());
        judged += delivered.examined;
    }
    assert!((98..=300).contains(&judged), "{judged}");
}

#[tokio::test]
async fn a_selection_of_more_than_ten_thousand_messages_is_logged() {
    let (nodes, client) = node().await;
    let session = client.session().await.expect("session");
    let mut answers = Vec::new();
    for number in 0..10_000 {
        let mut put = numbered(number);
        let descriptor = put.message.as_mut().and_then(|m| m.descriptor.as_mut());
        descriptor
            .expect("described")
            .set_persistence(wire::Persistence::NonPersistent);
        answers.push(session.send_put_brief(put, None).await.expect("sent"));
    }
    for answer in answers {
        answer.wait().await.expect("put");
    }
    let logged = || {
        let log = std::fs::read_to_string(nodes.log(1)).expect("the log");
        let lines = log.lines().filter(|line| line.contains("FMQ9025I"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let found = client.get(selected("number = 9998")).await.expect("got");
    assert!(found.is_some());
    assert_eq!(logged(), Vec::<String>::new(), "9999 are not many");
    client.put(numbered(10_000)).await.expect("put");
    let none = client.get(selected("number < 0")).await.expect("got");
    assert_eq!(none, None);
    let begun = std::time::Instant::now();
    let lines = loop {
        let lines = logged();
        if !lines.is_empty() || begun.elapsed() > PATIENCE {
            break lines;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("JSON");
    assert_eq!(line["inserts"]["queue"], "A");
    let examined = &line["inserts"]["examined"];
    assert!(examined == 10_000 || examined == "10000", "{line}");
}
