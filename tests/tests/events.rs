//! Triggers and events of a real node: what applications and operators read from its queues.

use std::time::Duration;

use ferrymq_client::{Client, ClientError, ConsumeMode, Session, wire};
use ferrymq_tests::cluster::{Nodes, PATIENCE};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::{PcfMessage, PcfParameter, PcfValue, TriggerMessage};

/// A node with these definitions, and a client.
async fn node(definitions: &[&str]) -> (Nodes, Client) {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    for command in definitions {
        nodes.define(1, command).await;
    }
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    let client = connect(&nodes).await;
    (nodes, client)
}

async fn connect(nodes: &Nodes) -> Client {
    Client::connect(&nodes.application(1))
        .await
        .expect("connected")
}

fn for_input(queue: &str) -> wire::OpenCall {
    wire::OpenCall {
        queue: queue.to_owned(),
        input: wire::InputUse::Shared.into(),
        ..wire::OpenCall::default()
    }
}

/// Puts in order.
async fn put(session: &Session, queue: &str, count: usize) {
    for n in 0..count {
        let message = put_to(queue, n.to_string());
        session.put(message, None).await.expect("put");
    }
}

/// The message that waits on a queue, if one does.
async fn take(client: &Client, queue: &str) -> Option<wire::Message> {
    client.get(get_from(queue)).await.expect("a get")
}

fn event(message: &wire::Message) -> PcfMessage {
    let descriptor = message.descriptor.as_ref().expect("a descriptor");
    assert_eq!(descriptor.format, "MQEVENT");
    PcfMessage::read(&message.data, descriptor.encoding).expect("an event")
}

fn text(event: &PcfMessage, parameter: PcfParameter) -> &str {
    match event.get(parameter) {
        Some(PcfValue::Text(text)) => text,
        other => panic!("{parameter}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trigger_monitor_is_told_of_every_message_and_what_to_start_for_it() {
    let (nodes, client) = node(&[
        "DEFINE QLOCAL(START.Q)",
        "DEFINE PROCESS(ORDERS) APPLICID('/usr/bin/orders') APPLTYPE(UNIX) USERDATA('-v')",
        "DEFINE QLOCAL(ORDERS) TRIGGER TRIGTYPE(EVERY) TRIGDATA('one') INITQ(START.Q) PROCESS(ORDERS)",
    ])
    .await;
    let session = client.session().await.expect("a session");
    put(&session, "ORDERS", 1).await;
    assert!(take(&client, "START.Q").await.is_none(), "nobody is told");
    let monitor = connect(&nodes).await;
    let monitor = monitor.session().await.expect("a session");
    let start = monitor.open(for_input("START.Q")).await.expect("open");
    put(&session, "ORDERS", 2).await;
    // One for those that were there when it was opened, one for each that came then.
    for n in 0..3 {
        let get = wire::GetCall {
            get: Some(wire::GetRequest {
                wait_ms: 20_000,
                ..wire::GetRequest::default()
            }),
            ..wire::GetCall::default()
        };
        let got = tokio::time::timeout(PATIENCE, start.get(get)).await;
        let got = got.expect("in time").expect("a get");
        let message = got.unwrap_or_else(|| panic!("trigger message {n}")).message;
        let descriptor = message.descriptor.expect("a descriptor");
        assert_eq!(descriptor.format, "MQTRIG");
        assert_eq!(descriptor.persistence(), wire::Persistence::NonPersistent);
        let said = TriggerMessage::read(&message.data).expect("a trigger message");
        assert_eq!(
            (said.queue.as_str(), said.process.as_str()),
            ("ORDERS", "ORDERS")
        );
        assert_eq!(
            (said.application_id.as_str(), said.user_data.as_str()),
            ("/usr/bin/orders", "-v")
        );
        assert_eq!(
            (said.application_type, said.trigger_data.as_str()),
            (6, "one")
        );
    }
    start.close().await.expect("close");
    put(&session, "ORDERS", 1).await;
    assert!(take(&client, "START.Q").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_depth_trigger_stays_off_over_a_restart_until_the_queue_is_altered() {
    let (mut nodes, client) = node(&[
        "DEFINE QLOCAL(START.Q)",
        "DEFINE PROCESS(P) APPLICID(X)",
        "DEFINE QLOCAL(D) TRIGGER TRIGTYPE(DEPTH) TRIGDPTH(3) INITQ(START.Q) PROCESS(P)",
    ])
    .await;
    let shown = |report: String| report.contains(" TRIGGER") && !report.contains("NOTRIGGER");
    let display = "DISPLAY QLOCAL(D) TRIGGER";
    let session = client.session().await.expect("a session");
    let start = session.open(for_input("START.Q")).await.expect("open");
    put(&session, "D", 2).await;
    assert!(take(&client, "START.Q").await.is_none());
    assert!(shown(nodes.define(1, display).await));
    put(&session, "D", 1).await;
    assert!(take(&client, "START.Q").await.is_some());
    assert!(nodes.define(1, display).await.contains("NOTRIGGER"));
    drop(start);
    drop(session);
    nodes.kill(1);
    nodes.start(1);
    nodes.wait_up(1).await;
    assert!(nodes.define(1, display).await.contains("NOTRIGGER"));
    let client = connect(&nodes).await;
    let session = client.session().await.expect("a session");
    let start = session.open(for_input("START.Q")).await.expect("open");
    put(&session, "D", 1).await;
    assert!(take(&client, "START.Q").await.is_none());
    nodes.define(1, "ALTER QLOCAL(D) TRIGGER TRIGDPTH(9)").await;
    assert!(shown(nodes.define(1, display).await));
    start.close().await.expect("close");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_reads_depth_events_and_calls_that_failed() {
    let (nodes, client) = node(&[
        "ALTER QMGR PERFMEV(ENABLED) LOCALEV(ENABLED) INHIBTEV(ENABLED)",
        "DEFINE QLOCAL(Q) MAXDEPTH(10) QDEPTHHI(50) QDPHIEV(ENABLED)",
        "DEFINE QLOCAL(OFF) GET(DISABLED)",
    ])
    .await;
    let session = client.session().await.expect("a session");
    put(&session, "Q", 4).await;
    assert!(take(&client, "SYSTEM.ADMIN.PERFM.EVENT").await.is_none());
    put(&session, "Q", 1).await;
    let high = take(&client, "SYSTEM.ADMIN.PERFM.EVENT").await;
    let high = event(&high.expect("depth high"));
    assert_eq!((high.command, high.reason.get()), (45, 2224));
    assert_eq!(text(&high, PcfParameter::BASE_OBJECT_NAME), "Q");
    assert_eq!(text(&high, PcfParameter::QUEUE_MANAGER_NAME), "QM1");
    assert_eq!(
        high.get(PcfParameter::ENQUEUE_COUNT),
        Some(&PcfValue::Integer(5))
    );

    // That the queue manager started is the first.
    let started = take(&client, "SYSTEM.ADMIN.QMGR.EVENT").await;
    assert_eq!(event(&started.expect("started")).reason.get(), 2222);
    let unknown = session.put(put_to("NONE", "x"), None).await;
    assert!(
        matches!(unknown, Err(ClientError::Refused(_))),
        "{unknown:?}"
    );
    client.get(get_from("OFF")).await.expect_err("inhibited");
    for (reason, queue) in [(2085, "NONE"), (2016, "OFF")] {
        let message = take(&client, "SYSTEM.ADMIN.QMGR.EVENT").await;
        let failed = event(&message.expect("a failed call"));
        assert_eq!((failed.command, failed.reason.get()), (44, reason));
        assert_eq!(text(&failed, PcfParameter::QUEUE_NAME), queue);
        assert_eq!(text(&failed, PcfParameter::APPLICATION_NAME), "test");
    }
    nodes.define(1, "ALTER QMGR LOCALEV(DISABLED)").await;
    client.get(get_from("NONE")).await.expect_err("unknown");
    assert!(take(&client, "SYSTEM.ADMIN.QMGR.EVENT").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_waits_for_credit_reads_its_queue_for_triggers_and_for_noshare() {
    let (nodes, client) = node(&[
        "DEFINE QLOCAL(START.Q)",
        "DEFINE PROCESS(P) APPLICID(X)",
        "DEFINE QLOCAL(T) NOSHARE TRIGGER TRIGTYPE(FIRST) INITQ(START.Q) PROCESS(P)",
    ])
    .await;
    let session = client.session().await.expect("a session");
    let start = session.open(for_input("START.Q")).await.expect("open");
    let mode = ConsumeMode::Settle;
    let mut consumer = session
        .consume(get_from("T"), mode, 1)
        .await
        .expect("consuming");
    put(&session, "T", 1).await;
    let first = tokio::time::timeout(PATIENCE, consumer.next()).await;
    assert_eq!(
        &first.expect("in time").expect("delivered").message.data[..],
        b"0"
    );
    // It is not settled, so no credit is left: nobody waits, and still the queue is read.
    put(&session, "T", 1).await;
    assert!(take(&client, "START.Q").await.is_none());
    let handles = nodes
        .attribute(1, "DISPLAY QLOCAL(T) IPPROCS", "IPPROCS")
        .await;
    assert_eq!(handles.as_deref(), Some("1"));
    let mut second = session
        .consume(get_from("T"), mode, 1)
        .await
        .expect("asked");
    let refused = tokio::time::timeout(PATIENCE, second.next()).await;
    let refused = refused.expect("in time").expect_err("it is another's");
    assert!(format!("{refused:?}").contains("2042"), "{refused:?}");
    consumer.stop().await.expect("stopped");
    let told = tokio::time::timeout(PATIENCE, async {
        while take(&client, "START.Q").await.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    told.await.expect("the last that read the queue went");
    start.close().await.expect("close");
}
