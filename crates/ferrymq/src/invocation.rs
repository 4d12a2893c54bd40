//! One run of the program: what was asked for, where the answer goes, which queue manager it is about.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ferrymq_client::{Client, ConnectOptions};
use ferrymq_types::{QueueManagerName, Timestamp, UnitOfWorkId};
use tokio::time::Instant;

use crate::cli::GlobalOptions;
use crate::context::{Destination, Environment, resolve};
use crate::failure::Failure;
use crate::output::Output;

/// `PutApplName` of what the command line puts.
const APPLICATION: &str = "ferrymq";

/// How long an attempt to connect takes before it is looked up again where the queue manager is.
const ATTEMPT: Duration = Duration::from_millis(500);

/// Whether a closed port is tried again until the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Yes,
    No,
}

/// One run of the program.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) options: GlobalOptions,
    pub(crate) environment: Environment,
    pub(crate) output: Output,
    /// When the command has to be finished; `None` is never.
    deadline: Option<Instant>,
    /// What has been done so far, such as `2 messages put`: for the last words of a command that does not finish.
    pub(crate) done: Option<String>,
}

/// A connection to the queue manager that is meant.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) destination: Destination,
}

impl Connected {
    /// The name of the queue manager, if it was said; else empty, which is the only one of the node.
    pub(crate) fn queue_manager(&self) -> String {
        self.destination
            .queue_manager
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    pub(crate) fn queue_manager_if_said(&self) -> Option<&str> {
        self.destination
            .queue_manager
            .as_ref()
            .map(QueueManagerName::as_str)
    }
}

impl Invocation {
    pub(crate) fn new(
        options: GlobalOptions,
        environment: Environment,
        limit: Option<Duration>,
    ) -> Self {
        let no_color = environment.get("NO_COLOR").is_some();
        let output = Output::new(&options, no_color);
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        Self {
            options,
            environment,
            output,
            deadline,
            done: None,
        }
    }

    /// When the command has to be finished.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Connects to the queue manager that is meant. Without a limit for the command, a closed port is tried for
    /// `patience`.
    pub(crate) async fn connect(
        &mut self,
        retry: Retry,
        patience: Duration,
    ) -> Result<Connected, Failure> {
        let end = Instant::now() + patience;
        let end = self.deadline.map_or(end, |deadline| deadline.min(end));
        let mut said = false;
        loop {
            // Where nobody said where it is, `ferrymq dev` may say so meanwhile.
            let destination = resolve(&self.options, &self.environment)?;
            let left = end.saturating_duration_since(Instant::now());
            let mut options = ConnectOptions::new(destination.server.clone());
            options.tls.clone_from(&destination.tls);
            options.channel.clone_from(&destination.channel);
            options.application = Some(APPLICATION.to_owned());
            options.timeout = Some(left);
            options.retry_for = match (retry, destination.is_guess) {
                (Retry::No, _) => Duration::ZERO,
                (Retry::Yes, true) => left.min(ATTEMPT),
                (Retry::Yes, false) => left,
            };
            match Client::connect(&options).await {
                Ok(client) => {
                    let rest = self
                        .deadline
                        .map(|d| d.saturating_duration_since(Instant::now()));
                    return Ok(Connected {
                        client: client.with_timeout(rest),
                        destination,
                    });
                }
                Err(error) => {
                    let over = Instant::now() + ATTEMPT >= end;
                    if retry == Retry::No || over || !error.is_connection_refused() {
                        return Err(error.into());
                    }
                }
            }
            if !said {
                said = true;
                self.output
                    .remark(&format!("waiting for {}", destination.server));
            }
        }
    }
}

/// The time now.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// An id for a unit of work that nobody used before.
pub(crate) fn fresh_unit_of_work_id() -> Result<UnitOfWorkId, Failure> {
    let mut bytes = [0; UnitOfWorkId::LENGTH];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::System(format!("no random numbers: {error}")))?;
    Ok(UnitOfWorkId::new(bytes))
}
