//! Real nodes: `ferrymq serve` processes with real certificates, real sockets and real disks, each on an address of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use ferrymq_client::{Client, ClientFiles, ConnectOptions, RevocationPolicy};
use ferrymq_tls::authority::{Authority, CertificatePaths, Validity, parse_subject};
use ferrymq_types::{ChannelName, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::chaos::namespace::Namespace;

/// How long a state may take to come, on a slow and busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whose turn it is: each test has several nodes, and they need the machine's few cores for themselves.
static TURN: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// Ports of this process, each used once.
static NEXT_PORT: AtomicU16 = AtomicU16::new(21_000);

/// An address of `127.0.0.0/8` that belongs to this process alone: its process id is in it.
fn address() -> IpAddr {
    let id = std::process::id();
    let [_, a, b, c] = id.to_be_bytes();
    // 127.0.0.x is everybody's.
    IpAddr::V4(Ipv4Addr::new(127, 64 | (a & 0x3f), b, c.max(1)))
}

fn port() -> u16 {
    NEXT_PORT.fetch_add(1, Ordering::Relaxed)
}

/// The executable under test: `FERRYMQ_BIN`, or `ferrymq` beside the test executable.
///
/// # Panics
/// If there is none: build it first.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("FERRYMQ_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let beside = test
        .parent()
        .and_then(Path::parent)
        .expect("target/debug/deps/test")
        .join("ferrymq");
    assert!(
        beside.exists(),
        "build the binary first, or set FERRYMQ_BIN: {}",
        beside.display()
    );
    beside
}

/// The executable with crash points, if `FERRYMQ_CRASH_POINTS_BIN` names it; a test without it says that it is skipped.
#[must_use]
pub fn crash_points_binary() -> Option<PathBuf> {
    let binary = std::env::var_os("FERRYMQ_CRASH_POINTS_BIN").map(PathBuf::from);
    if binary.is_none() {
        eprintln!(
            "SKIPPED: FERRYMQ_CRASH_POINTS_BIN names no binary with crash points; `cargo xtask test` makes one"
        );
    }
    binary
}

/// Certificates, configuration and processes of some nodes, in a directory of their own.
#[derive(Debug)]
pub struct Nodes {
    directory: tempfile::TempDir,
    nodes: Vec<Node>,
    _turn: OwnedMutexGuard<()>,
}

/// One node: `QM1` is on the first, `QM2` on the second, and so on.
#[derive(Debug)]
pub struct Node {
    number: usize,
    mq: SocketAddr,
    peer: SocketAddr,
    /// The host that it runs on, if not on this one.
    host: Option<Namespace>,
    child: Option<Child>,
}

impl Nodes {
    /// `count` nodes, once no other test of this process has any. `together`: as one cluster; else each is alone with its own definitions.
    ///
    /// # Panics
    /// If files cannot be written.
    #[must_use]
    pub async fn prepare(count: usize, together: bool) -> Self {
        Self::prepare_on((0..count).map(|_| None).collect(), together).await
    }

    /// As [`Nodes::prepare`], each node on a host of its own.
    ///
    /// # Panics
    /// If files cannot be written.
    #[must_use]
    pub async fn prepare_on(hosts: Vec<Option<Namespace>>, together: bool) -> Self {
        let turn = TURN.clone().lock_owned().await;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let nodes: Vec<Node> = (1..)
            .zip(hosts)
            .map(|(number, host)| {
                let ip = host.as_ref().map_or_else(address, |h| h.address().into());
                Node {
                    number,
                    mq: SocketAddr::new(ip, port()),
                    peer: SocketAddr::new(ip, port()),
                    host,
                    child: None,
                }
            })
            .collect();
        let this = Self {
            directory,
            nodes,
            _turn: turn,
        };
        this.write_certificates();
        this.write_configuration(together);
        this
    }

    fn write_certificates(&self) {
        let validity = Validity::days(wall_clock(), 2);
        let subject = |text: &str| parse_subject(text).expect("a subject");
        let ca =
            Authority::create(&subject("CN=Test authority,O=FerryMQ"), validity).expect("a CA");
        let ca_paths = self.certificate("ca");
        ca.write(&ca_paths).expect("write the CA");
        let authority = Authority::load(&ca_paths).expect("read the CA");
        for node in &self.nodes {
            let name = format!("QM{}", node.number);
            let dn = subject(&format!("CN={name},O=FerryMQ"));
            let hosts = [node.mq.ip().to_string()];
            let issued = authority
                .issue_server(&dn, &hosts, validity)
                .expect("a certificate");
            issued.write(&self.certificate(&name)).expect("write it");
        }
        for (name, dn) in [
            ("admin", "CN=admin,O=FerryMQ"),
            ("app", "CN=app,OU=Applications,O=FerryMQ"),
        ] {
            let issued = authority
                .issue_client(&subject(dn), validity)
                .expect("a certificate");
            issued.write(&self.certificate(name)).expect("write it");
        }
    }

    fn certificate(&self, name: &str) -> CertificatePaths {
        CertificatePaths::in_directory(self.directory.path(), name)
    }

    fn write_configuration(&self, together: bool) {
        let mut cluster = String::from(
            "[cluster]\nname = \"test\"\nelection_timeout = \"600ms\"\nheartbeat = \"100ms\"\n",
        );
        for node in self.nodes.iter().filter(|_| together) {
            let (number, peer) = (node.number, node.peer);
            cluster.push_str(&format!(
                "[[cluster.peers]]\nid = {number}\nname = \"n{number}\"\npeer = \"{peer}\"\nssl_peer = \"CN=QM{number},O=FerryMQ\"\n"
            ));
        }
        std::fs::write(self.directory.path().join("cluster.toml"), cluster).expect("write");
        for node in &self.nodes {
            let (number, mq, peer) = (node.number, node.mq, node.peer);
            let id = if together { number } else { 1 };
            let config = format!(
                "include = \"cluster.toml\"\n[node]\nname = \"n{number}\"\nid = {id}\ndata_dir = \"data{number}\"\nqmgrs = [\"QM{number}\"]\n\
                 [listen]\nmq = \"{mq}\"\npeer = \"{peer}\"\n[tls]\ncert = \"QM{number}.crt\"\nkey = \"QM{number}.key\"\nca = \"ca.crt\"\n\
                 [auth]\nadmin_peers = [\"CN=admin,O=FerryMQ\"]\n[storage]\nsegment = \"8MiB\"\njournal = \"64MiB\"\n"
            );
            std::fs::write(self.config(number), config).expect("write");
        }
    }

    fn config(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("n{number}.toml"))
    }

    /// Gives node `number` another `[storage]`, before its next start.
    ///
    /// # Panics
    /// If its configuration cannot be read or written.
    pub fn set_storage(&self, number: usize, lines: &str) {
        let path = self.config(number);
        let config = std::fs::read_to_string(&path).expect("read");
        let (before, _) = config.split_once("[storage]").expect("it has one");
        std::fs::write(path, format!("{before}[storage]\n{lines}")).expect("write");
    }

    /// The process id of node `number`.
    ///
    /// # Panics
    /// If it does not run.
    #[must_use]
    pub fn process_id(&self, number: usize) -> u32 {
        self.node(number)
            .child
            .as_ref()
            .expect("the node runs")
            .id()
    }

    /// Where node `number` keeps its data.
    #[must_use]
    pub fn data(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("data{number}"))
    }

    /// Where node `number` logs.
    #[must_use]
    pub fn log(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("n{number}.log"))
    }

    /// Where clients and channels of node `number` connect, as `CONNAME` has it.
    #[must_use]
    pub fn connection_name(&self, number: usize) -> String {
        let mq = self.node(number).mq;
        format!("{}({})", mq.ip(), mq.port())
    }

    fn node(&self, number: usize) -> &Node {
        &self.nodes[number - 1]
    }

    /// Starts node `number`, with more variables in its environment.
    ///
    /// # Panics
    /// If the process cannot be started.
    pub fn start_with(&mut self, number: usize, binary: &Path, environment: &[(&str, &str)]) {
        let open = || {
            let mut options = std::fs::OpenOptions::new();
            options
                .create(true)
                .append(true)
                .open(self.log(number))
                .expect("the log file")
        };
        let mut command = Command::new(binary);
        command
            .args(["serve", "--config"])
            .arg(self.config(number))
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(open())
            .stderr(open());
        let child = match &self.node(number).host {
            Some(host) => host.spawn(command),
            None => command.spawn(),
        };
        self.nodes[number - 1].child = Some(child.expect("start ferrymq serve"));
    }

    /// Starts node `number`.
    pub fn start(&mut self, number: usize) {
        self.start_with(number, &binary(), &[]);
    }

    /// Kills node `number` with signal 9.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&mut self, number: usize) {
        let mut child = self.nodes[number - 1].child.take().expect("the node runs");
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    /// Tells node `number` to stop, as a service manager does (SIGTERM), and waits until it has.
    ///
    /// # Panics
    /// If it does not run, or does not end well, or not in time.
    pub fn terminate(&mut self, number: usize) {
        self.signal(number, Signal::SIGTERM);
        let status = self.wait_ended(number);
        assert!(status.success(), "node {number} stopped badly: {status}");
    }

    /// Sends a signal to node `number`.
    ///
    /// # Panics
    /// If it does not run.
    pub fn signal(&self, number: usize, signal: Signal) {
        let child = self.node(number).child.as_ref().expect("the node runs");
        let id = i32::try_from(child.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("it is our child");
    }

    /// Waits until node `number` has ended by itself.
    ///
    /// # Panics
    /// If it does not, in time.
    pub fn wait_ended(&mut self, number: usize) -> std::process::ExitStatus {
        let start = Instant::now();
        let child = self.nodes[number - 1]
            .child
            .as_mut()
            .expect("the node runs");
        loop {
            if let Some(status) = child.try_wait().expect("wait") {
                self.nodes[number - 1].child = None;
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "node {number} did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether node `number` runs.
    ///
    /// # Panics
    /// If the operating system does not say.
    pub fn runs(&mut self, number: usize) -> bool {
        let child = self.nodes[number - 1].child.as_mut();
        child.is_some_and(|child| child.try_wait().expect("wait").is_none())
    }

    fn options(&self, number: usize, name: &str) -> ConnectOptions {
        let server = format!("https://{}", self.node(number).mq)
            .parse()
            .expect("an address");
        let paths = self.certificate(name);
        ConnectOptions {
            tls: Some(ClientFiles {
                certificate_and_key: Some((paths.certificate, paths.key)),
                authorities: self.certificate("ca").certificate,
                revocation_lists: Vec::new(),
                revocation: RevocationPolicy::default(),
            }),
            ..ConnectOptions::new(server)
        }
    }

    /// How an application connects to node `number`.
    ///
    /// # Panics
    /// Never: the names are good.
    #[must_use]
    pub fn application(&self, number: usize) -> ConnectOptions {
        ConnectOptions {
            channel: Some(ChannelName::new("APP.SVRCONN").expect("a name")),
            application: Some("test".into()),
            timeout: Some(Duration::from_secs(10)),
            ..self.options(number, "app")
        }
    }

    /// How an administrator connects to node `number`.
    #[must_use]
    pub fn administrator(&self, number: usize) -> ConnectOptions {
        ConnectOptions {
            timeout: Some(Duration::from_secs(20)),
            ..self.options(number, "admin")
        }
    }

    /// Runs one MQSC command of `QM<number>` on node `on`.
    ///
    /// # Errors
    /// The report, if the command was not done; what the connection said.
    pub async fn mqsc(&self, on: usize, number: usize, command: &str) -> Result<String, String> {
        let client = Client::connect(&self.administrator(on))
            .await
            .map_err(|error| error.to_string())?;
        let queue_manager = format!("QM{number}");
        let answer = client.admin().run_mqsc(&queue_manager, command).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let report = answer.lines.join("\n");
        if answer.completion_code == 0 {
            Ok(report)
        } else {
            Err(report)
        }
    }

    /// Runs a command that has to succeed on `QM<number>`.
    ///
    /// # Panics
    /// If it does not.
    pub async fn define(&self, number: usize, command: &str) -> String {
        match self.mqsc(number, number, command).await {
            Ok(report) => report,
            Err(report) => panic!("{command}: {report}"),
        }
    }

    /// An attribute that DISPLAY shows.
    pub async fn attribute(&self, number: usize, display: &str, keyword: &str) -> Option<String> {
        let report = self.mqsc(number, number, display).await.ok()?;
        let start = report.find(&format!(" {keyword}("))?;
        let value = report.get(start..)?.split_once('(')?.1;
        Some(value.split(')').next()?.trim().to_owned())
    }

    /// Waits until `QM<number>` answers.
    pub async fn wait_up(&mut self, number: usize) {
        let start = Instant::now();
        loop {
            if self.mqsc(number, number, "PING QMGR").await.is_ok() {
                return;
            }
            // The log is printed when the test fails.
            assert!(start.elapsed() < PATIENCE, "QM{number} does not answer");
            assert!(self.runs(number), "node {number} has ended");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Defines a channel from `QM<from>` to `QM<to>` with quick retries, its transmission queue, queue `IN` at the target and
    /// `OUT.<to>` that leads to it, and the channel of applications.
    pub async fn link(&self, from: usize, to: usize) {
        let name = format!("QM{from}.TO.QM{to}");
        for number in [from, to] {
            self.define(number, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) REPLACE SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
        }
        self.define(
            to,
            "DEFINE QLOCAL(IN) REPLACE DEFPSIST(YES) MAXDEPTH(1000000)",
        )
        .await;
        self.define(to, "DEFINE QLOCAL(DLQ) REPLACE MAXDEPTH(1000000)")
            .await;
        self.define(to, "ALTER QMGR DEADQ(DLQ)").await;
        self.define(to, &format!("DEFINE CHANNEL({name}) CHLTYPE(RCVR) REPLACE SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('CN=QM{from},O=FerryMQ')")).await;
        self.define(from, &format!("DEFINE QLOCAL(QM{to}) REPLACE USAGE(XMITQ) MAXDEPTH(1000000) TRIGGER TRIGDATA({name}) INITQ(SYSTEM.CHANNEL.INITQ)")).await;
        self.define(from, &format!("DEFINE QREMOTE(OUT.{to}) REPLACE RNAME(IN) RQMNAME(QM{to}) XMITQ(QM{to}) DEFPSIST(YES)")).await;
        self.define(from, &format!("DEFINE CHANNEL({name}) CHLTYPE(SDR) REPLACE CONNAME('{}') XMITQ(QM{to}) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('CN=QM{to},O=FerryMQ') SHORTTMR(1) SHORTRTY(100000)", self.connection_name(to))).await;
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut child) = node.child.take() {
                // A failure means that it has ended already.
                drop(child.kill());
                drop(child.wait());
            }
        }
        if std::thread::panicking() {
            for node in &self.nodes {
                let log = std::fs::read_to_string(self.log(node.number)).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(25).collect();
                eprintln!("--- last lines of node {}:", node.number);
                tail.iter().rev().for_each(|line| eprintln!("{line}"));
            }
        }
    }
}

/// The wall clock, for certificates.
///
/// # Panics
/// If the clock is before 1970.
#[must_use]
pub fn wall_clock() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since.expect("a clock after 1970").as_millis();
    Timestamp::from_millis(u64::try_from(ms).expect("a clock before the year 500 million"))
}
