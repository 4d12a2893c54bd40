//! Non-persistent messages beyond the memory that they may take, on a real node.

use std::path::Path;
use std::time::{Duration, Instant};

use ferrymq_client::wire::{Persistence, PutRequest};
use ferrymq_client::{Client, ConnectOptions, Session};
use ferrymq_tests::cluster::{Nodes, PATIENCE, binary};
use ferrymq_tests::small_disk::SmallDisk;
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::ReasonCode;

/// Pause between two looks at a state.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes of a message.
const LENGTH: usize = 8 * 1024;

async fn start(nodes: &mut Nodes) -> Session {
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes
        .define(1, "DEFINE QLOCAL(A) MAXDEPTH(1000000) REPLACE")
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) REPLACE SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    // For all that a test does with it.
    let options = ConnectOptions {
        timeout: Some(4 * PATIENCE),
        ..nodes.application(1)
    };
    let client = Client::connect(&options).await;
    client
        .expect("connected")
        .session()
        .await
        .expect("a session")
}

fn message(number: u32) -> PutRequest {
    let mut data = number.to_be_bytes().to_vec();
    data.resize(LENGTH, u8::try_from(number % 251).expect("below 251"));
    let mut put = put_to("A", data);
    let descriptor = put.message.as_mut().and_then(|m| m.descriptor.as_mut());
    descriptor.expect("a descriptor").persistence = Persistence::NonPersistent.into();
    put
}

async fn put(session: &Session, numbers: std::ops::Range<u32>) -> Result<(), ReasonCode> {
    let mut answers = Vec::new();
    for number in numbers {
        let put = session.send_put(message(number), None).await;
        answers.push(put.expect("sent"));
    }
    for answer in answers {
        answer.wait().await.map_err(|error| error.reason())?;
    }
    Ok(())
}

async fn get(session: &Session, number: u32) {
    let got = session
        .get(get_from("A"), None)
        .await
        .unwrap_or_else(|error| panic!("{number}: {error}"));
    let data = got.expect("a message").data;
    assert_eq!(data[..4], number.to_be_bytes());
    assert_eq!(data.len(), LENGTH);
    assert!(data[4..].iter().all(|b| u32::from(*b) == number % 251));
}

async fn wait(state: impl Fn() -> bool) {
    let begun = Instant::now();
    while !state() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        tokio::time::sleep(LOOK).await;
    }
}

fn bytes_in(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let lengths = entries.map(|e| e.and_then(|e| e.metadata()).map_or(0, |m| m.len()));
    lengths.sum()
}

/// Resident bytes of node 1.
fn resident(nodes: &Nodes) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", nodes.process_id(1)));
    let status = status.expect("its status");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kibibytes = line.expect("VmRSS").trim().trim_end_matches(" kB");
    kibibytes.parse::<u64>().expect("a number") * 1024
}

/// The position of the journal of a node that does not run.
fn position(nodes: &Nodes) -> u64 {
    let output = std::process::Command::new(binary())
        .args(["store", "check", "-o", "json"])
        .arg(nodes.data(1).join("qmgrs/QM1"))
        .output()
        .expect("run ferrymq");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    said[0]["position"].as_u64().expect("a position")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u16_messages_beyond_memory_are_on_disk_in_order_and_gone_after_a_restart() {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.set_storage(1, "non_persistent_memory = \"4MiB\"\nspill = \"256MiB\"\n");
    let session = start(&mut nodes).await;
    let spill = nodes.data(1).join("qmgrs/QM1/spill");
    put(&session, 0..100).await.expect("put");
    assert_eq!(bytes_in(&spill), 0, "they fit in memory");
    let before = resident(&nodes);
    let begun = Instant::now();
    put(&session, 100..12_000).await.expect("put");
    let took = begun.elapsed();
    // What is on its way gets there.
    let all = 11_400 * LENGTH as u64;
    wait(|| bytes_in(&spill) > all).await;
    let grown = resident(&nodes).saturating_sub(before);
    let written = bytes_in(&spill);
    eprintln!(
        "11,900 puts of 8 KiB in {took:?}: {written} bytes on the disk, {grown} more in memory"
    );
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes more in memory");
    for number in 0..6_000 {
        get(&session, number).await;
    }
    // Under syncpoint too, given back and got again.
    let unit = session.begin(None).await.expect("begun");
    for _ in 0..100 {
        let got = session.get(get_from("A"), Some(unit)).await.expect("got");
        got.expect("a message");
    }
    session.back(unit).await.expect("backed out");
    for number in 6_000..12_000 {
        get(&session, number).await;
    }
    let left = session.get(get_from("A"), None).await.expect("got");
    assert!(left.is_none());
    // What is forgotten leaves the disk a moment later.
    wait(|| bytes_in(&spill) == 0).await;
    put(&session, 0..2_000).await.expect("put");
    wait(|| bytes_in(&spill) > 0).await;
    drop(session);
    nodes.kill(1);
    let journaled = position(&nodes);
    assert!(
        journaled < 50,
        "{journaled} write sets for no persistent message"
    );
    let session = start(&mut nodes).await;
    assert_eq!(bytes_in(&spill), 0, "a new run begins without them");
    let left = session.get(get_from("A"), None).await.expect("got");
    assert!(left.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_of_the_disk_puts_are_refused_with_2071_and_others_go_on() {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.set_storage(1, "non_persistent_memory = \"4MiB\"\nspill = \"32MiB\"\n");
    let session = start(&mut nodes).await;
    let mut puts = 0;
    let refusal = loop {
        match put(&session, puts..puts + 1).await {
            Ok(()) => puts += 1,
            Err(reason) => break reason,
        }
        assert!(puts < 20_000, "no limit");
    };
    assert_eq!(refusal, ReasonCode::STORAGE_NOT_AVAILABLE);
    assert!(puts > 4_000, "{puts} fitted");
    let log = std::fs::read_to_string(nodes.log(1)).expect("the log");
    assert!(log.contains("FMQ9015E"), "{log}");
    // Persistent messages are not concerned.
    session
        .put(put_to("A", b"last".to_vec()), None)
        .await
        .expect("put");
    for number in 0..puts {
        get(&session, number).await;
    }
    let last = session.get(get_from("A"), None).await.expect("got");
    assert_eq!(&last.expect("a message").data[..], b"last");
    put(&session, 0..1_000).await.expect("there is room again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s5_on_a_full_disk_puts_are_refused_with_2192_until_there_is_room() {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.set_storage(1, "non_persistent_memory = \"4MiB\"\nspill = \"1GiB\"\n");
    drop(start(&mut nodes).await);
    nodes.terminate(1);
    let spill = nodes.data(1).join("qmgrs/QM1/spill");
    let Some(disk) = SmallDisk::mount(spill.clone(), 24) else {
        return;
    };
    let session = start(&mut nodes).await;
    let mut puts = 0;
    let refusal = loop {
        match put(&session, puts..puts + 1).await {
            Ok(()) => puts += 1,
            Err(reason) => break reason,
        }
        assert!(puts < 20_000, "the disk does not fill");
    };
    assert_eq!(refusal, ReasonCode::STORAGE_MEDIUM_FULL);
    assert!(puts > 2_000, "{puts} fitted");
    // Persistent messages are on another disk, and what was taken is there.
    session
        .put(put_to("A", b"last".to_vec()), None)
        .await
        .expect("put");
    for number in 0..puts {
        get(&session, number).await;
    }
    let last = session.get(get_from("A"), None).await.expect("got");
    assert_eq!(&last.expect("a message").data[..], b"last");
    let begun = Instant::now();
    while let Err(reason) = put(&session, 0..1_000).await {
        assert_eq!(reason, ReasonCode::STORAGE_MEDIUM_FULL);
        assert!(begun.elapsed() < PATIENCE, "it does not recover");
        tokio::time::sleep(LOOK).await;
    }
    drop(session);
    nodes.kill(1);
    drop(disk);
}
