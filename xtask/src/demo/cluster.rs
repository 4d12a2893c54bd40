//! Three nodes as processes, with certificates of their own and the configuration that the repository ships.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a state may take to come, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at a state.
const LOOK: Duration = Duration::from_millis(100);

/// The nodes and how to talk to them.
#[derive(Debug)]
pub(crate) struct Cluster {
    binary: PathBuf,
    directory: PathBuf,
    nodes: [Option<Child>; 3],
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in self.nodes.iter_mut().flatten() {
            // A failure means that it has ended already.
            drop(node.kill());
            drop(node.wait());
        }
    }
}

impl Cluster {
    /// Makes certificates and configuration in a new directory, starts the nodes and waits until they are a cluster.
    pub(crate) fn start(binary: &Path) -> Result<Self, String> {
        let directory = std::env::temp_dir().join(format!("ferrymq-demo-{}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        println!("The demo's files are in {}", directory.display());
        let cluster = Self {
            binary: binary.to_owned(),
            directory,
            nodes: [None, None, None],
        };
        cluster.certificates()?;
        cluster.configuration()?;
        let mut cluster = cluster;
        for number in 1..=3 {
            cluster.start_node(number)?;
        }
        cluster.wait("three nodes with a leader", || {
            let members = cluster
                .json(&["--context", "admin1", "cluster", "members"])
                .ok()?;
            let members = members.first()?;
            let up = members["members"].as_array()?.iter();
            let all = up
                .filter(|m| m["role"] != "unreachable" && has_queue_manager(m))
                .count()
                == 3;
            (all && members["quorum"] == true).then_some(())
        })?;
        // A queue manager is defined before it runs: each of them has to answer.
        for number in 1..=3 {
            cluster.wait_node(number)?;
        }
        cluster.show(&["--context", "admin1", "cluster", "members"])?;
        Ok(cluster)
    }

    fn certificates(&self) -> Result<(), String> {
        println!("\n=== Certificates\n");
        let directory = self.path("certs");
        fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
        let directory = text(&directory);
        self.show(&[
            "cert",
            "ca",
            "CN=Demo authority,O=FerryMQ",
            "--dir",
            &directory,
        ])?;
        for number in 1..=3 {
            let (dn, out) = (
                format!("CN=QM{number},O=FerryMQ"),
                format!("{directory}/QM{number}"),
            );
            self.show(&[
                "cert",
                "server",
                &dn,
                "--dir",
                &directory,
                "--out",
                &out,
                "--san",
                "127.0.0.1",
            ])?;
        }
        for (dn, name) in [
            ("CN=admin,O=FerryMQ", "admin"),
            ("CN=orders,OU=Applications,O=FerryMQ", "orders"),
        ] {
            let out = format!("{directory}/{name}");
            self.show(&["cert", "client", dn, "--dir", &directory, "--out", &out])?;
        }
        Ok(())
    }

    /// The files of `cluster-config/`, with free ports in place of the usual ones, and a context for each way to connect.
    fn configuration(&self) -> Result<(), String> {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster-config");
        let ports = free_ports()?;
        let usual = [1414_u16, 1415, 1416, 9414, 9415, 9416];
        let entries = fs::read_dir(&shipped).map_err(|e| format!("{}: {e}", shipped.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            let extension = path
                .extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default();
            if !["toml", "mqsc"].contains(&extension) {
                continue;
            }
            let mut config = fs::read_to_string(&path).map_err(|e| e.to_string())?;
            for (from, to) in usual.iter().zip(ports) {
                config = config.replace(&format!("127.0.0.1:{from}"), &format!("127.0.0.1:{to}"));
                config = config.replace(&format!("127.0.0.1({from})"), &format!("127.0.0.1({to})"));
            }
            let name = path.file_name().unwrap_or_default();
            fs::write(self.directory.join(name), config).map_err(|e| e.to_string())?;
        }
        let contexts = self.path("config/ferrymq/contexts");
        fs::create_dir_all(&contexts).map_err(|e| e.to_string())?;
        for (number, port) in (1..=3).zip(ports) {
            for (name, certificate, channel) in [
                (format!("admin{number}"), "admin", ""),
                (
                    format!("app{number}"),
                    "orders",
                    "channel = \"APP.SVRCONN\"\n",
                ),
            ] {
                let certs = text(&self.path("certs"));
                let context = format!(
                    "url = \"https://127.0.0.1:{port}\"\nqmgr = \"QM{number}\"\n{channel}ca = \"{certs}/ca.crt\"\ncert = \"{certs}/{certificate}.crt\"\nkey = \"{certs}/{certificate}.key\"\n"
                );
                write_private(&contexts.join(format!("{name}.toml")), &context)?;
            }
        }
        Ok(())
    }

    /// Starts node `number` and goes on; it is up when it answers.
    pub(crate) fn start_node(&mut self, number: usize) -> Result<(), String> {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_file(number))
            .map_err(|e| e.to_string())?;
        let out = log.try_clone().map_err(|e| e.to_string())?;
        let config = text(&self.path(&format!("qm{number}.toml")));
        println!("$ ferrymq serve --config {config} &");
        let child = self
            .command(&["serve", "--config", &config])
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .spawn()
            .map_err(|e| format!("{}: {e}", self.binary.display()))?;
        let slot = self
            .nodes
            .get_mut(number.wrapping_sub(1))
            .ok_or("there are three nodes")?;
        *slot = Some(child);
        Ok(())
    }

    /// Kills node `number` with signal 9.
    pub(crate) fn kill_node(&mut self, number: usize) -> Result<(), String> {
        let slot = self.nodes.get_mut(number.wrapping_sub(1));
        let mut node = slot
            .and_then(Option::take)
            .ok_or("that node does not run")?;
        println!("$ kill -9 {}    # QM{number}", node.id());
        node.kill().map_err(|e| e.to_string())?;
        node.wait().map_err(|e| e.to_string())?;
        Ok(())
    }

    /// Waits until the queue manager of node `number` answers.
    pub(crate) fn wait_node(&self, number: usize) -> Result<(), String> {
        let context = format!("admin{number}");
        self.wait(&format!("QM{number} answers"), || {
            let answer = self.run(&["--context", &context, "mqsc", "-e", "PING QMGR"], None);
            answer.is_ok().then_some(())
        })
    }

    /// Where node `number` logs.
    pub(crate) fn log_file(&self, number: usize) -> PathBuf {
        self.path(&format!("node{number}.log"))
    }

    /// A file of the demo.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env_remove("FERRYMQ_URL")
            .env_remove("FERRYMQ_CONTEXT");
        command
    }

    /// Starts a command that reads `input` and goes on beside the demo.
    pub(crate) fn spawn(&self, arguments: &[&str], input: &Path) -> Result<Child, String> {
        println!("$ ferrymq {} < {} &", quote(arguments), input.display());
        let input = fs::File::open(input).map_err(|e| e.to_string())?;
        self.command(arguments)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())
    }

    /// Runs a command quietly; its output, or what went wrong.
    pub(crate) fn run(&self, arguments: &[&str], input: Option<&str>) -> Result<String, String> {
        let mut child = self
            .command(arguments)
            .stdin(if input.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", self.binary.display()))?;
        let writer = child.stdin.take().zip(input).map(|(mut stdin, input)| {
            let input = input.to_owned();
            std::thread::spawn(move || stdin.write_all(input.as_bytes()))
        });
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        if let Some(writer) = writer {
            match writer.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(format!("write to ferrymq: {error}")),
                Err(_) => return Err("the writer panicked".to_owned()),
            }
        }
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "{stdout}{stderr}ferrymq {} ended with {}",
            quote(arguments),
            output.status
        ))
    }

    /// Runs a command and prints it with what came back.
    pub(crate) fn show(&self, arguments: &[&str]) -> Result<String, String> {
        println!("$ ferrymq {}", quote(arguments));
        let output = self.run(arguments, None);
        let printed = output.as_ref().map_or_else(Clone::clone, Clone::clone);
        for line in printed.lines().take(40) {
            println!("  {line}");
        }
        output
    }

    /// Runs a command with JSON output, a document per line or one in all.
    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Vec<Value>, String> {
        let arguments = [&["-o", "ndjson"], arguments].concat();
        let output = self.run(&arguments, None)?;
        serde_json::Deserializer::from_str(&output)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|e| format!("{e} in {output}"))
    }

    /// Looks until `found` gives something.
    pub(crate) fn wait<T>(
        &self,
        what: &str,
        mut found: impl FnMut() -> Option<T>,
    ) -> Result<T, String> {
        let start = Instant::now();
        loop {
            if let Some(found) = found() {
                return Ok(found);
            }
            if start.elapsed() > PATIENCE {
                let directory = self.directory.display();
                return Err(format!(
                    "waited {PATIENCE:?} for {what}; the logs are in {directory}"
                ));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// An attribute that DISPLAY shows, of the first object that it finds.
    pub(crate) fn attribute(&self, context: &str, display: &str, keyword: &str) -> Option<String> {
        let output = self.run(&["--context", context, "mqsc", "-e", display], None);
        // What is not found, and a node that does not answer, have no attributes.
        let output = output.unwrap_or_default();
        let start = output.find(&format!(" {keyword}("))?;
        let value = output.get(start..)?.split_once('(')?.1;
        Some(value.split(')').next()?.trim().to_owned())
    }

    /// Leaves the nodes running and says how to talk to them.
    pub(crate) fn keep(&mut self) {
        let pids: Vec<String> = self
            .nodes
            .iter()
            .flatten()
            .map(|node| node.id().to_string())
            .collect();
        self.nodes = [const { None }; 3];
        println!("\nThe cluster goes on. Talk to it:\n");
        println!("  export XDG_CONFIG_HOME={}", self.path("config").display());
        println!("  alias ferrymq={}", self.binary.display());
        println!("  ferrymq --context app1 put ORDERS.QM2 'hello'");
        println!("  ferrymq --context app2 get ORDERS");
        println!("  ferrymq --context admin1 mqsc");
        println!("\nEnd it:  kill {}", pids.join(" "));
    }

    /// Ends the nodes in good order. The files stay if something failed.
    pub(crate) fn stop(&mut self, failed: bool) -> Result<(), String> {
        for node in self.nodes.iter().flatten() {
            let pid = node.id().to_string();
            let status = Command::new("kill").args(["-TERM", &pid]).status();
            status.map_err(|e| format!("kill: {e}"))?;
        }
        for node in &mut self.nodes {
            if let Some(mut node) = node.take() {
                let status = node.wait().map_err(|e| e.to_string())?;
                if !status.success() {
                    return Err(format!("a node ended with {status}"));
                }
            }
        }
        if failed {
            println!("\nThe logs are in {}", self.directory.display());
            return Ok(());
        }
        fs::remove_dir_all(&self.directory).map_err(|e| e.to_string())
    }
}

fn has_queue_manager(member: &Value) -> bool {
    member["qmgrs"]
        .as_array()
        .is_some_and(|names| !names.is_empty())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Arguments as one would type them.
fn quote(arguments: &[&str]) -> String {
    let plain = |a: &&str| {
        a.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:=@,".contains(c))
            && !a.is_empty()
    };
    let quoted: Vec<String> = arguments
        .iter()
        .map(|a| {
            if plain(a) {
                (*a).to_owned()
            } else {
                format!("'{}'", a.replace('\'', "'\\''"))
            }
        })
        .collect();
    quoted.join(" ")
}

/// Ports that were free just now: three for clients and channels, three for Raft.
fn free_ports() -> Result<[u16; 6], String> {
    // All six are held at once, so that none comes twice.
    let listeners: Vec<TcpListener> = (0..6)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    let mut ports = [0; 6];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().map_err(|e| e.to_string())?.port();
    }
    Ok(ports)
}

/// Writes a file that only its owner reads.
fn write_private(path: &Path, contents: &str) -> Result<(), String> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options
        .open(path)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    file.write_all(contents.as_bytes())
        .map_err(|e| e.to_string())
}
