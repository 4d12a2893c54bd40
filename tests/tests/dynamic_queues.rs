//! Model and dynamic queues, and attributes, over sessions with a real node.

use ferrymq_client::{Client, Queue, Session, wire};
use ferrymq_tests::cluster::{Nodes, binary};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::ReasonCode;

/// A node with queue A and a model of permanent queues, and a client.
async fn node() -> (Nodes, Client) {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes.define(1, "DEFINE QLOCAL(A)").await;
    nodes
        .define(
            1,
            "DEFINE QMODEL(PERMANENT) DEFTYPE(PERMDYN) DEFSOPT(SHARED) SHARE",
        )
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    let client = connect(&nodes).await;
    (nodes, client)
}

async fn connect(nodes: &Nodes) -> Client {
    let client = Client::connect(&nodes.application(1)).await;
    client.expect("connected")
}

/// Opens a model for input, and for questions.
async fn open<'a>(session: &'a Session, model: &str, name: &str) -> Queue<'a> {
    let open = wire::OpenCall {
        queue: model.into(),
        input: wire::InputUse::AsQueueDefined.into(),
        inquire: true,
        dynamic_queue: name.into(),
        ..wire::OpenCall::default()
    };
    session.open(open).await.expect("opened")
}

fn get() -> wire::GetCall {
    wire::GetCall {
        get: Some(wire::GetRequest {
            wait_ms: 10_000,
            ..wire::GetRequest::default()
        }),
        ..wire::GetCall::default()
    }
}

fn not_persistent(queue: &str, text: &str) -> wire::PutRequest {
    let mut put = put_to(queue, text.to_owned());
    if let Some(descriptor) = put.message.as_mut().and_then(|m| m.descriptor.as_mut()) {
        descriptor.persistence = wire::Persistence::NonPersistent.into();
    }
    put
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_comes_to_a_temporary_queue_which_is_gone_with_its_session() {
    let (nodes, client) = node().await;
    let asking = client.session().await.expect("a session");
    let replies = open(&asking, "SYSTEM.DEFAULT.MODEL.QUEUE", "REPLY.*").await;
    let name = replies.resolved_queue.clone();
    assert!(name.starts_with("REPLY.") && name.len() > 6, "{name}");
    let mut request = not_persistent("A", "question");
    if let Some(descriptor) = request.message.as_mut().and_then(|m| m.descriptor.as_mut()) {
        descriptor.message_type = 1;
        descriptor.reply_to_queue = name.clone();
    }
    asking.put(request, None).await.expect("asked");

    let answering = client.session().await.expect("a session");
    let question = answering.get(get_from("A"), None).await.expect("got");
    let to = question.and_then(|m| m.descriptor).expect("a descriptor");
    assert_eq!(to.reply_to_queue, name);
    let answer = not_persistent(&to.reply_to_queue, "answer");
    answering.put(answer, None).await.expect("answered");
    let persistent = put_to(&name, "x");
    let refused = answering.put(persistent, None).await.expect_err("refused");
    assert_eq!(refused.reason(), ReasonCode::PERSISTENT_NOT_ALLOWED);

    let got = replies.get(get()).await.expect("got").expect("a reply");
    assert_eq!(&got.message.data[..], b"answer");
    let display = format!("DISPLAY QLOCAL({name}) DEFTYPE");
    let kind = nodes.attribute(1, &display, "DEFTYPE").await;
    assert_eq!(kind.as_deref(), Some("TEMPDYN"));
    replies.close().await.expect("closed");
    let gone = not_persistent(&name, "late");
    let refused = answering.put(gone, None).await.expect_err("gone");
    assert_eq!(refused.reason(), ReasonCode::UNKNOWN_OBJECT_NAME);
}

/// What the examination of a node that does not run says of its queues: name, whether it is dynamic, messages, bytes.
fn stored(nodes: &Nodes) -> Vec<(String, bool, u64, u64)> {
    let run = |format: &str| {
        let output = std::process::Command::new(binary())
            .args(["store", "check", "-o", format])
            .arg(nodes.data(1))
            .output()
            .expect("run ferrymq");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let said: serde_json::Value = serde_json::from_str(&run("json")).expect("JSON");
    let stores = said.as_array().expect("stores");
    let store = stores.iter().find(|s| s["name"] == "QM1").expect("QM1");
    let text = run("text");
    let queues = store["queues"].as_array().expect("queues").iter();
    let queues = queues.filter(|q| {
        !q["queue"]
            .as_str()
            .unwrap_or_default()
            .starts_with("SYSTEM.")
    });
    queues
        .map(|queue| {
            let name = queue["queue"].as_str().expect("a name").to_owned();
            let number = |key: &str| queue[key].as_u64().expect("a number");
            let (messages, bytes) = (number("messages"), number("bytes"));
            let line = format!("queue {name}: {messages} messages, {bytes} bytes");
            assert!(text.contains(&line), "{text}");
            (name, queue["dynamic"] == true, messages, bytes)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permanent_dynamic_queue_survives_a_kill_with_its_messages_and_a_temporary_one_does_not()
{
    let (mut nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    let kept = open(&session, "PERMANENT", "KEPT").await;
    assert_eq!(kept.resolved_queue, "KEPT");
    let temporary = open(&session, "SYSTEM.DEFAULT.MODEL.QUEUE", "GONE").await;
    assert_eq!(temporary.resolved_queue, "GONE");
    session.put(put_to("KEPT", "x"), None).await.expect("put");
    session.put(put_to("A", "abc"), None).await.expect("put");
    session
        .put(not_persistent("A", "x"), None)
        .await
        .expect("put");
    nodes.kill(1);
    assert_eq!(
        stored(&nodes),
        [
            ("A".to_owned(), false, 1, 3),
            ("KEPT".to_owned(), true, 1, 1)
        ]
    );
    nodes.start(1);
    nodes.wait_up(1).await;

    let client = connect(&nodes).await;
    let session = client.session().await.expect("a session");
    let refused = session.put(not_persistent("GONE", "x"), None).await;
    let refused = refused.expect_err("gone");
    assert_eq!(refused.reason(), ReasonCode::UNKNOWN_OBJECT_NAME);
    let open_kept = wire::OpenCall {
        queue: "KEPT".into(),
        input: wire::InputUse::Shared.into(),
        ..wire::OpenCall::default()
    };
    let kept = session.open(open_kept.clone()).await.expect("opened");
    let refused = kept.close_with(wire::CloseOption::Delete).await;
    assert_eq!(
        refused.expect_err("not empty").reason(),
        ReasonCode::Q_NOT_EMPTY
    );
    let kept = session.open(open_kept).await.expect("opened");
    let got = kept.get(get()).await.expect("got").expect("a message");
    assert_eq!(&got.message.data[..], b"x");
    kept.close_with(wire::CloseOption::Delete)
        .await
        .expect("empty now");
    let refused = session.put(not_persistent("KEPT", "x"), None).await;
    let refused = refused.expect_err("deleted");
    assert_eq!(refused.reason(), ReasonCode::UNKNOWN_OBJECT_NAME);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_are_inquired_and_set_through_a_handle_and_for_a_defined_queue_in_its_definition()
 {
    let (nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    session.put(put_to("A", "x"), None).await.expect("put");
    let open = wire::OpenCall {
        queue: "A".into(),
        inquire: true,
        set: true,
        ..wire::OpenCall::default()
    };
    let queue = session.open(open).await.expect("opened");
    let answer = queue.inquire(&["CurrentQDepth", "QName"]).await;
    let answer = answer.expect("inquired").attributes;
    let value = |name: &str| {
        let found = answer.iter().find(|a| a.name == name);
        found.and_then(|a| a.value.clone()).expect("asked for")
    };
    assert_eq!(value("CurrentQDepth"), wire::attribute::Value::Integer(1));
    assert_eq!(value("QName"), wire::attribute::Value::Text("A".into()));
    let inhibit = wire::Attribute {
        name: "InhibitGet".into(),
        value: Some(wire::attribute::Value::Integer(1)),
    };
    queue.set(vec![inhibit]).await.expect("set");
    let refused = session
        .get(get_from("A"), None)
        .await
        .expect_err("inhibited");
    assert_eq!(refused.reason(), ReasonCode::GET_INHIBITED);
    let shown = nodes.attribute(1, "DISPLAY QLOCAL(A) GET", "GET").await;
    assert_eq!(shown.as_deref(), Some("DISABLED"));
    let depth = wire::Attribute {
        name: "CurrentQDepth".into(),
        value: Some(wire::attribute::Value::Integer(0)),
    };
    let refused = queue.set(vec![depth]).await.expect_err("not to be set");
    assert_eq!(refused.reason(), ReasonCode::SELECTOR_ERROR);
}
