//! Request and reply: the helper of the client over sessions with real nodes, and the two commands.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use ferrymq_client::{Client, ReplyQueue, Session, reply_to, wire};
use ferrymq_tests::cluster::Nodes;
use ferrymq_tests::command_line::{Dev, Home, check, json};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::ReasonCode;

const WAIT: Duration = Duration::from_secs(20);
const PASS_CORREL_ID: u32 = 0x40;
const PASS_MSG_ID: u32 = 0x80;
const PASS_DISCARD_AND_EXPIRY: u32 = 0x4000;

/// A node with queues for requests and for replies, and a client.
async fn node() -> (Nodes, Client) {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes.define(1, "DEFINE QLOCAL(SERVICE)").await;
    nodes.define(1, "DEFINE QLOCAL(REPLIES)").await;
    nodes
        .define(
            1,
            "DEFINE QMODEL(PERMANENT) DEFTYPE(PERMDYN) DEFSOPT(SHARED) SHARE",
        )
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    let client = Client::connect(&nodes.application(1)).await;
    (nodes, client.expect("connected"))
}

/// A request that says nothing of its persistence.
fn ask(text: &str, report: u32) -> wire::PutRequest {
    let mut put = put_to("SERVICE", text.to_owned());
    let descriptor = wire::MessageDescriptor {
        report,
        ..wire::MessageDescriptor::default()
    };
    put.message.as_mut().expect("a message").descriptor = Some(descriptor);
    put
}

/// Gets one request, answers it with its text and an exclamation mark, and returns its descriptor.
async fn serve_one(session: &Session) -> wire::MessageDescriptor {
    let unit_of_work = session.begin(None).await.expect("begun");
    let get = wire::GetRequest {
        wait_ms: 20_000,
        ..get_from("SERVICE")
    };
    let got = session.get(get, Some(unit_of_work)).await.expect("got");
    let request = got.expect("a request");
    let descriptor = request.descriptor.clone().expect("a descriptor");
    let answer = wire::Message {
        data: [&request.data[..], b"!"].concat().into(),
        ..wire::Message::default()
    };
    let put = reply_to(&descriptor, answer).expect("a reply queue");
    session
        .put(put, Some(unit_of_work))
        .await
        .expect("answered");
    session.commit(unit_of_work).await.expect("committed");
    descriptor
}

fn model(name: &str) -> ReplyQueue {
    ReplyQueue::Model {
        model: name.to_owned(),
        name: "REPLY.*".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_is_found_by_its_correlation_id_whatever_the_queue_and_the_ids_passed() {
    let (nodes, client) = node().await;
    let (asking, answering) = (
        client.session().await.expect("a session"),
        client.session().await.expect("a session"),
    );
    // Others' replies on a queue that many use are not taken.
    asking
        .put(put_to("REPLIES", "of somebody else".to_owned()), None)
        .await
        .expect("put");
    for reply_queue in [
        model("SYSTEM.DEFAULT.MODEL.QUEUE"),
        model("PERMANENT"),
        ReplyQueue::Named("REPLIES".to_owned()),
    ] {
        for report in [0, PASS_MSG_ID, PASS_CORREL_ID, PASS_MSG_ID | PASS_CORREL_ID] {
            let requester = asking.requester(reply_queue.clone()).await.expect("opened");
            let (reply, request) = tokio::join!(
                requester.request(ask("what", report), WAIT),
                serve_one(&answering)
            );
            let reply = reply.expect("asked");
            let message = reply.message.expect("a reply");
            assert_eq!(&message.data[..], b"what!");
            let descriptor = message.descriptor.expect("a descriptor");
            assert_eq!(descriptor.message_type, 2);
            let same = descriptor.message_id == request.message_id;
            assert_eq!(same, report & PASS_MSG_ID != 0, "{report:#x}");
            if report & PASS_CORREL_ID == 0 {
                assert_eq!(descriptor.correlation_id, reply.request.message_id);
            } else {
                assert_eq!(descriptor.correlation_id, reply.request.correlation_id);
                assert!(descriptor.correlation_id.iter().any(|byte| *byte != 0));
            }
            let name = requester.reply_queue().to_owned();
            requester.close().await.expect("closed");
            let display = format!("DISPLAY QLOCAL({name}) CURDEPTH");
            let left = nodes.attribute(1, &display, "CURDEPTH").await;
            let expected = (name == "REPLIES").then_some("1");
            assert_eq!(left.as_deref(), expected, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_and_a_late_reply_expire_when_nobody_waits_for_them_any_more() {
    let (_nodes, client) = node().await;
    let (asking, answering) = (
        client.session().await.expect("a session"),
        client.session().await.expect("a session"),
    );
    let named = ReplyQueue::Named("REPLIES".to_owned());
    let requester = asking.requester(named).await.expect("opened");
    let wait = Duration::from_millis(1500);
    let (reply, request) = tokio::join!(requester.request(ask("late", 0), wait), async {
        let get = wire::GetRequest {
            wait_ms: 20_000,
            ..get_from("SERVICE")
        };
        let got = answering.get(get, None).await.expect("got");
        got.and_then(|m| m.descriptor).expect("a request")
    });
    assert_eq!(reply.expect("asked").message, None);
    let left = request.expiry.expect("an expiry");
    assert!((1..=15).contains(&left), "{left}");
    assert_eq!(request.report, PASS_DISCARD_AND_EXPIRY);
    let late = reply_to(&request, wire::Message::default()).expect("a reply queue");
    answering.put(late, None).await.expect("put");
    tokio::time::sleep(Duration::from_millis(u64::from(left) * 100 + 200)).await;
    let got = answering.get(get_from("REPLIES"), None).await;
    assert_eq!(got.expect("asked"), None);

    // Nobody serves: the request itself is gone.
    let wait = Duration::from_millis(300);
    let reply = requester.request(ask("nobody", 0), wait).await;
    assert_eq!(reply.expect("asked").message, None);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let got = answering.get(get_from("SERVICE"), None).await;
    assert_eq!(got.expect("asked"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_persistent_request_gets_a_persistent_reply_which_a_temporary_queue_refuses() {
    let (_nodes, client) = node().await;
    let (asking, answering) = (
        client.session().await.expect("a session"),
        client.session().await.expect("a session"),
    );
    let persistent = || {
        let mut put = ask("important", 0);
        let message = put.message.as_mut().expect("a message");
        let descriptor = message.descriptor.as_mut().expect("a descriptor");
        descriptor.set_persistence(wire::Persistence::Persistent);
        put
    };
    let requester = asking.requester(model("PERMANENT")).await.expect("opened");
    let (reply, _) = tokio::join!(requester.request(persistent(), WAIT), serve_one(&answering));
    let message = reply.expect("asked").message.expect("a reply");
    let descriptor = message.descriptor.expect("a descriptor");
    assert_eq!(descriptor.persistence(), wire::Persistence::Persistent);
    requester.close().await.expect("closed");

    let temporary = model("SYSTEM.DEFAULT.MODEL.QUEUE");
    let requester = asking.requester(temporary).await.expect("opened");
    let short = Duration::from_millis(300);
    let reply = requester.request(persistent(), short).await.expect("asked");
    assert_eq!(reply.message, None);
    let mut request = wire::MessageDescriptor::default();
    request.set_persistence(wire::Persistence::Persistent);
    requester
        .reply_queue()
        .clone_into(&mut request.reply_to_queue);
    let put = reply_to(&request, wire::Message::default()).expect("a reply queue");
    let refused = answering.put(put, None).await.expect_err("refused");
    assert_eq!(refused.reason(), ReasonCode::PERSISTENT_NOT_ALLOWED);
}

/// `ferrymq reply`, ended when this is dropped.
struct Replier(Child);

impl Replier {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("run ferrymq reply"))
    }

    /// Waits until it has said this on stderr.
    fn wait_for_words(&mut self, words: &str) {
        let stderr = self.0.stderr.as_mut().expect("stderr is piped");
        for line in BufReader::new(stderr).lines() {
            if line.expect("read what it says").contains(words) {
                return;
            }
        }
        panic!("it ended without saying {words:?}");
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn the_command_that_asks_prints_the_reply_of_the_one_that_answers() {
    let home = Home::new();
    let dev = Dev::start(&home);
    for (with, reply) in [
        (&["--echo"][..], "wie geht's"),
        (&["--text", "done"], "done"),
        (&["--exec", "tr a-z A-Z"], "WIE GEHT'S"),
    ] {
        let _replier = Replier::start(&home, &[&["reply", "DEV.QUEUE.1"], with].concat());
        for options in [
            &[][..],
            &["--model", "DEV.APP.MODEL.QUEUE", "--pass-msgid"],
            &[
                "--reply-queue",
                "DEV.QUEUE.2",
                "--pass-correl",
                "--persistent",
            ],
        ] {
            let ask = [&["request", "DEV.QUEUE.1", "wie geht's"], options].concat();
            let (out, err) = dev.check(&ask, 0);
            assert_eq!(out, reply, "{with:?} {options:?}");
            assert!(err.contains("reply after ") && err.contains(" ms"), "{err}");
        }
    }
    let _replier = Replier::start(&home, &["reply", "DEV.QUEUE.1", "--echo"]);
    let ask = [
        "request",
        "DEV.QUEUE.1",
        "-",
        "--property",
        "colour=red",
        "--correl",
        "0b",
        "--pass-correl",
        "-o",
        "json",
    ];
    let (out, _) = check(&home.run_with_input(&ask, b"{\"a\":1}"), 0);
    let document = json(&out);
    assert_eq!(document["type"], "reply");
    assert_eq!(document["body"]["a"], 1);
    assert_eq!(document["properties"]["colour"], "red");
    let correlation_id = document["correl_id"].as_str().expect("a text");
    assert!(correlation_id.starts_with("0b00"), "{correlation_id}");
    let (depths, _) = dev.check(&["mqsc", "-e", "DISPLAY QLOCAL(DEV.*) CURDEPTH"], 0);
    assert_eq!(depths.matches("CURDEPTH(0)").count(), 4, "{depths}");
}

#[test]
fn a_request_that_nobody_answers_ends_with_4_and_leaves_nothing() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let ask = ["request", "DEV.QUEUE.1", "x", "--wait", "200ms"];
    let (out, err) = dev.check(&ask, 4);
    assert!(out.is_empty() && err.contains("no reply to "), "{out}{err}");
    std::thread::sleep(Duration::from_millis(300));
    dev.check(&["get", "DEV.QUEUE.1"], 4);
    let both = [
        "request",
        "DEV.QUEUE.1",
        "x",
        "--model",
        "A",
        "--reply-queue",
        "B",
    ];
    dev.check(&both, 2);
    dev.check(&["reply", "DEV.QUEUE.1"], 2);
    dev.check(&["reply", "DEV.QUEUE.1", "--echo", "--text", "x"], 2);
    dev.check(&["reply", "DEV.QUEUE.1", "--echo", "--wait", "100ms"], 4);
}

#[test]
fn a_request_whose_reply_fails_is_backed_out_and_comes_again() {
    let home = Home::new();
    let dev = Dev::start(&home);
    dev.check(&["put", "DEV.QUEUE.1", "x", "--reply-to", "DEV.QUEUE.2"], 0);
    let once =
        |with: &'static [&'static str]| [&["reply", "DEV.QUEUE.1", "--count", "1"], with].concat();
    let (out, err) = dev.check(&once(&["--exec", "exit 3"]), 1);
    assert!(out.is_empty() && err.contains("backed out"), "{out}{err}");
    let mut replier = Replier::start(&home, &["reply", "DEV.QUEUE.1", "--exec", "exit 3"]);
    replier.wait_for_words("backed out");
    drop(replier);
    let (shown, _) = dev.check(&["browse", "DEV.QUEUE.1", "-o", "json"], 0);
    let backouts = json(&shown)["backout_count"].as_u64().expect("a number");
    assert!(backouts >= 2, "{shown}");
    dev.check(&once(&["--text", "at last"]), 0);
    let (out, _) = dev.check(&["get", "DEV.QUEUE.2"], 0);
    assert_eq!(out, "at last");

    // What says nothing of a reply, and what cannot take one.
    dev.check(&["put", "DEV.QUEUE.1", "no queue for a reply"], 0);
    let (_, err) = dev.check(&once(&["--echo"]), 1);
    assert!(err.contains("MQRC_MISSING_REPLY_TO_Q"), "{err}");
    dev.check(&["get", "DEV.QUEUE.1"], 0);
    dev.check(&["put", "DEV.QUEUE.1", "x", "--reply-to", "NOWHERE"], 0);
    let (_, err) = dev.check(&once(&["--echo"]), 1);
    assert!(err.contains("2085"), "{err}");
    let (out, _) = dev.check(&["get", "DEV.QUEUE.1"], 0);
    assert_eq!(out, "x");
}
