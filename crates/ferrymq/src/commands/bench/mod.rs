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
use body::{Others, Run};
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
    if report.verified.is_some_and(|verdict| !verdict.is_clean()) {
        return Err(Failure::System(
            "messages were lost, doubled, damaged or left".to_owned(),
        ));
    }
    if report.missing > 0 {
        let missing = report.missing;
        return Err(Failure::System(format!("{missing} messages did not come")));
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
    let run = Run {
        id: random_number()?,
        began: Instant::now(),
    };
    let gets_only = workload == Workload::Get;
    let name = queue_manager.clone();
    let load = Arc::new(Load::new(args.clone(), gets_only, name, run));
    let cpu_before = cpu_seconds();
    let tally = run_tasks(&load, workload, clients).await?;
    let seconds = load.took().as_secs_f64();
    let cpu = cpu_seconds() - cpu_before;
    let arrive = workload != Workload::Put;
    let arrived = load.ledger().arrived();
    let missing = if arrive {
        load.expected().saturating_sub(arrived)
    } else {
        0
    };
    let checked = args.verify && arrive;
    if checked {
        let (client, _) = connect(invocation).await?;
        look_at_rest(&client, &load, workload, &queue_manager).await?;
    }
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
        latency_us: Latency::of(&tally),
        missing,
        verified: checked.then(|| load.ledger().verdict(load.expected())),
        errors: tally.errors,
    })
}

/// Messages of a queue that are looked at when all is over.
const REST_MAX: u32 = 1000;

/// The first messages of a queue.
async fn browse(
    client: &Client,
    queue_manager: &str,
    queue: &str,
    limit: u32,
) -> Result<Vec<wire::Message>, Failure> {
    let browse = wire::BrowseRequest {
        queue_manager: queue_manager.to_owned(),
        queue: queue.to_owned(),
        limit,
        ..wire::BrowseRequest::default()
    };
    let mut responses = client.browse(browse).await?;
    let mut messages = Vec::new();
    while let Some(response) = responses.next().await? {
        messages.extend(response.message);
    }
    Ok(messages)
}

/// What is there already would be taken for what is put.
async fn must_be_empty(
    client: &Client,
    args: &BenchArgs,
    queue_manager: &str,
) -> Result<(), Failure> {
    for index in 0..args.queues {
        let queue = load::queue_name(args, index);
        if !browse(client, queue_manager, &queue, 1).await?.is_empty() {
            return Err(Failure::Usage(format!(
                "queue {queue} is not empty: CLEAR QLOCAL({queue}), or name another with --queue"
            )));
        }
    }
    Ok(())
}

/// Enters into the ledger what is on the queues at the end: copies, and what nobody was given.
async fn look_at_rest(
    client: &Client,
    load: &Load,
    workload: Workload,
    queue_manager: &str,
) -> Result<(), Failure> {
    let args = &load.args;
    let others = match workload {
        Workload::Put | Workload::Get => Others::MayBeThere,
        Workload::PutGet | Workload::RoundTrip => Others::AreWrong,
    };
    let mut queues: Vec<String> = (0..args.queues)
        .map(|n| load::queue_name(args, n))
        .collect();
    if workload == Workload::RoundTrip {
        queues.extend((0..args.clients).map(|n| load::reply_queue_name(args, n)));
    }
    for queue in queues {
        for message in browse(client, queue_manager, &queue, REST_MAX).await? {
            let seen = load.read(&message.data);
            load.ledger().find_left(seen, others);
        }
    }
    Ok(())
}

/// Tells this run from others.
fn random_number() -> Result<u32, Failure> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::System(format!("no random numbers: {error}")))?;
    Ok(u32::from_le_bytes(bytes))
}

/// Runs the tasks of a workload to their end. The messages that count are those that were put, or got where none is put.
async fn run_tasks(
    load: &Arc<Load>,
    workload: Workload,
    clients: Vec<Client>,
) -> Result<Tally, Failure> {
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
    let mut produced = Seen::default();
    while let Some(ended) = producers.join_next().await {
        produced.add(&ended.map_err(|e| Failure::System(e.to_string()))??);
    }
    load.all_are_produced(produced.sent);
    if workload == Workload::RoundTrip {
        // Every request has had its reply, or will have none.
        load.end();
    }
    let mut consumed = Seen::default();
    let consuming = async {
        while let Some(ended) = consumers.join_next().await {
            consumed.add(&ended.map_err(|e| Failure::System(e.to_string()))??);
        }
        Ok::<(), Failure>(())
    };
    tokio::select! {
        ended = consuming => ended?,
        never = load.end_when_idle() => match never {},
    }
    Ok(match workload {
        Workload::Put | Workload::RoundTrip => produced.tally,
        Workload::Get => consumed.tally,
        Workload::PutGet => {
            // What counts is the way from end to end.
            consumed.tally.add_errors(&produced.tally);
            consumed.tally
        }
    })
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
