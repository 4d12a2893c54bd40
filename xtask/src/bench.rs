//! `cargo xtask bench`: one table of how fast FerryMQ is, beside what wire and disk allow on this machine in the same run.

#![allow(clippy::print_stdout, reason = "the table is the answer")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Ticks a second of `/proc/PID/stat`, the same on every Linux.
const TICKS: f64 = 100.0;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// Options of the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Runs of each workload; medians are shown.
    pub(crate) runs: u64,
    /// Divides the number of messages.
    pub(crate) shorter: u64,
    /// Messages of the deep queue.
    pub(crate) deep: u64,
}

/// A line of the table.
struct Workload {
    name: &'static str,
    arguments: &'static [&'static str],
    messages: u64,
    /// What is compared, and what is wanted of it.
    compared: Compared,
    wanted: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// Rate, ours over the floor's: at least.
    Rate,
    /// Latency, ours over the floor's: at most.
    Latency,
}

const fn rate(
    name: &'static str,
    wanted: f64,
    messages: u64,
    arguments: &'static [&'static str],
) -> Workload {
    Workload {
        name,
        arguments,
        messages,
        compared: Compared::Rate,
        wanted,
    }
}

const fn latency(
    name: &'static str,
    wanted: f64,
    messages: u64,
    arguments: &'static [&'static str],
) -> Workload {
    Workload {
        name,
        arguments,
        messages,
        compared: Compared::Latency,
        wanted,
    }
}

const WORKLOADS: &[Workload] = &[
    rate("W1 put, window 1", 0.95, 2_000, &["put", "--window", "1"]),
    rate(
        "W1 put, window 64",
        0.70,
        50_000,
        &["put", "--window", "64"],
    ),
    rate(
        "W1 put, window 1024",
        0.65,
        100_000,
        &["put", "--window", "1024"],
    ),
    rate(
        "W2 8 put, 8 queues",
        0.60,
        15_000,
        &["put", "--clients", "8", "--queues", "8"],
    ),
    rate("W3 put and get", 0.60, 50_000, &["putget", "--verify"]),
    rate(
        "W3 non-persistent",
        0.60,
        100_000,
        &["putget", "--verify", "--nonpersistent"],
    ),
    rate(
        "W4 8 put, 8 get, 8 queues",
        0.60,
        15_000,
        &["putget", "--clients", "8", "--queues", "8"],
    ),
    latency("W6 request and reply, 1", 1.25, 1_000, &["roundtrip"]),
    latency(
        "W6 request and reply, 16",
        1.25,
        200,
        &["roundtrip", "--clients", "16"],
    ),
    rate(
        "W7 put 64 KiB",
        0.80,
        2_000,
        &["put", "--size", "64KiB", "--window", "16"],
    ),
    rate(
        "W7 put 1 MiB",
        0.80,
        150,
        &["put", "--size", "1MiB", "--window", "4"],
    ),
    rate("W8 units of 1", 0.85, 20_000, &["put", "--syncpoint", "1"]),
    rate(
        "W8 units of 10",
        0.85,
        50_000,
        &["put", "--syncpoint", "10"],
    ),
    rate(
        "W8 units of 100",
        0.85,
        100_000,
        &["put", "--syncpoint", "100", "--window", "200"],
    ),
];

/// What one load came to.
#[derive(Clone, Copy)]
struct Sample {
    rate: f64,
    p50: f64,
    p99: f64,
    client_us: f64,
    server_us: f64,
}

/// A server under load.
struct Server {
    binary: PathBuf,
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failure means that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    /// Starts `binary` with `arguments` and reads from its first line where it listens.
    fn start(binary: &Path, home: &Path, arguments: &[&str]) -> Result<Self, String> {
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
            url: format!("http://{address}"),
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

    fn mqsc(&self, script: &str) -> Result<(), String> {
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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["--url", &self.url]).args(arguments);
        command
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
    fn resident(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kib = line.and_then(|l| l.split_whitespace().next());
        kib.and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
    }

    fn bench(&self, queue: &str, messages: u64, arguments: &[&str]) -> Result<Sample, String> {
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

/// The middle one.
fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Defines the queues of a workload anew.
fn queues(prefix: &str) -> String {
    let mut script = String::new();
    let attributes = "MAXDEPTH(999999999) MAXMSGL(4194304)";
    script.push_str(&format!("DEFINE QLOCAL({prefix}) {attributes}\n"));
    for n in 1..=8 {
        script.push_str(&format!("DEFINE QLOCAL({prefix}.{n}) {attributes}\n"));
    }
    for n in 1..=16 {
        script.push_str(&format!("DEFINE QLOCAL({prefix}.REPLY.{n}) {attributes}\n"));
    }
    script
}

/// Removes the queues of a workload and what is on them.
fn removal(prefix: &str) -> String {
    let mut script = format!("DELETE QLOCAL({prefix}) PURGE\n");
    for n in 1..=8 {
        script.push_str(&format!("DELETE QLOCAL({prefix}.{n}) PURGE\n"));
    }
    for n in 1..=16 {
        script.push_str(&format!("DELETE QLOCAL({prefix}.REPLY.{n}) PURGE\n"));
    }
    script
}

/// Measures and prints. The table goes to stdout, and as JSON to `bench.json` in the target directory.
pub(crate) fn run(binary: &Path, target: &Path, plan: &Plan) -> Result<(), String> {
    let directory = target.join(format!("bench-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let result = measure(binary, target, &directory, plan);
    // What is left is in a directory of its own, to be removed by hand.
    drop(fs::remove_dir_all(&directory));
    result
}

fn measure(binary: &Path, target: &Path, directory: &Path, plan: &Plan) -> Result<(), String> {
    let home = directory.join("home");
    let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let (data, file) = (path("data"), path("floor"));
    let ours_arguments = ["dev", "--port", "0", "--dir", &data];
    let mut ours = Server::start(binary, &home, &ours_arguments)?;
    ours.mqsc("PING QMGR\n")?;
    let empty = ours.resident();
    let floor = Server::start(binary, &home, &["bench", "floor", "--file", &file])?;
    println!(
        "{:<28} {:>9} {:>9} {:>6} {:>7}   {:>15} {:>15}   us of CPU a message: server, client (floor's)",
        "", "ours", "floor", "ratio", "wanted", "p50/p99 us", "floor"
    );
    let mut lines = Vec::new();
    for workload in WORKLOADS {
        lines.push(line(workload, &ours, &floor, plan)?);
    }
    drop(floor);
    let deep = deep(&mut ours, &ours_arguments, &home, plan, empty)?;
    let document = json!({ "workloads": lines, "deep": deep });
    let file = target.join("bench.json");
    fs::write(&file, format!("{document:#}\n")).map_err(|e| format!("{}: {e}", file.display()))?;
    println!("in numbers for machines: {}", file.display());
    Ok(())
}

fn line(workload: &Workload, ours: &Server, floor: &Server, plan: &Plan) -> Result<Value, String> {
    let messages = workload.messages / plan.shorter.max(1);
    let mut samples = (Vec::new(), Vec::new());
    // In turn, so that what the machine does meanwhile meets both.
    for n in 0..plan.runs {
        let queue = format!("BENCH{n}");
        ours.mqsc(&queues(&queue))?;
        samples
            .0
            .push(ours.bench(&queue, messages, workload.arguments)?);
        ours.mqsc(&removal(&queue))?;
        let queue = format!("{}.{n}", workload.name.replace([' ', ',', '-'], "."));
        samples
            .1
            .push(floor.bench(&queue, messages, workload.arguments)?);
    }
    let of = |f: fn(&Sample) -> f64| (median(&samples.0, f), median(&samples.1, f));
    let (rates, p50, p99) = (of(|s| s.rate), of(|s| s.p50), of(|s| s.p99));
    let (client, server) = (of(|s| s.client_us), of(|s| s.server_us));
    let ratio = match workload.compared {
        Compared::Rate => rates.0 / rates.1,
        Compared::Latency => p50.0 / p50.1,
    };
    let wanted = match workload.compared {
        Compared::Rate => format!(">={:.2}", workload.wanted),
        Compared::Latency => format!("<={:.2}", workload.wanted),
    };
    println!(
        "{:<28} {:>7.0}/s {:>7.0}/s {ratio:>6.2} {wanted:>7}   {:>7.0}/{:>7.0} {:>7.0}/{:>7.0}   {:.1}, {:.1} ({:.1}, {:.1})",
        workload.name,
        rates.0,
        rates.1,
        p50.0,
        p99.0,
        p50.1,
        p99.1,
        server.0,
        client.0,
        server.1,
        client.1
    );
    Ok(json!({
        "workload": workload.name, "ratio": ratio, "wanted": wanted,
        "rate": rates.0, "floor_rate": rates.1,
        "p50_us": p50.0, "p99_us": p99.0, "floor_p50_us": p50.1, "floor_p99_us": p99.1,
        "server_us": server.0, "client_us": client.0,
        "floor_server_us": server.1, "floor_client_us": client.1,
    }))
}

/// A deep queue: filled, the queue manager started again, drained.
fn deep(
    ours: &mut Server,
    arguments: &[&str],
    home: &Path,
    plan: &Plan,
    empty: f64,
) -> Result<Value, String> {
    ours.mqsc(&queues("DEEP"))?;
    let tenth = plan.deep / 10;
    let put: &[&str] = &["put", "--window", "1024"];
    let first = ours.bench("DEEP", tenth, put)?;
    ours.bench(
        "DEEP",
        plan.deep.saturating_sub(tenth.saturating_mul(2)),
        put,
    )?;
    let last = ours.bench("DEEP", tenth, put)?;
    #[allow(clippy::cast_precision_loss, reason = "a share, not a sum")]
    let each = (ours.resident() - empty) / plan.deep as f64;
    ours.mqsc("PING QMGR\n")?;
    // As a power cut would: the journal has to be read.
    drop(ours.child.kill());
    drop(ours.child.wait());
    let binary = ours.binary.clone();
    let before = Instant::now();
    *ours = Server::start(&binary, home, arguments)?;
    let got = loop {
        let got = ours.command(&["get", "DEEP"]).output();
        if got.map_err(|e| e.to_string())?.status.success() {
            break before.elapsed().as_secs_f64();
        }
        if before.elapsed() > PATIENCE {
            return Err("no message after the start".to_owned());
        }
    };
    let resident = ours.resident();
    let drain: &[&str] = &["get", "--window", "1024"];
    let drained = ours.bench("DEEP", plan.deep.saturating_sub(1), drain)?;
    println!(
        "W5 {} messages: last tenth put at {:.2} of the speed of the first (wanted 0.90); drained at {:.0}/s after a restart",
        plan.deep,
        last.rate / first.rate,
        drained.rate
    );
    println!(
        "memory: {:.0} MB with empty queues (wanted 100), {each:.0} bytes a message while it is deep, {:.0} MB after the restart; first get {got:.1} s after the start",
        empty / 1e6,
        resident / 1e6,
    );
    Ok(json!({
        "messages": plan.deep, "last_to_first": last.rate / first.rate, "drain_rate": drained.rate,
        "empty_bytes": empty, "bytes_a_message": each, "resident_after_restart": resident,
        "first_get_seconds": got,
    }))
}
