//! The commands, a file each.

mod account;
mod backup;
pub(crate) mod bench;
mod browse;
mod cert;
mod channel;
mod cluster;
mod config;
mod dev;
mod dump;
mod get;
mod mqsc;
mod put;
mod rc;
mod reply;
mod request;
mod serve;
mod store;
mod version;

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::{Instant, sleep_until};

use crate::cli::{
    BackupCommand, ChannelCommand, Cli, ClusterCommand, Command, ConfigCommand, LogCommand,
    StoreCommand,
};
use crate::context::Environment;
use crate::failure::{Exit, Failure};
use crate::invocation::Invocation;

/// Time for a command unless `--timeout` says otherwise; how long a closed port is tried again at most.
pub(crate) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Runs a command to its end.
pub(crate) fn run(cli: Cli) -> Exit {
    let action = action(&cli.command);
    let limit = limit(&cli);
    let mut invocation = Invocation::new(cli.global, Environment::of_process(), limit);
    let result = in_runtime(&mut invocation, cli.command);
    let result = result.and(invocation.output.flush());
    match result {
        Ok(()) => Exit::Done,
        Err(failure) => {
            // What was written before goes out first; if that fails too, the first failure is the one to tell.
            drop(invocation.output.flush());
            invocation.output.failure(&action, &failure);
            failure.exit()
        }
    }
}

/// How long what a node began may take to its end after the node has stopped.
const NODE_END_MAX: Duration = Duration::from_secs(10);

fn in_runtime(invocation: &mut Invocation, command: Command) -> Result<(), Failure> {
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        return Err(Failure::System(
            "another TLS library is installed already".to_owned(),
        ));
    }
    let mut builder = Builder::new_multi_thread();
    builder.enable_all();
    // Who sets the variable of the runtime knows better.
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        builder.worker_threads(worker_threads());
    }
    let runtime = builder
        .build()
        .map_err(|error| Failure::System(format!("start the runtime: {error}")))?;
    let is_node = is_node(&command);
    let result = runtime.block_on(until_over(invocation, command));
    if is_node {
        // What still holds a store lets go of it before the process ends: RocksDB's globals go with the process.
        runtime.shutdown_timeout(NODE_END_MAX);
    } else {
        // A thread that waits for a terminal is not waited for.
        runtime.shutdown_background();
    }
    result
}

/// Threads that talk to the network: a processor is left for the thread that owns the queue manager. Measured on two processors:
/// with a second such thread a round trip takes a sixth longer, since each hand-over wakes one more.
fn worker_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.saturating_sub(1).max(1)
}

const fn is_node(command: &Command) -> bool {
    matches!(command, Command::Serve(_) | Command::Dev(_))
}

/// Runs a command until it ends, its time is over, or the user interrupts it.
async fn until_over(invocation: &mut Invocation, command: Command) -> Result<(), Failure> {
    if is_node(&command) {
        // A node ends when it is told to, and in its own way.
        return Box::pin(perform(invocation, command)).await;
    }
    let deadline = invocation.deadline();
    let started = Instant::now();
    let over = async {
        match deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => core::future::pending().await,
        }
    };
    let stopped = tokio::select! {
        // A result that is there counts, even if the time is over just now.
        biased;
        result = Box::pin(perform(invocation, command)) => return result,
        () = over => Failure::TimedOut(started.elapsed()),
        _ = tokio::signal::ctrl_c() => Failure::Interrupted,
    };
    if let (Some(done), Failure::TimedOut(_) | Failure::Interrupted) = (&invocation.done, &stopped)
    {
        invocation.output.remark(done);
    }
    Err(stopped)
}

async fn perform(invocation: &mut Invocation, command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(invocation, args).await,
        Command::Dev(args) => dev::run(invocation, args).await,
        Command::Mqsc(args) => mqsc::run(invocation, args).await,
        Command::Put(args) => put::run(invocation, *args).await,
        Command::Get(args) => get::run(invocation, args).await,
        Command::Browse(args) => browse::run(invocation, args).await,
        Command::Request(args) => request::run(invocation, *args).await,
        Command::Reply(args) => reply::run(invocation, args).await,
        Command::Channel(command) => channel::run(invocation, command).await,
        Command::Config(ConfigCommand::Export) => config::export(invocation).await,
        Command::Cluster(ClusterCommand::Members) => cluster::members(invocation).await,
        Command::Cert(command) => cert::run(invocation, command),
        Command::Rc(args) => rc::run(invocation, &args),
        Command::Dump(_) => dump::run(invocation).await,
        Command::Log(LogCommand::Account { since }) => account::run(invocation, since).await,
        Command::Bench(command) => bench::run(invocation, command).await,
        Command::Backup(command) => backup::run(invocation, command).await,
        Command::Store(StoreCommand::Check { directory }) => store::check(invocation, &directory),
        Command::Version => version::run(invocation),
    }
}

/// What the command does, for its error.
fn action(command: &Command) -> String {
    match command {
        Command::Serve(_) => "serve".to_owned(),
        Command::Dev(_) => "dev".to_owned(),
        Command::Mqsc(_) => "mqsc".to_owned(),
        Command::Put(args) => format!("put {}", args.queue),
        Command::Get(args) => format!("get {}", args.queue),
        Command::Browse(args) => format!("browse {}", args.queue),
        Command::Request(args) => format!("request {}", args.queue),
        Command::Reply(args) => format!("reply {}", args.queue),
        Command::Channel(ChannelCommand::List) => "channel list".to_owned(),
        Command::Channel(ChannelCommand::Start { name }) => format!("channel start {name}"),
        Command::Channel(ChannelCommand::Stop { name }) => format!("channel stop {name}"),
        Command::Config(ConfigCommand::Export) => "config export".to_owned(),
        Command::Cluster(ClusterCommand::Members) => "cluster members".to_owned(),
        Command::Cert(_) => "cert".to_owned(),
        Command::Rc(_) => "rc".to_owned(),
        Command::Dump(_) => "dump".to_owned(),
        Command::Log(LogCommand::Account { .. }) => "log account".to_owned(),
        Command::Bench(_) => "bench".to_owned(),
        Command::Backup(BackupCommand::Create { .. }) => "backup create".to_owned(),
        Command::Backup(BackupCommand::List { .. }) => "backup list".to_owned(),
        Command::Backup(BackupCommand::Verify { .. }) => "backup verify".to_owned(),
        Command::Backup(BackupCommand::Restore { .. }) => "backup restore".to_owned(),
        Command::Store(StoreCommand::Check { .. }) => "store check".to_owned(),
        Command::Version => "version".to_owned(),
    }
}

/// How long the command may take; `None` is for ever.
fn limit(cli: &Cli) -> Option<Duration> {
    match (cli.global.timeout, &cli.command) {
        (_, Command::Serve(_) | Command::Dev(_)) => None,
        (Some(Duration::ZERO), _) => None,
        (Some(timeout), _) => Some(timeout),
        // As long as there is something to stream, or for each command of a script on its own.
        (
            None,
            Command::Mqsc(_)
            | Command::Dump(_)
            | Command::Log(_)
            | Command::Backup(_)
            | Command::Bench(_)
            | Command::Store(_)
            | Command::Reply(_),
        ) => None,
        (None, Command::Request(args)) => Some(TIMEOUT_DEFAULT.saturating_add(args.wait)),
        (None, Command::Get(args)) => {
            // Each message may be waited for.
            match args.count {
                crate::parse::Count::Exactly(count) => {
                    let waits = args
                        .wait
                        .saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
                    Some(TIMEOUT_DEFAULT.saturating_add(waits))
                }
                crate::parse::Count::All => None,
            }
        }
        (
            None,
            Command::Put(_)
            | Command::Browse(_)
            | Command::Channel(_)
            | Command::Cluster(_)
            | Command::Config(_)
            | Command::Cert(_)
            | Command::Rc(_)
            | Command::Version,
        ) => Some(TIMEOUT_DEFAULT),
    }
}
