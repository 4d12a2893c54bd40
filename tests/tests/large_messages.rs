//! Messages as long as any may be, on a real node with default settings.

use std::time::{Duration, Instant};

use ferrymq_client::{Client, ConnectOptions, Session};
use ferrymq_tests::cluster::{Nodes, PATIENCE, crash_points_binary};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::{MESSAGE_LENGTH_MAX, ReasonCode};

/// Pause between two tries.
const LOOK: Duration = Duration::from_millis(50);

/// 1 MiB.
const MEBIBYTE: u64 = 1024 * 1024;

async fn start(nodes: &mut Nodes) -> Session {
    nodes.start(1);
    nodes.wait_up(1).await;
    let longest = format!("MAXMSGL({MESSAGE_LENGTH_MAX})");
    nodes.define(1, &format!("ALTER QMGR {longest}")).await;
    nodes
        .define(1, &format!("DEFINE QLOCAL(A) REPLACE {longest}"))
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) REPLACE SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    connect(nodes).await
}

async fn connect(nodes: &Nodes) -> Session {
    let options = ConnectOptions {
        timeout: Some(PATIENCE),
        ..nodes.application(1)
    };
    let client = Client::connect(&options).await;
    let client = client.expect("connected");
    client.session().await.expect("a session")
}

/// Different bytes for each number, and at each place.
fn body(number: u8) -> Vec<u8> {
    let block: Vec<u8> = (number..251).cycle().take(65_537).collect();
    let mut body = block.repeat(MESSAGE_LENGTH_MAX as usize / block.len() + 1);
    body.truncate(MESSAGE_LENGTH_MAX as usize);
    body
}

/// The most memory that node 1 has had since the last call, in bytes; what it has now counts from here on.
fn peak(nodes: &Nodes) -> u64 {
    let process = format!("/proc/{}", nodes.process_id(1));
    let status = std::fs::read_to_string(format!("{process}/status")).expect("its status");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kibibytes = line.expect("VmHWM").trim().trim_end_matches(" kB");
    std::fs::write(format!("{process}/clear_refs"), "5").expect("reset it");
    kibibytes.parse::<u64>().expect("a number") * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regression_a_message_above_the_limit_of_requests_is_got_browsed_and_dumped_in_one_answer()
{
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.set_storage(1, "");
    let session = start(&mut nodes).await;
    let long = vec![7; 5_000_000];
    session
        .put(put_to("A", long.clone()), None)
        .await
        .expect("put");
    let client = Client::connect(&nodes.administrator(1)).await;
    let client = client.expect("connected");
    let mut dump = client.admin().dump("QM1").await.expect("a dump");
    let mut dumped = 0;
    while let Some(item) = dump.next().await.expect("all of it") {
        dumped += usize::from(item.message.is_some_and(|m| m.data == long));
    }
    assert_eq!(dumped, 1);
    let client = Client::connect(&nodes.application(1)).await;
    let client = client.expect("connected");
    let browse = ferrymq_client::wire::BrowseRequest {
        queue: "A".into(),
        ..Default::default()
    };
    let mut browse = client.browse(browse).await.expect("browsing");
    let browsed = browse.next().await.expect("browsed").expect("a message");
    assert!(browsed.message.is_some_and(|m| m.data == long));
    let got = client.get(get_from("A")).await.expect("got");
    assert!(got.expect("a message").data == long);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_100_mib_pass_with_default_settings_and_survive() {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.set_storage(1, "");
    let session = start(&mut nodes).await;
    let empty = peak(&nodes);
    session.put(put_to("A", body(0)), None).await.expect("put");
    let put = peak(&nodes);
    let got = session.get(get_from("A"), None).await.expect("got");
    assert!(got.expect("a message").data == body(0));
    let got = peak(&nodes);
    // More than the journal holds: checkpoints take them over while others come.
    let begun = Instant::now();
    for number in 1..=7 {
        // Faster than a checkpoint: refused for a while (rule U19).
        while let Err(error) = session.put(put_to("A", body(number)), None).await {
            assert_eq!(error.reason(), ReasonCode::STORAGE_MEDIUM_FULL, "{number}");
            assert!(begun.elapsed() < PATIENCE, "no room for {number}");
            tokio::time::sleep(LOOK).await;
        }
    }
    let many = peak(&nodes);
    nodes.kill(1);
    let session = start(&mut nodes).await;
    let recovered = peak(&nodes);
    // Backed out once, then taken, from wherever it is.
    let unit = session.begin(None).await.expect("begun");
    let first = session.get(get_from("A"), Some(unit)).await.expect("got");
    assert!(first.expect("a message").data == body(1));
    session.back(unit).await.expect("backed out");
    for number in 1..=7 {
        let got = session.get(get_from("A"), None).await.expect("got");
        assert!(got.expect("a message").data == body(number), "{number}");
    }
    let drained = peak(&nodes);
    eprintln!(
        "resident MiB at most: {} empty, {} put, {} got, {} eight of them, {} restarted, {} drained from the disk",
        empty / MEBIBYTE,
        put / MEBIBYTE,
        got / MEBIBYTE,
        many / MEBIBYTE,
        recovered / MEBIBYTE,
        drained / MEBIBYTE,
    );
    // It is in memory once, also while it is stored, and while it is sent.
    for (what, bytes) in [("put", put), ("got", got)] {
        assert!(bytes - empty < 160 * MEBIBYTE, "{what}: {bytes} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u20_a_message_whose_parts_were_cut_short_is_not_there_and_those_before_are() {
    let Some(binary) = crash_points_binary() else {
        return;
    };
    // Twelve MiB go in six or seven parts; the second message does not get through.
    for point in [
        "store.between_parts:9",
        "store.after_parts:2",
        "journal.after_rotate:3",
    ] {
        let mut nodes = Nodes::prepare(1, false).await;
        drop(start(&mut nodes).await);
        tokio::task::block_in_place(|| nodes.terminate(1));
        nodes.start_with(1, &binary, &[("FERRYMQ_CRASH_AT", point)]);
        nodes.wait_up(1).await;
        let session = connect(&nodes).await;
        let mut acknowledged = Vec::new();
        for number in 1_u8..=9 {
            let data = vec![number; 12 * 1024 * 1024];
            match session.put(put_to("A", data), None).await {
                Ok(_) => acknowledged.push(number),
                Err(_) => break,
            }
        }
        tokio::task::block_in_place(|| nodes.wait_ended(1));
        assert!(!acknowledged.is_empty(), "{point}");
        let session = start(&mut nodes).await;
        let after = vec![99; 12 * 1024 * 1024];
        session.put(put_to("A", after), None).await.expect("put");
        acknowledged.push(99);
        let mut found = Vec::new();
        while let Some(got) = session.get(get_from("A"), None).await.expect("got") {
            assert_eq!(got.data.len(), 12 * 1024 * 1024, "{point}");
            assert!(got.data.iter().all(|b| *b == got.data[0]), "{point}");
            found.push(got.data[0]);
        }
        assert_eq!(found, acknowledged, "{point}");
    }
}
