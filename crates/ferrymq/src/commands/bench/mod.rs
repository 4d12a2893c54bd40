//! `ferrymq bench`: load from as many connections as wanted, what it came to, and whether every message arrived once.

mod body;
mod floor;
mod load;
mod report;

use std::sync::Arc;
use std::time::Instant;

use ferrymq_client::{Client, wire};
use tokio::task::JoinSet;

use crate::cli::{BenchArgs, BenchCommand};
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};
use body::Ledger;
use load::{Load, Seen};
use report::{Latency, Report, Tally};

pub(crate) use body::BODY_LENGTH_MIN;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    Put,
    Get,
    PutGet,
    RoundTrip,
}

impl Workload {
    const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::PutGet => "putget",
            Self::RoundTrip => "roundtrip",
        }
    }
}

pub(crate) async fn run(invocation: &mut Invocation, command: BenchCommand) -> Result<(), Failure> {
    let (workload, args) = match command {
        BenchCommand::Put(args) => (Workload::Put, args),
        BenchCommand::Get(args) => (Workload::Get, args),
        BenchCommand::Putget(args) => (Workload::PutGet, args),
        BenchCommand::Roundtrip(args) => (Workload::RoundTrip, args),
        BenchCommand::Floor(args) => return floor::run(invocation, args).await,
    };
    if workload == Workload::Get && args.duration.is_some() {
        return Err(Failure::Usage(
            "get ends when all messages are got: say how many with --messages, not --duration"
                .to_owned(),
        ));
    }
    let report = measure(invocation, workload, &args).await?;
    report.print(&mut invocation.output, args.csv)?;
    let failed: u64 = report.errors.values().sum();
    let wrong = report
        .verified
        .is_some_and(|v| v.lost > 0 || v.duplicated > 0 || v.damaged > 0);
    if wrong {
        return Err(Failure::System(
            "messages were lost, doubled or damaged".to_owned(),
        ));
    }
    if failed > 0 {
        let done = format!("{} messages", report.messages);
        return Err(Failure::Partly { done, cause: None });
    }
    Ok(())
}

async fn connect(invocation: &mut Invocation) -> Result<(Client, String), Failure> {
    let connected = invocation.connect(Retry::No, TIMEOUT_DEFAULT).await?;
    let queue_manager = connected.queue_manager();
    Ok((connected.client, queue_manager))
}

async fn measure(
    invocation: &mut Invocation,
    workload: Workload,
    args: &BenchArgs,
) -> Result<Report, Failure> {
    // All are connected before the clock starts.
    let (tasks_per_client, responders) = match workload {
        Workload::Put | Workload::Get | Workload::RoundTrip => (1, 0),
        Workload::PutGet => (2, 0),
    };
    let responders = match workload {
        Workload::RoundTrip => args.queues,
        Workload::Put | Workload::Get | Workload::PutGet => responders,
    };
    let mut clients = Vec::new();
    let mut queue_manager = String::new();
    for _ in 0..args
        .clients
        .saturating_mul(tasks_per_client)
        .saturating_add(responders)
    {
        let (client, name) = connect(invocation).await?;
        queue_manager = name;
        clients.push(client);
    }
    if matches!(workload, Workload::PutGet | Workload::RoundTrip) {
        for client in clients.iter().take(1) {
            must_be_empty(client, args, &queue_manager).await?;
        }
    }
    let began = Instant::now();
    let load = Arc::new(Load::new(
        args.clone(),
        workload == Workload::Get,
        queue_manager,
        began,
    ));
    let cpu_before = cpu_seconds();
    let (tally, ledger) = run_tasks(&load, workload, clients).await?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu_before;
    #[allow(clippy::cast_precision_loss, reason = "a rate, not a sum")]
    let messages = tally.messages as f64;
    #[allow(clippy::cast_precision_loss, reason = "a rate, not a sum")]
    let bytes = messages * args.size as f64;
    let checked = args.verify && workload != Workload::Put;
    Ok(Report {
        workload: workload.name(),
        clients: args.clients,
        queues: args.queues,
        size: args.size,
        window: args.window,
        persistent: !args.nonpersistent,
        syncpoint: args.syncpoint.unwrap_or(0),
        messages: tally.messages,
        seconds,
        rate: messages / seconds,
        megabytes_per_second: bytes / seconds / 1e6,
        cpu_us_per_message: cpu / messages.max(1.0) * 1e6,
        latency_us: Latency::from(&tally),
        verified: checked.then(|| ledger.verdict(load.expected())),
        errors: tally.errors,
    })
}

/// What is there already would be taken for what is put.
async fn must_be_empty(
    client: &Client,
    args: &BenchArgs,
    queue_manager: &str,
) -> Result<(), Failure> {
    for index in 0..args.queues {
        let queue = load::queue_name(args, index);
        let browse = wire::BrowseRequest {
            queue_manager: queue_manager.to_owned(),
            queue: queue.clone(),
            limit: 1,
            ..wire::BrowseRequest::default()
        };
        match client.browse(browse).await?.next().await {
            Ok(None) => {}
            Ok(Some(_)) => {
                return Err(Failure::Usage(format!(
                    "queue {queue} is not empty: CLEAR QLOCAL({queue}), or name another with --queue"
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Runs the tasks of a workload to their end. The messages that count are those that were put, or got where none is put.
async fn run_tasks(
    load: &Arc<Load>,
    workload: Workload,
    clients: Vec<Client>,
) -> Result<(Tally, Ledger), Failure> {
    let mut clients = clients.into_iter();
    let count = load.args.clients as usize;
    let mut producers = JoinSet::new();
    let mut consumers = JoinSet::new();
    for (client, index) in clients.by_ref().take(count).zip(0..) {
        let load = load.clone();
        match workload {
            Workload::Put | Workload::PutGet => {
                producers.spawn(async move { load.produce(client, index).await });
            }
            Workload::Get => {
                consumers.spawn(async move { load.consume(client, index).await });
            }
            Workload::RoundTrip => {
                producers.spawn(async move { load.request(client, index).await });
            }
        }
    }
    for (client, index) in clients.zip(0..) {
        let load = load.clone();
        match workload {
            Workload::RoundTrip => {
                consumers.spawn(async move { load.respond(client, index).await });
            }
            Workload::Put | Workload::Get | Workload::PutGet => {
                consumers.spawn(async move { load.consume(client, index).await });
            }
        }
    }
    let mut produced = Tally::default();
    let mut ledger = Ledger::default();
    while let Some(ended) = producers.join_next().await {
        let seen: Seen = ended.map_err(|e| Failure::System(e.to_string()))??;
        produced.add(&seen.tally);
        seen.enter_into(&mut ledger);
    }
    load.all_are_produced(&produced);
    if workload == Workload::RoundTrip {
        // Every request has had its reply.
        load.end();
    }
    let mut consumed = Tally::default();
    while let Some(ended) = consumers.join_next().await {
        let seen: Seen = ended.map_err(|e| Failure::System(e.to_string()))??;
        consumed.add(&seen.tally);
        seen.enter_into(&mut ledger);
    }
    let tally = match workload {
        Workload::Put => produced,
        Workload::Get => consumed,
        Workload::PutGet | Workload::RoundTrip => {
            // What counts is the way from end to end.
            let mut both = match workload {
                Workload::RoundTrip => Tally::default(),
                Workload::Put | Workload::Get | Workload::PutGet => consumed,
            };
            if workload == Workload::RoundTrip {
                both.add(&produced);
            } else {
                for (reason, count) in produced.errors {
                    let sum = both.errors.entry(reason).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
            both
        }
    };
    Ok((tally, ledger))
}

/// User and system time of this process so far; 0 where the system does not tell.
fn cpu_seconds() -> f64 {
    /// Ticks a second of `/proc/PID/stat`, the same on every Linux.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS
}
