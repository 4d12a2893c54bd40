//! `cargo xtask bench`: one table of how fast FerryMQ is, beside what wire and disk allow on this machine in the same run.

#![allow(clippy::print_stdout, reason = "the table is the answer")]

mod limits;
mod server;

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use server::{PATIENCE, Sample, Server, Tls};

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

/// The middle one.
fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    middle(samples.iter().map(of).collect())
}

fn middle(mut values: Vec<f64>) -> f64 {
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
    let (config, file) = (server::plain(directory)?, path("floor"));
    let limits = limits::measure(directory, plan.runs)?;
    let ours_arguments = ["serve", "--config", &config];
    let mut ours = Server::start(binary, &home, &ours_arguments, None)?;
    ours.mqsc("PING QMGR\n")?;
    let empty = ours.resident();
    let floor = Server::start(binary, &home, &["bench", "floor", "--file", &file], None)?;
    println!(
        "{:<28} {:>9} {:>9} {:>6} {:>7}   {:>15} {:>15}   us of CPU a message: server, client (floor's)",
        "", "ours", "floor", "ratio", "wanted", "p50/p99 us", "floor"
    );
    let mut lines = Vec::new();
    for workload in WORKLOADS {
        lines.push(Line::measure(workload, "", &ours, &floor, plan)?);
    }
    drop(floor);
    let shallow = lines.iter().find(|line| line.name == SHALLOW);
    let shallow = shallow.ok_or("there is no shallow queue to compare with")?;
    let shallow = median(&shallow.ours, |s| s.rate);
    let deep = deep(&mut ours, &ours_arguments, &home, plan, empty, shallow)?;
    drop(ours);
    let tls = with_tls(binary, directory, plan, &lines)?;
    let lines: Vec<Value> = lines.iter().map(Line::document).collect();
    let document = json!({ "limits": limits, "workloads": lines, "deep": deep, "tls": tls });
    let file = target.join("bench.json");
    fs::write(&file, format!("{document:#}\n")).map_err(|e| format!("{}: {e}", file.display()))?;
    println!("in numbers for machines: {}", file.display());
    Ok(())
}

/// What draining a deep queue is compared with.
const SHALLOW: &str = "W3 put and get";

/// Workloads that are measured with mutual TLS too, by the beginnings of their names.
const WITH_TLS: [&str; 3] = ["W2 ", "W3 put", "W4 "];

/// How much more CPU a message may cost with TLS.
const TLS_WANTED: f64 = 1.3;

/// The same with mutual TLS on both servers, and what it costs.
fn with_tls(
    binary: &Path,
    directory: &Path,
    plan: &Plan,
    plain: &[Line],
) -> Result<Vec<Value>, String> {
    let home = directory.join("home");
    let tls = Tls::prepare(binary, directory)?;
    let config = tls.config();
    let ours = Server::start(binary, &home, &["serve", "--config", &config], Some(&tls))?;
    ours.mqsc(&server::channel())?;
    let file = directory.join("floor-tls").to_string_lossy().into_owned();
    let certificate = tls.certificate("QM1");
    let mut arguments: Vec<&str> = certificate.iter().map(String::as_str).collect();
    arguments.extend(["bench", "floor", "--file", &file]);
    let floor = Server::start(binary, &home, &arguments, Some(&tls))?;
    let mut documents = Vec::new();
    for workload in WORKLOADS {
        if !WITH_TLS.iter().any(|name| workload.name.starts_with(name)) {
            continue;
        }
        let line = Line::measure(workload, " TLS", &ours, &floor, plan)?;
        let Some(plain) = plain.iter().find(|plain| plain.name == workload.name) else {
            continue;
        };
        let of = |f: fn(&Sample) -> f64| median(&line.ours, f) / median(&plain.ours, f);
        let (server, client) = (of(|s| s.server_us), of(|s| s.client_us));
        let floor = median(&line.floor, |s| s.server_us) / median(&plain.floor, |s| s.server_us);
        println!(
            "{:<28} CPU with TLS over CPU without: server {server:.2} (wanted <={TLS_WANTED:.2}), client {client:.2}, floor {floor:.2}",
            ""
        );
        let mut document = line.document();
        document["cpu_to_plain"] = json!({ "server": server, "client": client, "floor": floor });
        documents.push(document);
    }
    Ok(documents)
}

/// What a workload came to, on both servers.
struct Line {
    name: &'static str,
    compared: Compared,
    wanted: f64,
    ours: Vec<Sample>,
    floor: Vec<Sample>,
}

impl Line {
    /// Measures and prints.
    fn measure(
        workload: &Workload,
        remark: &str,
        ours: &Server,
        floor: &Server,
        plan: &Plan,
    ) -> Result<Self, String> {
        let messages = workload.messages / plan.shorter.max(1);
        let mut line = Self {
            name: workload.name,
            compared: workload.compared,
            wanted: workload.wanted,
            ours: Vec::new(),
            floor: Vec::new(),
        };
        // In turn, so that what the machine does meanwhile meets both.
        for n in 0..plan.runs {
            let queue = format!("BENCH{n}");
            ours.mqsc(&queues(&queue))?;
            line.ours
                .push(ours.bench(&queue, messages, workload.arguments)?);
            ours.mqsc(&removal(&queue))?;
            let queue = format!("{}.{n}", workload.name.replace([' ', ',', '-'], "."));
            line.floor
                .push(floor.bench(&queue, messages, workload.arguments)?);
        }
        line.print(remark);
        Ok(line)
    }

    /// The medians, ours and the floor's.
    fn of(&self, f: fn(&Sample) -> f64) -> (f64, f64) {
        (median(&self.ours, f), median(&self.floor, f))
    }

    /// Ours over the floor's, of what is compared; for latencies of the median and of the longest of a hundred.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |(ours, floor): (f64, f64)| ours / floor;
        match self.compared {
            Compared::Rate => vec![ratio(self.of(|s| s.rate))],
            Compared::Latency => vec![ratio(self.of(|s| s.p50)), ratio(self.of(|s| s.p99))],
        }
    }

    fn wanted(&self) -> String {
        match self.compared {
            Compared::Rate => format!(">={:.2}", self.wanted),
            Compared::Latency => format!("<={:.2}", self.wanted),
        }
    }

    fn print(&self, remark: &str) {
        let (rates, p50, p99) = (self.of(|s| s.rate), self.of(|s| s.p50), self.of(|s| s.p99));
        let (client, server) = (self.of(|s| s.client_us), self.of(|s| s.server_us));
        let ratios: Vec<String> = self.ratios().iter().map(|r| format!("{r:.2}")).collect();
        println!(
            "{:<28} {:>7.0}/s {:>7.0}/s {:>6} {:>7}   {:>7.0}/{:>7.0} {:>7.0}/{:>7.0}   {:.1}, {:.1} ({:.1}, {:.1})",
            format!("{}{remark}", self.name),
            rates.0,
            rates.1,
            ratios.join("/"),
            self.wanted(),
            p50.0,
            p99.0,
            p50.1,
            p99.1,
            server.0,
            client.0,
            server.1,
            client.1
        );
    }

    fn document(&self) -> Value {
        let (rates, p50, p99) = (self.of(|s| s.rate), self.of(|s| s.p50), self.of(|s| s.p99));
        let (client, server) = (self.of(|s| s.client_us), self.of(|s| s.server_us));
        json!({
            "workload": self.name, "ratios": self.ratios(), "wanted": self.wanted(),
            "rate": rates.0, "floor_rate": rates.1,
            "p50_us": p50.0, "p99_us": p99.0, "floor_p50_us": p50.1, "floor_p99_us": p99.1,
            "server_us": server.0, "client_us": client.0,
            "floor_server_us": server.1, "floor_client_us": client.1,
        })
    }
}

/// A deep queue: filled, the queue manager started again, drained as the shallow one of W3 is.
fn deep(
    ours: &mut Server,
    arguments: &[&str],
    home: &Path,
    plan: &Plan,
    empty: f64,
    shallow: f64,
) -> Result<Value, String> {
    ours.mqsc(&queues("DEEP"))?;
    let tenth = plan.deep / 10;
    let rest = plan.deep.saturating_sub(tenth.saturating_mul(2));
    let put: &[&str] = &["put", "--window", "1024"];
    let first = ours.bench("DEEP", tenth, put)?;
    let middle = ours.bench("DEEP", rest, put)?;
    let last = ours.bench("DEEP", tenth, put)?;
    #[allow(clippy::cast_precision_loss, reason = "a share, not a sum")]
    let each = (ours.resident() - empty) / plan.deep as f64;
    // The journal has to be read.
    ours.kill();
    let binary = ours.binary().to_owned();
    let before = Instant::now();
    *ours = Server::start(&binary, home, arguments, None)?;
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
    // Window and checks are those of W3.
    let drain: &[&str] = &["get", "--verify"];
    let drained = ours.bench("DEEP", plan.deep.saturating_sub(1), drain)?;
    let (put_ratio, drain_ratio) = (last.rate / first.rate, drained.rate / shallow);
    println!(
        "W5 put {} messages: last tenth at {put_ratio:.2} of the speed of the first (wanted >=0.90); server {:.1}, client {:.1} us of CPU a message",
        plan.deep, middle.server_us, middle.client_us
    );
    println!(
        "W5 drain: {:.0}/s, {drain_ratio:.2} of W3 (wanted >=0.80); server {:.1}, client {:.1} us of CPU a message",
        drained.rate, drained.server_us, drained.client_us
    );
    println!(
        "start with {} messages queued, after kill -9: {got:.1} s to the first get (5,000,000: wanted <5)",
        plan.deep
    );
    println!(
        "memory: {:.0} MB with empty queues (wanted <=100), {each:.0} bytes for each message that waits (wanted <=100), {:.0} MB after the restart",
        empty / 1e6,
        resident / 1e6,
    );
    Ok(json!({
        "messages": plan.deep, "last_to_first": put_ratio, "drain_rate": drained.rate,
        "drain_to_shallow": drain_ratio, "drain_server_us": drained.server_us,
        "put_server_us": middle.server_us, "empty_bytes": empty, "bytes_a_message": each,
        "resident_after_restart": resident, "first_get_seconds": got,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_five_is_shown() {
        assert!((middle(vec![5.0, 1.0, 9.0, 2.0, 3.0]) - 3.0).abs() < f64::EPSILON);
    }

    #[test]
    fn what_is_compared_by_name_is_in_the_table() {
        let is_there = |name: &str| WORKLOADS.iter().any(|w| w.name.starts_with(name));
        assert!(WITH_TLS.iter().all(|name| is_there(name)) && is_there(SHALLOW));
    }
}
