//! What a real node does with a disk that is full or damaged, and what `ferrymq store check` says of it.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ferrymq_client::{Client, Session};
use ferrymq_tests::cluster::{Nodes, PATIENCE, binary, crash_points_binary};
use ferrymq_tests::small_disk::SmallDisk;
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::ReasonCode;

/// Pause between two looks at a state.
const LOOK: Duration = Duration::from_millis(20);

async fn started() -> Nodes {
    let mut nodes = Nodes::prepare(1, false).await;
    start(&mut nodes).await;
    nodes
}

async fn start(nodes: &mut Nodes) {
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes
        .define(1, "DEFINE QLOCAL(A) MAXDEPTH(1000000) REPLACE")
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) REPLACE SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
}

async fn client(nodes: &Nodes) -> Client {
    Client::connect(&nodes.application(1))
        .await
        .expect("connected")
}

async fn session(nodes: &Nodes) -> Session {
    client(nodes).await.session().await.expect("a session")
}

/// Puts `count` messages that are numbered from `first` on.
async fn put_numbers(nodes: &Nodes, first: u32, count: u32) {
    let client = client(nodes).await;
    for n in first..first + count {
        let put = put_to("A", n.to_be_bytes().to_vec());
        client.put(put).await.expect("put");
    }
}

/// Gets everything, and says what the first four bytes of each message number.
async fn drain(nodes: &Nodes) -> Vec<u32> {
    let client = client(nodes).await;
    let mut numbers = Vec::new();
    while let Some(message) = client.get(get_from("A")).await.expect("got") {
        let head = message.data.first_chunk().expect("four bytes");
        numbers.push(u32::from_be_bytes(*head));
    }
    numbers
}

fn store_check(directory: &Path) -> Output {
    Command::new(binary())
        .args(["store", "check", "-o", "json"])
        .arg(directory)
        .output()
        .expect("run ferrymq")
}

/// The one queue manager's part of what the examination says, and how it ends.
fn examined(nodes: &Nodes) -> (serde_json::Value, Option<i32>) {
    let output = store_check(&nodes.data(1));
    let text = String::from_utf8_lossy(&output.stdout);
    let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut stores = all.as_array().expect("a list").iter();
    let one = stores.find(|store| store["name"] == "QM1").expect("QM1");
    (one.clone(), output.status.code())
}

fn journal(nodes: &Nodes) -> PathBuf {
    nodes.data(1).join("qmgrs/QM1/journal")
}

/// The segment that was written last, and the length of its records.
fn newest_segment(nodes: &Nodes) -> PathBuf {
    let mut segments: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(journal(nodes))
        .expect("the journal")
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let modified = entry.metadata().ok()?.modified().ok()?;
            name.starts_with("segment-")
                .then(|| (modified, entry.path()))
        })
        .collect();
    segments.sort();
    segments.pop().expect("a segment").1
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The node is started and must end by itself; says what it logged.
fn refused(nodes: &mut Nodes) -> String {
    let before = std::fs::read_to_string(nodes.log(1))
        .unwrap_or_default()
        .len();
    nodes.start(1);
    let status = nodes.wait_ended(1);
    assert!(!status.success(), "it started");
    let log = std::fs::read_to_string(nodes.log(1)).expect("the log");
    log.get(before..).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_in_use_or_sound_is_said_to_be() {
    let mut nodes = started().await;
    put_numbers(&nodes, 0, 10).await;
    let output = store_check(&nodes.data(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("in use"), "{said}");
    nodes.kill(1);
    let (store, code) = examined(&nodes);
    assert_eq!((code, &store["opens"]), (Some(0), &true.into()), "{store}");
    assert!(store["position"].as_u64() >= Some(10), "{store}");
    assert_eq!(store["findings"], serde_json::json!([]));
    let nowhere = store_check(&nodes.data(1).join("nowhere"));
    assert_eq!(nowhere.status.code(), Some(2));
    // Looking has changed nothing.
    start(&mut nodes).await;
    assert_eq!(drain(&nodes).await, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s3_a_torn_tail_is_cut_off_and_nothing_acknowledged_with_it() {
    let mut nodes = started().await;
    put_numbers(&nodes, 0, 20).await;
    nodes.kill(1);
    // What a power cut leaves of a record that was being written: some of its bytes.
    let segment = newest_segment(&nodes);
    let bytes = std::fs::read(&segment).expect("the segment");
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    let behind = end.next_multiple_of(4096) as u64;
    let file = OpenOptions::new()
        .write(true)
        .open(&segment)
        .expect("open it");
    let torn: Vec<u8> = (0..253).cycle().take(5000).collect();
    file.write_all_at(&torn, behind).expect("write");
    let (store, code) = examined(&nodes);
    assert_eq!((code, &store["opens"]), (Some(0), &true.into()), "{store}");
    start(&mut nodes).await;
    assert_eq!(drain(&nodes).await, (0..20).collect::<Vec<_>>());
}

/// Puts numbered messages, each of several blocks, until the node is gone; says which were acknowledged and how the last one
/// failed.
async fn put_until_the_end(nodes: &Nodes) -> (Vec<u32>, ReasonCode) {
    let session = session(nodes).await;
    let begun = Instant::now();
    for number in 0_u32.. {
        let mut data = number.to_be_bytes().to_vec();
        data.resize(20_000, 7);
        match session.put(put_to("A", data), None).await {
            Ok(_) => {}
            Err(error) => return ((0..number).collect(), error.reason()),
        }
        assert!(begun.elapsed() < PATIENCE, "the node does not end");
    }
    unreachable!("no number of puts is enough");
}

/// The node was stopped in good order and starts anew, with something in its environment that ends it.
async fn start_to_end(nodes: &mut Nodes, binary: &Path, variable: (&str, &str)) {
    tokio::task::block_in_place(|| nodes.terminate(1));
    nodes.start_with(1, binary, &[variable]);
    nodes.wait_up(1).await;
}

/// Where the last record of a segment begins, and how long the segment is.
fn last_record(segment: &Path) -> (u64, u64) {
    let bytes = std::fs::read(segment).expect("the segment");
    let at = bytes
        .chunks(4096)
        .rposition(|block| block.get(16..18) == Some(b"FM"));
    let at = at.expect("a record") * 4096;
    (at as u64, bytes.len() as u64)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s3_a_record_that_was_torn_in_itself_is_cut_off() {
    let Some(binary) = crash_points_binary() else {
        return;
    };
    // Bytes of the last record that reached the disk: its first block, most of it, a part of its header.
    for kept in [4096, 16_384, 40] {
        let mut nodes = started().await;
        let crash = ("FERRYMQ_CRASH_AT", "journal.after_write:40");
        start_to_end(&mut nodes, &binary, crash).await;
        let (acknowledged, _) = put_until_the_end(&nodes).await;
        tokio::task::block_in_place(|| nodes.wait_ended(1));
        assert!(acknowledged.len() > 5, "{acknowledged:?}");
        let segment = newest_segment(&nodes);
        let (record, end) = last_record(&segment);
        let file = OpenOptions::new().write(true).open(&segment);
        let file = file.expect("open it");
        file.set_len(record + kept).expect("tear it");
        file.set_len(end).expect("zeros where it was torn");
        let (store, code) = examined(&nodes);
        assert_eq!((code, &store["opens"]), (Some(0), &true.into()), "{store}");
        if kept >= 4096 {
            let torn = store["torn_tail"].as_str().unwrap_or_default();
            assert!(torn.ends_with(&format!("at byte {record}")), "{store}");
        }
        start(&mut nodes).await;
        assert_eq!(drain(&nodes).await, acknowledged, "{kept} bytes kept");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s2_a_failed_sync_stops_the_queue_manager_at_once_and_is_not_tried_again() {
    let Some(binary) = crash_points_binary() else {
        return;
    };
    for (fault, said) in [
        ("journal.sync:40", "sync a segment of"),
        ("journal.guard_sync:6", "guard.bin"),
    ] {
        let mut nodes = started().await;
        start_to_end(&mut nodes, &binary, ("FERRYMQ_FAIL_AT", fault)).await;
        let before = std::fs::read_to_string(nodes.log(1)).expect("the log");
        let (acknowledged, reason) = put_until_the_end(&nodes).await;
        // The put that waited for the sync is in doubt, or its connection ended first.
        let in_doubt = [ReasonCode::IN_DOUBT, ReasonCode::CONNECTION_BROKEN];
        assert!(in_doubt.contains(&reason), "{fault}: {reason}");
        let status = tokio::task::block_in_place(|| nodes.wait_ended(1));
        assert_eq!(status.code(), Some(1), "{fault}");
        let log = std::fs::read_to_string(nodes.log(1)).expect("the log");
        let log = log.get(before.len()..).unwrap_or_default();
        let stops: Vec<&str> = log.lines().filter(|l| l.contains("FMQ9010S")).collect();
        let [stop] = stops[..] else {
            panic!("{fault}: it stops once, and says so: {log}");
        };
        assert!(stop.contains(said), "{fault}: {stop}");
        assert!(stop.contains("os error 5"), "{fault}: {stop}");
        eprintln!("{stop}");
        // What was acknowledged is there; the last put may be.
        start(&mut nodes).await;
        let mut found = drain(&nodes).await;
        if found.len() > acknowledged.len() {
            let in_doubt = u32::try_from(acknowledged.len()).expect("few");
            assert_eq!(found.pop(), Some(in_doubt), "{fault}");
        }
        assert_eq!(found, acknowledged, "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s4_damage_is_refused_at_start_and_named_by_the_examination() {
    type Damage = fn(&Nodes);
    let damages: [(&str, Damage); 3] = [
        ("a flipped byte", |nodes| {
            let segment = newest_segment(nodes);
            let bytes = std::fs::read(&segment).expect("the segment");
            let at = find(&bytes, b"MARK-5-KRAM").expect("an acknowledged message") as u64;
            let file = OpenOptions::new()
                .write(true)
                .open(&segment)
                .expect("open it");
            file.write_all_at(b"X", at + 2).expect("write");
        }),
        ("a missing segment", |nodes| {
            std::fs::remove_file(newest_segment(nodes)).expect("remove it");
        }),
        ("a shorter segment", |nodes| {
            let file = OpenOptions::new().write(true).open(newest_segment(nodes));
            file.expect("open it").set_len(4096).expect("cut it");
        }),
    ];
    for (what, damage) in damages {
        let mut nodes = started().await;
        let client = client(&nodes).await;
        for n in 0..20 {
            let put = put_to("A", format!("MARK-{n}-KRAM").into_bytes());
            client.put(put).await.expect("put");
        }
        drop(client);
        // A stop in good order: the guard names everything that was acknowledged.
        tokio::task::block_in_place(|| nodes.terminate(1));
        damage(&nodes);
        let (store, code) = examined(&nodes);
        assert_eq!(
            (code, &store["opens"]),
            (Some(1), &false.into()),
            "{what}: {store}"
        );
        let finding = &store["findings"][0];
        let named = finding["file"].as_str().unwrap_or_default();
        assert!(named.contains("journal"), "{what}: {store}");
        let log = refused(&mut nodes);
        let file = Path::new(named)
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        assert!(log.contains(&file), "{what}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s4_a_store_without_its_journal_is_no_new_one() {
    let losses: [(&str, &str, &str); 3] = [
        ("QM1", "qmgrs/QM1/journal", "journal"),
        ("definitions", "metadata/log", "log"),
        ("definitions", "metadata/state/CURRENT", "state"),
    ];
    for (store, lost, named) in losses {
        let mut nodes = started().await;
        put_numbers(&nodes, 0, 5).await;
        nodes.kill(1);
        let path = nodes.data(1).join(lost);
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::write(&path, "MANIFEST-999999\n")
        };
        removed.expect("lose it");
        let output = store_check(&nodes.data(1));
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{lost}: {text}");
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let stores = all.as_array().expect("a list");
        assert_eq!(stores.len(), 2, "the other one is examined too: {text}");
        let damaged = stores.iter().find(|s| s["name"] == store).expect("named");
        assert_eq!(damaged["opens"], serde_json::json!(false), "{lost}: {text}");
        let finding = damaged["findings"][0]["file"].as_str().unwrap_or_default();
        assert!(finding.contains(named), "{lost}: {text}");
        let log = refused(&mut nodes);
        assert!(log.contains(named), "{lost}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s4_a_queue_manager_whose_directory_is_gone_is_no_new_one() {
    let mut nodes = started().await;
    put_numbers(&nodes, 0, 5).await;
    nodes.kill(1);
    let directory = nodes.data(1).join("qmgrs/QM1");
    std::fs::remove_dir_all(&directory).expect("lose it");
    let (store, code) = examined(&nodes);
    assert_eq!((code, &store["opens"]), (Some(1), &false.into()), "{store}");
    let log = refused(&mut nodes);
    assert!(log.contains("qmgrs/QM1 is damaged"), "{log}");
    assert!(log.contains("known-stores"), "{log}");
    assert!(!directory.exists(), "nothing was made in its place");
    // The way out that it names.
    std::fs::write(nodes.data(1).join("known-stores"), "").expect("remove the line");
    start(&mut nodes).await;
    assert!(drain(&nodes).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_s5_a_full_disk_refuses_puts_serves_gets_and_recovers_by_itself() {
    let mut nodes = Nodes::prepare(1, false).await;
    let Some(disk) = SmallDisk::mount(nodes.data(1), 160) else {
        return;
    };
    start(&mut nodes).await;
    let session = session(&nodes).await;
    put_numbers(&nodes, 0, 5).await;
    let filler = disk.fill();
    // Puts go on until what is there already is used up; those that are under way then wait, later ones are refused.
    let mut next: u32 = 5;
    let mut acknowledged: VecDeque<u32> = (0..5).collect();
    let mut waiting = Vec::new();
    let begun = Instant::now();
    let refusal = loop {
        let mut data = next.to_be_bytes().to_vec();
        data.resize(256 * 1024, 7);
        let answer = session
            .send_put(put_to("A", data), None)
            .await
            .expect("sent");
        let mut answer = tokio::spawn(answer.wait());
        match tokio::time::timeout(Duration::from_secs(1), &mut answer).await {
            Ok(answered) => match answered.expect("no panic") {
                Ok(_) => acknowledged.push_back(next),
                Err(error) => break error,
            },
            Err(_) => waiting.push((next, answer)),
        }
        next += 1;
        assert!(begun.elapsed() < PATIENCE, "the disk does not fill");
    };
    assert_eq!(refusal.reason(), ReasonCode::STORAGE_MEDIUM_FULL);
    // Gets and commits go on.
    let unit = session.begin(None).await.expect("begun");
    let got = session.get(get_from("A"), Some(unit)).await.expect("got");
    assert_eq!(got.expect("a message").data[..4], 0_u32.to_be_bytes());
    session.commit(unit).await.expect("committed");
    acknowledged.pop_front();
    let log = std::fs::read_to_string(nodes.log(1)).expect("the log");
    assert!(log.contains("FMQ9014E"), "{log}");
    std::fs::remove_file(filler).expect("make room");
    let begun = Instant::now();
    loop {
        let put = put_to("A", next.to_be_bytes().to_vec());
        match session.put(put, None).await {
            Ok(_) => break,
            Err(error) => assert_eq!(error.reason(), ReasonCode::STORAGE_MEDIUM_FULL),
        }
        assert!(begun.elapsed() < PATIENCE, "it does not recover");
        tokio::time::sleep(LOOK).await;
    }
    for (number, answer) in waiting {
        answer
            .await
            .expect("no panic")
            .expect("put when there was room");
        acknowledged.push_back(number);
    }
    acknowledged.push_back(next);
    // Nothing is lost or repeated, after a crash either.
    nodes.kill(1);
    start(&mut nodes).await;
    assert_eq!(drain(&nodes).await, Vec::from(acknowledged));
}
