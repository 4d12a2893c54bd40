//! Backups of a real node under load: made, verified, restored elsewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ferrymq_client::{Client, ClientError};
use ferrymq_tests::cluster::{Nodes, PATIENCE, binary};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::ReasonCode;

/// Pause between two looks at a state.
const LOOK: Duration = Duration::from_millis(20);

async fn start(nodes: &mut Nodes) {
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes.define(1, "ALTER QMGR MAXMSGL(16777216)").await;
    nodes
        .define(
            1,
            "DEFINE QLOCAL(A) MAXDEPTH(1000000) MAXMSGL(16777216) REPLACE",
        )
        .await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) REPLACE SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
}

fn backup(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(binary())
        .args(["backup", "-o", "json"])
        .args(arguments)
        .args(paths)
        .output()
        .expect("run ferrymq")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

async fn create(nodes: &Nodes, directory: &Path) -> Result<u64, ClientError> {
    let client = Client::connect(&nodes.administrator(1)).await?;
    let directory = directory.display().to_string();
    let made = client.admin().create_backup(&directory).await?;
    Ok(made.stores.first().expect("QM1").position)
}

fn number_of(data: &[u8]) -> u32 {
    u32::from_be_bytes(*data.first_chunk().expect("four bytes"))
}

/// Numbers of everything on the queue, in order.
async fn drain(nodes: &Nodes) -> Vec<u32> {
    let client = Client::connect(&nodes.application(1)).await;
    let session = client.expect("connected").session().await;
    let session = session.expect("a session");
    let mut numbers = Vec::new();
    while let Some(message) = session.get(get_from("A"), None).await.expect("got") {
        numbers.push(number_of(&message.data));
    }
    numbers
}

/// Puts numbered messages and gets every third, until it is told to stop. What was acknowledged so far can be seen.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    /// Numbers below are put.
    put: AtomicU32,
    /// Numbers below are got.
    got: AtomicU32,
    /// Microseconds that the slowest put took.
    slowest: AtomicU32,
}

impl Load {
    async fn run(&self, client: Client) {
        let session = client.session().await.expect("a session");
        for number in 0_u32.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let mut data = number.to_be_bytes().to_vec();
            // Some are in parts.
            data.resize(if number % 64 == 63 { 9 << 20 } else { 4096 }, 7);
            let begun = Instant::now();
            // A journal that is kept for a backup may be full for a while.
            while let Err(error) = session.put(put_to("A", data.clone()), None).await {
                assert_eq!(error.reason(), ReasonCode::STORAGE_MEDIUM_FULL);
                tokio::time::sleep(LOOK).await;
            }
            let took = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
            self.slowest.fetch_max(took, Ordering::Relaxed);
            self.put.store(number + 1, Ordering::Relaxed);
            if number % 3 == 0 {
                let got = session.get(get_from("A"), None).await.expect("got");
                let got = number_of(&got.expect("a message").data);
                self.got.store(got + 1, Ordering::Relaxed);
            }
        }
    }

    async fn wait_put(&self, number: u32) {
        let begun = Instant::now();
        while self.put.load(Ordering::Relaxed) < number {
            assert!(begun.elapsed() < PATIENCE, "puts do not go on");
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_under_load_has_what_was_acknowledged_before_and_nothing_twice() {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.set_storage(1, "segment = \"8MiB\"\njournal = \"64MiB\"\n");
    start(&mut nodes).await;
    let load = Arc::new(Load::default());
    let client = Client::connect(&nodes.application(1)).await;
    let client = client.expect("connected");
    let running = tokio::spawn({
        let load = load.clone();
        async move { load.run(client).await }
    });
    let elsewhere = tempfile::tempdir().expect("a directory");
    let mut backups = Vec::new();
    load.wait_put(200).await;
    eprintln!(
        "slowest put without: {} us",
        load.slowest.swap(0, Ordering::Relaxed)
    );
    for n in 0..3_u32 {
        let directory = elsewhere.path().join(format!("backup-{n}"));
        let put = load.put.load(Ordering::Relaxed);
        let position = create(&nodes, &directory).await.expect("a backup");
        // Gets are numbered like puts: what was got by then may or may not be in the backup.
        let got = load.got.load(Ordering::Relaxed);
        let later = load.put.load(Ordering::Relaxed);
        backups.push((directory, put, got, later, position));
        load.wait_put(later + 100).await;
    }
    eprintln!(
        "slowest put with backups: {} us",
        load.slowest.load(Ordering::Relaxed)
    );
    load.stop.store(true, Ordering::Relaxed);
    running.await.expect("the load");
    nodes.kill(1);
    std::fs::rename(nodes.data(1), elsewhere.path().join("data")).expect("move it away");

    for (directory, put, got, later, position) in backups {
        let verified = backup(&["verify"], &[&directory]);
        assert_eq!(verified.status.code(), Some(0), "{}", text(&verified));
        let said: serde_json::Value = serde_json::from_slice(&verified.stdout).expect("JSON");
        assert_eq!(said["stores"][0]["position"], position, "{said}");
        let restored = backup(&["restore"], &[&directory, &nodes.data(1)]);
        assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
        // Its definitions are there too.
        nodes.start(1);
        nodes.wait_up(1).await;
        let numbers = drain(&nodes).await;
        let unique: BTreeSet<u32> = numbers.iter().copied().collect();
        assert_eq!(unique.len(), numbers.len(), "some are twice: {numbers:?}");
        assert!(numbers.is_sorted());
        let missing: Vec<u32> = (got..put).filter(|n| !unique.contains(n)).collect();
        assert!(
            missing.is_empty(),
            "{missing:?} of {got}..{put} are missing"
        );
        // One may have been put that was not acknowledged yet when the backup was complete.
        assert!(
            numbers.last().is_none_or(|n| *n <= later),
            "{later} {numbers:?}"
        );
        assert!(numbers.len() > 50, "{numbers:?}");
        nodes.kill(1);
        std::fs::remove_dir_all(nodes.data(1)).expect("remove it");
    }
}

/// A small backup, and the directory that it is in.
async fn small(nodes: &mut Nodes) -> (tempfile::TempDir, PathBuf) {
    start(nodes).await;
    let client = Client::connect(&nodes.application(1)).await;
    let client = client.expect("connected");
    for n in 0..10_u32 {
        let put = put_to("A", n.to_be_bytes().to_vec());
        client.put(put).await.expect("put");
    }
    let elsewhere = tempfile::tempdir().expect("a directory");
    let directory = elsewhere.path().join("backup");
    create(nodes, &directory).await.expect("a backup");
    (elsewhere, directory)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_refused_where_something_is_and_restored_only_where_nothing_is() {
    let mut nodes = Nodes::prepare(1, false).await;
    let (elsewhere, directory) = small(&mut nodes).await;
    let again = create(&nodes, &directory).await.expect_err("it exists");
    assert!(again.to_string().contains("it exists"), "{again}");
    let relative = create(&nodes, Path::new("here"))
        .await
        .expect_err("relative");
    assert!(relative.to_string().contains("absolute"), "{relative}");
    // Not over the data of the node.
    let over = backup(&["restore"], &[&directory, &nodes.data(1)]);
    assert_eq!(over.status.code(), Some(2), "{}", text(&over));
    assert!(text(&over).contains("not empty"), "{}", text(&over));
    let nothing = backup(
        &["restore"],
        &[elsewhere.path(), &elsewhere.path().join("x")],
    );
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing));
    assert!(
        text(&nothing).contains("holds no backup"),
        "{}",
        text(&nothing)
    );
    let listed = backup(&["list"], &[elsewhere.path()]);
    let said: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed.status.code(), Some(0), "{said}");
    assert_eq!(said["directory"], directory.display().to_string());
    assert_eq!(said["stores"][0]["qmgr"], "QM1");
    assert!(
        said["bytes"].as_u64() > Some(0) && said["problem"].is_null(),
        "{said}"
    );
    let alone = backup(&["list"], &[&directory]);
    assert_eq!(alone.stdout, listed.stdout);
    let empty = tempfile::tempdir().expect("a directory");
    let none = backup(&["list"], &[empty.path()]);
    assert_eq!(none.status.code(), Some(4), "{}", text(&none));
    // One that did not end is none.
    std::fs::remove_file(directory.join("manifest.json")).expect("remove it");
    let unfinished = backup(&["verify"], &[&directory]);
    assert_eq!(unfinished.status.code(), Some(2), "{}", text(&unfinished));
    let listed = backup(&["list"], &[elsewhere.path()]);
    let said: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let problem = said["problem"].as_str().expect("a problem");
    assert!(problem.contains("written last"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_backup_is_named_file_by_file_and_not_restored() {
    let mut nodes = Nodes::prepare(1, false).await;
    let (elsewhere, directory) = small(&mut nodes).await;
    let journal = directory.join("qmgrs/QM1/journal");
    let segment = journal.join("segment-00000001.journal");
    let mut bytes = std::fs::read(&segment).expect("the segment");
    bytes[5000] ^= 1;
    std::fs::write(&segment, bytes).expect("write it");
    std::fs::remove_file(journal.join("guard.bin")).expect("remove it");
    std::fs::write(journal.join("more"), "x").expect("write it");
    let to = elsewhere.path().join("data");
    for output in [
        backup(&["verify"], &[&directory]),
        backup(&["restore"], &[&directory, &to]),
    ] {
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for word in [
            "segment-00000001.journal does not pass its checksum",
            "guard.bin is missing",
            "more is not in the manifest",
        ] {
            assert!(said.contains(word), "{said} should say {word}");
        }
    }
    assert!(!to.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_h4_a_restored_sender_is_behind_its_partner_and_its_channel_stops() {
    let mut nodes = Nodes::prepare(2, false).await;
    for number in [1, 2] {
        nodes.start(number);
        nodes.wait_up(number).await;
    }
    nodes.link(1, 2).await;
    let send = async |nodes: &Nodes, from: u32, to: u32| {
        let client = Client::connect(&nodes.application(1)).await;
        let client = client.expect("connected");
        for n in from..to {
            let put = put_to("OUT.2", n.to_be_bytes().to_vec());
            client.put(put).await.expect("put");
        }
    };
    let arrived = async |nodes: &Nodes, depth: &str| {
        let begun = Instant::now();
        // A batch that is not committed yet counts in the depth, and would be backed out when its sender is killed.
        let committed = [format!("CURDEPTH({depth})"), "UNCOM(NO)".to_owned()];
        loop {
            let status = nodes.define(2, "DISPLAY QSTATUS(IN) CURDEPTH UNCOM").await;
            if committed.iter().all(|said| status.contains(said.as_str())) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{depth} do not arrive");
            tokio::time::sleep(LOOK).await;
        }
    };
    send(&nodes, 0, 5).await;
    arrived(&nodes, "5").await;
    let elsewhere = tempfile::tempdir().expect("a directory");
    let directory = elsewhere.path().join("backup");
    create(&nodes, &directory).await.expect("a backup");
    send(&nodes, 5, 10).await;
    arrived(&nodes, "10").await;
    nodes.kill(1);
    std::fs::rename(nodes.data(1), elsewhere.path().join("data")).expect("move it away");
    let restored = backup(&["restore"], &[&directory, &nodes.data(1)]);
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    nodes.start(1);
    nodes.wait_up(1).await;
    send(&nodes, 10, 11).await;
    // The log of one of the two ends says so, and nothing more arrives.
    let begun = Instant::now();
    while !std::fs::read_to_string(nodes.log(1))
        .expect("the log")
        .contains("AMQ9526E")
    {
        assert!(begun.elapsed() < PATIENCE, "the channel does not notice");
        tokio::time::sleep(LOOK).await;
    }
    arrived(&nodes, "10").await;
}
