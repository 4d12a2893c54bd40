//! The six points of the demo.

use std::fs;

use serde_json::Value;

use super::Shown;
use super::cluster::Cluster;

/// A title, and what shows it.
type Point = (&'static str, fn(&mut Cluster) -> Shown);

/// What the demo shows, in order.
pub(crate) const POINTS: [Point; 6] = [
    (
        "A definition made on one node appears on another",
        definition,
    ),
    (
        "1,000 persistent messages cross from QM1 to QM2, in order, each once",
        crossing,
    ),
    (
        "QM2 is killed while messages flow: nothing is lost or repeated",
        killed,
    ),
    (
        "A message for a queue that does not exist: dead-lettered, or kept",
        undeliverable,
    ),
    (
        "A fast non-persistent one for that queue is discarded and counted",
        discarded,
    ),
    (
        "A sender with the wrong distinguished name is refused",
        wrong_name,
    ),
];

/// Messages of the second point.
const CROSSING: usize = 1000;

/// Messages of the third point.
const FLOWING: usize = 2000;

fn definition(cluster: &mut Cluster) -> Shown {
    // Said to node 1, about the queue manager of node 2.
    cluster.show(&[
        "--context",
        "admin1",
        "-m",
        "QM2",
        "mqsc",
        "-e",
        "DEFINE QLOCAL(DEMO.QUEUE) DESCR('made on node 1')",
    ])?;
    let shown = cluster.show(&[
        "--context",
        "admin2",
        "mqsc",
        "-e",
        "DISPLAY QLOCAL(DEMO.QUEUE) DESCR",
    ])?;
    if !shown.contains("made on node 1") {
        return Err("node 2 does not show the queue".into());
    }
    for number in 1..=3 {
        let (context, file) = (
            format!("admin{number}"),
            cluster.path(&format!("objects-qm{number}.mqsc")),
        );
        println!("$ ferrymq --context {context} mqsc -f {}", file.display());
        let file = file.display().to_string();
        cluster.run(&["--context", &context, "mqsc", "-f", &file], None)?;
    }
    // Retries come quicker than an operator would want, so that the demo does not take minutes.
    cluster.show(&[
        "--context",
        "admin1",
        "mqsc",
        "-e",
        "ALTER CHANNEL(QM1.TO.QM2) CHLTYPE(SDR) SHORTTMR(1) SHORTRTY(1000)",
    ])?;
    Ok("DEMO.QUEUE of QM2 was defined on node 1 and displayed on node 2".into())
}

/// Lines `prefix 00001` and on.
fn lines(prefix: &str, count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("{prefix} {n:05}")).collect()
}

/// Gets `count` messages at QM2 and compares them with `expected`, one by one.
fn compare(cluster: &Cluster, expected: &[String]) -> Result<(), String> {
    let count = expected.len().to_string();
    let arguments = [
        "--context",
        "app2",
        "--timeout",
        "120s",
        "get",
        "ORDERS",
        "--count",
        &count,
        "--wait",
        "60s",
    ];
    println!("$ ferrymq -o ndjson {}", arguments.join(" "));
    let got = cluster.json(&arguments)?;
    let bodies: Vec<&str> = got.iter().filter_map(|m| m["body"].as_str()).collect();
    if let Some((n, (got, expected))) = bodies
        .iter()
        .zip(expected)
        .enumerate()
        .find(|(_, (got, expected))| got != expected)
    {
        return Err(format!("message {n} is {got:?}, expected {expected:?}"));
    }
    if bodies.len() != expected.len() {
        return Err(format!(
            "{} messages came, {} were put",
            bodies.len(),
            expected.len()
        ));
    }
    let more = cluster.run(
        &["--context", "app2", "get", "ORDERS", "--wait", "1s"],
        None,
    );
    match more {
        Err(error) if error.contains("2033") => Ok(()),
        Err(error) => Err(error),
        Ok(more) => Err(format!("one message too many: {more}")),
    }
}

fn crossing(cluster: &mut Cluster) -> Shown {
    let expected = lines("order", CROSSING);
    let input = expected.join("\n");
    println!("$ ferrymq --context app1 put ORDERS.QM2 --lines --persistent < 1000 lines");
    cluster.run(
        &[
            "--context",
            "app1",
            "--timeout",
            "120s",
            "put",
            "ORDERS.QM2",
            "--lines",
            "--persistent",
        ],
        Some(&input),
    )?;
    compare(cluster, &expected)?;
    cluster.show(&[
        "--context",
        "admin1",
        "mqsc",
        "-e",
        "DISPLAY CHSTATUS(QM1.TO.QM2) MSGS BATCHES STATUS",
    ])?;
    Ok(format!(
        "{CROSSING} put on QM1, {CROSSING} got on QM2, in the order of the puts"
    ))
}

fn killed(cluster: &mut Cluster) -> Shown {
    let expected = lines("while killed", FLOWING);
    let input = cluster.path("flowing.txt");
    fs::write(&input, expected.join("\n")).map_err(|e| e.to_string())?;
    let put = cluster.spawn(
        &[
            "--context",
            "app1",
            "--timeout",
            "180s",
            "put",
            "ORDERS.QM2",
            "--lines",
            "--persistent",
        ],
        &input,
    )?;
    cluster.wait("messages flow", || {
        let depth = cluster.attribute("admin2", "DISPLAY QLOCAL(ORDERS) CURDEPTH", "CURDEPTH")?;
        (depth.parse::<usize>().ok()? >= FLOWING / 10).then_some(())
    })?;
    cluster.kill_node(2)?;
    cluster.wait("the channel retries", || {
        let status =
            cluster.attribute("admin1", "DISPLAY CHSTATUS(QM1.TO.QM2) STATUS", "STATUS")?;
        (status == "RETRYING").then_some(())
    })?;
    cluster.show(&[
        "--context",
        "admin1",
        "mqsc",
        "-e",
        "DISPLAY CHSTATUS(QM1.TO.QM2) STATUS INDOUBT SHORTRTS",
    ])?;
    cluster.start_node(2)?;
    cluster.wait_node(2)?;
    let output = put.wait_with_output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!(
            "the put failed: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    compare(cluster, &expected)?;
    Ok(format!(
        "{FLOWING} put while QM2 was killed and restarted, {FLOWING} got, in order, each once"
    ))
}

fn depth(cluster: &Cluster, context: &str, queue: &str) -> Option<usize> {
    let display = format!("DISPLAY QLOCAL({queue}) CURDEPTH");
    cluster
        .attribute(context, &display, "CURDEPTH")?
        .parse()
        .ok()
}

fn undeliverable(cluster: &mut Cluster) -> Shown {
    cluster.show(&[
        "--context",
        "app1",
        "put",
        "NOWHERE@QM2",
        "for nobody",
        "--persistent",
    ])?;
    let message = cluster.wait("the message is on QM2's dead-letter queue", || {
        let all = cluster
            .json(&["--context", "app2", "browse", "DEAD.LETTER.QUEUE"])
            .ok()?;
        all.into_iter().next()
    })?;
    println!("$ ferrymq -o ndjson --context app2 browse DEAD.LETTER.QUEUE\n  {message}");
    if message["dead_letter"]["mqrc"] != 2085 || message["body"] != "for nobody" {
        return Err("the dead-letter header does not say 2085".into());
    }
    // Neither end may use its dead-letter queue from now on. A channel takes a change when it starts again.
    for (context, command) in [
        (
            "admin1",
            "ALTER CHANNEL(QM1.TO.QM2) CHLTYPE(SDR) USEDLQ(NO)",
        ),
        (
            "admin2",
            "ALTER CHANNEL(QM1.TO.QM2) CHLTYPE(RCVR) USEDLQ(NO)",
        ),
        ("admin1", "STOP CHANNEL(QM1.TO.QM2)"),
    ] {
        cluster.show(&["--context", context, "mqsc", "-e", command])?;
    }
    channel_status(cluster, "admin1", "QM1.TO.QM2", "STOPPED")?;
    cluster.show(&[
        "--context",
        "admin1",
        "mqsc",
        "-e",
        "START CHANNEL(QM1.TO.QM2)",
    ])?;
    channel_status(cluster, "admin1", "QM1.TO.QM2", "RUNNING")?;
    cluster.show(&[
        "--context",
        "app1",
        "put",
        "NOWHERE@QM2",
        "kept",
        "--persistent",
    ])?;
    channel_status(cluster, "admin1", "QM1.TO.QM2", "RETRYING")?;
    cluster.show(&[
        "--context",
        "admin1",
        "mqsc",
        "-e",
        "DISPLAY QLOCAL(QM2) CURDEPTH",
        "-e",
        "DISPLAY CHSTATUS(QM1.TO.QM2) STATUS",
    ])?;
    if depth(cluster, "admin1", "QM2") != Some(1) {
        return Err("the message is not on the transmission queue".into());
    }
    // What an operator does: give it somewhere to go. The next try delivers it.
    cluster.show(&[
        "--context",
        "admin2",
        "mqsc",
        "-e",
        "DEFINE QLOCAL(NOWHERE)",
    ])?;
    let got = cluster.show(&["--context", "app2", "get", "NOWHERE", "--wait", "30s"])?;
    if got.trim_end() != "kept" {
        return Err(format!("got {got:?}"));
    }
    cluster.show(&[
        "--context",
        "admin2",
        "mqsc",
        "-e",
        "DELETE QLOCAL(NOWHERE)",
    ])?;
    Ok("dead-lettered with 2085; with USEDLQ(NO) kept on the transmission queue while the channel retried".into())
}

fn channel_status(
    cluster: &Cluster,
    context: &str,
    channel: &str,
    wanted: &str,
) -> Result<(), String> {
    let display = format!("DISPLAY CHSTATUS({channel}) STATUS");
    cluster.wait(&format!("{channel} is {wanted}"), || {
        let status = cluster.attribute(context, &display, "STATUS")?;
        (status == wanted).then_some(())
    })
}

fn discarded(cluster: &mut Cluster) -> Shown {
    channel_status(cluster, "admin1", "QM1.TO.QM2", "RUNNING")?;
    cluster.show(&[
        "--context",
        "app1",
        "put",
        "NOWHERE@QM2",
        "fast",
        "--nonpersistent",
    ])?;
    let entry = cluster.wait("the account names the message", || {
        let entries = cluster
            .json(&["--context", "admin2", "log", "account"])
            .ok()?;
        entries.into_iter().find(|e| e["reason"] == "discarded")
    })?;
    println!("$ ferrymq -o ndjson --context admin2 log account\n  {entry}");
    let reason = ["mqrc", "reason_code"]
        .iter()
        .find_map(|key| entry[*key].as_u64());
    if reason != Some(2085) {
        return Err("the account entry does not say 2085".into());
    }
    if depth(cluster, "admin1", "QM2") != Some(0) {
        return Err("the message is still on the transmission queue".into());
    }
    Ok("discarded at QM2 with an account entry that says 2085; the channel went on".into())
}

fn wrong_name(cluster: &mut Cluster) -> Shown {
    let port = cluster
        .attribute("admin1", "DISPLAY CHANNEL(QM1.TO.QM2) CONNAME", "CONNAME")
        .and_then(|text| {
            text.rsplit('(')
                .next()
                .map(|p| p.trim_end_matches(')').to_owned())
        })
        .ok_or("CONNAME of QM1.TO.QM2 is not shown")?;
    cluster.show(&[
        "--context", "admin2", "mqsc", "-e",
        "DEFINE CHANNEL(QM3.WRONG) CHLTYPE(RCVR) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('CN=QM9,O=FerryMQ')",
    ])?;
    let sender = format!(
        "DEFINE CHANNEL(QM3.WRONG) CHLTYPE(SDR) CONNAME('127.0.0.1({port})') XMITQ(QM2) SSLCIPH(ANY_TLS12_OR_HIGHER) SHORTTMR(1)"
    );
    cluster.show(&[
        "--context",
        "admin3",
        "mqsc",
        "-e",
        &sender,
        "-e",
        "START CHANNEL(QM3.WRONG)",
    ])?;
    let refusal = log_line(cluster, 2, "AMQ9636E")?;
    for word in ["CN=QM3", "CN=QM9"] {
        if !refusal.to_string().contains(word) {
            return Err(format!("QM2's log does not name {word}: {refusal}"));
        }
    }
    let report = log_line(cluster, 3, "AMQ9557E")?;
    if report.to_string().contains("QM9") {
        return Err("the sender was told what the receiver wants".into());
    }
    cluster.show(&[
        "--context",
        "admin3",
        "mqsc",
        "-e",
        "DISPLAY CHSTATUS(QM3.WRONG) STATUS",
        "-e",
        "STOP CHANNEL(QM3.WRONG)",
    ])?;
    Ok("QM2 logged the name that it got and the one that it wanted; QM3 learned only that it is not authorised".into())
}

/// Waits for a line with this id in the log of a node, and prints it.
fn log_line(cluster: &Cluster, node: usize, id: &str) -> Result<Value, String> {
    let file = cluster.log_file(node);
    let line = cluster.wait(&format!("{id} in the log of node {node}"), || {
        let log = fs::read_to_string(&file).ok()?;
        let mut lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["id"] == id)
    })?;
    println!("  {}: {line}", file.display());
    Ok(line)
}
