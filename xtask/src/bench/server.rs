//! A server under load, and what one load on it came to.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Ticks a second of `/proc/PID/stat`, the same on every Linux.
const TICKS: f64 = 100.0;

/// How long a server may take to start.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// What one load came to.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) rate: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) client_us: f64,
    pub(super) server_us: f64,
}

/// A server under load.
pub(super) struct Server {
    binary: PathBuf,
    child: Child,
    /// Options by which the command line reaches it.
    reach: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// Starts `binary` with `arguments` and reads from its first line where it listens.
    pub(super) fn start(
        binary: &Path,
        home: &Path,
        arguments: &[&str],
        tls: Option<&Tls>,
    ) -> Result<Self, String> {
        let mut child = Command::new(binary)
            .args(arguments)
            .env("XDG_CONFIG_HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("start {}: {e}", binary.display()))?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut lines = BufReader::new(stdout);
        let mut first = String::new();
        let read = lines.read_line(&mut first);
        read.map_err(|e| format!("read where it listens: {e}"))?;
        // The rest is read so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let address = first.split_whitespace().last().unwrap_or_default();
        let server = Self {
            binary: binary.to_owned(),
            reach: tls.map_or_else(
                || vec!["--url".to_owned(), format!("http://{address}")],
                |tls| tls.reach(address),
            ),
            child,
        };
        if address.contains(':') {
            Ok(server)
        } else {
            Err(format!(
                "{arguments:?} said {first:?} instead of an address"
            ))
        }
    }

    pub(super) fn mqsc(&self, script: &str) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let mut child = self
                .command(&["mqsc", "QM1"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|e| e.to_string())?;
            if let Some(stdin) = &mut child.stdin {
                // A script that is not read is seen by the exit status.
                drop(stdin.write_all(script.as_bytes()));
            }
            drop(child.stdin.take());
            let output = child.wait_with_output().map_err(|e| e.to_string())?;
            if output.status.success() {
                return Ok(());
            }
            if Instant::now() > end {
                let said = String::from_utf8_lossy(&output.stdout);
                return Err(format!("mqsc failed: {said}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(&self.reach).args(arguments);
        command
    }

    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Ends it as a power cut would.
    pub(super) fn kill(&mut self) {
        // A failure means that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// User and system time so far, in seconds.
    fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks = after_name.split_whitespace().skip(11).take(2);
        ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / TICKS
    }

    /// Resident memory in bytes.
    pub(super) fn resident(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kib = line.and_then(|l| l.split_whitespace().next());
        kib.and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
    }

    pub(super) fn bench(
        &self,
        queue: &str,
        messages: u64,
        arguments: &[&str],
    ) -> Result<Sample, String> {
        let before = self.cpu();
        let messages = messages.max(10).to_string();
        let (verb, options) = arguments.split_first().ok_or("no workload")?;
        let output = self
            .command(&[
                "-o",
                "json",
                "bench",
                verb,
                "--queue",
                queue,
                "--messages",
                &messages,
            ])
            .args(options)
            .output()
            .map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{arguments:?}: {text}{why}"));
        }
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("{text}: {e}"))?;
        let number = |v: &Value| v.as_f64().unwrap_or(0.0);
        let count = number(&report["messages"]).max(1.0);
        Ok(Sample {
            rate: number(&report["rate"]),
            p50: number(&report["latency_us"]["p50"]),
            p99: number(&report["latency_us"]["p99"]),
            client_us: number(&report["cpu_us_per_message"]),
            server_us: (self.cpu() - before) / count * 1e6,
        })
    }
}

/// Certificates and configuration of servers with mutual TLS.
pub(super) struct Tls {
    directory: PathBuf,
}

/// The beginning of the configuration of a node, up to where it listens; everything else is as it comes.
fn node(data: &str) -> String {
    format!(
        "[cluster]\nname = \"bench\"\n[node]\nname = \"n1\"\nid = 1\ndata_dir = \"{data}\"\nqmgrs = [\"QM1\"]\n\
         [listen]\nmq = \"127.0.0.1:0\"\n"
    )
}

/// Writes the configuration of a node that listens without TLS, and returns where it is.
pub(super) fn plain(directory: &Path) -> Result<String, String> {
    let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let config = path("plain.toml");
    fs::write(&config, node(&path("data"))).map_err(|e| format!("{config}: {e}"))?;
    Ok(config)
}

impl Tls {
    /// Issues the certificates and writes the configuration of a node.
    pub(super) fn prepare(binary: &Path, directory: &Path) -> Result<Self, String> {
        let tls = Self {
            directory: directory.to_owned(),
        };
        let text = |name: &str| tls.path(name);
        let (dir, server, client) = (text(""), text("QM1"), text("admin"));
        let issue: [&[&str]; 3] = [
            &["ca", "CN=Bench authority,O=FerryMQ", "--dir", &dir],
            &[
                "server",
                "CN=QM1,O=FerryMQ",
                "--dir",
                &dir,
                "--out",
                &server,
                "--san",
                "127.0.0.1",
            ],
            &[
                "client",
                "CN=admin,O=FerryMQ",
                "--dir",
                &dir,
                "--out",
                &client,
            ],
        ];
        for arguments in issue {
            let output = Command::new(binary).arg("cert").args(arguments).output();
            let output = output.map_err(|e| format!("issue a certificate: {e}"))?;
            if !output.status.success() {
                let why = String::from_utf8_lossy(&output.stderr);
                return Err(format!("issue a certificate: {why}"));
            }
        }
        let config = format!(
            "{}peer = \"127.0.0.1:0\"\n[tls]\ncert = \"QM1.crt\"\nkey = \"QM1.key\"\nca = \"ca.crt\"\n\
             [auth]\nadmin_peers = [\"CN=admin,O=FerryMQ\"]\n",
            node(&text("tls-data"))
        );
        fs::write(tls.config(), config).map_err(|e| format!("{}: {e}", tls.config()))?;
        Ok(tls)
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }

    pub(super) fn config(&self) -> String {
        self.path("tls.toml")
    }

    /// Options of a server or a client with that certificate.
    pub(super) fn certificate(&self, name: &str) -> [String; 6] {
        let (cert, key) = (format!("{name}.crt"), format!("{name}.key"));
        [
            "--cert".to_owned(),
            self.path(&cert),
            "--key".to_owned(),
            self.path(&key),
            "--ca".to_owned(),
            self.path("ca.crt"),
        ]
    }

    fn reach(&self, address: &str) -> Vec<String> {
        let mut options = vec!["--url".to_owned(), format!("https://{address}")];
        options.extend(self.certificate("admin"));
        // What the floor does not look at.
        options.extend(["--channel".to_owned(), CHANNEL.to_owned()]);
        options
    }
}

/// The channel by which a load with TLS comes in.
const CHANNEL: &str = "BENCH.SVRCONN";

/// Defines it; an operator needs none.
pub(super) fn channel() -> String {
    format!(
        "DEFINE CHANNEL({CHANNEL}) CHLTYPE(SVRCONN) REPLACE SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('CN=admin,O=FerryMQ')\n"
    )
}
